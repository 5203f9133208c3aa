"""Whether a model's promises have been kept since."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from missratio._base.typing import BoolArray, FloatArray
from missratio._files import RegularFile, TableFile, written_whole
from missratio._files.numbers import canonical
from missratio.app.modelfile import FrameModel, MulticlassTableModel, TableModel
from missratio.app.tables import check_names
from missratio.classifier import Certificate, MulticlassCertificate
from missratio.evaluation import TypeIErrorMonitor
from missratio.exceptions import TableError, about_file

FORMAT = 2


@dataclass(frozen=True, eq=False)
class Watched:
    """What a run has found.

    Parameters
    ----------
    monitors : dict from label to TypeIErrorMonitor
        One for each bounded class.
    new_rows : int
        Rows of bounded classes that were counted by this run.
    seen_before : bool
        Whether the table was counted by an earlier run, and so not again.
    """

    monitors: dict[Any, TypeIErrorMonitor]
    new_rows: int
    seen_before: bool

    @property
    def alarm(self) -> bool:
        """Whether some error has been found to exceed what was promised."""
        return any(monitor.alarm for monitor in self.monitors.values())

    @property
    def words(self) -> list[str]:
        """What was found, a sentence or two for each bounded class."""
        if len(self.monitors) == 1:
            return [monitor.summary() for monitor in self.monitors.values()]
        return [
            f"{label!r}: {monitor.summary()}"
            for label, monitor in self.monitors.items()
        ]


def watch_table(
    model: FrameModel, model_file: Path, source: TableFile, state: Path
) -> Watched:
    """Count the bounded classes' rows of a labelled table, once each table.

    Parameters
    ----------
    model : FrameModel
    model_file : Path
        The file that it was read from.
    source : TableFile
        With the model's columns and its target.
    state : Path
        What was found so far; made by the first run.
    """
    model_digest = RegularFile.at(model_file).sha256()
    monitors, tables = _read_state(state, model_digest, model)
    digest = source.file.sha256()
    if digest in tables:
        return Watched(monitors, 0, True)
    new_rows = 0
    for label, (wrong, weights) in _labelled(model, source).items():
        new_rows += len(wrong)
        if len(wrong):
            monitors[label].update(wrong, weights)
    content = {
        "format": FORMAT,
        "model_sha256": model_digest,
        "tables": [*tables, digest],
        "monitors": [monitor.to_dict() for monitor in monitors.values()],
    }
    with written_whole(state, force=True) as draft:
        draft.write_text(json.dumps(content), encoding="utf-8")
    return Watched(monitors, new_rows, False)


def _certificates(model: FrameModel) -> tuple[Certificate, ...]:
    """The promise about each bounded class."""
    found = model.certificate
    if isinstance(found, MulticlassCertificate):
        return found.certificates
    return (found,)


def _read_state(
    state: Path, model_digest: str, model: FrameModel
) -> tuple[dict[Any, TypeIErrorMonitor], list[str]]:
    promised = {each.controlled_class: each for each in _certificates(model)}
    if not state.exists():
        fresh = {
            label: TypeIErrorMonitor.from_certificate(each)
            for label, each in promised.items()
        }
        return fresh, []
    try:
        content = json.loads(RegularFile.at(state).path.read_text(encoding="utf-8"))
        owner, tables = content["model_sha256"], list(content["tables"])
        sound = content["format"] == FORMAT
        known = [TypeIErrorMonitor.from_dict(each) for each in content["monitors"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise TableError(
            f"{state} is not what `missratio watch` writes: {error}. Name another file "
            "by --state."
        ) from error
    same = [(m.alpha, m.delta) for m in known] == [
        (each.alpha, each.delta) for each in promised.values()
    ]
    if not sound or owner != model_digest or not same:
        raise TableError(
            f"{state} is about another model. Name another file by --state: each model "
            "has a state of its own."
        )
    return dict(zip(promised, known, strict=True)), tables


def _labelled(
    model: FrameModel, source: TableFile
) -> dict[Any, tuple[BoolArray, FloatArray | None]]:
    """For each bounded class which of its rows are wrong, and weights."""
    source.check_header()
    check_names(source, "the target", [model.target])
    encoder = model.encoder.with_marks(source.marks)
    rest = model.rest if isinstance(model, TableModel) else ()
    known = {canonical(label) for label in (*model.classes_.tolist(), *rest)}
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
    result = {}
    for certificate in _certificates(model):
        own = canonical(certificate.controlled_class)
        mine = X[np.array([label == own for label in found], dtype=bool)]
        wrong = _wrong(model, certificate.controlled_class, mine)
        weights = _weights(model, certificate.controlled_class, mine, source.path)
        result[certificate.controlled_class] = wrong, weights
    return result


def _wrong(model: FrameModel, label: Any, X: FloatArray) -> BoolArray:
    """Which rows of a bounded class get a class that they must not get."""
    if isinstance(model, MulticlassTableModel):
        return model.wrong(model.decide(X)[0], label)
    assert isinstance(model, TableModel)
    return model.score(X)[1]


def _weights(
    model: FrameModel, label: Any, X: FloatArray, file: Path
) -> FloatArray | None:
    """What rows of a class stand for; None where all count the same."""
    try:
        weights: FloatArray | None = model.classifier.row_weights(
            X, np.full(len(X), label)
        )
    except ValueError as error:
        raise TableError(
            f"{file}: rows of {label!r} have missing values, and the model has no φ to "
            "weight the others with. The promise is about complete rows: complete "
            "them, such as by looking values up."
        ) from error
    return weights


def facts_of(watched: Watched) -> dict[str, Any]:
    """What was found, as plain data.

    Those of one class as such; those of several under `classes`, by label.

    Parameters
    ----------
    watched : Watched
    """
    run = {
        "alarm": watched.alarm,
        "new_rows": watched.new_rows,
        "seen_before": watched.seen_before,
    }
    found = {str(k): _monitor_facts(m) for k, m in watched.monitors.items()}
    if len(found) == 1:
        return {**next(iter(found.values())), **run}
    return {**run, "classes": found}


def _monitor_facts(monitor: TypeIErrorMonitor) -> dict[str, Any]:
    low, high = monitor.bound
    return {
        "alarm": monitor.alarm,
        "alarm_row": monitor.alarm_row,
        "rows": monitor.n_rows,
        "alpha": monitor.alpha,
        "delta": monitor.delta,
        "error": monitor.error if monitor.n_rows else None,
        "low": low,
        "high": high,
    }
