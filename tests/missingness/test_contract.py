"""What every missingness model keeps to, and tables that lose values by one."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from optional_packages import optional
from scipy.special import expit
from sklearn.base import clone

import missratio as mr
from missratio._base import reading
from missratio.missingness import Missingness

pd = optional("pandas")
pl = optional("polars")


def half_beyond_zero(X):
    return 0.5 * (X[:, 0] > 0)


ROWWISE = [
    mr.StepMissingness([1.0, 1.0], 0.0, 0.5),
    mr.LogisticMissingness(-1.0, [1.0, 2.0], rowwise=True),
    mr.FunctionMissingness(half_beyond_zero),
]
PER_FEATURE = [
    mr.StepMissingness([1.0, -1.0], 0.0, 0.5, rowwise=False),
    mr.LogisticMissingness([-1.0, 0.5], 1.0),
    mr.FunctionMissingness(lambda X: 0.5 * (X > 0), rowwise=False),
]
EVERY = ROWWISE + PER_FEATURE
NAN_TABLE = np.array([[1.0, 2.0], [np.nan, 2.0], [np.nan, np.nan], [-1.0, -2.0]])


def named(X):
    return pd.DataFrame(X, columns=["a", "b"])


class Constant(Missingness):
    rowwise = True
    maximum = None

    def __init__(self, value):
        self.value = value

    def evaluate(self, X):
        return np.full(len(X), self.value)


@pytest.mark.parametrize("model", EVERY, ids=repr)
def test_probability_is_unknown_exactly_where_the_row_or_entry_is_nan(model):
    table = NAN_TABLE.copy()
    unknown = np.isnan(model.missing_probability(table))
    missing = np.isnan(NAN_TABLE)
    np.testing.assert_array_equal(
        unknown, missing.any(axis=1) if model.rowwise else missing
    )
    np.testing.assert_array_equal(table, NAN_TABLE)
    assert table.flags.writeable
    assert model.missing_probability(np.empty((0, 2))).shape == (0, *unknown.shape[1:])


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
def test_models_and_their_copies_are_the_same_and_immutable(model):
    copies = [
        model,
        clone(mr.KLIEP(missingness={1: model})).missingness[1],
        copy.deepcopy(model),
    ]
    if model is not EVERY[-1]:  # a lambda can't be pickled
        copies.append(pickle.loads(pickle.dumps(model)))
    expected = model.missing_probability(NAN_TABLE)
    for again in copies:
        assert repr(again) == repr(model)
        np.testing.assert_array_equal(again.missing_probability(NAN_TABLE), expected)
        for field in dataclasses.fields(again):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(again, field.name, None)
            value = getattr(again, field.name)
            assert not isinstance(value, np.ndarray) or not value.flags.writeable


def overwrites(X):
    X[:] = 0.0
    return 0.5 * np.ones(X.shape)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_function_cannot_write_to_the_users_table(order):
    """Nor to rows that were gathered from it: their features would change."""
    phi = mr.FunctionMissingness(overwrites, rowwise=False)
    X, y = np.array(table(), order=order), np.arange(200) % 2
    before = X.copy()
    for evaluate in (phi.missing_probability, phi.weights, phi.block_weights):
        with pytest.raises(ValueError, match="read-only"):
            evaluate(X)
    with pytest.raises(ValueError, match="read-only"):
        mr.KLIEP(missingness={1: phi}).fit(X, y)
    np.testing.assert_array_equal(X, before)


def test_complex_probabilities_are_refused():
    phi = mr.FunctionMissingness(lambda X: np.full(len(X), 0.3 + 0.4j))
    with pytest.raises(ValueError, match="gives complex numbers"):
        phi.missing_probability([[1.0]])


@pytest.mark.parametrize("value", [1.0, 1.5, -0.1, np.inf])
def test_probability_outside_its_range_is_refused(value):
    X = [[np.nan, 0.0], [1.0, 1.0]]
    message = rf"must lie in \[0, 1\): Constant gives {value} at row 1\. .*below 1"
    with pytest.raises(ValueError, match=message):
        Constant(value).missing_probability(X)
    with pytest.raises(ValueError, match=r"gives nan at row 0.*must be a number"):
        Constant(np.nan).missing_probability([[1.0]])


@pytest.mark.parametrize("model", EVERY, ids=repr)
def test_the_wrong_width_and_infinite_entries_are_refused(model):
    if model.n_features:
        with pytest.raises(ValueError, match=r"is for 2 feature\(s\): X has 3"):
            model.missing_probability(np.zeros((1, 3)))
    X = pd.DataFrame({"a": [0.0, 1.0], "b": [0.0, -np.inf]})
    with pytest.raises(ValueError, match=r"infinity at row 1, column 'b'"):
        model.missing_probability(X)


@pytest.mark.parametrize(
    ("as_table", "model", "place"),
    [
        (np.asarray, mr.LogisticMissingness(0.0, 1.0), "row 17, column 1"),
        (named, mr.LogisticMissingness(0.0, 1.0), "row 17, column 'b'"),
        (np.asarray, mr.LogisticMissingness(0.0, [1.0, 1.0], True), r"row 17\."),
    ],
)  # fmt: skip
def test_the_row_of_an_error_is_counted_over_all_blocks(
    as_table, model, place, monkeypatch
):
    monkeypatch.setattr(reading, "BLOCK_ENTRIES", 4)
    X = np.zeros((20, 2))
    X[3] = np.nan
    X[17, 1] = 40.0
    with pytest.raises(ValueError, match=rf"1.0 at {place}.*rounds to 1.*scale of X"):
        model.missing_probability(as_table(X))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([1.0, 2.0], r"two-dimensional.*got shape \(2,\).*reshape\(-1, 1\)"),
        (np.empty((3, 0)), "one feature or more"),
        ([["a", "b"]], "must be numeric: got values of type <U1"),
        (np.array([["a", 1.0]], dtype=object), "must be numeric: got could not"),
        ([[1j]], "must be numeric: got values of type complex"),
        (pd.DataFrame({"x": [1.0], "city": ["Rome"]}), r"texts, in column\(s\) 'city'"),
        (pl.DataFrame({"x": [1.0], "city": ["Rome"]}), "Make categories of them"),
        (pd.DataFrame([list("abcdefg")]), "0, 1, 2, 3, 4 and 2 more"),
    ],
)
def test_what_is_not_a_numeric_table_is_refused(X, message):
    with pytest.raises(ValueError, match=message):
        mr.StepMissingness(1.0, 0.0, 0.5, rowwise=False).missing_probability(X)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_phi_of_a_category_is_that_of_its_place_among_all_that_are_declared(library):
    size = pd.Categorical(["S", "L", None], categories=["S", "M", "L", "XL"])
    frame = pd.DataFrame({"size": size, "word": ["a", "b", "c"], "x": 1.0})
    model = mr.LogisticMissingness.from_columns({"size": (0.0, {"size": 1.0})})
    X = frame
    if library == "polars":
        X = pl.from_pandas(X).with_columns(
            pl.col("size").cast(pl.Enum(["S", "M", "L", "XL"]))
        )
    # Sorted: L, M, S, XL.
    expected = [expit(2.0), 0.5, np.nan]
    np.testing.assert_allclose(model.missing_probability(X)[:, 0], expected)
    np.testing.assert_allclose(model.missing_probability(X[1:])[:, 0], expected[1:])
    lossy = mr.corrupt(frame, model, random_state=0)
    assert lossy["size"].dtype == frame["size"].dtype
    assert lossy["word"].tolist() == ["a", "b", "c"]
    # As the imputer sees it, and the check.
    seen = []

    def watched(rows):
        seen.append(set(rows[~np.isnan(rows[:, 0]), 0]))
        return np.full(rows.shape, 0.1)

    many = frame.iloc[[0, 1, 2] * 40]
    phi = mr.FunctionMissingness(watched, rowwise=False)
    mr.TiltedImputer(phi, random_state=0).fit(many)
    mr.missingness_check(many, phi)
    assert set().union(*seen) == {0.0, 2.0}


def test_columns_that_lose_nothing_leave_the_bound_alone():
    one_of_eight = np.eye(8)[0]
    function = mr.FunctionMissingness(
        lambda X: 0.8 * one_of_eight * (X > 0),
        rowwise=False,
        maximum=0.8 * one_of_eight,
    )
    step = mr.StepMissingness(1.0, 0.0, 0.8 * one_of_eight, rowwise=False)
    with np.errstate(divide="ignore"):
        logistic = mr.LogisticMissingness(np.log(4 * one_of_eight), 0.0)
    for model in (function, step, logistic):
        assert model.maximum == pytest.approx(0.8)
        assert model.weight_bound(8) == pytest.approx(5.0)
        assert model.weight_bound(8, odds_factor=2.0) == pytest.approx(9.0)
        np.testing.assert_allclose(model.column_maxima(8), 0.8 * one_of_eight)
    with pytest.raises(ValueError, match=r"declared maximum 0.0.*row 0, column 1"):
        mr.FunctionMissingness(
            lambda X: 0.5 + 0.0 * X, rowwise=False, maximum=[0.8, 0.0]
        ).missing_probability([[0.0, 0.0]])


WHOLE_ROWS = mr.StepMissingness([1.0, 0.0], 0.0, 0.5)
ENTRIES = mr.LogisticMissingness([0.0, -1.0], [1.0, -1.0])


def table(n=200, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 2))


@pytest.mark.parametrize("model", [WHOLE_ROWS, ENTRIES], ids=["rows", "entries"])
def test_what_is_not_lost_is_unchanged_and_the_input_stays(model):
    X = table()
    before = X.copy()
    lossy = mr.corrupt(X, model, random_state=0)
    kept = ~np.isnan(lossy)
    assert 0 < kept.sum() < X.size
    np.testing.assert_array_equal(lossy[kept], X[kept])
    np.testing.assert_array_equal(X, before)
    if model.rowwise:
        np.testing.assert_array_equal(kept[:, 0], kept[:, 1])
        assert kept[X[:, 0] <= 0].all()
    assert mr.corrupt(X.astype(np.float32), model, 0).dtype == np.float32
    assert mr.corrupt(X.astype(int), model, 0).dtype == float
    X[::2] = np.nan
    assert np.isnan(mr.corrupt(X, model, random_state=0)[::2]).all()


@pytest.mark.parametrize("model", [WHOLE_ROWS, ENTRIES], ids=["rows", "entries"])
def test_dataframes_come_back_as_what_they_were(model):
    X, names = table(20), ["b", "a"]
    expected = mr.corrupt(X, model, random_state=0)
    index = np.arange(20)[::-1]
    as_pandas = mr.corrupt(pd.DataFrame(X, index, names), model, random_state=0)
    pd.testing.assert_frame_equal(as_pandas, pd.DataFrame(expected, index, names))
    as_polars = mr.corrupt(pl.DataFrame(X, schema=names), model, random_state=0)
    assert (type(as_polars), as_polars.columns) == (pl.DataFrame, names)
    np.testing.assert_array_equal(as_polars.to_numpy(), expected)


@pytest.mark.parametrize("model", [WHOLE_ROWS, ENTRIES], ids=["rows", "entries"])
def test_values_are_lost_with_the_probability_of_the_model(model):
    X = table(20_000)
    phi = model.missing_probability(X)
    missing = np.isnan(mr.corrupt(X, model, random_state=1))
    lost = missing[:, 0] if model.rowwise else missing
    standard_error = np.sqrt((phi * (1 - phi)).sum(axis=0))
    assert (np.abs((lost - phi).sum(axis=0)) < 4 * standard_error).all()


def test_entries_are_lost_independently_given_the_row():
    X = np.zeros((20_000, 2))
    missing = np.isnan(mr.corrupt(X, mr.LogisticMissingness(0.0, 1.0), random_state=2))
    correlation = np.corrcoef(missing.T)[0, 1]
    assert abs(correlation) < 4 / np.sqrt(len(X))


@pytest.mark.parametrize("model", [WHOLE_ROWS, ENTRIES], ids=["rows", "entries"])
def test_the_same_seed_gives_the_same_table(model, monkeypatch):
    X = table()
    expected = mr.corrupt(X, model, random_state=3)
    legacy = mr.corrupt(X, model, np.random.RandomState(3))
    np.testing.assert_array_equal(legacy, expected)
    generator = np.random.default_rng(3)
    first, second = (mr.corrupt(X, model, generator) for _ in range(2))
    np.testing.assert_array_equal(first, mr.corrupt(X, model, np.random.default_rng(3)))
    assert not np.array_equal(second, first, equal_nan=True)
    monkeypatch.setattr(reading, "BLOCK_ENTRIES", 7)
    np.testing.assert_array_equal(mr.corrupt(X, model, random_state=3), expected)


@pytest.mark.parametrize(
    ("X", "model", "message"),
    [
        ([[0.0, np.nan]], WHOLE_ROWS, r"row 0 has 1 of 2 .*\(rowwise=False"),
        (pd.DataFrame({"a": [1.0], "b": ["Rome"]}), ENTRIES, "'b'.*categories"),
        ([[0.0]], {1: ENTRIES}, r"must be one class's model.*got dict"),
    ],
)
def test_what_can_not_be_lost_is_refused(X, model, message):
    with pytest.raises((TypeError, ValueError), match=message):
        mr.corrupt(X, model)


# Models of one's own


class Shifting(mr.missingness.Missingness):
    """φ that isn't what its weights, band or log-odds say."""

    rowwise, maximum = True, 0.9

    def __init__(self, wrong):
        self.wrong = wrong

    def evaluate(self, X):
        return np.full(len(X), 0.5)

    def block_weights(self, block, first_row=0, source=None):
        return np.full(len(block), 3.0 if self.wrong == "weights" else 2.0)

    def probability_band(self, X, delta=0.05):
        low = 0.6 if self.wrong == "band" else 0.5
        return np.full(len(X), low), np.full(len(X), 0.7)

    def log_odds(self, X, xp=np):
        return np.full(len(X), 1.0) if self.wrong == "log-odds" else None


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (mr.FunctionMissingness(lambda X: 0.4 * (X[:, 0] > X.mean())), "row alone"),
        (mr.FunctionMissingness(
            lambda X: 0.4 * (X + np.nansum(X, 1)[:, None] > 0), False),
         r"row \d+, column \d is .* depend on its own entry only"),
        (mr.FunctionMissingness(lambda X: X[:, 0]), r"must lie in \[0, 1\)"),
        (mr.FunctionMissingness(lambda X: 0.5 + 0 * X[:, 0], maximum=0.4), "exceeded"),
        (mr.FunctionMissingness(lambda X: 0.5 + 0 * X), "rowwise=False"),
        (Shifting("weights"), r"must be 1/\(1 − φ\)"),
        (Shifting("band"), "must hold it"),
        (Shifting("log-odds"), "correct log_odds"),
    ],
)  # fmt: skip
def test_a_model_of_ones_own_is_told_what_is_wrong(model, message):
    with pytest.raises((AssertionError, ValueError), match=message):
        mr.missingness.check_missingness(model)


@pytest.mark.parametrize(
    "model",
    [
        mr.LogisticMissingness(-1.0, [1.0, -1.0, 0.0]),
        mr.LogisticMissingness(-1.0, [1.0, -1.0], rowwise=True),
        mr.StepMissingness([1.0, 0.0], 0.5, 0.8),
        mr.FunctionMissingness(lambda X: 0.5 * (X > 0.0), rowwise=False, maximum=0.5),
        Shifting(None),
    ],
)
def test_sound_models_pass(model):
    mr.missingness.check_missingness(model)
