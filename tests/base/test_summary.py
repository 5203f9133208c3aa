"""Summaries print within a terminal, and hold the figures."""

import numpy as np
import pytest

import missratio as mr
from missratio._base.summary import WIDTH, Summary


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    Z1, Z0 = rng.normal(0.5, 1, (500, 2)), rng.normal(0, 1, (500, 2))
    phi = mr.LogisticMissingness(-1.0, [0.5, 0.0])
    X = np.concatenate([mr.corrupt(Z1, phi, rng), Z0])
    y = np.repeat([1, 0], 500)
    return mr.KLIEP(missingness={1: phi}).fit(X, y), X, y, phi


def test_a_ratio_shows_its_coefficients_and_rows(fitted):
    ratio = fitted[0]
    text = str(ratio.summary())
    for value in ratio.coef_:
        assert f"{value:.5g}" in text
    size = ratio.effective_sample_size_[1]
    assert f"rows of 1: 500 ({size.observed} observed)" in text
    assert "converged: yes" in text
    assert max(map(len, text.splitlines())) <= WIDTH


def test_a_certificate_shows_its_figures_and_assumptions(fitted):
    _, X, y, phi = fitted
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


def test_a_ratio_without_an_optimum_says_so_and_offers_no_standard_errors(fitted):
    _, X, y, phi = fitted
    with pytest.warns(mr.exceptions.NotSolvedWarning):
        ratio = mr.KLIEP(missingness={1: phi}, max_iter=1, tol=1e-14).fit(X, y)
    text = " ".join(str(ratio.summary()).split())
    assert "The optimum wasn't reached: coefficients may mean nothing" in text
    assert "converged: no" in text
    assert "Standard errors" not in text
