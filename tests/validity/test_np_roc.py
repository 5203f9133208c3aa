"""The level and the power of comparisons of two classifiers."""

import numpy as np
import pytest
from scipy.stats import binom

from missratio import np_roc
from missratio.evaluation import compare_np_roc

pytestmark = pytest.mark.validity


def told_apart(directions, n_controlled, n_other, alphas, repeats):
    """In what share of repeats either score is called better, at each level."""
    told = np.zeros(len(alphas))
    for repeat in range(repeats):
        rng = np.random.default_rng([29, repeat])
        rows = (
            rng.normal(size=(n_controlled, 2)),
            rng.normal([1.5, 0.0], 1.0, (n_other, 2)),
        )
        curves = [
            np_roc(*(each @ direction for each in rows), alphas=alphas, delta=0.05)
            for direction in directions
        ]
        found = compare_np_roc(*curves)
        told += found.a_better | found.b_better
    return told


@pytest.mark.parametrize(
    ("directions", "n_controlled", "n_other"),
    [
        (([1, 1], [1, -1]), 2000, 2000),
        (([1, 0.2], [1, -0.2]), 2000, 2000),
        (([1, 0.5], [1, -0.5]), 500, 4000),
        (([1, 1], [1, -1]), 100, 100),
    ],
)
def test_scores_of_equal_power_are_told_apart_in_five_of_a_hundred(
    directions, n_controlled, n_other
):
    repeats = 150
    told = told_apart(directions, n_controlled, n_other, [0.05, 0.1, 0.3], repeats)
    assert (binom.sf(told - 1, repeats, 0.05) > 1e-3).all()


def test_a_power_of_586_is_told_from_one_of_524():
    assert told_apart(([1, 0], [2, 1]), 2000, 2000, [0.1], 60)[0] >= 54
