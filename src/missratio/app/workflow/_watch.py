"""Whether a model's promises have been kept since."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from missratio._base.typing import FloatArray
from missratio._files import RegularFile, TableFile, written_whole
from missratio.app.modelfile import FrameModel
from missratio.app.workflow._watch_rows import (
    LabelDraw,
    LabelsToComeError,
    WatchedPromise,
    promises_of,
    watched_rows,
)
from missratio.evaluation import TypeIErrorMonitor
from missratio.exceptions import TableError

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
    model: FrameModel,
    model_file: Path,
    source: TableFile,
    state: Path,
    draw: LabelDraw | None = None,
) -> Watched:
    """Count the rows that promises are about of a labelled table, once each table.

    A table without all its labels is held back, as are those that come after it: none
    of its rows are counted, and the state keeps its name.

    Parameters
    ----------
    model : FrameModel
    model_file : Path
        The file that it was read from.
    source : TableFile
        With the model's columns and its target.
    state : Path
        What was found so far; made by the first run.
    draw : LabelDraw, optional
        How it was drawn which rows get a label, where not all have one.
    """
    model_digest = RegularFile.at(model_file).sha256()
    promises = promises_of(model)
    if not promises:
        raise TableError(
            f"{model_file} promises nothing that could be watched: no group has a "
            "threshold. Fit it with more rows, or at higher levels."
        )
    monitors, tables, held = _read_state(state, model_digest, promises, draw)
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
        found = watched_rows(model, source, promises, draw)
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
            inclusion = _checked_inclusion(rows.inclusion, monitors[promise], source)
            monitors[promise].update(rows.wrong, rows.weights, inclusion)
    tables.append(digest)
    del held[:1]
    write()
    return Watched(monitors, new_rows, False)


def _read_state(
    state: Path,
    model_digest: str,
    promises: list[WatchedPromise],
    draw: LabelDraw | None,
) -> tuple[Monitors, list[str], list[str]]:
    if not state.exists():
        return _new_monitors(promises, draw), [], []
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
    if draw is not None and not tables:
        # Tables without all labels were held back, before it was said that some are
        # drawn.
        return _new_monitors(promises, draw), [], []
    begun = known[0].least_inclusion
    if draw is not None and draw.least not in (None, begun):
        raise TableError(
            f"{state} was begun with --least-inclusion {begun:g}, and bets are made by "
            "it: it can't be changed. Leave it out, or begin another state by --state."
        )
    return dict(zip(promises, known, strict=True)), tables, held


def _new_monitors(promises: list[WatchedPromise], draw: LabelDraw | None) -> Monitors:
    least = 1.0 if draw is None else draw.needed_least()
    return {each: TypeIErrorMonitor(each.alpha, each.delta, least) for each in promises}


def _checked_inclusion(
    inclusion: FloatArray | None, monitor: TypeIErrorMonitor, source: TableFile
) -> FloatArray | None:
    """Probabilities that a monitor takes; refuse others in the words of a table."""
    if inclusion is None:
        return None
    least, found = monitor.least_inclusion, float(np.min(inclusion))
    if found < least:
        raise TableError(
            f"{source.path}: a row has an inclusion probability of {found:g}, below "
            f"the least of the design, {least:g}. Begin another state (--state) with "
            "--least-inclusion as low as the design goes."
        )
    return inclusion


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
