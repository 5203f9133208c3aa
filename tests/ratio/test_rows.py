"""Bad tables: each has its own clear error, and no number comes out."""

from itertools import product

import numpy as np
import pytest
from optional_packages import optional

import missratio as mr

pd = optional("pandas")
pl = optional("polars")

ROWS = mr.StepMissingness([1.0, 1.0], 0.0, 0.6)
ENTRIES = mr.LogisticMissingness([-0.5, 0.0], [1.0, -1.0])
every_kind = pytest.mark.parametrize(
    "kind", [mr.KLIEP, mr.FDivergenceRatio, mr.NaiveBayesRatio]
)


@pytest.fixture
def table(two_normals):
    return two_normals()


def changed(X, y, rows, columns, value):
    """The table with another value in some columns of some rows of a class."""
    label, places = rows
    X[np.ix_(np.flatnonzero(y == label)[places], columns)] = value
    return X, y


def constant(value, rowwise):
    """A model that gives this probability to all rows, or to all entries."""

    def probability(rows):
        return np.full(len(rows) if rowwise else rows.shape, value)

    return {1: mr.FunctionMissingness(probability, rowwise=rowwise)}


ALL = slice(None)
NO_MODEL = r'Class {} has NaN in column\(s\) 1 .*missingness="ignore"'
OUTSIDE = r"Class 1: .*must lie in \[0, 1\)"
NEVER = "Class 1 has no observed row among its 200"
INFINITE = r"infinity at row \d+, column 1\. Replace"
CHANGES = [
    *[
        ((label, [3]), [1], np.nan, models, NO_MODEL.format(label))
        for label in (0, 1)
        for models in (None, {1 - label: ENTRIES})
    ],
    *[
        ((label, [7]), [1], value, models, INFINITE)
        for label, value in product((0, 1), (np.inf, -np.inf))
        for models in (None, "ignore", {1: ENTRIES})
    ],
    ((1, [4]), [0], np.nan, {1: ROWS}, r"Class 1: .*row 4"),
    ((1, ALL), [0, 1], np.nan, "ignore", NEVER),
    ((1, ALL), [0, 1], np.nan, {1: ROWS}, NEVER),
    *[
        ((1, []), [0], 0.0, constant(value, rowwise), OUTSIDE)
        for value in (1.0, 1.5, -0.1, np.nan)
        for rowwise in (True, False)
    ],
]


@every_kind
@pytest.mark.parametrize(("rows", "columns", "value", "models", "message"), CHANGES)
def test_a_bad_value_is_named(kind, rows, columns, value, models, message, table):
    with pytest.raises(ValueError, match=message):
        kind(missingness=models).fit(*changed(*table, rows, columns, value))


@pytest.mark.parametrize("label", [0, 1])
def test_an_infinity_is_named_in_a_wide_and_long_table(label):
    X, y = np.ones((40_000, 40)), np.repeat([0, 1], 20_000)
    row = 20_000 * label + 15_000
    X[[row, row + 1], 7] = np.inf, -np.inf
    with pytest.raises(ValueError, match=f"infinity at row {row}, column 7"):
        mr.KLIEP().fit(X, y)
    X[[row, row + 1], 7] = np.nan, 1e308
    with pytest.raises(ValueError, match=f"Class {label} has NaN in"):
        mr.KLIEP().fit(X, y)


LABELS = [
    (np.zeros(400, dtype=int), "one class only"),
    (np.repeat("yes", 400), "one class only"),
    (np.arange(400) % 3, "Only binary classification is supported.*3 classes"),
    (np.linspace(0, 1, 400), "Unknown label type"),
    (np.full(400, np.nan), "y has none for row 0"),
]
WEIGHTS = [
    (np.ones(3), r"expected \(400,\)"),
    (np.ones((400, 2)), "must be 1D"),
    (np.full(400, np.nan), "sample_weight contains NaN"),
    (np.full(400, -1.0), "Negative values.*sample_weight"),
    (np.zeros(400), "zero"),
]
MODELS = [
    ({2: ROWS}, ValueError, r"class 2, but the classes are \[0, 1\]"),
    ({"1": ROWS}, ValueError, r"class '1', but the classes are \[0, 1\]"),
    ({1: 0.5}, TypeError, "must be a Missingness model"),
    ({1: "ignore"}, TypeError, "must be a Missingness model"),
    (ROWS, ValueError, "no class has any. Say which class"),
    ("ignored", TypeError, 'None, "ignore" or a mapping'),
    (0.5, TypeError, 'None, "ignore" or a mapping'),
    (
        {1: mr.StepMissingness([1.0, 1.0, 1.0], 0.0, 0.6)},
        ValueError,
        r"Class 1: .*is for 3 feature\(s\): X has 2",
    ),
]


