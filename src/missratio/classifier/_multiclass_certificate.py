"""What several thresholds guarantee together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from missratio.classifier._certificate import (
    Certificate,
    named,
    on_sensitivity,
    percent,
    rows_of,
    together,
)


@dataclass(frozen=True)
class MulticlassCertificate:
    """The guarantee P(some class's error is above its α) ≤ δ.

    Each class has a certificate of its own. At its part of δ, these fail together with
    the sum of the parts at most, however they depend on each other. At all of δ, the
    thresholds have moved together, and the first place that would break a bound is
    certified with probability δ at most.

    Parameters
    ----------
    delta : float
    certificates : tuple of Certificate
        One for each bounded class, in the order in which thresholds were chosen. Its
        `other_class` lists the classes that a row of it must not get.
    order : tuple or None
        The classes, the most severe first, where they are ordered.
    fallback : object
        The class of a row that can't be scored.
    """

    delta: float
    certificates: tuple[Certificate, ...]
    order: tuple[Any, ...] | None
    fallback: Any

    def __getitem__(self, label: Any) -> Certificate:
        """The certificate of one class."""
        for certificate in self.certificates:
            if certificate.controlled_class == label:
                return certificate
        known = [each.controlled_class for each in self.certificates]
        raise KeyError(f"{label!r} has no certificate: {known} have.")

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on, each thing once."""
        every = (text for each in self.certificates for text in each.assumptions)
        return tuple(dict.fromkeys(every))

    @property
    def sensitivity(self) -> float | None:
        """Γ of the class with the least; None where none is missing not at random."""
        known = [each.sensitivity for each in self.certificates]
        return min((x for x in known if x is not None), default=None)

    @property
    def valid_while(self) -> str:
        """Until when the certificate holds."""
        return (
            "as long as new rows of each bounded class come from the same population "
            "as its calibration rows, and neither the model nor a threshold is changed"
        )

    def to_dict(self) -> dict[str, Any]:
        """The certificate as plain data; a number that isn't finite is None."""
        return {
            "delta": self.delta,
            "order": None if self.order is None else list(self.order),
            "fallback": self.fallback,
            "valid_while": self.valid_while,
            "classes": [each.to_dict() for each in self.certificates],
        }

    def __str__(self) -> str:
        """The certificate in words."""
        promises = [self._promise(each) for each in self.certificates]
        return together(self, promises, on_sensitivity(self.sensitivity))

    def _promise(self, each: Certificate) -> str:
        kind = "complete " if each.deployment == "complete" else ""
        as_they_are = "" if kind else ", as they are observed,"
        wrong = "another class"
        if self.order is not None:
            wrong = " or ".join(named(label) for label in each.other_class)
        size = f"{each.rows} calibration rows"
        if each.observed < each.rows:
            size += f", {each.observed} of them complete"
        return (
            f"At most {percent(each.alpha)} of {kind}{rows_of(each.controlled_class)}"
            f"{as_they_are} are classified as {wrong} (estimated "
            f"{percent(each.estimated_error)}, bound {percent(each.error_bound)}; rule "
            f"{each.rule!r}, {size}, delta {each.delta:.3g})."
        )
