"""Cells of a column as numbers or as texts, and which of them are missing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from missratio._base.storable import storable
from missratio._base.typing import BoolArray, FloatArray
from missratio._files.numbers import (
    BLANKS,
    DoubtfulNumberError,
    Mark,
    decimal_marks,
    parse_number,
)

_USUAL = ("", "NA", "NaN", "nan", "null", "NULL")
_DECIMAL_COMMA = r"^[+-]?(\d+,?\d*|,\d+)([eE][+-]?\d+)?$"
# What may be a number; the rest of a column need not be looked at one by one.
_LIKELY = r"^[+\-\x{2212}]?([\d.,]|\x{221e}|[iI][nN][fF])"
_ZEROS = r"^([+-]?(?:0|[1-9]\d*))\.0+$"
_WHOLE = r"^(?:0|-?[1-9]\d{0,14})$"


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
    """

    missing_values: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()

    def texts(self, column: Any) -> Any:
        """A column as texts without surrounding space, null where missing.

        Parameters
        ----------
        column : PyArrow array
            Of text, numbers or booleans. A whole number has no decimal point.
        """
        import pyarrow
        from pyarrow import compute

        if pyarrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pyarrow.types.is_floating(column.type):
            # Without a minus before 0, as a CSV file has it.
            column = pyarrow.array(self.numbers(column) + 0.0, from_pandas=True)
        column = column.cast(pyarrow.string())
        column = compute.utf8_trim_whitespace(column)
        # As numbers of other files: a whole number has no decimals.
        zeros = r"^([+-]?(?:0|[1-9]\d*))[.,]0+$" if "," in self.marks else _ZEROS
        column = compute.replace_substring_regex(column, zeros, r"\1")
        missing = compute.is_in(
            compute.utf8_lower(column), value_set=pyarrow.array(BLANKS)
        )
        if self.missing_values:
            told = pyarrow.array(self.missing_values)
            told = compute.replace_substring_regex(told, zeros, r"\1")
            missing = compute.or_(missing, compute.is_in(column, value_set=told))
        return compute.if_else(missing, None, column)

    def numbers(self, column: Any) -> FloatArray:
        """A column as numbers, NaN where missing.

        Parameters
        ----------
        column : PyArrow array
            Of numbers or booleans, or of texts that are numbers.

        Raises
        ------
        NotNumbersError
            Where there are texts that aren't.
        """
        import pyarrow
        from pyarrow import compute

        types = pyarrow.types
        if types.is_null(column.type):
            return np.full(len(column), np.nan)
        if is_text(column.type):
            column = self._plain(column)
        elif types.is_boolean(column.type) or types.is_decimal(column.type):
            column = column.cast(pyarrow.float64())
        elif not types.is_float64(column.type):
            column = compute.cast(column, pyarrow.float64(), safe=False)
        values = column.to_numpy(zero_copy_only=False)
        for value in self.missing_values:
            with suppress(ValueError):
                values = np.where(values == float(value), np.nan, values)
        return np.asarray(values, dtype=np.float64)

    def _plain(self, column: Any) -> Any:
        """Numbers of texts, all at once where they are written plainly."""
        import pyarrow
        from pyarrow import compute

        if pyarrow.types.is_string(column.type) and "," not in self.marks:
            usual = compute.is_in(column, value_set=pyarrow.array(_USUAL))
            with suppress(pyarrow.ArrowInvalid):
                return compute.if_else(usual, None, column).cast(pyarrow.float64())
        texts = self.texts(column)
        if self.marks == (",",):
            decimal = compute.match_substring_regex(texts, _DECIMAL_COMMA)
            if compute.all(decimal, min_count=0).as_py():
                texts = compute.replace_substring(texts, ",", ".", max_replacements=1)
                return compute.cast(texts, pyarrow.float64())
        elif "," not in self.marks:
            with suppress(pyarrow.ArrowInvalid):
                return compute.cast(texts, pyarrow.float64())
        return self._one_by_one(texts.dictionary_encode())

    def _one_by_one(self, texts: Any) -> Any:
        """Numbers as people and spreadsheets write them, each spelling read once."""
        import pyarrow
        from pyarrow import compute

        spellings = texts.dictionary.to_pylist()
        likely = compute.match_substring_regex(texts.dictionary, _LIKELY)
        wrong = ~np.asarray(likely.to_numpy(zero_copy_only=False), dtype=bool)
        values, doubt = np.full(len(spellings), np.nan), None
        numerals = {place: spellings[place] for place in np.flatnonzero(~wrong)}
        marks = decimal_marks(numerals.values()) or frozenset(self.marks)
        for place, spelling in numerals.items():
            try:
                values[place] = parse_number(spelling, marks, finite=False)
            except DoubtfulNumberError as error:
                wrong[place], doubt = True, doubt or str(error)
            except ValueError:
                wrong[place] = True
        codes = texts.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        if wrong.any():
            at = np.append(wrong, False)[codes]
            raise NotNumbersError(texts.cast(pyarrow.string()), at, doubt)
        return pyarrow.array(np.append(values, np.nan)[codes])


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


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is that of texts, dictionaries of them included."""
    import pyarrow

    types = pyarrow.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
    )


def is_number(kind: Any) -> bool:
    """Whether an Arrow type is that of numbers or booleans."""
    import pyarrow

    types = pyarrow.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
    )


def whole_numbers(texts: Iterable[str]) -> list[int] | None:
    """Texts as whole numbers; None where some aren't, such as 01, or aren't alone."""
    spelled = list(texts)
    whole = all(re.match(_WHOLE, text) for text in spelled)
    return [int(text) for text in spelled] if whole else None
