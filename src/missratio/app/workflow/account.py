"""Which missing cells of a table to look up."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from missratio._base.blocks import rows_with_nan
from missratio._base.callbacks import has_callbacks
from missratio._base.hints import did_you_mean, listed
from missratio._base.typing import BoolArray, FloatArray
from missratio.app.queries import QueryPlan, Revealed, plan_queries
from missratio.app.tables import Encoder, LabelledTable, Wanted
from missratio.exceptions import (
    Message,
    OpenWay,
    Remedy,
    TableError,
    UnexplainedMissingError,
)
from missratio.learning import LearnedMissingness, learn_missingness
from missratio.missingness import (
    BlockMissingness,
    LogisticMissingness,
    Missingness,
    RowInclusion,
    StepMissingness,
)
from missratio.threshold import LookUpRule, looked_up_sample

GOALS = ("certificate", "ratio", "both")
PER_FEATURE = 30


@dataclass(frozen=True)
class PlanOptions:
    """What is asked of a plan.

    Parameters
    ----------
    controlled : object
        The label whose error is to be certified.
    per_feature : int or None
        Values for each class and column, where there is no budget.
    budget : int or None
        Values in all.
    goal : {"certificate", "ratio", "both"} or None
        What the budget is for.
    rowwise : bool
    only_controlled : bool
    alpha, delta : float
        The certificate to plan for.
    calibration_size : float
        The share of the controlled class's rows that it is calibrated with.
    seed : int
    """

    controlled: Any
    per_feature: int | None = None
    budget: int | None = None
    goal: str | None = None
    rowwise: bool = False
    only_controlled: bool = False
    alpha: float = 0.05
    delta: float = 0.05
    calibration_size: float = 0.5
    seed: int = 0

    def checked(self) -> PlanOptions:
        """Refuse what contradicts itself; fill in what was left open."""
        if self.goal is not None and self.goal not in GOALS:
            hint = did_you_mean(self.goal, GOALS)
            raise ValueError(
                f"--goal must be one of {listed(GOALS)}, got {self.goal!r}.{hint}"
            )
        if self.budget is None:
            if self.goal is not None:
                raise ValueError("--goal is what a budget is for: give --budget.")
            return replace(self, per_feature=self.per_feature or PER_FEATURE)
        if self.per_feature is not None:
            raise ValueError("--budget and --per-feature contradict: give one.")
        if self.rowwise or self.only_controlled:
            raise ValueError(
                "--budget decides itself between rows and values, and between "
                "classes: leave out --rows and --only-controlled, or take "
                "--per-feature."
            )
        return replace(self, goal=self.goal or "both")


def plan_table(
    table: LabelledTable,
    options: PlanOptions,
    *,
    ids: Sequence[Any] | None = None,
    lines: Sequence[int] | None = None,
) -> QueryPlan:
    """Draw missing cells of a table, as `plan_queries` does.

    Parameters
    ----------
    table : LabelledTable
    options : PlanOptions
    ids : sequence, or None
        The user's key of each row of the file.
    lines : sequence of int, or None
        The line of each row of the file.
    """
    frame = table.asked_frame()
    if not frame.num_columns:
        raise TableError("Nothing is missing, and there is no column of numbers.")
    try:
        return plan_queries(
            frame,
            table.y,
            per_feature=options.per_feature,
            budget=options.budget,
            goal=options.goal,  # type: ignore[arg-type]
            rowwise=options.rowwise,
            classes=[options.controlled] if options.only_controlled else None,
            ids=_of_rows(table, ids),
            lines=_of_rows(table, lines),
            levels=table.asked_levels,
            controlled_class=options.controlled,
            alpha=options.alpha,
            delta=options.delta,
            calibration_size=options.calibration_size,
            random_state=options.seed,
        )
    except ValueError as error:
        raise TableError(str(error)) from error


def _of_rows(table: LabelledTable, given: Sequence[Any] | None) -> list[Any] | None:
    return None if given is None else [given[row] for row in table.rows.tolist()]


PHI = "φ, the probability of being missing,"


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
    revealed : Revealed, optional
        What was looked up.
    warnings : list of Message
    """

    way: str
    sentence: str
    X: FloatArray
    models: dict[Any, Missingness] = field(default_factory=dict)
    inclusion: FloatArray | None = None
    revealed: Revealed | None = None
    warnings: list[Message] = field(default_factory=list)


