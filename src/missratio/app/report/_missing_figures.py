"""Figures of what is missing: by column, by value, and together."""

from __future__ import annotations

import altair as alt

from missratio.app.report._drawing import (
    INK,
    Data,
    Figure,
    colour_of,
    finish,
    steps,
    values,
)
from missratio.app.report._words import number, percent, share, span

MOST_COLUMNS = 25
MOST_PATTERNS = 15
LABEL_WIDTH = 140
# No wider, so that a single column is not a wall.
CELL_WIDTH = 60


def columns_figure(data: Data) -> Figure:
    """The share of each column that is missing, by class, with what was looked up."""
    missingness = data["missingness"]
    labels = [entry["label"] for entry in missingness["classes"]]
    totals = [max(1, entry["rows"]) for entry in missingness["classes"]]
    columns = [c for c in missingness["features"] if any(c["missing"])][:MOST_COLUMNS]
    rows = [
        {"column": column["name"], "class": str(label), "x": column["share"][k],
         "mark": column["looked_up"][k] / totals[k] if column["looked_up"][k] else None,
         "Missing": f"{number(column['missing'][k])} ({share(column['share'][k])})",
         "Looked up": number(column["looked_up"][k])}
        for column in columns
        for k, label in enumerate(labels)
    ]  # fmt: skip
    y = alt.Y("column:N", title=None, sort=None,
              axis=alt.Axis(labelLimit=LABEL_WIDTH, ticks=False))  # fmt: skip
    base = alt.Chart(values(rows)).encode(
        y=y,
        yOffset=alt.YOffset("class:N", sort=None),
        tooltip=["column:N", "class:N", "Missing:N", "Looked up:N"],
    )
    title = "share missing"
    colour = alt.Color(
        "class:N", legend=None, sort=None,
        scale=alt.Scale(domain=[*map(str, labels)],
                        range=[colour_of(label, data) for label in labels]),
    )  # fmt: skip
    bars = base.mark_bar(opacity=0.6).encode(
        x=alt.X("x:Q", title=title, axis=alt.Axis(format="~%", tickCount=5)),
        color=colour,
    )
    marks = (
        base.transform_filter("isValid(datum.mark)")
        .mark_tick(color=INK, thickness=2)
        .encode(x=alt.X("mark:Q", title=title))
    )
    found = any(row["mark"] is not None for row in rows)
    chart = alt.layer(bars, marks) if found else alt.layer(bars)
    most = columns[0]
    worst = max(range(len(labels)), key=lambda k: most["share"][k])
    return Figure(
        "figure-columns",
        finish(chart),
        60 + 15 * len(labels) * len(columns),
        f"Share of missing values of {len(columns)} columns, by class. Most are "
        f"missing of {most['name']}: {percent(most['share'][worst])} of class "
        f"{labels[worst]}. The table below has the numbers.",
    )


def patterns_figure(data: Data) -> Figure:
    """Which columns are missing together: a row of cells for each pattern."""
    patterns = data["missingness"]["patterns"]
    listed = patterns["listed"][:MOST_PATTERNS]
    columns = patterns["columns"][:MOST_COLUMNS]
    total = sum(entry["rows"] for entry in data["missingness"]["classes"])
    cells = []
    for place, pattern in enumerate(listed):
        rows = sum(pattern["rows"])
        # A share that comes twice gets invisible spaces, to be a place of its own.
        name = share(rows / total) + "\u200b" * place
        cells += [
            {"pattern": name, "column": column, "state": column in pattern["missing"],
             "Rows": number(rows),
             "Missing": ", ".join(pattern["missing"]) or "nothing"}
            for column in columns
        ]  # fmt: skip
    widest = alt.ExprRef(f"min(width, {CELL_WIDTH * len(columns)})")
    chart = alt.layer(
        alt.Chart(values(cells))
        .mark_rect(stroke="var(--page)", strokeWidth=2)
        .encode(
            x=alt.X("column:N", title=None, sort=None, scale=alt.Scale(rangeMax=widest),
                    axis=alt.Axis(orient="top", labelAngle=-45, labelLimit=LABEL_WIDTH,
                                  ticks=False, domain=False)),
            y=alt.Y("pattern:N", title="share of rows", sort=None,
                    axis=alt.Axis(ticks=False, domain=False)),
            color=alt.Color("state:N", legend=None, scale=alt.Scale(
                domain=[False, True], range=["var(--bars)", INK])),
            tooltip=["Missing:N", "Rows:N"],
        )
    )  # fmt: skip
    first = listed[0]
    return Figure(
        "figure-patterns",
        finish(chart),
        130 + 22 * len(listed),
        f"The {len(listed)} most frequent patterns of missing columns. First, with "
        f"{number(sum(first['rows']))} of {number(total)} rows, missing: "
        f"{', '.join(first['missing']) or 'nothing'}. The table below has the others.",
    )


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
    within = [x for x in profile["marks"] if edges[0] <= x <= edges[-1]]
    marks = alt.Chart(values([{"x": x} for x in within])).mark_rule(
        color=INK, opacity=0.55, strokeWidth=1
    )
    layers = [
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
        marks.encode(x=x, y=alt.YDatum(0.94), y2=alt.Y2Datum(1.0)),
    ]
    if not line:
        # Without a model there is no φ, and the axis is of no use.
        y.axis = None  # type: ignore[assignment]
        layers = [*layers[:2], layers[-1]]
    chart = alt.layer(*layers)
    return Figure(
        f"figure-profile-{k}",
        finish(chart),
        190,
        f"{profile['name']}, class {profile['label']}: {_profile_words(profile)}",
    )


def _profile_words(profile: Data) -> str:
    marks = profile["marks"]
    found = ""
    if marks:
        found = f" Values looked up lie between {number(min(marks), 3)} and "
        found += f"{number(max(marks), 3)}."
    if not profile["phi"]:
        return f"histogram of the values observed.{found}"
    first, last = percent(profile["phi"][0]), percent(profile["phi"][-1])
    return (
        f"probability of being missing {first} at its smallest values, {last} at its "
        f"largest.{found}"
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
