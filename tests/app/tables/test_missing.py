"""A look over a table finds what counting cell by cell does."""

import numpy as np
import pytest

from missratio.app.tables import varies
from missratio.app.tables.columns import BLOCK_ROWS
from missratio.app.tables.labelled import MissingCounts


@pytest.mark.parametrize("n_rows", [5, 3 * BLOCK_ROWS + 1])
def test_missing_cells_and_rows_are_counted_by_class(n_rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 4))
    X[rng.random(X.shape) < 0.2] = np.nan
    y = rng.choice(["a", "b"], n_rows)
    survey = MissingCounts.of(X, y, ["a", "b"])
    for label in ("a", "b"):
        missing = np.isnan(X[y == label])
        assert np.array_equal(survey.missing[label], missing.sum(axis=0))
        assert survey.incomplete[label] == missing.any(axis=1).sum()


@pytest.mark.parametrize("at", [1, BLOCK_ROWS + 3, 3 * BLOCK_ROWS])
def test_a_column_varies_if_one_value_differs(at):
    column = np.full(3 * BLOCK_ROWS + 1, 2.0)
    column[0] = column[5] = np.nan
    assert not varies(column)
    column[at] = 3.0
    assert varies(column)


def test_a_column_without_values_does_not_vary():
    assert not varies(np.full(3, np.nan))
