"""missratio predict, as a person would use it."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import missratio as mr


def predictions(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_labels_and_scores_are_those_of_the_model(fit, run, patients):
    path, _ = fit()
    out = patients.with_name("p.csv")
    facts = json.loads(
        run("predict", path, patients, "--out", out, "--keep", "id", "--json").stdout
    )
    rows = predictions(out)
    model = mr.load_model(path)
    with patients.open(newline="") as stream:
        table = list(csv.DictReader(stream))
    X = [
        [float(r["pulse"] or "nan"), float(r["sugar"] or "nan"),
         r["ward"] == model.encoder.columns[2].levels[1]]
        for r in table
    ]  # fmt: skip
    decided = model.decide(np.array(X, dtype=float))
    scores, above = decided.scores[:, 0], decided.codes == 1
    assert [row["id"] for row in rows] == [row["id"] for row in table]
    assert [row["label"] == "sick" for row in rows] == above.tolist()
    found = [float(row["score"] or "-inf") for row in rows]
    np.testing.assert_allclose(found, scores)
    assert facts["rows"] == 3000
    assert facts["other"] == above.sum()
    assert facts["unscored"] == np.isinf(scores).sum() > 0


def test_the_kind_of_file_and_the_order_of_columns_do_not_matter(fit, run, patients):
    path, _ = fit()
    first = patients.with_name("p.parquet")
    run("predict", path, patients, "--out", first, "-q")
    table = pa.csv.read_csv(
        patients, convert_options=pa.csv.ConvertOptions(strings_can_be_null=True)
    )
    turned = patients.with_name("turned.parquet")
    pq.write_table(table.select(["ward", "state", "sugar", "id", "pulse"]), turned)
    second = patients.with_name("q.parquet")
    run("predict", path, turned, "--out", second, "-q")
    assert pq.read_table(first).equals(pq.read_table(second))
    assert pq.read_table(first).schema.field("label").type == pa.string()


def test_unseen_categories_get_the_controlled_class(fit, run, patients):
    new = patients.with_name("new.csv")
    new.write_text("pulse,sugar,ward\n90,50,south\n90,50,east\n")
    for options in ([], ["--missingness", "ignore", "--method", "trees"]):
        path, _ = fit(*options, "--force")
        out = patients.with_name("p.csv")
        said = run("predict", path, new, "--out", out, "--force").stdout
        labels = [(row["label"], row["score"] == "") for row in predictions(out)]
        assert labels[0] == ("well", True)
        assert not labels[1][1]
        assert "1 can't be scored" in said


@pytest.mark.parametrize("method", ["kliep", "naive-bayes"])
def test_standard_errors_where_asked_for(fit, run, patients, method):
    out, path = patients.with_name("p.csv"), patients.with_name("model.skops")
    fit()
    result = run("predict", path, patients, "--out", out, "--standard-errors", status=3)
    assert "Fit it with --standard-errors" in result.stderr
    fit("--standard-errors", "--method", method, "--force")
    run("predict", path, patients, "--out", out, "--standard-errors", "-q")
    rows = predictions(out)
    scored = [row for row in rows if row["score"]]
    assert all(0 < float(row["standard_error"]) < 10 for row in scored)
    unscored = [row for row in rows if not row["score"]]
    assert unscored[0]["standard_error"] == ""


def test_trees_have_no_standard_errors(run, patients):
    result = run(
        "fit", patients, "--target", "state", "--controlled", "well", "--drop", "id",
        "--missingness", "ignore", "--method", "trees", "--standard-errors", "--out",
        patients.with_name("m.skops"), status=2,
    )  # fmt: skip
    assert "'kliep', 'js', 'kliep-cv', 'naive-bayes'" in result.stderr


REFUSED = {
    "pulse,ward\n80,east\n": "lacks 'sugar'",
    "pulse,sugr,ward\n80,5,east\n": "Did you mean 'sugr'",
    "pulse,sugar,ward,age\n80,5,east,3\n": "doesn't know: 'age'",
    "pulse,sugar,ward\n80,5,east\n80,high,east\n": "'high' in line 3 is not one",
    "pulse,sugar,ward\n": "no rows",
    "": "is empty",
    "pulse,pulse,sugar,ward\n80,80,5,east\n": "several columns named 'pulse'",
    "pulse,sugar,ward\n80,inf,east\n": "must be finite|is not one",
}


@pytest.mark.parametrize("content", REFUSED)
def test_other_tables_are_refused(fit, run, patients, content):
    path, _ = fit()
    new, out = patients.with_name("new.csv"), patients.with_name("p.csv")
    new.write_text(content)
    result = run("predict", path, new, "--out", out, status=3)
    assert any(word in result.stderr for word in REFUSED[content].split("|"))
    assert not out.exists()
    assert new.read_text() == content
    assert not list(patients.parent.glob(".*"))


def test_outputs_are_checked_first(fit, run, patients):
    path, _ = fit()
    out = patients.with_name("p.csv")
    run("predict", path, patients, "--out", out, "-q")
    before = out.read_bytes()
    assert "exists" in run("predict", path, patients, "--out", out, status=1).stderr
    assert out.read_bytes() == before
    result = run("predict", path, patients, "--out", patients, "--force", status=1)
    assert "never overwritten" in result.stderr
    result = run("predict", path, patients, "--out", out.with_suffix(".xls"), status=2)
    assert ".csv, .parquet, .xlsx" in result.stderr


def test_files_that_are_no_models_are_refused(fit, run, patients):
    out = patients.with_name("p.csv")
    result = run("predict", patients, patients, "--out", out, status=4)
    assert "was refused. It is damaged, or isn't a model file" in result.stderr
    path, _ = fit()
    bare = patients.with_name("bare.skops")
    mr.save_model(mr.load_model(path).classifier, bare)
    result = run("predict", bare, patients, "--out", out, status=4)
    assert "without the columns of a table" in result.stderr
    run("predict", "absent.skops", patients, "--out", out, status=1)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_an_interrupted_run_leaves_no_half_file(fit, patients, name):
    path, _ = fit()
    big, out = patients.with_name("big.parquet"), patients.with_name("p.parquet")
    column = pa.array(np.linspace(50, 120, 3_000_000))
    codes = pa.array(np.zeros(len(column), dtype=np.int32))
    ward = pa.DictionaryArray.from_arrays(codes, ["east"])
    pq.write_table(pa.table({"pulse": column, "sugar": column, "ward": ward}), big)
    out.write_bytes(b"before")
    process = subprocess.Popen(
        [sys.executable, "-m", "missratio.app.cli", "predict", path, big, "--out", out,
         "--force", "-q"],
        stderr=subprocess.PIPE,
        # Interrupted where it takes a lock, coverage's tracer waits for itself.
        env={**os.environ, "COVERAGE_PROCESS_CONFIG": ""},
    )  # fmt: skip
    until = time.monotonic() + 60
    while not list(patients.parent.glob(".p-*.parquet")) and time.monotonic() < until:
        time.sleep(0.002)
    os.kill(process.pid, getattr(signal, name))
    _, said = process.communicate(timeout=60)
    assert out.read_bytes() == b"before"
    if name == "SIGKILL":
        assert process.returncode == -signal.SIGKILL
        return
    assert process.returncode == 130
    assert said.decode().strip() == "Interrupted: nothing was written."
    assert not list(patients.parent.glob(".p-*"))


def test_a_column_of_the_model_cant_be_dropped(run, fit, patients):
    path, _ = fit()
    out = patients.with_name("p.csv")
    result = run(
        "predict", path, patients, "--drop", "id,pulse", "--out", out, status=3
    )
    assert "--drop 'pulse': the model needs that" in result.stderr
    assert not out.exists()
