"""Which missing cells to look up, so that why they are missing can be learned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from missratio._hints import did_you_mean, listed
from missratio._typing import FloatArray, IntArray
from missratio.learning._plan_answers import Revealed, as_native, read_answers
from missratio.learning._plan_cells import (
    MissingCells,
    cell_word,
    table_word,
)
from missratio.learning._plan_draw import (
    Pool,
    draw,
    integer_seed,
    mean_price,
    missing_pools,
    pool_counts,
    positive,
)
from missratio.learning._plan_power import (
    SHARES,
    PlannedPower,
    PlanningTask,
    plan_power,
)
from missratio.learning._plan_table import Columns, write_table
from missratio.missingness.arrays import as_frame, as_numeric_array
from missratio.missingness.corruption import RandomState

GOALS = ("certificate", "ratio", "both")


@dataclass(frozen=True, eq=False)
class QueryPlan:
    """Missing cells to look up, drawn at random: a table for a person to fill in.

    Made by `plan_queries`. Lines are in the order of the draw, one of each class and
    feature in turn: what is filled in from the top down is itself a plan, however far
    it goes.

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
    rowwise : bool
        Whether rows are drawn, of which every missing cell is a query.
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
    """

    rows: IntArray
    columns: IntArray
    order: IntArray
    labels: NDArray[Any] | None
    ids: NDArray[Any] | None
    feature_names: tuple[str, ...]
    shape: tuple[int, int]
    rowwise: bool
    lines: NDArray[Any] | None
    others: FloatArray
    seed: int
    fingerprint: str
    power: PlannedPower | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        rows = f" in {len(np.unique(self.rows))} rows" if self.rowwise else ""
        return (
            f"<QueryPlan: {len(self)} cells{rows} of a table of shape {self.shape}, "
            f"seed {self.seed}>"
        )

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
    ) -> Revealed:
        """Read what was filled in; the file, X and y are all it takes.

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
        return read_answers(source, X, y, lines=lines)

    def read_back(self, source: Any, X: Any, y: ArrayLike | None = None) -> Revealed:
        """Read what was filled in, as `read` does, of this very plan.

        A cell of another plan for the same table is refused, and `asked` counts the
        lines that were taken out as well.
        """
        planned = np.zeros(self.shape, dtype=bool)
        planned[self.rows, self.columns] = True
        lines = self._file_lines()
        return read_answers(source, X, y, planned, lines=lines)

    def _file_lines(self) -> IntArray | None:
        """The line of each row of X, where the plan knows it; -1 elsewhere."""
        if self.lines is None:
            return None
        lines = np.full(self.shape[0], -1)
        lines[self.rows] = self.lines
        return lines

    def _columns(self, revealed: Revealed | None, *, known: bool = False) -> Columns:
        table = table_word(self.fingerprint, rowwise=self.rowwise)
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
            columns[f"known {name}"] = [None if np.isnan(v) else v for v in values]
        columns["feature"] = [self.feature_names[column] for _, column in cells]
        columns["value"] = self._known(revealed)
        columns["key"] = [
            f"{table}-{cell_word(self.fingerprint, *cell)}" for cell in cells
        ]
        return columns

    def _known(self, revealed: Revealed | None) -> list[float | None]:
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
        return [None if np.isnan(value) else value for value in values.tolist()]


