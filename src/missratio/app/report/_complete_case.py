"""How far an analysis of complete rows alone would have been off."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.app.report._performance import refit
from missratio.app.report._rows import LabelledRows
from missratio.app.report._shares import share_of
from missratio.classifier import missingness_parameters
from missratio.threshold import BinomialRule, CalibrationSample


def complete_case(
    rows: LabelledRows, test: LabelledRows | None, confidence: float
) -> dict[str, Any] | None:
    """The error that complete-case analysis claims, and the one that it has.

    The classifier is fitted and calibrated on complete rows, as if they were a sample
    of all. Its real error is that of test rows, or else is estimated on its calibration
    rows by their weights 1/(1 − φ).

    Returns
    -------
    dict, or None
        None where no complete row is weighted, or none is missing.
    """
    classifier = rows.classifier
    complete = rows.as_found.complete
    if classifier.deployment == "as-observed" or complete.all():
        return None
    kept = rows.take(np.flatnonzero(complete))
    if not all(len(kept.index(label)) for label in rows.labels):
        return None
    found = _threshold(rows, kept)
    if found is None:
        return None
    ignoring, threshold, held = found
    if test is not None and len(test.index(test.controlled)):
        measured, weights = test, test.weights(test.controlled)
    else:
        measured, weights = rows, _held_weights(rows, complete, held)
    of_class = measured.rows(rows.controlled)
    above: BoolArray = ignoring.score_samples(of_class) > threshold
    share = share_of(above, weights, confidence)
    return {
        **share,
        "claimed": classifier.alpha,
        "delta": classifier.delta,
        "refitted": ignoring is not classifier,
        "certified": bool(np.isfinite(threshold)),
        "kept_share": float(complete.mean()),
        "threshold": threshold,
        "source": "test" if measured is test else "calibration",
        "with_weights": classifier.certificate_.estimated_error,
    }


def _held_weights(
    rows: LabelledRows, complete: BoolArray, held: IntArray
) -> FloatArray:
    """What rows of the controlled class stand for that took no part in the fit.

    Of the complete ones those held out, which stand for all of them; and those that
    were looked up.
    """
    of_class = rows.index(rows.controlled)
    whole = np.flatnonzero(complete[of_class])
    weights = rows.masses(rows.controlled).copy()
    chosen = whole[held]
    scale = weights[whole].sum() / weights[chosen].sum()
    kept = scale * weights[chosen]
    weights[whole] = 0.0
    weights[chosen] = kept
    return weights


def _threshold(
    rows: LabelledRows, kept: LabelledRows
) -> tuple[Any, float, IntArray] | None:
    """A classifier that knows of no missingness, its threshold, its calibration rows.

    One that was only calibrated keeps its estimator.
    """
    classifier = rows.classifier
    of_class = kept.index(rows.controlled)
    if hasattr(classifier, "calibration_index_"):
        unaware = {
            f"estimator__{name}": None
            for name in missingness_parameters(classifier.estimator)
        }
        ignoring = refit(
            replace(kept, inclusion=None), **unaware, missingness=None, rule="auto",
            missingness_delta=None, odds_factor=1.0,
        )  # fmt: skip
        if ignoring is None:
            return None
        held = np.searchsorted(of_class, ignoring.calibration_index_)
        return ignoring, ignoring.threshold_, held
    scores = classifier.score_samples(kept.rows(rows.controlled))
    sample = CalibrationSample.build(scores)
    chosen = BinomialRule().select(sample, classifier.alpha, classifier.delta)
    threshold = np.inf if chosen.threshold is None else chosen.threshold
    return classifier, threshold, np.arange(len(of_class))
