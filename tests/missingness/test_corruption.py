import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optional_packages import optional

from missratio.missingness import (
    LogisticMissingness,
    StepMissingness,
    arrays,
    corrupt,
)

pd = optional("pandas")
pl = optional("polars")

WHOLE_ROWS = StepMissingness([1.0, 0.0], 0.0, 0.5)
ENTRIES = LogisticMissingness([0.0, -1.0], [1.0, -1.0])


def table(n: int = 200, seed: int = 0) -> arrays.FloatArray:
    return np.random.default_rng(seed).normal(size=(n, 2))


@pytest.mark.parametrize("model", [WHOLE_ROWS, ENTRIES], ids=["rows", "entries"])
def test_what_is_not_lost_is_unchanged_and_the_input_stays(model):
    X = table()
    before = X.copy()
    lossy = corrupt(X, model, random_state=0)
    kept = ~np.isnan(lossy)
    assert 0 < kept.sum() < X.size
    np.testing.assert_array_equal(lossy[kept], X[kept])
    np.testing.assert_array_equal(X, before)


def test_a_rowwise_model_loses_whole_rows_and_only_where_it_may():
    X = table()
    missing = np.isnan(corrupt(X, WHOLE_ROWS, random_state=0))
    np.testing.assert_array_equal(missing[:, 0], missing[:, 1])
    assert not missing[X[:, 0] <= 0].any()


@pytest.mark.parametrize("model", [WHOLE_ROWS, ENTRIES], ids=["rows", "entries"])
def test_values_are_lost_with_the_probability_of_the_model(model):
    X = table(20_000)
    phi = model.missing_probability(X)
    missing = np.isnan(corrupt(X, model, random_state=1))
    lost = missing[:, 0] if model.rowwise else missing
    standard_error = np.sqrt((phi * (1 - phi)).sum(axis=0))
    assert (np.abs((lost - phi).sum(axis=0)) < 4 * standard_error).all()


def test_entries_are_lost_independently_given_the_row():
    X = np.zeros((20_000, 2))
    missing = np.isnan(corrupt(X, LogisticMissingness(0.0, 1.0), random_state=2))
    correlation = np.corrcoef(missing.T)[0, 1]
    assert abs(correlation) < 4 / np.sqrt(len(X))


@pytest.mark.parametrize("model", [WHOLE_ROWS, ENTRIES], ids=["rows", "entries"])
def test_the_same_seed_gives_the_same_table(model, monkeypatch):
    X = table()
    expected = corrupt(X, model, random_state=3)
    legacy = corrupt(X, model, np.random.RandomState(3))
    np.testing.assert_array_equal(legacy, expected)
    monkeypatch.setattr(arrays, "BLOCK_ENTRIES", 7)
    np.testing.assert_array_equal(corrupt(X, model, random_state=3), expected)


def test_a_generator_is_taken_and_moves_on():
    X, generator = table(), np.random.default_rng(4)
    first = corrupt(X, ENTRIES, generator)
    again = corrupt(X, ENTRIES, np.random.default_rng(4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(corrupt(X, ENTRIES, generator), first, equal_nan=True)


def test_a_probability_of_zero_loses_nothing():
    X = table()
    np.testing.assert_array_equal(corrupt(X, LogisticMissingness(-np.inf, 1.0)), X)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(0, 20),
    names=st.lists(
        st.text(min_size=1, max_size=3), min_size=2, max_size=2, unique=True
    ),
    rowwise=st.booleans(),
)
def test_dataframes_come_back_as_what_they_were(seed, n, names, rowwise):
    model = WHOLE_ROWS if rowwise else ENTRIES
    X = table(n, seed)
    expected = corrupt(X, model, random_state=seed)
    index = np.random.default_rng(seed).integers(0, 5, size=n)
    as_pandas = corrupt(pd.DataFrame(X, index, names), model, random_state=seed)
    pd.testing.assert_frame_equal(as_pandas, pd.DataFrame(expected, index, names))
    as_polars = corrupt(pl.DataFrame(X, schema=names), model, random_state=seed)
    assert isinstance(as_polars, pl.DataFrame)
    assert as_polars.columns == names
    np.testing.assert_array_equal(as_polars.to_numpy(), expected)


def test_integers_and_booleans_become_floats():
    X = pd.DataFrame({"a": [1, 2, 3], "b": [True, False, True]})
    assert set(corrupt(X, ENTRIES, 0).dtypes) == {np.dtype(float)}
    assert corrupt(X.to_numpy(dtype=int), ENTRIES, 0).dtype == float
    assert (
        corrupt(pl.DataFrame(X.to_dict("list")), ENTRIES, 0).dtypes == [pl.Float64] * 2
    )


def test_a_floating_array_keeps_its_precision():
    assert corrupt(table().astype(np.float32), ENTRIES, 0).dtype == np.float32


def test_what_is_missing_stays_missing():
    X = table()
    X[::2, 1] = np.nan
    assert np.isnan(corrupt(X, ENTRIES, random_state=0)[::2, 1]).all()
    X[::2] = np.nan
    assert np.isnan(corrupt(X, WHOLE_ROWS, random_state=0)[::2]).all()


def test_a_partially_missing_row_is_refused_by_a_rowwise_model():
    X = table()
    X[7, 1] = np.nan
    with pytest.raises(ValueError, match=r"row 7 has 1 of 2 .*\(rowwise=False\)"):
        corrupt(X, WHOLE_ROWS)


def test_columns_that_are_not_numbers_are_named():
    X = pd.DataFrame(
        {"a": [1.0], "city": ["Rome"], "day": pd.to_datetime(["2024-01-01"])}
    )
    with pytest.raises(ValueError, match=r"column\(s\) 'city', 'day' are not.*drop"):
        corrupt(X, ENTRIES)


def test_a_mapping_is_not_a_model():
    with pytest.raises(TypeError, match=r"must be one class's model.*got dict"):
        corrupt(table(), {1: ENTRIES})
