"""Rows move a learned φ by as much as its covariance says."""

import warnings

import numpy as np
import pytest
from data import lost_and_looked_up
from optional_packages import optional

from missratio import learn_missingness
from missratio.learning import MissingnessWarning

pd = optional("pandas")


def learned(n, rowwise, revealed_share, seed=0):
    slopes = np.array([1.0, -1.0])
    X, whole, _ = lost_and_looked_up(n, 2, n, seed, rowwise, slopes)
    known = np.random.default_rng(seed).random((n, 1)) < revealed_share
    with warnings.catch_warnings():
        # Of so many tables a test may call one wrong.
        warnings.simplefilter("ignore", MissingnessWarning)
        model = learn_missingness(
            X, np.where(known, whole, np.nan), rowwise=rowwise, from_table=False
        )
    return model, X


@pytest.mark.parametrize("rowwise", [False, True])
@pytest.mark.parametrize("revealed_share", [0.05, 0.5, 1.0])
def test_movements_of_all_rows_add_up_to_the_covariance(rowwise, revealed_share):
    model, _ = learned(30_000, rowwise, revealed_share)
    share, _, variance = model.influence()
    expected = model.covariance.reshape(variance.shape)
    np.testing.assert_allclose(variance, expected, rtol=0.1, atol=0.03 * expected.max())
    np.testing.assert_allclose(share, revealed_share, rtol=0.15)


@pytest.mark.parametrize("rowwise", [False, True])
@pytest.mark.parametrize("revealed_share", [0.2, 1.0])
def test_their_sum_is_a_covariance_with_a_handful_of_rows(rowwise, revealed_share):
    for seed in range(20):
        model, _ = learned(150, rowwise, revealed_share, seed)
        values = np.linalg.eigvalsh(model.influence()[2])
        assert (values > 0.0).all()


@pytest.mark.parametrize("rowwise", [False, True])
@pytest.mark.parametrize("n", [500, 40_000])
def test_a_model_knows_the_rows_that_it_was_learned_from(rowwise, n):
    model, X = learned(n, rowwise, 0.5)
    _, others = learned(n, rowwise, 0.5, seed=1)
    assert model.was_learned_from(X)
    assert model.was_learned_from(pd.DataFrame(X))
    assert not model.was_learned_from(X[:-1])
    assert not model.was_learned_from(X + 1e-6)
    assert not model.was_learned_from(others)
