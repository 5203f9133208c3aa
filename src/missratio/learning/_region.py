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
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.special import ndtri, xlogy
from scipy.stats import chi2, qmc

from missratio._typing import FloatArray
from missratio.learning._coordinates import Coordinates
from missratio.learning._evidence import Evidence, fit_evidence
from missratio.learning._logistic import LARGEST_SCORE
from missratio.learning._precision import lookup_covariance
from missratio.learning._shadow import ShadowEvidence

DIRECTIONS = 64
BISECTIONS = 30
# A ray that doesn't leave the region within so many standard errors is cut there: the
# region has no bound on that side.
FARTHEST = 2.0**10
# Log-odds beyond which a share of many thousands is less than one.
REACH = 20.0


class Criterion(Protocol):
    """How far standardised parameters are from the best, as a χ²."""

    @property
    def coordinates(self) -> Coordinates:
        """By which parameters are standardised."""

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
        Corrected (α, β), on rays into all directions.
    """
    width = len(theta)
    at_estimate = float(criterion(theta[None])[0])
    limit = float(chi2.ppf(1.0 - delta, width))
    # A penalised estimate may lie outside a small region, which is made to reach it.
    limit = limit + at_estimate if from_estimate else max(limit, at_estimate)
    root = np.linalg.cholesky(np.linalg.inv(precision))
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
    points = criterion.corrected(theta + far[:, None] * rays)
    return criterion.coordinates.restore(points)


@dataclass(frozen=True)
class LookupCriterion:
    """Twice the fall of Scott and Wild's likelihood; points are uncorrected (a, β).

    Parameters
    ----------
    evidence : Evidence
    """

    evidence: Evidence

    @cached_property
    def coordinates(self) -> Coordinates:
        """Of the known values."""
        return self.evidence.coordinates

    @cached_property
    def highest(self) -> float:
        """The largest log-likelihood of "revealed"."""
        fit = fit_evidence([self.evidence], penalised=False)
        return 0.0 if fit.separated[0] else float(fit.log_likelihood[0])

    def __call__(self, points: FloatArray) -> FloatArray:
        """The fall at points."""
        return self._fall(points)[0]

    def corrected(self, points: FloatArray) -> FloatArray:
        """(α, β) at which points (a, β) are stationary in u."""
        return self._fall(points)[1]

    def _fall(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        evidence = self.evidence
        likelihood, expected = _likelihood(
            evidence, points @ self.coordinates.design(evidence.values)
        )
        m, rest = evidence.revealed_mass, evidence.n_missing - evidence.revealed_mass
        share = expected / (expected + rest)
        likelihood += _sampling(share, m, rest)
        best = self.highest + _sampling(np.array(m / evidence.n_missing), m, rest)
        corrected = points.copy()
        corrected[:, 0] -= np.log(share)
        return 2.0 * (best - likelihood), corrected


@dataclass(frozen=True)
class TableCriterion:
    """The table's moments, and the fall in β of the likelihood of looked-up values.

    Points are (α, β). Of the share of missing values that was looked up, the intercept
    is known from these as well.

    Parameters
    ----------
    shadow : ShadowEvidence
    evidence : Evidence
    """

    shadow: ShadowEvidence
    evidence: Evidence

    @property
    def coordinates(self) -> Coordinates:
        """Of the observed values."""
        return self.shadow.coordinates

    def corrected(self, points: FloatArray) -> FloatArray:
        """Points as they are."""
        return points

    def __call__(self, points: FloatArray) -> FloatArray:
        """The sum of both."""
        distance = self.shadow.criterion(points)
        if not self.evidence.n_revealed:
            return distance
        centre, level, highest = self._lookups
        along = (points - centre) @ level
        fall = 2.0 * (highest - self._profile(points[:, 1:]))
        return np.asarray(distance + fall + along**2)

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
        m, first = evidence.revealed_mass, -offset.mean(axis=1)
        # The fitted probabilities sum to m: a bracket, halved.
        low, high = first - REACH - np.ptp(offset), first + REACH + np.ptp(offset)
        for _ in range(BISECTIONS + 10):
            middle = (low + high) / 2.0
            too_many = _likelihood(evidence, middle[:, None] + offset)[1] > m
            low, high = (
                np.where(too_many, low, middle),
                np.where(too_many, middle, high),
            )
        return _likelihood(evidence, ((low + high) / 2.0)[:, None] + offset)[0]


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
