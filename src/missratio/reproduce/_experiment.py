"""What an experiment is: points along an axis, methods, and repeated runs of both."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from scipy.special import ndtri

from missratio._base.hints import did_you_mean, listed
from missratio._base.typing import FloatArray

Variant = Literal["published", "corrected"]
VARIANTS: tuple[Variant, ...] = ("published", "corrected")
# What "corrected" mends: which rows and values a data set has, φ where it is learned,
# and what a score at the threshold counts for.
Correction = Literal["data", "learning", "threshold"]
CORRECTIONS: tuple[Correction, ...] = ("data", "learning", "threshold")

M_KLIEP, CC_KLIEP, TRUE_RATIO = "M-KLIEP", "CC-KLIEP", "True ratio"
FULL_DATA = "KLIEP (full data)"
KNOWN, LEARNED = "M-KLIEP (known)", "M-KLIEP (learned)"
IMPUTATION = "Iterative imputation"
# Past the paper; the first three with φ known or learned.
JOINT, PRODUCTS = "Joint M-KLIEP", "Joint M-KLIEP with products"
TILTED = "Tilted imputation and trees"
WEIGHTED_TREES = "Weighted trees"
IMPUTED_TREES, NAN_TREES = "Iterative imputation and trees", "Trees on NaN"
FULL_TREES = "Trees (full data)"


TYPE_ONE = "Type I error"


@dataclass(frozen=True, slots=True)
class Conditions:
    """What, besides the experiment itself, determines its numbers.

    Parameters
    ----------
    variant : {"published", "corrected", "data", "learning", "threshold"}
        As the published curves were made, with all their defects mended, or with one.
    seed : int
    """

    variant: Variant | Correction = "published"
    seed: int = 0

    def corrects(self, what: Correction) -> bool:
        """Whether a defect of the published runs is mended."""
        return self.variant in ("corrected", what)

    def generator(self, *key: str | int) -> np.random.Generator:
        """A generator for one run, named by what it is for and not by when it is made.

        Parameters
        ----------
        *key : str or int
            Such as the experiment, the point and the number of the run.
        """
        words = [
            zlib.crc32(part.encode()) if isinstance(part, str) else part for part in key
        ]
        sequence = np.random.SeedSequence(self.seed, spawn_key=words)
        return np.random.default_rng(sequence)


def known(name: str) -> str:
    """The name of a curve with φ known."""
    return f"{name} (known)"


def learned(name: str) -> str:
    """The name of a curve with φ learned."""
    return f"{name} (learned)"


def type_one(name: str) -> str:
    """The name of the curve of a curve's error on fresh class-0 rows."""
    return f"{TYPE_ONE}: {name}"


def fits_of(name: str) -> str:
    """The name of the curve whose fits a curve is made of."""
    return name.removeprefix(type_one(""))


class Procedure(Protocol):
    """How the numbers of an experiment come about; by default from nothing else."""

    def unavailable(self) -> str | None:
        """Why it can't be run here, or None."""
        return None

    def fingerprint(self, conditions: Conditions) -> str:
        """What of the outside the numbers depend on, such as a data file."""
        del conditions
        return ""

    def measure(
        self,
        points: Sequence[float],
        runs: range,
        methods: Sequence[str],
        conditions: Conditions,
    ) -> dict[str, FloatArray]:
        """Run some runs at some points.

        Returns
        -------
        dict from method to ndarray of shape (n_runs, n_points)
            NaN where a method has nothing to do at a point.
        """
        ...


@dataclass(frozen=True)
class Experiment:
    """A figure of the paper as data: what is varied, what is measured, and how often.

    Parameters
    ----------
    id : str
    title : str
    x_name, y_name : str
    x : tuple of float
        The points of the horizontal axis.
    methods : tuple of str
        The curves that the paper draws; none where it has no such figure.
    runs : int
        How often the paper repeats it.
    confidence : float
        Of the intervals, mean ± z·sd/√runs.
    procedure : Procedure
    runs_per_task : int
        How many runs are computed together.
    shares_fits : bool
        Whether all points are computed from the same fits.
    slow_methods : tuple of str
        Computed apart from the others.
    slow_seconds : float, optional
        For how long runs of slow methods are begun by default; None: without end.
    beyond : tuple of str
        Curves that go past the paper.
    beyond_runs : int, optional
        How often these are repeated; None: as often as the paper's.
    """

    id: str
    title: str
    x_name: str
    y_name: str
    x: tuple[float, ...]
    methods: tuple[str, ...]
    runs: int
    confidence: float
    procedure: Procedure
    runs_per_task: int = 50
    shares_fits: bool = False
    slow_methods: tuple[str, ...] = ()
    slow_seconds: float | None = None
    beyond: tuple[str, ...] = ()
    beyond_runs: int | None = None

    @property
    def curves(self) -> tuple[str, ...]:
        """The paper's curves and those past it."""
        return self.methods + self.beyond

    @property
    def blocks(self) -> tuple[tuple[float, ...], ...]:
        """Points that are computed together."""
        return (self.x,) if self.shares_fits else tuple((point,) for point in self.x)

    @property
    def z(self) -> float:
        """The normal quantile of the intervals: 1.96 or 2.576."""
        return float(ndtri(0.5 + 0.5 * self.confidence))


def chosen(words: Sequence[str], choices: Sequence[str], what: str) -> list[str]:
    """The choices that are meant, in their own order; an error for any other word.

    Capitals don't matter.
    """
    by_lower = {choice.lower(): choice for choice in choices}
    for word in words:
        if word.lower() not in by_lower:
            raise ValueError(
                f"There is no {what} {word!r}.{did_you_mean(word, choices)} Choose "
                f"from: {listed(choices)}."
            )
    wanted = {word.lower() for word in words}
    return [choice for lower, choice in by_lower.items() if lower in wanted]
