"""Runs are drawn as the paper says, and measured as fits one by one would be."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

import missratio as mr
from missratio.datasets import simulations
from missratio.ratio import stack_samples
from missratio.reproduce import EXPERIMENTS, Conditions, experiments
from missratio.reproduce.experiments import (
    Simulated,
    SplitSizes,
    certified_excess,
    certified_power,
    certified_threshold,
    draw_run,
    load_table,
    loss,
)
from missratio.reproduce.methods import RealTable, Run, Score, score_run

QUICK = ("M-KLIEP (known)", "M-KLIEP (learned)", "CC-KLIEP")
POWERS = ["np_power", "naive_bayes", "diff_variance", "misspecification"]


def test_a_split_uses_every_row_once():
    X = np.arange(800.0)[:, None]
    table = RealTable(X, np.arange(800) >= 300)
    sizes, rng = SplitSizes(150, 100, 20), np.random.default_rng(0)
    run = draw_run(table, sizes, 0.0, rng, Conditions())
    parts = run.denominator, run.calibration, run.complete, run.test
    assert [len(part) for part in parts] == [150, 150, 400, 100]
    # Normalised: the smallest and the next tell the scale.
    whole = np.sort(np.concatenate(parts).ravel())
    np.testing.assert_allclose(np.diff(whole), whole[1] - whole[0])
    assert max(part.max() for part in parts[:2]) < min(p.min() for p in parts[2:])


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_shift_gives_the_share_for_both_signs(table, share):
    for phi in loss(table, share):
        mean = np.nanmean(phi.missing_probability(table.X), axis=0)
        np.testing.assert_allclose(mean, share, rtol=1e-8)


def test_without_a_shift_phi_is_one_half_at_the_mean_and_rises_or_falls(table):
    mean, spread = np.nanmean(table.X, axis=0), np.nanstd(table.X, axis=0)
    at = np.stack([mean, mean + spread])
    for phi, sign in zip(loss(table, None), (1, -1), strict=True):
        expected = [[0.5] * 3, [expit(sign)] * 3]
        np.testing.assert_allclose(phi.missing_probability(at), expected)


@pytest.mark.parametrize("share", [None, 0.0, 0.7])
def test_values_are_lost_as_often_as_the_runs_phi_says(make_run, share):
    runs = [make_run(share=share, number=number) for number in range(30)]
    lost = [np.isnan(run.numerator) for run in runs]
    phi = [run.phi.missing_probability(run.complete) for run in runs]
    excess = np.concatenate([nan - p for nan, p in zip(lost, phi, strict=True)])
    # By value as well as in all: below and above the mean.
    for part in (excess, excess[np.concatenate([run.complete for run in runs]) > 0]):
        assert abs(part.mean()) < 4 * 0.5 / np.sqrt(part.size)


def test_what_is_not_lost_stays_and_only_lost_values_are_looked_up(make_run):
    run = make_run(queries=5)
    lost, queried = np.isnan(run.numerator), ~np.isnan(run.revealed)
    np.testing.assert_array_equal(run.numerator[~lost], run.complete[~lost])
    np.testing.assert_array_equal(run.revealed[queried], run.complete[queried])
    assert (queried.sum(axis=0) == 5).all()
    assert lost[queried].all()
    nothing = make_run(share=0.0)
    assert not np.isnan(nothing.numerator).any()
    assert np.isnan(nothing.revealed).all()


@pytest.mark.parametrize("variant", ["published", "corrected"])
def test_nan_is_filled_by_means(variant):
    """Published, a mean of each split; corrected, one that doesn't tell the class."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (800, 1)) + 10.0 * (np.arange(800) >= 300)[:, None]
    X[rng.random(800) < 0.3] = np.nan
    table = RealTable(X, np.arange(800) >= 300)
    run = draw_run(table, SplitSizes(150, 100, 20), 0.0, rng, Conditions(variant))
    for part in (run.denominator, run.complete, run.calibration, run.test):
        values, counts = np.unique(part, return_counts=True)
        fill = values[counts.argmax()]
        others = part[part != fill]
        assert len(values) == 4
        if variant == "corrected":
            assert values[0] == fill or values[-1] == fill
        else:
            assert others.mean() == pytest.approx(fill)


