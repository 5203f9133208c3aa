"""Steps and functions of the user's as models of φ."""

import pickle

import numpy as np
import pytest
from data import lossy
from hypothesis import given, settings
from hypothesis import strategies as st
from optional_packages import optional
from scipy.special import expit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import missratio as mr
from missratio.missingness import NamedMissingness


def test_probability_is_taken_strictly_beyond_the_threshold():
    model = mr.StepMissingness([0.0, 1.0], 2.0, 0.9)
    X = [[9.0, 1.0], [9.0, 2.0], [-9.0, 2.1]]
    np.testing.assert_array_equal(model.missing_probability(X), [0, 0, 0.9])


def test_every_feature_has_its_own_step():
    X = np.random.default_rng(1).normal(size=(100, 2))
    model = mr.StepMissingness([1, -1], [0.0, 0.5], [0.8, 0.3], rowwise=False)
    expected = np.column_stack([0.8 * (X[:, 0] > 0), 0.3 * (-X[:, 1] > 0.5)])
    np.testing.assert_array_equal(model.missing_probability(X), expected)


IN_RANGE = r"must lie in \[0, 1\)"


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        (mr.StepMissingness, ([1.0], 0.0, 1.0), rf"probability {IN_RANGE}: got 1.0"),
        (mr.StepMissingness, ([1.0], 0.0, -0.1), f"probability {IN_RANGE}"),
        (mr.StepMissingness, ([1.0], 0.0, np.nan), f"probability {IN_RANGE}"),
        (mr.StepMissingness, ([np.inf], 0.0, 0.5), "direction must be finite"),
        (mr.StepMissingness, ([1.0], np.nan, 0.5), "threshold must be finite"),
        (mr.StepMissingness, ([1.0, 1.0], [0.0, 1.0], 0.5), "one threshold: .*row"),
        (mr.StepMissingness, ([1.0, 1.0], [0.0] * 3, 0.5, False), "2, threshold has"),
        (mr.StepMissingness, ([[1.0]], 0.0, 0.5), r"must be a number or a vec.*\[\["),
        (mr.StepMissingness, ([], 0.0, 0.5), "direction must be a number or a vector"),
        (mr.StepMissingness, ("up", 0.0, 0.5), "must be a number or a vector.*'up'"),
        (mr.FunctionMissingness, (0.5,), r"function must be callable.*got 0.5"),
        (mr.FunctionMissingness, (abs, True, 1.0), f"maximum {IN_RANGE}.*None"),
        (mr.FunctionMissingness, (abs, True, -0.1), f"maximum {IN_RANGE}.*None"),
        (mr.FunctionMissingness, (abs, True, np.nan), f"maximum {IN_RANGE}.*None"),
        (mr.FunctionMissingness, (abs, True, [0.5, 0.5]), "one maximum"),
        (mr.LogisticMissingness, (np.inf, 1.0), "intercept must be finite, or -inf"),
        (mr.LogisticMissingness, (np.nan, 1.0), "intercept must be finite, or -inf"),
        (mr.LogisticMissingness, (0.0, [np.inf]), "coef must be finite"),
        (mr.LogisticMissingness, ([0.0, 1.0], [1.0] * 3), "has 2, coef has 3"),
        (mr.LogisticMissingness, ([0.0, 1.0], [1, 1], True), "one intercept: .*row"),
        (NamedMissingness, ({},), "No column is named"),
        (NamedMissingness, ({"bp": -1.0},), r"needs \(intercept, coef\)"),
        (NamedMissingness, ({"bp": (np.nan, 1.0)},), "intercept must be finite"),
        (NamedMissingness, ({"bp": (0.0, np.inf)},), "coef must be finite"),
    ],
)  # fmt: skip
def test_parameters_that_make_no_model_are_refused(kind, arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        kind(*arguments)


def test_a_rowwise_function_never_sees_nan():
    def function(X):
        assert not np.isnan(X).any()
        return 0.5 * (X[:, 0] > 0)

    X = np.array([[1.0, 1.0], [np.nan, 1.0], [-1.0, 1.0], [np.nan, np.nan]])
    probability = mr.FunctionMissingness(function).missing_probability(X)
    np.testing.assert_array_equal(probability, [0.5, np.nan, 0.0, np.nan])
    never = mr.FunctionMissingness(lambda X: 1 / 0)
    assert np.isnan(never.missing_probability([[np.nan]])).all()


def test_what_a_per_feature_function_returns_at_nan_is_not_used():
    model = mr.FunctionMissingness(lambda X: np.where(np.isnan(X), 7.0, 0.5), False)
    probability = model.missing_probability([[1.0, np.nan]])
    np.testing.assert_array_equal(probability, [[0.5, np.nan]])


@pytest.mark.parametrize(
    ("function", "rowwise", "message"),
    [
        (lambda X: 0 * X, True, r"rowwise.* \(3,\).*gives \(3, 2\).*rowwise=False"),
        (lambda X: 0 * X[:, 0], False, r"per-feature.*\(3, 2\).*\(3,\).*rowwise=True"),
        (lambda X: 0.5, True, r"gives \(\)\. Correct the shape"),
    ],
)
def test_the_wrong_shape_is_refused(function, rowwise, message):
    model = mr.FunctionMissingness(function, rowwise)
    with pytest.raises(ValueError, match=message):
        model.missing_probability(np.zeros((3, 2)))


def test_a_probability_above_the_declared_maximum_is_refused():
    model = mr.FunctionMissingness(lambda X: X[:, 0], maximum=0.5)
    # Rounding exceeds no maximum.
    assert model.missing_probability([[0.5 + 1e-13]])[0] == pytest.approx(0.5)
    message = "declared maximum 0.5 .* is exceeded: .* gives 0.6 at row 1.*larger"
    with pytest.raises(ValueError, match=message):
        model.missing_probability([[0.1], [0.6]])


def test_a_maximum_for_each_column_is_for_as_many_columns():
    two = mr.FunctionMissingness(abs, rowwise=False, maximum=[0.5, 0.5])
    with pytest.raises(ValueError, match=r"is for 2 feature\(s\)"):
        two.missing_probability([[0.1]])
    assert pickle.loads(pickle.dumps(two)).weight_bound(2) == 4.0


# φ logistic in the value itself, by the places of columns or by their names.


pd = optional("pandas")
pl = optional("polars")


def normal(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def test_it_is_logistic_in_the_entry_or_in_the_whole_row():
    X = normal((50, 3))
    intercept, coef = [0.0, -1.0, -np.inf], [1.0, 0.5, -2.0]
    phi = mr.LogisticMissingness(intercept, coef).missing_probability(X)
    np.testing.assert_allclose(phi, expit(intercept + X * coef), rtol=1e-15)
    assert not phi[:, 2].any()
    phi = mr.LogisticMissingness(-0.5, coef, rowwise=True).missing_probability(X)
    np.testing.assert_allclose(phi, expit(-0.5 + X @ coef), rtol=1e-14)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 40),
    proportions=st.lists(st.floats(0, 0.9375), min_size=1, max_size=4),
    scale=st.floats(-6, 6),
    rowwise=st.booleans(),
)
def test_from_proportion_hits_the_proportion(seed, n_rows, proportions, scale, rowwise):
    d = len(proportions)
    X = normal((n_rows, d), seed)
    coef = scale * normal((1, d), seed + 1)[0]
    target = proportions[0] if rowwise else np.array(proportions)
    model = mr.LogisticMissingness.from_proportion(X, coef, target, rowwise=rowwise)
    # Not missing_probability: a steep φ that rounds to 1 still has the right mean.
    phi = model.evaluate(X)
    np.testing.assert_allclose(np.mean(phi, axis=0), target, rtol=0, atol=1e-10)


