"""The archive of a model file: which types it may hold, how large it is, its header."""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from collections.abc import Collection, Iterator, Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from missratio._base.storable import STORABLE

# Types beside missratio's own, by skops' ways to make an object.
_BOOSTING = "sklearn.ensemble._hist_gradient_boosting"
_LOADERS: dict[str, list[str]] = {
    "NdArrayNode": [
        f"numpy.{name}"
        for name in ("bool", "float32", "float64", "int64", "intp", "ndarray", "str_",
                     "uint64")
    ],
    "DTypeNode": ["numpy.dtype"],
    "DictNode": ["builtins.dict"],
    "ListNode": ["builtins.list"],
    "TupleNode": ["builtins.tuple"],
    "JsonNode": ["builtins.str"],
    "TypeNode": ["builtins.int", "builtins.str", "builtins.bool"],
    "LossNode": [
        "sklearn._loss._loss.CyHalfBinomialLoss",
        "sklearn._loss._loss.CyHalfMultinomialLoss",
    ],
    "RandomGeneratorNode": ["numpy.random._generator.Generator"],
    "ObjectNode": [
        "sklearn._loss.link.Interval",
        "sklearn._loss.link.LogitLink",
        "sklearn._loss.link.MultinomialLogit",
        "sklearn._loss.loss.HalfBinomialLoss",
        "sklearn._loss.loss.HalfMultinomialLoss",
        f"{_BOOSTING}.binning._BinMapper",
        f"{_BOOSTING}.gradient_boosting.HistGradientBoostingClassifier",
        f"{_BOOSTING}.predictor.TreePredictor",
        "sklearn.impute._base.MissingIndicator",
        "sklearn.impute._base.SimpleImputer",
        "sklearn.linear_model._logistic.LogisticRegression",
        "sklearn.linear_model._logistic.LogisticRegressionCV",
        "sklearn.pipeline.Pipeline",
        "sklearn.preprocessing._data.StandardScaler",
        "sklearn.preprocessing._label.LabelEncoder",
    ],
}  # fmt: skip
_STORED_AS = "missratio"
FORMAT = 2
HEADER, SCHEMA = "missratio.json", "schema.json"
PACKAGES = ("missratio", "scikit-learn", "numpy", "skops")

MOST_OBJECTS = 2 * 10**6
MOST_BYTES = 2**28
MOST_JSON_BYTES = 2**23
MOST_MEMBERS = 100_000
# Of every member, so that it doesn't matter when a model was saved.
_WRITTEN = (1980, 1, 1, 0, 0, 0)
# What the entry of a member in the archive's directory begins with.
_ENTRY = b"PK\x01\x02"


class ModelFileError(ValueError):
    """A model that can't be saved, or a file that can't be loaded, and why."""


def _modules() -> dict[str, str]:
    """The module that each of missratio's classes is in now, by the class's name."""
    # The rooms that classifiers don't import themselves.
    import_module("missratio.imputation")
    return {name: stored.cls.__module__ for name, stored in STORABLE.items()}


def allowed() -> dict[str, set[str]]:
    """For each of skops' ways to make an object, the types that may be made by it."""
    found = {loader: set(names) for loader, names in _LOADERS.items()}
    found["ObjectNode"] |= {f"{module}.{name}" for name, module in _modules().items()}
    return found


def located(schema: bytes) -> bytes:
    """A schema with the modules that missratio's classes are in now."""
    tree, modules = _parsed(SCHEMA, schema), _modules()
    for node in _nodes(tree):
        name = node.get("__class__")
        if isinstance(name, str) and name in modules:
            # One name for one class: a path of today is none in a file.
            known = node.get("__module__") == _STORED_AS
            node["__module__"] = modules[name] if known else "?"
    return json.dumps(tree).encode()


def foreign_types(schema: bytes, trusted: Collection[str] = ()) -> list[str]:
    """Types in a skops schema that a model file may not hold, but for trusted ones.

    skops checks types as well, but trusts all of scikit-learn and some functions; here
    no function may be named at all.
    """
    tree, known = _parsed(SCHEMA, schema), allowed()
    try:
        size = _expanded(tree, {})
    except RecursionError as error:
        raise ModelFileError(f"Its {SCHEMA} is damaged: {error}.") from error
    if size > MOST_OBJECTS:
        raise ModelFileError("Its parts refer to each other more often than in models.")
    found = {
        f"{node.get('__module__')}.{node.get('__class__')}"
        for node in _nodes(tree)
        if f"{node.get('__module__')}.{node.get('__class__')}"
        not in known.get(str(node.get("__loader__")), ())
    }
    return sorted(found.difference(trusted))


def _parsed(name: str, content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"Its {name} is damaged: {error}.") from error


