"""The numbers of an experiment: every run, the curves, and how they meet the paper's.

Published curves are compared with; nothing is computed from them.
"""

from __future__ import annotations

import html
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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

    def numbers(values: FloatArray) -> Values:
        return tuple(None if np.isnan(value) else float(value) for value in values)

    points = [column[~np.isnan(column)] for column in values.T]
    means = np.array([each.mean() if len(each) else np.nan for each in points])
    halves = np.array(
        [
            z * each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else np.nan
            for each in points
        ]
    )
    ends = numbers(means - halves), numbers(means + halves)
    return MeanCurve(numbers(means), *ends, tuple(len(each) for each in points))


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
    verdicts: list[bool | None] = []
    for ends in zip(ours.lo, ours.hi, theirs.lo, theirs.hi, strict=True):
        low, high, their_low, their_high = ends
        if low is None or high is None or their_low is None or their_high is None:
            verdicts.append(None)
        else:
            verdicts.append(low <= their_high and their_low <= high)
    return tuple(verdicts)


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
                method: {
                    "mean": list(curve.mean),
                    "lo": list(curve.lo),
                    "hi": list(curve.hi),
                }
                for method, curve in self.curves.items()
            },
        }

    def as_parquet(self) -> bytes:
        """Every run as a row of a Parquet file: x, method, run, value."""
        import pyarrow
        from pyarrow import parquet

        columns: dict[str, list[Any]] = {"x": [], "method": [], "run": [], "value": []}
        for method, values in self.values.items():
            for point, column in zip(self.experiment.x, values.T, strict=True):
                (done,) = np.nonzero(~np.isnan(column))
                columns["x"] += [point] * len(done)
                columns["method"] += [method] * len(done)
                columns["run"] += done.tolist()
                columns["value"] += column[done].tolist()
        settings = {
            "experiment": self.experiment.id,
            "variant": self.conditions.variant,
            "seed": self.conditions.seed,
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


VERDICTS = {True: "overlap", False: "apart", None: "–"}
_STYLE = """\
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto;
  padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
td, th { padding: .15rem .7rem; border-bottom: 1px solid #ddd; text-align: left; }
img { max-width: 100%; }
.apart { color: #b00; font-weight: 600; }
"""


@dataclass(frozen=True)
class Section:
    """A part of the summary: the terminal, Markdown and HTML are loops over these.

    Parameters
    ----------
    title : str
    text : str
    table : sequence of sequence of str
        The headings and then the rows; none where there is no table.
    pictures : sequence of str
        The names of figures.
    """

    title: str
    text: str
    table: Sequence[Sequence[str]] = ()
    pictures: Sequence[str] = ()


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

    def sections(self) -> Iterator[Section]:
        """Each experiment, what was not run, and where the time went."""
        for result in self.results:
            experiment, curves = result.experiment, result.curves
            published, overlaps = result.published, result.overlaps
            rows = [["", "method", "runs", "ours", "published", "verdict"]]
            for place, point in enumerate(experiment.x):
                for method, curve in curves.items():
                    theirs = published.get(method)
                    verdict = overlaps[method][place] if theirs else None
                    other = theirs.words(place) if theirs else "–"
                    cells = str(curve.runs[place]), curve.words(place), other
                    rows.append([f"{point:g}", method, *cells, VERDICTS[verdict]])
            title = f"{experiment.id}: {experiment.title}"
            text = f"By {experiment.x_name}. {result.interval_note}"
            yield Section(title, text, rows, list(result.parts()))
        for name, why in self.skipped.items():
            yield Section(f"{name}: not run", why)
        yield Section(
            "Where the time went",
            f"{self.wall_seconds:.1f} s in all. Computing, on one core each:",
            [["experiment", "methods", "seconds"], *time_rows(self.results)],
        )

    def markdown(self) -> str:
        """The page in Markdown, figures beside it."""
        pieces = ["# Reproduction", f"Made by `{self.command}`. {self.headline}"]
        for section in self.sections():
            pieces.append(f"## {section.title}")
            pieces += [f"![{name}]({name}.png)" for name in section.pictures]
            pieces.append(section.text)
            if section.table:
                pieces.append(markdown_table(section.table[0], section.table[1:]))
        source = f"Published values: {published_source()}"
        return "\n\n".join([*pieces, source]) + "\n"

    def html(self) -> str:
        """The page in HTML, figures beside it."""
        lines = [
            "<!doctype html><html lang=en><meta charset=utf-8>",
            f"<title>Reproduction</title><style>{_STYLE}</style>",
            "<h1>Reproduction</h1>",
            f"<p>Made by <code>{html.escape(self.command)}</code>. "
            f"{html.escape(self.headline)}</p>",
        ]
        for section in self.sections():
            name = html.escape(section.title.partition(":")[0].replace(" ", "_"))
            lines.append(f"<h2 id={name}>{html.escape(section.title)}</h2>")
            lines += [f'<p><img src="{p}.svg" alt="{p}"></p>' for p in section.pictures]
            lines += [f"<p>{html.escape(section.text)}</p>", "<table>"]
            for number, cells in enumerate(section.table):
                tag = "td" if number else "th"
                mark = " class=apart" if VERDICTS[False] in cells else ""
                row = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
                lines.append(f"<tr{mark}>{row}</tr>")
            lines.append("</table>")
        source = html.escape(f"Published values: {published_source()}")
        return "\n".join([*lines, f"<p>{source}</p></html>"]) + "\n"
