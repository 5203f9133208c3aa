"""How much power candidates have, as data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from missratio._base.typing import BoolArray, FloatArray
from missratio.weights import effective_sample_size

# Rows of the controlled class above the threshold, and rows of the other class, with
# fewer of which one candidate is as good as the next.
FEWEST_ABOVE, FEWEST_OTHER = 3.0, 10.0


@dataclass(frozen=True)
class CandidatePower:
    """The power of a candidate on training rows left out in turn.

    Parameters
    ----------
    name : str
    power : float or None
        The weighted share of the other class above the threshold that a share α of the
        controlled class is above; of several classes the mean share that gets its own
        class. None where it wasn't measured.
    standard_error : float or None
        Of that share, the threshold taken as given.
    seconds : float
        What the candidate took of the processor.
    note : str
        Why there is no power, or what is doubtful about it.
    """

    name: str
    power: float | None = None
    standard_error: float | None = None
    seconds: float = 0.0
    note: str = ""


@dataclass(frozen=True)
class PowerComparison:
    """What candidates were compared, and which was taken.

    Parameters
    ----------
    chosen : str
    candidates : tuple of CandidatePower
        In the order in which they were tried.
    alpha : float or None
        The error at which powers were compared; None for several bounded classes.
    folds : int
        In how many parts rows were left out.
    controlled_rows, other_rows : int
        Training rows of each class that took part; of several classes those with a
        bound together, and the others.
    seconds, budget : float
        The processor's time that the comparison took, and that it might take.
    compared : tuple of str
        Of several classes, those that the mean is over.
    note : str
        Why nothing was compared; empty where something was.
    """

    chosen: str
    candidates: tuple[CandidatePower, ...]
    alpha: float | None
    folds: int
    controlled_rows: int
    other_rows: int
    seconds: float
    budget: float
    compared: tuple[str, ...] = ()
    note: str = ""

    @property
    def ranked(self) -> list[CandidatePower]:
        """The candidates whose power is known: what was taken, then by power."""
        known = [each for each in self.candidates if each.power is not None]

        def place(each: CandidatePower) -> tuple[bool, bool, float]:
            return each.name != self.chosen, bool(each.note), -(each.power or 0.0)

        return sorted(known, key=place)


def too_few(is_other: BoolArray, weights: FloatArray, alpha: float, whole: str) -> str:
    """Why rows can't tell candidates apart at error α; empty where they can.

    With fewer than `FEWEST_ABOVE` rows of the controlled class above the threshold, by
    the effective number of rows (Kish), the order of candidates is chance.

    Parameters
    ----------
    is_other : ndarray of bool of shape (n_rows,)
    weights : ndarray of shape (n_rows,)
    alpha : float
    whole : str
        What rows with a weight are, in words.
    """
    for mine, whose, least in (
        (~is_other, "the controlled class", FEWEST_ABOVE / alpha),
        (is_other, "the other class", FEWEST_OTHER),
    ):
        own = weights[mine]
        size = float(effective_sample_size(own))
        if size < least:
            return (
                f"the {np.count_nonzero(own)} {whole} of {whose} are worth {size:.0f} "
                f"by their weights, and to tell methods apart at an error of "
                f"{100.0 * alpha:.4g}% takes {math.ceil(least)} or more"
            )
    return ""


def measured_power(
    scores: FloatArray, is_other: BoolArray, weights: FloatArray, alpha: float
) -> tuple[float | None, float | None]:
    """The power of scores at error α, with its standard error.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        −∞ for a row that can't be scored.
    is_other : ndarray of bool of shape (n_rows,)
        Which rows are not of the controlled class.
    weights : ndarray of shape (n_rows,)
        Not negative.
    alpha : float

    Returns
    -------
    power, standard_error : float or None
        None where a class has no weight.
    """
    threshold = _threshold(scores[~is_other], weights[~is_other], alpha)
    mass = weights[is_other]
    if threshold is None or not mass.sum():
        return None, None
    share = mass / mass.sum()
    above = scores[is_other] > threshold
    power = float(share[above].sum())
    return power, float(np.sqrt(np.sum(share**2 * (above - power) ** 2)))


def _threshold(scores: FloatArray, weights: FloatArray, alpha: float) -> float | None:
    """The lowest score that at most a share α of the weight is above."""
    kept = weights > 0.0
    if not kept.any():
        return None
    values, place = np.unique(scores[kept], return_inverse=True)
    mass = np.bincount(place, weights[kept])
    above = mass.sum() - np.cumsum(mass)
    # Rounding leaves a little above the highest score.
    allowed = above <= alpha * mass.sum() + 1e-12 * mass.sum()
    return float(values[np.argmax(allowed)])
