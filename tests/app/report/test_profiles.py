"""Profiles of columns: what can be drawn, and over which range."""

import numpy as np
import pytest

from missratio.app.report._columns import Column, _of_array
from missratio.app.report._profiles import BINS, _edges, _histogram, _is_spread

NAN = np.nan


@pytest.mark.parametrize(
    ("values", "spread"),
    [
        ([1.0, 2.0, NAN], True),
        ([1.0, 1.0, NAN], False),
        ([NAN, NAN, NAN], False),
        (None, False),
    ],
    ids=["two values", "one value", "none", "texts"],
)
def test_a_column_is_drawn_where_it_has_two_values(values, spread):
    missing = np.isnan(values) if values else np.zeros(3, dtype=bool)
    found = None if values is None else np.array(values)
    assert _is_spread(Column("a", found, missing)) == spread


def test_bins_leave_out_the_outermost_values_unless_all_others_are_alike():
    even = np.linspace(0.0, 1.0, 1001)
    assert _edges(np.append(even, 1e6))[-1] < 1.1
    few = np.append(np.zeros(1000), 5.0)
    edges = _edges(few)
    assert (edges[0], edges[-1], len(edges)) == (0.0, 5.0, BINS + 1)
    shares = _histogram(few, np.ones(len(few)), edges)
    assert shares.sum() == pytest.approx(1.0)
    assert shares[-1] == pytest.approx(1 / 1001)


def test_texts_of_an_array_are_missing_where_they_are_none_or_nan():
    found = _of_array("a", np.array(["x", None, NAN, "NA"], dtype=object))
    assert found.values is None
    assert found.missing.tolist() == [False, True, True, False]
    assert _of_array("b", np.array([True, False])).values.tolist() == [1.0, 0.0]
