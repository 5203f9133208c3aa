"""What an estimator's `divergence` and `link` may be."""

import pytest
from objectives import JensenShannon

import missratio as mr


@pytest.mark.parametrize(
    ("divergence", "link", "error", "message"),
    [
        ("pearsons", "log", ValueError, r"\['js', 'kl', 'pearson'\].*mean 'pearson'"),
        (3, "log", TypeError, "divergence must be one of .*Divergence"),
        (JensenShannon, "log", TypeError, "divergence must be one of .*Divergence"),
        ("js", "logit", ValueError, r"link must be one of \['log', 'identity'\]"),
        ("kl", "identity", ValueError, "link='identity' is for divergence='pearson'"),
    ],
)
def test_what_is_no_divergence_is_refused(
    divergence, link, error, message, two_normals
):
    with pytest.raises(error, match=message):
        mr.FDivergenceRatio(divergence, link=link).fit(*two_normals())
