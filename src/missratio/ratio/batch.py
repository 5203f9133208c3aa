"""Many small problems of one shape, solved as one batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.engine import Sample
from missratio.ratio import fit
from missratio.ratio.problem import RatioProblem, WeightedMean, weighted_means
from missratio.ratio.solve import solve
from missratio.rows import ClassRows, only_columns, weighted_sums, weights_of_features
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


def fit_batch(estimator: fit.JointRatio, X1: ArrayLike, X0: ArrayLike) -> BatchFit:
    """Fit many data sets of one shape at once.

    It is for simulations: thousands of small fits in one call, each the same as
    ``estimator.fit`` would give, without its overhead and on all cores. There are no
    warnings; look at `BatchFit.converged`.

    Parameters
    ----------
    estimator : KLIEP, FDivergenceRatio or ObjectiveRatio
        Not fitted by this call. Its missingness models belong to the classes 1 (the
        numerator) and 0. A basis that has to be fitted is shared by all problems.
        Complete rows are fitted, and direction="auto" is "forward".
    X1 : array-like of shape (n_problems, n_numerator_rows, n_columns)
        NaN where a value is missing.
    X0 : array-like of shape (n_problems, n_denominator_rows, n_columns)

    Returns
    -------
    BatchFit
        What was learned, with a leading axis over data sets.

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
    fit.check_joint(estimator)
    fit.check_parameters(estimator)
    objective = estimator._objective()
    plain = estimator.penalty_weights == "uniform" and estimator.pairs is not True
    plain = plain and estimator.normalize != "regression" and not np.any(estimator.l1)
    if not plain or "l2" not in estimator.get_params():
        raise ValueError(
            "fit_batch takes a ridge penalty alone, such as KLIEP(l2=0.01), "
            "normalize='hajek' or 'horvitz-thompson', and complete rows; got "
            f"{estimator!r}."
        )
    tables = [np.asarray(X, dtype=np.float64) for X in (X1, X0)]
    shapes = np.array([X.shape for X in tables if X.ndim == 3 and X.size])
    if len(shapes) < 2 or (shapes[0] != shapes[1])[[0, 2]].any():
        raise ValueError(
            "X1 and X0 must have shape (n_problems, n_rows, n_columns), with the same "
            f"problems and columns; got {tables[0].shape} and {tables[1].shape}."
        )
    # 1. All rows as one table, from which the basis learns what it learns.
    n_problems = len(tables[0])
    flat = [table.reshape(-1, table.shape[2]) for table in tables]
    labels = np.repeat([1, 0], [len(rows) for rows in flat])
    fitted = clone(estimator)
    two = fitted._read(np.concatenate(flat), labels, None, None, reset=True)
    fitted.direction_ = "reverse" if estimator.direction == "reverse" else "forward"
    two, sign = fitted._oriented(two), fit.SIGN[fitted.direction_]
    # 2. The numerator's means, where they are all that counts, or its rows.
    numerator: Sample | WeightedMean
    if objective.linear_numerator:
        rows, weights = two.numerator, two.numerator.weights()
        features = _apart(rows.source.every(1).block().features, n_problems)
        if weights is not None and weights.ndim == 2:
            required = only_columns(fitted.basis_.required_columns_)
            weights = weights_of_features(weights, required, rows.groups)
        sums = weighted_sums(features, _apart(weights, n_problems), None)
        if not np.isfinite(sums.sums.sum()):
            # NaN or infinities without a model are refused, by row and column.
            rows.complete_weights()
        _check_observed(rows, sums.mass.all(axis=1))
        mean, centre, mass = weighted_means(rows, sums, n_problems)
        share = np.ones(n_problems) if mass.shape[1] > 1 else mass[:, 0]
        scale = share[:, None] if objective.fits_intercept else 1.0
        numerator = WeightedMean(mean - scale * centre, share)
    else:
        numerator = _sample(two.numerator, n_problems)
        centre = numerator.features.mean(axis=1)
        numerator.features[...] -= centre[:, None, :]
    denominator = _sample(two.denominator, n_problems)
    denominator.features[...] -= centre[:, None, :]
    # 3. The problems, and their solution.
    l2 = fit.check_penalty(estimator.l2, centre.shape[1])
    penalty = np.tile(l2, (n_problems, 1)) if l2.any() else None
    index = np.tile(np.arange(len(l2)), (n_problems, 1))
    problem = RatioProblem(objective, numerator, denominator, centre, index, penalty)
    limits: dict[str, Any] = {"tol": estimator.tol, "max_iter": estimator.max_iter}
    solution = solve(problem, solver="newton", **limits)
    return BatchFit(
        sign * solution.theta[:, : len(l2)],
        -sign * problem.intercept(solution),
        solution.status == Status.CONVERGED,
        solution.status != Status.NO_OPTIMUM,
        solution.n_iter,
    )


def _sample(rows: ClassRows, n_problems: int) -> Sample:
    """Complete rows, weighted, as copies laid out column by column.

    Others take the features of a complete one, so that they can't disturb the extremes
    of the scores; with a weight of zero they count for nothing.
    """
    weights = _apart(rows.complete_weights(), n_problems)
    features = _apart(rows.source.every(1).block().features, n_problems)
    features = np.array(features.swapaxes(1, 2), order="C").swapaxes(1, 2)
    total = np.full(n_problems, float(features.shape[1]))
    if weights is not None:
        observed = weights > 0.0
        _check_observed(rows, observed.any(axis=1))
        if not observed.all():
            stand_in = features[np.arange(n_problems), observed.argmax(axis=1)]
            problem, row = np.nonzero(~observed)
            features[problem, row] = stand_in[problem]
        total = weights.sum(axis=1) if rows.self_normalised else total
    return Sample(features, total, weights, centred=True)


def _apart(values: Any, n_problems: int) -> Any:
    """Values of all rows, (n_rows, …), as (n_problems, n_rows, …)."""
    return None if values is None else values.reshape(n_problems, -1, *values.shape[1:])


def _check_observed(rows: ClassRows, observed: Any) -> None:
    """Refuse a problem that has no row of a class, or of one of its features."""
    if not observed.all():
        raise ValueError(
            f"Problem {int(observed.argmin())} has no complete row of class "
            f"{rows.label}, or none in which some basis feature is observed."
        )
