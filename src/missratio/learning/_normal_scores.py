"""Columns as normal scores: what shadow variables and instruments are computed from.

A column's observed values are replaced by the normal quantiles of their ranks, which
have light tails whatever the column's law is; a missing entry is 0, the middle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from missratio._threads import one_blas_thread, share
from missratio._typing import BoolArray, FloatArray, IntArray

KNOTS = 257


@dataclass(frozen=True, slots=True)
class Quantiles:
    """A column's values as a function of its normal scores, linear between knots.

    Parameters
    ----------
    scores, values : ndarray of shape (n_knots,)
        Both increasing.
    """

    scores: FloatArray
    values: FloatArray

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Values at scores; beyond the outermost knots those of the knots."""
        return np.asarray(np.interp(scores, self.scores, self.values))


@dataclass(frozen=True, slots=True)
class ScoredTable:
    """A table's normal scores and masks, and how each column's values are ordered.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_columns)
        Of unit variance where observed, 0 where missing or where the column is
        constant.
    missing : ndarray of bool of shape (n_rows, n_columns)
    order : list of ndarray of int
        For each column its observed rows, by increasing value.
    quantiles : list of Quantiles
    """

    scores: FloatArray
    missing: BoolArray
    order: list[IntArray]
    quantiles: list[Quantiles]

    @classmethod
    def of(cls, table: FloatArray) -> ScoredTable:
        """Score every column; none of them is missing throughout."""
        missing: BoolArray = np.isnan(table)
        scores = np.zeros(table.shape, order="F")

        def score(j: int) -> tuple[IntArray, Quantiles]:
            order, knots, own = _score_column(table[:, j], missing[:, j])
            scores[order, j] = own
            return order, knots

        with one_blas_thread(table.size) as threads:
            found = share(score, range(table.shape[1]), threads)
        return cls(scores, missing, [f[0] for f in found], [f[1] for f in found])


def _score_column(
    column: FloatArray, missing: BoolArray
) -> tuple[IntArray, Quantiles, FloatArray]:
    """The observed rows in order, the quantiles, and scores in that order."""
    rows = np.flatnonzero(~missing)
    order = rows[np.argsort(column[rows], kind="stable")]
    ordered = column[order]
    # Ties share the middle of their ranks.
    starts = np.flatnonzero(np.diff(ordered, prepend=-np.inf) > 0.0)
    ends = np.append(starts[1:], len(ordered))
    scores = ndtri((starts + ends) / (2.0 * len(ordered)))
    counts = ends - starts
    mean = scores @ counts / len(ordered)
    spread = np.sqrt(((scores - mean) ** 2) @ counts / len(ordered))
    scores = (scores - mean) / spread if spread > 0.0 else np.zeros(len(scores))
    kept = np.unique(np.linspace(0, len(starts) - 1, KNOTS).round().astype(np.intp))
    knots = Quantiles(scores[kept], ordered[starts][kept])
    return order, knots, np.repeat(scores, counts)
