"""Weights 1{observed} / (1 − φ): what Lemma main_prob promises of them."""

import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from optional_packages import optional

from missratio._base import reading
from missratio.missingness import (
    FunctionMissingness,
    LogisticMissingness,
    StepMissingness,
    corrupt,
)
from missratio.weights import (
    SampleSize,
    WeightConcentrationWarning,
    effective_sample_size,
    inverse_probability_weights,
    row_weights,
    sample_size,
    warn_if_concentrated,
    worst_case_sample_size,
)

pd = optional("pandas")
pl = optional("polars")

ROWS = StepMissingness([1.0, 1.0], 0.0, 0.75)
ENTRIES = LogisticMissingness([0.0, -1.0], [1.0, -1.0])

positive_weights = hnp.arrays(
    float, st.integers(1, 30), elements=st.floats(1e-3, 1e3, allow_subnormal=False)
)


def normal(n: int, seed: int = 0) -> reading.FloatArray:
    return np.random.default_rng(seed).normal(size=(n, 2))


@settings(max_examples=50)
@given(seed=st.integers(0, 10_000), n=st.integers(0, 50), rowwise=st.booleans())
def test_weights_are_zero_where_missing_and_one_or_more_where_observed(
    seed, n, rowwise
):
    model = ROWS if rowwise else ENTRIES
    X = corrupt(normal(n, seed), model, seed)
    weights = inverse_probability_weights(X, model)
    missing = np.isnan(X[:, 0]) if rowwise else np.isnan(X)
    assert weights.shape == missing.shape
    assert (weights[missing] == 0).all()
    assert (weights[~missing] >= 1).all()


def test_a_missing_probability_of_three_quarters_weighs_four():
    X = [[-1.0, 0.0], [1.0, 0.0], [np.nan, np.nan]]
    assert inverse_probability_weights(X, ROWS).tolist() == [1.0, 4.0, 0.0]


@pytest.mark.parametrize("model", [ROWS, ENTRIES], ids=["rows", "entries"])
def test_the_mean_weight_is_one_and_weighted_means_are_unbiased(model):
    Z = normal(40_000)
    X = corrupt(Z, model, random_state=1)
    weights = inverse_probability_weights(X, model)
    observed = np.nan_to_num(X) if weights.ndim == 2 else np.nan_to_num(X[:, 0])
    for terms in (weights - 1, weights * observed):
        standard_error = terms.std(axis=0) / np.sqrt(len(terms))
        assert (np.abs(terms.mean(axis=0)) < 4 * standard_error).all()


def test_the_mean_row_weight_under_per_feature_missingness_is_one():
    X = corrupt(normal(40_000), ENTRIES, random_state=2)
    weights = row_weights(inverse_probability_weights(X, ENTRIES))
    standard_error = weights.std() / np.sqrt(len(weights))
    assert abs(weights.mean() - 1) < 4 * standard_error


def test_without_missingness_every_row_weighs_one():
    assert inverse_probability_weights(normal(3), None).tolist() == [1, 1, 1]
    nothing_lost = StepMissingness([1.0, 1.0], 0.0, 0.0)
    assert inverse_probability_weights(normal(3), nothing_lost).tolist() == [1, 1, 1]


def test_ignore_gives_complete_case_weights():
    X = pd.DataFrame({"a": [1, 2], "b": [np.nan, 3.0]})
    assert inverse_probability_weights(X, "ignore").tolist() == [[1, 0], [1, 1]]


def test_constant_missingness_weighs_as_complete_cases_do_up_to_scale():
    constant = LogisticMissingness(0.0, 0.0)
    X = corrupt(normal(50), constant, 0)
    np.testing.assert_allclose(
        inverse_probability_weights(X, constant),
        2 * inverse_probability_weights(X, "ignore"),
    )


@pytest.mark.parametrize("model", [ROWS, ENTRIES, "ignore"], ids=str)
def test_blocks_of_rows_change_nothing(model, monkeypatch):
    X = corrupt(normal(101), ENTRIES if model is not ROWS else ROWS, 0)
    expected = inverse_probability_weights(X, model)
    monkeypatch.setattr(reading, "BLOCK_ENTRIES", 6)
    np.testing.assert_array_equal(inverse_probability_weights(X, model), expected)