def complete_account(X: FloatArray) -> Account:
    """Nothing is missing."""
    return Account("complete", "No value is missing.", X)


def observed_account(X: FloatArray) -> Account:
    """Values stay missing, as they will in rows to come."""
    sentence = "Missing values are left as they are: the certificate is for rows that "
    return Account("as observed", f"{sentence}lose values as these did.", X)


def written_account(
    X: FloatArray, models: dict[Any, Missingness], file: Path
) -> Account:
    """φ as a person wrote it down."""
    sentence = f"{PHI} is as {file} says; the certificate assumes that it is right."
    return Account("file", sentence, X, models)


class LearningSteps:
    """A scikit-learn callback that tells how many columns φ was learned of.

    Parameters
    ----------
    step : callable
        Told what is done next, and of how many parts it is.
    tick : callable
        Told that so many parts are done.
    """

    def __init__(
        self,
        step: Callable[[str, int | None], None],
        tick: Callable[[int], None],
    ) -> None:
        self._step, self._tick = step, tick

    def setup(self, estimator: Any, context: Any) -> None:
        """Begin a class."""
        self.begin(context.max_subtasks)

    def begin(self, total: int | None = None) -> None:
        """Begin, of so many parts."""
        self._step("Learning why values are missing", total)

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing is told of a beginning."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Some columns are done."""
        if context.parent is not None:
            self._tick(1)

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing is to be taken down."""


def table_account(
    table: LabelledTable, labels: Sequence[Any], steps: LearningSteps | None = None
) -> Account:
    """φ learned from the table, with nothing looked up."""
    models, told = recorded(lambda: learned_models(table, labels, None, steps))
    sentence = (
        f"{PHI} is learned from the table's other columns; the certificate assumes "
        "that it is logistic in the value itself."
    )
    return Account("table", sentence, table.X, models, warnings=told)


def recorded(
    learn: Callable[[], dict[Any, Missingness]],
) -> tuple[dict[Any, Missingness], list[Message]]:
    """What is learned, and what was warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        models = learn()
    return models, [Message.plain(str(each.message)) for each in caught]


def learned_models(
    table: LabelledTable,
    labels: Sequence[Any],
    revealed: Revealed | None,
    steps: LearningSteps | None = None,
) -> dict[Any, Missingness]:
    """φ of each class that has missing values.

    Parameters
    ----------
    table : LabelledTable
    labels : sequence
    revealed : Revealed, or None
        What was looked up, where φ is to be learned from that too.
    steps : LearningSteps, optional
        Told of the columns.
    """
    callbacks = [steps] if steps is not None and has_callbacks() else None
    if steps is not None and callbacks is None:
        steps.begin()
    models: dict[Any, Missingness] = {}
    for label in labels:
        if not table.missing_counts(label):
            continue
        whole = loses_whole_rows(table, label)
        if whole and revealed is None:
            raise TableError(
                f"Rows of class {label!r} are missing as a whole, so that the table "
                "has nothing to learn from. Look rows up (missratio query --budget)."
            )
        X = table.X[table.y == label]
        answers = None
        if revealed is not None:
            answers = table.encoded_answers(revealed[label])
        try:
            models[label] = learn_missingness(
                _framed(X, table),
                answers,
                rowwise=whole,
                categories=[own.tolist() for own in table.blank_categories.values()],
                callbacks=callbacks,
            )
        except ValueError as error:
            raise TableError(f"Class {label!r}: {error}") from error
    return models


def loses_whole_rows(table: LabelledTable, label: Any) -> bool:
    """Whether rows of a class are missing as a whole, if any of them is."""
    X = table.X[table.y == label]
    lost = np.isnan(X[rows_with_nan(X)])
    return X.shape[1] > 1 and len(lost) > 0 and bool(lost.all())


