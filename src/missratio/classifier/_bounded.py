"""One of several bounded classes: its rows, and its certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from missratio._base.typing import FloatArray, IntArray
from missratio.classifier._calibration import Calibration
from missratio.classifier._cautions import warn_of_repeated_rows
from missratio.classifier._certificate import Certificate, assumptions, tested
from missratio.classifier._certify import certify
from missratio.classifier._choice import choose_cap, expected_error
from missratio.classifier._class_table import ClassTable
from missratio.classifier._planner import infeasible
from missratio.classifier._promise import Promise
from missratio.classifier._trust import ScoredRows, Trust
from missratio.exceptions import Message, NoCertificateError, Remedy
from missratio.missingness import (
    Missingness,
    MissingnessCheck,
    RowInclusion,
    missingness_check,
    refuse_contradiction,
)
from missratio.rows import weighed_twice
from missratio.threshold import make_rule

Score = Callable[[Any], FloatArray]


@dataclass(frozen=True)
class BoundedClass:
    """Rows of a class that a bound is promised for.

    Parameters
    ----------
    promise : Promise
        At the class's part of δ. Its `other` lists the labels that are wrong.
    fallback : object
        The label of rows that can't be scored.
    rows, training : array or dataframe
        Rows to calibrate on, and others of the class.
    model : Missingness or None
    drawn : RowInclusion or None
        By what draw the rows to calibrate on are there.
    """

    promise: Promise
    fallback: Any
    rows: Any
    training: Any
    model: Missingness | None
    drawn: RowInclusion | None

    @classmethod
    def among(
        cls,
        table: ClassTable,
        promise: Promise,
        fallback: Any,
        calibrating: IntArray,
        own: IntArray | None = None,
    ) -> BoundedClass:
        """The rows of a table that a promise about one class is made with.

        Parameters
        ----------
        table : ClassTable
        promise : Promise
            Its `controlled` is the class.
        fallback : object
        calibrating : ndarray of int
            All rows that calibrate, of any class.
        own : ndarray of int, optional
            Those that the promise is about, where it is about some of the class only.
        """
        position = table.labels.index(promise.controlled)
        every = np.flatnonzero(table.codes == position)
        if own is None:
            own = table.rows_of(position, calibrating)
        others = np.setdiff1d(every, calibrating)
        by_design = table.by_design(every)
        if by_design and promise.controlled in (table.models or {}):
            raise weighed_twice(promise.controlled)
        return cls(
            promise,
            fallback,
            table.take(own),
            table.take(others),
            None if by_design else table.model(position, own),
            table.drawn.besides(own, others) if by_design and table.drawn else None,
        )

    @property
    def label(self) -> Any:
        """The class."""
        return self.promise.controlled

    @property
    def n_rows(self) -> int:
        """How many rows calibrate."""
        return int(self.rows.shape[0])

    def chosen_cap(self, score: Score, other: Any) -> Trust | None:
        """The cap on weights that promises most power; None where none is needed.

        Parameters
        ----------
        score : callable
            Gives h_k of rows, before anything was chosen.
        other : array or dataframe
            Rows of classes that are wrong, which take no part in calibration.
        """
        if self.model is None:
            return None
        promise = replace(self.promise, caps=True)
        training, detected = (ScoredRows(X, score(X)) for X in (self.training, other))
        return choose_cap(promise, self.model, training, detected, self.n_rows)

    def with_cap(self, trust: Trust | None) -> BoundedClass:
        """The same, certified with a cap."""
        if trust is None:
            return self
        return replace(self, promise=replace(self.promise, cap=trust.cap))

    def at(self, delta: float) -> BoundedClass:
        """The same, certified with another probability."""
        return replace(self, promise=replace(self.promise, delta=delta))

    def expected(self, score: Score) -> Callable[[float], float] | None:
        """The error that should be certified at a level, where rows are weighted.

        None where they count the same, or the rule can't tell.

        Parameters
        ----------
        score : callable
            Gives h_k of rows, before anything was chosen.
        """
        if self.model is None:
            return None
        training = ScoredRows(self.training, score(self.training))
        return expected_error(self.promise, self.model, training, self.n_rows)

    def refuse_too_few_rows(self) -> None:
        """Refuse a level that so few rows can't certify, whatever their scores."""
        if self.drawn is not None:
            return
        alpha, delta, bound = self.promise.alpha, self.promise.delta, 1.0
        if self.model is not None:
            known = self.model.weight_bound(
                self.rows.shape[1], self.promise.odds_factor
            )
            if known is None:
                return
            bound = known
        rule = make_rule(self.promise.rule, complete=self.model is None)
        needed = rule.least_rows(alpha, delta, bound)
        if needed is None or needed <= self.n_rows:
            return
        raise NoCertificateError(
            Message(
                "alpha={alpha:g} for class {label!r} can't be certified at its part "
                "{delta:.3g} of delta: {rows} rows would calibrate, and rule {rule!r} "
                "needs {needed} or more.",
                label=self.label,
                remedies=(
                    Remedy.RAISE_LEVELS,
                    "bring more rows of that class",
                    Remedy.CALIBRATE_MORE,
                    "bound fewer classes",
                ),
                facts={
                    "alpha": alpha,
                    "delta": delta,
                    "rows": self.n_rows,
                    "rule": rule.name,
                    "needed": needed,
                },
            )
        )

    def certify(
        self, score: Score, level: float, rng: np.random.Generator
    ) -> tuple[Certificate, Calibration]:
        """Choose the threshold above which a row of the class is wrong.

        Parameters
        ----------
        score : callable
            Gives h_k of rows; fixed before these rows are seen.
        level : float
            What to certify, α or less.
        rng : Generator
            For rules that draw.

        Returns
        -------
        certificate : Certificate
            Its threshold is infinite where none is certified.
        """
        checks: tuple[MissingnessCheck, ...] = ()
        scored = ScoredRows(self.rows, score(self.rows))
        training = None
        if self.model is not None:
            # A group may have no row at all.
            if self.n_rows:
                checks = missingness_check(
                    self.rows,
                    self.model,
                    complete=True,
                    odds_factor=self.promise.odds_factor,
                )
            tests = getattr(self.model, "checks", ())
            factor = self.promise.odds_factor
            refuse_contradiction(checks, self.label, tests, factor)
            training = ScoredRows(self.training, score(self.training))
            scored = scored.drawn(rng)
        if self.drawn is not None:
            scored = replace(scored, inclusion=self.drawn)
        warn_of_repeated_rows(self.rows, self.training)
        promise = replace(self.promise, alpha=level)
        found, calibration = certify(promise, scored, training, None, self.model, score)
        assumed = assumptions(
            self.label,
            promise.deployment,
            self.model,
            promise.odds_factor,
            promise.cap,
            looked_up=self.drawn is not None,
            fallback=self.fallback,
        )
        certificate = replace(
            found,
            alpha=self.promise.alpha,
            # No threshold below ∞ leaves few enough rows above it.
            certified=found.certified and bool(found.threshold < np.inf),
            checks=tested(self.model, checks),
            assumptions=assumed,
        )
        return certificate, calibration

    def too_few_rows(self, calibration: Calibration, rule: str) -> NoCertificateError:
        """Why nothing was certified, where only the number of rows is to blame."""
        error = infeasible(calibration, self.label, self.promise.alpha, rule)
        remedies = tuple(r for r in error.remedies if r != Remedy.REJECT_ALL)
        return NoCertificateError(replace(error.message, remedies=remedies))
