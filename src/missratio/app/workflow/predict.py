"""Why rows of a table can't be scored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missratio._base.blocks import any_by_row
from missratio._base.hints import listed
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio._files import (
    TableFile,
    check_writable,
    is_text,
    kind_of,
    written_whole,
)
from missratio._files.numbers import canonical, without_formula
from missratio._files.workbooks import EXCEL_LINES, close_workbook, write_cell
from missratio.app.modelfile import (
    FrameModel,
    GroupedTableModel,
    MulticlassTableModel,
    TableModel,
)
from missratio.app.tables import Encoder, check_names, flat, named_columns
from missratio.evaluation import exact_interval
from missratio.exceptions import TableError, about_file

TOO_RARE = "rows like it go missing too often for a certified score"
TOO_LARGE = "its values are too large for a score"
_LARGE = 1e150


def reasons(
    encoder: Encoder, table: Any, X: FloatArray, unscored: BoolArray
) -> NDArray[Any]:
    """A sentence for each row that can't be scored, None for the others.

    Parameters
    ----------
    encoder : Encoder
    table : PyArrow table or record batch
    X : ndarray of shape (n_rows, encoder.width)
        Its matrix.
    unscored : ndarray of bool of shape (n_rows,)
    """
    found = np.full(len(X), None, dtype=object)
    rows = np.flatnonzero(unscored)
    if not len(rows):
        return found
    parts: list[list[str]] = [[] for _ in rows]
    place = 0
    for column in encoder.columns:
        gaps = np.flatnonzero(np.isnan(X[rows, place])) if column.width else ()
        place += column.width
        if not len(gaps):
            continue
        texts = [None] * len(gaps)
        if column.levels is not None:
            cells = flat(table.column(column.name)).take(rows[gaps])
            texts = encoder.cells.texts(cells).to_pylist()
        for gap, text in zip(gaps, texts, strict=True):
            parts[gap].append(
                f"{column.name!r} is missing"
                if text is None
                else f"{text!r} of {column.name!r} is new"
            )
    # Of the rest the certificate's cap can be the reason, or a score that overflowed.
    large = any_by_row(np.abs(X[rows]) > _LARGE)
    found[rows] = [
        "; ".join(each) or (TOO_LARGE if is_large else TOO_RARE)
        for each, is_large in zip(parts, large.tolist(), strict=True)
    ]
    return found


class BatchWriter:
    """Record batches to a file, which is opened by the first.

    Parameters
    ----------
    path : Path
        Ends in .csv, .parquet or .xlsx.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._kind = path, kind_of(path)
        self._writer: Any = None

    def __enter__(self) -> BatchWriter:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, batch: Any) -> None:
        """Add a record batch."""
        if self._writer is None:
            self._writer = self._open(batch.schema)
        self._writer.write_batch(batch)

    def _open(self, schema: Any) -> Any:
        if self._kind == "csv":
            from pyarrow import csv

            options = csv.WriteOptions(quoting_style="needed")
            return csv.CSVWriter(self._path, schema, write_options=options)
        if self._kind == "excel":
            return _ExcelWriter(self._path, schema.names)
        from pyarrow import parquet

        return parquet.ParquetWriter(
            self._path, schema, compression="zstd", write_page_checksum=True
        )


class _ExcelWriter:
    """Rows to one sheet, of which only the current row is in memory."""

    def __init__(self, path: Path, names: list[str]) -> None:
        try:
            xlsxwriter = import_module("xlsxwriter")
        except ImportError as error:
            raise ModuleNotFoundError(
                "Excel files need xlsxwriter: pip install 'missratio[tables]'. CSV and "
                "Parquet need nothing more."
            ) from error
        self._book = xlsxwriter.Workbook(str(path), {"constant_memory": True})
        self._sheet = self._book.add_worksheet("predictions")
        bold = self._book.add_format({"bold": True})
        for place, name in enumerate(names):
            self._sheet.write_string(0, place, name, bold)
        self._sheet.freeze_panes(1, 0)
        self._line = 1

    def write_batch(self, batch: Any) -> None:
        if self._line + len(batch) > EXCEL_LINES:
            raise TableError(
                f"An Excel sheet has {EXCEL_LINES:,} lines, and there are more "
                "predictions: write them as .csv or .parquet."
            )
        columns = [column.to_pylist() for column in batch.columns]
        for cells in zip(*columns, strict=True):
            for place, cell in enumerate(cells):
                write_cell(self._sheet, self._line, place, cell)
            self._line += 1

    def close(self) -> None:
        close_workbook(self._book)


