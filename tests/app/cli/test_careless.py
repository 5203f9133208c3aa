"""Careless and hostile use of the commands: said in one line, and nothing is lost."""

import os
import subprocess
import sys

import numpy as np
import pytest
from commands import read_csv, run, write_csv

import missratio as mr
from missratio.app.cli import shell

COMMAND = [sys.executable, "-m", "missratio"]
# Comparing methods takes a while, and is tested by itself.
OPTIONS = "--target y --controlled a --alpha 0.2 --compare-seconds 0"


def write_table(path, header="p,q,y"):
    rng = np.random.default_rng(0)
    rows = [[*rng.normal(i % 2, 1, 2).round(3), "ab"[i % 2]] for i in range(400)]
    return write_csv(path, header, rows)


@pytest.fixture
def table(tmp_path):
    return write_table(tmp_path / "t.csv")


@pytest.fixture
def arguments(table):
    return ["fit", table, OPTIONS, "--out", table.with_name("m.skops")]


def test_more_columns_than_a_model_can_hold_are_refused_before_the_fit(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("missratio.app.workflow.fit.MOST_COLUMNS", 2)
    rows = [[i % 5, i % 7, i % 3, i % 2] for i in range(60)]
    path = write_csv(tmp_path / "t.csv", "a,b,c,y", rows)
    words = ["fit", path, "--target y --controlled 0 --out", tmp_path / "m.skops"]
    said = run(*words, status=3).stderr
    assert "has 3 columns to learn from, and a model file can hold 2" in said
    assert "Fitting" not in said


@pytest.mark.skipif(sys.platform != "linux", reason="only there limits hold")
@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".parquet"])
def test_a_limit_is_said_with_the_file_and_hangs_nothing(arguments, suffix):
    import resource

    run(*arguments)
    table, model = arguments[1], arguments[-1]
    words = [*COMMAND, "predict", model, table, "--out", f"p{suffix}"]
    for kind, size, said in (
        (resource.RLIMIT_FSIZE, 100, f"p{suffix} can't be read or written: "),
        (resource.RLIMIT_AS, 2**28, "There is not enough memory. Raise its limit"),
    ):
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, cwd=table.parent,
            timeout=60, preexec_fn=lambda k=kind, n=size: resource.setrlimit(k, (n, n)),
        )  # fmt: skip
        assert (done.returncode, said in done.stderr) == (1, True), done.stderr
        assert "Traceback" not in done.stderr
        assert not table.with_name(f"p{suffix}").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device")  # noqa: PTH110
def test_a_full_output_is_said(table):
    out = table.with_name("m.skops")
    words = ["fit", table, *OPTIONS.split(), "--out", out]
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [*COMMAND, *words], stdout=full, stderr=subprocess.PIPE, text=True,
            check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert "No space left on device. " in done.stderr
    assert f"{out} was written." in done.stderr
    assert "Traceback" not in done.stderr
    mr.load_model(out)


def test_an_interrupt_says_what_was_written(arguments, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("missratio.app.cli.shell.say_json", interrupt)
    result = run(*arguments, "--json", status=130)
    assert f"Interrupted. {arguments[-1]} was written." in result.stderr
    monkeypatch.setattr("missratio.app.workflow.fit_table", interrupt)
    result = run(*arguments, "--force", status=130)
    assert "Interrupted: nothing was written." in result.stderr


def test_a_fault_is_one_line_with_a_status_of_its_own(arguments, monkeypatch):
    def fail(*_, **__):
        raise TypeError("unforeseen")

    monkeypatch.setattr("missratio.app.workflow.fit_table", fail)
    result = run(*arguments, status=shell.FAULT)
    assert "fault of missratio: TypeError: unforeseen" in result.stderr


def test_control_characters_do_not_reach_the_terminal(tmp_path):
    path = write_table(tmp_path / "t.csv", header="p\x1b[2J,q\u202e,y")
    words = ["fit", path, OPTIONS, "--out", tmp_path / "m\x1b]0;x\x07.skops"]
    result = run(*words)
    again, facts = run(*words, status=1), run(*words, "--force --json")
    for said in (result.output, again.output, facts.stdout):
        assert not set(said) & set("\x1b\x07\u202e")
    assert "m\\x1b]0;x\\x07.skops" in result.stdout


def test_formulas_are_marked_in_csv(table, tmp_path):
    rows = table.read_text().splitlines()
    ids = ["=1+1", "@x", "-5", "+a", "plain"]
    lines = [f"{ids[i % 5]},{row}" for i, row in enumerate(rows[1:])]
    path, model, out = (tmp_path / name for name in ("i.csv", "m.skops", "p.csv"))
    path.write_text("\n".join([f"id,{rows[0]}", *lines]))
    run("fit", path, OPTIONS, "--drop id", "--out", model)
    words = ["predict", model, path, "--keep id --force", "--out", out]
    run(*words, "--no-escape-formulas")
    assert [row["id"] for row in read_csv(out)[:5]] == ids
    run(*words)
    marked = ["'=1+1", "'@x", "-5", "'+a", "plain"]
    assert [row["id"] for row in read_csv(out)[:5]] == marked
