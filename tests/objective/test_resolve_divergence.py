"""What an estimator's `divergence` may be."""

import pytest
from objectives import JensenShannon

import missratio as mr

CHOICES = "divergence must be one of .*Divergence"


@pytest.mark.parametrize(
    ("divergence", "error", "message"),
    [
        ("pearsons", ValueError, r"\['js', 'kl', 'pearson'\].*mean 'pearson'"),
        (3, TypeError, CHOICES),
        (JensenShannon, TypeError, CHOICES),
    ],
)
def test_what_is_no_divergence_is_refused(divergence, error, message, two_normals):
    with pytest.raises(error, match=message):
        mr.FDivergenceRatio(divergence).fit(*two_normals())