def simulated(name, n_rows=500, n_runs=3, **kwargs):
    simulation = getattr(simulations, name)(**kwargs)
    experiment = Simulated(
        id=name, title="", simulation=lambda _: simulation, n_rows=lambda _: n_rows
    )
    return [experiment.draw(0.0, number, Conditions()) for number in range(n_runs)]


def scored(method, runs):
    return [(run, score_run(method, run, Conditions())) for run in runs]


def powers(method, runs):
    return np.array([certified_power(*pair) for pair in scored(method, runs)])


@pytest.mark.parametrize("method", ["M-KLIEP", "CC-KLIEP"])
@pytest.mark.parametrize("name", ["np_mixture", "naive_bayes"])
def test_a_run_is_fitted_as_by_the_estimators(name, method):
    runs = simulated(name)
    phi = {1: runs[0].phi} if method == "M-KLIEP" else "ignore"
    estimator = mr.KLIEP(missingness=phi, normalize="horvitz-thompson")
    if name == "naive_bayes":
        estimator = mr.NaiveBayesRatio(estimator)
    for run, score in scored(method, runs):
        fitted = estimator.fit(*stack_samples(run.numerator, run.denominator))
        np.testing.assert_allclose(score.coef, fitted.coef_, rtol=1e-6)
        expected = fitted.predict_log_ratio(run.calibration)
        assert np.ptp(score.at(run.calibration) - expected) < 1e-5


@pytest.mark.parametrize("method", ["M-KLIEP", "True ratio"])
def test_power_is_that_on_fresh_points(method):
    runs = simulated("np_mixture")
    fresh = runs[0].origin.numerator.sample(200_000, np.random.default_rng(9))
    for pair in scored(method, runs):
        expected = (certified_excess(*pair)(fresh) > 0).mean()
        assert certified_power(*pair) == pytest.approx(expected, abs=5e-3)


@pytest.mark.parametrize("method", ["True ratio", "M-KLIEP", "CC-KLIEP"])
def test_boundaries_are_where_scores_meet_their_thresholds(method):
    boundary, heights = EXPERIMENTS["np_boundary"], [-2.0, 0.0, 2.0, 6.0]
    (values,) = boundary.measure(heights, range(2), [method], Conditions())
    runs = [boundary.draw(500.0, number, Conditions()) for number in range(2)]
    for x1, pair in zip(values, scored(method, runs), strict=True):
        excess = certified_excess(*pair)(np.stack([x1, heights], axis=1))
        np.testing.assert_allclose(excess, 0.0, atol=1e-9)


@pytest.mark.parametrize("name", POWERS)
def test_the_true_ratio_is_the_most_powerful(name):
    experiment = EXPERIMENTS[name]
    assert experiment.methods == ("True ratio", "M-KLIEP", "CC-KLIEP")
    best, ours, worst = experiment.measure(
        [experiment.x[-1]], range(40), experiment.methods, Conditions()
    )
    assert best.mean() > ours.mean() > worst.mean()


def test_thresholds_are_the_classifiers(make_run):
    run = make_run("corrected")
    ratio = mr.NaiveBayesRatio().fit(*stack_samples(run.complete, run.denominator))
    classifier = mr.NeymanPearsonClassifier(ratio, alpha=0.2, delta=0.05)
    expected = classifier.calibrate(run.calibration).threshold_
    scores = ratio.decision_function(run.calibration)
    # The classifier moves its threshold up by what rounding may do.
    assert 0 <= expected - certified_threshold(scores, 0.2, 0.05) < 1e-5
    # Too few rows certify nothing, and nothing is classified as class 1.
    assert np.isinf(certified_threshold(scores[:10], 0.1, 0.1))


def test_published_counts_scores_at_the_threshold_and_corrected_does_not():
    experiment, score = EXPERIMENTS["ctg_vary_alpha"], Score(lambda rows: rows)

    def power(calibration, test, alpha, strict):
        run = Run(*[None] * 5, calibration, test=test, strict=strict)
        return experiment.measured(run, score, [alpha])

    calibration, test = np.repeat([0.0, 1.0], [180, 20]), np.repeat([0.0, 1.0], 50)
    assert power(calibration, test, 0.2, strict=False) == [1.0]
    assert power(calibration, test, 0.2, strict=True) == [0.5]
    # Too few calibration rows give no power.
    assert power(np.arange(5.0), np.arange(10.0), 0.1, strict=False) == [0.0]


