"""What an estimator's `divergence` and `link` may be."""

import pytest
from objectives import JensenShannon

from missratio.objective import (
    FDivergenceObjective,
    JensenShannonObjective,
    KullbackLeiblerObjective,
    as_divergence_objective,
)


@pytest.mark.parametrize(
    ("divergence", "link", "kind"),
    [
        ("kl", "log", KullbackLeiblerObjective),
        ("js", "log", JensenShannonObjective),
        ("pearson", "log", FDivergenceObjective),
        ("pearson", "identity", FDivergenceObjective),
        (JensenShannon(), "log", FDivergenceObjective),
        (JensenShannon(), "identity", FDivergenceObjective),
    ],
)
def test_names_and_objects_give_objectives(divergence, link, kind):
    assert type(as_divergence_objective(divergence, link)) is kind


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
def test_what_is_no_divergence_is_refused(divergence, link, error, message):
    with pytest.raises(error, match=message):
        as_divergence_objective(divergence, link)
