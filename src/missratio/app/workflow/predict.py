"""Labels and scores for the rows of a table, and the errors where it has labels."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missratio._base.blocks import any_by_row
from missratio._base.hints import listed
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio._files import open_table, written_whole
from missratio._files.cells import canonical, held_by, without_formula
from missratio._files.files import kind_of
from missratio._files.workbooks import SheetWriter
from missratio.app.modelfile import (
    GROUPS,
    SEVERAL_CLASSES,
    Decisions,
    TableModel,
    plain,
)
from missratio.app.options import CommandOutcome, Listener, PredictOptions
from missratio.app.tables.columns import Encoder, check_names, named_columns
from missratio.app.workflow.account import SHOWN, first_columns
from missratio.evaluation import exact_interval
from missratio.exceptions import TableError, about_file

TOO_RARE = "rows like it go missing too often for a certified score"
TOO_LARGE = "its values are too large for a score"
_LARGE = 1e150
LABEL, REASON = "label", "reason"


def predict_table(
    model: TableModel, options: PredictOptions, progress: Listener
) -> CommandOutcome:
    """Write a label and a score for each row, a batch of rows at a time.

    The table has the model's columns, in any order, and may have the target. Written
    are the columns kept; `label`; `score`, or one column of scores for each of several
    classes, null for a row that can't be scored; and `reason`, why it can't. Scores
    have nine significant digits: those after them depend on the machine.
    """
    # 1. The columns that the model needs, those to copy, labels and groups.
    source, out = open_table(options.data, **options.how), options.out
    progress.step(f"Predicting {options.data}", source.n_rows)
    keep, drop = (named_columns(source, each) for each in (options.keep, options.drop))
    if taken := [x for x in keep if x in {LABEL, REASON, *model.score_columns}]:
        raise TableError(
            f"--keep {listed(taken)}: the output has such a column already."
        )
    source.check_header()
    check_names(source, "--keep", keep)
    check_names(source, "--drop", drop)
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
    if model.group_column not in (None, *source.names):
        raise TableError(
            f"{source.path} has no column {model.group_column!r}: each group has a "
            "threshold of its own. Add that column."
        )
    target, by = (
        name if name in source.names and name not in drop else None
        for name in (model.target, model.group_column)
    )
    beside = [name for name in (target, by) if name is not None]
    columns = list(dict.fromkeys([*keep, *encoder.names, *beside]))
    # 2. Labels, scores and reasons, and what became of rows that have labels.
    counts, measured = Counter[Any](), MeasuredErrors(model) if target else None
    n_rows = unscored = without_threshold = 0
    observed = model.classifier.deployment == "as-observed"
    # Values further from those of the training table than these are from each other.
    low, high = model.training.ranges.T
    far, blank = np.zeros((2, len(low)), dtype=np.intp)
    writer, kind = None, kind_of(out)
    with ExitStack() as stack:
        draft = stack.enter_context(written_whole(out, force=options.force))
        for batch in filter(len, source.batches(columns)):
            with about_file(source.path):
                X = encoder.encode(batch, n_rows, place=source.place)
            groups = encoder.texts(batch, by) if by else None
            decisions = model.decide(X, groups)
            why = reasons(encoder, batch, X, decisions.unscored, blanks=observed)
            output = output_batch(model, batch.select(keep), decisions, why)
            if options.escape and kind == "csv":
                output = _escaped(output)
            if writer is None:
                writer = stack.enter_context(closing(_writer(draft, output.schema)))
            if kind == "excel":
                writer.write([column.to_pylist() for column in output.columns])
            else:
                writer.write_batch(output)
            counts.update(decisions.codes.tolist())
            n_rows += len(batch)
            values, span = X[:, : len(low)], high - low
            far += ((values < low - span) | (values > high + span)).sum(axis=0)
            blank += np.isnan(values).sum(axis=0)
            unscored += int(decisions.unscored.sum())
            without_threshold += len(decisions.notes)
            if measured is not None and target:
                measured.add(encoder.texts(batch, target), decisions.codes, groups)
            progress.tick(len(batch))
        if writer is None:
            raise TableError(f"{source.path} has a header and no rows.")
    # 3. What there is to say of them.
    called = {label: counts[code] for code, label in enumerate(model.labels)}
    facts: dict[str, Any] = {"predictions": str(out), "rows": n_rows}
    if model.kind == SEVERAL_CLASSES:
        facts["labels"] = plain(called)
        said = ": " + ", ".join(f"{n} {label!r}" for label, n in called.items())
    else:
        other, facts["other"] = model.other_class, called[model.other_class]
        said = f", {called[other]} of them {other!r} and {called[model.fallback]} "
        said += repr(model.fallback)
    if model.kind == GROUPS:
        facts["without_threshold"] = without_threshold
    facts |= {"unscored": unscored, "measured": measured and measured.facts()}
    lines = [f"{out}: {n_rows} rows{said}."]
    given = f"(see 'reason') and got {model.fallback!r}{model.fallback_words}."
    if unscored:
        lines.append(f"{unscored} can't be scored {given}")
    if without_threshold:
        lines.append(f"{without_threshold} are of groups without a threshold {given}")
    lines += [measured.words] if measured else []
    if far.any():
        names, worst = encoder.names, np.argsort(-far, kind="stable")
        worst = worst[far[worst] > 0]
        facts["far"] = {names[j]: int(far[j]) for j in worst}
        named = [
            f"{names[j]!r} ({far[j]}; there {low[j]:g} to {high[j]:g})" for j in worst
        ]
        lines.append(
            f"Warning: {far.sum()} values are far outside the range of the training "
            f"table: {first_columns(named)}. Are the units the same, and the codes for "
            "what is missing?"
        )
    # Blanks more or less frequent than in any class of the training table, by more than
    # four standard deviations of two samples.
    missing, rows = model.training.missing, model.training.rows
    names = encoder.names[: len(low)]
    lost = [[missing[k].get(name, 0) / n for name in names] for k, n in rows.items()]
    share, few = blank / n_rows, min(n_rows, *rows.values())
    usual = np.clip(share, np.min(lost, axis=0), np.max(lost, axis=0))
    spread = np.sqrt(np.maximum(usual * (1.0 - usual), 1.0 / few) * 2.0 / few)
    # A difference of less than a fiftieth changes no promise.
    unlike = abs(share - usual) > np.maximum(0.02, 4.0 * spread)
    if observed and unlike.any():
        facts["unlike"] = {names[j]: float(share[j]) for j in np.flatnonzero(unlike)}
        lines.append(
            "Warning: The promise is for rows with blanks like those of the training "
            f"table. Here {listed(facts['unlike'], SHOWN)} are blank more, or less, "
            "often: the error may be larger than promised."
        )
    return CommandOutcome(facts, lines)


def _writer(path: Path, schema: Any) -> Any:
    """What writes rows to a file, by its suffix: .csv, .parquet or .xlsx."""
    from pyarrow import csv, parquet

    kind = kind_of(path)
    if kind == "excel":
        return SheetWriter(path, "predictions", schema.names)
    if kind == "csv":
        options = csv.WriteOptions(quoting_style="needed")
        return csv.CSVWriter(path, schema, write_options=options)
    return parquet.ParquetWriter(
        path, schema, compression="zstd", write_page_checksum=True
    )


def reasons(
    encoder: Encoder,
    table: Any,
    X: FloatArray,
    unscored: BoolArray,
    *,
    blanks: bool = False,
) -> NDArray[Any]:
    """A sentence for each encoded row that can't be scored, None for the others.

    `blanks` says that the model takes rows in which numbers are missing.
    """
    why, rows = np.full(len(X), None, dtype=object), np.flatnonzero(unscored)
    parts: list[list[str]] = [[] for _ in rows]
    lost = np.isnan(X[rows])
    for column, places in zip(encoder.columns, encoder.places.values(), strict=True):
        gaps = np.flatnonzero(lost[:, places[:1]].any(axis=1))
        if blanks and column.levels is None:
            continue
        texts = [None] * len(gaps)
        if column.levels is not None and len(gaps):
            cells = table.column(column.name).take(rows[gaps])
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
    model: TableModel, kept: Any, decisions: Decisions, why: NDArray[Any]
) -> Any:
    """Columns that are kept, labels, scores and reasons."""
    import pyarrow

    for row, note in decisions.notes.items():
        why[row] = note if why[row] is None else f"{why[row]}; {note}"
    codes = pyarrow.array(decisions.codes.astype(np.int32))
    labels = pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(model.labels))
    columns = {LABEL: labels.cast(labels.type.value_type)}
    for name, scores in zip(model.score_columns, decisions.scores.T, strict=True):
        columns[name] = pyarrow.array(_significant(scores), mask=decisions.unscored)
    columns[REASON] = pyarrow.array(why, pyarrow.string())
    return pyarrow.RecordBatch.from_arrays(
        [*kept.columns, *columns.values()], names=[*kept.schema.names, *columns]
    )


def _significant(values: FloatArray) -> FloatArray:
    """Numbers to nine significant digits: further ones depend on the machine."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        scale = 10.0 ** (8.0 - np.floor(np.log10(np.abs(values))))
        rounded = np.rint(values * scale) / scale
    # Infinities and 0 stay as they are, and so do numbers that have no such scale.
    return np.where(np.isfinite(rounded), rounded, values)


