"""What was found out of a plan's cells, checked line by line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from missratio._base.blocks import any_by_row
from missratio._base.hints import did_you_mean, listed
from missratio._base.reading import as_numeric_array, with_values
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.exceptions import TableError
from missratio.learning._plan_cells import MissingCells
from missratio.learning._plan_lines import Answers, Levels, check_table
from missratio.learning._plan_table import Columns, read_table

REQUIRED = ("draw", "feature", "value", "key")
BACKENDS = ("pandas", "polars", "pyarrow")
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Revealed:
    """The values found for missing cells, in the shape of the table they belong to.

    ``revealed[label]`` are the rows of a class, aligned with ``X[y == label]``: the
    second argument of `learn_missingness`.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_features)
        Aligned with X, and NaN where nothing was revealed.
    codes : ndarray of int of shape (n_rows,)
        Each row's place among the classes.
    classes : list
        Labels, sorted; ``[None]`` for a table without labels.
    feature_names : tuple of str
    missing, asked, answered : ndarray of int of shape (n_classes, n_features)
        How many cells are missing, how many of these were to be looked up, and how many
        were found.
    rowwise : ndarray of bool of shape (n_classes,)
        Of which classes rows were drawn, with all their missing values, and not single
        cells.
    fingerprint : str
        That of the table.
    order : ndarray of int of shape (n_rows, n_features)
        The number of each cell's draw, from 1; 0 for one that was not asked.
    not_found : ndarray of bool of shape (n_rows, n_features)
        Which cells were marked as not found.

    Notes
    -----
    Answers stand for all missing values of their class and feature. They do so if
    whether a value could be found doesn't depend on what it is. If the extreme ones are
    the harder to find, what is learned from the rest is biased, and no later step can
    notice: compare `asked` with `answered`.
    """

    table: FloatArray
    codes: IntArray
    classes: list[Any]
    feature_names: tuple[str, ...]
    missing: IntArray
    asked: IntArray
    answered: IntArray
    rowwise: BoolArray
    fingerprint: str
    order: IntArray
    not_found: BoolArray

    def fill(self, X: Any) -> tuple[Any, FloatArray]:
        """The table with the answers in it, and how likely each was to be there.

        An observed value is there for certain, one that was looked up with the share
        m/M of the M missing ones that m of them were drawn from by lot: within each
        class and feature, or within each class where rows were drawn. Weights that are
        one over these probabilities make means over what is there unbiased, whatever
        made values go missing.

        Answers are a draw as far as they go: up to the last one, in the order of
        `draw`. A line left blank before it counts as "not found", and those after it as
        not drawn. That holds if how far they go has nothing to do with the values.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_features)
            The table that the plan was made for, as it was.

        Returns
        -------
        X_filled : ndarray or dataframe of shape (n_rows, n_features)
            NaN where a value is missing still.
        inclusion : ndarray of shape (n_rows, n_features)
            1 where observed, m/M where looked up, 0 where missing still. What was drawn
            and not found has the probability of those found, and NaN in `X_filled`: a
            ratio leaves it out, a certificate counts it as an error.
        """
        cells = MissingCells.of(X)
        if cells.fingerprint != self.fingerprint:
            raise ValueError(
                "The answers are those of another table. X must be what it was when "
                "the plan was made: the same rows and columns, and the same cells "
                "missing."
            )
        answered = np.zeros(cells.missing.shape, dtype=bool)
        inclusion = np.where(cells.missing, 0.0, 1.0)
        for code in range(len(self.classes)):
            rows = np.flatnonzero(self.codes == code)
            of_class = _by_row if self.rowwise[code] else _by_entry
            answered[rows], inclusion[rows] = of_class(self, cells.missing, code, rows)
        values = np.array(as_numeric_array(X), dtype=np.float64)
        values[answered] = self.table[answered]
        return with_values(X, values), inclusion

    def __getitem__(self, label: Any) -> FloatArray:
        """The revealed values of one class, (n_class_rows, n_features)."""
        if label not in self.classes:
            raise KeyError(
                f"{label!r} is not among the classes {listed(self.classes)}."
            )
        of_class: BoolArray = self.codes == self.classes.index(label)
        return np.asarray(self.table[of_class])

    def summary(self, backend: str = "pandas") -> Any:
        """A dataframe of how much is missing, asked and answered.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"

        Returns
        -------
        dataframe
            A line for each class and feature with a missing value.
        """
        code, column = np.nonzero(self.missing)
        columns: Columns = {}
        if self.classes != [None]:
            columns["class"] = [self.classes[place] for place in code]
        columns["feature"] = [self.feature_names[place] for place in column]
        for name in ("missing", "asked", "answered"):
            columns[name] = getattr(self, name)[code, column].tolist()
        return as_native(columns, backend)

    def __repr__(self) -> str:
        n_rows, n_features = self.table.shape
        return (
            f"<Revealed: {self.answered.sum()} of {self.asked.sum()} cells answered, "
            f"{n_rows} rows, {n_features} features>"
        )


def _by_row(
    revealed: Revealed, missing: BoolArray, code: int, rows: IntArray
) -> tuple[BoolArray, FloatArray]:
    """Which entries of a class's rows were found with all of their row, and how likely.

    Returns entries found and inclusion probabilities, of shape (n_rows, n_columns).
    """
    lost = missing[rows]
    incomplete = any_by_row(lost)
    answered = incomplete & ~any_by_row(lost & np.isnan(revealed.table[rows]))
    ended = answered | any_by_row(revealed.not_found[rows])
    order = np.where(incomplete, revealed.order[rows].max(axis=1), 0)
    drawn = _drawn(order, ended, _class_name(revealed, code))
    n_found, n_pool = int((answered & drawn).sum()), int(incomplete.sum())
    share = n_found / max(n_pool, 1)
    inclusion = np.where(lost, np.where(drawn, share, 0.0)[:, None], 1.0)
    return lost & (answered & drawn)[:, None], inclusion


def _by_entry(
    revealed: Revealed, missing: BoolArray, code: int, rows: IntArray
) -> tuple[BoolArray, FloatArray]:
    """The same where single entries were drawn, of every feature by itself."""
    lost = missing[rows]
    answered = ~np.isnan(revealed.table[rows])
    ended = answered | revealed.not_found[rows]
    order = revealed.order[rows]
    inclusion = np.where(lost, 0.0, 1.0)
    for column, feature in enumerate(revealed.feature_names):
        pool = np.flatnonzero(lost[:, column])
        name = ", ".join(
            filter(None, [_class_name(revealed, code), f"feature {feature!r}"])
        )
        drawn = _drawn(order[pool, column], ended[pool, column], name)
        found = np.count_nonzero(answered[pool, column][drawn])
        inclusion[pool[drawn], column] = found / max(len(pool), 1)
    return answered & (inclusion > 0.0), inclusion


def _class_name(revealed: Revealed, code: int) -> str:
    label = revealed.classes[code]
    return "" if label is None else f"class {label!r}"


def _drawn(order: IntArray, ended: BoolArray, name: str) -> BoolArray:
    """Which of a pool were drawn: all up to the last answer, in drawing order.

    Raises
    ------
    ValueError
        If a line before the last answer was taken out: its row is not known then.
    """
    last = int(order[ended].max(initial=0))
    drawn = (order > 0) & (order <= last)
    absent = sorted(set(range(1, last + 1)) - set(order[drawn].tolist()))
    if absent:
        shown = listed(absent[:_SHOWN])
        of = f" of {name}" if name else ""
        raise ValueError(
            f"Lines were taken out of the plan{of} before its last answer: draw "
            f"{shown}. Put them back, blank or with 'not found' if nothing was found."
        )
    return drawn


def as_native(columns: Columns, backend: str) -> Any:
    """Columns as a dataframe of the library that is asked for."""
    if backend not in BACKENDS:
        raise ValueError(
            f"backend must be one of {listed(BACKENDS)}: got {backend!r}."
            f"{did_you_mean(str(backend), BACKENDS)}"
        )
    try:
        frame = nw.from_dict(columns, backend=backend)  # type: ignore[arg-type]
    except ModuleNotFoundError as error:
        raise ImportError(
            f"backend={backend!r} needs {backend}: install it."
        ) from error
    if all(cell is None for cell in columns.get("value", [""])):
        # A column of nothing has no type of its own.
        frame = frame.with_columns(nw.col("value").cast(nw.Float64))
    return frame.to_native()


def read_answers(
    source: Any,
    X: Any,
    y: Any = None,
    planned: BoolArray | None = None,
    *,
    lines: Any = None,
    levels: Levels | None = None,
) -> Revealed:
    """Read the answers in a file or a dataframe, and check each against X and y.

    `planned` marks the cells of one plan, where others of the same table are not to be
    taken as well. `lines` says where rows are in the user's own file, for a plan that
    goes by them, and `levels` what the numbers of features that are categories stand
    for.
    """
    cells = MissingCells.of(X, y)
    found = read_table(source, REQUIRED)
    by_line = "row" not in found.columns
    if by_line and "line" not in found.columns:
        raise TableError(
            "A plan says by 'row' or by 'line' where a value is missing: neither is "
            "among its columns. Keep the header as it was written."
        )
    if by_line and lines is None:
        raise TableError(
            "The plan gives lines of a file, and not rows of X: say by lines=... which "
            "line each row of X is."
        )
    file_lines = lines if by_line else None
    answers = Answers(
        found, cells, check_table(found, cells), planned, file_lines, levels
    )
    answers.read()
    asked, table = answers.asked if planned is None else planned, answers.table
    table.flags.writeable = False
    return Revealed(
        table=table,
        codes=cells.codes,
        classes=cells.classes,
        feature_names=cells.feature_names,
        missing=cells.counts(cells.missing),
        asked=cells.counts(asked),
        answered=cells.counts(~np.isnan(table)),
        rowwise=answers.rowwise,
        fingerprint=cells.fingerprint,
        order=answers.order,
        not_found=answers.not_found,
    )
