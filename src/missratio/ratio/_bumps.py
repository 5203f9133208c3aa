"""Gaussian bumps around centres from both samples, and how wide they may be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils import check_array, check_scalar

from missratio._base.typing import FloatArray
from missratio.ratio._complete import TwoTables, WeightedTable

# Enough rows for quantiles that are steady to a few per cent.
DISTANCE_ROWS = 1000
# Distances between which widths are tried, as quantiles.
QUANTILES = (0.05, 0.9)


@dataclass(frozen=True, slots=True)
class Bumps:
    """Squared distances to centres, from which bumps of any width follow.

    Parameters
    ----------
    origin, unit : ndarray of shape (n_columns,)
        What columns are shifted and divided by.
    centers : ndarray of shape (n_centers, n_columns)
        In those units.
    """

    origin: FloatArray
    unit: FloatArray
    centers: FloatArray

    @classmethod
    def around(
        cls, tables: TwoTables, centers: Any, scale: bool, rng: np.random.Generator
    ) -> Bumps:
        """Draw centres, half of them from each sample, rows by their weights."""
        origin, unit = _standard(tables, scale)
        if not isinstance(centers, Integral):
            given: FloatArray = check_array(
                centers, dtype=np.float64, input_name="centers"
            )
            if given.shape[1] != len(unit):
                raise ValueError(
                    f"centers must have one column for each of the {len(unit)} columns "
                    f"of X; got {given.shape[1]}."
                )
            return cls(origin, unit, (given - origin) / unit)
        count = int(check_scalar(centers, "centers", Integral, min_val=2))
        halves = (count - count // 2, count // 2)
        drawn = [
            _draw(table, half, rng)
            for table, half in zip(
                (tables.numerator, tables.denominator), halves, strict=True
            )
        ]
        distinct = np.unique(np.concatenate(drawn), axis=0)
        return cls(origin, unit, (distinct - origin) / unit)

    def squares(self, rows: FloatArray) -> FloatArray:
        """Squared distances, of shape (n_rows, n_centers), column by column."""
        scaled = (rows - self.origin) / self.unit
        found: FloatArray = cdist(self.centers, scaled, "sqeuclidean")
        return found.T

    def widths(
        self, tables: TwoTables, grid: Any, wider: float, rng: np.random.Generator
    ) -> FloatArray:
        """The widths to try: as given, or over the quantiles of the distances.

        Up to `wider` times the largest of them.
        """
        if not isinstance(grid, Integral):
            given = np.atleast_1d(np.asarray(grid, dtype=np.float64))
            if given.ndim != 1 or not len(given) or not _positive(given):
                raise ValueError(
                    "sigma_grid must be a number of widths to try, or positive, finite "
                    f"widths; got {grid!r}."
                )
            return np.unique(given)
        count = int(check_scalar(grid, "sigma_grid", Integral, min_val=1))
        rows = np.concatenate(
            [_some(table, rng) for table in (tables.numerator, tables.denominator)]
        )
        distances = np.sqrt(self.squares(rows))
        distances = distances[distances > 0.0]
        if not distances.size or not np.isfinite(distances).all():
            raise ValueError(
                "The distances between rows give no bandwidth: the complete rows are "
                "all the same, or their squares overflow or underflow. Scale the "
                "columns, or give a KernelRatio its sigma_grid as numbers."
            )
        if count == 1:
            return np.median(distances, keepdims=True)
        low, high = np.quantile(distances, QUANTILES)
        return np.geomspace(low, wider * high, count)


def gaussian(
    squares: FloatArray, sigma: float, out: FloatArray | None = None
) -> FloatArray:
    """exp(−‖z − c‖²/(2σ²))."""
    with np.errstate(under="ignore"):
        bumps = np.multiply(squares, -0.5 / sigma**2, out=out)
        np.exp(bumps, out=bumps)
    return bumps


def squaring_grid(widths: FloatArray) -> FloatArray:
    """Widths √2 apart, if they are about as far apart already.

    The bumps of a width are then the squares of those of the next, and a square takes a
    tenth of the time of an exponential.
    """
    if len(widths) < 2 or round((widths[1] / widths[0]) ** 2) != 2:
        return widths
    steps = np.arange(len(widths)) - (len(widths) - 1) / 2.0
    grid: FloatArray = np.sqrt(widths[0] * widths[-1]) * 2.0 ** (steps / 2.0)
    return grid


class NarrowingBumps:
    """The bumps of one sample, as they become narrower.

    Parameters
    ----------
    squares : ndarray of shape (n_rows, n_centers)
        Squared distances. Where widths are √2 apart, the widest bumps take their place.
    widths : ndarray of shape (n_widths,)
        That will be asked for, from narrow to wide.
    """

    def __init__(self, squares: FloatArray, widths: FloatArray) -> None:
        self._widest, ratios = float(widths[-1]), widths[1:] / widths[:-1]
        self._by_squaring = bool((np.abs(ratios - math.sqrt(2.0)) < 1e-12).all())
        self._begin, self._bumps = squares, np.empty_like(squares)
        if self._by_squaring:
            gaussian(squares, self._widest, out=squares)
        # How often the widest bumps were squared; at first there are none.
        self._times = len(widths)

    def at(self, sigma: float) -> FloatArray:
        """The bumps at a width, in memory that the next width overwrites."""
        if not self._by_squaring:
            return gaussian(self._begin, sigma, out=self._bumps)
        times = round(2.0 * math.log2(self._widest / sigma))
        if times < self._times:
            np.copyto(self._bumps, self._begin)
            self._times = 0
        with np.errstate(under="ignore"):
            for _ in range(times - self._times):
                np.square(self._bumps, out=self._bumps)
        self._times = times
        return self._bumps


def _positive(values: FloatArray) -> bool:
    return bool((np.isfinite(values) & (values > 0.0)).all())


def _standard(tables: TwoTables, scale: bool) -> tuple[FloatArray, FloatArray]:
    """The columns' weighted means, and their deviations within both samples."""
    moments = []
    for table in (tables.numerator, tables.denominator):
        mean = table.weights @ table.rows
        with np.errstate(over="ignore"):
            moments.append((mean, table.weights @ (table.rows - mean) ** 2))
    origin = (moments[0][0] + moments[1][0]) / 2.0
    if not scale:
        return origin, np.ones_like(origin)
    spread = np.sqrt((moments[0][1] + moments[1][1]) / 2.0)
    if not np.isfinite(spread).all():
        raise ValueError(
            "The columns have values so large that their squares overflow. Scale the "
            "columns, to a standard deviation of about one."
        )
    return origin, np.where(spread > 0.0, spread, 1.0)


def _draw(table: WeightedTable, count: int, rng: np.random.Generator) -> FloatArray:
    """Rows without replacement, each as often as the rows that it stands for."""
    possible = int(np.count_nonzero(table.weights))
    chosen = rng.choice(
        len(table), size=min(count, possible), replace=False, p=table.weights
    )
    return table.rows[chosen]


def _some(table: WeightedTable, rng: np.random.Generator) -> FloatArray:
    size = min(len(table), DISTANCE_ROWS)
    return table.rows[rng.choice(len(table), size=size, replace=False)]
