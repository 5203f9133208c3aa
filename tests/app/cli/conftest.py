"""Patients whose pulse is missing the more often the higher it is."""

import json
import shlex

import numpy as np
import pytest
from commands import run, write_csv

import missratio as mr

PHI = """
[classes.well]
missing = "values"
kind = "logistic"
features.pulse = { intercept = -9.0, coef = 0.1 }
features.sugar = { intercept = -2.0, coef = 0.0 }
"""


def draw(n, rng):
    """Complete patients, and who of them is sick."""
    sick = rng.uniform(size=n) < 0.5
    pulse = rng.normal(np.where(sick, 95, 80), 10)
    sugar = rng.normal(np.where(sick, 6.2, 5), 1)
    ward = rng.choice(["east", "west"], n)
    return np.column_stack([pulse, sugar]).round(3), ward, sick


def write_patients(path, values, ward, sick):
    state = np.where(sick, "sick", "well").tolist()
    ids = [f"P{i:04}" for i in range(len(ward))]
    rows = zip(ids, *values.T.tolist(), ward, state, strict=True)
    return write_csv(path, "id,pulse,sugar,ward,state", rows)


@pytest.fixture(scope="session")
def complete():
    """The patients before their values went missing."""
    return draw(3000, np.random.default_rng(0))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The folder in which commands run: an empty one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


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
def fit(patients, usual):
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
