"""Which missing cells to look up, so that why they are missing can be learned."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.learning._plan_answers import Revealed, as_native, read_answers
from missratio.learning._plan_cells import (
    cell_word,
    table_word,
)
from missratio.learning._plan_lines import Levels
from missratio.learning._plan_power import PlannedPower
from missratio.learning._plan_table import Columns, write_table


@dataclass(frozen=True, eq=False)
class QueryPlan:
    """Missing cells to look up, drawn at random: a table for a person to fill in.

    Made by `plan_queries`. Lines are in random order, one of each class and feature in
    turn: what is filled in from the top down is itself a plan, however far it goes.

    Parameters
    ----------
    rows, columns : ndarray of int of shape (n_queries,)
        Positions in X, from 0.
    order : ndarray of int of shape (n_queries,)
        The number of each draw within its class and feature, or within its class where
        rows are drawn; from 1.
    labels : ndarray of shape (n_queries,) or None
        The class of each query; None where X has no labels.
    ids : ndarray of shape (n_queries,) or None
        The user's own key of each query's row.
    feature_names : tuple of str
        Those of all columns of X.
    shape : tuple of int
        That of X.
    rowwise : ndarray of bool of shape (n_queries,)
        Whether each query is one of a row that was drawn as a whole, of which every
        missing cell is a query.
    lines : ndarray of int of shape (n_queries,) or None
        Where each query's row is in the user's own file.
    others : ndarray of shape (n_queries, n_features)
        The values of each query's row that are known, for the person who looks things
        up; NaN elsewhere.
    seed : int
        As `random_state` it gives the same plan, or one that extends it.
    fingerprint : str
        A digest of the shape of X, its columns and what is missing in it.
    power : PlannedPower or None
        What this and other budgets should buy, where the plan has a goal.
    levels : dict of str to sequence of str, or None
        What the numbers of features that are categories stand for.
    """

    rows: IntArray
    columns: IntArray
    order: IntArray
    labels: NDArray[Any] | None
    ids: NDArray[Any] | None
    feature_names: tuple[str, ...]
    shape: tuple[int, int]
    rowwise: BoolArray
    lines: NDArray[Any] | None
    others: FloatArray
    seed: int
    fingerprint: str
    power: PlannedPower | None = None
    levels: Levels | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return (
            f"<QueryPlan: {self.content('cells')} of a table of shape {self.shape}, "
            f"seed {self.seed}>"
        )

    @property
    def n_rows(self) -> int:
        """How many rows were drawn as a whole."""
        return len(np.unique(self.rows[self.rowwise]))

    def content(self, what: str = "values") -> str:
        """How many values to look up, in words.

        Parameters
        ----------
        what : str, default="values"
            What cells are called.
        """
        n_whole = int(self.rowwise.sum())
        whole = f"{n_whole} {what} in {self.n_rows} rows" if n_whole else ""
        single = f"{len(self) - n_whole} {'single ' if n_whole else ''}{what}"
        return " and ".join([whole] * bool(whole) + [single] * (n_whole < len(self)))

    def to_frame(
        self, backend: str = "pandas", *, revealed: Revealed | None = None
    ) -> Any:
        """The plan as a dataframe, with a column `value` to fill in.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"
        revealed : Revealed, default=None
            Answers to a smaller plan of the same seed, to be kept.

        Returns
        -------
        dataframe
            `draw`, the order to look values up in; `row`, the position in X from 0;
            `line`, that in the user's own file, and `id`, the user's key, if given;
            `class`, if there are labels; `feature`; `value`, blank; and `key`, by which
            a cell that is not in the plan is told.
        """
        return as_native(self._columns(revealed), backend)

    def write(
        self,
        path: str | Path,
        *,
        revealed: Revealed | None = None,
        force: bool = False,
        escape_formulas: bool = True,
    ) -> None:
        """Write the table to fill in, whole or not at all.

        To the columns of `to_frame` it adds the values of the row that are known, and
        leaves out `row` where there is `line`.

        Parameters
        ----------
        path : str or Path
            Ends in .csv, .parquet or .xlsx. All but CSV need the extra ``tables``.
        revealed : Revealed, default=None
            Answers to a smaller plan of the same seed, to be kept.
        force : bool, default=False
            Whether a file of that name is overwritten, instead of an error.
        escape_formulas : bool, default=True
            Whether texts in a CSV file that a spreadsheet would take for formulas are
            marked by an apostrophe, which `read` takes away again.
        """
        write_table(
            self._columns(revealed, known=True),
            path,
            force=force,
            escape_formulas=escape_formulas,
        )

    @staticmethod
    def read(
        source: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        lines: ArrayLike | None = None,
        levels: Levels | None = None,
    ) -> Revealed:
        """Read the answers from a file that was filled in.

        Lines may be in any order, left blank or taken out, and columns added. A blank
        or NA is no answer, and "not found" marks a value that can't be had. Semicolons
        and tabs as separators, decimal commas, and integers that became floats are
        understood.

        Parameters
        ----------
        source : str, Path or dataframe
            A .csv, .tsv, .parquet, .xlsx, .xls or .ods file, or a dataframe.
        X : array-like or dataframe of shape (n, d)
            The table that the plan was made for, as it was.
        y : array-like of shape (n,), default=None
            Its labels.
        lines : array-like of shape (n,), default=None
            Where each row is in the user's own file, as the plan was given them.
        levels : mapping from str to sequence of str, default=None
            Of features that are categories, as the plan was given them.

        Returns
        -------
        Revealed

        Raises
        ------
        ValueError
            With the line and the row: a cell that isn't missing in X or isn't in the
            plan, a value that isn't a finite number, one that could be two numbers
            (1,234), a cell answered by two values, a class other than that in y, a
            feature that X doesn't have, a row filled in by half where whole rows are
            asked for, or a plan for another table.
        """
        return read_answers(source, X, y, lines=lines, levels=levels)

    def read_back(self, source: Any, X: Any, y: ArrayLike | None = None) -> Revealed:
        """Read answers to this plan, as `read` does.

        A cell of another plan for the same table is refused, and `asked` also counts
        lines that were taken out.
        """
        planned = np.zeros(self.shape, dtype=bool)
        planned[self.rows, self.columns] = True
        lines = self._file_lines()
        return read_answers(source, X, y, planned, lines=lines, levels=self.levels)

    def _file_lines(self) -> IntArray | None:
        """The line of each row of X, where the plan knows it; -1 elsewhere."""
        if self.lines is None:
            return None
        lines = np.full(self.shape[0], -1)
        lines[self.rows] = self.lines
        return lines

    def _columns(self, revealed: Revealed | None, *, known: bool = False) -> Columns:
        words = [table_word(self.fingerprint, rowwise=whole) for whole in (False, True)]
        cells = list(zip(self.rows.tolist(), self.columns.tolist(), strict=True))
        columns: Columns = {"draw": self.order.tolist()}
        # In a file to fill in, a row goes by one number: that in the user's own file.
        if self.lines is None or not known:
            columns["row"] = self.rows.tolist()
        if self.lines is not None:
            columns["line"] = self.lines.tolist()
        if self.ids is not None:
            columns["id"] = self.ids.tolist()
        if self.labels is not None:
            columns["class"] = self.labels.tolist()
        for place, name in enumerate(self.feature_names if known else ()):
            values = self.others[:, place].tolist()
            columns[f"known {name}"] = [self._written(v, name) for v in values]
        columns["feature"] = [self.feature_names[column] for _, column in cells]
        columns["value"] = self._known(revealed)
        columns["key"] = [
            f"{words[whole]}-{cell_word(self.fingerprint, *cell, draw)}"
            for whole, cell, draw in zip(
                self.rowwise.tolist(), cells, self.order.tolist(), strict=True
            )
        ]
        return columns

    def _known(self, revealed: Revealed | None) -> list[Any]:
        if revealed is None:
            return [None] * len(self)
        if revealed.fingerprint != self.fingerprint:
            raise ValueError("The answers in revealed are those of another table.")
        values = revealed.table[self.rows, self.columns]
        lost = np.isfinite(revealed.table).sum() - np.isfinite(values).sum()
        if lost:
            raise ValueError(
                f"{lost} of the revealed cells are not in this plan and would be lost. "
                "Plan as many values as before or more, with the same random_state."
            )
        names = [self.feature_names[column] for column in self.columns]
        found = [self._written(v, n) for v, n in zip(values, names, strict=True)]
        if not self.levels:
            return found
        # A column has one type: texts, as soon as a category may be among them.
        return [None if value is None else str(value) for value in found]

    def _written(self, value: float, name: str) -> float | str | None:
        """A value as a person writes it; None where there is none."""
        if np.isnan(value):
            return None
        levels = None if self.levels is None else self.levels.get(name)
        return float(value) if levels is None else levels[int(value)]
