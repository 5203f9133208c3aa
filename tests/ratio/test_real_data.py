"""Cardiotocography: a joint fit without a penalty has no finite optimum there."""

import numpy as np
import pytest

from missratio import KLIEP, NaiveBayesRatio, density_ratio
from missratio.datasets import load_ctg
from missratio.exceptions import NoFiniteOptimumWarning

pytestmark = pytest.mark.data


@pytest.fixture
def classes(data_folder):
    """Class 1 (NSP = 1) and class 0, the sheet's footer dropped."""
    X, y = load_ctg(return_X_y=True, data_home=data_folder)
    return X[y == 1], X[y == 0]


def split(classes, seed):
    """1555 rows of class 1 and 237 of class 0, normalised together."""
    rng = np.random.default_rng(seed)
    X1, X0 = (rng.permutation(rows) for rows in classes)
    X1, X0 = X1[:1555], X0[:237]
    both = np.concatenate([X1, X0])
    return [(rows - both.mean(axis=0)) / both.std(axis=0) for rows in (X1, X0)]


@pytest.mark.parametrize("seed", range(20))
def test_no_split_has_an_unpenalised_optimum_and_a_ridge_gives_one(classes, seed):
    X1, X0 = split(classes, seed)
    with pytest.warns(NoFiniteOptimumWarning, match="l2=0.01"):
        assert not density_ratio(X1, X0).converged_
    assert density_ratio(X1, X0, KLIEP(l2=0.01)).converged_


def test_naive_bayes_needs_no_penalty(classes):
    for seed in range(20):
        assert density_ratio(*split(classes, seed), NaiveBayesRatio()).converged_
