"""Rows that are imputed together, and chained conditional draws: a Gibbs sampler.

Each round draws every missing entry anew given the rest of its row. With p(z_j | z_−j)
known, the entries' law converges to that of what is missing given what is observed and
where.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from missratio._base.hints import listed
from missratio._base.reading import read_labels
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.exceptions import DataError, Message
from missratio.imputation import columns as levels_of
from missratio.imputation import conditionals
from missratio.imputation.columns import Columns, Levels, NumericLevels
from missratio.missingness import Missingness
from missratio.rows import check_missingness, weighed_twice
from missratio.tensor import on_host
from missratio.weights import warn_if_concentrated

Models = Mapping[Any, Missingness | None] | Missingness | Literal["ignore"]


def columns_missing(missing: BoolArray, names: Sequence[str]) -> str:
    """Name the columns with missing entries, for a message."""
    columns = np.flatnonzero(missing.any(axis=0)).tolist()
    return listed([names[j] for j in columns], levels_of.SHOWN)


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
    columns: list[Levels]
    # With the fewest missing entries first.
    incomplete: list[IncompleteColumn]


def find_populations(
    table: FloatArray,
    y: ArrayLike | None,
    missingness: Models | None,
    columns: Columns,
    inclusion: FloatArray | None,
) -> list[Population]:
    """Classes with missing values, each with its model or its look-ups.

    One model, or "ignore", is for all rows. Without a model what is missing is a random
    part of each column, or some of it was looked up, with the probabilities of
    `inclusion`.
    """
    # 1. Which rows are imputed together, and by which model.
    missing = np.isnan(table)
    labels = None if y is None else read_labels(on_host(y), missing)
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
    populations = []
    for label, rows in rows_of.items():
        if not missing[rows].any():
            continue
        about = "X" if label is None else "Class {label!r}"
        # 2. The probability with which each entry that is there would be missing.
        part, lost, model = table[rows], missing[rows], models.get(label)
        drawn = np.ones(0) if inclusion is None else inclusion[rows]
        by_design = bool(((drawn > 0.0) & (drawn < 1.0)).any())
        if by_design and model is not None:
            raise weighed_twice(label)
        if by_design and drawn.ndim == 1:
            raise DataError.of_class(
                label,
                "inclusion of whole rows doesn't say which values were looked up. Give "
                "that of entries, of shape (n_rows, n_columns), as revealed.fill(X) "
                "does; for rows that are lost as a whole leave the imputer out: any "
                "ratio takes inclusion, and NeymanPearsonClassifier for any estimator.",
            )
        if by_design:
            probability = 1.0 - drawn
        elif isinstance(model, Missingness):
            model = model.bound(columns.names)
            if model.rowwise:
                raise DataError.of_class(
                    label,
                    f"{type(model).__name__} loses whole rows, and of a lost row "
                    "nothing is left to impute from. Leave the imputer out: "
                    "NeymanPearsonClassifier passes weights to any estimator as "
                    "sample_weight. Where single values go missing, take a per-feature "
                    "model (rowwise=False).",
                )
            for block in getattr(model, "blocks", ()):
                if not set(block.inputs) <= set(block.columns):
                    name = columns.names[block.columns[0]]
                    raise DataError.of_class(
                        label,
                        f"φ of column {name!r} depends on further columns, and missing "
                        "values are imputed by a φ of their own value alone. Leave the "
                        "imputer out, or give a φ without depends_on.",
                    )
            try:
                probability = model.missing_probability(part)
            except ValueError as error:
                raise DataError.of_class(label, str(error)) from error
        elif model == "ignore":
            probability = np.where(lost, np.nan, 0.5)
        else:
            claim = about + (
                " has missing values (NaN) in column(s) {lossy} and no missingness "
                "model. Say why they are missing, missingness={{{label!r}: model}}, "
                "look some of them up (inclusion=...), or impute whatever the reason "
                'by missingness="ignore".'
            )
            lossy = {"lossy": columns_missing(lost, columns.names)}
            shown = 1 if label is None else label
            raise DataError(Message(claim, label=shown, facts=lossy))
        # 3. The levels of all columns, and what is known of incomplete ones. Of two
        # numbers there is nothing to be known but which it is: they are categories.
        every: list[Levels] = []
        incomplete = []
        for j, name in enumerate(columns.names):
            (there,), (absent,) = np.nonzero(~lost[:, j]), np.nonzero(lost[:, j])
            chance, entries = probability[there, j], part[there, j]
            if not len(there):
                raise DataError.of_class(
                    label,
                    f"column {name!r} is never observed, so that nothing is known of "
                    "its values. Drop it, or bring rows in which it is.",
                )
            levels: Levels
            if (codes := columns.codes[j]) is None:
                levels, places = NumericLevels.build(entries, 1.0 / (1.0 - chance))
                if len(levels.values) == 2:
                    levels = levels_of.CategoricalLevels(levels.values)
            else:
                levels = levels_of.CategoricalLevels(codes)
                places = np.searchsorted(levels.values, entries)
            every.append(levels)
            if not len(absent):
                continue
            if not chance.any():
                why = (
                    "and none of them was looked up. Look some up, drawn at random, or "
                    "give a model of missingness."
                    if by_design
                    else "but by its model none of the values that were observed can "
                    "go missing. Correct the model, or bring rows where φ is positive."
                )
                said = f"column {name!r} has {len(absent)} missing values, {why}"
                raise DataError.of_class(label, said)
            tilt = np.full(len(levels.values), float(by_design))
            if not by_design:
                tilt[places] = chance / chance.max()
            facts = there, absent, places, chance, tilt, by_design
            incomplete.append(IncompleteColumn(j, name, *facts))
        incomplete.sort(key=lambda column: len(column.missing))
        # 4. Few entries may stand for many: said once, for the worst column.
        weights = [1.0 / (1.0 - column.probability) for column in incomplete]
        worst = np.argmax([(w**2).mean() / w.mean() ** 2 for w in weights])
        named = {"name": incomplete[worst].name}
        message = Message(about + ", column {name!r}", label=label, facts=named)
        warn_if_concentrated(weights[worst], message)
        populations.append(Population(label, rows, part, every, incomplete))
    return populations


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

    def set(self, column: int, rows: IntArray, levels: IntArray) -> FloatArray:
        """Put levels into a column, and return the values that they are."""
        self._put(column, rows, self.columns[column].regressors(levels))
        return self.columns[column].values[levels]

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


Fitted = tuple[Sequence[Levels], dict[int, conditionals.Conditional]]
"""What laws see of all columns, and the law of each incomplete one by its position."""


def impute_chain(
    population: Population, imputer: Any, rng: np.random.Generator
) -> tuple[dict[int, FloatArray], FloatArray, Fitted]:
    """Fit and draw by an imputer's options, column by column and round by round.

    Where the chain ended, the values of missing entries by column; how it went, the
    mean of the values given in each round, (n_rounds, n_incomplete); and the laws of
    its last round.
    """
    # 1. Weights 1/(1 − φ) times the row's share, scaled to sum to their effective
    # number. What isn't known of the columns' own laws is drawn with the regressions.
    shares = np.ones(len(population.rows))
    if imputer.bootstrap:
        shares = rng.standard_exponential(len(shares))
    columns, weighed = list(population.columns), {}
    for column in population.incomplete:
        j, chance = column.position, column.probability
        weights = (1.0 - chance.max()) / (1.0 - chance) * shares[column.observed]
        weighed[j], levels = conditionals.kish_scaled(weights), columns[j]
        if imputer.bootstrap and isinstance(levels, NumericLevels):
            columns[j] = levels.reweighted(column.levels, weighed[j])
    # 2. A start by the law of each column's missing entries, whatever the rest of the
    # row.
    design = Design(population.table, columns)
    for column in population.incomplete:
        mass = np.cumsum(weighed[column.position] * column.probability)
        chosen = conditionals.draw_from(mass, rng.random(len(column.missing)))
        design.set(column.position, column.missing, column.levels[chosen])
    # 3. Rounds over all columns, each law started from that of the round before.
    values: dict[int, FloatArray] = {}
    laws: dict[int, conditionals.Conditional] = {}
    trace = np.empty((imputer.n_rounds, len(population.incomplete)))
    for turn in range(imputer.n_rounds):
        for k, column in enumerate(population.incomplete):
            j = column.position
            seen, levels = design.others(j, column.observed), columns[j]
            entries = conditionals.Entries(seen, column.levels, weighed[j], column.tilt)
            slopes, last = False, laws.get(j)
            if column.by_design:
                # Given which of the two an entry is, observed or looked up, all weigh
                # the same: the draw has no part in the law.
                chance, share = column.probability, shares[column.observed]
                lost = chance > 0.0
                # Fewer than ten looked-up entries for each slope of their own cost more
                # than they can bring.
                slopes = int(lost.sum()) >= 10 * seen.shape[1]
                entries = conditionals.Entries(
                    conditionals.with_status(seen, lost, slopes),
                    column.levels,
                    conditionals.kish_scaled(share),
                    column.tilt,
                    # Of each one that was drawn, (1 − q)/q others were not.
                    lent=share * chance / (1.0 - chance),
                )
                if isinstance(last, conditionals.LookedUpConditional):
                    last = last.law
            law: conditionals.Conditional
            if isinstance(levels, NumericLevels):
                law = conditionals.NumericConditional.fit(entries, levels, last, rng)
            else:
                law = conditionals.CategoricalConditional.fit(entries, last)
            if column.by_design:
                law = conditionals.LookedUpConditional(law, slopes)
            noise = conditionals.DrawnNoise(rng, len(column.missing))
            drawn = law.draw(design.others(j, column.missing), noise)
            laws[j], values[j] = law, design.set(j, column.missing, drawn)
            trace[turn, k] = values[j].mean()
    return values, trace, (columns, laws)
