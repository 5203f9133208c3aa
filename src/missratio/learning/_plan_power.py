"""How a budget of look-ups is best divided, by the certified power that it buys.

The table is completed once, each missing value by that of a random row of its class
that has it, and then taken for the truth. On it the whole way is walked for every
division of the budget: rows are drawn, a logistic regression is fitted with the
weights of the draw, and a threshold certified. What is said of power is for planning:
the certificate rests on none of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from missratio._base.blocks import any_by_row
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.learning._plan_cells import MissingCells
from missratio.threshold import LookUpRule, looked_up_sample

# Which shares of a budget the rows of the controlled class may get.
SHARES = (0.25, 0.4, 0.55, 0.7, 0.85)
# And which multiples of it the table of powers shows.
MULTIPLES = (0.25, 0.5, 1.0, 1.5, 2.0)
# Walks for each division; fewer where rows are many, and powers steadier.
WALKS = 5
MANY_ROWS = 20_000


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
        0 where no threshold is certified, averaged over draws.
    share : float
        The share of the values that goes to the controlled class.
    """

    values: IntArray
    rows: IntArray
    power: FloatArray
    share: float

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
        }
        return nw.from_dict(columns, backend=backend).to_native()

    def __str__(self) -> str:
        """In words: how much power each number of rows should buy."""
        parts = [
            f"{rows} rows: power {power:.2f}"
            for rows, power in zip(self.rows, self.power, strict=True)
        ]
        return "; ".join(parts)


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


def plan_power(
    array: FloatArray,
    cells: MissingCells,
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
    task : PlanningTask
    budget : int
        Values to look up.
    shares : tuple of float
        The shares to choose from.
    seed : int
    """
    pilot = _Pilot(array, cells, task, seed)
    tried = [pilot.power(share * budget, (1 - share) * budget) for share in shares]
    share = shares[int(np.argmax([power for power, _ in tried]))]
    budgets = np.unique(np.round(budget * np.array(MULTIPLES)).astype(int))
    found = [pilot.power(share * size, (1 - share) * size) for size in budgets]
    # A budget beyond all that is missing buys no more: it isn't shown twice.
    rows, first = np.unique([count for _, count in found], return_index=True)
    powers = np.array([power for power, _ in found])[first]
    return PlannedPower(budgets[first], rows, powers, share)


class _Pilot:
    """A completed table on which look-ups are tried out."""

    def __init__(
        self, array: FloatArray, cells: MissingCells, task: PlanningTask, seed: int
    ) -> None:
        rng = np.random.default_rng([seed, 1])
        self.task = task
        self.is_other: BoolArray = cells.codes != task.controlled
        self.rows = _completed(array, self.is_other, rng)
        self.prices = cells.missing.sum(axis=1)
        self.incomplete = any_by_row(cells.missing)
        self.walks = WALKS if len(array) <= MANY_ROWS else 2
        self.seed = seed

    def power(self, controlled: float, other: float) -> tuple[float, int]:
        """The mean power, and the number of controlled rows that are looked up."""
        powers, counts = [], []
        for walk in range(self.walks):
            rng = np.random.default_rng([self.seed, 2, walk])
            inclusion = np.where(self.incomplete, 0.0, 1.0)
            for of_class, values in (
                (~self.is_other, controlled),
                (self.is_other, other),
            ):
                pool = rng.permutation(np.flatnonzero(self.incomplete & of_class))
                drawn = pool[np.cumsum(self.prices[pool]) <= values]
                inclusion[drawn] = len(drawn) / max(len(pool), 1)
                if of_class is not self.is_other:
                    counts.append(len(drawn))
            powers.append(self._walk(inclusion, rng))
        return float(np.mean(powers)), round(float(np.mean(counts)))

    def _walk(self, inclusion: FloatArray, rng: np.random.Generator) -> float:
        controlled = rng.permutation(np.flatnonzero(~self.is_other))
        n_held = round(self.task.calibration_size * len(controlled))
        held = controlled[:n_held]
        training = inclusion > 0.0
        training[held] = False
        if len(np.unique(self.is_other[training])) < 2:
            return 0.0
        model = make_pipeline(StandardScaler(), LogisticRegression())
        model.fit(
            self.rows[training],
            self.is_other[training],
            logisticregression__sample_weight=1.0 / inclusion[training],
        )
        scores = model.decision_function(self.rows)
        sample = looked_up_sample(scores[held], inclusion[held])
        chosen = LookUpRule().select(sample, self.task.alpha, self.task.delta)
        if chosen.threshold is None:
            return 0.0
        return float((scores[self.is_other] > chosen.threshold).mean())


def _completed(
    array: FloatArray, is_other: BoolArray, rng: np.random.Generator
) -> FloatArray:
    """Missing values by those of random rows of the same class; 0 where none has it."""
    rows = np.array(array, dtype=np.float64)
    for of_class in (is_other, ~is_other):
        for column in range(rows.shape[1]):
            values = rows[of_class, column]
            known = values[~np.isnan(values)]
            lost = np.flatnonzero(of_class & np.isnan(rows[:, column]))
            rows[lost, column] = rng.choice(known, len(lost)) if len(known) else 0.0
    return rows
