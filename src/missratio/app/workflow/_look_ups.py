"""Looked-up values as data: rows for the certificate, single ones for the score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from missratio._base.blocks import rows_with_nan
from missratio._base.hints import listed
from missratio._base.typing import BoolArray, FloatArray
from missratio.app.tables import LabelledTable
from missratio.app.workflow._account import (
    PHI,
    Account,
    learned_models,
    recorded,
)
from missratio.app.workflow._plan import PlanOptions
from missratio.exceptions import Message, TableError
from missratio.learning import QueryPlan, Revealed
from missratio.missingness import Missingness, RowInclusion
from missratio.threshold import LookUpRule, looked_up_sample

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
