"""The numbers of an experiment: every run, the curves, and how they meet the paper's.

Published curves are compared with; nothing is computed from them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from missratio._base.typing import FloatArray
from missratio.reproduce import methods as m
from missratio.reproduce.experiments import Experiment
from missratio.reproduce.methods import Conditions

REFERENCES = (m.TRUE_RATIO, m.M_KLIEP, m.KNOWN)
VERDICTS = {True: "overlap", False: "**apart**", None: "–"}


@dataclass(frozen=True, slots=True, eq=False)
class MeanCurve:
    """Means with their intervals, point by point.

    Parameters
    ----------
    mean, lo, hi : ndarray of shape (n_points,)
        NaN where there is none.
    runs : sequence of int
        How many runs each point stands on; empty where that is not known.
    """

    mean: FloatArray
    lo: FloatArray
    hi: FloatArray
    runs: Sequence[int] = ()

    def words(self, place: int) -> str:
        """One of its points in words."""
        mean, low, high = self.mean[place], self.lo[place], self.hi[place]
        interval = "" if np.isnan(low) else f" [{low:.4f}, {high:.4f}]"
        return "–" if np.isnan(mean) else f"{mean:.4f}{interval}"


def make_curve(values: FloatArray, z: float) -> MeanCurve:
    """Mean ± z·sd/√runs at each point, over the runs that there are.

    Parameters
    ----------
    values : ndarray of shape (n_runs, n_points)
        NaN for what was not run.
    z : float
    """
    known: Any = np.ma.masked_invalid(values)
    runs = known.count(axis=0)
    mean = known.mean(axis=0).filled(np.nan)
    deviation = known.std(axis=0, ddof=1).filled(np.nan)
    half = z * deviation / np.sqrt(np.maximum(runs, 1))
    return MeanCurve(mean, mean - half, mean + half, runs.tolist())


@cache
def _document() -> dict[str, Any]:
    text = files("missratio.reproduce").joinpath("published_curves.json")
    document: dict[str, Any] = json.loads(text.read_text(encoding="utf-8"))
    return document


@cache
def published_curves(experiment_id: str) -> dict[str, MeanCurve]:
    """The published curves of an experiment at its points, as far as they are known.

    Returns
    -------
    dict from method to MeanCurve
        Empty where none are known.
    """
    entry = _document()["experiments"].get(experiment_id, {"curves": {}})
    return {
        method: MeanCurve(*np.array([curve["mean"], curve["lo"], curve["hi"]], float))
        for method, curve in entry["curves"].items()
    }


def overlap(ours: MeanCurve, theirs: MeanCurve) -> tuple[bool | None, ...]:
    """Whether the two intervals have a number in common, at each point.

    None where one of them has no interval.

    Examples
    --------
    >>> import numpy as np
    >>> ours = MeanCurve(np.ones(2), np.full(2, 0.5), np.full(2, 1.5))
    >>> overlap(ours, MeanCurve(*np.array([[2.0, np.nan], [1.5, np.nan], [2.5, 3.0]])))
    (True, None)
    """
    ends = np.array([ours.lo, ours.hi, theirs.lo, theirs.hi])
    meet: Any = (ours.lo <= theirs.hi) & (theirs.lo <= ours.hi)
    # What is masked is None in a list.
    return tuple(np.ma.array(meet, mask=np.isnan(ends).any(axis=0)).tolist())


@dataclass(frozen=True)
class Result:
    """What came out of an experiment.

    Parameters
    ----------
    experiment : Experiment
    conditions : Conditions
    values : dict from method to ndarray of shape (n_runs, n_points)
        NaN for what was not run.
    """

    experiment: Experiment
    conditions: Conditions
    values: dict[str, FloatArray]

    @classmethod
    def planned(
        cls,
        experiment: Experiment,
        conditions: Conditions,
        methods: Sequence[str],
        runs: int | None = None,
    ) -> Result:
        """A result that is to be filled in.

        Parameters
        ----------
        experiment : Experiment
        conditions : Conditions
        methods : sequence of str
        runs : int, optional
            How many; None for as many as the experiment says.
        """
        values = {
            method: np.full(
                (experiment.n_runs(method, runs), len(experiment.x)), np.nan
            )
            for method in methods
        }
        return cls(experiment, conditions, values)

    def as_parquet(self) -> bytes:
        """Every run as a row of a Parquet file: x, method, run, value."""
        import pyarrow
        from pyarrow import parquet

        experiment = self.experiment
        columns: dict[str, list[Any]] = {"x": [], "method": [], "run": [], "value": []}
        for method, values in self.values.items():
            places, runs = np.nonzero(~np.isnan(values.T))
            columns["x"] += [experiment.x[place] for place in places]
            columns["method"] += [method] * len(runs)
            columns["run"] += runs.tolist()
            columns["value"] += values[runs, places].tolist()
        settings = {
            "experiment": experiment.id,
            **asdict(self.conditions),
            "x_name": experiment.x_name,
            "y_name": experiment.y_name,
            "confidence": experiment.confidence,
        }
        table = pyarrow.table(columns).replace_schema_metadata(
            {"missratio": json.dumps(settings)}
        )
        buffer = io.BytesIO()
        parquet.write_table(table, buffer, write_page_checksum=True)
        return buffer.getvalue()

    @property
    def curves(self) -> dict[str, MeanCurve]:
        """Means and intervals of each method."""
        z = self.experiment.z
        return {method: make_curve(values, z) for method, values in self.values.items()}

    @property
    def published(self) -> dict[str, MeanCurve]:
        """The published curves, where they are known."""
        curves = published_curves(self.experiment.id)
        return {method: curves[method] for method in self.values if method in curves}

    @property
    def overlaps(self) -> dict[str, tuple[bool | None, ...]]:
        """Whether our intervals and the published ones overlap."""
        ours, theirs = self.curves, self.published
        return {method: overlap(ours[method], theirs[method]) for method in theirs}

    def as_json(self) -> dict[str, Any]:
        """The experiment's entry of the command's JSON output, null for NaN."""

        def plain(values: FloatArray) -> list[float | None]:
            return [None if np.isnan(value) else value for value in values.tolist()]

        curves = {
            method: {key: plain(getattr(curve, key)) for key in ("mean", "lo", "hi")}
            for method, curve in self.curves.items()
        }
        axes = {"x_name": self.experiment.x_name, "x": list(self.experiment.x)}
        return {**axes, "y_name": self.experiment.y_name, "curves": curves}

    def markdown(self, *, pictures: bool) -> str:
        """Its part of the summary: each curve at each point, and the verdict."""
        experiment, published, overlaps = self.experiment, self.published, self.overlaps
        note = "One run; it has no interval."
        if experiment.runs > 1:
            note = (
                f"Mean [mean ± {experiment.z:.4g} sd/√runs], variant "
                f"{self.conditions.variant}, seed {self.conditions.seed}."
            )
        rows, curves = [" | method | runs | ours | published | verdict"], self.curves
        rows.append(" | ".join(["---"] * 6))
        for place, point in enumerate(experiment.x):
            for method, curve in curves.items():
                theirs, verdict = "–", None
                if method in published:
                    theirs = published[method].words(place)
                    verdict = overlaps[method][place]
                cells = method, str(curve.runs[place]), curve.words(place), theirs
                rows.append(" | ".join([f"{point:g}", *cells, VERDICTS[verdict]]))
        return "\n\n".join(
            [
                f"## {experiment.id}: {experiment.title}",
                *(f"![{name}]({name}.png)" for name in self.parts() if pictures),
                f"By {experiment.x_name}. {note}",
                "\n".join(f"| {row} |" for row in rows),
            ]
        )

    def parts(self) -> dict[str, Result]:
        """The curves of each figure: the paper's, and those past it beside a few."""
        experiment = self.experiment
        paper = [method for method in self.values if method in experiment.methods]
        past = [method for method in self.values if method in experiment.beyond]
        if not past or not paper:
            return {experiment.id: self}
        beside = [method for method in paper if method in REFERENCES]
        return {
            f"{experiment.id}{end}": replace(
                self, values={m: self.values[m] for m in shown}
            )
            for end, shown in (("", paper), ("_beyond", beside + past))
        }


