"""Many small problems of one shape, solved as one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.basis import Basis, LinearBasis, as_basis
from missratio.engine import Sample
from missratio.objective import Objective
from missratio.ratio.fit import (
    JointRatio,
    check_log_linear,
    check_parameters,
    check_penalty,
)
from missratio.ratio.problem import RatioProblem, WeightedMean
from missratio.ratio.solve import solve
from missratio.rows import (
    ClassRows,
    MemorySource,
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


def batch_sample(
    features: FloatArray, weights: FloatArray | None, total: float | None = None
) -> Sample:
    """A batch of samples with their weights, zero where a row is missing.

    Missing rows take the features of an observed one, so that they can't disturb the
    extremes of the scores; with a weight of zero they count for nothing.

    Parameters
    ----------
    features : ndarray of shape (n_problems, n_rows, n_features)
        NaN in missing rows. They are overwritten.
    weights : ndarray of shape (n_problems, n_rows), or None
    total : float, optional
        What weighted sums are divided by; None for the sum of the weights (Hájek).
    """
    n_problems, n_rows, _ = features.shape
    if weights is None:
        return Sample(features, np.full(n_problems, float(n_rows)))
    observed = weights > 0.0
    if not observed.all():
        first = observed.argmax(axis=1)
        stand_in = features[np.arange(n_problems), first]
        problem, row = np.nonzero(~observed)
        features[problem, row] = stand_in[problem]
    divisor = weights.sum(axis=1)
    if total is not None:
        divisor = np.full(n_problems, total)
    weights = weights.astype(features.dtype, copy=False)
    return Sample(features, divisor, weights)


def batch_problem(
    objective: Objective,
    numerator: Sample | WeightedMean,
    denominator: Sample,
    l2: FloatArray,
    centre: FloatArray | None = None,
) -> RatioProblem:
    """The problems of a batch of numerator and denominator samples.

    The samples' features are overwritten: they are centred in place, at the numerator's
    mean; for a numerator that is a mean already, at a centre that is given.
    """
    if isinstance(numerator, Sample):
        sums = weighted_sums(numerator.features, numerator.weights, None)
        centre = sums.sums / sums.mass
        numerator = _centred(numerator, centre)
    assert centre is not None
    penalty = np.tile(l2, (len(centre), 1)) if l2.any() else None
    denominator = _centred(denominator, centre)
    return RatioProblem(objective, numerator, denominator, centre, penalty)


def _centred(sample: Sample, centre: FloatArray) -> Sample:
    shift = centre[:, None, :].astype(sample.features.dtype, copy=False)
    np.subtract(sample.features, shift, out=sample.features)
    return replace(sample, centred=True)


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
    tables = [np.asarray(X, dtype=np.float64) for X in (X1, X0)]
    _check_shapes(*tables)
    check_missingness(estimator.missingness, (0, 1))
    problem = _batch_of(estimator, tables)
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


def _batch_of(estimator: JointRatio, tables: Sequence[FloatArray]) -> RatioProblem:
    """The problems of an estimator on its tables, the numerator's and the other."""
    objective = estimator._objective()
    basis, features = _shared_features(estimator, tables)
    classes = []
    for label, table, evaluated in zip((1, 0), tables, features, strict=True):
        flat = [each.reshape(-1, each.shape[2]) for each in (table, evaluated)]
        source = MemorySource.of(flat[0], flat[1])
        classes.append(
            ClassRows.of(source, label, estimator.missingness, estimator.normalize)
        )
    denominator = _whole_rows(classes[1], features[1])
    l2 = check_penalty(estimator.l2, denominator.features.shape[2])
    if not objective.linear_numerator:
        numerator = _whole_rows(classes[0], features[0])
        return batch_problem(objective, numerator, denominator, l2)
    means, centre = _numerator_means(
        classes[0], features[0], basis.required_columns_, objective
    )
    return batch_problem(objective, means, denominator, l2, centre)


def _numerator_means(
    rows: ClassRows, features: FloatArray, required: BoolArray, objective: Objective
) -> tuple[WeightedMean, FloatArray]:
    """A numerator that enters through means alone, and its centre.

    Each basis feature has its own weights where single entries are missing.
    """
    n_problems, n_rows, _ = features.shape
    weights = rows.weights()
    by_entry = weights is not None and weights.ndim == 2
    if weights is not None and by_entry:
        weights = weights_of_features(weights, only_columns(required), rows.groups)
        weights = weights.reshape(features.shape)
    elif weights is not None:
        weights = weights.reshape(n_problems, n_rows)
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
    total = sums.mass if rows.self_normalised else np.full_like(sums.mass, n_rows)
    mean, centre = sums.sums / total, sums.sums / sums.mass
    share = np.ones(n_problems) if by_entry else (sums.mass / total)[:, 0]
    return WeightedMean.centred(mean, share, centre, objective), centre


def _whole_rows(rows: ClassRows, features: FloatArray) -> Sample:
    """A class's complete rows, weighted, as a copy laid out column by column."""
    weights, shape = rows.complete_weights(), features.shape[:2]
    if weights is not None:
        weights = weights.reshape(shape)
        observed = weights.any(axis=1)
        if not observed.all():
            raise ValueError(
                f"Problem {int(observed.argmin())} has no complete row of class "
                f"{rows.label}."
            )
    columns = np.array(features.swapaxes(1, 2), order="C").swapaxes(1, 2)
    return batch_sample(
        columns, weights, None if rows.self_normalised else float(shape[1])
    )


def _shared_features(
    estimator: JointRatio, tables: Sequence[FloatArray]
) -> tuple[Basis, list[FloatArray]]:
    """Basis features of both classes; what the basis learns, it learns from all."""
    flat = [table.reshape(-1, table.shape[2]) for table in tables]
    basis = as_basis(estimator.basis)
    if type(basis) is LinearBasis:
        return estimator._linear_basis(flat[0].shape[1]), list(tables)
    labels = np.repeat([1, 0], [len(rows) for rows in flat])
    fitted = clone(basis).fit(np.concatenate(flat), labels)
    features = [
        np.asarray(fitted.transform(rows)).reshape(*table.shape[:2], -1)
        for rows, table in zip(flat, tables, strict=True)
    ]
    return fitted, features


def _check_ridge_alone(estimator: JointRatio) -> None:
    """Refuse what can't be had where problems are solved as one."""
    l1_or_units = np.any(np.asarray(estimator.l1) != 0.0) or (
        estimator.penalty_weights != "uniform"
    )
    given = estimator.get_params(deep=False)
    if l1_or_units or estimator.fallback != "raise" or "l2" not in given:
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
    if X1.ndim != 3 or X0.ndim != 3:
        raise ValueError(
            "X1 and X0 must have shape (n_problems, n_rows, n_columns); got "
            f"{X1.shape} and {X0.shape}."
        )
    if not X1.size or not X0.size:
        raise ValueError(
            "X1 and X0 must have problems, rows and columns; got shapes "
            f"{X1.shape} and {X0.shape}."
        )
    if X1.shape[0] != X0.shape[0] or X1.shape[2] != X0.shape[2]:
        raise ValueError(
            "X1 and X0 must have the same problems and columns; got shapes "
            f"{X1.shape} and {X0.shape}."
        )
