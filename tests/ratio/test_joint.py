"""Ratios as scikit-learn estimators: tables in, pipelines, grids, views, pickles."""

import tracemalloc
import warnings

import numpy as np
import pytest
import sklearn
from optional_packages import optional
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

import missratio as mr
from missratio.objective import JensenShannonObjective
from missratio.ratio import stack_samples

pd = optional("pandas")
pl = optional("polars")

ROWS = mr.StepMissingness([1.0, 1.0], 0.0, 0.6)
ENTRIES = mr.LogisticMissingness([-0.5, 0.0], [1.0, -1.0])
ESTIMATORS = [
    mr.KLIEP(),
    mr.KLIEP(basis="polynomial"),
    mr.FDivergenceRatio("js"),
    mr.ObjectiveRatio(JensenShannonObjective()),
    mr.NaiveBayesRatio(),
]


@pytest.fixture
def table(two_normals):
    return two_normals()


# Tables and labels.


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (np.array(["healthy", "ill"]), ["healthy", "ill"]),
        (np.array(["healthy", "ill"], dtype=object), ["healthy", "ill"]),
        (np.array([False, True]), [False, True]),
        (np.array([-1, 1]), [-1, 1]),
        (np.array([3.0, 7.0]), [3.0, 7.0]),
        (np.array([0, 1], dtype=np.uint8), [0, 1]),
    ],
    ids=["words", "objects", "bool", "signs", "floats", "bytes"],
)
def test_any_two_labels_will_do_and_the_last_is_the_numerator(
    estimator, labels, classes, table
):
    X, y = table
    plain = clone(estimator).fit(X, y)
    named = clone(estimator).fit(X, labels[y])
    assert named.classes_.tolist() == classes
    np.testing.assert_array_equal(named.coef_, plain.coef_)
    np.testing.assert_array_equal(named.predict(X), labels[plain.predict(X)])
    assert named.score(X, labels[y]) == plain.score(X, y)


@pytest.mark.parametrize(
    ("labels", "key"),
    [
        (np.array(["a", "b"]), "b"),
        (np.array([False, True]), True),
        (np.array([False, True]), 1),
        (np.array([0.0, 1.0]), 1),
        (np.array([-1, 1]), 1),
    ],
    ids=str,
)
def test_models_are_found_by_label(labels, key, table):
    X, y = table
    X[y == 1] = mr.corrupt(X[y == 1], ROWS, 0)
    plain = mr.KLIEP(missingness={1: ROWS}).fit(X, y)
    named = mr.KLIEP(missingness={key: ROWS}).fit(X, labels[y])
    np.testing.assert_array_equal(named.coef_, plain.coef_)
    assert list(named.effective_sample_size_) == [labels[1].item(), labels[0].item()]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_the_memory_layout_and_precision_of_x_do_not_matter(estimator, table):
    X, y = table
    plain = clone(estimator).fit(X, y).coef_
    frozen = X.copy()
    frozen.flags.writeable = False
    strided = np.repeat(X, 2, axis=0)[::2]
    for other in (np.asfortranarray(X), frozen, strided, X.tolist()):
        coef = clone(estimator).fit(other, y).coef_
        np.testing.assert_allclose(coef, plain, atol=1e-10)
    single = clone(estimator).fit(X.astype(np.float32), y)
    assert single.converged_
    np.testing.assert_allclose(single.coef_, plain, atol=1e-4)


def nullable(columns):
    return pd.DataFrame(columns).convert_dtypes()


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, nullable])
def test_dataframes_give_what_arrays_give(estimator, make, table):
    X, y = table
    for models in (None, {1: ENTRIES}):
        if models is not None:
            X[y == 1] = mr.corrupt(X[y == 1], ENTRIES, 0)
        frame = make({"age": X[:, 0], "dose": X[:, 1]})
        ratio = clone(estimator).set_params(missingness=models)
        named = clone(ratio).fit(frame, y)
        np.testing.assert_allclose(named.coef_, ratio.fit(X, y).coef_, atol=1e-9)
        assert named.feature_names_in_.tolist() == ["age", "dose"]
        assert named.predict_ratio(frame).shape == (len(X),)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_ratio_log_ratio_and_decision_are_one_thing(estimator, table):
    X, y = table
    ratio = clone(estimator).fit(X, y)
    log_ratio = ratio.predict_log_ratio(X)
    np.testing.assert_allclose(np.log(ratio.predict_ratio(X)), log_ratio, atol=1e-12)
    np.testing.assert_array_equal(ratio.decision_function(X), log_ratio)
    np.testing.assert_array_equal(ratio.predict(X), (log_ratio > 0).astype(int))
    assert is_classifier(ratio)


# Pipelines, grids and routing.


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_it_ends_a_pipeline_and_scaling_changes_no_prediction(estimator, table):
    X, y = table
    X = X * [10.0, 0.01] + [5.0, -3.0]
    pipeline = make_pipeline(StandardScaler(), clone(estimator)).fit(X, y)
    alone = clone(estimator).fit(X, y)
    np.testing.assert_allclose(
        pipeline.decision_function(X), alone.decision_function(X), atol=1e-6
    )
    assert pipeline.score(X, y) == pytest.approx(alone.score(X, y), abs=1e-8)