def test_from_proportion_leaves_nan_out_of_the_mean():
    X = normal((40, 2))
    X[:10, 0] = np.nan
    model = mr.LogisticMissingness.from_proportion(X, [1.0, -2.0], [0.2, 0.7])
    mean = np.nanmean(model.missing_probability(X), axis=0)
    np.testing.assert_allclose(mean, [0.2, 0.7], atol=1e-10)
    rowwise = mr.LogisticMissingness.from_proportion(X, [1.0, -2.0], 0.4, rowwise=True)
    assert np.nanmean(rowwise.missing_probability(X)) == pytest.approx(0.4, abs=1e-10)


@pytest.mark.parametrize("proportion", [1e-9, 0.1, 0.25, 0.5, 0.7, 0.75, 0.9])
def test_from_proportion_survives_clusters_far_apart(proportion):
    X = np.array([[-500.0], [-1.0], [300.0], [40.0]])
    model = mr.LogisticMissingness.from_proportion(X, 10.0, proportion)
    assert np.mean(model.evaluate(X)) == pytest.approx(proportion, abs=1e-10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((normal((5, 2)), 1.0, 1.0), r"proportion must lie in \[0, 1\): got 1.0"),
        ((normal((5, 2)), 1.0, np.nan), r"proportion must lie in \[0, 1\)"),
        ((normal((5, 2)), [1.0] * 3, 0.5), r"is for 3 feature\(s\): X has 2"),
        ((normal((5, 2)), np.nan, 0.5), "coef must be finite"),
        ((normal((5, 2)), [1, 1], [0.5, 0.5], True), "one proportion: got shape"),
        (([[0.0, np.nan]], 1.0, 0.5), "an observed entry in column 1"),
        (([[0.0, np.nan]], [1, 1], 0.5, True), "an observed row: got none"),
        (([[0.0], [1e20], [2e20]], 1.0, 0.4), "No intercept gives the proportion 0.4"),
        (([[np.inf]], 1.0, 0.5), "contains infinity"),
        (([[-1e300], [1.0]], 1e10, 0.5), "coef·x overflows"),
    ],
)
def test_proportions_without_a_solution_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        mr.LogisticMissingness.from_proportion(*arguments)


