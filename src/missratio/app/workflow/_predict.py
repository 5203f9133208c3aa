"""Labels and scores of a table's rows, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from missratio._base.hints import listed
from missratio._base.typing import BoolArray, FloatArray
from missratio._files import (
    TableFile,
    check_writable,
    is_text,
    kind_of,
    written_whole,
)
from missratio._files.numbers import without_formula
from missratio.app.modelfile import TableModel
from missratio.app.tables import check_names, flat, named_columns
from missratio.app.workflow._measured import Measured
from missratio.app.workflow._reasons import reasons
from missratio.app.workflow._writers import BatchWriter
from missratio.exceptions import TableError, about_file

LABEL, SCORE, ERROR, REASON = "label", "score", "standard_error", "reason"
SUFFIXES = (".csv", ".parquet", ".xlsx")


@dataclass
class Predicted:
    """What was found in a table.

    Parameters
    ----------
    rows : int
    other : int
        Rows given to the class that isn't controlled.
    unscored : int
        Rows that couldn't be scored and got the controlled class.
    measured : Measured or None
        The errors, where the table has labels.
    """

    rows: int = 0
    other: int = 0
    unscored: int = 0
    measured: Measured | None = None

    def add(self, scores: FloatArray, above: BoolArray) -> None:
        """Count some more rows."""
        self.rows += len(scores)
        self.other += int(above.sum())
        self.unscored += int((scores == -np.inf).sum())


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
    """Write a label and a score for each row, in the order of the rows.

    Only a batch of rows is in memory at a time.

    Parameters
    ----------
    model : TableModel
    source : TableFile
        With the model's columns, in any order. The target may be there.
    out : Path
        A CSV, Parquet or Excel file: the columns kept; `label`; `score`, null for a row
        that can't be scored; and `reason`, why it can't.
    options : PredictOptions
    tick : callable
        Told how many rows were written.
    """
    keep, force = named_columns(source, options.keep), options.force
    drop = named_columns(source, options.drop)
    check_writable(out, force=force, inputs=[source.path])
    _check_output(out, keep)
    source.check_header()
    check_names(source, "--keep", keep)
    check_names(source, "--drop", drop)
    encoder = model.encoder.with_marks(source.marks)
    allowed = [model.target, *model.dropped, *keep, *drop]
    with about_file(source.path):
        encoder.check_columns(source.names, allowed)
    if options.standard_errors and model.covariance is None:
        raise TableError(
            "The model has no standard errors. Fit it with --standard-errors."
        )
    labelled = model.target in source.names and model.target not in drop
    needed = list(dict.fromkeys([*keep, *encoder.names, *[model.target] * labelled]))
    escapes = options.escape_formulas and kind_of(out) == "csv"
    done = Predicted(measured=Measured() if labelled else None)
    with written_whole(out, force=force) as draft, BatchWriter(draft) as writer:
        for batch in filter(len, source.batches(needed)):
            with about_file(source.path):
                X = encoder.encode(batch, done.rows, place=source.place)
            scores, above = model.score(X)
            output = _output(model, batch.select(keep), scores, above)
            why = reasons(encoder, batch, X, scores == -np.inf)
            if options.standard_errors:
                output = _with_errors(output, model.standard_errors(X))
            output = _with_reasons(output, why)
            writer.write(_escaped(output) if escapes else output)
            done.add(scores, above)
            if done.measured is not None:
                labels = encoder.cells.texts(flat(batch.column(model.target)))
                done.measured.add(model, labels.to_pylist(), above)
            tick(len(batch))
        if not done.rows:
            raise TableError(f"{source.path} has a header and no rows.")
    return done


def _check_output(out: Path, keep: Sequence[str]) -> None:
    if out.suffix.lower() not in SUFFIXES:
        raise TableError(
            f"Predictions are written as .csv, .parquet or .xlsx: got {out.name!r}."
        )
    taken = [name for name in keep if name in (LABEL, SCORE, ERROR, REASON)]
    if taken:
        raise TableError(
            f"--keep {listed(taken)}: the output has such a column already."
        )


def _output(model: TableModel, kept: Any, scores: FloatArray, above: BoolArray) -> Any:
    import pyarrow

    controlled = model.certificate.controlled_class
    labels = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array(above.astype(np.int8)),
        pyarrow.array([controlled, model.other_class]),
    )
    arrays = [
        *kept.columns,
        labels.cast(labels.type.value_type),
        pyarrow.array(scores, mask=scores == -np.inf),
    ]
    return pyarrow.RecordBatch.from_arrays(
        arrays, names=[*kept.schema.names, LABEL, SCORE]
    )


def _with_errors(output: Any, errors: FloatArray) -> Any:
    import pyarrow

    return output.append_column(ERROR, pyarrow.array(errors, from_pandas=True))


def _with_reasons(output: Any, why: Any) -> Any:
    import pyarrow

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
