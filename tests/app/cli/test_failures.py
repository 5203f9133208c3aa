"""What goes wrong is a message and a status, and what is being done is told."""

import re

import pytest
import typer

from missratio.app.cli import shell
from missratio.app.cli.shell import Progress, failures
from missratio.exceptions import Message, Remedy


def test_without_memory_the_message_says_so(capsys):
    with pytest.raises(typer.Exit) as ended, failures():
        raise MemoryError("Unable to allocate 8 GiB.")
    assert ended.value.exit_code == shell.FAILURE
    said = capsys.readouterr().err
    assert "There is not enough memory. Unable to allocate 8 GiB." in said
    assert "scan_parquet" in said


def test_remedies_are_those_of_the_command_line():
    """What only Python has is left out."""
    remedies = ("set pairs=True", "use NaiveBayesRatio", *Remedy)
    facts = {"factor": 2.0}
    said = shell.phrased(Message("No.", label=1, remedies=remedies, facts=facts))
    assert "--method naive-bayes" in said
    assert not re.search(r"\w=|\w\(|\w_\b|l2", said)


def test_a_closed_standard_output_is_no_fault(monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    with failures():
        shell.say("Nobody reads this.")
    with pytest.raises(typer.Exit) as ended, failures():
        raise ValueError("No.")
    assert ended.value.exit_code == shell.USAGE


def test_a_traceback_can_be_asked_for(monkeypatch):
    monkeypatch.setenv(shell.TRACEBACK, "1")
    with pytest.raises(ZeroDivisionError), failures():
        raise ZeroDivisionError


def work(progress):
    with progress:
        progress.step("Reading", 10)
        progress.tick(4)
        progress.step("Fitting")


def test_elsewhere_each_step_is_a_line(monkeypatch, capsys):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    work(Progress(quiet=False))
    assert capsys.readouterr() == ("", "Reading …\nFitting …\n")


def test_on_a_terminal_one_line_moves_and_is_gone_at_the_end(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    work(Progress(quiet=False))
    out, err = capsys.readouterr()
    assert (out, "…" in err, "Reading" in err) == ("", False, True)
    # The last thing written erases the line.
    assert err.endswith("\x1b[2K")
