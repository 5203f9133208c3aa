"""Rows that are imputed together, by which model, and what models see of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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

Models = Mapping[Any, Missingness | None] | Missingness | Literal["ignore"]


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
    """Rows that are imputed together: those of a class, or all of them."""

    # None where all rows are one population.
    label: Any
    # Their places, and the rows themselves.
    rows: IntArray
    table: FloatArray
    columns: tuple[Levels, ...]
    # With the fewest missing entries first.
    incomplete: tuple[IncompleteColumn, ...]

    def design(self, weights: Mapping[int, FloatArray]) -> Design:
        """What models see of the observed entries, columns' laws by these weights."""
        columns = list(self.columns)
        for column in self.incomplete:
            levels = columns[column.position]
            if column.position in weights and isinstance(levels, NumericLevels):
                given = weights[column.position]
                columns[column.position] = levels.reweighted(column.levels, given)
        return Design(self.table, columns)


def find_populations(
    table: FloatArray,
    y: ArrayLike | None,
    missingness: Models | None,
    columns: Columns,
    inclusion: FloatArray | None,
) -> Iterator[Population]:
    """Classes with missing values, each with its model or its look-ups.

    One model, or "ignore", is for all rows. Without a model what is missing is a random
    part of each column, or some of it was looked up, with the probabilities of
    `inclusion`.
    """
    missing = np.isnan(table)
    labels = None if y is None else read_labels(y, missing)
    rows_of: dict[Any, IntArray] = {None: np.arange(len(missing))}
    models: dict[Any, Any] = {None: missingness}
    if not isinstance(missingness, Missingness) and missingness != "ignore":
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
    for label, rows in rows_of.items():
        if not missing[rows].any():
            continue
        part, lost, model = table[rows], missing[rows], models.get(label)
        title = "X" if label is None else f"Class {label!r}"
        drawn = np.ones(0) if inclusion is None else inclusion[rows]
        by_design = bool(((drawn > 0.0) & (drawn < 1.0)).any())
        if by_design and model is not None:
            raise weighed_twice(label)
        if by_design:
            probability = 1.0 - _by_entry(drawn, lost, label)
        elif isinstance(model, Missingness):
            probability = _probability(part, model.bound(columns.names), title)
        elif model == "ignore":
            probability = np.where(lost, np.nan, 0.5)
        else:
            raise ValueError(
                f"{title} has missing values (NaN) in column(s) "
                f"{columns_missing(lost, columns.names)} and no missingness model. Say "
                "why they are missing, missingness="
                f"{{{1 if label is None else label!r}: model}}, look some of them up "
                "(inclusion=...), or impute whatever the reason by "
                'missingness="ignore".'
            )
        levels, incomplete = _weighed(part, columns, probability, title, by_design)
        yield Population(label, rows, part, levels, incomplete)


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


def _probability(table: FloatArray, model: Missingness, title: str) -> FloatArray:
    if model.rowwise:
        raise ValueError(
            f"{title}: {type(model).__name__} loses whole rows, and of a lost row "
            "nothing is left to impute from. Weights serve instead: leave the imputer "
            "out, and NeymanPearsonClassifier passes them to any estimator as "
            "sample_weight. Where single values go missing, take a per-feature model "
            "(rowwise=False)."
        )
    for block in getattr(model, "blocks", ()):
        if not set(block.inputs) <= set(block.columns):
            raise ValueError(
                f"{title}: φ of column {block.columns[0]} depends on further columns, "
                "and missing values are imputed by a φ of their own value alone. Leave "
                "the imputer out, or give a φ without depends_on."
            )
    try:
        return model.missing_probability(table)
    except ValueError as error:
        raise ValueError(f"{title}: {error}") from error


def _weighed(
    table: FloatArray,
    columns: Columns,
    probability: FloatArray,
    title: str,
    by_design: bool,
) -> tuple[tuple[Levels, ...], tuple[IncompleteColumn, ...]]:
    """The levels of all columns, and what is known of incomplete ones.

    Of two numbers there is nothing to be known but which it is: they are categories.
    Warns where a few entries stand for many, once, for the worst column.
    """
    every: list[Levels] = []
    incomplete = []
    for j, name in enumerate(columns.names):
        observed = ~np.isnan(table[:, j])
        chance, entries = probability[observed, j], table[observed, j]
        if not len(chance):
            raise ValueError(
                f"{title}: column {name!r} is never observed, so that nothing is known "
                "of its values. Drop it, or bring rows in which it is."
            )
        levels: Levels
        if (categories := columns.categories[j]) is None:
            levels, places = NumericLevels.build(entries, 1.0 / (1.0 - chance))
            if len(levels.values) == 2:
                levels = CategoricalLevels(levels.values)
        else:
            levels = CategoricalLevels(category_codes(categories))
            places = np.searchsorted(levels.values, entries)
        every.append(levels)
        if observed.all():
            continue
        (there,), (lost,) = np.nonzero(observed), np.nonzero(~observed)
        if not chance.any():
            why = (
                "and none of them was looked up, so nothing is known of them. Look "
                "some up, drawn at random, or give a model of missingness."
                if by_design
                else "but by its model none of the values that were observed can go "
                "missing. Correct the model, or bring rows with values where φ is "
                "positive."
            )
            raise ValueError(
                f"{title}: column {name!r} has {len(lost)} missing values, {why}"
            )
        tilt = np.full(len(levels.values), float(by_design))
        if not by_design:
            tilt[places] = chance / chance.max()
        facts = there, lost, places, chance, tilt, by_design
        incomplete.append(IncompleteColumn(j, name, *facts))
    incomplete.sort(key=lambda column: len(column.missing))
    weights = {column.name: 1.0 / (1.0 - column.probability) for column in incomplete}
    worst = max(
        weights, key=lambda k: (weights[k] ** 2).mean() / weights[k].mean() ** 2
    )
    warn_if_concentrated(weights[worst], f"{title}, column {worst!r}", stacklevel=6)
    return tuple(every), tuple(incomplete)


class Design:
    """What models see of a table that is being completed.

    An entry that nothing was put into yet is seen as the median, or as the first
    category.
    """

    def __init__(self, table: FloatArray, columns: Sequence[Levels]) -> None:
        self.columns = columns
        ends = np.cumsum([column.width for column in columns]).tolist()
        self._places = [slice(a, b) for a, b in zip([0, *ends], ends, strict=False)]
        # A row for each number seen, so that all entries of one lie together.
        self._rows = np.zeros((ends[-1], len(table)))
        for j, column in enumerate(columns):
            observed = np.flatnonzero(~np.isnan(table[:, j]))
            self._put(j, observed, column.encode(table[observed, j]))

    def set(self, column: int, rows: IntArray, levels: IntArray) -> None:
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

    def _put(self, column: int, rows: IntArray, seen: FloatArray) -> None:
        for row, numbers in zip(self._rows[self._places[column]], seen.T, strict=True):
            row[rows] = numbers
