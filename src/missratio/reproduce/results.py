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
from pathlib import Path
from typing import Any

import numpy as np

from missratio._base.typing import FloatArray
from missratio.reproduce.experiments import Experiment
from missratio.reproduce.methods import (
    KNOWN,
    M_KLIEP,
    TRUE_RATIO,
    TYPE_ONE,
    Conditions,
    fits_of,
)

Values = tuple[float | None, ...]
COLUMNS = ("x", "method", "run", "value")
REFERENCES = (TRUE_RATIO, M_KLIEP, KNOWN)


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

    def words(self, place: int) -> str:
        """One of its points in words."""
        mean, low, high = self.mean[place], self.lo[place], self.hi[place]
        if mean is None:
            return "–"
        if low is None or high is None:
            return f"{mean:.4f}"
        return f"{mean:.4f} [{low:.4f}, {high:.4f}]"


def make_curve(values: FloatArray, z: float) -> MeanCurve:
    """Mean ± z·sd/√runs at each point, over the runs that there are.

    Parameters
    ----------
    values : ndarray of shape (n_runs, n_points)
        NaN for what was not run.
    z : float
    """
    points = [column[~np.isnan(column)] for column in values.T]
    means = [float(each.mean()) if len(each) else None for each in points]
    halves = [
        float(z * each.std(ddof=1) / np.sqrt(len(each))) if len(each) > 1 else None
        for each in points
    ]

    def end(sign: int) -> Values:
        return tuple(
            None if mean is None or half is None else mean + sign * half
            for mean, half in zip(means, halves, strict=True)
        )

    return MeanCurve(tuple(means), end(-1), end(1), tuple(map(len, points)))


