"""The likelihood-ratio region, against its definition."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, xlogy
from scipy.stats import chi2

from missratio.learning.evidence import Evidence, fit_evidence
from missratio.learning.learned import _outline
from missratio.learning.region import (
    LookupCriterion,
    _directions,
    inverse_information,
    outline,
)


def evidence_of(n=200, m=15, seed=0, n_missing=90, shift=0.8, d=1):
    rng = np.random.default_rng(seed)
    return Evidence.collect(
        rng.normal(size=(d, n)), rng.normal(shift, 1.0, (d, m)), n_missing
    )


def separated():
    observed, revealed = np.linspace(-2.0, 1.0, 60), np.array([1.4, 1.6, 1.7])
    return Evidence.collect(observed[None], revealed[None], 20)


def region(evidence, delta):
    theta = fit_evidence([evidence], penalised=True).theta[0]
    return _outline(evidence, theta, None, delta), theta


def fall(evidence, points):
    """Falls at raw (a, β), and their corrected (α, β)."""
    criterion = LookupCriterion(evidence)
    standard = criterion.coordinates.standardise(points)
    corrected = criterion.coordinates.restore(criterion.corrected(standard))
    return criterion(standard), corrected


def profile(evidence, alpha, beta):
    """Scott and Wild's profile likelihood: the stationary point in u, by search.

    It is a minimum in u, for the multinomial part is concave in the masses.
    """
    m, rest = evidence.revealed_mass, evidence.n_missing - evidence.revealed_mass

    def value(u):
        score = alpha + u + beta * evidence.values[0]
        likelihood = (evidence.mass * (evidence.outcome * score)).sum()
        likelihood -= (evidence.mass * np.logaddexp(0.0, score)).sum()
        return likelihood - m * u - xlogy(rest, -np.expm1(u))

    found = minimize_scalar(value, bounds=(-12.0, -1e-9), method="bounded",
                            options={"xatol": 1e-10})  # fmt: skip
    return found.fun


@pytest.mark.parametrize("shift", [-1.0, 0.0, 0.8])
def test_the_fall_is_that_of_the_profile_likelihood(shift):
    evidence = evidence_of(shift=shift)
    fits = fit_evidence([evidence], penalised=False)
    theta = fits.theta[0]
    points = theta + np.array([[0.0, 0.0], [0.3, 0.1], [-0.5, 0.4], [0.2, -0.6]])
    falls, corrected = fall(evidence, points)
    best = profile(evidence, theta[0] - evidence.sampling_offset, theta[1])
    for found, (alpha, beta) in zip(falls, corrected, strict=True):
        expected = 2 * (best - profile(evidence, alpha, beta))
        assert found == pytest.approx(expected, abs=1e-5)


def test_king_and_zengs_estimate_is_the_maximum():
    evidence = evidence_of()
    fits = fit_evidence([evidence], penalised=False)
    theta = fits.theta[0]
    found, corrected = fall(evidence, theta[None])
    assert found[0] == pytest.approx(0.0, abs=1e-6)
    assert corrected[0, 0] == pytest.approx(theta[0] - np.log(15 / 90), abs=1e-4)
    around = theta + np.random.default_rng(0).normal(0.0, 0.5, (200, 2))
    assert (fall(evidence, around)[0] > 0.0).all()


@pytest.mark.parametrize("delta", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("d", [1, 3])
def test_points_lie_where_the_fall_is_chi_squares_quantile(delta, d):
    evidence = evidence_of(d=d)
    points, _ = region(evidence, delta)
    limit = chi2.ppf(1.0 - delta, 1 + d)
    for alpha, *beta in points:
        # Back to the sampled intercept: the one at which the correction gives α.
        p = alpha + np.array(beta) @ evidence.values
        low, high = -30.0, 0.0
        for _ in range(80):
            u = (low + high) / 2
            expected = expit(p + u) @ evidence.mass
            share = np.log(expected / (expected + evidence.n_missing - 15))
            low, high = (u, high) if share > u else (low, u)
        found = fall(evidence, np.array([[alpha + low, *beta]]))[0]
        assert found[0] == pytest.approx(limit, rel=0.01)


def brute_force_extremes(evidence, theta, delta, at, reach):
    """Extremes of α + βz over all points of a fine grid that are in the region."""
    a, b = (np.linspace(-r, r, 161) for r in reach)
    grid = theta + np.stack(np.meshgrid(a, b), axis=-1).reshape(-1, 2)
    falls, corrected = fall(evidence, grid)
    inside = corrected[falls <= chi2.ppf(1.0 - delta, 2)]
    scores = inside[:, :1] + inside[:, 1:] * at
    return scores.min(axis=0), scores.max(axis=0)


@pytest.mark.parametrize("m", [4, 15, 90])
def test_its_extremes_are_those_of_all_points_within(m):
    evidence = evidence_of(m=m)
    points, theta = region(evidence, 0.05)
    at = np.array([-2.0, 0.0, 1.0, 3.0])
    scores = points[:, :1] + points[:, 1:] * at
    reach = 7.0 * np.sqrt(np.diagonal(inverse_information(evidence, theta)))
    low, high = brute_force_extremes(evidence, theta, 0.05, at, reach)
    spread = high - low
    assert (np.abs(scores.min(axis=0) - low) < 0.04 * spread).all()
    assert (np.abs(scores.max(axis=0) - high) < 0.04 * spread).all()


def test_separated_values_leave_the_steepest_of_slopes_possible():
    evidence = separated()
    points, _ = region(evidence, 0.05)
    at = np.array([-2.0, 0.0, 1.2, 3.0])
    scores = points[:, :1] + points[:, 1:] * at
    # In the gap anything is possible, and beyond the revealed values always missing.
    assert scores[:, 2].max() > 20.0
    assert scores[:, 2].min() < -20.0
    assert scores[:, 3].max() > 20.0
    # Where values were observed, not.
    assert scores[:, :2].max() < 1.0
    assert np.isfinite(points).all()


@pytest.mark.parametrize(
    "evidence", [evidence_of(), separated()], ids=["", "separated"]
)
def test_it_grows_as_delta_falls(evidence):
    at = np.array([-2.0, 0.0, 1.0, 3.0])
    low, high = np.full(4, np.inf), np.full(4, -np.inf)
    for delta in (0.9, 0.5, 0.1, 0.01, 1e-4):
        points, theta = region(evidence, delta)
        scores = points[:, :1] + points[:, 1:] * at
        slack = 2e-3 * (scores.max(axis=0) - scores.min(axis=0))
        assert (scores.min(axis=0) <= low + slack).all()
        assert (scores.max(axis=0) >= high - slack).all()
        low, high = scores.min(axis=0), scores.max(axis=0)
        estimate = theta[0] - evidence.sampling_offset + theta[1] * at
        assert (low - slack <= estimate).all()
        assert (estimate <= high + slack).all()


@pytest.mark.parametrize("width", [1, 2, 3, 6])
def test_directions_are_unit_vectors_each_with_its_opposite(width):
    directions = _directions(width)
    assert np.linalg.norm(directions, axis=1) == pytest.approx(1.0)
    for direction in directions[:5]:
        assert np.abs(directions + direction).max(axis=1).min() < 1e-12
    assert (_directions(width) == directions).all()
    assert np.abs(directions.mean(axis=0)).max() < 1e-12


def test_a_region_of_two_parts_is_outlined_whole():
    def distance(points):
        level, slope = points.T
        valley = np.minimum((slope - 1.0) ** 2, (slope + 1.5) ** 2)
        # It bends: the level goes along with the slope.
        return valley / 0.01 + (level - 0.3 * slope) ** 2 / 0.04

    points = outline(distance, np.array([0.3, 1.0]), np.array([0.2, 0.1]), 4.0)
    for slope in (1.0, -1.5):
        part = points[np.abs(points[:, 1] - slope) < 0.5]
        assert part[:, 1].min() == pytest.approx(slope - 0.2, abs=0.05)
        assert part[:, 1].max() == pytest.approx(slope + 0.2, abs=0.05)
        middle = part[np.abs(part[:, 1] - slope) < 0.02]
        if len(middle):
            assert middle[:, 0].min() == pytest.approx(0.3 * slope - 0.4, abs=0.05)
            assert middle[:, 0].max() == pytest.approx(0.3 * slope + 0.4, abs=0.05)
    assert not ((points[:, 1] > -1.2) & (points[:, 1] < 0.7)).any()


def test_where_nothing_is_possible_there_is_no_outline():
    points = outline(
        lambda points: np.full(len(points), 9.0), np.zeros(2), np.ones(2), 4.0
    )
    assert points.shape == (0, 2)
