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

from missratio._base.storable import storable
from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import FloatArray, IntArray
from missratio.imputation.columns import Levels, NumericLevels
from missratio.imputation.conditionals import (
    CategoricalConditional,
    Conditional,
    Entries,
    LookedUpConditional,
    NumericConditional,
    draw_from,
    kish_scaled,
    looked_up_entries,
)
from missratio.imputation.noise import DrawnNoise, Noise, RowNoise
from missratio.imputation.populations import Design, IncompleteColumn, Population


@dataclass(frozen=True)
class Chain:
    """Where a chain ended, and how it went; columns are meant by their positions."""

    # What the missing entries of each column were given in the end.
    values: dict[int, FloatArray]
    # Of the values given in each round, of shape (n_rounds, n_incomplete).
    mean: FloatArray
    spread: FloatArray
    # The last round's conditional law of each column, and what it sees of all columns.
    laws: dict[int, Conditional]
    columns: Sequence[Levels]


def impute_chains(
    population: Population,
    imputer: Any,
    seeds: Sequence[np.random.SeedSequence],
) -> list[Chain]:
    """A chain for each seed by an imputer's options, side by side on threads."""
    with one_blas_thread(population.table.size) as threads:
        if imputer.regressor is not None or imputer.classifier is not None:
            # They may have threads of their own.
            threads = 1
        drawn = [np.random.default_rng(seed) for seed in seeds]
        return share(lambda rng: impute_chain(population, imputer, rng), drawn, threads)


def impute_chain(
    population: Population, imputer: Any, rng: np.random.Generator
) -> Chain:
    """Fit and draw, column by column and round by round."""
    share = np.ones(len(population.rows))
    if imputer.bootstrap:
        share = rng.standard_exponential(len(share))
    columns = {column.position: column for column in population.incomplete}
    weighed = {j: _weigh(column, share) for j, column in columns.items()}
    # What isn't known of the columns' own laws is drawn with the regressions.
    design = population.design(weighed if imputer.bootstrap else {})
    # A start by the law of each column's missing entries, whatever the rest of the row.
    for j, column in columns.items():
        mass = np.cumsum(weighed[j] * column.probability)
        chosen = draw_from(mass, rng.random(len(column.missing)))
        design.set(j, column.missing, column.levels[chosen])

    def fit(design: Design, j: int, last: Conditional | None) -> Conditional:
        column, levels = columns[j], design.columns[j]
        seen = design.others(j, column.observed)
        entries = Entries(seen, column.levels, weighed[j], column.tilt)
        slopes, law = False, last
        if column.by_design:
            drawn = share[column.observed]
            entries, slopes = looked_up_entries(entries, column.probability, drawn)
            law = last.law if isinstance(last, LookedUpConditional) else None
        if isinstance(levels, NumericLevels):
            law = NumericConditional.fit(
                entries, levels, imputer.regressor, imputer.n_donors, law, rng
            )
        else:
            law = CategoricalConditional.fit(entries, imputer.classifier, law)
        return LookedUpConditional(law, slopes) if column.by_design else law

    missing = {j: column.missing for j, column in columns.items()}

    def noise(turn: int, j: int, rows: IntArray) -> Noise:
        return DrawnNoise(rng, len(rows))

    return _run(design, missing, fit, noise, imputer.n_rounds)


def redraw_chain(
    table: FloatArray,
    columns: Sequence[Levels],
    conditionals: dict[int, Conditional],
    n_rounds: int,
    noise: RowNoise,
) -> Chain:
    """Draw the missing entries of other rows by conditionals that are fitted already.

    What a row is given depends on that row alone, not on the others or their order.
    """
    missing = {j: np.flatnonzero(np.isnan(table[:, j])) for j in conditionals}
    missing = {j: rows for j, rows in missing.items() if len(rows)}
    design = Design(table, columns)

    def noise_of(turn: int, j: int, rows: IntArray) -> Noise:
        return noise.stream(turn, j).chosen(rows)

    return _run(design, missing, lambda _, j, __: conditionals[j], noise_of, n_rounds)


def _run(
    design: Design,
    missing: dict[int, IntArray],
    conditional: Callable[[Design, int, Conditional | None], Conditional],
    noise: Callable[[int, int, IntArray], Noise],
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


@storable()
@dataclass(frozen=True)
class ImputationTrace:
    """Means and spreads of the imputed values, round by round.

    Chains that have settled wander about one level, without a trend, and cross each
    other.

    Parameters
    ----------
    feature_names : tuple of str
        Of the incomplete columns.
    mean, spread : ndarray of shape (n_imputations, n_rounds, n_incomplete)
        Mean and standard deviation of what was imputed; of categories that are not
        numbers, those of their places.
    """

    feature_names: tuple[str, ...]
    mean: FloatArray
    spread: FloatArray

    @property
    def r_hat(self) -> FloatArray:
        """Gelman and Rubin's R̂ of each column's mean, by halves of the later rounds.

        √((W (L − 1) + B)/(W L)) with W the variance within halves of length L and B
        that between the halves of a chain, times L; both averaged over chains. Chains
        are not compared with each other, since a bootstrap gives each a law of its own.
        Near 1 where chains have settled, and rough where they are few and short. NaN
        where there are fewer than seven rounds.
        """
        later = self.mean[:, self.mean.shape[1] // 2 :]
        length = later.shape[1] // 2
        if length < 2:
            return np.full(later.shape[2], np.nan)
        early, late = later[:, :length], later[:, -length:]
        within = (early.var(axis=1, ddof=1) + late.var(axis=1, ddof=1)).mean(axis=0) / 2
        gap = early.mean(axis=1) - late.mean(axis=1)
        between = length * (gap**2).mean(axis=0) / 2
        still = within == 0.0
        ratio = (length - 1 + between / np.where(still, 1.0, within)) / length
        moved: FloatArray = np.where(between == 0.0, 1.0, np.inf)
        return np.where(still, moved, np.sqrt(ratio))
