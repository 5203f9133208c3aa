"""What to do next: commands of a report run as they are printed."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from optional_packages import optional
from typer.testing import CliRunner

import missratio as mr
from missratio.app.cli import app

pd = optional("pandas")

TABLE, HOW = "my patients.csv", "--target state --controlled well --alpha 20%"
KINDS = {
    "as observed": (
        "--new-rows blanks --method trees",
        ["Label new rows", "Watch it", "If new rows will be complete"],
    ),
    "by φ": (
        "--missingness phi.toml --method kliep",
        ["Label new rows", "Watch it", "Assume less"],
    ),
    "look-ups": (
        "--queries plan.csv --method js",
        ["Label new rows", "Watch it", "More look-ups"],
    ),
}
PHI = """
[classes.well]
missing = "values"
kind = "logistic"
features.pulse = { intercept = -9.0, coef = 0.1 }
"""


def run(line):
    result = CliRunner().invoke(app, shlex.split(line))
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def pulses(tmp_path, monkeypatch):
    """Tables in which well patients lose high pulses; three pulses are a code."""
    monkeypatch.chdir(tmp_path)
    rng, n = np.random.default_rng(0), 700
    sick = np.arange(n) % 2 == 1
    pulse = rng.normal(np.where(sick, 100, 80), 10).round(2)
    lost = ~sick & (rng.uniform(size=n) < 1 / (1 + np.exp(9.0 - 0.1 * pulse)))
    sugar = pulse / 20 + rng.normal(size=n)
    pulse[[5, 7, 9]] = 999.0
    lines = [
        f"{'' if gone else p},{q:.2f},{'sick' if ill else 'well'}"
        for p, gone, q, ill in zip(pulse, lost, sugar, sick, strict=True)
    ]
    whole = [line for line in lines[:80] if line[0] != ","]
    tables = {TABLE: lines, "new.csv": lines[:80], "labelled.csv": whole}
    for name, chosen in tables.items():
        Path(name).write_text("\n".join(["pulse,sugar,state", *chosen]))
    Path("phi.toml").write_text(PHI)
    return pulse


@pytest.mark.parametrize("kind", KINDS)
def test_commands_run_as_they_are_printed(kind, pulses, tmp_path):
    options, titles = KINDS[kind]
    if kind == "look-ups":
        run(f"query '{TABLE}' {HOW} --budget 60 --out plan.csv")
        plan = pd.read_csv("plan.csv")
        plan["value"] = pulses[plan["line"] - 2]
        plan.to_csv("plan.csv", index=False)
    more = "--merge 'ill=sick' --drop sugar" if kind == "as observed" else ""
    printed = run(f"fit '{tmp_path / TABLE}' {HOW} {options} {more} --out m.skops")
    data = json.loads(mr.load_model("m.skops").report)
    steps = {step["title"]: step["command"] for step in data["next"]}
    assert [title for title, command in steps.items() if command] == titles
    for command in filter(None, steps.values()):
        assert str(tmp_path) not in command
        run(command.removeprefix("missratio "))
    # How the table was read is in the command.
    assert ("--merge ill=sick" in data["origin"]["command"]) == bool(more)
    # What fit warned of stands on the page.
    cautions = [each["text"] for each in data["cautions"]]
    assert any("999" in text for text in cautions)
    assert printed.count("Warning: ") <= len(cautions)
