"""Which φ the evidence leaves possible: a confidence region of its parameters.

The outline of a region of (level, slope) that may bend, or fall into parts.

Where the other columns say little of a slope, the moment equations have more than one
near-solution, and the slopes that they leave possible can be two intervals, or all. So
the region is not looked for along rays from the estimate but slope by slope: for each,
the level that fits best, and from there how far levels go either way.

Parameters at which a few rows have all the odds are never ruled out by sums over rows,
and don't count here: what is near the estimate is found along rays from it.

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
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.special import expit, ndtri, xlogy
from scipy.stats import chi2, qmc

from missratio._base.typing import BoolArray, FloatArray
from missratio.learning.evidence import (
    LARGEST_SCORE,
    Coordinates,
    Evidence,
    fit_evidence,
)
from missratio.learning.shadow import ShadowEvidence


def fisher_information(
    evidence: Evidence, theta: FloatArray, coordinates: Coordinates
) -> FloatArray:
    """Σ p(1 − p) xxᵀ over known values, of standardised parameters.

    `theta` is standardised, its intercept not corrected.
    """
    return _information_and_expected(evidence, theta, coordinates)[0]


def _information_and_expected(
    evidence: Evidence, theta: FloatArray, coordinates: Coordinates
) -> tuple[FloatArray, float]:
    """Fisher's information, and how many revealed rows the fit expects."""
    design = coordinates.design(evidence.values)
    probability = expit(theta @ design)
    weights = evidence.mass * probability * (1.0 - probability)
    return (design * weights) @ design.T, float(probability @ evidence.mass)


def lookup_covariance(
    evidence: Evidence, theta: FloatArray, coordinates: Coordinates
) -> FloatArray:
    """The covariance of standardised parameters that looked-up values alone give.

    The inverse of Fisher's information, less what is certain about the intercept: of
    the n_missing missing values not a random number but m were revealed, which takes
    1/m − 1/n_missing from its variance.
    """
    information, expected = _information_and_expected(evidence, theta, coordinates)
    covariance = np.linalg.inv(information)
    rest = evidence.unrevealed_mass
    covariance[0, 0] -= 1.0 / expected - 1.0 / (expected + rest)
    return np.asarray(covariance)


def lookup_precision(
    evidence: Evidence, theta: FloatArray, coordinates: Coordinates
) -> FloatArray:
    """What looked-up values say beyond the table, of standardised parameters.

    Their law is that of the observed values tilted by e^(βᵀz): it says nothing of the
    intercept, which follows from how many are missing, and that the table knows as
    well. Only of the part of the missing values that was looked up, and that is left
    out of the table's account, they bring the intercept too.
    """
    full = np.linalg.inv(lookup_covariance(evidence, theta, coordinates))
    level = full[:, :1] @ full[:1] / full[0, 0]
    share = evidence.revealed_mass / evidence.n_missing
    return np.asarray(full - (1.0 - share) * level)


def standard_precision(
    evidence: Evidence, theta: FloatArray, shadow: ShadowEvidence
) -> FloatArray:
    """The information of table, looked-up values and prior together, standardised."""
    standard = shadow.coordinates.standardise(theta)
    at = standard.copy()
    at[0] -= evidence.sampling_offset
    precision = shadow.information(at) + shadow.prior
    if evidence.n_revealed:
        precision += lookup_precision(evidence, standard, shadow.coordinates)
    return precision


def standard_covariance(
    evidence: Evidence,
    theta: FloatArray,
    shadow: ShadowEvidence | None,
    coordinates: Coordinates,
) -> FloatArray:
    """The covariance of standardised parameters; arguments as of `covariance_of`."""
    if shadow is not None:
        return np.asarray(np.linalg.inv(standard_precision(evidence, theta, shadow)))
    return lookup_covariance(evidence, coordinates.standardise(theta), coordinates)


