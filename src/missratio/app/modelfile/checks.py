"""What a loaded model has to be: sound in every part, and certified by its own rows.

Loading sets attributes without a look at them: a file made up by hand could hold
anything of the right types.
"""

from __future__ import annotations

import inspect
import math
import types
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache, cached_property
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

from missratio._base.storable import STORABLE
from missratio.app.modelfile.models import (
    GROUPS,
    SEVERAL_CLASSES,
    TWO_CLASSES,
    TableModel,
    certificates_of,
    kind_of,
)
from missratio.classifier import Calibration, Certificate, ClassBounds
from missratio.missingness import Missingness
from missratio.threshold import CalibrationSample, check_levels


class ModelFileError(ValueError):
    """A model that can't be saved, or a file that can't be loaded, and why."""


# scikit-learn's attributes that must be finite, by the names of their classes.
_FINITE = {
    "LogisticRegression": {"coef_", "intercept_"},
    "StandardScaler": {"mean_", "var_", "scale_"},
    "HistGradientBoostingClassifier": {"_baseline_prediction"},
}
NUMBERS: dict[Any, Any] = {int: (int, np.integer), float: (int, float, np.number)}
# What a header says of the file, and not of the model.
OF_THE_FILE = {"format", "versions", "content_sha256"}
MOST_COUNTED = 10_000
MOST_COLUMNS = 10**6
# The exact test of look-ups has tables of as many rows as may lie above a threshold.
MOST_LOOKED_UP = 10**6
# NumPy's own; one of another size would be made as large as it says.
_SEED, _POOL_SIZE = "_redraw_seed", 4


