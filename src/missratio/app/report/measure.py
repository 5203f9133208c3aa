"""How good a classifier is: errors, power and NP-ROC, scores, weights.

Shares have intervals: Clopper and Pearson's where rows count the same, and Korn and
Graubard's where they are weighted.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.app.report.rows import LabelledRows
from missratio.evaluation import Interval, exact_interval
from missratio.weights import effective_sample_size

Data = dict[str, Any]

EXACT = "Clopper and Pearson's exact interval"
WEIGHTED = "Korn and Graubard's interval for weighted rows, approximate"
POOLED = ", for rows pooled over the fits"
# Levels of the NP-ROC: close together where certificates are wanted most.
LEVELS = np.concatenate(
    [
        np.arange(0.001, 0.02, 0.001),
        np.arange(0.02, 0.1, 0.005),
        np.arange(0.1, 0.3, 0.01),
        np.arange(0.3, 0.51, 0.05),
    ]
).round(4)
SOURCES = {
    "test": "test rows, which took no part in fitting",
    "cross-validation": "rows left out in turn while the classifier was fitted again",
    "held-out": "rows of the other class, which took no part in fitting",
    "held out": "rows held out of the fit, though thresholds were chosen on them",
    "training": "the rows that it was fitted on, so the figure is too good",
}


def share_of(events: BoolArray, weights: FloatArray, confidence: float) -> Data:
    """The weighted share of events (Hájek) with its interval.

    Of weighted rows it is Clopper and Pearson's for the number of equally weighted rows
    whose share would have the same variance. Rows of weight zero are left out.
    """
    events, weights = events[weights > 0.0], weights[weights > 0.0]
    rows = len(events)
    share, size, interval, method = None, float(rows), Interval(0.0, 1.0), EXACT
    if rows:
        share = float(events.mean())
        if np.ptp(weights) > 0.0:
            size, method = float(effective_sample_size(weights)), WEIGHTED
            if 0.0 < share < 1.0:
                scaled = weights / weights.sum()
                share = min(float(scaled[events].sum()), 1.0)
                variance = float((scaled**2 * (events - share) ** 2).sum())
                # One row may have all the weight there is, as far as numbers go.
                if variance > 0.0:
                    size = min(share * (1.0 - share) / variance, float(rows))
        interval = exact_interval(share * size, size, confidence)
    return {"estimate": share, "low": interval.low, "high": interval.high,
            "rows": rows, "confidence": confidence, "method": method}  # fmt: skip


def certified_levels(classifier: Any, alphas: FloatArray) -> list[Data]:
    """What is certified at each level; at the classifier's own, its certificate."""
    calibration, levels = classifier.calibration_, []
    for alpha, chosen in zip(alphas, calibration.select(alphas.tolist()), strict=True):
        own = classifier.certificate_ if alpha == classifier.alpha else chosen
        threshold = np.inf if own.threshold is None else own.threshold
        level = {"alpha": alpha, "threshold": threshold, "rule": own.rule,
                 "error_bound": None, "estimated_error": 0.0}  # fmt: skip
        if threshold < np.inf:
            level["error_bound"] = own.error_bound
            level["estimated_error"] = calibration.sample.estimated_error(threshold)
        levels.append(level)
    return levels


def refits(
    rows: LabelledRows,
    folds: int,
    labels: Sequence[Any],
    rng: np.random.Generator,
    **parameters: Any,
) -> Iterator[tuple[Any, IntArray, IntArray]]:
    """Fits without one fold of some classes in turn: their rows, and those left out.

    A fit that can't be made or certified is passed over.
    """
    seed = rows.classifier.random_state
    parameters["random_state"] = seed if isinstance(seed, (int, np.integer)) else 0
    fold = np.full(len(rows.y), -1)
    for label in labels:
        index = rows.index(label)
        fold[index] = rng.permutation(len(index)) % max(folds, 1)
    for k in range(folds if folds > 1 else 0):
        index, left_out = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        if not len(left_out):
            continue
        kept, again = rows.take(index), clone(rows.classifier).set_params(**parameters)
        more = {} if rows.groups is None else {"groups": kept.groups}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                again.fit(kept.X, kept.y, inclusion=kept.inclusion, **more)
            except (ValueError, np.linalg.LinAlgError):
                continue
        yield again, index, left_out


def curve(
    rows: LabelledRows,
    few: LabelledRows,
    test: LabelledRows | None,
    folds: int,
    confidence: float,
    rng: np.random.Generator,
) -> tuple[Data, Data, LabelledRows | None]:
    """The NP-ROC: what is certified at each level, and the power there.

    Beside it the power at the classifier's own level, and rows of both classes that are
    new to their classifier, where there are some.
    """
    classifier, measured = rows.classifier, rows
    alphas = np.unique([*LEVELS, classifier.alpha])
    levels = certified_levels(classifier, alphas)
    limits = np.array([level["threshold"] for level in levels])
    source = "cross-validation" if folds > 1 else "training"
    if test is not None and len(test.index(test.other)):
        source, measured = "test", test
    elif not hasattr(classifier, "calibration_index_"):
        source = "held-out"
    fresh = None if source == "training" else measured
    if source == "cross-validation":
        size = classifier.certificate_.rows / len(rows.index(rows.controlled))
        recognised, weights, fresh = _left_out(few, alphas, folds, size, rng)
    else:
        scores = classifier.score_samples(measured.rows(rows.other))
        recognised = scores[None] > limits[:, None]
        weights = measured.weights[measured.index(rows.other)]
    shares = [share_of(each, weights, confidence) for each in recognised]
    for level, share in zip(levels, shares, strict=True):
        share["method"] += POOLED * (source == "cross-validation")
        if level["threshold"] == np.inf:
            share |= {"estimate": 0.0, "low": 0.0, "high": 0.0}
        level |= share
    own = int(np.searchsorted(alphas, classifier.alpha))
    return {"levels": levels, "own": own}, {**shares[own], "source": source}, fresh