@pytest.mark.parametrize("output", ["pandas", "polars"])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_the_global_kind_of_output_changes_no_fit(estimator, output, table):
    X, y = table
    plain = clone(estimator).fit(X, y)
    with sklearn.config_context(transform_output=output):
        set_so = clone(estimator).fit(X, y)
        log_ratio = set_so.predict_log_ratio(X)
    np.testing.assert_array_equal(set_so.coef_, plain.coef_)
    np.testing.assert_array_equal(log_ratio, plain.predict_log_ratio(X))
    assert isinstance(log_ratio, np.ndarray)


def test_a_grid_search_chooses_a_penalty_by_the_ratios_own_score(two_normals):
    X, y = two_normals(60, 6)
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    grid = GridSearchCV(mr.KLIEP(), {"l2": [0.0, 0.3, 1e3]}, cv=folds).fit(X, y)
    assert grid.best_params_ == {"l2": 0.3}
    by_hand = cross_val_score(mr.KLIEP(l2=0.3), X, y, cv=folds).mean()
    assert grid.best_score_ == pytest.approx(by_hand)


def test_sample_weights_are_routed_through_pipelines_and_grids(table):
    X, y = table
    weight = np.random.default_rng(0).exponential(size=len(X))
    with sklearn.config_context(enable_metadata_routing=True):
        ratio = mr.KLIEP(l2=0.1)
        ratio.set_fit_request(sample_weight=True)
        ratio.set_score_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, ratio)
        pipeline.fit(X, y, sample_weight=weight)
        grid = GridSearchCV(pipeline, {"kliep__l2": [0.1]}, cv=3)
        grid.fit(X, y, sample_weight=weight)
    direct = mr.KLIEP(l2=0.1).fit(StandardScaler().fit_transform(X), y, weight)
    np.testing.assert_allclose(pipeline[-1].coef_, direct.coef_)
    np.testing.assert_allclose(grid.best_estimator_[-1].coef_, direct.coef_)


def test_warnings_point_at_the_line_that_called_fit(two_normals):
    X, y = two_normals()
    X[y == 1] += 100.0
    for estimator in (mr.KLIEP(), mr.FDivergenceRatio("js"), mr.NaiveBayesRatio()):
        with warnings.catch_warnings(record=True, action="always") as caught:
            estimator.fit(X, y)
        assert [each.filename for each in caught] == [__file__]


# Two samples are one labelled table, used where they lie.


def samples(n1=300, n0=200, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(0.3, 1, (n1, d)), rng.normal(size=(n0, d))


def frame(library):
    return lambda X: library.DataFrame(dict(zip(["age", "dose"], X.T, strict=True)))


@pytest.mark.parametrize("make", [np.asarray, frame(pd), frame(pl)])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_it_is_a_fit_of_the_stacked_table(estimator, missing, make):
    X1, X0 = samples()
    models = {1: ENTRIES, 0: ROWS} if missing else None
    if missing:
        X1, X0 = mr.corrupt(X1, ENTRIES, 0), mr.corrupt(X0, ROWS, 0)
    two = mr.density_ratio(make(X1), make(X0), estimator, missingness=models)
    one = type(estimator)(**{**estimator.get_params(deep=False), "missingness": models})
    one.fit(*stack_samples(X1, X0))
    np.testing.assert_allclose(two.coef_, one.coef_, atol=1e-9)
    assert two.intercept_ == pytest.approx(one.intercept_, abs=1e-9)
    assert two.classes_.tolist() == [0, 1]
    assert two.n_features_in_ == 2
    assert hasattr(two, "feature_names_in_") == (make is not np.asarray)
    np.testing.assert_allclose(
        two.predict_ratio(make(X0)), one.predict_ratio(X0), rtol=1e-8
    )


def test_the_estimator_is_cloned_and_not_fitted():
    estimator = mr.KLIEP(l2=0.3)
    fitted = mr.density_ratio(*samples(), estimator)
    assert fitted is not estimator
    assert fitted.l2 == 0.3
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)


def test_large_arrays_are_not_copied():
    X1, X0 = samples(450_000, 450_000, 20)
    tracemalloc.start()
    try:
        mr.density_ratio(X1, X0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * X0.nbytes


@pytest.mark.parametrize("estimator", [mr.KLIEP(), mr.NaiveBayesRatio()], ids=str)
def test_samples_that_do_not_match_are_refused(estimator):
    X1, X0 = samples()
    for tables, message in (
        ((X1, X0[:, :1]), "X1 has 2 columns and X0 has 1"),
        ((X1[:0], X0), r"0 sample\(s\)|one class only"),
        ((X1, X0[:0]), r"0 sample\(s\)|one class only"),
    ):
        with pytest.raises(ValueError, match=message):
            mr.density_ratio(*tables, estimator)
    with pytest.raises(ValueError, match=r"class 'a', but the classes are \[0, 1\]"):
        mr.density_ratio(X1, X0, estimator, missingness={"a": ROWS})


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(
    "compare",
    [mr.ratio_test, mr.estimate_divergence, mr.density_ratio],
)
def test_two_samples_have_the_same_columns_in_the_same_order(make, compare):
    X1 = np.random.default_rng(0).normal(size=(30, 2))
    names = {"a": X1[:, 0], "b": X1[:, 1]}
    swapped = {"b": X1[:, 0], "a": X1[:, 1]}
    with pytest.raises(ValueError, match=r"columns 'a', 'b' and X0 has 'b', 'a'"):
        compare(make(names), make(swapped))
