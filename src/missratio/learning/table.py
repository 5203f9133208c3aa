"""φ from the table itself: every other column is a shadow variable for a column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from missratio._base.blocks import any_by_row, rows_with_nan
from missratio._base.callbacks import listens, told
from missratio._base.hints import listed
from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.learning.checks import Overidentification, Residuals, overidentification
from missratio.learning.evidence import Evidence
from missratio.learning.region import lookup_precision
from missratio.learning.shadow import (
    Lookups,
    ScoredTable,
    ShadowEvidence,
    efficient_instruments,
    predict_columns,
    solve_moments,
)

# With instruments weaker than so many looked-up values tests have no level.
TESTABLE = 10.0
TEST_FIT_ROWS = 8000
# A variance, in standard deviations squared, that is one of rounding.
CONSTANT = 1e-12


@dataclass(frozen=True, slots=True)
class TableFit:
    """What the table taught of one feature, or of whole rows.

    Parameters
    ----------
    shadow : ShadowEvidence
    theta : ndarray of shape (n_parameters,)
        (α, β), of the table and looked-up values together.
    converged : bool
    tests : Overidentification, or None
        None where the instruments are too weak to test with.
    """

    shadow: ShadowEvidence
    theta: FloatArray
    converged: bool
    tests: Overidentification | None = None


def fit_features(
    table: FloatArray,
    evidence: list[Evidence | None],
    fitted: dict[int, tuple[FloatArray, Evidence]],
    listener: Any = None,
    test: bool = True,
) -> dict[int, TableFit]:
    """Learn φ of every feature that the other columns could teach.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
    evidence : list of Evidence or None
        By feature; None where nothing is missing.
    fitted : dict
        By feature: parameters from looked-up values, intercepts not corrected.
    listener : task, or None
        Whose callbacks are told of every few features.
    test : bool
        Whether to test what was learned.
    """
    scored = ScoredTable.of(table)
    together = shared_masks(scored.missing)
    usable = usable_features(scored.missing, together)
    columns = _teachable(together, evidence, usable)
    if not len(columns):
        return {}
    features = scored.prediction_features()
    predicted = predict_columns(features, scored, columns, usable[columns])
    width = table.shape[1]
    if test:
        # What a column's skewness doesn't blur.
        features = scored.test_features()
        chosen = columns, usable[columns], TEST_FIT_ROWS
        ranked = predict_columns(features, scored, *chosen)
        features = features[:, : 2 * width]
        squares = features**2

    def fit(i: int) -> TableFit:
        j = int(columns[i])
        own = evidence[j]
        assert own is not None
        values = table[scored.order[j], j]
        found, instruments = _fit_feature(
            scored, j, values, predicted[:, i], own, fitted.get(j)
        )
        worth = equivalent_lookups(found.shadow, found.theta)[0]
        if not test or worth < TESTABLE:
            return found
        coordinates = found.shadow.coordinates
        residuals = Residuals(
            found.theta[0] + found.theta[1] * values,
            coordinates.design(values[None])[1:],
            scored.order[j],
            instruments,
        )
        # The constant is no function of another column.
        others = usable[j, : 2 * width]
        lost = scored.missing[:, others[width:]].sum(axis=1).astype(np.float64)
        tests = overidentification(
            residuals, ranked[:, i], features, squares, others, lost
        )
        return replace(found, tests=tests)

    fits = _told_by_column(fit, len(columns), table.size, listener)
    return dict(zip(columns.tolist(), fits, strict=True))


def _told_by_column(
    fit: Callable[[int], TableFit], n_columns: int, size: int, listener: Any
) -> Iterator[TableFit]:
    """The fits of columns, by threads; a listener is told of as many as there are."""
    with one_blas_thread(size) as threads:
        step = max(threads, 1) if listens(listener) else n_columns
        parts = [
            range(start, min(start + step, n_columns))
            for start in range(0, n_columns, step)
        ]
        done = told(
            listener,
            "columns",
            parts,
            lambda part: share(fit, part, threads),
            len(parts),
        )
    return chain.from_iterable(done)


def _teachable(
    together: BoolArray, evidence: list[Evidence | None], usable: BoolArray
) -> IntArray:
    """The features whose φ the other columns could teach.

    What was looked up altogether leaves nothing to the table. Of columns that go
    missing together, a φ of each alone has no shadow variables: looked-up values teach
    it better.
    """
    alone = together.sum(axis=1) < 2
    found = [
        j
        for j, own in enumerate(evidence)
        if own is not None
        and len(own.values)
        and usable[j].sum() > 1
        and own.revealed_mass < own.n_missing
        and (alone[j] or not own.n_revealed)
    ]
    return np.array(found, dtype=np.intp)


def usable_features(missing: BoolArray, together: BoolArray) -> BoolArray:
    """Which features each column may be predicted from, (n_columns, n_features).

    Not from itself, nor from columns that go missing exactly when it does: their masks
    say whether it is missing. `together` is as `shared_masks` gives it.
    """
    lossy = missing.any(axis=0)
    others = ~(together | np.eye(len(together), dtype=bool))
    constant = np.ones((len(others), 1), dtype=bool)
    return np.concatenate([others, others & lossy, constant], axis=1)


def shared_masks(missing: BoolArray) -> BoolArray:
    """Which columns are missing in exactly the same rows, (n_columns, n_columns).

    A category's indicators are, as a rule. A column that is never missing has none.
    """
    words = [np.packbits(column).tobytes() for column in missing.T]
    codes = np.unique(np.array(words, dtype=object), return_inverse=True)[1]
    return np.asarray((codes[:, None] == codes) & missing.any(axis=0))


def _fit_feature(
    scored: ScoredTable,
    j: int,
    values: FloatArray,
    predicted: FloatArray,
    own: Evidence,
    known: tuple[FloatArray, Evidence] | None,
) -> tuple[TableFit, FloatArray]:
    """A feature's fit, and the instruments that it was made with."""
    observed: IntArray = scored.order[j]
    missing = np.flatnonzero(scored.missing[:, j])
    # 1. Two plain instruments, for a first estimate.
    plain = np.stack([np.ones(len(predicted)), predicted], axis=1)
    shadow = ShadowEvidence.collect(values[None], observed, missing, plain)
    lookups = lookups_of(known, shadow) if known is not None else None
    share_left = 1.0 - own.revealed_mass / own.n_missing
    theta, _ = solve_moments(shadow.thinned(share_left), lookups)
    # 2. Efficient ones, as good as that estimate.
    column = scored.values[observed, j]
    deviation = float((column - predicted[observed]).std())
    ends = float(column[0]), float(column[-1])
    best = efficient_instruments(predicted, deviation, ends, theta)
    shadow = ShadowEvidence.collect(values[None], observed, missing, best)
    shadow = shadow.thinned(share_left)
    theta, converged = solve_moments(shadow, lookups)
    return TableFit(shadow, shadow.coordinates.restore(theta), converged), best


