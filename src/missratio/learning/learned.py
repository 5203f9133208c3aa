"""A missingness model that was learned, and knows how uncertain it is.

How it depends on the rows that it was learned from: write p for the probability that a
known row was missing. With ρ = m/n_missing of the missing rows revealed,
p = ρφ/(ρφ + 1 − φ). An observed row moves the parameters by −I⁻¹ p x, x = (1, z), and a
missing one, which need not be among the revealed, by I⁻¹(1 − p) x where it is and by
its share in ρ. The latter aren't kept row by row: given its value, a missing row moves
nothing else, and how much all of them move the parameters follows from the model.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import betaincinv, expit, logit

from missratio._base.reading import as_numeric_array, row_blocks
from missratio._base.storable import storable
from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import FloatArray, IntArray
from missratio.learning.checks import Check
from missratio.learning.evidence import Evidence, one_hot
from missratio.learning.region import DIRECTIONS, region_boundary, standard_covariance
from missratio.learning.shadow import ShadowEvidence
from missratio.missingness import LogisticMissingness


@storable()
@dataclass(frozen=True, eq=False, repr=False)
class LearnedMissingness(LogisticMissingness):
    """A logistic φ that was learned, with its uncertainty and checks of its form.

    What `learn_missingness` returns. It is used as any other model, at its point
    estimate; a certificate takes its band into account.

    Parameters
    ----------
    intercept, coef : array-like
        As of `LogisticMissingness`.
    rowwise : bool
    evidence : tuple of Evidence or None
        Observed values and those looked up: for each feature, or for whole rows. None
        where nothing is missing, and φ is taken to be 0.
    method : {"firth", "ml"}
        How looked-up values were learned from.
    feature_names : tuple of str
    shadow : tuple of ShadowEvidence or None
        What the table taught by itself: for each feature, or for whole rows. None where
        it taught nothing, or wasn't asked.
    checks : tuple of Check
        Whether the data contradicts the model, by feature.
    """

    evidence: tuple[Evidence | None, ...] = field(default=(), repr=False)
    method: str = "firth"
    feature_names: tuple[str, ...] = field(default=(), repr=False)
    shadow: tuple[ShadowEvidence | None, ...] = field(default=(), repr=False)
    checks: tuple[Check, ...] = field(default=(), repr=False)

    learned = True

    @property
    def maximum(self) -> float | None:
        """None: of what was learned no bound is known."""
        return None

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariance of (intercept_j, coef_j) by feature, or rowwise of all parameters.

        Of shape (d, 2, 2), or rowwise (1 + d, 1 + d). Zero where nothing is missing.
        """
        width = 1 + (np.size(self.coef) if self.rowwise else 1)
        covariance = np.zeros((len(self.evidence), width, width))
        for j, evidence, theta, shadow in self._learned:
            standard, coordinates = standard_covariance(evidence, theta, shadow)
            restored = coordinates.restore_covariance(standard)
            covariance[j, : len(theta), : len(theta)] = restored
        return covariance[0] if self.rowwise else covariance

    @property
    def standard_errors(self) -> FloatArray:
        """Those of (intercept_j, coef_j), (d, 2), or rowwise of all parameters."""
        diagonal = np.diagonal(self.covariance, axis1=-2, axis2=-1)
        return np.asarray(np.sqrt(diagonal))

    def as_known(self) -> LogisticMissingness:
        """The point estimate alone, as a model that is taken at its word."""
        return LogisticMissingness(self.intercept, self.coef, self.rowwise)

    def some_columns(self, positions: IntArray, n_columns: int) -> LearnedMissingness:
        """φ of some columns, with what it was learned from."""
        some = super().some_columns(positions, n_columns)
        assert isinstance(some, LearnedMissingness)
        kept: dict[str, Any] = {}
        for name in ("evidence", "feature_names", "shadow"):
            values = getattr(self, name)
            kept[name] = tuple(values[j] for j in positions if values)
        return replace(some, **kept)

    def probability_band(
        self, X: Any, delta: float | None = 0.05
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds that hold φ at all z and all features at once, with probability 1 − δ.

        From the region of each feature's parameters at level 1 − δ/d: that of the
        likelihood ratio of looked-up values, and of the table's moment equations. The
        logistic form is taken for granted. Of a category that the table teaches, φ of a
        level is bounded by counts as well: no more than all missing values are its own.

        Parameters
        ----------
        X : array-like or dataframe of shape (n, d)
        delta : float or None, default=0.05
            None gives the estimate for both.

        Returns
        -------
        lower, upper : ndarray of shape (n, d), or rowwise (n,)
            NaN where an entry, or for a rowwise model any of the row, is NaN. The upper
            one may be 1 where nothing was observed.
        """
        estimate, _ = super().probability_band(X, delta)
        if delta is None:
            return estimate, estimate
        table = as_numeric_array(X)
        lower, upper = np.empty_like(estimate), np.empty_like(estimate)
        if self.rowwise:
            known = self._learned[0][1] if self.shadow and self._learned else None
            counted = known is not None and one_hot(known.values)
            (points,) = self.region(delta / 2.0 if counted else delta)
            for rows in row_blocks(table.shape):
                block = table[rows].astype(np.float64, copy=False)
                lower[rows], upper[rows] = self._ellipsoid_extremes(block, points)
                if known is not None and counted:
                    most = _largest_by_counts(known, block, delta / 2.0)
                    most = np.fmax(most, self.log_odds(block))
                    upper[rows] = np.minimum(upper[rows], most)
        regions = [] if self.rowwise else self.region(delta)
        for j, points in enumerate(regions):
            column = table[:, j].astype(np.float64)
            lower[:, j] = -_largest_line(-points, column)
            upper[:, j] = _largest_line(points, column)
        unknown = np.isnan(estimate)
        lower[unknown] = upper[unknown] = np.nan
        return expit(lower), expit(upper)

    def region(self, delta: float) -> list[FloatArray]:
        """Parameters that the evidence just leaves possible, with probability 1 − δ.

        Parameters
        ----------
        delta : float
            All features together are in their regions with probability 1 − δ.

        Returns
        -------
        list of ndarray of shape (n_points, 2), or rowwise (n_points, 1 + d)
            For each feature, points (intercept, slope) on the region's boundary.
        """
        if delta not in self._regions:
            each = delta / max(len(self._learned), 1)
            regions = [np.array([[-np.inf, 0.0]])] * len(self.evidence)

            def boundary(learned: Learned) -> FloatArray:
                return region_boundary(*learned[1:], each)

            size = DIRECTIONS * sum(len(known.mass) for _, known, *_ in self._learned)
            with one_blas_thread(size) as threads:
                boundaries = share(boundary, self._learned, threads)
            for (j, _, theta, _), points in zip(self._learned, boundaries, strict=True):
                slopes = 0 if self.rowwise else 2 - len(theta)
                regions[j] = np.pad(points, ((0, 0), (0, slopes)))
            self._regions[delta] = regions
        return self._regions[delta]

    def _ellipsoid_extremes(
        self, rows: FloatArray, points: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds on the log-odds at rows, by the estimate's ellipsoid round the region.

        In many dimensions a few points don't outline a region. But it lies within the
        ellipsoid of the covariance's shape that reaches its farthest point.
        """
        if not self._learned:
            return np.full(len(rows), -np.inf), np.full(len(rows), -np.inf)
        _, evidence, theta, shadow = self._learned[0]
        covariance, coordinates = standard_covariance(evidence, theta, shadow)
        root = np.linalg.cholesky(covariance)
        standard = coordinates.standardise(theta)
        offset = coordinates.standardise(points) - standard
        radius = np.linalg.norm(np.linalg.solve(root, offset.T), axis=0).max()
        design = coordinates.design(rows.T)
        reach = radius * np.linalg.norm(design.T @ root, axis=1)
        return standard @ design - reach, standard @ design + reach

    @cached_property
    def _learned(self) -> list[Learned]:
        """What has missing values: place, evidence, (α, β), and what the table says."""
        first = np.atleast_1d(np.asarray(self.intercept))
        coef = np.asarray(self.coef)
        learned = []
        for j, evidence in enumerate(self.evidence):
            if evidence is not None:
                slopes = coef if self.rowwise else coef[j : j + 1]
                theta = np.append(first[j], slopes[: len(evidence.values)])
                shadow = self.shadow[j] if self.shadow else None
                learned.append((j, evidence, theta, shadow))
        return learned

    @cached_property
    def _regions(self) -> dict[float, list[FloatArray]]:
        return {}

    def __deepcopy__(self, memo: dict[int, Any]) -> LearnedMissingness:
        """Itself, as nothing in it changes: clones of estimators share its regions."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be computed again."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


Learned = tuple[int, Evidence, FloatArray, ShadowEvidence | None]


def _largest_by_counts(
    evidence: Evidence, rows: FloatArray, delta: float
) -> FloatArray:
    """Bounds on the log-odds at rows of a category, of all levels at once.

    Of the rows at a level n were observed and at most all missing ones are missing,
    each with probability φ: Clopper and Pearson's bound holds whatever φ's form is, and
    however little the other columns say.
    """
    levels, counts = evidence.observed
    largest = np.full(len(rows), np.inf)
    for level in np.unique(levels, axis=1).T:
        n_observed = counts[(level == levels.T).all(axis=1)].sum()
        ends = evidence.n_missing + 1.0, n_observed, 1.0 - delta / (1 + len(levels))
        largest[(rows == level).all(axis=1)] = logit(betaincinv(*ends))
    return largest


def _largest_line(points: FloatArray, z: FloatArray) -> FloatArray:
    """The maximum of α + βz over points (α, β), by those that are largest anywhere."""
    lines: list[tuple[float, float]] = []
    for first, slope in points[np.lexsort(points.T)].tolist():
        # By increasing slopes a line is crossed by the next before it gets largest.
        while lines and lines[-1][1] == slope:
            lines.pop()
        while len(lines) > 1:
            (a, b), (c, d) = lines[-2:]
            if (a - first) * (d - b) > (a - c) * (slope - b):
                break
            lines.pop()
        lines.append((first, slope))
    first, slope = np.array(lines).T
    with np.errstate(invalid="ignore"):
        place = np.searchsorted(-np.diff(first) / np.diff(slope), z)
    return np.asarray(first[place] + slope[place] * z)


# Sums over the same values in another order differ by no more than this, relatively.
SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Influence:
    """What rows do to learned parameters, feature by feature, or of whole rows.

    Parameters
    ----------
    revealed_share : ndarray of shape (n_groups,)
        ρ; 1 where nothing is missing.
    information_inverse : ndarray of shape (n_groups, width, width)
        I⁻¹, without the correction of the intercept; 0 where nothing is missing.
    variance : ndarray of shape (n_groups, width, width)
        What the movements of all rows add up to. Those of observed rows are summed as
        they are, so that together with another sum over the same rows it makes a
        positive semi-definite matrix; those of missing rows come from the model.
    """

    revealed_share: FloatArray
    information_inverse: FloatArray
    variance: FloatArray


def influence_of(model: LearnedMissingness) -> Influence:
    """Measure what rows do to a learned model."""
    width = model.covariance.shape[-1]
    share = np.ones(len(model.evidence))
    inverse, variance = np.zeros((2, len(model.evidence), width, width))
    for j, evidence, theta, _ in model._learned:
        share[j] = np.exp(evidence.sampling_offset)
        if evidence.n_revealed:
            # Of the table alone, how its rows move φ isn't kept.
            size = len(theta)
            of_parameters = _variance(evidence, theta)
            inverse[j, :size, :size], variance[j, :size, :size] = of_parameters
    return Influence(share, inverse, variance)


def _variance(evidence: Evidence, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """I⁻¹ of (α, β), and what all rows move them by, squared."""
    coordinates = evidence.coordinates
    information, _ = evidence.information(coordinates.standardise(theta), coordinates)
    inverse = coordinates.restore_covariance(np.asarray(np.linalg.inv(information)))
    design = np.concatenate([np.ones((1, len(evidence.mass))), evidence.values])
    probability = evidence.revealed_probability(theta)
    # Missing rows: a known row is one of them with probability p.
    squares = probability * (1.0 - probability) ** 2
    squares[evidence.n_revealed :] += probability[evidence.n_revealed :] ** 2
    meat = (design * (evidence.mass * squares)) @ design.T
    variance = inverse @ meat @ inverse
    # That m were revealed, no more and no less, is no chance.
    variance[0, 0] -= 1.0 / evidence.revealed_mass - 1.0 / evidence.n_missing
    return inverse, np.asarray(variance)


def was_learned_from(model: LearnedMissingness, X: Any) -> bool:
    """Whether a model was learned from these rows of a class, by their counts and sums.

    Whole rows, where they are very many, must come in the same order as well. What was
    learned from the table itself counts as learned elsewhere: how its rows move φ isn't
    kept, and φ's covariance is added as if it were independent.
    """
    if any(shadow is not None for shadow in model.shadow):
        return False
    table = as_numeric_array(X).astype(np.float64, copy=False)
    if table.shape[1] != len(model.feature_names):
        return not model._learned
    for j, evidence in enumerate(model.evidence):
        columns = table if model.rowwise else table[:, j : j + 1]
        again = Evidence.of(columns, np.full((1, columns.shape[1]), np.nan))
        if evidence is None or again is None:
            if evidence is not again:
                return False
            continue
        (before, mass), (values, masses) = evidence.observed, again.observed
        values = values[: len(before)]
        off = np.abs(before @ mass - values @ masses)
        same = evidence.n_missing == again.n_missing and mass.sum() == masses.sum()
        if not same or (off > SAME * (np.abs(values) @ masses)).any():
            return False
    return True
