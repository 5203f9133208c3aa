"""Labels and scores of a table's rows, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from missratio._files import (
    TableFile,
    check_writable,
    is_text,
    kind_of,
    written_whole,
)
from missratio._files.numbers import without_formula
from missratio._hints import listed
from missratio._typing import BoolArray, FloatArray
from missratio.app.modelfile import TableModel
from missratio.app.tables import check_names
from missratio.exceptions import TableError, about_file

LABEL, SCORE, ERROR = "label", "score", "standard_error"


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
    """

    rows: int = 0
    other: int = 0
    unscored: int = 0

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
        A CSV or Parquet file: the columns kept; `label`; and `score`, null for a row
        that can't be scored.
    options : PredictOptions
    tick : callable
        Told how many rows were written.
    """
    keep, force = list(options.keep), options.force
    check_writable(out, force=force, inputs=[source.path])
    _check_output(out, keep)
    source.check_header()
    check_names(source, "--keep", keep)
    check_names(source, "--drop", options.drop)
    encoder = model.encoder.with_marks(source.marks)
    allowed = [model.target, *model.dropped, *keep, *options.drop]
    with about_file(source.path):
        encoder.check_columns(source.names, allowed)
    if options.standard_errors and model.covariance is None:
        raise TableError(
            "The model has no standard errors. Fit it with --standard-errors."
        )
    needed = list(dict.fromkeys([*keep, *encoder.names]))
    escapes, done = options.escape_formulas and kind_of(out) == "csv", Predicted()
    with written_whole(out, force=force) as draft, _Writer(draft) as writer:
        for batch in filter(len, source.batches(needed)):
            with about_file(source.path):
                X = encoder.encode(batch, done.rows)
            scores, above = model.score(X)
            output = _output(model, batch.select(keep), scores, above)
            if options.standard_errors:
                output = _with_errors(output, model.standard_errors(X))
            writer.write(_escaped(output) if escapes else output)
            done.add(scores, above)
            tick(len(batch))
        if not done.rows:
            raise TableError(f"{source.path} has a header and no rows.")
    return done


def _check_output(out: Path, keep: Sequence[str]) -> None:
    if out.suffix.lower() not in (".csv", ".parquet"):
        raise TableError(
            f"Predictions are written as .csv or .parquet: got {out.name!r}."
        )
    taken = [name for name in keep if name in (LABEL, SCORE, ERROR)]
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


class _Writer:
    """Record batches to a CSV or Parquet file, which is opened by the first."""

    def __init__(self, path: Path) -> None:
        self._path, self._kind = path, kind_of(path)
        self._writer: Any = None

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, batch: Any) -> None:
        if self._writer is None:
            self._writer = self._open(batch.schema)
        self._writer.write_batch(batch)

    def _open(self, schema: Any) -> Any:
        if self._kind == "csv":
            from pyarrow import csv

            options = csv.WriteOptions(quoting_style="needed")
            return csv.CSVWriter(self._path, schema, write_options=options)
        from pyarrow import parquet

        return parquet.ParquetWriter(
            self._path, schema, compression="zstd", write_page_checksum=True
        )
