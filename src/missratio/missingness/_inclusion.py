"""Rows that are in a table by design: complete, or drawn and looked up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from missratio._blocks import any_by_row
from missratio._typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class RowInclusion:
    """How likely rows were to be in a table as a whole.

    Parameters
    ----------
    probability : ndarray of shape (n_rows,)
        1 for a complete row, 0 for one that has a value missing still and was not
        drawn, between them for one that was drawn.
    strata : ndarray of int of shape (n_rows,) or None
        Within each of these, incomplete rows were equally likely to be drawn. None
        where all were.
    found : ndarray of bool of shape (n_rows,)
        Whether a row is complete now. One that was drawn and isn't was not found.
    """

    probability: FloatArray
    strata: IntArray | None
    found: BoolArray

    @classmethod
    def of(cls, inclusion: ArrayLike, complete: BoolArray, width: int) -> RowInclusion:
        """Rows by the probabilities of rows or of their entries.

        Entries are drawn column by column, so rows that miss the same columns are
        equally likely to be looked up in all of them: these are the strata.

        Parameters
        ----------
        inclusion : array-like of shape (n_rows,) or (n_rows, n_columns)
        complete : ndarray of bool of shape (n_rows,)
            Which rows have no missing value once the answers are filled in.
        width : int
            The number of columns.
        """
        given = np.asarray(inclusion, dtype=np.float64)
        n_rows = len(complete)
        if given.shape not in ((n_rows,), (n_rows, width)):
            raise ValueError(
                f"inclusion must have shape ({n_rows},), for rows, or ({n_rows}, "
                f"{width}), for entries: got {given.shape}."
            )
        if not ((given >= 0.0) & (given <= 1.0)).all():
            raise ValueError(
                "inclusion must hold probabilities in [0, 1]: 1 where a value was "
                "observed, the share looked up where it was looked up, 0 where it is "
                "missing still."
            )
        strata = None
        if given.ndim == 2:
            drawn = given < 1.0
            patterns, strata = np.unique(drawn, axis=0, return_inverse=True)
            strata = strata if len(patterns) > 2 else None
            given = np.where(any_by_row(given == 0.0), 0.0, given.prod(axis=1))
        _check(given, complete)
        return cls(given, strata, complete)

    @property
    def weights(self) -> FloatArray:
        """One over the probability for rows that are there, 0 for the others."""
        weights = np.zeros(len(self.found))
        present = self.found & (self.probability > 0.0)
        weights[present] = 1.0 / self.probability[present]
        return weights

    @property
    def by_design(self) -> bool:
        """Whether any row was drawn, or left out."""
        return bool((self.probability < 1.0).any())

    def take(self, rows: IntArray) -> RowInclusion:
        """That of some rows."""
        strata = None if self.strata is None else self.strata[rows]
        return RowInclusion(self.probability[rows], strata, self.found[rows])


def _check(probability: FloatArray, complete: BoolArray) -> None:
    for wrong, what in (
        ((probability == 1.0) & ~complete, "1, and the row has NaN"),
        ((probability == 0.0) & complete, "0, and the row has no NaN"),
    ):
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"inclusion of row {row} is {what} ({np.count_nonzero(wrong)} such "
                "rows). It is 1 for rows that were complete, and 0 for those that were "
                "not and weren't drawn: take it from revealed.fill(X), with the table "
                "that it fills in."
            )
