"""Figures that move with the slider: the NP-ROC, and the scores."""

from __future__ import annotations

import altair as alt

from missratio.app.report._drawing import (
    CONTROLLED,
    INK,
    OTHER,
    Data,
    Figure,
    finish,
    steps,
    values,
)
from missratio.app.report._words import percent, span

ALPHA_TICKS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3]


def _levels(curve: Data) -> list[Data]:
    """The curve, a row for each level."""
    return [
        {
            "i": i,
            "alpha": alpha,
            "threshold": curve["threshold"][i],
            "power": curve["power"][i],
            "low": curve["power_low"][i],
            "high": curve["power_high"][i],
            "α": percent(alpha),
            "Power": percent(curve["power"][i]),
            "Interval": span(curve["power_low"][i], curve["power_high"][i]),
        }
        for i, alpha in enumerate(curve["alpha"])
    ]


def _chosen(curve: Data) -> alt.Parameter:
    """Which level the slider is at; the page's script moves it."""
    return alt.param(name="chosen", value=curve["own"])


def roc_figure(data: Data) -> Figure:
    """Power against the type I error that is certified, with its band."""
    curve = data["curve"]
    rows = [row for row in _levels(curve) if row["power"] is not None]
    x = alt.X(
        "alpha:Q",
        title="certified type I error α",
        scale=alt.Scale(type="log", domain=[min(curve["alpha"]), max(curve["alpha"])]),
        axis=alt.Axis(values=ALPHA_TICKS, format="~%", grid=False, labelOverlap=True),
    )
    y = alt.Y(
        "power:Q",
        title="power",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="~%", tickCount=5),
    )
    base = alt.Chart(values(rows)).encode(x=x)
    here = base.transform_filter("datum.i == chosen")
    own = base.transform_filter(f"datum.i == {curve['own']}")
    chart = alt.layer(
        base.mark_area(color=OTHER, opacity=0.18).encode(
            y=alt.Y("low:Q", title="power"), y2="high:Q"
        ),
        base.mark_line(color=OTHER, strokeWidth=2).encode(y=y),
        own.mark_rule(color="var(--muted)", strokeDash=[3, 3]),
        here.mark_rule(color=INK, strokeWidth=1.5),
        here.mark_point(color=INK, fill="var(--page)", size=90, strokeWidth=2).encode(
            y=y
        ),
        base.mark_point(opacity=0, size=160).encode(
            y=y, tooltip=["α:N", "Power:N", "Interval:N"]
        ),
    ).add_params(_chosen(curve))
    reach = ""
    if rows:
        reach = f" It is {rows[-1]['Power']} at α = {rows[-1]['α']}."
    return Figure(
        "figure-roc",
        finish(chart),
        300,
        "NP-ROC: power against the type I error that is certified." + reach,
    )


def scores_figure(data: Data) -> Figure:
    """The scores of both classes, and the threshold."""
    scores, curve = data["scores"], data["curve"]
    edges = scores["edges"]
    x = alt.X(
        "x:Q",
        title="score",
        scale=alt.Scale(domain=[edges[0], edges[-1]], nice=False),
        axis=alt.Axis(grid=False, tickCount=6),
    )
    y = alt.Y(
        "y:Q", title="share of the class", axis=alt.Axis(format="~%", tickCount=4)
    )
    layers = [
        alt.Chart(values(steps(edges, scores[name])))
        .mark_area(
            color=colour, opacity=0.25, line={"color": colour, "strokeWidth": 1.5},
            interpolate="step-after",
        )
        .encode(x=x, y=y)
        for name, colour in (("controlled", CONTROLLED), ("other", OTHER))
    ]  # fmt: skip
    within = [
        {**row, "x": row["threshold"]}
        for row in _levels(curve)
        if row["threshold"] is not None and edges[0] <= row["threshold"] <= edges[-1]
    ]
    threshold = (
        alt.Chart(values(within))
        .transform_filter("datum.i == chosen")
        .mark_rule(color=INK, strokeWidth=1.5)
        .encode(x="x:Q")
    )
    chart = alt.layer(*layers, threshold).add_params(_chosen(curve))
    model = data["model"]
    return Figure(
        "figure-scores",
        finish(chart),
        300,
        f"Histograms of the scores of class {model['controlled']} and of class "
        f"{model['other']}, with the threshold.",
    )
