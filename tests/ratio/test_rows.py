"""Bad tables: each has its own clear error, and no number comes out."""

import numpy as np
import pytest
from optional_packages import optional

from missratio import (
    KLIEP,
    FDivergenceRatio,
    FunctionMissingness,
    LogisticMissingness,
    NaiveBayesRatio,
    StepMissingness,
    corrupt,
)
from missratio._base.reading import check_no_infinity

pd = optional("pandas")
pl = optional("polars")

ROWS = StepMissingness([1.0, 1.0], 0.0, 0.6)
ENTRIES = LogisticMissingness([-0.5, 0.0], [1.0, -1.0])
KINDS = [KLIEP, FDivergenceRatio, NaiveBayesRatio]


@pytest.fixture
def table(two_normals):
    return two_normals()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("label", [0, 1])
def test_nan_in_a_class_without_a_model_names_the_class_and_the_column(
    kind, label, table
):
    X, y = table
    X[np.flatnonzero(y == label)[3], 1] = np.nan
    other = {1 - label: ENTRIES}
    message = rf'Class {label} has NaN in column\(s\) 1 .*missingness="ignore"'
    for missingness in (None, other):
        with pytest.raises(ValueError, match=message):
            kind(missingness=missingness).fit(X, y)


def test_nan_in_many_columns_is_cut_short(two_normals):
    X, y = two_normals(d=15)
    X[y == 1] = np.nan
    with pytest.raises(ValueError, match="0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 5 more"):
        KLIEP().fit(X, y)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missingness", [None, "ignore", {1: ENTRIES}], ids=str)
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_an_infinity_is_named_whatever_the_missingness(kind, missingness, value, table):
    X, y = table
    X[7, 1] = value
    with pytest.raises(ValueError, match=r"infinity at row 7, column 1\. Replace"):
        kind(missingness=missingness).fit(X, y)


@pytest.mark.parametrize("label", [0, 1])
def test_an_infinity_is_named_in_a_wide_and_long_table(label):
    X, y = np.ones((40_000, 40)), np.repeat([0, 1], 20_000)
    row = 20_000 * label + 15_000
    X[[row, row + 1], 7] = np.inf, -np.inf
    for look in (check_no_infinity, lambda table: KLIEP().fit(table, y)):
        with pytest.raises(ValueError, match=f"infinity at row {row}, column 7"):
            look(X)
    X[[row, row + 1], 7] = np.nan, 1e308
    assert not check_no_infinity(X)


def test_values_whose_sum_overflows_are_not_infinite():
    assert check_no_infinity(np.full((4, 2), 1e308))
    assert not check_no_infinity(np.array([[1e308, 1e308, np.nan]]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [1.0, 1.5, -0.1, np.nan])
@pytest.mark.parametrize("rowwise", [True, False])
def test_a_probability_outside_its_range_is_refused(kind, value, rowwise, table):
    X, y = table

    def constant(rows):
        return np.full(len(rows) if rowwise else rows.shape, value)

    phi = FunctionMissingness(constant, rowwise=rowwise)
    with pytest.raises(ValueError, match=r"Class 1: .*must lie in \[0, 1\)"):
        kind(missingness={1: phi}).fit(X, y)


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_row_model_refuses_a_row_missing_in_part(kind, table):
    X, y = table
    X[np.flatnonzero(y == 1)[4], 0] = np.nan
    with pytest.raises(ValueError, match=r"Class 1: .*row 4"):
        kind(missingness={1: ROWS}).fit(X, y)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_for_other_columns_is_refused(kind, two_normals):
    X, y = two_normals(d=3)
    with pytest.raises(ValueError, match=r"Class 1: .*is for 2 feature\(s\): X has 3"):
        kind(missingness={1: ROWS}).fit(X, y)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(400, dtype=int), "one class only"),
        (np.repeat("yes", 400), "one class only"),
        (np.arange(400) % 3, "Only binary classification is supported.*3 classes"),
        (np.linspace(0, 1, 400), "Unknown label type"),
        (np.full(400, np.nan), "y has none for row 0"),
    ],
    ids=["one number", "one word", "three", "continuous", "nan"],
)
def test_labels_must_be_two_classes(kind, labels, message, table):
    with pytest.raises(ValueError, match=message):
        kind().fit(table[0], labels)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missingness", ["ignore", {1: ROWS}], ids=str)
