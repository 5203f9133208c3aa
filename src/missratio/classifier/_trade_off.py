"""What two bounded classes leave each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from missratio._base.typing import FloatArray
from missratio.classifier._calibration import Calibration
from missratio.classifier._certificate import percent
from missratio.classifier._choosing import Choice, candidate_offsets
from missratio.classifier._decisions import UnorderedDecision
from missratio.exceptions import Message, NoCertificateError, Remedy

# Below +∞ and above every score.
LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class TradeOff:
    """The errors of two bounded classes as the border between them moves.

    From held-out rows that take no part in a certificate, so an estimate. What
    other bounded classes take of the two is counted in.

    Parameters
    ----------
    labels : tuple of two labels
    levels : tuple of two floats
        The bounds that are asked for.
    errors : ndarray of shape (n_points, 2)
        Estimated shares of the two classes' rows that get a wrong bounded class.
    certifiable : ndarray of shape (n_points, 2)
        The least levels that the certifying rows would certify at these errors.
    """

    labels: tuple[Any, Any]
    levels: tuple[float, float]
    errors: FloatArray
    certifiable: FloatArray

    @property
    def has_room(self) -> bool:
        """Whether some border should keep both bounds."""
        return bool((self.certifiable <= self.levels).all(axis=1).any())

    def least_level(self, place: int) -> float | None:
        """The least level of one class, 0 or 1, if the other keeps its own.

        None where none is small enough for the other.
        """
        kept = self.certifiable[:, 1 - place] <= self.levels[1 - place]
        return float(self.certifiable[kept, place].min()) if kept.any() else None

    @property
    def least_factor(self) -> float:
        """By what factor both levels have to grow until there is room."""
        return float((self.certifiable / self.levels).max(axis=1).min())

    @property
    def sentence(self) -> str:
        """What there is room for."""
        (a, b), (level_a, level_b) = self.labels, self.levels
        text = f"alpha={level_a:g} for {a!r} and {level_b:g} for {b!r} "
        if self.has_room:
            return f"{text}leave each other little room."
        least = [self.least_level(0), self.least_level(1)]
        found = [(x, label) for x, label in zip(least, self.labels, strict=True) if x]
        text += "leave no room"
        if found:
            smallest = min(x for x, _ in found)
            ways = " or ".join(f"{x:.2g} for {label!r}" for x, label in found)
            text += f": at least {smallest:.2g} for one of them ({ways})"
        scaled = [min(1.0, self.least_factor * level) for level in self.levels]
        return f"{text}; or {scaled[0]:.2g} and {scaled[1]:.2g} for both."

    def taken_for_another(
        self, label: Any, calibration: Calibration
    ) -> NoCertificateError:
        """Why one of the two has no threshold, where the other leaves it no room.

        Parameters
        ----------
        label : object
        calibration : Calibration
            Of its rows; those taken for another bounded class have an infinite value.
        """
        return NoCertificateError(
            Message(
                "{sentence} In fact, {share} of {rows} calibration rows of class "
                "{label!r} are taken for another bounded class.",
                label=label,
                remedies=(
                    "raise one of the levels",
                    "bound fewer classes",
                    "bring more rows",
                    "take an estimator that tells these classes apart",
                    Remedy.SEE_TRADE_OFF,
                ),
                facts={
                    "sentence": self.sentence,
                    "share": percent(calibration.sample.estimated_error(LARGEST)),
                    "rows": calibration.sample.n_rows,
                },
            )
        )


def trade_offs(
    choice: Choice, decision: UnorderedDecision, labels: Sequence[Any]
) -> tuple[TradeOff, ...]:
    """The trade-off of every pair of bounded classes, the tightest first."""
    found = [
        _trade_off(choice, decision, pair, labels)
        for pair in combinations(decision.bounded, 2)
    ]
    return tuple(sorted(found, key=lambda each: -each.least_factor))


def _trade_off(
    choice: Choice, decision: UnorderedDecision, pair: tuple[int, int], labels: Any
) -> TradeOff:
    errors = []
    for offset in candidate_offsets(choice, decision, pair, pair[1]):
        moved = replace(decision, offsets=decision.offsets.copy())
        moved.offsets[pair[1]] = offset
        errors.append([choice.confusion(moved, position) for position in pair])
    shares = np.array(errors).reshape(-1, 2)
    shares = shares[np.argsort(shares[:, 0], kind="stable")]
    certifiable = np.array(
        [
            [choice.least_level(k, share) for k, share in zip(pair, row, strict=True)]
            for row in shares
        ]
    ).reshape(-1, 2)
    first, second = pair
    return TradeOff(
        (labels[first], labels[second]),
        (choice.levels[first], choice.levels[second]),
        shares,
        certifiable,
    )
