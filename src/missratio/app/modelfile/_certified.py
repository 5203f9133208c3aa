"""Whether a loaded classifier is what its certificate says."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from missratio.app.modelfile._parts import check_parts, require
from missratio.classifier import (
    Calibration,
    Certificate,
    ClassScores,
    GroupedCertificate,
    KeptPromise,
    MulticlassCertificate,
    OrderedDecision,
    TradeOff,
    UnorderedDecision,
)
from missratio.missingness import Missingness
from missratio.threshold import CalibrationSample, Rule, check_levels

_CERTIFICATE = {
    "alpha": float, "delta": float, "rule": str, "deployment": str, "rows": int,
    "observed": int, "effective_rows": float, "threshold": float,
    "estimated_error": float, "error_bound": float, "certified": bool,
    "assumptions": tuple, "missingness_delta": float,
}  # fmt: skip

# The exact test of look-ups has tables of as many rows as may lie above a threshold.
MOST_LOOKED_UP = 10**6


def check_two(classifier: Any) -> None:
    """Refuse a classifier of two classes that isn't sound."""
    certificate, classes = classifier.certificate_, classifier.classes_
    _check_certificate(certificate, classifier)
    require(isinstance(classes, np.ndarray) and classes.shape == (2,), "its classes")
    require(
        certificate.controlled_class in classes.tolist(),
        "its certificate is for another class",
    )
    same = all(
        getattr(classifier, name) == getattr(certificate, name)
        for name in ("alpha", "delta")
    )
    require(
        same and classifier.threshold_ == certificate.threshold,
        "its certificate is for another threshold",
    )
    require(
        certificate.certified or certificate.threshold == math.inf,
        "it has a threshold without a certificate",
    )
    chosen = _chosen(certificate, classifier.calibration_)
    require(
        chosen is None or chosen == certificate.threshold,
        "its certificate is for another threshold",
    )
    _check_missingness(classifier, [classifier.calibration_])
    check_parts(classifier)
    scores = _three_rows(classifier, classifier.score_samples)
    require(scores.shape == (3,) and not np.isnan(scores).any(), "it gives no scores")


def check_several(classifier: Any) -> None:
    """Refuse a classifier of several classes that isn't sound."""
    found, classes = classifier.certificate_, classifier.classes_
    require(isinstance(found, MulticlassCertificate), "it has no certificate")
    require(
        isinstance(classes, np.ndarray)
        and classes.ndim == 1
        and len(set(classes.tolist())) == len(classes) >= 2,
        "its classes",
    )
    labels = classes.tolist()
    require(
        classifier.delta == found.delta
        and _as_tuple(classifier.order) == found.order
        and found.fallback in labels,
        "its certificate is for another classifier",
    )
    bounded = [each.controlled_class for each in found.certificates]
    require(
        isinstance(found.certificates, tuple)
        and isinstance(classifier.alpha, dict)
        and set(bounded) == set(classifier.alpha)
        and len(bounded) == len(classifier.alpha) > 0
        and set(bounded) <= set(labels),
        "its certificate is for other classes",
    )
    _check_decision(classifier, labels, bounded)
    require(
        isinstance(classifier.calibrations_, dict)
        and set(classifier.calibrations_) == set(bounded),
        "its calibrations are for other classes",
    )
    for certificate in found.certificates:
        _check_promise(classifier, certificate, labels)
    _check_trade_offs(classifier, labels)
    _check_caps(classifier)
    _check_missingness(classifier, list(classifier.calibrations_.values()))
    check_parts(classifier)
    _check_class_scores(classifier, len(labels))


def check_grouped(classifier: Any) -> None:
    """Refuse a classifier with promises to groups that isn't sound."""
    found, classes = classifier.certificate_, classifier.classes_
    require(isinstance(found, GroupedCertificate), "it has no certificate")
    require(isinstance(classes, np.ndarray) and classes.shape == (2,), "its classes")
    require(
        isinstance(found.promises, tuple)
        and isinstance(found.certificates, tuple)
        and isinstance(classifier.calibrations_, tuple)
        and isinstance(classifier.groups_, list),
        "its promises are of another type",
    )
    require(
        classifier.controlled_class in classes.tolist()
        and classifier.delta == found.delta
        and (classifier.threshold == "shared") == found.shared
        and found.prevalence == classifier.prevalence,
        "its certificate is for another classifier",
    )
    errors = [each for each in found.promises if each.kind == "error"]
    named = [each.group for each in errors if each.group is not None]
    require(
        all(isinstance(each, KeptPromise) for each in found.promises)
        and 0 < len(errors) == len(found.certificates) == len(classifier.calibrations_)
        and named == classifier.groups_
        and len(set(named)) == len(named),
        "its promises are for other groups",
    )
    for promise, certificate, calibration in zip(
        errors, found.certificates, classifier.calibrations_, strict=True
    ):
        _check_group(classifier, promise, certificate, calibration)
    _check_missingness(classifier, list(classifier.calibrations_))
    check_parts(classifier)
    scores = _three_rows(classifier, classifier.score_samples)
    require(scores.shape == (3,) and not np.isnan(scores).any(), "it gives no scores")


