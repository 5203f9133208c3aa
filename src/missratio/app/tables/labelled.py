"""A labelled table, read whole: its rows, its classes, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missratio._base.blocks import rows_with_nan
from missratio._base.hints import did_you_mean, listed, shown
from missratio._base.typing import FloatArray, IntArray
from missratio._files import TableFile
from missratio._files.cells import Cells, canonical, whole_numbers
from missratio.app.tables import columns
from missratio.exceptions import Message, TableError, about_file

# An array of labels takes as much memory for each row as the longest does.
_LONGEST_LABEL = 100
# Numbers that people write for a value that isn't there.
_SENTINELS = [sign * (10.0**digits - 1.0) for digits in range(2, 7) for sign in (-1, 1)]
_SENTINELS += [-1.0, -9.0]
FAR = "far from all its other values"
# A number may be a code, and a spelling what others mean, if others are so much rarer.
SLIP = 10


def sentinels(X: FloatArray, names: Sequence[str]) -> list[Message]:
    """Say which columns may have a number for what is missing, such as -999.

    It is at the end of the column's range and stands in several rows. It is further
    from the other values than these are from each other; or it alone is negative, or
    far more frequent than any of many others, which says less.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
    names : sequence of str
        Of the first columns, those to look at.
    """
    notes = []
    for end in np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0):
        for j in np.flatnonzero(np.isin(end[: len(names)], _SENTINELS)).tolist():
            column, value = X[:, j], end[j]
            others = column[(column != value) & ~np.isnan(column)]
            count = int((column == value).sum())
            _, sizes = np.unique(others, return_counts=True)
            why = ""
            if len(others) and np.abs(others - value).min() > max(np.ptp(others), 10.0):
                why = FAR
            elif len(sizes) >= SLIP and value < 0.0 <= others.min():
                why = "and nowhere else below 0"
            elif len(sizes) >= SLIP and count > SLIP * sizes.max():
                why = f"{SLIP} times as often as any other value"
            if why and count > 1:
                claim = "Column {name!r} is {value:g} in {count} rows, {why}. If that "
                claim += "means missing, say --missing-value {value:g}."
                facts = {"name": names[j], "value": value, "count": count, "why": why}
                notes.append(Message(claim, facts=facts))
    return notes


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """Rows of two classes or more as numbers.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_encoded)
        NaN where missing.
    y : ndarray of shape (n_rows,)
        Labels: whole numbers or texts.
    encoder : Encoder
    target : str
        The column of labels.
    dropped : tuple of str
        Other columns that no score is made of.
    counts : dict
        How many rows each label has.
    rows : ndarray of int
        Where each row is in the file, from 0.
    notes : list of Message
        What may not be as it was meant.
    rest : tuple of str
        Labels that are taken together as one.
    groups : ndarray of shape (n_rows,), or None
        The group of each row, where a column of groups was asked for.
    """

    X: FloatArray
    y: NDArray[Any]
    encoder: columns.Encoder
    target: str
    dropped: tuple[str, ...]
    counts: dict[Any, int]
    rows: IntArray = field(repr=False)
    notes: list[Message] = field(default_factory=list)
    rest: tuple[str, ...] = ()
    groups: NDArray[Any] | None = None

    @cached_property
    def asked(self) -> tuple[Any, dict[str, tuple[str, ...]]]:
        """The columns that can be asked about, as a PyArrow table, NaN where missing.

        Those of numbers, and categories that have blanks as the places of their levels;
        and the levels of these.
        """
        import pyarrow

        numbers, levels = dict[str, FloatArray](), {}
        for column, places in zip(
            self.encoder.columns, self.encoder.places.values(), strict=True
        ):
            if column.levels is None:
                numbers[column.name] = self.X[:, places[0]]
            elif column.name in self.blank_categories:
                codes = self.X[:, places] @ np.arange(1.0, len(places) + 1.0)
                numbers[column.name], levels[column.name] = codes, column.levels
        return pyarrow.table(numbers), levels

    @cached_property
    def blank_categories(self) -> dict[str, IntArray]:
        """The indicators of each category that has blanks, by its name."""
        every = self.encoder.indicators.items()
        return {name: at for name, at in every if np.isnan(self.X[:, at]).any()}

    def encoded_answers(self, asked: FloatArray) -> FloatArray:
        """The columns that can be asked about as those of X, NaN for others.

        Parameters
        ----------
        asked : ndarray of shape (n_rows, n_asked)
            Answers, NaN where there is none.
        """
        numeric = self.encoder.n_numeric
        encoded = np.full((len(asked), self.X.shape[1]), np.nan)
        encoded[:, :numeric] = asked[:, :numeric]
        for j, places in enumerate(self.blank_categories.values(), start=numeric):
            codes = asked[:, [j]]
            levels = codes == np.arange(1.0, len(places) + 1.0)
            encoded[:, places] = np.where(np.isnan(codes), np.nan, levels)
        return encoded

    @cached_property
    def incomplete(self) -> IntArray:
        """Where the rows are that miss a cell."""
        return np.flatnonzero(rows_with_nan(self.X))

    @cached_property
    def missing(self) -> dict[Any, dict[str, int]]:
        """How many cells are missing of each class and column, where some are."""
        places = self.encoder.places
        firsts = np.array([place[0] for place in places.values()])
        gaps = np.isnan(self.X[np.ix_(self.incomplete, firsts)])
        owner = self.y[self.incomplete]
        missing = {}
        for label in self.counts:
            counts = gaps[owner == label].sum(axis=0).tolist()
            missing[label] = {n: c for n, c in zip(places, counts, strict=True) if c}
        return missing

    @property
    def has_blank_level(self) -> bool:
        """Whether a category has blanks that are a level of their own."""
        levels = (column.levels or () for column in self.encoder.columns)
        return any(columns.BLANK in each for each in levels)

    def n_complete(self, label: Any) -> int:
        """How many rows of a class miss no cell."""
        lost = np.count_nonzero(self.y[self.incomplete] == label)
        return self.counts[label] - int(lost)

    def take(self, rows: IntArray, **changes: Any) -> LabelledTable:
        """Some of the rows, by their places in this table, and other changes."""
        groups = None if self.groups is None else self.groups[rows]
        parts = {"X": self.X[rows], "y": self.y[rows], "rows": self.rows[rows]}
        return replace(self, **(parts | {"groups": groups} | changes))


def read_labelled(
    source: TableFile,
    target: str,
    *,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    missing_values: Sequence[str] = (),
    blank_level: bool = False,
    skip_unlabelled: bool = False,
    groups: str | None = None,
    merge: Mapping[str, str] | None = None,
) -> LabelledTable:
    """Read a labelled table whole.

    Parameters
    ----------
    source : TableFile
    target : str
        The column of labels.
    drop : sequence of str
        Columns to leave out; one text may name several, with commas between.
    categorical : sequence of str
        Columns that are categories though they look like numbers, in the same way.
    missing_values : sequence of str
        What stands for a missing cell, beside the usual.
    blank_level : bool
        Whether a missing category is a level of its own, instead of an error.
    skip_unlabelled : bool
        Whether rows without a label are left out, instead of an error.
    groups : str or None
        The column that says which group each row is in; it is not a feature then.
    merge : mapping from str to str, or None
        Texts that mean the same as another.
    """
    source.check_header()
    drop, categorical = (
        columns.named_columns(source, each) for each in (drop, categorical)
    )
    beside = [groups] if groups else []
    for option, given in (
        ("--target", [target]), ("--drop", drop), ("--categorical", categorical),
        ("--groups", beside),
    ):  # fmt: skip
        columns.check_names(source, option, given)
    if groups == target:
        raise TableError(
            f"--groups {groups}: that is the target. Groups are rows whose errors are "
            "bounded apart; name another column."
        )
    dropped = tuple(dict.fromkeys([*drop, *beside]))
    names = [name for name in source.names if name not in (target, *dropped)]
    if not names:
        raise TableError(f"{source.path} has no column but the target: bring features.")
    table = source.read([*names, *beside, target])
    cells = Cells(tuple(missing_values), source.marks, tuple((merge or {}).items()))
    with about_file(source.path):
        codes, labels = _labels(table.column(target), cells, f"--target {target}")
    # Rows without any cell don't count, and make no level of a blank. Others without a
    # label are refused, or left out with a note.
    kept, unlabelled = (np.flatnonzero(each) for each in (codes >= 0, codes < 0))
    blank = np.ones(len(unlabelled), dtype=bool)
    for column in table.take(unlabelled).columns if len(unlabelled) else ():
        blank &= cells.texts(column).is_null().to_numpy(zero_copy_only=False)
    if (count := int((~blank).sum())) and not skip_unlabelled:
        raise TableError(
            f"{source.path}: {count} row(s) have no label in {target!r}, the first is "
            f"{source.place(int(unlabelled[~blank][0]))}. Leave them out "
            "(--skip-unlabelled): they say nothing about the classes."
        )
    if not len(kept):
        raise TableError(f"{source.path}: no row has a label in {target!r}.")
    if len(kept) < len(codes):
        table, codes = table.take(kept), codes[kept]

    def place(row: int) -> str:
        return source.place(int(kept[row]))

    encoder, table, notes = columns.read_columns(
        table, names, source, cells, categorical, blank_level, place
    )
    if count:
        said = "{unlabelled} row(s) without a label were left out."
        notes.append(Message(said, facts={"unlabelled": count}))
    with about_file(source.path):
        X = encoder.encode(table, place=place)
    members = None
    if groups is not None:
        with about_file(source.path):
            places, names = _labels(table.column(groups), cells, f"--groups {groups}")
        lost = kept[places < 0]
        if len(lost):
            raise TableError(
                f"{source.path}: {len(lost)} row(s) have no group in {groups!r}, the "
                f"first is {source.place(int(lost[0]))}. Write one into each, such as "
                "'unknown', or leave these rows out."
            )
        members = np.array(names, dtype=object)[places]
    # A dictionary of labels may hold some that no row has.
    sizes = np.bincount(codes, minlength=len(labels)).tolist()
    counts = {label: n for label, n in zip(labels, sizes, strict=True) if n}
    notes += sentinels(X, encoder.names[: encoder.n_numeric])
    y = np.array(labels)[codes]
    return LabelledTable(
        X, y, encoder, target, dropped, counts, kept, notes, groups=members
    )


def _labels(column: Any, cells: Cells, what: str) -> tuple[IntArray, list[Any]]:
    """Codes of the labels, −1 where there is none, and the labels, sorted."""
    import pyarrow

    column = column.combine_chunks()
    if not pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    # Different cells may have one text, such as with and without a space.
    texts = cells.texts(column.dictionary).to_pylist()
    known = [text for text in dict.fromkeys(texts) if text is not None]
    longest = max(map(len, known), default=0)
    if longest > _LONGEST_LABEL:
        raise TableError(
            f"{what} has a label of {longest:,} characters, and one may have "
            f"{_LONGEST_LABEL}. Write shorter ones, or name another column."
        )
    labels: list[Any] = whole_numbers(known) or known
    order = sorted(range(len(labels)), key=lambda place: labels[place])
    code_of = {known[place]: code for code, place in enumerate(order)}
    places = np.array([*(code_of.get(text, -1) for text in texts), -1], dtype=np.intp)
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return places[codes], [labels[place] for place in order]


REST = "rest"
"""What all labels but the controlled one are called together."""
_SHOWN = 6


def find_name(typed: str, names: Iterable[Any], claim: str) -> Any:
    """The label or group that is meant by a text: 1 and 1.0 are the same.

    Parameters
    ----------
    typed : str
    names : iterable
        What there is.
    claim : str
        How the error begins where it isn't among them.
    """
    by_text = {canonical(name): name for name in names}
    if canonical(typed) not in by_text:
        known = by_text.values()
        hint = did_you_mean(typed, map(str, known))
        raise TableError(f"{claim}.{hint} There are {listed(known, _SHOWN)}.")
    return by_text[canonical(typed)]


def find_label(table: LabelledTable, option: str, typed: str) -> Any:
    """The label that is meant by what an option was given."""
    claim = f"{option} {typed!r} is not a label in {table.target!r}"
    return find_name(typed, table.counts, claim)


def two_classes(
    table: LabelledTable, controlled: str, versus: str | None = None
) -> tuple[LabelledTable, Any]:
    """The rows of the two classes, and the label that is controlled.

    Parameters
    ----------
    table : LabelledTable
        Of two labels, or of more where `versus` says what to do about them.
    controlled : str
        As it was typed.
    versus : str or None
        Another label, whose rows alone are kept beside; or "rest", for all others as
        one class.
    """
    label = find_label(table, "--controlled", controlled)
    others = [name for name in table.counts if name != label]
    if versus is None and len(others) == 1:
        return table, label
    if versus is None or not others:
        remedy = "Bring rows of another class"
        if others:
            remedy = (
                "Take all others as one class (--versus rest), keep one of them "
                "(--versus LABEL), bound several (--alpha LABEL=SHARE for each, "
                "without --controlled)"
            )
        sizes = (f"{shown(name)} ({n} rows)" for name, n in table.counts.items())
        several = f"{len(others) + 1} labels"
        raise TableError(
            f"The target {table.target!r} must have two labels: got "
            f"{several if len(others) >= _SHOWN else ', '.join(sizes)}. {remedy}, or "
            "choose another target."
        )
    if versus == REST and REST not in map(str, table.counts):
        # Both are texts then.
        name, count = str(label), table.counts[label]
        y = np.where(table.y == label, name, REST)
        counts = dict(sorted({name: count, REST: len(y) - count}.items()))
        return replace(table, y=y, counts=counts, rest=tuple(map(str, others))), name
    other = find_label(table, "--versus", versus)
    if other == label:
        raise TableError(
            f"--versus {versus!r} is the controlled class itself: name another label, "
            f"or {REST!r}."
        )
    counts = {name: n for name, n in table.counts.items() if name in (label, other)}
    kept = np.flatnonzero(np.isin(table.y, [label, other]))
    return table.take(kept, counts=counts), label
