"""Why rows of a table can't be scored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    GROUPS,
    SEVERAL_CLASSES,
    TWO_CLASSES,
    Decisions,
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


LABEL, ERROR, REASON = "label", "standard_error", "reason"
SUFFIXES = (".csv", ".parquet", ".xlsx")


class MeasuredErrors:
    """How many labelled rows, of each group where there are some, were called what.

    Parameters
    ----------
    model : TableModel
    """

    def __init__(self, model: TableModel) -> None:
        self.model = model
        self.labels = model.labels
        grouped = model.kind == GROUPS
        # None stands for all rows, or for those of other groups together.
        groups = [*model.classifier.groups_, None] if grouped else [None]
        shape = (len(self.labels), len(self.labels))
        self.counts = {group: np.zeros(shape, dtype=np.intp) for group in groups}
        self.unknown = dict.fromkeys(groups, 0)
        self._places = {canonical(label): 1 for label in model.rest}
        for place, label in enumerate(self.labels):
            self._places[canonical(label)] = place

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
        members: list[Any] = [None] * len(texts)
        if self.model.kind == GROUPS and groups is not None:
            members = self.model.members(groups)
        true = np.array(
            [-1 if t is None else self._places.get(canonical(t), -1) for t in texts],
            dtype=np.intp,
        )
        for group, counts in self.counts.items():
            mine = np.array([member == group for member in members], dtype=bool)
            known = mine & (true >= 0)
            np.add.at(counts, (true[known], codes[known]), 1)
            self.unknown[group] += int((mine & (true < 0)).sum())

    def facts(self) -> dict[str, Any]:
        """The counts, and the shares with their exact 95 % intervals."""
        if self.model.kind != SEVERAL_CLASSES:
            found = {
                "other groups" if group is None else str(group): {
                    "controlled": _share("called_other", counts[0, 1], counts[0].sum()),
                    "other": _share("called_other", counts[1, 1], counts[1].sum()),
                    "unknown_labels": self.unknown[group],
                }
                for group, counts in self.counts.items()
                if group is not None
                or len(self.counts) == 1
                or counts.sum() + self.unknown[group]
            }
            grouped = self.model.kind == GROUPS
            return {"groups": found} if grouped else next(iter(found.values()))
        counts = self.counts[None]
        names = [str(label) for label in self.labels]
        classes = {}
        for place, (label, name) in enumerate(zip(self.labels, names, strict=True)):
            rows, wrong = counts[place].sum(), self._wrong(label)
            classes[name] = {
                "wrong": None if wrong is None else _share("wrong", wrong, rows),
                "found": _share("found", counts[place, place], rows),
                "called": dict(zip(names, counts[place].tolist(), strict=True)),
            }
        return {"classes": classes, "unknown_labels": self.unknown[None]}

    @property
    def words(self) -> str:
        """The same in a sentence, or in a line for each group."""
        model, unknown = self.model, sum(self.unknown.values())
        lost = [f"{unknown} rows have no label or another one"] * bool(unknown)
        start = f"By the labels in {model.target!r}:"
        if model.kind == GROUPS:
            promised = {each.group: each.level for each in model.certificate.promises}
            lines = []
            for group, counts in self.counts.items():
                parts = self._two(
                    counts, None if group is None else promised.get(group)
                )
                name = "other groups" if group is None else f"group {group!r}"
                lines += [f"{name}: {'; '.join(parts)}"] * bool(parts)
            return "\n".join([start, *(f"- {line}" for line in [*lines, *lost])])
        counts = self.counts[None]
        if model.kind == TWO_CLASSES:
            parts = self._two(counts, model.certificate.alpha)
        else:
            parts = [
                self._several(place, counts[place])
                for place in np.flatnonzero(counts.sum(axis=1)).tolist()
            ]
        return f"{start} {'; '.join([*parts, *lost])}."

    def _two(self, counts: IntArray, alpha: float | None) -> list[str]:
        """The two errors in words, and what was promised of one of them."""
        controlled, other = (repr(label) for label in self.labels)
        rows, parts = counts.sum(axis=1), []
        if rows[0]:
            parts.append(
                f"{counts[0, 1]} of {rows[0]} {controlled} are called {other} "
                f"({_percent(counts[0, 1], rows[0])}{_promised(alpha)})"
            )
        if rows[1]:
            parts.append(
                f"{counts[1, 1]} of {rows[1]} {other} are found "
                f"({_percent(counts[1, 1], rows[1])})"
            )
        return parts

    def _several(self, place: int, counts: IntArray) -> str:
        """What becomes of one of several classes, in words."""
        label, rows, right = self.labels[place], counts.sum(), counts[place]
        text = f"{right} of {rows} {label!r} are found ({_percent(right, rows)})"
        wrong, certificate = self._wrong(label), self.model.certificate
        if wrong is None:
            return text
        called = "called less severe" if certificate.order else "called wrong"
        level = _promised(certificate[label].alpha)
        return f"{text}, {wrong} are {called} ({_percent(wrong, rows)}{level})"

    def _wrong(self, label: Any) -> int | None:
        """Rows that got a class which they must not get; None without a bound."""
        model = self.model
        if all(c.controlled_class != label for c in model.certificate.certificates):
            return None
        wrong = model.wrong(np.arange(len(self.labels)), label)
        return int(self.counts[None][self.labels.index(label), wrong].sum())


def _promised(alpha: float | None) -> str:
    return "" if alpha is None else f"; at most {100.0 * alpha:.4g}% was promised"


def _percent(events: int, rows: int) -> str:
    return f"{100.0 * events / rows:.1f}%"


def _share(name: str, events: int, rows: int) -> dict[str, Any] | None:
    if not rows:
        return None
    events, rows = int(events), int(rows)
    low, high = exact_interval(events, rows)
    return {
        "rows": rows, name: events, "share": events / rows, "low": low, "high": high,
    }  # fmt: skip


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

    def add(self, labelled: Decisions) -> None:
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
    model: TableModel,
    source: TableFile,
    out: Path,
    options: PredictOptions,
    tick: Callable[[int], None] = lambda _: None,
) -> Predicted:
    """Write a label and a score for each row, a batch of rows at a time.

    Parameters
    ----------
    model : TableModel
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
    _check_output(out, keep, model)
    encoder = _encoder_for(model, source, keep, drop)
    if options.standard_errors:
        _check_standard_errors(model)
    labelled = model.target in source.names and model.target not in drop
    beside = _group_column(model, source)
    columns = dict.fromkeys(
        [*keep, *encoder.names, *[model.target] * labelled, *beside]
    )
    escapes = options.escape_formulas and kind_of(out) == "csv"
    measured, every = MeasuredErrors(model) if labelled else None, model.labels
    done = Predicted(dict.fromkeys(every, 0), measured=measured)
    with written_whole(out, force=options.force) as draft, BatchWriter(draft) as writer:
        for batch in filter(len, source.batches(list(columns))):
            with about_file(source.path):
                X = encoder.encode(batch, done.rows, place=source.place)
            groups = _texts(encoder, batch, beside[0]) if beside else None
            found = model.decide(X, groups)
            output = _output(model, batch.select(keep), found)
            if options.standard_errors:
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
    model: TableModel, source: TableFile, keep: list[str], drop: list[str]
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


