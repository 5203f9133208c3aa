"""What the figures of a report page share.

Colours are the page's own, by their CSS names, so that figures follow it into the dark
and onto paper. Names from the data only ever are values, never part of an expression.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import altair as alt

Data = dict[str, Any]
Layers = alt.LayerChart | alt.FacetChart

CONTROLLED, OTHER, INK = "var(--controlled)", "var(--other)", "var(--ink)"
# The page's, by name: labels are measured before they are set.
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif'


class Figure(NamedTuple):
    """A figure.

    Parameters
    ----------
    key : str
        Its element's id.
    spec : dict
        Vega-Lite.
    height : int
        In pixels, axes included.
    alternative : str
        What it shows, for those who can't see it.
    """

    key: str
    spec: Data
    height: int
    alternative: str


def finish(chart: Layers) -> Data:
    """The specification, in the page's typography."""
    configured = (
        chart.properties(
            width="container",
            height="container",
            background="transparent",
            padding={"left": 2, "top": 6, "right": 10, "bottom": 2},
            autosize=alt.AutoSizeParams(type="fit", contains="padding"),
        )
        .configure(aria=False, font=FONT)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor="var(--muted)",
            titleColor="var(--muted)",
            gridColor="var(--line)",
            domainColor="var(--line)",
            tickColor="var(--line)",
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            titlePadding=8,
            labelPadding=4,
            labelFlush=False,
        )
    )
    return dict(configured.to_dict())


def values(rows: list[Data]) -> alt.InlineData:
    """Rows to draw."""
    return alt.InlineData(values=rows)


def steps(edges: list[float], heights: list[float]) -> list[Data]:
    """A histogram's outline, for steps that begin at each edge."""
    rows = [{"x": x, "y": y} for x, y in zip(edges[:-1], heights, strict=True)]
    return [*rows, {"x": edges[-1], "y": heights[-1]}]


def colour_of(label: Any, data: Data) -> str:
    """The colour of a class."""
    return CONTROLLED if label in data["model"]["bounded"] else OTHER
