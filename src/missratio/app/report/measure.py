"""How good a classifier is: errors, power and NP-ROC, scores, weights.

Shares have intervals: Clopper and Pearson's where rows count the same, and Korn and
Graubard's where they are weighted.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.app.report.rows import LabelledRows
from missratio.evaluation import Interval, exact_interval
from missratio.exceptions import WeightConcentrationWarning
from missratio.weights import effective_sample_size, sample_size, warn_if_concentrated

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
SCORE_BINS = (10, 48)
HEAVIEST_SHARE = 0.05
SOURCES = {
    "test": "test rows, which took no part in fitting",
    "cross-validation": "rows left out in turn while the classifier was fitted again",
    "held-out": "rows of the other class, which took no part in fitting",
    "held out": "rows held out of the fit, though thresholds were chosen on them",
    "training": "the rows that it was fitted on, so the figure is too good",
}


def weighted_interval(
    events: BoolArray, weights: FloatArray, confidence: float
) -> tuple[float, Interval]:
    """The weighted share of events (Hájek), and Korn and Graubard's interval of it.

    Clopper and Pearson's, for the number of equally weighted rows whose share would
    have the same variance.
    """
    scaled = weights / weights.sum()
    share = float(scaled[events].sum())
    size = float(effective_sample_size(weights))
    if events.all() or not events.any():
        # Exactly, whatever weights add up to.
        share = float(events.all())
    else:
        variance = float((scaled**2 * (events - share) ** 2).sum())
        # One row may have all the weight there is, as far as numbers go.
        if variance > 0.0:
            size = min(share * (1.0 - share) / variance, float(len(events)))
    return share, exact_interval(min(share, 1.0) * size, size, confidence)


def share_of(events: BoolArray, weights: FloatArray | None, confidence: float) -> Data:
    """A share of rows with its interval; rows of weight zero are left out."""
    kept = events if weights is None else events[weights > 0.0]
    share, interval, method = None, Interval(0.0, 1.0), EXACT
    if weights is not None and len(kept) and np.ptp(weights[weights > 0.0]) > 0.0:
        share, interval = weighted_interval(kept, weights[weights > 0.0], confidence)
        method = WEIGHTED
    elif len(kept):
        share = float(kept.mean())
        interval = exact_interval(int(kept.sum()), len(kept), confidence)
    return {"estimate": share, "low": interval.low, "high": interval.high,
            "rows": len(kept), "confidence": confidence, "method": method}  # fmt: skip


def thresholds(classifier: Any, alphas: FloatArray) -> Data:
    """What is certified at each level; at the classifier's own, its certificate."""
    certificate, calibration = classifier.certificate_, classifier.calibration_
    chosen = calibration.select(alphas.tolist())
    own = int(np.searchsorted(alphas, classifier.alpha))
    none = [c.threshold is None for c in chosen]
    threshold = np.array(
        [np.inf if c.threshold is None else c.threshold for c in chosen]
    )
    bound = np.where(none, 0.0, [c.error_bound for c in chosen])
    rules = [c.rule for c in chosen]
    threshold[own], bound[own] = certificate.threshold, certificate.error_bound
    rules[own] = certificate.rule
    # Nothing scores above infinity, where there is no row to score either.
    errors = [
        0.0 if t == np.inf else calibration.sample.estimated_error(float(t))
        for t in threshold
    ]
    return {"alpha": alphas, "threshold": threshold, "error_bound": bound,
            "estimated_error": errors, "rule": rules, "own": own}  # fmt: skip


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
    fold = np.full(len(rows.y), -1)
    for label in labels:
        index = rows.index(label)
        fold[index] = rng.permutation(len(index)) % max(folds, 1)
    for k in range(folds if folds > 1 else 0):
        index, left_out = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        refitted = rows.take(index).refitted(**parameters) if len(left_out) else None
        if refitted is not None:
            yield refitted, index, left_out


