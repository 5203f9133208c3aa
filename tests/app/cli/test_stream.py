"""missratio fit in passes over Parquet files: the same as in memory."""

import itertools
import json
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import missratio as mr
from missratio._files import open_table
from missratio.app.tables import (
    EncodedSource,
    Spared,
    Wanted,
    read_labelled,
    row_groups,
    survey_columns,
)
from missratio.app.workflow import is_large
from missratio.app.workflow import stream as _memory

LEVELS = ["east", "west", "north"]
BASE = ["--target", "y", "--controlled", "well", "--alpha", "10%"]
PHI = """
[classes.well]
missing = "values"
kind = "logistic"
features.a = { intercept = -2.0, coef = 1.0 }
"""


def make(n=6000, seed=0, lost=None):
    """Two numbers and a category; 'north' is found in the last rows alone."""
    rng = np.random.default_rng(seed)
    sick = np.arange(n) % 2 == 1
    X = rng.normal(0.8 * sick[:, None], 1.0, (n, 2))
    if lost is not None:
        X[~sick] = mr.corrupt(X[~sick], lost, rng)
    ward = rng.integers(0, 2 + (np.arange(n) > 0.9 * n))
    return pa.table(
        {
            "id": np.arange(n).astype(str),
            "a": pa.array(X[:, 0], from_pandas=True),
            "b": pa.array(X[:, 1].astype(np.float32), from_pandas=True),
            "ward": np.array(LEVELS)[ward],
            "y": np.array(["well", "sick"])[sick.astype(int)],
        }
    )


