"""φ from the table itself: every other column is a shadow variable for a column.

E[m | u] = 0 holds for the residual m = 1{observed}/(1 − φ) − 1 of the right φ, given
the other columns u. The most efficient functions of u are then E[∂m | u] / Var(m | u) =
E[φ·(1, z) | u] / E[φ/(1 − φ) | u]. They are computed as if z were normal about a
prediction from u. Any others are as valid: a poor prediction widens errors and
biases nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import expit, ndtri
from scipy.stats import chi2

from missratio._base.blocks import any_by_row, rows_with_nan
from missratio._base.hints import listed
from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.learning import checks
from missratio.learning.evidence import (
    Coordinates,
    Evidence,
    Unit,
    one_hot,
    warn_unsolved,
)
from missratio.learning.shadow import ShadowEvidence, solve_moments

FOLDS = 5
PENALTIES = 10.0 ** np.arange(-4.0, 1.5, 0.5)
GRID = 129
NODES, NODE_WEIGHTS = hermegauss(9)
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()
LARGEST_EXPECTED = 20.0
# Log-odds within which instruments are damped where weights are expected to be large.
DAMPED = 3.0
# Rows beside looked-up ones that a test takes, at least, and for each looked-up value:
# they stand for all rows, and their own noise is 2 to 3% of its variance. To take all
# of 100,000 rows takes longer than to learn φ.
TEST_ROWS, ROWS_PER_ANSWER = 2000, 50
# Slopes of a stated range that are tried, and levels in standard errors.
STATED, NEAR_LEVELS = 9, np.linspace(-4.0, 4.0, 33)


@dataclass(frozen=True, slots=True)
class ScoredTable:
    """Standardised values and masks, and how each column's values are ordered.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns)
        Of mean 0 and unit variance where observed, 0 where missing or where the column
        is constant.
    missing : ndarray of bool of shape (n_rows, n_columns)
    order : list of ndarray of int
        For each column its observed rows, by increasing value.
    """

    values: FloatArray
    missing: BoolArray
    order: list[IntArray]

    @classmethod
    def of(cls, table: FloatArray) -> ScoredTable:
        """Standardise every column; none of them is missing throughout."""
        missing: BoolArray = np.isnan(table)
        values, order = np.zeros(table.shape, order="F"), []
        for j in range(table.shape[1]):
            rows = np.flatnonzero(~missing[:, j])
            column = table[rows, j]
            centred = column - column.mean()
            values[rows, j] = centred / (float(centred.std()) or 1.0)
            order.append(rows[np.argsort(column, kind="stable")])
        return cls(values, missing, order)

    def features(self, *, ranked: bool = False, squares: bool = False) -> FloatArray:
        """Values, centred masks and a constant; with `ranked` for tests, normal scores.

        Quantiles of the normal law at the ranks of values have light tails, and spread
        what a skewed column crowds together. Ties share the middle of their ranks. With
        `squares`, those of the values as well, before the constant.
        """
        values = self.values
        if ranked:
            # Normal scores, standardised; 0 where all values are equal.
            values = np.zeros(self.values.shape, order="F")
            for j, rows in enumerate(self.order):
                ordered = self.values[rows, j]
                size = len(ordered)
                starts = np.flatnonzero(np.diff(ordered, prepend=-np.inf) > 0.0)
                ends = np.append(starts[1:], size)
                counts = ends - starts
                quantiles = ndtri((starts + ends) / (2.0 * size))
                quantiles -= quantiles @ counts / size
                spread = np.sqrt(quantiles**2 @ counts / size)
                values[rows, j] = np.repeat(quantiles / (spread or 1.0), counts)
        parts = [values, self.missing - self.missing.mean(axis=0)]
        parts += [np.where(self.missing, 0.0, values**2 - 1.0)] * squares
        return np.concatenate([*parts, np.ones((len(values), 1))], axis=1)


def shared_masks(missing: BoolArray) -> BoolArray:
    """Which columns are missing in exactly the same rows, (n_columns, n_columns).

    A category's indicators are, as a rule. A column that is never missing has none.
    """
    words = [np.packbits(column).tobytes() for column in missing.T]
    codes = np.unique(np.array(words, dtype=object), return_inverse=True)[1]
    return np.asarray((codes[:, None] == codes) & missing.any(axis=0))


def usable_features(
    missing: BoolArray, units: Sequence[Unit]
) -> tuple[BoolArray, BoolArray]:
    """Which features may predict each unit, and whether it goes missing by itself.

    Columns teach that aren't its own, and that don't go missing exactly when it does:
    their masks say whether it is missing. Squares help to tell several slopes apart.

    Returns
    -------
    usable : ndarray of bool of shape (n_units, n_features)
    alone : ndarray of bool of shape (n_units,)
    """
    shared, width = shared_masks(missing), missing.shape[1]
    usable = np.ones((len(units), 3 * width + 1), dtype=bool)
    alone = np.ones(len(units), dtype=bool)
    for i, unit in enumerate(units):
        others = np.asarray(~shared[unit.columns].any(axis=0))
        others[unit.columns] = False
        alone[i] = shared[unit.columns[0]].sum() <= len(unit.columns)
        masks, squares = others & missing.any(axis=0), others & (len(unit.inputs) > 1)
        usable[i, :-1] = np.concatenate([others, masks, squares])
    if not usable[:, 2 * width : -1].any():
        usable = np.delete(usable, np.s_[2 * width : -1], axis=1)
    return usable, alone


def predict_columns(
    features: FloatArray,
    columns: IntArray,
    missing: BoolArray,
    usable: BoolArray,
    fit_rows: int = 20_000,
) -> FloatArray:
    """Cross-fitted ridge predictions of columns from features, their own among these.

    A row's prediction comes from a fit to other rows, so that it is a function of the
    row's features alone. The penalty is chosen by generalised cross-validation.

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_features)
        The first are the table's columns, as they are to be predicted.
    columns : ndarray of int
        Those that are to be predicted.
    missing : ndarray of bool of shape (n_rows, n_predicted)
        Rows that none of the fits of a column may use.
    usable : ndarray of bool of shape (n_predicted, n_features)
        What each may be predicted from.
    fit_rows : int
        About this many rows are fitted to. More hardly change a prediction from a
        hundred columns.

    Returns
    -------
    ndarray of shape (n_rows, n_predicted)
    """
    step = max(1, len(features) // fit_rows)
    step += step > 1 and step % FOLDS == 0
    rows = np.arange(0, len(features), step)
    folds = [rows[rows % FOLDS == fold] for fold in range(FOLDS)]
    whole = np.stack([features[fold].T @ features[fold] for fold in folds])

    def coefficients(i: int) -> FloatArray:
        """For each fold, from the rows of the others."""
        used, column = np.flatnonzero(usable[i]), int(columns[i])
        kept = np.append(used, column)
        grams = whole[:, kept[:, None], kept]
        for gram, fold in zip(grams, folds, strict=True):
            # Rows that are missing are few, as a rule.
            lost = features[fold[missing[fold, i]]][:, kept]
            gram -= lost.T @ lost
        gram, n_fitted = grams.sum(axis=0), int((~missing[rows, i]).sum())
        product, squares = gram[:-1, -1], gram[-1, -1]
        # The penalty with the least generalised cross-validation error.
        values, vectors = np.linalg.eigh(gram[:-1, :-1])
        values, penalties = np.maximum(values, 0.0), PENALTIES[:, None] * n_fitted
        along, shrunk = (vectors.T @ product) ** 2, values + penalties
        shares = along * (values + 2.0 * penalties) / shrunk**2
        freedom = (values / shrunk).sum(axis=1)
        error = squares - shares.sum(axis=1)
        error /= np.maximum(1.0 - freedom / n_fitted, 1e-3) ** 2
        penalty = penalties[np.argmin(error), 0] * np.eye(len(used))
        result, others = np.zeros((FOLDS, features.shape[1])), gram - grams
        result[:, used] = np.linalg.solve(
            others[:, :-1, :-1] + penalty, others[:, :-1, -1:]
        )[..., 0]
        return result

    with one_blas_thread(features.size) as threads:
        fitted = np.stack(share(coefficients, range(len(columns)), threads))
    predicted = np.empty((len(features), len(columns)), order="F")
    for fold in range(FOLDS):
        predicted[fold::FOLDS] = features[fold::FOLDS] @ fitted[:, fold].T
    # Beyond what was observed there are no predictions but accidents.
    ends = features[:, columns].min(axis=0), features[:, columns].max(axis=0)
    return np.clip(predicted, *ends, out=predicted)


def teach(
    table: FloatArray, units: Sequence[Unit], names: Sequence[str], *, test: bool
) -> None:
    """Learn φ of every unit that other columns could teach, and test it.

    The moments are solved twice: with plain instruments, and with those made of that φ.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
    units : sequence of Unit
        Those that are taught have `shadow`, `theta` and `checks` then.
    names : sequence of str
        Of the columns.
    test : bool
        Whether to test what was learned.
    """
    usable, alone = usable_features(np.isnan(table), units)
    # What was looked up altogether leaves nothing to the table. Of columns that go
    # missing together, a φ of each alone has no shadow variables: looked-up values
    # teach it better.
    teachable = [
        i
        for i, unit in enumerate(units)
        if (known := unit.evidence) is not None
        and len(known.values)
        and usable[i].sum() > 1
        and known.n_unrevealed
        and (alone[i] or not known.n_revealed)
    ]
    if not teachable:
        return
    # 1. Predict every input from the other columns.
    scored, width = ScoredTable.of(table), table.shape[1]
    squares = usable.shape[1] > 2 * width + 1
    sizes = np.array([len(units[i].inputs) for i in teachable])
    ends, source = np.cumsum(sizes), np.repeat(teachable, sizes)
    predictable = np.concatenate([units[i].inputs for i in teachable])
    lost = scored.missing[:, [units[i].columns[0] for i in source]]
    options = predictable, lost, usable[source]
    every = predict_columns(scored.features(squares=squares), *options)
    if test:
        # What a column's skewness doesn't blur.
        functions = scored.features(ranked=True, squares=squares)
        by_rank = predict_columns(functions, *options, 8000)
        function_squares = functions**2
        n_lost = scored.missing.sum(axis=1)
        sides = checks.column_sides(names, scored.missing)

    tested: dict[int, Any] = {}

    def teach_one(k: int) -> bool:
        """Teach a unit, and say whether its moments were solved."""
        i, places = teachable[k], slice(ends[k] - sizes[k], ends[k])
        unit, inputs, predicted = units[i], units[i].inputs, every[:, places]
        known = unit.known
        # 2. Solve the moments, then again with instruments of that φ.
        missing, observed = scored.missing[:, unit.columns[0]], scored.order[inputs[0]]
        if len(inputs) > 1:
            observed = np.flatnonzero(~missing)
        values = np.stack([table[observed, j] for j in inputs])
        standard = np.stack([scored.values[observed, j] for j in inputs])
        errors = standard - predicted[observed].T
        left = 1.0 - known.n_revealed / known.n_missing
        coordinates = Coordinates.of(values)
        looked_up: tuple[FloatArray, ...] = ()
        if unit.by_lookups is not None:
            centre = coordinates.standardise(unit.by_lookups)
            looked_up = centre, known.precision(centre, coordinates)
        instruments = np.column_stack([np.ones(len(predicted)), predicted])
        for last in (False, True):
            lost = np.flatnonzero(missing)
            shadow = ShadowEvidence.collect(values, observed, lost, instruments, left)
            theta, converged = solve_moments(shadow, *looked_up)
            if not last and len(inputs) > 1:
                # Small where weights are large.
                scale = np.clip(predicted @ theta[1:], -DAMPED, DAMPED)
                instruments = np.exp(-scale)[:, None] * instruments
            elif not last:
                # E[φ·(1, z) | u] / E[φ/(1 − φ) | u] at predictions u: values lie about
                # these, and within the least and the largest that was observed.
                low, high = float(predicted.min()), float(predicted.max())
                z = np.linspace(low, high, GRID)[:, None] + float(errors.std()) * NODES
                z = np.clip(z, standard.min(), standard.max())
                score = theta[0] + theta[1] * z
                score = np.clip(score, -LARGEST_EXPECTED, LARGEST_EXPECTED)
                means = np.stack([expit(score), expit(score) * z]) @ NODE_WEIGHTS
                best = means / (np.exp(score) @ NODE_WEIGHTS)
                # Linear between the points of the grid: np.interp would search it for
                # every row.
                place = (predicted[:, 0] - low) * ((GRID - 1) / ((high - low) or 1.0))
                before = np.minimum(place.astype(np.intp), GRID - 2)
                step = np.diff(best)[:, before]
                instruments = (best[:, before] + (place - before) * step).T
        # 3. How strong they are, and tests by further functions of other columns.
        worth = float(shadow.equivalent_lookups(theta).min())
        explained = max(float((standard**2).mean() - (errors**2).mean()), 0.0)
        stated = None if unit.shadow is None else unit.shadow.stated
        if stated is not None:
            # The slope is as stated, and the level that of as many missing values. The
            # moments may contradict all of that, at any level.
            low, high = stated
            slopes = np.append(np.linspace(low, high, STATED), theta[1].clip(low, high))
            scores = slopes[:, None] * coordinates.design(values)[1]
            levels = np.log(known.n_missing) - np.logaddexp.reduce(scores, axis=1)
            shadow = replace(shadow, stated=stated)
            theta = np.array([levels[-1], slopes[-1]])
            about = levels[:, None] + NEAR_LEVELS / np.sqrt(known.n_missing)
            points = np.stack(np.broadcast_arrays(about, slopes[:, None]), axis=-1)
            least = float(shadow.criterion(points.reshape(-1, 2))[0].min())
            outcome = checks.Outcome(least, float(chi2.sf(least, 2)), np.inf)
        unit.shadow, unit.theta = shadow, coordinates.restore(theta)
        if not test:
            return converged
        if stated is None:
            checks.instrument_strength(unit, worth, explained)
        else:
            checks.record(unit, "agreement", "stated", outcome)
        # With instruments weaker than ten looked-up values tests have no level.
        if worth >= 10.0:
            # In the order of the table: to gather rows by their values takes longer.
            rows = np.flatnonzero(~missing)
            design = coordinates.design(np.stack([table[rows, j] for j in inputs]))
            residuals = checks.Residuals(theta @ design, design[1:], rows, instruments)
            form = residuals.form(by_rank[:, places] @ theta[1:])
            # Squares are for several slopes; the constant is no function of a column.
            used = np.flatnonzero(usable[i, :-1])[-1] // width + 1
            some, others = functions[:, : used * width], usable[i, : used * width]
            count = None
            if used > 1 and others[width : 2 * width].any():
                alike = scored.missing[:, ~others[width : 2 * width]]
                count = (n_lost - alike.sum(axis=1)).astype(np.float64)
            parts = residuals.orthogonal(some, function_squares[:, : used * width])
            other = residuals.any_other(some, parts, others, count)
            if table.size <= checks.MOST_POOLED:
                tested[k] = unit, residuals, parts, others
            checks.record(unit, "form", "table", form)
            checks.dependence(unit, "table", other, sides)
        if unit.by_lookups is not None:
            checks.agreement(unit)
        return converged

    with one_blas_thread(table.size) as threads:
        solved = share(teach_one, range(len(teachable)), threads)
    if len(tested) > 1:
        # They come in the order of the table, whichever thread came first.
        several = [tested[k] for k in sorted(tested)]
        checks.pooled_dependence(several, functions[:, :width], sides)
    results = zip(teachable, solved, strict=True)
    warn_unsolved([units[i].name for i, converged in results if not converged])


def check_by_lookups(
    table: FloatArray, answers: FloatArray, units: Sequence[Unit], names: Sequence[str]
) -> None:
    """Test φ by looked-up values: its form, and whether another column helps.

    The latter by functions of the columns at looked-up rows and at some others, which
    stand for all, whatever was looked up of them.
    """
    missing, answered = np.isnan(table), ~np.isnan(answers)
    usable, _ = usable_features(missing, units)
    tested = [
        (unit, used)
        for unit, used in zip(units, usable, strict=True)
        if unit.by_lookups is not None and len(unit.by_lookups) > 1
    ]
    if not tested:
        return
    n_wanted = max(TEST_ROWS, ROWS_PER_ANSWER * int(answered.sum(axis=0).max()))
    sampled = np.zeros(len(table), dtype=bool)
    sampled[:: max(1, len(table) // n_wanted)] = True
    if missing[sampled].all(axis=0).any():
        sampled[:] = True
    kept = np.flatnonzero(sampled | any_by_row(answered))
    squares = usable.shape[1] > 2 * len(names) + 1
    functions = ScoredTable.of(table[kept]).features(ranked=True, squares=squares)
    sides = checks.column_sides(names, missing)
    for unit, used in tested:
        checks.form_by_lookups(unit)
        if used.sum() < 2:
            continue
        revealed = np.flatnonzero(any_by_row(answered[kept][:, unit.columns]))
        observed = np.flatnonzero(sampled[kept] & ~missing[kept, unit.columns[0]])
        rows, n_missing = np.append(revealed, observed), unit.known.n_missing
        mass = np.ones(len(rows))
        mass[len(revealed) :] = (len(table) - n_missing) / len(observed)
        values = np.where(missing, answers, table)[np.ix_(kept[rows], unit.inputs)].T
        some = Evidence(values, len(revealed), mass, n_missing)
        # The constant is no function of a column.
        of_others = np.append(used[:-1], False)
        checks.others_by_lookups(unit, some, functions[rows].T, of_others, sides)


def find_categories(
    table: FloatArray,
    answers: FloatArray,
    given: Sequence[IntArray] | None,
    names: Sequence[str],
) -> list[tuple[IntArray, IntArray]]:
    """Indicators of categories with missing values, and those that tell levels apart.

    Those that are given; or else columns that are missing in the same rows, five or
    more, and one-hot where they are known. Levels are told apart without indicators
    that never vary, and without the last one where every row has one of them.
    """
    missing = np.isnan(table)
    groups = given
    if groups is None:
        shared = shared_masks(missing) & (missing.sum(axis=0) >= checks.FEWEST_SHARED)
        alike = np.unique(shared[shared.sum(axis=1) > 1], axis=0)[::-1]
        groups = [np.flatnonzero(columns) for columns in alike]
    categories = []
    for columns in groups:
        lost = any_by_row(missing[:, columns])
        if not lost.any():
            continue
        looked_up = answers[:, columns]
        looked_up = looked_up[~rows_with_nan(looked_up)]
        known = np.concatenate([table[~lost][:, columns], looked_up])
        category = one_hot(known.T) and missing[lost][:, columns].all()
        levels = known.sum(axis=1)
        inputs = columns[known.any(axis=0) & ~known.all(axis=0)]
        inputs = inputs[:-1] if levels.min(initial=1.0) == 1.0 else inputs
        if category and len(inputs):
            categories.append((columns, inputs))
        elif given is not None:
            called = listed([names[j] for j in columns])
            raise ValueError(
                f"The category of columns {called} has one level where it is known, "
                "and missing values: nothing says of which level these are. Leave the "
                "columns out, or look some of them up."
                if category
                else f"Columns {called} must be the indicators of one category: 0 or "
                "1, at most one of them 1 in a row, and all of them missing or none."
            )
    return categories