def _group_column(model: TableModel, source: TableFile) -> list[str]:
    """The column of groups, where labels depend on it or the table has it."""
    if model.group_column is None:
        return []
    if model.group_column in source.names:
        return [model.group_column]
    if model.needs_groups:
        raise TableError(
            f"{source.path} has no column {model.group_column!r}: each group has a "
            "threshold of its own. Add that column."
        )
    return []


def _check_standard_errors(model: TableModel) -> None:
    if model.kind != TWO_CLASSES:
        raise TableError(
            "--standard-errors are for a density ratio of two classes without groups, "
            "and the model has several. Leave them out."
        )
    if model.covariance is None:
        raise TableError(
            "The model has no standard errors. Fit it with --standard-errors."
        )


def _check_output(out: Path, keep: Sequence[str], model: TableModel) -> None:
    if out.suffix.lower() not in SUFFIXES:
        raise TableError(
            f"Predictions are written as .csv, .parquet or .xlsx: got {out.name!r}."
        )
    own = {LABEL, ERROR, REASON, *model.score_columns}
    taken = [name for name in keep if name in own]
    if taken:
        raise TableError(
            f"--keep {listed(taken)}: the output has such a column already."
        )


def _output(model: TableModel, kept: Any, found: Decisions) -> Any:
    import pyarrow

    named = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array(found.codes.astype(np.int32)), pyarrow.array(model.labels)
    )
    arrays = [*kept.columns, named.cast(named.type.value_type)]
    arrays += [
        pyarrow.array(_significant(scores), mask=found.unscored)
        for scores in found.scores.T
    ]
    return pyarrow.RecordBatch.from_arrays(
        arrays, names=[*kept.schema.names, LABEL, *model.score_columns]
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
    output: Any, encoder: Encoder, batch: Any, X: FloatArray, found: Decisions
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
