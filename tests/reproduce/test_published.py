"""The published curves, and what it means to meet them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from missratio.reproduce import EXPERIMENTS, MeanCurve, overlap, published_curves
from missratio.reproduce._published import published_source

ENDS = st.tuples(st.floats(-10, 10), st.floats(0, 5)).map(lambda p: (p[0], p[0] + p[1]))


def curve(low, high):
    return MeanCurve(((low + high) / 2,), (low,), (high,))


@given(ENDS, ENDS)
def test_intervals_overlap_if_neither_lies_above_the_other(ours, theirs):
    (verdict,) = overlap(curve(*ours), curve(*theirs))
    assert verdict is not (ours[0] > theirs[1] or theirs[0] > ours[1])
    assert overlap(curve(*theirs), curve(*ours)) == (verdict,)


def test_where_there_is_no_interval_there_is_no_verdict():
    nothing = MeanCurve((None,), (None,), (None,))
    assert overlap(nothing, curve(0.0, 1.0)) == (None,)
    assert overlap(curve(0.0, 1.0), nothing) == (None,)


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_published_curves_have_names_and_points_of_ours(name):
    experiment = EXPERIMENTS[name]
    curves = published_curves(name, experiment.x)
    assert set(curves) <= set(experiment.methods)
    for each in curves.values():
        known = [mean for mean in each.mean if mean is not None]
        assert len(known) >= len(experiment.x) - 1
        for mean, low, high in zip(each.mean, each.lo, each.hi, strict=True):
            assert mean is None or low <= mean <= high


def test_five_experiments_can_be_compared():
    known = [
        name for name, each in EXPERIMENTS.items() if published_curves(name, each.x)
    ]
    assert known == [
        "msd_5dim",
        "np_power",
        "naive_bayes",
        "ctg_vary_alpha",
        "ctg_vary_missing",
    ]
    assert "AISTATS 2023" in published_source()


def test_points_that_the_paper_lacks_are_unknown():
    curve = published_curves("np_power", (100.0, 150.0))["M-KLIEP"]
    assert curve.mean == (0.24692, None)
    assert curve.hi[1] is None
