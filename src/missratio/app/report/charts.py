"""Charts of the page, as Vega-Lite: a plane of layers, and values by name.

Colours are the page's own, by their CSS names, so that charts follow it into the dark
and onto paper. Names from the data only ever are values, never part of an expression.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Data = dict[str, Any]
Rows = list[Data]
Key = Sequence[tuple[str, str]]

# The page's, by name: labels are measured before they are set.
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif'
AXIS = {
    "labelColor": "var(--muted)", "titleColor": "var(--muted)",
    "gridColor": "var(--line)", "domainColor": "var(--line)",
    "tickColor": "var(--line)", "labelFontSize": 12, "titleFontSize": 12,
    "titleFontWeight": "normal", "titlePadding": 8, "labelPadding": 4,
    "labelFlush": False,
}  # fmt: skip
QUIET = {"ticks": False, "domain": False, "labelLimit": 150}


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
    key : sequence of (str, str)
        Colours by their CSS names, and what they mean.
    """

    spec: Data
    height: int
    caption: str = ""
    key: Key = ()


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


def layer(mark: str, rows: Rows, colour: str, where: str = "", **style: Any) -> Data:
    """Marks at x and y of rows, to y2 where it is; for rows `where` holds."""
    fields = rows[0] if rows else {}
    encoding: Data = {k: {"field": k} for k in ("x", "y", "y2") if k in fields}
    if mark == "line":
        encoding["order"] = {"field": "i", "type": "quantitative"}
        rows = [{"i": i, **row} for i, row in enumerate(rows)]
    for name in {"fill", "stroke"} & style.keys():
        style[name] = css(style[name])
    if mark == "point":
        style = {"filled": True, "opacity": 1, "size": 45, **style}
    drawn: Data = {
        "data": {"values": rows},
        "mark": {"type": mark, "color": css(colour), **style},
        "encoding": encoding,
    }
    return {**drawn, "transform": [{"filter": where}]} if where else drawn


def _tip(field: str, place: Data) -> Data:
    """What is shown where a reader points: a number as its axis has it."""
    form = ".1%" if place["axis"].get("format") == "~%" else ".4~g"
    return {"field": field, "type": "quantitative", "format": form,
            "title": place["title"] or "value"}  # fmt: skip


def plane(
    layers: Sequence[Data], x: Data, y: Data, height: int, caption: str = "",
    key: Key = (), chosen: int | None = None,
) -> Chart:  # fmt: skip
    """Layers over one plane; `chosen` is the level that the page's slider moves."""
    for each in layers:
        encoding = each["encoding"]
        for name, place in (("x", x), ("y", y)):
            if name in encoding:
                encoding[name] |= place
        if each["mark"]["type"] == "point" and "x" in encoding:
            encoding["tooltip"] = [_tip("x", x), _tip("y", y)]
    spec: Data = {"layer": list(layers)}
    if chosen is not None:
        spec["params"] = [{"name": "chosen", "value": chosen}]
    return Chart(_finished(spec), height, caption, key)


class Series(NamedTuple):
    """Values of one colour, one for each name; None where there is none."""

    colour: str
    values: Sequence[float | None]
    spans: Sequence[tuple[float, float]] = ()
    ticks: Sequence[float | None] = ()


def by_name(
    names: Sequence[str], series: Mapping[str, Series], x: Data, *, zero: bool = False,
    caption: str = "",
) -> Chart:  # fmt: skip
    """A line for each name: points with spans, and ticks."""
    place: Data = {
        "y": {"field": "name", "type": "nominal", "title": None, "sort": None,
              "scale": {"domain": list(names)}, "axis": QUIET},
        "x": {"field": "value", **x},
    }  # fmt: skip
    colours = [css(each.colour) for each in series.values()]
    told = {
        **place,
        "color": {"field": "series", "type": "nominal", "legend": None,
                  "scale": {"domain": list(series), "range": colours}},
        "tooltip": [*({"field": k, "type": "nominal"} for k in ("name", "series")),
                    _tip("value", x)],
    }  # fmt: skip
    ends = {"x": {"field": "value[0]", **x}, "x2": {"field": "value[1]"}}
    marks: dict[str, tuple[Data, Data]] = {
        "spans": ({"type": "rule", "strokeWidth": 2}, {**told, **ends}),
        "values": ({"type": "point", "filled": True, "size": 70, "opacity": 1}, told),
        "ticks": ({"type": "tick", "color": css("ink"), "thickness": 2, "size": 22},
                  place),
    }  # fmt: skip
    layers: list[Data] = []
    if zero:
        layers.append(layer("rule", [{"x": 0.0}], "muted"))
        layers[0]["encoding"]["x"] |= x
    for kind, (mark, encoding) in marks.items():
        rows = [
            {"name": name, "series": title, "value": value}
            for title, each in series.items()
            for name, value in zip(names, getattr(each, kind), strict=False)
            if value is not None
        ]
        if rows:
            layers += [{"data": {"values": rows}, "mark": mark, "encoding": encoding}]
    key = [(each.colour, title) for title, each in series.items() if title]
    return Chart(_finished({"layer": layers}), 60 + 28 * len(names), caption, key)


def _finished(spec: Data) -> Data:
    """The specification, in the page's typography."""
    return {
        **spec,
        "width": "container",
        "height": "container",
        "background": "transparent",
        "padding": {"left": 2, "top": 6, "right": 10, "bottom": 2},
        "autosize": {"type": "fit", "contains": "padding"},
        "config": {"aria": False, "font": FONT, "view": {"stroke": None}, "axis": AXIS},
    }
