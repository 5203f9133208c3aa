"""Files made to hang, crash or mislead whoever loads them, under digests that fit."""

import io
import json
import os
import pickle
import struct
from zipfile import ZIP_BZIP2, ZIP_LZMA, ZipFile

import numpy as np
import pytest
from commands import run
from data import Harm
from forging import FUZZED, members_of, model_bytes, packed, sealed, sound
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import missratio as mr
from missratio.app.modelfile import ModelFileError, files
from missratio.app.modelfile.files import (
    HEADER,
    MOST_MEMBERS,
    SCHEMA,
    foreign_types,
    versions,
)


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    """The members of a sound model of each kind that is asked for."""
    folder, made = tmp_path_factory.mktemp("sound"), {}

    def of(kind="φ"):
        if kind not in made:
            made[kind] = members_of(model_bytes(folder, kind))
        return dict(made[kind])

    return of


@pytest.fixture
def loaded(tmp_path):
    """The model of a file of some bytes, or of some members."""

    def load(content):
        path = tmp_path / "model.skops"
        path.write_bytes(sealed(content) if isinstance(content, dict) else content)
        return mr.load_model(path)

    return load


@pytest.fixture
def refused(loaded):
    def refuse(content, match="It holds no sound model"):
        with pytest.raises(ModelFileError, match=match):
            loaded(content)

    return refuse


def with_schema(members, change):
    schema = json.loads(members[SCHEMA])
    change(schema)
    return {**members, SCHEMA: json.dumps(schema).encode()}


def with_header(members, **entries):
    header = {**json.loads(members[HEADER]), **entries}
    return {**members, HEADER: json.dumps(header).encode()}


def with_array(members, array, *names):
    """Another array for an attribute of the model."""
    file = attribute(json.loads(members[SCHEMA]), *names)["file"]
    return {**members, file: saved(array)}


def saved(array):
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def attribute(schema, *names):
    """The node of an attribute of the model, by its path."""
    for name in names:
        schema = schema["content"]["content"][name]
    return schema


def node(value, number=10**6):
    """A value, by an id of its own, or an equal object read before is taken."""
    return {
        "__class__": "str", "__module__": "builtins", "__loader__": "JsonNode",
        "content": json.dumps(value), "is_json": True, "__id__": number,
    }  # fmt: skip


def list_node(content, number):
    return {
        "__class__": "list", "__module__": "builtins", "__loader__": "ListNode",
        "content": content, "__id__": number,
    }  # fmt: skip


# The archive -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FUZZED)
def test_what_was_not_forged_is_loaded(members, loaded, kind):
    loaded(with_schema(members(kind), lambda schema: None))


@settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(st.integers(0, 10**9), st.integers(1, 255))
def test_a_flipped_byte_is_noticed_or_does_no_harm(members, loaded, place, flip):
    content = bytearray(packed(members()))
    content[place % len(content)] ^= flip
    try:
        found = loaded(content)
    except ModelFileError:
        return
    assert found.certificate_ == sound("φ").certificate_


def test_a_pickle_is_not_run(members, refused, tmp_path):
    harm = Harm(tmp_path / "harm")
    refused(pickle.dumps(harm), "isn.t a model file")
    objects = saved(np.array([harm], dtype=object))
    names = [name for name in members() if name.endswith(".npy")]
    refused(members() | dict.fromkeys(names, objects), "array of object of shape")
    assert not (tmp_path / "harm").exists()


def otherwise_packed(members, method):
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", method) as packer:
        for name, content in members.items():
            packer.writestr(name, content)
    return buffer.getvalue()


def lying(members, lie):
    """Of an archive whose directory has another size for the schema."""
    content, size = bytearray(packed(members)), len(members[SCHEMA])
    place = content.rindex(SCHEMA.encode()) - 22
    assert content[place : place + 4] == size.to_bytes(4, "little")
    content[place : place + 4] = (size + lie).to_bytes(4, "little")
    return bytes(content)


def doubled(members, name):
    buffer = io.BytesIO(packed(members))
    with pytest.warns(UserWarning, match="Duplicate"), ZipFile(buffer, "a") as twice:
        twice.writestr(name, b"{}")
    return buffer.getvalue()


def crowded(_):
    """An entry has 46 bytes in the file, and twenty times as many once it is read."""
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\x01\x02", *[0] * 18) + b"x"
    directory = entry * (MOST_MEMBERS + 1)
    return directory + struct.pack(
        "<4s4H2LH", b"PK\x05\x06", 0, 0, 65535, 65535, len(directory), 0, 0
    )


def cut(members, share):
    content = packed(members)
    return content[: int(share * len(content))]