def _framed(X: Any, table: LabelledTable) -> Any:
    import pyarrow

    names = table.encoder.encoded_names
    return pyarrow.table({name: X[:, j] for j, name in enumerate(names)})


def check_models(
    encoder: Encoder,
    missing: Mapping[Any, Mapping[str, int]],
    models: Mapping[Any, Missingness],
) -> None:
    """Refuse models that leave missing cells unexplained.

    Parameters
    ----------
    encoder : Encoder
    missing : mapping from label to mapping
        Missing cells of each column, of each class.
    models : mapping from label to Missingness
    """
    for label, counts in missing.items():
        model = models.get(label)
        if not counts or (model is not None and model.rowwise):
            continue
        if model is None:
            raise TableError(
                f"Class {label!r} has missing values in {named_counts(counts)}, and "
                "the file says nothing of that class. Add it."
            )
        unsaid = [name for name in counts if _never(model, name, encoder)]
        if unsaid:
            raise TableError(
                f"Class {label!r} has missing values in {listed(unsaid)}, and its "
                "model says that none are. Add the column(s) to it."
            )


def named_counts(counts: Mapping[str, int]) -> str:
    """Columns with how many values they miss."""
    return ", ".join(f"{name!r} ({n})" for name, n in counts.items())


def _never(model: Missingness, name: str, encoder: Encoder) -> bool:
    """Whether a model says that a column has nothing missing."""
    if name in encoder.indicators:
        blocks = model.blocks if isinstance(model, BlockMissingness) else ()
        first = int(encoder.indicators[name][0])
        return all(first not in block.columns for block in blocks)
    place = encoder.names.index(name)
    if isinstance(model, BlockMissingness):
        model = model.base
    if isinstance(model, LogisticMissingness):
        return bool(np.atleast_1d(model.intercept)[place] == -np.inf)
    assert isinstance(model, StepMissingness)
    return bool(np.atleast_1d(model.probability)[place] == 0.0)


# Scores to try out whether a draw certifies, and the share of α that it should reach.
TRIALS, ENOUGH = 5, 1.0 / 3.0


def lookup_account(
    table: LabelledTable,
    labels: Sequence[Any],
    asked: PlanOptions,
    plan: Path,
    *,
    learn: bool,
    lines: Sequence[int] | None = None,
) -> Account:
    """What was looked up: as data, unless φ is to be learned from it.

    Parameters
    ----------
    table : LabelledTable
    labels : sequence
        The two classes.
    asked : PlanOptions
        What is to be certified.
    plan : Path
        Filled in.
    learn : bool
        Whether φ is to be learned from look-ups and table in any case.
    lines : sequence of int, optional
        Where each row of the table is in its file.
    """
    revealed = _read(table, plan, lines)
    try:
        if learn:
            return _learned_account(table, labels, revealed)
        return _data_account(table, labels, asked, revealed)
    except ValueError as error:
        raise TableError(f"{plan} was refused. {error}") from error


def _read(table: LabelledTable, plan: Path, lines: Sequence[int] | None) -> Revealed:
    try:
        return QueryPlan.read(
            plan, table.asked_frame(), table.y, lines=lines, levels=table.asked_levels
        )
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no plan {plan}.") from None
    except ValueError as error:
        raise TableError(f"{plan} was refused. {error}") from error


def _learned_account(
    table: LabelledTable, labels: Sequence[Any], revealed: Revealed
) -> Account:
    """φ from look-ups and table together."""
    models, told = recorded(lambda: learned_models(table, labels, revealed))
    sentence = (
        f"{PHI} is learned from {int(revealed.answered.sum())} looked-up values and "
        "the table's other columns; the certificate assumes that it is logistic in the "
        "value itself."
    )
    return Account("both", sentence, table.X, models, revealed=revealed, warnings=told)


