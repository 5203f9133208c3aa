"""A fitted ratio with the rows it was fitted to: what its uncertainty is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.ratio.adjusted import adjust
from missratio.ratio.base import MissingnessParameter
from missratio.ratio.fit import JointRatio
from missratio.ratio.naive_bayes import NaiveBayesRatio
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


@dataclass(frozen=True, slots=True)
class Optimum:
    """The rows of both classes, and the problems that were solved for them.

    Parameters
    ----------
    numerator, denominator : ClassRows
    factors : iterator of Factor
        Made one by one.
    """

    numerator: ClassRows
    denominator: ClassRows
    factors: Iterator[Factor]


def optimum(
    ratio: JointRatio | NaiveBayesRatio,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    inclusion: ArrayLike | None = None,
) -> Optimum:
    """Make the problems again that a ratio was fitted by, from the rows of the fit."""
    check_is_fitted(ratio)
    joint = joint_ratio(ratio)
    read = joint._read(X, y, sample_weight, inclusion, reset=False)
    numerator, denominator = joint._both_classes(read)
    numerator = adjust(numerator, joint.basis_.required_columns_)
    return Optimum(numerator, denominator, _factors(joint, numerator, denominator))


def joint_ratio(ratio: JointRatio | NaiveBayesRatio) -> JointRatio:
    """The joint machine that a fitted ratio rests on."""
    return ratio if isinstance(ratio, JointRatio) else ratio._ratio


def _factors(
    ratio: JointRatio, numerator: ClassRows, denominator: ClassRows
) -> Iterator[Factor]:
    required = ratio.basis_.required_columns_
    plain = ratio._build(ratio._objective(), numerator, denominator)
    units = ratio._units(plain, numerator)
    penalised = plain.penalised(units, ratio._fitted_strength)
    intercepts = np.empty_like(ratio._part_intercepts)
    intercepts[penalised.order] = ratio._part_intercepts
    at = iter(intercepts.tolist())
    apart = ratio._columns_apart
    for part in penalised.parts:
        for i, features in enumerate(part.features):
            columns = np.ones(required.shape[1], dtype=bool)
            if apart:
                columns = required[features[0]]
            problem = part.problems(slice(i, i + 1))
            by_feature = numerator.weighing.by_entry and not apart
            linear = problem.objective.linear_numerator
            yield Factor(
                problem,
                ratio.coef_[features],
                next(at),
                features,
                columns,
                required if by_feature and linear else None,
            )


def basis_features(ratio: JointRatio | NaiveBayesRatio, X: Any) -> FloatArray:
    """A fitted ratio's basis features at rows, NaN where one can't be evaluated."""
    joint = joint_ratio(ratio)
    return joint._evaluate_basis(X, joint._read_rows(X))


def feature_names(
    ratio: JointRatio | NaiveBayesRatio, columns: Sequence[str] | None = None
) -> list[str]:
    """Names of a fitted ratio's basis features, in the order of its coefficients.

    `columns` names the columns of X; None for the names known from fit, or x0, x1, …
    """
    basis = joint_ratio(ratio).basis_
    return [str(name) for name in basis.get_feature_names_out(columns)]


def missingness_of(ratio: JointRatio | NaiveBayesRatio) -> MissingnessParameter:
    """Why values are missing, as a ratio was told."""
    return joint_ratio(ratio).missingness