def _check_group(
    classifier: Any, promise: KeptPromise, certificate: Certificate, calibration: Any
) -> None:
    """One group's promise: its level, its threshold and its rows."""
    _check_certificate(certificate, classifier)
    levels, group = classifier.group_alpha or {}, promise.group
    part = classifier.delta / len(classifier.certificate_.promises)
    precise = classifier.precision is not None and group is None
    level = levels.get(group, classifier.alpha)
    require(
        certificate.controlled_class == classifier.controlled_class
        and promise.level == level
        and (certificate.alpha <= level if precise else certificate.alpha == level)
        and promise.delta == certificate.delta == part
        and (promise.rows, promise.bound)
        == (certificate.rows, certificate.error_bound if certificate.certified else 0.0)
        and certificate.error_bound <= 1.0,
        "its certificate is for another promise",
    )
    chosen = _chosen(certificate, calibration)
    least = certificate.threshold if certificate.certified else math.inf
    kept = least <= promise.threshold if classifier.threshold == "shared" else (
        least == promise.threshold
    )  # fmt: skip
    require(
        kept
        and not math.isnan(promise.threshold)
        and (chosen is None or not certificate.certified or chosen == least),
        "its certificate is for another threshold",
    )
    cap = None if classifier.cap_ is None else classifier.cap_.cap
    require(calibration.trust.cap == cap, "its caps are for other weights")


def _check_decision(classifier: Any, labels: list[Any], bounded: list[Any]) -> None:
    """The numbers that make labels of scores, in the certificate's order."""
    decision, places = classifier.decision_, range(len(labels))
    ordered = classifier.order is not None
    require(
        isinstance(decision, OrderedDecision if ordered else UnorderedDecision),
        "its decision is of another type",
    )
    if isinstance(decision, OrderedDecision):
        sound = sorted(decision.order) == list(places) and tuple(
            labels[place] for place in decision.order
        ) == _as_tuple(classifier.order)
        require(sound, "its decision has another order")
    else:
        require(_finite(decision.offsets, len(labels)), "its offsets aren't numbers")
    require(
        all(type(place) is int and place in places for place in decision.bounded)
        and [labels[place] for place in decision.bounded] == bounded
        and decision.fallback in places
        and labels[decision.fallback] == classifier.certificate_.fallback,
        "its decision is for other classes",
    )
    limits = decision.thresholds
    require(
        isinstance(limits, np.ndarray)
        and limits.dtype == np.float64
        and limits.shape == (len(labels),)
        and bool(np.isfinite(limits[list(decision.bounded)]).all()),
        "its thresholds aren't numbers",
    )


def _check_promise(
    classifier: Any, certificate: Certificate, labels: list[Any]
) -> None:
    """One class's certificate: by its level, its threshold and its rows."""
    _check_certificate(certificate, classifier)
    label = certificate.controlled_class
    wrong = tuple(other for other in labels if other != label)
    if classifier.order is not None:
        order = list(classifier.order)
        wrong = tuple(order[order.index(label) + 1 :])
    place = labels.index(label)
    require(
        certificate.certified
        and certificate.other_class == wrong
        and certificate.alpha == classifier.alpha[label]
        and certificate.error_bound <= certificate.alpha
        and certificate.delta == classifier.delta / len(classifier.alpha),
        "its certificate is for another promise",
    )
    # A class may be certified at less than its level, by a larger threshold.
    chosen = _chosen(certificate, classifier.calibrations_[label])
    require(
        chosen is not None
        and chosen <= certificate.threshold
        and certificate.threshold == classifier.decision_.thresholds[place],
        "its certificate is for another threshold",
    )


def _check_trade_offs(classifier: Any, labels: list[Any]) -> None:
    for trade in classifier.trade_offs_:
        require(isinstance(trade, TradeOff), "a trade-off is of another type")
        shape = (len(trade.errors), 2)
        require(
            set(trade.labels) <= set(labels)
            and all(_finite(x, *shape) for x in (trade.errors, trade.certifiable)),
            "its trade-offs aren't numbers",
        )


