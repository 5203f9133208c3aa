"""Certificates hold where categories are many and rare, seen and unseen."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from promises import kept

from missratio.app.options import FitOptions
from missratio.app.workflow import fit_table

pytestmark = pytest.mark.validity

RUNS, ALPHA, DELTA = 300, 0.15, 0.1
LEVELS = 40


def draw(n, shift, rng):
    """A number and a category, of which the later ones are rare, and telling."""
    weights = 0.85 ** np.arange(LEVELS) * np.exp(shift * 0.05 * np.arange(LEVELS))
    level = rng.choice(LEVELS, n, p=weights / weights.sum())
    x = rng.normal(shift, 1, n)
    return pa.array(x), pa.array([f"level {k:02}" for k in level])


@pytest.mark.parametrize("method", ["kliep", "naive-bayes", "logistic"])
def test_rare_categories_keep_the_guarantee(tmp_path, method):
    rng = np.random.default_rng(0)
    fresh = draw(20_000, 0.0, rng)
    path, failures = tmp_path / "t.parquet", 0
    for run in range(RUNS):
        samples = [draw(200, shift, rng) for shift in (0.0, 1.0)]
        table = pa.table(
            {
                "x": pa.concat_arrays([sample[0] for sample in samples]),
                "c": pa.concat_arrays([sample[1] for sample in samples]),
                "y": np.repeat([0, 1], 200),
            }
        )
        pq.write_table(table, path)
        asked = FitOptions(
            data=path, target="y", out=path, controlled="0", alpha=[str(ALPHA)],
            delta=DELTA, method=method, seed=run,
        )  # fmt: skip
        model, _ = fit_table(asked)
        X = model.encoder.encode(pa.table({"x": fresh[0], "c": fresh[1]}))
        failures += model.decide(X).codes.mean() > ALPHA
    assert kept(failures, RUNS, DELTA)
