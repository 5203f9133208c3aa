"""Joint fits: from two classes' rows to a problem, its penalties, and its solution."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self, get_args

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike
from sklearn import config_context, get_config
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from missratio._base.blocks import unmasked
from missratio._base.hints import listed
from missratio._base.reading import column_names, read_table
from missratio._base.threads import one_blas_thread
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.basis import Basis, LinearBasis, as_basis
from missratio.engine import HELD_ELEMENTS, AnySample, RowSample
from missratio.exceptions import (
    DataError,
    Message,
    NoFiniteOptimumWarning,
    NotSolvedWarning,
    Remedy,
    SmallSampleWarning,
)
from missratio.missingness import Missingness
from missratio.objective import KLIEPObjective, Objective
from missratio.ratio.adjusted import adjust
from missratio.ratio.base import (
    BaseRatio,
    EachColumnBasis,
    ReadingRatio,
    SolverName,
    check_choice,
    check_penalty,
    given,
    report_status,
)
from missratio.ratio.problem import RatioProblem, WeightedMean
from missratio.ratio.solve import solve
from missratio.rows import (
    ClassRows,
    KnownWeights,
    LabelledSource,
    MemorySource,
    Normalization,
    RowBlock,
    Unweighted,
    WeightCheck,
    WeightSums,
    as_source,
    by_partition,
    check_missingness,
    class_rows,
    effective_size,
    only_columns,
    refuse_source,
    single_sums,
    survey,
    warn_if_contradicted,
    warn_of_concentration,
    weights_of_features,
    with_features,
)
from missratio.solver import Solution, Status
from missratio.tensor import (
    TensorSample,
    TensorSource,
    as_numpy,
    check_rows,
    is_tensor,
    labelled_tensor,
    like,
    on_device,
    on_host,
    tensor_classes,
    within_memory,
)
from missratio.weights import SampleSize, effective_sample_size

PenaltyWeights = Literal["uniform", "standard-error", "covariance"]
# So many times a feature's variance leaves nothing of its coefficient.
HELD = 1e8


# Strengths of the L1 and the ridge penalty for each feature, and what strength one is:
# of |θ_j|, and of ½θ_j² or a matrix M of ½θᵀMθ; None stands for ones.
Strength = tuple[FloatArray, FloatArray]
PenaltyUnits = tuple[FloatArray | None, FloatArray | None]


def penalty_units(
    penalty_weights: PenaltyWeights,
    rows: ClassRows,
    required: BoolArray,
    sums: WeightSums,
    mean: FloatArray,
    denominator_variance: FloatArray,
) -> PenaltyUnits:
    """Units from the sampling error of the numerator's weighted means.

    Parameters
    ----------
    penalty_weights : {"standard-error", "covariance"}
    rows : ClassRows
        The numerator class.
    required : ndarray of bool of shape (n_features, n_columns)
        The columns that each feature needs.
    sums : WeightSums
        What was found of the numerator's weights.
    mean : ndarray of shape (n_features,)
        The weighted means.
    denominator_variance : ndarray of shape (n_features,)
        Of the features, over the denominator class: zero exactly where constant.
    """
    whole = penalty_weights == "covariance"
    covariance = mean_covariance(rows, required, sums, mean, diagonal=not whole)
    variance = np.diagonal(covariance) if whole else covariance
    size = np.broadcast_to(sums.kish, mean.shape)
    constant = denominator_variance == 0.0
    spread = np.where(constant, size * variance, denominator_variance)
    spread[spread == 0.0] = 1.0
    # A feature that doesn't vary in the numerator has a standard error of zero, and
    # its penalty would vanish with it. So one row more is reckoned with, a denominator
    # standard deviation away. One that doesn't vary in the denominator could be tilted
    # there by any amount, and stays at zero.
    trace = spread * np.where(constant, HELD, 1.0 / size**2)
    standard_error = np.sqrt(variance + trace)
    if whole:
        return standard_error, covariance + np.diag(trace)
    return standard_error, standard_error**2


def mean_covariance(
    rows: ClassRows,
    required: BoolArray,
    sums: WeightSums,
    mean: FloatArray,
    *,
    diagonal: bool,
) -> FloatArray:
    """The sampling covariance of weighted means, by linearisation.

    A weighted mean is a sum over rows: of w(f − mean)/Σw under Hájek's normalisation,
    of (wf − mean)/n under Horvitz and Thompson's. The covariance is estimated by the
    sum of the products of these terms, each feature with its own weights. Adjusted
    terms are summed up as they are.

    Returns
    -------
    ndarray of shape (n_features, n_features), or (n_features,) for the diagonal alone
    """
    columns = only_columns(required)
    divisor = rows.divisor(sums.mass)

    def terms(block: RowBlock) -> FloatArray:
        """What rows add to the errors of the means."""
        own = None if block.weights is None else block.weights[:, None]
        if rows.adjusted is not None:
            change: FloatArray = (rows.adjusted[block.place] - mean) / rows.own_total
            return change if own is None else own * change
        weights = rows.weigh(block)
        if weights is None:
            change = (block.features - mean) / divisor
            return change if own is None else own * change
        if weights.ndim == 2:
            weights = weights_of_features(weights, columns, rows.groups)
        else:
            weights = weights[:, None]
        combined = weights if own is None else weights * own
        values = np.where(combined > 0.0, block.features, mean)
        if rows.self_normalised:
            return combined * (values - mean) / divisor
        return (combined * values - (1.0 if own is None else own) * mean) / divisor

    def work(block: RowBlock) -> FloatArray:
        change = terms(block)
        return (change**2).sum(axis=0) if diagonal else change.T @ change

    return rows.source.fold(work, lambda parts: np.sum(parts, axis=0))


def check_ridge_alone(estimator: Any, what: str) -> None:
    """Refuse what can't be had where problems are solved as one."""
    plain = {"l1": 0.0, "penalty_weights": "uniform", "fallback": "raise"}
    given = estimator.get_params(deep=False)
    odd = [name for name, value in plain.items() if not _is(given.get(name), value)]
    if odd or "l2" not in given:
        raise ValueError(
            f"{what} takes a ridge penalty alone, such as KLIEP(l2=0.01); got "
            f"{estimator!r}."
        )
    if given["normalize"] == "regression":
        raise ValueError(
            f"{what} takes normalize='hajek' or 'horvitz-thompson'; got {estimator!r}."
        )