def _left_out(
    rows: LabelledRows,
    alphas: FloatArray,
    folds: int,
    size: float,
    rng: np.random.Generator,
) -> tuple[BoolArray, FloatArray, LabelledRows | None]:
    """Which rows of the other class fits recognise that haven't seen them, by level.

    With their weights, and rows of both classes that the first of these fits is new to.
    """
    recognised = np.zeros((len(alphas), len(rows.y)), dtype=bool)
    measured, fresh = np.zeros(len(rows.y), dtype=bool), None
    how = {"calibration_size": size, "on_infeasible": "reject_all"}
    for refitted, index, left_out in refits(rows, folds, [rows.other], rng, **how):
        scores = refitted.score_samples(rows.take(left_out).X)
        levels = certified_levels(refitted, alphas)
        limits = np.array([level["threshold"] for level in levels])
        recognised[:, left_out] = scores[None] > limits[:, None]
        measured[left_out] = True
        if fresh is None:
            unseen = np.append(index[refitted.calibration_index_], left_out)
            fresh = replace(rows.take(unseen), classifier=refitted)
    return recognised[:, measured], rows.weights[measured], fresh


def type_i(rows: LabelledRows, test: LabelledRows | None, confidence: float) -> Data:
    """The error on the controlled class: of test rows, or as certified."""
    certificate = rows.classifier.certificate_
    if test is not None and len(index := test.index(test.controlled)):
        scores = rows.classifier.score_samples(test.rows(test.controlled))
        above: BoolArray = scores > certificate.threshold
        return {**share_of(above, test.weights[index], confidence), "source": "test"}
    return {
        "estimate": certificate.estimated_error,
        "low": 0.0,
        "high": certificate.error_bound,
        "rows": certificate.observed,
        "confidence": 1.0 - certificate.delta,
        "method": "the certificate's bound",
        "source": "calibration",
    }


def classified(
    rows: LabelledRows, test: LabelledRows | None, folds: int, rng: np.random.Generator
) -> tuple[LabelledRows, Any, str]:
    """Rows that the fit didn't see, the labels they get, and where they are from.

    Test rows, or rows left out in turn; where no refit is certified, or folds are 0,
    rows that were held out of the fit.
    """
    classifier = rows.classifier
    if test is not None:
        return test, test.predicted(classifier), "test"
    predicted = np.empty(len(rows.y), dtype=classifier.classes_.dtype)
    measured = np.zeros(len(rows.y), dtype=bool)
    # A group that can't be certified leaves the others theirs.
    more = {} if rows.groups is None else {"on_infeasible": "reject_all"}
    for refitted, _, left_out in refits(rows, folds, rows.labels, rng, **more):
        kept = left_out
        if rows.groups is not None:
            # A refit tells nothing of a group that it alone lacks a threshold for.
            before, after = (
                np.array([limits.get(g, limits.get(None, np.inf)) for g in rows.groups])
                for limits in (classifier.thresholds_, refitted.thresholds_)
            )
            kept = left_out[(np.isinf(before) | np.isfinite(after))[left_out]]
        predicted[kept] = rows.take(kept).predicted(refitted)
        measured[kept] = True
    kept = np.flatnonzero(measured)
    if all((rows.y[kept] == label).any() for label in rows.labels):
        return rows.take(kept), predicted[kept], "cross-validation"
    few = rows
    if rows.groups is None:
        held = [classifier.calibration_index_, classifier.choice_index_]
        few = rows.take(np.sort(np.concatenate(held)))
    return few, few.predicted(classifier), "held out"


def unscored(few: LabelledRows, estimator: Any) -> list[Data]:
    """The shares of each class's rows that get a class without a score.

    Because of blanks, or because rows like them are observed too rarely. What was
    looked up is left out, as it will be missing again. A row whose ratio is 0 has a
    score: −∞.
    """
    found, classifier = few.as_found, few.classifier
    several = hasattr(classifier, "class_scores")
    trust = None if several else getattr(classifier, "cap_", None)
    if hasattr(classifier, "calibration_"):
        trust = classifier.calibration_.trust
    result = []
    for label in found.labels:
        index, X = found.index(label), found.rows(label)
        blank, rare = ~found.complete[index], np.zeros(len(index), dtype=bool)
        if len(index) and several:
            lost = np.isnan(classifier.class_scores(X)).any(axis=1)
            blank, rare = lost & blank, lost & ~blank
        elif len(index):
            if classifier.deployment == "as-observed":
                score = getattr(estimator, "decision_function", None)
                blank &= score is not None and np.isnan(score(X))
            if trust is not None:
                rare = np.isneginf(trust.score(X, np.zeros(len(index)))) & ~blank
        shares = (float(each.mean()) if len(index) else 0.0 for each in (blank, rare))
        result.append(
            {"label": label, "rows": len(index),
             **dict(zip(("blank", "rare"), shares, strict=True))}
        )  # fmt: skip
    return result