def _check_caps(classifier: Any) -> None:
    """A cap must be the one that its class was calibrated with."""
    caps = classifier.caps_
    require(isinstance(caps, dict), "its caps are of another type")
    for label, calibration in classifier.calibrations_.items():
        cap = caps[label].cap if label in caps else None
        require(calibration.trust.cap == cap, "its caps are for other weights")
        model = caps[label].model if label in caps else calibration.trust.model
        same = repr(model) == repr(calibration.trust.model)
        require(same, "its caps are for other weights")
    require(
        set(caps) <= set(classifier.calibrations_), "its caps are for other classes"
    )


def _check_class_scores(classifier: Any, n_classes: int) -> None:
    """Score three rows: coefficients that don't fit together show here."""
    known = classifier.scores_
    places = range(n_classes)
    require(isinstance(known, ClassScores), "it has no scores")
    n_fitted = n_classes - 1 if known.classes else 1
    require(
        known.n_classes == n_classes
        and known.reference in places
        and len(known.estimators) == n_fitted
        and (not known.classes or {*known.classes, known.reference} == set(places)),
        "its scores are for other classes",
    )
    scores = _three_rows(classifier, classifier.class_scores)
    missing = np.isnan(scores)
    # A row that goes missing too often for a certified score has none at all.
    whole = (missing.all(axis=1) | ~missing.any(axis=1)).all()
    capped = bool(classifier.caps_)
    require(
        scores.shape == (3, n_classes) and whole and (capped or not missing.any()),
        "it gives no scores",
    )


def _check_certificate(certificate: Any, classifier: Any) -> None:
    require(isinstance(certificate, Certificate), "it has no certificate")
    for name, kind in _CERTIFICATE.items():
        value = getattr(certificate, name)
        sound = isinstance(value, kind) or (kind is float and isinstance(value, int))
        require(sound, f"its certificate's {name} is {value!r}")
    check_levels(certificate.alpha, certificate.delta)
    require(not math.isnan(certificate.threshold), "its threshold is NaN")
    require(
        certificate.deployment == classifier.deployment,
        "its certificate is for another threshold",
    )


def _chosen(certificate: Certificate, calibration: Any) -> float | None:
    """Make its samples once more, and choose the certificate's threshold once more.

    None where no row was observed.
    """
    require(isinstance(calibration, Calibration), "it has no calibration")
    require(isinstance(calibration.others, tuple), "its calibration rows")
    for each in (calibration, *calibration.others):
        require(isinstance(each, Calibration), "it has no calibration")
        require(isinstance(each.rule, Rule), "its rule is of another type")
        training = getattr(each.rule, "training", None)
        for sample in (each.sample, training):
            if sample is not None:
                require(isinstance(sample, CalibrationSample), "its calibration rows")
                sample.check()
    sample = calibration.sample
    require(
        (sample.n_rows, sample.n_known) == (certificate.rows, certificate.observed),
        "its certificate is for other rows",
    )
    if not sample.n_observed:
        return None
    require(
        sample.lookups is None or certificate.alpha * sample.n_rows <= MOST_LOOKED_UP,
        "its look-ups are of more rows than can be tested",
    )
    chosen = calibration.select([certificate.alpha])[0].threshold
    return math.inf if chosen is None else chosen


def _check_missingness(classifier: Any, calibrations: list[Calibration]) -> None:
    models = list((classifier.missingness or {}).values())
    for calibration in calibrations:
        trust = calibration.trust
        models += [trust.model, trust.point]
        for value in (trust.delta, trust.cap, trust.odds_factor):
            require(value is None or isinstance(value, int | float), "its weights")
    for model in models:
        if model is None:
            continue
        require(isinstance(model, Missingness), "its missingness is of another type")
        # Makes it once more, with all the checks of a new one.
        replace(model)


def _three_rows(classifier: Any, score: Any) -> Any:
    """Scores of three rows: coefficients that don't fit together show here."""
    width = classifier.n_features_in_
    require(isinstance(width, int) and 0 < width <= 10**6, "its number of columns")
    rows = np.stack([np.zeros(width), np.ones(width), -np.ones(width)])
    with warnings.catch_warnings():
        # A classifier that was fitted to a dataframe misses its names here.
        warnings.simplefilter("ignore", UserWarning)
        return score(rows)


def _as_tuple(order: Any) -> tuple[Any, ...] | None:
    return None if order is None else tuple(order)


def _finite(values: Any, *shape: int) -> bool:
    return (
        isinstance(values, np.ndarray)
        and values.dtype == np.float64
        and values.shape == shape
        and bool(np.isfinite(values).all())
    )