def curve(
    rows: LabelledRows,
    few: LabelledRows,
    test: LabelledRows | None,
    folds: int,
    confidence: float,
    rng: np.random.Generator,
) -> tuple[Data, LabelledRows | None]:
    """The NP-ROC: what is certified at each level, and the power there.

    Beside it rows of both classes that are new to their classifier, where there are
    some.
    """
    classifier, measured = rows.classifier, rows
    alphas = np.unique([*LEVELS, classifier.alpha])
    data = thresholds(classifier, alphas)
    source = "cross-validation" if folds > 1 else "training"
    if test is not None and len(test.index(test.other)):
        source, measured = "test", test
    elif not hasattr(classifier, "calibration_index_"):
        source = "held-out"
    fresh = None if source == "training" else measured
    if source == "cross-validation":
        recognised, weights, fresh = _left_out(few, alphas, folds, rng)
    else:
        scores = classifier.score_samples(measured.rows(rows.other))
        recognised = scores[None] > data["threshold"][:, None]
        weights = measured.weights(rows.other)
    shares = [share_of(each, weights, confidence) for each in recognised]
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
    }
    return described, fresh


def _left_out(
    rows: LabelledRows, alphas: FloatArray, folds: int, rng: np.random.Generator
) -> tuple[BoolArray, FloatArray | None, LabelledRows | None]:
    """Which rows of the other class fits recognise that haven't seen them, by level.

    With their weights, and rows of both classes that the first of these fits is new to.
    """
    recognised = np.zeros((len(alphas), len(rows.y)), dtype=bool)
    measured, fresh = np.zeros(len(rows.y), dtype=bool), None
    share = {"calibration_size": rows.calibration_share, "on_infeasible": "reject_all"}
    for refitted, index, left_out in refits(rows, folds, [rows.other], rng, **share):
        scores = refitted.score_samples(rows.take(left_out).X)
        limits = thresholds(refitted, alphas)["threshold"]
        recognised[:, left_out] = scores[None] > limits[:, None]
        measured[left_out] = True
        if fresh is None:
            unseen = np.append(index[refitted.calibration_index_], left_out)
            fresh = replace(rows.take(unseen), classifier=refitted)
    other = rows.index(rows.other)
    weights, kept = rows.weights(rows.other), measured[other]
    return (
        recognised[:, other[kept]], None if weights is None else weights[kept], fresh
    )  # fmt: skip


def type_i(rows: LabelledRows, test: LabelledRows | None, confidence: float) -> Data:
    """The error on the controlled class: of test rows, or as certified."""
    certificate = rows.classifier.certificate_
    if test is not None and len(test.index(test.controlled)):
        scores = rows.classifier.score_samples(test.rows(test.controlled))
        above: BoolArray = scores > certificate.threshold
        share = share_of(above, test.weights(test.controlled), confidence)
        return {**share, "source": "test"}
    return {
        "estimate": certificate.estimated_error,
        "low": 0.0,
        "high": certificate.error_bound,
        "rows": certificate.observed,
        "confidence": 1.0 - certificate.delta,
        "method": "the certificate's bound",
        "source": "calibration",
    }


def score_histograms(rows: LabelledRows) -> Data | None:
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
    n_bins = int(np.clip(2.0 * fewest ** (1.0 / 3.0), *SCORE_BINS))
    edges = np.linspace(low, high, n_bins + 1)
    result: Data = {"edges": edges}
    for name, (values, weights) in samples.items():
        mass = np.ones(len(values)) if weights is None else weights
        kept = np.isfinite(values)
        counts, _ = np.histogram(values[kept], edges, weights=mass[kept])
        result[name] = counts / max(float(mass.sum()), np.finfo(float).tiny)
    return result


@dataclass(frozen=True, eq=False)
class Confusion:
    """Rows of known classes, and the labels that they are given."""

    rows: LabelledRows
    predicted: Any
    source: str

    def shares(self) -> FloatArray:
        """The share of each class that gets each label; NaN if no row was measured."""
        labels = self.rows.labels
        found = np.full((len(labels), len(labels)), np.nan)
        for place, label in enumerate(labels):
            weights, called = self._class(label)
            total = weights.sum()
            for column, other in enumerate(labels):
                if total > 0.0:
                    found[place, column] = weights[called == other].sum() / total
        return found

    def share(self, label: Any, called: list[Any], confidence: float) -> Data:
        """The share of a class that gets one of some labels, with its interval."""
        weights, predicted = self._class(label)
        return share_of(np.isin(predicted, called), weights, confidence)

    def of_group(self, group: Any) -> Confusion:
        """The rows of one group; all rows for None."""
        if group is None:
            return self
        index = np.flatnonzero(self.rows.groups == group)
        return Confusion(self.rows.take(index), self.predicted[index], self.source)

    def _class(self, label: Any) -> tuple[FloatArray, Any]:
        return self.rows.masses(label), self.predicted[self.rows.index(label)]


