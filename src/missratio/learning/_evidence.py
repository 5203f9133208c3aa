"""What is known of missing values: those observed, and those that were looked up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.learning._coordinates import Coordinates
from missratio.learning._logistic import LogisticBatch
from missratio.solver import Status

# Entries of a batch, which should fit the cache with its temporaries.
BATCH_ENTRIES = 2**15
# Of a feature's observed values so many group means are kept, and the outermost values
# themselves; of whole rows so many.
GROUPS = 2**10
ENDS = 2**7
KEPT_ROWS = 2**14


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
