"""The errors of predictions, where a table has labels too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from missratio._base.typing import BoolArray
from missratio._files.numbers import canonical
from missratio.app.modelfile import TableModel
from missratio.evaluation import exact_interval


@dataclass
class Measured:
    """How many labelled rows were classified as what they are.

    Parameters
    ----------
    controlled_rows, controlled_wrong : int
        Rows of the controlled class, and those of them called the other.
    other_rows, other_found : int
        Rows of the other class, and those of them called so.
    unknown : int
        Rows with no label, or with one that the model doesn't know.
    """

    controlled_rows: int = 0
    controlled_wrong: int = 0
    other_rows: int = 0
    other_found: int = 0
    unknown: int = 0

    def add(self, model: TableModel, texts: list[Any], above: BoolArray) -> None:
        """Count some more rows.

        Parameters
        ----------
        model : TableModel
        texts : list of str or None
            Their labels.
        above : ndarray of bool
            Which of them are called the other class.
        """
        controlled = canonical(model.certificate.controlled_class)
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
            "controlled": _share(self.controlled_wrong, self.controlled_rows),
            "other": _share(self.other_found, self.other_rows),
            "unknown_labels": self.unknown,
        }

    def words(self, model: TableModel) -> str:
        """The same in a sentence."""
        certificate, other = model.certificate, model.other_class
        parts = []
        if self.controlled_rows:
            parts.append(
                f"{self.controlled_wrong} of {self.controlled_rows} "
                f"{certificate.controlled_class!r} are called {other!r} "
                f"({_percent(self.controlled_wrong, self.controlled_rows)}; at most "
                f"{100.0 * certificate.alpha:.4g}% was promised)"
            )
        if self.other_rows:
            parts.append(
                f"{self.other_found} of {self.other_rows} {other!r} are found "
                f"({_percent(self.other_found, self.other_rows)})"
            )
        if self.unknown:
            parts.append(f"{self.unknown} rows have no label or another one")
        return f"By the labels in {model.target!r}: {'; '.join(parts)}."


def _percent(events: int, rows: int) -> str:
    return f"{100.0 * events / rows:.1f}%"


def _share(events: int, rows: int) -> dict[str, Any] | None:
    if not rows:
        return None
    low, high = exact_interval(events, rows)
    return {
        "rows": rows, "called_other": events, "share": events / rows,
        "low": low, "high": high,
    }  # fmt: skip