def covariance_of(
    evidence: Evidence, theta: FloatArray, shadow: ShadowEvidence | None = None
) -> FloatArray:
    """The covariance of estimated (α, β).

    Parameters
    ----------
    evidence : Evidence
    theta : ndarray of shape (n_parameters,)
        Where values were looked up, its intercept is not corrected.
    shadow : ShadowEvidence, optional
        What the table says by itself: its information and the prior's are added.
    """
    coordinates = (shadow or evidence).coordinates
    covariance = standard_covariance(evidence, theta, shadow, coordinates)
    return coordinates.restore_covariance(covariance)


def inverse_information(evidence: Evidence, theta: FloatArray) -> FloatArray:
    """The inverse of Fisher's information of (α, β), from looked-up values alone."""
    coordinates = evidence.coordinates
    standard = coordinates.standardise(theta)
    information = fisher_information(evidence, standard, coordinates)
    return coordinates.restore_covariance(np.asarray(np.linalg.inv(information)))


Distance = Callable[[FloatArray], FloatArray]

# Slopes to try: about the estimate by standard errors, and all over the real line by
# standard deviations of the values; beyond the last a logistic function is a step.
NEAR = np.linspace(-6.0, 6.0, 19)
WIDE = np.sinh(np.linspace(-5.0, 5.0, 25))
LEVELS = np.array([-12.0, -4.0, -1.5, -0.5, 0.0, 0.5, 1.5, 4.0, 12.0])
REFINEMENTS = 2
OUTLINE_BISECTIONS = 8
END_BISECTIONS = 4
FARTHEST = 2.0**10


def outline(
    distance: Distance,
    estimate: FloatArray,
    errors: FloatArray,
    limit: float,
) -> FloatArray:
    """Points (level, slope) on the boundary of where a distance is within a limit.

    Parameters
    ----------
    distance : callable
        Of points of shape (n_points, 2).
    estimate : ndarray of shape (2,)
        About which slopes are tried the most closely.
    errors : ndarray of shape (2,)
        Standard errors of level and slope, for the scale of the search.
    limit : float

    Returns
    -------
    ndarray of shape (n_points, 2)
        None of them where no slope that was tried is possible.
    """
    search = _Search(distance, float(estimate[0]), float(errors[0]), limit)
    # 1. Which of many slopes are possible at their best level.
    slopes = np.unique(np.append(estimate[1] + errors[1] * NEAR, WIDE))
    levels, inside = search.best(slopes)
    if not inside.any():
        return np.empty((0, 2))
    # 2. Where they end, more exactly.
    slopes, levels = search.with_ends(slopes, levels, inside)
    # 3. How far levels go for each, up and down.
    ends = [search.end(levels, slopes, sign) for sign in (-1.0, 1.0)]
    return np.concatenate([np.stack([end, slopes], axis=1) for end in ends])


