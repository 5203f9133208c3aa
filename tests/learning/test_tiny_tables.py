"""Tables with next to nothing in them: a model with a band around it, or why not."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import missratio as mr
from missratio.learning import MissingnessWarning


def tiny(seed):
    """A few rows, ties, constant columns, a category, half or all of it lost."""
    rng = np.random.default_rng([5, seed])
    n, d = int(rng.choice([6, 12, 25, 60])), int(rng.integers(1, 4))
    Z = rng.normal(size=(n, d)) + rng.normal(size=(n, 1))
    if rng.random() < 0.4:
        Z = np.round(Z)
    if rng.random() < 0.15:
        Z[:, 0] = 3.0
    Z *= 10.0 ** rng.integers(-8, 9) if rng.random() < 0.2 else 1.0
    places = [[j] for j in range(d)]
    if rng.random() < 0.5:
        Z = np.column_stack([Z, np.eye(3)[rng.integers(3, size=n)][:, 1:]])
        places.append([d, d + 1])
    X, revealed = Z.copy(), np.full(Z.shape, np.nan)
    looks_up = rng.random() < 0.7
    for own in places:
        lost = np.flatnonzero(rng.random(n) < rng.choice([0.05, 0.5, 0.95]))
        X[np.ix_(lost, own)] = np.nan
        count = int(rng.integers(0, len(lost) + 1)) if looks_up else 0
        drawn = rng.permutation(lost)[:count]
        revealed[np.ix_(drawn, own)] = Z[np.ix_(drawn, own)]
    return Z, X, revealed, [own for own in places if len(own) > 1]


def test_tiny_tables_teach_something_or_say_why_not():
    learned = 0
    for seed in range(60):
        Z, X, revealed, categories = tiny(seed)
        with warnings.catch_warnings():
            # A dozen rows may contradict the model, or leave it unsettled.
            warnings.simplefilter("ignore", MissingnessWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                phi = mr.learn_missingness(X, revealed, categories=categories)
            except np.linalg.LinAlgError:
                pytest.fail(f"table {seed} has no solution")
            except ValueError:
                continue
        lower, upper = phi.probability_band(Z, 0.1)
        found = phi.missing_probability(Z)
        assert (lower <= found + 1e-9).all(), seed
        assert (found <= upper + 1e-9).all(), seed
        learned += 1
    assert learned > 20


def test_a_column_that_never_varied_is_not_taught():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    revealed = np.full(X.shape, np.nan)
    revealed[5:25, 1] = X[5:25, 1]
    X[5:, 1], X[:5, 1] = np.nan, 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingnessWarning)
        phi = mr.learn_missingness(X, revealed)
    (check,) = [c for c in phi.checks if c.kind == "instrument"]
    assert check.statistic == 0.0


def test_levels_that_were_only_looked_up_count():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=(80, 1)), np.zeros((80, 2))])
    X[40:, 1:] = np.nan
    with pytest.raises(ValueError, match="one level where it is known"):
        mr.learn_missingness(X, categories=[[1, 2]])
    revealed = np.full(X.shape, np.nan)
    revealed[40:60, 1:] = np.eye(3)[rng.integers(3, size=20)][:, 1:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingnessWarning)
        phi = mr.learn_missingness(X, revealed, categories=[[1, 2]])
    rows = np.column_stack([np.zeros(3), np.eye(3)[:, 1:]])
    found = phi.missing_probability(rows)[:, 1]
    assert found[0] < found[1:].min()
