"""Drawing what to look up, within a budget and for a goal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from missratio._base.hints import did_you_mean, listed
from missratio._base.reading import as_frame, as_numeric_array
from missratio._base.typing import IntArray
from missratio.learning._plan import QueryPlan
from missratio.learning._plan_cells import (
    MissingCells,
)
from missratio.learning._plan_draw import (
    Pool,
    draw,
    integer_seed,
    mean_price,
    missing_pools,
    nothing_missing,
    pool_counts,
    positive,
    proportional_counts,
)
from missratio.learning._plan_lines import Levels
from missratio.learning._plan_power import (
    SHARES,
    Division,
    PlannedPower,
    PlanningTask,
    plan_power,
)
from missratio.missingness.contract import RandomState

GOALS = ("certificate", "ratio", "both")


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
    levels: Levels | None = None,
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
        class, with all that they miss. "ratio" draws single values of every class and
        feature alike. "both" draws rows of the controlled class and single values of
        the other, in the proportion that buys the most certified power in a trial on
        this table. With the first and the last, ``plan.power`` says what to expect.
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
    levels : mapping from str to sequence of str, default=None
        Of features that are categories, by name: what their numbers 0, 1, … stand for,
        and what a person writes.
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
        pools, counts, budgets, power = _for_power(
            X, cells, task, positive(budget, "budget"), goal, seed
        )
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
        rowwise=drawn.rowwise,
        lines=None
        if lines is None
        else _by_row(lines, "lines", len(cells.codes))[rows],
        others=np.asarray(as_numeric_array(X)[rows], dtype=np.float64),
        seed=seed,
        fingerprint=cells.fingerprint,
        power=power,
        levels=levels,
    )


def _for_power(
    X: Any, cells: MissingCells, task: PlanningTask, budget: int, goal: str, seed: int
) -> tuple[list[Pool], IntArray, list[float], PlannedPower]:
    """What to draw from, how much at most, and the values that each may take."""
    pools = missing_pools(cells, [task.controlled], rowwise=True, needed=False)
    n_whole = len(pools)
    if goal == "both":
        pools += missing_pools(
            cells, [1 - task.controlled], rowwise=False, needed=False
        )
    n_single = len(pools) - n_whole
    if not pools:
        raise nothing_missing()
    if budget < len(pools):
        raise ValueError(
            f"A budget must allow one value for each feature of the other class that "
            f"misses some, and a row: got {budget}, needs {len(pools)} or more. Raise "
            "it, or take goal='certificate', which leaves the other class alone."
        )
    shares = SHARES if n_whole and n_single else (float(n_whole),)
    array = np.asarray(as_numeric_array(X), dtype=np.float64)
    power = plan_power(array, cells, pools, task, budget, shares, seed)
    prices = cells.missing.sum(axis=1)
    division = Division.of(budget, power.share, pools, prices)
    counts = np.array([len(pool.rows) for pool in pools])
    if n_single:
        counts[n_whole:] = proportional_counts(pools[n_whole:], division.cells)
    parts = [float(division.rows)] * n_whole + [np.inf] * n_single
    return pools, counts, parts, power


def _place(cells: MissingCells, controlled: Any) -> int:
    if not cells.labelled or controlled not in cells.classes or len(cells.classes) != 2:
        raise ValueError(
            "A goal needs the labels of two classes, the controlled one among them: "
            f"got controlled_class={controlled!r} and the labels "
            f"{listed(cells.classes)}. Give y and controlled_class."
        )
    return cells.classes.index(controlled)


def check_goal(goal: Any) -> None:
    """Refuse a goal that isn't one of the choices."""
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
