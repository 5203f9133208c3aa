"""A page about a model, and nothing that is written over."""

import json
from zipfile import ZipFile

import pytest
from commands import run

import missratio as mr
from missratio.app.modelfile.files import HEADER


@pytest.mark.needs("vl_convert")
@pytest.mark.parametrize("suffix", [".html", ".md", ".MD", ".json"])
def test_the_page_names_columns_and_the_table(patients_model, patients, suffix):
    # The model file is all that it takes.
    patients.unlink()
    page = patients_model.with_suffix(suffix)
    assert str(page) in run("report", patients_model, "--out", page).stdout
    text = page.read_text(encoding="utf-8")
    for name in ("pulse", "sugar", "Predicting state in patients.csv", "20"):
        assert name in text
    if suffix == ".json":
        data = json.loads(text)
        assert data["certificate"]["alpha"] == 0.2
        assert {"pulse", "sugar"} <= set(data["importance"]["names"])


OUTPUTS = {
    "fit": ("{table} --target state --controlled well --drop id --method kliep "
            "--missingness ignore --out", "m.skops"),
    "query": ("{table} --target state --controlled well --drop id --out", "plan.csv"),
    "predict": ("{model} {table} --out", "p.csv"),
    "report": ("{model} --out", "r.md"),
}  # fmt: skip


@pytest.mark.parametrize("command", OUTPUTS)
def test_nothing_is_overwritten_without_force(patients, patients_model, command):
    words, name = OUTPUTS[command]
    given = words.format(table=patients, model=patients_model).split()
    out = patients.with_name(name)
    out.write_text("mine")
    assert "--force" in run(command, *given, out, status=1).stderr
    assert out.read_text() == "mine"
    run(command, *given, out, "--force", "-q")
    assert out.read_bytes() != b"mine"
    read = patients if command in ("query", "predict") else patients_model
    if command in ("query", "predict"):
        before = read.read_bytes()
        said = run(command, *given, read, "--force", status=1).stderr
        assert "never overwritten" in said
        assert read.read_bytes() == before


@pytest.mark.needs("vl_convert")
def test_the_same_table_gives_the_same_bytes_wherever_they_are_written(
    patients, monkeypatch
):
    """And nobody learns from them how the folders of this machine are called."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    how = "--target state --controlled well --drop id --new-rows blanks"
    made = []
    for name in ("one", "another"):
        folder = patients.with_name(name)
        folder.mkdir()
        model, page = folder / "m.skops", folder / "r.html"
        run("fit", patients, how, "--compare-seconds 30", "--out", model, "-q")
        run("report", model, "--out", page, "-q")
        made.append((model.read_bytes(), page.read_bytes()))
        schema = ZipFile(model).read("schema.json")
        for content in (page.read_bytes(), schema, ZipFile(model).read(HEADER)):
            assert str(patients.parent).encode() not in content
    assert made[0] == made[1]
    report = json.loads(mr.load_model(model).report)
    assert "methods compared" in report["origin"]["method"]
