"""The likelihood-ratio region, against its definition."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import xlogy
from scipy.stats import chi2

from missratio.learning.evidence import Evidence, fit_evidence
from missratio.learning.learned import region_boundary


def collect(observed, revealed, n_missing):
    """The evidence of values of shape (n_columns, n_values)."""
    d, n, m = *observed.shape, revealed.shape[1]
    values = np.concatenate([revealed, observed], axis=1)
    return Evidence(values.reshape(d, -1), m, np.ones(m + n), n_missing)


def evidence_of(n=200, m=15, seed=0, n_missing=90, shift=0.8, d=1):
    rng = np.random.default_rng(seed)
    observed, revealed = rng.normal(size=(d, n)), rng.normal(shift, 1.0, (d, m))
    return collect(observed, revealed, n_missing)


def region(evidence, delta):
    """Points on the boundary, and King and Zeng's estimate under Firth's penalty."""
    theta = fit_evidence(evidence, penalised=True).theta
    theta[0] -= evidence.sampling_offset
    return region_boundary(evidence, theta, None, delta), theta


def profile(evidence, alpha, beta):
    """Scott and Wild's profile likelihood: the stationary point in u, by search.

    It is a minimum in u, for the multinomial part is concave in the masses.
    """
    m, rest = evidence.n_revealed, evidence.n_unrevealed
    scores = alpha + np.asarray(beta) @ evidence.values

    def value(u):
        likelihood = (scores + u)[: evidence.n_revealed].sum()
        likelihood -= np.logaddexp(0.0, scores + u).sum()
        return likelihood - m * u - xlogy(rest, -np.expm1(u))

    found = minimize_scalar(value, bounds=(-12.0, -1e-9), method="bounded",
                            options={"xatol": 1e-10})  # fmt: skip
    return found.fun


def fall(evidence, points):
    """Twice the fall of the profile likelihood from its maximum, King and Zeng's."""
    theta = fit_evidence(evidence, penalised=False).theta
    best = profile(evidence, theta[0] - evidence.sampling_offset, theta[1:])
    return np.array([2 * (best - profile(evidence, a, b)) for a, *b in points])


@pytest.mark.parametrize("delta", [0.01, 0.05, 0.3])
@pytest.mark.parametrize(
    "evidence", [evidence_of(), evidence_of(shift=-1), evidence_of(d=3)]
)
def test_points_lie_where_the_fall_is_chi_squares_quantile(delta, evidence):
    points, theta = region(evidence, delta)
    limit = chi2.ppf(1.0 - delta, len(theta))
    assert fall(evidence, points[::3]) == pytest.approx(limit, rel=0.01)


@pytest.mark.parametrize("m", [4, 15, 90])
def test_its_extremes_are_those_of_all_points_within(m):
    evidence = evidence_of(m=m)
    points, theta = region(evidence, 0.05)
    reach = 1.3 * np.abs(points - theta).max(axis=0)
    a, b = (np.linspace(-r, r, 41) for r in reach)
    grid = theta + np.stack(np.meshgrid(a, b), axis=-1).reshape(-1, 2)
    inside = grid[fall(evidence, grid) <= chi2.ppf(0.95, 2)]
    at = np.array([-2.0, 0.0, 1.0, 3.0])
    scores, all_scores = (z[:, :1] + z[:, 1:] * at for z in (points, inside))
    spread = np.ptp(all_scores, axis=0)
    assert (np.abs(scores.min(axis=0) - all_scores.min(axis=0)) < 0.06 * spread).all()
    assert (np.abs(scores.max(axis=0) - all_scores.max(axis=0)) < 0.06 * spread).all()
