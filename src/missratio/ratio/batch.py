"""Many small problems of one shape, solved as one batch."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.basis import LinearBasis, as_basis
from missratio.engine import Sample
from missratio.ratio.base import Two
from missratio.ratio.fit import (
    JointRatio,
    check_log_linear,
    check_parameters,
    check_penalty,
)
from missratio.ratio.problem import (
    RatioProblem,
    WeightedMean,
    matched,
    weighted_means,
)
from missratio.ratio.solve import solve
from missratio.rows import (
    ClassRows,
    MemorySource,
    WeightSums,
    check_missingness,
    only_columns,
    weighted_sums,
    weights_of_features,
)
from missratio.solver import Status


@dataclass(frozen=True, slots=True)
class BatchFit:
    """The ratios of a batch, log r̂ = θ̂ᵀf − log N̂, a row for each problem.

    Parameters
    ----------
    coef : ndarray of shape (n_problems, n_basis_features)
    log_normalizer : ndarray of shape (n_problems,)
    converged : ndarray of bool of shape (n_problems,)
        Whether the optimum exists and was reached.
    has_optimum : ndarray of bool of shape (n_problems,)
        False where no finite optimum exists.
    n_iter : ndarray of int of shape (n_problems,)
    """

    coef: FloatArray
    log_normalizer: FloatArray
    converged: BoolArray
    has_optimum: BoolArray
    n_iter: IntArray


def fit_batch(estimator: JointRatio, X1: ArrayLike, X0: ArrayLike) -> BatchFit:
    """Fit many data sets of one shape at once.

    It is for simulations: thousands of small fits in one call, each the same as
    ``estimator.fit`` would give, without its overhead and on all cores. There are no
    warnings; look at `BatchFit.converged`.

    Parameters
    ----------
    estimator : KLIEP, FDivergenceRatio or ObjectiveRatio
        Not fitted by this call. Its missingness models belong to the classes 1 (the
        numerator) and 0. A basis that has to be fitted is shared by all problems.
    X1 : array-like of shape (n_problems, n_numerator_rows, n_columns)
        NaN where a value is missing.
    X0 : array-like of shape (n_problems, n_denominator_rows, n_columns)

    Returns
    -------
    BatchFit

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> X1, X0 = rng.normal(0.5, 1, (100, 400, 2)), rng.normal(0, 1, (100, 400, 2))
    >>> fits = mr.ratio.fit_batch(mr.KLIEP(), X1, X0)
    >>> fits.coef.shape, fits.converged.all(), fits.coef.mean(axis=0).round(1)
    ((100, 2), np.True_, array([0.5, 0.5]))
    """
    if not isinstance(estimator, JointRatio):
        raise TypeError(
            "estimator must be a KLIEP, FDivergenceRatio or ObjectiveRatio, got "
            f"{estimator!r}."
        )
    check_parameters(estimator, estimator._objective())
    check_log_linear(estimator)
    _check_ridge_alone(estimator)
    tables = Two(np.asarray(X1, dtype=np.float64), np.asarray(X0, dtype=np.float64))
    _check_shapes(*tables)
    check_missingness(estimator.missingness, (0, 1))
    problem = _batch_problem(estimator, tables)
    solution = solve(
        problem, solver="newton", tol=estimator.tol, max_iter=estimator.max_iter
    )
    return BatchFit(
        solution.theta[:, : problem.centre.shape[1]],
        -problem.intercept(solution),
        solution.status == Status.CONVERGED,
        solution.status != Status.NO_OPTIMUM,
        solution.n_iter,
    )


def _batch_problem(estimator: JointRatio, tables: Two[FloatArray]) -> RatioProblem:
    """The problems of an estimator on its tables, the numerators' and the others."""
    objective = estimator._objective()
    # 1. Basis features; what the basis learns, it learns from all.
    flat = tables.map(lambda table: table.reshape(-1, table.shape[2]))
    features, basis = flat, as_basis(estimator.basis)
    if type(basis) is LinearBasis:
        basis = LinearBasis.of_columns(flat.numerator.shape[1], None)
    else:
        labels = np.repeat([1, 0], [len(rows) for rows in flat])
        basis = clone(basis).fit(np.concatenate(flat), labels)
        features = flat.map(lambda rows: np.asarray(basis.transform(rows)))
    # 2. What rows weigh.
    two = Two(
        *(
            ClassRows.of(
                MemorySource.of(rows, evaluated),
                label,
                estimator.missingness,
                estimator.normalize,
            )
            for label, rows, evaluated in zip((1, 0), flat, features, strict=True)
        )
    )
    # 3. The numerator's means, where they are all that counts, or its rows.
    numerator: Sample | WeightedMean
    n_problems = len(tables.numerator)
    if objective.linear_numerator:
        sums = _feature_sums(two.numerator, n_problems, basis.required_columns_)
        mean, centre, mass = weighted_means(two.numerator, sums, n_problems)
        share = np.ones(n_problems) if mass.shape[1] > 1 else mass[:, 0]
        numerator = matched(objective, mean, share, centre)
    else:
        sample = _sample(two.numerator, n_problems)
        plain = weighted_sums(sample.features, sample.weights, None)
        centre = plain.sums / plain.mass
        numerator = _centred(sample, centre)
    denominator = _centred(_sample(two.denominator, n_problems), centre)
    l2 = check_penalty(estimator.l2, centre.shape[1])
    penalty = np.tile(l2, (n_problems, 1)) if l2.any() else None
    index = np.tile(np.arange(len(l2)), (n_problems, 1))
    return RatioProblem(objective, numerator, denominator, centre, index, penalty)


