"""Many small problems of one shape, solved as one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from missratio._typing import BoolArray, FloatArray, IntArray
from missratio.basis import LinearBasis, as_basis
from missratio.engine import Sample
from missratio.objective import Objective
from missratio.ratio._base import check_no_infinity, check_penalty
from missratio.ratio._joint import JointRatio, check_log_linear
from missratio.ratio._problem import RatioProblem, WeightedMean, solve
from missratio.ratio._rows import Normalization, check_missingness, class_model
from missratio.solver import Status
from missratio.weights import complete_row_weights


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
    features: FloatArray, weights: FloatArray | None, normalize: Normalization
) -> Sample:
    """A batch of samples with their weights, zero where a row is missing.

    Missing rows take the features of an observed one, so that they can't disturb the
    extremes of the scores; with a weight of zero they count for nothing.

    Parameters
    ----------
    features : ndarray of shape (n_problems, n_rows, n_features)
        NaN in missing rows. They are overwritten.
    weights : ndarray of shape (n_problems, n_rows), or None
    normalize : {"hajek", "horvitz-thompson"}
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
    total = weights.sum(axis=1)
    if normalize == "horvitz-thompson":
        total = np.full(n_problems, float(n_rows))
    weights = weights.astype(features.dtype, copy=False)
    return Sample(features, total, weights)


def batch_problem(
    objective: Objective, upper: Sample, lower: Sample, l2: FloatArray
) -> RatioProblem:
    """The problems of a batch of numerator and denominator samples.

    The samples' features are overwritten: they are centred in place.
    """
    if upper.weights is None:
        mean, mass = upper.features.mean(axis=1), np.ones(len(upper.total))
    else:
        sums = (upper.weights[:, None, :] @ upper.features)[:, 0, :]
        mean = sums / upper.total[:, None]
        mass = upper.weights.sum(axis=1) / upper.total
    centre = mean / mass[:, None]
    numerator: Sample | WeightedMean
    if objective.linear_numerator:
        numerator = WeightedMean.centred(mean, mass, centre, objective)
    else:
        numerator = _centred(upper, centre)
    penalty = l2 if l2.any() else None
    return RatioProblem(objective, numerator, _centred(lower, centre), centre, penalty)


def _centred(sample: Sample, centre: FloatArray) -> Sample:
    shift = centre[:, None, :].astype(sample.features.dtype, copy=False)
    np.subtract(sample.features, shift, out=sample.features)
    return replace(sample, centred=True)


def fit_batch(estimator: JointRatio, X1: ArrayLike, X0: ArrayLike) -> BatchFit:
    """Fit many data sets of one shape at once.

    What a simulation needs: thousands of small fits in one call, each the same as
    ``estimator.fit`` would give, without its overhead and on all cores. Nothing is
    warned of; look at `BatchFit.converged`.

    Parameters
    ----------
    estimator : KLIEP, FDivergenceRatio or ObjectiveRatio
        Not fitted by this call. Its missingness models belong to the classes 1 (the
        numerator) and 0. A basis that has to be fitted is shared by all problems.
    X1 : array-like of shape (n_problems, n_numerator_rows, n_columns)
        NaN where a value is missing. Under per-feature missingness complete rows count.
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
    >>> fits = mr.fit_batch(mr.KLIEP(), X1, X0)
    >>> fits.coef.shape, fits.converged.all(), fits.coef.mean(axis=0).round(1)
    ((100, 2), np.True_, array([0.5, 0.5]))
    """
    tables = [np.asarray(X, dtype=np.float64) for X in (X1, X0)]
    _check_shapes(*tables)
    check_log_linear(estimator)
    check_missingness(estimator.missingness, (0, 1))
    flat = [table.reshape(-1, table.shape[2]) for table in tables]
    samples = []
    for table, rows, features, label in zip(
        tables, flat, _shared_features(estimator, flat), (1, 0), strict=True
    ):
        model = class_model(estimator.missingness, label)
        weights = None
        if model is not None or not check_no_infinity(rows):
            weights = complete_row_weights(rows, model).reshape(table.shape[:2])
            if not weights.any(axis=1).all():
                raise ValueError(
                    f"Problem {int(weights.any(axis=1).argmin())} has no observed row "
                    f"of class {label}."
                )
        # Column by column, and a copy: missing rows are filled in.
        columns = features.reshape(*table.shape[:2], -1).swapaxes(1, 2)
        columns = np.array(columns, order="C").swapaxes(1, 2)
        how = "hajek" if model == "ignore" else estimator.normalize
        samples.append(batch_sample(columns, weights, how))
    l2 = check_penalty(estimator.l2, samples[0].features.shape[2])
    problem = batch_problem(estimator._objective(), samples[0], samples[1], l2)
    solution = solve(
        problem, solver="newton", tol=estimator.tol, max_iter=estimator.max_iter
    )
    return BatchFit(
        solution.theta[:, : len(l2)],
        -problem.intercept(solution),
        solution.status == Status.CONVERGED,
        solution.status != Status.NO_OPTIMUM,
        solution.n_iter,
    )


def _shared_features(
    estimator: JointRatio, tables: Sequence[FloatArray]
) -> Sequence[FloatArray]:
    """Basis features of both classes; what the basis learns, it learns from all."""
    basis = as_basis(estimator.basis)
    if type(basis) is LinearBasis:
        return tables
    labels = np.repeat([1, 0], [len(table) for table in tables])
    fitted = clone(basis).fit(np.concatenate(tables), labels)
    return [np.asarray(fitted.transform(table)) for table in tables]


def _check_shapes(X1: FloatArray, X0: FloatArray) -> None:
    if X1.ndim != 3 or X0.ndim != 3:
        raise ValueError(
            "X1 and X0 must have shape (n_problems, n_rows, n_columns); got "
            f"{X1.shape} and {X0.shape}."
        )
    if X1.shape[0] != X0.shape[0] or X1.shape[2] != X0.shape[2]:
        raise ValueError(
            "X1 and X0 must have the same problems and columns; got shapes "
            f"{X1.shape} and {X0.shape}."
        )
