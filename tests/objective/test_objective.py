"""Objectives: their derivatives, their names, and one's own."""

import numpy as np
import objectives
import pytest
from objectives import HellingerObjective, JensenShannon, KullbackLeibler
from sklearn.model_selection import GridSearchCV

import missratio as mr
from missratio import objective
from missratio.exceptions import NotSolvedWarning
from missratio.objective import (
    Combination,
    Divergence,
    FDivergenceObjective,
    JensenShannonObjective,
    KLIEPObjective,
    KullbackLeiblerObjective,
    Term,
    check_objective,
)


class Kliep(objective.KLIEPObjective):
    def combine(self, expectations):
        a, b = expectations.value
        gradient = np.array([np.full_like(a, -1.0), 1 / b])
        return Combination(-a + np.log(b), gradient)


class Square(Divergence):
    def generator(self, ratio):
        return (ratio - 1) ** 2

    def first(self, ratio):
        return 2 * (ratio - 1)

    def second(self, ratio):
        return np.full_like(ratio, -2.0)

    def third(self, ratio):
        return np.zeros_like(ratio)


def changed(base=HellingerObjective, **attributes):
    return type("Changed", (base,), attributes)()


DIVERGENCES = [
    KullbackLeibler(),
    JensenShannon(),
    objective.Pearson(),
    objectives.Hellinger(),
]
SOUND = [
    HellingerObjective(),
    objective.KLIEPObjective(),
    objective.KullbackLeiblerObjective(),
    objective.JensenShannonObjective(),
    *(objective.FDivergenceObjective(divergence) for divergence in DIVERGENCES),
    *DIVERGENCES,
]
WRONG = {
    "curvature": (HellingerObjective(curvature=2), "curvature of numerator is 2 times"),
    "slope": (HellingerObjective(slope=-1), "slope of numerator is -1 times"),
    "bent": (changed(denominator=lambda self, s: Term(s**4, s**3, 12 * s**2)),
             "slope of denominator is 0.25 times"),
    "optimum": (HellingerObjective(weight=3.0), "isn't smallest at the ratio of two l"),
    "combine": (Kliep(), "row 1 of combine's hessian.*\n.*exp\\(log_scale\\)"),
    "intercept": (changed(objective.KLIEPObjective, fits_intercept=True),
                  "changes nothing: set fits_intercept=False"),
    "linear": (changed(linear_numerator=True), "linear_numerator says"),
    "no term": (changed(numerator=lambda self, s: s), "numerator must return a Term"),
    "shape": (changed(numerator=lambda self, s: Term(*[s.sum()] * 3)),
              "numerator must return a Term"),
    "infinite": (changed(numerator=lambda self, s: Term(s / 0, s, s)),
                 "numerator isn't finite"),
    "divergence": (Square(), "Square: second is -1 times what it should be"),
    "class": (HellingerObjective, "no instance of Objective"),
}  # fmt: skip


@pytest.mark.parametrize("objective", SOUND, ids=repr)
def test_sound_objectives_pass(objective):
    check_objective(objective)


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize(("objective", "message"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_said(objective, message):
    with pytest.raises(ValueError, match=message):
        check_objective(objective)


def two_samples(n=150):
    X = np.random.default_rng(0).normal(size=(2 * n, 2))
    X[:n] += 0.5
    return X, np.repeat([1, 0], n)


def test_a_fit_that_was_not_solved_says_what_is_wrong():
    wrong = mr.ObjectiveRatio(HellingerObjective(slope=-1, curvature=-1))
    with pytest.warns(NotSolvedWarning, match="slope of numerator is -1 times"):
        wrong.fit(*two_samples())


def test_parameters_and_penalties_of_an_own_objective_are_searched():
    grid = {"objective__weight": [1.0, 2.0], "l1": [0.0, 0.1]}
    ratio = mr.ObjectiveRatio(HellingerObjective(), l1=1.0)
    search = GridSearchCV(ratio, grid).fit(*two_samples())
    assert len(search.cv_results_["params"]) == 4
    assert not ratio.fit(*two_samples()).coef_.any()
    ratio.set_params(penalty_weights="standard-error")
    assert np.isfinite(ratio.fit(*two_samples()).coef_).all()


# Objectives written out in the score, and scores of any size.


def unscaled(term):
    scale = np.exp(np.asarray(term.log_scale))[..., None]
    return scale * term.value, scale * term.slope, scale * term.curvature


@pytest.mark.parametrize(
    ("short", "divergence"),
    [
        (KullbackLeiblerObjective(), KullbackLeibler()),
        (JensenShannonObjective(), JensenShannon()),
    ],
    ids=["KL", "JS"],
)
def test_objectives_written_out_in_the_score_are_those_of_their_generator(
    short, divergence
):
    score = np.linspace(-4, 4, 30)
    long = FDivergenceObjective(divergence)
    sign = -1.0 if short.linear_numerator else 1.0
    upper, lower = unscaled(short.numerator(score)), unscaled(short.denominator(score))
    pairs = [(long.numerator(score), upper, sign), (long.denominator(score), lower, 1)]
    for ours, theirs, factor in pairs:
        for mine, other in zip(unscaled(ours), theirs, strict=True):
            # The values may differ by a constant, which no optimum sees.
            difference = mine - factor * other
            np.testing.assert_allclose(difference, difference[0], atol=1e-12)
        np.testing.assert_allclose(unscaled(ours)[1], factor * theirs[1], atol=1e-12)


@pytest.mark.parametrize("objective", [KLIEPObjective(), JensenShannonObjective()])
@pytest.mark.parametrize("size", [1e3, 1e5])
def test_scores_of_any_size_neither_overflow_nor_turn_into_nan(objective, size):
    score = np.array([[-size, 0.0, size]])
    for side in (objective.numerator, objective.denominator):
        for array in (side(score).value, side(score).slope, side(score).curvature):
            assert np.isfinite(array).all()


# What an estimator's `divergence` may be.


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
