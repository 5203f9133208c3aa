"""Columns as histograms lose nothing."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from missratio.reproduce._table import CodedTable

CELLS = st.sampled_from([np.nan, -1.5, 0.0, 0.25, 3.0, 1e6])


@given(arrays(np.float64, (12, 3), elements=CELLS), st.permutations(range(12)))
def test_means_of_histograms_are_means_of_rows(X, order):
    X[0] = 1.0
    table = CodedTable.from_rows(X, np.arange(12) < 6)
    rows = np.array([0, *order[:5]])
    counts = table.count(rows)
    assert (counts.sum(axis=1) == 6).all()
    np.testing.assert_allclose(table.mean_of(counts), np.nanmean(X[rows], axis=0))


def test_codes_lead_back_to_the_values(rows, table):
    X, is_numerator = rows
    values = np.take_along_axis(table.grid, table.codes.astype(int), axis=1)
    np.testing.assert_array_equal(values.T, X)
    np.testing.assert_array_equal(table.rows[1], np.flatnonzero(is_numerator))


def test_nan_is_filled_and_nothing_else(rows, table):
    X, _ = rows
    fill = np.array([7.0, 8.0, 9.0])
    values = table.filled_values(np.arange(len(X)), fill).T
    np.testing.assert_array_equal(values, np.where(np.isnan(X), fill, X))


def test_the_digest_is_of_values_and_classes(rows, table):
    X, is_numerator = rows
    assert CodedTable.from_rows(X, is_numerator).digest == table.digest
    assert CodedTable.from_rows(X, ~is_numerator).digest != table.digest
    X[0, 0] = 99.0
    assert CodedTable.from_rows(X, is_numerator).digest != table.digest
