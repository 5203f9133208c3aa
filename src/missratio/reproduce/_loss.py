"""Runs on a data set: a split, what class 1 loses, and which of it is looked up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize.elementwise import find_root
from scipy.special import expit

from missratio._typing import BoolArray, FloatArray, IntArray
from missratio.missingness import LogisticMissingness
from missratio.reproduce._table import CodedTable

STEEPEST = 40.0


@dataclass(frozen=True)
class Design:
    """How a run is made of a table.

    Parameters
    ----------
    train_rows : int
        Class-0 rows to fit with; the others calibrate.
    test_rows : int
        Class-1 rows to test with; the others are fitted with.
    queries : int
        Missing values of each feature that are looked up.
    """

    train_rows: int
    test_rows: int
    queries: int


@dataclass(frozen=True)
class Loss:
    """φ_j(z) = expit(shift_j − s_j (z − m_j)/sd_j), for both signs s_j.

    Parameters
    ----------
    mean, spread : ndarray of shape (n_columns,)
        m and sd, of the whole data set.
    shift : ndarray of shape (2, n_columns)
        For s = −1 and for s = 1; −inf where nothing is to be lost.
    """

    mean: FloatArray
    spread: FloatArray
    shift: FloatArray

    @classmethod
    def centred(cls, table: CodedTable) -> Loss:
        """Experiment 1: no shift."""
        return cls(table.mean, table.spread, np.zeros((2, table.n_columns)))

    @classmethod
    def with_share(cls, table: CodedTable, share: float) -> Loss:
        """Experiment 2: the shift at which φ has this mean over both classes."""
        if share == 0.0:
            nothing = np.full((2, table.n_columns), -np.inf)
            return cls(table.mean, table.spread, nothing)
        grid = (table.grid[:, :-1] - table.mean[:, None]) / table.spread[:, None]
        mass = table.counts[:, :-1] / table.counts[:, :-1].sum(axis=1, keepdims=True)
        sign, column = np.divmod(np.arange(2 * table.n_columns), table.n_columns)

        def excess(shift: FloatArray, sign: IntArray, column: IntArray) -> FloatArray:
            slope = (2 * sign - 1)[..., None] * grid[column]
            mean: FloatArray = (mass[column] * expit(shift[..., None] - slope)).sum(-1)
            return mean - share

        reach = np.abs(grid).max() + STEEPEST
        root = find_root(excess, (-reach, reach), args=(sign, column))
        return cls(table.mean, table.spread, root.x.reshape(2, table.n_columns))

    def log_odds(self, upward: IntArray) -> FloatArray:
        """Intercepts and slopes of the log-odds of being missing, as (2, n_columns).

        For signs as zeros and ones.
        """
        slope = (1 - 2 * upward) / self.spread
        shift = self.shift[upward, np.arange(len(upward))]
        return np.stack([shift - slope * self.mean, slope])


@dataclass(frozen=True)
class Run:
    """One split of a table, and what its class-1 training rows lost.

    Histograms have the shape (n_columns, n_codes).

    Parameters
    ----------
    table : CodedTable
    train, calibration, numerator_train, test : ndarray of int
        Rows of class 0 to fit and to calibrate with, of class 1 to fit and to test
        with.
    fills : ndarray of shape (4, n_columns)
        What stands for the data set's own NaN in each of these.
    denominator, complete, observed : ndarray
        Histograms: of the class-0 training rows; of the class-1 training rows before
        they lost anything, and after.
    revealed : ndarray of int of shape (n_columns, n_queries)
        Codes of lost values that were looked up; −1 where fewer were lost.
    log_odds : ndarray of shape (2, n_columns)
        Of φ_j: intercepts and slopes, before any scaling.
    missing_probability : ndarray of shape (n_columns, n_codes)
        φ at the distinct values.
    lost : ndarray of bool of shape (n_columns, n_numerator_train)
    """

    table: CodedTable
    train: IntArray
    calibration: IntArray
    numerator_train: IntArray
    test: IntArray
    fills: FloatArray
    denominator: FloatArray
    complete: FloatArray
    observed: FloatArray
    revealed: IntArray
    log_odds: FloatArray
    missing_probability: FloatArray
    lost: BoolArray

    @cached_property
    def _raw_grids(self) -> tuple[FloatArray, FloatArray]:
        """Distinct values in the training rows of class 0 and of class 1."""
        table = self.table
        return table.filled_grid(self.fills[0]), table.filled_grid(self.fills[2])

    @cached_property
    def centre(self) -> FloatArray:
        """Column means of class 0 and what is left of class 1, to normalise with."""
        low, high = self._raw_grids
        total = (self.denominator + self.observed).sum(axis=1)
        sums = (low * self.denominator + high * self.observed).sum(axis=1)
        return np.asarray(sums / total)

    @cached_property
    def scale(self) -> FloatArray:
        """Standard deviations of the same."""
        low, high = ((grid - self.centre[:, None]) ** 2 for grid in self._raw_grids)
        total = (self.denominator + self.observed).sum(axis=1)
        squares = (low * self.denominator + high * self.observed).sum(axis=1)
        spread: FloatArray = np.sqrt(squares / total)
        return np.where(spread > 0.0, spread, 1.0)

    @property
    def grids(self) -> tuple[FloatArray, FloatArray]:
        """The distinct values of class 0 and of class 1, normalised."""
        low, high = (
            (grid - self.centre[:, None]) / self.scale[:, None]
            for grid in self._raw_grids
        )
        return low, high

    @property
    def missingness(self) -> LogisticMissingness:
        """φ of normalised rows."""
        intercept, slope = self.log_odds
        return LogisticMissingness(intercept + slope * self.centre, slope * self.scale)

    def numerator_rows(self, *, complete: bool = False) -> FloatArray:
        """The class-1 training rows, normalised, NaN where lost, as (n_rows, d)."""
        values = self._normalised(self.numerator_train, self.fills[2])
        if not complete:
            values[self.lost] = np.nan
        return values.T

    def training_rows(self, numerator: FloatArray) -> tuple[FloatArray, IntArray]:
        """Class-1 rows, the class-0 training rows below them, and labels."""
        lower = self._normalised(self.train, self.fills[0]).T
        labels = np.repeat([1, 0], [len(numerator), len(lower)])
        return np.concatenate([numerator, lower]), labels

    def fresh_rows(self) -> tuple[FloatArray, FloatArray]:
        """The calibration and the test rows, normalised."""
        return (
            self._normalised(self.calibration, self.fills[1]).T,
            self._normalised(self.test, self.fills[3]).T,
        )

    def _normalised(self, rows: IntArray, fill: FloatArray) -> FloatArray:
        values = self.table.filled_values(rows, fill)
        return np.asarray((values - self.centre[:, None]) / self.scale[:, None])

    def scores(self, coef: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Linear scores of the calibration and the test rows, but for a constant.

        Columns are added up one by one, so that rows which are alike score alike.
        """
        slopes = coef / self.scale
        sets = (self.calibration, self.fills[1]), (self.test, self.fills[3])
        scores = []
        for rows, fill in sets:
            values = self.table.filled_values(rows, fill)
            total = np.zeros(len(rows))
            for slope, column in zip(slopes, values, strict=True):
                total += slope * column
            scores.append(total)
        return scores[0], scores[1]


