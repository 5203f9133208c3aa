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
from functools import cache, cached_property, partial
from importlib.util import find_spec
from typing import Any, Union, get_args, get_origin, get_type_hints

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder
from sklearn.utils import check_array

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


# These attributes of scikit-learn's classes must be finite.
_FINITE = {
    "LogisticRegression": frozenset({"coef_", "intercept_"}),
    "StandardScaler": frozenset({"mean_", "var_", "scale_"}),
    "HistGradientBoostingClassifier": frozenset({"_baseline_prediction"}),
}
NUMBERS: dict[Any, Any] = {int: (int, np.integer), float: (int, float, np.number)}
# These entries of a header are about the file, and not about the model.
OF_THE_FILE = {"format", "versions", "content_sha256"}
PROMISED = ("controlled_class", "other_class", "alpha", "delta")
MOST_COUNTED = 10_000
MOST_COLUMNS = 10**6
MOST_JOBS = 64
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
        for name in sorted((header.keys() | expected.keys()) - OF_THE_FILE):
            known = header.get(name) == expected.get(name)
            require(known, f"its header has another {name}")
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
    if isinstance(model, TableModel):
        header |= {"target": model.target, "training": plain(vars(model.training))}
    return header


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
        # A field that no one gives is its class's until a fit sets it.
        given = {f.name for f in fields(kind) if f.init} if hints else set()
        require(given <= attributes.keys(), f"its {cls} lacks a field")
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
            elif name == "n_jobs":
                some = isinstance(value, int) and -1 <= value <= MOST_JOBS
                require(value is None or some, f"its n_jobs is {value!r}")
            elif name == _SEED:
                size = value.get("pool_size") if isinstance(value, dict) else None
                require(size == _POOL_SIZE, "its seed is none")
        if isinstance(part, HistGradientBoostingClassifier):
            if "_predictors" in attributes:
                _check_trees(part)
        elif isinstance(part, partial):
            options = {"dtype": [np.float64], "ensure_all_finite": False}
            sound = part.func is check_array and part.keywords == options
            require(sound and not (part.args or attributes), "it would run a function")
        elif isinstance(part, FunctionTransformer):
            sound = isinstance(part.func, partial | None) and not part.kw_args
            require(sound, "it would run a function")
        elif isinstance(part, OrdinalEncoder):
            require(np.dtype(part.dtype).kind in "fiu", "its categories")
        elif isinstance(part, OneHotEncoder) and "categories_" in attributes:
            _check_encoder(part)
        elif isinstance(part, Missingness) and is_dataclass(part):
            # Makes it once more, with all the checks of a new one.
            again = replace(part)
            require(again.learned == part.learned, "whether its φ was learned")
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
    if isinstance(part, type):
        # What a class has is not the file's.
        return {}
    if isinstance(part, partial):
        # To ask for its `__dict__` would make one, and change what is saved next.
        state: Any = part.__reduce__()[2]
        return dict(state[3] or {})
    slots = getattr(type(part), "__slots__", ())
    names = [slots] if isinstance(slots, str) else slots
    slotted = {name: getattr(part, name) for name in names if hasattr(part, name)}
    return {**slotted, **getattr(part, "__dict__", {})}


@cache
def _rules(cls: Any) -> tuple[set[str], set[str], dict[str, Any], set[str]]:
    """Attributes of a class that are finite, that count, its fields and methods."""
    known = [STORABLE[base] for base in cls.__mro__ if base in STORABLE]
    finite = [stored.finite for stored in known]
    finite += [_FINITE.get(base.__name__, frozenset()) for base in cls.__mro__]
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


