"""Figures of a report on several classes, or on groups."""

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

# Letters of all labels together that fit above the columns of a phone.
WIDE = 24
# Heights of a group, and of what is around all of them.
ROW, MARGIN = 34, 70


def confusion_figure(data: Data) -> Figure:
    """What rows of each class are classified as: shaded cells with their shares."""
    found = data["confusion"]
    cells = [
        {"true": str(label), "called": str(other), "x": part,
         "dark": part is not None and part > 0.5, "text": share(part)}
        for label, shares in zip(found["labels"], found["shares"], strict=True)
        for other, part in zip(found["labels"], shares, strict=True)
    ]  # fmt: skip
    # Side by side, long names would run into each other on a phone.
    turned = sum(len(str(label)) for label in found["labels"]) > WIDE
    base = alt.Chart(values(cells)).encode(
        x=alt.X("called:N", title="classified as", sort=None,
                axis=alt.Axis(orient="top", labelAngle=-90 if turned else 0,
                              ticks=False, domain=False, labelLimit=110)),
        y=alt.Y("true:N", title="in truth", sort=None,
                axis=alt.Axis(ticks=False, domain=False, labelLimit=120)),
        tooltip=["true:N", "called:N", "text:N"],
    )  # fmt: skip
    chart = alt.layer(
        base.mark_rect(color=OTHER, stroke="var(--page)", strokeWidth=2).encode(
            opacity=alt.Opacity(
                "x:Q", legend=None, scale=alt.Scale(domain=[0, 1], range=[0.04, 1])
            )
        ),
        base.mark_text(fontSize=14).encode(
            text="text:N",
            color=alt.Color(
                "dark:N", legend=None,
                scale=alt.Scale(domain=[False, True], range=[INK, "var(--page)"]),
            ),
        ),
    )  # fmt: skip
    right = ", ".join(
        f"{share(found['shares'][k][k])} of class {label}"
        for k, label in enumerate(found["labels"])
    )
    return Figure(
        "figure-confusion",
        finish(chart),
        70 + 50 * len(found["labels"]) + (90 if turned else 0),
        f"What rows of each class are classified as. Rightly: {right}.",
    )


def trade_off_figure(k: int, trade: Data) -> Figure:
    """The errors of two bounded classes as the border between them moves."""
    (a, b), (level_a, level_b) = trade["labels"], trade["levels"]
    most = min(
        1.0,
        max(2.5, 1.3 * trade["factor"]) * max(level_a, level_b),
    )
    rows = [
        {"i": i, "x": x, "y": y, "kind": kind, "Error of the first": percent(x),
         "Error of the second": percent(y)}
        for kind in ("errors", "certifiable")
        for i, (x, y) in enumerate(trade[kind])
    ]  # fmt: skip

    def common(label: str) -> Data:
        return {
            "title": f"error of class {label}",
            "scale": alt.Scale(domain=[0, most], clamp=True),
            "axis": alt.Axis(format="~%", tickCount=5),
        }

    x = alt.X("x:Q", **common(str(a)))
    y = alt.Y("y:Q", **common(str(b)))
    inside = [row for row in rows if max(row["x"], row["y"]) <= most]
    base = alt.Chart(values(inside)).encode(x=x, y=y, order="i:Q")
    asked = alt.Chart(
        values([{"x": 0.0, "y": 0.0, "x2": level_a, "y2": level_b}])
    ).mark_rect(color="var(--bars)", opacity=0.8)
    corner = alt.Chart(values([{"x": level_a, "y": level_b}])).mark_point(
        color=INK, filled=True, size=70, opacity=1
    )
    chart = alt.layer(
        asked.encode(x=x, x2="x2:Q", y=y, y2="y2:Q"),
        base.transform_filter("datum.kind == 'errors'").mark_line(
            color=OTHER, strokeWidth=2
        ),
        base.transform_filter("datum.kind == 'certifiable'").mark_line(
            color=CONTROLLED, strokeWidth=2, strokeDash=[6, 3]
        ),
        corner.encode(x=x, y=y),
    )  # fmt: skip
    return Figure(
        f"figure-trade-off-{k}",
        finish(chart),
        320,
        f"What classes {a} and {b} leave each other. {trade['sentence']}",
    )


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