def check_model(model: Any, header: dict[str, Any]) -> None:
    """Refuse a loaded object that isn't a sound model.

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
        classifier = model.classifier if isinstance(model, TableModel) else model
        _check_parts(model, getattr(classifier, "n_features_in_", None))
        if isinstance(model, TableModel):
            _check_table(model)
        if kind_of(classifier) is not None:
            _check_promises(classifier)
        _check_scores(classifier)
        expected = header_of(model)
        for name, value in expected.items():
            require(header.get(name) == value, f"its header has another {name}")
        others = header.keys() - expected.keys() - OF_THE_FILE
        require(not others, "its header says more than what a model is")
    except ModelFileError:
        raise
    except Exception as error:
        raise ModelFileError(f"It holds no sound model: {error}") from error


def require(condition: Any, otherwise: str) -> None:
    """Refuse a model, and say why."""
    if not condition:
        raise ModelFileError(f"It holds no sound model: {otherwise}.")


def header_of(model: Any) -> dict[str, Any]:
    """What can be known of a model without loading it."""
    classifier = model.classifier if isinstance(model, TableModel) else model
    header: dict[str, Any] = {"type": type(model).__name__}
    if hasattr(classifier, "certificate_"):
        header["certificate"] = _facts(plain(classifier.certificate_.to_dict()))
    if not isinstance(model, TableModel):
        return header
    return {
        **header,
        "method": model.method,
        "target": model.target,
        "columns": [
            {"name": column.name, "levels": plain(column.levels)}
            for column in model.encoder.columns
        ],
        "training": plain(vars(model.training)),
    }


def _facts(value: Any) -> Any:
    """A certificate without what is said anew of it, in words that may change."""
    if isinstance(value, dict):
        return {k: _facts(item) for k, item in value.items() if k != "valid_while"}
    return [_facts(item) for item in value] if isinstance(value, list) else value


def plain(value: Any, digits: int | None = None) -> Any:
    """Plain data as JSON has it: tuples are lists, and scalars are Python's.

    With so many digits of numbers, None for those that aren't finite, and other things
    as texts of one line, if `digits` is given.
    """
    if isinstance(value, dict):
        return {str(name): plain(item, digits) for name, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item, digits) for item in value]
    if digits is None or value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return float(f"{value:.{digits}g}") if math.isfinite(value) else None
    # A line's end within a name would end a line of a chart's program.
    return " ".join(str(value).splitlines())


# Every part, however deep it lies ----------------------------------------------------


def _check_parts(model: Any, width: Any) -> None:
    """Refuse what would crash, hang or mislead whatever uses it.

    Values in the place of methods, fields of other types than a class says, numbers
    that aren't finite, more things to make than any model makes, trees that lead
    nowhere, and what a class itself refuses.
    """
    sound = width is None or (type(width) is int and 0 < width <= MOST_COLUMNS)
    require(sound, "its number of columns")
    for part in _parts(model):
        if isinstance(part, str):
            # Half a character, which a schema may spell, has no encoding.
            part.encode()
        kind: Any = type(part)
        attributes, cls = _attributes(part), kind.__name__
        finite, counts, hints, methods = _rules(kind)
        require(hints.keys() <= attributes.keys(), f"its {cls} lacks a field")
        for name, value in attributes.items():
            require(name not in methods, f"its {name} takes a method's place")
            if name in hints:
                other = f"its {cls}'s {name} is of another type"
                require(fits(value, hints[name]), other)
            if name in finite and value is not None:
                for each in value if isinstance(value, list | tuple) else [value]:
                    array = np.asarray(each)
                    sound = array.dtype.kind in "fiu" and np.isfinite(array).all()
                    require(sound, f"its {name} aren't finite numbers")
            elif name in counts:
                whole = isinstance(value, int | np.integer)
                require(whole and 0 < value <= MOST_COUNTED, f"its {name} is {value!r}")
            elif name == _SEED:
                size = value.get("pool_size") if isinstance(value, dict) else None
                require(size == _POOL_SIZE, "its seed is none")
        if isinstance(part, TreePredictor):
            _check_tree(part.nodes, width or 0)
        elif isinstance(part, HistGradientBoostingClassifier):
            # With this number scikit-learn checks the rows that it is given.
            known = attributes.get("n_features_in_")
            fitted = known is not None or "_predictors" in attributes
            require(not fitted or known == width, "its trees are for other columns")
        elif isinstance(part, Missingness) and is_dataclass(part):
            # Makes it once more, with all the checks of a new one.
            replace(part)
        elif isinstance(part, CalibrationSample):
            part.check()


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


@cache
def _rules(cls: Any) -> tuple[set[str], set[str], dict[str, Any], set[str]]:
    """Attributes of a class that are finite, that count, its fields and methods."""
    names = [base.__name__ for base in cls.__mro__]
    known = [STORABLE[name] for name in names if name in STORABLE]
    finite = [*(s.finite for s in known), *(_FINITE.get(name, ()) for name in names)]
    hints = get_type_hints(cls) if known and is_dataclass(cls) else {}
    hints = {field.name: hints[field.name] for field in fields(cls)} if hints else {}
    plain = (cached_property, types.MemberDescriptorType)
    static = {name: inspect.getattr_static(cls, name, None) for name in dir(cls)}
    methods = {
        name
        for name, value in static.items()
        if hasattr(value, "__get__") and not isinstance(value, plain)
    }
    counts = set().union(*(stored.counts for stored in known))
    return set().union(*finite), counts, hints, methods


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is what an annotation says, as far as annotations can be told.

    What is made of protocols, such as NumPy's ArrayLike, is left to the class itself.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, each) for each in arguments)
    if origin is tuple:
        if arguments[1:] == (...,) and isinstance(value, tuple):
            arguments = arguments[:1] * len(value)
        sound = isinstance(value, tuple) and len(value) == len(arguments)
        return sound and all(map(fits, value, arguments))
    if origin is np.ndarray:
        scalar = get_args(arguments[1])[0]
        kind = scalar if isinstance(scalar, type) else np.generic
        return isinstance(value, np.ndarray) and np.issubdtype(value.dtype, kind)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, origin) and all(
            fits(k, arguments[0]) and fits(x, arguments[1]) for k, x in value.items()
        )
    if hint in NUMBERS:
        return isinstance(value, NUMBERS[hint]) and not isinstance(value, bool)
    if hint is Any or getattr(hint, "_is_protocol", False):
        return True
    return not isinstance(hint, type) or isinstance(value, hint)


def _check_tree(nodes: Any, width: int) -> None:
    """scikit-learn follows a tree's nodes without a look at where they lead."""
    require(
        isinstance(nodes, np.ndarray)
        and nodes.dtype == PREDICTOR_RECORD_DTYPE
        and nodes.ndim == 1
        and len(nodes) > 0,
        "a tree has no nodes",
    )
    inner = nodes[nodes["is_leaf"] == 0]
    places = np.flatnonzero(nodes["is_leaf"] == 0)
    for side in ("left", "right"):
        ahead = (inner[side] > places) & (inner[side] < len(nodes))
        require(ahead.all(), "a tree's branches lead nowhere")
    asked = inner["feature_idx"]
    there = (asked >= 0) & (asked < width)
    require(there.all(), "a tree asks for columns that don't exist")
    require(
        not nodes["is_categorical"].any(),
        "a tree splits by categories; encode them as numbers before it",
    )
    require(np.isfinite(nodes["value"]).all(), "a tree's values aren't finite")