def plan_queries(
    X: Any,
    y: ArrayLike | None = None,
    *,
    per_feature: int | None = None,
    budget: int | None = None,
    goal: Literal["certificate", "ratio", "both"] | None = None,
    rowwise: bool = False,
    classes: Iterable[Any] | None = None,
    ids: ArrayLike | None = None,
    lines: ArrayLike | None = None,
    controlled_class: Any = 0,
    alpha: float = 0.05,
    delta: float = 0.05,
    calibration_size: float = 0.5,
    random_state: RandomState = None,
) -> QueryPlan:
    """Draw which missing cells to look up, uniformly within each class and feature.

    Given a class and a feature, every set of its missing cells of one size is equally
    likely to be drawn. King and Zeng's correction, by which `learn_missingness` gets
    from few answers to the missing probability, rests on that: cells must not be
    chosen by what is easy to look up.

    With one seed a larger plan extends a smaller one, and the draw for a class and
    feature depends on no other.

    Parameters
    ----------
    X : array-like or dataframe of shape (n, d)
        Numbers, with NaN or null where missing.
    y : array-like of shape (n,), default=None
        Labels; None for rows of a single class.
    per_feature : int, default=None
        Values to look up for each class and feature; all of them where fewer are
        missing. With `rowwise`, rows for each class.
    budget : int, default=None
        Values to look up in all, instead of `per_feature`: spread evenly over classes
        and features, and what one can't use goes to the others. A row takes as many
        values as it misses.
    goal : {"certificate", "ratio", "both"}, default=None
        What the budget is for. "certificate" draws incomplete rows of the controlled
        class; "both" draws rows of both classes, in the proportion that buys the most
        certified power in a trial on this table; "ratio" draws values of every class
        and feature alike. With the first two, ``plan.power`` says what to expect.
    rowwise : bool, default=False
        Whether rows with a missing value are drawn, and all their missing values looked
        up: for certificates, and where rows are missing as a whole.
    classes : iterable of labels, default=None
        The classes to ask about; None for all.
    ids : array-like of shape (n,), default=None
        The user's own key of each row, such as a patient's number, for the person who
        looks things up. None takes the index of a pandas dataframe, if it has one.
    lines : array-like of shape (n,), default=None
        The line of each row in the user's own file, shown beside it.
    controlled_class : object, default=0
        The class whose error is to be certified.
    alpha, delta : float, default=0.05
        The certificate that the goal is about.
    calibration_size : float, default=0.5
        The share of that class's rows that the classifier will calibrate with.
    random_state : int, RandomState, Generator or None, default=None
        Random seed; an int gives the same plan every time.

    Returns
    -------
    QueryPlan

    Examples
    --------
    >>> import numpy as np
    >>> from missratio.learning import QueryPlan, plan_queries
    >>> X = np.array([[1.0, np.nan], [np.nan, np.nan], [np.nan, 2.0], [3.0, 4.0]])
    >>> plan = plan_queries(X, per_feature=1, random_state=0)
    >>> plan.columns
    array([0, 1])
    >>> frame = plan.to_frame()
    >>> frame["value"] = [0.5, 7.0]
    >>> QueryPlan.read(frame, X).answered
    array([[1, 1]])
    """
    cells = MissingCells.of(X, y)
    seed, power, budgets = integer_seed(random_state), None, None
    if goal in ("certificate", "both"):
        task = PlanningTask(
            alpha, delta, calibration_size, _place(cells, controlled_class)
        )
        pools, budgets, power = _for_power(
            X, cells, task, positive(budget, "budget"), goal, seed
        )
        rowwise, counts = True, np.array([len(pool.rows) for pool in pools])
    else:
        if goal is not None:
            check_goal(goal)
        pools = missing_pools(cells, _chosen_classes(cells, classes), rowwise)
        price = mean_price(cells, pools) if rowwise else 1
        counts = pool_counts(pools, per_feature, budget, price)
    drawn = draw(cells, pools, counts, seed, budgets or budget)
    rows = drawn.rows
    labels = np.array(cells.classes)[cells.codes[rows]]
    keys = _row_ids(X, ids, len(cells.missing))
    return QueryPlan(
        rows=rows,
        columns=drawn.columns,
        order=drawn.order,
        labels=labels if cells.labelled else None,
        ids=None if keys is None else keys[rows],
        feature_names=cells.feature_names,
        shape=(cells.missing.shape[0], cells.missing.shape[1]),
        rowwise=rowwise,
        lines=None
        if lines is None
        else _by_row(lines, "lines", len(cells.codes))[rows],
        others=np.asarray(as_numeric_array(X)[rows], dtype=np.float64),
        seed=seed,
        fingerprint=cells.fingerprint,
        power=power,
    )


def _for_power(
    X: Any, cells: MissingCells, task: PlanningTask, budget: int, goal: str, seed: int
) -> tuple[list[Pool], list[float], PlannedPower]:
    """Rows to draw from, and the values that each class may take."""
    array = np.asarray(as_numeric_array(X), dtype=np.float64)
    shares = SHARES if goal == "both" else (1.0,)
    classes = [task.controlled]
    if goal == "both":
        classes = list(range(len(cells.classes)))
    pools = missing_pools(cells, classes, rowwise=True)
    if len(pools) == 1:
        shares = (1.0,) if pools[0].code == task.controlled else (0.0,)
    power = plan_power(array, cells, task, budget, shares, seed)
    parts = {True: power.share, False: 1.0 - power.share}
    return pools, [budget * parts[p.code == task.controlled] for p in pools], power


def _place(cells: MissingCells, controlled: Any) -> int:
    if not cells.labelled or controlled not in cells.classes or len(cells.classes) != 2:
        raise ValueError(
            "A goal needs the labels of two classes, the controlled one among them: "
            f"got controlled_class={controlled!r} and the labels "
            f"{listed(cells.classes)}. Give y and controlled_class."
        )
    return cells.classes.index(controlled)


def check_goal(goal: Any) -> None:
    """Refuse a goal that is none of the choices."""
    if goal not in GOALS:
        raise ValueError(
            f"goal must be one of {listed(GOALS)}, or None: got {goal!r}."
            f"{did_you_mean(str(goal), GOALS)}"
        )


def _chosen_classes(cells: MissingCells, classes: Iterable[Any] | None) -> list[int]:
    if classes is None:
        return list(range(len(cells.classes)))
    if not cells.labelled:
        raise ValueError("classes are chosen among the labels: give y.")
    wanted = [classes] if isinstance(classes, str) else list(classes)
    unknown = [label for label in wanted if label not in cells.classes]
    if unknown or not wanted:
        raise ValueError(
            f"classes must be some of {listed(cells.classes)}: got {listed(wanted)}."
        )
    return sorted({cells.classes.index(label) for label in wanted})


def _row_ids(X: Any, ids: ArrayLike | None, n_rows: int) -> NDArray[Any] | None:
    if ids is None:
        frame = as_frame(X)
        index = None if frame is None else nw.maybe_get_index(frame)
        if index is None or np.array_equal(index, np.arange(n_rows)):
            return None
        ids = index
    keys = _by_row(ids, "ids", n_rows)
    if keys.dtype.kind in "biuf":
        return keys
    return np.array([str(key) for key in keys], dtype=object)


def _by_row(given: ArrayLike, name: str, n_rows: int) -> NDArray[Any]:
    keys: NDArray[Any] = np.asarray(given)
    if keys.shape != (n_rows,):
        raise ValueError(
            f"{name} must hold one key for each of {n_rows} rows: got shape "
            f"{keys.shape}."
        )
    return keys