NAMED = mr.LogisticMissingness.from_columns({"bp": (-1.0, 0.8), "age": (-2.0, 0.1)})
PLACED = mr.LogisticMissingness([-np.inf, -1.0, -2.0], [0.0, 0.8, 0.1])


def labelled(n=300, seed=0):
    rng = np.random.default_rng(seed)
    Z0, Z1 = rng.normal(size=(n, 3)), rng.normal(0.7, 1.0, (n, 3))
    X = np.concatenate([Z0, mr.corrupt(Z1, PLACED, rng)])
    return pd.DataFrame(X, columns=["sugar", "bp", "age"]), np.repeat([0, 1], n)


@pytest.mark.parametrize("make", [lambda frame: frame, pl.from_pandas])
def test_it_is_the_model_of_the_columns_wherever_they_are(make):
    X, _ = labelled()
    for order in (["sugar", "bp", "age"], ["age", "sugar", "bp"]):
        frame, places = make(X[order]), [list(X.columns).index(name) for name in order]
        np.testing.assert_array_equal(
            NAMED.missing_probability(frame), PLACED.missing_probability(X)[:, places]
        )
        np.testing.assert_array_equal(
            NAMED.weights(frame), PLACED.weights(X)[:, places]
        )


def test_names_are_needed_and_given_for_an_array():
    X, y = labelled()
    columns = {"bp": (-1.0, 0.8), "age": (-2.0, 0.1)}
    found = mr.LogisticMissingness.from_columns(columns, names=list(X.columns))
    np.testing.assert_array_equal(found.intercept, PLACED.intercept)
    np.testing.assert_array_equal(found.coef, PLACED.coef)
    for call in (
        lambda: NAMED.missing_probability(X.to_numpy()),
        lambda: mr.KLIEP(missingness={1: NAMED}).fit(X.to_numpy(), y),
        lambda: mr.corrupt(X.to_numpy(), NAMED, 0),
    ):
        with pytest.raises(ValueError, match="doesn't name its columns"):
            call()
    model = mr.LogisticMissingness.from_columns({"agee": (-1.0, 0.8)})
    with pytest.raises(ValueError, match=r"'agee'\. Did you mean 'age'"):
        mr.KLIEP(missingness={1: model}).fit(X, y)


