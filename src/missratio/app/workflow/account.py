"""What is done about the missing values of a table, and what that assumes.

They are left as they are, written down in a file, learned from the table, or looked up:
look-ups are planned here, too.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, islice
from typing import Any, Literal

import numpy as np

from missratio._base.blocks import rows_with_nan
from missratio._base.hints import listed
from missratio._base.typing import BoolArray, FloatArray
from missratio._files import TableFile, open_table
from missratio.app.options import (
    EXAMPLE_FILE,
    LEARN,
    FitOptions,
    Listener,
    QueryOptions,
)
from missratio.app.queries import QueryPlan, Revealed, plan_queries
from missratio.app.queries.answers import OtherTableError
from missratio.app.tables import labelled
from missratio.app.tables.columns import check_names
from missratio.app.workflow.phi_file import read_missingness
from missratio.app.workflow.spelling import check_spellings
from missratio.exceptions import (
    Message,
    TableError,
    UnexplainedMissingError,
    about_file,
)
from missratio.learning import learn_missingness
from missratio.missingness import Missingness, RowInclusion
from missratio.threshold import LookUpRule, looked_up_sample

Deployment = Literal["complete", "as-observed"]
PER_FEATURE = 30
PHI = "φ, the probability of being missing,"
LOGISTIC = "the certificate assumes that it is logistic in the value itself."
# Scores to try out whether a draw certifies, and the share of α that it should reach.
TRIALS, ENOUGH = 5, 1.0 / 3.0
# Rows of the controlled class to plan for; a quarter to twice as many are tried.
ROWS = 80
# Ways to read a table that a plan may have been drawn by.
MOST_READINGS = 16
# Columns that a message names, those that miss most.
SHOWN = 3
# Cells of a table up to which trials of look-ups are quick.
QUICK_CELLS = 150_000


def plan_table(options: QueryOptions, progress: Listener) -> QueryPlan:
    """Draw missing cells of a table to look up, as `plan_queries` does."""
    progress.step(f"Reading {options.data}")
    source = open_table(options.data, **options.how)
    keys = [] if options.id_column is None else [options.id_column]
    check_names(source, "--id", keys)
    table = labelled.read_labelled(
        source, options.target, drop=[*options.drop, *keys], **options.cells
    )
    with about_file(source.path):
        check_spellings(table)
        table, controlled = labelled.two_classes(
            table, options.controlled, options.versus
        )
    progress.step("Drawing")
    rows, lines = table.rows.tolist(), source.line_numbers()
    ids = source.read(keys).column(0).to_pylist() if keys else None
    by_budget = options.budget is not None
    return _drawn(
        table,
        controlled,
        per_feature=None if by_budget else options.per_feature or PER_FEATURE,
        budget=options.budget,
        goal=(options.goal or "both") if by_budget else None,
        rowwise=options.rows,
        classes=[controlled] if options.only_controlled else None,
        ids=None if ids is None else [ids[row] for row in rows],
        lines=[lines[row] for row in rows],
        alpha=options.alpha,
        delta=options.delta,
        random_state=options.seed,
    )


def _drawn(table: labelled.LabelledTable, controlled: Any, **how: Any) -> QueryPlan:
    frame, how = table.asked_frame(), {**how, "levels": table.asked_levels}
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
    promise : str
        What comes of it, and what that assumes.
    commands : tuple of str
        How, to be pasted into a shell.
    between : str
        What to do by hand after the first of them.
    """

    what: str
    promise: str
    commands: tuple[str, ...]
    between: str = ""

    def __str__(self) -> str:
        commands = f"\n  {self.between}\n".join(f"    {c}" for c in self.commands)
        return f"- {self.what}: {self.promise}.\n{commands}"


