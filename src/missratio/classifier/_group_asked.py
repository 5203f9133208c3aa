"""What is asked of a classifier with several promises on one class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from missratio._base.hints import another_type, check_number, did_you_mean, listed
from missratio.ratio import check_choice
from missratio.threshold import check_levels

THRESHOLDS = ("own", "shared")


@dataclass(frozen=True)
class GroupsAsked:
    """Bounds on the error of groups, or of all rows, and on the precision.

    Parameters
    ----------
    alpha, delta : float
    group_alpha : mapping from group to float, or None
    threshold : {"own", "shared"}
    precision, prevalence : float or None
    """

    alpha: float
    delta: float
    group_alpha: Mapping[Any, float] | None
    threshold: str
    precision: float | None
    prevalence: float | None

    def check(self) -> None:
        """Refuse what isn't among the choices, and what doesn't go together."""
        check_levels(self.alpha, self.delta)
        if self.group_alpha is not None and not isinstance(self.group_alpha, Mapping):
            raise TypeError(
                "group_alpha must map groups to the bounds on their errors, such as "
                f"{{'north': 0.05}}: got {self.group_alpha!r}."
            )
        for level in (self.group_alpha or {}).values():
            check_levels(level, self.delta)
        check_choice("threshold", self.threshold, THRESHOLDS)
        if self.precision is None:
            if self.prevalence is not None:
                raise ValueError(
                    f"prevalence={self.prevalence} is for a precision, and none is "
                    "asked for: set precision, or leave out prevalence."
                )
            return
        for name, value in (
            ("precision", self.precision),
            ("prevalence", self.prevalence),
        ):
            if value is not None:
                check_number(name, value)
            if value is None or not 0.0 < value < 1.0:
                raise ValueError(
                    f"{name} must lie strictly between 0 and 1, got {value}: a "
                    "precision is for a known share of the other class."
                )
        if self.threshold != "shared":
            raise ValueError(
                "A precision is promised for all rows: set threshold='shared'."
            )

    def levels(self, groups: list[Any]) -> dict[Any, float]:
        """The level of each promise about the error; None stands for all rows."""
        given = dict(self.group_alpha or {})
        for group in given:
            if group not in groups:
                hint = another_type(group, groups)
                hint = hint or did_you_mean(str(group), [str(x) for x in groups])
                raise ValueError(
                    f"group_alpha names a group {group!r} that no row is in.{hint} "
                    f"There are {listed(groups)}."
                )
        if self.threshold == "shared":
            return {None: self.alpha, **given}
        return {group: given.get(group, self.alpha) for group in groups}
