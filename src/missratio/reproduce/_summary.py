"""The results in words: for each point, whether ours and the published agree."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from missratio.reproduce._figures import parts
from missratio.reproduce._published import MeanCurve, published_source
from missratio.reproduce._results import Result, count_overlaps

Rows = list[list[str]]
HEADINGS = ("method", "runs", "ours", "published", "intervals")
VERDICTS = {True: "overlap", False: "apart", None: "–"}
HALF = {0.95: "1.96", 0.99: "2.576"}

_STYLE = """\
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto;
  padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
td, th { padding: .15rem .7rem; border-bottom: 1px solid #ddd; text-align: left; }
img { max-width: 100%; }
.apart { color: #b00; font-weight: 600; }
"""


@dataclass(frozen=True)
class RunSummary:
    """What a run of the command gave.

    Parameters
    ----------
    results : sequence of Result
    skipped : dict from id to str
        What was not run, and why.
    command : str
        What it was called by.
    wall_seconds : float
    """

    results: Sequence[Result]
    skipped: dict[str, str]
    command: str
    wall_seconds: float

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

    def markdown(self) -> str:
        """The page in Markdown, figures beside it."""
        pieces = ["# Reproduction", f"Made by `{self.command}`. {self.headline}"]
        for title, pictures, text, body in self._sections():
            pieces += [f"## {title}", *(f"![{own}]({own}.png)" for own in pictures)]
            pieces += [text, *([markdown_table(body[0], body[1:])] if body else [])]
        return "\n\n".join([*pieces, _source()]) + "\n"

    def html(self) -> str:
        """The page in HTML, figures beside it."""
        lines = [
            "<!doctype html><html lang=en><meta charset=utf-8>",
            f"<title>Reproduction</title><style>{_STYLE}</style>",
            "<h1>Reproduction</h1>",
            f"<p>Made by <code>{html.escape(self.command)}</code>. "
            f"{html.escape(self.headline)}</p>",
        ]
        for title, pictures, text, body in self._sections():
            name = html.escape(title.partition(":")[0].replace(" ", "_"))
            lines.append(f"<h2 id={name}>{html.escape(title)}</h2>")
            lines += [f'<p><img src="{own}.svg" alt="{own}"></p>' for own in pictures]
            lines.append(f"<p>{html.escape(text)}</p>")
            lines += [_html_table(body[0], body[1:])] if body else []
        return "\n".join([*lines, f"<p>{html.escape(_source())}</p></html>"]) + "\n"

    def _sections(self) -> Iterator[tuple[str, Sequence[str], str, Rows]]:
        """Title, figures, text, and a table with its headings or none."""
        for result in self.results:
            title = f"{result.experiment.id}: {result.experiment.title}"
            body = [["", *HEADINGS], *rows(result)]
            yield title, list(parts(result)), interval_note(result), body
        for name, why in self.skipped.items():
            yield f"{name}: not run", [], why, []
        text = f"{self.wall_seconds:.1f} s in all. Computing, on one core each:"
        body = [["experiment", "methods", "seconds"], *time_rows(self.results)]
        yield "Where the time went", [], text, body


def _source() -> str:
    return f"Published values: {published_source()}"


def interval_note(result: Result) -> str:
    """What the intervals are."""
    experiment = result.experiment
    if experiment.runs == 1:
        return "One run; it has no interval."
    return (
        f"Mean [mean ± {HALF[experiment.confidence]} sd/√runs], variant "
        f"{result.conditions.variant}, seed {result.conditions.seed}."
    )


def rows(result: Result) -> list[list[str]]:
    """A row for each point and method: x, method, runs, ours, published, verdict."""
    curves, published, overlaps = result.curves, result.published, result.overlaps
    listed = []
    for place, point in enumerate(result.experiment.x):
        for method, curve in curves.items():
            verdict = overlaps[method][place] if method in overlaps else None
            theirs = published.get(method)
            listed.append(
                [
                    f"{point:g}",
                    method,
                    str(curve.runs[place]),
                    interval(curve, place),
                    "–" if theirs is None else interval(theirs, place),
                    VERDICTS[verdict],
                ]
            )
    return listed


def interval(curve: MeanCurve, place: int) -> str:
    """A point of a curve in words."""
    mean, low, high = curve.mean[place], curve.lo[place], curve.hi[place]
    if mean is None:
        return "–"
    if low is None or high is None:
        return f"{mean:.4f}"
    return f"{mean:.4f} [{low:.4f}, {high:.4f}]"


def time_rows(results: Sequence[Result]) -> list[list[str]]:
    """Computing time of each experiment, slow methods apart."""
    listed = []
    for result in results:
        apart = result.experiment.slow_methods + result.experiment.beyond
        for method, seconds in result.seconds.items():
            others = [name for name in result.values if name not in apart]
            what = method if method in apart else ", ".join(others)
            listed.append([result.experiment.id, what, f"{seconds:.1f}"])
    total = sum(seconds for result in results for seconds in result.seconds.values())
    return [*listed, ["all", "", f"{total:.1f}"]]


def markdown_table(headings: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [_line(headings), "|---" * len(headings) + "|", *map(_line, body)]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _html_table(headings: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in headings)
    lines = [f"<table><tr>{head}</tr>"]
    for cells in body:
        mark = " class=apart" if VERDICTS[False] in cells else ""
        data = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
        lines.append(f"<tr{mark}>{data}</tr>")
    return "\n".join([*lines, "</table>"])
