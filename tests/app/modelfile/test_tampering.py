"""A file that was changed, made up or damaged is refused, and runs no code."""

import io
import json
import os
import pickle
from zipfile import ZIP_BZIP2, ZIP_LZMA, ZipFile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tampering import (
    attribute,
    change_header,
    change_schema,
    members_of,
    refused,
    write,
)

import missratio as mr
from missratio.app.modelfile.archive import FORMAT, HEADER, SCHEMA, _digest, versions


def test_a_file_written_again_as_it_was_is_loaded(saved):
    change_schema(saved, lambda schema: None)
    mr.load_model(saved)


@settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(st.integers(0, 10**9), st.integers(1, 255))
def test_a_flipped_byte_is_noticed_or_does_no_harm(saved, place, flip):
    content = bytearray(saved.read_bytes())
    model = mr.load_model(saved)
    content[place % len(content)] ^= flip
    damaged = saved.with_name("damaged.skops")
    damaged.write_bytes(content)
    try:
        loaded = mr.load_model(damaged)
    except mr.app.modelfile.ModelFileError:
        return
    assert loaded.certificate_ == model.certificate_


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_file_that_was_cut_is_refused(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    refused(saved, "damaged, or isn't a model file")


def test_a_pickle_is_not_run(saved, tmp_path):
    class Harm:
        def __reduce__(self):
            return (exec, (f"open({str(tmp_path / 'harm')!r}, 'w').close()",))

    saved.write_bytes(pickle.dumps(Harm()))
    refused(saved, "isn.t a model file")
    assert not (tmp_path / "harm").exists()


def test_an_object_array_with_a_pickle_is_not_run(saved, tmp_path):
    class Harm:
        def __reduce__(self):
            return (exec, (f"open({str(tmp_path / 'harm')!r}, 'w').close()",))

    members = members_of(saved)
    buffer = io.BytesIO()
    np.save(buffer, np.array([Harm()], dtype=object), allow_pickle=True)
    for name in members:
        if name.endswith(".npy"):
            members[name] = buffer.getvalue()
    write(saved, members)
    refused(saved, "array of object of shape")
    assert not (tmp_path / "harm").exists()


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
def test_foreign_types_are_refused(saved, loader):
    module, name = FOREIGN[loader]

    def smuggle(schema):
        node = attribute(schema, "random_state")
        node.update(__loader__=loader, __module__=module, __class__=name)

    change_schema(saved, smuggle)
    refused(saved, f"It holds '{module}.{name}'.*Nothing of it was loaded")


def set_json(*names, value):
    def change(schema):
        node = attribute(schema, *names)
        # An object that occurs twice is kept once, under its id.
        node.update(content=json.dumps(value), __id__=-1)

    return change


UNSOUND = {
    "another threshold": set_json("threshold_", value=-5.0),
    "a better alpha": set_json("certificate_", "alpha", value=0.01),
    "an alpha that is none": set_json("certificate_", "alpha", value="small"),
    "another class": set_json("certificate_", "controlled_class", value="b"),
    "certified or not": set_json("certificate_", "certified", value="yes"),
    "no columns": set_json("n_features_in_", value=0),
    "too many columns": set_json("n_features_in_", value=10**12),
    "weights": set_json("calibration_", "trust", "odds_factor", value="1"),
    "no estimator": set_json("estimator_", value=None),
}


@pytest.mark.parametrize("what", UNSOUND)
def test_a_model_that_makes_no_sense_is_refused(saved, what):
    change_schema(saved, UNSOUND[what])
    refused(saved, "no sound model|can't be loaded")


def test_coefficients_of_another_size_are_refused(saved):
    members = members_of(saved)
    buffer = io.BytesIO()
    np.save(buffer, np.ones(7))
    schema = json.loads(members[SCHEMA])
    name = attribute(schema, "estimator_", "coef_")["file"]
    write(saved, {**members, name: buffer.getvalue()})
    refused(saved, "no sound model")


def test_a_missing_probability_above_one_is_refused(tmp_path):
    path = tmp_path / "model.skops"
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 1)), np.repeat([0, 1], 200)
    phi = mr.StepMissingness(1.0, 0.0, 0.5)
    X[:200] = mr.corrupt(X[:200], phi, 0)
    mr.save_model(
        mr.NeymanPearsonClassifier(
            mr.KLIEP(), alpha=0.3, missingness={0: phi}, random_state=0
        ).fit(X, y),
        path,
    )
    members = members_of(path)
    node = attribute(
        json.loads(members[SCHEMA]), "calibration_", "trust", "model", "probability"
    )
    buffer = io.BytesIO()
    np.save(buffer, np.array(1.5))
    write(path, {**members, node["file"]: buffer.getvalue()})
    refused(path, r"probability must lie in \[0, 1\)")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("left", 10**6),
        ("right", 0),
        ("feature_idx", 1000),
        ("feature_idx", -1),
        ("feature_idx", -(10**12)),
        ("value", np.nan),
    ],
)
def test_trees_that_lead_nowhere_are_refused(saved_trees, field, value):
    members = members_of(saved_trees)
    for name, content in members.items():
        if not name.endswith(".npy"):
            continue
        array = np.load(io.BytesIO(content))
        if array.dtype.names and field in array.dtype.names:
            array[field][0] = value
            buffer = io.BytesIO()
            np.save(buffer, array)
            members[name] = buffer.getvalue()
            break
    write(saved_trees, members)
    refused(saved_trees, "no sound model: a tree")


