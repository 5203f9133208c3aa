"""The figures of a report page, as Vega-Lite specifications.

Colours are the page's own, by their CSS names, so that figures follow it into the dark
and onto paper. Names from the data only ever are values, never part of an expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import altair as alt

from missratio.report._words import number, percent, span

Data = dict[str, Any]

CONTROLLED, OTHER, INK = "var(--controlled)", "var(--other)", "var(--ink)"
# The page's, by name: labels are measured before they are set.
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif'
MOST_BARS = 30
ALPHA_TICKS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3]


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


def figures(data: Data) -> Iterator[Figure]:
    """Every figure of a report.

    Parameters
    ----------
    data : dict
        Of the report.
    """
    yield _roc(data)
    if data["scores"] is not None:
        yield _scores(data)
    for k, profile in enumerate(data["missingness"]["profiles"]):
        yield _profile(k, profile, data)
    for k, entry in enumerate(data["weights"]):
        if entry["histogram"] is not None:
            yield _weights(k, entry, data)
    if data["complete_case"] is not None:
        yield _complete_case(data)
    if data["coefficients"] is not None:
        yield _coefficients(data["coefficients"])


def _finish(chart: alt.LayerChart) -> Data:
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


def _values(rows: list[Data]) -> alt.Data:
    return alt.Data(values=rows)


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


def _roc(data: Data) -> Figure:
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
    base = alt.Chart(_values(rows)).encode(x=x)
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
    last = rows[-1] if rows else None
    reach = "" if last is None else (
        f" It rises to {last['Power']} at α = {last['α']}."
    )
    return Figure(
        "figure-roc",
        _finish(chart),
        300,
        "NP-ROC: power against the type I error that is certified." + reach,
    )


def _steps(edges: list[float], heights: list[float]) -> list[Data]:
    """A histogram's outline, for steps that begin at each edge."""
    rows = [
        {"x": x, "y": y} for x, y in zip(edges[:-1], heights, strict=True)
    ]
    return [*rows, {"x": edges[-1], "y": heights[-1]}]


def _scores(data: Data) -> Figure:
    scores, curve = data["scores"], data["curve"]
    edges = scores["edges"]
    x = alt.X(
        "x:Q",
        title="score",
        scale=alt.Scale(domain=[edges[0], edges[-1]], nice=False),
        axis=alt.Axis(grid=False, tickCount=6),
    )
    y = alt.Y("y:Q", title="share of the class", axis=alt.Axis(format="~%", tickCount=4))
    layers = [
        alt.Chart(_values(_steps(edges, scores[name])))
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
        alt.Chart(_values(within))
        .transform_filter("datum.i == chosen")
        .mark_rule(color=INK, strokeWidth=1.5)
        .encode(x="x:Q")
    )
    chart = alt.layer(*layers, threshold).add_params(_chosen(curve))
    model = data["model"]
    return Figure(
        "figure-scores",
        _finish(chart),
        300,
        f"Histograms of the scores of class {model['controlled']} and of class "
        f"{model['other']}, with the threshold.",
    )


def _colour(label: Any, data: Data) -> str:
    return CONTROLLED if label == data["model"]["controlled"] else OTHER


def _profile(k: int, profile: Data, data: Data) -> Figure:
    colour = _colour(profile["label"], data)
    # Bars are in the background, without an axis of their own.
    tallest = max(*profile["observed"], *profile["reweighted"], 1e-12)
    bars = [
        {
            "x": left,
            "x2": right,
            "y": 0.6 * observed / tallest,
            "before": 0.6 * before / tallest,
            "Values": f"{number(left, 3)} to {number(right, 3)}",
            "Observed": percent(observed),
            "Before any was lost": percent(before),
        }
        for left, right, observed, before in zip(
            profile["edges"][:-1],
            profile["edges"][1:],
            profile["observed"],
            profile["reweighted"],
            strict=True,
        )
    ]
    line = [
        {"x": x, "phi": phi, "low": low, "high": high, "Value": number(x, 3),
         "φ": percent(phi), "Band": span(low, high)}
        for x, phi, low, high in zip(
            profile["at"], profile["phi"], profile["low"], profile["high"], strict=True
        )
    ]  # fmt: skip
    edges = profile["edges"]
    x = alt.X(
        "x:Q",
        title=None,
        scale=alt.Scale(domain=[edges[0], edges[-1]], nice=False),
        axis=alt.Axis(grid=False, tickCount=5),
    )
    y = alt.Y(
        "phi:Q",
        title="missing",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="~%", values=[0, 0.25, 0.5, 0.75, 1]),
    )
    histogram = alt.Chart(_values(bars)).encode(x=x, x2="x2:Q")
    curve = alt.Chart(_values(line)).encode(x=x)
    outline = _steps(edges, [bar["before"] for bar in bars])
    chart = alt.layer(
        histogram.mark_rect(
            color="var(--bars)", stroke="var(--bars)", strokeWidth=0.5
        ).encode(
            y=alt.Y("y:Q", title="missing"),
            y2=alt.datum(0),
            tooltip=["Values:N", "Observed:N", "Before any was lost:N"],
        ),
        alt.Chart(_values(outline))
        .mark_line(color="var(--muted)", strokeWidth=1, interpolate="step-after")
        .encode(x=x, y=alt.Y("y:Q", title="missing")),
        curve.mark_area(color=colour, opacity=0.2).encode(
            y=alt.Y("low:Q", title="missing"), y2="high:Q"
        ),
        curve.mark_line(color=colour, strokeWidth=2).encode(y=y),
        curve.mark_point(opacity=0, size=120).encode(
            y=y, tooltip=["Value:N", "φ:N", "Band:N"]
        ),
    )
    ends = [percent(profile["phi"][0]), percent(profile["phi"][-1])]
    return Figure(
        f"figure-profile-{k}",
        _finish(chart),
        190,
        f"Probability of being missing against {profile['name']}, class "
        f"{profile['label']}: {ends[0]} at its smallest values, {ends[1]} at its "
        "largest.",
    )