ARCHIVES = {
    **{f"cut at {k}": (lambda m, k=k: cut(m, k), "damaged, or isn't a model file")
       for k in (0.0, 0.1, 0.5, 0.99)},
    "bzip2": (lambda m: otherwise_packed(m, ZIP_BZIP2), "packed in a way"),
    "lzma": (lambda m: otherwise_packed(m, ZIP_LZMA), "packed in a way"),
    "a size too small": (lambda m: lying(m, -10), "damaged"),
    "a size too large": (lambda m: lying(m, 10), "damaged"),
    "two schemas": (lambda m: doubled(m, SCHEMA), "one of them twice"),
    "two headers": (lambda m: doubled(m, HEADER), "one of them twice"),
    "millions of members": (crowded, "too many members"),
    "an array that nothing names": (
        lambda m: m | {"more.npy": saved(np.zeros(2))}, "those that its schema names"
    ),
    "a text that nothing names": (
        lambda m: m | {"notes.txt": b"hello"}, "schema names"
    ),
    "an array that is not there": (
        lambda m: {k: v for k, v in m.items() if k != "0.npy"}, "schema names"
    ),
    "no digest that fits": (
        lambda m: packed(m | {"0.npy": b""}), "changed after it was written"
    ),
    "half a header": (lambda m: packed(m | {HEADER: b"{"}), f"Its {HEADER} is damaged"),
    "a list": (lambda m: packed(m | {HEADER: b"[1]"}), f"Its {HEADER} is damaged"),
    "deep": (lambda m: packed(m | {HEADER: b"[" * 10**5}), f"Its {HEADER} is damaged"),
    "no header": (
        lambda m: packed({k: v for k, v in m.items() if k != HEADER}), "didn't write it"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_that_missratio_does_not_write_is_refused(members, refused, name):
    forge, match = ARCHIVES[name]
    refused(forge(members()), match)


def zeros(members):
    """248 MB of zeros in a file of 250 KB."""
    return with_array(members, np.zeros(31 * 10**6), "estimator_", "coef_")


def empty_lists(members):
    """Millions of lists in a text of 8 MB, and in a file of 18 KB."""
    text = members[SCHEMA][:-1] + b',"x":[' + b"[]," * 2_600_000 + b"[]]}"
    return members | {SCHEMA: text}


@pytest.mark.parametrize("forge", [zeros, empty_lists])
def test_a_small_file_takes_little_memory(members, refused, monkeypatch, forge):
    tracemalloc = pytest.importorskip("tracemalloc")
    content = sealed(forge(members()))
    assert len(content) < 2**18
    # Nothing is unpacked.
    monkeypatch.setattr(ZipFile, "open", None)
    tracemalloc.start()
    refused(content, "would unpack from .* no model is so large")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**23


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_only_regular_files_of_the_size_of_models_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(ModelFileError, match="not a regular file"):
            mr.load_model(path)
    with (tmp_path / "large").open("wb") as stream:
        stream.truncate(2**28 + 1)
    with pytest.raises(ModelFileError, match="more than 268435456 bytes"):
        mr.load_model(tmp_path / "large")


def test_what_is_as_large_as_is_allowed_is_loaded(
    members, loaded, refused, monkeypatch, tmp_path
):
    """A limit is the largest that may be: one more is refused."""
    sizes = {name: len(content) for name, content in members().items()}
    whole = packed(members())
    for name, limit, match in (
        ("MOST_BYTES", sum(sizes.values()), "would unpack from"),
        ("MOST_JSON_BYTES", sizes[HEADER] + sizes[SCHEMA], "of them text"),
        ("MOST_MEMBERS", len(sizes), "too many members"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(files, name, limit)
            loaded(whole)
            patched.setattr(files, name, limit - 1)
            refused(whole, match)
    monkeypatch.setattr(files, "MOST_JSON_BYTES", 1000)
    with pytest.raises(ModelFileError, match="no model is so large"):
        mr.save_model(sound("φ"), tmp_path / "large.skops")
    assert not (tmp_path / "large.skops").exists()


# The header --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"versions": {**versions(), "missratio": "99.0.0"}}, "with missratio 99.0.0"),
        (
            {"versions": {**versions(), "scikit-learn": "0.24.0"}},
            "install scikit-learn==0.24.0",
        ),
        ({"versions": None}, "which versions wrote it"),
        ({"format": 4}, "of format 4, and this version reads"),
        ({"target": "z"}, "its header has another target"),
        ({"training": {}}, "its header has another training"),
        ({"certificate": {"alpha": 0.001}}, "its header has another certificate"),
        ({"approved": "by an authority"}, "its header has another approved"),
    ],
)
def test_a_header_of_another_model_is_refused(members, refused, change, match):
    refused(with_header(members("table"), **change), match)


def test_a_later_patch_is_loaded(members, loaded):
    major, minor = versions()["scikit-learn"].split(".")[:2]
    later = {**versions(), "scikit-learn": f"{major}.{minor}.99"}
    loaded(with_header(members(), versions=later))


# The schema and the arrays -----------------------------------------------------------

FOREIGN = {
    "FunctionNode": ("os", "system"),
    "ObjectNode": ("subprocess", "Popen"),
    "TypeNode": ("builtins", "eval"),
    "MethodNode": ("builtins", "dict"),
    "OperatorFuncNode": ("operator", "methodcaller"),
    "PartialNode": ("functools", "partialmethod"),
    "ConstructorFromReduceNode": ("builtins", "int"),
    "NdArrayNode": ("numpy", "memmap"),
    "ReduceNode": ("builtins", "exec"),
}


@pytest.mark.parametrize("loader", FOREIGN)
def test_foreign_types_are_refused_however_deep(members, refused, loader):
    module, name = FOREIGN[loader]
    foreign = {"__loader__": loader, "__module__": module, "__class__": name}

    def smuggle(schema):
        attribute(schema, "random_state").update(foreign)

    match = f"It holds '{module}.{name}'.*Nothing of it was loaded"
    refused(with_schema(members(), smuggle), match)
    for content in ([foreign], [[], [[foreign]]], {"x": foreign}, [{"x": [foreign]}]):
        schema = json.dumps(list_node(content, 1)).encode()
        assert foreign_types(schema) == [f"{module}.{name}"]


def multiplied(schema):
    """Thirty lists, each twice in the next: 2³⁰ values in two kilobytes."""
    inner = list_node([], 10**6)
    for depth in range(30):
        # What has an id that is known is not looked at, but taken from there.
        again = list_node([], inner["__id__"])
        inner = list_node([inner, again], 10**6 + 1 + depth)
    attribute(schema, "certificate_", "assumptions")["content"] = [inner]


CLAIM = io.BytesIO()
np.lib.format.write_array_header_1_0(
    CLAIM, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
)


def claimed(members, name):
    """An array that claims more than it holds, whatever its member is called."""
    file = attribute(json.loads(members[SCHEMA]), "estimator_", "coef_")["file"]

    def change(schema):
        attribute(schema, "estimator_", "coef_")["file"] = name

    forged = with_schema(members, change)
    return {k: v for k, v in forged.items() if k != file} | {name: CLAIM.getvalue()}


def saying(path, value):
    *outer, name = path.split(".")

    def change(schema):
        attribute(schema, *outer)["content"]["content"][name] = node(value)

    return change


SCHEMAS = [
    ("φ", multiplied, "refer to each other"),
    ("φ", saying("threshold_", -5.0), "no sound model"),
    ("φ", saying("estimator_", None), "schema names"),
    ("table", saying("target", "z"), "its header has another target"),
    ("table", saying("training.sha256", "1" * 64), "its header has another training"),
]


@pytest.mark.parametrize(("kind", "change", "match"), SCHEMAS)
def test_a_schema_that_no_model_has_is_refused(members, refused, kind, change, match):
    refused(with_schema(members(kind), change), match)


COEF = ("estimator_", "coef_")
MEMBERS = {
    "deep": (lambda m: m | {SCHEMA: b'{"a":' * 10**5 + b"1" + b"}" * 10**5},
             "damaged|can't be loaded"),
    "large": (lambda m: m | {SCHEMA: b"[" + b"[]," * 3_000_000 + b"[]]"},
              "of them text: no model is so large"),
    **{name: (lambda m, name=name: claimed(m, name),
              f"'{name}' is an array of float64 of shape")
       for name in ("array.npy", "array.bin")},
    "no array": (lambda m: m | {"0.npy": b"hello"}, "'0.npy' isn't an array"),
    **{f"coef {value}": (lambda m, value=value: with_array(m, np.array(value), *COEF),
                         "no sound model|array of complex128")
       for value in ([1.0, np.nan], [1.0, np.inf], [1.0, 1j], ["1", "2"], [1.0] * 7)},
}  # fmt: skip


@pytest.mark.parametrize("name", MEMBERS)
def test_members_that_no_model_has_are_refused(members, refused, name):
    forge, match = MEMBERS[name]
    refused(forge(members()), match)


@pytest.mark.parametrize("report", ["{}", "5", "null", "[", '{"certificate": {}}'])
def test_a_report_that_is_none_is_refused_in_words(members, report, tmp_path):
    path, out = tmp_path / "m.skops", tmp_path / "r.html"
    path.write_bytes(sealed(with_schema(members("table"), saying("report", report))))
    said = run("report", path, "--out", out, status=4).output
    assert "is not one that missratio wrote" in said
    assert not out.exists()
