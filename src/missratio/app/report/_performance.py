"""The two errors of a classifier, and its NP-ROC."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from missratio._base.typing import BoolArray, FloatArray
from missratio.app.report._rows import LabelledRows
from missratio.app.report._shares import share_of

# Round numbers, close together where certificates are wanted most.
LEVELS = tuple(
    np.round(
        np.concatenate(
            [
                np.arange(0.001, 0.02, 0.001),
                np.arange(0.02, 0.1, 0.005),
                np.arange(0.1, 0.3, 0.01),
                np.arange(0.3, 0.51, 0.05),
            ]
        ),
        4,
    ).tolist()
)
HISTOGRAM_BINS = (10, 48)
POOLED = ", for rows pooled over the fits"

SOURCES = {
    "test": "test rows, which took no part in fitting",
    "cross-validation": "rows left out in turn while the classifier was fitted again",
    "held-out": "rows of the other class, which took no part in fitting",
    "training": "the rows that it was fitted on, so the figure is too good",
}


def levels_of(classifier: Any) -> FloatArray:
    """The levels of the curve, the classifier's own among them."""
    return np.unique([*LEVELS, classifier.alpha])


def thresholds(classifier: Any, alphas: FloatArray) -> dict[str, Any]:
    """What is certified at each level.

    At the classifier's own level this is its certificate.
    """
    certificate = classifier.certificate_
    chosen = classifier.calibration_.select(alphas.tolist())
    own = int(np.searchsorted(alphas, classifier.alpha))
    threshold = np.array(
        [np.inf if c.threshold is None else c.threshold for c in chosen]
    )
    bound = np.array([0.0 if c.threshold is None else c.error_bound for c in chosen])
    rules = [c.rule for c in chosen]
    threshold[own], bound[own] = certificate.threshold, certificate.error_bound
    rules[own] = certificate.rule
    sample = classifier.calibration_.sample
    # Nothing scores above infinity, where there is no row to score either.
    errors = [
        0.0 if t == np.inf else sample.estimated_error(float(t)) for t in threshold
    ]
    return {
        "alpha": alphas,
        "threshold": threshold,
        "error_bound": bound,
        "estimated_error": errors,
        "rule": rules,
        "own": own,
    }


def power_source(rows: LabelledRows, test: LabelledRows | None, folds: int) -> str:
    """Which rows the power is measured on."""
    if test is not None and len(test.index(test.other)):
        return "test"
    if not hasattr(rows.classifier, "calibration_index_"):
        return "held-out"
    return "cross-validation" if folds > 1 else "training"


class Detected(NamedTuple):
    """Which rows of the other class are recognised, and rows that are new to a fit.

    Parameters
    ----------
    recognised : ndarray of bool of shape (n_levels, n_other)
    weights : ndarray of shape (n_other,), or None
    fresh : LabelledRows or None
        Rows of both classes that their classifier hasn't been fitted on.
    """

    recognised: BoolArray
    weights: FloatArray | None
    fresh: LabelledRows | None


def detections(
    rows: LabelledRows,
    test: LabelledRows | None,
    threshold: FloatArray,
    alphas: FloatArray,
    folds: int,
    rng: np.random.Generator,
) -> Detected:
    """Which rows of the other class are recognised at each level.

    Parameters
    ----------
    rows, test : LabelledRows
    threshold, alphas : ndarray of shape (n_levels,)
    folds : int
    rng : Generator
    """
    source = power_source(rows, test, folds)
    if source == "cross-validation":
        return _cross_validated(rows, alphas, folds, rng)
    measured = test if source == "test" and test is not None else rows
    scores = rows.classifier.score_samples(measured.rows(rows.other))
    return Detected(
        scores[None] > threshold[:, None],
        measured.weights(rows.other),
        None if source == "training" else measured,
    )


