"""Pages of Parquet files: their headers are read before PyArrow believes them.

PyArrow takes as much memory as the header of a page asks for. A header is a structure
in Thrift's compact protocol, and a few of its numbers are compared with what the file's
footer says about the column.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

MOST_PAGE_BYTES = 2**27
_MOST_HEADER_BYTES = 2**20
_FIRST_READ = 2**9
_MOST_DEPTH = 8
# Fields of a page's header, and of the structures in it that tell how many values.
_UNPACKED, _PACKED = 2, 3
_COUNTS = {5: "data", 7: "dictionary", 8: "data"}
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _STRUCT = 1, 2, 3, 7, 8, 12


class PageError(ValueError):
    """A page claims what can't be so."""


def check_pages(stream: BinaryIO, metadata: Any, columns: Sequence[str]) -> None:
    """Refuse pages that claim more bytes or values than their column has.

    Parameters
    ----------
    stream : binary file
    metadata : pyarrow.parquet.FileMetaData
    columns : sequence of str
        Those that are going to be read.

    Raises
    ------
    PageError
    """
    size = os.fstat(stream.fileno()).st_size
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group)
        for place in range(rows.num_columns):
            chunk = rows.column(place)
            path = chunk.path_in_schema
            if any(path == name or path.startswith(f"{name}.") for name in columns):
                _check_chunk(stream, size, chunk, rows.num_rows)


def _check_chunk(stream: BinaryIO, size: int, chunk: Any, n_rows: int) -> None:
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        start = min(start, chunk.dictionary_page_offset)
    end = start + chunk.total_compressed_size
    flat = "." not in chunk.path_in_schema
    if not 0 < start <= end <= size or (flat and chunk.num_values != n_rows):
        raise PageError("Its footer tells of pages that there aren't.")
    values = 0
    for unpacked, count, kind in _headers(stream, start, end):
        most = min(MOST_PAGE_BYTES, chunk.total_uncompressed_size)
        if not 0 <= unpacked <= most:
            raise PageError(
                f"A page would unpack to {unpacked} bytes, and its column has "
                f"{chunk.total_uncompressed_size}; a page may have {MOST_PAGE_BYTES}."
            )
        if not 0 <= count <= chunk.num_values:
            raise PageError(
                f"A page has {count} values, and its column {chunk.num_values}."
            )
        values += count if kind == "data" else 0
    if values != chunk.num_values:
        raise PageError(f"Its pages have {values} values, not {chunk.num_values}.")


def _headers(stream: BinaryIO, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Each page's size when unpacked, its number of values, and its kind."""
    place = start
    while place < end:
        header, length = _read_header(stream, place, end)
        packed, unpacked = header.get(_PACKED), header.get(_UNPACKED)
        if not isinstance(packed, int) or not isinstance(unpacked, int) or packed < 0:
            raise PageError("A page doesn't say how long it is.")
        place += length + packed
        if place > end:
            raise PageError("A page is longer than its column.")
        for field, kind in _COUNTS.items():
            inner = header.get(field)
            if isinstance(inner, dict):
                yield unpacked, inner.get(1, -1), kind


def _read_header(stream: BinaryIO, place: int, end: int) -> tuple[dict[int, Any], int]:
    wanted = _FIRST_READ
    while True:
        stream.seek(place)
        data = stream.read(min(wanted, end - place))
        try:
            return _struct(data, 0, 0)
        except IndexError:
            if len(data) < wanted or wanted >= _MOST_HEADER_BYTES:
                raise PageError("The header of a page has no end.") from None
            wanted *= 8


def _struct(data: bytes, place: int, depth: int) -> tuple[dict[int, Any], int]:
    """The fields of a structure, and where it ends."""
    if depth > _MOST_DEPTH:
        raise PageError("The header of a page is nested too deep.")
    fields: dict[int, Any] = {}
    field = 0
    while True:
        head = data[place]
        place += 1
        if head == 0:
            return fields, place
        delta, kind = head >> 4, head & 15
        if delta:
            field += delta
        else:
            field, place = _number(data, place)
        fields[field], place = _value(data, place, kind, depth)


def _value(data: bytes, place: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (_TRUE, _FALSE):
        return kind == _TRUE, place
    if kind == _BYTE:
        return data[place], place + 1
    if _BYTE < kind < _DOUBLE:
        return _number(data, place)
    if kind == _DOUBLE:
        return None, _within(data, place + 8)
    if kind == _BINARY:
        length, place = _varint(data, place)
        return None, _within(data, place + length)
    if kind == _STRUCT:
        return _struct(data, place, depth + 1)
    # No header of a page has lists or maps.
    raise PageError("The header of a page has fields that none has.")


def _within(data: bytes, place: int) -> int:
    if place > len(data):
        raise IndexError
    return place


def _number(data: bytes, place: int) -> tuple[int, int]:
    """A signed number: the lowest bit is the sign."""
    value, place = _varint(data, place)
    return (value >> 1) ^ -(value & 1), place


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
    raise PageError("A number in the header of a page has no end.")
