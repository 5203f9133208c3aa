"""What is drawn, and what is refused."""

import sys

import matplotlib as mpl
import numpy as np
import pytest
from classifiers import certified
from data import corrupted
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio import NeymanPearsonClassifier, NPROCDisplay, TypeIErrorMonitor, np_roc
from missratio.evaluation import MonitorDisplay

mpl.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


@pytest.fixture
def scores():
    rng = np.random.default_rng(0)
    return rng.normal(0, 1, 500), rng.normal(1.5, 1, 500)


def test_the_line_is_the_curve_and_the_band_lies_around_it(scores):
    display = NPROCDisplay.from_predictions(*scores, name="normal", delta=0.1)
    roc = np_roc(*scores, delta=0.1)
    np.testing.assert_array_equal(display.line_.get_xdata(), roc.alpha)
    np.testing.assert_array_equal(display.line_.get_ydata(), roc.power)
    path = display.band_.get_paths()[0].vertices
    assert path[:, 1].max() == pytest.approx(roc.upper.max())
    assert "0.9" in display.ax_.get_xlabel()
    assert display.ax_.get_ylabel() == "power"
    assert display.ax_.get_legend().get_texts()[0].get_text() == "normal"
    display.figure_.canvas.draw()


@pytest.mark.parametrize("controlled", [0, 1])
def test_it_is_drawn_of_a_fitted_classifier(two_normals, controlled):
    X, y = two_normals(600, 2, shift=1.5)
    model = certified(LogisticRegression(), controlled_class=controlled, delta=0.05)
    model.fit(X, y)
    X, y = two_normals(400, 2, seed=1, shift=1.5)
    scores, levels = model.score_samples(X), {"alphas": [0.1, 0.2, 0.3]}
    display = NPROCDisplay.from_estimator(model, X, y, **levels)
    roc = np_roc(scores[y == controlled], scores[y != controlled], **levels)
    np.testing.assert_array_equal(display.roc.power, roc.power)
    assert display.roc.name == "LogisticRegression"
    assert display.roc.power[-1] > 0.7


def test_without_matplotlib_the_error_says_what_to_install(scores, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"missratio\[report\]"):
        NPROCDisplay(roc=np_roc(*scores)).plot()


def test_rows_that_lost_values_are_weighted_or_refused(two_normals):
    phi = mr.StepMissingness([1.0, 0.0], 0.0, 0.6)
    X, y = two_normals(4000, 2, shift=1.5)
    lossy = corrupted(X, y, {0: phi})
    model = certified(mr.KLIEP(), missingness={0: phi}, delta=0.05).fit(lossy, y)
    fresh, labels = two_normals(20_000, 2, seed=1, shift=1.5)
    lost, levels = corrupted(fresh, labels, {0: phi}, 1), {"alphas": [0.1, 0.2]}
    display = NPROCDisplay.from_estimator(model, fresh, labels, **levels)
    weighted = NPROCDisplay.from_estimator(model, lost, labels, **levels)
    np.testing.assert_allclose(weighted.roc.power, display.roc.power, atol=0.04)
    parts = lost[labels == 0], fresh[labels == 1]
    plain = np_roc(*map(model.score_samples, parts), **levels)
    assert (plain.power > display.roc.power + 0.05).all()
    lost[labels == 1] = mr.corrupt(fresh[labels == 1], phi, 1)
    with pytest.raises(ValueError, match="Give complete rows of that class"):
        NPROCDisplay.from_estimator(model, lost, labels)
    unknown = NeymanPearsonClassifier(mr.KLIEP(), 0.1, random_state=0)
    with pytest.raises(ValueError, match="no missingness model"):
        NPROCDisplay.from_estimator(unknown.fit(X, y), lost, labels)


def test_a_monitor_is_drawn():
    rng = np.random.default_rng(0)
    monitor = TypeIErrorMonitor(0.1).update(rng.random(500) < 0.25)
    display = MonitorDisplay(monitor).plot()
    assert len(display.figure_.axes) == 2
