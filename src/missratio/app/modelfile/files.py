"""Models to files and back, by skops: loading runs no code from the file.

A file is an archive of a header, a schema and arrays. Sizes, types and arrays are
checked before anything is made of them, and the model before it is returned.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.utils.validation import check_is_fitted

from missratio._base.storable import STORABLE
from missratio._files import write_whole
from missratio._files.files import check_writable
from missratio.app.modelfile.checks import ModelFileError, check_model, header_of
from missratio.app.modelfile.models import TableModel
from missratio.missingness import Missingness

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
    "TypeNode": ["builtins.int", "builtins.str", "builtins.bool", "builtins.object",
                 "numpy.float64", "numpy.number"],
    # What boosted trees check numbers by that stand beside categories.
    "FunctionNode": ["sklearn.utils.validation.check_array"],
    "PartialNode": ["functools.partial"],
    "SliceNode": ["builtins.slice"],
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
        "sklearn.compose._column_transformer.ColumnTransformer",
        "sklearn.compose._column_transformer.make_column_selector",
        f"{_BOOSTING}.binning._BinMapper",
        f"{_BOOSTING}.gradient_boosting.HistGradientBoostingClassifier",
        f"{_BOOSTING}.predictor.TreePredictor",
        "sklearn.frozen._frozen.FrozenEstimator",
        "sklearn.impute._base.MissingIndicator",
        "sklearn.impute._base.SimpleImputer",
        "sklearn.linear_model._logistic.LogisticRegression",
        "sklearn.linear_model._logistic.LogisticRegressionCV",
        "sklearn.pipeline.Pipeline",
        "sklearn.preprocessing._data.StandardScaler",
        "sklearn.preprocessing._encoders.OneHotEncoder",
        "sklearn.preprocessing._encoders.OrdinalEncoder",
        "sklearn.preprocessing._function_transformer.FunctionTransformer",
        "sklearn.preprocessing._label.LabelEncoder",
    ],
}  # fmt: skip
# Why no file can hold some types.
_NEVER = {
    "FunctionMissingness": "A FunctionMissingness can't be saved: a model file holds "
    "no code, and its function is code. Use StepMissingness, LogisticMissingness or "
    "learn_missingness.",
    "NoneType": "A model of rows without labels can't be saved: fit it with y, one "
    "label for all rows if need be, or pickle it.",
}
FORMAT = 3
HEADER, SCHEMA = "missratio.json", "schema.json"
PACKAGES = ("missratio", "scikit-learn", "numpy", "skops")

MOST_OBJECTS = 2 * 10**6
MOST_BYTES = 2**28
MOST_JSON_BYTES = 2**23
MOST_MEMBERS = 100_000
# Packing makes models up to 9 times smaller, and texts of wide tables 39 times. What a
# small file may unpack to beyond that, in all and as text.
MOST_PACKED, ROOM, JSON_ROOM = 100, 2**24, 2**18
# Every member has this date, so that it doesn't matter when a model was saved.
_WRITTEN = (1980, 1, 1, 0, 0, 0)
# The entry of a member in the archive's directory begins with these bytes.
_ENTRY = b"PK\x01\x02"


def allowed() -> dict[str, set[str]]:
    """For each of skops' ways to make an object, the types that may be made by it."""
    # These are not imported by classifiers themselves.
    for name in ("imputation", "ratio.choice", "ratio.cv"):
        import_module(f"missratio.{name}")
    types = {loader: set(names) for loader, names in _LOADERS.items()}
    types["ObjectNode"] |= {f"{cls.__module__}.{cls.__name__}" for cls in STORABLE}
    return types