def _is(given: Any, value: Any) -> bool:
    return given is None or (np.ndim(given) == 0 and given == value)


@dataclass(frozen=True, slots=True)
class JointSolution:
    """The solutions of all parts, as one.

    Parameters
    ----------
    solutions : tuple of Solution
        One for each part.
    coef, gradient : ndarray of shape (n_features,)
    intercepts : ndarray of shape (n_problems,)
        For features that are not centred, in the order of the problems' features; the
        ratio's is their sum.
    status, n_iter : ndarray of int of shape (n_problems,)
        In the same order.
    """

    solutions: tuple[Solution, ...]
    coef: FloatArray
    gradient: FloatArray
    intercepts: FloatArray
    status: IntArray
    n_iter: IntArray

    @property
    def value(self) -> float:
        """The objective, penalties included."""
        return float(sum(solution.value.sum() for solution in self.solutions))

    @property
    def worst(self) -> tuple[int, float, int]:
        """Status, decrement and steps of the problem that says most.

        That is one without an optimum, else one that didn't converge, else any.
        """
        order = {Status.NO_OPTIMUM: 0, Status.CONVERGED: 2}
        found = [
            (int(status), float(decrement), int(n_iter))
            for one in self.solutions
            for status, decrement, n_iter in zip(
                one.status, one.decrement, one.n_iter, strict=True
            )
        ]
        return min(found, key=lambda each: order.get(Status(each[0]), 1))


@dataclass(frozen=True)
class JointProblem:
    """Problems that share no feature, and what was found of both classes' weights.

    All of a joint fit is one; fitted apart, columns with as many basis features each
    are one batch.
    """

    parts: tuple[RatioProblem, ...]
    numerator: WeightSums
    denominator: WeightSums

    @property
    def n_features(self) -> int:
        """How many basis features all parts have."""
        return sum(part.features.size for part in self.parts)

    @cached_property
    def order(self) -> IntArray:
        """The problems of all parts in the order of their features."""
        return np.argsort(np.concatenate([part.features[:, 0] for part in self.parts]))

    def _gather(self, values: Sequence[FloatArray]) -> FloatArray:
        """One array in the order of the basis features."""
        gathered = np.empty(self.n_features)
        for part, each in zip(self.parts, values, strict=True):
            gathered[part.features] = each
        return gathered

    def numerator_mean(self) -> FloatArray:
        """The numerator's weighted mean of each basis feature, as it is matched."""
        means = []
        for part in self.parts:
            assert isinstance(part.numerator, WeightedMean)
            means.append(part.numerator.mean + part.centre)
        return self._gather(means)

    def centre(self) -> FloatArray:
        """Where each basis feature is centred."""
        return self._gather([part.centre for part in self.parts])

    def start_gradient(self) -> FloatArray:
        """The gradient of the objective at a ratio of one."""
        gradients = []
        for part in self.parts:
            plain = replace(part, l1=None, l2=None)
            gradient = plain(plain.start(), second_order=False).gradient
            gradients.append(gradient[:, : part.features.shape[1]])
        return self._gather(gradients)

    def denominator_variance(self) -> FloatArray:
        """Each basis feature's variance, as in KLIEP's Hessian at a ratio of one."""
        variances = []
        for part in self.parts:
            plain = replace(part, l1=None, l2=None)
            hessian = plain(plain.start(), second_order=True).hessian
            assert hessian is not None
            variance = np.maximum(np.diagonal(hessian, axis1=1, axis2=2), 0.0).copy()
            variance[constant_features(plain.denominator)] = 0.0
            variances.append(variance)
        return self._gather(variances)

    def penalised(self, units: PenaltyUnits, strength: Strength) -> JointProblem:
        """The same parts under penalties."""
        both = (
            each if unit is None else each * unit
            for each, unit in zip(strength, units, strict=True)
        )
        l1, l2 = (each if each.any() else None for each in both)
        parts = []
        for part in self.parts:
            own = part.features
            own_l1 = None if l1 is None else l1[own]
            own_l2 = None if l2 is None else l2[own]
            if l2 is not None and l2.ndim == 2:
                own_l2 = l2[own[:, :, None], own[:, None, :]]
            parts.append(replace(part, l1=own_l1, l2=own_l2))
        return replace(self, parts=tuple(parts))

    def solve(
        self,
        *,
        solver: str,
        tol: float,
        max_iter: int,
        start: JointSolution | None = None,
    ) -> JointSolution:
        """Solve all parts, beginning at another solution if there is one."""
        begin: list[FloatArray | None] = [None] * len(self.parts)
        if start is not None:
            begin = [solution.theta for solution in start.solutions]
        options: dict[str, Any] = {"solver": solver, "tol": tol, "max_iter": max_iter}
        solutions = [
            solve(part, **options, start=theta)
            for part, theta in zip(self.parts, begin, strict=True)
        ]
        pairs = list(zip(self.parts, solutions, strict=True))
        widths = [part.features.shape[1] for part in self.parts]
        thetas = [one.theta[:, :w] for one, w in zip(solutions, widths, strict=True)]
        slopes = [one.gradient[:, :w] for one, w in zip(solutions, widths, strict=True)]
        intercepts = [part.intercept(one) for part, one in pairs]
        return JointSolution(
            tuple(solutions),
            self._gather(thetas),
            self._gather(slopes),
            np.concatenate(intercepts)[self.order],
            np.concatenate([one.status for one in solutions])[self.order],
            np.concatenate([one.n_iter for one in solutions])[self.order],
        )

    def tilt_size(self, solution: JointSolution) -> float:
        """The effective number of tilted denominator rows; the least over parts."""
        pairs = zip(self.parts, solution.solutions, strict=True)
        return float(min(part.tilt_size(one).min() for part, one in pairs))

    def value(self, coef: FloatArray, intercepts: FloatArray) -> float:
        """The objective at given coefficients, and intercepts of the problems."""
        total, start = 0.0, 0
        unordered = np.empty_like(intercepts)
        unordered[self.order] = intercepts
        for part in self.parts:
            own = unordered[start : (start := start + len(part.features))]
            theta = part.theta(coef[part.features], own)
            total += float(part(theta, second_order=False).value.sum())
        return total


