"""A table with the classes of its rows, and why values are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from missratio._base.blocks import take_rows
from missratio._base.hints import check_number
from missratio._base.typing import FloatArray, IntArray
from missratio.classifier._models import calibration_model
from missratio.missingness import Missingness, RowInclusion
from missratio.weights import complete_row_weights

Models = Mapping[Any, Missingness]


@dataclass(frozen=True)
class ClassTable:
    """Rows of several classes.

    Parameters
    ----------
    X : array, sparse matrix or dataframe of shape (n_rows, n_columns)
    codes : ndarray of int of shape (n_rows,)
        Positions of the rows' classes among the labels.
    labels : list
    models : mapping from class to Missingness, or None
    drawn : RowInclusion or None
        By what draw rows are there, where values were looked up.
    deployment : {"complete", "as-observed"}
    """

    X: Any
    codes: IntArray
    labels: list[Any]
    models: Models | None
    drawn: RowInclusion | None
    deployment: str

    def rows_of(self, position: int, index: IntArray) -> IntArray:
        """The rows of one class among some rows."""
        found: IntArray = index[self.codes[index] == position]
        return found

    def take(self, index: IntArray) -> Any:
        """Some rows."""
        return take_rows(self.X, index)

    def model(self, position: int, index: IntArray) -> Missingness | None:
        """Why rows of one class are missing; None where none is, or it doesn't matter.

        Raises
        ------
        UnexplainedMissingError
            Where some are missing and nothing says why.
        """
        if self.deployment != "complete" or self.by_design(index):
            return None
        return calibration_model(self.take(index), self.models, self.labels[position])

    def by_design(self, index: IntArray) -> bool:
        """Whether some of these rows were looked up, or left out of a draw."""
        return self.drawn is not None and self.drawn.take(index).by_design

    def weights(self, position: int, index: IntArray) -> FloatArray:
        """What rows of one class stand for, where complete rows are meant."""
        if self.drawn is not None and self.by_design(index):
            return self.drawn.weights[index]
        model = self.model(position, index)
        if model is None:
            return np.ones(len(index))
        return complete_row_weights(self.take(index), model)

    def split(
        self,
        bounded: Sequence[int],
        choice_size: float,
        calibration_size: float,
        rng: np.random.Generator,
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Rows to fit on, to choose by and to calibrate on, class by class.

        Parameters
        ----------
        bounded : sequence of int
            The classes that calibrate.
        choice_size, calibration_size : float
            Shares of a class's rows. With one bounded class of two
            nothing has to be chosen.
        rng : Generator
        """
        shares = {"choice_size": choice_size, "calibration_size": calibration_size}
        for name, share in shares.items():
            check_number(name, share)
        for name, share in shares.items():
            if not 0.0 < share < 1.0 or choice_size + calibration_size >= 1.0:
                raise ValueError(
                    f"{name}={share!r}: choice_size and calibration_size are shares "
                    "between 0 and 1 that leave some rows to fit on."
                )
        if len(self.labels) == 2 and len(bounded) == 1:
            choice_size = 0.0
        # Whether a class's losses are explained is a matter of all its rows, so that
        # no seed decides it.
        for position in range(len(self.labels)) if choice_size else bounded:
            self.model(position, np.flatnonzero(self.codes == position))
        parts: tuple[list[IntArray], ...] = ([], [], [])
        for position in range(len(self.labels)):
            own = rng.permutation(np.flatnonzero(self.codes == position))
            held = calibration_size if position in bounded else 0.0
            ends = np.round(np.cumsum([held, choice_size]) * len(own)).astype(np.intp)
            calibrating, choosing, fitting = np.split(own, ends)
            for part, rows in zip(parts, (fitting, choosing, calibrating), strict=True):
                part.append(rows)
            if not len(fitting):
                raise ValueError(
                    f"Class {self.labels[position]!r} has {len(own)} row(s): too few "
                    "to be split into rows to fit on, to choose by and to calibrate on."
                )
        fitted, chosen, calibrated = (np.sort(np.concatenate(part)) for part in parts)
        return fitted, chosen, calibrated