@every_kind
def test_bad_labels_weights_and_models_are_refused(kind, table):
    X, y = table
    for labels, message in LABELS:
        with pytest.raises(ValueError, match=message):
            kind().fit(X, labels)
    for weight, message in WEIGHTS:
        with pytest.raises(ValueError, match=message):
            kind().fit(X, y, sample_weight=weight)
    for missingness, error, message in MODELS:
        with pytest.raises(error, match=message):
            kind(missingness=missingness).fit(X, y)


PARAMETERS = [
    ({"normalize": "mean"}, ValueError, r"\['hajek', 'horvitz-thompson', 'reg"),
    ({"solver": "sgd"}, ValueError, r"\['auto', 'newton', 'lbfgs'\]"),
    ({"max_iter": 0}, ValueError, "max_iter at least 1"),
    ({"l2": -0.1}, ValueError, "l2 must be finite and not negative"),
    ({"l2": np.nan}, ValueError, "l2 must be finite and not negative"),
    ({"l2": None}, ValueError, "l2 must be finite and not negative"),
    ({"l2": "strong"}, ValueError, "must be a number"),
    ({"l2": [0.1, 0.1, 0.1]}, ValueError, r"one for each of the \d basis features"),
    ({"l2": [[0.1, 0.1]]}, ValueError, r"one for each of the \d basis features"),
    ({"l1": -1.0}, ValueError, "l1 must be finite and not negative"),
    ({"l1": [1.0] * 4}, ValueError, r"l1 must be a number, or one for each of the \d"),
    ({"l1": "strong"}, ValueError, "l1 must be a number"),
    ({"penalty_weights": "se"}, ValueError, r"one of \['uniform', 'standard-error', "),
    (
        {"l2": [1.0, 1.0], "penalty_weights": "covariance"},
        ValueError,
        "l2 must be one number",
    ),
    ({"basis": "linaer"}, TypeError, "Did you mean 'linear'"),
    ({"basis": 3}, TypeError, "with fit and transform; got 3"),
]


@pytest.mark.parametrize(("parameters", "error", "message"), PARAMETERS, ids=str)
def test_bad_parameters_list_the_choices(parameters, error, message, table):
    for estimator in (
        mr.KLIEP(**parameters),
        mr.NaiveBayesRatio(mr.KLIEP(**parameters)),
    ):
        with pytest.raises(error, match=message):
            estimator.fit(*table)


# What the rows that are left can't determine.


def test_features_and_rows_that_are_never_observed_are_refused(table):
    X, y = table
    never = np.where((y == 1)[:, None] & [False, True], np.nan, X)
    with pytest.raises(ValueError, match=r"feature\(s\) \['x1'\] are never observ"):
        mr.KLIEP(missingness={1: ENTRIES}).fit(never, y)
    # A denominator without a complete row: naive Bayes needs none.
    zeros = np.flatnonzero(y == 0)
    X[zeros[::2], 0] = X[zeros[1::2], 1] = np.nan
    needs = r"Class 0 has 0 row.* needs more than 2.* use NaiveBayesRatio"
    with pytest.raises(ValueError, match=needs):
        mr.KLIEP(missingness={0: ENTRIES}, direction="forward", pairs=False).fit(X, y)
    assert mr.NaiveBayesRatio(missingness={0: ENTRIES}).fit(X, y).converged_


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
@every_kind
def test_constant_features_are_named_by_their_column(kind, library, two_normals):
    X, y = two_normals(d=3)
    X[y == 0, 1] = 2.5
    frame = library.DataFrame(dict(zip(["age", "dose", "mass"], X.T, strict=True)))
    with pytest.raises(ValueError, match=r"\['dose'\] are constant .* class 0.*l2 > 0"):
        kind().fit(frame, y)


def test_fewer_rows_than_features_need_a_penalty(two_normals):
    X, y = two_normals(5, 6, n1=50)
    with pytest.raises(ValueError, match=r"Class 0 has 5 observed rows.*Set l2 > 0"):
        mr.KLIEP().fit(X, y)
    assert mr.KLIEP(l2=0.1).fit(X, y).converged_
    # Rows without weight are no rows.
    X, y = two_normals(50, 6)
    weight = np.where((y == 1) | (np.cumsum(y == 0) <= 4), 1.0, 0.0)
    with pytest.raises(ValueError, match="Class 0 has 4 observed rows"):
        mr.KLIEP().fit(X, y, weight)