def constant_features(sample: AnySample | TensorSample) -> BoolArray:
    """Which features have one value only over all rows, (n_problems, n_features)."""
    few = sample.peek()
    value = few[:, :1]
    constant: BoolArray = (few == value).all(axis=1)
    if not constant.any():
        return constant
    found = sample.fold(
        lambda features, weights: (features == value).all(axis=1),
        merge=lambda parts: np.all(parts, axis=0),
    )
    return np.asarray(found)


@dataclass(frozen=True, slots=True)
class CompleteRows:
    """A class's complete rows.

    Parameters
    ----------
    rows : ClassRows
        With all that they weigh as their weights; or, if `in_passing`, all rows of the
        class, which are too many to write their weights down.
    sums : WeightSums
        Of the inverse-probability weights.
    total : ndarray of shape (1,)
        What weighted sums are divided by.
    in_passing : bool
    """

    rows: ClassRows
    sums: WeightSums
    total: FloatArray
    in_passing: bool = False

    @classmethod
    def of(cls, rows: ClassRows) -> CompleteRows:
        """Find them, in one pass over the class's rows."""
        if not isinstance(rows.source, MemorySource):
            sums = rows.complete_sums()
            return cls(rows, sums, rows.divisor(sums.mass), in_passing=True)
        source = rows.source
        # NaN and infinities show in the scores of large tables, and no pass looks for
        # them: that saves a tenth of a fit of complete rows.
        in_scores = (
            source.size > HELD_ELEMENTS
            and source.weights is None
            and source.features is source.table
            and isinstance(rows.weighing, Unweighted)
            and bool(np.isfinite(rows.peek()).all())
        )
        weights = None if in_scores else rows.whole_row_weights()
        sums = single_sums(weights, rows)
        return cls(rows.complete_rows(weights), sums, rows.divisor(sums.mass))

    def few(self, n_columns: int) -> str | None:
        """Say so where too few are left of a class that loses single values.

        Too few are as many as there are columns, counted after Kish: fewer can't tell
        the columns apart.
        """
        size = float(self.sums.kish[0]) if self.in_passing else float(self.rows.n_rows)
        if size and isinstance(self.rows.weighing, KnownWeights):
            size = float(effective_sample_size(self.rows.weighing.weights))
        if size > n_columns:
            return None
        return (
            f"Class {self.rows.label!r} has {int(self.sums.count[0])} row(s) in which "
            f"everything is observed, of {self.sums.n_rows}, worth {size:.1f} of equal "
            f"weight; a joint fit of {n_columns} column(s) needs more than {n_columns}."
        )

    def sample(self, centre: FloatArray) -> AnySample | TensorSample:
        """As a sample of one problem."""
        if not self.sums.count[0]:
            raise ValueError(
                f"Class {self.rows.label!r} has no row in which everything is observed "
                f"(of {self.sums.n_rows}), and its joint fit needs complete rows. Use "
                "NaiveBayesRatio, fewer columns, or more rows."
            )
        if isinstance(self.rows.source, TensorSource):
            tensors: AnySample = self.rows.source.sample(self.total)  # type: ignore[assignment]
            return tensors
        sample = RowSample(
            self.rows, None, None, self.total, in_passing=self.in_passing
        )
        return _held(sample, centre)


def _held(sample: RowSample, centre: FloatArray) -> AnySample:
    """Small samples as a centred copy, large ones read in place."""
    if sample.size <= HELD_ELEMENTS:
        return sample.held(1, centre, single=False)
    return sample