class _Search:
    """Levels at which slopes are possible."""

    def __init__(
        self, distance: Distance, level: float, error: float, limit: float
    ) -> None:
        self.distance, self.limit = distance, limit
        self.level, self.error = level, error

    def best(self, slopes: FloatArray) -> tuple[FloatArray, BoolArray]:
        """The best level of each slope, and whether it is possible there."""
        step = np.full(len(slopes), self.error)
        levels = np.full(len(slopes), self.level)
        tried = LEVELS
        for _ in range(1 + REFINEMENTS):
            grid = levels[:, None] + step[:, None] * tried
            points = np.stack(
                [grid, np.broadcast_to(slopes[:, None], grid.shape)], axis=-1
            )
            found = self.distance(points.reshape(-1, 2)).reshape(grid.shape)
            place = found.argmin(axis=1)
            # The next grid spans the two neighbours of the best.
            beside = np.clip(place, 1, len(tried) - 2)
            gap = (tried[beside + 1] - tried[beside - 1]) / 2.0
            levels = np.take_along_axis(grid, place[:, None], axis=1)[:, 0]
            step, tried = step * gap, np.linspace(-1.0, 1.0, 5)
        return levels, found.min(axis=1) <= self.limit

    def with_ends(
        self, slopes: FloatArray, levels: FloatArray, inside: BoolArray
    ) -> tuple[FloatArray, FloatArray]:
        """Possible slopes, with the last of each stretch found by bisection."""
        change = np.flatnonzero(inside[1:] != inside[:-1])
        starts_inside = inside[change]
        near = np.where(starts_inside, slopes[change], slopes[change + 1])
        far = np.where(starts_inside, slopes[change + 1], slopes[change])
        level = np.where(starts_inside, levels[change], levels[change + 1])
        for _ in range(END_BISECTIONS if len(near) else 0):
            middle = (near + far) / 2.0
            found, within = self.best(middle)
            near, far = np.where(within, middle, near), np.where(within, far, middle)
            level = np.where(within, found, level)
        # What lies just beyond the end belongs to the outline.
        return (
            np.concatenate([slopes[inside], far]),
            np.concatenate([levels[inside], level]),
        )

    def end(self, levels: FloatArray, slopes: FloatArray, sign: float) -> FloatArray:
        """Just beyond the last possible level, from the best one up or down."""

        def within(distance: FloatArray) -> BoolArray:
            points = np.stack([levels + sign * distance, slopes], axis=1)
            return np.asarray(self.distance(points) <= self.limit)

        near, far = np.zeros(len(slopes)), np.full(len(slopes), self.error)
        going = np.ones(len(slopes), dtype=bool)
        while (going := going & (far < FARTHEST * self.error)).any():
            going &= within(far)
            near, far = np.where(going, far, near), np.where(going, 2.0 * far, far)
        for _ in range(OUTLINE_BISECTIONS):
            middle = (near + far) / 2.0
            inside = within(middle)
            near, far = np.where(inside, middle, near), np.where(inside, far, middle)
        return levels + sign * far


DIRECTIONS = 64
BISECTIONS = 30
PROFILE_STEPS = 50
# Standard errors up to which a likelihood is looked up in a table.
TABULATED = 12.0
# From so many rows on the moments' spread at a point tells whether it is possible.
FEWEST_ROWS = 8.0


class Criterion(Protocol):
    """How far standardised parameters are from the best, as a χ²."""

    @property
    def convex(self) -> bool:
        """Whether regions of it have one part, seen as a whole from the estimate."""

    def freedom(self, points: FloatArray) -> FloatArray:
        """From how many rows of equal part the distances of points are known."""

    @property
    def coordinates(self) -> Coordinates:
        """The coordinates that standardise the parameters."""

    def __call__(self, points: FloatArray) -> FloatArray:
        """Distances of points of shape (n_points, n_parameters)."""

    def corrected(self, points: FloatArray) -> FloatArray:
        """The same points with intercepts that are φ's."""


def boundary(
    criterion: Criterion,
    theta: FloatArray,
    precision: FloatArray,
    delta: float,
    *,
    from_estimate: bool,
) -> FloatArray:
    """Points on the boundary of what holds the truth with probability 1 − δ.

    Parameters
    ----------
    criterion : Criterion
    theta : ndarray of shape (n_parameters,)
        The estimate, standardised; within the region.
    precision : ndarray of shape (n_parameters, n_parameters)
        The information that rays are scaled by.
    delta : float
    from_estimate : bool
        Whether distances count from the estimate's own.

    Returns
    -------
    ndarray of shape (n_points, n_parameters)
        Corrected (α, β), on rays into all directions; and, of a region that may bend
        or have parts that no ray meets, slope by slope (`outline`).
    """
    width = len(theta)
    at_estimate = float(criterion(theta[None])[0])
    limit = float(chi2.ppf(1.0 - delta, width))
    # A penalised estimate may lie outside a small region, which is made to reach it.
    limit = limit + at_estimate if from_estimate else max(limit, at_estimate)
    covariance = np.linalg.inv(precision)
    root = np.linalg.cholesky(covariance)
    rays = np.sqrt(limit) * _directions(width) @ root.T
    # 1. Go out on every ray until it has left the region.
    near, far = np.zeros(len(rays)), np.ones(len(rays))
    inside = np.ones(len(rays), dtype=bool)
    while (inside := inside & (far < FARTHEST)).any():
        inside &= criterion(theta + far[:, None] * rays) <= limit
        near, far = np.where(inside, far, near), np.where(inside, 2.0 * far, far)
    # 2. Halve the last stretch; what can't be told apart lies outside.
    for _ in range(BISECTIONS):
        middle = (near + far) / 2.0
        within = criterion(theta + middle[:, None] * rays) <= limit
        near, far = np.where(within, middle, near), np.where(within, far, middle)
        if (far - near <= 1e-4 * far).all():
            break
    points = theta + far[:, None] * rays
    if width == 2 and not criterion.convex:
        errors = np.sqrt(np.diagonal(covariance))
        points = np.concatenate(
            [points, outline(_supported(criterion), theta, errors, limit)]
        )
    return criterion.coordinates.restore(criterion.corrected(points))


