"""φ as an expert states it: how much is missing, and which values rather than others.

"HbA1c: 30% of sick, higher more likely" is a logistic φ of one column and class. The
level follows from the table, since φ must expect as many missing values as there are:
Σ odds over the observed ones is their number, but for chance. The slope is what the
words say, a range of odds ratios for each standard deviation of the observed values.
A certificate holds for every slope of the range, and every level that the table leaves
possible beside it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import betaincinv

from missratio._base.typing import FloatArray, IntArray
from missratio.learning.shadow import ShadowEvidence

LIKELY = {"slightly": (1.0, 1.5), "": (1.2, 3.0), "much": (2.0, 8.0)}
"""By how much the odds of being missing grow with a standard deviation, by words."""

FORM = (
    '"HbA1c: 30% of sick, higher more likely", where the last part may be "lower", '
    '"slightly" or "much more likely", "2 to 4 times more likely", or left out for '
    'values that are all as likely to be missing, and the class may be "all"'
)
_NUMBER = r"\d+(?:\.\d+)?"
_PATTERN = re.compile(
    rf"(?P<column>.+?)\s*:\s*(?:about\s+)?(?P<share>{_NUMBER})\s*%"
    r"(?:\s+of\s+(?P<label>.+?))?"
    rf"(?:\s*,\s*(?P<side>higher|lower)\s+(?:(?P<words>slightly|much)\s+"
    rf"|(?P<low>{_NUMBER})\s+to\s+(?P<high>{_NUMBER})\s+times\s+)?more\s+likely)?\.?",
    re.IGNORECASE,
)
# A share is stated roughly: by so much of it more or less, beside what is chance.
ROUGHLY, CHANCE = 0.2, 1e-3
# Standard deviations from the mean beyond which odds don't grow on: over a long tail
# they would explode.
REACH = 3.0


@dataclass(frozen=True)
class Assumption:
    """What is stated of the missing values of one column.

    Parameters
    ----------
    column : str
    share : float
        How much of it is missing, roughly.
    label : str or None
        The class; None for all, or where there is one.
    least, most : float
        Between these factors the odds of being missing grow with each standard
        deviation of the value; below 1 they fall.
    """

    column: str
    share: float
    label: str | None
    least: float
    most: float

    @classmethod
    def read(cls, text: str) -> Self:
        """Read a statement such as "HbA1c: 30% of sick, higher more likely".

        Parameters
        ----------
        text : str
        """
        match = _PATTERN.fullmatch(text.strip())
        misread = r",.*(higher|lower|likely)"
        if match is None or re.search(misread, match["label"] or ""):
            raise ValueError(f"{text!r} can't be read. Write it as in {FORM}.")
        share, label = float(match["share"]) / 100.0, match["label"]
        if not 0.0 < share < 1.0:
            raise ValueError(f"{text!r}: the share must lie between 0% and 100%.")
        least = most = 1.0
        if match["side"] is not None:
            least, most = LIKELY[(match["words"] or "").lower()]
            if match["low"] is not None:
                least, most = float(match["low"]), float(match["high"])
            if not 1.0 <= least <= most:
                raise ValueError(f"{text!r}: 'A to B times' needs 1 ≤ A ≤ B.")
            if match["side"].lower() == "lower":
                least, most = 1.0 / most, 1.0 / least
        label = None if label is None or label.lower() == "all" else label
        return cls(match["column"], share, label, least, most)

    @property
    def constant(self) -> bool:
        """Whether all values are as likely to be missing."""
        return self.least == self.most == 1.0

    def clipped(self, values: FloatArray) -> FloatArray:
        """Values that φ tells apart: far ones are taken for nearer ones.

        Parameters
        ----------
        values : ndarray of shape (n_rows, 1)
            NaN where missing.
        """
        centre, reach = np.nanmean(values), REACH * np.nanstd(values)
        return np.clip(values, centre - reach, centre + reach)

    @property
    def sentence(self) -> str:
        """What it means, in words."""
        if self.constant:
            return f"{self.column}: all values are as likely to be missing"
        ends = (self.least, self.most), "higher"
        if self.most <= 1.0:
            ends = (1.0 / self.most, 1.0 / self.least), "lower"
        (least, most), side = ends
        return (
            f"{self.column}: with each standard deviation that a value is {side}, up "
            f"to {REACH:g} from the mean, the odds of being missing are {least:.3g} to "
            f"{most:.3g} times as large"
        )

    def teach(
        self, values: FloatArray, observed: IntArray, missing: IntArray
    ) -> tuple[ShadowEvidence, FloatArray]:
        """What it says of φ beside a table, and φ's (α, β) in the middle of the range.

        Parameters
        ----------
        values : ndarray of shape (n_observed,)
            Increasing.
        observed, missing : ndarray of int
            The rows of these, in their order, and the others.
        """
        n_rows, lost = len(observed) + len(missing), len(missing)
        actual = lost / n_rows
        low = betaincinv(lost, n_rows - lost + 1, CHANCE)
        high = betaincinv(lost + 1, n_rows - lost, 1.0 - CHANCE)
        if not (1.0 - ROUGHLY) * low <= self.share <= (1.0 + ROUGHLY) * high:
            raise ValueError(
                f"{self.column!r}: {100.0 * self.share:.3g}% are stated to be missing, "
                f"and the table has {100.0 * actual:.3g}% ({lost} of {n_rows} rows). "
                "Correct the share, the column or the class."
            )
        ends = float(np.log(self.least)), float(np.log(self.most))
        places = values[None], observed, missing, np.ones((n_rows, 1))
        shadow = ShadowEvidence.collect(*places, stated=ends)
        slope, coordinates = sum(ends) / 2.0, shadow.coordinates
        score = slope * coordinates.design(values[None])[1]
        first = np.log(lost) - np.logaddexp.reduce(score)
        return shadow, coordinates.restore(np.array([first, slope]))
