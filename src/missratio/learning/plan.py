"""Which missing cells to look up, drawn within a budget and for a goal.

How a budget of look-ups is best divided, by the certified power that it buys.

The table is completed once: each missing value gets that of a random row of its class
that has it, and the result is taken for the truth. For every division of the budget the
whole procedure is tried on it. Rows of the controlled class and single values of the
other are drawn; two linear scores are fitted, with weights 1/P(drawn); thresholds are
certified, and the score with more power counts. One score is the density ratio of two
normal laws with one covariance, for which the other class gives its means, column by
column. The other is a logistic regression on complete rows. These powers are for
planning: the certificate rests on none of them.

That completes the table as if values were missing completely at random. So the same is
tried under two tilted laws, in which the log-odds of being missing grow, or fall, by
TILT with each standard deviation of a value towards the other class. A missing value is
then that of a row drawn with a probability in proportion to these odds. The powers
under the three laws make the range to expect.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from missratio._base.blocks import any_by_row, inverse_where_positive
from missratio._base.hints import did_you_mean, listed
from missratio._base.reading import as_frame, as_numeric_array
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio._files.numbers import canonical
from missratio.learning.answers import (
    Columns,
    Levels,
    MissingCells,
    Revealed,
    as_native,
    cell_word,
    read_answers,
    stream,
    table_word,
    write_table,
)
from missratio.missingness.contract import RandomState
from missratio.threshold import LookUpRule, looked_up_sample


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
    """A whole number of at least one, or an error."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a whole number, 1 or more: got {value!r}.")
    return int(value)


# Which shares of a budget the rows of the controlled class may get.
SHARES = (0.25, 0.4, 0.55, 0.7, 0.85)
# And which multiples of it the table of powers shows.
MULTIPLES = (0.25, 0.5, 1.0, 1.5, 2.0)
# Walks for each division; fewer where rows are many, and powers steadier.
WALKS = 8
MANY_ROWS = 20_000
# Log-odds of being missing for each standard deviation of a value towards the other
# class; beyond MOST_DEVIATIONS of them they stay, so that no single row stands for all.
TILT = 1.5
MOST_DEVIATIONS = 3.0
# What is added to variances, as a share of them: columns may repeat each other.
RIDGE = 1e-3


@dataclass(frozen=True, eq=False)
class PlannedPower:
    """The power to expect of look-ups, divided as the plan divides them.

    Parameters
    ----------
    values : ndarray of int of shape (n_budgets,)
        Values to look up in all.
    rows : ndarray of int of shape (n_budgets,)
        Rows of the controlled class among what they make.
    power : ndarray of shape (n_budgets,)
        0 where no threshold is certified, averaged over draws; values are taken as
        missing completely at random.
    share : float
        The share of the values that goes to rows of the controlled class.
    tried : dict from float to float
        The power of the plan's budget by the shares that were tried.
    lower, upper : ndarray of shape (n_budgets,)
        The least and the largest power, if the log-odds of being missing rise or fall
        by 1.5 with each standard deviation of a value towards the other class.
    """

    values: IntArray
    rows: IntArray
    power: FloatArray
    share: float
    tried: dict[float, float]
    lower: FloatArray
    upper: FloatArray

    def to_frame(self, backend: Any = "pandas") -> Any:
        """The table, a line for each budget.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"

        Returns
        -------
        dataframe
        """
        columns = {
            "values": self.values.tolist(),
            "rows": self.rows.tolist(),
            "power": self.power.tolist(),
            "lower": self.lower.tolist(),
            "upper": self.upper.tolist(),
        }
        return nw.from_dict(columns, backend=backend).to_native()

    def __str__(self) -> str:
        """In words: how much power each number of rows should buy."""
        parts = [
            f"{rows} rows: power {self.figure(place)}"
            for place, rows in enumerate(self.rows)
        ]
        return "; ".join(parts)

    def figure(self, place: int) -> str:
        """In words: the power of one budget, and its range.

        Parameters
        ----------
        place : int
            The budget's, in the table.
        """
        low, high = self.lower[place], self.upper[place]
        return f"{self.power[place]:.2f} ({low:.2f} to {high:.2f})"

    @property
    def range_meaning(self) -> str:
        """In words: what the ranges allow for."""
        return (
            "The first figure takes values as missing completely at random; the range "
            "allows for odds of being missing that grow or fall by a factor of "
            f"{np.exp(TILT):.2g} with each standard deviation of a value towards the "
            "other class"
        )

    @property
    def division(self) -> str:
        """In words: what was tried, and what it would buy; empty without a choice."""
        if len(self.tried) < 2:
            return ""
        parts = [
            f"{share:.0%}: power {power:.2f}" for share, power in self.tried.items()
        ]
        return (
            f"{self.share:.0%} of the values go to rows of the controlled class. Of "
            f"the shares tried it has the most power: {'; '.join(parts)}"
        )


