"""A fitted classifier's calibration rows, found again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from missratio._blocks import take_rows
from missratio._typing import IntArray
from missratio.classifier._calibration import make_rule
from missratio.classifier._certify import ScoredRows
from missratio.classifier._levels import Levels
from missratio.classifier._neyman_pearson import NeymanPearsonClassifier
from missratio.classifier._reading import read_rows
from missratio.threshold import CalibrationSample

_ROUNDING = 1e-9


def find_levels(classifier: NeymanPearsonClassifier, X: Any, y: ArrayLike) -> Levels:
    """Find what a fitted classifier's threshold was chosen from again.

    Parameters
    ----------
    classifier : NeymanPearsonClassifier
    X, y : array-like
        The rows that it was fitted with. After `calibrate`, those of the controlled
        class are the ones that it was calibrated with, in their order.

    Raises
    ------
    ValueError
        Where they are other rows.
    """
    check_is_fitted(classifier, "threshold_")
    X = read_rows(classifier, X, reset=False)
    labels = np.asarray(column_or_1d(y))
    check_consistent_length(X, labels)
    is_other = labels != classifier.certificate_.controlled_class
    seed = classifier.random_state
    rng = np.random.default_rng(seed if isinstance(seed, (int, np.integer)) else 0)
    held, training = np.flatnonzero(~is_other), None
    if hasattr(classifier, "calibration_index_"):
        # Draws once more what fit drew, so that the rule finds the same state.
        rng.permutation(held)
        held = classifier.calibration_index_
        if held.max() >= len(labels):
            raise _other_rows()
        rest = ~is_other
        rest[held] = False
        training = _scored(classifier, X, np.flatnonzero(rest))
    trust = classifier._trust
    sample = _scored(classifier, X, held).sample(trust)
    _check_same(classifier, sample)
    known = None
    if training is not None and trust.model is not None:
        known = training.sample(trust)
    rule = make_rule(classifier.rule, training=known, complete=trust.model is None)
    delta = classifier.delta - classifier.certificate_.missingness_delta
    return Levels(sample, trust, rule, delta, rng)


def _scored(classifier: NeymanPearsonClassifier, X: Any, index: IntArray) -> ScoredRows:
    rows = take_rows(X, index)
    return classifier._scored(rows)


def _check_same(classifier: NeymanPearsonClassifier, sample: CalibrationSample) -> None:
    """Refuse rows that the certificate isn't about."""
    certificate = classifier.certificate_
    same = (sample.n_rows, sample.n_observed) == (
        certificate.rows,
        certificate.observed,
    )
    if same and certificate.certified:
        error = sample.estimated_error(certificate.threshold)
        same = abs(error - certificate.estimated_error) <= _ROUNDING
    if not same:
        raise _other_rows()


def _other_rows() -> ValueError:
    return ValueError(
        "X and y are not the rows that the classifier's certificate is about. Give the "
        "rows that it was fitted with, in the same order; after calibrate, those of "
        "the controlled class that it was calibrated with."
    )
