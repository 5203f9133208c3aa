"""Chained conditional draws: a Gibbs sampler over the incomplete columns.

Each round draws every missing entry anew given the rest of its row. With p(z_j | z_−j)
known, the entries' law converges to that of what is missing given what is observed and
where.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import FloatArray, IntArray
from missratio.imputation._conditionals import (
    CategoricalConditional,
    Conditional,
    Entries,
    NumericConditional,
)
from missratio.imputation._donors import draw_from
from missratio.imputation._levels import Levels, NumericLevels
from missratio.imputation._looked_up import LookedUpConditional, kish_scaled
from missratio.imputation._noise import DrawnNoise, Noise, RowNoise
from missratio.imputation._population import Design, IncompleteColumn, Population


@dataclass(frozen=True)
class ChainOptions:
    """How a chain runs.

    Parameters
    ----------
    regressor, classifier : estimator or None
        Conditional models; None for linear ones.
    n_donors : int or None
    n_rounds : int
    bootstrap : bool
        Whether each chain reweights the rows by a Bayesian bootstrap.
    """

    regressor: Any
    classifier: Any
    n_donors: int | None
    n_rounds: int
    bootstrap: bool


@dataclass(frozen=True)
class Chain:
    """Where a chain ended, and how it went.

    Parameters
    ----------
    values : dict of int to ndarray
        By the column's position, what its missing entries were given in the end.
    mean, spread : ndarray of shape (n_rounds, n_incomplete)
        Mean and standard deviation of the values given in each round.
    conditionals : dict of int to Conditional
        Of the last round, by the column's position.
    columns : sequence of Levels
        What the conditionals see of the columns.
    """

    values: dict[int, FloatArray]
    mean: FloatArray
    spread: FloatArray
    conditionals: dict[int, Conditional]
    columns: Sequence[Levels]


Missing = dict[int, IntArray]
ConditionalOf = Callable[[Design, int, Conditional | None], Conditional]
NoiseOf = Callable[[int, int, IntArray], Noise]


def impute_chains(
    population: Population,
    options: ChainOptions,
    seeds: Sequence[np.random.SeedSequence],
) -> list[Chain]:
    """A chain for each seed, side by side where there are threads."""
    with one_blas_thread(population.n_rows * len(population.columns)) as threads:
        if options.regressor is not None or options.classifier is not None:
            # They may have threads of their own.
            threads = 1
        drawn = [np.random.default_rng(seed) for seed in seeds]
        return share(lambda rng: impute_chain(population, options, rng), drawn, threads)


def impute_chain(
    population: Population, options: ChainOptions, rng: np.random.Generator
) -> Chain:
    """Fit and draw, column by column and round by round."""
    share = np.ones(population.n_rows)
    if options.bootstrap:
        share = rng.standard_exponential(population.n_rows)
    columns = {column.position: column for column in population.incomplete}
    weighed = {j: _weigh(column, share) for j, column in columns.items()}
    if options.bootstrap:
        # What isn't known of the columns' own laws is drawn with the regressions.
        population = population.reweighted(weighed)
    design = population.design()
    # A start by the law of each column's missing entries, whatever the rest of the row.
    for j, column in columns.items():
        mass = np.cumsum(weighed[j] * column.probability)
        chosen = draw_from(mass, rng.random(len(column.missing)))
        design.set(j, column.missing, column.levels[chosen])

    def fit(design: Design, j: int, last: Conditional | None) -> Conditional:
        column, levels = columns[j], population.columns[j]
        seen = design.others(j, column.observed)
        entries = Entries(seen, column.levels, weighed[j], column.tilt)

        def law(entries: Entries, last: Conditional | None) -> Conditional:
            if not isinstance(levels, NumericLevels):
                return CategoricalConditional.fit(entries, options.classifier, last)
            return NumericConditional.fit(
                entries, levels, options.regressor, options.n_donors, last, rng
            )

        if not column.by_design:
            return law(entries, last)
        own = share[column.observed]
        return LookedUpConditional.fit(entries, column.probability, own, last, law)

    missing = {j: column.missing for j, column in columns.items()}

    def noise(turn: int, j: int, rows: IntArray) -> Noise:
        return DrawnNoise(rng, len(rows))

    return _run(design, missing, fit, noise, options.n_rounds)


def redraw_chain(
    table: FloatArray,
    columns: Sequence[Levels],
    conditionals: dict[int, Conditional],
    n_rounds: int,
    noise: RowNoise,
) -> Chain:
    """Draw the missing entries of other rows by conditionals that are fitted already.

    What a row is given depends on that row alone, not on the others or their order.

    Parameters
    ----------
    table : ndarray of shape (n, d)
        NaN in columns only that have a conditional.
    columns : sequence of Levels, of length d
    conditionals : dict of int to Conditional
    n_rounds : int
    noise : RowNoise
        Of the rows.
    """
    missing = {j: np.flatnonzero(np.isnan(table[:, j])) for j in conditionals}
    missing = {j: rows for j, rows in missing.items() if len(rows)}
    design = Design.encode(table, columns)

    def noise_of(turn: int, j: int, rows: IntArray) -> Noise:
        return noise.stream(turn, j).chosen(rows)

    return _run(design, missing, lambda _, j, __: conditionals[j], noise_of, n_rounds)


def _run(
    design: Design,
    missing: Missing,
    conditional: ConditionalOf,
    noise: NoiseOf,
    n_rounds: int,
) -> Chain:
    values: dict[int, FloatArray] = {}
    last: dict[int, Conditional] = {}
    mean, spread = np.empty((2, n_rounds, len(missing)))
    for turn in range(n_rounds):
        for k, (j, rows) in enumerate(missing.items()):
            last[j] = conditional(design, j, last.get(j))
            levels = last[j].draw(design.others(j, rows), noise(turn, j, rows))
            design.set(j, rows, levels)
            values[j] = design.columns[j].values[levels]
            mean[turn, k], spread[turn, k] = values[j].mean(), values[j].std()
    return Chain(values, mean, spread, last, design.columns)


def _weigh(column: IncompleteColumn, share: FloatArray) -> FloatArray:
    """1/(1 − φ) times the row's share, scaled to sum to its effective number."""
    weights: FloatArray = (1.0 - column.probability.max()) / (1.0 - column.probability)
    return kish_scaled(weights * share[column.observed])