def foreign_types(schema: bytes, trusted: Collection[str] = ()) -> list[str]:
    """Types in a skops schema that a model file may not hold, but for trusted ones.

    skops checks types as well, but trusts all of scikit-learn and some functions; here
    one function may be named.
    """
    tree, known = _parsed(SCHEMA, schema), allowed()
    try:
        size = _expanded(tree, {})
    except RecursionError as error:
        raise ModelFileError(f"Its {SCHEMA} is damaged: {error}.") from error
    if size > MOST_OBJECTS:
        raise ModelFileError("Its parts refer to each other more often than in models.")
    foreign = set()
    for node in _nodes(tree):
        name = f"{node.get('__module__')}.{node.get('__class__')}"
        if name not in known.get(str(node.get("__loader__")), ()):
            foreign.add(name)
    return sorted(foreign.difference(trusted))


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
        contents = {name: source.read(name) for name in source.namelist()}
    # skops names objects and files after their places in memory; here they are numbered
    # in the order of the schema.
    tree = json.loads(contents[SCHEMA])
    numbers: dict[Any, int] = {}
    files: dict[str, str] = {}
    for node in _nodes(tree):
        if "__id__" in node:
            node["__id__"] = numbers.setdefault(node["__id__"], len(numbers))
        if "file" in node:
            number = f"{len(files)}{Path(node['file']).suffix}"
            node["file"] = files.setdefault(node["file"], number)
    members = {name: contents[file] for file, name in files.items()}
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
        _check_sizes(archive, buffer.tell())
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
            _check_sizes(archive, len(content))
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
    if header.get("content_sha256") != _digest(members):
        raise ModelFileError("It was changed after it was written, or is damaged.")
    return header, members


def _read(archive: ZipFile, info: ZipInfo) -> bytes:
    with archive.open(info) as stream:
        content = stream.read(info.file_size + 1)
    if len(content) != info.file_size:
        raise BadZipFile(f"{info.filename!r} isn't as long as it says")
    return content


def _check_sizes(archive: ZipFile, packed: int) -> None:
    infos, plain = archive.infolist(), (ZIP_STORED, ZIP_DEFLATED)
    if any(info.compress_type not in plain or info.flag_bits & 1 for info in infos):
        raise ModelFileError(
            "Its archive is packed in a way that missratio doesn't write."
        )
    if len(infos) > MOST_MEMBERS or len({info.filename for info in infos}) < len(infos):
        raise ModelFileError("Its archive has too many members, or one of them twice.")
    total = sum(info.file_size for info in infos)
    json_size = sum(i.file_size for i in infos if i.filename in (HEADER, SCHEMA))
    more = MOST_PACKED * packed
    most = min(MOST_BYTES, ROOM + more)
    most_text = min(MOST_JSON_BYTES, JSON_ROOM + more)
    if total > most or json_size > most_text:
        raise ModelFileError(
            f"It would unpack from {packed} to {total} bytes, {json_size} of them "
            "text: no model is so large."
        )


def _digest(members: Mapping[str, bytes]) -> str:
    """A digest of all members, to tell damage; whoever forges one can write it too."""
    digest = hashlib.sha256()
    for name in sorted(members):
        digest.update(f"{name}\0{len(members[name])}\0".encode())
        digest.update(members[name])
    return digest.hexdigest()


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
        sound = dtype.kind in "biufU" or dtype == PREDICTOR_RECORD_DTYPE
        sound |= foreign and not dtype.hasobject
        size = len(content) - stream.tell()
        if not sound or math.prod(shape, start=dtype.itemsize) != size:
            raise ModelFileError(
                f"Its member {name!r} is an array of {dtype} of shape {shape}, which "
                "no model of missratio has."
            )


