"""Ratios as scikit-learn estimators: tables in, pipelines, grids, views, pickles."""

import warnings

import numpy as np
import pytest
import sklearn
from optional_packages import optional
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import missratio as mr
from missratio.objective import JensenShannonObjective

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
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            estimator.fit(X, y)
        assert [each.filename for each in caught] == [__file__]
