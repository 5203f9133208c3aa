"""ONNX files give the same labels as the classifiers that they were made of."""

import json

import numpy as np
import pytest
from optional_packages import optional
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC

import missratio as mr
from missratio.app.export import CantExportError
from missratio.exceptions import DestinationError

pd = optional("pandas")

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


def draw(n=2000, seed=0, missing=0.0, grid=0.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 4)) + y[:, None] * [1.0, 0.5, 0.0, -0.5]
    if grid:
        X = np.round(X / grid) * grid
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def run(path, X):
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(path, options)
    return session.run(None, {"X": np.asarray(X, dtype=np.float64)})


def classifier(estimator, **kwargs):
    return mr.NeymanPearsonClassifier(estimator, alpha=0.1, random_state=0, **kwargs)


LINEAR = [
    LogisticRegression(),
    make_pipeline(StandardScaler(), LogisticRegression()),
    mr.KLIEP(),
    mr.NaiveBayesRatio(mr.KLIEP()),
]
ESTIMATORS = [
    *LINEAR,
    # Its scores hardly vary.
    LogisticRegression(C=1e-12),
    RidgeClassifier(),
    LinearSVC(),
    mr.FDivergenceRatio("js"),
    HistGradientBoostingClassifier(max_iter=30, random_state=0),
]


@pytest.mark.parametrize("grid", [0.0, 0.5])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_labels_are_the_same_and_incomplete_rows_get_the_controlled_class(
    estimator, grid, tmp_path
):
    fitted = classifier(estimator).fit(*draw(grid=grid))
    path = mr.export_onnx(fitted, tmp_path / "model.onnx")
    X, _ = draw(20_000, seed=1, missing=0.02, grid=grid)
    label, score = run(path, X)
    np.testing.assert_array_equal(label, fitted.predict(X))
    np.testing.assert_allclose(score, fitted.score_samples(X), rtol=1e-9, atol=1e-9)
    assert 0.02 < label.mean() < 0.9


def test_trees_take_blanks_as_observed(tmp_path):
    trees = HistGradientBoostingClassifier(max_iter=30, random_state=0)
    fitted = classifier(trees, deployment="as-observed").fit(*draw(missing=0.2))
    path = mr.export_onnx(fitted, tmp_path / "model.onnx")
    X, _ = draw(20_000, seed=1, missing=0.2)
    label, _ = run(path, X)
    np.testing.assert_array_equal(label, fitted.predict(X))
    assert label[np.isnan(X).any(axis=1)].any()


def test_labels_that_are_texts_and_what_goes_with_the_file(tmp_path):
    X, y = draw()
    frame = pd.DataFrame(X, columns=["age", "pulse", "sugar", "iron"])
    names = np.array(["well", "sick"])[y]
    fitted = classifier(LogisticRegression(), controlled_class="well")
    fitted.fit(frame, names)
    path = mr.export_onnx(fitted, tmp_path / "model.onnx")
    label, _ = run(path, X)
    np.testing.assert_array_equal(label.astype(str), fitted.predict(frame))
    facts = {each.key: each.value for each in onnx.load(path).metadata_props}
    assert json.loads(facts["columns"]) == list(frame.columns)
    assert facts["certificate"].startswith("At most 10%")
    with pytest.raises(DestinationError):
        mr.export_onnx(fitted, path)
    mr.export_onnx(fitted, path, force=True)


HUGE = [1.7e308, -1.7e308, 1e308, -1e308, 1e300, 0.0, 1.0]


@pytest.mark.parametrize("estimator", LINEAR, ids=lambda e: type(e).__name__)
@pytest.mark.filterwarnings("ignore:(overflow|invalid value):RuntimeWarning")
def test_overflow_gives_the_controlled_class_whatever_the_order(estimator, tmp_path):
    X, y = draw()
    fitted = classifier(estimator).fit(X[:, :2], y)
    path = mr.export_onnx(fitted, tmp_path / "model.onnx")
    rng = np.random.default_rng(0)
    rows = rng.choice(HUGE, size=(2000, 2)) * rng.choice([1.0, 0.9], size=(2000, 2))
    label, score = run(path, rows)
    assert not (label > fitted.predict(rows)).any()
    assert not (score == np.inf).any()
    # Only where the terms themselves overflow are labels not the same.
    sound = np.abs(rows).max(axis=1) < 1e301
    np.testing.assert_array_equal(label[sound], fitted.predict(rows[sound]))


def test_rows_at_the_threshold_are_never_moved_to_the_other_class(tmp_path):
    fitted = classifier(LogisticRegression()).fit(*draw())
    path = mr.export_onnx(fitted, tmp_path / "model.onnx")
    X, _ = draw(4000, seed=1)
    label = fitted.predict(X)
    low, high = (X[label == k][:200].copy() for k in (0, 1))
    for _ in range(60):
        middle = (low + high) / 2
        above = (fitted.predict(middle) == 1)[:, None]
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    for rows in (low, high):
        assert not (run(path, rows)[0] > fitted.predict(rows)).any()
    # A part in 10⁹ further on, labels are the same.
    rows = high + 1e-9 * (X[label == 1][:200] - high)
    assert run(path, rows)[0].mean() == fitted.predict(rows).mean() == 1.0


@pytest.mark.parametrize(
    ("estimator", "match"),
    [
        (GaussianNB(), "GaussianNB can't be exported.*neither linear"),
        (RandomForestClassifier(20, min_samples_leaf=5), "RandomForestClassifier"),
        (make_pipeline(MinMaxScaler(), LogisticRegression()), "MinMaxScaler"),
        (mr.KLIEP("polynomial", l2=0.1), "KLIEP can't.*PolynomialBasis"),
        (
            HistGradientBoostingClassifier(
                max_iter=5, categorical_features=[0], random_state=0
            ),
            "splits by categories",
        ),
    ],
)
def test_what_cant_be_exported_is_named(estimator, match, tmp_path):
    X, y = draw()
    X[:, 0] = np.clip(np.round(X[:, 0]) + 3, 0, 6)
    fitted = classifier(estimator).fit(X, y)
    with pytest.raises(CantExportError, match=match):
        mr.export_onnx(fitted, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_caps_and_other_classifiers_are_refused(tmp_path):
    X, y = draw(4000)
    phi = mr.LogisticMissingness([-2.0, -1.5, -np.inf, -30], [1.0, -0.5, 0, 0])
    X[y == 0] = mr.corrupt(X[y == 0], phi, random_state=0)
    capped = classifier(mr.KLIEP(), missingness={0: phi}, rule="counting").fit(X, y)
    with pytest.raises(CantExportError, match="cap can't be exported"):
        mr.export_onnx(capped, tmp_path / "model.onnx")
    several = mr.MulticlassNeymanPearsonClassifier(LogisticRegression(), {0: 0.1})
    groups = mr.GroupedNeymanPearsonClassifier(LogisticRegression())
    for other in (LogisticRegression(), several, groups):
        with pytest.raises(CantExportError, match=rf"{type(other).__name__} can't"):
            mr.export_onnx(other, tmp_path / "model.onnx")
