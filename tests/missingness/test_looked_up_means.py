"""Means from look-ups: unbiased, and less noisy where other columns help."""

import numpy as np
import pytest

from missratio.missingness import looked_up_means


def draws(correlation, *, n_rows=600, n_drawn=40, repeats=200, seed=0, other_gone=0.0):
    """Errors of the mean, adjusted and not, of a column that loses high values."""
    rng = np.random.default_rng(seed)
    others = rng.normal(size=(n_rows, 3))
    noise = rng.normal(size=n_rows)
    z = correlation * others[:, 0] + np.sqrt(1 - correlation**2) * noise
    others[rng.uniform(size=others.shape) < other_gone] = np.nan
    lost = np.flatnonzero(rng.uniform(size=n_rows) < 1 / (1 + np.exp(-2 * z)))
    errors, stated, plain = [], [], []
    for _ in range(repeats):
        drawn = rng.permutation(lost)[:n_drawn]
        inclusion = np.ones(n_rows)
        inclusion[lost], inclusion[drawn] = 0.0, n_drawn / len(lost)
        features = np.where(inclusion > 0, z, np.nan)[:, None]
        found = looked_up_means(features, inclusion, others)
        errors.append(found.means[0] - z.mean())
        stated.append(found.standard_errors[0])
        known = inclusion > 0
        plain.append((z[known] / inclusion[known]).sum() / n_rows - z.mean())
    return np.array(errors), np.array(stated), np.array(plain)


@pytest.mark.parametrize("other_gone", [0.0, 0.3])
def test_a_column_that_predicts_narrows_the_error(other_gone):
    errors, stated, plain = draws(0.9, other_gone=other_gone)
    assert errors.std() < (0.75 if other_gone == 0.0 else 0.95) * plain.std()
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(len(errors))
    assert 0.8 < stated.mean() / errors.std() < 1.2


def test_columns_that_predict_nothing_do_no_harm():
    errors, _, plain = draws(0.0)
    assert errors.std() < 1.03 * plain.std()
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(len(errors))


def test_few_look_ups_are_left_as_they_are():
    errors, _, plain = draws(0.9, n_drawn=6, repeats=30)
    np.testing.assert_allclose(errors, plain, atol=1e-12)


def test_nothing_missing_is_the_mean():
    z = np.arange(5.0)[:, None]
    found = looked_up_means(z, np.ones(5), np.zeros((5, 1)))
    assert found.means[0] == 2.0
    assert found.standard_errors[0] == 0.0


def test_everything_looked_up_is_the_mean():
    rng = np.random.default_rng(0)
    z, inclusion = rng.normal(size=(50, 1)), np.ones(50)
    inclusion[:20] = 1 - 1e-15
    found = looked_up_means(z, inclusion, rng.normal(size=(50, 2)))
    assert found.means[0] == pytest.approx(z.mean(), abs=1e-12)
    assert found.standard_errors[0] == pytest.approx(0.0, abs=1e-12)


def test_no_look_up_is_refused():
    features = np.array([[1.0], [np.nan]])
    with pytest.raises(ValueError, match="none of them was looked up"):
        looked_up_means(features, np.array([1.0, 0.0]), np.zeros((2, 1)))