@dataclass
class _Filled:
    """A table as it is filled in, class by class, and what is said of it.

    Parameters
    ----------
    X, inclusion : ndarray of shape (n_rows, n_encoded)
    data, otherwise : list of str
        Of which classes look-ups are data, and what was done about others.
    models : dict from label to Missingness
        Of classes whose φ is learned.
    warnings : list of Message
    """

    X: FloatArray
    inclusion: FloatArray
    data: list[str] = field(default_factory=list)
    otherwise: list[str] = field(default_factory=list)
    models: dict[Any, Missingness] = field(default_factory=dict)
    warnings: list[Message] = field(default_factory=list)

    @classmethod
    def of(cls, table: LabelledTable, revealed: Revealed) -> _Filled:
        filled, asked = revealed.fill(table.asked_frame())
        values = np.column_stack([column.to_numpy() for column in filled.columns])
        answers = table.encoded_answers(values)
        X = np.where(np.isnan(table.X), answers, table.X)
        inclusion, numeric = np.ones(X.shape), table.encoder.n_numeric
        inclusion[:, :numeric] = asked[:, :numeric]
        for place, own in enumerate(table.blank_categories.values(), start=numeric):
            inclusion[:, own] = asked[:, [place]]
        return cls(X, inclusion)

    def sentence(self, by_phi: bool) -> str:
        """What was done, and whether the certificate rests on a learned φ."""
        said = [f"Look-ups are data: {'; '.join(self.data)}."] if self.data else []
        said += [f"{part}." for part in self.otherwise]
        rests = "The certificate assumes no model of φ, the probability of being "
        rests += "missing."
        if by_phi:
            rests = f"The certificate assumes that {PHI} is logistic in the value "
            rests += "itself."
        return " ".join([*said, rests])

    def learn(
        self, table: LabelledTable, label: Any, revealed: Revealed | None
    ) -> None:
        """Learn φ of a class, whose rows then stay as they were."""
        models, told = recorded(lambda: learned_models(table, [label], revealed))
        self.models |= models
        self.warnings += told
        self.leave(table, label)

    def leave(self, table: LabelledTable, label: Any) -> None:
        """Leave a class's rows as they were."""
        rows = table.y == label
        self.X[rows] = table.X[rows]
        self.inclusion[rows] = np.where(np.isnan(table.X[rows]), 0.0, 1.0)


def _data_account(
    table: LabelledTable,
    labels: Sequence[Any],
    asked: PlanOptions,
    revealed: Revealed,
) -> Account:
    """Looked-up values, as values that were drawn with a known probability."""
    filled, controlled = _Filled.of(table, revealed), asked.controlled
    for label in labels:
        if not table.missing_counts(label):
            continue
        if not revealed[label].size or np.isnan(revealed[label]).all():
            _nothing_found(table, label, label == controlled, filled)
        elif revealed.rowwise[revealed.classes.index(label)]:
            _rows_found(table, label, filled)
        elif label == controlled:
            _cells_of_controlled(table, asked, revealed, filled)
        else:
            _cells_of_other(table, label, revealed, filled)
    by_phi = controlled in filled.models
    return Account(
        "both" if by_phi else "look-ups",
        filled.sentence(by_phi),
        filled.X,
        filled.models,
        filled.inclusion,
        revealed,
        filled.warnings,
    )


def _rows_found(table: LabelledTable, label: Any, filled: _Filled) -> None:
    """Rows that were drawn whole; some of them may not have been found."""
    mine = table.y == label
    drawn = (filled.inclusion.min(axis=1) > 0.0) & rows_with_nan(table.X) & mine
    asked, found = int(drawn.sum()), int((drawn & ~rows_with_nan(filled.X)).sum())
    lost = f" ({asked - found} of them not found)" if asked > found else ""
    filled.data.append(f"{asked} incomplete rows of {label!r} were looked up{lost}")


