"""What a loaded model is made of, checked piece by piece, however deep it lies."""

from __future__ import annotations

import inspect
import io
import math
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

from missratio._base.storable import STORABLE
from missratio._files import Cells
from missratio.app.modelfile.archive import SCHEMA, ModelFileError
from missratio.app.modelfile.models import (
    FrameModel,
    GroupedTableModel,
    MulticlassTableModel,
    TableModel,
    TrainingData,
)
from missratio.app.tables import Encoder, TableColumn
from missratio.classifier import (
    Calibration,
    CandidatePower,
    Certificate,
    ClassScores,
    GroupedCertificate,
    GroupedNeymanPearsonClassifier,
    KeptPromise,
    MulticlassCertificate,
    MulticlassNeymanPearsonClassifier,
    NeymanPearsonClassifier,
    OrderedDecision,
    PowerComparison,
    TradeOff,
    UnorderedDecision,
)
from missratio.missingness import Missingness
from missratio.threshold import CalibrationSample, Rule, check_levels

_KINDS = "biufU"
# scikit-learn's, by the names of their classes.
_FINITE = {
    "LogisticRegression": {"coef_", "intercept_"},
    "StandardScaler": {"mean_", "var_", "scale_"},
    "HistGradientBoostingClassifier": {"_baseline_prediction"},
}
MOST_COUNTED = 10_000
# NumPy's own; one of another size would be made as large as it says.
_SEED, _POOL_SIZE = "_redraw_seed", 4


def check_arrays(members: Mapping[str, bytes], *, foreign: bool = False) -> None:
    """Refuse arrays that claim more than their file holds, or hold no plain numbers.

    `foreign` lets through what trusted types of the user's own store otherwise: texts
    of bytes, and records of numbers.
    """
    for name, content in members.items():
        if name == SCHEMA or (foreign and not name.endswith(".npy")):
            continue
        stream = io.BytesIO(content)
        try:
            version = np.lib.format.read_magic(stream)
            read = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[version]
            shape, _, dtype = read(stream)
        # A header is a Python literal, and whatever that can raise is no array.
        except Exception as error:
            reason = f"Its member {name!r} isn't an array: {error}"
            raise ModelFileError(reason) from error
        plain = dtype.kind in _KINDS or dtype == PREDICTOR_RECORD_DTYPE
        plain |= foreign and not dtype.hasobject
        length = dtype.itemsize
        for size in shape:
            length *= size
        if not plain or length != len(content) - stream.tell():
            raise ModelFileError(
                f"Its member {name!r} is an array of {dtype} of shape {shape}, which "
                "no model of missratio has."
            )


def check_methods(model: Any) -> None:
    """Refuse values in the place of methods and properties."""
    for part in _parts(model):
        for name in getattr(part, "__dict__", {}):
            own = inspect.getattr_static(type(part), name, None)
            plain = isinstance(own, cached_property) or not hasattr(own, "__get__")
            require(plain, f"its {name} takes a method's place")


def check_parts(classifier: Any) -> None:
    """Refuse what would crash, hang or mislead whatever uses it.

    Trees that lead nowhere, coefficients that aren't finite numbers, and more things to
    make than any model makes.
    """
    width = classifier.n_features_in_
    for part in _parts(classifier):
        if isinstance(part, TreePredictor):
            _check_tree(part.nodes, width)
        elif isinstance(part, HistGradientBoostingClassifier):
            # With this number scikit-learn checks the rows that it is given.
            known = getattr(part, "n_features_in_", None)
            fitted = known is not None or hasattr(part, "_predictors")
            require(not fitted or known == width, "its trees are for other columns")
        _check_attributes(part)


def require(condition: Any, otherwise: str) -> None:
    """Refuse a model, and say why."""
    if not condition:
        raise ModelFileError(f"It holds no sound model: {otherwise}.")


def _parts(root: Any) -> Iterator[Any]:
    """Everything that an object is made of, each thing once."""
    seen, waiting = set(), [root]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, dict):
            waiting += [*part.keys(), *part.values()]
        elif isinstance(part, list | tuple | set | frozenset):
            waiting += part
        elif isinstance(part, np.ndarray) and part.dtype == object:
            waiting += part.ravel().tolist()
        else:
            waiting += _attributes(part).values()


def _attributes(part: Any) -> dict[str, Any]:
    slots = getattr(type(part), "__slots__", ())
    names = [slots] if isinstance(slots, str) else slots
    found = {name: getattr(part, name) for name in names if hasattr(part, name)}
    return {**found, **getattr(part, "__dict__", {})}


