"""The rows of one population, ready to be imputed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from missratio._base.typing import FloatArray, IntArray
from missratio.imputation._columns import Columns, category_codes
from missratio.imputation._levels import CategoricalLevels, Levels, NumericLevels
from missratio.missingness import Missingness
from missratio.weights import warn_if_concentrated


@dataclass(frozen=True)
class IncompleteColumn:
    """A column of which some entries are missing, and why.

    Parameters
    ----------
    position : int
        In the table.
    name : str
        For messages.
    observed, missing : ndarray of int
        Rows.
    levels : ndarray of int of shape (n_observed,)
        The observed entries, as places among the column's levels.
    probability : ndarray of shape (n_observed,)
        φ_j there; by design, one minus the probability of being there.
    tilt : ndarray of shape (n_levels,)
        φ_j/max φ_j at each level; by design, 1.
    by_design : bool
        Whether some of what was lost was drawn and looked up, rather than φ_j known.
    """

    position: int
    name: str
    observed: IntArray
    missing: IntArray
    levels: IntArray
    probability: FloatArray
    tilt: FloatArray
    by_design: bool


@dataclass(frozen=True)
class Population:
    """One population's columns, and which of them are incomplete.

    Parameters
    ----------
    n_rows : int
    columns : tuple of Levels, of length d
    places : tuple of ndarray of int, of length d
        The observed entries of each column, as places among its levels.
    incomplete : tuple of IncompleteColumn
        With the fewest missing entries first.
    """

    n_rows: int
    columns: tuple[Levels, ...]
    places: tuple[IntArray, ...]
    incomplete: tuple[IncompleteColumn, ...]

    def warn_if_concentrated(self, title: str) -> None:
        """Warn where a few entries stand for many, once, for the worst column."""

        def concentration(column: IncompleteColumn) -> float:
            weights = 1.0 / (1.0 - column.probability)
            return float((weights**2).mean() / weights.mean() ** 2)

        worst = max(self.incomplete, key=concentration)
        weights = 1.0 / (1.0 - worst.probability)
        warn_if_concentrated(weights, f"{title}, column {worst.name!r}", stacklevel=5)

    @classmethod
    def build(
        cls,
        table: FloatArray,
        columns: Columns,
        model: Missingness | None,
        title: str,
        inclusion: FloatArray | None = None,
    ) -> Population:
        """Weigh the observed entries of a table with missing ones.

        Parameters
        ----------
        table : ndarray of shape (n, d)
            As `Columns.encode` gives it.
        columns : Columns
        model : Missingness or None
            Per feature. None: what is missing is a random part of each column.
        title : str
            Of the population, for messages.
        inclusion : ndarray of shape (n, d), or None
            The probabilities with which entries are there, in place of a model: 1 where
            observed, 0 where missing, between them where looked up.
        """
        by_design = inclusion is not None
        if inclusion is None:
            probability = _probability(table, model, title)
        else:
            probability = 1.0 - inclusion
        levels: list[Levels] = []
        all_places, incomplete = [], []
        for j, name in enumerate(columns.names):
            observed = ~np.isnan(table[:, j])
            chance = probability[observed, j]
            if not len(chance):
                raise ValueError(
                    f"{title}: column {name!r} is never observed, so that nothing is "
                    "known of its values. Drop it, or bring rows in which it is."
                )
            entries = table[observed, j]
            known, places = _levels(entries, chance, columns, j)
            levels.append(known)
            all_places.append(places)
            if observed.all():
                continue
            if not chance.any():
                raise _unexplained(title, name, int((~observed).sum()), by_design)
            incomplete.append(
                IncompleteColumn(
                    j,
                    name,
                    np.flatnonzero(observed),
                    np.flatnonzero(~observed),
                    places,
                    chance,
                    _tilt(places, chance, len(known.values), by_design),
                    by_design,
                )
            )
        incomplete.sort(key=lambda column: len(column.missing))
        return cls(len(table), tuple(levels), tuple(all_places), tuple(incomplete))

    def reweighted(self, weights: Mapping[int, FloatArray]) -> Population:
        """The same population, its incomplete columns' laws by other weights.

        Parameters
        ----------
        weights : mapping from position to ndarray of shape (n_observed,)
        """
        columns = list(self.columns)
        for j, given in weights.items():
            levels = columns[j]
            if isinstance(levels, NumericLevels):
                columns[j] = levels.reweighted(self.places[j], given)
        return replace(self, columns=tuple(columns))

    def design(self) -> Design:
        """What models see of the observed entries."""
        design = Design(self.n_rows, self.columns)
        observed = {column.position: column.observed for column in self.incomplete}
        for j, places in enumerate(self.places):
            design.set(j, observed.get(j, slice(None)), places)
        return design


def _probability(
    table: FloatArray, model: Missingness | None, title: str
) -> FloatArray:
    if model is None:
        return np.where(np.isnan(table), np.nan, 0.5)
    if model.rowwise:
        raise ValueError(
            f"{title}: {type(model).__name__} loses whole rows, and of a lost row "
            "nothing is left to impute from. Weights serve instead: leave the imputer "
            "out, and NeymanPearsonClassifier passes them to any estimator as "
            "sample_weight. Where single values go missing, take a per-feature model "
            "(rowwise=False)."
        )
    try:
        return model.missing_probability(table)
    except ValueError as error:
        raise ValueError(f"{title}: {error}") from error


def _levels(
    entries: FloatArray, chance: FloatArray, columns: Columns, position: int
) -> tuple[Levels, IntArray]:
    """The levels of observed entries, and each one's place among them.

    Of two numbers there is nothing to be known but which it is: they are categories.
    """
    categories = columns.categories[position]
    if categories is not None:
        values = category_codes(categories)
        return CategoricalLevels(values), np.searchsorted(values, entries)
    levels, places = NumericLevels.build(entries, 1.0 / (1.0 - chance))
    if len(levels.values) == 2:
        return CategoricalLevels(levels.values), places
    return levels, places


def _unexplained(title: str, name: str, missing: int, by_design: bool) -> ValueError:
    """Nothing is known of the missing values of a column."""
    if by_design:
        why = (
            "and none of them was looked up, so nothing is known of them. Look some "
            "up, drawn at random, or give a model of missingness."
        )
    else:
        why = (
            "but by its model none of the values that were observed can go missing. "
            "Correct the model, or bring rows with values where φ is positive."
        )
    return ValueError(f"{title}: column {name!r} has {missing} missing values, {why}")


def _tilt(
    places: IntArray, chance: FloatArray, n_levels: int, by_design: bool
) -> FloatArray:
    if by_design:
        return np.ones(n_levels)
    tilt = np.zeros(n_levels)
    tilt[places] = chance / chance.max()
    return tilt


class Design:
    """What models see of a table that is being completed.

    An entry that nothing was put into yet is seen as the median, or as the first
    category.
    """

    def __init__(self, n_rows: int, columns: Sequence[Levels]) -> None:
        self.columns = columns
        ends = np.cumsum([column.width for column in columns]).tolist()
        starts = [0, *ends[:-1]]
        self._places = [slice(a, b) for a, b in zip(starts, ends, strict=True)]
        # A row for each number seen, so that all entries of one lie together.
        self._rows = np.zeros((ends[-1], n_rows))

    @classmethod
    def encode(cls, table: FloatArray, columns: Sequence[Levels]) -> Design:
        """What models see of a table with NaN."""
        design = cls(len(table), columns)
        for j, column in enumerate(columns):
            observed = np.flatnonzero(~np.isnan(table[:, j]))
            design._put(j, observed, column.encode(table[observed, j]))
        return design

    def set(self, column: int, rows: IntArray | slice, levels: IntArray) -> None:
        """Put levels into a column."""
        self._put(column, rows, self.columns[column].regressors(levels))

    def others(self, column: int, rows: IntArray) -> FloatArray:
        """What models see of all columns but one, of shape (n_rows, width)."""
        own = self._places[column]
        kept = [*range(own.start), *range(own.stop, len(self._rows))]
        seen = np.empty((len(kept), len(rows)))
        for out, k in zip(seen, kept, strict=True):
            np.take(self._rows[k], rows, out=out, mode="clip")
        return seen.T

    def _put(self, column: int, rows: IntArray | slice, seen: FloatArray) -> None:
        for row, numbers in zip(self._rows[self._places[column]], seen.T, strict=True):
            row[rows] = numbers
