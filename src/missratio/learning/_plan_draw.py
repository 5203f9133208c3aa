"""Random draws of missing cells, nested, and independent of what else is drawn."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np

from missratio._base.blocks import any_by_row
from missratio._base.typing import BoolArray, IntArray
from missratio._files.numbers import canonical
from missratio.learning._plan_cells import MissingCells, stream
from missratio.missingness.contract import RandomState


@dataclass(frozen=True)
class Pool:
    """The rows of a class that miss a feature, or any where `column` is None."""

    rows: IntArray
    code: int
    column: int | None


def missing_pools(
    cells: MissingCells, codes: list[int], rowwise: bool, *, needed: bool = True
) -> list[Pool]:
    """What can be drawn from: by class, and by feature unless rows are whole.

    Nothing at all is an error where something is needed.
    """
    columns: list[int | None] = [None] if rowwise else [*range(cells.missing.shape[1])]
    pools = []
    for code in codes:
        rows = np.flatnonzero(cells.codes == code)
        missing = cells.missing[rows]
        for column in columns:
            lost: BoolArray = (
                any_by_row(missing) if column is None else missing[:, column]
            )
            if lost.any():
                pools.append(Pool(rows[lost], code, column))
    if needed and not pools:
        raise nothing_missing()
    return pools


def nothing_missing() -> ValueError:
    """The error where nothing is missing of what was asked about."""
    return ValueError("There is nothing to look up: no value of X is missing.")


def pool_counts(
    pools: list[Pool], per_feature: int | None, budget: int | None, price: float
) -> IntArray:
    """How many to draw from each pool: the same, as far as it has them.

    `price` is the number of values that one draw takes, on average.
    """
    available = np.array([len(pool.rows) for pool in pools])
    if (per_feature is None) == (budget is None):
        raise ValueError(
            "Say how much to look up by one of per_feature (values for each class and "
            f"feature) and budget (values in all): got per_feature={per_feature!r}, "
            f"budget={budget!r}."
        )
    if budget is None:
        return _capped(available, positive(per_feature, "per_feature"))
    draws = int(positive(budget, "budget") // price)
    if draws < len(pools):
        what = "class and feature with missing values" if price == 1 else "class"
        raise ValueError(
            f"A budget must allow one draw for each {what}, "
            f"{np.ceil(len(pools) * price):.0f} values: got {budget}. Raise it, or "
            "restrict classes."
        )
    levels = range(int(available.max()) + 1)
    level = bisect_right(levels, draws, key=lambda at: np.minimum(available, at).sum())
    counts = _capped(available, level - 1)
    first = np.flatnonzero(available > counts)[: draws - counts.sum()]
    counts[first] += 1
    return counts


def mean_price(cells: MissingCells, pools: list[Pool]) -> float:
    """Missing values of a row that has any, on average over the pools' rows."""
    rows = np.concatenate([pool.rows for pool in pools])
    return float(cells.missing[rows].sum(axis=1).mean())


@dataclass(frozen=True)
class Drawn:
    """Cells in the order in which they are to be looked up.

    Parameters
    ----------
    rows, columns : ndarray of int of shape (n_cells,)
    order : ndarray of int of shape (n_cells,)
        As which it was drawn from its pool, from 1; the cells of a row share it.
    rowwise : ndarray of bool of shape (n_cells,)
        Whether each is one of a row that was drawn as a whole.
    """

    rows: IntArray
    columns: IntArray
    order: IntArray
    rowwise: BoolArray


def proportional_counts(pools: list[Pool], total: int) -> IntArray:
    """How many values to draw from each pool: by how many it has, and one at least.

    By Webster's highest averages: with a larger total no pool gets fewer.
    """
    quotients = [
        np.append(np.inf, n / (np.arange(1, min(n, max(total, 1))) + 0.5))
        for n in (len(pool.rows) for pool in pools)
    ]
    source = np.repeat(np.arange(len(pools)), [len(each) for each in quotients])
    best = np.argsort(-np.concatenate(quotients), kind="stable")[:total]
    return np.bincount(source[best], minlength=len(pools))


def draw(
    cells: MissingCells,
    pools: list[Pool],
    counts: IntArray,
    seed: int,
    budget: float | list[float] | None = None,
) -> Drawn:
    """The first of a random order of each pool, one of every pool in turn.

    Rows that would exceed the budget are left out at the end: how many values a row
    misses is known, so what is left is a smaller draw. Where each pool has a budget of
    its own, pools take turns in proportion to what they draw, so that the first lines
    of a plan divide a smaller budget in the same way.
    """
    shares = budget if isinstance(budget, list) else [np.inf] * len(pools)
    drawn = []
    for pool, count, part in zip(pools, counts.tolist(), shares, strict=True):
        rows = _shuffled(cells, pool, seed)[:count]
        prices = cells.missing[rows].sum(axis=1) if pool.column is None else 1
        drawn.append(rows[np.cumsum(prices * np.ones(len(rows))) <= part])
    sizes = np.array([len(rows) for rows in drawn])
    rank = np.concatenate([np.arange(size) for size in sizes])
    source = np.repeat(np.arange(len(pools)), sizes)
    turn = (rank + 0.5) / sizes[source] if isinstance(budget, list) else rank
    order = np.lexsort((source, turn))
    rows, rank, source = np.concatenate(drawn)[order], rank[order] + 1, source[order]
    wanted = cells.missing[rows]
    for place, pool in enumerate(pools):
        if pool.column is not None:
            wanted[source == place] = np.arange(wanted.shape[1]) == pool.column
    kept = np.ones(len(rows), dtype=bool)
    if budget is not None and not isinstance(budget, list):
        kept = np.cumsum(wanted.sum(axis=1)) <= budget
    _refuse_nothing(cells, pools, source[kept])
    whole = np.array([pool.column is None for pool in pools])
    draws, columns = np.nonzero(wanted & kept[:, None])
    return Drawn(rows[draws], columns, rank[draws], whole[source[draws]])


def _shuffled(cells: MissingCells, pool: Pool, seed: int) -> IntArray:
    """The rows of a pool in the order of its draw, whatever other pools there are."""
    label = canonical(cells.classes[pool.code])
    name = () if pool.column is None else (cells.feature_names[pool.column],)
    sequence = np.random.SeedSequence(seed, spawn_key=stream(label, *name))
    return np.random.default_rng(sequence).permutation(pool.rows)


def _refuse_nothing(cells: MissingCells, pools: list[Pool], drawn: IntArray) -> None:
    """Refuse a budget that pays for no row, because rows miss more values than that."""
    whole = [place for place, pool in enumerate(pools) if pool.column is None]
    if whole and not np.isin(drawn, whole).any():
        price = mean_price(cells, [pools[place] for place in whole])
        raise ValueError(
            "The budget pays for no row: the first one drawn misses more values, and "
            f"rows miss {price:.1f} on average. To leave it out for that would be no "
            "fair draw. Raise the budget, or ask for single values (goal='ratio')."
        )


def integer_seed(random_state: RandomState) -> int:
    """An int to draw from again, whatever the source."""
    if random_state is None:
        random_state = np.random.default_rng()
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**63, dtype=np.int64))
    if isinstance(random_state, int | np.integer) and random_state >= 0:
        return int(random_state)
    raise ValueError(
        "random_state must be an int that is not negative, a RandomState, a Generator "
        f"or None: got {random_state!r}."
    )


def _capped(available: IntArray, level: int) -> IntArray:
    return np.asarray(np.minimum(available, level))


def positive(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a whole number, 1 or more: got {value!r}.")
    return int(value)