@dataclass(frozen=True)
class PlanningTask:
    """What is to be certified.

    Parameters
    ----------
    alpha, delta : float
    calibration_size : float
        The share of the controlled class's rows that calibrates.
    controlled : int
        The place of the controlled class among the classes.
    """

    alpha: float
    delta: float
    calibration_size: float
    controlled: int


@dataclass(frozen=True)
class Division:
    """How many values go to whole rows of the controlled class, and elsewhere."""

    rows: int
    cells: int

    @classmethod
    def of(
        cls, budget: int, share: float, pools: list[Pool], prices: IntArray
    ) -> Division:
        """A share of a budget; what one part can't use goes to the other.

        Parameters
        ----------
        budget : int
        share : float
            That of rows.
        pools : list of Pool
        prices : ndarray of int of shape (n_rows,)
            Missing values of each row of the table.
        """
        most_rows = sum(int(prices[p.rows].sum()) for p in pools if p.column is None)
        most_cells = sum(len(p.rows) for p in pools if p.column is not None)
        rows = min(round(share * budget), most_rows)
        cells = min(budget - rows, most_cells)
        return cls(min(budget - cells, most_rows), cells)


def plan_power(
    array: FloatArray,
    cells: MissingCells,
    pools: list[Pool],
    task: PlanningTask,
    budget: int,
    shares: tuple[float, ...],
    seed: int,
) -> PlannedPower:
    """Choose the share of a budget with the most power, and what others would buy.

    Parameters
    ----------
    array : ndarray of shape (n_rows, n_features)
    cells : MissingCells
    pools : list of Pool
        Rows of the controlled class, and single values of the other.
    task : PlanningTask
    budget : int
        Values to look up.
    shares : tuple of float
        The shares to choose from.
    seed : int
    """
    pilot = _Pilot(array, cells, pools, task, seed)
    tried = {share: pilot.power(budget, share)[0] for share in shares}
    share = max(tried, key=lambda each: tried[each])
    budgets = np.unique(np.round(budget * np.array(MULTIPLES)).astype(int))
    budgets = budgets[budgets >= pilot.least]
    found = [pilot.power(int(size), share) for size in budgets]
    by_law = [[power for power, _ in found]]
    towards = pilot.towards_other()
    pilot.walks = max(2, pilot.walks // 2)
    for tilt in (TILT, -TILT):
        pilot.complete(array, tilt * towards)
        by_law.append([pilot.power(int(size), share)[0] for size in budgets])
    # A budget beyond all that is missing buys no more: it isn't shown twice.
    rows, first = np.unique([count for _, count in found], return_index=True)
    powers = np.array(by_law)[:, first]
    return PlannedPower(
        budgets[first],
        rows,
        powers[0],
        share,
        tried,
        lower=powers.min(axis=0),
        upper=powers.max(axis=0),
    )


class _Pilot:
    """A completed table on which look-ups are tried out."""

    def __init__(
        self,
        array: FloatArray,
        cells: MissingCells,
        pools: list[Pool],
        task: PlanningTask,
        seed: int,
    ) -> None:
        self.task, self.pools, self.seed = task, pools, seed
        self.is_other: BoolArray = cells.codes != task.controlled
        self.complete(array, np.zeros(array.shape[1]))
        self.missing = cells.missing
        self.prices: IntArray = cells.missing.sum(axis=1)
        self.incomplete = any_by_row(cells.missing)
        self.share_incomplete = float(self.incomplete[~self.is_other].mean())
        self.walks = WALKS if len(array) <= MANY_ROWS else 2
        self.single = [pool for pool in pools if pool.column is not None]

    def complete(self, array: FloatArray, tilt: FloatArray) -> None:
        """Take for the truth what a law gives missing values, tilted by column."""
        rng = np.random.default_rng([self.seed, 1])
        self.rows = _completed(array, self.is_other, tilt, rng)

    def towards_other(self) -> FloatArray:
        """By column: 1 where larger values score higher, −1 where smaller ones do."""
        model = make_pipeline(StandardScaler(), LogisticRegression())
        return np.asarray(np.sign(model.fit(self.rows, self.is_other)[-1].coef_[0]))

    @property
    def least(self) -> int:
        """The fewest values that one of every pool takes."""
        return len(self.pools)

    def power(self, budget: int, share: float) -> tuple[float, int]:
        """The mean power, and the number of controlled rows that are looked up."""
        division = Division.of(budget, share, self.pools, self.prices)
        if division.cells < len(self.single):
            return 0.0, 0
        powers, counts = [], []
        for walk in range(self.walks):
            rng = np.random.default_rng([self.seed, 2, walk])
            drawn = _Draw(self, division, rng)
            counts.append(drawn.n_rows)
            controlled = rng.permutation(np.flatnonzero(~self.is_other))
            n_held = round(self.task.calibration_size * len(controlled))
            held, training = controlled[:n_held], controlled[n_held:]
            inclusion = drawn.inclusion[held]
            expected = self.share_incomplete, drawn.share
            powers.append(
                [
                    0.0
                    if scores is None
                    else self._certified(scores, held, inclusion, expected)
                    for scores in (drawn.normal(training), drawn.logistic(training))
                ]
            )
        return float(np.mean(powers, axis=0).max()), round(float(np.mean(counts)))

    def _certified(
        self,
        scores: FloatArray,
        held: IntArray,
        inclusion: FloatArray,
        expected: tuple[float, float],
    ) -> float:
        """The power at the threshold that the held-out rows certify."""
        sample = looked_up_sample(scores[held], inclusion, expected=expected)
        chosen = LookUpRule().select(sample, self.task.alpha, self.task.delta)
        if chosen.threshold is None:
            return 0.0
        return float((scores[self.is_other] > chosen.threshold).mean())


class _Draw:
    """What was looked up in one walk, and the scores that can be fitted to it."""

    def __init__(
        self, pilot: _Pilot, division: Division, rng: np.random.Generator
    ) -> None:
        self.pilot, is_other = pilot, pilot.is_other
        pool = rng.permutation(np.flatnonzero(pilot.incomplete & ~is_other))
        drawn = pool[np.cumsum(pilot.prices[pool]) <= division.rows]
        self.n_rows = len(drawn)
        self.share = len(drawn) / max(len(pool), 1)
        # 1. How likely rows were to be there, and single values of the other class.
        self.inclusion = np.where(pilot.incomplete, 0.0, 1.0)
        self.inclusion[drawn] = self.share
        cells = np.where(pilot.missing, 0.0, 1.0)
        counts = []
        if pilot.single:
            counts = proportional_counts(pilot.single, division.cells).tolist()
        for own, count in zip(pilot.single, counts, strict=True):
            found = rng.choice(own.rows, count, replace=False)
            cells[found, own.column] = count / len(own.rows)
        if pilot.single:
            self.inclusion[is_other] = cells[is_other].prod(axis=1)
        self.cells = cells[is_other]

    def normal(self, training: IntArray) -> FloatArray | None:
        """Σ₀⁻¹(μ₁ − μ₀), what the log-ratio of two normal laws comes to."""
        rows, weights = (
            self.pilot.rows,
            inverse_where_positive(self.inclusion[training]),
        )
        if np.count_nonzero(weights) < 2:
            return None
        mean = np.average(rows[training], axis=0, weights=weights)
        centred = rows[training] - mean
        spread = (weights * centred.T) @ centred / weights.sum()
        spread += np.diag(RIDGE * np.diagonal(spread) + np.finfo(np.float64).tiny)
        worth = inverse_where_positive(self.cells)
        other = (worth * rows[self.pilot.is_other]).sum(axis=0)
        other /= np.maximum(worth.sum(axis=0), np.finfo(np.float64).tiny)
        return np.asarray(rows @ np.linalg.lstsq(spread, other - mean)[0])

    def logistic(self, training: IntArray) -> FloatArray | None:
        """Logistic, by complete rows weighted by how likely they were to be there."""
        rows, is_other = self.pilot.rows, self.pilot.is_other
        used = np.concatenate([training, np.flatnonzero(is_other)])
        used = used[self.inclusion[used] > 0.0]
        if len(np.unique(is_other[used])) < 2:
            return None
        model = make_pipeline(StandardScaler(), LogisticRegression())
        worth = 1.0 / self.inclusion[used]
        model.fit(rows[used], is_other[used], logisticregression__sample_weight=worth)
        return np.asarray(model.decision_function(rows))


def _completed(
    array: FloatArray, is_other: BoolArray, tilt: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Missing values by those of random rows of the same class; 0 where none has it.

    `tilt` has each column's log-odds of being missing for a standard deviation, in the
    controlled class; in the other they are the opposite. The law of missing values is
    that of observed ones times the odds of being missing.
    """
    rows = np.array(array, dtype=np.float64)
    for of_class, slopes in ((is_other, -tilt), (~is_other, tilt)):
        for column in range(rows.shape[1]):
            values = rows[of_class, column]
            known = values[~np.isnan(values)]
            lost = np.flatnonzero(of_class & np.isnan(rows[:, column]))
            if not len(known):
                rows[lost, column] = 0.0
                continue
            odds = None
            if slopes[column] and (spread := known.std()) > 0.0:
                far = (known - known.mean()) / spread
                odds = np.exp(
                    slopes[column] * far.clip(-MOST_DEVIATIONS, MOST_DEVIATIONS)
                )
                odds /= odds.sum()
            rows[lost, column] = rng.choice(known, len(lost), p=odds)
    return rows


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
