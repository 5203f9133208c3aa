"""Which φ the evidence leaves possible: a likelihood-ratio confidence region.

Of n_missing missing values m were revealed, by chance. With the law of the values left
open, the profile likelihood of φ = expit(α + βᵀz) is Scott and Wild's (1997):

    ℓ(α, β) = Σ log-likelihood of "revealed" with log-odds a + βᵀz
              − m u − (n_missing − m) log(1 − e^u),      a = α + u,

stationary in u, which is where e^u = Σp / (Σp + n_missing − m), p the fitted
probabilities. So a point (a, β) gives (α, β) and ℓ in closed form. Twice the fall of ℓ
from its largest value is χ² in the limit, with a degree of freedom for each parameter,
and close to it from a handful of revealed values on. King and Zeng's estimate is the
maximum, at u = log(m / n_missing).
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri, xlogy
from scipy.stats import chi2, qmc

from missratio._typing import FloatArray
from missratio.learning._evidence import Evidence
from missratio.learning._logistic import LARGEST_SCORE

DIRECTIONS = 64
BISECTIONS = 30
# A ray that doesn't leave the region within so many standard errors is cut there: the
# region has no bound on that side.
FARTHEST = 2.0**10


def boundary(
    evidence: Evidence,
    theta: FloatArray,
    information_inverse: FloatArray,
    highest: float,
    delta: float,
) -> FloatArray:
    """Points on the boundary of the region that holds the truth with probability 1 − δ.

    Parameters
    ----------
    evidence : Evidence
    theta : ndarray of shape (n_parameters,)
        The estimate, its intercept not corrected; within the region.
    information_inverse : ndarray of shape (n_parameters, n_parameters)
    highest : float
        The largest log-likelihood of "revealed".
    delta : float

    Returns
    -------
    ndarray of shape (n_points, n_parameters)
        Corrected (α, β), on rays into all directions.
    """
    width = len(theta)
    # Firth's estimate may lie outside a small region, which then is made to reach it.
    at_estimate = float(_fall(evidence, theta[None], highest)[0][0])
    limit = max(float(chi2.ppf(1.0 - delta, width)), at_estimate)
    root = np.linalg.cholesky(information_inverse)
    rays = np.sqrt(limit) * _directions(width) @ root.T
    # 1. Go out on every ray until it has left the region.
    near, far = np.zeros(len(rays)), np.ones(len(rays))
    inside = np.ones(len(rays), dtype=bool)
    while (inside := inside & (far < FARTHEST)).any():
        outside, _ = _fall(evidence, theta + far[:, None] * rays, highest)
        inside &= outside <= limit
        near, far = np.where(inside, far, near), np.where(inside, 2.0 * far, far)
    # 2. Halve the last stretch; what can't be told apart lies outside.
    for _ in range(BISECTIONS):
        middle = (near + far) / 2.0
        within = _fall(evidence, theta + middle[:, None] * rays, highest)[0] <= limit
        near, far = np.where(within, middle, near), np.where(within, far, middle)
        if (far - near <= 1e-4 * far).all():
            break
    return _fall(evidence, theta + far[:, None] * rays, highest)[1]


def _fall(
    evidence: Evidence, points: FloatArray, highest: float
) -> tuple[FloatArray, FloatArray]:
    """Twice the fall of the profile likelihood at points (a, β), and their (α, β)."""
    design = np.concatenate([np.ones((1, len(evidence.mass))), evidence.values])
    score = np.clip(points @ design, -LARGEST_SCORE, LARGEST_SCORE)
    odds = np.exp(score)
    expected = (odds / (1.0 + odds)) @ evidence.mass
    first = slice(evidence.n_revealed)
    likelihood = score[:, first] @ evidence.mass[first]
    likelihood -= np.log1p(odds) @ evidence.mass
    m, rest = evidence.revealed_mass, evidence.n_missing - evidence.revealed_mass
    share = expected / (expected + rest)
    likelihood += _sampling(share, m, rest)
    best = highest + _sampling(np.array(m / evidence.n_missing), m, rest)
    corrected = points.copy()
    corrected[:, 0] -= np.log(share)
    return 2.0 * (best - likelihood), corrected


def _sampling(share: FloatArray, m: float, rest: float) -> FloatArray:
    """−m u − (n_missing − m) log(1 − e^u), with e^u = share."""
    return np.asarray(-m * np.log(share) - xlogy(rest, 1.0 - share))


def _directions(width: int) -> FloatArray:
    """Unit vectors that are spread evenly, each with its opposite."""
    if width == 1:
        return np.array([[1.0], [-1.0]])
    if width == 2:
        angle = np.linspace(0.0, 2.0 * np.pi, DIRECTIONS, endpoint=False)
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)
    normal = ndtri(qmc.Sobol(width, rng=0).random_base2(DIRECTIONS.bit_length()))
    unit = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    return np.concatenate([unit, -unit])