def _cross_validated(
    rows: LabelledRows, alphas: FloatArray, folds: int, rng: np.random.Generator
) -> Detected:
    """Rows of the other class, each scored by a fit that hasn't seen it."""
    other = rows.index(rows.other)
    fold = np.full(len(rows.y), -1)
    fold[other] = rng.permutation(len(other)) % folds
    recognised = np.zeros((len(alphas), len(rows.y)), dtype=bool)
    measured = np.zeros(len(rows.y), dtype=bool)
    fresh = None
    for k in range(min(folds, len(other))):
        index = np.flatnonzero(fold != k)
        refitted = refit(rows.take(index))
        if refitted is None:
            continue
        chosen = thresholds(refitted, alphas)["threshold"]
        left_out = np.flatnonzero(fold == k)
        measured[left_out] = True
        scores = refitted.score_samples(rows.take(left_out).X)
        recognised[:, left_out] = scores[None] > chosen[:, None]
        if fresh is None:
            unseen = np.append(index[refitted.calibration_index_], left_out)
            fresh = replace(rows.take(unseen), classifier=refitted)
    weights = rows.weights(rows.other)
    kept_rows = measured[other]
    return Detected(
        recognised[:, other[kept_rows]],
        None if weights is None else weights[kept_rows],
        fresh,
    )


def refit(rows: LabelledRows, **parameters: Any) -> Any:
    """The same classifier on some of its rows; None where that can't be fitted.

    Parameters
    ----------
    rows : LabelledRows
        With the classifier.
    **parameters : dict
        Of the classifier, to be changed.
    """
    return rows.refitted(
        calibration_size=rows.calibration_share,
        on_infeasible="reject_all",
        **parameters,
    )


def curve(
    rows: LabelledRows,
    test: LabelledRows | None,
    *,
    folds: int,
    confidence: float,
    most: int,
    rng: np.random.Generator,
) -> tuple[dict[str, Any], LabelledRows | None]:
    """The NP-ROC: what is certified at each level, and the power there.

    Beside it rows of both classes that are new to their classifier, where there are
    some.
    """
    classifier = rows.classifier
    alphas = levels_of(classifier)
    data = thresholds(classifier, alphas)
    source = power_source(rows, test, folds)
    measured = rows.sampled(most, rng) if source == "cross-validation" else rows
    found = detections(measured, test, data["threshold"], alphas, folds, rng)
    shares = [
        share_of(events, found.weights, confidence) for events in found.recognised
    ]
    for share, threshold in zip(shares, data["threshold"], strict=True):
        if threshold == np.inf:
            share |= {"estimate": 0.0, "low": 0.0, "high": 0.0}
    described = {
        **data,
        "power": [share["estimate"] for share in shares],
        "power_low": [share["low"] for share in shares],
        "power_high": [share["high"] for share in shares],
        "power_rows": shares[0]["rows"],
        "power_method": shares[0]["method"] + POOLED * (source == "cross-validation"),
        "confidence": confidence,
        "source": source,
        "source_words": SOURCES[source],
    }
    return described, found.fresh


def type_i(
    rows: LabelledRows, test: LabelledRows | None, confidence: float
) -> dict[str, Any]:
    """The error on the controlled class: of test rows, or as certified."""
    certificate = rows.classifier.certificate_
    if test is not None and len(test.index(test.controlled)):
        scores = rows.classifier.score_samples(test.rows(test.controlled))
        share = share_of(
            scores > certificate.threshold, test.weights(test.controlled), confidence
        )
        return {**share, "source": "test", "source_words": SOURCES["test"]}
    return {
        "estimate": certificate.estimated_error,
        "low": 0.0,
        "high": certificate.error_bound,
        "rows": certificate.observed,
        "confidence": 1.0 - certificate.delta,
        "method": "the certificate's bound",
        "source": "calibration",
        "source_words": "calibration rows, which took no part in fitting",
    }


def score_histograms(rows: LabelledRows) -> dict[str, Any] | None:
    """How scores are spread in either class, as complete rows would have them."""
    sample = rows.classifier.calibration_.sample
    samples = {
        "controlled": (sample.values, sample.masses),
        "other": (
            rows.classifier.score_samples(rows.rows(rows.other)),
            rows.weights(rows.other),
        ),
    }
    finite = [values[np.isfinite(values)] for values, _ in samples.values()]
    if not all(len(values) for values in finite):
        return None
    low, high = np.quantile(np.concatenate(finite), [0.002, 0.998])
    if not low < high:
        return None
    fewest = min(map(len, finite))
    n_bins = int(np.clip(2.0 * fewest ** (1.0 / 3.0), *HISTOGRAM_BINS))
    edges = np.linspace(low, high, n_bins + 1)
    result: dict[str, Any] = {"edges": edges}
    for name, (values, weights) in samples.items():
        mass = np.ones(len(values)) if weights is None else weights
        kept = np.isfinite(values)
        counts, _ = np.histogram(values[kept], edges, weights=mass[kept])
        result[name] = counts / max(float(mass.sum()), np.finfo(float).tiny)
    return result
