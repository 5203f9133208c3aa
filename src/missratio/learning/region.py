"""Which φ the evidence leaves possible: a confidence region of its parameters.

Of n_missing missing values m were revealed, by chance. With the law of the values left
open, the profile likelihood of φ = expit(α + βᵀz) is Scott and Wild's (1997):

    ℓ(α, β) = Σ log-likelihood of "revealed" with log-odds a + βᵀz
              − m u − (n_missing − m) log(1 − e^u),      a = α + u,

stationary in u, which is where e^u = Σp / (Σp + n_missing − m), p the fitted
probabilities. So a point (a, β) gives (α, β) and ℓ in closed form. Twice the fall of ℓ
from its largest value is χ² in the limit, with a degree of freedom for each parameter,
and close to it from a handful of revealed values on. King and Zeng's estimate is the
maximum, at u = log(m / n_missing).

What the table says by itself is Anderson and Rubin's statistic of its moment equations
(`ShadowEvidence.criterion`), which is χ² at the true parameters however weak the
instruments are. Where values were looked up too, they add the fall of their likelihood
in β alone, with α profiled out, since the table knows how many are missing. That sum
may exceed its value at the estimate by as much as a χ² may.

Points on the boundary of a region are found along rays from the estimate. Where the
other columns say little of a slope, the moment equations have more than one
near-solution, and the slopes that they leave possible can be two intervals, or all. So
the table's region is also looked for slope by slope: for each, the level that fits
best, and from there how far levels go either way. Parameters at which a few rows have
all the odds are never ruled out by sums over rows, and don't count there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from scipy.special import ndtri, xlogy
from scipy.stats import chi2, qmc

from missratio._base.typing import BoolArray, FloatArray
from missratio.learning.evidence import (
    LARGEST_SCORE,
    Coordinates,
    Evidence,
    balanced_intercepts,
    fit_evidence,
)
from missratio.learning.shadow import ShadowEvidence

DIRECTIONS = 64
BISECTIONS = 30
FARTHEST = 2.0**10
# Standard errors up to which a likelihood is looked up in a table.
TABULATED = 12.0
# From so many rows on the moments' spread at a point tells whether it is possible.
FEWEST_ROWS = 8.0
# Slopes to try: about the estimate by standard errors, and all over the real line by
# standard deviations of the values; beyond the last a logistic function is a step.
NEAR = np.linspace(-6.0, 6.0, 19)
WIDE = np.sinh(np.linspace(-5.0, 5.0, 25))
LEVELS = np.array([-12.0, -4.0, -1.5, -0.5, 0.0, 0.5, 1.5, 4.0, 12.0])
REFINEMENTS = 2
OUTLINE_BISECTIONS = 8
END_BISECTIONS = 4


def standard_covariance(
    evidence: Evidence, theta: FloatArray, shadow: ShadowEvidence | None
) -> tuple[FloatArray, Coordinates]:
    """The covariance of standardised parameters, at φ's (α, β), and how to restore it.

    The information of looked-up values, and where the table teaches, its own and the
    prior's with it.
    """
    coordinates = (shadow or evidence).coordinates
    standard = coordinates.standardise(theta)
    if shadow is None:
        return evidence.covariance(standard, coordinates), coordinates
    precision = _precision(evidence, standard, shadow)
    return np.asarray(np.linalg.inv(precision)), coordinates


def _precision(
    evidence: Evidence, standard: FloatArray, shadow: ShadowEvidence
) -> FloatArray:
    precision = shadow.information(standard) + shadow.prior
    if evidence.n_revealed:
        precision += evidence.precision(standard, shadow.coordinates)
    return precision


def region_boundary(
    evidence: Evidence, theta: FloatArray, shadow: ShadowEvidence | None, delta: float
) -> FloatArray:
    """Points (α, β) on the boundary of what holds the truth with probability 1 − δ.

    `theta` is the estimated (α, β).
    """
    criterion: _LookupCriterion | _TableCriterion = _LookupCriterion(evidence)
    if shadow is not None:
        criterion = _TableCriterion(shadow, evidence)
    centre, precision = criterion.standardised(theta)
    # 1. How far from the best is still possible. A penalised estimate may lie outside
    #    a small region, which is made to reach it.
    at_estimate = float(criterion(centre[None])[0][0])
    limit = float(chi2.ppf(1.0 - delta, len(centre)))
    from_estimate = shadow is not None and evidence.n_revealed > 0
    limit = limit + at_estimate if from_estimate else max(limit, at_estimate)
    # 2. Rays into all directions.
    covariance = np.linalg.inv(precision)
    root = np.linalg.cholesky(covariance)
    rays = np.sqrt(limit) * _directions(len(centre)) @ root.T

    def inside(reach: FloatArray) -> BoolArray:
        return criterion(centre + reach[:, None] * rays)[0] <= limit

    points = centre + _reach(inside, np.ones(len(rays)), BISECTIONS)[:, None] * rays
    # 3. A region that may bend, or have parts that no ray meets, slope by slope.
    if isinstance(criterion, _TableCriterion) and len(centre) == 2:
        errors = np.sqrt(np.diagonal(covariance))
        points = np.concatenate([points, _outline(criterion, centre, errors, limit)])
    return criterion.coordinates.restore(criterion.corrected(points))


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


Inside = Callable[[FloatArray], BoolArray]


def _reach(inside: Inside, first: FloatArray, steps: int) -> FloatArray:
    """How far regions reach from 0, seen from just outside: by doubling, then halving.

    What can't be told apart lies outside.
    """
    near, far = np.zeros(len(first)), first
    going = np.ones(len(first), dtype=bool)
    while (going := going & (far < FARTHEST * first)).any():
        going &= inside(far)
        near, far = np.where(going, far, near), np.where(going, 2.0 * far, far)
    return _bisect(inside, near, far, steps)


def _bisect(
    inside: Inside, near: FloatArray, far: FloatArray, steps: int
) -> FloatArray:
    """Outer ends of stretches from inside to outside that were halved a few times."""
    for _ in range(steps):
        if (np.abs(far - near) <= 1e-4 * np.abs(far)).all():
            break
        middle = (near + far) / 2.0
        within = inside(middle)
        near, far = np.where(within, middle, near), np.where(within, far, middle)
    return far


def _outline(
    criterion: _TableCriterion, estimate: FloatArray, errors: FloatArray, limit: float
) -> FloatArray:
    """Points (level, slope) on the boundary; none where no slope that is tried is in.

    Slopes are tried the most closely about the estimate.
    """

    def distance(levels: FloatArray, slopes: FloatArray) -> FloatArray:
        points = np.stack(np.broadcast_arrays(levels, slopes), axis=-1)
        away, freedom = criterion(points.reshape(-1, 2))
        return np.where(freedom < FEWEST_ROWS, np.inf, away).reshape(points.shape[:-1])

    def best(slopes: FloatArray) -> tuple[FloatArray, BoolArray]:
        """The best level of each slope, and whether it is possible there."""
        step, tried = np.full(len(slopes), errors[0]), LEVELS
        levels = np.full(len(slopes), estimate[0])
        for _ in range(1 + REFINEMENTS):
            grid = levels[:, None] + step[:, None] * tried
            away = distance(grid, slopes[:, None])
            place = away.argmin(axis=1)
            # The next grid spans the two neighbours of the best.
            beside = np.clip(place, 1, len(tried) - 2)
            gap = (tried[beside + 1] - tried[beside - 1]) / 2.0
            levels = np.take_along_axis(grid, place[:, None], axis=1)[:, 0]
            step, tried = step * gap, np.linspace(-1.0, 1.0, 5)
        return levels, away.min(axis=1) <= limit

    # 1. Which of many slopes are possible at their best level.
    slopes = np.unique(np.append(estimate[1] + errors[1] * NEAR, WIDE))
    levels, inside = best(slopes)
    if not inside.any():
        return np.empty((0, 2))
    # 2. The slopes just beyond the last of each stretch, which belong to the outline.
    change = np.flatnonzero(inside[1:] != inside[:-1])
    last = np.where(inside[change], change, change + 1)
    level = levels[last]

    def possible(slopes: FloatArray) -> BoolArray:
        nonlocal level
        levels, within = best(slopes)
        level = np.where(within, levels, level)
        return within

    beyond = slopes[np.where(inside[change], change + 1, change)]
    beyond = _bisect(possible, slopes[last], beyond, END_BISECTIONS)
    slopes = np.concatenate([slopes[inside], beyond])
    levels = np.concatenate([levels[inside], level])
    # 3. How far levels go for each, down and up.
    ends = []
    for sign in (-1.0, 1.0):

        def within(reach: FloatArray, sign: float = sign) -> BoolArray:
            return distance(levels + sign * reach, slopes) <= limit

        first = np.full(len(slopes), errors[0])
        reach = _reach(within, first, OUTLINE_BISECTIONS)
        ends.append(np.stack([levels + sign * reach, slopes], axis=1))
    return np.concatenate(ends)


class _LookupCriterion:
    """Twice the fall of Scott and Wild's likelihood, a χ² distance from the best.

    Points are standardised uncorrected (a, β).
    """

    def __init__(self, evidence: Evidence) -> None:
        self.evidence, self.coordinates = evidence, evidence.coordinates
        self._design = self.coordinates.design(evidence.values)

    @cached_property
    def _highest(self) -> float:
        return _highest_likelihood(self.evidence)

    def standardised(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The estimate (α, β) as a point, and the information that scales rays."""
        point = self.coordinates.standardise(theta)
        information, _ = self.evidence.information(point, self.coordinates)
        point[0] += self.evidence.sampling_offset
        return point, information

    def __call__(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The fall at points, and from how many values it is known."""
        m, rest = self.evidence.revealed_mass, self.evidence.unrevealed_mass
        likelihood, share = self._likelihood(points)
        sampled = np.array(m / self.evidence.n_missing)
        best = self._highest + _sampling(sampled, m, rest)
        fall = 2.0 * (best - likelihood - _sampling(share, m, rest))
        return fall, np.full(len(points), m)

    def corrected(self, points: FloatArray) -> FloatArray:
        """(α, β) at which points (a, β) are stationary in u."""
        corrected = points.copy()
        corrected[:, 0] -= np.log(self._likelihood(points)[1])
        return corrected

    def _likelihood(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """That of "revealed", and the share e^u of missing values that it expects."""
        likelihood, expected = _likelihood(self.evidence, points @ self._design)
        return likelihood, expected / (expected + self.evidence.unrevealed_mass)


class _TableCriterion:
    """The table's moments, and the fall in β of the likelihood of looked-up values.

    Points are (τ, β), where τ = 0 is the level at which φ expects as many missing
    values as there are: with weak instruments the region is a narrow band along
    τ = 0, which bends in (α, β). Of the share of missing values that was looked up, the
    intercept is known from these as well.
    """

    def __init__(self, shadow: ShadowEvidence, evidence: Evidence) -> None:
        self.shadow, self.evidence = shadow, evidence
        self.coordinates = shadow.coordinates
        values, self._mass = evidence.observed
        self._observed = self.coordinates.design(values)[1:]

    def corrected(self, points: FloatArray) -> FloatArray:
        """(α, β) of (τ, β)."""
        slopes, back = points[:, 1:], np.arange(len(points))
        if slopes.shape[1] == 1:
            # An outline has many levels for each slope.
            slopes, back = np.unique(slopes, return_inverse=True)
            slopes = slopes[:, None]
        offset = slopes @ self._observed
        highest = offset.max(axis=1)
        total = np.exp(offset - highest[:, None]) @ self._mass
        level = (np.log(self.evidence.n_missing / total) - highest)[back.ravel()]
        return np.concatenate([points[:, :1] + level[:, None], points[:, 1:]], axis=1)

    def standardised(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same, by the information of table, looked-up values and prior."""
        point = self.coordinates.standardise(theta)
        precision = _precision(self.evidence, point, self.shadow)
        at_zero = self.corrected(np.append(0.0, point[1:])[None])[0]
        score = at_zero[0] + point[1:] @ self._observed
        tilted = self._mass * np.exp(np.minimum(score, LARGEST_SCORE))
        linear = np.eye(len(point))
        linear[0, 1:] = -(self._observed @ tilted) / tilted.sum()
        point[0] -= at_zero[0]
        return point, linear.T @ precision @ linear

    def __call__(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The sum of both, and from how many rows of equal part it is known."""
        points = self.corrected(points)
        distance, freedom = self.shadow.criterion(points)
        if not self.evidence.n_revealed:
            return distance, freedom
        centre, level, highest = self._lookups
        along = (points - centre) @ level
        if points.shape[1] == 2:
            fall = np.interp(points[:, 1], *self._tabulated)
        else:
            fall = 2.0 * (highest - self._profile(points[:, 1:]))
        return distance + fall + along**2, freedom

    @cached_property
    def _tabulated(self) -> tuple[FloatArray, FloatArray]:
        """The fall of one slope's likelihood; it is taken not to fall on beyond."""
        centre, _, highest = self._lookups
        covariance = self.evidence.covariance(centre, self.coordinates)
        reach = TABULATED * np.sqrt(covariance[1, 1])
        slopes = centre[1] + np.linspace(-reach, reach, 161)
        return slopes, 2.0 * (highest - self._profile(slopes[:, None]))

    @cached_property
    def _lookups(self) -> tuple[FloatArray, FloatArray, float]:
        """Estimate, the root of what it says of the intercept, best likelihood."""
        evidence = self.evidence
        theta = fit_evidence(evidence, penalised=True).theta
        theta[0] -= evidence.sampling_offset
        centre = self.coordinates.standardise(theta)
        full = np.linalg.inv(evidence.covariance(centre, self.coordinates))
        share = evidence.revealed_mass / evidence.n_missing
        level = np.sqrt(share / full[0, 0]) * full[0]
        return centre, level, _highest_likelihood(evidence)

    def _profile(self, slopes: FloatArray) -> FloatArray:
        """The log-likelihood of "revealed" at slopes, its intercept the best."""
        evidence = self.evidence
        offset = slopes @ self.coordinates.design(evidence.values)[1:]
        first = balanced_intercepts(offset, evidence.mass, evidence.revealed_mass)
        return _likelihood(evidence, first[:, None] + offset)[0]


def _highest_likelihood(evidence: Evidence) -> float:
    """The largest log-likelihood of "revealed"."""
    fit = fit_evidence(evidence, penalised=False)
    return 0.0 if fit.separated else fit.log_likelihood


def _likelihood(evidence: Evidence, score: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log-likelihoods of "revealed" at log-odds, and how many they expect."""
    score = np.clip(score, -LARGEST_SCORE, LARGEST_SCORE)
    odds = np.exp(score)
    first = slice(evidence.n_revealed)
    likelihood = score[:, first] @ evidence.mass[first]
    likelihood -= np.log1p(odds) @ evidence.mass
    return likelihood, (odds / (1.0 + odds)) @ evidence.mass


def _sampling(share: FloatArray, m: float, rest: float) -> FloatArray:
    """−m u − (n_missing − m) log(1 − e^u), with e^u = share."""
    return np.asarray(-m * np.log(share) - xlogy(rest, 1.0 - share))
