"""A missingness model that was learned, and knows how uncertain it is.

How it depends on the rows that it was learned from: write p for the probability that a
known row was missing. With ρ = m/n_missing of the missing rows revealed,
p = ρφ/(ρφ + 1 − φ). An observed row moves the parameters by −I⁻¹ p x, x = (1, z), and a
missing one, which need not be among the revealed, by I⁻¹(1 − p) x where it is and by
its share in ρ. The latter aren't kept row by row: given its value, a missing row moves
nothing else, and how much all of them move the parameters follows from the model.

Its region has the parameters that the evidence leaves possible. Of n_missing missing
values m were revealed, by chance. With the law of the values left open, the profile
likelihood of φ = expit(α + βᵀz) is Scott and Wild's (1997):

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
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from scipy.special import betaincinv, expit, logit, ndtri, xlogy
from scipy.stats import chi2, qmc

from missratio._base.reading import as_coded_array, row_blocks
from missratio._base.storable import storable
from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.learning.checks import Check
from missratio.learning.evidence import (
    LARGEST_SCORE,
    Coordinates,
    Evidence,
    fit_evidence,
    one_hot,
)
from missratio.learning.shadow import ShadowEvidence
from missratio.missingness import LogisticMissingness, balanced_intercepts

DIRECTIONS = 64
# Slopes to try: about the estimate by standard errors, and all over the real line by
# standard deviations of the values; beyond the last a logistic function is a step.
NEAR = np.linspace(-6.0, 6.0, 19)
WIDE = np.sinh(np.linspace(-5.0, 5.0, 25))
LEVELS = np.array([-12.0, -4.0, -1.5, -0.5, 0.0, 0.5, 1.5, 4.0, 12.0])
# Slopes of a range that was stated.
STATED = 9


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
        some: Any = super().some_columns(positions, n_columns)
        kept: dict[str, Any] = {}
        for name in ("evidence", "feature_names", "shadow"):
            values = getattr(self, name)
            kept[name] = tuple(values[j] for j in positions if values)
        return cast(LearnedMissingness, replace(some, **kept))

    @property
    def stated(self) -> tuple[str, ...]:
        """The columns whose slope was stated, as a range."""
        pairs = zip(self.feature_names, self.shadow, strict=False)
        return tuple(name for name, known in pairs if known and known.stated)

    def log_odds(self, X: Any, xp: Any = np) -> Any:
        """Intercept + coef·x; a stated φ stays as it is beyond the values it is for."""
        return super().log_odds(
            X if self._ends is None else xp.clip(X, *self._ends), xp
        )

    @cached_property
    def _ends(self) -> tuple[FloatArray, FloatArray] | None:
        """The least and the largest value that a stated φ tells from others."""
        low, high = np.full((2, np.size(self.coef)), np.inf) * [[-1.0], [1.0]]
        for j, shadow in enumerate(self.shadow):
            if shadow is not None and shadow.stated is not None:
                low[j], high[j] = shadow.values.min(), shadow.values.max()
        return (low, high) if self.stated else None

    def narrowed(self, end: int) -> LearnedMissingness:
        """The same with stated slopes at the mildest (0) or steepest of their range.

        Parameters
        ----------
        end : {0, 1}
        """
        intercept, coef = np.array(self.intercept), np.array(self.coef)
        shadows = list(self.shadow)
        for j, evidence, _, shadow in self._learned:
            if shadow is not None and shadow.stated is not None:
                slope = sorted(shadow.stated, key=abs)[end]
                point = np.array([[0.0, slope]])
                point = _TableCriterion(shadow, evidence).corrected(point)
                intercept[j], coef[j] = shadow.coordinates.restore(point)[0]
                shadows[j] = replace(shadow, stated=(slope, slope))
        return replace(self, intercept=intercept, coef=coef, shadow=tuple(shadows))

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
        table = as_coded_array(X)
        if self._ends is not None:
            table = np.clip(table.astype(np.float64, copy=False), *self._ends)
        lower, upper = np.full((2, *estimate.shape), -np.inf)
        if self.rowwise and self._learned:
            # In many dimensions a few points don't outline a region. But it lies within
            # the ellipsoid of the covariance's shape that reaches its farthest point.
            _, known, theta, shadow = self._learned[0]
            counted = shadow is not None and one_hot(known.values)
            (points,) = self.region(delta / 2.0 if counted else delta)
            covariance, coordinates = standard_covariance(known, theta, shadow)
            root = np.linalg.cholesky(covariance)
            centre = coordinates.standardise(theta)
            offset = coordinates.standardise(points) - centre
            radius = np.linalg.norm(np.linalg.solve(root, offset.T), axis=0).max()
            for rows in row_blocks(table.shape):
                block = table[rows].astype(np.float64, copy=False)
                design = coordinates.design(block.T)
                reach = radius * np.linalg.norm(design.T @ root, axis=1)
                lower[rows], upper[rows] = centre @ design + [[-1.0], [1.0]] * reach
                if counted:
                    most = _largest_by_counts(known, block, delta / 2.0)
                    most = np.fmax(most, self.log_odds(block))
                    upper[rows] = np.minimum(upper[rows], most)
        for j, points in enumerate([] if self.rowwise else self.region(delta)):
            column = table[:, j].astype(np.float64)
            lower[:, j] = -_largest_line(-points, column)
            upper[:, j] = _largest_line(points, column)
        # NaN where the estimate is. A few rows may leave that outside of its region.
        lower, upper = expit(lower), expit(upper)
        return np.minimum(lower, estimate), np.maximum(upper, estimate)

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
            part = delta / max(len(self._learned), 1)
            regions = [np.array([[-np.inf, 0.0]])] * len(self.evidence)

            def bound(learned: Learned) -> None:
                j, evidence, theta, shadow = learned
                points = region_boundary(evidence, theta, shadow, part)
                slopes = 0 if self.rowwise else 2 - len(theta)
                regions[j] = np.pad(points, ((0, 0), (0, slopes)))

            size = DIRECTIONS * sum(len(known.mass) for _, known, *_ in self._learned)
            with one_blas_thread(size) as threads:
                share(bound, self._learned, threads)
            self._regions[delta] = regions
        return self._regions[delta]

    def influence(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What rows do to the parameters, feature by feature, or of whole rows.

        Returns
        -------
        revealed_share : ndarray of shape (n_groups,)
            ρ; 1 where nothing is missing.
        information_inverse : ndarray of shape (n_groups, width, width)
            I⁻¹, without the correction of the intercept; 0 where nothing is missing,
            and where the table alone teaches: how its rows move φ isn't kept.
        variance : ndarray of shape (n_groups, width, width)
            What the movements of all rows add up to. Those of observed rows are summed
            as they are, so that together with another sum over the same rows it makes a
            positive semi-definite matrix; those of missing rows come from the model.
        """
        width = self.covariance.shape[-1]
        share = np.ones(len(self.evidence))
        inverse, variance = np.zeros((2, len(self.evidence), width, width))
        for j, evidence, theta, _ in self._learned:
            share[j], revealed = np.exp(evidence.sampling_offset), evidence.n_revealed
            if not revealed:
                continue
            coordinates, size = evidence.coordinates, len(theta)
            standard = coordinates.standardise(theta)
            information, _ = evidence.information(standard, coordinates)
            moved = np.asarray(np.linalg.inv(information), dtype=np.float64)
            moved = coordinates.restore_covariance(moved)
            design = np.concatenate([np.ones((1, len(evidence.mass))), evidence.values])
            probability = evidence.revealed_probability(theta)
            # Missing rows: a known row is one of them with probability p.
            squares = probability * (1.0 - probability) ** 2
            squares[revealed:] += probability[revealed:] ** 2
            inverse[j, :size, :size] = moved
            meat = (design * (evidence.mass * squares)) @ design.T
            variance[j, :size, :size] = moved @ meat @ moved
            # That m were revealed, no more and no less, is no chance.
            variance[j, 0, 0] -= 1.0 / evidence.n_revealed - 1.0 / evidence.n_missing
        return share, inverse, variance

    def was_learned_from(self, X: Any) -> bool:
        """Whether these are the rows that taught it, by their counts and sums.

        Whole rows, where they are very many, must come in the same order as well. What
        was learned from the table itself counts as learned elsewhere: how its rows move
        φ isn't kept, and φ's covariance is added as if it were independent.

        Parameters
        ----------
        X : array-like or dataframe of shape (n, d)
            Of one class.
        """
        table = as_coded_array(X).astype(np.float64, copy=False)
        if any(shadow is not None for shadow in self.shadow):
            return False
        for j, evidence in enumerate(self.evidence):
            columns = table if self.rowwise else table[:, j : j + 1]
            again = Evidence.of(columns, np.full((1, columns.shape[1]), np.nan))
            if evidence is None or again is None:
                if evidence is not again:
                    return False
                continue
            (before, mass), (values, masses) = evidence.observed, again.observed
            values = values[: len(before)]
            off = np.abs(before @ mass - values @ masses)
            same = evidence.n_missing == again.n_missing and mass.sum() == masses.sum()
            # Sums over the same values in another order differ by rounding.
            if not same or (off > 1e-9 * (np.abs(values) @ masses)).any():
                return False
        return True

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
        return {field.name: getattr(self, field.name) for field in fields(self)}


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
    criterion: _LookupCriterion | _TableCriterion
    criterion = (
        _TableCriterion(shadow, evidence) if shadow else _LookupCriterion(evidence)
    )
    centre, precision = criterion.standardised(theta)
    covariance = np.linalg.inv(precision)
    if isinstance(criterion, _TableCriterion) and criterion.shadow.stated is not None:
        # Of the slopes that were stated, those that the table leaves possible. If it
        # leaves none, the statement is wrong, or chance has spoken.
        ends, size = criterion.shadow.stated, len(criterion.shadow.missing_sum)
        limit = float(chi2.ppf(1.0 - delta, size))
        errors = np.array([evidence.n_missing**-0.5, covariance[1, 1] ** 0.5])
        slopes = np.append(np.linspace(*ends, STATED), centre[1] + errors[1] * NEAR)
        slopes = np.unique(np.clip(slopes, *ends))
        points = _outline(criterion, centre, errors, limit, slopes, 0.0)
        if not len(points):
            points = np.stack([np.zeros(2), ends], axis=1)
        return criterion.coordinates.restore(criterion.corrected(points))
    # 1. How far from the best is still possible. A penalised estimate may lie outside
    #    a small region, which is made to reach it.
    at_estimate = float(criterion(centre[None])[0][0])
    limit = float(chi2.ppf(1.0 - delta, len(centre)))
    from_estimate = shadow is not None and evidence.n_revealed > 0
    limit = limit + at_estimate if from_estimate else max(limit, at_estimate)
    # 2. Rays into all directions.
    root = np.linalg.cholesky(covariance)
    directions = np.array([[1.0], [-1.0]])
    if len(centre) == 2:
        angle = np.linspace(0.0, 2.0 * np.pi, DIRECTIONS, endpoint=False)
        directions = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    elif len(centre) > 2:
        points = qmc.Sobol(len(centre), rng=0).random_base2(DIRECTIONS.bit_length())
        unit = ndtri(points) / np.linalg.norm(ndtri(points), axis=1, keepdims=True)
        directions = np.concatenate([unit, -unit])
    rays = np.sqrt(limit) * directions @ root.T

    def inside(reach: FloatArray) -> BoolArray:
        return criterion(centre + reach[:, None] * rays)[0] <= limit

    points = centre + _reach(inside, np.ones(len(rays)), 30)[:, None] * rays
    # 3. A region that may bend, or have parts that no ray meets, slope by slope.
    if isinstance(criterion, _TableCriterion) and len(centre) == 2:
        errors = np.sqrt(np.diagonal(covariance))
        slopes = np.unique(np.append(centre[1] + errors[1] * NEAR, WIDE))
        # From eight rows on the moments' spread tells whether a point is possible.
        outline = _outline(criterion, centre, errors, limit, slopes, 8.0)
        points = np.concatenate([points, outline])
    return criterion.coordinates.restore(criterion.corrected(points))