def equivalent_lookups(shadow: ShadowEvidence, theta: FloatArray) -> FloatArray:
    """How many looked-up values would teach each slope as well as the table does.

    m values tell a slope with a variance of 1/(m·v) and more, v being the variance of
    missing values.

    Parameters
    ----------
    shadow : ShadowEvidence
    theta : ndarray of shape (n_parameters,)
        (α, β).

    Returns
    -------
    ndarray of shape (n_columns,)
    """
    standard = shadow.coordinates.standardise(theta)
    odds = shadow.odds(standard)
    # By φ: the few rows that went missing may show no spread at all.
    size = len(shadow.missing_sum)
    spread = (odds * (1.0 + odds)) @ shadow.squares.reshape(len(odds), -1)
    slopes = shadow.slopes(odds)
    inverse = np.linalg.pinv(spread.reshape(size, size), hermitian=True)
    information = slopes.T @ inverse @ slopes
    odds = odds * shadow.counts
    values = shadow.design[1:]
    mean = values @ odds / odds.sum()
    variance = ((values - mean[:, None]) ** 2) @ odds / odds.sum()
    # A tiny prior keeps what nothing is known of invertible.
    precision = information + 1e-6 * shadow.prior
    errors = np.diagonal(np.linalg.inv(precision))[1:]
    # What never varied where it was observed teaches nothing of a slope.
    varies = variance > CONSTANT
    return np.where(varies, 1.0 / (errors * np.where(varies, variance, 1.0)), 0.0)


def lookups_of(known: tuple[FloatArray, Evidence], shadow: ShadowEvidence) -> Lookups:
    """Looked-up values as information on the table's standardised parameters."""
    theta, evidence = known
    standard = shadow.coordinates.standardise(theta)
    precision = lookup_precision(evidence, standard, shadow.coordinates)
    standard[0] -= evidence.sampling_offset
    return Lookups(standard, precision)


# Log-odds within which instruments are damped where weights are expected to be large.
DAMPED = 3.0


def fit_rows(
    values: FloatArray,
    always: FloatArray,
    evidence: Evidence,
    known: tuple[FloatArray, Evidence] | None,
) -> TableFit:
    """Learn φ, logistic in the columns of rows that go missing as a whole.

    Given these columns, whether a row is missing doesn't depend on those that are
    always observed: functions of the latter are shadow variables.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns)
        NaN throughout where the row is missing.
    always : ndarray of shape (n_rows, n_always)
    evidence : Evidence
    known : tuple, optional
        Parameters from rows looked up, the intercept not corrected.
    """
    # 1. Predict every column from the others, their squares among them.
    scored = ScoredTable.of(values)
    width = values.shape[1]
    shadows = ScoredTable.of(always).values
    constant = np.ones((len(values), 1))
    features = np.concatenate([scored.values, shadows, shadows**2, constant], axis=1)
    usable = np.tile(np.arange(features.shape[1]) >= width, (width, 1))
    predicted = predict_columns(features, scored, np.arange(width), usable)
    # 2. Plain instruments, then the same, small where weights are large.
    lost = any_by_row(scored.missing)
    observed = scored.order[0] if width == 1 else np.flatnonzero(~lost)
    missing = np.flatnonzero(lost)
    rows = np.ascontiguousarray(values[observed].T)
    left = 1.0 - evidence.revealed_mass / evidence.n_missing
    plain = np.concatenate([constant, predicted], axis=1)
    shadow = ShadowEvidence.collect(rows, observed, missing, plain).thinned(left)
    lookups = lookups_of(known, shadow) if known is not None else None
    theta, _ = solve_moments(shadow, lookups)
    damped = np.exp(-np.clip(predicted @ theta[1:], -DAMPED, DAMPED))
    best = damped[:, None] * plain
    shadow = ShadowEvidence.collect(rows, observed, missing, best).thinned(left)
    theta, converged = solve_moments(shadow, lookups)
    found = TableFit(shadow, shadow.coordinates.restore(theta), converged)
    if equivalent_lookups(shadow, found.theta).min() < TESTABLE:
        return found
    # 3. More functions of what is always observed than φ has parameters.
    design = shadow.coordinates.design(rows)
    residuals = Residuals(theta @ design, design[1:], observed, best)
    return replace(found, tests=_tests(residuals, predicted @ theta[1:], always))


