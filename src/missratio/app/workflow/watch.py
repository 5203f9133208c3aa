"""The rows of a labelled table that a model's promises are about."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from missratio._base.typing import BoolArray, FloatArray
from missratio._files import RegularFile, TableFile, written_whole
from missratio._files.numbers import canonical
from missratio.app.modelfile import GROUPS, TableModel
from missratio.app.tables import Encoder, check_names, flat
from missratio.evaluation import TypeIErrorMonitor
from missratio.exceptions import TableError, about_file

OTHER_COLUMNS = "Leave them out of the table."


class LabelsToComeError(TableError):
    """A table that can't be counted before all labels up to it are in."""


@dataclass(frozen=True)
class WatchedPromise:
    """A bound on the error of one class, or of one group of its rows.

    Parameters
    ----------
    label : object
        The class.
    group : object
        None where it is about all rows of the class.
    by_group : bool
        Whether the model makes promises to groups.
    alpha, delta : float
        What was promised, and with what part of δ.
    """

    label: Any
    group: Any
    by_group: bool
    alpha: float
    delta: float

    @property
    def key(self) -> Any:
        """What tells it from a model's other promises."""
        if not self.by_group:
            return self.label
        return "all rows" if self.group is None else self.group

    @property
    def name(self) -> str:
        """What to call it."""
        if not self.by_group:
            return repr(self.label)
        return "All rows" if self.group is None else f"Group {self.group!r}"


@dataclass(frozen=True, eq=False)
class WatchedRows:
    """Labelled rows that a promise is about.

    Parameters
    ----------
    wrong : ndarray of bool of shape (n_rows,)
    weights : ndarray of shape (n_rows,), or None
        What they stand for where others lost a value; None where all count the same.
    """

    wrong: BoolArray
    weights: FloatArray | None


def promises_of(model: TableModel) -> list[WatchedPromise]:
    """The promises that rows can be held against."""
    by_group = model.kind == GROUPS
    return [
        WatchedPromise(each.label, each.group, by_group, each.alpha, each.delta)
        for each in model.promises
    ]


def watched_rows(
    model: TableModel,
    source: TableFile,
    promises: Sequence[WatchedPromise],
) -> dict[WatchedPromise, WatchedRows]:
    """For each promise the rows that it is about.

    Parameters
    ----------
    model : TableModel
    source : TableFile
    promises : sequence of WatchedPromise
    """
    table, encoder = _read(model, source)
    with about_file(source.path):
        labels = _labels(model, encoder, table)
        X = encoder.encode(table, place=source.place)
    groups = None
    if model.group_column is not None:
        groups = encoder.cells.texts(flat(table.column(model.group_column))).to_pylist()
    codes = model.decide(X, groups).codes if len(X) else np.zeros(0, dtype=np.intp)
    found = {}
    for promise in promises:
        own = canonical(promise.label)
        mine = np.array([label == own for label in labels], dtype=bool)
        if groups is not None and promise.group is not None:
            mine &= np.array(
                [group == promise.group for group in model.members(groups)]
            )
        found[promise] = WatchedRows(
            model.wrong(codes[mine], promise.label),
            _weights(model, promise.label, X[mine], source.path),
        )
    return found


def _read(model: TableModel, source: TableFile) -> tuple[Any, Encoder]:
    """The columns that there have to be, and the encoder of the model's own."""
    source.check_header()
    beside = {"the target": model.target}
    if model.group_column is not None:
        beside["the column of groups"] = model.group_column
    for what, name in beside.items():
        check_names(source, what, [name])
    encoder = model.encoder.with_marks(source.marks)
    with about_file(source.path):
        allowed = [*beside.values(), *model.dropped]
        encoder.check_columns(source.names, allowed, OTHER_COLUMNS)
        needed = dict.fromkeys([*encoder.names, *beside.values()])
        return source.read(list(needed)), encoder


def _labels(model: TableModel, encoder: Encoder, table: Any) -> list[str]:
    """The label of each row."""
    rest = getattr(model, "rest", ())
    known = {canonical(label) for label in (*model.classes_.tolist(), *rest)}
    texts = encoder.cells.texts(flat(table.column(model.target))).to_pylist()
    if lost := texts.count(None):
        raise LabelsToComeError(
            f"{lost} row(s) have no label in {model.target!r}. The table is held back: "
            "none of it is counted before all its labels are in, and later tables wait "
            "for it. Run it again then. Rows that will never get a label may be left "
            "out if that has nothing to do with what the model said of them."
        )
    found = [canonical(text) for text in texts]
    strange = sorted(set(found) - known)
    if strange:
        raise TableError(
            f"The labels must be {sorted(known)}: {strange[0]!r} is none of them."
        )
    return found


def _weights(
    model: TableModel, label: Any, X: FloatArray, file: Path
) -> FloatArray | None:
    """What rows of a class stand for; None where all count the same."""
    if not len(X):
        return None
    try:
        weights: FloatArray | None = model.classifier.row_weights(
            model.named(X), np.full(len(X), label)
        )
    except ValueError as error:
        raise TableError(
            f"{file}: rows of {label!r} have missing values, and the model has no φ to "
            "weight the others with. The promise is about complete rows: complete "
            "them, such as by looking values up."
        ) from error
    return weights


