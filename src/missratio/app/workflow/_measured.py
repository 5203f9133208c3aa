"""The errors of predictions, where a table has labels too."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from missratio._base.typing import IntArray
from missratio._files.numbers import canonical
from missratio.app.modelfile import (
    GroupedTableModel,
    MulticlassTableModel,
    TableModel,
)
from missratio.evaluation import exact_interval


class MeasuredErrors(ABC):
    """How many labelled rows were classified as what they are."""

    @abstractmethod
    def add(
        self, texts: list[Any], codes: IntArray, groups: list[Any] | None = None
    ) -> None:
        """Count some more rows.

        Parameters
        ----------
        texts : list of str or None
            Their labels.
        codes : ndarray of int
            What they are called, by place among the labels.
        groups : list of str or None, optional
            What the table has in the column of groups.
        """

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """The counts, and the shares with their exact 95 % intervals."""

    @property
    @abstractmethod
    def words(self) -> str:
        """The same in a sentence."""


@dataclass
class Measured(MeasuredErrors):
    """The two errors of a model of two classes.

    Parameters
    ----------
    model : TableModel or GroupedTableModel
    controlled_rows, controlled_wrong : int
        Rows of the controlled class, and those of them called the other.
    other_rows, other_found : int
        Rows of the other class, and those of them called so.
    unknown : int
        Rows with no label, or with one that the model doesn't know.
    """

    model: TableModel | GroupedTableModel
    controlled_rows: int = 0
    controlled_wrong: int = 0
    other_rows: int = 0
    other_found: int = 0
    unknown: int = 0

    def add(
        self, texts: list[Any], codes: IntArray, groups: list[Any] | None = None
    ) -> None:
        """Count some more rows."""
        model, above = self.model, codes == 1
        controlled = canonical(model.fallback)
        others = {canonical(label) for label in (model.other_class, *model.rest)}
        labels = [None if text is None else canonical(text) for text in texts]
        mine = np.array([label == controlled for label in labels], dtype=bool)
        other = np.array([label in others for label in labels], dtype=bool)
        self.controlled_rows += int(mine.sum())
        self.controlled_wrong += int((mine & above).sum())
        self.other_rows += int(other.sum())
        self.other_found += int((other & above).sum())
        self.unknown += int((~mine & ~other).sum())

    def facts(self) -> dict[str, Any]:
        """The counts, and the shares with their exact 95 % intervals."""
        return {
            "controlled": _share(
                "called_other", self.controlled_wrong, self.controlled_rows
            ),
            "other": _share("called_other", self.other_found, self.other_rows),
            "unknown_labels": self.unknown,
        }

    @property
    def words(self) -> str:
        """The same in a sentence."""
        assert isinstance(self.model, TableModel)
        parts = self.parts(self.model.certificate.alpha)
        return _said(self.model.target, parts, self.unknown)

    def parts(self, alpha: float | None) -> list[str]:
        """The two errors in words, and what was promised of one of them.

        Parameters
        ----------
        alpha : float or None
            None where nothing was.
        """
        controlled, other = self.model.fallback, self.model.other_class
        promised = "" if alpha is None else f"; at most {100 * alpha:.4g}% was promised"
        parts = []
        if self.controlled_rows:
            parts.append(
                f"{self.controlled_wrong} of {self.controlled_rows} {controlled!r} are "
                f"called {other!r} "
                f"({_percent(self.controlled_wrong, self.controlled_rows)}{promised})"
            )
        if self.other_rows:
            parts.append(
                f"{self.other_found} of {self.other_rows} {other!r} are found "
                f"({_percent(self.other_found, self.other_rows)})"
            )
        return parts


@dataclass
class MeasuredGroups(MeasuredErrors):
    """The two errors of each group.

    Parameters
    ----------
    model : GroupedTableModel
    groups : dict from group to Measured
        Those of the model; None stands for all others together.
    """

    model: GroupedTableModel
    groups: dict[Any, Measured] = field(init=False)

    def __post_init__(self) -> None:
        every = [*self.model.classifier.groups_, None]
        self.groups = {group: Measured(self.model) for group in every}

    def add(
        self, texts: list[Any], codes: IntArray, groups: list[Any] | None = None
    ) -> None:
        """Count some more rows."""
        given = [None] * len(texts) if groups is None else groups
        members = self.model.members(given).tolist()
        for group, measured in self.groups.items():
            mine = [row for row, member in enumerate(members) if member == group]
            measured.add([texts[row] for row in mine], codes[mine])

    def facts(self) -> dict[str, Any]:
        """The counts, and the shares with their exact 95 % intervals."""
        found = {
            "other groups" if group is None else str(group): measured.facts()
            for group, measured in self.groups.items()
            if group is not None or self._rows(measured)
        }
        return {"groups": found}

    @property
    def words(self) -> str:
        """The same in a sentence for each group."""
        promised = {each.group: each.level for each in self.model.certificate.promises}
        lines = []
        for group, measured in self.groups.items():
            alpha = promised.get(group) if group is not None else None
            parts = measured.parts(alpha)
            if parts:
                name = "other groups" if group is None else f"group {group!r}"
                lines.append(f"- {name}: {'; '.join(parts)}")
        unknown = sum(measured.unknown for measured in self.groups.values())
        if unknown:
            lines.append(f"- {unknown} rows have no label or another one")
        return "\n".join([f"By the labels in {self.model.target!r}:", *lines])

    def _rows(self, measured: Measured) -> int:
        return measured.controlled_rows + measured.other_rows + measured.unknown


@dataclass
class MeasuredClasses(MeasuredErrors):
    """What rows of each of several classes are called.

    Parameters
    ----------
    model : MulticlassTableModel
    counts : ndarray of int of shape (n_classes, n_classes)
        Rows of each class, by what they are called.
    unknown : int
        Rows with no label, or with one that the model doesn't know.
    """

    model: MulticlassTableModel
    counts: IntArray = field(init=False)
    unknown: int = 0

    def __post_init__(self) -> None:
        n_classes = len(self.model.classes_)
        self.counts = np.zeros((n_classes, n_classes), dtype=np.intp)

    def add(
        self, texts: list[Any], codes: IntArray, groups: list[Any] | None = None
    ) -> None:
        """Count some more rows."""
        places = {
            canonical(label): place
            for place, label in enumerate(self.model.classes_.tolist())
        }
        found = [
            -1 if text is None else places.get(canonical(text), -1) for text in texts
        ]
        true = np.array(found, dtype=np.intp)
        known = true >= 0
        np.add.at(self.counts, (true[known], codes[known]), 1)
        self.unknown += int((~known).sum())

    def facts(self) -> dict[str, Any]:
        """The counts, and the shares with their exact 95 % intervals."""
        labels = self.model.classes_.tolist()
        found = {
            str(label): {
                "wrong": self._wrong(place),
                "found": _share(
                    "found", int(self.counts[place, place]), self._rows(place)
                ),
                "called": dict(
                    zip(map(str, labels), self.counts[place].tolist(), strict=True)
                ),
            }
            for place, label in enumerate(labels)
        }
        return {"classes": found, "unknown_labels": self.unknown}

    @property
    def words(self) -> str:
        """The same in a sentence."""
        parts = []
        bounded = {
            each.controlled_class for each in self.model.certificate.certificates
        }
        for place, label in enumerate(self.model.classes_.tolist()):
            rows, right = self._rows(place), int(self.counts[place, place])
            if not rows:
                continue
            text = f"{right} of {rows} {label!r} are found ({_percent(right, rows)})"
            if label in bounded:
                wrong = self._events(place)
                text += (
                    f", {wrong} are {self._error} ({_percent(wrong, rows)}; at most "
                )
                text += f"{100.0 * self.model.certificate[label].alpha:.4g}% was "
                text += "promised)"
            parts.append(text)
        return _said(self.model.target, parts, self.unknown)

    @property
    def _error(self) -> str:
        """What the bounded error is called."""
        return "called less severe" if self.model.certificate.order else "called wrong"

    def _rows(self, place: int) -> int:
        return int(self.counts[place].sum())

    def _events(self, place: int) -> int:
        """Rows of a bounded class that got a class which they must not get."""
        every = np.arange(len(self.counts))
        wrong = self.model.wrong(every, self.model.classes_.tolist()[place])
        return int(self.counts[place, wrong].sum())

    def _wrong(self, place: int) -> dict[str, Any] | None:
        """The bounded error; None for a class that has no bound."""
        label = self.model.classes_.tolist()[place]
        for each in self.model.certificate.certificates:
            if each.controlled_class == label:
                return _share("wrong", self._events(place), self._rows(place))
        return None


def _said(target: str, parts: list[str], unknown: int) -> str:
    if unknown:
        parts = [*parts, f"{unknown} rows have no label or another one"]
    return f"By the labels in {target!r}: {'; '.join(parts)}."


def _percent(events: int, rows: int) -> str:
    return f"{100.0 * events / rows:.1f}%"


def _share(name: str, events: int, rows: int) -> dict[str, Any] | None:
    if not rows:
        return None
    low, high = exact_interval(events, rows)
    return {
        "rows": rows, name: events, "share": events / rows, "low": low, "high": high,
    }  # fmt: skip
