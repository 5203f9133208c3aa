"""φ of whole rows from columns that are always observed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from missratio._base.blocks import any_by_row
from missratio._base.typing import FloatArray
from missratio.learning._evidence import Evidence
from missratio.learning._from_table import (
    TESTABLE,
    TableFit,
    equivalent_lookups,
    lookups_of,
)
from missratio.learning._instruments import predict_columns
from missratio.learning._overidentified import (
    Overidentification,
    Residuals,
    overidentification,
)
from missratio.learning._scores import ScoredTable
from missratio.learning._shadow import ShadowEvidence, solve_moments

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
