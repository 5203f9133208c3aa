"""Small tables for the real-data experiments, and runs of them."""

import numpy as np
import pytest

from missratio.reproduce import Conditions
from missratio.reproduce.experiments import SplitSizes, draw_run
from missratio.reproduce.methods import RealTable


@pytest.fixture
def table():
    """Two classes of 300 and 500 rows, three columns, some NaN, values that repeat."""
    rng = np.random.default_rng(0)
    is_numerator = np.arange(800) >= 300
    X = rng.normal(size=(800, 3)).round(1) + 0.5 * is_numerator[:, None]
    X[rng.random(X.shape) < 0.02] = np.nan
    return RealTable(np.asfortranarray(X), is_numerator)


@pytest.fixture
def make_run(table):
    def make(variant="published", queries=20, share=None, number=0):
        sizes = SplitSizes(150, 100, queries)
        conditions = Conditions(variant)
        rng = conditions.generator("test", number)
        return draw_run(table, sizes, share, rng, conditions)

    return make
