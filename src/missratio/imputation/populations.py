"""Rows that are imputed together, by which model, and what models see of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from missratio._base.blocks import any_by_row
from missratio._base.hints import listed
from missratio._base.reading import read_labels
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.imputation.columns import (
    SHOWN,
    CategoricalLevels,
    Columns,
    Levels,
    NumericLevels,
    category_codes,
)
from missratio.missingness import Missingness
from missratio.rows import check_missingness, weighed_twice
from missratio.weights import warn_if_concentrated

# Label, rows, model and inclusion of rows that are imputed together. The label is None
# where all rows are one population; without a model what is missing is a random part of
# each column, or some of it was looked up, with the probabilities of `inclusion`.
IncompleteClass = tuple[Any, IntArray, Missingness | None, FloatArray | None]
Models = Mapping[Any, Missingness | None] | Missingness | Literal["ignore"]


def incomplete_classes(
    missing: BoolArray,
    y: ArrayLike | None,
    missingness: Models | None,
    names: Sequence[str],
    inclusion: FloatArray | None = None,
) -> list[IncompleteClass]:
    """Find the classes with missing values, each with its model or its look-ups."""
    labels = None if y is None else read_labels(y, missing)
    rows_of: dict[Any, IntArray] = {None: np.arange(len(missing))}
    models: dict[Any, Any] = {None: missingness}
    together = isinstance(missingness, Missingness) or missingness == "ignore"
    if not together:
        check_missingness(missingness, [0, 1] if labels is None else np.unique(labels))
        models = dict(missingness) if isinstance(missingness, Mapping) else {}
        if labels is not None:
            known = np.unique(labels).tolist()
            rows_of = {label: np.flatnonzero(labels == label) for label in known}
        elif missingness is not None and missing.any():
            raise ValueError(
                "missingness is a mapping from class to model, and X has missing "
                "values: y must say which class a row belongs to. Give y, or one model "
                "for all rows."
            )
    classes: list[IncompleteClass] = []
    for label, rows in rows_of.items():
        if not missing[rows].any():
            continue
        model, entries = models.get(label), None
        part = np.ones(0) if inclusion is None else inclusion[rows]
        if ((part > 0.0) & (part < 1.0)).any():
            if model is not None:
                raise weighed_twice(label)
            entries = _by_entry(part, missing[rows], label)
        elif model is None:
            whose = "X" if label is None else f"Class {label!r}"
            raise ValueError(
                f"{whose} has missing values (NaN) in column(s) "
                f"{columns_missing(missing[rows], names)} and no missingness model. "
                "Say why they are missing, missingness="
                f"{{{1 if label is None else label!r}: model}}, look some of them up "
                "(inclusion=...), or impute whatever the reason by "
                'missingness="ignore".'
            )
        bound = model.bound(names) if isinstance(model, Missingness) else None
        classes.append((label, rows, bound, entries))
    return classes


def _by_entry(inclusion: FloatArray, missing: BoolArray, label: Any) -> FloatArray:
    """Inclusion probabilities of the entries of a class, by those of its rows too.

    What a drawn row had lost is known where all that are missing still miss the same.
    """
    whose = "" if label is None else f" of class {label!r}"
    patterns = np.unique(missing[any_by_row(missing)], axis=0)
    if len(patterns) == 1 and patterns.all():
        raise ValueError(
            f"Incomplete rows{whose} have no value at all, and there is nothing to "
            "impute them from. Leave the imputer out: weights serve instead, and any "
            "ratio takes inclusion, and NeymanPearsonClassifier for any estimator."
        )
    if inclusion.ndim == 2:
        return inclusion
    if len(patterns) > 1:
        raise ValueError(
            f"inclusion of whole rows doesn't say which values{whose} were looked up, "
            f"and incomplete rows miss {len(patterns)} different sets of columns. Give "
            "the inclusion of entries, of shape (n_rows, n_columns), as "
            "revealed.fill(X) does."
        )
    return np.where(patterns[0], inclusion[:, None], 1.0)


def columns_missing(missing: BoolArray, names: Sequence[str]) -> str:
    """Name the columns with missing entries, for a message."""
    columns = np.flatnonzero(missing.any(axis=0)).tolist()
    return listed([names[j] for j in columns], SHOWN)


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
    """One population's columns, and which of them are incomplete."""

    n_rows: int
    columns: tuple[Levels, ...]
    # The observed entries of each column, as places among its levels.
    places: tuple[IntArray, ...]
    # With the fewest missing entries first.
    incomplete: tuple[IncompleteColumn, ...]

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

        Of two numbers there is nothing to be known but which it is: they are
        categories. Warns where a few entries stand for many, once, for the worst
        column.
        """
        by_design = inclusion is not None
        if inclusion is None:
            probability = _probability(table, model, title)
        else:
            probability = 1.0 - inclusion
        every: list[Levels] = []
        all_places, incomplete = [], []
        for j, name in enumerate(columns.names):
            observed = ~np.isnan(table[:, j])
            chance = probability[observed, j]
            if not len(chance):
                raise ValueError(
                    f"{title}: column {name!r} is never observed, so that nothing is "
                    "known of its values. Drop it, or bring rows in which it is."
                )
            entries, categories = table[observed, j], columns.categories[j]
            levels: Levels
            if categories is None:
                levels, places = NumericLevels.build(entries, 1.0 / (1.0 - chance))
                if len(levels.values) == 2:
                    levels = CategoricalLevels(levels.values)
            else:
                levels = CategoricalLevels(category_codes(categories))
                places = np.searchsorted(levels.values, entries)
            every.append(levels)
            all_places.append(places)
            if observed.all():
                continue
            (lost,) = np.nonzero(~observed)
            if not chance.any():
                why = _UNKNOWN if by_design else _IMPOSSIBLE
                raise ValueError(
                    f"{title}: column {name!r} has {len(lost)} missing values, {why}"
                )
            tilt = np.ones(len(levels.values))
            if not by_design:
                tilt[:] = 0.0
                tilt[places] = chance / chance.max()
            (there,) = np.nonzero(observed)
            incomplete.append(
                IncompleteColumn(j, name, there, lost, places, chance, tilt, by_design)
            )
        incomplete.sort(key=lambda column: len(column.missing))
        weights = {
            column.name: 1.0 / (1.0 - column.probability) for column in incomplete
        }
        worst = max(
            weights, key=lambda k: (weights[k] ** 2).mean() / weights[k].mean() ** 2
        )
        warn_if_concentrated(weights[worst], f"{title}, column {worst!r}", stacklevel=5)
        return cls(len(table), tuple(every), tuple(all_places), tuple(incomplete))

    def design(self, weights: Mapping[int, FloatArray]) -> Design:
        """What models see of the observed entries, columns' laws by these weights."""
        columns = list(self.columns)
        for j, given in weights.items():
            levels = columns[j]
            if isinstance(levels, NumericLevels):
                columns[j] = levels.reweighted(self.places[j], given)
        design = Design(self.n_rows, columns)
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


_UNKNOWN = (
    "and none of them was looked up, so nothing is known of them. Look some up, drawn "
    "at random, or give a model of missingness."
)
_IMPOSSIBLE = (
    "but by its model none of the values that were observed can go missing. Correct "
    "the model, or bring rows with values where φ is positive."
)


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
        hidden = self._places[column]
        kept = [*range(hidden.start), *range(hidden.stop, len(self._rows))]
        seen = np.empty((len(kept), len(rows)))
        for out, k in zip(seen, kept, strict=True):
            np.take(self._rows[k], rows, out=out, mode="clip")
        return seen.T

    def _put(self, column: int, rows: IntArray | slice, seen: FloatArray) -> None:
        for row, numbers in zip(self._rows[self._places[column]], seen.T, strict=True):
            row[rows] = numbers