Inside = Callable[[FloatArray], BoolArray]


def _reach(inside: Inside, first: FloatArray, steps: int) -> FloatArray:
    """How far regions reach from 0, seen from just outside: by doubling, then halving.

    What can't be told apart lies outside.
    """
    near, far = np.zeros(len(first)), first
    going = np.ones(len(first), dtype=bool)
    while (going := going & (far < 1024.0 * first)).any():
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
    criterion: _TableCriterion,
    estimate: FloatArray,
    errors: FloatArray,
    limit: float,
    slopes: FloatArray,
    fewest: float,
) -> FloatArray:
    """Points (level, slope) on the boundary; none where no slope that is tried is in.

    What fewer rows than some tell is not possible.
    """

    def distance(levels: FloatArray, slopes: FloatArray) -> FloatArray:
        points = np.stack(np.broadcast_arrays(levels, slopes), axis=-1)
        away, freedom = criterion(points.reshape(-1, 2))
        return np.where(freedom < fewest, np.inf, away).reshape(points.shape[:-1])

    def best(slopes: FloatArray) -> tuple[FloatArray, BoolArray]:
        """The best level of each slope, and whether it is possible there."""
        step, tried = np.full(len(slopes), errors[0]), LEVELS
        levels = np.full(len(slopes), estimate[0])
        for _ in range(3):
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
    beyond = _bisect(possible, slopes[last], beyond, 4)
    slopes = np.concatenate([slopes[inside], beyond])
    levels = np.concatenate([levels[inside], level])
    # 3. How far levels go for each, down and up.
    ends = []
    for sign in (-1.0, 1.0):

        def within(reach: FloatArray, sign: float = sign) -> BoolArray:
            return distance(levels + sign * reach, slopes) <= limit

        first = np.full(len(slopes), errors[0])
        reach = _reach(within, first, 8)
        ends.append(np.stack([levels + sign * reach, slopes], axis=1))
    return np.concatenate(ends)