def test_a_class_with_no_observed_row_is_refused(kind, missingness, table):
    X, y = table
    X[y == 1] = np.nan
    with pytest.raises(ValueError, match="Class 1 has no observed row among its 200"):
        kind(missingness=missingness).fit(X, y)


def test_a_feature_that_is_never_observed_is_refused(table):
    X, y = table
    X[y == 1, 1] = np.nan
    with pytest.raises(ValueError, match=r"feature\(s\) \['x1'\] are never observ"):
        KLIEP(missingness={1: ENTRIES}).fit(X, y)


def test_a_denominator_without_a_complete_row_points_to_naive_bayes(table):
    X, y = table
    zeros = np.flatnonzero(y == 0)
    X[zeros[::2], 0] = X[zeros[1::2], 1] = np.nan
    with pytest.raises(ValueError, match=r"Class 0 has 0 row.* use NaiveBayesRatio"):
        KLIEP(missingness={0: ENTRIES}).fit(X, y)
    assert NaiveBayesRatio(missingness={0: ENTRIES}).fit(X, y).converged_


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
@pytest.mark.parametrize("kind", KINDS)
def test_constant_features_are_named_by_their_column(kind, library, two_normals):
    X, y = two_normals(d=3)
    X[y == 0, 1] = 2.5
    frame = library.DataFrame(dict(zip(["age", "dose", "mass"], X.T, strict=True)))
    with pytest.raises(ValueError, match=r"\['dose'\] are constant .* class 0.*l2 > 0"):
        kind().fit(frame, y)


def test_a_feature_constant_over_observed_rows_is_constant(two_normals):
    X, y = two_normals(3000)
    X[y == 0, 1] = 0.0
    X[np.flatnonzero(y == 0)[1700], 1] = 1.0
    KLIEP().fit(X, y)
    X[np.flatnonzero(y == 0)[1700]] = np.nan
    with pytest.raises(ValueError, match=r"\['x1'\] are constant"):
        KLIEP(missingness="ignore").fit(X, y)


def test_fewer_rows_than_features_need_a_penalty(two_normals):
    X, y = two_normals(5, 6, n1=50)
    with pytest.raises(ValueError, match=r"Class 0 has 5 observed rows.*Set l2 > 0"):
        KLIEP().fit(X, y)
    assert KLIEP(l2=0.1).fit(X, y).converged_


def test_rows_without_weight_are_no_rows(two_normals):
    X, y = two_normals(50, 6)
    weight = np.where((y == 1) | (np.cumsum(y == 0) <= 4), 1.0, 0.0)
    with pytest.raises(ValueError, match="Class 0 has 4 observed rows"):
        KLIEP().fit(X, y, weight)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("missingness", "error", "message"),
    [
        ({2: ROWS}, ValueError, r"class 2, but the classes are \[0, 1\]"),
        ({"1": ROWS}, ValueError, r"class '1', but the classes are \[0, 1\]"),
        ({1: 0.5}, TypeError, "must be a Missingness model"),
        ({1: "ignore"}, TypeError, "must be a Missingness model"),
        (ROWS, TypeError, "a mapping from class to model"),
        ("ignored", TypeError, 'None, "ignore" or a mapping'),
        (0.5, TypeError, 'None, "ignore" or a mapping'),
    ],
    ids=str,
)
def test_missingness_must_map_classes_to_models(
    kind, missingness, error, message, table
):
    with pytest.raises(error, match=message):
        kind(missingness=missingness).fit(*table)