def _check_attributes(part: Any) -> None:
    names = [base.__name__ for base in type(part).__mro__]
    known = [STORABLE[name] for name in names if name in STORABLE]
    finite = set().union(*(_FINITE.get(name, set()) for name in names))
    finite = finite.union(*(stored.finite for stored in known))
    counts = set().union(*(stored.counts for stored in known))
    for name, value in _attributes(part).items():
        if name in finite and value is not None:
            _check_finite(name, value)
        elif name in counts:
            whole = isinstance(value, int | np.integer)
            counted = whole and 0 < value <= MOST_COUNTED
            require(counted, f"its {name} is {value!r}")
        elif name == _SEED:
            size = value.get("pool_size") if isinstance(value, dict) else None
            require(size == _POOL_SIZE, "its seed is none")


def _check_finite(name: str, value: Any) -> None:
    for each in value if isinstance(value, list | tuple) else [value]:
        array = np.asarray(each)
        sound = array.dtype.kind in "fiu" and bool(np.isfinite(array).all())
        require(sound, f"its {name} aren't finite numbers")


def _check_tree(nodes: Any, width: int) -> None:
    """scikit-learn follows a tree's nodes without a look at where they lead."""
    require(
        isinstance(nodes, np.ndarray)
        and nodes.dtype == PREDICTOR_RECORD_DTYPE
        and nodes.ndim == 1
        and len(nodes) > 0,
        "a tree has no nodes",
    )
    places = np.arange(len(nodes))
    inner = nodes["is_leaf"] == 0
    for side in ("left", "right"):
        ahead = nodes[side][inner]
        require(
            (ahead > places[inner]).all() and (ahead < len(nodes)).all(),
            "a tree's branches lead nowhere",
        )
    asked = nodes["feature_idx"][inner]
    require(
        (asked >= 0).all() and (asked < width).all(),
        "a tree asks for columns that don't exist",
    )
    require(not nodes["is_categorical"].any(), "a tree has categories")
    require(np.isfinite(nodes["value"]).all(), "a tree's values aren't finite")


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
    # Unordered classes may share all of δ, their thresholds moved together.
    parts = [classifier.delta / len(classifier.alpha)]
    if classifier.order is None:
        parts.append(classifier.delta)
    require(
        certificate.certified
        and certificate.other_class == wrong
        and certificate.alpha == classifier.alpha[label]
        and certificate.error_bound <= certificate.alpha
        and certificate.delta in parts
        and certificate.delta == classifier.certificate_.certificates[0].delta,
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


FRAMES: dict[type, type] = {
    TableModel: NeymanPearsonClassifier,
    MulticlassTableModel: MulticlassNeymanPearsonClassifier,
    GroupedTableModel: GroupedNeymanPearsonClassifier,
}
"""For each model of a table, the classifier that it has."""


def check_model(model: Any, header: dict[str, Any]) -> None:
    """Refuse a loaded object that isn't a sound model.

    Loading sets attributes without a look at them: a file made up by hand could hold
    anything of the right types.

    Parameters
    ----------
    model : object
    header : dict
        What the file says about it.

    Raises
    ------
    ModelFileError
    """
    try:
        check_methods(model)
        classifier = model
        if isinstance(model, FrameModel):
            classifier = model.classifier
            kind = FRAMES[type(model)]
            require(isinstance(classifier, kind), "its classifier is of another type")
            _check_frame(model)
        if isinstance(classifier, MulticlassNeymanPearsonClassifier):
            check_several(classifier)
        elif isinstance(classifier, GroupedNeymanPearsonClassifier):
            check_grouped(classifier)
        else:
            is_known = isinstance(classifier, NeymanPearsonClassifier)
            require(is_known, "it is no classifier")
            check_two(classifier)
        _check_header(model, header)
    except ModelFileError:
        raise
    except Exception as error:
        raise ModelFileError(f"It holds no sound model: {error}") from error


def header_of(model: Any) -> dict[str, Any]:
    """What can be known of a model without loading it."""
    if not isinstance(model, FrameModel):
        return {"certificate": _facts(plain(model.certificate_.to_dict()))}
    return {
        "certificate": _facts(plain(model.certificate.to_dict())),
        "method": model.method,
        "target": model.target,
        "columns": [
            {"name": column.name, "levels": plain(column.levels)}
            for column in model.encoder.columns
        ],
        "training": {
            "file": model.training.file,
            "sha256": model.training.sha256,
            "rows": plain(model.training.rows),
            "missing": plain(model.training.missing),
        },
    }


def _facts(value: Any) -> Any:
    """A certificate without what is said anew of it, in words that may change."""
    if isinstance(value, dict):
        return {k: _facts(item) for k, item in value.items() if k != "valid_while"}
    return [_facts(item) for item in value] if isinstance(value, list) else value


def _check_header(model: Any, header: dict[str, Any]) -> None:
    expected = header_of(model)
    require(
        header.get("certificate") == expected["certificate"], "its certificates differ"
    )
    for name, value in expected.items():
        require(header.get(name) == value, f"its header has another {name}")


def plain(value: Any) -> Any:
    """Plain data as JSON has it: tuples are lists, and scalars are Python's."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _check_frame(model: FrameModel) -> None:
    encoder = model.encoder
    require(isinstance(encoder, Encoder), "its columns are of another type")
    require(isinstance(encoder.cells, Cells), "its cells are of another type")
    for column in encoder.columns:
        named = isinstance(column, TableColumn) and isinstance(column.name, str)
        require(named, "a column is of another type")
        levels = column.levels
        require(
            levels is None
            or (len(set(levels)) >= 2 and all(isinstance(x, str) for x in levels)),
            f"column {column.name!r} has no levels",
        )
    kinds = [column.levels is None for column in encoder.columns]
    require(kinds == sorted(kinds, reverse=True), "its columns are out of order")
    require(len(set(encoder.names)) == len(encoder.names), "columns are doubled")
    require(
        encoder.width == model.classifier.n_features_in_,
        "it has other columns than its classifier",
    )
    require(isinstance(model.target, str), "its target is unknown")
    require(isinstance(model.method, str), "its method is unknown")
    require(
        model.report is None or isinstance(model.report, str), "its report is no text"
    )
    require(
        isinstance(model.dropped, tuple)
        and all(isinstance(name, str) for name in model.dropped),
        "the columns that it leaves out aren't names",
    )
    _check_training(model)
    _check_comparison(model)
    if isinstance(model, TableModel | GroupedTableModel):
        texts = isinstance(model.rest, tuple) and all(
            isinstance(label, str) for label in model.rest
        )
        require(texts, "the labels that it takes together aren't texts")
    if isinstance(model, GroupedTableModel):
        require(model.group_column in model.dropped, "its column of groups is unknown")
    if isinstance(model, TableModel) and model.covariance is not None:
        size = len(model.classifier.estimator_.coef_) + 1
        require(
            model.covariance.shape == (size, size)
            and bool(np.isfinite(model.covariance).all()),
            "its covariance is of another size",
        )


def _check_comparison(model: FrameModel) -> None:
    """What was compared must be figures, and lead to the method that it has."""
    comparison = model.comparison
    if comparison is None:
        return
    require(
        isinstance(comparison, PowerComparison)
        and all(isinstance(each, CandidatePower) for each in comparison.candidates)
        and comparison.chosen == model.method,
        "its comparison of methods is for another",
    )
    for each in comparison.candidates:
        named = isinstance(each.name, str) and isinstance(each.note, str)
        measured = each.power is None or 0.0 <= each.power <= 1.0
        require(named and measured, "a compared method has no power")


def _check_training(model: FrameModel) -> None:
    """The table that it was fitted on must be one that it can be fitted on."""
    training, columns = model.training, set(model.encoder.names)
    require(isinstance(training, TrainingData), "its training data is unknown")
    require(
        isinstance(training.file, str)
        and isinstance(training.sha256, str)
        and re.fullmatch("[0-9a-f]{64}", training.sha256),
        "its training file is unknown",
    )
    labels = set(model.classifier.classes_.tolist())
    require(
        set(training.rows) == labels and set(training.missing) == labels,
        "its training data has other classes",
    )
    for label in labels:
        rows, missing = training.rows[label], training.missing[label]
        require(type(rows) is int and rows > 0, "its numbers of rows")
        require(set(missing) <= columns, "columns are missing that it doesn't have")
        sound = all(type(n) is int and 0 < n <= rows for n in missing.values())
        require(sound, "more is missing than there is")
    found = model.certificate
    for certificate in (
        (found,) if isinstance(found, Certificate) else found.certificates
    ):
        require(
            certificate.rows <= training.rows[certificate.controlled_class],
            "its certificate is for more rows than there are",
        )