class _LookupCriterion:
    """Twice the fall of Scott and Wild's likelihood, a χ² distance from the best.

    Points are standardised uncorrected (a, β).
    """

    def __init__(self, evidence: Evidence) -> None:
        self.evidence, self.coordinates = evidence, evidence.coordinates
        self._design = self.coordinates.design(evidence.values)
        self._highest = _highest_likelihood(evidence)

    def standardised(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The estimate (α, β) as a point, and the information that scales rays."""
        point = self.coordinates.standardise(theta)
        information, _ = self.evidence.information(point, self.coordinates)
        point[0] += self.evidence.sampling_offset
        return point, information

    def __call__(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The fall at points, and from how many values it is known."""
        m, rest = self.evidence.n_revealed, self.evidence.n_unrevealed
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
        return likelihood, expected / (expected + self.evidence.n_unrevealed)


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
        # The likelihood is looked up in a table up to twelve standard errors.
        reach = 12.0 * np.sqrt(covariance[1, 1])
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
        share = evidence.n_revealed / evidence.n_missing
        level = np.sqrt(share / full[0, 0]) * full[0]
        return centre, level, _highest_likelihood(evidence)

    def _profile(self, slopes: FloatArray) -> FloatArray:
        """The log-likelihood of "revealed" at slopes, its intercept the best."""
        evidence = self.evidence
        offset = slopes @ self.coordinates.design(evidence.values)[1:]
        first = balanced_intercepts(offset, evidence.mass, evidence.n_revealed)
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
