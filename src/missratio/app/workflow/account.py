"""What is done about the missing values of a table, and what that assumes.

They are left as they are, written down in a file, learned from the table, or looked up:
look-ups are planned here, too.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from missratio._base.blocks import rows_with_nan
from missratio._base.hints import did_you_mean, listed
from missratio._base.typing import BoolArray, FloatArray
from missratio._files import TableFile, open_table
from missratio.app import options as asked
from missratio.app.queries import QueryPlan, Revealed, plan_queries
from missratio.app.queries.answers import OtherTableError
from missratio.app.tables import labelled
from missratio.app.tables.columns import check_names
from missratio.app.tables.labelled import LabelledTable
from missratio.app.workflow import phi_file
from missratio.app.workflow.spelling import check_spellings
from missratio.classifier import NeymanPearsonClassifier, forecast_power
from missratio.exceptions import (
    Message,
    NoCertificateError,
    TableError,
    UnexplainedMissingError,
    about_file,
)
from missratio.learning import Assumption, learn_missingness
from missratio.missingness import Missingness, RowInclusion
from missratio.threshold import LookUpRule, looked_up_sample

Deployment = Literal["complete", "as-observed"]
PER_FEATURE = 30
PHI = "φ, the probability of being missing,"
LOGISTIC = "the certificate assumes that it is logistic in the value itself."
# Scores to try out whether a draw certifies, and the share of α that it should reach.
TRIALS, ENOUGH = 5, 1.0 / 3.0
# Rows of the controlled class to plan for; half to four times as many are tried.
ROWS = 80
# Columns that a message names, those that miss most.
SHOWN = 3
UNTOLD = "its power is known after the fit"
# Cells of a table up to which trials of look-ups are quick.
QUICK_CELLS = 150_000


def read_table(options: Any, **changes: Any) -> tuple[TableFile, LabelledTable]:
    """The file that options name, and its table as they say that cells are read.

    What `options.cells` says may be changed.
    """
    source = open_table(options.data, **options.how)
    cells = options.cells | changes
    return source, labelled.read_labelled(source, options.target, **cells)


def plan_table(options: asked.QueryOptions, progress: asked.Listener) -> QueryPlan:
    """Draw missing cells of a table to look up, as `plan_queries` does."""
    progress.step(f"Reading {options.data}")
    keys = [] if options.id_column is None else [options.id_column]
    if keys:
        check_names(open_table(options.data, **options.how), "--id", keys)
    source, table = read_table(options, drop=[*options.drop, *keys])
    with about_file(source.path):
        check_spellings(table)
        table, controlled = labelled.two_classes(
            table, options.controlled, options.versus
        )
    progress.step("Drawing")
    lines = source.line_numbers()
    return _drawn(
        table,
        controlled,
        per_feature=None if options.budget else options.per_feature or PER_FEATURE,
        budget=options.budget,
        goal="both" if options.budget else None,
        ids=source.read(keys).column(0).take(table.rows).to_pylist() if keys else None,
        lines=[lines[row] for row in table.rows.tolist()],
        alpha=options.alpha,
        delta=options.delta,
        random_state=options.seed,
    )


def _drawn(table: LabelledTable, controlled: Any, **how: Any) -> QueryPlan:
    frame, _ = table.asked
    if not frame.num_columns:
        raise TableError("Nothing is missing, and there is no column of numbers.")
    try:
        return plan_queries(frame, table.y, controlled_class=controlled, **how)
    except ValueError as error:
        raise TableError(str(error)) from error


@dataclass(frozen=True)
class Way:
    """What can be done for a promise about complete rows.

    Parameters
    ----------
    what : str
        What there is to do.
    power : str
        The power to expect, or why that can't be told.
    promise : str
        What it assumes.
    commands : tuple of str
        How, to be pasted into a shell.
    between : str
        What to do by hand after the first of them.
    """

    what: str
    power: str
    promise: str
    commands: tuple[str, ...]
    between: str = ""

    def __str__(self) -> str:
        commands = f"\n  {self.between}".join(f"\n    {c}" for c in self.commands)
        return f"- {self.what}: {self.power}; {self.promise}.{commands}"


@dataclass(frozen=True, eq=False)
class Account:
    """What is done about the missing values of a table.

    Parameters
    ----------
    way : {"complete", "as observed", "assumed", "file", "look-ups", "table", "both"}
    sentence : str
        The same in words, with what it assumes.
    X : ndarray of shape (n_rows, n_encoded)
        The table, with the values looked up in it where these are data.
    models : dict from label to Missingness
    inclusion : ndarray of shape (n_rows, n_columns), optional
        With what probability each row is in X as a whole, where rows were looked up.
    ways : list of Way
        To a promise about complete rows, where nobody said for which rows it is to be.
    deployment : {"complete", "as-observed"}
        Which rows the promise is about.
    """

    way: str
    sentence: str
    X: FloatArray
    models: dict[Any, Missingness] = field(default_factory=dict)
    inclusion: FloatArray | None = None
    ways: list[Way] = field(default_factory=list)
    deployment: Deployment = "complete"


def account_of(
    table: LabelledTable,
    controlled: Any,
    source: TableFile,
    options: asked.FitOptions,
    progress: asked.Listener,
) -> Account:
    """What is done about missing values, by what the options give.

    Parameters
    ----------
    table : LabelledTable
    controlled : object
        The bounded class, for which look-ups are planned; None where there are several.
    source, options, progress
        As of `fit_table`.
    """
    X, file, given = table.X, source.path, options.phi_file
    models: dict[Any, Missingness] = {}
    blanks = len(table.incomplete) > 0 or table.has_blank_level
    if not blanks and options.phi_file is None and options.queries is None:
        blanks = options.as_observed and not options.undecided
        deployment: Deployment = "as-observed" if blanks else "complete"
        return Account("complete", "No value is missing.", X, deployment=deployment)
    if options.as_observed:
        sentence = (
            "The promise is for rows that lose values as these did: blanks are left as "
            "they are, in rows to fit and in rows to come."
        )
        others: list[Way] = []
        if options.undecided:
            progress.step("Trying out what other promises would take")
            others = list(ways_of(table, controlled, options, taken="observed"))
        return Account(
            "as observed", sentence, X, ways=others, deployment="as-observed"
        )
    if options.queries is not None:
        progress.step("Reading what was looked up")
        try:
            revealed = _read_answers(table, source, options)
            if options.missingness != asked.LEARN:
                return _data_account(table, controlled, revealed, options.trial)
            models = _learned(table, table.counts, revealed)
        except ValueError as error:
            raise TableError(f"{options.queries} was refused. {error}") from error
        n_answers = int(revealed.answered.sum())
        sentence = (
            f"{PHI} is learned from {n_answers} looked-up values and the table's "
        )
        return Account("both", f"{sentence}other columns; {LOGISTIC}", X, models)
    learns, texts = options.missingness == asked.LEARN, options.assume
    if not (learns or texts or given):
        claim = "; ".join(
            f"class {label!r} has missing values in {_named(counts)}"
            for label, counts in table.missing.items()
            if counts
        )
        others = list(ways_of(table, controlled, options, taken="observed"))
        said = f"{claim[:1].upper()}{claim[1:]}, and nothing says why. For complete "
        said += "rows to come, these ways are open:\n" + "\n".join(map(str, others))
        raise UnexplainedMissingError(Message.plain(said, file=file))
    sentence = f"{PHI} is as {given} says; the certificate assumes that it is right."
    if learns or texts:
        progress.step("Learning why values are missing")
        with about_file(file):
            stated = _stated(table, texts)
            labels = table.counts if given is None else stated
            models = _learned(table, labels, None, stated, learns)
        sentence = f"{PHI} is learned from the table's other columns; {LOGISTIC}"
    if texts:
        means: dict[str, list[Any]] = {}
        for label, every in stated.items():
            for each in every:
                means.setdefault(each.sentence, []).append(label)
        meant = [f"{text} (class {listed(labels)})" for text, labels in means.items()]
        rest = " and that the other columns leave possible" * learns
        sentence = (
            f"{PHI} is as stated. {'; '.join(meant)}. The certificate holds for every "
            f"φ of that range that is logistic in the value itself{rest}."
        )
        sentence += " Where nothing is stated, φ is learned from them." * learns
    if given is not None:
        written = phi_file.read_missingness(given, table.encoder, list(table.counts))
        if twice := [label for label in written if label in models]:
            raise TableError(
                f"{given}: of class {twice[0]!r} something is assumed, and its φ is "
                "given as well. Leave one of them out."
            )
        models |= written
        for label, counts in table.missing.items():
            model, largest = models.get(label), np.zeros(X.shape[1])
            if model is not None:
                largest = model.column_maxima(X.shape[1])
            places, whole = table.encoder.places, model is not None and model.rowwise
            unsaid = [name for name in counts if largest[places[name][0]] == 0.0]
            if unsaid and not whole:
                raise TableError(
                    f"{file}: Class {label!r} has missing values in {listed(unsaid)}, "
                    f"and {given} says that none are. Add what is missing to it."
                )
    way = "assumed" if texts else "table" if learns else "file"
    return Account(way, sentence, X, models)


def _stated(table: LabelledTable, texts: Iterable[str]) -> dict[Any, list[Assumption]]:
    """What is assumed of the columns of each class, checked against the table."""
    stated: dict[Any, list[Assumption]] = {}
    for text in texts:
        assumption, chosen, whose = Assumption.read(text), list(table.counts), ""
        name, label = assumption.column, assumption.label
        if name not in table.encoder.names:
            hint = did_you_mean(name, table.encoder.names)
            raise TableError(f"{text!r}: the table has no column {name!r}.{hint}")
        if name in table.encoder.indicators and not assumption.constant:
            alike = text.partition(",")[0]
            raise TableError(
                f"{text!r}: {name!r} is a category, which has no higher values. Say "
                f"{alike!r} if all its levels are as likely to be missing, or how "
                "often each is in a file (--missingness FILE)."
            )
        if label is not None:
            claim = f"{text!r}: the table has no class {label!r}"
            chosen = [labelled.find_name(label, chosen, claim)]
            whose = f" of {label!r}"
        lossy = [label for label in chosen if name in table.missing[label]]
        if not lossy:
            raise TableError(f"{text!r}: no value{whose} is missing in {name!r}.")
        for label in lossy:
            stated.setdefault(label, []).append(assumption)
    return stated


def _read_answers(
    table: LabelledTable, source: TableFile, options: asked.FitOptions
) -> Revealed:
    """What was looked up, of the table as it is read, or was when the plan was drawn.

    Then some of what marks a missing cell now may have counted as a value.
    """
    codes, refused = options.missing_value, None
    # Codes that are told later come after those that were told before.
    for marks in (codes[:size] for size in range(len(codes), -1, -1)):
        then = table
        if refused is not None:
            cells = options.cells | {"missing_values": marks}
            try:
                then = labelled.read_labelled(source, options.target, **cells)
            except TableError:
                continue
            rows = np.flatnonzero(np.isin(then.rows, table.rows))
            if len(rows) != len(table.rows):
                continue
            then = then.take(rows)
        frame, levels = then.asked
        try:
            how: dict[str, Any] = {"levels": levels, "cells": table.encoder.cells}
            revealed = QueryPlan.read(options.queries, frame, table.y, **how)
        except OtherTableError as error:
            refused = refused or error
            continue
        now, known = table.asked
        if (frame.column_names, levels) != (now.column_names, known):
            raise TableError(
                f"It was drawn when {listed([c for c in codes if c not in marks])} "
                "counted as a category. Draw another plan."
            )
        if count := int(_lost_since(table, revealed).sum()):
            warnings.warn(
                f"{count} cells are missing that counted as values when the plan was "
                "drawn. No look-up stands for them, so that a certificate counts their "
                "rows as errors.",
                stacklevel=2,
            )
        return revealed
    assert refused is not None
    raise refused


def _lost_since(table: LabelledTable, revealed: Revealed) -> BoolArray:
    """Cells that are missing, and were not when the plan was drawn."""
    columns = [column.to_numpy() for column in table.asked[0].columns]
    since: BoolArray = np.isnan(np.column_stack(columns)) & ~revealed.lost
    return since


def _learned(
    table: LabelledTable,
    labels: Iterable[Any],
    revealed: Revealed | None = None,
    stated: Mapping[Any, list[Assumption]] | None = None,
    from_table: bool = True,
) -> dict[Any, Missingness]:
    """φ of each class that has missing values, from what was looked up or stated too.

    Without `from_table`, from that alone.
    """
    import pyarrow

    models: dict[Any, Missingness] = {}
    for label in (label for label in labels if table.missing[label]):
        known = (stated or {}).get(label, [])
        whole = phi_file.loses_whole_rows(table, label) and not known
        if not from_table:
            said = {assumption.column for assumption in known}
            counts = table.missing[label].items()
            if rest := {name: n for name, n in counts if name not in said}:
                name, count = max(rest.items(), key=lambda pair: pair[1])
                share = 100.0 * count / table.counts[label]
                raise TableError(
                    f"Class {label!r} has missing values in {_named(rest)}, and "
                    f"nothing is assumed of that. Say it, too (--assume "
                    f'"{name}: {share:.2g}% of {label}"), or let the rest be learned '
                    "(--missingness learn)."
                )
        if whole and revealed is None:
            raise TableError(
                f"Rows of class {label!r} are missing as a whole, so that the table "
                "has nothing to learn from. Look rows up (missratio query --budget)."
            )
        if revealed and _lost_since(table, revealed)[table.y == label].any():
            raise TableError(
                f"Class {label!r} misses cells that counted as values when the plan "
                "was drawn, so that its look-ups don't stand for all that is missing, "
                "and φ can't be learned from them. Draw another plan."
            )
        X, names = table.X[table.y == label], table.encoder.encoded_names
        answers = revealed and table.encoded_answers(revealed[label])
        try:
            models[label] = learn_missingness(
                pyarrow.table(dict(zip(names, X.T, strict=True))),
                answers,
                rowwise=whole,
                from_table=from_table,
                assumptions=known,
                categories=[each.tolist() for each in table.blank_categories.values()],
            )
        except ValueError as error:
            raise TableError(f"Class {label!r}: {error}") from error
    return models


def first_columns(named: Sequence[str]) -> str:
    """The first of some columns as they are named, and how many more there are."""
    more = len(named) - SHOWN
    return ", ".join(named[:SHOWN]) + f" and {more} more columns" * (more > 0)


def _named(counts: Mapping[str, int]) -> str:
    """Columns with how many values they miss, those that miss most first."""
    return first_columns([f"{k!r} ({n})" for k, n in Counter(counts).most_common()])


def _data_account(
    table: LabelledTable,
    controlled: Any,
    revealed: Revealed,
    trial: Mapping[str, Any],
) -> Account:
    """Looked-up values, as values that were drawn with a known probability.

    Class by class: whole rows are data, and so are single values where a certificate
    or a score can do with them. Otherwise φ is learned, and the rows stay as they were.
    """
    filled, asked = revealed.fill(table.asked[0])
    cells = np.column_stack([column.to_numpy() for column in filled.columns])
    X = np.where(np.isnan(table.X), table.encoded_answers(cells), table.X)
    # Each entry's probability to be there.
    inclusion, numeric = np.ones(X.shape), table.encoder.n_numeric
    inclusion[:, :numeric] = asked[:, :numeric]
    for place, columns in enumerate(table.blank_categories.values(), start=numeric):
        inclusion[:, columns] = asked[:, [place]]
    models: dict[Any, Missingness] = {}
    data, otherwise = [], []
    for label in [label for label, counts in table.missing.items() if counts]:
        mine, code = table.y == label, revealed.classes.index(label)
        n_answers = int(revealed.answered[code].sum())
        silent = (revealed.missing[code] > 0) & (revealed.answered[code] == 0)
        values = f"{n_answers} single values of {label!r} were looked up"
        # 1. Whole rows are data; so are single values where they complete enough rows
        # for a certificate, or where a score has some of each column.
        if not n_answers and label == controlled:
            raise ValueError(
                f"Nothing of the controlled class {label!r} is filled in, and it has "
                "incomplete rows. Fill some in, or add --missingness learn."
            )
        if n_answers and revealed.rowwise[code]:
            drawn = (inclusion.min(axis=1) > 0.0) & rows_with_nan(table.X) & mine
            lost = int((drawn & rows_with_nan(X)).sum())
            note = f" ({lost} of them not found)" if lost else ""
            count = int(drawn.sum())
            data.append(f"{count} incomplete rows of {label!r} were looked up{note}")
            continue
        if label == controlled and _certifiable(X[mine], inclusion[mine], trial):
            data.append(values)
            continue
        if label != controlled and not silent.any():
            data.append(f"{values}, for the score")
            continue
        # 2. Otherwise φ is learned.
        if label == controlled:
            why = "as these values complete too few of its rows for a certificate by "
            why += "themselves (to look up whole rows: missratio query --budget)"
        else:
            names = [revealed.feature_names[j] for j in np.flatnonzero(silent)]
            why = f"for the score, as no value of {listed(names)} was looked up"
        by_phi = f"φ of {label!r} is learned from {n_answers} looked-up values and the "
        by_phi += f"table's other columns, {why}"
        if not n_answers:
            by_phi = f"φ of {label!r} is learned from the table, for the score alone"
        try:
            models |= _learned(table, [label], revealed if n_answers else None)
        except ValueError:
            if n_answers:
                raise
            by_phi = f"Incomplete rows of {label!r} are left out of the score"
        otherwise.append(by_phi)
        X[mine] = table.X[mine]
        inclusion[mine] = np.where(np.isnan(table.X[mine]), 0.0, 1.0)
    said = [f"Look-ups are data: {'; '.join(data)}."] if data else []
    said += [f"{part}." for part in otherwise]
    way, assumes = "look-ups", f"no model of {PHI[:-1]}"
    if controlled in models:
        way, assumes = "both", f"that {PHI} is logistic in the value itself"
    said.append(f"The certificate assumes {assumes}.")
    return Account(way, " ".join(said), X, models, inclusion)


def _certifiable(
    X: FloatArray, inclusion: FloatArray, trial: Mapping[str, Any]
) -> bool:
    """Whether the draw certifies much of α, tried on scores that know no missingness.

    Rows that were not completed count as errors where nothing stands for them.
    """
    rng = np.random.default_rng(trial["random_state"])
    drawn = RowInclusion.of(inclusion, ~rows_with_nan(X), X.shape[1])
    n_held, reached = round(trial["calibration_size"] * len(X)), []
    for _ in range(TRIALS):
        scores = rng.permutation(len(X)).astype(np.float64)
        rows = rng.permutation(len(X))
        held = drawn.besides(rows[:n_held], rows[n_held:])
        sample = looked_up_sample(
            scores[:n_held], held.probability, held.strata, expected=held.expected
        )
        chosen = LookUpRule().select(sample, trial["alpha"], trial["delta"]).threshold
        reached.append(0.0 if chosen is None else (scores > chosen).mean())
    return bool(np.mean(reached) >= ENOUGH * trial["alpha"])


def ways_of(
    table: LabelledTable,
    controlled: Any,
    options: asked.FitOptions,
    settings: Mapping[str, Any] | None = None,
    taken: str = "",
) -> Iterator[Way]:
    """What can be done about missing values, with the power to expect of each way.

    `settings` is what commands need not say, by default what `missratio.toml` says. The
    way that was `taken` is left out: "observed" or "learned".
    """

    def reread(blank_level: bool) -> LabelledTable:
        """The same rows, with blank categories as a level or as values to look up."""
        if not (table.blank_categories if blank_level else table.has_blank_level):
            return table
        _, other = read_table(options, blank_level=blank_level)
        if options.controlled is None:
            return other
        return labelled.two_classes(other, options.controlled, options.versus)[0]

    def fit(way: str, **changes: Any) -> str:
        """The same fit with other options, to a file that is named for the way."""
        # A method that reads rows with blanks need not be one for complete rows.
        given = dict.fromkeys(["new_rows", "missingness", "force", "method"])
        given["out"] = options.out.with_stem(f"{options.out.stem}-{way}")
        return options.command("fit", type(options), settings, **(given | changes))

    def power_by(
        table: LabelledTable,
        learn: Callable[[], dict[Any, Missingness]] = dict,
        deployment: Deployment = "complete",
    ) -> str:
        """The power to expect with φ of each class, where that is quickly known."""
        if controlled is None or options.groups or table.X.size > QUICK_CELLS:
            return UNTOLD
        with warnings.catch_warnings(action="ignore"), suppress(ValueError):
            classifier = NeymanPearsonClassifier(
                controlled_class=controlled,
                missingness=learn() or None,
                deployment=deployment,
                **options.trial,
            )
            power, why = forecast_power(classifier, table.X, table.y)
            if isinstance(why, NoCertificateError):
                claim = str(replace(why.message, remedies=()))
                return f"nothing would be certified ({claim[:-1]})"
            return f"expected power {power:.2f}" if power == power else UNTOLD
        return "nothing can be certified by it yet"

    assumes = "no assumption about φ"
    if taken != "observed":
        rows, blanks = reread(True), len(table.incomplete) > 0
        if rows.X.size > QUICK_CELLS:
            some = np.random.default_rng(options.seed).permutation(len(rows.y))
            rows = rows.take(np.sort(some[: QUICK_CELLS // rows.X.shape[1]]))
        like = "have blanks like these" if blanks else "are complete, as these are"
        changes = {} if taken else {"out": options.out}
        yield Way(
            "classify rows as they come",
            power_by(rows, deployment="as-observed"),
            f"{assumes}, if new rows {like}",
            (fit("observed", new_rows="blanks" if blanks else None, **changes),),
        )
        if not blanks:
            return
    table = reread(False)
    lossy = [label for label, counts in table.missing.items() if counts]
    if controlled is not None:
        if controlled not in lossy:
            what, power = "50 values a column", "the power rises with the score"
            promise = f"rows of {controlled!r} are complete and need no φ"
            size = {"per_feature": 50}
        else:
            # Single values of the other class, where it has holes, make the score
            # better.
            more = 1.5 if len(lossy) > 1 else 1.0
            incomplete = table.counts[controlled] - table.n_complete(controlled)
            price = sum(table.missing[controlled].values()) / incomplete
            values, n_rows = max(1, round(more * ROWS * price)), ROWS
            power, promise = "not tried out, as the table is large", assumes
            if table.X.size <= QUICK_CELLS:
                how = {"budget": values, "goal": "both", **options.trial}
                bought = _drawn(table, controlled, **how).power
                assert bought is not None
                best = bought.enough
                values, n_rows = int(bought.values[best]), bought.rows[best]
                every = sum(sum(counts.values()) for counts in table.missing.values())
                values, likely = min(values, every), f"{bought.power[best]:.2f}"
                power = f"{bought.lower[best]:.2f} to {bought.upper[best]:.2f} "
                power += f"({likely} if values are missing whatever their size)"
            what, power = f"{n_rows} rows ({values} values)", f"expected power {power}"
            size = {"budget": values}
        plan = options.out.with_name("plan.csv")
        query = options.query_command(settings, out=plan, **size)
        between = f"and, when {plan} is filled in,"
        commands = (query, fit("looked-up", queries=plan))
        yield Way(f"look up {what}", power, promise, commands, between)
    whole = any(phi_file.loses_whole_rows(table, label) for label in lossy)
    if taken != "learned" and not whole:
        yield Way(
            "look up nothing",
            power_by(table, lambda: _learned(table, table.counts)),
            f"{PHI} is learned from the other columns, and must be logistic in the "
            "value itself",
            (fit("learned", missingness=asked.LEARN),),
        )
    pairs = [(name, label) for label in lossy for name in table.missing[label]]
    lost = {name for name, _ in pairs}
    if len(lost) <= SHOWN and not lost & table.encoder.indicators.keys():
        texts = []
        for name, label in pairs:
            share = 100.0 * table.missing[label][name] / table.counts[label]
            texts.append(f"{name}: {share:.2g}% of {label}, higher more likely")
        yield Way(
            "say what you know of them",
            power_by(
                table,
                lambda: _learned(
                    table, lossy, stated=_stated(table, texts), from_table=False
                ),
            ),
            "it holds if the direction is as you say (higher or lower)",
            (fit("stated", assume=texts),),
        )
    what = "write down why values are missing (--missingness FILE, or --assume)"
    yield Way(what, UNTOLD, "it holds if what you write is right", ())