def test_a_class_may_have_the_model_none(table):
    X, y = table
    np.testing.assert_array_equal(
        KLIEP(missingness={1: None}).fit(X, y).coef_, KLIEP().fit(X, y).coef_
    )


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"normalize": "mean"}, ValueError, r"\['hajek', 'horvitz-thompson', 'reg"),
        ({"solver": "sgd"}, ValueError, r"\['auto', 'newton', 'lbfgs'\]"),
        ({"l2": -0.1}, ValueError, "l2 must be finite and not negative"),
        ({"l2": np.nan}, ValueError, "l2 must be finite and not negative"),
        ({"l2": None}, ValueError, "l2 must be finite and not negative"),
        ({"l2": "strong"}, ValueError, "must be a number"),
        ({"l2": [0.1, 0.1, 0.1]}, ValueError, "one for each of the 2 basis features"),
        ({"l2": [[0.1, 0.1]]}, ValueError, "one for each of the 2 basis features"),
        ({"basis": "linaer"}, TypeError, "Did you mean 'linear'"),
        ({"basis": 3}, TypeError, "has no fit and transform"),
    ],
    ids=str,
)
@pytest.mark.parametrize("inside", [False, True])
def test_bad_parameters_list_the_choices(parameters, error, message, inside, table):
    estimator = KLIEP(**parameters)
    if inside:
        message = message.replace("the 2 basis", "the 1 basis")
        estimator = NaiveBayesRatio(estimator)
    with pytest.raises(error, match=message):
        estimator.fit(*table)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(3), r"expected \(400,\)"),
        (np.ones((400, 2)), r"expected \(400,\)"),
        (np.full(400, np.nan), "finite and not negative"),
        (np.full(400, -1.0), "finite and not negative"),
        (np.zeros(400), "zero"),
    ],
    ids=["short", "wide", "nan", "negative", "zero"],
)
def test_bad_sample_weights_are_refused(kind, weight, message, table):
    with pytest.raises(ValueError, match=message):
        kind().fit(*table, sample_weight=weight)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_another_width_are_refused(kind, table):
    ratio = kind().fit(*table)
    for method in ("predict", "predict_ratio", "predict_log_ratio"):
        with pytest.raises(ValueError, match=r"3 features, but .* is expecting 2"):
            getattr(ratio, method)(np.zeros((4, 3)))


@pytest.mark.parametrize("kind", KINDS)
def test_predicting_refuses_infinities_and_nan_without_a_model(kind, table):
    ratio = kind().fit(*table)
    with pytest.raises(ValueError, match="infinity"):
        ratio.predict_ratio([[np.inf, 0.0]])
    with pytest.raises(ValueError, match="NaN"):
        ratio.predict_ratio([[np.nan, 0.0]])


@pytest.mark.parametrize("kind", KINDS)
def test_with_a_model_a_row_with_nan_has_no_ratio_and_is_class_0(kind, table):
    X, y = table
    X[y == 1] = corrupt(X[y == 1], ENTRIES, 0)
    ratio = kind(missingness={1: ENTRIES}).fit(X, y)
    rows = [[np.nan, 5.0], [5.0, 5.0]]
    assert np.isnan(ratio.predict_ratio(rows)).tolist() == [True, False]
    assert ratio.predict(rows).tolist() == [0, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_scoring_refuses_labels_that_were_not_learned(kind, table):
    X, y = table
    ratio = kind().fit(X, y)
    with pytest.raises(ValueError, match=r"labels other than \[0, 1\]"):
        ratio.score(X, y + 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("label", [0, 1])
def test_scoring_refuses_rows_of_one_class(kind, label, table):
    X, y = table
    ratio = kind().fit(X, y)
    with pytest.raises(ValueError, match=r"one class only|rows of (2|both) classes"):
        ratio.score(X[y == label], y[y == label])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 123, 999])
@pytest.mark.parametrize("ratio", [KLIEP(), KLIEP(solver="lbfgs"), KLIEP(l1=0.01)])
def test_large_tables_show_bad_values_in_their_scores(monkeypatch, ratio, row, value):
    monkeypatch.setattr("missratio.rows.source.HELD_ELEMENTS", 100)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 3)), np.repeat([0, 1], 1000)
    X[row, 1] = value
    with pytest.raises(ValueError, match=r"NaN in column|infinity at row"):
        ratio.fit(X, y)