class MeasuredErrors(ABC):
    """How many labelled rows were classified as what they are."""

    @abstractmethod
    def add(
        self, texts: list[Any], codes: IntArray, groups: list[Any] | None = None
    ) -> None:
        """Count some more rows.

        Parameters
        ----------
        texts : list of str or None
            Their labels.
        codes : ndarray of int
            What they are called, by place among the labels.
        groups : list of str or None, optional
            What the table has in the column of groups.
        """

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """The counts, and the shares with their exact 95 % intervals."""

    @property
    @abstractmethod
    def words(self) -> str:
        """The same in a sentence."""


@dataclass
class Measured(MeasuredErrors):
    """The two errors of a model of two classes.

    Parameters
    ----------
    model : TableModel or GroupedTableModel
    controlled_rows, controlled_wrong : int
        Rows of the controlled class, and those of them called the other.
    other_rows, other_found : int
        Rows of the other class, and those of them called so.
    unknown : int
        Rows with no label, or with one that the model doesn't know.
    """

    model: TableModel | GroupedTableModel
    controlled_rows: int = 0
    controlled_wrong: int = 0
    other_rows: int = 0
    other_found: int = 0
    unknown: int = 0

    def add(
        self, texts: list[Any], codes: IntArray, groups: list[Any] | None = None
    ) -> None:
        """Count some more rows."""
        model, above = self.model, codes == 1
        controlled = canonical(model.fallback)
        others = {canonical(label) for label in (model.other_class, *model.rest)}
        labels = [None if text is None else canonical(text) for text in texts]
        mine = np.array([label == controlled for label in labels], dtype=bool)
        other = np.array([label in others for label in labels], dtype=bool)
        self.controlled_rows += int(mine.sum())
        self.controlled_wrong += int((mine & above).sum())
        self.other_rows += int(other.sum())
        self.other_found += int((other & above).sum())
        self.unknown += int((~mine & ~other).sum())

    def facts(self) -> dict[str, Any]:
        """The counts, and the shares with their exact 95 % intervals."""
        return {
            "controlled": _share(
                "called_other", self.controlled_wrong, self.controlled_rows
            ),
            "other": _share("called_other", self.other_found, self.other_rows),
            "unknown_labels": self.unknown,
        }

    @property
    def words(self) -> str:
        """The same in a sentence."""
        assert isinstance(self.model, TableModel)
        parts = self.parts(self.model.certificate.alpha)
        return _said(self.model.target, parts, self.unknown)

    def parts(self, alpha: float | None) -> list[str]:
        """The two errors in words, and what was promised of one of them.

        Parameters
        ----------
        alpha : float or None
            None where nothing was.
        """
        controlled, other = self.model.fallback, self.model.other_class
        promised = "" if alpha is None else f"; at most {100 * alpha:.4g}% was promised"
        parts = []
        if self.controlled_rows:
            parts.append(
                f"{self.controlled_wrong} of {self.controlled_rows} {controlled!r} are "
                f"called {other!r} "
                f"({_percent(self.controlled_wrong, self.controlled_rows)}{promised})"
            )
        if self.other_rows:
            parts.append(
                f"{self.other_found} of {self.other_rows} {other!r} are found "
                f"({_percent(self.other_found, self.other_rows)})"
            )
        return parts


