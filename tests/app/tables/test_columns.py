"""Rows of a table are rows of numbers, whatever file they come from."""

import numpy as np
import pyarrow as pa
import pytest
from data import read_table, write_table
from hypothesis import given
from hypothesis import strategies as st

from missratio._files.cells import Cells
from missratio.app.tables.columns import Encoder, TableColumn
from missratio.exceptions import TableError

ENCODER = Encoder(
    (TableColumn("a"), TableColumn("c", ("red", "blue", "green"))), Cells()
)


def test_the_first_level_is_the_reference():
    batch = pa.table({"c": ["red", "blue", "green"], "a": [1.0, 2.0, 3.0]})
    expected = [[1, 0, 0], [2, 1, 0], [3, 0, 1]]
    np.testing.assert_array_equal(ENCODER.encode(batch), expected)
    assert ENCODER.encoded_names == ["a", "c=blue", "c=green"]


@pytest.mark.parametrize("level", ["violet", None, "", "NA"])
def test_unseen_and_missing_categories_are_nan(level):
    row = ENCODER.encode(pa.table({"a": [1.0], "c": pa.array([level], pa.string())}))
    np.testing.assert_array_equal(row, [[1, np.nan, np.nan]])


def test_a_blank_may_be_a_level():
    encoder = Encoder((TableColumn("c", ("red", "")),), Cells())
    batch = pa.table({"c": ["red", None, "violet"]})
    np.testing.assert_array_equal(encoder.encode(batch), [[0], [1], [np.nan]])


@given(st.lists(st.floats(allow_infinity=False, width=64), min_size=1, max_size=50))
def test_numbers_survive_as_text(values):
    encoder = Encoder((TableColumn("a"),), Cells())
    typed = encoder.encode(pa.table({"a": pa.array(values, pa.float64())}))
    text = ["" if np.isnan(v) else repr(v) for v in values]
    np.testing.assert_array_equal(encoder.encode(pa.table({"a": text})), typed)


def test_a_column_of_another_type_is_refused_by_its_name():
    days = pa.array([1, 2], pa.timestamp("us"))
    with pytest.raises(TableError, match=r"Column 'a' holds numbers: .* timestamp"):
        ENCODER.encode(pa.table({"a": days, "c": ["red", "blue"]}))
    lists = pa.array([["red"], ["blue"]])
    with pytest.raises(TableError, match=r"Column 'c' holds texts: .* list"):
        ENCODER.encode(pa.table({"a": [1.0, 2.0], "c": lists}))


# A look over a table finds what counting cell by cell does.


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