def test_a_rowwise_model_makes_no_temporary_of_the_size_of_the_table():
    X = np.zeros((100_000, 50))
    model = StepMissingness(np.ones(50), 0.0, 0.5)
    tracemalloc.start()
    inverse_probability_weights(X, model)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < X.nbytes / 8


@pytest.mark.parametrize(
    ("X", "columns"),
    [
        (np.array([[0.0, np.nan]]), "1"),
        (
            pd.DataFrame({"a": [np.nan], "b": [1.0], "c": [None]}, dtype=float),
            "'a', 'c'",
        ),
        (pl.DataFrame({"a": [1.0, 2.0], "b": [1, None]}), "'b'"),
    ],
)
def test_nan_without_a_model_is_refused_by_name(X, columns):
    message = rf"NaN in column\(s\) {columns}, but .*missingness=\"ignore\" for the com"
    with pytest.raises(ValueError, match=message):
        inverse_probability_weights(X, None)


@pytest.mark.parametrize("model", [ROWS, ENTRIES, "ignore", None], ids=str)
def test_infinite_entries_are_refused(model):
    with pytest.raises(ValueError, match="infinity at row 1, column 0"):
        inverse_probability_weights([[0.0, 0.0], [np.inf, 0.0]], model)


def test_a_partially_missing_row_is_refused_by_a_rowwise_model(monkeypatch):
    monkeypatch.setattr(reading, "BLOCK_ENTRIES", 4)
    X = normal(9)
    X[2] = X[5, 0] = X[7, 0] = np.nan
    with pytest.raises(ValueError, match=r"row 5 has 1 of 2 .*\(rowwise=False\)"):
        inverse_probability_weights(X, ROWS)


@pytest.mark.parametrize("model", ["drop", {1: ROWS}, 0.5])
def test_what_is_no_model_is_refused(model):
    with pytest.raises(TypeError, match='one class\'s model, "ignore" or None: got'):
        inverse_probability_weights(normal(3), model)


def test_an_impossible_probability_is_refused_where_it_is_needed():
    model = FunctionMissingness(lambda X: np.ones(len(X)))
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\)"):
        inverse_probability_weights(normal(3), model)


def test_row_weights_are_products_and_zero_where_an_entry_is_missing():
    assert row_weights([[2.0, 3.0], [0.0, 3.0], [1.0, 1.0]]).tolist() == [6, 0, 1]
    assert row_weights([[1e200, 1e200, 0.0]]).tolist() == [0]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], r"must have shape \(rows, features\): got \(2,\)"),
        ([[1.0, -1.0]], r"finite and not negative: got -1.0 at index \(0, 1\)"),
        ([[np.nan]], "finite and not negative: got nan"),
        ([[1.0, 1.0], [1e200, 1e200]], "overflows at row 1.*one at a time"),
    ],
)
def test_entry_weights_without_a_product_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        row_weights(weights)


@given(weights=positive_weights, n_missing=st.integers(0, 5))
def test_kish_is_at_most_the_number_observed(weights, n_missing):
    size = effective_sample_size(np.append(weights, np.zeros(n_missing)))
    assert size * (1 + 1e-12) >= 1
    assert size <= len(weights)


@given(weights=positive_weights)
def test_kish_equals_the_number_observed_only_of_constant_weights(weights):
    constant = np.full_like(weights, weights[0])
    assert effective_sample_size(constant) == pytest.approx(len(weights), rel=1e-14)
    if np.ptp(weights) > 1e-3 * weights.max():
        assert effective_sample_size(weights) < len(weights)


@given(weights=positive_weights, exponent=st.integers(-290, 290))
def test_kish_does_not_depend_on_the_scale_however_large(weights, exponent):
    scaled = effective_sample_size(weights * 10.0**exponent)
    assert scaled == pytest.approx(effective_sample_size(weights), rel=1e-12)


def test_kish_of_nothing_is_zero():
    assert effective_sample_size(np.zeros(4)) == 0.0
    assert effective_sample_size([]) == 0.0


def test_kish_runs_along_an_axis():
    weights = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 5.0]])
    assert np.asarray(effective_sample_size(weights, axis=0)).tolist() == [3, 1]
    assert effective_sample_size(weights.T)[1] == 1


