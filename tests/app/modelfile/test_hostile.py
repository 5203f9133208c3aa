"""Files made to hang, crash or mislead whoever loads them, under digests that fit."""

import io
import json
import os
import pickle
import struct
from dataclasses import replace
from zipfile import ZIP_BZIP2, ZIP_LZMA, ZipFile

import numpy as np
import pytest
from forging import FUZZED, members_of, model_bytes, packed, sealed, sound
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import missratio as mr
from missratio.app.cli import app
from missratio.app.modelfile import ModelFileError, archive
from missratio.app.modelfile.archive import (
    FORMAT,
    HEADER,
    MOST_MEMBERS,
    SCHEMA,
    _digest,
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
def refused(tmp_path):
    """Whether a file of some bytes, or of some members, is refused."""

    def refuse(content, match="It holds no sound model"):
        path = tmp_path / "forged.skops"
        path.write_bytes(sealed(content) if isinstance(content, dict) else content)
        with pytest.raises(ModelFileError, match=match):
            mr.load_model(path)

    return refuse


@pytest.fixture
def loaded(tmp_path):
    def load(content):
        path = tmp_path / "model.skops"
        path.write_bytes(content)
        return mr.load_model(path)

    return load


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


def parts_of(schema, name):
    """The attributes of every object of a class, by its name."""
    waiting, found = [schema], []
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            if item.get("__class__") == name:
                found.append(item["content"])
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    assert found
    return found


# The archive -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FUZZED)
def test_what_was_not_forged_is_loaded(members, loaded, kind):
    loaded(sealed(with_schema(members(kind), lambda schema: None)))


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


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_file_that_was_cut_is_refused(members, refused, share):
    content = packed(members())
    refused(content[: int(share * len(content))], "damaged, or isn't a model file")


class Harm:
    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (exec, (f"open({self.path!r}, 'w').close()",))


def test_a_pickle_is_not_run(members, refused, tmp_path):
    harm = Harm(tmp_path / "harm")
    refused(pickle.dumps(harm), "isn.t a model file")
    objects = saved(np.array([harm], dtype=object))
    names = [name for name in members() if name.endswith(".npy")]
    refused(members() | dict.fromkeys(names, objects), "array of object of shape")
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("method", [ZIP_BZIP2, ZIP_LZMA])
def test_members_packed_in_another_way_are_refused(members, refused, method):
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", method) as packer:
        for name, content in members().items():
            packer.writestr(name, content)
    refused(buffer.getvalue(), "packed in a way")


def test_a_member_that_lies_about_its_size_is_refused(members, refused):
    content = packed(members())
    size = len(members()[SCHEMA])
    central = content.rindex(SCHEMA.encode()) - 46
    assert content[central + 24 : central + 28] == size.to_bytes(4, "little")
    for lie in (10, size + 10):
        forged = bytearray(content)
        forged[central + 24 : central + 28] = lie.to_bytes(4, "little")
        refused(bytes(forged), "damaged")


@pytest.mark.parametrize("name", [SCHEMA, HEADER])
def test_members_that_occur_twice_are_refused(members, refused, name):
    buffer = io.BytesIO(packed(members()))
    with pytest.warns(UserWarning, match="Duplicate"), ZipFile(buffer, "a") as archive:
        archive.writestr(name, b"{}")
    refused(buffer.getvalue(), "one of them twice")


def test_a_directory_of_millions_of_members_is_not_read(refused):
    """An entry has 46 bytes in the file, and twenty times as many once it is read."""
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\x01\x02", *[0] * 18) + b"x"
    directory = entry * (MOST_MEMBERS + 1)
    end = struct.pack(
        "<4s4H2LH", b"PK\x05\x06", 0, 0, 65535, 65535, len(directory), 0, 0
    )
    refused(directory + end, "too many members")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_only_regular_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(ModelFileError, match="not a regular file"):
            mr.load_model(path)


def test_what_is_as_large_as_is_allowed_is_loaded(
    members, loaded, refused, monkeypatch
):
    """A limit is the largest that may be: one more is refused."""
    sizes = {name: len(content) for name, content in members().items()}
    whole = packed(members())
    for name, limit, match in (
        ("MOST_BYTES", sum(sizes.values()), "would unpack to"),
        ("MOST_JSON_BYTES", sizes[HEADER] + sizes[SCHEMA], "of them text"),
        ("MOST_MEMBERS", len(sizes), "too many members"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(archive, name, limit)
            loaded(whole)
            patched.setattr(archive, name, limit - 1)
            refused(whole, match)
    monkeypatch.setattr(archive, "MOST_BYTES", len(whole) - 1)
    refused(whole, f"more than {len(whole) - 1} bytes")


def test_a_file_of_more_than_256_mib_is_not_read(tmp_path):
    """It has no content, and needs none to be refused."""
    path = tmp_path / "large.skops"
    with path.open("wb") as stream:
        stream.truncate(2**28 + 1)
    with pytest.raises(ModelFileError, match="more than 268435456 bytes"):
        mr.load_model(path)


def test_a_zip_bomb_is_not_unpacked(members, refused, monkeypatch):
    bomb = packed(members() | {"big.npy": bytes(200_000_000)})
    assert len(bomb) < 10**6
    monkeypatch.setattr(archive, "MOST_BYTES", 10**8)
    monkeypatch.setattr(ZipFile, "open", None)
    refused(bomb, "would unpack to 2.* bytes")


def test_what_could_not_be_loaded_is_not_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MOST_JSON_BYTES", 1000)
    with pytest.raises(ModelFileError, match="no model is so large"):
        mr.save_model(sound("φ"), tmp_path / "large.skops")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_unpacks_to_what_is_allowed_takes_few_times_its_size(
    members, loaded
):
    """An array that nothing refers to is unpacked, and never loaded."""
    tracemalloc = pytest.importorskip("tracemalloc")
    zeros = saved(np.zeros(2**22))
    content = sealed(members() | {"zeros.npy": zeros})
    assert len(content) < 2**18
    tracemalloc.start()
    loaded(content)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3.5 * len(zeros)


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
        ({"format": FORMAT + 1}, f"of format {FORMAT + 1}, and this version reads"),
        ({"method": "trees"}, "its header has another method"),
        ({"target": "z"}, "its header has another target"),
        ({"columns": []}, "its header has another columns"),
        ({"training": {}}, "its header has another training"),
        ({"certificate": {"alpha": 0.001}}, "its header has another certificate"),
    ],
)
def test_a_header_of_another_model_is_refused(members, refused, change, match):
    refused(with_header(members("table"), **change), match)


@pytest.mark.parametrize("kind", ["φ", "classes"])
def test_another_certificate_in_the_header_is_refused(members, refused, kind):
    certificate = json.loads(members(kind)[HEADER])["certificate"]
    (certificate if kind == "φ" else certificate["classes"][0])["alpha"] = 0.001
    forged = with_header(members(kind), certificate=certificate)
    refused(forged, "another certificate")


def test_a_later_patch_is_loaded(members, loaded):
    major, minor = versions()["scikit-learn"].split(".")[:2]
    later = {**versions(), "scikit-learn": f"{major}.{minor}.99"}
    loaded(sealed(with_header(members(), versions=later)))


def test_changes_without_a_new_digest_are_noticed(members, refused):
    refused(packed(members() | {"more.npy": b"more"}), "changed after it was written")


@pytest.mark.parametrize(
    "other", [{"a": b"x", "b": b"yz"}, {"a": b"xy", "c": b"z"}, {"ab": b"xyz"}]
)
def test_the_digest_is_of_names_and_lengths_too(other):
    """Bytes that move from one member to another leave all of them together alike."""
    assert _digest(other) != _digest({"a": b"xy", "b": b"z"})


def test_a_header_that_is_none_is_refused(members, refused):
    for header in (b"{", b"[1]", b"[" * 10**5):
        refused(packed(members() | {HEADER: header}), f"Its {HEADER} is damaged")
    without = {name: body for name, body in members().items() if name != HEADER}
    refused(packed(without), "missratio didn't write it")


# The schema and the arrays -----------------------------------------------------------

FOREIGN = {
    "FunctionNode": ("os", "system"),
    "ObjectNode": ("subprocess", "Popen"),
    "TypeNode": ("builtins", "eval"),
    "MethodNode": ("builtins", "dict"),
    "OperatorFuncNode": ("operator", "methodcaller"),
    "PartialNode": ("functools", "partial"),
    "ConstructorFromReduceNode": ("builtins", "int"),
    "NdArrayNode": ("numpy", "memmap"),
    "ReduceNode": ("builtins", "exec"),
}


@pytest.mark.parametrize("loader", FOREIGN)
def test_foreign_types_are_refused(members, refused, loader):
    module, name = FOREIGN[loader]

    def smuggle(schema):
        seed = attribute(schema, "random_state")
        seed.update(__loader__=loader, __module__=module, __class__=name)

    match = f"It holds '{module}.{name}'.*Nothing of it was loaded"
    refused(with_schema(members(), smuggle), match)


@pytest.mark.parametrize("inside", ["a list", "lists", "a dict", "a dict in a list"])
def test_a_foreign_type_is_found_however_deep(inside):
    foreign = {"__module__": "os", "__class__": "system", "__loader__": "FunctionNode"}
    content = {
        "a list": [foreign],
        "lists": [[], [[foreign]]],
        "a dict": {"x": foreign},
        "a dict in a list": [{"x": [foreign]}],
    }[inside]
    schema = json.dumps(list_node(content, 1)).encode()
    assert foreign_types(schema) == ["os.system"]
    assert foreign_types(json.dumps(list_node([], 1)).encode()) == []


def test_lists_of_lists_of_lists_are_not_walked_to_their_end(members, refused):
    """Thirty lists, each twice in the next: 2³⁰ values in two kilobytes."""

    def change(schema):
        inner = list_node([], 10**6)
        for depth in range(30):
            # What has an id that is known is not looked at, but taken from there.
            again = list_node([], inner["__id__"])
            inner = list_node([inner, again], 10**6 + 1 + depth)
        attribute(schema, "certificate_", "assumptions")["content"] = [inner]

    refused(with_schema(members(), change), "refer to each other")


@pytest.mark.parametrize(
    ("schema", "match"),
    [
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "damaged|can't be loaded"),
        (b"[" + b"[]," * 3_000_000 + b"[]]", "of them text: no model is so large"),
    ],
    ids=["deep", "large"],
)
def test_a_schema_is_no_deeper_or_larger_than_schemas_are(
    members, refused, schema, match
):
    refused(members() | {SCHEMA: schema}, match)


