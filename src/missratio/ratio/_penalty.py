"""Penalties in units of what is known about each basis feature's mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from missratio._threads import one_blas_thread, share
from missratio._typing import FloatArray
from missratio.engine import BLOCK_ELEMENTS, CHUNKS
from missratio.ratio._base import check_penalty
from missratio.ratio._checks import feature_sizes
from missratio.ratio._rows import ClassRows

PenaltyWeights = Literal["uniform", "standard-error", "covariance"]
# So many times a feature's variance leaves nothing of its coefficient.
HELD = 1e8
PENALTY_WEIGHTS = ("uniform", "standard-error", "covariance")


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
        cls, l1: Any, l2: Any, penalty_weights: PenaltyWeights, n_features: int
    ) -> Strength:
        """Of parameters as they were given."""
        if penalty_weights == "covariance" and np.ndim(l2) != 0:
            raise ValueError(
                "l2 must be one number where penalty_weights='covariance', got "
                f"{l2!r}. An array goes with 'uniform' or 'standard-error'."
            )
        return cls(
            check_penalty(l1, n_features, "l1"), check_penalty(l2, n_features, "l2")
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
    features: FloatArray,
    rows: ClassRows,
    weights: FloatArray | None,
    mean: FloatArray,
    denominator_variance: FloatArray,
) -> PenaltyUnits:
    """Units from the sampling error of the numerator's weighted means.

    Parameters
    ----------
    penalty_weights : {"standard-error", "covariance"}
    features, rows
        The numerator class.
    weights : ndarray of shape (n_rows,) or (n_rows, n_features), or None
        Inverse-probability weights of its rows, or of each feature.
    mean : ndarray of shape (n_features,)
        The weighted means.
    denominator_variance : ndarray of shape (n_features,)
        Of the features, over the denominator class: zero exactly where constant.
    """
    whole = penalty_weights == "covariance"
    covariance = mean_covariance(features, rows, weights, mean, diagonal=not whole)
    variance = np.diagonal(covariance) if whole else covariance
    size = feature_sizes(rows, weights, len(mean))
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
    features: FloatArray,
    rows: ClassRows,
    weights: FloatArray | None,
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
    n_features = len(mean)
    length = max(1, BLOCK_ELEMENTS // n_features)
    starts = range(0, rows.n_rows, length)
    terms = _terms(features, rows, weights, mean)

    def add_up(chunk: Sequence[int]) -> FloatArray:
        total = np.zeros(n_features if diagonal else (n_features, n_features))
        for start in chunk:
            block = terms(start, min(start + length, rows.n_rows))
            total += (block**2).sum(axis=0) if diagonal else block.T @ block
        return total

    per_chunk = -(-len(starts) // CHUNKS)
    chunks = [starts[i : i + per_chunk] for i in range(0, len(starts), per_chunk)]
    with one_blas_thread(rows.n_rows * n_features) as threads:
        covariance: FloatArray = np.sum(share(add_up, chunks, threads), axis=0)
    return covariance


def _terms(
    features: FloatArray, rows: ClassRows, weights: FloatArray | None, mean: FloatArray
) -> Callable[[int, int], FloatArray]:
    """What rows from one to another add to the errors of the means."""
    combined = rows.combined(weights)
    divisor = rows.total(combined)
    own = rows.sample_weight
    hajek = rows.normalize != "horvitz-thompson" or combined is None

    def block_terms(start: int, stop: int) -> FloatArray:
        whole = 1.0 if own is None else own[start:stop, None]
        if rows.adjusted is not None:
            return whole * (rows.adjusted[start:stop] - mean) / rows.total(None)
        block = rows.block(features, slice(start, stop))
        if combined is None:
            return (block - mean) / divisor
        weight = combined[start:stop]
        weight = weight[:, None] if weight.ndim == 1 else weight
        values = np.where(weight > 0.0, block, mean)
        if hajek:
            return weight * (values - mean) / divisor
        return (weight * values - whole * mean) / divisor

    return block_terms


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
