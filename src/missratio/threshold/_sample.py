"""Calibration rows as threshold rules see them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from missratio._typing import FloatArray


@dataclass(frozen=True, slots=True)
class CalibrationSample:
    """Scores of the observed rows of the controlled class, and their weights.

    Parameters
    ----------
    scores : ndarray of shape (n_observed,)
        Sorted, the largest first.
    weights : ndarray of shape (n_observed,)
        W = 1/(1 − φ) of the same rows.
    n_rows : int
        All rows, the missing ones included.
    bound : float or None
        B = 1/(1 − ‖φ‖∞), which no weight exceeds; None where it is not known.
    """

    scores: FloatArray
    weights: FloatArray
    n_rows: int
    bound: float | None

    @classmethod
    def build(
        cls,
        scores: ArrayLike,
        weights: ArrayLike | None = None,
        bound: float | None = None,
    ) -> CalibrationSample:
        """Sort scores, and leave out missing rows: those of weight zero.

        Parameters
        ----------
        scores : array-like of shape (n_rows,)
            Where the weight is zero they are not looked at.
        weights : array-like of shape (n_rows,), optional
            None for complete rows; the bound is then 1.
        bound : float, optional

        Returns
        -------
        CalibrationSample
        """
        values = np.asarray(scores, dtype=np.float64)
        if values.ndim != 1:
            raise ValueError(f"scores must be one-dimensional, got {values.shape}.")
        if weights is None:
            weight, bound = np.ones(len(values)), 1.0
        else:
            weight = np.asarray(weights, dtype=np.float64)
            if weight.shape != values.shape:
                raise ValueError(
                    f"weights must be one for each score: got shapes {weight.shape} "
                    f"and {values.shape}."
                )
            if not (np.isfinite(weight) & (weight >= 0.0)).all():
                raise ValueError("weights must be finite and not negative.")
        observed = weight > 0.0
        if not observed.all():
            values, weight = values[observed], weight[observed]
        if np.isnan(values).any():
            raise ValueError(
                "An observed calibration row has a score of NaN. Score complete rows, "
                "or give rows that can't be scored a weight of zero."
            )
        if bound is not None and len(weight) and weight.max() > bound * (1 + 1e-9):
            raise ValueError(
                f"A weight of {weight.max():.6g} exceeds the bound {bound:.6g} that "
                "the largest missing probability implies: one of the two is wrong."
            )
        order = np.argsort(-values)
        return cls(values[order], weight[order], len(observed), bound)

    @property
    def n_observed(self) -> int:
        """How many rows are observed."""
        return len(self.scores)

    @property
    def effective_rows(self) -> float:
        """Kish's effective sample size of the weights."""
        total = float(self.weights.sum())
        return total**2 / float((self.weights**2).sum()) if total > 0.0 else 0.0

    def threshold(self, n_tail: int) -> float:
        """The smallest threshold above which there are at most n_tail rows.

        A threshold below every observed score is never given.
        """
        return float(self.scores[min(n_tail, self.n_observed - 1)])

    def estimated_error(self, threshold: float) -> float:
        """The weighted share of rows that score above a threshold (Hájek)."""
        above = float(self.weights[self.scores > threshold].sum())
        return above / float(self.weights.sum())
