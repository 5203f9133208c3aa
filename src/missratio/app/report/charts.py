"""Charts of the page, as Vega-Lite: layers over a plane of numbers or names.

Colours are the page's own, by their CSS names, so that charts follow it into the dark
and onto paper. Names from the data only ever are values, never part of an expression.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Data = dict[str, Any]
Rows = list[Data]

# The page's, by name: labels are measured before they are set.
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif'
AXIS = {
    "labelColor": "var(--muted)", "titleColor": "var(--muted)",
    "gridColor": "var(--line)", "domainColor": "var(--line)",
    "tickColor": "var(--line)", "labelFontSize": 12, "titleFontSize": 12,
    "titleFontWeight": "normal", "titlePadding": 8, "labelPadding": 4,
    "labelFlush": False,
}  # fmt: skip


def css(colour: str) -> str:
    """One of the page's colours, by its name."""
    return f"var(--{colour})"


@dataclass(frozen=True)
class Chart:
    """A chart, and what it shows in words.

    Parameters
    ----------
    spec : dict
        Vega-Lite.
    height : int
        In pixels, axes included.
    caption : str
    """

    spec: Data
    height: int
    caption: str


def points(**columns: Iterable[Any]) -> Rows:
    """A row for each place of some columns, but for those with an unknown number."""
    rows = [
        dict(zip(columns, row, strict=True))
        for row in zip(*columns.values(), strict=True)
    ]
    return [row for row in rows if None not in row.values()]


def axis(
    title: str | None,
    *,
    share: bool = False,
    domain: Sequence[float] | None = None,
    log: bool = False,
    grid: bool = True,
    **more: Any,
) -> Data:
    """A quantitative axis: of shares in percent, or of numbers."""
    scale: Data = {"type": "log" if log else "linear", "nice": not (log or domain)}
    if domain is not None:
        scale["domain"] = list(domain)
    ticks: Data = {"grid": grid, "tickCount": 5, "labelOverlap": True, **more}
    if share or log:
        ticks.setdefault("format", "~%" if share else "~g")
    return {"type": "quantitative", "title": title, "scale": scale, "axis": ticks}


def names_axis(names: Sequence[str]) -> Data:
    """An axis with a line for each name, the first on top."""
    ticks = {"ticks": False, "domain": False, "labelLimit": 150}
    return {"type": "nominal", "title": None, "sort": None,
            "scale": {"domain": list(names)}, "axis": ticks}  # fmt: skip


def layer(mark: str, rows: Rows, colour: str, where: str = "", **style: Any) -> Data:
    """Marks at x and y of rows, to x2 or y2 where they are; for rows `where` holds."""
    fields = rows[0] if rows else {}
    encoding: Data = {k: {"field": k} for k in ("x", "x2", "y", "y2") if k in fields}
    if mark == "line":
        encoding["order"] = {"field": "i", "type": "quantitative"}
        rows = [{"i": i, **row} for i, row in enumerate(rows)]
    if mark == "point":
        style = {"filled": True, "opacity": 1, "size": 45, **style}
    drawn: Data = {
        "data": {"values": rows},
        "mark": {"type": mark, "color": css(colour), **style},
        "encoding": encoding,
    }
    return {**drawn, "transform": [{"filter": where}]} if where else drawn


def plane(
    layers: Sequence[Data], x: Data, y: Data, height: int, caption: str = "",
    chosen: int | None = None,
) -> Chart:  # fmt: skip
    """Layers over one plane; `chosen` is the level that the page's slider moves."""
    # What is shown where a reader points: numbers as their axes have them.
    tips = []
    for name, place in (("x", x), ("y", y)):
        tip = {"field": name, "type": place["type"], "title": place["title"] or "value"}
        if tip["type"] == "quantitative":
            is_share = place["axis"].get("format") == "~%"
            tip["format"] = ".1%" if is_share else ".4~g"
        tips.append(tip)
    for drawn in layers:
        encoding = drawn["encoding"]
        for name, place in (("x", x), ("y", y)):
            if name in encoding:
                encoding[name] |= place
        if drawn["mark"]["type"] == "point" and "x" in encoding:
            encoding["tooltip"] = tips
    spec: Data = {
        "layer": list(layers),
        "width": "container",
        "height": "container",
        "background": "transparent",
        "padding": {"left": 2, "top": 6, "right": 10, "bottom": 2},
        "autosize": {"type": "fit", "contains": "padding"},
        "config": {"aria": False, "font": FONT, "view": {"stroke": None}, "axis": AXIS},
    }
    if chosen is not None:
        spec["params"] = [{"name": "chosen", "value": chosen}]
    return Chart(spec, height, caption)
