"""Means from look-ups: unbiased, and less noisy where other columns help."""

import numpy as np
import pytest

from missratio.missingness import looked_up_terms


def draws(correlation, *, n_rows=600, n_drawn=40, repeats=200, seed=0, other_gone=0.0):
    """Errors of the mean, adjusted and not, of a column that loses high values."""
    rng = np.random.default_rng(seed)
    errors, stated, plain = [], [], []
    for _ in range(repeats):
        others = rng.normal(size=(n_rows, 3))
        noise = rng.normal(size=n_rows)
        z = 5.0 + correlation * others[:, 0] + np.sqrt(1 - correlation**2) * noise
        others[rng.uniform(size=others.shape) < other_gone] = np.nan
        lost = np.flatnonzero(rng.uniform(size=n_rows) < 1 / (1 + np.exp(10 - 2 * z)))
        drawn = rng.permutation(lost)[:n_drawn]
        inclusion = np.ones(n_rows)
        inclusion[lost], inclusion[drawn] = 0.0, n_drawn / len(lost)
        features = np.where(inclusion > 0, z, np.nan)[:, None]
        terms = looked_up_terms(features, inclusion, others)[:, 0]
        errors.append(terms.mean() - 5.0)
        stated.append(terms.std() / np.sqrt(n_rows))
        known = inclusion > 0
        plain.append((z[known] / inclusion[known]).sum() / n_rows - 5.0)
    return np.array(errors), np.array(stated), np.array(plain)


@pytest.mark.parametrize(
    ("correlation", "other_gone", "most"),
    [(0.9, 0.0, 0.85), (0.9, 0.3, 0.98), (0.0, 0.0, 1.03)],
)
def test_columns_that_predict_narrow_the_error_and_others_do_no_harm(
    correlation, other_gone, most
):
    errors, stated, plain = draws(correlation, other_gone=other_gone)
    assert errors.std() < most * plain.std()
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(len(errors))
    assert 0.85 < stated.mean() / errors.std() < 1.15


def test_everything_looked_up_is_the_mean():
    rng = np.random.default_rng(0)
    z, inclusion = rng.normal(size=(50, 1)), np.ones(50)
    inclusion[:20] = 1 - 1e-15
    terms = looked_up_terms(z, inclusion, rng.normal(size=(50, 2)))
    assert terms.mean() == pytest.approx(z.mean(), abs=1e-12)
    nothing = looked_up_terms(z, np.ones(50), np.zeros((50, 1)))
    np.testing.assert_array_equal(nothing, z)


def test_rows_that_count_twice_are_two_rows():
    # Of so few look-ups none is adjusted, so that folds play no part.
    rng = np.random.default_rng(1)
    z, inclusion = rng.normal(size=(60, 2)), np.ones(60)
    inclusion[:30], inclusion[:4] = 0.0, 4 / 30
    z[4:30] = np.nan
    others, count = rng.normal(size=(60, 2)), rng.integers(1, 3, 60)
    weighted = looked_up_terms(z, inclusion, others, count.astype(float))
    again = np.repeat(np.arange(60), count)
    repeated = looked_up_terms(z[again], inclusion[again], others[again])
    np.testing.assert_allclose(
        np.average(weighted, axis=0, weights=count), repeated.mean(axis=0)
    )


def test_no_look_up_is_refused():
    features = np.array([[1.0], [np.nan]])
    with pytest.raises(ValueError, match="none of them was looked up"):
        looked_up_terms(features, np.array([1.0, 0.0]), np.zeros((2, 1)))