def save_model(
    model: Any, path: str | Path, *, force: bool = False, trusted: Sequence[str] = ()
) -> None:
    """Write a fitted model to a file, whole or not at all.

    Parameters
    ----------
    model : TableModel, estimator or Missingness
        What `missratio fit` makes, and every fitted estimator of missratio: certified
        classifiers, ratios, imputers and models of φ. An estimator within it may be
        `LogisticRegression` or `HistGradientBoostingClassifier`, by categories or not,
        alone or behind a `StandardScaler` and a `ColumnTransformer` of columns and
        their encoded categories; or a `FrozenEstimator` or `PowerSearch` of these.
        Others have to be `trusted`.
    path : str or Path
        By convention it ends in .skops.
    force : bool, default=False
        Whether a file of that name is overwritten, instead of an error.
    trusted : sequence of str, default=()
        Types beyond these that the model may hold, as ``module.Class``: your own
        objective, rule or estimator, a forest, XGBoost or LightGBM. Whoever loads the
        file has to name them, too (`load_model`), and missratio can't check them.

    Raises
    ------
    ModelFileError
        Where the model has parts that can't be saved without code.

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> ratio = mr.density_ratio(rng.normal(1, 1, (99, 1)), rng.normal(0, 1, (99, 1)))
    >>> mr.save_model(ratio, "ratio.missratio")  # doctest: +SKIP
    >>> mr.load_model("ratio.missratio").coef_  # doctest: +SKIP
    """
    from skops import io as skops_io

    if hasattr(model, "fit"):
        check_is_fitted(model)
    path = Path(path)
    check_writable(path, force=force)
    objects = skops_io.dumps(model)
    with ZipFile(io.BytesIO(objects)) as archive:
        foreign = foreign_types(archive.read(SCHEMA), trusted)
    for name in foreign:
        if reason := _NEVER.get(name.rpartition(".")[2]):
            raise ModelFileError(reason)
    if foreign:
        raise ModelFileError(
            f"A model file can't hold {', '.join(foreign[:5])}. Give save_model and "
            f"load_model trusted={foreign} if you vouch for these types, or pickle the "
            "model, and unpickle only files that you trust."
        )
    header = header_of(model)
    try:
        check_model(model, header)
    except ModelFileError as error:
        raise ModelFileError(
            f"The model can't be saved, as it couldn't be loaded. {error} Pickle it, "
            "and unpickle only files that you trust."
        ) from error
    write_whole(path, pack(objects, header), force=force)


def load_model(
    path: str | Path, *, trusted: Sequence[str] = ()
) -> TableModel | BaseEstimator | Missingness:
    """Read what `save_model` wrote; no code from the file is run.

    Sizes are checked before anything is unpacked, types before any object is made, and
    the model before it is returned: its thresholds are certified once more by the
    calibration rows in the file. The digest in the file reveals damage. It doesn't tell
    who wrote the file: whoever can write it can put any other model there. Only a
    signature beside it tells that, such as one by minisign or sigstore.

    Parameters
    ----------
    path : str or Path
    trusted : sequence of str, default=()
        Types that the file may hold beside those of missratio's own models, as
        ``module.Class``. Name only types of files whose writer you know: making an
        object of a type runs its code.

    Returns
    -------
    TableModel, estimator or Missingness
        As it was saved.

    Raises
    ------
    ModelFileError
        Where the file is damaged, is not a model, holds other types, or was written by
        another version.

    Examples
    --------
    >>> import missratio as mr
    >>> ratio = mr.load_model("ratio.missratio")  # doctest: +SKIP
    """
    from skops import io as skops_io

    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a model file.")
    if not path.exists():
        raise FileNotFoundError(f"There is no model file {path}.")
    try:
        header, members = unpack(path)
        foreign = foreign_types(members[SCHEMA], trusted)
        if foreign:
            raise ModelFileError(
                f"It holds {', '.join(map(repr, foreign[:5]))}, which no model of "
                "missratio has. Nothing of it was loaded. If you know who wrote the "
                "file and trust these types, load it by load_model(path, "
                f"trusted={foreign})."
            )
        check_arrays(members, foreign=bool(trusted))
        buffer = io.BytesIO()
        with ZipFile(buffer, "w", ZIP_STORED) as archive:
            while members:
                archive.writestr(*members.popitem())
        try:
            types = [*set().union(*allowed().values()), *trusted]
            model = skops_io.load(buffer, trusted=types)
        except (Exception, RecursionError) as error:
            raise ModelFileError(
                f"It can't be loaded: {type(error).__name__}: {error}"
            ) from error
        check_model(model, header)
    except ModelFileError as error:
        raise ModelFileError(f"{path} was refused. {error}") from error
    return model


def load_table_model(path: Path) -> TableModel:
    """Read a model that `missratio fit` wrote, with its columns and its report."""
    model = load_model(path)
    if not isinstance(model, TableModel) or model.report is None:
        raise ModelFileError(
            f"{path} holds a classifier without the columns of a table or a report: it "
            "was saved from Python. Load it there, by load_model, and make a report by "
            "build_report."
        )
    return model
