"""Experiments as data, means and intervals, and what it means to meet the paper's."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from missratio.reproduce import EXPERIMENTS, Conditions, Result, published_curves
from missratio.reproduce.results import MeanCurve, make_curve, overlap

IDS = [
    "msd_5dim", "np_boundary", "np_power", "naive_bayes", "diff_variance",
    "misspecification", "ctg_vary_alpha", "ctg_vary_missing", "fire_vary_alpha",
    "fire_vary_missing", "weather_vary_alpha", "weather_vary_missing",
]  # fmt: skip


def test_experiments_runs_and_confidence_are_the_papers():
    assert list(EXPERIMENTS) == IDS
    runs = [EXPERIMENTS[name].runs for name in IDS]
    assert runs == [100, 1, 100, 100, 100, 100, 1000, 1000, 100, 100, 100, 30]
    assert EXPERIMENTS["np_power"].z == pytest.approx(2.576, abs=1e-3)
    assert EXPERIMENTS["ctg_vary_alpha"].z == pytest.approx(1.96, abs=1e-3)


def test_a_generator_depends_on_its_name_and_the_seed_alone():
    def draw(seed, *key):
        return Conditions(seed=seed).generator(*key).random(3)

    draw(0, "np_power", "200", 7)
    np.testing.assert_array_equal(draw(0, "np_power", 1), draw(0, "np_power", 1))
    for other in [(1, "np_power", 1), (0, "np_power", 2), (0, "msd_5dim", 1)]:
        assert (draw(*other) != draw(0, "np_power", 1)).all()


@pytest.fixture
def result():
    rng = np.random.default_rng(0)
    experiment = EXPERIMENTS["ctg_vary_missing"]
    values = {
        m: rng.random((4, 10)) for m in ("M-KLIEP (known)", "Iterative imputation")
    }
    values["Iterative imputation"][2:] = np.nan
    values["Iterative imputation"][:, 0] = np.nan
    return Result(experiment, Conditions(seed=3), values)


def test_intervals_are_mean_and_z_standard_errors_of_the_runs_that_there_are():
    nan = np.nan
    values = np.array([[1.0, 1.0, nan], [2.0, nan, nan], [4.0, nan, nan]])
    curve = make_curve(values, 1.96)
    half = 1.96 * np.std(values[:, 0], ddof=1) / np.sqrt(3)
    np.testing.assert_allclose(curve.mean, [7 / 3, 1.0, nan])
    np.testing.assert_allclose(curve.lo, [7 / 3 - half, nan, nan])
    np.testing.assert_allclose(curve.hi, [7 / 3 + half, nan, nan])
    assert curve.runs == [3, 1, 0]


def test_the_table_has_a_row_for_every_run(result):
    file = parquet.ParquetFile(io.BytesIO(result.as_parquet()))
    rows = file.read().to_pylist()
    assert len(rows) == 40 + 18
    first = result.values["M-KLIEP (known)"][1, 3]
    assert {"x": 0.3, "method": "M-KLIEP (known)", "run": 1, "value": first} in rows
    assert b'"seed": 3' in file.schema_arrow.metadata[b"missratio"]


def test_json_has_null_where_there_is_nothing(result):
    entry = result.as_json()
    assert list(entry) == ["x_name", "x", "y_name", "curves"]
    curve = entry["curves"]["Iterative imputation"]
    assert list(curve) == ["mean", "lo", "hi"]
    assert curve["mean"][0] is None
    assert curve["lo"][1] < curve["mean"][1] < curve["hi"][1]


def test_curves_past_the_paper_have_a_figure_beside_some_of_its_own():
    experiment = EXPERIMENTS["ctg_vary_alpha"]
    values = {method: np.full((2, 6), 0.5) for method in experiment.curves}
    made = Result(experiment, Conditions(), values).parts()
    assert list(made) == ["ctg_vary_alpha", "ctg_vary_alpha_beyond"]
    assert tuple(made["ctg_vary_alpha"].values) == experiment.methods
    beside = tuple(made["ctg_vary_alpha_beyond"].values)
    assert beside == ("M-KLIEP (known)", *experiment.beyond)


ENDS = st.tuples(st.floats(-10, 10), st.floats(0, 5)).map(lambda p: (p[0], p[0] + p[1]))


def curve(low, high):
    return MeanCurve(*np.array([[(low + high) / 2], [low], [high]]))


@given(ENDS, ENDS)
def test_intervals_overlap_if_neither_lies_above_the_other(ours, theirs):
    (verdict,) = overlap(curve(*ours), curve(*theirs))
    assert verdict is not (ours[0] > theirs[1] or theirs[0] > ours[1])
    assert overlap(curve(*theirs), curve(*ours)) == (verdict,)


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_published_curves_have_names_and_points_of_ours(name):
    experiment = EXPERIMENTS[name]
    curves = published_curves(name)
    known = "msd_5dim np_power naive_bayes ctg_vary_alpha ctg_vary_missing"
    assert bool(curves) == (name in known.split())
    assert set(curves) <= set(experiment.methods)
    for each in curves.values():
        assert len(each.mean) == len(each.lo) == len(each.hi) == len(experiment.x)
        known = ~np.isnan(each.mean)
        assert known.sum() >= len(experiment.x) - 1
        assert ((each.lo <= each.mean) & (each.mean <= each.hi))[known].all()
