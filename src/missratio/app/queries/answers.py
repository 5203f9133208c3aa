"""What was found out of a plan's cells, checked line by line."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_consistent_length

from missratio._base.blocks import any_by_row
from missratio._base.hints import did_you_mean, listed
from missratio._base.reading import (
    as_frame,
    category_codes,
    names_or_numbers,
    read_floats,
    read_labels,
    with_values,
    word_levels,
)
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio._files import open_table, written_whole
from missratio._files.cells import (
    Cells,
    canonical,
    decimal_marks,
    is_blank,
    parse_number,
    with_formula,
    without_formula,
)
from missratio._files.tables import check_doubled
from missratio._files.workbooks import SheetWriter
from missratio.exceptions import TableError

# Consonants only: no spreadsheet takes such a word for a number, a date or a boolean.
LETTERS = "bcdfghjkmnpqrstvwxz"
WORD_LENGTH, CHECK_LENGTH = 8, 5
SHEET = "queries"
REQUIRED = ("value", "key")
NOT_FOUND = frozenset({"not found", "not-found", "notfound"})
# No table has so many cells that a key is longer.
KEY = f"([{LETTERS}]{{1,40}})-([{LETTERS}]{{1,40}})"
SUFFIXES = (".csv", ".xlsx")
SHOWN = 5

Columns = dict[str, list[Any]]
Levels = Mapping[str, Sequence[Any]]
"""What the numbers 0, 1, … of a feature stand for, by its name."""


class OtherTableError(TableError):
    """A plan that was made for another table."""


@dataclass(frozen=True, eq=False)
class MissingCells:
    """Which cells of X are missing, and the class of every row.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_features)
        The table as numbers, NaN where missing.
    codes : ndarray of int of shape (n_rows,)
        Each row's place among the classes.
    classes : list
        Labels, sorted; ``[None]`` for a table without labels.
    feature_names : tuple of str
        The columns of a dataframe, or "0", "1", ... for those of an array.
    """

    values: FloatArray
    codes: IntArray
    classes: list[Any]
    feature_names: tuple[str, ...]

    @classmethod
    def read(cls, X: Any, y: Any = None) -> MissingCells:
        """Read a table and its labels, None for rows of a single class."""
        values = read_floats(X, coded=True)
        names = names_or_numbers(X, values.shape[1])
        classes, codes = [None], np.zeros(len(values), dtype=np.intp)
        if y is not None:
            labels, codes = np.unique(read_labels(y), return_inverse=True)
            classes = labels.tolist()
            check_consistent_length(values, codes)
        return cls(values, codes, classes, names)

    @cached_property
    def missing(self) -> BoolArray:
        """Which cells are missing."""
        return np.isnan(self.values)

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
        codes = range(len(self.classes))
        return np.stack([cells[self.codes == code].sum(axis=0) for code in codes])


def table_word(fingerprint: str, *, rowwise: bool) -> str:
    """The first half of a key: of which table, and whether rows or cells are asked."""
    return _spelt(f"{fingerprint} {'rows' if rowwise else 'cells'}", WORD_LENGTH)


def cell_word(fingerprint: str, shape: tuple[int, int], cell: Sequence[int]) -> str:
    """The second half of a key: which row and column, and as which it was drawn.

    They can be read from it, and are followed by letters that guard against slips.
    """
    row, column, draw = cell
    number, letters = (draw * shape[0] + row) * shape[1] + column, ""
    check = _spelt(f"{fingerprint} {number}", CHECK_LENGTH)
    while number:
        number, letter = divmod(number, len(LETTERS))
        letters += LETTERS[letter]
    return letters + check


def read_cell(
    fingerprint: str, shape: tuple[int, int], word: str
) -> tuple[int, int, int] | None:
    """Row, column and draw of a cell's word; None if it isn't one."""
    letters = [LETTERS.index(letter) for letter in word[:-CHECK_LENGTH]]
    number = sum(letter * len(LETTERS) ** k for k, letter in enumerate(letters))
    rest, column = divmod(number, shape[1])
    draw, row = divmod(rest, shape[0])
    cell = row, column, draw
    sound = 0 < draw <= shape[0] and cell_word(fingerprint, shape, cell) == word
    return cell if sound else None


def _spelt(text: str, length: int) -> str:
    """A digest in letters."""
    digest = blake2b(text.encode(), digest_size=length).digest()
    return "".join(LETTERS[byte % len(LETTERS)] for byte in digest)


def write_table(columns: Columns, path: str | Path, *, force: bool) -> None:
    """Write columns as a CSV or Excel file, whole or not at all.

    A file that exists is left as it is unless `force` is true. Texts in a CSV file that
    a spreadsheet would take for formulas are marked by an apostrophe.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in SUFFIXES:
        raise ValueError(
            f"The kind of a file is told by its suffix: got {path.name!r}. Choose one "
            f"of {listed(SUFFIXES)}."
        )
    with written_whole(path, force=force) as draft:
        if kind == ".xlsx":
            with closing(SheetWriter(draft, SHEET, columns, fits=True)) as sheet:
                sheet.write(columns.values())
        else:
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\r\n")
            writer.writerow(columns)
            for line in zip(*columns.values(), strict=True):
                # None is written as nothing.
                writer.writerow(
                    without_formula(c) if isinstance(c, str) else c for c in line
                )
            # Excel takes a file without the mark for one in the system's old encoding;
            # other readers are better off without it, so only text that needs it gets
            # it.
            content = text.getvalue()
            encoding = "utf-8" if content.isascii() else "utf-8-sig"
            draft.write_bytes(content.encode(encoding))


