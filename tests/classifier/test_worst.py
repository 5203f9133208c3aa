"""Every φ of a region has its say, and costs no more than need be."""

from dataclasses import replace

import numpy as np
import pytest
from classifiers import Total, learned

import missratio as mr
from missratio.classifier.promise import Weighted

# One table in twenty casts doubt on a right φ.
pytestmark = pytest.mark.filterwarnings("ignore:The data cast doubt")


@pytest.mark.parametrize(
    ("d", "rowwise", "seed"),
    [(1, True, 0), (1, False, 0), (2, False, 0), (2, False, 1)],
)
def test_no_phi_of_the_region_asks_for_a_larger_threshold(d, rowwise, seed):
    X, y, given, _ = learned(2000, d, 100, seed, rowwise, intercept=-1.0)
    # A rule that draws nothing, so that samples made again are the same.
    model = mr.NeymanPearsonClassifier(
        Total(0), 0.3, 0.1, missingness={0: given}, rule="bernstein",
        random_state=0,
    ).fit(X, y)  # fmt: skip
    calibration, held = model.calibration_, X[model.calibration_index_]
    scores = np.where(np.isnan(held).any(axis=1), -np.inf, held[:, 0])
    rng, asked = np.random.default_rng(0), []
    for k in range(len(given.region(0.05)[0]) if d == 1 else 150):
        points = [
            region[k if d == 1 else rng.integers(len(region))]
            for region in given.region(0.05)
        ]
        first, slope = np.array(points).T
        phi = mr.LogisticMissingness(first[0] if rowwise else first, slope, rowwise)
        trust = replace(calibration.trust, point=phi)
        sample = Weighted.by(replace(trust, point=None), held, scores).sample(trust)
        asked.append(calibration.rule.select(sample, 0.3, 0.05).threshold)
    assert model.threshold_ == pytest.approx(max(asked), rel=1e-4) or d > 1
    assert model.threshold_ >= max(asked)
    # Nor at other levels, among those that were kept for them.
    own = [each.threshold for each in calibration.select([0.15, 0.3, 0.6])]
    assert own == sorted(own, reverse=True)
    assert own[1] == model.threshold_


def test_a_region_of_many_dimensions_is_left_to_the_band():
    X, y, given, _ = learned(2000, 2, 100, rowwise=True, intercept=-1.0)
    model = mr.NeymanPearsonClassifier(
        Total(0), 0.3, 0.1, missingness={0: given}, on_infeasible="reject_all",
        random_state=0,
    ).fit(X, y)  # fmt: skip
    assert model.calibration_.trust.point is None
    assert model.calibration_.sample.edges is not None


def weak_instruments(seed, rho, d=4, intercept=-1.2, slope=1.0, n=3000):
    """Rows of both classes, and others without a label; class 0 loses column 0."""
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(np.full((d, d), rho) + (1 - rho) * np.eye(d))
    X0 = rng.normal(size=(n, d)) @ root.T
    X1 = rng.normal(size=(1000, d)) @ root.T + 1.0
    log_odds = intercept + slope * X0[:, 0]
    X0[rng.uniform(size=n) < 1 / (1 + np.exp(-log_odds)), 0] = np.nan
    fresh = rng.normal(size=(20_000, d)) @ root.T
    return np.concatenate([X0, X1]), np.repeat([0, 1], [n, 1000]), fresh


def from_table(X, y, seed):
    known = mr.learn_missingness(X[y == 0])
    return mr.NeymanPearsonClassifier(
        mr.KLIEP(), 0.1, 0.1, missingness={0: known}, random_state=seed,
        on_infeasible="reject_all",
    ).fit(X, y)  # fmt: skip


@pytest.mark.filterwarnings("ignore::missratio.learning.MissingnessWarning")
@pytest.mark.parametrize("seed", [7, 8, 12, 14])
def test_a_steep_phi_is_not_the_mildest_once_its_rows_are_out_of_reach(seed):
    # Tables in which the other columns say nothing of φ, and the φ that is worst over
    # all rows certifies an error of 0.13 and more.
    X, y, fresh = weak_instruments(seed, 0.0, 3, -0.5, 0.6)
    model = from_table(X, y, seed)
    assert (model.predict(fresh) == 1).mean() <= 0.1


@pytest.mark.filterwarnings("ignore::missratio.learning.MissingnessWarning")
def test_a_phi_of_the_region_may_give_an_observed_row_no_chance():
    X, y, fresh = weak_instruments(21, 0.2)
    model = from_table(X, y, 21)
    assert (model.predict(fresh) == 1).mean() <= 0.1


def test_it_costs_less_power_than_a_band_and_keeps_the_promise():
    alpha, repeats, z = 0.1, 15, np.linspace(-6, 6, 6001)[:, None]
    laws = [np.exp(-((z[:, 0] - shift) ** 2) / 2) for shift in (0.0, 1.5)]
    powers, broken = {"auto": [], "thinning": []}, 0
    for seed in range(repeats):
        X, y, given, _ = learned(2000, 1, 100, seed, intercept=-1.0, n1=1000)
        for rule, found in powers.items():
            model = mr.NeymanPearsonClassifier(
                Total(0), alpha, 0.05, missingness={0: given}, rule=rule,
                on_infeasible="reject_all", random_state=seed,
            )  # fmt: skip
            above = model.fit(X, y).predict(z) == 1
            error, power = ((above * law).sum() / law.sum() for law in laws)
            found.append(power)
            broken += error > alpha
        assert model.certificate_.missingness_delta == 0.025
    assert np.mean(powers["auto"]) > np.mean(powers["thinning"]) + 0.01
    assert broken <= 3
