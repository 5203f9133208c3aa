"""Patients whose pulse is missing the more often the higher it is."""

import csv
import json

import numpy as np
import pytest
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner

import missratio as mr
from missratio.app.cli import app

PHI = """
[classes.well]
missing = "values"
kind = "logistic"
features.pulse = { intercept = -9.0, coef = 0.1 }
features.sugar = { intercept = -2.0, coef = 0.0 }
"""


@pytest.fixture
def run():
    """Run a command, and give its exit status, output and messages."""

    def command(*arguments, status=0):
        # Boosted trees spin where cores are shared with other tests.
        with threadpool_limits(1):
            result = CliRunner().invoke(app, [str(word) for word in arguments])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == status, result.output
        return result

    return command


def draw(n, rng):
    """Complete patients, and who of them is sick."""
    sick = rng.uniform(size=n) < 0.5
    pulse = rng.normal(np.where(sick, 95, 80), 10)
    sugar = rng.normal(np.where(sick, 6.2, 5), 1)
    ward = rng.choice(["east", "west"], n)
    return np.column_stack([pulse, sugar]).round(3), ward, sick


def lose(values, sick, rng):
    phi = mr.LogisticMissingness([-9.0, -2.0], [0.1, 0.0])
    values = values.copy()
    values[~sick] = mr.corrupt(values[~sick], phi, rng)
    return values


def write(path, values, ward, sick):
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "pulse", "sugar", "ward", "state"])
        for i, row in enumerate(values.tolist()):
            cells = ["" if np.isnan(cell) else cell for cell in row]
            state = "sick" if sick[i] else "well"
            writer.writerow([f"P{i:04}", *cells, ward[i], state])


@pytest.fixture
def complete():
    """The patients before their values went missing."""
    return draw(3000, np.random.default_rng(0))


@pytest.fixture
def patients(tmp_path, complete):
    """The table, beside a file that says why values are missing."""
    values, ward, sick = complete
    path = tmp_path / "patients.csv"
    write(path, lose(values, sick, np.random.default_rng(1)), ward, sick)
    (tmp_path / "phi.toml").write_text(PHI)
    return path


@pytest.fixture
def fit(run, patients):
    """Fit the patients, with further options, and give the facts."""

    def command(*options, out="model.skops", alpha=0.2):
        path = patients.with_name(out)
        if not {"--missingness", "--queries", "--deployment"} & set(options):
            options += ("--missingness", patients.with_name("phi.toml"))
        if not {"--method", "--compare-seconds"} & set(options):
            # Comparing methods takes a while, and is tested by itself.
            options += ("--compare-seconds", "0")
        result = run(
            "fit", patients, "--target", "state", "--controlled", "well", "--drop",
            "id", "--alpha", alpha, "--out", path, "--json", *options,
        )  # fmt: skip
        return path, json.loads(result.stdout)

    return command


@pytest.fixture
def day(tmp_path):
    """Labelled rows of another day, the well ones' pulse moved."""

    def make(seed, moved=0.0):
        values, ward, sick = draw(1500, np.random.default_rng(seed))
        values[~sick, 0] += moved
        path = tmp_path / f"day{seed}.csv"
        write(path, values, ward, sick)
        return path

    return make
