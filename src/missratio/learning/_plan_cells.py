"""The missing cells of a labelled table, and keys that tell one from another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length

from missratio._base.hints import listed
from missratio._base.reading import (
    as_numeric_array,
    float_blocks,
    names_or_numbers,
    read_labels,
)
from missratio._base.typing import BoolArray, IntArray
from missratio._files.numbers import canonical

# Consonants only: no spreadsheet takes such a word for a number, a date or a boolean.
_LETTERS = "bcdfghjkmnpqrstvwxz"
_WORD_LENGTH = 8


@dataclass(frozen=True, eq=False)
class MissingCells:
    """Which cells of X are missing, and the class of every row.

    Parameters
    ----------
    missing : ndarray of bool of shape (n_rows, n_features)
    codes : ndarray of int of shape (n_rows,)
        Each row's place among the classes.
    classes : list
        Labels, sorted; ``[None]`` for a table without labels.
    feature_names : tuple of str
        The columns of a dataframe, or "0", "1", ... for those of an array.
    """

    missing: BoolArray
    codes: IntArray
    classes: list[Any]
    feature_names: tuple[str, ...]

    @classmethod
    def of(cls, X: Any, y: Any = None) -> MissingCells:
        """Read a table and its labels, None for rows of a single class."""
        array = as_numeric_array(X)
        missing = np.empty(array.shape, dtype=bool)
        for rows, block in float_blocks(array, X):
            missing[rows] = np.isnan(block)
        feature_names = names_or_numbers(X, array.shape[1])
        _check_distinct(feature_names, "Features")
        if y is None:
            codes = np.zeros(len(missing), dtype=np.intp)
            return cls(missing, codes, [None], feature_names)
        classes, codes = _read_labels(y)
        check_consistent_length(missing, codes)
        return cls(missing, codes, classes, feature_names)

    @property
    def labelled(self) -> bool:
        """Whether rows have labels."""
        return self.classes != [None]

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the shape, the names of the features, and what is missing.

        Neither labels nor observed values are in it: a label is checked by itself, and
        a value may be stored with more or fewer digits.
        """
        digest = blake2b(repr(self.missing.shape).encode(), digest_size=16)
        digest.update(repr(self.feature_names).encode())
        digest.update(np.packbits(self.missing, axis=None).tobytes())
        return digest.hexdigest()

    def counts(self, cells: BoolArray) -> IntArray:
        """Count marked cells by class and feature, of shape (n_classes, n_features)."""
        return np.stack(
            [cells[self.codes == code].sum(axis=0) for code in range(len(self.classes))]
        )


def table_word(fingerprint: str, *, rowwise: bool) -> str:
    """The first half of a key: of which table, and whether rows or cells are asked."""
    return _word(f"{fingerprint} {'rows' if rowwise else 'cells'}")


def cell_word(fingerprint: str, row: int, column: int, draw: int) -> str:
    """The second half of a key: which cell, and as which it was drawn.

    It guards against slips, not forgery.
    """
    return _word(f"{fingerprint} {row} {column} {draw}")


def stream(*names: str) -> tuple[int, ...]:
    """The spawn key of a stream of its own for these names, whatever others are."""
    return tuple(
        int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) for name in names
    )


def _word(text: str) -> str:
    number = int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
    letters = []
    for _ in range(_WORD_LENGTH):
        number, letter = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[letter])
    return "".join(letters)


def _read_labels(y: Any) -> tuple[list[Any], IntArray]:
    classes, codes = np.unique(read_labels(y), return_inverse=True)
    _check_distinct(classes.tolist(), "Classes")
    return classes.tolist(), codes


def _check_distinct(names: Any, what: str) -> None:
    """Refuse names that a spreadsheet can't tell apart, such as 1 and 1.0."""
    spellings = [canonical(name) for name in names]
    if len(set(spellings)) < len(spellings):
        same = [name for name in names if spellings.count(canonical(name)) > 1]
        raise ValueError(f"{what} must have different names: got {listed(same[:5])}.")