# What the parts say of each other ----------------------------------------------------


def _check_table(model: TableModel) -> None:
    """Refuse columns that the classifier can't be used with."""
    classifier, encoder = model.classifier, model.encoder
    levels = [column.levels for column in encoder.columns]
    kinds = [each is not None for each in levels]
    sound = {
        "columns": len(set(encoder.names)) == len(encoder.names)
        and kinds == sorted(kinds)
        and all(each is None or len(set(each)) > 1 for each in levels)
        and encoder.width == classifier.n_features_in_
        and model.training.ranges.shape in ((0, 2), (encoder.n_numeric, 2)),
        "classes": set(classifier.classes_.tolist()) == set(model.training.rows),
        "column of groups": (model.kind == GROUPS) == (model.group_column is not None)
        and model.group_column in (None, *model.dropped),
    }
    for what, holds in sound.items():
        require(holds, f"its {what} can't be those of its classifier")


def recertified(
    certificate: Certificate, calibration: Calibration, *, moved: bool = False
) -> Certificate:
    """The certificate once more, from the rows that it was calibrated with.

    `moved` says that its threshold may be larger than the one chosen at its level.
    """
    sample, level = calibration.sample, certificate.alpha
    check_levels(level, certificate.delta)
    require(
        sample.lookups is None or level * sample.n_rows <= MOST_LOOKED_UP,
        "its look-ups are of more rows than can be tested",
    )
    again = replace(
        certificate, rows=sample.n_rows, observed=sample.n_known,
        effective_rows=sample.effective_rows, threshold=math.inf, certified=False,
        estimated_error=0.0, error_bound=0.0,
    )  # fmt: skip
    chosen = calibration.select([level])[0] if sample.n_observed else None
    if chosen is None or chosen.threshold is None:
        return again
    threshold, bound, rule = chosen.threshold, chosen.error_bound, chosen.rule
    if moved and threshold <= certificate.threshold < math.inf:
        threshold, rule = certificate.threshold, certificate.rule
        bound = min(certificate.error_bound, level)
    error = sample.estimated_error(threshold)
    return replace(
        again, threshold=threshold, certified=True, error_bound=bound,
        estimated_error=error, rule=rule,
    )  # fmt: skip


