"""Whether a model's promise has been kept since."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from missratio._base.typing import BoolArray, FloatArray
from missratio._files import RegularFile, TableFile, written_whole
from missratio._files.numbers import canonical
from missratio.app.modelfile import TableModel
from missratio.app.tables import check_names
from missratio.evaluation import TypeIErrorMonitor
from missratio.exceptions import TableError, about_file

FORMAT = 1


@dataclass(frozen=True, eq=False)
class Watched:
    """What a run has found.

    Parameters
    ----------
    monitor : TypeIErrorMonitor
    new_rows : int
        Rows of the controlled class that were counted by this run.
    seen_before : bool
        Whether the table was counted by an earlier run, and so not again.
    """

    monitor: TypeIErrorMonitor
    new_rows: int
    seen_before: bool


def watch_table(
    model: TableModel, model_file: Path, source: TableFile, state: Path
) -> Watched:
    """Count the controlled class's rows of a labelled table, once each table.

    Parameters
    ----------
    model : TableModel
    model_file : Path
        The file that it was read from.
    source : TableFile
        With the model's columns and its target.
    state : Path
        What was found so far; made by the first run.
    """
    model_digest = RegularFile.at(model_file).sha256()
    monitor, tables = _read_state(state, model_digest, model)
    digest = source.file.sha256()
    if digest in tables:
        return Watched(monitor, 0, True)
    wrong, weights = _labelled(model, source)
    if len(wrong):
        monitor.update(wrong, weights)
    content = {
        "format": FORMAT,
        "model_sha256": model_digest,
        "tables": [*tables, digest],
        "monitor": monitor.to_dict(),
    }
    with written_whole(state, force=True) as draft:
        draft.write_text(json.dumps(content), encoding="utf-8")
    return Watched(monitor, len(wrong), False)


def _read_state(
    state: Path, model_digest: str, model: TableModel
) -> tuple[TypeIErrorMonitor, list[str]]:
    if not state.exists():
        return TypeIErrorMonitor.from_certificate(model.certificate), []
    try:
        content = json.loads(RegularFile.at(state).path.read_text(encoding="utf-8"))
        owner, tables = content["model_sha256"], list(content["tables"])
        sound = content["format"] == FORMAT
        monitor = TypeIErrorMonitor.from_dict(content["monitor"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise TableError(
            f"{state} is not what `missratio watch` writes: {error}. Name another file "
            "by --state."
        ) from error
    if not sound or owner != model_digest:
        raise TableError(
            f"{state} is about another model. Name another file by --state: each model "
            "has a state of its own."
        )
    return monitor, tables


def _labelled(
    model: TableModel, source: TableFile
) -> tuple[BoolArray, FloatArray | None]:
    """Which rows of the controlled class are classified as the other, and weights."""
    source.check_header()
    check_names(source, "the target", [model.target])
    encoder = model.encoder.with_marks(source.marks)
    controlled = model.certificate.controlled_class
    known = {canonical(label) for label in (*model.classes_.tolist(), *model.rest)}
    with about_file(source.path):
        encoder.check_columns(source.names, [model.target, *model.dropped])
        table = source.read([*encoder.names, model.target])
        labels = encoder.cells.texts(table.column(model.target).combine_chunks())
        found = [canonical(label) for label in labels.to_pylist()]
        strange = sorted(set(found) - known)
        if strange:
            raise TableError(
                f"The labels must be {sorted(known)}: {strange[0]!r} is none of them."
            )
        X = encoder.encode(table, place=source.place)
    mine = np.array([label == canonical(controlled) for label in found], dtype=bool)
    _, above = model.score(X[mine])
    try:
        weights = model.classifier.row_weights(X[mine], np.full(mine.sum(), controlled))
    except ValueError as error:
        raise TableError(
            f"{source.path}: rows of {controlled!r} have missing values, and the model "
            "has no φ to weight the others with. The promise is about complete rows: "
            "complete them, such as by looking values up."
        ) from error
    return above, weights


def facts_of(watched: Watched) -> dict[str, Any]:
    """What was found, as plain data."""
    monitor = watched.monitor
    low, high = monitor.bound
    return {
        "alarm": monitor.alarm,
        "alarm_row": monitor.alarm_row,
        "rows": monitor.n_rows,
        "new_rows": watched.new_rows,
        "seen_before": watched.seen_before,
        "alpha": monitor.alpha,
        "delta": monitor.delta,
        "error": monitor.error if monitor.n_rows else None,
        "low": low,
        "high": high,
    }