@pytest.fixture
def large(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(make(), path, row_group_size=700)
    return path


@pytest.fixture
def out(tmp_path):
    return tmp_path / "m.skops"


def stream(run, path, out, *words, status=0):
    drop = () if "--drop" in words else ("--drop", "id")
    return run("fit", path, *BASE, *drop, "--stream", "--out", out, "--json", *words,
               status=status)  # fmt: skip


def joined(parts):
    return list(itertools.chain.from_iterable(parts))


def source_of(path, *, drop=("id",)):
    groups, schema = row_groups(path)
    survey = survey_columns(path, groups, schema, Wanted("y", drop))
    meaning = {label: label for label in sorted(survey.counts)}
    n_rows = sum(group.rows for group in groups)
    return EncodedSource(groups, survey.encoder, "y", meaning, n_rows), survey


def test_a_pass_gives_the_rows_that_a_table_in_memory_has(large):
    source, survey = source_of(large)
    blocks = source.fold(lambda block: [block], joined)
    table = read_labelled(open_table(large), Wanted("y", ["id"]))
    assert survey.encoder.columns == table.encoder.columns
    np.testing.assert_array_equal(np.concatenate([b.rows for b in blocks]), table.X)
    assert np.concatenate([b.labels for b in blocks]).tolist() == table.y.tolist()
    assert survey.counts == {str(label): n for label, n in table.counts.items()}


@pytest.mark.parametrize(
    "ratio", [mr.KLIEP(), mr.FDivergenceRatio("js"), mr.NaiveBayesRatio()]
)
def test_coefficients_are_those_of_the_fit_in_memory(large, ratio):
    table = read_labelled(open_table(large), Wanted("y", ["id"]))
    coef = ratio.fit(source_of(large)[0]).coef_
    np.testing.assert_allclose(coef, ratio.fit(table.X, table.y).coef_, atol=1e-9)


def test_a_certificate_from_files(run, large, out, tmp_path):
    facts = json.loads(stream(run, large, out).stdout)
    assert facts["method"] == "js"
    assert "read in passes" in facts["why"]
    assert facts["rows"] == {"sick": 3000, "well": 3000}
    fresh = make(40_000, seed=1)
    model = mr.load_model(out)
    labels = model.predict(fresh.drop_columns(["id"]))
    sick = fresh["y"].to_numpy(zero_copy_only=False) == "sick"
    assert (labels[~sick] == "sick").mean() < 0.1
    found = (labels[sick] == "sick").mean()
    assert facts["power"]["low"] - 0.03 < found < facts["power"]["high"] + 0.03
    # Errors are measured on rows that took no part.
    assert facts["power"]["source"] == "test"
    run("predict", out, large, "--out", tmp_path / "p.parquet", "-q")
    run("report", out, "--out", tmp_path / "report.html", "-q")


def test_what_is_measured_on_took_no_part(large):
    whole, _ = source_of(large)
    source = replace(whole, spared=Spared(0, {"well": 0.1, "sick": 0.05}))
    kept = source.fold(lambda block: [block.rows], joined)
    drawn, labels = source.drawn()
    every = np.concatenate([*kept, drawn])
    all_rows = whole.fold(lambda block: [block.rows], joined)
    assert sorted(map(tuple, every)) == sorted(map(tuple, np.concatenate(all_rows)))
    assert 200 < (labels == "well").sum() < 400
    assert 80 < (labels == "sick").sum() < 230


def test_missing_values_by_a_file_that_says_why(run, tmp_path, out):
    phi = mr.LogisticMissingness([-2.0, -np.inf], [1.0, 0.0])
    path = tmp_path / "t.parquet"
    pq.write_table(make(12_000, lost=phi), path, row_group_size=1000)
    (tmp_path / "phi.toml").write_text(PHI)
    refused = stream(run, path, out, status=3).stderr
    assert "class 'well' has missing values in 'a' (" in refused
    facts = json.loads(
        stream(run, path, out, "--missingness", tmp_path / "phi.toml").stdout
    )
    assert facts["way"] == "file"
    fresh = make(40_000, seed=1)
    labels = mr.load_model(out).predict(fresh.drop_columns(["id"]))
    sick = fresh["y"].to_numpy(zero_copy_only=False) == "sick"
    assert 0.03 < (labels[~sick] == "sick").mean() < 0.1
    observed = json.loads(
        stream(run, path, out, "--missingness", "ignore", "--force").stdout
    )
    assert observed["certificate"]["deployment"] == "as-observed"


def test_a_model_of_files_is_watched_and_its_columns_are_named(run, large, out):
    stream(run, large, out, "--method", "naive-bayes")
    told = json.loads(run("watch", out, large, "--json").stdout)
    assert told["rows"] == 3000
    table = pq.read_table(large)
    sick = [
        value if label == "sick" else None
        for value, label in zip(*(table[c].to_pylist() for c in "ay"), strict=True)
    ]
    pq.write_table(table.set_column(1, "a", pa.array(sick)), large)
    options = ["--method", "naive-bayes", "--missingness", "ignore", "--force"]
    result = stream(run, large, out, *options, status=3)
    assert "Class 'well': feature(s) ['a'] are never observed" in result.stderr


def test_a_folder_of_files_is_one_table(run, large, out, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    table = pq.read_table(large)
    for i in range(3):
        pq.write_table(table.slice(2000 * i, 2000), folder / f"{i}.parquet")
    run("fit", folder, *BASE, "--drop", "id", "--out", out, "-q")
    model = mr.load_model(out)
    assert sum(model.training.rows.values()) == 6000
    assert model.training.file == "parts"


def test_folders_named_for_columns_add_them(run, out, tmp_path):
    table, folder = make(), tmp_path / "parts"
    wards, labels = table["ward"].to_numpy(), table["y"].to_numpy()
    for ward in LEVELS:
        for label in ("well", "sick"):
            path = folder / f"ward={ward}" / f"y={label}" / "0.parquet"
            path.parent.mkdir(parents=True)
            chosen = pa.array((wards == ward) & (labels == label))
            pq.write_table(table.select(["a", "b"]).filter(chosen), path)
    facts = json.loads(run("fit", folder, *BASE, "--out", out, "--json").stdout)
    assert facts["rows"] == {"sick": 3000, "well": 3000}
    assert {"a", "b", "ward"} == set(mr.load_model(out).encoder.names)


def test_large_files_are_read_in_passes_by_themselves(large, monkeypatch):
    monkeypatch.setattr(_memory, "free_memory", lambda: 10**12)
    assert not is_large(large)
    monkeypatch.setattr(_memory, "free_memory", lambda: 6000 * 5 * 32)
    assert is_large(large)
    monkeypatch.setattr(_memory, "free_memory", lambda: None)
    assert not is_large(large)


def test_a_containers_limit_counts(tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    assert _memory._of_group(tmp_path) == 600
    (tmp_path / "memory.max").write_text("max\n")
    assert _memory._of_group(tmp_path) is None


def test_passes_are_told(run, large, out):
    said = stream(run, large, out).stderr
    assert "First pass over" in said
    assert "Pass 2 of the fit" in said


@pytest.mark.parametrize("passes", [0, 1, 2])
def test_an_interrupted_fit_leaves_what_was_there(run, large, out, monkeypatch, passes):
    fold, left = EncodedSource.fold, iter(range(passes))

    def interrupted(self, work, merge):
        def work_on(block):
            if last:
                raise KeyboardInterrupt
            return work(block)

        last = next(left, None) is None
        return fold(self, work_on, merge)

    monkeypatch.setattr(EncodedSource, "fold", interrupted)
    out.write_bytes(b"before")
    done = stream(run, large, out, "--force", status=130)
    assert "Interrupted: nothing was written." in done.stderr
    assert out.read_bytes() == b"before"
    assert sorted(path.name for path in out.parent.iterdir()) == [out.name, large.name]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--method", "trees"], "needs all rows in memory"),
        (["--method", "tres"], "must be one of"),
        (["--missingness", "learn"], "--missingness learn needs all rows in memory"),
        (["--standard-errors"], "--standard-errors needs all rows"),
        (["--query-budget", "9"], "--query-budget needs all rows"),
        (["--controlled", "wel"], "Did you mean 'well'"),
        (["--drop", "idd"], "Did you mean 'id'"),
        (["--header-row", "2"], "--header-row is not for Parquet"),
        (["--categorical", "a"], "column 'a' is of numbers"),
    ],
)
def test_what_needs_memory_is_refused(run, large, out, words, says):
    result = stream(run, large, out, *words, status=3)
    assert says in " ".join(result.stderr.split())
    assert not out.exists()


def test_other_kinds_of_files_are_refused(run, tmp_path, out):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,well\n2,sick\n")
    result = run("fit", path, *BASE, "--stream", "--out", out, status=3)
    assert "only Parquet files can" in result.stderr
    (tmp_path / "empty").mkdir()
    result = run("fit", tmp_path / "empty", *BASE, "--out", out, status=3)
    assert "no file that ends in .parquet" in result.stderr
    run("fit", tmp_path / "absent.parquet", *BASE, "--stream", "--out", out, status=1)


def damaged(table, kind):
    """A table with something wrong in its last rows."""
    n = len(table)
    if kind == "infinite":
        column = table["a"].to_numpy().copy()
        column[n - 3] = np.inf
        return table.set_column(1, "a", pa.array(column))
    if kind == "unlabelled":
        column = table["y"].to_pylist()
        column[n - 3] = None
        return table.set_column(4, "y", pa.array(column))
    if kind == "mixed":
        column = [str(i) for i in range(n)]
        column[n - 3] = "n. a."
        return table.set_column(1, "a", pa.array(column))
    if kind == "third":
        column = table["y"].to_pylist()
        column[n - 3] = "ill"
        return table.set_column(4, "y", pa.array(column))
    return table.set_column(1, "a", pa.array(np.ones(n)))


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("infinite", "'a' must be finite: got inf in row 398 of"),
        ("unlabelled", "1 row(s) have no label"),
        ("mixed", "'n. a.' in row 5998 is the first"),
        ("third", "--versus rest"),
        ("constant", "column 'a' is 1 in every row"),
    ],
)
def test_what_is_wrong_in_a_late_row_group_is_named(run, tmp_path, out, kind, says):
    path = tmp_path / "t.parquet"
    pq.write_table(damaged(make(), kind), path, row_group_size=700)
    result = stream(run, path, out, status=3)
    assert says in " ".join(result.stderr.split())
    if kind == "third":
        facts = json.loads(stream(run, path, out, "--versus", "rest").stdout)
        assert facts["rows"] == {"rest": 3000, "well": 3000}
        assert mr.load_model(out).rest == ("ill", "sick")
    if kind == "unlabelled":
        facts = json.loads(stream(run, path, out, "--skip-unlabelled").stdout)
        assert sum(facts["rows"].values()) == 5999


