"""A fitted ratio with the rows it was fitted to: what its uncertainty is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.ratio.base import MissingnessParameter, Two
from missratio.ratio.fit import LinearRatio, penalty_units
from missratio.ratio.problem import RatioProblem
from missratio.rows import ClassRows


@dataclass(frozen=True, slots=True)
class Factor:
    """One problem of a ratio where it was solved: all of a joint fit, or a column's.

    Parameters
    ----------
    problem : RatioProblem
        A batch of one.
    coef : ndarray of shape (n_features,)
    intercept : float
        The score's, for features that are not centred.
    features : ndarray of int of shape (n_features,)
        Which of the basis features it has.
    columns : ndarray of bool of shape (n_columns,)
        The table's columns that must be observed for a row to count.
    required : ndarray of bool of shape (n_features, n_columns), or None
        The columns that each basis feature needs, where a numerator that enters through
        means alone has weights of its own for each; None where rows count as one.
    """

    problem: RatioProblem
    coef: FloatArray
    intercept: float
    features: IntArray
    columns: BoolArray
    required: BoolArray | None = None


def optimum(
    ratio: LinearRatio,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    inclusion: ArrayLike | None = None,
) -> tuple[Two[ClassRows], Iterator[Factor]]:
    """The problems that a ratio was fitted by, made again from the rows of the fit.

    And the rows of both classes, that under the exponent last.
    """
    check_is_fitted(ratio)
    if ratio.pairs_used_:
        raise ValueError(
            "The ratio was fitted by pairs of columns, which have no standard errors "
            "here. Use the bootstrap, or pairs=False where enough rows are complete."
        )
    two = ratio._oriented(ratio._read(X, y, sample_weight, inclusion, reset=False))
    return two, _factors(ratio, two)


def _factors(ratio: LinearRatio, two: Two[ClassRows]) -> Iterator[Factor]:
    """A factor after the other, each made when it is asked for."""
    settings, required = ratio._settings(), ratio.basis_.required_columns_
    problem = ratio._problem(settings._objective(), two)
    weights = settings.penalty_weights
    units = penalty_units(weights, two.numerator, required, problem)
    problem = problem.penalised(units, ratio._fitted_strength)
    by_feature = (
        two.numerator.weighing.by_entry
        and not ratio._apart
        and problem.objective.linear_numerator
    )
    for i, width in enumerate((problem.features >= 0).sum(axis=1).tolist()):
        features = problem.features[i, :width]
        columns = np.ones(required.shape[1], dtype=bool)
        if ratio._apart:
            columns = required[features[0]]
        yield Factor(
            problem.problems(slice(i, i + 1), width),
            ratio._sign * ratio.coef_[features],
            ratio._sign * float(ratio._part_intercepts[i]),
            features,
            columns,
            required if by_feature else None,
        )


def basis_features(ratio: LinearRatio, X: Any) -> FloatArray:
    """A fitted ratio's basis features at rows, NaN where one can't be evaluated."""
    return ratio._features(X, ratio._read_scored(X))


def feature_names(
    ratio: LinearRatio, columns: Sequence[str] | None = None
) -> list[str]:
    """Names of a fitted ratio's basis features, in the order of its coefficients.

    `columns` names the columns of X; None for the names known from fit, or x0, x1, …
    """
    return [str(name) for name in ratio.basis_.get_feature_names_out(columns)]


def missingness_of(ratio: LinearRatio) -> MissingnessParameter:
    """Why values are missing, as a ratio was told."""
    return ratio._models()