def array_member(path, *names):
    """The name of the member that holds an attribute of the model."""
    return attribute(json.loads(members_of(path)[SCHEMA]), *names)["file"]


def replace_array(path, array, *names):
    buffer = io.BytesIO()
    np.save(buffer, array)
    write(path, {**members_of(path), array_member(path, *names): buffer.getvalue()})


@pytest.mark.parametrize(
    "coef",
    [
        np.array([1.0, np.nan, 0.0]),
        np.array([1.0, np.inf, 0.0]),
        np.array([1.0, 1j, 0.0]),
        np.array(["1", "2", "3"]),
    ],
    ids=["NaN", "infinite", "complex", "text"],
)
def test_coefficients_that_are_no_finite_numbers_are_refused(saved, coef):
    replace_array(saved, coef, "estimator_", "coef_")
    refused(saved, "coef_ aren't finite numbers|array of complex128")


def test_an_array_that_claims_more_than_it_holds_is_refused(saved):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
    )
    name = array_member(saved, "estimator_", "coef_")
    write(saved, {**members_of(saved), name: buffer.getvalue()})
    refused(saved, "array of float64 of shape")


@pytest.mark.parametrize("method", [ZIP_BZIP2, ZIP_LZMA])
def test_members_packed_in_another_way_are_refused(saved, method):
    members = members_of(saved)
    with ZipFile(saved, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    refused(saved, "packed in a way")


def test_a_member_that_lies_about_its_size_is_refused(saved):
    with ZipFile(saved) as archive:
        info = archive.getinfo(SCHEMA)
    content = saved.read_bytes()
    size = info.file_size.to_bytes(4, "little")
    central = content.rindex(SCHEMA.encode()) - 46
    assert content[central + 24 : central + 28] == size
    for lie in (10, info.file_size + 10):
        forged = bytearray(content)
        forged[central + 24 : central + 28] = lie.to_bytes(4, "little")
        saved.write_bytes(forged)
        refused(saved, "damaged")


def test_a_schema_is_no_larger_than_schemas_are(saved):
    members = members_of(saved)
    write(saved, {**members, SCHEMA: b"[" + b"[]," * 3_000_000 + b"[]]"})
    refused(saved, "of them text: no model is so large")


def test_what_could_not_be_loaded_is_not_saved(saved, tmp_path, monkeypatch):
    model = mr.load_model(saved)
    monkeypatch.setattr("missratio.app.modelfile.archive.MOST_JSON_BYTES", 1000)
    with pytest.raises(mr.app.modelfile.ModelFileError, match="no model is so large"):
        mr.save_model(model, tmp_path / "large.skops")
    assert not (tmp_path / "large.skops").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_only_regular_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "not a regular file")
    refused("/dev/zero", "not a regular file")


def set_part(*names, value):
    """Change an attribute, of which the last may be a key of a dict."""

    def change(schema):
        node = attribute(schema, *names)
        node.clear()
        node.update(
            __class__="str", __module__="builtins", __loader__="JsonNode",
            content=json.dumps(value), is_json=True, __id__=-1,
        )  # fmt: skip

    return change


UNFIT = {
    "dropped": set_part("dropped", value=5),
    "method": set_part("method", value="trees"),
    "method of another type": set_part("method", value=1),
    "target": set_part("target", value="z"),
    "digest": set_part("training", "sha256", value="1" * 64),
    "no digest": set_part("training", "sha256", value="abc"),
    "file": set_part("training", "file", value=7),
    "rows": set_part("training", "rows", value=[1]),
    "report": set_part("report", value=3),
}


@pytest.mark.parametrize("what", UNFIT)
def test_a_model_that_does_not_fit_its_header_is_refused(saved_table, what):
    mr.load_model(saved_table)
    change_schema(saved_table, UNFIT[what])
    refused(saved_table, "no sound model")


@pytest.mark.parametrize(
    "entry",
    [{"method": "trees"}, {"target": "z"}, {"columns": []}, {"training": {}}],
    ids=lambda entry: next(iter(entry)),
)
def test_a_header_that_does_not_fit_its_model_is_refused(saved_table, entry):
    change_header(saved_table, **entry)
    refused(saved_table, f"its header has another {next(iter(entry))}")


