"""What every room rests on: callbacks and blocks."""

import numpy as np
import pytest
from data import two_normals
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio._base.blocks import rows_with_nan, take_rows
from missratio.classifier import PowerSearch


class Recorder:
    """Notes what it is told."""

    def __init__(self):
        self.seen = []

    def setup(self, estimator, context):
        self.seen.append("setup")

    def teardown(self, estimator, context):
        self.seen.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.seen.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context):
        self.seen.append(f"end {context.task_name}")


CANDIDATES = {"a": mr.KLIEP(), "b": mr.KLIEP(l2=1.0)}


@pytest.mark.parametrize(
    ("estimator", "task", "times"),
    [
        (mr.KLIEPCV(cv=3, random_state=0), "fold", 3),
        (PowerSearch(CANDIDATES, cv=2, random_state=0), "candidate", 2),
        (mr.KernelRatio(sigma_grid=3, flat_within=0.0, random_state=0), "width", 3),
    ],
)
def test_every_task_is_told_once_and_the_fit_is_the_same(estimator, task, times):
    X, y = two_normals(90, shift=1.0)
    alone = estimator.fit(X, y).decision_function(X)
    recorder = Recorder()
    told = estimator.set_callbacks(recorder).fit(X, y).decision_function(X)
    np.testing.assert_array_equal(told, alone)
    tasks = [f"begin {task}", f"end {task}"] * times
    assert recorder.seen == ["setup", "begin fit", *tasks, "end fit", "teardown"]


def test_an_imputer_tells_of_every_chain_and_an_ensemble_of_every_imputation():
    X, y = two_normals(90, shift=1.0)
    phi = mr.LogisticMissingness([-1.0, -1.0], [0.5, 0.5])
    X = mr.corrupt(X, phi, 0)
    imputer = mr.TiltedImputer({0: phi, 1: phi}, n_imputations=3, random_state=0)
    alone = imputer.fit_impute(X, y)
    recorder = Recorder()
    told = imputer.set_callbacks(recorder).fit_impute(X, y)
    np.testing.assert_array_equal(told, alone)
    assert recorder.seen.count("end chain") == 6
    assert recorder.seen.count("setup") == recorder.seen.count("teardown") == 1
    recorder = Recorder()
    imputer.set_callbacks()
    ensemble = mr.ImputationEnsemble(imputer, LogisticRegression())
    ensemble.set_callbacks(recorder).fit(X, y)
    assert recorder.seen.count("end chain") == 6
    assert recorder.seen.count("end imputation") == 3


@pytest.mark.parametrize(
    ("kind", "bound"),
    [
        (mr.NeymanPearsonClassifier, 0.3),
        (mr.MulticlassNeymanPearsonClassifier, {0: 0.3}),
    ],
)
def test_a_classifier_hands_callbacks_down_to_an_estimator_that_has_none(kind, bound):
    X, y = two_normals(90, shift=1.0)
    for callbacks_of in ("classifier", "estimator"):
        ratio, recorder = mr.KLIEPCV(cv=3, random_state=0), Recorder()
        classifier = kind(ratio, bound, random_state=0)
        owner = classifier if callbacks_of == "classifier" else ratio
        owner.set_callbacks(recorder)
        classifier.fit(X, y)
        assert recorder.seen.count("end fold") == 3
        assert hasattr(ratio, "_skl_callbacks") == (owner is ratio)


# Rows of large tables: the quick ways give what the plain ones do.


CELLS = st.sampled_from([0.0, -1.5, 1e308, -1e308, np.inf, -np.inf, np.nan])


@given(arrays(np.float64, (7, 3), elements=CELLS))
def test_rows_with_nan_are_those_that_hold_one(X):
    assert np.array_equal(rows_with_nan(X), np.isnan(X).any(axis=1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_rows", [10, 50_000])
def test_taking_rows_is_indexing(n_rows, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 11)).astype(dtype)
    index = rng.integers(0, n_rows, n_rows)
    taken = take_rows(X, index)
    assert taken.dtype == dtype
    assert np.array_equal(taken, X[index])
