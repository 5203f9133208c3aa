"""What one threshold, or one for each group, promises: a table."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import narwhals.stable.v2 as nw

from missratio.classifier._certificate import (
    Certificate,
    named,
    percent,
    rows_of,
    together,
)


@dataclass(frozen=True)
class KeptPromise:
    """One of several promises, and what came of it.

    Parameters
    ----------
    kind : {"error", "precision"}
        A bound from above on the controlled class's error, or from below on the
        precision.
    group : object
        The group that it is about; None for all rows.
    level : float
        What was asked for.
    bound : float
        What is certified: at most (error) or at least (precision) this.
    estimated : float
        The share among the calibration rows.
    rows : int
        Calibration rows.
    delta : float
        Its part of δ.
    threshold : float
        Above which rows get the other class; infinite where none was certified.
    """

    kind: str
    group: Any
    level: float
    bound: float
    estimated: float
    rows: int
    delta: float
    threshold: float

    @classmethod
    def of(
        cls,
        group: Any,
        level: float,
        found: Certificate,
        delta: float,
        threshold: float,
    ) -> KeptPromise:
        """What came of a promise about a group's error."""
        bound = found.error_bound if found.certified else 0.0
        error = found.estimated_error
        return cls("error", group, level, bound, error, found.rows, delta, threshold)

    @property
    def certified(self) -> bool:
        """Whether rows of the group are classified at all."""
        return math.isfinite(self.threshold)


@dataclass(frozen=True)
class GroupedCertificate:
    """The guarantee P(some promise is broken) ≤ δ.

    Parameters
    ----------
    delta : float
    shared : bool
        Whether there is one threshold for all groups.
    promises : tuple of KeptPromise
    certificates : tuple of Certificate
        Of the errors, in the order of the promises about them.
    prevalence : float or None
        The share of the other class that a precision is for.
    """

    delta: float
    shared: bool
    promises: tuple[KeptPromise, ...]
    certificates: tuple[Certificate, ...]
    prevalence: float | None = None

    @property
    def thresholds(self) -> dict[Any, float]:
        """By group; None is the threshold of all rows where it is shared."""
        if self.shared:
            return {None: self.promises[0].threshold}
        return {each.group: each.threshold for each in self.promises}

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on, each thing once."""
        every = [text for each in self.certificates for text in each.assumptions]
        every.append(
            "within each group the calibration rows were drawn from the same "
            "population as that group's rows to be classified"
        )
        if self.prevalence is not None:
            every.append(
                f"{percent(self.prevalence)} of the rows to be classified are of "
                f"{named(self.certificates[0].other_class)}, and the calibration rows "
                "of that class were drawn at random from it"
            )
        return tuple(dict.fromkeys(every))

    @property
    def valid_while(self) -> str:
        """Until when the certificate holds."""
        return (
            "as long as new rows of each group come from the same population as its "
            "calibration rows, and neither the model nor a threshold is changed"
        )

    def to_dict(self) -> dict[str, Any]:
        """The certificate as plain data; a number that isn't finite is None."""
        promises = [{**asdict(p), "certified": p.certified} for p in self.promises]
        for each in promises:
            if not math.isfinite(each["threshold"]):
                each["threshold"] = None
        return {
            "delta": self.delta,
            "shared": self.shared,
            "prevalence": self.prevalence,
            "promises": promises,
            "assumptions": list(self.assumptions),
            "valid_while": self.valid_while,
        }

    def to_frame(self, backend: Any = "pandas") -> Any:
        """What each group gets, a row for each promise.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}

        Returns
        -------
        dataframe
        """
        columns = {
            "promise": [each.kind for each in self.promises],
            "group": [
                "all" if each.group is None else str(each.group)
                for each in self.promises
            ],
            "asked": [each.level for each in self.promises],
            "certified": [each.certified for each in self.promises],
            "bound": [each.bound for each in self.promises],
            "estimated": [each.estimated for each in self.promises],
            "rows": [each.rows for each in self.promises],
            "delta": [each.delta for each in self.promises],
        }
        return nw.from_dict(columns, backend=backend).to_native()

    def __str__(self) -> str:
        """The certificate in words."""
        return together(self, [self._sentence(each) for each in self.promises])

    def _sentence(self, promise: KeptPromise) -> str:
        any_of = self.certificates[0]
        where = "" if promise.group is None else f" in group {promise.group!r}"
        if not promise.certified:
            return (
                f"All rows{where} are classified as "
                f"{named(any_of.controlled_class)}: {promise.rows} calibration rows "
                f"are too few for {percent(promise.level)}, so the power there is 0."
            )
        if promise.kind == "precision":
            return (
                f"At least {percent(promise.bound)} of the rows classified as "
                f"{named(any_of.other_class)} are of that class (asked for: "
                f"{percent(promise.level)})."
            )
        return (
            f"At most {percent(promise.bound)} of {rows_of(any_of.controlled_class)}"
            f"{where} are classified as {named(any_of.other_class)} (asked for: "
            f"{percent(promise.level)}; estimated {percent(promise.estimated)} of "
            f"{promise.rows} calibration rows)."
        )