@pytest.mark.filterwarnings("ignore::missratio.learning.MissingnessWarning")
def test_a_model_of_named_columns_refuses_them_in_another_order():
    """As one that was learned, or was bound to them before a step moved them."""
    X, y = labelled(600)
    turned = X[["age", "sugar", "bp"]]
    for phi in (
        mr.learn_missingness(X[y == 1]),
        mr.learn_missingness(X[y == 1], depends_on=["sugar"]),
    ):
        assert phi.bound(list(X.columns)) is phi
        phi.missing_probability(X.to_numpy())
        for use in (
            phi.missing_probability,
            lambda rows, phi=phi: mr.KLIEP(missingness={1: phi}).fit(rows, y),
            lambda rows, phi=phi: mr.missingness_check(rows, phi),
        ):
            with pytest.raises(ValueError, match="sugar, bp, age, in this order, and"):
                use(turned)
    moved = FunctionTransformer(lambda rows: rows[turned.columns])
    line = make_pipeline(moved, mr.KLIEP())
    classifier = mr.NeymanPearsonClassifier(line, 0.2, missingness={1: NAMED})
    with pytest.raises(ValueError, match="sugar, bp, age, in this order, and X has ag"):
        classifier.fit(X, y)


def fits(model, X, y):
    models = {1: model}
    yield mr.KLIEP(missingness=models).fit(X, y).coef_
    yield mr.NaiveBayesRatio(missingness=models).fit(X, y).coef_
    yield mr.FDivergenceRatio(missingness=models).fit(X, y).coef_
    ratio = mr.KLIEP(missingness=models).fit(X, y)
    yield mr.ratio_uncertainty(ratio, X, y).standard_errors
    classifier = mr.NeymanPearsonClassifier(
        mr.KLIEP(), 0.1, missingness=models, controlled_class=1, random_state=0
    ).fit(X, y)
    yield classifier.threshold_
    yield classifier.predict(X) == 1
    imputer = mr.TiltedImputer(models, random_state=0)
    yield np.asarray(imputer.fit_transform(X, y))
    yield mr.corrupt(X.fillna(0.0), model, 0).to_numpy()
    yield [check.pvalue for check in mr.missingness_check(X[y == 1], model)]


def test_every_estimator_takes_it_as_it_takes_the_other():
    X, y = labelled()
    for found, expected in zip(fits(NAMED, X, y), fits(PLACED, X, y), strict=True):
        np.testing.assert_array_equal(found, expected)


# Patterns of missingness: counts of each.


def test_counts_are_those_of_a_table_of_masks_by_names():
    X = lossy(normal((600, 4)))
    patterns = mr.missingness_patterns(X)
    expected = pd.DataFrame(np.isnan(X)).value_counts()
    assert patterns.counts.tolist() == sorted(expected, reverse=True)
    for mask, count in zip(patterns.missing, patterns.counts, strict=True):
        assert expected[tuple(mask)] == count
    assert patterns.counts.sum() == len(X)
    assert patterns.shares @ patterns.missing == pytest.approx(np.isnan(X).mean(axis=0))
    for frame in (pd.DataFrame, pl.DataFrame):
        shown = mr.missingness_patterns(frame({"a": X[:, 0], "b": X[:, 1]})).to_frame()
        assert set(shown["missing"]) == {"", "a", "b", "a, b"}
        assert shown["share"].sum() == pytest.approx(1.0)
