"""A labelled table, read whole: which columns are numbers, and which categories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missratio._files import (
    Cells,
    NotNumbersError,
    TableFile,
    is_number,
    is_text,
    whole_numbers,
)
from missratio._hints import did_you_mean, listed
from missratio._typing import FloatArray, IntArray
from missratio.app.tables._encoder import BLANK, Encoder, TableColumn, flat
from missratio.app.tables._missing import MissingCounts, sentinels
from missratio.exceptions import TableError, about_file

MOST_LEVELS = 100
# Of a column of which so many are numbers, the rest are taken for slips.
_MOSTLY = 0.5


@dataclass(frozen=True)
class Wanted:
    """What of a table is asked for.

    Parameters
    ----------
    target : str
        The column of labels.
    drop : sequence of str
        Columns to leave out.
    categorical : sequence of str
        Columns that are categories though they look like numbers.
    missing_values : sequence of str
        What stands for a missing cell, beside the usual.
    blank_level : bool
        Whether a missing category is a level of its own, instead of an error.
    """

    target: str
    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()
    missing_values: Sequence[str] = ()
    blank_level: bool = False


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """Rows of two classes as numbers.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_encoded)
        NaN where missing.
    y : ndarray of shape (n_rows,)
        Labels: whole numbers or texts.
    encoder : Encoder
    counts : dict
        How many rows each label has.
    n_blank : int
        Rows left out because they have no cell at all.
    rows : ndarray of int
        Where each row is in the file, from 0.
    notes : list of str
        What may not be as it was meant.
    """

    X: FloatArray
    y: NDArray[Any]
    encoder: Encoder
    counts: dict[Any, int]
    n_blank: int
    rows: IntArray = field(repr=False)
    notes: list[str] = field(default_factory=list)

    def numeric_frame(self) -> Any:
        """The columns of numbers as a PyArrow table, NaN where missing."""
        import pyarrow

        names = self.encoder.names[: self.encoder.n_numeric]
        return pyarrow.table({name: self.X[:, j] for j, name in enumerate(names)})

    @cached_property
    def missing(self) -> MissingCounts:
        """What is missing of each class."""
        return MissingCounts.of(self.X, self.y, self.counts)

    @property
    def has_missing(self) -> bool:
        """Whether any cell is missing."""
        return any(self.missing.incomplete.values())

    def missing_counts(self, label: Any) -> dict[str, int]:
        """How many cells of each column are missing in a class, where some are."""
        of_class = self.missing.missing[label]
        counts, place = {}, 0
        for column in self.encoder.columns:
            if of_class[place]:
                counts[column.name] = int(of_class[place])
            place += column.width
        return counts


def read_labelled(source: TableFile, wanted: Wanted) -> LabelledTable:
    """Read a labelled table whole.

    Parameters
    ----------
    source : TableFile
    wanted : Wanted
    """
    source.check_header()
    for option, names in (
        ("--target", [wanted.target]),
        ("--drop", wanted.drop),
        ("--categorical", wanted.categorical),
    ):
        check_names(source, option, names)
    names = [
        name
        for name in source.names
        if name != wanted.target and name not in wanted.drop
    ]
    if not names:
        raise TableError(f"{source.path} has no column but the target: bring features.")
    table = source.read([*names, wanted.target])
    cells = Cells(tuple(wanted.missing_values), source.marks)
    known: dict[str, FloatArray] = {}
    notes = source.notes
    columns = [
        _column(table, name, wanted, cells, source, known, notes) for name in names
    ]
    columns.sort(key=lambda column: column.levels is not None)
    encoder = Encoder(tuple(columns), cells)
    with about_file(source.path):
        X = encoder.encode(table, known=known)
        codes, labels = _labels(flat(table.column(wanted.target)), cells)
    kept = _labelled_rows(table, codes, cells, wanted, source)
    n_blank = len(codes) - len(kept)
    if n_blank:
        X, codes = X[kept], codes[kept]
    sizes = np.bincount(codes, minlength=len(labels)).tolist()
    return LabelledTable(
        X,
        np.array(labels)[codes],
        encoder,
        dict(zip(labels, sizes, strict=True)),
        n_blank,
        kept,
        [*notes, *sentinels(X, encoder.names[: encoder.n_numeric])],
    )


def check_names(source: TableFile, option: str, names: Sequence[str]) -> None:
    """Refuse columns that a table doesn't have."""
    for name in names:
        if name not in source.names:
            hint = did_you_mean(name, source.names)
            has = f" It has {listed(source.names[:12])}"
            more = f" and {len(source.names) - 12} more" * (len(source.names) > 12)
            raise TableError(
                f"{option} {name!r} is not a column of {source.path}.{hint}{has}{more}."
            )