def confusion(
    rows: LabelledRows, test: LabelledRows | None, folds: int, rng: np.random.Generator
) -> Confusion:
    """Classify rows that the fit didn't see: test rows, or rows left out in turn.

    Where no refit is certified, or folds are 0, rows that were held out of the fit.
    """
    classifier = rows.classifier
    if test is not None:
        return Confusion(test, test.predicted(classifier), "test")
    predicted = np.empty(len(rows.y), dtype=classifier.classes_.dtype)
    measured = np.zeros(len(rows.y), dtype=bool)
    # A group that can't be certified leaves the others theirs.
    more = {} if rows.groups is None else {"on_infeasible": "reject_all"}
    for refitted, _, left_out in refits(rows, folds, rows.labels, rng, **more):
        kept = left_out[_comparable(rows.take(left_out), refitted)]
        predicted[kept] = rows.take(kept).predicted(refitted)
        measured[kept] = True
    kept = np.flatnonzero(measured)
    if all((rows.y[kept] == label).any() for label in rows.labels):
        return Confusion(rows.take(kept), predicted[kept], "cross-validation")
    few = rows
    if rows.groups is None:
        held = [classifier.calibration_index_, classifier.choice_index_]
        few = rows.take(np.sort(np.concatenate(held)))
    return Confusion(few, few.predicted(classifier), "held out")


def _comparable(rows: LabelledRows, refitted: Any) -> BoolArray:
    """Rows that a refit tells of: it may lack a threshold for a small group."""
    if rows.groups is None:
        return np.ones(len(rows.y), dtype=bool)
    before, after = (
        np.array([k.get(g, k.get(None, np.inf)) for g in rows.groups.tolist()])
        for k in (rows.classifier.thresholds_, refitted.thresholds_)
    )
    return np.asarray(np.isinf(before) | np.isfinite(after))


def unscored(few: LabelledRows) -> list[Data]:
    """The share of each class's rows that get a class without a score.

    What was looked up is left out, as it will be missing again.
    """
    found = few.as_found
    result = []
    for label in found.labels:
        X = found.rows(label)
        lost = np.zeros(0, dtype=bool)
        if X.shape[0] and hasattr(found.classifier, "class_scores"):
            lost = np.isnan(found.classifier.class_scores(X)).any(axis=1)
        elif X.shape[0]:
            scores = found.classifier.score_samples(X)
            lost = ~np.isfinite(scores) & (scores != np.inf)
        share = float(lost.mean()) if len(lost) else 0.0
        result.append({"label": label, "share": share, "rows": len(lost)})
    return result


def weights_by_class(rows: LabelledRows) -> list[Data]:
    """How each class's rows are weighted where complete rows are meant."""
    found = []
    for label in rows.labels:
        weights = rows.masses(label)
        positive = weights[weights > 0.0]
        size = sample_size(weights)
        few = max(1, int(HEAVIEST_SHARE * len(positive)))
        heaviest = np.sort(positive)[::-1][:few].sum() if len(positive) else 0.0
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", WeightConcentrationWarning)
            warn_if_concentrated(weights, f"Class {label}")
        found.append(
            {
                "label": label,
                "rows": size.rows,
                "observed": size.observed,
                "kish": size.kish,
                "largest": positive.max(initial=0.0),
                "heaviest_share": heaviest / max(positive.sum(), np.finfo(float).tiny),
                "concentrated": str(caught[0].message) if caught else None,
                "weighted": bool(len(positive) and np.ptp(positive) > 0.0),
            }
        )
    return found
