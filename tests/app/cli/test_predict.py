"""missratio predict, as a person would use it."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from commands import read_csv, run, write_csv

import missratio as mr


@pytest.fixture
def predict(patients_model, tmp_path):
    """The facts, and the rows that were written; or what was said."""

    def command(table, *options, model=None, status=0):
        out = tmp_path / "p.csv"
        words = ["predict", model or patients_model, table, "--json --force"]
        result = run(*words, "--out", out, *options, status=status)
        return result.stderr if status else (json.loads(result.stdout), read_csv(out))

    return command


def test_labels_and_scores_are_those_of_the_model(predict, patients, patients_model):
    facts, rows = predict(patients, "--keep id")
    model, table = mr.load_model(patients_model), read_csv(patients)
    X = [
        [float(r["pulse"] or "nan"), float(r["sugar"] or "nan"),
         r["ward"] == model.encoder.columns[2].levels[1]]
        for r in table
    ]  # fmt: skip
    decisions = model.decide(np.array(X, dtype=float))
    assert [row["id"] for row in rows] == [row["id"] for row in table]
    assert [row["label"] == "sick" for row in rows] == decisions.codes.tolist()
    found = [float(row["score"] or "-inf") for row in rows]
    np.testing.assert_allclose(found, decisions.scores[:, 0])
    assert facts["rows"] == 3000
    assert facts["other"] == decisions.codes.sum()
    assert facts["unscored"] == np.isinf(decisions.scores).sum() > 0


def test_rows_without_the_blanks_of_the_training_table_are_told(predict, tmp_path):
    """What is promised as observed is promised of rows that lose values alike."""
    rng = np.random.default_rng(0)
    for name, often in (("training", 0.4), ("alike", 0.4), ("complete", 0.0)):
        y = rng.integers(2, size=800)
        u, v = rng.normal(y), rng.normal(y)
        u[rng.random(800) < often * (1 + y) / 2] = np.nan
        rows = np.column_stack([u, v, y]).round(3).tolist()
        texts = [["" if cell != cell else cell for cell in row] for row in rows]
        write_csv(tmp_path / f"{name}.csv", "u,v,y", texts)
    out, how = tmp_path / "m.skops", "--target y --controlled 0 --method indicators"
    run("fit", tmp_path / "training.csv", how, "--new-rows blanks --out", out)
    facts, _ = predict(tmp_path / "alike.csv", model=out)
    assert "unlike" not in facts
    facts, _ = predict(tmp_path / "complete.csv", model=out)
    assert facts["unlike"] == {"u": 0.0}


def test_values_far_outside_the_training_table_are_told(predict, day, tmp_path):
    """Another unit, or a code for what is missing, and nothing where all is well."""
    table = day(5)
    assert "far" not in predict(table)[0]
    lines = table.read_text().splitlines()
    cells = lines[1].split(",")
    lines[1] = ",".join([cells[0], "999", cells[2], *cells[3:]])
    table.write_text("\n".join(lines))
    assert predict(table)[0]["far"] == {"pulse": 1}
    words = ["predict", tmp_path / "model.skops", table, "--out", tmp_path / "q.csv"]
    said = run(*words).stdout
    assert (
        "1 values are far outside the range of the training table: 'pulse' (1;" in said
    )


def test_the_kind_of_file_and_the_order_of_columns_do_not_matter(
    patients, patients_model
):
    first, second = patients.with_name("p.parquet"), patients.with_name("q.parquet")
    run("predict", patients_model, patients, "-q", "--out", first)
    blank = pa.csv.ConvertOptions(strings_can_be_null=True)
    table = pa.csv.read_csv(patients, convert_options=blank)
    turned = patients.with_name("turned.parquet")
    pq.write_table(table.select(["ward", "state", "sugar", "id", "pulse"]), turned)
    run("predict", patients_model, turned, "-q", "--out", second)
    assert pq.read_table(first).equals(pq.read_table(second))
    assert pq.read_table(first).schema.field("label").type == pa.string()


@pytest.mark.parametrize("options", ["", "--missingness ignore --method trees"])
def test_unseen_categories_get_the_controlled_class(fit, predict, tmp_path, options):
    new, model = tmp_path / "new.csv", fit(*[options] * bool(options), out="o.skops")[0]
    new.write_text("pulse,sugar,ward\n90,50,south\n90,50,east\n")
    facts, (south, east) = predict(new, model=model)
    assert (south["label"], south["score"]) == ("well", "")
    assert east["score"]
    assert facts["unscored"] == 1


REFUSED = {
    "pulse,ward\n80,east\n": "lacks 'sugar'",
    "pulse,sugr,ward\n80,5,east\n": "Did you mean 'sugr'",
    "pulse,sugar,ward,age\n80,5,east,3\n": "doesn't know: 'age'",
    "pulse,sugar,ward\n80,5,east\n80,high,east\n": "'high' in line 3 is not one",
    "": "is empty",
}


@pytest.mark.parametrize("content", REFUSED)
def test_other_tables_are_refused(predict, tmp_path, content):
    new = tmp_path / "new.csv"
    new.write_text(content)
    said = predict(new, status=3)
    assert REFUSED[content] in said
    assert str(new) in said
    assert not (tmp_path / "p.csv").exists()
    assert new.read_text() == content
    assert not list(tmp_path.glob(".*"))


def test_a_column_of_the_model_cant_be_dropped(predict, patients):
    said = predict(patients, "--drop id,pulse", status=3)
    assert "--drop 'pulse': the model needs that" in said


def test_files_that_are_no_models_are_refused(predict, patients, patients_model):
    said = predict(patients, model=patients, status=4)
    assert "was refused. It is damaged, or isn't a model file" in said
    bare = patients.with_name("bare.skops")
    mr.save_model(mr.load_model(patients_model).classifier, bare)
    said = predict(patients, model=bare, status=4)
    assert "without the columns of a table" in said
    predict(patients, model="absent.skops", status=1)