# Predicting and scoring.


@every_kind
def test_what_can_not_be_scored_is_refused(kind, table):
    X, y = table
    ratio = kind().fit(X, y)
    for method in (ratio.predict, ratio.predict_ratio, ratio.predict_log_ratio):
        with pytest.raises(ValueError, match=r"3 features, but .* is expecting 2"):
            method(np.zeros((4, 3)))
    for value, message in ((np.inf, "infinity"), (np.nan, "NaN")):
        with pytest.raises(ValueError, match=message):
            ratio.predict_ratio([[value, 0.0]])
    with pytest.raises(ValueError, match=r"must have the labels \[0, 1\]"):
        ratio.score(X, y + 1)
    for label in (0, 1):
        with pytest.raises(ValueError, match=r"one class only|both and no other"):
            ratio.score(X[y == label], y[y == label])


@every_kind
def test_with_a_model_a_row_with_nan_has_no_ratio_and_is_class_0(kind, table):
    X, y = table
    X[y == 1] = mr.corrupt(X[y == 1], ENTRIES, 0)
    ratio = kind(missingness={1: ENTRIES}).fit(X, y)
    rows = [[np.nan, 5.0], [5.0, 5.0]]
    assert np.isnan(ratio.predict_ratio(rows)).tolist() == [True, False]
    assert ratio.predict(rows).tolist() == [0, 1]


# What is no number is named by the error that it gets; a mask means missing.


RNG = np.random.default_rng(0)
NUMBERS = {"age": RNG.normal(size=40), "bp": RNG.normal(size=40)}
Y = np.arange(40) % 2
TEXTS = {"ward": ["east", "west"] * 20, "name": [f"P{i}" for i in range(40)]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("labels", [Y, np.array(["a", "b"])[Y]])
@pytest.mark.parametrize("estimator", [mr.KLIEP(), mr.NaiveBayesRatio()])
def test_a_fit_names_them(make, labels, estimator):
    with pytest.raises(ValueError, match=r"column\(s\) 'ward', 'name' are not\. Leave"):
        estimator.fit(make({**NUMBERS, **TEXTS}), labels)


def test_a_prediction_names_them_and_numbers_that_are_objects_are_taken():
    frame = pd.DataFrame(NUMBERS)
    ratio = mr.KLIEP().fit(frame, Y)
    with pytest.raises(ValueError, match="'bp' are not"):
        ratio.predict_ratio(frame.assign(bp="high"))
    coef = mr.KLIEP().fit(frame.astype(object), Y).coef_
    np.testing.assert_array_equal(coef, ratio.coef_)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("others", [NUMBERS, {}])
@pytest.mark.parametrize("kind", ["M8[us]", "m8[us]"])
def test_dates_are_never_counted(make, others, kind):
    dates = np.arange(40).astype(kind)
    with pytest.raises(ValueError, match=r"'day' are not\..*of dates such as the days"):
        mr.KLIEP().fit(make({**others, "day": dates}), Y)
    with pytest.raises(ValueError, match=r"values of type .*the days since some date"):
        mr.KLIEP().fit(dates[:, None], Y)


MASKED = np.ma.masked_greater(np.column_stack(list(NUMBERS.values())), 1.0)
WITH_NAN = np.where(MASKED.mask, np.nan, MASKED.data)


@pytest.mark.parametrize(
    "of",
    [
        lambda X: mr.KLIEP(missingness="ignore").fit(X, Y).predict_log_ratio(X),
        lambda X: mr.NaiveBayesRatio(missingness="ignore").fit(X, Y).coef_,
        lambda X: mr.NeymanPearsonClassifier(
            mr.KLIEP(missingness="ignore"), 0.4, 0.4, deployment="as-observed",
            random_state=0).fit(X, Y).threshold_,
        lambda X: mr.PolynomialBasis(2).fit_transform(X),
        lambda X: mr.TiltedImputer("ignore", random_state=0).fit_transform(X, Y),
        lambda X: mr.ratio_test(X[::2], X[1::2], missingness="ignore",
                                n_resamples=9, random_state=0).statistic,
    ],
)  # fmt: skip
def test_what_is_masked_is_missing(of):
    np.testing.assert_array_equal(of(MASKED), of(WITH_NAN))
    with pytest.raises(ValueError, match="no missingness model"):
        mr.KLIEP().fit(MASKED, Y)