def _column(
    table: Any,
    name: str,
    wanted: Wanted,
    cells: Cells,
    source: TableFile,
    known: dict[str, FloatArray],
    notes: list[str],
) -> TableColumn:
    """Whether a column holds numbers or categories, and which.

    Numbers that had to be read to find out are put into `known`, and what may not be as
    it was meant into `notes`.
    """
    column = table.column(name)
    forced = name in wanted.categorical
    if is_number(column.type) and not forced:
        if column.null_count == len(column):
            raise _without_values(source, name)
        return TableColumn(name)
    if not (is_number(column.type) or is_text(column.type)):
        if str(column.type) == "null":
            raise _without_values(source, name)
        raise TableError(
            f"{source.path}, column {name!r} is of type {column.type}: numbers and "
            f"texts can be used. Leave it out (--drop {name}), or make numbers of it."
        )
    column = flat(column)
    if not forced:
        try:
            numbers = cells.numbers(column)
            if np.isnan(numbers).all():
                raise _without_values(source, name)
            known[name] = numbers
            return TableColumn(name)
        except NotNumbersError as error:
            if error.doubt is not None:
                raise TableError(
                    f"{source.path}, column {name!r} has numbers in doubt: "
                    f"{error.doubt}"
                ) from error
            if error.n_wrong < _MOSTLY * error.n_known:
                raise _mixed(source, name, error) from error
            if error.n_wrong < error.n_known:
                notes.append(
                    f"Column {name!r} is taken for one of categories: "
                    f"{error.n_wrong} of its {error.n_known} values, such as "
                    f"{error.text!r}, are no numbers."
                )
    texts = cells.texts(column)
    if texts.null_count == len(texts):
        raise _without_values(source, name)
    return TableColumn(name, _levels(texts, name, wanted, source))


def _levels(
    texts: Any, name: str, wanted: Wanted, source: TableFile
) -> tuple[str, ...]:
    """The categories of a column, the most frequent first."""
    counts = Counter(
        {item["values"]: item["counts"] for item in texts.value_counts().to_pylist()}
    )
    n_missing = counts.pop(None, 0)
    levels = sorted(counts, key=lambda level: (-counts[level], level))
    if len(levels) > MOST_LEVELS:
        raise TableError(
            f"{source.path}, column {name!r} has {len(levels)} different texts, such "
            f"as {listed(levels[:3])}, and a column of categories may have "
            f"{MOST_LEVELS}. Is it a name or a date? Leave it out (--drop {name})."
        )
    if n_missing and wanted.blank_level:
        levels.append(BLANK)
    if len(levels) < 2:
        raise TableError(
            f"{source.path}, column {name!r} is {levels[0]!r} in every row: nothing "
            f"can be learned from it. Leave it out (--drop {name})."
        )
    return tuple(levels)


def _mixed(source: TableFile, name: str, error: NotNumbersError) -> TableError:
    return TableError(
        f"{source.path}, column {name!r} has {error.n_known - error.n_wrong} numbers "
        f"and {error.n_wrong} cell(s) that are none: {error.text!r} in row "
        f"{error.row + 1} is the first. Correct them; or --missing-value "
        f"{error.text!r} if that means missing; or --categorical {name} if the numbers "
        "are names."
    )


def _without_values(source: TableFile, name: str) -> TableError:
    return TableError(
        f"{source.path}, column {name!r} has no value in any row. Leave it out (--drop "
        f"{name})."
    )


def _labels(column: Any, cells: Cells) -> tuple[IntArray, list[Any]]:
    """Codes of the labels, −1 where there is none, and the labels, sorted."""
    import pyarrow
    from pyarrow import compute

    if not (is_number(column.type) or is_text(column.type)):
        raise TableError(
            f"The target must hold labels, whole numbers or texts: it is of type "
            f"{column.type}."
        )
    if not pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    # Different cells may have one text, such as with and without a space.
    texts = cells.texts(column.dictionary).to_pylist()
    known = [text for text in dict.fromkeys(texts) if text is not None]
    labels: list[Any] = whole_numbers(known) or known
    order = sorted(range(len(labels)), key=lambda place: labels[place])
    code_of = {known[place]: code for code, place in enumerate(order)}
    places = np.array([*(code_of.get(text, -1) for text in texts), -1], dtype=np.intp)
    raw = compute.fill_null(column.indices, pyarrow.scalar(-1, column.indices.type))
    codes = raw.to_numpy(zero_copy_only=False)
    return places[codes], [labels[place] for place in order]


def _labelled_rows(
    table: Any, codes: IntArray, cells: Cells, wanted: Wanted, source: TableFile
) -> IntArray:
    """All rows but those without any cell; others without a label are refused."""
    unlabelled = np.flatnonzero(codes < 0)
    if not len(unlabelled):
        return np.arange(len(codes))
    few = table.take(unlabelled)
    blank = np.ones(len(unlabelled), dtype=bool)
    for column in few.columns:
        blank &= cells.texts(flat(column)).is_null().to_numpy(zero_copy_only=False)
    if not blank.all():
        first = unlabelled[~blank][0] + 1
        raise TableError(
            f"{source.path}: {(~blank).sum()} row(s) have no label in "
            f"{wanted.target!r}, the first is row {first}. Take rows without a label "
            "out: they say nothing about the classes."
        )
    return np.flatnonzero(codes >= 0)
