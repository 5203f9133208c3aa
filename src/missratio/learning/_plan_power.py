"""How a budget of look-ups is best divided, by the certified power that it buys.

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

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from missratio._base.blocks import any_by_row, inverse_where_positive
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.learning._plan_cells import MissingCells
from missratio.learning._plan_draw import Pool, proportional_counts
from missratio.threshold import LookUpRule, looked_up_sample

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
