"""Careless and hostile use of the commands: said in one line, and nothing is lost."""

import os
import subprocess
import sys

import numpy as np
import pytest

import missratio as mr
from missratio.app.cli import _failures

COMMAND = [sys.executable, "-m", "missratio.app.cli"]
# Comparing methods takes a while, and is tested by itself.
OPTIONS = "--target y --controlled a --alpha 0.2 --compare-seconds 0"


def write_table(path, header="p,q,y", gaps=False):
    rng = np.random.default_rng(0)
    lines = [header]
    for i in range(400):
        p, q = (f"{value:.3f}" for value in rng.normal(i % 2, 1, 2))
        if gaps and i % 2 == 0:
            p, q = ("", q) if i % 4 else (p, "")
        lines.append(f"{p},{q},{'ab'[i % 2]}")
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def table(tmp_path):
    return write_table(tmp_path / "t.csv")


@pytest.fixture
def arguments(table):
    return ["fit", table, OPTIONS, "--out", table.with_name("m.skops")]


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


def test_an_interrupt_says_what_was_written(run, arguments, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("missratio.app.cli._command.say_json", interrupt)
    result = run(*arguments, "--json", status=130)
    assert f"Interrupted. {arguments[-1]} was written." in result.stderr
    monkeypatch.setattr("missratio.app.workflow.fit_table", interrupt)
    result = run(*arguments, "--force", status=130)
    assert "Interrupted: nothing was written." in result.stderr


def test_a_fault_is_one_line_with_a_status_of_its_own(run, arguments, monkeypatch):
    def fail(*_, **__):
        raise TypeError("unforeseen")

    monkeypatch.setattr("missratio.app.workflow.fit_table", fail)
    result = run(*arguments, status=_failures.FAULT)
    assert "fault of missratio: TypeError: unforeseen" in result.stderr


def test_control_characters_do_not_reach_the_terminal(run, tmp_path):
    path = write_table(tmp_path / "t.csv", header="p\x1b[2J,q\u202e,y")
    words = ["fit", path, OPTIONS, "--out", tmp_path / "m\x1b]0;x\x07.skops"]
    result = run(*words)
    again, facts = run(*words, status=1), run(*words, "--force --json")
    for said in (result.output, again.output, facts.stdout):
        assert not set(said) & set("\x1b\x07\u202e")
    assert "m\\x1b]0;x\\x07.skops" in result.stdout


PHI = {
    "[classes.a]\nmissing = 'values'\nkind = 'logistic'\n"
    f"features.p = {{intercept = {'9' * 400}, coef = 1}}": "is too large, it has 400",
    f"a = {'9' * 5000}": "is no TOML file",
    "a = " + "[" * 5000 + "]" * 5000: "nested too deeply",
    "\0": "is no TOML file",
    "classes = " + "1" * 3000: "must be a table",
}


@pytest.mark.parametrize("content", PHI, ids=PHI.values())
def test_a_missingness_file_that_is_none_is_refused(run, arguments, content, tmp_path):
    path = tmp_path / "phi.toml"
    path.write_text(content)
    result = run(*arguments, "--missingness", path, status=3)
    assert PHI[content] in result.stderr
    assert "phi.toml" in result.stderr
    assert len(result.stderr) < 1000


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
@pytest.mark.parametrize("option", ["--missingness", "--queries"])
def test_pipes_are_read_from_nowhere(run, arguments, tmp_path, option):
    pipe = tmp_path / "plan.csv"
    os.mkfifo(pipe)
    result = run(*arguments, option, pipe, status=3)
    assert "is not a regular file" in result.stderr


@pytest.mark.parametrize("suffix", [".xlsx", ".xls", ".ods", ".parquet", ".csv"])
def test_damaged_plans_are_refused(run, arguments, tmp_path, suffix):
    path = tmp_path / f"plan{suffix}"
    path.write_bytes(b"PK\x03\x04" + bytes(range(256)) * 4)
    result = run(*arguments, "--queries", path, status=3)
    assert f"plan{suffix}" in result.stderr


@pytest.mark.needs("vl_convert")
def test_without_a_complete_row_everything_is_controlled(run, tmp_path, read_csv):
    path = write_table(tmp_path / "t.csv", gaps=True)
    phi, out = tmp_path / "phi.toml", tmp_path / "m.skops"
    phi.write_text(
        "[classes.a]\nmissing = 'values'\nkind = 'logistic'\n"
        "features.p = {intercept = 0.0, coef = 0.1}\n"
        "features.q = {intercept = 0.0, coef = 0.1}\n"
    )
    words = ["fit", path, OPTIONS, "--on-infeasible reject_all --method naive-bayes"]
    run(*words, "--missingness", phi, "--out", out)
    assert not mr.load_model(out).certificate.certified
    run("report", out, "--out", tmp_path / "r.html")
    run("predict", out, path, "--out", tmp_path / "p.csv")
    assert {row["label"] for row in read_csv(tmp_path / "p.csv")} == {"a"}


def test_messages_about_a_table_name_its_file(run, arguments, table):
    run(*arguments)
    new, out = table.with_name("new.csv"), table.with_name("p.csv")
    for content, message in {
        "p,q\n1,x\n": "'x' in line 2 is not one",
        "p,q\n1,inf\n": "must be finite",
        "p\n1\n": "lacks 'q'",
    }.items():
        new.write_text(content)
        said = run("predict", arguments[-1], new, "--out", out, status=3).stderr
        assert message in said
        assert str(new) in said


def test_formulas_are_marked_in_csv(run, table, tmp_path, read_csv):
    rows = table.read_text().splitlines()
    ids = ["=1+1", "@x", "-5", "+a", "plain"]
    lines = [f"{ids[i % 5]},{row}" for i, row in enumerate(rows[1:])]
    path, model, out = (tmp_path / name for name in ("i.csv", "m.skops", "p.csv"))
    path.write_text("\n".join([f"id,{rows[0]}", *lines]))
    run("fit", path, OPTIONS, "--drop id", "--out", model)
    words = ["predict", model, path, "--keep id --force", "--out", out]
    run(*words)
    assert [row["id"] for row in read_csv(out)[:5]] == ids
    run(*words, "--escape-formulas")
    marked = ["'=1+1", "'@x", "-5", "'+a", "plain"]
    assert [row["id"] for row in read_csv(out)[:5]] == marked
