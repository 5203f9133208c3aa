"""What the data says against a learned φ: tests with a level, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "form", "other columns", "agreement", "weights", "instrument", "together", "label"
]
Source = Literal["table", "looked up"]

LEVEL = 0.01
"""How often a right φ is called wrong, by any of a model's tests, at most."""

REMEDY = (
    "Don't weight by this φ: use looked-up values as data, or model φ in another way."
)


class MissingnessWarning(UserWarning):
    """The data contradicts a learned φ, or can't teach it."""


@dataclass(frozen=True)
class Check:
    """One test of a learned φ, of one feature.

    Parameters
    ----------
    kind : str
        "form": is φ logistic in the value? "other columns": does it depend on others,
        or do entries go missing together? "agreement": do looked-up values and the
        table say the same? "weights": do a handful of rows carry half of them?
        "instrument": could the table teach φ at all? "together": do columns go missing
        in the same rows? "label": is φ the same in all classes (`compare_classes`)?
    feature : str
        "rows" for a rowwise model.
    source : {"table", "looked up"}
        What the check was computed from.
    statistic : float
        "form" and "agreement": χ²; "other columns": a normal deviate; "weights": the
        share of observed rows that carries half of the weight; "instrument": how many
        looked-up values would teach as much.
    p_value : float or None
        None for a check that is no test.
    failed : bool
        Whether it speaks against the model, by `LEVEL` for all tests of the model.
    sentence : str
        What was found, and what to do about it where it failed.
    odds_factor : float or None
        By what factor the odds φ/(1 − φ) would have to be wrong, at the least, to
        explain what a test found; None for a check that is no test.
    """

    kind: Kind
    feature: str
    source: Source
    statistic: float
    p_value: float | None
    failed: bool
    sentence: str
    odds_factor: float | None = None

    @property
    def finding(self) -> str:
        """The sentence without what to do about it."""
        return self.sentence.removesuffix(f" {REMEDY}")


def failing(checks: Sequence[Check]) -> str:
    """The sentences of checks that failed, one a line; empty if there are none."""
    return "\n".join(check.sentence for check in checks if check.failed)
