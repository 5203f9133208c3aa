"""Pages of Parquet files: what they claim is read before PyArrow believes it.

PyArrow takes as much memory as the header of a page asks for, and its interface to the
footer ends the process where a footer has fewer columns than its schema. Both are
structures in Thrift's compact protocol. A few of their numbers must fit each other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

MOST_PAGE_BYTES = 2**27
_MOST_HEADER_BYTES = 2**20
_FIRST_READ = 2**9
_MOST_DEPTH = 12
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
# Fields, by their numbers in the format's definition: of the footer, …
_GROUPS, _COLUMNS, _N_ROWS, _METADATA = 4, 1, 3, 3
_PATH, _N_VALUES, _UNPACKED_SIZE, _PACKED_SIZE = 3, 5, 6, 7
_DATA_PAGE, _DICTIONARY_PAGE = 9, 11
# … of a page's header, and of the structures in it that tell how many values it has.
_UNPACKED, _PACKED = 2, 3
_COUNTS = {5: "data", 7: "dictionary", 8: "data"}


class PageError(ValueError):
    """A page or a footer claims what can't be so."""


def check_pages(stream: BinaryIO, columns: Sequence[str]) -> None:
    """Refuse pages that claim more bytes or values than their column has.

    Parameters
    ----------
    stream : binary file
        A Parquet file that PyArrow has opened without complaint.
    columns : sequence of str
        Those that are going to be read.

    Raises
    ------
    PageError
    """
    size = os.fstat(stream.fileno()).st_size
    wanted = {name.encode() for name in columns}
    for group in _structs(_footer(stream, size), _GROUPS):
        n_rows = _whole(group, _N_ROWS)
        for column in _structs(group, _COLUMNS):
            chunk = column.get(_METADATA)
            if not isinstance(chunk, dict):
                raise PageError("Its footer tells of columns without pages.")
            path = chunk.get(_PATH)
            if not (isinstance(path, list) and path and isinstance(path[0], bytes)):
                raise PageError("Its footer tells of columns without a name.")
            if path[0] in wanted:
                _check_chunk(stream, size, chunk, n_rows if len(path) == 1 else None)


def _footer(stream: BinaryIO, size: int) -> dict[int, Any]:
    """The structure at the end of the file, before its length and a mark."""
    stream.seek(max(0, size - 8))
    length = int.from_bytes(stream.read(4), "little")
    stream.seek(max(0, size - 8 - length))
    try:
        return _struct(stream.read(length), 0, 0)[0]
    except IndexError:
        raise PageError("Its footer has no end.") from None


def _structs(of: dict[int, Any], field: int) -> list[dict[int, Any]]:
    found = of.get(field)
    if not isinstance(found, list) or not all(isinstance(x, dict) for x in found):
        raise PageError("Its footer isn't one.")
    return found


def _whole(of: dict[int, Any], field: int) -> int:
    found = of.get(field)
    if type(found) is not int or found < 0:
        raise PageError("Its footer has an impossible number.")
    return found


def _check_chunk(
    stream: BinaryIO, size: int, chunk: dict[int, Any], n_rows: int | None
) -> None:
    start, n_values = _whole(chunk, _DATA_PAGE), _whole(chunk, _N_VALUES)
    # Some writers say 0 where there is no dictionary.
    if chunk.get(_DICTIONARY_PAGE):
        start = min(start, _whole(chunk, _DICTIONARY_PAGE))
    end, total = start + _whole(chunk, _PACKED_SIZE), _whole(chunk, _UNPACKED_SIZE)
    if not 0 < start <= end <= size or n_rows not in (None, n_values):
        raise PageError("Its footer tells of pages that don't exist.")
    values = 0
    for unpacked, count, kind in _headers(stream, start, end):
        if not 0 <= unpacked <= min(MOST_PAGE_BYTES, total):
            raise PageError(
                f"A page would unpack to {unpacked} bytes, and its column has {total}; "
                f"a page may have {MOST_PAGE_BYTES}."
            )
        if not 0 <= count <= n_values:
            raise PageError(f"A page has {count} values, and its column {n_values}.")
        values += count if kind == "data" else 0
    if values != n_values:
        raise PageError(f"Its pages have {values} values, not {n_values}.")


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
            if isinstance(header.get(field), dict):
                yield unpacked, _whole(header[field], 1), kind


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
        raise PageError("It is nested too deep.")
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
        end = _within(data, place + length)
        return data[place:end], end
    if kind in (_LIST, _SET):
        return _list(data, place, depth)
    if kind == _STRUCT:
        return _struct(data, place, depth + 1)
    raise PageError("It has fields of a kind that Parquet files don't have.")


def _list(data: bytes, place: int, depth: int) -> tuple[list[Any], int]:
    head = data[place]
    length, kind = head >> 4, head & 15
    place += 1
    if length == 15:
        length, place = _varint(data, place)
    # Each takes a byte at least.
    _within(data, place + length)
    found = []
    for _ in range(length):
        # A truth value in a list is a byte, elsewhere it is part of the field's head.
        of = _BYTE if kind in (_TRUE, _FALSE) else kind
        value, place = _value(data, place, of, depth)
        found.append(value)
    return found, place


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
    raise PageError("It has a number without an end.")
