"""Files made to hang, crash or mislead whoever loads them, under digests that fit."""

import io
import json
import struct
from dataclasses import replace
from zipfile import ZipFile

import numpy as np
import pytest
from forging import MODELS, members_of, model_bytes, sealed
from tampering import attribute
from typer.testing import CliRunner

import missratio as mr
from missratio.app.cli import app
from missratio.app.modelfile import ModelFileError
from missratio.app.modelfile.archive import HEADER, MOST_MEMBERS, SCHEMA, foreign_types


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The members of a sound model of each kind that is asked for."""
    folder, made = tmp_path_factory.mktemp("sound"), {}

    def members(kind):
        if kind not in made:
            made[kind] = members_of(model_bytes(folder, kind))
        return dict(made[kind])

    return members


def refused(folder, members, match):
    path = folder / "forged.skops"
    path.write_bytes(sealed(members))
    with pytest.raises(ModelFileError, match=match):
        mr.load_model(path)


def with_schema(members, change):
    schema = json.loads(members[SCHEMA])
    change(schema)
    return {**members, SCHEMA: json.dumps(schema).encode()}


def json_node(value, number):
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


def drop(part, name):
    """Leave out an attribute, and the type of its name."""
    if name in part["content"]:
        place = list(part["content"]).index(name)
        del part["content"][name], part["key_types"]["content"][place]


def add(part, name, node):
    part["content"][name] = node
    kinds = part["key_types"]["content"]
    kinds.append(kinds[0])


@pytest.mark.parametrize("kind", MODELS)
def test_what_was_not_forged_is_loaded(sound, kind, tmp_path):
    path = tmp_path / "m.skops"
    path.write_bytes(sealed(with_schema(sound(kind), lambda schema: None)))
    mr.load_model(path)


def test_lists_of_lists_of_lists_are_not_walked_to_their_end(sound, tmp_path):
    """Thirty lists, each twice in the next: 2³⁰ values in two kilobytes."""

    def change(schema):
        node = list_node([], 10**6)
        for depth in range(30):
            # What has an id that is known is not looked at, but taken from there.
            again = list_node([], node["__id__"])
            node = list_node([node, again], 10**6 + 1 + depth)
        attribute(schema, "certificate_", "assumptions")["content"] = [node]

    refused(tmp_path, with_schema(sound("φ"), change), "refer to each other")


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


def test_an_array_is_checked_whatever_its_member_is_called(sound, tmp_path):
    members = sound("φ")
    schema = json.loads(members[SCHEMA])
    node = attribute(schema, "estimator_", "coef_")
    buffer = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
    np.lib.format.write_array_header_1_0(buffer, header)
    node["file"] = "array.bin"
    members |= {"array.bin": buffer.getvalue(), SCHEMA: json.dumps(schema).encode()}
    refused(tmp_path, members, r"'array.bin' is an array of float64 of shape")


def test_members_that_are_no_arrays_are_refused(sound, tmp_path):
    refused(
        tmp_path, {**sound("φ"), "notes.txt": b"hello"}, "'notes.txt' isn't an array"
    )


@pytest.mark.parametrize("kind", ["trees", "imputed", "order"])
def test_trees_that_do_not_say_how_many_columns_they_take_are_refused(
    sound, kind, tmp_path
):
    """scikit-learn would give them rows of any width, and read beyond their end."""

    def change(schema):
        for part in parts_of(schema, "HistGradientBoostingClassifier"):
            drop(part, "n_features_in_")

    refused(tmp_path, with_schema(sound(kind), change), "trees are for other columns")


@pytest.mark.parametrize(
    ("kind", "owner", "name"),
    [
        ("table", "TableModel", "score"),
        ("φ", "NeymanPearsonClassifier", "predict"),
        ("trees", "Pipeline", "predict_proba"),
        ("trees", "HistGradientBoostingClassifier", "_preprocess_X"),
        ("classes", "MulticlassNeymanPearsonClassifier", "class_scores"),
    ],
)
def test_a_value_cannot_take_the_place_of_a_method(sound, kind, owner, name, tmp_path):
    def change(schema):
        for part in parts_of(schema, owner):
            add(part, name, json_node("x", 10**6))

    refused(
        tmp_path, with_schema(sound(kind), change), "takes a method's place|no sound"
    )


@pytest.mark.parametrize("name", ["n_imputations", "n_rounds"])
@pytest.mark.parametrize("value", [10**9, 0, -1, 2.5, "3", None])
def test_no_more_is_made_than_models_make(sound, name, value, tmp_path):
    def change(schema):
        for part in parts_of(schema, "TiltedImputer"):
            part["content"][name] = json_node(value, 10**6)

    refused(tmp_path, with_schema(sound("imputed"), change), f"{name} is|no sound")


def test_a_seed_is_no_larger_than_seeds_are(sound, tmp_path):
    def change(schema):
        parts = parts_of(schema, "TiltedImputer")
        (fitted,) = [part for part in parts if "_redraw_seed" in part["content"]]
        fitted["content"]["_redraw_seed"]["content"]["pool_size"] = json_node(
            2**33, 10**6
        )

    refused(
        tmp_path, with_schema(sound("imputed"), change), "its seed is none|no sound"
    )


def test_a_directory_of_millions_of_members_is_not_read(tmp_path):
    """An entry has 46 bytes in the file, and twenty times as many once it is read."""
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\x01\x02", *[0] * 18) + b"x"
    directory = entry * (MOST_MEMBERS + 1)
    end = struct.pack(
        "<4s4H2LH", b"PK\x05\x06", 0, 0, 65535, 65535, len(directory), 0, 0
    )
    path = tmp_path / "many.skops"
    path.write_bytes(directory + end)
    with pytest.raises(ModelFileError, match="too many members"):
        mr.load_model(path)


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
def test_a_report_that_is_none_is_refused_in_words(sound, report, tmp_path):
    members = with_schema(
        sound("table"),
        lambda schema: schema["content"]["content"].update(
            report=json_node(report, 10**6)
        ),
    )
    path, out = tmp_path / "m.skops", tmp_path / "r.html"
    path.write_bytes(sealed(members))
    result = CliRunner().invoke(app, ["report", str(path), "--out", str(out)])
    assert result.exit_code == 4
    assert "is not one that missratio wrote" in result.output
    assert not out.exists()


def test_a_file_that_unpacks_to_what_is_allowed_takes_few_times_its_size(
    sound, tmp_path
):
    """An array that nothing refers to is unpacked, and never loaded."""
    tracemalloc = pytest.importorskip("tracemalloc")
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(2**22))
    path = tmp_path / "m.skops"
    path.write_bytes(sealed({**sound("φ"), "zeros.npy": buffer.getvalue()}))
    assert path.stat().st_size < 2**18
    tracemalloc.start()
    mr.load_model(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3.5 * len(buffer.getvalue())


def test_the_header_is_the_archives_own(sound, tmp_path):
    """Not that of a second archive that was put behind the first."""
    path = tmp_path / "m.skops"
    members = sound("φ")
    path.write_bytes(sealed(members))
    with ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(HEADER, b"{}")
    with pytest.raises(ModelFileError, match="one of them twice"):
        mr.load_model(path)
