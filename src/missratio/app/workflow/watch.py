"""Whether a model has kept its promises since, by tables with their labels."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from missratio._base.blocks import rows_with_nan
from missratio._base.hints import shown
from missratio._base.typing import BoolArray, FloatArray
from missratio._files import TableFile, open_table, write_whole
from missratio._files.cells import canonical
from missratio._files.files import RegularFile
from missratio.app.modelfile import GROUPS, TableModel
from missratio.app.modelfile.models import TablePromise
from missratio.app.options import ALARM, CommandOutcome, Listener, WatchOptions
from missratio.app.tables.columns import check_names
from missratio.evaluation import TypeIErrorMonitor
from missratio.exceptions import TableError, UnexplainedMissingError, about_file

FORMAT = 6
# A state of a hundred promises; read, it may take forty times as much memory.
_MOST_BYTES = 12 * 2**20


class LabelsToComeError(TableError):
    """A table that can't be counted before all labels up to it are in."""


def watch_table(
    model: TableModel, options: WatchOptions, progress: Listener
) -> CommandOutcome:
    """Count the rows that promises are about of a labelled table, once each table.

    A table without all its labels is held back, as are those that come after it: none
    of its rows are counted, and the state keeps its name. Runs at the same time wait
    for each other, so that no table is lost.
    """
    progress.step(f"Reading {options.labelled}")
    state, promises = options.counts, model.promises
    if not promises:
        raise TableError(
            f"{options.model_file} promises nothing that could be watched: no group "
            "has a threshold. Fit it with more rows, or at higher levels."
        )
    with _alone(state):
        # 1. What was counted so far.
        source = open_table(options.labelled, **options.how)
        model_digest = RegularFile.at(options.model_file).sha256()
        monitors, tables, held = _read_state(state, model_digest, promises)

        def write() -> None:
            content = {
                "format": FORMAT,
                "model_sha256": model_digest,
                "tables": tables,
                "held": held,
                "monitors": [monitor.to_dict() for monitor in monitors.values()],
            }
            sealed = {**content, "sha256": _checksum(content)}
            write_whole(state, json.dumps(sealed))

        # 2. Tables count in the order in which they came, each when all its labels are
        # in: wrong rows whose labels come first would look like a higher error.
        name, digest = str(source.path.resolve()), source.file.sha256()
        new_rows = blanks = 0
        if not (seen_before := digest in tables):
            try:
                rows, blanks = _rows(model, source, options.skip_unlabelled)
                if held and held[0] != name:
                    raise LabelsToComeError(
                        f"{source.path} is held back: {held[0]}, which came before it, "
                        "still lacks labels. Run that again first, when they are in."
                    )
            except LabelsToComeError:
                if name not in held:
                    held.append(name)
                    write()
                raise
            for promise, (wrong, weights) in rows.items():
                new_rows += len(wrong)
                monitors[promise].update(wrong, weights)
            tables.append(digest)
            del held[:1]
            write()
    # 3. What there is to say, of one promise as such, and of several by name.
    by_group, alone = model.kind == GROUPS, len(monitors) == 1
    lines, watched = [], {}
    if seen_before:
        lines.append(f"{source.path} was counted before, and isn't counted again.")
    for promise, monitor in monitors.items():
        key = promise.group if by_group else promise.label
        name = f"{'Group ' * by_group}{key!r}: "
        lines.append(name * (not alone) + monitor.summary())
        low, high = monitor.bound
        watched[str(key)] = {
            "alarm": monitor.alarm,
            "alarm_row": monitor.alarm_row,
            "rows": monitor.n_rows,
            "alpha": monitor.alpha,
            "delta": monitor.delta,
            "error": monitor.error if monitor.n_rows else None,
            "low": low,
            "high": high,
        }
    if blanks:
        lines.append(
            f"{blanks} of the {new_rows} new rows have blanks, and count as right, "
            "since the model gives them the controlled class. So an alarm is true; "
            "without one, complete rows may still fare worse."
        )
    alarm = any(monitor.alarm for monitor in monitors.values())
    facts: dict[str, Any] = {
        "alarm": alarm,
        "new_rows": new_rows,
        "seen_before": seen_before,
        "blanks": blanks,
    }
    if alone and not by_group:
        facts = watched.popitem()[1] | facts
    else:
        facts["groups" if by_group else "classes"] = watched
    return CommandOutcome(facts, lines, ALARM if alarm else 0)