def _tests(
    residuals: Residuals, predicted: FloatArray, always: FloatArray
) -> Overidentification:
    """Polynomials of the predicted log-odds, and each column that is always there.

    A column's rank and the square of it: where there is one column only, its rank is
    close to what φ was estimated with, and says little.
    """
    scores = ScoredTable.of(always).test_features()[:, : always.shape[1]]
    features = np.concatenate([scores, scores**2 - 1.0], axis=1)
    every = np.ones(features.shape[1], dtype=bool)
    return overidentification(residuals, predicted, features, features**2, every)


# Fewer missing rows may be the same by chance.
FEWEST_SHARED = 5


@dataclass(frozen=True)
class Category:
    """Indicators of one category's levels, by their places in the table.

    Parameters
    ----------
    columns : tuple of int
    inputs : tuple of int
        Those that tell levels apart: without those that never vary, and without the
        last one where every row has one of them.
    """

    columns: tuple[int, ...]
    inputs: tuple[int, ...]


def find_categories(table: FloatArray) -> list[Category]:
    """Columns that are missing in the same rows, and where observed one-hot.

    That is, each is 0 or 1, and at most one of them is 1 in any row.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
    """
    missing = np.isnan(table)
    shared = shared_masks(missing)
    found = []
    for first in np.flatnonzero(shared.sum(axis=1) > 1).tolist():
        columns = np.flatnonzero(shared[first])
        seen = ~missing[:, first]
        if first != columns[0] or (~seen).sum() < FEWEST_SHARED or not seen.any():
            continue
        rows = table[seen][:, columns]
        if not _one_hot(rows):
            continue
        category = _category(columns, rows)
        if category.inputs:
            found.append(category)
    return found


def named_categories(
    table: FloatArray,
    answers: FloatArray,
    columns: Sequence[IntArray],
    names: Sequence[str],
) -> list[Category]:
    """Categories that are known, those of them with missing values.

    Parameters
    ----------
    table, answers : ndarray of shape (n_rows, n_columns)
        What was observed, and what was looked up.
    columns : sequence of ndarray of int
        The indicators of each.
    names : sequence of str
        Of all columns, for messages.
    """
    found = []
    for places in columns:
        missing = np.isnan(table[:, places])
        lost = missing.any(axis=1)
        if not lost.any():
            continue
        given = answers[:, places]
        rows = np.concatenate([table[~lost][:, places], given[~rows_with_nan(given)]])
        whose = listed([names[j] for j in places])
        if not missing[lost].all() or not _one_hot(rows):
            raise ValueError(
                f"Columns {whose} must be the indicators of one category: 0 or 1, at "
                "most one of them 1 in a row, and all of them missing or none."
            )
        category = _category(places, rows)
        if not category.inputs:
            raise ValueError(
                f"The category of columns {whose} has one level where it is known, and "
                "missing values: nothing says of which level these are. Leave the "
                "columns out, or look some of them up."
            )
        found.append(category)
    return found


def _one_hot(rows: FloatArray) -> bool:
    whole = ((rows == 0.0) | (rows == 1.0)).all()
    return bool(whole) and rows.sum(axis=1).max(initial=0.0) <= 1.0


def _category(columns: IntArray, rows: FloatArray) -> Category:
    """Indicators, and those that tell levels apart in rows where they are observed."""
    inputs = columns[rows.any(axis=0) & ~rows.all(axis=0)]
    if len(rows) and rows.sum(axis=1).min() == 1.0:
        inputs = inputs[:-1]
    return Category(tuple(columns.tolist()), tuple(inputs.tolist()))


def shadows_of(
    category: Category, scored: ScoredTable, names: tuple[str, ...]
) -> dict[str, FloatArray]:
    """What the other columns say of a category: values, and which are missing."""
    shadows = {}
    for j, name in enumerate(names):
        if j in category.columns:
            continue
        shadows[name] = scored.values[:, j]
        if scored.missing[:, j].any():
            shadows[f"missing {name}"] = scored.missing[:, j].astype(np.float64)
    return {name: each for name, each in shadows.items() if np.ptp(each) > 0.0}
