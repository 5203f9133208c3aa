"""Pages of Parquet files: sound ones pass, and forged ones cost no memory."""

import io
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from missratio._files import open_table
from missratio._files.pages import PageError, check_pages
from missratio.exceptions import TableError


def table(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    numbers = pa.array(np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)))
    return pa.table(
        {
            "a": numbers,
            "b.c": pa.array(rng.integers(9, size=n)),
            "text": pa.array([f"level {i % 50}" * 20 for i in range(n)]),
            "none": pa.nulls(n, pa.float64()),
            "nested": pa.array([{"x": i, "y": [i] * (i % 3)} for i in range(n)]),
        }
    )


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_what_pyarrow_writes_passes(tmp_path, compression, version, dictionary):
    path = tmp_path / "t.parquet"
    written = table()
    pq.write_table(
        written, path, compression=compression, data_page_version=version,
        use_dictionary=dictionary, row_group_size=2000, data_page_size=512,
        write_page_checksum=True,
    )  # fmt: skip
    with path.open("rb") as stream:
        check_pages(stream, pq.read_metadata(path), written.column_names)
    assert open_table(path).read(["b.c", "none"]).num_rows == 5000


def test_what_polars_writes_passes(tmp_path):
    polars = pytest.importorskip("polars")
    path = tmp_path / "t.parquet"
    frame = polars.from_arrow(table().drop_columns("nested"))
    frame.write_parquet(path, row_group_size=1000, data_page_size=4096)
    assert open_table(path).read(["a", "text"]).num_rows == 5000


def varint(number):
    number <<= 1
    data = bytearray()
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    return bytes([*data, number])


def page(unpacked, packed, values):
    """The header of a data page: its kind, its sizes, and its number of values."""
    inner = b"\x15" + varint(values) + b"\x00"
    sizes = b"\x15" + varint(unpacked) + b"\x15" + varint(packed)
    return b"\x15\x00" + sizes + b"\x2c" + inner + b"\x00"


class Chunk:
    path_in_schema, has_dictionary_page, dictionary_page_offset = "a", False, None
    data_page_offset, num_values, total_uncompressed_size = 4, 100, 10**4
    num_row_groups = num_columns = 1

    def __init__(self, size):
        self.total_compressed_size = size

    def row_group(self, _):
        return self

    def column(self, _):
        return self

    num_rows = 100


def check(content, tmp_path):
    path = tmp_path / "pages"
    path.write_bytes(b"PAR1" + content)
    with path.open("rb") as stream:
        check_pages(stream, Chunk(len(content)), ["a"])


def test_a_sound_page_passes(tmp_path):
    check(page(800, 30, 100) + bytes(30), tmp_path)
    check((page(400, 30, 50) + bytes(30)) * 2, tmp_path)


FORGED = {
    page(2**30, 30, 100) + bytes(30): "would unpack to",
    page(800, 30, 10**9) + bytes(30): "1000000000 values",
    page(800, 30, 60) + bytes(30): "have 60 values",
    page(800, 31, 100) + bytes(30): "longer than its column",
    b"\x15" + b"\xff" * 12: "no end",
    b"\x15\x00": "no end",
    b"\x19\x00" + bytes(9): "none has",
    b"\x1c" * 20 + bytes(30): "too deep",
    b"\x11\x12\x00" + bytes(9): "how long",
    b"\x18\xff\xff\x7f": "no end",
    b"\x13\x01\x17": "no end",
}


@pytest.mark.parametrize("content", FORGED, ids=FORGED.values())
def test_a_forged_page_is_refused(tmp_path, content):
    with pytest.raises(PageError, match=FORGED[content]):
        check(content, tmp_path)


@settings(max_examples=200, suppress_health_check=list(HealthCheck), database=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_page_or_refused(tmp_path, content):
    with suppress(PageError):
        check(content, tmp_path)


def test_a_footer_that_tells_of_other_pages_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(table(), path)
    metadata = pq.read_metadata(path)
    path.write_bytes(path.read_bytes()[:200])
    with path.open("rb") as stream, pytest.raises(PageError, match="there aren't"):
        check_pages(stream, metadata, ["a"])


def test_a_forged_page_of_a_file_is_refused_by_its_name(tmp_path):
    buffer = io.BytesIO()
    numbers = pa.array(np.arange(1000.0))
    pq.write_table(
        pa.table({"a": numbers}), buffer, use_dictionary=False, compression="none"
    )
    content = bytearray(buffer.getvalue())
    place = content.index(varint(1000))
    content[place : place + 2] = varint(9000)[:2]
    path = tmp_path / "t.parquet"
    path.write_bytes(content)
    with pytest.raises(TableError, match=r"t\.parquet"):
        open_table(path).read(["a"])