def _nothing_found(
    table: LabelledTable, label: Any, controlled: bool, filled: _Filled
) -> None:
    """A class of which nothing was filled in."""
    if controlled:
        raise ValueError(
            f"Nothing of the controlled class {label!r} is filled in, and it has "
            "incomplete rows: nothing can be certified. Fill some in, or add "
            "--missingness learn."
        )
    try:
        filled.learn(table, label, None)
    except ValueError:
        filled.leave(table, label)
        filled.otherwise.append(
            f"Incomplete rows of {label!r} are left out of the score"
        )
        return
    part = f"φ of {label!r} is learned from the table, for the score alone"
    filled.otherwise.append(part)


def _cells_of_other(
    table: LabelledTable, label: Any, revealed: Revealed, filled: _Filled
) -> None:
    """Single values of the other class: a ratio takes them as they are."""
    code = revealed.classes.index(label)
    silent = (revealed.missing[code] > 0) & (revealed.answered[code] == 0)
    n_found = int(revealed.answered[code].sum())
    if not silent.any():
        found = f"{n_found} single values of {label!r} were looked up, for the score"
        filled.data.append(found)
        return
    names = listed([revealed.feature_names[j] for j in np.flatnonzero(silent)])
    filled.learn(table, label, revealed)
    filled.otherwise.append(
        f"φ of {label!r} is learned from {n_found} looked-up values and the table's "
        f"other columns, for the score, as no value of {names} was looked up"
    )


def _cells_of_controlled(
    table: LabelledTable, asked: PlanOptions, revealed: Revealed, filled: _Filled
) -> None:
    """Single values of the certified class: they complete rows that miss few."""
    label = asked.controlled
    n_found = int(revealed.answered[revealed.classes.index(label)].sum())
    if _certifiable(table.y == label, filled, asked):
        filled.data.append(f"{n_found} single values of {label!r} were looked up")
        return
    filled.learn(table, label, revealed)
    filled.otherwise.append(
        f"φ of {label!r} is learned from {n_found} looked-up values and the table's "
        "other columns, as these values complete too few of its rows for a certificate "
        "by themselves (to look up whole rows: missratio query --budget)"
    )


def _certifiable(mine: BoolArray, filled: _Filled, asked: PlanOptions) -> bool:
    """Whether the draw certifies much of α, tried on scores that know no missingness.

    Rows that were not completed count as errors where nothing stands for them.
    """
    X, rng = filled.X[mine], np.random.default_rng(asked.seed)
    drawn = RowInclusion.of(filled.inclusion[mine], ~rows_with_nan(X), X.shape[1])
    reached = []
    for _ in range(TRIALS):
        scores = rng.permutation(len(X)).astype(np.float64)
        rows = rng.permutation(len(X))
        n_held = round(asked.calibration_size * len(X))
        held = drawn.besides(rows[:n_held], rows[n_held:])
        sample = looked_up_sample(
            scores[:n_held], held.probability, held.strata, expected=held.expected
        )
        threshold = LookUpRule().select(sample, asked.alpha, asked.delta).threshold
        reached.append(0.0 if threshold is None else (scores > threshold).mean())
    return float(np.mean(reached)) >= ENOUGH * asked.alpha


# Rows of the controlled class to plan for; a quarter to twice as many are tried.
ROWS = 80
# What --alpha and --delta are, unless told otherwise.
USUAL_LEVEL = 0.05
# On larger tables, trials of look-ups take too long to be part of a message.
MOST_ROWS = 200_000


def unexplained(
    table: LabelledTable,
    labels: Sequence[Any],
    file: Path,
    wanted: Wanted,
    plan: PlanOptions | None,
) -> UnexplainedMissingError:
    """The error that shows the ways that are open to a table.

    Parameters
    ----------
    table : LabelledTable
    labels : sequence
        The classes.
    file : Path
    wanted : Wanted
    plan : PlanOptions or None
        Of the look-ups that are proposed, but for their number; None for no proposal.
    """
    lossy = [label for label in labels if table.missing_counts(label)]
    claim = "; ".join(
        f"class {label!r} has missing values in "
        f"{named_counts(table.missing_counts(label))}"
        for label in lossy
    )
    return UnexplainedMissingError(
        Message(
            "{claim}, and nothing says why. These ways are open:",
            label=lossy[0],
            facts={
                "claim": claim[:1].upper() + claim[1:],
                "query": "" if plan is None else _query(file, wanted, plan),
            },
            ways=tuple(_ways(table, lossy, plan)),
        )
    )