FORMAT = 4

Monitors = dict[WatchedPromise, TypeIErrorMonitor]


@dataclass(frozen=True, eq=False)
class Watched:
    """What a run has found.

    Parameters
    ----------
    monitors : dict from WatchedPromise to TypeIErrorMonitor
        One for each bounded class, or for each group.
    new_rows : int
        Rows that were counted by this run, as often as promises are about them.
    seen_before : bool
        Whether the table was counted by an earlier run, and so not again.
    """

    monitors: Monitors
    new_rows: int
    seen_before: bool

    @property
    def alarm(self) -> bool:
        """Whether some error has been found to exceed what was promised."""
        return any(monitor.alarm for monitor in self.monitors.values())

    @property
    def words(self) -> list[str]:
        """What was found, a sentence or two for each promise."""
        if len(self.monitors) == 1:
            return [monitor.summary() for monitor in self.monitors.values()]
        return [
            f"{promise.name}: {monitor.summary()}"
            for promise, monitor in self.monitors.items()
        ]


def watch_table(
    model: TableModel,
    model_file: Path,
    source: TableFile,
    state: Path,
) -> Watched:
    """Count the rows that promises are about of a labelled table, once each table.

    A table without all its labels is held back, as are those that come after it: none
    of its rows are counted, and the state keeps its name.

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
    promises = promises_of(model)
    if not promises:
        raise TableError(
            f"{model_file} promises nothing that could be watched: no group has a "
            "threshold. Fit it with more rows, or at higher levels."
        )
    monitors, tables, held = _read_state(state, model_digest, promises)
    digest = source.file.sha256()
    if digest in tables:
        return Watched(monitors, 0, True)

    def write() -> None:
        content = {
            "format": FORMAT,
            "model_sha256": model_digest,
            "tables": tables,
            "held": held,
            "monitors": [monitor.to_dict() for monitor in monitors.values()],
        }
        with written_whole(state, force=True) as draft:
            draft.write_text(json.dumps(content), encoding="utf-8")

    # Tables count in the order in which they came, each when all its labels are in:
    # wrong rows whose labels come first would look like a higher error.
    name, new_rows = str(source.path.resolve()), 0
    try:
        found = watched_rows(model, source, promises)
        if held and held[0] != name:
            raise LabelsToComeError(
                f"{source.path} is held back: {held[0]}, which came before it, still "
                "lacks labels. Run that again when they are in, and this one then."
            )
    except LabelsToComeError:
        if name not in held:
            held.append(name)
            write()
        raise
    for promise, rows in found.items():
        new_rows += len(rows.wrong)
        if len(rows.wrong):
            monitors[promise].update(rows.wrong, rows.weights)
    tables.append(digest)
    del held[:1]
    write()
    return Watched(monitors, new_rows, False)


def _read_state(
    state: Path, model_digest: str, promises: list[WatchedPromise]
) -> tuple[Monitors, list[str], list[str]]:
    if not state.exists():
        new = {each: TypeIErrorMonitor(each.alpha, each.delta) for each in promises}
        return new, [], []
    known = []
    try:
        content = json.loads(RegularFile.at(state).path.read_text(encoding="utf-8"))
        owner, version = content["model_sha256"], int(content["format"])
        if version == FORMAT:
            known = [TypeIErrorMonitor.from_dict(each) for each in content["monitors"]]
        tables, held = (
            [str(each) for each in content.get(name, ())] for name in ("tables", "held")
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise TableError(
            f"{state} is damaged, or not what `missratio watch` writes. Restore it, or "
            "name another file by --state, in which counts begin anew."
        ) from error
    if version != FORMAT:
        raise TableError(
            f"{state} was written by another version of missratio, which bets "
            "otherwise: it can't be continued. Name another file by --state, in which "
            "counts begin anew."
        )
    same = [(m.alpha, m.delta) for m in known] == [
        (each.alpha, each.delta) for each in promises
    ]
    if owner != model_digest or not same:
        raise TableError(
            f"{state} is about another model. Name another file by --state: each model "
            "has a state of its own."
        )
    return dict(zip(promises, known, strict=True)), tables, held


def facts_of(watched: Watched) -> dict[str, Any]:
    """What was found, as plain data.

    Those of one promise as such; those of several under `classes`, by label, or under
    `groups`.
    """
    run = {
        "alarm": watched.alarm,
        "new_rows": watched.new_rows,
        "seen_before": watched.seen_before,
    }
    promises = list(watched.monitors)
    found = {
        str(promise.key): _monitor_facts(monitor)
        for promise, monitor in watched.monitors.items()
    }
    if len(found) == 1 and not promises[0].by_group:
        return {**next(iter(found.values())), **run}
    return {**run, ("groups" if promises[0].by_group else "classes"): found}


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
