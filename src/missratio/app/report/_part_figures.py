"""Figures of what a certificate rests on."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt

from missratio.app.report._drawing import (
    CONTROLLED,
    INK,
    OTHER,
    Data,
    Figure,
    colour_of,
    finish,
    values,
)
from missratio.app.report._words import number, percent, share

MOST_BARS = 30
MOST_SHUFFLED = 15


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

    def y(field: str) -> alt.Y:
        return alt.Y(field, title=None, axis=axis, scale=alt.Scale(domain=[0, 1]))

    chart = alt.layer(
        level.mark_rule(color=INK, strokeDash=[3, 3]).encode(y=y("y:Q")),
        base.mark_line(color=CONTROLLED, strokeWidth=2).encode(y=y("error:Q")),
        base.mark_point(color=CONTROLLED, filled=True, opacity=1, size=45).encode(
            y=y("error:Q")
        ),
        base.mark_line(color=OTHER, strokeWidth=2, strokeDash=[6, 3]).encode(
            y=y("power:Q")
        ),
        base.mark_point(color=OTHER, filled=True, opacity=1, size=45).encode(
            y=y("power:Q")
        ),
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


def unscored_figure(data: Data) -> Figure:
    """Of each class, how many rows have no score, as they were found."""
    rows = []
    for entry in data["unscored"]:
        with_score = 1.0 - entry["share"]
        rows += [
            {"class": f"class {entry['label']}", "state": state, "x": part,
             "Share": share(part)}
            for state, part in (("scored", with_score), ("no score", entry["share"]))
        ]  # fmt: skip
    chart = alt.layer(
        alt.Chart(values(rows))
        .mark_bar()
        .encode(
            x=alt.X("x:Q", title="share of rows", stack="zero",
                    scale=alt.Scale(domain=[0, 1]),
                    axis=alt.Axis(format="~%", tickCount=5)),
            y=alt.Y("class:N", title=None, sort=None,
                    axis=alt.Axis(labelLimit=150, ticks=False)),
            color=alt.Color("state:N", legend=None, sort=None, scale=alt.Scale(
                domain=["scored", "no score"], range=["var(--bars)", "var(--warn)"])),
            order=alt.Order("state:N", sort="descending"),
            tooltip=["class:N", "state:N", "Share:N"],
        )
    )  # fmt: skip
    said = " and ".join(
        f"{share(entry['share'])} of class {entry['label']}"
        for entry in data["unscored"]
    )
    return Figure(
        "figure-unscored",
        finish(chart),
        60 + 30 * len(data["unscored"]),
        f"Rows without a score: {said}.",
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
            y=alt.Y("y:Q", title="rows", axis=alt.Axis(tickCount=4, format=",.0f")),
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
    rows = _interval_rows(coefficients, "Coefficient")
    title = "change of the score for one standard deviation more"
    return Figure(
        "figure-coefficients",
        _interval_chart(rows, title, "Coefficient", alt.Axis(tickCount=5)),
        60 + 26 * len(rows),
        f"The {len(rows)} coefficients largest in size, per standard deviation; the "
        f"first is {rows[0]['name']}, {rows[0]['Coefficient']}. The table below has "
        "the others."
        if rows
        else "No coefficient.",
    )


def importance_figure(importance: Data) -> Figure:
    """The power lost where a column is shuffled."""
    rows = _interval_rows(importance, "Power lost", percent)[:MOST_SHUFFLED]
    axis = alt.Axis(format="~%", tickCount=5)
    return Figure(
        "figure-importance",
        _interval_chart(rows, "power lost", "Power lost", axis),
        60 + 26 * len(rows),
        f"The {len(rows)} columns whose shuffling costs most power; the first is "
        f"{rows[0]['name']}, {rows[0]['Power lost']}. The table below has the others.",
    )


def _interval_chart(rows: list[Data], title: str, told: str, axis: alt.Axis) -> Data:
    """Points with lines through them, a name each."""
    y = alt.Y(
        "name:N",
        title=None,
        sort=[row["name"] for row in rows],
        axis=alt.Axis(labelLimit=170, ticks=False),
    )
    base = alt.Chart(values(rows)).encode(y=y)
    zero = alt.Chart(values([{"x": 0.0}]))
    chart = alt.layer(
        zero.mark_rule(color="var(--muted)").encode(x="x:Q"),
        base.mark_rule(color=OTHER, strokeWidth=2).encode(
            x=alt.X("low:Q", title=title), x2="high:Q"
        ),
        base.mark_point(color=OTHER, filled=True, opacity=1, size=80).encode(
            x=alt.X("x:Q", title=title, axis=axis),
            tooltip=[alt.Tooltip("name:N", title="Feature"), f"{told}:N"],
        ),
    )
    return finish(chart)


def _interval_rows(
    told: Data, name_of_value: str, words: Callable[[float], str] = number
) -> list[Data]:
    rows: list[Data] = []
    seen: dict[str, int] = {}
    ends = [
        told["values"] if end is None else end for end in (told["low"], told["high"])
    ]
    every = zip(told["names"], told["values"], *ends, strict=True)
    for name, value, low, high in every:
        # A name that comes twice gets invisible spaces, to be a place of its own.
        seen[name] = seen.get(name, -1) + 1
        rows.append(
            {
                "name": name + "\u200b" * seen[name],
                "x": value,
                "low": low,
                "high": high,
                name_of_value: words(value),
            }
        )
    return rows[:MOST_BARS]