CLAIM = io.BytesIO()
np.lib.format.write_array_header_1_0(
    CLAIM, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
)


@pytest.mark.parametrize("name", ["array.npy", "array.bin"])
def test_an_array_that_claims_more_than_it_holds_is_refused(members, refused, name):
    """Whatever its member is called."""

    def change(schema):
        attribute(schema, "estimator_", "coef_")["file"] = name

    forged = with_schema(members(), change) | {name: CLAIM.getvalue()}
    refused(forged, f"'{name}' is an array of float64 of shape")


def test_members_that_are_no_arrays_are_refused(members, refused):
    refused(members() | {"notes.txt": b"hello"}, "'notes.txt' isn't an array")


@pytest.mark.parametrize(
    "coef",
    [[1.0, np.nan], [1.0, np.inf], [1.0, 1j], ["1", "2"], np.ones(7)],
    ids=["NaN", "infinite", "complex", "text", "another size"],
)
def test_coefficients_that_are_no_finite_numbers_are_refused(members, refused, coef):
    forged = with_array(members(), np.array(coef), "estimator_", "coef_")
    refused(forged, "no sound model|array of complex128")


def test_a_missing_probability_above_one_is_refused(tmp_path, refused):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 1)), np.repeat([0, 1], 200)
    phi = mr.StepMissingness(1.0, 0.0, 0.5)
    X[:200] = mr.corrupt(X[:200], phi, 0)
    model = mr.NeymanPearsonClassifier(
        mr.KLIEP(), alpha=0.3, missingness={0: phi}, random_state=0
    )
    mr.save_model(model.fit(X, y), tmp_path / "model.skops")
    members = members_of((tmp_path / "model.skops").read_bytes())
    path = ("calibration_", "trust", "model", "probability")
    forged = with_array(members, np.array(1.5), *path)
    refused(forged, r"probability must lie in \[0, 1\)")