def _ways(
    table: LabelledTable, lossy: list[Any], plan: PlanOptions | None
) -> Iterator[OpenWay]:
    if plan is not None:
        yield from _look_ups(table, lossy, plan)
    if not any(loses_whole_rows(table, label) for label in lossy):
        yield OpenWay(
            "look up nothing",
            "φ, the probability of being missing, is learned from the other columns, "
            f"and must be logistic in the value itself{_untaught(table, lossy)}",
            Remedy.LEARN,
        )
    yield OpenWay(
        "write down why", "holds if what you write is right", Remedy.WRITE_DOWN
    )
    yield OpenWay(
        "do nothing",
        "holds for rows that lose values as these did, and for no others",
        Remedy.AS_THEY_ARE,
    )


def _look_ups(
    table: LabelledTable, lossy: list[Any], plan: PlanOptions
) -> Iterator[OpenWay]:
    """A plan of look-ups, and the power that it should buy."""
    if plan.controlled not in lossy:
        yield OpenWay(
            f"look up 50 values a column of {lossy[0]!r}",
            f"rows of {plan.controlled!r} are complete, so the certificate needs no φ; "
            "the score gets better",
            Remedy.LOOK_UP_CELLS,
        )
        return
    mine = table.y == plan.controlled
    n_values = sum(table.missing_counts(plan.controlled).values())
    price = n_values / np.count_nonzero(rows_with_nan(table.X[mine]))
    # Single values of the other class, where it has holes, make the score better.
    goal, more = ("both", 1.5) if len(lossy) > 1 else ("certificate", 1.0)
    wanted = replace(plan, budget=max(1, round(more * ROWS * price)), goal=goal)
    assumes = "no assumption about φ"
    if len(table.y) > MOST_ROWS:
        yield OpenWay(
            f"look up {ROWS} rows",
            assumes,
            Remedy.LOOK_UP_ROWS,
            {"values": wanted.budget, "goal": goal},
        )
        return
    try:
        power = plan_table(table, wanted).power
    except TableError:
        return
    assert power is not None
    useful = np.flatnonzero(power.power > 0.0)
    for place in dict.fromkeys(useful[[0, -1]].tolist() if len(useful) else []):
        values = int(power.values[place])
        rows = f"{power.rows[place]} rows"
        if goal == "both":
            rows += f" of {plan.controlled!r} and single values of the other class"
        yield OpenWay(
            f"look up {rows} ({values} values)",
            f"power about {power.figure(place)}, {assumes}",
            Remedy.LOOK_UP_ROWS,
            {"values": values, "goal": goal},
        )


def _untaught(table: LabelledTable, lossy: list[Any]) -> str:
    """The columns that the others say nothing of."""
    if len(table.y) > MOST_ROWS:
        return ""
    try:
        learned = table_account(table, lossy).models.values()
    except TableError:
        return "; but they can't teach it here"
    names = [
        check.feature
        for model in learned
        if isinstance(model, LearnedMissingness)
        for check in model.checks
        if check.kind == "instrument" and check.failed
    ]
    return f"; but they say too little about {listed(names)}" if names else ""


def _query(file: Path, wanted: Wanted, plan: PlanOptions) -> str:
    """The words of `missratio query` for this table."""
    words = [str(file), "--target", wanted.target, "--controlled", str(plan.controlled)]
    for option, names in (
        ("--drop", wanted.not_features[1:]),
        ("--categorical", wanted.categorical),
        ("--missing-value", wanted.missing_values),
    ):
        for name in names:
            words += [option, name]
    for option, value in (("--alpha", plan.alpha), ("--delta", plan.delta)):
        if value != USUAL_LEVEL:
            words += [option, f"{value:g}"]
    return shlex.join(words)
