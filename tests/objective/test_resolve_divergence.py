"""What an estimator's `divergence` and `link` may be."""

import pytest

from missratio.objective import (
    FDivergenceObjective,
    JensenShannon,
    JensenShannonObjective,
    KullbackLeiblerObjective,
    Pearson,
    as_divergence_objective,
)


@pytest.mark.parametrize(
    ("divergence", "link", "kind"),
    [
        ("kl", "log", KullbackLeiblerObjective),
        ("js", "log", JensenShannonObjective),
        (JensenShannon(), "log", JensenShannonObjective),
        ("js", "identity", FDivergenceObjective),
        ("pearson", "log", FDivergenceObjective),
        (Pearson(), "identity", FDivergenceObjective),
    ],
)
def test_names_and_objects_give_objectives(divergence, link, kind):
    assert type(as_divergence_objective(divergence, link)) is kind


def test_a_subclass_of_a_known_divergence_is_not_replaced_by_its_shortcut():
    class Scaled(JensenShannon):
        def generator(self, ratio):
            return 2.0 * super().generator(ratio)

    assert type(as_divergence_objective(Scaled(), "log")) is FDivergenceObjective


@pytest.mark.parametrize(
    ("divergence", "link", "error", "message"),
    [
        ("pearsons", "log", ValueError, r"\['js', 'kl', 'pearson'\].*mean 'pearson'"),
        (3, "log", TypeError, "divergence must be one of .*Divergence"),
        (JensenShannon, "log", TypeError, "divergence must be one of .*Divergence"),
        ("js", "logit", ValueError, r"link must be one of \['log', 'identity'\]"),
    ],
)
def test_what_is_no_divergence_is_refused(divergence, link, error, message):
    with pytest.raises(error, match=message):
        as_divergence_objective(divergence, link)
