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
    missingness_delta : float
        The part of δ that a learned φ may be out of its band with; 0 for a known φ.
    sensitivity : float or None
        Γ, the largest factor by which the odds of being missing may be wrong, either
        way, before the guarantee fails. For a learned φ the estimated odds are meant.
        None where nothing is missing or nothing is certified.
    looked_up, not_found : int
        Incomplete rows that were drawn to be looked up, and those of them that were not
        found, which count as errors.
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
    missingness_delta: float = 0.0
    sensitivity: float | None = None
    looked_up: int = 0
    not_found: int = 0

    @property
    def valid_while(self) -> str:
        """Until when the certificate holds."""
        return (
            f"as long as rows of class {self.controlled_class!r} come from the law "
            "that the calibration rows came from, and neither the model nor the "
            "threshold is changed"
        )

    def to_dict(self) -> dict[str, Any]:
        """The certificate as plain data; a number that isn't finite is None."""
        data = {**asdict(self), "valid_while": self.valid_while}
        for name in ("threshold", "sensitivity"):
            if data[name] is not None and not math.isfinite(data[name]):
                data[name] = None
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
            *self._on_missingness(),
            f"It holds {self.valid_while}.",
        ]
        return "\n".join(lines)

    def _on_missingness(self) -> list[str]:
        """How far the guarantee allows for errors in φ."""
        lines = []
        if self.looked_up:
            lines.append(
                f"{self.looked_up} incomplete rows were looked up, {self.not_found} of "
                "them not found; those count as errors."
            )
        if self.missingness_delta:
            lines.append(
                "Why values are missing was learned: of delta, a part of "
                f"{self.missingness_delta:.3g} is for φ being out of its band, and the "
                "weights are the worst within it."
            )
        if self.sensitivity is not None:
            lines.append(
                "The odds of being missing may be wrong by a factor of "
                f"Γ = {self.sensitivity:.3g} either way before it fails."
            )
        return lines


def assumptions(
    controlled: Any,
    deployment: str,
    model: Any,
    odds_factor: float = 1.0,
    cap: float | None = None,
    *,
    looked_up: bool = False,
) -> tuple[str, ...]:
    """What a guarantee rests on.

    Parameters
    ----------
    controlled : object
        The controlled class.
    deployment : {"complete", "as-observed"}
    model : Missingness or None
        Why calibration rows are missing; None where none is.
    odds_factor : float
        By what factor the odds of being missing may be wrong.
    cap : float or None
        The largest weight that a row may have to be given to the other class.
    looked_up : bool
        Whether incomplete rows were drawn and looked up, instead of a model.
    """
    common = f"calibration rows of class {controlled!r} are drawn independently from"
    if deployment == "as-observed":
        return (
            f"{common} the law of the rows to be classified, missing values included",
        )
    before = (
        f"{common} the law of the rows to be classified, before values went missing"
    )
    if looked_up:
        return (
            before,
            "rows to look up were drawn at random among the incomplete ones, and how "
            "many has nothing to do with their values",
            "what was found is true",
            "no model of missingness is assumed",
            "a row to be classified is complete, or else gets the controlled class",
        )
    if model is None:
        return (f"{common} the law of the rows to be classified", "none is missing")
    how = f"they went missing as {model!r} says"
    if model.learned:
        how = (
            "the log-odds of being missing are linear in the values, and those looked "
            "up were drawn by chance among the missing"
        )
    if odds_factor != 1.0:
        how += f", or with odds up to {odds_factor:.3g} times as large or small"
    reach = ""
    if cap is not None:
        reach = f", as does one whose like is missing more often than {1 - 1 / cap:.3g}"
    return (
        before,
        how,
        "a row to be classified is complete, or else gets the controlled class" + reach,
    )
