"""What is known of missing values: those observed, and those that were looked up."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from missratio._base.blocks import any_by_row
from missratio._base.reading import joined
from missratio._base.storable import storable
from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.solver import Evaluation, Status, newton

TOLERANCE = 1e-7
MAX_ITERATIONS = 100
LARGEST_SCORE = 700.0
# Entries of a batch, which should fit the cache with its temporaries.
BATCH_ENTRIES = 2**15
# A feature's observed values are kept as this many group means, and as this many single
# values at either end; of whole rows this many are kept.
GROUPS = 2**10
ENDS = 2**7
KEPT_ROWS = 2**14


@storable()
@dataclass(frozen=True)
class Coordinates:
    """α + βᵀz = a + bᵀ(z − centre)/scale: b = scale·β and a = α + βᵀcentre.

    Values may lie far from the origin compared with their spread. Covariances of (α, β)
    are then singular but for rounding, and those of (a, b) are not.

    Parameters
    ----------
    centre, scale : ndarray of shape (n_columns,)
    """

    centre: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, values: FloatArray) -> Coordinates:
        """Mean and standard deviation of values of shape (n_columns, n_values)."""
        centre, scale = values.mean(axis=1), values.std(axis=1)
        return cls(centre, np.where(scale > 0.0, scale, 1.0))

    def design(self, values: FloatArray) -> FloatArray:
        """(1, z) with z standardised: (1 + n_columns, n_values)."""
        z = (values - self.centre[:, None]) / self.scale[:, None]
        return np.concatenate([np.ones((1, z.shape[1])), z])

    def standardise(self, theta: FloatArray) -> FloatArray:
        """(a, b) of (α, β), along the last axis."""
        slopes = theta[..., 1:]
        first = theta[..., :1] + (slopes * self.centre).sum(axis=-1, keepdims=True)
        return np.concatenate([first, slopes * self.scale], axis=-1)

    def restore(self, theta: FloatArray) -> FloatArray:
        """(α, β) of (a, b), along the last axis."""
        slopes = theta[..., 1:] / self.scale
        first = theta[..., :1] - (slopes * self.centre).sum(axis=-1, keepdims=True)
        return np.concatenate([first, slopes], axis=-1)

    def restore_covariance(self, covariance: FloatArray) -> FloatArray:
        """The covariance of (α, β) from that of (a, b)."""
        linear = self.restore(np.eye(len(covariance))).T
        return np.asarray(linear @ covariance @ linear.T)


@storable()
@dataclass(frozen=True)
class Evidence:
    """Observed and revealed values of a feature, or of whole rows, of one class.

    Parameters
    ----------
    values : ndarray of shape (n_columns, n_known)
        Those that were missing and have been revealed come first. Without columns for
        a feature that has one value only: φ is a number then.
    n_revealed : int
    mass : ndarray of shape (n_known,)
        How many rows each stands for, within the observed and within the revealed ones.
    n_missing : int
        All that are missing, revealed or not.
    """

    values: FloatArray
    n_revealed: int
    mass: FloatArray
    n_missing: int

    @classmethod
    def of(cls, table: FloatArray, answers: FloatArray) -> Evidence | None:
        """The evidence of columns that go missing together; None if none is missing.

        Observed values of one feature give way to the means of groups of neighbours,
        which changes a fit by a few thousandths of its standard error at most. Of very
        many whole rows every k-th is kept and stands for k; beside m revealed ones that
        adds m/16,384 to the variance at most.
        """
        lost = any_by_row(np.isnan(table))
        n_missing = int(lost.sum())
        if not n_missing:
            return None
        # By number: a mask of which half is true takes longer.
        kept = np.ascontiguousarray(table[np.flatnonzero(~lost)].T, dtype=np.float64)
        revealed = answers[~any_by_row(np.isnan(answers))].T.astype(np.float64)
        n_observed = kept.shape[1]
        counts = np.ones(n_observed)
        if len(kept) == 1:
            kept, counts = _grouped(kept)
        elif n_observed > 2 * KEPT_ROWS:
            kept = kept[:, :: n_observed // KEPT_ROWS]
            counts = np.full(kept.shape[1], n_observed / kept.shape[1])
        return cls(
            np.concatenate([revealed, kept], axis=1),
            revealed.shape[1],
            np.concatenate([np.ones(revealed.shape[1]), counts]),
            n_missing,
        )

    @property
    def observed(self) -> tuple[FloatArray, FloatArray]:
        """Observed values, and how many rows each stands for."""
        return self.values[:, self.n_revealed :], self.mass[self.n_revealed :]

    @property
    def revealed_mass(self) -> float:
        """How many of the missing have been looked up."""
        return float(self.mass[: self.n_revealed].sum())

    @property
    def unrevealed_mass(self) -> float:
        """How many missing values were not revealed; 0 where only rounding is left."""
        rest = self.n_missing - self.revealed_mass
        return rest if rest > 1e-9 * self.n_missing else 0.0

    @property
    def sampling_offset(self) -> float:
        """log(m / n_missing) ≤ 0, by which a fit to known values puts α too low.

        Only m of the n_missing missing values are known, and all observed ones.
        Subtracting it raises the intercept to that of φ: King and Zeng's (2001)
        correction. It is 0 where nothing was looked up, and nothing fitted.
        """
        if self.n_revealed == 0:
            return 0.0
        return float(np.log(self.revealed_mass / self.n_missing))

    @property
    def coordinates(self) -> Coordinates:
        """The coordinates that standardise the known values."""
        return Coordinates.of(self.values)

    def revealed_probability(self, theta: FloatArray) -> FloatArray:
        """P(revealed) of known values at φ's (α, β)."""
        first = theta[0] + self.sampling_offset
        return np.asarray(expit(first + theta[1:] @ self.values))

    def information(
        self, theta: FloatArray, coordinates: Coordinates
    ) -> tuple[FloatArray, float]:
        """Fisher's Σ p(1 − p) xxᵀ over known values, and how many revealed it expects.

        Parameters are standardised ones of φ.
        """
        design = coordinates.design(self.values)
        probability = expit(self.sampling_offset + theta @ design)
        weights = self.mass * probability * (1.0 - probability)
        return (design * weights) @ design.T, float(probability @ self.mass)

    def covariance(self, theta: FloatArray, coordinates: Coordinates) -> FloatArray:
        """The covariance of standardised parameters that looked-up values alone give.

        The inverse of Fisher's information, less what is certain about the intercept:
        of the n_missing missing values not a random number but m were revealed, which
        takes 1/m − 1/n_missing from its variance.
        """
        information, expected = self.information(theta, coordinates)
        covariance = np.linalg.inv(information)
        covariance[0, 0] -= 1.0 / expected - 1.0 / (expected + self.unrevealed_mass)
        return np.asarray(covariance)

    def precision(self, theta: FloatArray, coordinates: Coordinates) -> FloatArray:
        """What looked-up values say beyond the table, of standardised parameters.

        Their law is that of the observed values tilted by e^(βᵀz): it says nothing of
        the intercept, which follows from how many are missing, and that the table knows
        as well. Only of the part of the missing values that was looked up, and that is
        left out of the table's account, they bring the intercept too.
        """
        full = np.linalg.inv(self.covariance(theta, coordinates))
        level = full[:, :1] @ full[:1] / full[0, 0]
        share = self.revealed_mass / self.n_missing
        return np.asarray(full - (1.0 - share) * level)

    def at_budget(self, n_queried: float, slopes: FloatArray) -> Evidence:
        """What evidence to expect of another number of queries.

        Values as the fitted φ gives missing ones: the observed ones, tilted by their
        odds.
        """
        wanted = min(float(n_queried), float(self.n_missing))
        if wanted == self.revealed_mass:
            return self
        observed, mass = self.observed
        score = slopes @ observed
        law = mass * np.exp(score - score.max())
        return Evidence(
            np.concatenate([observed, observed], axis=1),
            len(mass),
            np.concatenate([wanted * law / law.sum(), mass]),
            self.n_missing,
        )