def count_overlaps(results: Sequence[Result]) -> tuple[int, int]:
    """At how many points intervals overlap, and how many points were compared."""
    curves = [curve for result in results for curve in result.overlaps.values()]
    verdicts = [verdict for curve in curves for verdict in curve if verdict is not None]
    return sum(verdicts), len(verdicts)


@dataclass(frozen=True)
class Reproduction:
    """What came out.

    Parameters
    ----------
    results : list of Result
    skipped : dict from id to str
        What was not run, and why.
    command : str
        What it was called by.
    wall_seconds : float
    """

    results: list[Result]
    skipped: dict[str, str]
    command: str
    wall_seconds: float

    def as_json(self) -> dict[str, Any]:
        """The curves of every experiment, as the command's JSON output has them."""
        return {result.experiment.id: result.as_json() for result in self.results}

    @property
    def headline(self) -> str:
        """In one sentence, how much overlaps."""
        agree, compared = count_overlaps(self.results)
        if not compared:
            return "None of these curves is known from the paper."
        return (
            f"Our interval and the published one overlap at {agree} of {compared} "
            f"points ({100 * agree / compared:.1f} %)."
        )

    def markdown(self, *, pictures: bool = True) -> str:
        """Each experiment, and what was not run.

        The terminal shows this, and the file with figures beside it.
        """
        pieces = ["# Reproduction", f"Made by `{self.command}`. {self.headline}"]
        pieces += [result.markdown(pictures=pictures) for result in self.results]
        for name, why in self.skipped.items():
            pieces += [f"## {name}: not run", why]
        pieces.append(f"It took {self.wall_seconds:.1f} s.")
        pieces.append(f"Published values: {_document()['source']}")
        return "\n\n".join(pieces) + "\n"
