"""What is being done is told: a line that moves on a terminal, lines elsewhere."""

import pytest

from missratio.app.cli._command import Progress


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")


def work(progress):
    with progress:
        progress.step("Reading", 10)
        progress.tick(4)
        shown = [] if progress._bar is None else progress._bar.tasks[:]
        progress.step("Fitting")
    return shown


def test_elsewhere_each_step_is_a_line(monkeypatch, capsys):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert work(Progress(quiet=False)) == []
    assert capsys.readouterr() == ("", "Reading …\nFitting …\n")


def test_on_a_terminal_one_line_moves_and_is_gone_at_the_end(terminal, capsys):
    progress = Progress(quiet=False)
    (reading,) = work(progress)
    assert reading.percentage == 40.0
    # The next step takes the place of the last one.
    assert [task.description for task in progress._bar.tasks] == ["Fitting"]
    out, err = capsys.readouterr()
    assert out == ""
    assert "Reading" in err
    assert "…" not in err
    # The last thing written erases the line.
    assert err.endswith("\x1b[2K")


def test_quiet_is_quiet_on_a_terminal_too(terminal, capsys):
    work(Progress(quiet=True))
    assert capsys.readouterr() == ("", "")
