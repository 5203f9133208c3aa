"""Displays of a ratio: what is drawn, and what is refused."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from optional_packages import optional

from missratio import KLIEP, RatioDisplay, StepMissingness, corrupt

pd = optional("pandas")

mpl.use("Agg")


@pytest.fixture
def fitted():
    rng = np.random.default_rng(0)
    phi = StepMissingness([1.0, 0.0], 0.5, 0.5)
    table = np.concatenate(
        [
            corrupt(rng.normal(0, 1, (80, 2)), phi, random_state=0),
            rng.normal(0.5, 1, (80, 2)),
        ]
    )
    X, y = pd.DataFrame(table, columns=["age", "dose"]), np.repeat([0, 1], 80)
    yield KLIEP(missingness={0: phi}).fit(X, y), X, y
    plt.close("all")


def test_over_the_sample(fitted):
    estimator, X, y = fitted
    display = RatioDisplay.from_estimator(estimator, X, y)
    assert display.ax_.get_xlabel() == "log ratio"
    seen = ~X.isna().any(axis=1).to_numpy()
    np.testing.assert_array_equal(np.isnan(display.log_ratio), ~seen)
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["denominator", "numerator"]


@pytest.mark.parametrize("column", ["dose", 1])
def test_over_one_column_the_others_are_at_their_medians(fitted, column):
    estimator, X, y = fitted
    display = RatioDisplay.from_estimator(estimator, X, y, columns=[column])
    assert display.ax_.get_xlabel() == "dose"
    values, height = display.grid
    median = X.dropna()["age"].median()
    points = pd.DataFrame({"age": median, "dose": values})
    np.testing.assert_allclose(height, estimator.predict_log_ratio(points))


def test_over_two_columns(fitted):
    estimator, X, y = fitted
    _, ax = plt.subplots()
    display = RatioDisplay.from_estimator(
        estimator, X, y, columns=["age", "dose"], ax=ax
    )
    assert display.ax_ is ax
    assert display.grid[2].shape == (60, 60)


@pytest.mark.parametrize("width", [0, 1, 2])
def test_from_predictions(fitted, width):
    estimator, X, y = fitted
    columns = None if width == 0 else X.iloc[:, :width]
    display = RatioDisplay.from_predictions(
        estimator.predict_ratio(X), y, columns=columns
    )
    assert display.grid is None
    np.testing.assert_array_equal(display.is_numerator, y == 1)


def test_a_ratio_of_zero_is_drawn_at_the_floor():
    rng = np.random.default_rng(1)
    ratio, X = np.append(np.zeros(3), rng.uniform(0.5, 2, 40)), rng.normal(size=(43, 1))
    display = RatioDisplay.from_predictions(ratio, columns=X)
    assert np.isfinite(display.ax_.get_ylim()).all()
    plt.close("all")


def test_what_is_refused(fitted):
    estimator, X, y = fitted
    with pytest.raises(ValueError, match="no column"):
        RatioDisplay.from_estimator(estimator, X, y, columns=["weight"])
    with pytest.raises(ValueError, match="one or two"):
        RatioDisplay.from_estimator(estimator, X, y, columns=[0, 1, 0])
    with pytest.raises(ValueError, match="not negative"):
        RatioDisplay.from_predictions([-1.0, 2.0])
    with pytest.raises(ValueError, match="rows"):
        RatioDisplay.from_predictions([1.0, 2.0], columns=np.ones((3, 1)))


@pytest.mark.parametrize("n_columns", [0, 2])
def test_without_labels_there_is_one_group_and_no_legend(n_columns):
    columns = np.random.default_rng(0).normal(size=(30, 2)) if n_columns else None
    ratio = np.linspace(0.5, 2.0, 30)
    plain = RatioDisplay.from_predictions(ratio, columns=columns)
    assert plain.ax_.get_legend() is None
    labels = np.arange(30) % 2
    assert RatioDisplay.from_predictions(ratio, labels).ax_.get_legend() is not None
    plt.close("all")


def test_columns_are_a_table():
    with pytest.raises(ValueError, match=r"a table of rows and columns, got \(3,\)"):
        RatioDisplay.from_predictions(np.ones(3), columns=np.ones(3))
