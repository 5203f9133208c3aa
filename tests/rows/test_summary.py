"""One pass over rows: sums that merge, in double precision, whatever the table's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from missratio import (
    KLIEP,
    FDivergenceRatio,
    LogisticMissingness,
    NaiveBayesRatio,
    StepMissingness,
    corrupt,
    density_ratio,
)
from missratio.rows import ClassRows, MemorySource
from missratio.weights import inverse_probability_weights

ENTRIES = LogisticMissingness([0.0, -1.0], [1.0, -1.0])
ROWS = StepMissingness([1.0, 1.0], 0.0, 0.75)


def rows_of(X, phi, own=None):
    phi = phi if isinstance(phi, str) else {1: phi}
    return ClassRows.of(MemorySource.of(X, sample_weight=own), 1, phi, "hajek")


@pytest.mark.parametrize("phi", [ENTRIES, ROWS, "ignore"], ids=["entries", "rows", "i"])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_pass_gives_what_the_weights_give(phi, weighted):
    rng = np.random.default_rng(0)
    X = corrupt(rng.normal(size=(90_000, 2)), ROWS if phi is ROWS else ENTRIES, 1)
    own = rng.exponential(size=len(X)) if weighted else None
    found = rows_of(X, phi, own).feature_sums(np.arange(2))
    weights = inverse_probability_weights(X, phi).reshape(len(X), -1)
    combined = weights if own is None else weights * own[:, None]
    np.testing.assert_allclose(found.count, (weights > 0).sum(axis=0))
    np.testing.assert_allclose(found.total, weights.sum(axis=0))
    np.testing.assert_allclose(found.squares, (weights**2).sum(axis=0))
    np.testing.assert_allclose(found.largest, weights.max(axis=0))
    np.testing.assert_allclose(found.mass, combined.sum(axis=0))
    expected = (combined * np.nan_to_num(X)).sum(axis=0)
    np.testing.assert_allclose(found.sums, expected)


def test_weights_near_certainty_of_missingness_keep_their_digits():
    phi = LogisticMissingness(0.0, 1.0)
    weights = phi.weights(np.array([[36.0], [-40.0], [np.nan]]))
    np.testing.assert_allclose(weights[:, 0], [1.0 + np.exp(36.0), 1.0, 0.0])


ESTIMATORS = [KLIEP(), FDivergenceRatio("js"), NaiveBayesRatio()]


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
@settings(max_examples=6, deadline=None)
@given(
    offset=st.sampled_from([0.0, 30.0, 300.0, 3000.0]),
    exponent=st.integers(-8, 8),
    seed=st.integers(0, 99),
)
def test_single_precision_gives_the_coefficients_of_double(
    estimator, missing, held, offset, exponent, seed
):
    rng = np.random.default_rng(seed)
    scale = 10.0**exponent
    X1 = (rng.normal(offset + 0.3, 1, (25_000, 3)) * scale).astype(np.float32)
    X0 = (rng.normal(offset, 1, (30_000, 3)) * scale).astype(np.float32)
    phi = None
    if missing:
        phi = {1: LogisticMissingness(-offset, 1.0 / scale)}
        X1 = corrupt(X1.astype(np.float64), phi[1], seed).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        if not held:
            patch.setattr("missratio.rows.source.HELD_ELEMENTS", 0)
        single = density_ratio(X1, X0, estimator, missingness=phi)
    double = density_ratio(
        X1.astype(np.float64), X0.astype(np.float64), estimator, missingness=phi
    )
    assert single.converged_
    np.testing.assert_allclose(single.coef_ * scale, double.coef_ * scale, atol=2e-5)
