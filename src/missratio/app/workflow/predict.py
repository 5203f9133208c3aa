"""Labels and scores for the rows of a table, and the errors where it has labels."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missratio._base.blocks import any_by_row
from missratio._base.hints import listed
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio._files import TableFile, open_table, written_whole
from missratio._files.cells import is_text
from missratio._files.files import kind_of
from missratio._files.numbers import canonical, without_formula
from missratio._files.workbooks import EXCEL_LINES, close_workbook, write_cell
from missratio.app.modelfile import (
    GROUPS,
    SEVERAL_CLASSES,
    TWO_CLASSES,
    Decisions,
    TableModel,
)
from missratio.app.options import Listener, PredictOptions
from missratio.app.tables.columns import Encoder, check_names, flat, named_columns
from missratio.evaluation import exact_interval
from missratio.exceptions import TableError, about_file

TOO_RARE = "rows like it go missing too often for a certified score"
TOO_LARGE = "its values are too large for a score"
_LARGE = 1e150
LABEL, ERROR, REASON = "label", "standard_error", "reason"


@dataclass
class Predicted:
    """What was found in a table.

    Parameters
    ----------
    counts : dict
        Rows given to each label.
    measured : MeasuredErrors or None
        The errors, where the table has labels.
    unscored : int
        Rows that couldn't be scored.
    without_threshold : int
        Rows whose group has no threshold.
    """

    counts: dict[Any, int]
    measured: MeasuredErrors | None
    unscored: int = 0
    without_threshold: int = 0

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(self.counts.values())

    def add(self, decisions: Decisions) -> None:
        """Count some more rows."""
        sizes = np.bincount(decisions.codes, minlength=len(self.counts)).tolist()
        for label, size in zip(self.counts, sizes, strict=True):
            self.counts[label] += size
        self.unscored += int(decisions.unscored.sum())
        self.without_threshold += len(decisions.notes)


def predict_table(
    model: TableModel, options: PredictOptions, progress: Listener
) -> Predicted:
    """Write a label and a score for each row, a batch of rows at a time.

    The table has the model's columns, in any order, and may have the target. Written
    are the columns kept; `label`; `score`, or one column of scores for each of several
    classes, null for a row that can't be scored; and `reason`, why it can't. Scores
    have nine significant digits: those after them depend on the machine.
    """
    source, out = open_table(options.data, **options.how), options.out
    progress.step(f"Predicting {options.data}", source.n_rows)
    keep, drop = (named_columns(source, each) for each in (options.keep, options.drop))
    if options.standard_errors:
        _check_standard_errors(model)
    encoder = _encoder_for(model, source, keep, drop)
    is_labelled = model.target in source.names and model.target not in drop
    group_column = model.group_column
    has_groups = group_column is not None and group_column in source.names
    columns = [*keep, *encoder.names, *[model.target] * is_labelled]
    columns += [group_column or ""] * has_groups
    done = Predicted(
        dict.fromkeys(model.labels, 0), MeasuredErrors(model) if is_labelled else None
    )
    escapes = options.escape and kind_of(out) == "csv"
    with written_whole(out, force=options.force) as draft, BatchWriter(draft) as writer:
        for batch in filter(len, source.batches(list(dict.fromkeys(columns)))):
            with about_file(source.path):
                X = encoder.encode(batch, done.rows, place=source.place)
            groups = (
                texts_of(encoder, batch, model.group_column) if has_groups else None
            )
            decisions = model.decide(X, groups)
            errors = model.standard_errors(X) if options.standard_errors else None
            why = reasons(encoder, batch, X, decisions.unscored)
            output = output_batch(model, batch.select(keep), decisions, why, errors)
            writer.write(_escaped(output) if escapes else output)
            done.add(decisions)
            if done.measured is not None:
                labels = texts_of(encoder, batch, model.target)
                done.measured.add(labels, decisions.codes, groups)
            progress.tick(len(batch))
        if not done.rows:
            raise TableError(f"{source.path} has a header and no rows.")
    return done


def _encoder_for(
    model: TableModel, source: TableFile, keep: list[str], drop: list[str]
) -> Encoder:
    """The model's encoder for this file, which has the columns that it needs."""
    if taken := [
        name for name in keep if name in {LABEL, ERROR, REASON, *model.score_columns}
    ]:
        raise TableError(
            f"--keep {listed(taken)}: the output has such a column already."
        )
    source.check_header()
    for option, names in (("--keep", keep), ("--drop", drop)):
        check_names(source, option, names)
    encoder = model.encoder.with_marks(source.marks)
    if needed := [name for name in drop if name in encoder.names]:
        raise TableError(
            f"--drop {listed(needed)}: the model needs that, and scores no row without "
            "it. Fit another model with the same --drop."
        )
    with about_file(source.path):
        encoder.check_columns(
            source.names, [model.target, *model.dropped, *keep, *drop]
        )
    if model.needs_groups and model.group_column not in source.names:
        raise TableError(
            f"{source.path} has no column {model.group_column!r}: each group has a "
            "threshold of its own. Add that column."
        )
    return encoder


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