@dataclass(frozen=True, eq=False)
class Revealed:
    """The values found for missing cells, in the shape of the table they belong to.

    ``revealed[label]`` are the rows of a class, aligned with ``X[y == label]``: the
    second argument of `learn_missingness`.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_features)
        Aligned with X, and NaN where nothing was revealed.
    codes : ndarray of int of shape (n_rows,)
        Each row's place among the classes.
    classes : list
        Labels, sorted; ``[None]`` for a table without labels.
    feature_names : tuple of str
    missing, asked, answered : ndarray of int of shape (n_classes, n_features)
        How many cells are missing, how many of these were to be looked up, and how many
        were found.
    rowwise : ndarray of bool of shape (n_classes,)
        Of which classes rows were drawn, with all their missing values, and not single
        cells.
    lost : ndarray of bool of shape (n_rows, n_features)
        Which cells were missing when the plan was drawn.
    order : ndarray of int of shape (n_rows, n_features)
        The number of each cell's draw, from 1; 0 for one that was not asked.
    not_found : ndarray of bool of shape (n_rows, n_features)
        Which cells were marked as not found.

    Notes
    -----
    Answers stand for all missing values of their class and feature. They do so if
    whether a value could be found doesn't depend on what it is. If the extreme ones are
    the harder to find, what is learned from the rest is biased, and no later step can
    notice: compare `asked` with `answered`.
    """

    table: FloatArray
    codes: IntArray
    classes: list[Any]
    feature_names: tuple[str, ...]
    missing: IntArray
    asked: IntArray
    answered: IntArray
    rowwise: BoolArray
    lost: BoolArray
    order: IntArray
    not_found: BoolArray

    def fill(self, X: Any) -> tuple[Any, FloatArray]:
        """The table with the answers in it, and how likely each was to be there.

        An observed value is there for certain, one that was looked up with the share
        m/M of the M missing ones that m of them were drawn from by lot: within each
        class and feature, or within each class where rows were drawn. Weights that are
        one over these probabilities make means over what is there unbiased, whatever
        made values go missing.

        Answers are a draw as far as they go: up to the last one, in the order of
        `draw`. A line left blank before it counts as "not found", and those after it as
        not drawn. That holds if how far they go has nothing to do with the values.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_features)
            The table that the plan was made for, as it was; or with more cells
            missing, since what was a value then is known to be none.

        Returns
        -------
        X_filled : ndarray or dataframe of shape (n_rows, n_features)
            NaN where a value is missing still.
        inclusion : ndarray of shape (n_rows, n_features)
            1 where observed, m/M where looked up, 0 where missing still. What was drawn
            and not found has the probability of those found, and NaN in `X_filled`: a
            ratio leaves it out, a certificate counts it as an error. NaN where a cell
            is missing that was a value when the plan was drawn: no look-up stands for
            it, and a certificate counts every such row as an error.
        """
        cells = MissingCells.read(X)
        same = cells.feature_names == self.feature_names
        same = same and cells.missing.shape == self.lost.shape
        if not same or (self.lost & ~cells.missing).any():
            raise ValueError(
                "The answers are those of another table. X must be what it was when "
                "the plan was made: the same rows and columns, and the same cells "
                "missing, or more."
            )
        values = cells.values.copy()
        since = cells.missing & ~self.lost
        inclusion = np.where(cells.missing, 0.0, 1.0)
        every = np.arange(values.shape[1])
        for code, whole in enumerate(self.rowwise):
            rows = np.flatnonzero(self.codes == code)
            # What was drawn from: rows as a whole, or one column of them.
            for columns in every[None] if whole else every[:, None]:
                pool = np.ix_(rows, columns)
                lost, table = self.lost[pool], self.table[pool]
                incomplete = any_by_row(lost)
                answered = incomplete & ~any_by_row(lost & np.isnan(table))
                ended = answered | any_by_row(self.not_found[pool])
                order = np.where(incomplete, self.order[pool].max(axis=1), 0)
                drawn = (order > 0) & (order <= order[ended].max(initial=0))
                gaps = np.setdiff1d(np.arange(1, order[drawn].max(initial=0)), order)
                if len(gaps):
                    name = None if whole else self.feature_names[columns[0]]
                    raise ValueError(
                        "Lines were taken out of the plan of class "
                        f"{self.classes[code]!r}, feature {name!r} before its last "
                        f"answer: draw {listed(gaps[:SHOWN].tolist())}. Put them back, "
                        "blank or with 'not found' if nothing was found."
                    )
                # A row that has lost more since can't be completed by its look-ups.
                reached = ~(whole & any_by_row(since[pool]))
                incomplete, drawn = incomplete & reached, drawn & reached
                share = (answered & drawn).sum() / max(incomplete.sum(), 1)
                inclusion[pool] = np.where(lost, share * drawn[:, None], 1.0)
                there = lost & (answered & drawn)[:, None]
                values[pool] = np.where(there, table, values[pool])
        inclusion[since] = np.nan
        return with_values(X, values), inclusion

    def __getitem__(self, label: Any) -> FloatArray:
        """The revealed values of one class, (n_class_rows, n_features)."""
        if label not in self.classes:
            raise KeyError(
                f"{label!r} is not among the classes {listed(self.classes)}."
            )
        return np.asarray(self.table[self.codes == self.classes.index(label)])

    def __repr__(self) -> str:
        n_rows, n_features = self.table.shape
        return (
            f"<Revealed: {self.answered.sum()} of {self.asked.sum()} cells answered, "
            f"{n_rows} rows, {n_features} features>"
        )


