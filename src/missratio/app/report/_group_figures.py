"""Figures of a report on groups."""

from __future__ import annotations

import altair as alt

from missratio.app.report._drawing import (
    CONTROLLED,
    INK,
    OTHER,
    Data,
    Figure,
    finish,
    values,
)
from missratio.app.report._words import percent, share, span

ROW, MARGIN = 34, 70


def groups_figure(data: Data) -> Figure:
    """The error and the power of each group, with intervals, and what was promised."""
    rows = [
        {"group": entry["name"], "kind": kind, "x": found["estimate"],
         "low": found["low"], "high": found["high"],
         "text": f"{share(found['estimate'])} ({span(found['low'], found['high'])})"}
        for entry in data["groups"]
        for kind, found in (("error", entry["error"]), ("power", entry["power"]))
        if found["estimate"] is not None
    ]  # fmt: skip
    marks = [
        {"group": entry["name"], "x": entry["level"], "text": percent(entry["level"])}
        for entry in data["groups"]
    ]
    names = [entry["name"] for entry in data["groups"]]
    y = alt.Y("group:N", title=None, sort=names,
              scale=alt.Scale(domain=names),
              axis=alt.Axis(ticks=False, domain=False, labelLimit=110))  # fmt: skip
    x = alt.X("x:Q", title="share classified as the other class",
              scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="~%"))  # fmt: skip
    colour = alt.Color("kind:N", legend=None,
                       scale=alt.Scale(domain=["error", "power"],
                                       range=[CONTROLLED, OTHER]))  # fmt: skip
    base = alt.Chart(values(rows)).encode(
        y=y, color=colour, tooltip=["group:N", "kind:N", "text:N"]
    )
    asked = alt.Chart(values(marks)).mark_tick(color=INK, thickness=2, size=22)
    chart = alt.layer(
        base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q"), x2="high:Q"),
        base.mark_point(filled=True, size=70, opacity=1).encode(x=x),
        asked.encode(x=x, y=y, tooltip=["group:N", "text:N"]),
    )
    told = "; ".join(entry["sentence"].rstrip(".") for entry in data["groups"])
    return Figure(
        "figure-groups",
        finish(chart),
        MARGIN + ROW * len(names),
        f"Error and power of each group, and what was promised. {told}.",
    )
