"""Labels and scores of a table's rows, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from missratio._base.hints import listed
from missratio._base.typing import FloatArray
from missratio._files import (
    TableFile,
    check_writable,
    is_text,
    kind_of,
    written_whole,
)
from missratio._files.numbers import without_formula
from missratio.app.modelfile import FrameModel, GroupedTableModel, TableModel
from missratio.app.tables import Encoder, check_names, flat, named_columns
from missratio.app.workflow._labelling import Labelled, Labelling, labelling_of
from missratio.app.workflow._measured import MeasuredErrors
from missratio.app.workflow._reasons import reasons
from missratio.app.workflow._writers import BatchWriter
from missratio.exceptions import TableError, about_file

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