def _expanded(item: Any, known: dict[Any, int]) -> int:
    """How many values there are, each as often as something refers to it.

    A part is written once and then referred to by its id. Of parts that refer to parts
    a small file can make more than any walk through a model would come to the end of.
    """
    if isinstance(item, list):
        return sum(_expanded(each, known) for each in item)
    if not isinstance(item, dict):
        return 1
    size = 1 + sum(_expanded(each, known) for each in item.values())
    name = item.get("__id__")
    if isinstance(name, int | float | str):
        size = known[name] = min(max(size, known.get(name, 0)), MOST_OBJECTS + 1)
    return size


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object of a schema, however deep."""
    waiting = [tree]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            if "__loader__" in item:
                yield item
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)


def versions() -> dict[str, str]:
    """The versions of the packages that a model depends on."""
    return {name: version(name) for name in PACKAGES}


def pack(objects: bytes, header: Mapping[str, Any]) -> bytes:
    """Put a header before what skops wrote; the same model gives the same bytes.

    Parameters
    ----------
    objects : bytes
        An archive as skops writes it.
    header : mapping
        What can be known of the model without loading it.
    """
    with ZipFile(io.BytesIO(objects)) as source:
        found = {name: source.read(name) for name in source.namelist()}
    # skops names objects and files after their places in memory; here they are numbered
    # in the order of the schema, and classes have names without modules.
    tree, modules = json.loads(found[SCHEMA]), _modules()
    numbers: dict[Any, int] = {}
    files: dict[str, str] = {}
    for node in _nodes(tree):
        if "__id__" in node:
            node["__id__"] = numbers.setdefault(node["__id__"], len(numbers))
        if "file" in node:
            number = f"{len(files)}{Path(node['file']).suffix}"
            node["file"] = files.setdefault(node["file"], number)
        if node["__module__"] == modules.get(node["__class__"]):
            node["__module__"] = _STORED_AS
    members = {name: found[file] for file, name in files.items()}
    members[SCHEMA] = json.dumps(tree).encode()
    full = {"format": FORMAT, "versions": versions(), **header,
            "content_sha256": _digest(members)}  # fmt: skip
    text = json.dumps(full, indent=2, ensure_ascii=False).encode()
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in {HEADER: text, **members}.items():
            info = ZipInfo(name, _WRITTEN)
            info.external_attr = 0o600 << 16
            archive.writestr(info, content, ZIP_DEFLATED, 1)
        # What couldn't be loaded isn't saved.
        _check_sizes(archive)
    return buffer.getvalue()


def unpack(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The header and the members of a file; sizes and names are checked before reading.

    Raises
    ------
    ModelFileError
        Where the file is no model, is damaged, or is larger than models are.
    """
    if not path.is_file():
        raise ModelFileError("It is not a regular file: copy it into one first.")
    if path.stat().st_size > MOST_BYTES:
        raise ModelFileError(
            f"It has more than {MOST_BYTES} bytes: no model is so large."
        )
    content = path.read_bytes()
    # Each entry of a directory takes memory as soon as the archive is opened.
    if content.count(_ENTRY) > MOST_MEMBERS:
        raise ModelFileError("Its archive has too many members.")
    try:
        with ZipFile(io.BytesIO(content)) as archive:
            _check_sizes(archive)
            infos = {info.filename: info for info in archive.infolist()}
            for name in (HEADER, SCHEMA):
                if name not in infos:
                    raise ModelFileError(
                        f"It has no {name}: missratio didn't write it."
                    )
            texts = {name: _read(archive, infos[name]) for name in (HEADER, SCHEMA)}
            header, schema = (_parsed(*item) for item in texts.items())
            named = {str(node["file"]) for node in _nodes(schema) if "file" in node}
            if named != infos.keys() - texts.keys():
                raise ModelFileError(
                    "Its archive has other members than those that its schema names."
                )
            members = {name: _read(archive, infos[name]) for name in sorted(named)}
    except ModelFileError:
        raise
    except (BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError,
            OSError, ValueError, OverflowError) as error:  # fmt: skip
        reason = f"It is damaged, or isn't a model file: {error}."
        raise ModelFileError(reason) from error
    members[SCHEMA] = texts[SCHEMA]
    if not isinstance(header, dict):
        raise ModelFileError(f"Its {HEADER} is damaged.")
    _check_versions(header)
    if header.get("content_sha256") != _digest(members):
        raise ModelFileError("It was changed after it was written, or is damaged.")
    return header, members


def _read(archive: ZipFile, info: ZipInfo) -> bytes:
    with archive.open(info) as stream:
        content = stream.read(info.file_size + 1)
    if len(content) != info.file_size:
        raise BadZipFile(f"{info.filename!r} isn't as long as it says")
    return content


def _check_versions(header: Mapping[str, Any]) -> None:
    """Refuse a model that other versions wrote."""
    if header.get("format") != FORMAT:
        raise ModelFileError(
            f"It is of format {header.get('format')!r}, and this version reads "
            f"{FORMAT}. Fit the model again."
        )
    written, here = header.get("versions"), versions()
    if not isinstance(written, dict):
        raise ModelFileError("It doesn't say which versions wrote it.")
    for name in ("missratio", "scikit-learn"):
        known = str(written.get(name))
        if known.split(".")[:2] != here[name].split(".")[:2]:
            raise ModelFileError(
                f"It was written with {name} {known}, and here is {here[name]}: what "
                "was learned may mean something else. Fit the model again, or install "
                f"{name}=={known}."
            )


def _check_sizes(archive: ZipFile) -> None:
    infos, plain = archive.infolist(), (ZIP_STORED, ZIP_DEFLATED)
    if any(info.compress_type not in plain or info.flag_bits & 1 for info in infos):
        raise ModelFileError(
            "Its archive is packed in a way that missratio doesn't write."
        )
    if len(infos) > MOST_MEMBERS or len({info.filename for info in infos}) < len(infos):
        raise ModelFileError("Its archive has too many members, or one of them twice.")
    total = sum(info.file_size for info in infos)
    json_size = sum(i.file_size for i in infos if i.filename in (HEADER, SCHEMA))
    if total > MOST_BYTES or json_size > MOST_JSON_BYTES:
        raise ModelFileError(
            f"It would unpack to {total} bytes, {json_size} of them text: no model is "
            "so large."
        )


def _digest(members: Mapping[str, bytes]) -> str:
    """A digest of all members, to tell damage; whoever forges one can write it too."""
    digest = hashlib.sha256()
    for name in sorted(members):
        digest.update(f"{name}\0{len(members[name])}\0".encode())
        digest.update(members[name])
    return digest.hexdigest()
