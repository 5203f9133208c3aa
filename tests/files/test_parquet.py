"""Parquet files: sound ones are read by both doors, and forged ones are refused."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from missratio._files import open_table
from missratio._files.parquet import find_row_groups
from missratio.exceptions import TableError, UnreadableFileError


def by_table(path, columns):
    return open_table(path).read(columns).num_rows


def by_batches(path, columns):
    return sum(len(batch) for batch in open_table(path).batches(columns))


def by_row_groups(path, columns):
    _, groups = find_row_groups(path)
    return sum(len(batch) for g in groups for _, batch in g.batches(columns, 700))


DOORS = [by_table, by_batches, by_row_groups]


def varint(number):
    number <<= 1
    data = bytearray()
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    return bytes([*data, number])


def written(compression, **columns):
    buffer = io.BytesIO()
    pq.write_table(
        pa.table(columns), buffer, use_dictionary=False, compression=compression,
        write_statistics=False, store_schema=False,
    )  # fmt: skip
    return bytearray(buffer.getvalue())


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("count", [500, 999, 1001, 9000])
@pytest.mark.parametrize("names", ["a", "ab"])
def test_a_page_with_another_number_of_values_is_refused(tmp_path, door, count, names):
    content = written("none", **{name: np.arange(1000.0) for name in names})
    place = content.index(varint(1000))
    content[place : place + 2] = varint(count)[:2]
    path = tmp_path / "t.parquet"
    path.write_bytes(content)
    with pytest.raises((TableError, UnreadableFileError), match=r"t\.parquet"):
        door(path, list(names))


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("packed", [False, True])
def test_a_page_that_claims_a_gigabyte_is_refused_and_has_none(tmp_path, door, packed):
    resource = pytest.importorskip("resource")
    content = written("snappy", a=np.arange(100.0))
    column = pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0).column(0)
    start = column.data_page_offset
    claimed = varint(2**30)
    assert content[start : start + 3] == b"\x15\x00\x15"
    # Its size unpacked is the header's second field, and that in the file the third.
    begin = start + 3
    if packed:
        begin = content.index(b"\x15", begin) + 1
    end = content.index(b"\x2c" if packed else b"\x15", begin)
    longer = len(claimed) - (end - begin)
    content[begin:end] = claimed
    # The footer knows of the longer header, so that nothing else is wrong.
    size = column.total_compressed_size
    footer = content.rindex(varint(size), 0, len(content) - 8)
    for place in (footer, content.rindex(varint(size), 0, footer)):
        content[place : place + len(varint(size))] = varint(size + longer)
    path = tmp_path / "t.parquet"
    path.write_bytes(content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises((TableError, UnreadableFileError), match=r"t\.parquet"):
        door(path, ["a"])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000
