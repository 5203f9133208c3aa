"""Patterns of missingness: counts and Little's test."""

import numpy as np
import pytest
from optional_packages import optional
from scipy.stats import binomtest

import missratio as mr

pd = optional("pandas")
pl = optional("polars")


def lossy(n=600, d=4, seed=0, because_of_another=False):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d)) + rng.normal(size=(n, 1))
    phi = 0.2
    if because_of_another:
        phi = 1.0 / (1.0 + np.exp(1.0 - np.roll(Z, 1, axis=1)))
    return np.where(rng.uniform(size=Z.shape) < phi, np.nan, Z)


def test_counts_are_those_of_a_table_of_masks():
    X = lossy()
    patterns = mr.missingness_patterns(X)
    expected = pd.DataFrame(np.isnan(X)).value_counts()
    assert patterns.counts.tolist() == sorted(expected, reverse=True)
    for mask, count in zip(patterns.missing, patterns.counts, strict=True):
        assert expected[tuple(mask)] == count
    assert patterns.n_rows == len(X)
    assert patterns.missing_share == pytest.approx(np.isnan(X).mean(axis=0))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_dataframes_have_names(frame):
    X = lossy(d=2)
    table = frame({"a": X[:, 0], "b": X[:, 1]})
    patterns = mr.missingness_patterns(table)
    shown = patterns.to_frame()
    assert shown["missing"].tolist()[0] == ""
    assert set(shown["missing"]) == {"", "a", "b", "a, b"}
    assert shown["share"].sum() == pytest.approx(1.0)


def test_littles_statistic_is_that_of_complete_patterns():
    # With two monotone patterns, by hand: the mean of the column both have.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    X[:150, 1] = np.nan
    found = mr.missingness_patterns(X).mcar_test
    # Values count as 2.5 standard deviations from the mean at most.
    mean, spread = X[:, 0].mean(), X[:, 0].std()
    clipped = np.clip(X[:, 0], mean - 2.5 * spread, mean + 2.5 * spread)
    first, second, spread = clipped[:150], clipped[150:], clipped.std()
    difference = (first.mean() - second.mean()) / spread
    expected = difference**2 * 150 * 250 / 400
    assert found.degrees == 1
    assert found.statistic == pytest.approx(expected, rel=1e-3)


def test_littles_test_has_a_level_and_power():
    p_values = [
        mr.missingness_patterns(lossy(seed=s)).mcar_test.p_value for s in range(60)
    ]
    count = int(np.sum(np.array(p_values) <= 0.05))
    assert binomtest(count, 60, 0.06, "greater").pvalue > 1e-3
    found = mr.missingness_patterns(lossy(because_of_another=True)).mcar_test
    assert found.p_value < 1e-6
    assert found.effect > 0.3


def test_no_test_rules_out_mnar_and_the_sentence_says_so():
    for X in (lossy(), np.ones((10, 2))):
        assert "No test can rule out" in mr.missingness_patterns(X).mcar_test.sentence
    # Values that go missing because of what they are, independently of each other.
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(2000, 3))
    X = mr.corrupt(Z, mr.LogisticMissingness(0.0, 2.0), rng)
    assert mr.missingness_patterns(X).mcar_test.p_value > 0.01
