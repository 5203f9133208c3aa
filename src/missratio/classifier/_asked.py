"""What is asked of a classifier of several classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from missratio._base.hints import another_type, did_you_mean
from missratio.classifier._decisions import Decision, ordered, unordered
from missratio.threshold import check_levels


@dataclass(frozen=True)
class Asked:
    """Bounds on errors of several classes.

    Parameters
    ----------
    alpha : mapping from class to float
    delta : float
    order : sequence of classes, or None
        The most severe first.
    labels : list
        The classes that there are, sorted.
    """

    alpha: Mapping[Any, float]
    delta: float
    order: Sequence[Any] | None
    labels: list[Any]

    @property
    def part(self) -> float:
        """Each bounded class's part of δ."""
        return self.delta / len(self.alpha)

    @property
    def most(self) -> float:
        """What part of δ a class can have at most: all, if thresholds move together."""
        return self.delta if self.order is None else self.part

    @property
    def positions(self) -> tuple[int, ...]:
        """The bounded classes, in the order in which thresholds are chosen."""
        return self.undecided().bounded

    @property
    def levels(self) -> dict[int, float]:
        """α of the bounded classes, by position."""
        return {self.labels.index(label): level for label, level in self.alpha.items()}

    @property
    def fallback(self) -> Any:
        """The class of a row that can't be scored."""
        return self.labels[self.undecided().fallback]

    def wrong(self, label: Any) -> tuple[Any, ...]:
        """The classes that a row of a bounded class must not get."""
        if self.order is None:
            return tuple(other for other in self.labels if other != label)
        return tuple(self.order)[list(self.order).index(label) + 1 :]

    def undecided(self) -> Decision:
        """The decision before anything is chosen."""
        if self.order is not None:
            return ordered([self.labels.index(label) for label in self.order])
        bounded = [self.labels.index(label) for label in self.alpha]
        return unordered(len(self.labels), bounded)

    def check(self) -> None:
        """Refuse bounds that don't fit the classes."""
        if len(self.labels) < 2:
            raise ValueError(
                f"y has one class only, {self.labels[0]!r}: there is nothing to tell "
                "apart."
            )
        if not isinstance(self.alpha, Mapping) or not self.alpha:
            raise TypeError(
                "alpha must map classes to the bounds on their errors, such as "
                f"{{{self.labels[0]!r}: 0.05}}: got {self.alpha!r}."
            )
        for label, level in self.alpha.items():
            self._check_label(label, "alpha")
            check_levels(level, self.delta)
        if self.order is not None:
            self._check_order(list(self.order))

    def _check_order(self, order: list[Any]) -> None:
        for label in order:
            self._check_label(label, "order")
        if len(order) != len(self.labels) or len(set(order)) != len(order):
            raise ValueError(
                f"order must list each class once, the most severe first: got {order} "
                f"for the classes {self.labels}."
            )
        if set(self.alpha) != set(order[:-1]):
            raise ValueError(
                "With order, alpha has a bound for each class but the last, "
                f"{order[:-1]}: got {list(self.alpha)}."
            )

    def _check_label(self, label: Any, parameter: str) -> None:
        if label not in self.labels:
            hint = another_type(label, self.labels)
            if not hint:
                hint = did_you_mean(str(label), [str(known) for known in self.labels])
            raise ValueError(
                f"{parameter} names a class {label!r}, but the classes are "
                f"{self.labels}.{hint}"
            )
