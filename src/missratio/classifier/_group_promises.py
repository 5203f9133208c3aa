"""Certificates of one class's error, group by group, from the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from missratio._base.typing import IntArray
from missratio.classifier._bounded import BoundedClass, Score
from missratio.classifier._calibration import Calibration
from missratio.classifier._certificate import Certificate
from missratio.classifier._choosing import ChoosingRows
from missratio.classifier._class_table import ClassTable
from missratio.classifier._planner import infeasible
from missratio.classifier._promise import Promise
from missratio.classifier._trust import Trust
from missratio.exceptions import NoCertificateError, Remedy

CONTROLLED, OTHER = 0, 1
MORE_ROWS = "bring more rows of that class"


@dataclass(frozen=True)
class GroupPromises:
    """Rows of the controlled class, and what is promised of each group of them.

    P(a group's threshold breaks its promise) ≤ the promise's δ, group by group: the
    caller splits δ.

    Parameters
    ----------
    table : ClassTable
        Its first class is the controlled one.
    calibrating : ndarray of int
        Rows that calibrate.
    members : ndarray of object of shape (n_rows,)
        The group of each row.
    promise : Promise
        At each group's part of δ; levels come with the calls.
    """

    table: ClassTable
    calibrating: IntArray
    members: Any
    promise: Promise

    def refuse_too_few_rows(self, levels: Mapping[Any, float]) -> None:
        """Refuse levels that a group's rows can't certify, whatever their scores."""
        if self.promise.on_infeasible != "raise":
            return
        for group, level in levels.items():
            try:
                self._bounded(group, level).refuse_too_few_rows()
            except NoCertificateError as error:
                remedies = (Remedy.RAISE_LEVELS, MORE_ROWS, Remedy.REJECT_ALL)
                found = replace(error.message, remedies=remedies)
                raise _about(group, NoCertificateError(found)) from None

    def with_cap(
        self, score: Score, fitted: IntArray, level: float
    ) -> tuple[GroupPromises, Trust | None]:
        """The same, with a cap on weights for all groups where that promises power.

        Rows above it get the controlled class.

        Parameters
        ----------
        score : callable
            Gives the score of rows.
        fitted : ndarray of int
            Rows that the scores were fitted to.
        level : float
            The least of the levels that are promised.
        """
        other = ChoosingRows.few(self.table.rows_of(OTHER, fitted))
        trust = self._bounded(None, level).chosen_cap(score, self.table.take(other))
        if trust is None:
            return self, None
        return replace(self, promise=replace(self.promise, cap=trust.cap)), trust

    def certify(
        self, group: Any, level: float, score: Score, rng: np.random.Generator
    ) -> tuple[Certificate, Calibration]:
        """A threshold for the error of one group, or of all rows where it is None.

        Raises
        ------
        NoCertificateError
            Where none can be certified, unless the promise rejects all rows then.
        """
        bounded = self._bounded(group, level)
        found, calibration = bounded.certify(score, level, rng)
        if not found.certified and self.promise.on_infeasible == "raise":
            error = infeasible(calibration, bounded.label, level, found.rule)
            raise _about(group, error)
        return found, calibration

    def _bounded(self, group: Any, level: float) -> BoundedClass:
        """A group's calibration rows; those of all groups where it is None."""
        own = self.table.rows_of(CONTROLLED, self.calibrating)
        if group is not None:
            own = own[self.members[own] == group]
        promise = replace(self.promise, alpha=level, on_infeasible="reject_all")
        fallback = self.promise.controlled
        return BoundedClass.among(self.table, promise, fallback, self.calibrating, own)


def _about(group: Any, error: NoCertificateError) -> NoCertificateError:
    """The same about one group, which could also be merged with another."""
    if group is None:
        return error
    message = error.message
    *others, last = message.remedies
    return NoCertificateError(
        replace(
            message,
            claim="Group {group!r}: " + message.claim,
            remedies=(*others, "merge the group with another", last),
            facts={**message.facts, "group": group},
        )
    )
