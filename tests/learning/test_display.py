"""A learned φ is drawn with its band over the values that it was learned from."""

from __future__ import annotations

import numpy as np
import pytest

import missratio as mr
from missratio.learning import MissingnessDisplay

pyplot = pytest.importorskip("matplotlib.pyplot")
pandas = pytest.importorskip("pandas")

NAMES = ["bp", "pulse", "age"]
TRUTH = mr.LogisticMissingness([-1.0, -0.5, -np.inf], [1.0, -1.0, 0.0])


@pytest.fixture(scope="module")
def learned():
    """A table whose first two columns lose values, 60 looked up of each, and φ̂."""
    rng = np.random.default_rng(0)
    complete = pandas.DataFrame(rng.normal(size=(1000, 3)), columns=NAMES)
    table = mr.corrupt(complete, TRUTH, 0)
    revealed = table * np.nan
    for j in range(2):
        lost = np.flatnonzero(table.iloc[:, j].isna())
        chosen = rng.choice(lost, 60, replace=False)
        revealed.iloc[chosen, j] = complete.iloc[chosen, j]
    return table, mr.learn_missingness(table, revealed, from_table=False)


@pytest.fixture(autouse=True)
def closed():
    """No figure is left open."""
    yield
    pyplot.close("all")


def test_bands_hold_the_estimate_over_all_values(learned):
    table, model = learned
    display = MissingnessDisplay.from_model(model, table, truth=TRUTH)
    assert [curve.name for curve in display.curves] == ["bp", "pulse"]
    for curve in display.curves:
        assert (curve.lower <= curve.estimate).all()
        assert (curve.estimate <= curve.upper).all()
        known = np.concatenate([curve.observed, curve.revealed])
        assert curve.values[[0, -1]].tolist() == [known.min(), known.max()]
        assert len(curve.revealed) == 60


def test_there_is_a_panel_for_each_feature(learned):
    table, model = learned
    display = MissingnessDisplay.from_model(model, table).plot()
    assert [ax.get_xlabel() for ax in display.axes_] == ["bp", "pulse"]
    assert display.figure_.axes == list(display.axes_)


def test_features_are_chosen_by_name_or_number_and_drawn_where_asked(learned):
    table, model = learned
    _, ax = pyplot.subplots()
    display = MissingnessDisplay.from_model(
        model, table, features=["pulse"], truth=TRUTH
    ).plot([ax])
    assert display.axes_.tolist() == [ax]
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[-2:] == ["learned φ", "true φ"]
    by_number = MissingnessDisplay.from_model(model, table, features=[-2])
    assert by_number.curves[0].name == "pulse"


@pytest.mark.parametrize(
    ("feature", "said"),
    [
        ("pulsee", "There is no feature 'pulsee'. Did you mean 'pulse'"),
        (7, "There is no feature 7"),
        ("age", "Feature 'age' has no missing values to draw"),
    ],
)
def test_what_can_not_be_drawn_is_named(learned, feature, said):
    table, model = learned
    with pytest.raises(ValueError, match=said):
        MissingnessDisplay.from_model(model, table, features=[feature])


def test_a_model_of_whole_rows_is_refused():
    rng = np.random.default_rng(1)
    complete = rng.normal(size=(400, 2))
    lost = rng.random(400) < 0.4
    table = np.where(lost[:, None], np.nan, complete)
    revealed = np.full_like(table, np.nan)
    revealed[np.flatnonzero(lost)[:50]] = complete[np.flatnonzero(lost)[:50]]
    model = mr.learn_missingness(table, revealed, rowwise=True, from_table=False)
    with pytest.raises(ValueError, match="can't be drawn over one"):
        MissingnessDisplay.from_model(model, table)
