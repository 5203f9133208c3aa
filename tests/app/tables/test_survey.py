"""A first pass over Parquet files finds what a table in memory has."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from missratio._files import open_table
from missratio.app.tables import Wanted, read_labelled, row_groups, survey_columns
from missratio.exceptions import TableError

N = 12
PLACES = np.arange(N)
LABELS = np.array(["well", "sick"])[PLACES % 2]
FLOATS = np.where(PLACES % 4 == 0, np.nan, PLACES)
NUMBERS_AS_TEXT = [str(i) if i % 3 else "NA" for i in range(N)]
WARDS = [None if i % 5 == 0 else ("north", "south")[i % 2] for i in range(N)]


@pytest.fixture
def write(tmp_path):
    def table(**columns):
        path = tmp_path / "t.parquet"
        pq.write_table(pa.table({**columns, "y": LABELS}), path, row_group_size=5)
        return path

    return table


def survey(path, **wanted):
    return survey_columns(path, *row_groups(path), Wanted("y", **wanted))


def both(path, **wanted):
    """What refuses a table read in passes, and in memory."""
    for read in (
        lambda: survey(path, **wanted),
        lambda: read_labelled(open_table(path), Wanted("y", **wanted)),
    ):
        with pytest.raises(TableError) as refused:
            read()
        yield str(refused.value)


@pytest.mark.parametrize(
    "columns",
    [
        {"a": FLOATS, "b": PLACES},
        {"a": NUMBERS_AS_TEXT, "b": PLACES},
        {"a": NUMBERS_AS_TEXT, "b": FLOATS, "c": WARDS},
        {"a": ["?" if i == 7 else str(i) for i in range(N)], "b": PLACES},
        {"a": [None] * 5 + ["u", "v", "NA"] * 2 + ["u"], "b": PLACES},
    ],
    ids=["floats", "texts", "mixed", "named", "a part without a value"],
)
def test_as_many_rows_and_cells_miss_values_as_in_memory(write, columns):
    """Whatever marks a missing cell: a null, NaN, or a word that means missing."""
    path = write(**columns)
    found = survey(path, missing_values=["?"])
    table = read_labelled(open_table(path), Wanted("y", missing_values=["?"]))
    assert found.incomplete == table.missing.incomplete
    assert any(found.incomplete.values())
    assert found.encoder.columns == table.encoder.columns
    for label, counts in found.missing.items():
        assert counts == table.missing_counts(label)


def test_numbers_before_a_row_group_without_any_keep_their_range(write):
    path = write(a=np.where(PLACES < 5, PLACES, np.nan), b=PLACES)
    assert survey(path).encoder.names == ["a", "b"]


@pytest.mark.parametrize(
    "blank",
    [
        pa.array(np.full(N, np.nan)),
        pa.array([None] * N, pa.float64()),
        pa.array([None] * N, pa.string()),
        pa.array(["NA"] * N),
        pa.nulls(N),
    ],
    ids=["NaN", "nulls", "no text", "NA", "no type"],
)
def test_a_column_without_a_value_is_told_in_passes_as_in_memory(write, blank):
    passes, memory = both(write(a=blank, b=PLACES))
    assert passes == memory
    assert "column 'a' has no value in any row. Leave it out (--drop a)." in memory


def test_without_a_feature_nothing_can_be_learned(write):
    with pytest.raises(TableError, match="no column but the target: bring features"):
        survey(write(a=PLACES), drop=["a"])


def test_numbers_that_are_names_must_be_texts_in_passes(write):
    with pytest.raises(TableError, match=r"column 'a' is of numbers.*Make texts of it"):
        survey(write(a=PLACES % 3, b=PLACES), categorical=["a"])


def test_texts_of_numbers_can_be_named_categories(write):
    texts = [str(i % 3) for i in range(N)]
    found = survey(write(a=texts, b=PLACES), categorical=["a"])
    assert found.encoder.encoded_names == ["b", "a=1", "a=2"]