def _escaped(output: Any) -> Any:
    """A batch whose names and texts no spreadsheet takes for formulas."""
    import pyarrow

    columns, names = output.columns, map(without_formula, output.schema.names)
    for place, column in enumerate(columns):
        if held_by(column.type) == "text":
            # Each text is looked at once: labels and names come again and again.
            coded = column.cast(pyarrow.string()).dictionary_encode()
            safe = [without_formula(text) for text in coded.dictionary.to_pylist()]
            columns[place] = pyarrow.array(safe, pyarrow.string()).take(coded.indices)
    return pyarrow.RecordBatch.from_arrays(columns, names=list(names))


class MeasuredErrors:
    """How many labelled rows, of each group where there are some, were called what.

    Parameters
    ----------
    model : TableModel
    """

    def __init__(self, model: TableModel) -> None:
        self.model, self.labels = model, model.labels
        # None stands for all rows, or for those of other groups together; the last row
        # of counts for labels that the model doesn't know.
        groups = [*model.classifier.groups_] if model.kind == GROUPS else []
        shape = (len(self.labels) + 1, len(self.labels))
        self.counts = {g: np.zeros(shape, dtype=np.intp) for g in (*groups, None)}
        self._levels = {(each.group, each.label): each.alpha for each in model.promises}
        self._places = {canonical(label): 1 for label in model.rest}
        self._places |= {canonical(label): k for k, label in enumerate(self.labels)}

    def add(
        self,
        texts: list[str | None],
        codes: IntArray,
        groups: list[str | None] | None = None,
    ) -> None:
        """Count rows by their labels and groups, as texts, and what they are called."""
        members = self.model.members(groups or [None] * len(texts))
        alike = Counter(zip(texts, codes.tolist(), members, strict=True))
        for (text, code, group), count in alike.items():
            place = -1 if text is None else self._places.get(canonical(text), -1)
            self.counts[group][place, code] += count

    def _classes(self, group: Any) -> dict[Any, dict[str, Any]]:
        """What becomes of each class of a group that has rows."""
        classes, bounded = {}, {label for _, label in self._levels}
        for place, label in enumerate(self.labels):
            row = self.counts[group][place]
            if not (rows := int(row.sum())):
                continue
            wrong = None
            if label in bounded:
                is_wrong = self.model.wrong(np.arange(len(row)), label)
                wrong = _share(int(row[is_wrong].sum()), rows)
            classes[label] = {
                "rows": rows,
                "found": _share(int(row[place]), rows),
                "wrong": wrong,
                "promised": self._levels.get((group, label)),
                "called": dict(zip(map(str, self.labels), row.tolist(), strict=True)),
            }
        return classes

    def facts(self) -> dict[str, Any]:
        """The counts, and the shares with their exact 95 % intervals."""
        by_group = {
            group: {
                "classes": {str(k): each for k, each in self._classes(group).items()},
                "unknown_labels": int(counts[-1].sum()),
            }
            for group, counts in self.counts.items()
        }
        rest = by_group.pop(None)
        if self.model.kind != GROUPS:
            return rest
        if any(rest.values()):
            by_group["other groups"] = rest
        return {"groups": {str(group): facts for group, facts in by_group.items()}}

    @property
    def words(self) -> str:
        """The same in a sentence, or in a line for each group."""
        model, unknown = self.model, sum(x[-1].sum() for x in self.counts.values())
        by_group, called = model.kind == GROUPS, "another class"
        if model.kind != SEVERAL_CLASSES:
            called = repr(model.other_class)
        elif model.certificate.order:
            called = "less severe"
        lines = []
        for group in self.counts:
            parts = []
            for label, each in self._classes(group).items():
                what = f"are called {called}" if each["wrong"] else "are found"
                share, promised = each["wrong"] or each["found"], ""
                if each["promised"] is not None:
                    promised = f"; at most {100.0 * each['promised']:.4g}% was promised"
                parts.append(
                    f"{share['events']} of {each['rows']} {label!r} {what} "
                    f"({100.0 * share['share']:.1f}%{promised})"
                )
            name = "other groups: " if group is None else f"group {group!r}: "
            if parts:
                lines.append(name * by_group + "; ".join(parts))
        lines += [f"{unknown} rows have no label or another one"] * bool(unknown)
        start = f"By the labels in {model.target!r}:"
        if by_group:
            return "\n- ".join([start, *lines])
        return f"{start} {'; '.join(lines)}."


def _share(events: int, rows: int) -> dict[str, Any]:
    low, high = exact_interval(events, rows)
    return {"events": events, "share": events / rows, "low": low, "high": high}
