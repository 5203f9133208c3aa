"""A missingness model that was learned, and knows how uncertain it is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.special import expit

from missratio._base.reading import as_numeric_array, row_blocks
from missratio._base.typing import FloatArray
from missratio.learning._checks import Check
from missratio.learning._evidence import Evidence
from missratio.learning._goodness import GoodnessOfFit
from missratio.learning._precision import (
    covariance_of,
    fisher_information,
    standard_covariance,
    standard_precision,
)
from missratio.learning._region import LookupCriterion, TableCriterion, boundary
from missratio.learning._shadow import ShadowEvidence
from missratio.missingness import LogisticMissingness


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

    @property
    def learned(self) -> bool:
        """Whether φ is known but for an error: it is not."""
        return True

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
        known = zip(self.evidence, self._thetas, strict=True)
        for j, (evidence, theta) in enumerate(known):
            if evidence is not None:
                own = covariance_of(evidence, theta, self._shadow_of(j))
                covariance[j, : len(theta), : len(theta)] = own
        return covariance[0] if self.rowwise else covariance

    @property
    def standard_errors(self) -> FloatArray:
        """Those of (intercept_j, coef_j), (d, 2), or rowwise of all parameters."""
        diagonal = np.diagonal(self.covariance, axis1=-2, axis2=-1)
        return np.asarray(np.sqrt(diagonal))

    @property
    def n_revealed(self) -> FloatArray:
        """How many values of each feature were revealed; rowwise one number."""
        counts = [e.revealed_mass if e is not None else 0.0 for e in self.evidence]
        return np.array(counts)

    def at_budget(self, n_queried: float) -> Self:
        """The same model as if `n_queried` values of each feature had been revealed.

        What a larger budget would buy: the estimate stays, and the band is as wide as
        it would be if further values looked as the estimate says.

        Parameters
        ----------
        n_queried : float
            For each feature, or whole rows; at most as many as are missing.
        """
        if not n_queried > 0:
            raise ValueError(f"n_queried must be positive: got {n_queried}.")
        scaled = tuple(
            evidence and evidence.at_budget(n_queried, theta[1:])
            for evidence, theta in zip(self.evidence, self._thetas, strict=True)
        )
        return replace(self, evidence=scaled)

    def as_known(self) -> LogisticMissingness:
        """The point estimate alone, as a model that is taken at its word."""
        return LogisticMissingness(self.intercept, self.coef, self.rowwise)

    def goodness_of_fit(self) -> GoodnessOfFit:
        """Compare the revealed values with the law that φ̂ gives missing ones.

        Returns
        -------
        GoodnessOfFit
            Of the features that have values looked up.
        """
        names = ("rows",) if self.rowwise else self.feature_names
        return GoodnessOfFit.of(
            [
                (names[j], evidence, self._thetas[j])
                for j, evidence in enumerate(self.evidence)
                if evidence is not None and evidence.n_revealed
            ]
        )

    def probability_band(
        self, X: Any, delta: float | None = 0.05
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds that hold φ at all z and all features at once, with probability 1 − δ.

        From the region of each feature's parameters at level 1 − δ/d: that of the
        likelihood ratio of looked-up values, and of the table's moment equations. The
        logistic form is taken for granted.

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
        points = self.region(delta)
        for rows in row_blocks((table.shape[0], table.shape[1] * 8)):
            block = table[rows].astype(np.float64, copy=False)
            if self.rowwise:
                low, high = self._ellipsoid_extremes(block, points[0])
                lower[rows], upper[rows] = expit(low), expit(high)
                continue
            for j, boundary_points in enumerate(points):
                # α + βz at each row, for every corner of the region.
                scores = boundary_points[:, :1] + boundary_points[:, 1:] * block[:, j]
                lower[rows, j] = expit(scores.min(axis=0))
                upper[rows, j] = expit(scores.max(axis=0))
        unknown = np.isnan(estimate)
        lower[unknown] = upper[unknown] = np.nan
        return lower, upper

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
        known = self._bounds_by_delta
        if delta in known:
            return known[delta]
        each = delta / max(sum(e is not None for e in self.evidence), 1)
        result = []
        found = zip(self.evidence, self._thetas, strict=True)
        for j, (evidence, theta) in enumerate(found):
            if evidence is None:
                result.append(np.array([[-np.inf, 0.0]]))
                continue
            points = _outline(evidence, theta, self._shadow_of(j), each)
            result.append(
                np.pad(points, ((0, 0), (0, not self.rowwise and 2 - len(theta))))
            )
        known[delta] = result
        return result

    def _ellipsoid_extremes(
        self, rows: FloatArray, points: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds on the log-odds at rows, by the estimate's ellipsoid round the region.

        In many dimensions a few points don't outline a region. But it lies within the
        ellipsoid of the covariance's shape that reaches its farthest point.
        """
        theta = np.concatenate([[np.asarray(self.intercept)], np.asarray(self.coef)])
        if not np.isfinite(theta[0]):
            return np.full(len(rows), -np.inf), np.full(len(rows), -np.inf)
        evidence, shadow = self.evidence[0], self._shadow_of(0)
        assert evidence is not None
        coordinates = (shadow or evidence).coordinates
        root = np.linalg.cholesky(
            standard_covariance(evidence, self._thetas[0], shadow, coordinates)
        )
        offset = coordinates.standardise(points) - coordinates.standardise(theta)
        whitened = np.linalg.solve(root, offset.T)
        radius = np.sqrt((whitened**2).sum(axis=0)).max()
        design = coordinates.design(rows.T)
        reach = radius * np.linalg.norm(design.T @ root, axis=1)
        centre = coordinates.standardise(theta) @ design
        return centre - reach, centre + reach

    def _shadow_of(self, place: int) -> ShadowEvidence | None:
        """What the table taught of a feature, or of whole rows."""
        return self.shadow[place] if self.shadow else None

    @cached_property
    def _thetas(self) -> list[FloatArray]:
        """Parameters of each evidence; of looked-up values, intercepts uncorrected."""
        intercept = np.atleast_1d(np.asarray(self.intercept))
        coef = np.asarray(self.coef)
        thetas = []
        for j, evidence in enumerate(self.evidence):
            slopes = coef if self.rowwise else coef[j : j + 1]
            first = intercept[j]
            if evidence is not None:
                slopes = slopes[: len(evidence.values)]
                first = first + evidence.sampling_offset
            thetas.append(np.concatenate([[first], slopes]))
        return thetas

    @cached_property
    def _bounds_by_delta(self) -> dict[float, list[FloatArray]]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be computed again."""
        kept = ("intercept", "coef", "rowwise", "evidence", "method",
                "feature_names", "shadow", "checks")  # fmt: skip
        return {name: getattr(self, name) for name in kept}


def _outline(
    evidence: Evidence,
    theta: FloatArray,
    shadow: ShadowEvidence | None,
    delta: float,
) -> FloatArray:
    """Corner points of what evidence leaves possible; theta's intercept uncorrected."""
    coordinates = (shadow or evidence).coordinates
    centre = coordinates.standardise(theta)
    if shadow is None:
        precision = fisher_information(evidence, centre, coordinates)
        criterion = LookupCriterion(evidence)
        return boundary(criterion, centre, precision, delta, from_estimate=False)
    precision = standard_precision(evidence, theta, shadow)
    centre[0] -= evidence.sampling_offset
    table = TableCriterion(shadow, evidence)
    centre, precision = table.levelled(centre, precision)
    both = evidence.n_revealed > 0
    return boundary(table, centre, precision, delta, from_estimate=both)