@dataclass(frozen=True, eq=False)
class Account:
    """What is done about the missing values of a table.

    Parameters
    ----------
    way : {"complete", "as observed", "file", "look-ups", "table", "both"}
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
    table: labelled.LabelledTable,
    bounded: Mapping[Any, float],
    source: TableFile,
    options: FitOptions,
    progress: Listener,
) -> Account:
    """What is done about missing values, by what the options give.

    Parameters
    ----------
    table : LabelledTable
    bounded : mapping
        The bounded classes with their levels; look-ups are planned for one alone.
    source, options, progress
        As of `fit_table`.
    """
    X, file, phi_file = table.X, source.path, options.phi_file
    controlled = None if options.several else next(iter(bounded))
    trial = trial_of(options, next(iter(bounded.values())))
    blanks = len(table.incomplete) > 0 or table.has_blank_level
    if not blanks and phi_file is None and options.queries is None:
        said = options.as_observed and not options.undecided
        deployment: Deployment = "as-observed" if said else "complete"
        return Account("complete", "No value is missing.", X, deployment=deployment)
    if options.as_observed:
        sentence = (
            "The promise is for rows that lose values as these did: blanks are left as "
            "they are, in rows to fit and in rows to come."
        )
        ways: list[Way] = []
        if options.undecided:
            progress.step("Trying out what look-ups would buy")
            ways = list(ways_of(table, controlled, options, trial))
        return Account("as observed", sentence, X, ways=ways, deployment="as-observed")
    if options.queries is not None:
        progress.step("Reading what was looked up")
        try:
            revealed = _read_answers(table, source, options)
            if options.missingness != LEARN:
                return _data_account(table, controlled, revealed, trial)
            models = _learned(table, table.counts, revealed)
        except ValueError as error:
            raise TableError(f"{options.queries} was refused. {error}") from error
        n_found = int(revealed.answered.sum())
        sentence = f"{PHI} is learned from {n_found} looked-up values and the table's "
        return Account("both", f"{sentence}other columns; {LOGISTIC}", X, models)
    if options.missingness == LEARN:
        progress.step("Learning why values are missing")
        with about_file(file):
            models = _learned(table, table.counts)
        sentence = f"{PHI} is learned from the table's other columns; {LOGISTIC}"
        return Account("table", sentence, X, models)
    if phi_file is None:
        lossy = {label: counts for label, counts in table.missing.items() if counts}
        ways = list(ways_of(table, controlled, options, trial))
        claim = "; ".join(
            f"class {label!r} has missing values in {_named(counts)}"
            for label, counts in lossy.items()
        )
        raise UnexplainedMissingError(
            Message.plain(
                f"{claim[:1].upper()}{claim[1:]}, and nothing says why. For complete "
                "rows to come, these ways are open:\n" + "\n".join(map(str, ways)),
                file=file,
            )
        )
    models = read_missingness(phi_file, table.encoder, list(table.counts))
    places = table.encoder.places
    for label, counts in table.missing.items():
        model = models.get(label)
        if not counts or (model is not None and model.rowwise):
            continue
        start = f"{file}: Class {label!r} has missing values in"
        if model is None:
            raise TableError(
                f"{start} {_named(counts)}, and the file says nothing of that class. "
                "Add it."
            )
        largest = model.column_maxima(X.shape[1])
        if unsaid := [name for name in counts if largest[places[name][0]] == 0.0]:
            raise TableError(
                f"{start} {listed(unsaid)}, and its model says that none are. Add the "
                "column(s) to it."
            )
    sentence = f"{PHI} is as {phi_file} says; the certificate assumes that it is right."
    return Account("file", sentence, X, models)


def _read_answers(
    table: labelled.LabelledTable, source: TableFile, options: FitOptions
) -> Revealed:
    """What was looked up, of the table as it is read, or was when the plan was drawn.

    Then some of what marks a missing cell now may have counted as a value.
    """
    read = {"drop": options.drop, "groups": options.groups, **options.cells}
    codes, refused = options.missing_value, None
    sizes = range(len(codes), -1, -1)
    readings = chain.from_iterable(combinations(codes, size) for size in sizes)
    for told in islice(readings, MOST_READINGS):
        then = table
        if refused is not None:
            read["missing_values"] = told
            try:
                then = labelled.read_labelled(source, options.target, **read)
            except TableError:
                continue
            rows = np.flatnonzero(np.isin(then.rows, table.rows))
            if len(rows) != len(table.rows):
                continue
            then = replace(then, X=then.X[rows], y=table.y, rows=table.rows)
        frame, levels = then.asked_frame(), then.asked_levels
        try:
            revealed = QueryPlan.read(options.queries, frame, table.y, levels=levels)
        except OtherTableError as error:
            refused = refused or error
            continue
        now = table.asked_frame().column_names, table.asked_levels
        if (frame.column_names, levels) != now:
            raise TableError(
                f"It was drawn when {listed([c for c in codes if c not in told])} "
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


def _lost_since(table: labelled.LabelledTable, revealed: Revealed) -> BoolArray:
    """Cells that are missing, and were not when the plan was drawn."""
    columns = [column.to_numpy() for column in table.asked_frame().columns]
    since: BoolArray = np.isnan(np.column_stack(columns)) & ~revealed.lost
    return since


def _learned(
    table: labelled.LabelledTable,
    labels: Iterable[Any],
    revealed: Revealed | None = None,
) -> dict[Any, Missingness]:
    """φ of each class that has missing values, from what was looked up too."""
    import pyarrow

    models: dict[Any, Missingness] = {}
    for label in (label for label in labels if table.missing[label]):
        whole = _loses_whole_rows(table, label)
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
                categories=[each.tolist() for each in table.blank_categories.values()],
            )
        except ValueError as error:
            raise TableError(f"Class {label!r}: {error}") from error
    return models


def _loses_whole_rows(table: labelled.LabelledTable, label: Any) -> bool:
    """Whether rows of a class are missing as a whole, if any of them is."""
    X = table.X[table.y == label]
    lost = np.isnan(X[rows_with_nan(X)])
    return X.shape[1] > 1 and len(lost) > 0 and bool(lost.all())


def _named(counts: Mapping[str, int]) -> str:
    """Columns with how many values they miss, those that miss most."""
    most = sorted(counts.items(), key=lambda pair: -pair[1])
    text = ", ".join(f"{name!r} ({n})" for name, n in most[:SHOWN])
    more = len(most) - SHOWN
    return text + f" and {more} more columns" * (more > 0)


def _data_account(
    table: labelled.LabelledTable,
    controlled: Any,
    revealed: Revealed,
    trial: Mapping[str, Any],
) -> Account:
    """Looked-up values, as values that were drawn with a known probability.

    Class by class: whole rows are data, and so are single values where a certificate
    or a score can do with them. Otherwise φ is learned, and the rows stay as they were.
    """
    filled, asked = revealed.fill(table.asked_frame())
    cells = np.column_stack([column.to_numpy() for column in filled.columns])
    X = np.where(np.isnan(table.X), table.encoded_answers(cells), table.X)
    # Each entry's probability to be there.
    inclusion, numeric = np.ones(X.shape), table.encoder.n_numeric
    inclusion[:, :numeric] = asked[:, :numeric]
    for place, columns in enumerate(table.blank_categories.values(), start=numeric):
        inclusion[:, columns] = asked[:, [place]]
    models: dict[Any, Missingness] = {}
    data: list[str] = []
    otherwise: list[str] = []
    for label in [label for label, counts in table.missing.items() if counts]:
        mine, code = table.y == label, revealed.classes.index(label)
        answers: Revealed | None = revealed
        n_found = int(revealed.answered[code].sum())
        values = f"{n_found} single values of {label!r} were looked up"
        by_phi = (
            f"φ of {label!r} is learned from {n_found} looked-up values and the "
            "table's other columns, "
        )
        if not n_found:
            if label == controlled:
                raise ValueError(
                    f"Nothing of the controlled class {label!r} is filled in, and it "
                    "has incomplete rows. Fill some in, or add --missingness learn."
                )
            answers = None
            by_phi = f"φ of {label!r} is learned from the table, for the score alone"
        elif revealed.rowwise[code]:
            drawn = (inclusion.min(axis=1) > 0.0) & rows_with_nan(table.X) & mine
            lost = int((drawn & rows_with_nan(X)).sum())
            note = f" ({lost} of them not found)" if lost else ""
            count = int(drawn.sum())
            data.append(f"{count} incomplete rows of {label!r} were looked up{note}")
            continue
        elif label == controlled:
            # Single values complete rows that miss few.
            if _certifiable(X[mine], inclusion[mine], trial):
                data.append(values)
                continue
            by_phi += (
                "as these values complete too few of its rows for a certificate by "
                "themselves (to look up whole rows: missratio query --budget)"
            )
        else:
            # A ratio takes single values of the other class as they are.
            silent = (revealed.missing[code] > 0) & (revealed.answered[code] == 0)
            if not silent.any():
                data.append(f"{values}, for the score")
                continue
            names = [revealed.feature_names[j] for j in np.flatnonzero(silent)]
            by_phi += f"for the score, as no value of {listed(names)} was looked up"
        try:
            models |= _learned(table, [label], answers)
        except ValueError:
            if answers is not None:
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


def trial_of(options: FitOptions, alpha: float) -> dict[str, Any]:
    """What a trial of a certificate needs to know, as classifiers call it."""
    return {
        "alpha": alpha,
        "delta": options.delta,
        "calibration_size": options.calibration_size,
        "random_state": options.seed,
    }


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
    table: labelled.LabelledTable,
    controlled: Any,
    options: FitOptions,
    trial: Mapping[str, Any],
    settings: Mapping[str, Any] | None = None,
) -> Iterator[Way]:
    """What can be done for a promise about complete rows.

    `settings` is what commands need not say, by default what `missratio.toml` says.
    """
    if table.has_blank_level:
        # For complete rows a blank category is a value to look up.
        source = open_table(options.data, **options.how)
        table = labelled.read_labelled(
            source, options.target, drop=options.drop, groups=options.groups,
            **options.cells,
        )  # fmt: skip
        if options.controlled is not None:
            table, controlled = labelled.two_classes(
                table, options.controlled, options.versus
            )
    out, learned = options.out, options.missingness == LEARN
    if options.undecided or learned:
        out = out.with_stem(f"{out.stem}-{'other' if learned else 'complete'}")
    plan = options.out.with_name("plan.csv")

    def fit(**changes: Any) -> str:
        """The same fit with other options."""
        # A method that reads rows with blanks need not be one for complete rows.
        given = dict.fromkeys(["new_rows", "missingness", "force", "method"])
        given["out"] = out
        return options.command("fit", type(options), settings, **(given | changes))

    def look_up(what: str, promise: str, **changes: Any) -> Way:
        """A plan of look-ups, and the fit that takes it filled in."""
        given = {"out": plan, "force": False, "alpha": trial["alpha"]}
        query = options.command("query", QueryOptions, settings, **(given | changes))
        between = f"and, when {plan} is filled in,"
        return Way(f"look up {what}", promise, (query, fit(queries=plan)), between)

    lossy = [label for label, counts in table.missing.items() if counts]
    assumes = "no assumption about φ"
    if controlled is None:
        pass
    elif controlled not in lossy:
        promise = f"rows of {controlled!r} are complete and need no φ; a better score"
        yield look_up("50 values a column", promise, per_feature=50)
    else:
        # Single values of the other class, where it has holes, make the score better.
        goal, more = ("both", 1.5) if len(lossy) > 1 else ("certificate", 1.0)
        incomplete = table.counts[controlled] - table.n_complete(controlled)
        price = sum(table.missing[controlled].values()) / incomplete
        values, rows, promise = max(1, round(more * ROWS * price)), ROWS, assumes
        if table.X.size <= QUICK_CELLS:
            drawn = _drawn(table, controlled, budget=values, goal=goal, **trial)
            assert drawn.power is not None
            best = len(drawn.power.values) - 1
            values, rows = int(drawn.power.values[best]), drawn.power.rows[best]
            values = min(values, sum(sum(n.values()) for n in table.missing.values()))
            promise = f"power about {drawn.power.figure(best)}, {assumes}"
        what = f"{rows} rows ({values} values)"
        yield look_up(what, promise, goal=goal, budget=values)
    if learned:
        yield Way(
            "classify rows as they come, blanks included",
            f"{assumes}, if new rows have blanks like these",
            (fit(new_rows="blanks"),),
        )
    elif not any(_loses_whole_rows(table, label) for label in lossy):
        yield Way(
            "look up nothing",
            f"{PHI} is learned from the other columns, and must be logistic in the "
            "value itself",
            (fit(missingness=LEARN),),
        )
    yield Way(
        "write down why values are missing",
        "it holds if what you write is right",
        ("missratio fit --example", fit(missingness=EXAMPLE_FILE)),
        f"and, when {EXAMPLE_FILE} says why,",
    )
