"""The command line: what it prints, where, and the exit status."""

import json
import signal
import subprocess
import sys

import pytest
from commands import run
from typer.testing import CliRunner

import missratio
from missratio.app.cli import app


def test_help_has_panels_and_no_types_of_flags(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    said = run("fit --help").stdout
    panels = ("Options ─", "About the promise", "Why values")
    first, promise, missing = map(said.index, panels)
    assert first < promise < missing
    assert "<bool>" not in said[promise:]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("fit --rule b", ["binomial", "bernstein", "betting"]),
        ("fit --new-rows ", ["blanks", "complete"]),
    ],
)
def test_the_shell_completes_choices(line, offered):
    words = f"missratio {line}"
    place = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    asked = {"_MISSRATIO_COMPLETE": "complete_bash", **place}
    result = CliRunner().invoke(app, prog_name="missratio", env=asked)
    assert result.stdout.split() == offered
    listed = run(line.split()[0], "--help").stdout
    assert all(choice in listed for choice in offered)


def test_python_runs_it_as_a_module():
    run = subprocess.run(
        [sys.executable, "-m", "missratio", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == f"missratio {missratio.__version__}"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
@pytest.mark.parametrize("module", ["missratio.app.cli", "typer"])
def test_an_interrupt_while_modules_load_is_no_traceback(module):
    code = (
        "import os, signal, sys, missratio.__main__ as entry\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "sys.argv[1:] = ['report', 'absent.skops', '--out', 'r.md']\n"
        "entry.main()"
    )
    call = [sys.executable, "-c", code]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
    # Whoever ignores interrupts goes on to: a command in the background of a shell.
    call[-1] = code.replace(
        "entry.main", "signal.signal(2, signal.SIG_IGN); entry.main"
    )
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert "There is no model file" in done.stderr


REPRODUCE = "reproduce naive_bayes --jobs 1"


@pytest.fixture(scope="module")
def json_run(tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    return out, run(f"{REPRODUCE} np_boundary --runs 4 --json --out", out)


@pytest.mark.needs("matplotlib")
def test_json_is_one_object_and_nothing_else(json_run):
    _, result = json_run
    document = json.loads(result.stdout)
    assert list(document) == ["np_boundary", "naive_bayes"]
    for entry in document.values():
        assert list(entry) == ["x_name", "x", "y_name", "curves"]
        assert list(entry["curves"]) == ["True ratio", "M-KLIEP", "CC-KLIEP"]
        for curve in entry["curves"].values():
            assert list(curve) == ["mean", "lo", "hi"]
            assert all(len(values) == len(entry["x"]) for values in curve.values())
    first = document["naive_bayes"]["curves"]["M-KLIEP"]
    assert first["lo"][0] < first["mean"][0] < first["hi"][0]
    # Progress goes to standard error.
    assert "naive_bayes" in result.stderr


@pytest.mark.needs("matplotlib")
def test_without_json_tables_are_shown(json_run):
    out, _ = json_run
    said = run(f"{REPRODUCE} --runs 4 --out", out).stdout
    assert "correlation rho" in said
    assert "overlap at" in said
    assert (out / "summary.md").exists()


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("np_pwer", 2, "Did you mean 'np_power'?"),
        ("np_power --methods KLIEPP", 2, "There is no method 'KLIEPP'"),
        ("np_power --variant fixed", 2, "'published', 'corrected'"),
        ("np_power --runs 0", 2, "--runs"),
        ("fire_vary_alpha", 1, "smoke_detection_iot.csv is not at hand"),
    ],
)
def test_mistakes_have_a_message_and_a_status(
    tmp_path, monkeypatch, words, status, message
):
    monkeypatch.setenv("MISSRATIO_DATA", str(tmp_path))
    result = run("reproduce", words, "--out", tmp_path / "out", status=status)
    assert message in result.stderr
    assert result.stdout == ""
    assert not (tmp_path / "out").exists()


@pytest.mark.needs("matplotlib")
def test_an_interrupted_run_says_that_it_can_go_on(tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("missratio.reproduce.runner.compute", interrupt)
    said = run(f"{REPRODUCE} --runs 2 --out", tmp_path, status=130).stderr
    assert "goes on from here" in said


@pytest.mark.parametrize(
    ("names", "status", "message"),
    [("fire weather", 1, "account holders"), ("whether", 2, "mean 'weather'?")],
)
def test_data_that_cant_be_fetched_says_why(
    tmp_path, monkeypatch, names, status, message
):
    monkeypatch.setenv("MISSRATIO_DATA", str(tmp_path))
    said = run("data fetch", names, status=status).stderr
    assert said.count(message) == len(names.split())
