"""A look over a table finds what counting cell by cell does."""

import numpy as np
import pytest
from data import read_table, write_table


@pytest.mark.parametrize("n_rows", [5, 20_000])
def test_missing_cells_and_rows_are_counted_by_class(tmp_path, n_rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    y = rng.choice(["a", "b"], n_rows)
    columns = {name: X[:, j] for j, name in enumerate("pqr")}
    table = read_table(write_table(tmp_path / "t.parquet", {**columns, "y": y}))
    for label in ("a", "b"):
        missing = np.isnan(X[y == label])
        counts = dict(zip("pqr", missing.sum(axis=0).tolist(), strict=True))
        assert table.missing[label] == {k: v for k, v in counts.items() if v}
        assert table.n_complete(label) == (~missing.any(axis=1)).sum()