def test_files_that_differ_are_refused(run, large, out, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    table = pq.read_table(large)
    pq.write_table(table, folder / "0.parquet")
    pq.write_table(table.drop_columns(["a"]), folder / "1.parquet")
    result = stream(run, folder, out, status=3)
    assert "column 'a' is absent, and double in" in " ".join(result.stderr.split())
    twice = pa.Table.from_arrays([table["a"], table["a"], table["y"]], ["a", "a", "y"])
    pq.write_table(twice, folder / "1.parquet")
    assert "several columns named 'a'" in stream(run, folder, out, status=3).stderr


def test_a_column_may_have_no_value_in_one_file(run, large, out, tmp_path):
    table, folder = pq.read_table(large), tmp_path / "parts"
    folder.mkdir()
    none = table.set_column(2, "b", pa.nulls(len(table)))
    pq.write_table(none, folder / "0.parquet")
    pq.write_table(table, folder / "1.parquet")
    words = ("--json", "--missingness", "ignore")
    facts = json.loads(stream(run, folder, out, *words).stdout)
    assert facts["rows"] == {"sick": 6000, "well": 6000}


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_the_same_digits(run, large, out, tmp_path):
    distributed = pytest.importorskip("distributed")
    stream(run, large, out, "-q")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        there = tmp_path / "there.skops"
        stream(run, large, there, "-q", "--dask", cluster.scheduler_address)
    here, elsewhere = mr.load_model(out).classifier, mr.load_model(there).classifier
    np.testing.assert_array_equal(here.estimator_.coef_, elsewhere.estimator_.coef_)
    assert here.threshold_ == elsewhere.threshold_


def test_an_address_without_a_cluster_is_refused(run, large, out, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(sys.modules["missratio.app.cli.fit"], "CONNECT_SECONDS", 0.2)
    result = stream(run, large, out, "--dask", "tcp://127.0.0.1:1", status=1)
    assert "There is no Dask cluster at 'tcp://127.0.0.1:1'" in result.stderr