def draw_run(
    table: CodedTable,
    design: Design,
    loss: Loss,
    rng: np.random.Generator,
    *,
    corrected: bool,
) -> Run:
    """Split a table and let its class-1 training rows lose entries."""
    # 1. Split each class.
    rows_0, rows_1 = (rng.permutation(rows) for rows in table.rows)
    train, calibration = np.split(rows_0, [design.train_rows])
    test, numerator_train = np.split(rows_1, [design.test_rows])
    denominator, complete = table.count(train), table.count(numerator_train)
    # 2. Fill the data set's own NaN.
    splits = (train, calibration, numerator_train, test)
    fills = _fills(table, splits, denominator + complete, corrected)
    # 3. Lose entries of class 1, column by column, by their value before any scaling.
    upward = rng.integers(0, 2, table.n_columns)
    log_odds = loss.log_odds(upward)
    intercept, slope = log_odds[:, :, None]
    phi = expit(intercept + slope * table.filled_grid(fills[2]))
    lost = np.empty((table.n_columns, len(numerator_train)), dtype=bool)
    missing = np.zeros_like(complete)
    revealed = np.full((table.n_columns, design.queries), -1)
    for j, codes in enumerate(table.codes):
        own = codes.take(numerator_train)
        np.less(rng.random(len(own)), phi[j].take(own), out=lost[j])
        gone = own[lost[j]]
        missing[j] = np.bincount(gone, minlength=table.n_codes)
        # 4. Look some of them up.
        queried = rng.choice(gone, min(design.queries, len(gone)), replace=False)
        revealed[j, : len(queried)] = queried
    return Run(
        table, *splits, fills, denominator, complete, complete - missing, revealed,
        log_odds, phi, lost,
    )  # fmt: skip


def _fills(
    table: CodedTable,
    splits: Sequence[IntArray],
    training: FloatArray,
    corrected: bool,
) -> FloatArray:
    """What stands for NaN in each split: published, that split's own mean.

    A mean of a split tells its class, since splits are made by class; corrected, all
    splits take the mean of the training rows of both classes.
    """
    if corrected or not table.has_nan:
        return np.tile(table.mean_of(training), (len(splits), 1))
    return np.stack([table.mean_of(table.count(rows)) for rows in splits])