def _check_promises(classifier: Any) -> None:
    """What is stored must be what parameters and calibration rows make of it."""
    kind, classes = kind_of(classifier), classifier.classes_
    require(type(classifier.n_features_in_) is int, "its number of columns")
    several, labels = kind == SEVERAL_CLASSES, classes.tolist()
    require(
        isinstance(classes, np.ndarray)
        and classes.ndim == 1
        and len(set(labels)) == len(labels) > 1
        and (several or len(labels) == 2),
        "its classes",
    )
    models: Any = classifier.missingness or {}
    models = models.values() if isinstance(models, dict) else [models]
    sound = all(each is None or isinstance(each, Missingness) for each in models)
    require(sound, "its missingness is of another type")
    every = certificates_of(classifier)
    known: Any = getattr(classifier, "calibrations_", None)
    calibrations = list(known.values()) if isinstance(known, dict) else known
    calibrations = calibrations or [classifier.calibration_]
    # 1. What was asked for: classes, levels and δ, and what predictions go by.
    delta, groups = classifier.delta, [None]
    expected: dict[str, Any] = {}
    caps: Any = None
    stored: Any = None
    if several:
        order = None if classifier.order is None else tuple(classifier.order)
        bounds = ClassBounds(classifier.alpha, delta, order, labels)
        bounds.check()
        decision: Any = bounds.undecided()
        bounded = [labels[place] for place in decision.bounded]
        # All of δ, where thresholds move together.
        part = every[0].delta if every[0].delta == bounds.most else bounds.part
        asked = [(k, bounds.wrong(k), bounds.alpha[k], part) for k in bounded]
        expected["certificate_"] = {"order": order, "fallback": bounds.fallback}
        thresholds = decision.thresholds.copy()
        thresholds[list(decision.bounded)] = [each.threshold for each in every]
        offsets = getattr(classifier.decision_, "offsets", np.zeros(len(labels)))
        require(
            offsets.shape == classes.shape
            and np.isfinite(offsets).all()
            and list(known) == bounded,
            "its calibrations are of other classes",
        )
        more = {"offsets": offsets} if hasattr(decision, "offsets") else {}
        expected["decision_"] = replace(decision, thresholds=thresholds, **more)
        trusted = {k: calibration.trust for k, calibration in known.items()}
        caps, stored = (
            {
                k: (t.cap, t.delta, t.odds_factor, repr(t.model))
                for k, t in every_trust.items()
                if t.cap
            }
            for every_trust in (trusted, classifier.caps_)
        )
    else:
        controlled = classifier.controlled_class
        controlled = labels[0] if controlled is None else controlled
        require(controlled in labels, "its controlled class is none of its classes")
        (other,) = (label for label in labels if label != controlled)
        require(getattr(classifier, "_sign", 1.0) in (1.0, -1.0), "its sign")
        if kind == GROUPS:
            shared = classifier.threshold == "shared"
            require(shared or classifier.threshold == "own", "its kind of threshold")
            groups = [None, *classifier.groups_] if shared else classifier.groups_
            expected["certificate_"] = {"shared": shared, "groups": tuple(groups)}
            caps = {calibration.trust.cap for calibration in calibrations}
            stored = {calibrations[0].trust.cap}
        else:
            expected["threshold_"] = classifier.certificate_.threshold
        levels = getattr(classifier, "group_alpha", None) or {}
        part = delta / len(groups)
        asked = [
            (controlled, other, levels.get(g, classifier.alpha), part) for g in groups
        ]
    require(caps == stored and len(set(groups)) == len(groups), "its caps or groups")
    # 2. Certificates as their own rows give them.
    require(len(asked) == len(every) == len(calibrations), "its promises are others")
    again = []
    names = ("controlled_class", "other_class", "alpha", "delta")
    known_models = classifier._models() or {}
    for each, claims, calibration in zip(every, asked, calibrations, strict=True):
        trust, sample = calibration.trust, calibration.sample
        require(trust.model is not None or trust.cap is None, "its cap is on no φ")
        if trust.model is not None:
            by = trust if trust.point is None else trust.at_point
            some = classifier._positions
            width = classifier.n_features_in_ if some is None else len(some)
            require(
                same(trust.model, known_models.get(claims[0]))
                and trust.odds_factor == classifier.odds_factor
                and sample.bound == by.bound(width),
                "its φ or cap is not the one that it was calibrated with",
            )
        promised = dict(zip(names, claims, strict=True))
        claimed = replace(each, **promised, deployment=classifier.deployment)
        again.append(recertified(claimed, calibration, moved=several))
    whole: Any = again[0]
    if kind != TWO_CLASSES:
        more = expected["certificate_"]
        claimed = classifier.certificate_
        whole = replace(claimed, delta=delta, certificates=tuple(again), **more)
    for name, value in {**expected, "certificate_": whole}.items():
        require(
            same(getattr(classifier, name), value),
            f"its {name} is not what its parameters and calibration rows give",
        )


def same(one: Any, other: Any) -> bool:
    """Whether two objects have the same type and the same parts."""
    if isinstance(one, np.ndarray):
        return type(one) is type(other) and np.array_equal(one, other)
    if is_dataclass(one):
        pairs = ((getattr(x, f.name) for x in (one, other)) for f in fields(one))
        return type(one) is type(other) and all(same(*pair) for pair in pairs)
    return type(one) is type(other) and bool(one == other)


def _check_scores(model: Any) -> None:
    """Use it on three rows: coefficients that don't fit together show here."""
    width = getattr(model, "n_features_in_", None)
    if width is None:
        return
    rows = np.stack([np.zeros(width), np.ones(width), -np.ones(width)])
    several, known = kind_of(model) == SEVERAL_CLASSES, getattr(model, "scores_", None)
    if known is not None:
        every = list(range(len(model.classes_)))
        places = [*known.classes, known.reference] if known.classes else every
        require(
            sorted(places) == every == list(range(known.n_classes))
            and len(known.estimators) == max(len(known.classes), 1),
            "its scores are for other classes",
        )
    uses = ("class_scores", "score_samples", "predict_log_ratio", "predict")
    name = next((each for each in (*uses, "transform") if hasattr(model, each)), "")
    require(name, "nothing can be done with it")
    with warnings.catch_warnings():
        # What was fitted to a dataframe misses its names here.
        warnings.simplefilter("ignore", UserWarning)
        found = np.asarray(getattr(model, name)(rows))
    sound = len(found) == 3
    if kind_of(model) is not None:
        # A row that goes missing too often for a certified score has none at all.
        shape = (3, len(model.classes_)) if several else (3,)
        known_all = (several and model.caps_) or not np.isnan(found).any()
        sound = found.shape == shape and known_all
    require(sound, "it gives no scores")