def texts_of(encoder: Encoder, batch: Any, column: str | None) -> list[str | None]:
    """The texts of a column; None where a cell is missing."""
    texts: list[str | None] = encoder.cells.texts(
        flat(batch.column(column))
    ).to_pylist()
    return texts


def reasons(
    encoder: Encoder, table: Any, X: FloatArray, unscored: BoolArray
) -> NDArray[Any]:
    """A sentence for each encoded row that can't be scored, None for the others."""
    why = np.full(len(X), None, dtype=object)
    rows = np.flatnonzero(unscored)
    if not len(rows):
        return why
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
            new = f"{text!r} of {column.name!r} is new"
            parts[gap].append(f"{column.name!r} is missing" if text is None else new)
    # Of the rest the certificate's cap can be the reason, or a score that overflowed.
    large = any_by_row(np.abs(X[rows]) > _LARGE)
    why[rows] = [
        "; ".join(each) or (TOO_LARGE if is_large else TOO_RARE)
        for each, is_large in zip(parts, large.tolist(), strict=True)
    ]
    return why


def output_batch(
    model: TableModel,
    kept: Any,
    decisions: Decisions,
    why: NDArray[Any],
    errors: FloatArray | None = None,
) -> Any:
    """Columns that are kept, labels, scores, their standard errors and reasons."""
    import pyarrow

    for row, note in decisions.notes.items():
        why[row] = note if why[row] is None else f"{why[row]}; {note}"
    codes = pyarrow.array(decisions.codes.astype(np.int32))
    labels = pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(model.labels))
    columns = {LABEL: labels.cast(labels.type.value_type)}
    for name, scores in zip(model.score_columns, decisions.scores.T, strict=True):
        columns[name] = pyarrow.array(_significant(scores), mask=decisions.unscored)
    if errors is not None:
        columns[ERROR] = pyarrow.array(_significant(errors), from_pandas=True)
    columns[REASON] = pyarrow.array(why, pyarrow.string())
    return pyarrow.RecordBatch.from_arrays(
        [*kept.columns, *columns.values()], names=[*kept.schema.names, *columns]
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


def _escaped(output: Any) -> Any:
    """A batch whose texts no spreadsheet takes for formulas."""
    import pyarrow

    columns = [
        pyarrow.array([cell and without_formula(cell) for cell in column.to_pylist()])
        if is_text(column.type)
        else column
        for column in output.columns
    ]
    return pyarrow.RecordBatch.from_arrays(columns, names=output.schema.names)


class MeasuredErrors:
    """How many labelled rows, of each group where there are some, were called what.

    Parameters
    ----------
    model : TableModel
    """

    def __init__(self, model: TableModel) -> None:
        self.model, self.labels = model, model.labels
        # None stands for all rows, or for those of other groups together.
        groups = [None]
        if model.kind == GROUPS:
            groups = [*model.classifier.groups_, None]
        shape = (len(self.labels), len(self.labels))
        self.counts = {group: np.zeros(shape, dtype=np.intp) for group in groups}
        self.unknown = dict.fromkeys(groups, 0)
        self._places = {canonical(label): 1 for label in model.rest}
        for place, label in enumerate(self.labels):
            self._places[canonical(label)] = place

    def add(
        self,
        texts: list[str | None],
        codes: IntArray,
        groups: list[str | None] | None = None,
    ) -> None:
        """Count rows by their labels and groups, as texts, and what they are called."""
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
        if self.model.kind == SEVERAL_CLASSES:
            counts, names = self.counts[None], [str(label) for label in self.labels]
            classes = {
                name: {
                    "wrong": _share("wrong", self._wrong(place), sum(row)),
                    "found": _share("found", row[place], sum(row)),
                    "called": dict(zip(names, row, strict=True)),
                }
                for place, (name, row) in enumerate(
                    zip(names, counts.tolist(), strict=True)
                )
            }
            return {"classes": classes, "unknown_labels": self.unknown[None]}
        groups: dict[Any, dict[str, Any]] = {}
        for group, counts in self.counts.items():
            shares = [
                _share("called_other", row[1], sum(row)) for row in counts.tolist()
            ]
            groups[group] = {
                "controlled": shares[0],
                "other": shares[1],
                "unknown_labels": self.unknown[group],
            }
        rest = groups.pop(None)
        if self.model.kind == TWO_CLASSES:
            return rest
        named = {str(group): each for group, each in groups.items()}
        if self.counts[None].sum() + self.unknown[None]:
            named["other groups"] = rest
        return {"groups": named}

    @property
    def words(self) -> str:
        """The same in a sentence, or in a line for each group."""
        model, unknown = self.model, sum(self.unknown.values())
        lost = [f"{unknown} rows have no label or another one"] * bool(unknown)
        start = f"By the labels in {model.target!r}:"
        if model.kind != GROUPS:
            say = self._several if model.kind == SEVERAL_CLASSES else self._two
            parts = say(self.counts[None], getattr(model.certificate, "alpha", None))
            return f"{start} {'; '.join([*parts, *lost])}."
        promised = {each.group: each.level for each in model.certificate.promises}
        lines = []
        for group, counts in self.counts.items():
            name = "other groups" if group is None else f"group {group!r}"
            parts = self._two(counts, None if group is None else promised.get(group))
            lines += [f"{name}: {'; '.join(parts)}"] * bool(parts)
        return "\n".join([start, *(f"- {line}" for line in [*lines, *lost])])

    def _two(self, counts: IntArray, alpha: float | None) -> list[str]:
        """The two errors in words, and what was promised of one of them."""
        (controlled, other), rows = map(repr, self.labels), counts.sum(axis=1)
        wrong = f"{controlled} are called {other}"
        return [
            f"{events} of {n} {what} ({_percent(events, n)}{level})"
            for events, n, what, level in (
                (counts[0, 1], rows[0], wrong, _promised(alpha)),
                (counts[1, 1], rows[1], f"{other} are found", ""),
            )
            if n
        ]

    def _several(self, counts: IntArray, _: float | None) -> list[str]:
        """What becomes of each of several classes, in words."""
        certificate, parts = self.model.certificate, []
        called = "called less severe" if certificate.order else "called wrong"
        for place, label in enumerate(self.labels):
            right, rows = counts[place, place], counts[place].sum()
            if not rows:
                continue
            text = f"{right} of {rows} {label!r} are found ({_percent(right, rows)})"
            if (wrong := self._wrong(place)) is not None:
                level = _promised(certificate[label].alpha)
                text += f", {wrong} are {called} ({_percent(wrong, rows)}{level})"
            parts.append(text)
        return parts

    def _wrong(self, place: int) -> int | None:
        """Rows of a class that got one they must not get; None without a bound."""
        label = self.labels[place]
        if all(label != promise.label for promise in self.model.promises):
            return None
        wrong = self.model.wrong(np.arange(len(self.labels)), label)
        return int(self.counts[None][place, wrong].sum())


def _promised(alpha: float | None) -> str:
    return "" if alpha is None else f"; at most {100.0 * alpha:.4g}% was promised"


def _percent(events: int, rows: int) -> str:
    return f"{100.0 * events / rows:.1f}%"


def _share(name: str, events: int | None, rows: int) -> dict[str, Any] | None:
    if events is None or not rows:
        return None
    low, high = exact_interval(events, rows)
    return {
        "rows": rows, name: events, "share": events / rows, "low": low, "high": high,
    }  # fmt: skip


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