@dataclass
class MeasuredGroups(MeasuredErrors):
    """The two errors of each group.

    Parameters
    ----------
    model : GroupedTableModel
    groups : dict from group to Measured
        Those of the model; None stands for all others together.
    """

    model: GroupedTableModel
    groups: dict[Any, Measured] = field(init=False)

    def __post_init__(self) -> None:
        every = [*self.model.classifier.groups_, None]
        self.groups = {group: Measured(self.model) for group in every}

    def add(
        self, texts: list[Any], codes: IntArray, groups: list[Any] | None = None
    ) -> None:
        """Count some more rows."""
        given = [None] * len(texts) if groups is None else groups
        members = self.model.members(given).tolist()
        for group, measured in self.groups.items():
            mine = [row for row, member in enumerate(members) if member == group]
            measured.add([texts[row] for row in mine], codes[mine])

    def facts(self) -> dict[str, Any]:
        """The counts, and the shares with their exact 95 % intervals."""
        found = {
            "other groups" if group is None else str(group): measured.facts()
            for group, measured in self.groups.items()
            if group is not None or self._rows(measured)
        }
        return {"groups": found}

    @property
    def words(self) -> str:
        """The same in a sentence for each group."""
        promised = {each.group: each.level for each in self.model.certificate.promises}
        lines = []
        for group, measured in self.groups.items():
            alpha = promised.get(group) if group is not None else None
            parts = measured.parts(alpha)
            if parts:
                name = "other groups" if group is None else f"group {group!r}"
                lines.append(f"- {name}: {'; '.join(parts)}")
        unknown = sum(measured.unknown for measured in self.groups.values())
        if unknown:
            lines.append(f"- {unknown} rows have no label or another one")
        return "\n".join([f"By the labels in {self.model.target!r}:", *lines])

    def _rows(self, measured: Measured) -> int:
        return measured.controlled_rows + measured.other_rows + measured.unknown


@dataclass
class MeasuredClasses(MeasuredErrors):
    """What rows of each of several classes are called.

    Parameters
    ----------
    model : MulticlassTableModel
    counts : ndarray of int of shape (n_classes, n_classes)
        Rows of each class, by what they are called.
    unknown : int
        Rows with no label, or with one that the model doesn't know.
    """

    model: MulticlassTableModel
    counts: IntArray = field(init=False)
    unknown: int = 0

    def __post_init__(self) -> None:
        n_classes = len(self.model.classes_)
        self.counts = np.zeros((n_classes, n_classes), dtype=np.intp)

    def add(
        self, texts: list[Any], codes: IntArray, groups: list[Any] | None = None
    ) -> None:
        """Count some more rows."""
        places = {
            canonical(label): place
            for place, label in enumerate(self.model.classes_.tolist())
        }
        found = [
            -1 if text is None else places.get(canonical(text), -1) for text in texts
        ]
        true = np.array(found, dtype=np.intp)
        known = true >= 0
        np.add.at(self.counts, (true[known], codes[known]), 1)
        self.unknown += int((~known).sum())

    def facts(self) -> dict[str, Any]:
        """The counts, and the shares with their exact 95 % intervals."""
        labels = self.model.classes_.tolist()
        found = {
            str(label): {
                "wrong": self._wrong(place),
                "found": _share(
                    "found", int(self.counts[place, place]), self._rows(place)
                ),
                "called": dict(
                    zip(map(str, labels), self.counts[place].tolist(), strict=True)
                ),
            }
            for place, label in enumerate(labels)
        }
        return {"classes": found, "unknown_labels": self.unknown}

    @property
    def words(self) -> str:
        """The same in a sentence."""
        parts = []
        bounded = {
            each.controlled_class for each in self.model.certificate.certificates
        }
        for place, label in enumerate(self.model.classes_.tolist()):
            rows, right = self._rows(place), int(self.counts[place, place])
            if not rows:
                continue
            text = f"{right} of {rows} {label!r} are found ({_percent(right, rows)})"
            if label in bounded:
                wrong = self._events(place)
                text += (
                    f", {wrong} are {self._error} ({_percent(wrong, rows)}; at most "
                )
                text += f"{100.0 * self.model.certificate[label].alpha:.4g}% was "
                text += "promised)"
            parts.append(text)
        return _said(self.model.target, parts, self.unknown)

    @property
    def _error(self) -> str:
        """What the bounded error is called."""
        return "called less severe" if self.model.certificate.order else "called wrong"

    def _rows(self, place: int) -> int:
        return int(self.counts[place].sum())

    def _events(self, place: int) -> int:
        """Rows of a bounded class that got a class which they must not get."""
        every = np.arange(len(self.counts))
        wrong = self.model.wrong(every, self.model.classes_.tolist()[place])
        return int(self.counts[place, wrong].sum())

    def _wrong(self, place: int) -> dict[str, Any] | None:
        """The bounded error; None for a class that has no bound."""
        label = self.model.classes_.tolist()[place]
        for each in self.model.certificate.certificates:
            if each.controlled_class == label:
                return _share("wrong", self._events(place), self._rows(place))
        return None


def _said(target: str, parts: list[str], unknown: int) -> str:
    if unknown:
        parts = [*parts, f"{unknown} rows have no label or another one"]
    return f"By the labels in {target!r}: {'; '.join(parts)}."


