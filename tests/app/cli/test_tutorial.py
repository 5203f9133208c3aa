"""What the page on the command line shows is what its commands print."""

import itertools
import re
import runpy
import shlex
import shutil
from pathlib import Path

import pytest
from printed import NumberChecker
from typer.testing import CliRunner

from missratio.app.cli import app

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "command_line.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def steps(page):
    """Files to write and commands to run, in the order of the page."""
    for kind, body in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind in ("python", "toml"):
            name, content = body.split("\n", 1)
            yield name.removeprefix("# "), content
        else:
            commands = re.split(r"^\$ ", body, flags=re.M)[1:]
            for command in commands:
                line, _, printed = command.partition("\n")
                yield line, printed


def perform(line):
    program, *words = shlex.split(line)
    if program == "python":
        runpy.run_path(words[0])
        return ""
    if program == "head":
        with Path(words[1]).open(encoding="utf-8") as stream:
            return "".join(itertools.islice(stream, int(words[0][1:])))
    result = CliRunner().invoke(app, words)
    # What is being done comes first; an error may have several lines.
    _, found, told = result.stderr.partition("Error")
    return result.stdout + found + told


@pytest.mark.needs("matplotlib", "vl_convert")
@pytest.mark.parametrize("name", ["command_line", "tutorial"])
def test_commands_print_what_the_page_says(name, tmp_path, monkeypatch):
    shutil.copytree(DOCS / "tutorial", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    checker = NumberChecker()
    for line, expected in steps(DOCS / f"{name}.md"):
        if " " not in line:
            Path(line).write_text(expected, encoding="utf-8")
            continue
        printed = perform(line)
        assert checker.check_output(expected, printed, 0), f"{line}\n{printed}"


def test_the_tutorial_begins_with_what_its_commands_print():
    page = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    blocks = " ".join(" ".join(body.split()) for _, body in BLOCK.findall(page))
    shares = r"'sick' \(([\d.]+)%; [^;]*; \d+ of \d+ 'sick' are found \(([\d.]+)%\)"
    printed = {
        (wrong, f"{float(right):.0f}") for wrong, right in re.findall(shares, blocks)
    }
    printed |= {(wrong, "") for wrong in re.findall(r"error ([\d.]+)%,", blocks)}
    begun = re.findall(r"\| \**([\d.]+)%\** \| (?:(\d+)%)? ?\|", page)
    assert len(begun) == 7
    assert set(begun) <= printed


@pytest.mark.parametrize("status", [0, 1, 2, 3, 4, 5, 130])
def test_every_status_is_explained(status):
    assert f"\n| {status} | " in PAGE.read_text(encoding="utf-8")
