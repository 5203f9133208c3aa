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


def test_the_score_of_a_unit_ratio_follows_the_link():
    assert as_divergence_objective("pearson", "identity").unit_score == 1.0
    assert as_divergence_objective("pearson", "log").unit_score == 0.0


def test_a_misspelt_divergence_lists_the_choices_and_guesses():
    with pytest.raises(
        ValueError, match=r"one of \['js', 'kl', 'pearson'\].*Did you mean 'pearson'"
    ):
        as_divergence_objective("pearsons", "log")


@pytest.mark.parametrize("divergence", [3, None, JensenShannon])
def test_what_is_no_divergence_is_refused(divergence):
    with pytest.raises(TypeError, match=r"divergence must be one of .*Divergence"):
        as_divergence_objective(divergence, "log")


def test_an_unknown_link_lists_the_choices():
    with pytest.raises(ValueError, match="link must be 'log' or 'identity'"):
        as_divergence_objective("js", "logit")
