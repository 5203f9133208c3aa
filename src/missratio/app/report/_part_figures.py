"""Figures of what a certificate rests on."""

from __future__ import annotations

import altair as alt

from missratio.app.report._drawing import (
    CONTROLLED,
    INK,
    OTHER,
    Data,
    Figure,
    colour_of,
    finish,
    steps,
    values,
)
from missratio.app.report._words import number, percent, span

MOST_BARS = 30


def profile_figure(k: int, profile: Data, data: Data) -> Figure:
    """φ and its band against a feature, before the feature's values."""
    colour = colour_of(profile["label"], data)
    edges = profile["edges"]
    bars, line = _bars(profile), _line(profile)
    x = alt.X(
        "x:Q",
        title=None,
        scale=alt.Scale(domain=[edges[0], edges[-1]], nice=False),
        axis=alt.Axis(grid=False, tickCount=5),
    )
    y = alt.Y(
        "y:Q",
        title="missing",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="~%", values=[0, 0.25, 0.5, 0.75, 1]),
    )
    histogram = alt.Chart(values(bars)).encode(x=x, x2="x2:Q", y=y, y2=alt.datum(0))
    outline = alt.Chart(values(steps(edges, [bar["before"] for bar in bars])))
    curve = alt.Chart(values(line)).encode(x=x)
    chart = alt.layer(
        histogram.mark_rect(
            color="var(--bars)", stroke="var(--bars)", strokeWidth=0.5
        ).encode(tooltip=["Values:N", "Observed:N", "Before any was lost:N"]),
        outline.mark_line(
            color="var(--muted)", strokeWidth=1, interpolate="step-after"
        ).encode(x=x, y=y),
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
        finish(chart),
        190,
        f"Probability of being missing against {profile['name']}, class "
        f"{profile['label']}: {ends[0]} at its smallest values, {ends[1]} at its "
        "largest.",
    )


def _bars(profile: Data) -> list[Data]:
    """A feature's values, the tallest bar at three fifths of the figure."""
    unit = 0.6 / max(*profile["observed"], *profile["reweighted"], 1e-12)
    return [
        {
            "x": left,
            "x2": right,
            "y": unit * observed,
            "before": unit * before,
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


def _line(profile: Data) -> list[Data]:
    """φ and its band along a feature."""
    return [
        {
            "x": x,
            "y": phi,
            "low": low,
            "high": high,
            "Value": number(x, 3),
            "φ": percent(phi),
            "Band": span(low, high),
        }
        for x, phi, low, high in zip(
            profile["at"], profile["phi"], profile["low"], profile["high"], strict=True
        )
    ]


def sensitivity_figure(curve: Data) -> Figure:
    """Certified error and power against the factor by which odds are wrong."""
    odds = curve["odds"]
    rows = [
        {"x": factor, "error": error, "power": power, "Γ": number(factor, 3),
         "Certified error": percent(error), "Power": percent(power)}
        for factor, error, power in zip(
            odds["amount"], odds["error"], odds["power"], strict=True
        )
    ]  # fmt: skip
    x = alt.X(
        "x:Q",
        title="odds factor Γ",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(grid=False, values=odds["amount"], format="~g"),
    )
    axis = alt.Axis(format="~%", tickCount=5)
    base = alt.Chart(values(rows)).encode(
        x=x, tooltip=["Γ:N", "Certified error:N", "Power:N"]
    )
    level = alt.Chart(values([{"y": curve["alpha"]}]))
    chart = alt.layer(
        level.mark_rule(color=INK, strokeDash=[3, 3]).encode(y="y:Q"),
        base.mark_line(color=CONTROLLED, strokeWidth=2, point=True).encode(
            y=alt.Y("error:Q", title="share", axis=axis)
        ),
        base.mark_line(
            color=OTHER, strokeWidth=2, strokeDash=[6, 3], point=True
        ).encode(y=alt.Y("power:Q", title="share", axis=axis)),
    )
    return Figure(
        "figure-sensitivity",
        finish(chart),
        230,
        f"Certified error, from {percent(odds['error'][0])} where φ is right to "
        f"{percent(odds['error'][-1])} where its odds are wrong by a factor of "
        f"{number(odds['amount'][-1], 3)}; and power, from {percent(odds['power'][0])} "
        f"to {percent(odds['power'][-1])}.",
    )


def weights_figure(k: int, entry: Data, data: Data) -> Figure:
    """How the weights of a class are spread."""
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
        alt.Chart(values(rows))
        .mark_rect(color=colour_of(entry["label"], data), stroke="var(--page)")
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
        finish(chart),
        190,
        f"Histogram of the weights of class {entry['label']}, from "
        f"{number(edges[0], 3)} to {number(edges[-1], 3)}.",
    )


def complete_case_figure(data: Data) -> Figure:
    """The error of complete-case analysis beside the one with weights."""
    case = data["complete_case"]
    rows = [
        {"who": "Complete rows only", "x": case["estimate"], "low": case["low"],
         "high": case["high"]},
        {"who": "With weights", "x": case["with_weights"], "low": None, "high": None},
    ]  # fmt: skip
    for row in rows:
        row["Error"] = percent(row["x"])
    y = alt.Y(
        "who:N", title=None, sort=None, axis=alt.Axis(labelLimit=150, ticks=False)
    )
    x = alt.X(
        "x:Q",
        title="type I error",
        scale=alt.Scale(zero=True),
        axis=alt.Axis(format="~%", tickCount=5),
    )
    base = alt.Chart(values(rows)).encode(y=y)
    claim = alt.Chart(values([{"x": case["claimed"]}]))
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
        finish(chart),
        130,
        f"Type I error of complete-case analysis, {percent(case['estimate'])}, and "
        f"with weights, {percent(case['with_weights'])}; claimed at most "
        f"{percent(case['claimed'])}.",
    )


def coefficients_figure(coefficients: Data) -> Figure:
    """The coefficients largest in size, with their intervals."""
    rows = _coefficient_rows(coefficients)
    y = alt.Y(
        "name:N", title=None, sort=None, axis=alt.Axis(labelLimit=140, ticks=False)
    )
    base = alt.Chart(values(rows)).encode(y=y)
    zero = alt.Chart(values([{"x": 0.0}]))
    chart = alt.layer(
        zero.mark_rule(color="var(--muted)").encode(x="x:Q"),
        base.mark_rule(color=OTHER, strokeWidth=2).encode(
            x=alt.X("low:Q", title="coefficient"), x2="high:Q"
        ),
        base.mark_point(color=OTHER, filled=True, opacity=1, size=80).encode(
            x=alt.X("x:Q", title="coefficient", axis=alt.Axis(tickCount=5)),
            tooltip=[alt.Tooltip("name:N", title="Feature"), "Coefficient:N"],
        ),
    )
    return Figure(
        "figure-coefficients",
        finish(chart),
        60 + 26 * len(rows),
        f"The {len(rows)} coefficients largest in size, as in the table below.",
    )


def _coefficient_rows(coefficients: Data) -> list[Data]:
    rows: list[Data] = []
    seen: dict[str, int] = {}
    ends = [
        coefficients["values"] if end is None else end
        for end in (coefficients["low"], coefficients["high"])
    ]
    every = zip(coefficients["names"], coefficients["values"], *ends, strict=True)
    for name, value, low, high in every:
        # A name that comes twice gets invisible spaces, to be a place of its own.
        seen[name] = seen.get(name, -1) + 1
        rows.append(
            {
                "name": name + "\u200b" * seen[name],
                "x": value,
                "low": low,
                "high": high,
                "Coefficient": number(value),
            }
        )
    return rows[:MOST_BARS]