@contextmanager
def _alone(state: Path) -> Iterator[None]:
    """Hold the folder of a state, from before it is read until it is written."""
    try:
        import fcntl
    except ImportError:
        # Windows can't hold a folder: there runs must not overlap.
        yield
        return
    folder = os.open(state.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _rows(
    model: TableModel, source: TableFile, skip_unlabelled: bool
) -> tuple[dict[TablePromise, tuple[BoolArray, FloatArray | None]], int]:
    """Of the rows that each promise is about, which are wrong, and what they weigh.

    And how many have blanks that no φ accounts for. Where the model calls them right,
    rows as they come have no more errors than complete ones would, and are counted.
    """
    source.check_header()
    beside = [model.target, *([model.group_column] if model.group_column else [])]
    for what, name in zip(("the target", "the column of groups"), beside, strict=False):
        check_names(source, what, [name])
    encoder = model.encoder.with_marks(source.marks)
    known = {canonical(label) for label in (*model.labels, *model.rest)}
    with about_file(source.path):
        encoder.check_columns(
            source.names, [*beside, *model.dropped], "Leave them out of the table."
        )
        table = source.read(list(dict.fromkeys([*encoder.names, *beside])))
        texts = encoder.texts(table, model.target)
        labels = [canonical(text) for text in texts if text is not None]
        if lost := len(texts) - len(labels):
            if not skip_unlabelled:
                raise LabelsToComeError(
                    f"{lost} row(s) have no label in {model.target!r}. The table is "
                    "held back until all its labels are in, and later tables wait for "
                    "it. If they will never get one, and the model's word isn't why, "
                    "add --skip-unlabelled."
                )
            if not labels:
                return dict.fromkeys(model.promises, (np.zeros(0, bool), None)), 0
            table = table.take([k for k, text in enumerate(texts) if text is not None])
        if strange := sorted(set(labels) - known):
            raise TableError(
                f"The labels must be {sorted(known)}: {strange[0]!r} is none of them."
            )
        X = encoder.encode(table, place=source.place)
    by = model.group_column
    groups = encoder.texts(table, by) if by else [None] * len(X)
    members = model.members(groups)
    codes, rows, blanks = model.decide(X, groups).codes, {}, 0
    for promise in model.promises:
        mine = np.isin(labels, canonical(promise.label))
        # A promise without a group is about all rows of a class.
        if promise.group is not None:
            mine &= [group == promise.group for group in members]
        weights: FloatArray | None = None
        wrong = model.wrong(codes[mine], promise.label)
        if mine.any():
            named, same = model.named(X[mine]), np.full(mine.sum(), promise.label)
            try:
                # None where all count the same.
                weights = model.classifier.row_weights(named, same)
            except UnexplainedMissingError as error:
                holed = rows_with_nan(X[mine])
                if wrong[holed].any():
                    raise TableError(
                        f"{source.path}: rows of {promise.label!r} have blanks, and "
                        "the promise is about complete rows. Complete them, such as by "
                        "looking values up."
                    ) from error
                blanks += int(holed.sum())
        rows[promise] = wrong, weights
    return rows, blanks


def _checksum(content: dict[str, Any]) -> str:
    """Of a state, whatever the order of its entries."""
    text = json.dumps(content, sort_keys=True).encode()
    return hashlib.sha256(text).hexdigest()


def _read_state(
    state: Path, model_digest: str, promises: list[TablePromise]
) -> tuple[dict[TablePromise, TypeIErrorMonitor], list[str], list[str]]:
    if not state.exists():
        new = {each: TypeIErrorMonitor(each.alpha, each.delta) for each in promises}
        return new, [], []
    try:
        content = json.loads(RegularFile.at(state).read(_MOST_BYTES))
        if content["format"] != FORMAT:
            raise ValueError("it was written by another version, which bets otherwise")
        if content.pop("sha256") != _checksum(content):
            raise ValueError("its checksum is another")
        known = [TypeIErrorMonitor.from_dict(each) for each in content["monitors"]]
        owner, *lists = (content[k] for k in ("model_sha256", "tables", "held"))
        for each in lists:
            texts = {text for text in each if isinstance(text, str)}
            if not isinstance(each, list) or len(texts) < len(each):
                raise ValueError(f"{shown(each)} is no list of different texts")
        tables, held = lists
        if not tables and any(monitor.n_rows for monitor in known):
            raise ValueError("it has rows and no table")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise TableError(
            f"{state} is damaged, or not what `missratio watch` writes ({error}). "
            "Restore it, or name another file by --state, in which counts begin anew."
        ) from error
    levels, promised = ([(x.alpha, x.delta) for x in xs] for xs in (known, promises))
    if owner != model_digest or levels != promised:
        raise TableError(
            f"{state} is about another model. Name another file by --state: each model "
            "has a state of its own."
        )
    return dict(zip(promises, known, strict=True)), tables, held
