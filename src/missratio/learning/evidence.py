"""What is known of missing values: those observed, and those that were looked up."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from missratio._base.blocks import any_by_row
from missratio._base.reading import joined
from missratio._base.storable import storable
from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.missingness.contract import check_no_partial_row
from missratio.solver import Evaluation, Solution, Status, newton


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
    def of(cls, values: FloatArray, mass: FloatArray) -> Coordinates:
        """Mean and standard deviation of values of shape (n_columns, n_values)."""
        total = mass.sum()
        centre = values @ mass / total
        scale = np.sqrt(((values - centre[:, None]) ** 2) @ mass / total)
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


TOLERANCE = 1e-7
MAX_ITERATIONS = 100
LARGEST_SCORE = 700.0


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

    def solve(self, start: FloatArray | None = None) -> Solution:
        """Fit every problem, from zero or from a start."""
        if start is None:
            events = (self.mass * self.outcome).sum(axis=1)
            start = np.zeros(self.design.shape[:2])
            start[:, 0] = np.log(events / (self.mass.sum(axis=1) - events))
        return newton(self, start, tol=TOLERANCE, max_iter=MAX_ITERATIONS)

    def solve_intercept(self, theta: FloatArray) -> FloatArray:
        """Theta with the first entry set anew, by maximum likelihood given the rest.

        The fitted probabilities then sum to the number of events, which they don't
        under Firth's penalty (Puhr and others 2017).
        """
        offset = _dot(self.design[:, 1:], theta[:, 1:])
        alone = replace(self, design=self.design[:, :1], penalised=False)
        problem = _WithOffset(alone, offset)
        solution = newton(problem, theta[:, :1], tol=TOLERANCE, max_iter=MAX_ITERATIONS)
        return np.concatenate([solution.theta, theta[:, 1:]], axis=1)

    def problems(self, which: BoolArray) -> LogisticBatch:
        """Some problems of the batch."""
        parts = (self.design[which], self.outcome[which], self.mass[which])
        return LogisticBatch(*parts, self.penalised)

    @cached_property
    def _sign(self) -> FloatArray:
        """−1 for an event, 1 for none."""
        return np.where(self.outcome > 0.0, -1.0, 1.0)

    def __call__(self, theta: FloatArray, *, second_order: bool) -> Evaluation:
        """Evaluate at theta (n_problems, n_parameters).

        A step may be tried to where the information is singular but for rounding. What
        is not finite there the solver refuses.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            return self.at_score(_dot(self.design, theta), second_order=second_order)

    def at_score(self, score: FloatArray, *, second_order: bool) -> Evaluation:
        """Evaluate where η is `score`, of shape (n_problems, n_rows)."""
        # The odds against what came out, from which nothing cancels.
        odds = np.exp(np.minimum(self._sign * score, LARGEST_SCORE))
        value = (self.mass * np.log1p(odds)).sum(axis=1)
        surprise = odds / (1.0 + odds)
        residual = self.mass * surprise * self._sign
        spread = surprise * (1.0 - surprise)
        weight = self.mass * spread
        if not self.penalised:
            separated = ((odds < 1.0) | (self.mass == 0.0)).all(axis=1)
            hessian = self._square(weight) if second_order else None
            return Evaluation(value, self._sum(residual), hessian, separated)
        # ∂/∂θ ½ log det I = ½ tr(I⁻¹∂I) = ½ Σ ∂w xᵀI⁻¹x, with ∂w = w(1 − 2p) x.
        information = self._square(weight)
        inverse, log_det = _inverse(information)
        leverage = np.einsum("gpk,gpk->gk", inverse @ self.design, self.design)
        bend = spread * (self.mass - 2.0 * np.abs(residual))
        bend *= self._sign
        gradient = self._sum(residual - 0.5 * bend * leverage)
        hessian = None
        if second_order:
            curved = self._square(weight * (1.0 - 6.0 * spread) * leverage)
            hessian = information - 0.5 * (curved - self._traces(bend, inverse))
        never = np.zeros(len(value), dtype=bool)
        return Evaluation(value - 0.5 * log_det, gradient, hessian, never)

    def _traces(self, bend: FloatArray, inverse: FloatArray) -> FloatArray:
        """tr(I⁻¹∂ᵣI I⁻¹∂ₛI), for every pair (r, s) of parameters."""
        slopes = [
            inverse @ self._square(bend * self.design[:, r])
            for r in range(self.design.shape[1])
        ]
        stacked = np.stack(slopes, axis=1)
        return np.asarray(np.einsum("grij,gsji->grs", stacked, stacked))

    def _sum(self, weights: FloatArray) -> FloatArray:
        return _dot(self.design.swapaxes(1, 2), weights)

    def _square(self, weights: FloatArray) -> FloatArray:
        weighted = self.design * weights[:, None, :]
        return np.asarray(weighted @ self.design.swapaxes(1, 2))


