"""Cells of tables as people and spreadsheets write them, read without guessing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from missratio._base.storable import storable
from missratio._base.typing import BoolArray, FloatArray

BLANKS = ("", "na", "n/a", "#n/a", "nan", "null", "none")
"""What stands for nothing, in lower case."""
_USUAL = ("", "NA", "NaN", "nan", "null", "NULL")

_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
# Commas set off thousands, before a decimal point.
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
_INFINITE = re.compile(r"[+-]?(inf|infinity|∞)", re.IGNORECASE)
# Texts of another form are no numbers, and are not looked at one by one.
_LIKELY = r"^[+\-\x{2212}]?([\d.,]|\x{221e}|[iI][nN][fF])"
DATE = re.compile(r"\d{1,4}([-./])\d{1,2}\1\d{1,4}([T ].*)?")
_WHOLE = r"^(?:0|-?[1-9]\d{0,14})$"
_UNROUNDED = re.compile(r"[+-]?0*(\d+)(?:\.\d*)?")
# Spreadsheets group digits by spaces that don't break, and type minus signs.
_TYPED = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2212": "-"})
_SWAPPED = str.maketrans(",.", ".,")
# A spreadsheet takes a cell that begins so for a formula, whatever the width of a sign.
_FORMULA = re.compile(r"'*([\t\r\n]|[\s\ufeff]*[=+\-@＝＋－＠])")

NUMBERS = ("integers", "floats", "truth values")
HELD = {
    "integers": r"u?int\d",
    "floats": "(half)?float|double|decimal",
    "truth values": "bool",
    "text": "(large_)?string",
    "nothing": "null",
    "dates": "date|timestamp",
}

# Beyond it different integers are one float.
_EXACT = 2**53

Mark = Literal[",", "."]


class DoubtfulNumberError(ValueError):
    """A text that could be two numbers."""


def is_blank(cell: Any) -> bool:
    """Say whether a cell holds no answer: nothing, NaN, or NA in some spelling.

    Examples
    --------
    >>> [is_blank(cell) for cell in (None, " ", "NA", float("nan"), 0, "0")]
    [True, True, True, True, False, False]
    """
    if isinstance(cell, str):
        return cell.translate(_TYPED).strip().lower() in BLANKS
    # NaN is unequal to itself, and pandas' NA neither equal nor not.
    try:
        return cell is None or not bool(cell == cell)
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
    return frozenset(mark for some in readings if len(some) == 1 for mark in some)


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
    text = _tidy(cell) if isinstance(cell, str) else ""
    readings = _readings(text)
    if _INFINITE.fullmatch(text):
        number = float("-inf") if text.startswith("-") else float("inf")
    elif readings:
        mark: Mark = "," if "," in text else "."
        # The only decimal mark of the column settles it, and a point is one by default.
        settled = marks == {mark} or (mark == "." and not marks)
        if len(set(readings.values())) > 1 and not settled:
            plain, whole = text.replace(mark, ".", 1), text.replace(mark, "")
            raise DoubtfulNumberError(
                f"{cell!r} could be {plain} or {whole}. Write {plain}0 or {whole}."
            )
        number = readings.get(mark, next(iter(readings.values())))
    elif isinstance(cell, str | bool | np.bool_) or not hasattr(cell, "__float__"):
        raise ValueError(f"{cell!r} is not a number.")
    else:
        number = float(cell)
    if finite and number in (float("inf"), float("-inf")):
        raise ValueError(f"{cell!r} is not finite. Leave a value not found blank.")
    return number


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
        if abs(number) < _EXACT:
            return str(int(number)) if number == int(number) else repr(number)
    return text


def without_formula(text: str) -> str:
    """A text that no spreadsheet takes for a formula: marked by an apostrophe.

    Examples
    --------
    >>> [without_formula(text) for text in ("=SUM(A1)", "-5,3", "@home", "a=b", "-")]
    ["'=SUM(A1)", '-5,3', "'@home", 'a=b', '-']
    """
    if len(text) < 2 or not _FORMULA.match(text):
        return text
    return text if _readings(_tidy(text.removesuffix("%"))) else f"'{text}"


def with_formula(text: str) -> str:
    """What `without_formula` was given."""
    return text[1:] if text[:1] == "'" and _FORMULA.match(text[1:]) else text


def held_by(kind: Any) -> str:
    """What an Arrow type holds: numbers of a kind, "text", "dates", or the type.

    Examples
    --------
    >>> [held_by(kind) for kind in ("double", "date32[day]", "binary")]
    ['floats', 'dates', 'binary']
    """
    for held, types in HELD.items():
        # A dictionary holds what its values are.
        if re.match(rf"(dictionary<values=)?({types})", str(kind)):
            return held
    return str(kind)


def without_codes(column: Any) -> Any:
    """A column of Arrow in one piece, and with the values of a dictionary."""
    column = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    return column.dictionary_decode() if hasattr(column, "dictionary") else column


def whole_numbers(texts: Sequence[str]) -> list[int] | None:
    """Texts as whole numbers; None where some aren't, such as 01, or aren't alone."""
    whole = all(re.match(_WHOLE, text) for text in texts)
    return [int(text) for text in texts] if whole else None


class NotNumbersError(ValueError):
    """Texts that aren't numbers, where numbers were wanted.

    Parameters
    ----------
    texts : PyArrow array
    wrong : ndarray of bool
    doubt : str or None
        Why one of them could be two numbers.
    """

    def __init__(self, texts: Any, wrong: BoolArray, doubt: str | None) -> None:
        super().__init__(doubt or "Some texts are not numbers.")
        self.doubt = doubt
        self.row = int(np.argmax(wrong))
        self.text: str = texts[self.row].as_py()
        self.n_wrong = int(wrong.sum())
        self.n_known = len(texts) - texts.null_count


@storable()
@dataclass(frozen=True)
class Cells:
    """How cells are read: which are missing, and the decimal marks of texts.

    Parameters
    ----------
    missing_values : tuple of str
        What stands for a missing cell beside a blank, NA, NaN and null, such as -999.
    marks : tuple of {",", "."}
        The decimal marks of the file, for columns that don't settle it themselves.
    merged : tuple of (str, str)
        Texts that mean the same as another, with that.
    """

    missing_values: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()
    merged: tuple[tuple[str, str], ...] = ()

    def texts(self, column: Any) -> Any:
        """A column as texts without surrounding space, null where missing.

        Parameters
        ----------
        column : PyArrow array, in chunks or not
            Of text, numbers or booleans. A whole number has no decimal point.
        """
        import pyarrow
        from pyarrow import compute

        column = without_codes(column)
        if pyarrow.types.is_floating(column.type):
            # Adding 0 removes the minus of -0, as in a CSV file.
            column = pyarrow.array(self.numbers(column) + 0.0, from_pandas=True)
        column = compute.utf8_trim_whitespace(column.cast(pyarrow.string()))
        # A whole number has no decimals, as in other files.
        mark = "[.,]" if "," in self.marks else r"\."
        zeros = rf"^([+-]?(?:0|[1-9]\d*)){mark}0+$"
        column, values = (
            compute.replace_substring_regex(texts, zeros, r"\1")
            for texts in (column, pyarrow.array(self.missing_values, pyarrow.string()))
        )
        missing = compute.or_(
            compute.is_in(compute.utf8_lower(column), value_set=pyarrow.array(BLANKS)),
            compute.is_in(column, value_set=values),
        )
        column = compute.if_else(missing, None, column)
        for text, meant in self.merged:
            column = compute.if_else(compute.equal(column, text), meant, column)
        return column

    def numbers(self, column: Any) -> FloatArray:
        """A column as numbers, NaN where missing.

        Parameters
        ----------
        column : PyArrow array, in chunks or not
            Of numbers or booleans, or of texts that are numbers, or percentages all.

        Raises
        ------
        NotNumbersError
            Where there are texts that aren't, or whole numbers that would be rounded.
        """
        import pyarrow

        column = without_codes(column)
        source, rounded = column, not pyarrow.types.is_floating(column.type)
        if held_by(column.type) == "text":
            column = self._parsed(column)
        elif str(column.type) != "double":
            exact = str(column.type).startswith("decimal")
            column = column.cast(pyarrow.float64(), safe=exact)
        values = column.to_numpy(zero_copy_only=False)
        for value in self.missing_values:
            with suppress(ValueError):
                values = np.where(values == float(value), np.nan, values)
        values = np.asarray(values, dtype=np.float64)
        size = np.abs(values) if rounded else np.zeros(0)
        for row in np.flatnonzero((size >= _EXACT) & (size < np.inf)).tolist():
            written = _UNROUNDED.fullmatch(str(source[row].as_py()).strip())
            if written and int(written[1]) != int(size[row]):
                raise NotNumbersError(
                    source,
                    np.arange(len(values)) == row,
                    f"{written[1]} would be rounded to {int(size[row])}: numbers are "
                    f"exact up to {_EXACT}. A key is no feature.",
                )
        return values

    def _parsed(self, column: Any) -> Any:
        """Numbers of texts: all at once where they are written plainly."""
        import pyarrow
        from pyarrow import compute

        number = pyarrow.float64()
        if pyarrow.types.is_string(column.type) and "," not in self.marks:
            usual = compute.is_in(column, value_set=pyarrow.array(_USUAL))
            with suppress(pyarrow.ArrowInvalid):
                return compute.if_else(usual, None, column).cast(number)
        texts = plain = self.texts(column)
        pointed = compute.any(compute.match_substring(texts, ".")).as_py()
        if self.marks == (",",) and not pointed:
            plain = compute.replace_substring(texts, ",", ".")
        if "," not in self.marks or plain is not texts:
            with suppress(pyarrow.ArrowInvalid):
                return plain.cast(number)
        # Otherwise each spelling is read once, as people and spreadsheets write it.
        texts = texts.dictionary_encode()
        spellings = texts.dictionary.to_pylist()
        likely = compute.match_substring_regex(texts.dictionary, _LIKELY)
        wrong = ~np.asarray(likely.to_numpy(zero_copy_only=False), dtype=bool)
        values, doubt = np.full(len(spellings), np.nan), None
        # Percentages are numbers where all are: 12% is 0.12, as a workbook has it.
        unit = "%" * all(text.endswith("%") for text in spellings)
        numerals = {
            place: spellings[place].removesuffix(unit)
            for place in np.flatnonzero(~wrong)
        }
        marks = decimal_marks(numerals.values()) or frozenset(self.marks)
        for place, spelling in numerals.items():
            try:
                values[place] = parse_number(spelling, marks, finite=False)
            except ValueError as error:
                wrong[place] = True
                if isinstance(error, DoubtfulNumberError):
                    doubt = doubt or str(error)
        codes = texts.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        if wrong.any():
            rows = np.append(wrong, False)[codes]
            raise NotNumbersError(texts.cast(pyarrow.string()), rows, doubt)
        values = values / 100.0 if unit else values
        return pyarrow.array(np.append(values, np.nan)[codes])