@pytest.mark.parametrize("variant", ["published", "corrected"])
@pytest.mark.parametrize("name", ["fire_vary_alpha", "fire_vary_missing"])
def test_both_experiments_run_on_any_table(monkeypatch, table, name, variant):
    monkeypatch.setattr(experiments, "load_table", lambda *_, **__: table)
    experiment = EXPERIMENTS[name]
    small = replace(experiment, sizes=SplitSizes(150, 50, 10))
    points = experiment.x[1:3] if experiment.shares_fits else experiment.x[1:2]
    powers = small.measure(points, range(2), experiment.methods, Conditions(variant))
    assert powers.shape == (len(experiment.methods), 2, len(points))
    assert ((powers >= 0) & (powers <= 1)).all()


@pytest.mark.data
@pytest.mark.parametrize(
    ("variant", "controlled", "calibration"),
    [("published", 474, 237), ("corrected", 471, 234)],
)
def test_ctg_has_the_papers_sizes(variant, controlled, calibration):
    table = load_table("ctg", corrected=variant == "corrected")
    assert np.bincount(table.is_numerator).tolist() == [controlled, 1655]
    run = EXPERIMENTS["ctg_vary_alpha"].draw(0.1, 0, Conditions(variant))
    parts = run.denominator, run.calibration, run.numerator, run.test
    assert [len(part) for part in parts] == [237, calibration, 1555, 100]


@pytest.mark.data
@pytest.mark.parametrize("variant", ["published", "corrected"])
def test_weights_beat_complete_cases_on_the_data_sets(variant):
    for name, point, runs in [
        ("ctg_vary_missing", 0.8, 20),
        ("weather_vary_missing", 0.5, 1),
    ]:
        known, learned, ignored = EXPERIMENTS[name].measure(
            [point], range(runs), QUICK, Conditions(variant)
        )
        assert ignored.mean() < min(known.mean(), learned.mean())


def test_fire_has_the_papers_sizes_and_says_how_to_get_its_file(tmp_path, monkeypatch):
    experiment = EXPERIMENTS["fire_vary_alpha"]
    assert experiment.sizes == (44_757 - 24_757, 17_873 - 12_873, 50)
    assert EXPERIMENTS["fire_vary_missing"].sizes.queries == 10
    monkeypatch.setenv("MISSRATIO_DATA", str(tmp_path))
    why = experiment.unavailable()
    assert "smoke_detection_iot.csv" in why
    assert "missratio data fetch fire" in why


@pytest.mark.data
def test_points_of_alpha_share_their_runs():
    experiment = EXPERIMENTS["ctg_vary_alpha"]
    values = experiment.measure([0.05, 0.1, 0.3], range(3), QUICK, Conditions())
    alone = experiment.measure([0.1], range(1, 2), QUICK, Conditions())
    assert (np.diff(values, axis=2) >= 0).all()
    np.testing.assert_allclose(alone[:, 0, 0], values[:, 1, 1])


@pytest.mark.data
def test_each_correction_changes_what_it_mends_and_nothing_else():
    experiment = EXPERIMENTS["ctg_vary_missing"]
    published, learning, data, strict = (
        experiment.measure([0.6], range(4), QUICK, Conditions(variant))
        for variant in ("published", "learning", "data", "threshold")
    )
    # With φ known there is nothing to learn.
    np.testing.assert_array_equal(learning[0], published[0])
    assert (learning[1] != published[1]).any()
    # The number of rows differs, and with it every split.
    assert (data[0] != published[0]).any()
    assert (strict <= published).all()


def test_corrections_leave_simulations_alone():
    experiment = EXPERIMENTS["naive_bayes"]
    both = [
        experiment.measure([0.5], range(3), ["M-KLIEP"], Conditions(variant))
        for variant in ("published", "corrected")
    ]
    np.testing.assert_array_equal(*both)
