"""Weights 1{observed} / (1 − φ): what Lemma main_prob promises of them."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from optional_packages import optional

import missratio as mr
from missratio._base import reading
from missratio.exceptions import WeightConcentrationWarning
from missratio.weights import (
    complete_row_weight_edges,
    complete_row_weights,
    effective_sample_size,
    inverse_probability_weights,
    row_weights,
    warn_if_concentrated,
    worst_case_sample_size,
)

pd = optional("pandas")
pl = optional("polars")

ROWS = mr.StepMissingness([1.0, 1.0], 0.0, 0.75)
ENTRIES = mr.LogisticMissingness([0.0, -1.0], [1.0, -1.0])

positive_weights = hnp.arrays(
    float, st.integers(1, 30), elements=st.floats(1e-3, 1e3, allow_subnormal=False)
)


def normal(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 2))


@settings(max_examples=50)
@given(seed=st.integers(0, 10_000), n=st.integers(0, 50), rowwise=st.booleans())
def test_weights_are_zero_where_missing_and_one_or_more_where_observed(
    seed, n, rowwise
):
    model = ROWS if rowwise else ENTRIES
    X = mr.corrupt(normal(n, seed), model, seed)
    weights = inverse_probability_weights(X, model)
    missing = np.isnan(X[:, 0]) if rowwise else np.isnan(X)
    assert weights.shape == missing.shape
    assert (weights[missing] == 0).all()
    assert (weights[~missing] >= 1).all()


@pytest.mark.parametrize("kind", ["rows", "entries", "products of entries"])
def test_the_mean_weight_is_one_and_weighted_means_are_unbiased(kind):
    model = ROWS if kind == "rows" else ENTRIES
    X = mr.corrupt(normal(40_000), model, random_state=1)
    weights = inverse_probability_weights(X, model)
    if kind == "products of entries":
        weights = row_weights(weights)
    observed = np.nan_to_num(X) if weights.ndim == 2 else np.nan_to_num(X[:, 0])
    for terms in (weights - 1, weights * observed):
        standard_error = terms.std(axis=0) / np.sqrt(len(terms))
        assert (np.abs(terms.mean(axis=0)) < 4 * standard_error).all()


NO_MODEL = r"NaN in column\(s\) {}, but .*missingness=\"ignore\" for the com"
HUGE = np.array([[1.0, 1.0], [1e200, 1e200]])
INFINITE = [[0.0, 0.0], [np.inf, 0.0]]
PARTIAL = np.array([[0.0, 0.0], [np.nan, np.nan], [0.0, 0.0], [np.nan, 1.0]])
NULLS = pd.DataFrame({"a": [np.nan], "b": [1.0], "c": [None]}, dtype=float)


@pytest.mark.parametrize(
    ("X", "model", "message"),
    [
        (np.array([[0.0, np.nan]]), None, NO_MODEL.format("1")),
        (NULLS, None, NO_MODEL.format("'a', 'c'")),
        (pl.DataFrame({"a": [1.0, 2.0], "b": [1, None]}), None, NO_MODEL.format("'b'")),
        *((INFINITE, m, "infinity at row 1,") for m in (ROWS, ENTRIES, "ignore", None)),
        (PARTIAL, ROWS, r"row 3 has 1 of 2 .*\(rowwise=False\)"),
        (normal(3), mr.FunctionMissingness(lambda X: X[:, 0] ** 0), r"lie in \[0, 1\)"),
        *((normal(3), m, "one class's model, ") for m in ("drop", {1: ROWS}, 0.5)),
    ],
)  # fmt: skip
def test_what_has_no_weight_is_refused(X, model, message, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK_ENTRIES", 4)
    with pytest.raises((TypeError, ValueError), match=message):
        inverse_probability_weights(X, model)


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (row_weights, [HUGE], "overflows at row 1.*one at a time"),
        (effective_sample_size, [1.0], "must be one number a row: got 1.0"),
        (effective_sample_size, [[1.0, -1.0]], "got -1.0 at index 1"),
        (effective_sample_size, [[np.nan]], "finite and not negative: got nan"),
        (worst_case_sample_size, [-1, 0.5], "n_rows must not be negative: got -1"),
        (worst_case_sample_size, [1, 1.5], r"maximum must lie in \[0, 1\].*1.5"),
        (worst_case_sample_size, [1, np.nan], r"maximum must lie in \[0, 1\]"),
    ],
)  # fmt: skip
def test_weights_and_sizes_that_mean_nothing_are_refused(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)


@given(weights=positive_weights, n_missing=st.integers(0, 5))
def test_kish_is_the_number_observed_of_constant_weights_and_less_of_others(
    weights, n_missing
):
    size = effective_sample_size(np.append(weights, np.zeros(n_missing)))
    assert size * (1 + 1e-12) >= 1
    assert size <= len(weights)
    constant = np.full_like(weights, weights[0])
    assert effective_sample_size(constant) == pytest.approx(len(weights), rel=1e-14)
    if np.ptp(weights) > 1e-3 * weights.max():
        assert effective_sample_size(weights) < len(weights)


@given(weights=positive_weights, exponent=st.integers(-290, 290))
def test_kish_does_not_depend_on_the_scale_however_large(weights, exponent):
    scaled = effective_sample_size(weights * 10.0**exponent)
    assert scaled == pytest.approx(effective_sample_size(weights), rel=1e-12)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (
            [0.0, *np.ones(30), 100.0],
            r"class 1: half of the total weight sits on 1 of 31 observed rows \(Kish's "
            r"effective sample size 1\.7, largest missing probability 0\.99\).*by desi",
        ),
        ([*np.ones(200), 300.0, 100.0, 50.0, 50.0], "on 2 of 204 observed rows"),
    ],
)
def test_rows_that_carry_half_of_the_weight_are_counted(weights, message):
    with pytest.warns(WeightConcentrationWarning, match=message) as record:
        warn_if_concentrated(weights, "class 1")
    assert record[0].filename == __file__


@given(
    weights=hnp.arrays(float, st.integers(0, 60), elements=st.floats(1, 1e6)),
    exponent=st.integers(0, 290),
)
def test_the_warning_is_given_exactly_when_few_of_three_rows_or_more_carry_half(
    weights, exponent
):
    few = max(1, len(weights) // 20)
    heaviest = np.sort(weights)[-few:].sum()
    with warnings.catch_warnings(record=True, action="always") as record:
        warn_if_concentrated(weights * 2.0**exponent, "class 1")
    if len(weights) < 3:
        assert not record
    elif abs(heaviest / weights.sum() - 0.5) > 1e-9:
        assert bool(record) == (heaviest > weights.sum() / 2)


@pytest.mark.parametrize("rowwise", [False, True])
@pytest.mark.parametrize("factor", [1.0, 1.7])
def test_edges_are_weights_whose_odds_are_wrong_by_a_factor(rowwise, factor):
    phi = mr.LogisticMissingness(0.3, [1.0, -2.0], rowwise)
    X = np.random.default_rng(0).normal(size=(50, 2))
    X[::7] = np.nan
    odds = phi.missing_probability(X) / (1.0 - phi.missing_probability(X))
    expected = 1.0 + odds / factor, 1.0 + odds * factor
    edges = complete_row_weight_edges(X, phi, delta=None, odds_factor=factor)
    for found, one in zip(edges, expected, strict=True):
        whole = one if rowwise else one.prod(axis=1)
        assert found == pytest.approx(np.nan_to_num(whole))
    if factor == 1.0:
        assert edges[0] == pytest.approx(complete_row_weights(X, phi))


def test_what_is_always_missing_weighs_as_much_as_can_be_summed():
    phi = mr.LogisticMissingness(0.0, [1.0, 1.0])
    rows = np.array([[1000.0, 0.0], [1000.0, 1000.0], [0.0, np.nan]])
    low, high = complete_row_weight_edges(rows, phi, delta=None, odds_factor=2.0)
    assert np.isfinite(high).all()
    assert high[0] == high[1] == low[0] >= 1e15
    assert high[2] == 0.0
