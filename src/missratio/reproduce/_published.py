"""The paper's published curves, to compare with and for nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

Values = tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class MeanCurve:
    """Means with their intervals, point by point; None where there is none.

    Parameters
    ----------
    mean, lo, hi : tuple of float or None
    runs : tuple of int
        How many runs each point stands on; empty where that is not known.
    """

    mean: Values
    lo: Values
    hi: Values
    runs: tuple[int, ...] = ()


@cache
def _document() -> dict[str, object]:
    text = files("missratio.reproduce").joinpath("published_curves.json")
    document: dict[str, object] = json.loads(text.read_text(encoding="utf-8"))
    return document


def published_source() -> str:
    """Where the published curves are from."""
    return str(_document()["source"])


@cache
def published_curves(experiment_id: str, x: tuple[float, ...]) -> dict[str, MeanCurve]:
    """The published curves of an experiment at the points x, as far as they are known.

    Returns
    -------
    dict from method to MeanCurve
        Empty where none are known.
    """
    experiments = _document()["experiments"]
    assert isinstance(experiments, dict)
    known = experiments.get(experiment_id)
    if known is None:
        return {}
    places = [known["x"].index(point) if point in known["x"] else None for point in x]

    def at_points(values: Sequence[float | None]) -> Values:
        return tuple(None if place is None else values[place] for place in places)

    return {
        method: MeanCurve(
            at_points(curve["mean"]), at_points(curve["lo"]), at_points(curve["hi"])
        )
        for method, curve in known["curves"].items()
    }


def overlap(ours: MeanCurve, theirs: MeanCurve) -> tuple[bool | None, ...]:
    """Whether the two intervals have a number in common, at each point.

    None where one of them has no interval.

    Examples
    --------
    >>> ours = MeanCurve((1.0, 1.0), (0.5, 0.5), (1.5, 1.5))
    >>> overlap(ours, MeanCurve((2.0, None), (1.5, None), (2.5, None)))
    (True, None)
    """
    verdicts: list[bool | None] = []
    for ends in zip(ours.lo, ours.hi, theirs.lo, theirs.hi, strict=True):
        low, high, their_low, their_high = ends
        if low is None or high is None or their_low is None or their_high is None:
            verdicts.append(None)
        else:
            verdicts.append(low <= their_high and their_low <= high)
    return tuple(verdicts)