def test_weights_of_no_dimension_are_refused():
    with pytest.raises(ValueError, match=r"must be an array: got 1.0"):
        effective_sample_size(1.0)


def test_the_worst_case_size_is_that_of_the_paper():
    assert worst_case_sample_size(200, 0.75) == 50.0
    assert worst_case_sample_size(200, 0.0) == 200.0


@pytest.mark.parametrize(
    ("n_rows", "maximum", "message"),
    [
        (-1, 0.5, "n_rows must not be negative: got -1"),
        (1, 1.5, r"maximum must lie in \[0, 1\].*1.5"),
        (1, np.nan, r"maximum must lie in \[0, 1\]"),
    ],
)
def test_impossible_sizes_are_refused(n_rows, maximum, message):
    with pytest.raises(ValueError, match=message):
        worst_case_sample_size(n_rows, maximum)


def test_sample_size_describes_what_is_left():
    assert sample_size([3.0, 1.0, 0.0], 0.8) == SampleSize(
        rows=3, observed=2, kish=pytest.approx(1.6), worst_case=pytest.approx(0.6)
    )


def test_an_unknown_maximum_is_read_from_the_largest_weight():
    assert sample_size([4.0, 1.0, 0.0, 0.0], None).worst_case == pytest.approx(1.0)
    assert sample_size([0.5, 0.5]).worst_case == 2.0


def test_nothing_observed_leaves_nothing():
    assert sample_size([0.0, 0.0]) == SampleSize(2, 0, 0.0, 0.0)
    assert sample_size([]) == SampleSize(0, 0, 0.0, 0.0)


@given(seed=st.integers(0, 1000))
def test_the_plug_in_worst_case_is_at_least_the_true_one(seed):
    X = corrupt(normal(100, seed), ROWS, seed)
    weights = inverse_probability_weights(X, ROWS)
    known, read = sample_size(weights, ROWS.maximum), sample_size(weights)
    assert known.worst_case <= read.worst_case * (1 + 1e-12)


@pytest.mark.parametrize(
    "function", [sample_size, lambda w: warn_if_concentrated(w, "")]
)
def test_entry_weights_are_refused_where_rows_are_meant(function):
    with pytest.raises(ValueError, match=r"shape \(rows,\): got \(2, 2\).*row_weights"):
        function(np.ones((2, 2)))


def test_a_row_that_carries_half_of_the_weight_is_warned_of():
    weights = np.array([0.0, *np.ones(30), 100.0])
    message = (
        r"class 1: half of the total weight sits on 1 of 31 observed rows \(Kish's "
        r"effective sample size 1\.7, largest missing probability 0\.99\).*by design"
    )
    with pytest.warns(WeightConcentrationWarning, match=message) as record:
        warn_if_concentrated(weights, "class 1")
    assert record[0].filename == __file__


def test_the_rows_that_carry_half_are_counted():
    weights = np.append(np.ones(200), [300.0, 100.0, 50.0, 50.0])
    with pytest.warns(WeightConcentrationWarning, match="on 2 of 204 observed rows"):
        warn_if_concentrated(weights, "class 1")


@pytest.mark.parametrize(
    "weights",
    [
        np.ones(3),
        np.ones(1000),
        [1.0, 1e9],
        [0.0, 0.0],
        [],
        np.append(np.ones(95), np.full(5, 18.0)),
    ],
    ids=["three", "constant", "two", "none", "empty", "just less than half"],
)
def test_weights_that_are_spread_or_too_few_are_not_warned_of(weights):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_concentrated(weights, "class 1")


@given(
    weights=hnp.arrays(float, st.integers(3, 60), elements=st.floats(1, 1e6)),
    exponent=st.integers(0, 290),
)
def test_the_warning_is_given_exactly_when_few_rows_carry_half(weights, exponent):
    few = max(1, len(weights) // 20)
    heaviest = np.sort(weights)[-few:].sum()
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        warn_if_concentrated(weights * 2.0**exponent, "class 1")
    if abs(heaviest / weights.sum() - 0.5) > 1e-9:
        assert bool(record) == (heaviest > weights.sum() / 2)