def read_answers(
    source: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    levels: Levels | None = None,
    cells: Cells | None = None,
) -> Revealed:
    """Read the answers from a file that was filled in.

    Lines may be in any order, left blank or taken out, and columns added. A blank
    or NA is no answer, and "not found" marks a value that can't be had. Semicolons
    and tabs as separators, decimal commas, and integers that became floats are
    understood.

    Parameters
    ----------
    source : str, Path or dataframe
        A .csv, .tsv, .parquet, .xlsx, .xls or .ods file, or a dataframe.
    X : array-like or dataframe of shape (n, d)
        The table that the plan was made for, as it was.
    y : array-like of shape (n,), default=None
        Its labels.
    levels : mapping from str to sequence of str, default=None
        Of features that are categories, by name: what their numbers 0, 1, … stand
        for, and what a person writes. None takes the words of X.
    cells : Cells, default=None
        How cells of the table are read, if answers may be written as these are:
        with codes for missing values, which are "not found" here, and with texts
        that mean others.

    Returns
    -------
    Revealed
        The plan with its answers.

    Raises
    ------
    ValueError
        With the line: a key that isn't in the plan, a row, line, feature, class or
        draw other than its key says, a value that isn't a finite number, one that could
        be two numbers (1,234), a cell answered by two values, a row filled in by
        half where whole rows are asked for, or a plan for another table.
    """
    how = cells or Cells()
    codes = set(map(canonical, how.missing_values))
    # 1. Whether the plan is for this table.
    gaps = MissingCells.read(X, y)
    fingerprint, shape = gaps.fingerprint, gaps.missing.shape
    names = gaps.feature_names
    columns, places, marks = _read_table(source)
    marks = decimal_marks(columns["value"]) or marks or frozenset(how.marks)
    kinds = {table_word(fingerprint, rowwise=whole): whole for whole in (False, True)}
    keys = [re.fullmatch(KEY, str(key).strip()) for key in columns["key"]]
    for place, key in zip(places, keys, strict=True):
        # A key that is none is refused with its line.
        if key is not None and key[1] not in kinds:
            raise OtherTableError(
                f"{place}: the plan was made for another table. X must be what it "
                "was: the same rows in the same order, the same columns, and the same "
                "cells missing, without the answers put in."
            )
    if not gaps.labelled and not all(map(is_blank, columns.get("class", []))):
        raise TableError("The plan is by class: give y, the labels of the rows of X.")
    # 2. Every line by itself; what is wrong is told of several at once.
    table, order = np.full(shape, np.nan), np.zeros(shape, dtype=np.intp)
    not_found = np.zeros(shape, dtype=bool)
    asked_whole: list[set[bool]] = [set() for _ in gaps.classes]
    answered: dict[tuple[int, int], tuple[str, Any]] = {}
    called: dict[int, str] = {}
    lines_there: list[tuple[int, float, str]] = []
    levels = levels or {names[k]: words for k, words in word_levels(X).items()}
    lowest, highest = np.fmin.reduce(gaps.values), np.fmax.reduce(gaps.values)

    def read(line: int) -> None:
        key = keys[line]
        cell = None if key is None else read_cell(fingerprint, shape, key[2])
        if key is None or cell is None:
            raise ValueError(
                f"its key {columns['key'][line]!r} isn't in the plan. Only cells drawn "
                "at random may be answered: put the key back, or plan more cells with "
                "the same random_state instead."
            )
        row, column, draw = cell
        code = gaps.codes[row]
        facts = {"row": row, "feature": names[column], "draw": draw}
        facts |= {"class": gaps.classes[code]} if gaps.labelled else {}
        for name, fact in facts.items():
            given = columns[name][line] if name in columns else None
            if not is_blank(given) and canonical(given) != canonical(fact):
                raise ValueError(
                    f"{name} is {given!r} there, and {fact!r} by its key. A cell keeps "
                    "the row, feature, class and draw that it was given: put it back."
                )
        # As the plan calls it: by the line of the user's own file, if it has that.
        line_there = columns["line"][line] if "line" in columns else None
        called[row] = f"row {row}" if line_there is None else f"line {line_there}"
        if "row" not in columns and not is_blank(line_there):
            lines_there.append((row, parse_number(line_there), places[line]))
        order[row, column] = draw
        asked_whole[code].add(kinds[key[1]])
        given = columns["value"][line]
        if is_blank(given):
            return
        if str(given).strip().lower() in NOT_FOUND or canonical(given) in codes:
            not_found[row, column] = True
            return
        for text, meant in how.merged:
            given = meant if canonical(given) == canonical(text) else given
        where = f"{called[row]}, feature {names[column]!r}"
        if (known := levels.get(names[column])) is not None:
            spellings = [canonical(level) for level in known]
            if canonical(given) not in spellings:
                raise ValueError(
                    f"the value at {where} must be one of its categories, "
                    f"{listed(known)}: got {given!r}."
                    f"{did_you_mean(str(given), map(str, known))} Write one of them, "
                    "or 'not found'."
                )
            value = float(category_codes(known)[spellings.index(canonical(given))])
        else:
            # 12% is 0.12, as a workbook and a table have it.
            written = str(given).strip()
            number, unit = (written[:-1], 0.01) if written[-1] == "%" else (given, 1.0)
            try:
                value = unit * parse_number(number, marks)
            except ValueError as problem:
                hint = ""
                if written[0] in "<>≤≥":
                    hint = f' Say what stands for it: --merge "{written}=NUMBER".'
                raise ValueError(
                    f"the value at {where} must be a number: {problem}{hint}"
                ) from None
        place, last = answered.setdefault(cell[:2], (places[line], given))
        if place != places[line] and table[row, column] != value:
            raise ValueError(
                f"{where} was answered before, by {last} in {place}, and now by "
                f"{given}. Keep one of them."
            )
        table[row, column] = value
        low, high = lowest[column], highest[column]
        # Missing values may well lie beyond those observed. Further out by the whole
        # range, or by a factor of three, they may be slips, such as of a decimal mark.
        most = high - low
        near = low - most <= value <= high + most
        near = near and (low <= 0.0 or low / 3.0 <= value <= 3.0 * high)
        if low < high and not near and known is None:
            far.append(
                f"{places[line]}: the value {given} at {where}, beside {low:g} to "
                f"{high:g}"
            )

    problems, far = [], list[str]()
    for line, place in enumerate(places):
        try:
            read(line)
        except ValueError as problem:
            problems.append(f"{place}: {problem}")
    # A table may get another title, but its lines go on as its rows do.
    problems += [
        f"{place}: its line, {number:.15g}, and {before:.15g} of {other} aren't in the "
        "order of their keys. A cell keeps the line that it was given: put it back."
        for (last, before, other), (row, number, place) in pairwise(sorted(lines_there))
        if (last < row) != (before < number)
    ]
    # 3. Rows and single cells of one class are two plans; rows are filled in whole.
    given = ~np.isnan(table)
    whole = np.array([asked == {True} for asked in asked_whole])
    if not problems:
        for label, asked in zip(gaps.classes, asked_whole, strict=True):
            if len(asked) > 1:
                whose = "" if label is None else f" of class {label!r}"
                raise TableError(
                    f"Some lines{whose} are of a plan for whole rows and some of one "
                    "for single cells: read them one by one."
                )
        blank = gaps.missing & ~given
        half = any_by_row(given) & any_by_row(blank) & ~any_by_row(not_found)
        problems = [
            f"{called[row]} is to be filled in as a whole: "
            f"{listed(np.array(names, dtype=object)[blank[row]])} are blank. Fill them "
            "in, write 'not found', or clear the row."
            for row in np.flatnonzero(half & whole[gaps.codes]).tolist()
        ]
    if problems:
        more = len(problems) - SHOWN
        rest = [f"and {more} more."] if more > 0 else []
        raise TableError("\n".join([*problems[:SHOWN], *rest]))
    if far:
        others = f", and {len(far) - SHOWN} more" * (len(far) > SHOWN)
        warnings.warn(
            f"Looked-up values far from those of their columns: "
            f"{'; '.join(far[:SHOWN])}{others}. Are they slips?",
            stacklevel=2,
        )
    return Revealed(
        table=table,
        codes=gaps.codes,
        classes=gaps.classes,
        feature_names=names,
        missing=gaps.counts(gaps.missing),
        asked=gaps.counts(order > 0),
        answered=gaps.counts(given),
        rowwise=whole,
        lost=gaps.missing,
        order=order,
        not_found=not_found,
    )


