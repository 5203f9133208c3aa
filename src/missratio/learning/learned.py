"""A missingness model that was learned, and knows how uncertain it is.

How a learned φ depends on the rows that it was learned from.

Write p for the probability that a known row was missing: with ρ = m/n_missing of the
missing rows revealed, p = ρφ/(ρφ + 1 − φ). An observed row moves the parameters by
−I⁻¹ p x, x = (1, z), and a missing one, which need not be among the revealed, by
I⁻¹(1 − p) x where it is and by its share in ρ. The latter aren't kept row by row: given
its value, a missing row moves nothing else, and how much all of them move the
parameters follows from the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.special import expit
from scipy.stats import chi2

from missratio._base.blocks import any_by_row
from missratio._base.reading import as_numeric_array, float_blocks, row_blocks
from missratio._base.storable import storable
from missratio._base.typing import BoolArray, FloatArray
from missratio.learning.checks import LEVEL, Check, GoodnessOfFit
from missratio.learning.evidence import KEPT_ROWS, Coordinates, Evidence
from missratio.learning.region import (
    LookupCriterion,
    TableCriterion,
    boundary,
    covariance_of,
    fisher_information,
    inverse_information,
    standard_covariance,
    standard_precision,
)
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
    for j, evidence in enumerate(model.evidence):
        if evidence is None:
            continue
        theta = model._thetas[j]
        size = len(theta)
        share[j] = np.exp(evidence.sampling_offset)
        if not evidence.n_revealed:
            # Of the table alone: how its rows move φ isn't kept.
            continue
        inverse[j, :size, :size] = inverse_information(evidence, theta)
        variance[j, :size, :size] = _variance(evidence, theta)
    return Influence(share, inverse, variance)


def _variance(evidence: Evidence, theta: FloatArray) -> FloatArray:
    design = np.concatenate([np.ones((1, len(evidence.mass))), evidence.values])
    probability = expit(theta @ design)
    # Missing rows: a known row is one of them with probability p.
    squares = probability * (1.0 - probability) ** 2
    squares[evidence.n_revealed :] += probability[evidence.n_revealed :] ** 2
    inverse = inverse_information(evidence, theta)
    meat = (design * (evidence.mass * squares)) @ design.T
    variance = inverse @ meat @ inverse
    # That m were revealed, no more and no less, is no chance.
    variance[0, 0] -= 1.0 / evidence.revealed_mass - 1.0 / evidence.n_missing
    return np.asarray(variance)


def was_learned_from(model: LearnedMissingness, X: Any) -> bool:
    """Whether a model was learned from these rows of a class, by their counts and sums.

    Whole rows, where they are very many, must come in the same order as well. What was
    learned from the table itself counts as learned elsewhere: how its rows move φ isn't
    kept, and φ's covariance is added as if it were independent.
    """
    if any(shadow is not None for shadow in model.shadow):
        return False
    table = as_numeric_array(X)
    groups = [e for e in model.evidence if e is not None]
    if not groups or table.shape[1] != len(model.feature_names):
        return not groups
    observed, sums, sizes = _totals(model, table)
    for j, evidence in enumerate(model.evidence):
        count = float(observed[j if not model.rowwise else 0])
        n_missing = 0 if evidence is None else evidence.n_missing
        if len(table) - count != n_missing:
            return False
        if evidence is not None and len(evidence.values):
            kept = slice(evidence.n_revealed, None)
            total = evidence.values[:, kept] @ evidence.mass[kept]
            where = slice(None) if model.rowwise else slice(j, j + 1)
            if (np.abs(sums[where] - total) > SAME * sizes[where]).any():
                return False
    return True


def _totals(
    model: LearnedMissingness, table: Any
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """How often each column is observed, and the sums of its values and their sizes."""
    count, sums, sizes = np.zeros((3, table.shape[1]))
    stride, factor = 1, 1.0
    if model.rowwise and model.evidence[0] is not None:
        stride, factor = _thinning(model.evidence[0])
    seen = 0
    for _, block in float_blocks(table, table):
        known: BoolArray = ~np.isnan(block)
        values = np.where(known, block, 0.0)
        count += known.sum(axis=0)
        if stride > 1:
            rows = values[any_by_row(known)]
            values, seen = rows[-seen % stride :: stride], seen + len(rows)
        sums += factor * values.sum(axis=0)
        sizes += factor * np.abs(values).sum(axis=0)
    return count, sums, sizes


def _thinning(evidence: Evidence) -> tuple[int, float]:
    """Which observed rows were kept, every so many, and what each stands for."""
    counts = evidence.mass[evidence.n_revealed :]
    n_observed = round(counts.sum())
    if len(evidence.values) == 1 or n_observed <= 2 * KEPT_ROWS:
        return 1, 1.0
    return n_observed // KEPT_ROWS, float(counts[0])


def compare_classes(models: Mapping[Any, LearnedMissingness]) -> tuple[Check, ...]:
    """Test, feature by feature, whether φ is the same in all classes.

    The statistic is Σ (γ_c − γ)ᵀ C_c⁻¹ (γ_c − γ), where γ_c and C_c are a class's
    parameters and their covariance and γ is their weighted mean: χ² in the limit where
    φ is the same. If it isn't, the label says something of what is missing: each class
    needs a φ of its own, and one that was learned from both is wrong for both.

    Parameters
    ----------
    models : mapping of label to LearnedMissingness
        Two or more, for the same features, and learned from rows of one class each.

    Returns
    -------
    tuple of Check
        Of kind "label", for the features that are missing in two classes or more;
        `failed` where φ differs, by `LEVEL` over all features.
    """
    if len(models) < 2:
        raise ValueError(f"Two classes or more can be compared: got {len(models)}.")
    first = next(iter(models.values()))
    for label, model in models.items():
        if (model.feature_names, model.rowwise) != (first.feature_names, first.rowwise):
            raise ValueError(
                f"The model of class {label!r} is for other features than the first: "
                "learn all of them from the same columns."
            )
    names = ("rows",) if first.rowwise else first.feature_names
    found = {}
    for j, name in enumerate(names):
        lossy = [m for m in models.values() if m.evidence[j] is not None]
        if len(lossy) > 1:
            found[name] = _difference(lossy, j)
    checks = []
    for name, (statistic, p_value) in found.items():
        failed = p_value * len(found) <= LEVEL
        words = (
            "it goes missing for other reasons in one class than in another"
            if failed
            else "nothing says that it goes missing differently by class"
        )
        sentence = f"{name}: {words} (p = {p_value:.2g})."
        if failed:
            sentence += " Learn φ for each class by itself."
        checks.append(
            Check("label", name, "looked up", statistic, p_value, failed, sentence)
        )
    return tuple(checks)


def _difference(models: list[LearnedMissingness], j: int) -> tuple[float, float]:
    """The statistic of one feature, or of whole rows, and its p-value."""
    evidence = models[0].evidence[j]
    assert evidence is not None
    size = min(len(m._thetas[j]) for m in models)
    own: Coordinates = evidence.coordinates
    centre, scale = own.centre[: size - 1], own.scale[: size - 1]
    coordinates = Coordinates(centre, scale)
    points: list[FloatArray] = []
    precisions: list[FloatArray] = []
    for model in models:
        covariance = model.covariance if model.rowwise else model.covariance[j]
        linear = coordinates.standardise(np.eye(size)).T
        standard = linear @ covariance[:size, :size] @ linear.T
        precisions.append(np.asarray(np.linalg.inv(standard), dtype=np.float64))
        coef = np.asarray(model.coef)
        slopes = coef if model.rowwise else coef[j : j + 1]
        theta = np.append(np.atleast_1d(np.asarray(model.intercept))[j], slopes)
        points.append(coordinates.standardise(theta[:size]))
    total = np.sum(precisions, axis=0)
    pulls = [P @ point for P, point in zip(precisions, points, strict=True)]
    mean = np.linalg.solve(total, np.sum(pulls, axis=0))
    statistic = sum(
        float((point - mean) @ P @ (point - mean))
        for P, point in zip(precisions, points, strict=True)
    )
    return statistic, float(chi2.sf(statistic, size * (len(models) - 1)))
