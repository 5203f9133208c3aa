"""Patients whose pulse is missing the more often the higher it is."""

import csv
import json
import shlex

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


def command(*words, status=0):
    """Run a command; words that begin with a dash may be several, as in a shell."""
    split = []
    for word in map(str, words):
        split += shlex.split(word) if word.startswith("-") else [word]
    # Boosted trees spin where cores are shared with other tests.
    with threadpool_limits(1):
        result = CliRunner().invoke(app, split)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == status, result.output
    return result


def draw(n, rng):
    """Complete patients, and who of them is sick."""
    sick = rng.uniform(size=n) < 0.5
    pulse = rng.normal(np.where(sick, 95, 80), 10)
    sugar = rng.normal(np.where(sick, 6.2, 5), 1)
    ward = rng.choice(["east", "west"], n)
    return np.column_stack([pulse, sugar]).round(3), ward, sick


def write_rows(path, header, rows):
    """A CSV file, blank where a number is NaN."""
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(header.split(","))
        writer.writerows(
            [("" if cell != cell else cell) for cell in row] for row in rows
        )
    return path


def write_patients(path, values, ward, sick):
    state = np.where(sick, "sick", "well").tolist()
    ids = [f"P{i:04}" for i in range(len(ward))]
    rows = zip(ids, *values.T.tolist(), ward, state, strict=True)
    return write_rows(path, "id,pulse,sugar,ward,state", rows)


@pytest.fixture(scope="session")
def run():
    """Run a command, and give its exit status, output and messages."""
    return command


@pytest.fixture(scope="session")
def csv_file():
    """Write a CSV file of a header and rows."""
    return write_rows


@pytest.fixture(scope="session")
def read_csv():
    """The rows of a CSV file, by the names of its columns."""

    def read(path):
        with path.open(newline="", encoding="utf-8") as stream:
            return list(csv.DictReader(stream))

    return read


@pytest.fixture(scope="session")
def fill(read_csv):
    """Fill in a plan, from the top down, by the value of each of its lines."""

    def plan(path, value_of, until=None):
        lines = read_csv(path)
        for line in lines[:until]:
            line["value"] = value_of(line)
        write_rows(path, ",".join(lines[0]), [line.values() for line in lines])
        return lines

    return plan


@pytest.fixture(scope="session")
def complete():
    """The patients before their values went missing."""
    return draw(3000, np.random.default_rng(0))


@pytest.fixture
def patients(tmp_path, complete):
    """The table, beside a file that says why values are missing."""
    values, ward, sick = complete
    phi = mr.LogisticMissingness([-9.0, -2.0], [0.1, 0.0])
    lossy = values.copy()
    lossy[~sick] = mr.corrupt(values[~sick], phi, np.random.default_rng(1))
    (tmp_path / "phi.toml").write_text(PHI)
    return write_patients(tmp_path / "patients.csv", lossy, ward, sick)


@pytest.fixture(scope="session")
def usual():
    """The usual model of the patients, once it was fitted, and its facts."""
    return {}


@pytest.fixture
def fit(run, patients, usual):
    """Fit the patients, with further options, and give the model and the facts."""

    def command(*options, out="model.skops", alpha=0.2):
        path, is_usual = patients.with_name(out), not options and alpha == 0.2
        if is_usual and usual:
            path.write_bytes(usual["model"])
            return path, usual["facts"]
        words = shlex.split(" ".join(map(str, options)))
        if not {"--missingness", "--queries", "--new-rows"} & set(words):
            words += ["--missingness", patients.with_name("phi.toml")]
        if not {"--method", "--compare-seconds"} & set(words):
            # Comparing methods takes a while, and is tested by itself.
            words += ["--compare-seconds", "0"]
        base = f"--target state --controlled well --drop id --alpha {alpha} --json"
        facts = json.loads(run("fit", patients, base, "--out", path, *words).stdout)
        if is_usual:
            usual.update(model=path.read_bytes(), facts=facts)
        return path, facts

    return command


@pytest.fixture
def patients_model(fit):
    """The file of the usual model of the patients."""
    return fit()[0]


@pytest.fixture
def day(tmp_path):
    """Labelled rows of another day, the well ones' pulse moved."""

    def make(seed, moved=0.0):
        values, ward, sick = draw(1500, np.random.default_rng(seed))
        values[~sick, 0] += moved
        return write_patients(tmp_path / f"day{seed}.csv", values, ward, sick)

    return make
