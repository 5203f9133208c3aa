"""What a loaded model is made of, checked piece by piece, however deep it lies."""

from __future__ import annotations

import inspect
import io
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

from missratio.app.modelfile._archive import SCHEMA
from missratio.app.modelfile._types import ModelFileError

_KINDS = "biufU"
_FINITE = frozenset(
    ["coef_", "intercept_", "log_normalizer_", "column_log_normalizer_", "mean_",
     "var_", "scale_", "_column_coef", "covariance", "_baseline_prediction",
     "heights_", "centers_", "_origin", "_unit", "sigma_",
     "directions_", "largest_"]
)  # fmt: skip

_COUNTS = frozenset(["n_imputations", "n_rounds", "degree"])
MOST_COUNTED = 10_000
# NumPy's own; one of another size would be made as large as it says.
_SEED, _POOL_SIZE = "_redraw_seed", 4


def check_arrays(members: Mapping[str, bytes]) -> None:
    """Refuse arrays that claim more than their file holds, or hold no plain numbers."""
    for name, content in members.items():
        if name == SCHEMA:
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
    for name, value in _attributes(part).items():
        if name in _FINITE and value is not None:
            _check_finite(name, value)
        elif name in _COUNTS:
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