@pytest.mark.parametrize("kind", ["trees", "imputed", "order"])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("left", 10**6), ("left", 0), ("right", 0), ("feature_idx", 1000),
        ("feature_idx", -1), ("feature_idx", -(10**12)), ("is_categorical", 1),
        ("value", np.nan),
    ],
)  # fmt: skip
def test_trees_that_lead_nowhere_are_refused(members, refused, kind, field, value):
    found = members(kind)
    arrays = {k: np.load(io.BytesIO(v)) for k, v in found.items() if k.endswith(".npy")}
    name, nodes = next((k, v) for k, v in arrays.items() if v.dtype.names)
    assert nodes["is_leaf"][0] == 0
    nodes[field][0] = value
    refused(found | {name: saved(nodes)}, "no sound model: a tree")
    refused(found | {name: saved(nodes[:0])}, "no sound model: a tree has no nodes")


@pytest.mark.parametrize("kind", ["trees", "imputed", "order"])
def test_trees_that_do_not_say_how_many_columns_they_take_are_refused(
    members, refused, kind
):
    """scikit-learn would give them rows of any width, and read beyond their end."""

    def change(schema):
        for part in parts_of(schema, "HistGradientBoostingClassifier"):
            names = list(part["content"])
            if "n_features_in_" in names:
                del part["key_types"]["content"][names.index("n_features_in_")]
                del part["content"]["n_features_in_"]

    refused(with_schema(members(kind), change), "trees are for other columns")


