"""φ from the table itself: every other column is a shadow variable for a column.

E[m | u] = 0 holds for the residual m = 1{observed}/(1 − φ) − 1 of the right φ, given
the other columns u. The most efficient functions of u are then E[∂m | u] / Var(m | u) =
E[φ·(1, z) | u] / E[φ/(1 − φ) | u]. They are computed as if z were normal about a
prediction from u. Any others are as valid: a poor prediction widens errors and
biases nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import expit, ndtri

from missratio._base.blocks import any_by_row, rows_with_nan
from missratio._base.callbacks import listens, told
from missratio._base.hints import listed
from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.learning.checks import (
    FEWEST_SHARED,
    Finding,
    Residuals,
    as_finding,
    column_sides,
    dependence,
    instrument_strength,
)
from missratio.learning.evidence import Evidence
from missratio.learning.shadow import ShadowEvidence, solve_moments

FOLDS = 5
# More rows hardly change a prediction from a hundred columns.
FIT_ROWS = 20_000
TEST_FIT_ROWS = 8000
PENALTIES = 10.0 ** np.arange(-4.0, 1.5, 0.5)
GRID = 129
NODES, NODE_WEIGHTS = hermegauss(9)
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()
LARGEST_EXPECTED = 20.0
# Log-odds within which instruments are damped where weights are expected to be large.
DAMPED = 3.0
# With instruments weaker than this many looked-up values tests have no level.
TESTABLE = 10.0


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

    def normal_scores(self) -> FloatArray:
        """Normal scores of columns, standardised; 0 where all values are equal."""
        scores = np.zeros(self.values.shape, order="F")
        for j, rows in enumerate(self.order):
            ordered = self.values[rows, j]
            size = len(ordered)
            starts = np.flatnonzero(np.diff(ordered, prepend=-np.inf) > 0.0)
            ends = np.append(starts[1:], size)
            counts = ends - starts
            quantiles = ndtri((starts + ends) / (2.0 * size))
            quantiles -= quantiles @ counts / size
            spread = np.sqrt(quantiles**2 @ counts / size)
            scores[rows, j] = np.repeat(quantiles / (spread or 1.0), counts)
        return scores

    def features(self, *, ranked: bool = False) -> FloatArray:
        """Values, centred masks and a constant; with `ranked` for tests, normal scores.

        Quantiles of the normal law at the ranks of values have light tails, and spread
        what a skewed column crowds together. Ties share the middle of their ranks.
        """
        values = self.normal_scores() if ranked else self.values
        masks = self.missing - self.missing.mean(axis=0)
        return np.concatenate([values, masks, np.ones((len(masks), 1))], axis=1)


def shared_masks(missing: BoolArray) -> BoolArray:
    """Which columns are missing in exactly the same rows, (n_columns, n_columns).

    A category's indicators are, as a rule. A column that is never missing has none.
    """
    words = [np.packbits(column).tobytes() for column in missing.T]
    codes = np.unique(np.array(words, dtype=object), return_inverse=True)[1]
    return np.asarray((codes[:, None] == codes) & missing.any(axis=0))


def complete_names(missing: BoolArray, names: Sequence[str]) -> list[str | None]:
    """The names of columns without missing values; None for the others."""
    return [None if missing[:, j].any() else name for j, name in enumerate(names)]


def usable_features(missing: BoolArray, together: BoolArray) -> BoolArray:
    """Which features each column may be predicted from, (n_columns, n_features).

    Not from itself, nor from columns that go missing exactly when it does: their masks
    say whether it is missing. `together` is as `shared_masks` gives it.
    """
    others = ~(together | np.eye(len(together), dtype=bool))
    constant = np.ones((len(others), 1), dtype=bool)
    return np.concatenate([others, others & missing.any(axis=0), constant], axis=1)


def predict_columns(
    features: FloatArray,
    table: ScoredTable,
    columns: IntArray,
    usable: BoolArray,
    fit_rows: int = FIT_ROWS,
) -> FloatArray:
    """Cross-fitted ridge predictions of columns from features, their own among these.

    A row's prediction comes from a fit to other rows, so that it is a function of the
    row's features alone. The penalty is chosen by generalised cross-validation.

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_features)
        The first are the table's columns, as they are to be predicted.
    table : ScoredTable
    columns : ndarray of int
        Those of the table that are to be predicted.
    usable : ndarray of bool of shape (n_predicted, n_features)
        What each may be predicted from.
    fit_rows : int
        About this many rows are fitted to.

    Returns
    -------
    ndarray of shape (n_rows, n_predicted)
    """

    def coefficients(i: int) -> FloatArray:
        """For each fold, from the rows of the others."""
        used = np.flatnonzero(usable[i])
        column = int(columns[i])
        rows = np.flatnonzero(~table.missing[:, column])
        rows = rows[:: max(1, len(rows) // fit_rows)]
        grams = np.empty((FOLDS, len(used), len(used)))
        products = np.empty((FOLDS, len(used)))
        squares = 0.0
        for fold in range(FOLDS):
            design = features[rows[rows % FOLDS == fold]]
            target = design[:, column]
            grams[fold] = (design.T @ design)[np.ix_(used, used)]
            products[fold] = (design.T @ target)[used]
            squares += float(target @ target)
        gram, product = grams.sum(axis=0), products.sum(axis=0)
        # The penalty with the least generalised cross-validation error.
        values, vectors = np.linalg.eigh(gram)
        values, penalties = np.maximum(values, 0.0), PENALTIES[:, None] * len(rows)
        along, shrunk = (vectors.T @ product) ** 2, values + penalties
        shares = along * (values + 2.0 * penalties) / shrunk**2
        freedom = (values / shrunk).sum(axis=1)
        error = squares - shares.sum(axis=1)
        error /= np.maximum(1.0 - freedom / len(rows), 1e-3) ** 2
        penalty = penalties[np.argmin(error), 0] * np.eye(len(used))
        result = np.zeros((FOLDS, features.shape[1]))
        others = gram - grams + penalty, (product - products)[..., None]
        result[:, used] = np.linalg.solve(*others)[..., 0]
        return result

    with one_blas_thread(features.size) as threads:
        found = np.stack(share(coefficients, range(len(columns)), threads))
    predicted = np.empty((len(features), len(columns)), order="F")
    for fold in range(FOLDS):
        predicted[fold::FOLDS] = features[fold::FOLDS] @ found[:, fold].T
    # Beyond what was observed there are no predictions but accidents.
    for i, j in enumerate(columns):
        ends = features[table.order[j][[0, -1]], j]
        np.clip(predicted[:, i], *ends, out=predicted[:, i])
    return predicted


@dataclass(frozen=True, slots=True)
class Taught:
    """What the table taught of one feature, or of whole rows.

    Parameters
    ----------
    shadow : ShadowEvidence
    theta : ndarray of shape (n_parameters,)
        (α, β), of the table and looked-up values together.
    converged : bool
    findings : list of Finding
        How strong the instruments are, and what tests found; tests are left out where
        the instruments are too weak for them.
    """

    shadow: ShadowEvidence
    theta: FloatArray
    converged: bool
    findings: list[Finding] = field(default_factory=list)


def _teach(
    table: FloatArray,
    scored: ScoredTable,
    columns: Sequence[int],
    predicted: FloatArray,
    improve: Callable[[FloatArray], FloatArray],
    evidence: Evidence,
    by_lookups: FloatArray | None,
    name: str,
    tests: Callable[[Residuals, FloatArray], list[Finding]] | None,
) -> Taught:
    """Solve the moments twice: with plain instruments, and with those made of that φ.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_table)
    scored : ScoredTable
    columns : sequence of int
        Those of the table that go missing together, φ being logistic in them.
    predicted : ndarray of shape (n_rows, n_columns)
        By the other columns, standardised.
    improve : callable
        Instruments that are as good as the first estimate of φ, given that.
    evidence : Evidence
    by_lookups : ndarray or None
        (α, β) of what was looked up.
    name : str
    tests : callable, or None
        By residuals and standardised parameters; None tests nothing.
    """
    observed, missing = scored.order[columns[0]], scored.missing[:, columns[0]]
    if len(columns) > 1:
        observed = np.flatnonzero(~missing)
    values = np.stack([table[observed, j] for j in columns])
    left = 1.0 - evidence.revealed_mass / evidence.n_missing

    def collected(instruments: FloatArray) -> ShadowEvidence:
        lost = np.flatnonzero(missing)
        return ShadowEvidence.collect(values, observed, lost, instruments).thinned(left)

    shadow = collected(np.column_stack([np.ones(len(predicted)), predicted]))
    coordinates = shadow.coordinates
    known: tuple[FloatArray, ...] = ()
    if by_lookups is not None:
        centre = coordinates.standardise(by_lookups)
        known = centre, evidence.precision(centre, coordinates)
    theta, _ = solve_moments(shadow, *known)
    instruments = improve(theta)
    shadow = collected(instruments)
    theta, converged = solve_moments(shadow, *known)
    worth = float(shadow.equivalent_lookups(theta).min())
    standard = np.stack([scored.values[observed, j] for j in columns])
    errors = standard - predicted[observed].T
    explained = max(float((standard**2).mean() - (errors**2).mean()), 0.0)
    findings = [instrument_strength(worth, explained, name, evidence)]
    if tests is not None and worth >= TESTABLE:
        # In the order of the table: to gather rows by their values takes longer.
        rows = np.flatnonzero(~missing)
        design = coordinates.design(np.stack([table[rows, j] for j in columns]))
        residuals = Residuals(theta @ design, design[1:], rows, instruments)
        findings += tests(residuals, theta)
    return Taught(shadow, coordinates.restore(theta), converged, findings)


def teach_features(
    table: FloatArray,
    evidence: Sequence[Evidence | None],
    by_lookups: Mapping[int, FloatArray],
    names: Sequence[str],
    *,
    test: bool,
    listener: Any = None,
) -> dict[int, Taught]:
    """Learn φ of every feature that the other columns could teach.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
    evidence : sequence of Evidence or None
        By feature; None where nothing is missing.
    by_lookups : mapping of int to ndarray
        (α, β) by what was looked up, by feature.
    names : sequence of str
    test : bool
        Whether to test what was learned.
    listener : task, or None
        Whose callbacks are told of every few features.
    """
    scored = ScoredTable.of(table)
    together = shared_masks(scored.missing)
    usable = usable_features(scored.missing, together)
    # What was looked up altogether leaves nothing to the table. Of columns that go
    # missing together, a φ of each alone has no shadow variables: looked-up values
    # teach it better.
    teachable = [
        j
        for j, known in enumerate(evidence)
        if known is not None
        and len(known.values)
        and usable[j].sum() > 1
        and known.revealed_mass < known.n_missing
        and (together[j].sum() < 2 or not known.n_revealed)
    ]
    if not teachable:
        return {}
    columns = np.array(teachable, dtype=np.intp)
    predicted = predict_columns(scored.features(), scored, columns, usable[columns])
    width = table.shape[1]
    if test:
        # What a column's skewness doesn't blur.
        features = scored.features(ranked=True)
        options = columns, usable[columns], TEST_FIT_ROWS
        ranked = predict_columns(features, scored, *options)
        features = features[:, : 2 * width]
        squares = features**2
        n_lost = scored.missing.sum(axis=1)
        complete = complete_names(scored.missing, names)

    def tests(i: int, residuals: Residuals, theta: FloatArray) -> list[Finding]:
        del theta
        j = int(columns[i])
        # The constant is no function of another column.
        others = usable[j, : 2 * width]
        alike = scored.missing[:, ~others[width:]]
        lost = (n_lost - alike.sum(axis=1)).astype(np.float64)
        other = residuals.any_other(features, squares, others, lost)
        form = residuals.form(ranked[:, i])
        return [
            as_finding("form", names[j], "table", form),
            # A positive residual is an entry observed more often than φ says.
            dependence(
                names[j], "table", other, column_sides(names), complete, flip=True
            ),
        ]

    def teach(i: int) -> Taught:
        j = int(columns[i])
        known = evidence[j]
        assert known is not None
        column = scored.values[scored.order[j], j]
        spread = float((column - predicted[scored.order[j], i]).std())
        ends = float(column[0]), float(column[-1])
        return _teach(
            table,
            scored,
            [j],
            predicted[:, i : i + 1],
            partial(_efficient_instruments, predicted[:, i], spread, ends),
            known,
            by_lookups.get(j),
            names[j],
            partial(tests, i) if test else None,
        )

    with one_blas_thread(table.size) as threads:
        step = threads if listens(listener) else len(columns)
        parts = [
            range(len(columns))[at : at + step] for at in range(0, len(columns), step)
        ]
        done = told(
            listener,
            "columns",
            parts,
            lambda part: share(teach, part, threads),
            len(parts),
        )
    return dict(zip(teachable, chain.from_iterable(done), strict=True))


def _efficient_instruments(
    predicted: FloatArray,
    deviation: float,
    ends: tuple[float, float],
    theta: FloatArray,
) -> FloatArray:
    """E[φ·(1, z) | u] / E[φ/(1 − φ) | u] at predictions, of shape (n_rows, 2).

    Values lie about their prediction with a standard deviation, and within the least
    and the largest that was observed; `theta` is standardised.
    """
    low, high = float(predicted.min()), float(predicted.max())
    grid = np.linspace(low, high, GRID)
    z = np.clip(grid[:, None] + deviation * NODES, *ends)
    log_odds = np.clip(theta[0] + theta[1] * z, -LARGEST_EXPECTED, LARGEST_EXPECTED)
    probability = expit(log_odds)
    variance = np.exp(log_odds) @ NODE_WEIGHTS
    means = (probability @ NODE_WEIGHTS, (probability * z) @ NODE_WEIGHTS)
    # Linear between the points of the grid: np.interp would search it for every row.
    place = (predicted - low) * ((GRID - 1) / ((high - low) or 1.0))
    before = np.minimum(place.astype(np.intp), GRID - 2)
    after = place - before
    best = np.empty((len(predicted), 2))
    for k, mean in enumerate(means):
        at = mean / variance
        best[:, k] = at[before] + after * np.diff(at)[before]
    return best


def teach_rows(
    values: FloatArray,
    always: Mapping[str, FloatArray],
    evidence: Evidence,
    by_lookups: FloatArray | None,
    name: str,
    *,
    test: bool,
) -> Taught:
    """Learn φ, logistic in the columns of rows that go missing as a whole.

    Given these columns, whether a row is missing doesn't depend on those that are
    always observed: functions of the latter are shadow variables.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns)
        NaN throughout where the row is missing.
    always : mapping of str to ndarray of shape (n_rows,)
    evidence : Evidence
    by_lookups : ndarray or None
        (α, β) of what was looked up.
    name : str
        What the rows are called.
    test : bool
    """
    # 1. Predict every column from those always there, their squares among them.
    scored, width = ScoredTable.of(values), values.shape[1]
    shadows = ScoredTable.of(np.column_stack(list(always.values())))
    constant = np.ones((len(values), 1))
    features = [scored.values, shadows.values, shadows.values**2, constant]
    used = np.arange(width + 2 * len(always) + 1) >= width
    predicted = predict_columns(
        np.concatenate(features, axis=1),
        scored,
        np.arange(width),
        np.tile(used, (width, 1)),
    )

    def damped(theta: FloatArray) -> FloatArray:
        """Plain instruments, small where weights are large."""
        scale = np.exp(-np.clip(predicted @ theta[1:], -DAMPED, DAMPED))
        plain = np.concatenate([constant, predicted], axis=1)
        return np.asarray(scale[:, None] * plain)

    def tests(residuals: Residuals, theta: FloatArray) -> list[Finding]:
        """By polynomials of the predicted log-odds, and every column always there.

        A column's rank and the square of it: where there is one column only, its rank
        is close to what φ was estimated with, and says little.
        """
        scores = shadows.normal_scores()
        functions = np.concatenate([scores, scores**2 - 1.0], axis=1)
        every = np.ones(functions.shape[1], dtype=bool)
        other = residuals.any_other(functions, functions**2, every)
        sides = [(f"{column} is high", f"{column} is low") for column in always]
        sides += [
            (f"{column} is far from its middle", f"{column} is close to its middle")
            for column in always
        ]
        form = residuals.form(predicted @ theta[1:])
        return [
            as_finding("form", name, "table", form),
            dependence(name, "table", other, sides, flip=True, plural=True),
        ]

    # 2. Solve the moments.
    every = range(width), predicted, damped, evidence, by_lookups, name
    return _teach(values, scored, *every, tests if test else None)


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
        shared = shared_masks(missing) & (missing.sum(axis=0) >= FEWEST_SHARED)
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
        one_hot = np.isin(known, (0.0, 1.0)).all() and missing[lost][:, columns].all()
        levels = known.sum(axis=1)
        one_hot = one_hot and levels.max(initial=0.0) <= 1.0
        inputs = columns[known.any(axis=0) & ~known.all(axis=0)]
        inputs = inputs[:-1] if levels.min(initial=1.0) == 1.0 else inputs
        if one_hot and len(inputs):
            categories.append((columns, inputs))
        elif given is not None:
            called = listed([names[j] for j in columns])
            raise ValueError(
                f"The category of columns {called} has one level where it is known, "
                "and missing values: nothing says of which level these are. Leave the "
                "columns out, or look some of them up."
                if one_hot
                else f"Columns {called} must be the indicators of one category: 0 or "
                "1, at most one of them 1 in a row, and all of them missing or none."
            )
    return categories
