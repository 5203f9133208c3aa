"""Where a report comes from: when, from which rows, by which command."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline


@dataclass(frozen=True)
class Origin:
    """What is needed to make a report again.

    Parameters
    ----------
    command : str, optional
        As it was typed.
    file : str, optional
        The table's name.
    sha256 : str, optional
        The digest of the table.
    """

    command: str | None = None
    file: str | None = None
    sha256: str | None = None

    def described(self, classifier: Any) -> dict[str, Any]:
        """As data, with the time and the classifier's seed."""
        seed = classifier.random_state
        return {
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "seed": int(seed) if isinstance(seed, (int, np.integer)) else None,
            "command": self.command,
            "file": self.file,
            "sha256": self.sha256,
        }


def estimator_name(estimator: Any) -> str:
    """What an estimator is, or the last step of a pipeline."""
    return type(last_step(estimator)).__name__


def last_step(estimator: Any) -> Any:
    """The last step of a pipeline; another estimator itself."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
