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
        check_pages(stream, written.column_names)
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


def struct(*fields):
    """Fields, each of a number, a kind and its bytes."""
    data, before = b"", 0
    for number, kind, content in fields:
        data += bytes([(number - before) << 4 | kind]) + content
        before = number
    return data + b"\0"


def footer(packed, n_values=100, n_rows=100, total=10**4, start=4):
    """The footer of a file of one column, `a`, in one group of rows."""
    chunk = struct(
        (3, 9, b"\x18\x01a"), (5, 6, varint(n_values)), (6, 6, varint(total)),
        (7, 6, varint(packed)), (9, 6, varint(start)),
    )  # fmt: skip
    group = struct((1, 9, b"\x1c" + struct((3, 12, chunk))), (3, 6, varint(n_rows)))
    return struct((4, 9, b"\x1c" + group))


def check(content, tmp_path, end=None):
    path = tmp_path / "pages"
    end = footer(len(content)) if end is None else end
    length = len(end).to_bytes(4, "little")
    path.write_bytes(b"PAR1" + content + end + length + b"PAR1")
    with path.open("rb") as stream:
        check_pages(stream, ["a"])


def test_a_sound_page_passes(tmp_path):
    check(page(800, 30, 100) + bytes(30), tmp_path)
    check((page(400, 30, 50) + bytes(30)) * 2, tmp_path)


FORGED = {
    page(2**30, 30, 100) + bytes(30): "would unpack to",
    page(800, 30, 10**9) + bytes(30): "1000000000 values",
    page(800, 30, 60) + bytes(30): "have 60 values",
    page(800, 31, 100) + bytes(30): "longer than its column",
    b"\x15" + b"\xff" * 12: "without an end",
    b"\x15\x00": "no end",
    b"\x1b\x00" + bytes(9): "of a kind",
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


SOUND = page(800, 30, 100) + bytes(30)
SIZE = len(SOUND)
FOOTERS = {
    footer(SIZE, n_rows=99): "don't exist",
    footer(10**6): "don't exist",
    footer(SIZE, start=0): "don't exist",
    footer(SIZE, total=700): "its column has 700",
    footer(SIZE, n_values=90, n_rows=90): "its column 90",
    footer(SIZE)[:-4]: "no end",
    struct((4, 9, b"\xfc\xff\xff\x03")): "no end",
    struct((4, 9, b"\x15\x02")): "isn't one",
    struct((3, 6, varint(1))): "isn't one",
    struct((4, 9, b"\x1c" + struct((1, 9, b"\x0c")))): "impossible number",
    struct(
        (4, 9, b"\x1c" + struct((1, 9, b"\x1c\x00"), (3, 6, varint(1))))
    ): "without pages",
    struct(
        (4, 9, b"\x1c" + struct((1, 9, b"\x1c\x3c\x00\x00"), (3, 6, varint(1))))
    ): "without a name",
    footer(SIZE).replace(b"\x18\x01a", b"\x19\x18\x01a"): "without a name",
    footer(SIZE).replace(b"\x18\x01a", b"\x15\x02"): "without a name",
}


@pytest.mark.parametrize("end", FOOTERS, ids=range(len(FOOTERS)))
def test_a_forged_footer_is_refused(tmp_path, end):
    with pytest.raises(PageError, match=FOOTERS[end]):
        check(SOUND, tmp_path, end)


def test_lists_of_truth_values_and_doubles_are_passed_over(tmp_path):
    extra = struct((1, 9, b"\x21\x01\x02"), (2, 7, bytes(8)), (3, 3, b"\x07"))
    first = struct((1, 12, extra), (4, 9, b""))[:-1]
    check(SOUND, tmp_path, first + footer(SIZE)[1:])


@settings(max_examples=300, suppress_health_check=list(HealthCheck), database=None)
@given(st.binary(max_size=80))
def test_any_bytes_are_a_footer_or_refused(tmp_path, content):
    with suppress(PageError):
        check(SOUND, tmp_path, content)


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
