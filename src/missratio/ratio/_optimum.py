"""A fitted ratio with the rows it was fitted to: what its uncertainty is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from missratio._typing import BoolArray, FloatArray
from missratio.basis import LinearBasis
from missratio.ratio._joint import JointRatio, MissingnessParameter
from missratio.ratio._naive_bayes import NaiveBayesRatio
from missratio.ratio._penalty import Strength
from missratio.ratio._problem import RatioProblem
from missratio.ratio._rows import ClassRows


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
    features : slice
        Its columns among the basis features.
    columns : ndarray of bool of shape (n_columns,)
        The table's columns that must be observed for a row to count.
    required : ndarray of bool of shape (n_features, n_columns), or None
        The columns that each basis feature needs, where a numerator that enters through
        means alone has weights of its own for each; None where rows count as one.
    """

    problem: RatioProblem
    coef: FloatArray
    intercept: float
    features: slice
    columns: BoolArray
    required: BoolArray | None = None


@dataclass(frozen=True, slots=True)
class Optimum:
    """The rows of both classes, and the problems that were solved for them.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
    features : ndarray of shape (n_rows, n_features)
        Basis features of all factors.
    upper, lower : ClassRows
        The numerator's and the denominator's rows.
    factors : iterator of Factor
        Made one by one: each may hold a copy of its rows.
    """

    table: FloatArray
    features: FloatArray
    upper: ClassRows
    lower: ClassRows
    factors: Iterator[Factor]


def optimum(
    ratio: JointRatio | NaiveBayesRatio,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
) -> Optimum:
    """Make the problems again that a ratio was fitted by, from the rows of the fit."""
    check_is_fitted(ratio)
    table, is_numerator, weight, survey = ratio._read(X, y, sample_weight, reset=False)
    if isinstance(ratio, JointRatio):
        features = ratio._evaluate_basis(X, table)
        upper = ratio._side(table, features, is_numerator, 1, weight, survey)
        lower = ratio._side(table, features, ~is_numerator, 0, weight, survey)
        joint = _joint_factor(ratio, upper, lower)
        return Optimum(table, features, upper[1], lower[1], joint)
    inner = ratio._inner()
    first, second = (
        ratio._class_rows(inner, table, mask, position, weight, survey.complete)
        for mask, position in ((is_numerator, 1), (~is_numerator, 0))
    )
    features = _column_features(ratio, table)
    columns = _column_factors(ratio, table, first, second)
    return Optimum(table, features, first, second, columns)


def _joint_factor(
    ratio: JointRatio,
    upper: tuple[FloatArray, ClassRows],
    lower: tuple[FloatArray, ClassRows],
) -> Iterator[Factor]:
    required = ratio.basis_.required_columns_
    plain = ratio._build(ratio._objective(), upper, lower)
    units = ratio._units(plain, upper)
    (part,) = plain.penalised(units, Strength(*ratio._fitted_strength)).parts
    problem = part.problem
    weights = upper[1].weights
    by_feature = weights is not None and weights.ndim == 2
    yield Factor(
        problem,
        ratio.coef_,
        ratio.intercept_,
        slice(0, len(required)),
        np.ones(required.shape[1], dtype=bool),
        required if by_feature and problem.objective.linear_numerator else None,
    )


def _column_factors(
    ratio: NaiveBayesRatio, table: FloatArray, upper: ClassRows, lower: ClassRows
) -> Iterator[Factor]:
    inner = ratio._inner()
    own = np.eye(table.shape[1], dtype=bool)
    start = 0
    for j, coef in enumerate(ratio._column_coef):
        problem = ratio._column_problem(inner, table, upper, lower, np.array([j]))
        intercept = -float(ratio.column_log_normalizer_[j])
        place = slice(start, start := start + len(coef))
        yield Factor(problem, coef, intercept, place, own[j])


def _column_features(ratio: NaiveBayesRatio, table: FloatArray) -> FloatArray:
    if type(ratio.bases_[0]) is LinearBasis:
        return table
    columns = [
        np.asarray(basis.transform(table[:, j : j + 1]))
        for j, basis in enumerate(ratio.bases_)
    ]
    return np.concatenate(columns, axis=1)


def basis_features(ratio: JointRatio | NaiveBayesRatio, X: Any) -> FloatArray:
    """A fitted ratio's basis features at rows, NaN where one can't be evaluated."""
    table = ratio._read_rows(X)
    if isinstance(ratio, JointRatio):
        return ratio._evaluate_basis(X, table)
    return _column_features(ratio, table)


def feature_names(
    ratio: JointRatio | NaiveBayesRatio, columns: Sequence[str] | None = None
) -> list[str]:
    """Names of a fitted ratio's basis features, in the order of its coefficients.

    `columns` names the columns of X; None for the names known from fit, or x0, x1, …
    """
    if isinstance(ratio, JointRatio):
        return [str(name) for name in ratio.basis_.get_feature_names_out(columns)]
    columns = ratio._column_names() if columns is None else columns
    return [
        str(name)
        for basis, column in zip(ratio.bases_, columns, strict=True)
        for name in basis.get_feature_names_out([column])
    ]


def missingness_of(ratio: JointRatio | NaiveBayesRatio) -> MissingnessParameter:
    """Why values are missing, as a ratio was told."""
    if isinstance(ratio, JointRatio):
        return ratio.missingness
    return ratio._missingness()