@pytest.mark.parametrize(
    ("kind", "owner", "name"),
    [
        ("table", "TableModel", "decide"),
        ("φ", "NeymanPearsonClassifier", "predict"),
        ("trees", "Pipeline", "predict_proba"),
        ("trees", "HistGradientBoostingClassifier", "_preprocess_X"),
        ("classes", "MulticlassNeymanPearsonClassifier", "class_scores"),
    ],
)
def test_a_value_cannot_take_the_place_of_a_method(members, refused, kind, owner, name):
    def change(schema):
        for part in parts_of(schema, owner):
            part["content"][name] = node("x")
            kinds = part["key_types"]["content"]
            kinds.append(kinds[0])

    refused(with_schema(members(kind), change), "takes a method's place|no sound")


@pytest.mark.parametrize("name", ["n_imputations", "n_rounds"])
@pytest.mark.parametrize("value", [10_001, 10**9, 0, -1, 2.5, "3", None])
def test_no_more_is_made_than_models_make(members, refused, name, value):
    def change(schema):
        for part in parts_of(schema, "TiltedImputer"):
            part["content"][name] = node(value)

    refused(with_schema(members("imputed"), change), f"{name} is")


def test_a_seed_is_no_larger_than_seeds_are(members, refused):
    def change(schema):
        parts = parts_of(schema, "TiltedImputer")
        (fitted,) = [part for part in parts if "_redraw_seed" in part["content"]]
        seed = fitted["content"]["_redraw_seed"]["content"]
        seed["pool_size"] = node(2**33)

    refused(with_schema(members("imputed"), change), "its seed is none|no sound")


@pytest.mark.parametrize(
    ("kind", "names", "value"),
    [
        ("φ", ["threshold_"], -5.0),
        ("φ", ["certificate_", "alpha"], 0.01),
        ("φ", ["certificate_", "alpha"], "small"),
        ("φ", ["certificate_", "controlled_class"], 1),
        ("φ", ["certificate_", "certified"], "yes"),
        ("φ", ["n_features_in_"], 10**12),
        ("φ", ["estimator_"], None),
        ("table", ["dropped"], 5),
        ("table", ["method"], "trees"),
        ("table", ["target"], "z"),
        ("table", ["training", "sha256"], "1" * 64),
        ("table", ["training", "rows"], [1]),
        ("table", ["report"], 3),
        ("several", ["certificate_", "fallback"], 2),
        ("several", ["decision_", "fallback"], 2),
    ],
)
def test_a_schema_that_contradicts_itself_is_refused(
    members, refused, kind, names, value
):
    def change(schema):
        *outer, name = names
        attribute(schema, *outer)["content"]["content"][name] = node(value)

    refused(with_schema(members(kind), change), "no sound model|can't be loaded")


@pytest.mark.parametrize(
    ("rows", "more", "match"),
    [
        (10**10, 10**10, "more rows than can be tested"),
        (5 * 10**6, 5 * 10**6, "more rows than can be tested"),
        (10**10, 0, "look-ups are not what it says"),
        (0, 10**10, "look-ups are not what it says"),
    ],
)
def test_look_ups_of_more_rows_than_there_are_are_refused(tmp_path, rows, more, match):
    """Their exact test has tables of as many rows as may lie above a threshold."""
    rng = np.random.default_rng(0)
    y = np.arange(1600) % 2
    X = rng.normal(size=(1600, 2)) + 1.5 * y[:, None]
    inclusion = np.ones(1600)
    drawn = np.flatnonzero(y == 0)[::5]
    inclusion[drawn] = np.where(rng.uniform(size=len(drawn)) < 0.5, 0.5, 0.0)
    X[inclusion == 0.0] = np.nan
    model = mr.NeymanPearsonClassifier(
        mr.KLIEP(), alpha=0.3, calibration_size=0.5, random_state=0
    ).fit(X, y, inclusion=inclusion)
    mr.save_model(model, tmp_path / "sound.skops")
    mr.load_model(tmp_path / "sound.skops")
    sample = model.calibration_.sample
    rows += sample.n_rows
    lookups = replace(sample.lookups, incomplete=sample.lookups.incomplete + more)
    forged = replace(sample, n_rows=rows, lookups=lookups)
    model.calibration_ = replace(model.calibration_, sample=forged)
    model.certificate_ = replace(model.certificate_, rows=rows)
    mr.save_model(model, tmp_path / "forged.skops")
    with pytest.raises(ModelFileError, match=match):
        mr.load_model(tmp_path / "forged.skops")


@pytest.mark.parametrize("report", ["{}", "5", "null", "[", '{"certificate": {}}'])
def test_a_report_that_is_none_is_refused_in_words(members, report, tmp_path):
    def change(schema):
        schema["content"]["content"]["report"] = node(report)

    path, out = tmp_path / "m.skops", tmp_path / "r.html"
    path.write_bytes(sealed(with_schema(members("table"), change)))
    result = CliRunner().invoke(app, ["report", str(path), "--out", str(out)])
    assert result.exit_code == 4
    assert "is not one that missratio wrote" in result.output
    assert not out.exists()