def test_another_certificate_in_the_header_is_refused(saved):
    certificate = json.loads(members_of(saved)[HEADER])["certificate"]
    change_header(saved, certificate={**certificate, "alpha": 0.001})
    refused(saved, "its certificates differ")


@pytest.mark.parametrize(
    ("package", "number", "reason"),
    [
        ("missratio", "99.0.0", "written with missratio 99.0.0"),
        ("scikit-learn", "0.24.0", "install scikit-learn==0.24.0"),
    ],
)
def test_another_version_is_refused(saved, package, number, reason):
    change_header(saved, versions={**versions(), package: number})
    refused(saved, reason)


def test_another_format_is_refused(saved):
    change_header(saved, format=FORMAT + 1)
    refused(saved, f"of format {FORMAT + 1}, and this version reads {FORMAT}")


def test_a_later_patch_is_loaded(saved):
    here = versions()
    major, minor = here["scikit-learn"].split(".")[:2]
    change_header(saved, versions={**here, "scikit-learn": f"{major}.{minor}.99"})
    mr.load_model(saved)


def test_changes_without_a_new_digest_are_noticed(saved):
    members = members_of(saved)
    write(saved, {**members, "more.npy": b"more"}, sealed=False)
    refused(saved, "changed after it was written")


@pytest.mark.parametrize(
    "other", [{"a": b"x", "b": b"yz"}, {"a": b"xy", "c": b"z"}, {"ab": b"xyz"}]
)
def test_the_digest_is_of_names_and_lengths_too(other):
    """Bytes that move from one member to another leave all of them together alike."""
    assert _digest(other) != _digest({"a": b"xy", "b": b"z"})


def test_a_zip_bomb_is_not_unpacked(saved, monkeypatch):
    members = {**members_of(saved), "big.npy": bytes(200_000_000)}
    write(saved, members, sealed=False)
    assert saved.stat().st_size < 10**6
    monkeypatch.setattr("missratio.app.modelfile.archive.MOST_BYTES", 10**8)
    monkeypatch.setattr(ZipFile, "open", None)
    refused(saved, "would unpack to 2.* bytes")


def test_a_deep_schema_is_refused(saved):
    members = members_of(saved)
    write(saved, {**members, SCHEMA: b'{"a":' * 100_000 + b"1" + b"}" * 100_000})
    refused(saved, "damaged|can't be loaded")


def test_members_that_occur_twice_are_refused(saved):
    with pytest.warns(UserWarning, match="Duplicate"), ZipFile(saved, "a") as archive:
        archive.writestr(SCHEMA, b"{}")
    refused(saved, "one of them twice")


def test_a_plain_skops_file_is_refused(saved):
    members = members_of(saved)
    del members[HEADER]
    write(saved, members, sealed=False)
    refused(saved, "missratio didn't write it")


def test_a_header_that_is_none_is_refused(saved):
    members = members_of(saved)
    for header in (b"{", b"[1]", b"[" * 10**5):
        write(saved, {**members, HEADER: header}, sealed=False)
        refused(saved, f"Its {HEADER} is damaged")


def test_a_model_without_versions_is_refused(saved):
    change_header(saved, versions=None)
    refused(saved, "which versions wrote it")


def test_a_file_larger_than_models_are_is_not_read(saved, monkeypatch):
    monkeypatch.setattr(mr.app.modelfile.archive, "MOST_BYTES", 1000)
    refused(saved, "more than 1000 bytes")


def test_what_is_as_large_as_is_allowed_is_loaded(saved, monkeypatch):
    """A limit is the largest that may be: one more is refused."""
    sizes = {name: len(content) for name, content in members_of(saved).items()}
    total, text = sum(sizes.values()), sizes[HEADER] + sizes[SCHEMA]
    for name, limit, match in (
        ("MOST_BYTES", total, "would unpack to"),
        ("MOST_JSON_BYTES", text, "of them text"),
        ("MOST_MEMBERS", len(sizes), "too many members"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(mr.app.modelfile.archive, name, limit)
            mr.load_model(saved)
            patched.setattr(mr.app.modelfile.archive, name, limit - 1)
            refused(saved, match)
    size = saved.stat().st_size
    monkeypatch.setattr(mr.app.modelfile.archive, "MOST_BYTES", size)
    assert len(mr.app.modelfile.archive.read_bytes(saved)) == size
    monkeypatch.setattr(mr.app.modelfile.archive, "MOST_BYTES", size - 1)
    refused(saved, f"more than {size - 1} bytes")


def test_a_file_of_more_than_256_mib_is_not_read(tmp_path):
    """It has no content, and needs none to be refused."""
    path = tmp_path / "large.skops"
    with path.open("wb") as stream:
        stream.truncate(2**28 + 1)
    refused(path, "more than 268435456 bytes")


def test_a_classifier_alone_has_no_report_to_show(saved):
    with pytest.raises(mr.app.modelfile.ModelFileError, match="saved from Python"):
        mr.app.modelfile.load_table_model(saved)