def _supported(criterion: Criterion) -> Callable[[FloatArray], FloatArray]:
    """The distance of points that enough rows speak of, infinite elsewhere."""

    def distance(points: FloatArray) -> FloatArray:
        few = criterion.freedom(points) < FEWEST_ROWS
        return np.where(few, np.inf, criterion(points))

    return distance


@dataclass(frozen=True)
class LookupCriterion:
    """Twice the fall of Scott and Wild's likelihood; points are uncorrected (a, β)."""

    evidence: Evidence
    convex = True

    @cached_property
    def coordinates(self) -> Coordinates:
        """The coordinates of the known values."""
        return self.evidence.coordinates

    @cached_property
    def highest(self) -> float:
        """The largest log-likelihood of "revealed"."""
        fit = fit_evidence([self.evidence], penalised=False)
        return 0.0 if fit.separated[0] else float(fit.log_likelihood[0])

    def __call__(self, points: FloatArray) -> FloatArray:
        """The fall at points."""
        return self._fall(points)[0]

    def freedom(self, points: FloatArray) -> FloatArray:
        """The number of values looked up."""
        return np.full(len(points), self.evidence.revealed_mass)

    def corrected(self, points: FloatArray) -> FloatArray:
        """(α, β) at which points (a, β) are stationary in u."""
        return self._fall(points)[1]

    def _fall(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        evidence = self.evidence
        likelihood, expected = _likelihood(
            evidence, points @ self.coordinates.design(evidence.values)
        )
        m, rest = evidence.revealed_mass, evidence.unrevealed_mass
        share = expected / (expected + rest)
        likelihood += _sampling(share, m, rest)
        best = self.highest + _sampling(np.array(m / evidence.n_missing), m, rest)
        corrected = points.copy()
        corrected[:, 0] -= np.log(share)
        return 2.0 * (best - likelihood), corrected


@dataclass(frozen=True)
class TableCriterion:
    """The table's moments, and the fall in β of the likelihood of looked-up values.

    Points are (τ, β), where τ = 0 is the level at which φ expects as many missing
    values as there are: with weak instruments the region is a narrow band along
    τ = 0, which bends in (α, β). Of the share of missing values that was looked up, the
    intercept is known from these as well.
    """

    shadow: ShadowEvidence
    evidence: Evidence
    convex = False

    @property
    def coordinates(self) -> Coordinates:
        """The coordinates of the observed values."""
        return self.shadow.coordinates

    @cached_property
    def _observed(self) -> tuple[FloatArray, FloatArray]:
        """Standardised observed values, and how many rows each stands for."""
        kept = slice(self.evidence.n_revealed, None)
        values = self.evidence.values[:, kept]
        return self.coordinates.design(values)[1:], self.evidence.mass[kept]

    def freedom(self, points: FloatArray) -> FloatArray:
        """The degrees of freedom of the moments' spread."""
        return self.shadow.freedom(self.corrected(points))

    def corrected(self, points: FloatArray) -> FloatArray:
        """(α, β) of (τ, β)."""
        values, mass = self._observed
        offset = points[:, 1:] @ values
        highest = offset.max(axis=1)
        total = np.exp(offset - highest[:, None]) @ mass
        level = np.log(self.evidence.n_missing / total) - highest
        return np.concatenate([points[:, :1] + level[:, None], points[:, 1:]], axis=1)

    def levelled(
        self, theta: FloatArray, precision: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """An estimate (α, β) and its information, as those of (τ, β)."""
        values, mass = self._observed
        at_zero = self.corrected(np.append(0.0, theta[1:])[None])[0]
        tilted = mass * np.exp(
            np.minimum(at_zero[0] + theta[1:] @ values, LARGEST_SCORE)
        )
        linear = np.eye(len(theta))
        linear[0, 1:] = -(values @ tilted) / tilted.sum()
        point = np.append(theta[0] - at_zero[0], theta[1:])
        return point, linear.T @ precision @ linear

    def __call__(self, points: FloatArray) -> FloatArray:
        """The sum of both."""
        points = self.corrected(points)
        distance = self.shadow.criterion(points)
        if not self.evidence.n_revealed:
            return distance
        centre, level, highest = self._lookups
        along = (points - centre) @ level
        if points.shape[1] == 2:
            slopes, falls = self._tabulated
            fall = np.interp(points[:, 1], slopes, falls)
        else:
            fall = 2.0 * (highest - self._profile(points[:, 1:]))
        return np.asarray(distance + fall + along**2)

    @cached_property
    def _tabulated(self) -> tuple[FloatArray, FloatArray]:
        """The fall of one slope's likelihood; it is taken not to fall on beyond."""
        centre, _, highest = self._lookups
        standard = centre.copy()
        standard[0] += self.evidence.sampling_offset
        covariance = lookup_covariance(self.evidence, standard, self.coordinates)
        reach = TABULATED * np.sqrt(covariance[1, 1])
        slopes = centre[1] + np.linspace(-reach, reach, 161)
        return slopes, 2.0 * (highest - self._profile(slopes[:, None]))

    @cached_property
    def _lookups(self) -> tuple[FloatArray, FloatArray, float]:
        """Estimate, the root of what it says of the intercept, best likelihood."""
        evidence = self.evidence
        fit = fit_evidence([evidence], penalised=False)
        highest = 0.0 if fit.separated[0] else float(fit.log_likelihood[0])
        theta = fit_evidence([evidence], penalised=True).theta[0]
        standard = self.coordinates.standardise(theta)
        covariance = lookup_covariance(evidence, standard, self.coordinates)
        full = np.linalg.inv(covariance)
        share = evidence.revealed_mass / evidence.n_missing
        level = np.sqrt(share / full[0, 0]) * full[0]
        standard[0] -= evidence.sampling_offset
        return standard, level, highest

    def _profile(self, slopes: FloatArray) -> FloatArray:
        """The log-likelihood of "revealed" at slopes, its intercept the best."""
        evidence = self.evidence
        offset = slopes @ self.coordinates.design(evidence.values)[1:]
        # The fitted probabilities sum to m. The logarithm of their sum is concave in
        # the intercept, so that Newton's steps from below never overshoot.
        highest = offset.max(axis=1)
        total = np.exp(offset - highest[:, None]) @ evidence.mass
        first = np.log(evidence.revealed_mass / total) - highest
        for _ in range(PROFILE_STEPS):
            score = np.clip(first[:, None] + offset, -LARGEST_SCORE, LARGEST_SCORE)
            probability = expit(score)
            expected = probability @ evidence.mass
            bend = (probability * (1.0 - probability)) @ evidence.mass / expected
            step = np.log(evidence.revealed_mass / expected) / np.maximum(bend, 1e-3)
            first += step
            if np.abs(step).max() < 1e-6:
                break
        return _likelihood(evidence, first[:, None] + offset)[0]


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