def _read_table(source: Any) -> tuple[Columns, list[str], frozenset[Any]]:
    """A table's columns, where each line is, and its decimal marks; no blank lines.

    Columns other than the required ones may be there or not, in any order.
    """
    frame = as_frame(source)
    marks: frozenset[Any] = frozenset()
    if frame is not None:
        columns = {str(name): frame[name].to_list() for name in frame.columns}
        places = [f"line {line} of the dataframe" for line in range(len(frame))]
    elif isinstance(source, str | Path):
        # Spreadsheets on Windows save in an encoding of their own. A name misread is
        # noticed later: features must be those of X.
        file = open_table(Path(source), fallback="cp1252", preferred=SHEET)
        check_doubled(file.path, file.names)
        table = file.read([name for name in file.names if name])
        columns = {
            name: [with_formula(c) if isinstance(c, str) else c for c in cells]
            for name, cells in table.to_pydict().items()
        }
        places = [f"{file.path.name}, {file.unit} {n}" for n in file.line_numbers()]
        marks = frozenset(file.marks)
    else:
        raise TypeError(
            f"Answers are read from a path or a dataframe: got {type(source).__name__}."
        )
    absent = [name for name in REQUIRED if name not in columns]
    if absent:
        raise TableError(
            f"A plan has the columns {listed(REQUIRED)}: {listed(absent)} not found "
            f"among {listed(columns)}. Keep the header as it was written."
        )
    pairs = zip(*(columns[name] for name in REQUIRED), strict=True)
    kept = [line for line, pair in enumerate(pairs) if not all(map(is_blank, pair))]
    columns = {name: [cells[line] for line in kept] for name, cells in columns.items()}
    return columns, [places[line] for line in kept], marks
