"""Functions of the other columns that looked-up values are compared by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from missratio._base.blocks import any_by_row
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.learning._scores import ScoredTable

# Rows beside looked-up ones that a test takes, at least, and for each looked-up value:
# they stand for all rows, and their own noise is 2 to 3% of its variance. To take all
# of 100,000 rows takes longer than to learn φ.
TEST_ROWS, ROWS_PER_ANSWER = 2000, 50


@dataclass(frozen=True, slots=True)
class LookupFunctions:
    """Functions of the columns, at looked-up rows and at some of the others.

    Parameters
    ----------
    functions : ndarray of shape (n_kept, n_functions)
    sampled : ndarray of bool of shape (n_kept,)
        Which rows stand for all, whatever was looked up of them.
    usable : ndarray of bool of shape (n_columns, n_functions)
        Which of them a test of each column may take.
    answers, values : ndarray of shape (n_kept, n_columns)
        What was looked up of these rows, and what was observed.
    n_observed : ndarray of int of shape (n_columns,)
        Of the whole table.
    """

    functions: FloatArray
    sampled: BoolArray
    usable: BoolArray
    answers: FloatArray
    values: FloatArray
    n_observed: IntArray

    @classmethod
    def of(
        cls, values: FloatArray, answers: FloatArray, usable: BoolArray
    ) -> LookupFunctions:
        """Those of a table, with what was looked up of it."""
        known = ~np.isnan(answers)
        n_wanted = max(TEST_ROWS, ROWS_PER_ANSWER * int(known.sum(axis=0).max()))
        sampled = np.zeros(len(values), dtype=bool)
        sampled[:: max(1, len(values) // n_wanted)] = True
        if np.isnan(values[sampled]).all(axis=0).any():
            sampled[:] = True
        kept = sampled | any_by_row(known)
        functions = ScoredTable.of(values[kept]).test_features()
        tested = usable.copy()
        # The constant is no function of a column.
        tested[:, -1] = False
        n_observed = len(values) - np.isnan(values).sum(axis=0)
        parts = tested, answers[kept], values[kept], n_observed
        return cls(functions, sampled[kept], *parts)
