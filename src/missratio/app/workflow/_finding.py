"""What a fitted classifier finds, in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Finding:
    """The share of the other class that a classifier finds, at its certified error.

    Parameters
    ----------
    controlled, other : object
        The two labels.
    alpha : float
    certified : bool
    power : float or None
        None where no row of the other class can be scored.
    low, high : float
        Its interval.
    confidence : float
        Of the interval.
    rows : int
        Rows of the other class that it was measured on.
    source : str
        Which rows these are.
    """

    controlled: Any
    other: Any
    alpha: float
    certified: bool
    power: float | None
    low: float
    high: float
    confidence: float
    rows: int
    source: str

    @classmethod
    def of(cls, report: dict[str, Any], controlled: Any, other: Any) -> Finding:
        """What a report's data says.

        Parameters
        ----------
        report : dict
        controlled, other : object
            The two labels, as the table has them.
        """
        curve, certificate = report["curve"], report["certificate"]
        own = curve["own"]
        return cls(
            controlled,
            other,
            certificate["alpha"],
            certificate["certified"],
            curve["power"][own],
            curve["power_low"][own],
            curve["power_high"][own],
            curve["confidence"],
            curve["power_rows"],
            curve["source"],
        )

    @property
    def sentence(self) -> str:
        """The same in words."""
        bound = f"at most {_level(self.alpha)} of {self.controlled!r} are called "
        bound += f"{self.other!r}"
        if not self.certified:
            return (
                f"Finds no {self.other!r}: no threshold could be certified, and every "
                f"row is called {self.controlled!r}."
            )
        if self.power is None:
            return (
                f"Which share of {self.other!r} it finds can't be measured: none of "
                f"its rows is complete. But {bound}."
            )
        span = f"{_bare(self.low)}–{_bare(self.high)}%"
        return f"Finds {_bare(self.power)}% of {self.other!r} ({span}) while {bound}."


def _level(share: float) -> str:
    """A level that was asked for, as it is."""
    return f"{100.0 * share:.6g}%"


def _bare(share: float) -> str:
    """An estimated share in percent, with a decimal near 0 and 100."""
    value = 100.0 * share
    return f"{value:.0f}" if 1.0 <= value <= 99.0 or value == 0.0 else f"{value:.3g}"
