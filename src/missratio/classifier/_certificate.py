"""What a threshold guarantees, as data and in words."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Certificate:
    """The guarantee P(type I error > α) ≤ δ of a calibrated classifier.

    Parameters
    ----------
    alpha, delta : float
    rule : str
        The rule that chose the threshold.
    controlled_class : object
        Rows of this class are taken for the other one with probability α at most.
    deployment : {"complete", "as-observed"}
        Whether the guarantee is for complete rows, or for rows that lose values just as
        the calibration rows did.
    rows, observed : int
        Calibration rows, and how many of them were observed.
    effective_rows : float
        Kish's effective number of rows under their weights.
    threshold : float
        Rows that score above are given to the other class; infinite where none is.
    estimated_error : float
        The (weighted) share of calibration rows above the threshold.
    error_bound : float
        What the type I error is below with probability 1 − δ: α, or less where no order
        statistic comes closer.
    certified : bool
        False where no threshold could be certified and everything is given to the
        controlled class.
    assumptions : tuple of str
        What the guarantee rests on.
    """

    alpha: float
    delta: float
    rule: str
    controlled_class: Any
    deployment: str
    rows: int
    observed: int
    effective_rows: float
    threshold: float
    estimated_error: float
    error_bound: float
    certified: bool
    assumptions: tuple[str, ...]

    @property
    def valid_while(self) -> str:
        """Until when the certificate holds."""
        return (
            f"as long as rows of class {self.controlled_class!r} come from the law "
            "that the calibration rows came from, and neither the model nor the "
            "threshold is changed"
        )

    def to_dict(self) -> dict[str, Any]:
        """The certificate as plain data; a threshold that isn't finite is None."""
        data = {**asdict(self), "valid_while": self.valid_while}
        if not math.isfinite(self.threshold):
            data["threshold"] = None
        return data

    def __str__(self) -> str:
        """The certificate in words."""
        if not self.certified:
            return (
                f"No threshold could be certified at alpha={self.alpha:g}, "
                f"delta={self.delta:g} from {self.rows} calibration rows: every row is "
                f"given to class {self.controlled_class!r}, so its error is 0 and the "
                "power is 0."
            )
        kind = "complete" if self.deployment == "complete" else "as they are observed"
        lines = [
            f"Of the rows of class {self.controlled_class!r}, {kind}, at most "
            f"{self.alpha:.3g} are given to the other class, with probability "
            f"{1 - self.delta:.3g}.",
            f"Rule {self.rule!r} on {self.rows} calibration rows, {self.observed} of "
            f"them observed, worth {self.effective_rows:.4g}: threshold "
            f"{self.threshold:.6g}, estimated error {self.estimated_error:.3g}, bound "
            f"{self.error_bound:.3g}.",
            "Assumed: " + "; ".join(self.assumptions) + ".",
            f"It holds {self.valid_while}.",
        ]
        return "\n".join(lines)


def assumptions(controlled: Any, deployment: str, model: Any) -> tuple[str, ...]:
    """What a guarantee rests on.

    Parameters
    ----------
    controlled : object
        The controlled class.
    deployment : {"complete", "as-observed"}
    model : Missingness or None
        Why calibration rows are missing; None where none is.
    """
    common = f"calibration rows of class {controlled!r} are drawn independently from"
    if deployment == "as-observed":
        return (
            f"{common} the law of the rows to be classified, missing values included",
        )
    if model is None:
        return (f"{common} the law of the rows to be classified", "none is missing")
    return (
        f"{common} the law of the rows to be classified, before values went missing",
        f"they went missing as {model!r} says",
        "a row to be classified is complete, or else gets the controlled class",
    )
