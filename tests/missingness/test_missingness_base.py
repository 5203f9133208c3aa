"""What every missingness model keeps to, whatever its formula."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from optional_packages import optional
from sklearn.base import BaseEstimator, clone

from missratio.missingness import (
    FunctionMissingness,
    LogisticMissingness,
    Missingness,
    StepMissingness,
    arrays,
)

pd = optional("pandas")
pl = optional("polars")


def half_beyond_zero(X):
    return 0.5 * (X[:, 0] > 0)


ROWWISE = [
    StepMissingness([1.0, 1.0], 0.0, 0.5),
    LogisticMissingness(-1.0, [1.0, 2.0], rowwise=True),
    FunctionMissingness(half_beyond_zero),
]
PER_FEATURE = [
    StepMissingness([1.0, -1.0], 0.0, 0.5, rowwise=False),
    LogisticMissingness([-1.0, 0.5], 1.0),
    FunctionMissingness(lambda X: 0.5 * (X > 0), rowwise=False),
]
EVERY = ROWWISE + PER_FEATURE
PICKLABLE = EVERY[:-1]
NAN_TABLE = np.array([[1.0, 2.0], [np.nan, 2.0], [np.nan, np.nan], [-1.0, -2.0]])


class Holder(BaseEstimator):
    def __init__(self, missingness=None):
        self.missingness = missingness


class Constant(Missingness):
    rowwise = True
    maximum = None

    def __init__(self, value):
        self.value = value

    def _evaluate(self, X):
        return np.full(len(X), self.value)


@pytest.mark.parametrize("model", ROWWISE, ids=repr)
def test_rowwise_probability_is_unknown_exactly_where_a_row_has_nan(model):
    probability = model.missing_probability(NAN_TABLE)
    assert probability.shape == (4,)
    assert np.isnan(probability).tolist() == [False, True, True, False]


@pytest.mark.parametrize("model", PER_FEATURE, ids=repr)
def test_per_feature_probability_is_unknown_exactly_where_the_entry_is_nan(model):
    probability = model.missing_probability(NAN_TABLE)
    assert np.array_equal(np.isnan(probability), np.isnan(NAN_TABLE))


@pytest.mark.parametrize("model", EVERY, ids=repr)
def test_tables_of_every_kind_give_the_same_probability(model):
    expected = model.missing_probability(NAN_TABLE)
    nullable = pd.DataFrame(NAN_TABLE, columns=["a", "b"]).convert_dtypes()
    for table in (
        NAN_TABLE.tolist(),
        NAN_TABLE.astype(np.float32),
        NAN_TABLE.astype(object),
        np.ma.masked_invalid(NAN_TABLE),
        pd.DataFrame(NAN_TABLE),
        nullable,
        pl.DataFrame(NAN_TABLE, schema=["a", "b"]),
        pl.DataFrame({"a": [1, None, None, -1], "b": [2, 2, None, -2]}),
    ):
        np.testing.assert_array_equal(model.missing_probability(table), expected)


@pytest.mark.parametrize("model", EVERY, ids=repr)
def test_blocks_of_rows_change_nothing(model, monkeypatch):
    X = np.random.default_rng(0).normal(size=(50, 2))
    X[::7] = np.nan
    expected = model.missing_probability(X)
    monkeypatch.setattr(arrays, "BLOCK_ENTRIES", 5)
    np.testing.assert_array_equal(model.missing_probability(X), expected)


@pytest.mark.parametrize("model", EVERY, ids=repr)
def test_no_rows_have_no_probabilities(model):
    shape = (0,) if model.rowwise else (0, 2)
    assert model.missing_probability(np.empty((0, 2))).shape == shape


@pytest.mark.parametrize("model", EVERY, ids=repr)
def test_models_are_immutable(model):
    for field in dataclasses.fields(model):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(model, field.name, None)
        value = getattr(model, field.name)
        assert not isinstance(value, np.ndarray) or not value.flags.writeable


@pytest.mark.parametrize("model", PICKLABLE, ids=repr)
def test_a_pickled_model_is_the_same_model_and_still_immutable(model):
    again = pickle.loads(pickle.dumps(model))
    assert repr(again) == repr(model)
    np.testing.assert_array_equal(
        again.missing_probability(NAN_TABLE), model.missing_probability(NAN_TABLE)
    )
    test_models_are_immutable(again)


@pytest.mark.parametrize("model", EVERY, ids=repr)
def test_clone_copies_a_mapping_of_models(model):
    cloned = clone(Holder({1: model})).missingness[1]
    assert repr(cloned) == repr(model)
    test_models_are_immutable(cloned)
    test_models_are_immutable(copy.deepcopy(model))


def test_repr_is_the_call_that_makes_the_model():
    assert repr(LogisticMissingness([-np.inf, 1], 2)) == (
        "LogisticMissingness(intercept=[-inf, 1.0], coef=2.0, rowwise=False)"
    )
    assert repr(FunctionMissingness(half_beyond_zero, maximum=0.5)) == (
        "FunctionMissingness(function=half_beyond_zero, rowwise=True, maximum=0.5)"
    )
    assert "1.0, ...]" in repr(StepMissingness(np.ones(100), 0, 0.5))
    assert repr(Constant(0.1)) == "Constant()"


def test_a_model_is_a_few_lines():
    assert Constant(0.25).missing_probability([[1.0], [np.nan]])[0] == 0.25


@pytest.mark.parametrize("value", [1.0, 1.5, -0.1, np.inf])
def test_probability_outside_its_range_is_refused(value):
    X = [[np.nan, 0.0], [1.0, 1.0]]
    message = rf"must lie in \[0, 1\): Constant gives {value} at row 1\. .*below 1"
    with pytest.raises(ValueError, match=message):
        Constant(value).missing_probability(X)


def test_nan_where_the_value_is_observed_is_refused():
    with pytest.raises(ValueError, match=r"gives nan at row 0.*must be a number"):
        Constant(np.nan).missing_probability([[1.0]])


def test_the_row_of_an_error_is_counted_over_all_blocks(monkeypatch):
    monkeypatch.setattr(arrays, "BLOCK_ENTRIES", 4)
    X = np.zeros((20, 2))
    X[3] = np.nan
    X[17, 1] = 40.0
    with pytest.raises(ValueError, match=r"1.0 at row 17, column 1"):
        LogisticMissingness(0.0, 1.0).missing_probability(X)
    with pytest.raises(ValueError, match=r"1.0 at row 17, column 'b'"):
        LogisticMissingness(0.0, 1.0).missing_probability(
            pd.DataFrame(X, columns=["a", "b"])
        )
    with pytest.raises(ValueError, match=r"1.0 at row 17\."):
        LogisticMissingness(0.0, [1.0, 1.0], rowwise=True).missing_probability(X)


@pytest.mark.parametrize("model", [m for m in EVERY if m.n_features], ids=repr)
def test_the_wrong_width_is_refused(model):
    with pytest.raises(ValueError, match=r"is for 2 feature\(s\): X has 3"):
        model.missing_probability(np.zeros((1, 3)))


@pytest.mark.parametrize("model", EVERY, ids=repr)
def test_infinite_entries_are_refused(model):
    X = pd.DataFrame({"a": [0.0, 1.0], "b": [0.0, -np.inf]})
    with pytest.raises(ValueError, match=r"infinity at row 1, column 'b'"):
        model.missing_probability(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([1.0, 2.0], r"two-dimensional.*got shape \(2,\).*reshape\(-1, 1\)"),
        (np.empty((3, 0)), "one feature or more"),
        ([["a", "b"]], "must be numeric: got values of type <U1"),
        (np.array([["a", 1.0]], dtype=object), "must be numeric: got could not"),
        ([[1j]], "must be numeric: got values of type complex"),
        (pd.DataFrame({"x": [1.0], "city": ["Rome"]}), r"column\(s\) 'city' are not"),
        (pl.DataFrame({"x": [1.0], "city": ["Rome"]}), "Encode or drop them"),
        (pd.DataFrame([list("abcdefg")]), "0, 1, 2, 3, 4 and 2 more"),
    ],
)
def test_what_is_not_a_numeric_table_is_refused(X, message):
    with pytest.raises(ValueError, match=message):
        StepMissingness(1.0, 0.0, 0.5, rowwise=False).missing_probability(X)


def test_the_callers_table_is_left_as_it_was():
    X = NAN_TABLE.copy()
    for model in EVERY:
        model.missing_probability(X)
    np.testing.assert_array_equal(X, NAN_TABLE)
    assert X.flags.writeable


class Certain(Missingness):
    """φ that comes as close to 1 as it likes, and says so."""

    rowwise, maximum = False, 1.0

    def _evaluate(self, X):
        return np.full(X.shape, 0.5)


def test_a_supremum_of_one_is_no_bound():
    model = Certain()
    assert model.weight_bound(1) is None
    assert model.missing_probability([[1.0]]) == 0.5


def test_columns_that_lose_nothing_leave_the_bound_alone():
    one_of_eight = np.eye(8)[0]
    function = FunctionMissingness(
        lambda X: 0.8 * one_of_eight * (X > 0),
        rowwise=False,
        maximum=0.8 * one_of_eight,
    )
    step = StepMissingness(1.0, 0.0, 0.8 * one_of_eight, rowwise=False)
    with np.errstate(divide="ignore"):
        logistic = LogisticMissingness(np.log(4 * one_of_eight), 0.0)
    for model in (function, step, logistic):
        assert model.maximum == pytest.approx(0.8)
        assert model.weight_bound(8) == pytest.approx(5.0)
        assert model.weight_bound(8, odds_factor=2.0) == pytest.approx(9.0)
        np.testing.assert_allclose(model.column_maxima(8), 0.8 * one_of_eight)
    with pytest.raises(ValueError, match=r"declared maximum 0.0.*row 0, column 1"):
        FunctionMissingness(
            lambda X: 0.5 + 0.0 * X, rowwise=False, maximum=[0.8, 0.0]
        ).missing_probability([[0.0, 0.0]])


def test_a_maximum_for_each_column_needs_columns():
    with pytest.raises(ValueError, match="one maximum"):
        FunctionMissingness(abs, maximum=[0.5, 0.5])
    two = FunctionMissingness(abs, rowwise=False, maximum=[0.5, 0.5])
    with pytest.raises(ValueError, match=r"is for 2 feature\(s\)"):
        two.missing_probability([[0.1]])
    assert pickle.loads(pickle.dumps(two)).weight_bound(2) == 4.0