@cache
def _document() -> dict[str, Any]:
    text = files("missratio.reproduce").joinpath("published_curves.json")
    document: dict[str, Any] = json.loads(text.read_text(encoding="utf-8"))
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
    entry = _document()["experiments"].get(experiment_id, {"x": [], "curves": {}})
    places = [entry["x"].index(point) if point in entry["x"] else None for point in x]

    def at_points(values: Sequence[float | None]) -> Values:
        return tuple(None if place is None else values[place] for place in places)

    return {
        method: MeanCurve(
            at_points(curve["mean"]), at_points(curve["lo"]), at_points(curve["hi"])
        )
        for method, curve in entry["curves"].items()
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

    def verdict(*ends: float | None) -> bool | None:
        known = [end for end in ends if end is not None]
        if len(known) < len(ends):
            return None
        low, high, their_low, their_high = known
        return low <= their_high and their_low <= high

    return tuple(map(verdict, ours.lo, ours.hi, theirs.lo, theirs.hi))


@dataclass(frozen=True)
class Result:
    """What came out of an experiment.

    Parameters
    ----------
    experiment : Experiment
    conditions : Conditions
    values : dict from method to ndarray of shape (n_runs, n_points)
        NaN for what was not run.
    seconds : dict from method to float
        Computing time; methods that are computed together share theirs, under the
        first one's name.
    """

    experiment: Experiment
    conditions: Conditions
    values: dict[str, FloatArray]
    seconds: dict[str, float]

    @classmethod
    def from_parquet(
        cls, experiment: Experiment, path: Path, seconds: dict[str, float]
    ) -> Result:
        """Read the table of every run."""
        from pyarrow import parquet

        table = parquet.read_table(path, page_checksum_verification=True)
        settings = json.loads(table.schema.metadata[b"missratio"])
        columns = table.to_pydict()
        shape = (1 + max(columns["run"]), len(experiment.x))
        named = set(columns["method"])
        values = {m: np.full(shape, np.nan) for m in experiment.curves if m in named}
        for x, method, run, value in zip(*columns.values(), strict=True):
            values[method][run, experiment.x.index(x)] = value
        conditions = Conditions(settings["variant"], settings["seed"])
        return cls(experiment, conditions, values, seconds)

    @property
    def curves(self) -> dict[str, MeanCurve]:
        """Means and intervals of each method."""
        z = self.experiment.z
        return {method: make_curve(values, z) for method, values in self.values.items()}

    @property
    def published(self) -> dict[str, MeanCurve]:
        """The published curves, where they are known."""
        curves = published_curves(self.experiment.id, self.experiment.x)
        return {method: curves[method] for method in self.values if method in curves}

    @property
    def overlaps(self) -> dict[str, tuple[bool | None, ...]]:
        """Whether our intervals and the published ones overlap."""
        ours = self.curves
        return {
            method: overlap(ours[method], theirs)
            for method, theirs in self.published.items()
        }

    @property
    def interval_note(self) -> str:
        """What the intervals are."""
        experiment = self.experiment
        if experiment.runs == 1:
            return "One run; it has no interval."
        return (
            f"Mean [mean ± {experiment.z:.4g} sd/√runs], variant "
            f"{self.conditions.variant}, seed {self.conditions.seed}."
        )

    def rows(self) -> list[list[str]]:
        """Each curve at each point in words: ours, the published, and the verdict."""
        curves, published, overlaps = self.curves, self.published, self.overlaps
        rows = []
        for place, point in enumerate(self.experiment.x):
            for method, curve in curves.items():
                theirs = published.get(method)
                verdict = overlaps[method][place] if theirs else None
                other = theirs.words(place) if theirs else "–"
                cells = str(curve.runs[place]), curve.words(place), other
                rows.append([f"{point:g}", method, *cells, VERDICTS[verdict]])
        return rows

    def only(self, methods: Sequence[str]) -> Result:
        """The same without other methods."""
        return replace(self, values={m: self.values[m] for m in methods})

    def parts(self) -> dict[str, Result]:
        """The curves of each figure: the paper's; those past it beside a few; errors.

        A figure that the paper hasn't got has the experiment's name alone.
        """
        experiment = self.experiment
        paper = [m for m in self.values if m in experiment.methods]
        past = [m for m in self.values if m in experiment.beyond]
        if not past or not paper:
            return {experiment.id: self}
        beside = [m for m in paper if m in REFERENCES]
        errors = [m for m in past if m != fits_of(m)]
        powers = [m for m in past if m == fits_of(m)]
        title = experiment.title.replace("power", "type I error on fresh rows")
        renamed = replace(experiment, title=title, y_name=TYPE_ONE)
        made = {
            experiment.id: self.only(paper),
            f"{experiment.id}_beyond": self.only([*beside, *powers]),
            f"{experiment.id}_type_one": replace(self.only(errors), experiment=renamed),
        }
        return {name: part for name, part in made.items() if part.values}

    def as_json(self) -> dict[str, Any]:
        """The experiment's entry of the command's JSON output."""
        return {
            "x_name": self.experiment.x_name,
            "x": list(self.experiment.x),
            "y_name": self.experiment.y_name,
            "curves": {
                method: {key: list(getattr(curve, key)) for key in ("mean", "lo", "hi")}
                for method, curve in self.curves.items()
            },
        }

    def as_parquet(self) -> bytes:
        """Every run as a row of a Parquet file: x, method, run, value."""
        import pyarrow
        from pyarrow import parquet

        rows = [
            (point, method, run, value)
            for method, values in self.values.items()
            for point, column in zip(self.experiment.x, values.T, strict=True)
            for run, value in enumerate(column.tolist())
            if not np.isnan(value)
        ]
        columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
        settings = {
            "experiment": self.experiment.id,
            **asdict(self.conditions),
            "x_name": self.experiment.x_name,
            "y_name": self.experiment.y_name,
            "confidence": self.experiment.confidence,
        }
        table = pyarrow.table(columns).replace_schema_metadata(
            {"missratio": json.dumps(settings)}
        )
        buffer = io.BytesIO()
        parquet.write_table(table, buffer, write_page_checksum=True)
        return buffer.getvalue()


def count_overlaps(results: Sequence[Result]) -> tuple[int, int]:
    """At how many points intervals overlap, and how many points were compared."""
    verdicts = [
        verdict
        for result in results
        for curve in result.overlaps.values()
        for verdict in curve
        if verdict is not None
    ]
    return sum(verdicts), len(verdicts)


def time_rows(results: Sequence[Result]) -> list[list[str]]:
    """Computing time of each experiment, slow methods apart."""
    rows = []
    for result in results:
        apart = result.experiment.slow_methods + result.experiment.beyond
        for method, seconds in result.seconds.items():
            others = [name for name in result.values if name not in apart]
            what = method if method in apart else ", ".join(others)
            rows.append([result.experiment.id, what, f"{seconds:.1f}"])
    total = sum(seconds for result in results for seconds in result.seconds.values())
    return [*rows, ["all", "", f"{total:.1f}"]]


def markdown_table(headings: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(cells)} |" for cells in (headings, *body)]
    return "\n".join([lines[0], "|---" * len(headings) + "|", *lines[1:]])


VERDICTS = {True: "overlap", False: "**apart**", None: "–"}
_STYLE = """\
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto;
  padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
td, th { padding: .15rem .7rem; border-bottom: 1px solid #ddd; text-align: left; }
img { max-width: 100%; }
td strong { color: #b00; }
"""


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
        """Each experiment, what was not run, and where the time went.

        The terminal and the page in HTML show this, the page with figures beside it.
        """
        pieces = ["# Reproduction", f"Made by `{self.command}`. {self.headline}"]
        for result in self.results:
            experiment = result.experiment
            pieces.append(f"## {experiment.id}: {experiment.title}")
            if pictures:
                pieces += [f"![{name}]({name}.png)" for name in result.parts()]
            pieces.append(f"By {experiment.x_name}. {result.interval_note}")
            headings = ("", "method", "runs", "ours", "published", "verdict")
            pieces.append(markdown_table(headings, result.rows()))
        for name, why in self.skipped.items():
            pieces += [f"## {name}: not run", why]
        pieces += [
            "## Where the time went",
            f"{self.wall_seconds:.1f} s in all. Computing, on one core each:",
            markdown_table(
                ("experiment", "methods", "seconds"), time_rows(self.results)
            ),
            f"Published values: {published_source()}",
        ]
        return "\n\n".join(pieces) + "\n"

    def html(self) -> str:
        """The page in HTML, figures beside it."""
        from markdown_it import MarkdownIt

        body = MarkdownIt("commonmark", {"html": False}).enable("table")
        return (
            "<!doctype html><html lang=en><meta charset=utf-8>"
            f"<title>Reproduction</title><style>{_STYLE}</style>\n"
            f"{body.render(self.markdown())}</html>\n"
        )
