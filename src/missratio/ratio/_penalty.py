"""Penalties in units of what is known about each basis feature's mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from missratio._base.typing import BoolArray, FloatArray
from missratio.ratio._base import check_penalty
from missratio.rows import (
    ClassRows,
    RowBlock,
    WeightSums,
    only_columns,
    weights_of_features,
)

PenaltyWeights = Literal["uniform", "standard-error", "covariance"]
# So many times a feature's variance leaves nothing of its coefficient.
HELD = 1e8


@dataclass(frozen=True, slots=True)
class Strength:
    """How strong the penalties are, in the units of `PenaltyUnits`.

    Parameters
    ----------
    l1, l2 : ndarray of shape (n_features,)
    """

    l1: FloatArray
    l2: FloatArray

    @classmethod
    def checked(
        cls, l1: Any, l2: Any, penalty_weights: PenaltyWeights, widths: Sequence[int]
    ) -> Strength:
        """The strength that parameters ask for, checked for each problem."""
        if penalty_weights == "covariance" and np.ndim(l2) != 0:
            raise ValueError(
                "l2 must be one number where penalty_weights='covariance', got "
                f"{l2!r}. An array goes with 'uniform' or 'standard-error'."
            )
        return cls(
            np.concatenate([check_penalty(l1, width, "l1") for width in widths]),
            np.concatenate([check_penalty(l2, width, "l2") for width in widths]),
        )


@dataclass(frozen=True, slots=True)
class PenaltyUnits:
    """What a penalty of strength one is.

    Parameters
    ----------
    l1 : ndarray of shape (n_features,), or None
        Of |θ_j|; None stands for ones.
    l2 : ndarray of shape (n_features,) or (n_features, n_features), or None
        Of ½θ_j², or a matrix M of ½θᵀMθ; None stands for ones.
    """

    l1: FloatArray | None = None
    l2: FloatArray | None = None

    def times(self, strength: Strength) -> tuple[FloatArray | None, FloatArray | None]:
        """The L1 and ridge penalties; None where there is none."""
        l1, l2 = strength.l1, strength.l2
        if self.l1 is not None:
            l1 = l1 * self.l1
        if self.l2 is not None:
            l2 = l2 * self.l2
        return (l1 if l1.any() else None), (l2 if l2.any() else None)


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
        return PenaltyUnits(standard_error, covariance + np.diag(trace))
    return PenaltyUnits(standard_error, standard_error**2)


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