def _percent(events: int, rows: int) -> str:
    return f"{100.0 * events / rows:.1f}%"


def _share(name: str, events: int, rows: int) -> dict[str, Any] | None:
    if not rows:
        return None
    low, high = exact_interval(events, rows)
    return {
        "rows": rows, name: events, "share": events / rows, "low": low, "high": high,
    }  # fmt: skip


SCORE = "score"


@dataclass(frozen=True, eq=False)
class Labelled:
    """What rows get.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows,)
        Places of their labels.
    scores : dict from str to ndarray of shape (n_rows,)
        By the name of the column that they are written to.
    unscored : ndarray of bool of shape (n_rows,)
        Rows without a score.
    notes : dict from int to str
        Why rows that have a score got a label that it doesn't tell of, by their place.
    """

    codes: IntArray
    scores: dict[str, FloatArray]
    unscored: BoolArray
    notes: dict[int, str] = field(default_factory=dict)


class Labelling(ABC):
    """How a model labels rows."""

    @property
    @abstractmethod
    def labels(self) -> list[Any]:
        """The labels that rows may get."""

    @property
    @abstractmethod
    def columns(self) -> list[str]:
        """The columns of scores."""

    @abstractmethod
    def of(self, X: FloatArray, groups: list[Any] | None = None) -> Labelled:
        """What encoded rows get.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_encoded)
        groups : list of str or None, optional
            What the table has in the column of groups.
        """

    @abstractmethod
    def measured(self) -> MeasuredErrors:
        """A count of errors, empty yet."""


@dataclass(frozen=True, eq=False)
class TwoClasses(Labelling):
    """The other class above a threshold, and the controlled class elsewhere."""

    model: TableModel

    @property
    def labels(self) -> list[Any]:
        """The controlled class, and the other."""
        return [self.model.certificate.controlled_class, self.model.other_class]

    @property
    def columns(self) -> list[str]:
        """One column."""
        return [SCORE]

    def of(self, X: FloatArray, groups: list[Any] | None = None) -> Labelled:
        """What encoded rows get."""
        scores, above = self.model.score(X)
        return Labelled(above.astype(np.intp), {SCORE: scores}, scores == -np.inf)

    def measured(self) -> Measured:
        """The two errors."""
        return Measured(self.model)


@dataclass(frozen=True, eq=False)
class SeveralClasses(Labelling):
    """One of several classes."""

    model: MulticlassTableModel

    @property
    def labels(self) -> list[Any]:
        """The classes, sorted."""
        classes: list[Any] = self.model.classes_.tolist()
        return classes

    @property
    def columns(self) -> list[str]:
        """One for each class."""
        return [f"{SCORE}_{label}" for label in self.labels]

    def of(self, X: FloatArray, groups: list[Any] | None = None) -> Labelled:
        """What encoded rows get."""
        codes, scores = self.model.decide(X)
        by_class = dict(zip(self.columns, scores.T, strict=True))
        return Labelled(codes, by_class, np.isnan(scores[:, 0]))

    def measured(self) -> MeasuredClasses:
        """The errors of every class."""
        return MeasuredClasses(self.model)


@dataclass(frozen=True, eq=False)
class Groups(Labelling):
    """The other class above the threshold of a row's group."""

    model: GroupedTableModel

    @property
    def labels(self) -> list[Any]:
        """The controlled class, and the other."""
        return [self.model.fallback, self.model.other_class]

    @property
    def columns(self) -> list[str]:
        """One column."""
        return [SCORE]

    def of(self, X: FloatArray, groups: list[Any] | None = None) -> Labelled:
        """What encoded rows get; those of a group without a threshold say so."""
        model = self.model
        texts = [None] * len(X) if groups is None else groups
        members = model.members(texts)
        scores, above = model.score(X, members)
        lost = np.flatnonzero(np.isposinf(model.limits(len(X), members)))
        notes = {int(row): self._note(texts[row], members[row]) for row in lost}
        unscored = scores == -np.inf
        return Labelled(above.astype(np.intp), {SCORE: scores}, unscored, notes)

    def measured(self) -> MeasuredGroups:
        """The two errors of each group."""
        return MeasuredGroups(self.model)

    def _note(self, text: Any, member: Any) -> str:
        """Why a row has no threshold."""
        column = self.model.group_column
        if text is None:
            return f"{column!r} is missing, and each group has its own threshold"
        if member is None:
            return f"group {text!r} of {column!r} is new, and has no threshold"
        return f"group {text!r} has no certified threshold"