def _check_trees(model: Any) -> None:
    """scikit-learn follows a tree's nodes without a look at where they lead."""
    # 1. Rows are checked for this number of columns. Those of categories come first.
    width, categorical, n_categorical = model.n_features_in_, model.is_categorical_, 0
    sound = type(width) is int and not getattr(model, "_in_fit", False)
    if categorical is None:
        sound = sound and model._preprocessor is None
    else:
        columns = model._preprocessor
        sound = sound and type(columns) is ColumnTransformer
        sound = sound and categorical.dtype == bool and categorical.shape == (width,)
        require(sound, "its trees are for other columns")
        n_categorical = int(categorical.sum())
        steps = [
            ("encoder", OrdinalEncoder, categorical),
            ("numerical", FunctionTransformer, ~categorical),
            ("remainder", str, [False] * width),
        ]
        given = [(name, type(step), some) for name, step, some in columns.transformers_]
        where = {name: np.flatnonzero(some).tolist() for name, _, some in steps}
        sound = same(given, steps) and columns.transformers_[2][1] == "drop"
        sound = sound and columns._transformer_to_input_indices == where
        first = np.arange(width) < n_categorical
        sound = sound and np.array_equal(model._bin_mapper.is_categorical_, first)
    require(sound, "its trees are for other columns")
    for tree in [tree for trees in model._predictors for tree in trees]:
        nodes: Any = tree.nodes if type(tree) is TreePredictor else None
        sound = isinstance(nodes, np.ndarray) and nodes.dtype == PREDICTOR_RECORD_DTYPE
        require(sound and nodes.ndim == 1 and len(nodes), "a tree has no nodes")
        places = np.flatnonzero(nodes["is_leaf"] == 0)
        for side in ("left", "right"):
            ahead = (nodes[side][places] > places) & (nodes[side][places] < len(nodes))
            require(ahead.all(), "a tree's branches lead nowhere")
        columns = nodes["feature_idx"][places]
        there = (columns >= 0) & (columns < width)
        require(there.all(), "a tree asks for columns that don't exist")
        # 2. A set of categories has a bit for each of 256.
        splits = nodes["is_categorical"][places] != 0
        for sets in (tree.raw_left_cat_bitsets, tree.binned_left_cat_bitsets):
            sound = isinstance(sets, np.ndarray) and sets.dtype == np.uint32
            sound = sound and sets.flags.c_contiguous and sets.shape[1:] == (8,)
            sound = sound and (nodes["bitset_idx"][places][splits] < len(sets)).all()
            known = (columns[splits] < n_categorical).all()
            require(sound and known, "a tree splits by categories that don't exist")
        require(np.isfinite(nodes["value"]).all(), "a tree's values aren't finite")


def _check_encoder(encoder: Any) -> None:
    """scikit-learn writes ones where an encoder's categories say, without a look."""
    enabled, n_columns = encoder._infrequent_enabled, len(encoder.categories_)
    merged = encoder._default_to_infrequent_mappings if enabled else [None] * n_columns
    rare = encoder._infrequent_indices if enabled else merged
    sizes = []
    for values, places, few in zip(encoder.categories_, merged, rare, strict=True):
        require((places is None) == (few is None), "its rare categories")
        places = np.arange(len(values)) if places is None else places
        # Those that are no texts are looked up by bisection.
        sound = values.dtype.kind in "OU" or (np.diff(values) > 0).all()
        sound = sound and places.dtype.kind == "i" and places.shape == values.shape
        require(sound and places.min() >= 0, "its categories")
        sizes.append(int(places.max()) + 1)
    sound = (
        encoder.drop is encoder.drop_idx_ is encoder._drop_idx_after_grouping is None
    )
    require(sound and sizes == encoder._n_features_outs, "its number of categories")


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
    certificate: Certificate, calibration: Calibration, *, moved: bool
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
    threshold, bound, error, rule = math.inf, 0.0, 0.0, certificate.rule
    chosen = calibration.select([level])[0] if sample.n_observed else None
    certified = chosen is not None and chosen.threshold is not None
    if chosen is not None and chosen.threshold is not None:
        threshold, bound, rule = chosen.threshold, chosen.error_bound, chosen.rule
        if moved and threshold <= certificate.threshold < math.inf:
            threshold, rule = certificate.threshold, certificate.rule
            bound = min(certificate.error_bound, level)
        error = sample.estimated_error(threshold)
    return replace(
        certificate, rows=sample.n_rows, observed=sample.n_known,
        effective_rows=sample.effective_rows, threshold=threshold, certified=certified,
        estimated_error=error, error_bound=bound, rule=rule,
    )  # fmt: skip


