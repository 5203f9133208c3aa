"""A page about a model, and nothing that is written over."""

import json

import pytest


@pytest.mark.needs("vl_convert")
@pytest.mark.parametrize("suffix", [".html", ".md", ".MD", ".json"])
def test_the_page_names_columns_and_the_table(patients_model, patients, run, suffix):
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
def test_nothing_is_overwritten_without_force(run, patients, patients_model, command):
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
