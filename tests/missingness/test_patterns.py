"""Patterns of missingness: counts of each."""

import numpy as np
import pytest
from optional_packages import optional

import missratio as mr

pd = optional("pandas")
pl = optional("polars")


def lossy(d=4):
    rng = np.random.default_rng(0)
    return np.where(rng.random((600, d)) < 0.2, np.nan, rng.normal(size=(600, d)))


def test_counts_are_those_of_a_table_of_masks_by_names():
    X = lossy()
    patterns = mr.missingness_patterns(X)
    expected = pd.DataFrame(np.isnan(X)).value_counts()
    assert patterns.counts.tolist() == sorted(expected, reverse=True)
    for mask, count in zip(patterns.missing, patterns.counts, strict=True):
        assert expected[tuple(mask)] == count
    assert patterns.counts.sum() == len(X)
    assert patterns.shares @ patterns.missing == pytest.approx(np.isnan(X).mean(axis=0))
    for frame in (pd.DataFrame, pl.DataFrame):
        shown = mr.missingness_patterns(frame({"a": X[:, 0], "b": X[:, 1]})).to_frame()
        assert set(shown["missing"]) == {"", "a", "b", "a, b"}
        assert shown["share"].sum() == pytest.approx(1.0)