def _weights(k: int, entry: Data, data: Data) -> Figure:
    histogram = entry["histogram"]
    edges = histogram["edges"]
    rows = [
        {"x": left, "x2": right, "y": rows, "Rows": number(rows),
         "Weight": f"{number(left, 3)} to {number(right, 3)}"}
        for left, right, rows in zip(
            edges[:-1], edges[1:], histogram["rows"], strict=True
        )
    ]  # fmt: skip
    chart = alt.layer(
        alt.Chart(_values(rows))
        .mark_rect(color=_colour(entry["label"], data), stroke="var(--page)")
        .encode(
            x=alt.X(
                "x:Q",
                title="weight",
                scale=alt.Scale(type="log", domain=[edges[0], edges[-1]], nice=False),
                axis=alt.Axis(grid=False, tickCount=5, format="~g", labelOverlap=True),
            ),
            x2="x2:Q",
            y=alt.Y("y:Q", title="rows", axis=alt.Axis(tickCount=4, format="~s")),
            y2=alt.datum(0),
            tooltip=["Weight:N", "Rows:N"],
        )
    )
    return Figure(
        f"figure-weights-{k}",
        _finish(chart),
        190,
        f"Histogram of the weights of class {entry['label']}, from "
        f"{number(edges[0], 3)} to {number(edges[-1], 3)}.",
    )


def _complete_case(data: Data) -> Figure:
    case = data["complete_case"]
    rows = [
        {"who": "Complete rows only", "x": case["estimate"], "low": case["low"],
         "high": case["high"]},
        {"who": "With weights", "x": case["with_weights"], "low": None, "high": None},
    ]  # fmt: skip
    for row in rows:
        row["Error"] = percent(row["x"])
    y = alt.Y("who:N", title=None, sort=None, axis=alt.Axis(labelLimit=150, ticks=False))
    x = alt.X(
        "x:Q",
        title="type I error",
        scale=alt.Scale(zero=True),
        axis=alt.Axis(format="~%", tickCount=5),
    )
    base = alt.Chart(_values(rows)).encode(y=y)
    claim = alt.Chart(_values([{"x": case["claimed"]}]))
    chart = alt.layer(
        claim.mark_rule(color=INK, strokeDash=[3, 3]).encode(x="x:Q"),
        base.transform_filter("isValid(datum.high)")
        .mark_rule(color=CONTROLLED, strokeWidth=2)
        .encode(x=alt.X("low:Q", title="type I error"), x2="high:Q"),
        base.mark_point(color=CONTROLLED, filled=True, opacity=1, size=90).encode(
            x=x, tooltip=["who:N", "Error:N"]
        ),
    )
    return Figure(
        "figure-complete-case",
        _finish(chart),
        130,
        f"Type I error of complete-case analysis, {percent(case['estimate'])}, and "
        f"with weights, {percent(case['with_weights'])}; claimed at most "
        f"{percent(case['claimed'])}.",
    )


def _coefficients(coefficients: Data) -> Figure:
    rows: list[Data] = []
    seen: dict[str, int] = {}
    n_shown = min(MOST_BARS, len(coefficients["names"]))
    for i in range(n_shown):
        name, value = coefficients["names"][i], coefficients["values"][i]
        # A name that comes twice gets invisible spaces, to be a place of its own.
        seen[name] = seen.get(name, -1) + 1
        row = {"name": name + "\u200b" * seen[name], "x": value, "low": value,
               "high": value, "Coefficient": number(value)}  # fmt: skip
        if coefficients["low"] is not None:
            row |= {"low": coefficients["low"][i], "high": coefficients["high"][i]}
        rows.append(row)
    y = alt.Y("name:N", title=None, sort=None,
              axis=alt.Axis(labelLimit=140, ticks=False))  # fmt: skip
    base = alt.Chart(_values(rows)).encode(y=y)
    chart = alt.layer(
        alt.Chart(_values([{"x": 0.0}]))
        .mark_rule(color="var(--muted)")
        .encode(x="x:Q"),
        base.mark_rule(color=OTHER, strokeWidth=2).encode(
            x=alt.X("low:Q", title="coefficient"), x2="high:Q"
        ),
        base.mark_point(color=OTHER, filled=True, opacity=1, size=80).encode(
            x=alt.X("x:Q", title="coefficient", axis=alt.Axis(tickCount=5)),
            tooltip=[alt.Tooltip("name:N", title="Feature"), "Coefficient:N"],
        ),
    )
    height = 60 + 26 * n_shown
    return Figure(
        "figure-coefficients",
        _finish(chart),
        height,
        f"The {n_shown} coefficients largest in size, as in the table below.",
    )
