"""Faults and kills of commands: a few of those that `make faults` tries."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "support" / "faults.py"
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("cc") is None,
    reason="needs Linux and a C compiler",
)


@pytest.mark.parametrize(
    ("command", "n_searches"), [("predict", 4), ("watch-again", 2)]
)
def test_faults_and_kills_lose_nothing(command, n_searches):
    words = ["--commands", command, "--every", "2", "--times", "6"]
    run = subprocess.run(
        [sys.executable, SCRIPT, "faults", "kills", *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    searches = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(searches) == n_searches
    for each in searches:
        assert each["problems"] == 0
        # Where most operations could fail unnoticed, others would be counted.
        assert each["failed or killed"] >= each["tried"] // 3 > 0


BROKEN = """
import sys
sys.path.insert(0, {support!r})
from missratio._files import files

def careless(draft, path, *, force):
    path.write_bytes(draft.read_bytes())

files._move = careless
import faults
faults.main()
"""


@pytest.mark.parametrize("command", ["predict", "watch-again"])
def test_a_command_that_writes_in_place_is_caught(tmp_path, command):
    """The same search, of a command that copies its draft over the old file."""
    script = tmp_path / "broken.py"
    script.write_text(BROKEN.format(support=str(SCRIPT.parent)))
    run = subprocess.run(
        [sys.executable, script, "faults", "--commands", command, "--last", "3"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 1, run.stdout + run.stderr
    assert "neither old nor new" in run.stdout