def weighted_means(
    rows: ClassRows, sums: WeightSums
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A class's means of features, their centre, and the mean of the weights.

    The means are ΣWf/ΣW or ΣWf/n, as the class is divided; the centre is ΣWf/ΣW.
    """
    # Rounded as the features are, so that both classes are centred alike.
    dtype = rows.source.features.dtype
    if rows.adjusted is not None:
        # Terms of all rows: a fold may do without any in which one is observed.
        mean = np.average(rows.adjusted, axis=0, weights=rows.source.weights)
        centre = mean.astype(dtype).astype(np.float64)
        return mean, centre, np.ones(len(mean))
    totals = sums.sums
    if sums.origin is not None:
        totals = totals + sums.mass * sums.origin.astype(np.float64)
    divisor = rows.divisor(sums.mass)
    centre = (totals / sums.mass).astype(dtype).astype(np.float64)
    return totals / divisor, centre, sums.mass / divisor


def joint_problem(
    objective: Objective,
    numerator: ClassRows,
    denominator: ClassRows,
    basis: Basis,
    complete: CompleteRows | None = None,
) -> JointProblem:
    """One problem in all features, without penalties, on complete denominator rows."""
    sums = numerator.feature_sums(only_columns(basis.required_columns_))
    mean, centre, mass = weighted_means(numerator, sums)
    complete = CompleteRows.of(denominator) if complete is None else complete
    centre = centre[None]
    sample: AnySample | TensorSample | WeightedMean
    if objective.linear_numerator:
        whole = mass if len(mass) == 1 else np.ones(1)
        sample = WeightedMean.centred(mean[None], whole, centre, objective)
    else:
        own = CompleteRows.of(numerator)
        sample, sums = own.sample(centre), own.sums
    features = np.arange(centre.shape[1])[None]
    problem = RatioProblem(
        objective, sample, complete.sample(centre), centre, features=features
    )
    return JointProblem((problem,), sums, complete.sums)


def separate_problem(
    objective: Objective, numerator: ClassRows, denominator: ClassRows, basis: Basis
) -> JointProblem:
    """One problem for each column: naive Bayes, without penalties.

    Each uses all rows in which its column is observed.
    """
    owner = single_columns(basis)
    sums = [rows.feature_sums(owner) for rows in (numerator, denominator)]
    mean, centres, mass = weighted_means(numerator, sums[0])
    mass = np.broadcast_to(mass, owner.shape)
    parts = []
    for features in _by_width(owner):
        centre = centres[features]
        own: AnySample | WeightedMean
        if objective.linear_numerator:
            share = mass[features[:, 0]]
            own = WeightedMean.centred(mean[features], share, centre, objective)
        else:
            own = _column_sample(numerator, sums[0], owner, features, centre)
        other = _column_sample(denominator, sums[1], owner, features, centre)
        parts.append(RatioProblem(objective, own, other, centre, features=features))
    return JointProblem(tuple(parts), sums[0], sums[1])


def _column_sample(
    rows: ClassRows,
    sums: WeightSums,
    owner: IntArray,
    features: IntArray,
    centre: FloatArray,
) -> AnySample:
    total = np.broadcast_to(rows.divisor(sums.mass), owner.shape)[features[:, 0]]
    stand_in = rows.some_observed(owner)[features]
    sample = RowSample(rows, features, owner[features[:, 0]], total, stand_in)
    return _held(sample, centre)


def _by_width(owner: IntArray) -> list[IntArray]:
    """Features of columns, an array for the columns that have as many each."""
    own = [np.flatnonzero(owner == column) for column in np.unique(owner)]
    widths = np.array([len(each) for each in own])
    return [
        np.array([each for each in own if len(each) == width])
        for width in np.unique(widths)
    ]


def single_columns(basis: Basis) -> IntArray:
    """The column that each basis feature needs, where it needs no other."""
    required = basis.required_columns_
    several = np.flatnonzero(required.sum(axis=1) != 1)
    if len(several):
        names = [str(name) for name in basis.get_feature_names_out()[several[:10]]]
        raise ValueError(
            "fallback='naive-bayes' needs basis features of one column each, and "
            f"{names} are not. Use a basis without products, or fallback='raise'."
        )
    owner: IntArray = required.argmax(axis=1)
    return owner


# Squares of larger features, and of smaller ones than its inverse, leave the range.
LARGEST = 1e150
CHOICES = {
    "normalize": get_args(Normalization),
    "solver": get_args(SolverName),
    "fallback": ("raise", "naive-bayes"),
    "penalty_weights": get_args(PenaltyWeights),
}


def check_parameters(estimator: Any, objective: Objective) -> None:
    """Refuse parameters of a joint fit that have no meaning."""
    for name, choices in CHOICES.items():
        check_choice(name, getattr(estimator, name), choices)
    if estimator.normalize == "regression" and not objective.linear_numerator:
        raise ValueError(
            "normalize='regression' is for objectives in which the numerator enters "
            f"through means, as KLIEP's; got {estimator!r}. Use 'hajek' or "
            "'horvitz-thompson'."
        )
    if not estimator.tol > 0.0 or not estimator.max_iter >= 1:
        raise ValueError(
            f"tol must be above 0 and max_iter at least 1, got {estimator.tol!r} and "
            f"{estimator.max_iter!r}."
        )


def stack_samples(X1: Any, X0: Any) -> tuple[Any, Any]:
    """Two tables as one labelled table."""
    check_columns(X1, X0)
    frames = [nw.from_native(X, eager_only=True, pass_through=True) for X in (X1, X0)]
    labels = np.repeat([1, 0], [len(X1), len(X0)])
    if all(isinstance(frame, nw.DataFrame) for frame in frames):
        return nw.concat(frames, how="vertical").to_native(), labels
    return np.concatenate([np.asarray(unmasked(X)) for X in (X1, X0)]), labels


def read_two_samples(
    estimator: BaseRatio, X1: Any, X0: Any
) -> tuple[FloatArray, FloatArray]:
    """Validate a numerator and a denominator table of the same columns."""
    check_columns(X1, X0)
    tables = [read_table(estimator, X, reset=True) for X in (X0, X1)]
    estimator.classes_ = np.array([0, 1])
    return tables[1], tables[0]


def check_columns(X1: Any, X0: Any) -> None:
    """Refuse tables of different columns: other names, another order or number."""
    ours, others = column_names(X1), column_names(X0)
    if ours is not None and others is not None and ours != others:
        raise ValueError(
            f"X1 has the columns {listed(ours, 5)} and X0 has {listed(others, 5)}: "
            "both samples must have the same columns, in the same order."
        )
    shapes = np.shape(X1), np.shape(X0)
    if len(shapes[0]) == len(shapes[1]) == 2 and shapes[0][1] != shapes[1][1]:
        raise ValueError(
            f"X1 has {shapes[0][1]} columns and X0 has {shapes[1][1]}: both samples "
            "must have the same columns."
        )


def check_log_linear(estimator: Any) -> None:
    """Refuse the identity link where log ratios are added up."""
    if not estimator._is_log_linear():
        raise ValueError(
            f"{estimator!r} models the ratio itself, not its logarithm. Use link='log'."
        )


def check_rank(
    problem: JointProblem, label: Any, names: Callable[[], Any], penalty: FloatArray
) -> None:
    """Refuse, where there is no penalty, what can't have a single optimum.

    Messages name the denominator's label, and the features by what `names` gives.
    """
    if penalty.all():
        return
    for part in problem.parts:
        free = penalty[part.features] == 0.0
        n_rows, n_features = part.n_rows, int(free.sum(axis=1).max())
        if n_rows <= n_features:
            joint = len(part.features) == 1
            rows = "observed rows" if joint else "rows"
            what = "features" if joint else "basis features a column"
            raise DataError(
                Message(
                    "Class {label!r} has {n_rows} {rows} (n_samples = {n_rows}) for "
                    "{n_features} {what}: without a penalty there is no finite "
                    "optimum.",
                    label=label,
                    remedies=(Remedy.PENALTY, Remedy.FEWER_FEATURES, Remedy.MORE_ROWS),
                    facts={
                        "n_rows": n_rows,
                        "rows": rows,
                        "n_features": n_features,
                        "what": what,
                    },
                )
            )
        constant = part.features[constant_features(part.denominator) & free]
        if len(constant):
            columns = np.sort(constant)
            raise DataError(
                Message(
                    "Feature(s) [{columns}] are constant over the observed rows of "
                    "class {label!r}: their coefficients are not determined.",
                    label=label,
                    columns=tuple(columns.tolist()),
                    names=tuple(str(name) for name in names()[columns]),
                    remedies=(Remedy.DROP_COLUMNS, Remedy.PENALTY),
                )
            )


def check_scale(problem: JointProblem) -> None:
    """Refuse features whose squares leave the range of floating point."""
    for part in problem.parts:
        few = part.denominator.peek().astype(np.float64, copy=False)
        if not part.denominator.centred:
            few = few - part.centre[:, None, :]
        size = np.abs(few).max(axis=1)
        odd = (size > LARGEST) | ((size > 0.0) & (size < 1.0 / LARGEST))
        if odd.any():
            raise DataError(
                Message(
                    "Feature(s) [{columns}] have values of size {size:.2g}, whose "
                    "squares floating point can't hold.",
                    columns=(int(part.features[odd][0]),),
                    remedies=(
                        "scale the columns, to a standard deviation of about one",
                    ),
                    facts={"size": size[odd][0]},
                )
            )


@dataclass(frozen=True)
class _Evaluate:
    """Basis features of a block of rows."""

    basis: Basis
    names: tuple[str, ...] | None

    def __call__(self, rows: FloatArray) -> FloatArray:
        with config_context(assume_finite=True, transform_output="default"):
            return np.asarray(self.basis.transform(_named(rows, self.names)))


def _named(rows: FloatArray, names: tuple[str, ...] | None) -> Any:
    """Rows as a table that has the columns' names, if they have some."""
    if names is None:
        return rows
    return nw.from_numpy(rows, list(names), backend="pyarrow").to_native()


def classes_elsewhere(
    ratio: JointRatio, X: Any, y: Any, **not_taken: Any
) -> tuple[ClassRows, ClassRows] | None:
    """The numerator's and the denominator's rows where they don't lie in an array.

    They may lie in files, on a cluster or in a tensor. Sets the estimator's classes,
    columns and basis.

    Parameters
    ----------
    ratio : JointRatio
    X, y
        As given to ``fit``.
    **not_taken
        Arguments of ``fit`` that go with tables in memory only.

    Returns
    -------
    numerator, denominator : ClassRows
        Or None for a table in memory.
    """
    labelled, tensor = as_source(X, y), on_device(X)
    if labelled is None and tensor is None:
        return None
    if labelled is not None and ratio._needs_memory:
        refuse_source(
            ratio,
            X,
            "Choose the penalty on some rows in memory, and fit all of them by "
            "KLIEP(l1=…, l2=…).",
        )
    for name, value in not_taken.items():
        if value is not None:
            raise ValueError(
                f"{name} goes with a table in memory, and these rows are read block by "
                "block. Leave it out, or bring the rows into memory."
            )
    if ratio.normalize == "regression":
        raise ValueError(
            "normalize='regression' needs all rows in memory. Use 'hajek' or "
            "'horvitz-thompson', or bring the rows into memory."
        )
    if labelled is not None:
        return _streamed_classes(ratio, labelled)
    linear = type(as_basis(ratio.basis)) is LinearBasis
    if not linear or ratio._columns_apart:
        # Any basis, and columns one by one, are worked out on the host.
        return _streamed_classes(ratio, labelled_tensor(tensor, y), named=False)
    ratio.classes_, numerator, denominator = tensor_classes(
        tensor, y, ratio.missingness, ratio.normalize
    )
    check_missingness(ratio.missingness, ratio.classes_)
    ratio.n_features_in_ = int(X.shape[1])
    ratio.basis_ = ratio._linear_basis(ratio.n_features_in_)
    for rows in (numerator, denominator):
        _check_model(rows, ratio.n_features_in_)
    return numerator, denominator


def _check_model(rows: ClassRows, n_columns: int) -> None:
    model = getattr(rows.weighing, "model", None)
    if isinstance(model, Missingness):
        model.check_width(n_columns)


def _streamed_classes(
    ratio: JointRatio, labelled: LabelledSource, *, named: bool = True
) -> tuple[ClassRows, ClassRows]:
    """Both classes after a first pass over all rows.

    A basis that isn't linear is fitted to the rows that the pass draws into memory.
    """
    basis = as_basis(ratio.basis)
    linear = type(basis) is LinearBasis
    sources = survey(labelled, ratio.missingness, ratio.normalize, linear=linear)
    ratio.classes_ = np.array(list(sources))
    check_missingness(ratio.missingness, ratio.classes_)
    ratio.n_features_in_ = len(labelled.names)
    names = labelled.names if named else None
    if names is not None:
        ratio.feature_names_in_ = np.array(names, dtype=object)
    if linear:
        ratio.basis_ = ratio._linear_basis(ratio.n_features_in_)
    else:
        if ratio._columns_apart:
            basis = EachColumnBasis(basis)
        drawn = [source.drawn.table for source in sources.values()]
        y = np.repeat([0, 1], [len(rows) for rows in drawn])
        few = _named(np.concatenate(drawn), names)
        with config_context(assume_finite=True):
            ratio.basis_ = clone(basis).fit(few, y)
        evaluate = _Evaluate(ratio.basis_, names)
        sources = {
            label: with_features(source, evaluate) for label, source in sources.items()
        }
    found = []
    for label, source in sources.items():
        rows = class_rows(source, label, ratio.missingness, ratio.normalize, names)
        _check_model(rows, ratio.n_features_in_)
        found.append(rows)
    denominator, numerator = found
    return numerator, denominator


def predict_tensor(ratio: Any, X: Any) -> Any:
    """The log ratios of a tensor's rows, on its device.

    Parameters
    ----------
    ratio : JointRatio
    X : tensor of shape (n_rows, n_columns)
    """
    check_is_fitted(ratio)
    check_rows(X, ratio.n_features_in_, allow_nan=ratio._allows_nan())
    features = X
    if type(ratio.basis_) is not LinearBasis:
        features = like(X, ratio._evaluate_basis(as_numpy(X), as_numpy(X)))
    score = features @ like(X, as_numpy(ratio.coef_)) + float(ratio.intercept_)
    return score if ratio._is_log_linear() else score.clamp(min=0.0).log()


# KLIEP's tilted denominator should be worth this many rows a coefficient, or this share
# of its rows. Chosen to cover normal classes with 3 columns, each shifted by 1, and 300
# rows: 22 to 29 are left, and the error was 4 times that of the Jensen-Shannon fit.
TILTED_ROWS = 10.0
TILTED_SHARE = 0.2

Backend = Literal["pandas", "polars", "pyarrow"]
Fallback = Literal["raise", "naive-bayes"]


class JointRatio(ReadingRatio):
    """A ratio whose score is θᵀf(z) + intercept, fitted to one objective.

    A subclass says which objective. Everything else (missingness, basis, penalty,
    solver) is the same for all of them.
    """

    l2: Any
    l1: Any = 0.0
    penalty_weights: PenaltyWeights = "uniform"
    fallback: Fallback = "raise"
    solver: SolverName
    tol: float
    max_iter: int

    coef_: FloatArray
    intercept_: float
    log_normalizer_: float
    n_iter_: int
    converged_: bool
    effective_sample_size_: dict[Any, SampleSize]
    objective_value_: float
    fallback_used_: bool
    standard_error_: FloatArray | None
    column_log_normalizer_: FloatArray
    column_converged_: BoolArray
    tilt_sample_size_: float | None
    weight_check_: dict[Any, WeightCheck]

    # Whether rows that are read block by block are refused.
    _needs_memory = False

    @abstractmethod
    def _objective(self) -> Objective:
        """The objective to minimise."""

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        inclusion: ArrayLike | None = None,
    ) -> Self:
        """Learn the ratio from labelled rows.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns), or source
            NaN where a value is missing. A source, as `scan_parquet` gives it, has its
            labels with it, and is read block by block in bounded memory.
        y : array-like of shape (n_rows,)
            Two labels. The one sorted last is the numerator: 1 of {0, 1}.
        sample_weight : array-like of shape (n_rows,), optional
            Further weights of the rows, which multiply the inverse-probability ones.
        inclusion : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            The probability with which each row, or entry, is in the table by design,
            for classes without a missingness model: 1 where it was observed, the share
            looked up where it was looked up, 0 where it is still missing (NaN).

        Returns
        -------
        Self
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight, inclusion, stacklevel=2)

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, inclusion: Any, stacklevel: int
    ) -> Self:
        stacklevel += 1
        with within_memory(X):
            classes = classes_elsewhere(
                self, X, y, sample_weight=sample_weight, inclusion=inclusion
            )
            if classes is None:
                read = self._read(X, given(y), sample_weight, inclusion, reset=True)
                classes = self._both_classes(read, fit=True)
            problem, solution = self._fit_rows(*classes)
        self._report(problem, solution, *classes, stacklevel=stacklevel)
        on_device_too = get_config()["array_api_dispatch"] and is_tensor(X)
        if on_device_too and not self._columns_apart:
            self.coef_ = like(X, self.coef_)
        return self

    def _report(
        self,
        problem: JointProblem,
        solution: JointSolution,
        numerator: ClassRows,
        denominator: ClassRows,
        stacklevel: int,
    ) -> None:
        """Warn of all that a fit may rest on, or lack."""
        stacklevel += 1
        if self._columns_apart:
            self._warn_of_columns(solution.status, stacklevel)
        self._warn_of_weights(problem, numerator, denominator, stacklevel)
        if not self._columns_apart:
            report_status(*solution.worst, type(self).__name__, stacklevel)
            self._warn_of_tilt(stacklevel)

    def __getstate__(self) -> dict[str, Any]:
        """What is saved: coefficients on the host, wherever they were learned."""
        state: dict[str, Any] = dict(super().__getstate__())
        if is_tensor(state.get("coef_")):
            state["coef_"] = as_numpy(state["coef_"])
        return state

    def _fit_two_samples(self, X1: Any, X0: Any) -> Self:
        """Fit two tables, the numerator's and the denominator's, where they lie."""
        if type(as_basis(self.basis)) is not LinearBasis:
            return self.fit(*stack_samples(X1, X0))
        tables = read_two_samples(self, X1, X0)
        check_missingness(self.missingness, self.classes_)
        self.basis_ = self._linear_basis(tables[0].shape[1])
        numerator, denominator = (
            self._class_rows(MemorySource.of(table, table), position, None)
            for table, position in zip(tables, (1, 0), strict=True)
        )
        problem, solution = self._fit_rows(numerator, denominator)
        self._report(problem, solution, numerator, denominator, stacklevel=3)
        return self

    def _strength(
        self,
        problem: JointProblem,
        units: PenaltyUnits,
        numerator: ClassRows,
        denominator: ClassRows,
    ) -> Strength:
        """The penalties' strength."""
        widths = [problem.n_features]
        if self._columns_apart:
            widths = self.basis_.required_columns_.sum(axis=0).tolist()
        if self.penalty_weights == "covariance" and np.ndim(self.l2) != 0:
            raise ValueError(
                "l2 must be one number where penalty_weights='covariance', got "
                f"{self.l2!r}. An array goes with 'uniform' or 'standard-error'."
            )
        l1 = [check_penalty(self.l1, width, "l1") for width in widths]
        l2 = [check_penalty(self.l2, width, "l2") for width in widths]
        return np.concatenate(l1), np.concatenate(l2)

    def _fit_rows(
        self, numerator: ClassRows, denominator: ClassRows
    ) -> tuple[JointProblem, JointSolution]:
        """Fit both classes' rows."""
        check_parameters(self, self._objective())
        with one_blas_thread(min(numerator.source.size, denominator.source.size)):
            numerator = adjust(numerator, self.basis_.required_columns_)
            problem = self._choose_problem(numerator, denominator)
            units = self._units(problem, numerator)
            self.standard_error_ = units[0]
            strength = self._strength(problem, units, numerator, denominator)
            self._fitted_strength = strength
            penalised = problem.penalised(units, strength)
            held, names = strength[0] + strength[1], self.basis_.get_feature_names_out
            check_rank(penalised, denominator.label, names, held)
            check_scale(problem)
            precision = np.finfo(numerator.source.features.dtype).eps
            solution = penalised.solve(
                solver=self.solver,
                tol=float(max(self.tol, 32.0 * precision)),
                max_iter=self.max_iter,
            )
            if not np.isfinite((*solution.coef, *solution.intercepts)).all():
                raise ValueError(
                    "The features have values so large that their weighted sums "
                    "overflow. Scale the columns, to a standard deviation of about one."
                )
            self._store(penalised, solution, numerator, denominator)
            return problem, solution

    def _warn_of_weights(
        self,
        problem: JointProblem,
        numerator: ClassRows,
        denominator: ClassRows,
        stacklevel: int,
    ) -> None:
        """Warn where a few rows carry a class's weight, or the rows contradict φ."""
        columns = only_columns(self.basis_.required_columns_)
        apart = self._columns_apart or self.fallback_used_
        names = self.basis_.get_feature_names_out
        for rows, sums, by_feature in (
            (numerator, problem.numerator, apart or self._objective().linear_numerator),
            (denominator, problem.denominator, apart),
        ):
            required = columns if by_feature else None
            warn_of_concentration(rows, sums, required, names, stacklevel + 1)
            warn_if_contradicted(rows, not by_feature, stacklevel + 1)

    def _column_names(self) -> list[str]:
        if hasattr(self, "feature_names_in_"):
            return [str(name) for name in self.feature_names_in_]
        return [f"x{j}" for j in range(self.n_features_in_)]

    def _warn_of_columns(self, status: IntArray, stacklevel: int) -> None:
        """Warn of columns without an optimum, or that weren't solved."""
        without = status == Status.NO_OPTIMUM
        slow = (status != Status.CONVERGED) & ~without
        names = self._column_names()
        lacking = (
            "Column(s) [{columns}] have no finite optimum: the numerator's weighted "
            "mean lies outside the range of the denominator's values, or on its border."
        )
        unsolved = (
            "Column(s) [{columns}] were not solved to tol. Raise max_iter or tol, or "
            "add a ridge penalty."
        )
        remedies = (
            Remedy.COLUMN_PENALTY,
            Remedy.DROP_COLUMNS,
            "bring more denominator rows",
        )
        for chosen, claim, said, warning in (
            (without, lacking, remedies, NoFiniteOptimumWarning),
            (slow, unsolved, (), NotSolvedWarning),
        ):
            if chosen.any():
                places = tuple(np.flatnonzero(chosen).tolist())
                message = Message(
                    claim,
                    columns=places,
                    names=tuple(names[j] for j in places),
                    remedies=said,
                )
                warnings.warn(warning(message), stacklevel=stacklevel + 1)

    def _warn_of_tilt(self, stacklevel: int) -> None:
        """Warn where few rows of the denominator decide coefficients that are free."""
        label = self.classes_.tolist()[0]
        l1, l2 = self._fitted_strength
        held = bool((l1 + l2).all())
        if self.tilt_sample_size_ is None or held or not self.converged_:
            return
        most = self.effective_sample_size_[label].kish
        n_features = len(self.coef_)
        enough = min(TILTED_ROWS * (1 + n_features), TILTED_SHARE * most)
        if self.tilt_sample_size_ >= enough:
            return
        message = Message(
            "The coefficients rest on few rows of class {label!r}: weighted by the "
            "ratio, its rows are worth {size:.0f} (Kish's effective sample size; "
            "{most:.0f} without the ratio), for {n_features} coefficient(s). Where "
            "classes lie far apart KLIEP is biased and noisy.",
            label=label,
            remedies=(
                "take FDivergenceRatio('js'), which uses the rows of both classes",
                "add a ridge penalty (l2=0.01 is a start)",
                "bring more rows",
            ),
            facts={
                "size": self.tilt_sample_size_, "most": most, "n_features": n_features,
            },
        )  # fmt: skip
        warnings.warn(SmallSampleWarning(message), stacklevel=stacklevel + 1)

    def _choose_problem(
        self, numerator: ClassRows, denominator: ClassRows
    ) -> JointProblem:
        """The problem without penalties; one a column where rows are too few."""
        self.fallback_used_, complete = False, None
        if not self._columns_apart:
            complete = CompleteRows.of(denominator)
            few = None
            if denominator.weighing.by_entry:
                few = complete.few(self.basis_.required_columns_.shape[1])
            if few is not None and self.fallback == "raise":
                raise ValueError(
                    f"{few} Set fallback='naive-bayes' in KLIEP to take its columns as "
                    "independent, or use NaiveBayesRatio, fewer columns or more rows."
                )
            self.fallback_used_ = few is not None
        return self._build(self._objective(), numerator, denominator, complete)

    def _build(
        self,
        objective: Objective,
        numerator: ClassRows,
        denominator: ClassRows,
        complete: CompleteRows | None = None,
    ) -> JointProblem:
        """The optimisation problem without penalties."""
        if self._columns_apart or self.fallback_used_:
            return separate_problem(objective, numerator, denominator, self.basis_)
        return joint_problem(objective, numerator, denominator, self.basis_, complete)

    def _units(self, problem: JointProblem, numerator: ClassRows) -> PenaltyUnits:
        """What a penalty of strength one is."""
        if self.penalty_weights == "uniform":
            return None, None
        return penalty_units(
            self.penalty_weights,
            numerator,
            self.basis_.required_columns_,
            problem.numerator,
            problem.numerator_mean(),
            problem.denominator_variance(),
        )

    def _store(
        self,
        problem: JointProblem,
        solution: JointSolution,
        numerator: ClassRows,
        denominator: ClassRows,
    ) -> None:
        """Set what was learned."""
        self.coef_ = solution.coef
        self._part_intercepts = solution.intercepts
        self.intercept_ = float(solution.intercepts.sum())
        self.log_normalizer_ = -self.intercept_ if self._is_log_linear() else 0.0
        self.n_iter_ = int(solution.n_iter.max())
        self.converged_ = bool((solution.status == Status.CONVERGED).all())
        self.objective_value_ = solution.value
        if self._columns_apart:
            self.column_log_normalizer_ = -solution.intercepts
            self.column_converged_ = solution.status == Status.CONVERGED
            self._column_iterations = solution.n_iter
        self.tilt_sample_size_ = None
        if isinstance(self._objective(), KLIEPObjective) and not self._columns_apart:
            self.tilt_sample_size_ = problem.tilt_size(solution)
        found = ((numerator, problem.numerator), (denominator, problem.denominator))
        self.effective_sample_size_ = {
            rows.label: effective_size(rows, sums) for rows, sums in found
        }
        self.weight_check_ = {
            rows.label: sums.check() for rows, sums in found if rows.weighing.corrects
        }
        self._summary = {
            "numerator_mean": problem.centre(),
            "mismatch": solution.gradient,
            "effective_rows": np.zeros(self.coef_.shape) + problem.numerator.kish,
        }

    def _is_log_linear(self) -> bool:
        """Whether the score is log r, rather than r."""
        return True

    @by_partition
    def predict_log_ratio(self, X: Any) -> FloatArray:
        """The logarithm of the estimated density ratio, log r̂ = θ̂ᵀf(z) − log N̂.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
            NaN is accepted where the estimator has a missingness model.

        Returns
        -------
        ndarray of shape (n_rows,)
            NaN for a row that has a missing value.
        """
        if not self._columns_apart and (tensor := on_device(X)) is not None:
            found: FloatArray = predict_tensor(self, tensor)
            return found
        X = on_host(X)
        features = self._evaluate_basis(X, self._read_rows(X))
        score: FloatArray = features @ as_numpy(self.coef_) + float(self.intercept_)
        if self._is_log_linear():
            return score
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(score, 0.0))

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        inclusion: ArrayLike | None = None,
    ) -> float:
        """How well the ratio fits rows: minus the objective, the penalty left out.

        For KLIEP this is E[log r̂(Z¹)] with r̂ normalised on the rows given, the
        likelihood cross-validation score; weights for missing values are included.
        So it can choose a penalty or a basis in a grid search.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
        inclusion : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            As for ``fit``.

        Returns
        -------
        float
            The larger the better.
        """
        check_is_fitted(self)
        read = self._read(X, y, sample_weight, inclusion, reset=False)
        return self._score_rows(*self._both_classes(read))

    def _score_rows(self, numerator: ClassRows, denominator: ClassRows) -> float:
        numerator = adjust(numerator, self.basis_.required_columns_)
        problem = self._build(self._objective(), numerator, denominator)
        return -problem.value(as_numpy(self.coef_), self._part_intercepts)

    def summary_frame(self, backend: Backend = "pandas") -> Any:
        """Coefficients and diagnostics, a row for each basis feature.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}
            The kind of dataframe.

        Returns
        -------
        dataframe
            Columns: `feature`; `coefficient`, the entry of `coef_`; `numerator_mean`,
            the feature's weighted mean over the numerator class; `mismatch`, the
            objective's gradient at the end, l1 left out: zero at an optimum, or within
            ±l1 in its units; and `effective_rows`, Kish's effective number of
            numerator rows behind the mean.
        """
        check_is_fitted(self)
        columns = {
            "feature": self.basis_.get_feature_names_out().tolist(),
            "coefficient": self.coef_.tolist(),
            **{name: values.tolist() for name, values in self._summary.items()},
        }
        return nw.from_dict(columns, backend=backend).to_native()