def _feature_sums(rows: ClassRows, n_problems: int, required: BoolArray) -> WeightSums:
    """Sums of every feature over the rows in which it is observed, by problem."""
    features = rows.source.features.reshape(n_problems, rows.n_rows // n_problems, -1)
    weights = rows.weights()
    by_entry = weights is not None and weights.ndim == 2
    if weights is not None:
        if by_entry:
            weights = weights_of_features(weights, only_columns(required), rows.groups)
        weights = weights.reshape(features.shape if by_entry else features.shape[:2])
    sums = weighted_sums(features, weights, None)
    if not np.isfinite(sums.sums.sum()):
        # NaN or infinities without a model are refused, by row and column.
        rows.complete_weights()
    if not sums.mass.all():
        problem, feature = np.argwhere(sums.mass == 0.0)[0]
        raise ValueError(
            f"Problem {problem}: basis feature {feature} is never observed in class 1."
            if by_entry
            else f"Problem {problem} has no observed row of class 1."
        )
    return sums


def _sample(rows: ClassRows, n_problems: int) -> Sample:
    """Complete rows, weighted, as copies laid out column by column.

    Others take the features of a complete one, so that they can't disturb the extremes
    of the scores; with a weight of zero they count for nothing.
    """
    n_rows = rows.n_rows // n_problems
    features = rows.source.features.reshape(n_problems, n_rows, -1)
    features = np.array(features.swapaxes(1, 2), order="C").swapaxes(1, 2)
    weights = rows.complete_weights()
    if weights is None:
        return Sample(features, np.full(n_problems, float(n_rows)))
    weights = weights.reshape(n_problems, n_rows)
    observed = weights > 0.0
    if not observed.any(axis=1).all():
        raise ValueError(
            f"Problem {int(observed.any(axis=1).argmin())} has no complete row of "
            f"class {rows.label}."
        )
    if not observed.all():
        stand_in = features[np.arange(n_problems), observed.argmax(axis=1)]
        problem, row = np.nonzero(~observed)
        features[problem, row] = stand_in[problem]
    total = weights.sum(axis=1) if rows.self_normalised else float(n_rows)
    return Sample(features, np.broadcast_to(total, n_problems), weights)


def _centred(sample: Sample, centre: FloatArray) -> Sample:
    sample.features[...] -= centre[:, None, :]
    return replace(sample, centred=True)


def _check_ridge_alone(estimator: JointRatio) -> None:
    """Refuse what can't be had where problems are solved as one."""
    plain = estimator.penalty_weights == "uniform" and estimator.fallback == "raise"
    if np.any(np.asarray(estimator.l1)) or not plain or not hasattr(estimator, "l2"):
        raise ValueError(
            "fit_batch takes a ridge penalty alone, such as KLIEP(l2=0.01); got "
            f"{estimator!r}."
        )
    if estimator.normalize == "regression":
        raise ValueError(
            "fit_batch takes normalize='hajek' or 'horvitz-thompson'; got "
            f"{estimator!r}."
        )


def _check_shapes(X1: FloatArray, X0: FloatArray) -> None:
    shapes = f"got {X1.shape} and {X0.shape}."
    if X1.ndim != 3 or X0.ndim != 3:
        raise ValueError(
            f"X1 and X0 must have shape (n_problems, n_rows, n_columns); {shapes}"
        )
    if not X1.size or not X0.size:
        raise ValueError(f"X1 and X0 must have problems, rows and columns; {shapes}")
    if X1.shape[0] != X0.shape[0] or X1.shape[2] != X0.shape[2]:
        raise ValueError(f"X1 and X0 must have the same problems and columns; {shapes}")