def labelling_of(model: FrameModel) -> Labelling:
    """How a model labels rows."""
    if isinstance(model, GroupedTableModel):
        return Groups(model)
    if isinstance(model, MulticlassTableModel):
        return SeveralClasses(model)
    assert isinstance(model, TableModel)
    return TwoClasses(model)


LABEL, ERROR, REASON = "label", "standard_error", "reason"
SUFFIXES = (".csv", ".parquet", ".xlsx")


@dataclass
class Predicted:
    """What was found in a table.

    Parameters
    ----------
    counts : dict
        Rows given to each label.
    unscored : int
        Rows that couldn't be scored.
    without_threshold : int
        Rows whose group has no threshold.
    measured : MeasuredErrors or None
        The errors, where the table has labels.
    """

    counts: dict[Any, int]
    unscored: int = 0
    without_threshold: int = 0
    measured: MeasuredErrors | None = None

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(self.counts.values())

    def add(self, labelled: Labelled) -> None:
        """Count some more rows."""
        sizes = np.bincount(labelled.codes, minlength=len(self.counts)).tolist()
        for label, size in zip(self.counts, sizes, strict=True):
            self.counts[label] += size
        self.unscored += int(labelled.unscored.sum())
        self.without_threshold += len(labelled.notes)


@dataclass(frozen=True)
class PredictOptions:
    """What is asked of predictions.

    Parameters
    ----------
    keep : sequence of str
        Columns to copy.
    drop : sequence of str
        Columns to pass over.
    standard_errors : bool
        Whether to add a column `standard_error`, that of the score.
    escape_formulas : bool
        Whether texts in a CSV file that a spreadsheet would take for formulas are
        marked by an apostrophe.
    force : bool
        Whether a file that is there is overwritten.
    """

    keep: Sequence[str] = ()
    drop: Sequence[str] = ()
    standard_errors: bool = False
    escape_formulas: bool = False
    force: bool = False


def predict_table(
    model: FrameModel,
    source: TableFile,
    out: Path,
    options: PredictOptions,
    tick: Callable[[int], None] = lambda _: None,
) -> Predicted:
    """Write a label and a score for each row, a batch of rows at a time.

    Parameters
    ----------
    model : FrameModel
    source : TableFile
        With the model's columns, in any order. The target may be there.
    out : Path
        A CSV, Parquet or Excel file: the columns kept; `label`; `score`, or one column
        of scores for each of several classes, null for a row that can't be scored; and
        `reason`, why it can't. Scores have nine significant digits: those after them
        depend on the machine.
    options : PredictOptions
    tick : callable
        Told how many rows were written.
    """
    keep, drop = (named_columns(source, each) for each in (options.keep, options.drop))
    check_writable(out, force=options.force, others=[source.path])
    labelling = labelling_of(model)
    _check_output(out, keep, labelling)
    encoder = _encoder_for(model, source, keep, drop)
    if options.standard_errors:
        _check_standard_errors(model)
    labelled = model.target in source.names and model.target not in drop
    beside = _group_column(model, source)
    columns = dict.fromkeys(
        [*keep, *encoder.names, *[model.target] * labelled, *beside]
    )
    escapes = options.escape_formulas and kind_of(out) == "csv"
    measured = labelling.measured() if labelled else None
    done = Predicted(dict.fromkeys(labelling.labels, 0), measured=measured)
    with written_whole(out, force=options.force) as draft, BatchWriter(draft) as writer:
        for batch in filter(len, source.batches(list(columns))):
            with about_file(source.path):
                X = encoder.encode(batch, done.rows, place=source.place)
            groups = _texts(encoder, batch, beside[0]) if beside else None
            found = labelling.of(X, groups)
            output = _output(labelling.labels, batch.select(keep), found)
            if options.standard_errors and isinstance(model, TableModel):
                output = _with_errors(output, model.standard_errors(X))
            output = _with_reasons(output, encoder, batch, X, found)
            writer.write(_escaped(output) if escapes else output)
            done.add(found)
            if done.measured is not None:
                labels = _texts(encoder, batch, model.target)
                done.measured.add(labels, found.codes, groups)
            tick(len(batch))
        if not done.rows:
            raise TableError(f"{source.path} has a header and no rows.")
    return done


