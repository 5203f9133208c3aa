"""Numbers as people and spreadsheets write them, read without guessing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

BLANKS = ("", "na", "n/a", "#n/a", "nan", "null", "none")
"""What stands for nothing, in lower case."""

_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
# Thousands set off by commas, before a decimal point.
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
_INFINITE = re.compile(r"[+-]?(inf|infinity|∞)", re.IGNORECASE)
# Spreadsheets group digits by spaces that don't break, and type minus signs.
_TYPED = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2212": "-"})
_SWAPPED = str.maketrans(",.", ".,")


class DoubtfulNumberError(ValueError):
    """A text that could be two numbers."""


# What makes a spreadsheet take a cell for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

Mark = Literal[",", "."]


def is_blank(cell: Any) -> bool:
    """Say whether a cell holds no answer: nothing, NaN, or NA in some spelling.

    Examples
    --------
    >>> [is_blank(cell) for cell in (None, " ", "NA", float("nan"), 0, "0")]
    [True, True, True, True, False, False]
    """
    if isinstance(cell, str):
        return cell.translate(_TYPED).strip().lower() in BLANKS
    return is_null(cell)


def is_null(cell: Any) -> bool:
    """Say whether a cell is None, NaN or a dataframe's null.

    Examples
    --------
    >>> is_null(None), is_null(float("nan")), is_null("")
    (True, True, False)
    """
    if cell is None:
        return True
    # NaN is unequal to itself, and pandas' NA neither equal nor not.
    try:
        return not bool(cell == cell)
    except TypeError:
        return True


def decimal_marks(cells: Iterable[Any]) -> frozenset[Mark]:
    """Find the decimal marks that a column uses where there is no doubt.

    Examples
    --------
    >>> sorted(decimal_marks(["3,5", "1,234", 7.5]))
    [',']
    >>> sorted(decimal_marks(["1,234,567", "0.5"]))
    ['.']
    """
    readings = (_readings(_tidy(cell)) for cell in cells if isinstance(cell, str))
    return frozenset(mark for found in readings if len(found) == 1 for mark in found)


def parse_number(
    cell: Any, marks: frozenset[Mark] = frozenset(), *, finite: bool = True
) -> float:
    """Read one number; `marks` are the decimal marks that its column uses.

    A comma or a point that could as well group thousands is settled by the rest of the
    column, or refused.

    Raises
    ------
    ValueError
        With the reason: the text isn't a number, could be two (`DoubtfulNumberError`),
        or isn't finite.

    Examples
    --------
    >>> [parse_number(cell) for cell in (2, "2.50", "2,5", "1.234,5", "1e-3")]
    [2.0, 2.5, 2.5, 1234.5, 0.001]
    >>> parse_number("1,234", marks=frozenset(","))
    1.234
    >>> parse_number("1,234")
    Traceback (most recent call last):
    missratio...DoubtfulNumberError: '1,234' could be 1.234 or 1234. Write ...
    """
    if isinstance(cell, str):
        number = _parse_text(cell, marks)
    elif isinstance(cell, bool | np.bool_) or not hasattr(type(cell), "__float__"):
        raise ValueError(f"{cell!r} is not a number.")
    else:
        number = float(cell)
    if finite and number in (float("inf"), float("-inf")):
        raise ValueError(f"{cell!r} is not finite. Leave a value not found blank.")
    return number


def parse_position(cell: Any) -> int:
    """Read a whole number, which spreadsheets may have turned into a float.

    Examples
    --------
    >>> parse_position("17"), parse_position(17.0), parse_position("17.0")
    (17, 17, 17)
    """
    number = parse_number(cell)
    if number != int(number) or (isinstance(cell, str) and "," in cell):
        raise ValueError(f"{cell!r} is not a whole number.")
    return int(number)


def canonical(cell: Any) -> str:
    """One spelling for labels and names, whatever a spreadsheet made of them.

    Examples
    --------
    >>> [canonical(cell) for cell in (1, "1.0", True, "TRUE", "a ")]
    ['1', '1', 'true', 'true', 'a']
    """
    text = str(cell).strip()
    if text.lower() in ("true", "false"):
        return text.lower()
    if _PLAIN.fullmatch(text):
        number = float(text)
        # Beyond 2**53 different integers are one float.
        if abs(number) < 2**53:
            return str(int(number)) if number == int(number) else repr(number)
    return text


def without_formula(text: str) -> str:
    """A text that no spreadsheet takes for a formula: marked by an apostrophe.

    Examples
    --------
    >>> [without_formula(text) for text in ("=SUM(A1)", "-5.3", "@home", "a=b")]
    ["'=SUM(A1)", '-5.3', "'@home", 'a=b']
    """
    suspect = text.startswith(_FORMULA) and not _PLAIN.fullmatch(text.strip())
    return f"'{text}" if suspect else text


def with_formula(text: str) -> str:
    """What `without_formula` was given."""
    return text[1:] if text[:1] == "'" and text[1:].startswith(_FORMULA) else text


def _tidy(text: str) -> str:
    """The text without surrounding space or spaces that group digits by three."""
    text = text.translate(_TYPED).strip()
    if re.fullmatch(r"[+-]?\d{1,3}( \d{3})+([.,]\d+)?", text):
        text = text.replace(" ", "")
    return text


def _readings(text: str) -> dict[Mark, float]:
    """The numbers that a text can be, by the decimal mark that it would have."""
    english = {".": text, ",": text.translate(_SWAPPED)}
    readings: dict[Mark, float] = {}
    for mark in (".", ","):
        if _PLAIN.fullmatch(english[mark]):
            readings[mark] = float(english[mark])
        elif _GROUPED.fullmatch(english[mark]):
            readings[mark] = float(english[mark].replace(",", ""))
    return readings


def _parse_text(cell: str, marks: frozenset[Mark]) -> float:
    text = _tidy(cell)
    if _INFINITE.fullmatch(text):
        return float("-inf") if text.startswith("-") else float("inf")
    readings = _readings(text)
    if not readings:
        raise ValueError(f"{cell!r} is not a number.")
    mark: Mark = "," if "," in text else "."
    # The only decimal mark of the column settles it, and a point is one by default.
    settled = marks == {mark} or (mark == "." and not marks)
    if len(set(readings.values())) > 1 and not settled:
        plain, whole = text.replace(mark, ".", 1), text.replace(mark, "")
        raise DoubtfulNumberError(
            f"{cell!r} could be {plain} or {whole}. Write {plain}0 or {whole}."
        )
    return readings.get(mark, next(iter(readings.values())))
