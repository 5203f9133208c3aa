"""Rows that are in a table by design: complete, or drawn and looked up."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from missratio._base.blocks import any_by_row
from missratio._base.typing import BoolArray, FloatArray, IntArray

# Shares of the same draw may differ by so much.
ROUNDING = 1e-9


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
    lost : ndarray of bool of shape (n_rows, n_columns), or None
        Which entries were missing before any was looked up, where that is known.
    predicted : bool
        Whether the strata were made by predicted scores, the low ones second.
    expected : tuple of float, or None
        The shares of other rows of the class: of incomplete ones, and of those of these
        that were drawn.
    """

    probability: FloatArray
    strata: IntArray | None
    found: BoolArray
    lost: BoolArray | None = None
    predicted: bool = False
    expected: tuple[float, float] | None = None

    @classmethod
    def of(
        cls,
        inclusion: ArrayLike,
        complete: BoolArray,
        width: int,
        labels: ArrayLike | None = None,
    ) -> RowInclusion:
        """Rows by the probabilities of rows or of their entries.

        Where entries were drawn column by column, rows that miss the same columns are
        equally likely to be looked up in all of them: these are the strata. Where rows
        were drawn whole (`drawn_whole`), all of a class were.

        Parameters
        ----------
        inclusion : array-like of shape (n_rows,) or (n_rows, n_columns)
        complete : ndarray of bool of shape (n_rows,)
            Which rows have no missing value once the answers are filled in.
        width : int
            The number of columns.
        labels : array-like of shape (n_rows,), optional
            The classes, each of which was drawn from by itself; None for a single one.
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
        if given.ndim == 1:
            _check(given, complete)
            return cls(given, None, complete)
        lost = given < 1.0
        by_row, strata = np.empty(n_rows), np.zeros(n_rows, dtype=np.intp)
        classes = np.zeros(n_rows) if labels is None else np.asarray(labels)
        for label in np.unique(classes):
            rows = np.flatnonzero(classes == label)
            by_row[rows] = row_probability(given[rows])
            own = np.zeros(len(rows), dtype=np.intp)
            if not drawn_whole(given[rows]):
                own = np.unique(lost[rows], axis=0, return_inverse=True)[1]
            strata[rows] = strata.max(initial=0) + 1 + own
        _check(by_row, complete)
        return cls(by_row, strata, complete, lost)

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

    @property
    def looked_up(self) -> bool:
        """Whether any row was drawn: what is missing still says nothing of a draw."""
        return bool(((self.probability > 0.0) & (self.probability < 1.0)).any())

    def take(self, rows: IntArray) -> RowInclusion:
        """That of some rows."""
        strata = None if self.strata is None else self.strata[rows]
        lost = None if self.lost is None else self.lost[rows]
        return replace(
            self,
            probability=self.probability[rows],
            strata=strata,
            found=self.found[rows],
            lost=lost,
        )

    def besides(self, rows: IntArray, others: IntArray) -> RowInclusion:
        """That of some rows, which are expected to be drawn like some others."""
        incomplete = self.probability[others] < 1.0
        if not len(incomplete):
            return self.take(rows)
        drawn = self.probability[others][incomplete] > 0.0
        share = float(drawn.mean()) if len(drawn) else 1.0
        return replace(self.take(rows), expected=(float(incomplete.mean()), share))


def drawn_whole(inclusion: FloatArray) -> bool:
    """Whether the rows of a class were drawn whole, by the entries' probabilities.

    Then all missing entries of a row were drawn or none, with the same probability for
    every row. Where columns were drawn from one by one, some row that misses two was
    drawn for one of them only, but for accidents among very few rows.

    Parameters
    ----------
    inclusion : ndarray of shape (n_rows, n_columns)
        Of the rows of one class.
    """
    lost = inclusion < 1.0
    least = inclusion.min(axis=1, initial=1.0)
    most = inclusion.max(axis=1, where=lost, initial=0.0)
    if (most != least)[any_by_row(lost)].any():
        return False
    drawn = most[most > 0.0]
    return bool(np.ptp(drawn) <= ROUNDING) if len(drawn) else True


def drawn_together(inclusion: FloatArray) -> IntArray:
    """Columns with equal numbers were drawn together, by the entries' probabilities.

    All of them where rows were drawn whole; else those with the same probability in
    every row, as the indicators of one category. Of columns that were drawn from one by
    one, other rows are found.

    Parameters
    ----------
    inclusion : ndarray of shape (n_rows, n_columns)
        Of the rows of one class.
    """
    if drawn_whole(inclusion):
        return np.zeros(inclusion.shape[1], dtype=np.intp)
    first: dict[bytes, int] = {}
    columns = np.ascontiguousarray(inclusion.T)
    return np.array([first.setdefault(c.tobytes(), j) for j, c in enumerate(columns)])


def row_probability(inclusion: FloatArray) -> FloatArray:
    """How likely rows of a class were to be there as a whole, by their entries.

    Parameters
    ----------
    inclusion : ndarray of shape (n_rows, n_columns)
    """
    least = inclusion.min(axis=1, initial=1.0)
    if drawn_whole(inclusion):
        return np.asarray(least)
    once = np.unique(drawn_together(inclusion), return_index=True)[1]
    return np.where(least == 0.0, 0.0, inclusion[:, once].prod(axis=1))


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