def group_starts(size: int) -> IntArray:
    """Where groups of neighbours start among sorted values."""
    if size <= GROUPS + 2 * ENDS:
        return np.arange(size)
    inner = np.linspace(ENDS, size - ENDS, GROUPS + 1).astype(np.intp)
    return np.concatenate([np.arange(ENDS), inner, np.arange(size - ENDS + 1, size)])


def _grouped(observed: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Distinct values, or means of neighbours if those are many, and their counts."""
    size = observed.shape[1]
    starts = group_starts(size)
    if len(starts) == size:
        return observed, np.ones(size)
    ordered = np.sort(observed)
    distinct = np.flatnonzero(np.diff(ordered[0], prepend=-np.inf))
    if len(distinct) <= len(starts):
        return ordered[:, distinct], np.diff(distinct, append=size).astype(np.float64)
    counts = np.diff(starts, append=size).astype(np.float64)
    return np.add.reduceat(ordered, starts, axis=1) / counts, counts


class Fits(NamedTuple):
    """Logistic regressions of "revealed" on the values, one for each evidence."""

    # Intercepts, not yet corrected, and slopes: (n_problems, 1 + n_columns).
    theta: FloatArray
    # Without a penalty.
    log_likelihood: FloatArray
    # Whether a hyperplane parts revealed from observed rows, which maximum likelihood
    # alone finds out.
    separated: BoolArray
    converged: BoolArray


def fit_evidence(problems: Sequence[Evidence], *, penalised: bool) -> Fits:
    """Fit many evidences with as many columns each, none of them constant, at once.

    With Firth's penalty the intercept is then set to its maximum-likelihood value given
    the slopes, so that the fit reproduces how many rows were revealed.
    """
    sizes = np.array([len(problem.mass) for problem in problems])
    order = np.argsort(sizes, kind="stable")
    groups: list[list[int]] = []
    for place in order.tolist():
        # Sizes grow, so that a group is as wide as its last problem.
        if groups and (len(groups[-1]) + 1) * sizes[place] <= BATCH_ENTRIES:
            groups[-1].append(place)
        else:
            groups.append([place])
    with one_blas_thread(int(sizes.sum())) as threads:
        parts = share(
            lambda group: _fit_batch([problems[i] for i in group], penalised),
            groups,
            threads,
        )
    back = np.argsort(np.concatenate([np.array(group) for group in groups]))
    return Fits(*(np.concatenate(column)[back] for column in zip(*parts, strict=True)))


def _fit_batch(problems: Sequence[Evidence], penalised: bool) -> Fits:
    # 1. One batch, its columns centred and scaled, the shorter problems filled up.
    n_rows = max(len(problem.mass) for problem in problems)
    design = np.zeros((len(problems), 1 + len(problems[0].values), n_rows))
    outcome, mass = np.zeros((2, len(problems), n_rows))
    coordinates = [problem.coordinates for problem in problems]
    for i, problem in enumerate(problems):
        size = len(problem.mass)
        design[i, :, :size] = coordinates[i].design(problem.values)
        outcome[i, : problem.n_revealed] = 1.0
        mass[i, :size] = problem.mass
    batch = LogisticBatch(design, outcome, mass, penalised)
    # 2. Solve it, from where nothing depends on the values.
    events = (mass * outcome).sum(axis=1)
    start = np.zeros(design.shape[:2])
    start[:, 0] = np.log(events / (mass.sum(axis=1) - events))
    solution = newton(batch, start, tol=TOLERANCE, max_iter=MAX_ITERATIONS)
    theta = solution.theta
    if penalised:
        # The fitted probabilities sum to the number of events, which they don't under
        # Firth's penalty (Puhr and others 2017).
        offset = (theta[:, None, 1:] @ design[:, 1:])[:, 0]
        theta[:, 0] = balanced_intercepts(offset, mass, events)
    # 3. Back on the scale of the values.
    pairs = zip(coordinates, theta, strict=True)
    return Fits(
        np.stack([own.restore(point) for own, point in pairs]),
        -replace(batch, penalised=False)(theta, second_order=False).value,
        solution.status == Status.NO_OPTIMUM,
        solution.status == Status.CONVERGED,
    )


def balanced_intercepts(
    offset: FloatArray, mass: FloatArray, expected: FloatArray | float
) -> FloatArray:
    """The intercepts at which Σ mass·expit(intercept + offset) is what is expected.

    By Newton's steps on the sum's logarithm, or half of the bracket where these leave
    it or don't halve the step before.
    """
    share = expected / np.broadcast_to(mass, offset.shape).sum(axis=-1)
    highest = offset.max(axis=-1)
    total = (np.exp(offset - highest[:, None]) * mass).sum(axis=-1)
    low = np.log(expected / total) - highest
    high = np.log(share / (1.0 - share)) - offset.min(axis=-1)
    first, last = low, np.full(len(low), np.inf)
    for _ in range(MAX_ITERATIONS):
        score = np.clip(first[:, None] + offset, -LARGEST_SCORE, LARGEST_SCORE)
        probability = expit(score)
        found = (probability * mass).sum(axis=-1)
        slope = (probability * (1.0 - probability) * mass).sum(axis=-1)
        low, high = (
            np.where(found <= expected, first, low),
            np.where(found >= expected, first, high),
        )
        step = np.log(expected / found) * found / np.maximum(slope, 1e-300)
        inside = (low <= first + step) & (first + step <= high)
        safe = inside & (2.0 * np.abs(step) <= last)
        step = np.where(safe, step, (low + high) / 2.0 - first)
        first, last = first + step, np.abs(step)
        if last.max() < 1e-6:
            break
    return np.asarray(first)


@dataclass(frozen=True)
class LogisticBatch:
    """−Σ mass·(yη − log(1 + e^η)) − ½ log det I(θ), η = θᵀx, for a batch of problems.

    The second term, which is left out for maximum likelihood, is Firth's penalty:
    Jeffreys's prior takes the first-order bias away and keeps the optimum finite where
    outcomes are separated. I(θ) = Σ w xxᵀ, w = mass·p(1 − p), is Fisher's information.

    Parameters
    ----------
    design : ndarray of shape (n_problems, n_parameters, n_rows)
        The columns x; the first is constant.
    outcome : ndarray of shape (n_problems, n_rows)
        One for an event, else zero.
    mass : ndarray of shape (n_problems, n_rows)
        How often a row counts; zero for one that only fills up the batch.
    penalised : bool
    """

    design: FloatArray
    outcome: FloatArray
    mass: FloatArray
    penalised: bool

    def problems(self, which: BoolArray) -> LogisticBatch:
        """Some problems of the batch."""
        parts = (self.design[which], self.outcome[which], self.mass[which])
        return LogisticBatch(*parts, self.penalised)

    @np.errstate(over="ignore", invalid="ignore")
    def __call__(self, theta: FloatArray, *, second_order: bool) -> Evaluation:
        """Evaluate at theta (n_problems, n_parameters).

        A step may be tried to where the information is singular but for rounding. What
        is not finite there the solver refuses.
        """
        sign = np.where(self.outcome > 0.0, -1.0, 1.0)
        score = (theta[:, None, :] @ self.design)[:, 0]
        # The odds against what came out, from which nothing cancels.
        odds = np.exp(np.minimum(sign * score, LARGEST_SCORE))
        value = (self.mass * np.log1p(odds)).sum(axis=1)
        surprise = odds / (1.0 + odds)
        residual = self.mass * surprise * sign
        spread = surprise * (1.0 - surprise)
        weight = self.mass * spread
        if not self.penalised:
            separated = ((odds < 1.0) | (self.mass == 0.0)).all(axis=1)
            hessian = self._square(weight) if second_order else None
            return Evaluation(value, self._sum(residual), hessian, separated)
        # ∂/∂θ ½ log det I = ½ tr(I⁻¹∂I) = ½ Σ ∂w xᵀI⁻¹x, with ∂w = w(1 − 2p) x. At an
        # iterate that makes I singular, log det I is −∞.
        information = self._square(weight)
        determinant_sign, log_det = np.linalg.slogdet(information)
        regular = (determinant_sign > 0.0) & np.isfinite(log_det)
        usable = np.where(
            regular[:, None, None], information, np.eye(information.shape[1])
        )
        inverse = np.linalg.inv(usable)
        leverage = np.einsum("gpk,gpk->gk", inverse @ self.design, self.design)
        bend = spread * (self.mass - 2.0 * np.abs(residual)) * sign
        gradient = self._sum(residual - 0.5 * bend * leverage)
        hessian = None
        if second_order:
            # tr(I⁻¹∂ᵣI I⁻¹∂ₛI), for every pair (r, s) of parameters.
            columns = self.design.swapaxes(0, 1)
            slopes = [inverse @ self._square(bend * column) for column in columns]
            stacked = np.stack(slopes, axis=1)
            traces = np.einsum("grij,gsji->grs", stacked, stacked)
            curved = self._square(weight * (1.0 - 6.0 * spread) * leverage)
            hessian = information - 0.5 * (curved - traces)
        penalty = 0.5 * np.where(regular, log_det, -np.inf)
        never = np.zeros(len(value), dtype=bool)
        return Evaluation(value - penalty, gradient, hessian, never)

    def _sum(self, weights: FloatArray) -> FloatArray:
        return np.asarray((self.design @ weights[..., None])[..., 0])

    def _square(self, weights: FloatArray) -> FloatArray:
        weighted = self.design * weights[:, None, :]
        return np.asarray(weighted @ self.design.swapaxes(1, 2))


def fit_lookups(
    evidence: Sequence[Evidence | None], method: str, names: Sequence[str]
) -> dict[int, FloatArray]:
    """φ's (α, β) by what was looked up, of features of a kind at once, by place."""
    thetas: dict[int, FloatArray] = {}
    known = {j: e for j, e in enumerate(evidence) if e is not None and e.n_revealed}
    for width in sorted({len(e.values) for e in known.values()}):
        alike = {j: e for j, e in known.items() if len(e.values) == width}
        fits = fit_evidence(list(alike.values()), penalised=method == "firth")
        pairs = list(zip(alike, fits.separated, fits.converged, strict=True))
        separated = [names[j] for j, is_separated, _ in pairs if is_separated]
        if separated:
            raise ValueError(
                f"In {joined(separated)} the revealed values are separated from the "
                "observed ones, so that no maximum of the likelihood exists. Use "
                "method='firth', or look up more values."
            )
        failed = [names[j] for j, _, converged in pairs if not converged]
        if failed:
            warnings.warn(
                f"The missingness of {joined(failed)} was not learned to full "
                "precision: its values may be on very different scales. Rescale them, "
                "and look for outliers.",
                ConvergenceWarning,
                stacklevel=4,
            )
        for (j, own), theta in zip(alike.items(), fits.theta, strict=True):
            theta[0] -= own.sampling_offset
            thetas[j] = theta
    return thetas
