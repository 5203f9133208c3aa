"""Objectives written out in the score, and scores of any size."""

import numpy as np
import pytest
from objectives import JensenShannon, KullbackLeibler

from missratio.objective import (
    FDivergenceObjective,
    JensenShannonObjective,
    KLIEPObjective,
    KullbackLeiblerObjective,
)


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