def _encoder_for(
    model: FrameModel, source: TableFile, keep: list[str], drop: list[str]
) -> Encoder:
    """The model's encoder for this file, which has the columns that it needs."""
    source.check_header()
    for option, names in (("--keep", keep), ("--drop", drop)):
        check_names(source, option, names)
    encoder = model.encoder.with_marks(source.marks)
    if needed := [name for name in drop if name in encoder.names]:
        raise TableError(
            f"--drop {listed(needed)}: the model needs that, and scores no row without "
            "it. Fit another model with the same --drop."
        )
    allowed = [model.target, *model.dropped, *keep, *drop]
    with about_file(source.path):
        encoder.check_columns(source.names, allowed)
    return encoder


def _group_column(model: FrameModel, source: TableFile) -> list[str]:
    """The column of groups, where labels depend on it or the table has it."""
    if not isinstance(model, GroupedTableModel):
        return []
    if model.group_column in source.names:
        return [model.group_column]
    if model.needs_groups:
        raise TableError(
            f"{source.path} has no column {model.group_column!r}: each group has a "
            "threshold of its own. Add that column."
        )
    return []


def _check_standard_errors(model: FrameModel) -> None:
    if not isinstance(model, TableModel):
        raise TableError(
            "--standard-errors are for a density ratio of two classes without groups, "
            "and the model has several. Leave them out."
        )
    if model.covariance is None:
        raise TableError(
            "The model has no standard errors. Fit it with --standard-errors."
        )


def _check_output(out: Path, keep: Sequence[str], labelling: Labelling) -> None:
    if out.suffix.lower() not in SUFFIXES:
        raise TableError(
            f"Predictions are written as .csv, .parquet or .xlsx: got {out.name!r}."
        )
    own = {LABEL, ERROR, REASON, *labelling.columns}
    taken = [name for name in keep if name in own]
    if taken:
        raise TableError(
            f"--keep {listed(taken)}: the output has such a column already."
        )


def _output(labels: list[Any], kept: Any, found: Labelled) -> Any:
    import pyarrow

    named = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array(found.codes.astype(np.int32)), pyarrow.array(labels)
    )
    arrays = [*kept.columns, named.cast(named.type.value_type)]
    arrays += [
        pyarrow.array(_significant(scores), mask=found.unscored)
        for scores in found.scores.values()
    ]
    return pyarrow.RecordBatch.from_arrays(
        arrays, names=[*kept.schema.names, LABEL, *found.scores]
    )


def _significant(values: FloatArray) -> FloatArray:
    """Numbers to nine significant digits: further ones depend on the machine."""
    finite = np.isfinite(values) & (values != 0)
    places = np.zeros(values.shape)
    np.log10(np.abs(values, dtype=np.float64), where=finite, out=places)
    # Powers of ten are exact up to 10²²: beyond them a number stays as it is.
    places = 8 - np.floor(places)
    scale = 10.0 ** np.abs(places)
    rounded = np.where(
        places >= 0, np.rint(values * scale) / scale, np.rint(values / scale) * scale
    )
    return np.where(finite & (np.abs(places) <= 22), rounded, values)


def _with_errors(output: Any, errors: FloatArray) -> Any:
    import pyarrow

    return output.append_column(
        ERROR, pyarrow.array(_significant(errors), from_pandas=True)
    )


def _texts(encoder: Encoder, batch: Any, column: str) -> list[Any]:
    """The texts of a column; None where a cell is missing."""
    texts: list[Any] = encoder.cells.texts(flat(batch.column(column))).to_pylist()
    return texts


def _with_reasons(
    output: Any, encoder: Encoder, batch: Any, X: FloatArray, found: Labelled
) -> Any:
    """Why rows have no score, or a label that it doesn't tell of."""
    import pyarrow

    why = reasons(encoder, batch, X, found.unscored)
    for row, note in found.notes.items():
        why[row] = note if why[row] is None else f"{why[row]}; {note}"
    return output.append_column(REASON, pyarrow.array(why, pyarrow.string()))


def _escaped(output: Any) -> Any:
    import pyarrow

    columns = [
        pyarrow.array(
            [
                None if cell is None else without_formula(cell)
                for cell in column.tolist()
            ]
        )
        if is_text(column.type)
        else column
        for column in output.columns
    ]
    return pyarrow.RecordBatch.from_arrays(columns, names=output.schema.names)
