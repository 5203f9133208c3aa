"""Summaries print within a terminal, and hold the figures."""

import numpy as np
import pytest

import missratio as mr
from missratio._base.summary import WIDTH, Summary


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    Z1, Z0 = rng.normal(0.5, 1, (500, 2)), rng.normal(0, 1, (500, 2))
    phi = mr.LogisticMissingness(-1.0, [0.5, 0.0])
    X = np.concatenate([mr.corrupt(Z1, phi, rng), Z0])
    y = np.repeat([1, 0], 500)
    return X, y, phi


def test_a_certificate_shows_its_figures_and_assumptions(table):
    X, y, phi = table
    clf = mr.NeymanPearsonClassifier(
        mr.KLIEP(), 0.2, missingness={1: phi}, controlled_class=1, random_state=0
    ).fit(X, y)
    certificate = clf.certificate_
    text = " ".join(str(certificate.summary()).split())
    assert "alpha: 0.2" in text
    assert f"calibration rows: {certificate.rows}" in text
    for assumption in certificate.assumptions:
        assert assumption in text
    assert repr(certificate.summary()) == str(certificate.summary())


def test_long_tables_and_names_are_cut_where_they_are_seen():
    rows = tuple((f"{'column ' * 20}{i}", "1.5", "2.5") for i in range(100))
    facts = (("a", "1"), ("b", "word " * 30), ("c", "2"), ("d", "3"))
    text = str(Summary("t", facts, ("feature", "a", "b"), rows))
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "… and 40 more" in text
    assert sum("…" in line for line in text.splitlines()) == 61