@dataclass(frozen=True)
class _WithOffset:
    """A batch of problems whose scores have a part that is given."""

    batch: LogisticBatch
    offset: FloatArray

    def __call__(self, theta: FloatArray, *, second_order: bool) -> Evaluation:
        score = _dot(self.batch.design, theta) + self.offset
        return self.batch.at_score(score, second_order=second_order)

    def problems(self, which: BoolArray) -> _WithOffset:
        """Some problems of the batch."""
        return _WithOffset(self.batch.problems(which), self.offset[which])


def _dot(columns: FloatArray, vectors: FloatArray) -> FloatArray:
    """Σ_p vectors[g, p] columns[g, p, k]."""
    return np.asarray((vectors[:, None, :] @ columns)[:, 0])


def _inverse(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Inverse and log determinant; −∞ where an iterate went where it is singular."""
    sign, log_det = np.linalg.slogdet(matrix)
    regular = (sign > 0.0) & np.isfinite(log_det)
    usable = np.where(regular[:, None, None], matrix, np.eye(matrix.shape[1]))
    return np.asarray(np.linalg.inv(usable)), np.where(regular, log_det, -np.inf)


# Entries of a batch, which should fit the cache with its temporaries.
BATCH_ENTRIES = 2**15
# Of a feature's observed values so many group means are kept, and the outermost values
# themselves; of whole rows so many.
GROUPS = 2**10
ENDS = 2**7
KEPT_ROWS = 2**14


@storable()
@dataclass(frozen=True)
class Evidence:
    """Observed and revealed values of a feature, or of whole rows, of one class.

    Parameters
    ----------
    values : ndarray of shape (n_columns, n_known)
        Those that were missing and have been revealed come first.
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

    @property
    def outcome(self) -> FloatArray:
        """One for a revealed row and zero for an observed one."""
        outcome = np.zeros(len(self.mass))
        outcome[: self.n_revealed] = 1.0
        return outcome

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
        return Coordinates.of(self.values, np.ones(len(self.mass)))

    @property
    def constant(self) -> BoolArray:
        """Which columns have only one value."""
        return np.asarray(self.values.min(axis=1) == self.values.max(axis=1))

    def without_slope(self) -> Evidence:
        """The same without values: of a feature that has only one, φ is a number."""
        return replace(self, values=self.values[:0])

    def at_budget(self, n_queried: float, slopes: FloatArray) -> Evidence:
        """What evidence to expect of another number of queries.

        Values as the fitted φ gives missing ones: the observed ones, tilted by their
        odds.
        """
        wanted = min(float(n_queried), float(self.n_missing))
        if wanted == self.revealed_mass:
            return self
        observed = self.values[:, self.n_revealed :]
        mass = self.mass[self.n_revealed :]
        score = slopes @ observed
        law = mass * np.exp(score - score.max())
        return Evidence(
            np.concatenate([observed, observed], axis=1),
            len(mass),
            np.concatenate([wanted * law / law.sum(), mass]),
            self.n_missing,
        )

    @classmethod
    def collect(
        cls, observed: FloatArray, revealed: FloatArray, n_missing: int
    ) -> Evidence:
        """Put values of shape (n_columns, n_rows) together, and make many to few.

        Observed values of one feature give way to the means of groups of neighbours,
        which changes a fit by a few thousandths of its standard error at most. Of very
        many whole rows every k-th is kept and stands for k; beside m revealed ones that
        adds m/16,384 to the variance at most.
        """
        kept, counts = observed, np.ones(observed.shape[1])
        if len(observed) == 1:
            kept, counts = _grouped(observed)
        elif observed.shape[1] > 2 * KEPT_ROWS:
            kept = observed[:, :: observed.shape[1] // KEPT_ROWS]
            counts = np.full(kept.shape[1], observed.shape[1] / kept.shape[1])
        return cls(
            np.concatenate([revealed, kept], axis=1),
            revealed.shape[1],
            np.concatenate([np.ones(revealed.shape[1]), counts]),
            n_missing,
        )


def group_starts(size: int) -> IntArray:
    """Where groups of neighbours start among so many sorted values."""
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


@dataclass(frozen=True, slots=True)
class Fits:
    """Logistic regressions of "revealed" on the values, one for each evidence.

    Parameters
    ----------
    theta : ndarray of shape (n_problems, 1 + n_columns)
        Intercepts, not yet corrected, and slopes.
    log_likelihood : ndarray of shape (n_problems,)
        Without a penalty.
    separated : ndarray of bool of shape (n_problems,)
        Whether a hyperplane parts revealed from observed rows (maximum likelihood
        alone finds out).
    converged : ndarray of bool of shape (n_problems,)
    """

    theta: FloatArray
    log_likelihood: FloatArray
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
            lambda group: _fit_group([problems[i] for i in group], penalised),
            groups,
            threads,
        )
    back = np.argsort(np.concatenate([np.array(group) for group in groups]))
    return Fits(*(np.concatenate(column)[back] for column in zip(*parts, strict=True)))


def _fit_group(
    problems: Sequence[Evidence], penalised: bool
) -> tuple[FloatArray, FloatArray, BoolArray, BoolArray]:
    # 1. One batch, its columns centred and scaled, the shorter problems filled up.
    n_rows = max(len(problem.mass) for problem in problems)
    width = 1 + len(problems[0].values)
    design = np.zeros((len(problems), width, n_rows))
    design[:, 0] = 1.0
    outcome, mass = np.zeros((2, len(problems), n_rows))
    back = np.tile(np.eye(width), (len(problems), 1, 1))
    for i, problem in enumerate(problems):
        size = len(problem.mass)
        centre = problem.values.mean(axis=1)
        scale = problem.values.std(axis=1)
        design[i, 1:, :size] = (problem.values - centre[:, None]) / scale[:, None]
        outcome[i, : problem.n_revealed] = 1.0
        mass[i, :size] = problem.mass
        back[i, 0, 1:], back[i, 1:, 1:] = -centre / scale, np.diag(1.0 / scale)
    batch = LogisticBatch(design, outcome, mass, penalised)
    # 2. Solve it.
    solution = batch.solve()
    # 3. Back on the scale of the values.
    theta = solution.theta
    if penalised:
        theta = batch.solve_intercept(theta)
    return (
        (back @ theta[..., None])[..., 0],
        -replace(batch, penalised=False)(theta, second_order=False).value,
        solution.status == Status.NO_OPTIMUM,
        solution.status == Status.CONVERGED,
    )


Fitted = dict[int, tuple[FloatArray, Evidence]]
"""Parameters by place, intercepts not yet corrected, and what they were fitted to."""


def evidence_of_features(
    table: NDArray[Any], answers: NDArray[Any], names: tuple[str, ...]
) -> list[Evidence | None]:
    """Each feature's evidence; None where it is never missing."""
    evidence: list[Evidence | None] = []
    unseen = []
    for j, name in enumerate(names):
        column = table[:, j].astype(np.float64, copy=False)
        known = answers[:, j].astype(np.float64, copy=False)
        # By number: a mask of which half is true takes longer.
        observed = column[np.flatnonzero(~np.isnan(column))]
        looked_up = known[~np.isnan(known)]
        n_missing = len(column) - len(observed)
        if n_missing == 0:
            evidence.append(None)
            continue
        unseen += [] if len(observed) else [name]
        if len(observed):
            found = Evidence.collect(observed[None], looked_up[None], n_missing)
            evidence.append(found if not found.constant[0] else found.without_slope())
    if unseen:
        raise ValueError(
            f"Column(s) {joined(unseen)} are never observed: what is always missing "
            "can't be weighted back. Leave them out."
        )
    return evidence


def evidence_of_rows(
    table: NDArray[Any],
    answers: NDArray[Any],
    names: tuple[str, ...],
    *,
    needed: bool,
) -> list[Evidence | None]:
    """The evidence on whole rows; `needed` where nothing else could teach."""
    check_no_partial_row(table, 0)
    lost = any_by_row(np.isnan(table))
    known = ~any_by_row(np.isnan(answers))
    partial = ~known & any_by_row(~np.isnan(answers))
    if partial.any():
        raise ValueError(
            f"revealed has some but not all entries of row {int(np.argmax(partial))}: "
            "a rowwise model needs whole rows. Look up the rest, or set them to NaN."
        )
    if not lost.any():
        return [None]
    if lost.all() or (needed and not known.any()):
        what = "observed in X" if lost.all() else "revealed"
        raise ValueError(
            f"No row is {what}: why rows are missing can't be learned without. Look up "
            "some missing rows, and give observed ones."
        )
    rows = (table[~lost].T, answers[known].T)
    observed, looked_up = (np.ascontiguousarray(r, dtype=np.float64) for r in rows)
    evidence = Evidence.collect(observed, looked_up, int(lost.sum()))
    if evidence.constant.any():
        flat = [names[j] for j in np.flatnonzero(evidence.constant)]
        raise ValueError(
            f"Column(s) {joined(flat)} are constant: their slope can't be learned. "
            "Leave them out."
        )
    return [evidence]


def fit_lookups(
    evidence: list[Evidence | None], method: str, names: tuple[str, ...]
) -> Fitted:
    """Fit what was looked up, features of a kind at once."""
    result: Fitted = {}
    known = {j: e for j, e in enumerate(evidence) if e is not None and e.n_revealed}
    for width in sorted({len(e.values) for e in known.values()}):
        of_width = {j: e for j, e in known.items() if len(e.values) == width}
        fits = fit_evidence(list(of_width.values()), penalised=method == "firth")
        _check_fits(fits, [names[j] if len(evidence) > 1 else "rows" for j in of_width])
        for i, (j, e) in enumerate(of_width.items()):
            result[j] = (fits.theta[i], e)
    return result


def _check_fits(fits: Fits, names: list[str]) -> None:
    separated = [names[i] for i in np.flatnonzero(fits.separated)]
    if separated:
        raise ValueError(
            f"In {joined(separated)} the revealed values are separated from the "
            "observed ones, so that no maximum of the likelihood exists. Use "
            "method='firth', or look up more values."
        )
    if not fits.converged.all():
        failed = [names[i] for i in np.flatnonzero(~fits.converged)]
        warnings.warn(
            f"The missingness of {joined(failed)} was not learned to full precision: "
            "its values may be on very different scales. Rescale them, and look for "
            "outliers.",
            ConvergenceWarning,
            stacklevel=5,
        )
