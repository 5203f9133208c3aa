"""Which two classes of a table are told apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from missratio._base.hints import did_you_mean, shown
from missratio._files.numbers import canonical
from missratio.app.tables._labelled import LabelledTable
from missratio.exceptions import TableError

REST = "rest"
"""What all labels but the controlled one are called together."""
_SHOWN = 6


def find_label(table: LabelledTable, target: str, option: str, typed: str) -> Any:
    """The label that is meant: 1 and 1.0 are the same.

    Parameters
    ----------
    table : LabelledTable
    target : str
        The column of labels.
    option : str
        That it was given to, for messages.
    typed : str
    """
    by_name = {canonical(label): label for label in table.counts}
    if canonical(typed) not in by_name:
        hint = did_you_mean(typed, map(str, table.counts))
        raise TableError(
            f"{option} {typed!r} is not a label in {target!r}.{hint} There are "
            f"{_shown(table)}."
        )
    return by_name[canonical(typed)]


def two_classes(
    table: LabelledTable, target: str, controlled: str, versus: str | None = None
) -> tuple[LabelledTable, Any]:
    """The rows of the two classes, and the label that is controlled.

    Parameters
    ----------
    table : LabelledTable
        Of two labels, or of more where `versus` says what to do about them.
    target : str
        The column of labels.
    controlled : str
        As it was typed.
    versus : str or None
        Another label, whose rows alone are kept beside; or "rest", for all others as
        one class.
    """
    label = find_label(table, target, "--controlled", controlled)
    if versus is None:
        if len(table.counts) != 2:
            remedy = "Bring rows of another class"
            if len(table.counts) > 2:
                remedy = (
                    "Take all others as one class (--versus rest), keep one of them "
                    "(--versus LABEL), bound several (--alpha LABEL=SHARE for each, "
                    "without --controlled)"
                )
            raise TableError(
                f"The target {target!r} must have two labels: got {_shown(table)}. "
                f"{remedy}, or choose another target."
            )
        return table, label
    if versus == REST and REST not in map(str, table.counts):
        return _against_the_rest(table, label)
    other = find_label(table, target, "--versus", versus)
    if other == label:
        raise TableError(
            f"--versus {versus!r} is the controlled class itself: name another label, "
            f"or {REST!r}."
        )
    kept = np.flatnonzero(np.isin(table.y, [label, other]))
    counts = {each: n for each, n in table.counts.items() if each in (label, other)}
    groups = None if table.groups is None else table.groups[kept]
    return replace(
        table, X=table.X[kept], y=table.y[kept], counts=counts, rows=table.rows[kept],
        groups=groups,
    ), label  # fmt: skip


def _against_the_rest(table: LabelledTable, label: Any) -> tuple[LabelledTable, str]:
    """All labels but one as a class of its own; both are texts then."""
    others = [str(each) for each in table.counts if each != label]
    if not others:
        raise TableError(f"--versus rest: there is no label but {label!r}.")
    name, mine = str(label), table.counts[label]
    y = np.where(table.y == label, name, REST)
    counts = {name: mine, REST: len(y) - mine}
    counts = dict(sorted(counts.items()))
    return replace(table, y=y, counts=counts, rest=tuple(others)), name


def _shown(table: LabelledTable) -> str:
    if len(table.counts) > _SHOWN:
        return f"{len(table.counts)} labels"
    return ", ".join(f"{shown(label)} ({n} rows)" for label, n in table.counts.items())