def _check_promises(classifier: Any) -> None:
    """What is stored must be what parameters and calibration rows make of it."""
    kind, classes, delta = kind_of(classifier), classifier.classes_, classifier.delta
    several, labels = kind == SEVERAL_CLASSES, classes.tolist()
    require(type(classifier.n_features_in_) is int, "its number of columns")
    require(
        isinstance(classes, np.ndarray)
        and classes.ndim == 1
        and len(set(labels)) == len(labels) > 1
        and (several or len(labels) == 2),
        "its classes",
    )
    certificates = certificates_of(classifier)
    # 1. What was asked for: classes, levels and δ, and what predictions go by.
    expected: dict[str, Any] = {}
    facts: dict[str, Any] = {}
    if several:
        order = None if classifier.order is None else tuple(classifier.order)
        bounds = ClassBounds(classifier.alpha, delta, order, labels)
        bounds.check()
        decision: Any = bounds.undecided()
        places, names = list(decision.bounded), [labels[k] for k in decision.bounded]
        calibrations = [*classifier.calibrations_.values()]
        # All of δ, where thresholds move together.
        part = certificates[0].delta
        part = part if part == bounds.most else bounds.part
        asked = [(k, bounds.wrong(k), bounds.alpha[k], part) for k in names]
        facts = {"order": order, "fallback": bounds.fallback}
        thresholds = decision.thresholds.copy()
        thresholds[places] = [certificate.threshold for certificate in certificates]
        if order is None:
            offsets = classifier.decision_.offsets
            sound = offsets.shape == classes.shape and np.isfinite(offsets).all()
            require(sound, "its offsets")
            decision = replace(decision, offsets=offsets)
        expected["decision_"] = replace(decision, thresholds=thresholds)
    else:
        controlled = classifier.controlled_class
        controlled = labels[0] if controlled is None else controlled
        require(controlled in labels, "its controlled class is none of its classes")
        (other,) = (label for label in labels if label != controlled)
        require(getattr(classifier, "_sign", 1.0) in (1.0, -1.0), "its sign")
        names, levels = [None], None
        if kind == GROUPS:
            names = classifier.groups_
            calibrations, levels = classifier.calibrations_, classifier.group_alpha
            facts = {"groups": tuple(names)}
        else:
            calibrations = [classifier.calibration_]
            expected["threshold_"] = classifier.certificate_.threshold
        part = delta / len(names)
        asked = [
            (controlled, other, (levels or {}).get(name, classifier.alpha), part)
            for name in names
        ]
    require(
        len(set(names)) == len(certificates) == len(calibrations) == len(asked),
        "its promises are others",
    )
    trusts = [replace(calibration.trust, point=None) for calibration in calibrations]
    capped = {name: t for name, t in zip(names, trusts, strict=True) if t.cap}
    sound = len({trust.cap for trust in trusts}) == 1
    if several:
        sound = same(classifier.caps_, capped)
    require(sound, "its caps are others")
    # 2. Certificates as their own rows give them.
    again = []
    models, some = classifier._models() or {}, classifier._positions
    width = classifier.n_features_in_ if some is None else len(some)
    for certificate, claims, calibration in zip(
        certificates, asked, calibrations, strict=True
    ):
        trust, label = calibration.trust, claims[0]
        require(trust.model is not None or trust.cap is None, "its cap is on no φ")
        if trust.model is not None:
            by = trust if trust.point is None else trust.at_point
            require(
                same(trust.model, models.get(label))
                and trust.odds_factor == classifier.odds_factor
                and calibration.sample.bound == by.bound(width),
                "its φ or cap is not the one that it was calibrated with",
            )
        promised = dict(zip(PROMISED, claims, strict=True))
        claimed = replace(certificate, **promised, deployment=classifier.deployment)
        again.append(recertified(claimed, calibration, moved=several))
    expected["certificate_"] = again[0]
    if kind != TWO_CLASSES:
        expected["certificate_"] = replace(
            classifier.certificate_, delta=delta, certificates=tuple(again), **facts
        )
    for name, value in expected.items():
        require(
            same(getattr(classifier, name), value),
            f"its {name} is not what its parameters and calibration rows give",
        )


def same(one: Any, other: Any) -> bool:
    """Whether two objects have the same types and the same parts."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if is_dataclass(one):
        names = [field.name for field in fields(one)]
        return all(same(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _check_scores(model: Any) -> None:
    """Use it on some rows: coefficients that don't fit together show here."""
    width = getattr(model, "n_features_in_", None)
    if width is None:
        return
    rows, n_rows = _trial_rows(model, width)
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
    # What was fitted to a dataframe misses its names here.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        scores = np.asarray(getattr(model, name)(rows))
    sound = len(scores) == n_rows
    if kind_of(model) is not None:
        shape = (n_rows, len(model.classes_)) if several else (n_rows,)
        # A row that goes missing too often for a certified score has none at all.
        known_all = (several and model.caps_) or not np.isnan(scores).any()
        sound = scores.shape == shape and known_all
    require(sound, "it gives no scores")


def _trial_rows(model: Any, width: int) -> tuple[Any, int]:
    """Three rows of numbers, and how many they are.

    Where columns have names, a dataframe with every word that the model was fitted to,
    and every category that an encoder in it knows.
    """
    levels = dict[Any, Any]()
    for part in _parts(model):
        for _, transformer, columns in getattr(part, "transformers_", ()):
            named = columns if isinstance(columns, list) else []
            for inner in _parts(transformer):
                levels |= zip(named, getattr(inner, "categories_", ()), strict=False)
    levels |= getattr(getattr(model, "_words", None), "seen", {})
    n_rows = min(max([3, *map(len, levels.values())]), MOST_COUNTED)
    numbers = np.resize([0.0, 1.0, -1.0], n_rows)
    kinds: Any = [kind for kind in ("pandas", "polars", "pyarrow") if find_spec(kind)]
    if not (kinds and hasattr(model, "feature_names_in_")):
        return np.column_stack([numbers] * width), n_rows
    values = {
        str(name): np.resize(levels.get(name, numbers), n_rows).tolist()
        for name in model.feature_names_in_
    }
    return nw.from_dict(values, backend=kinds[0]).to_native(), n_rows
