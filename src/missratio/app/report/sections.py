"""The sections of a report: each a function of the data that says what there is to say.

A section is a title, sentences, figures to see first, a list, a chart and a table; or
parts that are sections themselves. Pages and text are loops over `sections(data)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from missratio.app.modelfile import GROUPS, SEVERAL_CLASSES
from missratio.app.report import charts
from missratio.app.report.charts import Chart, Series, axis, layer, points, steps
from missratio.app.report.measure import SOURCES
from missratio.app.report.words import (
    listed,
    number,
    percent,
    share,
    span,
)

Data = dict[str, Any]
Pairs = Sequence[tuple[str, str]]

MOST_BARS, MOST_NAMED = 25, 20
ALPHA_TICKS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3]
TRADE_OFF_POINTS = 12

GLOSSARY: dict[str, tuple[str, str]] = {
    "phi": (
        "φ, missing probability",
        "The probability that a value is missing, given the value itself. Each class "
        "has its own φ.",
    ),
    "alpha": (
        "α, bound on an error",
        "The bound on the share of a class that is classified as a class which it must "
        "not be. For two classes this is the type I error. The certificate says that "
        "the error is at most α; several bounds hold together.",
    ),
    "power": (
        "Power",
        "The share of the other class's rows that are recognised, that is, classified "
        "as the other class.",
    ),
    "kish": (
        "Effective sample size",
        "How many equally weighted rows would be as informative as these weighted "
        "ones: (Σw)²/Σw², by Kish.",
    ),
    "gamma": (
        "Γ, odds factor",
        "By what factor the odds φ/(1 − φ) may be wrong, up or down, before the "
        "certificate fails. Γ = 1 means that φ has to be exact.",
    ),
    "calibration": (
        "Calibration rows",
        "Rows of a bounded class that were kept from fitting and choose the threshold.",
    ),
}
"""The words that a page explains, by id."""


@dataclass(frozen=True)
class Table:
    """Cells as texts; folded away beside a chart unless it is `shown`."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    shown: bool = False
    texts: Sequence[int] = ()
    """The columns that hold sentences."""


def table(
    *columns: tuple[str, Callable[[Any], str], Iterable[Any]], shown: bool = False
) -> Table:
    """A table of columns: their names, how cells are written, and values.

    What is written by `str` is a text.
    """
    written = [[write(value) for value in values] for _, write, values in columns]
    rows = [list(row) for row in zip(*written, strict=True)]
    texts = [j for j, (_, write, _) in enumerate(columns) if write is str]
    return Table([name for name, _, _ in columns], rows, shown, texts)


@dataclass(frozen=True)
class ReportSection:
    """What there is to say about one thing; what is empty is left out."""

    id: str
    title: str
    text: Sequence[str] = ()
    facts: Sequence[tuple[str, str, str, str]] = ()
    """Figures to see first: name, value, a note, and a word to explain or ""."""
    items: Pairs = ()
    """Things with a title each, which may be empty."""
    chart: Chart | None = None
    table: Table | None = None
    notes: Sequence[str] = ()
    parts: Sequence[ReportSection] = ()
    layout: str = ""
    """How the page arranges it, by a class of its style."""
    terms: Sequence[str] = ()
    status: str = ""
    levels: Sequence[Data] = ()
    own: int = 0
    """The levels that a slider goes through, and where it begins."""


def sections(data: Data) -> list[ReportSection]:
    """Every section of a report that has something to say, in the page's order."""
    return [
        certificate(data),
        *_list("cautions", "Before you rely on it", data["cautions"]),
        *_list("next", "What to do next", data["next"]),
        errors(data),
        *levels(data),
        *sensitivity(data),
        *trade_offs(data),
        missing(data),
        *patterns(data),
        weights(data),
        *coefficients(data),
        *importance(data),
        *comparison(data),
    ]


def meta(data: Data) -> str:
    """What was fitted to which rows, in a line."""
    model = data["model"]
    sizes = listed(
        f"{number(k['rows'])} of class {k['label']}" for k in model["classes"]
    )
    many = len(model["bounded"]) > 1
    where = f" in each group of {model['column']}" * (data["kind"] == GROUPS)
    return (
        f"{model['estimator']} on {number(model['features'])} "
        f"feature{'s' * (model['features'] != 1)}. {number(model['rows'])} rows: "
        f"{sizes}. The error{'s' * many} of {listed(model['bounded'])} "
        f"{'are' if many else 'is'} bounded{where}."
    )


def origin(data: Data) -> Pairs:
    """When, by what and from which table the report was made."""
    found = data["origin"]
    made = f"{found['date']}, by missratio {data['model']['version']}"
    seed = "" if found["seed"] is None else str(found["seed"])
    file = f"{found['file']}, SHA-256 {found['sha256']}" if found["sha256"] else ""
    every = [("Made", made), ("Seed", seed), ("Command", found["command"] or ""),
             ("Table", file)]  # fmt: skip
    return [(name, text) for name, text in every if text]


def _colour(label: Any, data: Data) -> str:
    return "controlled" if label in data["model"]["bounded"] else "other"


def _list(id: str, title: str, entries: Sequence[Data]) -> Iterator[ReportSection]:
    items = [(entry["title"], entry["text"]) for entry in entries]
    if items:
        yield ReportSection(id, title, items=items, layout=id)


def certificate(data: Data) -> ReportSection:
    """What is guaranteed, what is assumed, and what would break it."""
    said, entries, facts = data["words"], data["errors"], []
    certified = any(entry["certified"] for entry in entries)
    if data["curve"] is not None:
        found, (entry,) = data["certificate"], entries
        error, power = entry["error"], entry["found"]
        size = f"effective sample size {number(found['effective_rows'])}"
        facts = [
            ("Bound α", percent(found["alpha"]),
             f"with {percent(1.0 - found['delta'])} confidence", "alpha"),
            ("Type I error", share(error["estimate"]),
             "on test rows" if error["source"] == "test" else "estimated", "alpha"),
            ("Power", share(power["estimate"]), span(power), "power"),
            ("Calibration rows", number(found["rows"]), size, "calibration"),
        ]  # fmt: skip
        if found["looked_up"]:
            lost = f"{number(found['not_found'])} not found, counted as errors"
            note = lost if found["not_found"] else "all found"
            facts.append(("Looked up", f"{number(found['looked_up'])} rows", note, ""))
        elif found["certified"] and found["observed"] < found["rows"]:
            gamma = found["sensitivity"]
            value = "> 1000" if gamma is None else number(gamma, 3)
            note = "factor by which odds may be wrong"
            facts.append(("Sensitivity Γ", value, note, "gamma"))
    robust = [(e["name"], e["robustness"]) for e in entries if e["robustness"]]
    parts = [
        ("assumed", "This is assumed", _untitled(said["assumptions"] * certified)),
        ("breaks", "This would break it", _untitled(said["breaks"] * certified)),
        ("tested", "This was tested", _untitled(said["checks"])),
        ("robust", "How wrong may φ be?",
         robust if len(entries) > 1 else _untitled(text for _, text in robust)),
    ]  # fmt: skip
    return ReportSection(
        "certificate",
        said["headline"],
        [text for k in ("guarantee", "blanks", "meaning") if (text := said[k])],
        facts,
        parts=[ReportSection(id, title, items=i) for id, title, i in parts if i],
        status="Certified" if certified else "Not certified",
        layout="columns",
        terms=("phi",),
    )


def _untitled(texts: Iterable[str]) -> Pairs:
    return [("", text) for text in texts]


def errors(data: Data) -> ReportSection:
    """What each class or group is promised, and what becomes of it."""
    kind, entries, parts = data["kind"], data["errors"], []
    one, finds = ("the other class", "Power")
    if kind == SEVERAL_CLASSES:
        one, finds = "a class", "Found"
    notes = [
        "Error: the share of rows that are classified as a class which they must not "
        f"be. {finds}: the share of {one} that is recognised. Measured on "
        f"{SOURCES[data['measured']]}; the interval is {entries[0]['found']['method']}."
    ]
    if entries[0]["error"].get("source") == "calibration":
        notes.append(
            "The error is estimated on calibration rows, which took no part in "
            "fitting; its interval is the certificate's bound, with "
            f"{percent(entries[0]['error']['confidence'])} confidence."
        )
    chart = charts.by_name(
        [e["name"] for e in entries],
        {
            name: Series(
                colour,
                [e[k]["estimate"] for e in entries],
                [(e[k]["low"], e[k]["high"]) for e in entries],
                [e["level"] for e in entries] if k == "error" else (),
            )
            for name, k, colour in (
                ("error", "error", "controlled"), (finds.lower(), "found", "other")
            )
        },
        axis("share of rows", share=True, domain=[0, 1]),
        caption="Upright strokes: the error that was promised at most.",
    )  # fmt: skip
    text = (
        "One threshold serves all rows: it is the strictest that any promise needs."
        if data["model"]["shared"]
        else "Each group has a threshold of its own, chosen on its own rows."
    )
    if data["confusion"] is not None:
        labels, shares = data["confusion"]["labels"], data["confusion"]["shares"]
        columns = [
            (f"as {k}", share, [row[j] for row in shares]) for j, k in enumerate(labels)
        ]
        told = table(("In truth", str, labels), *columns)
        parts.append(ReportSection("confusion", "What classes are called", table=told))
    return ReportSection(
        "errors",
        "Errors and power",
        [text] if kind == GROUPS else [],
        chart=chart,
        table=table(
            ("Group" if kind == GROUPS else "Class", str, [e["name"] for e in entries]),
            ("Promised", _at_most, [e["level"] for e in entries]),
            ("Certified", lambda e: "no" if e["level"] and not e["certified"] else
             percent(e["bound"]), entries),
            *(
                column
                for name, k in (("Error", "error"), (finds, "found"))
                for column in (
                    (name, share, [e[k]["estimate"] for e in entries]),
                    (f"{name}, interval", span, [e[k] for e in entries]),
                    ("Rows", number, [e[k]["rows"] for e in entries]),
                )
            ),
            shown=True,
        ),
        notes=notes,
        parts=parts,
        terms=("power",),
    )  # fmt: skip


def _at_most(level: float | None) -> str:
    return "–" if level is None else f"at most {percent(level)}"


def levels(data: Data) -> Iterator[ReportSection]:
    """The NP-ROC and the scores, at a level that the reader chooses."""
    curve = data["curve"]
    if curve is None:
        return
    ends = points(low=curve["power_low"], high=curve["power_high"])
    told = table(
        ("α", percent, curve["alpha"]),
        ("Threshold", _or_none(number), curve["threshold"]),
        ("Certified error", _or_none(percent), curve["error_bound"]),
        ("Estimated error", share, curve["estimated_error"]),
        ("Power", share, curve["power"]),
        ("Interval", span, ends),
        ("Rule", str, curve["rule"]),
    )
    names = ("alpha", "threshold", "bound", "estimate", "power", "interval", "rule")
    text = (
        "Each level α has its own threshold, its own guarantee and its own power. If "
        "you use this page to choose α, you choose after seeing the calibration rows, "
        "and the guarantee is lost: calibrate again on fresh rows."
    )
    yield ReportSection(
        "levels",
        "Choose another α",
        [text],
        table=told,
        parts=[_roc(curve), *_scores(data)],
        layout="pair",
        levels=[dict(zip(names, row, strict=True)) for row in told.rows],
        own=curve["own"],
    )


def _or_none(write: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: "none" if value is None else write(value)


def _roc(curve: Data) -> ReportSection:
    alpha, own = curve["alpha"], curve["own"]
    line = points(i=range(len(alpha)), x=alpha, y=curve["power"])
    at = [{"i": row["i"], "x": row["x"]} for row in line]
    band = points(x=alpha, y=curve["power_low"], y2=curve["power_high"])
    here = "datum.i == chosen"
    chart = charts.plane(
        [
            layer("area", band, "other", opacity=0.18),
            layer("line", line, "other", strokeWidth=2),
            layer("rule", at, "muted", f"datum.i == {own}", strokeDash=[3, 3]),
            layer("rule", at, "ink", here, strokeWidth=1.5),
            layer("point", line, "ink", here, filled=False, fill="page", size=90,
                  strokeWidth=2),
            layer("point", line, "ink", opacity=0, size=160),
        ],
        axis("certified type I error α", share=True, domain=[min(alpha), max(alpha)],
             log=True, grid=False, values=ALPHA_TICKS),
        axis("power", share=True, domain=[0, 1]),
        300,
        "Power against the certified error, with a "
        f"{percent(curve['confidence'])} band at each level.",
        chosen=own,
    )  # fmt: skip
    return ReportSection("roc", "NP-ROC", chart=chart)


def _scores(data: Data) -> Iterator[ReportSection]:
    scores, curve = data["scores"], data["curve"]
    if scores is None:
        return
    edges = scores["edges"]
    controlled, other = (f"class {k['label']}" for k in data["model"]["classes"])
    layers = [
        layer("area", steps(edges, scores[name]), name, opacity=0.25,
              line={"color": charts.css(name), "strokeWidth": 1.5},
              interpolate="step-after")
        for name in ("controlled", "other")
    ]  # fmt: skip
    at = points(i=range(len(curve["alpha"])), x=curve["threshold"])
    within = [row for row in at if edges[0] <= row["x"] <= edges[-1]]
    layers.append(layer("rule", within, "ink", "datum.i == chosen", strokeWidth=1.5))
    chart = charts.plane(
        layers,
        axis("score", domain=[edges[0], edges[-1]], grid=False),
        axis("share of the class", share=True, tickCount=4),
        300,
        f"Rows right of the line are classified as {other}.",
        [("controlled", controlled), ("other", other)],
        chosen=curve["own"],
    )
    yield ReportSection("scores", "Scores", chart=chart)


def sensitivity(data: Data) -> Iterator[ReportSection]:
    """What becomes of the certificate if φ is wrong."""
    found = data["sensitivity"]
    if found is None:
        return
    odds = found["odds"]
    layers = [layer("rule", [{"y": found["alpha"]}], "ink", strokeDash=[3, 3])]
    for name, colour, dash in (
        ("error", "controlled", [1, 0]),
        ("power", "other", [6, 3]),
    ):
        line = points(x=odds["amount"], y=odds[name])
        layers += [
            layer("line", line, colour, strokeWidth=2, strokeDash=dash),
            layer("point", line, colour),
        ]
    chart = charts.plane(
        layers,
        axis("odds factor Γ", log=True, grid=False, values=odds["amount"]),
        axis(None, share=True, domain=[0, 1]),
        230,
        "If the odds of being missing are wrong by up to a factor Γ. Dotted: "
        f"α = {percent(found['alpha'])}.",
        [("controlled", "the error that the threshold above still guarantees"),
         ("other", "dashed: the power of a threshold that still guarantees α")],
    )  # fmt: skip
    told = table(
        ("Odds factor Γ", number, odds["amount"]),
        ("Certified error", percent, odds["error"]),
        ("Power", share, odds["power"]),
    )
    tilt, label = found["controlled"], data["model"]["classes"][0]["label"]
    values = f"missing values of class {label} "
    tipping = [
        f"{number(abs(at), 2)} standard deviations {where}"
        for at, where in zip(tilt["tipping"], ("lower", "higher"), strict=True)
        if at is not None
    ]
    text = f"It is lost where the {values}lie {' or '.join(tipping)} than φ says."
    if not tipping:
        text = (
            f"It survives {values}that lie up to "
            f"{number(max(map(abs, tilt['amount'])), 2)} standard deviations lower or "
            "higher than φ says."
        )
    yield ReportSection(
        "sensitivity", "What if φ is wrong?",
        [*filter(None, [data["errors"][0]["robustness"]]), text],
        chart=chart, table=told, terms=("gamma",),
    )  # fmt: skip


def trade_offs(data: Data) -> Iterator[ReportSection]:
    """What bounded classes leave each other."""
    parts = []
    for k, trade in enumerate(data["trade_offs"]):
        (a, b), (level_a, level_b) = trade["labels"], trade["levels"]
        most = min(1.0, max(2.5, 1.3 * trade["factor"]) * max(level_a, level_b))
        asked = [{"x": 0.0, "y": 0.0, "x2": level_a, "y2": level_b}]
        layers = [layer("rect", asked, "bars", opacity=0.8)]
        for name, colour, dash in (
            ("errors", "other", [1, 0]),
            ("certifiable", "controlled", [6, 3]),
        ):
            line = [{"x": x, "y": y} for x, y in trade[name] if max(x, y) <= most]
            layers.append(layer("line", line, colour, strokeWidth=2, strokeDash=dash))
        layers.append(layer("point", [{"x": level_a, "y": level_b}], "ink", size=70))
        x, y = (
            axis(f"error of class {label}", share=True, domain=[0, most])
            for label in (a, b)
        )
        step = max(1, -(-len(trade["errors"]) // TRADE_OFF_POINTS))
        told = table(
            *(
                (f"{what} of {label}", share, [pair[j] for pair in trade[name][::step]])
                for what, name in (("Error", "errors"), ("Least α", "certifiable"))
                for j, label in enumerate((a, b))
            )
        )
        title, said = f"{a} and {b}", [trade["sentence"]]
        chart = charts.plane(layers, x, y, 320)
        parts.append(
            ReportSection(f"trade-off-{k}", title, said, chart=chart, table=told)
        )
    text = (
        "A row gets one class, so bounded classes take room from each other. Line: "
        "errors that the two can have together, as the border between them moves. "
        "Dashed: the least levels α that could be certified for both. Grey: what was "
        "asked for; there is room where the dashed line reaches into it. These are "
        "estimates from rows that take no part in the certificate."
    )
    if parts:
        title = "What bounded classes leave each other"
        yield ReportSection("trade-off", title, [text], parts=parts, layout="pair")


def missing(data: Data) -> ReportSection:
    """What is missing of each column, and φ along it."""
    found, title = data["missingness"], "What is missing"
    if found["patterns"] is None:
        return ReportSection("missing", title, ["No value is missing."])
    classes, features = found["classes"], found["features"]
    items: list[tuple[str, str]] = []
    for entry in classes:
        text = (
            f"{number(entry['complete'])} of {number(entry['rows'])} rows are complete."
        )
        items.append(
            (f"Class {entry['label']}", f"{text} {_model_words(entry)}".strip())
        )
        items += [
            ("Check failed" if check["failed"] else "Check passed", check["sentence"])
            for check in sorted(entry["checks"], key=lambda check: not check["failed"])
        ]
    looked_up = any(any(feature["looked_up"]) for feature in features)
    kinds = [("{}", number, "missing"), ("Share of {}", share, "share")]
    kinds += [("Looked up, {}", number, "looked_up")] * looked_up
    columns = [
        (name.format(f"class {entry['label']}"), write, [f[part][k] for f in features])
        for k, entry in enumerate(classes)
        for name, write, part in kinds
    ]
    drawn = [feature for feature in features if any(feature["missing"])][:MOST_BARS]
    chart = charts.by_name(
        [f["name"] for f in drawn],
        {
            f"class {entry['label']}": Series(
                _colour(entry["label"], data),
                [f["share"][k] for f in drawn],
                ticks=[
                    f["looked_up"][k] / max(1, entry["rows"]) or None for f in drawn
                ],
            )
            for k, entry in enumerate(classes)
        },
        axis("share missing", share=True),
        bars=True,
        caption="Share missing." + " Marks: the part that was looked up." * looked_up,
    )
    left = found["left_out"]
    return ReportSection(
        "missing",
        title,
        items=items,
        chart=chart,
        table=table(("Column", str, [f["name"] for f in features]), *columns),
        notes=[f"{number(left)} more columns are left out."] if left else [],
        parts=_profiles(data),
        terms=("phi",),
    )


def _model_words(entry: Data) -> str:
    """Why values of a class are missing, as far as it was said."""
    if entry["kind"] == "none":
        whole = entry["complete"] == entry["rows"]
        return "" if whole else "Why values are missing was not modelled."
    if entry["kind"] == "looked-up":
        lost = entry["drawn"] - entry["found"]
        found = f"{number(lost)} of them were not found" if lost else "all were found"
        return (
            f"{number(entry['drawn'])} of its incomplete rows were looked up, and "
            f"{found}. No φ is assumed."
        )
    what = "whole rows" if entry["whole_rows"] else "single values"
    if entry["kind"] == "known":
        return f"φ, of {what}, is taken as known: {entry['model']}."
    return (
        f"φ, of {what}, was learned; its band holds everywhere at once with "
        f"{percent(entry['band_confidence'])} confidence."
    )


def _profiles(data: Data) -> list[ReportSection]:
    """φ and its band against a feature, before the feature's values."""
    parts = []
    for k, profile in enumerate(data["missingness"]["profiles"]):
        edges, line = profile["edges"], points(x=profile["at"], y=profile["phi"])
        band = points(x=profile["at"], y=profile["low"], y2=profile["high"])
        # The tallest bar is at three fifths of the figure.
        unit = 0.6 / max(*profile["observed"], *profile["reweighted"], 1e-12)
        seen, before = (
            [unit * height for height in profile[name]]
            for name in ("observed", "reweighted")
        )
        colour = _colour(profile["label"], data)
        chart = charts.plane(
            [
                layer("rect", points(x=edges[:-1], x2=edges[1:], y=seen), "bars",
                      stroke="bars", strokeWidth=0.5, tooltip=None),
                layer("line", steps(edges, before), "muted", strokeWidth=1,
                      interpolate="step-after"),
                layer("area", band, colour, opacity=0.2),
                layer("line", line, colour, strokeWidth=2),
                layer("point", line, colour, opacity=0, size=120),
            ],
            axis(None, domain=[edges[0], edges[-1]], grid=False),
            axis("missing", share=True, domain=[0, 1], values=[0, 0.25, 0.5, 0.75, 1]),
            200,
            key=[(colour, f"class {profile['label']}")],
        )  # fmt: skip
        told = table(
            ("Value", number, profile["at"]),
            ("φ", share, profile["phi"]),
            ("Band", span, points(low=profile["low"], high=profile["high"])),
        )
        parts.append(
            ReportSection(f"profile-{k}", profile["name"], chart=chart, table=told)
        )
    text = (
        "Line and band: φ, the probability that a value is missing, given the value. "
        "Bars: values observed. Thin outline: values before any was lost, as the "
        "weights have them."
    )
    whole = [ReportSection("by-value", "By value", [text], parts=parts, layout="many")]
    return whole if parts else []


def patterns(data: Data) -> Iterator[ReportSection]:
    """Which columns are missing together."""
    found, classes = data["missingness"]["patterns"], data["missingness"]["classes"]
    if found is None:
        return
    every, left = found["listed"], found["left_out"]
    columns = [
        (f"Class {entry['label']}",
         lambda p, k=k: f"{number(p['rows'][k])} ({share(p['share'][k])})", every)
        for k, entry in enumerate(classes)
    ]  # fmt: skip
    names = [", ".join(pattern["missing"]) or "nothing" for pattern in every]
    yield ReportSection(
        "patterns",
        "Missing together",
        table=table(("Missing", str, names), *columns),
        notes=[f"{number(left)} rarer patterns are left out."] * bool(left),
    )


def weights(data: Data) -> ReportSection:
    """How rows are weighted, and what that leaves of the sample."""
    entries, text = data["weights"], "All rows count the same."
    if any(entry["weighted"] for entry in entries):
        text = (
            "A complete row stands for 1/(1 − φ) rows like it, and one that was looked "
            "up for one over the share of rows drawn. The more the weights differ, the "
            "smaller the effective sample size."
        )
    names = [f"Class {e['label']}" for e in entries]
    calibrated = [entry for entry in data["errors"] if entry["rows"] is not None]
    kind = "" if data["kind"] == GROUPS else "class "
    names += [f"Calibration, {kind}{entry['name']}" for entry in calibrated]
    entries = [*entries, *calibrated]
    told = table(
        ("Rows", str, names),
        ("All", number, [e["rows"] for e in entries]),
        ("Usable", number, [e["observed"] for e in entries]),
        ("Effective sample size", number, [e["effective_rows"] for e in entries]),
        ("Largest weight", number, [e.get("largest") for e in entries]),
        (
            "Weight on the heaviest 5%",
            share,
            [e.get("heaviest_share") for e in entries],
        ),
    )
    return ReportSection("weights", "Weights", [text], table=told, terms=("kish",))


def _ranked(
    id: str, title: str, found: Data, text: str, notes: Sequence[str], *, name: str,
    of: str, shares: bool = False,
) -> ReportSection:  # fmt: skip
    """Names with their values, the largest first, and intervals where there are any."""
    values, write = found["values"], percent if shares else number
    low, high = (found[end] or values for end in ("low", "high"))
    ends = list(zip(low, high, strict=True))[:MOST_BARS]
    chart = charts.by_name(
        found["names"][:MOST_BARS], {"": Series("other", values[:MOST_BARS], ends)},
        axis(of, share=shares), zero=True,
    )  # fmt: skip
    columns = [(of.capitalize(), write, values)]
    if found["low"] is not None:
        columns += [("from", write, low), ("to", write, high)]
    told = table((name, str, found["names"]), *columns)
    return ReportSection(
        id, title, [text], chart=chart if values else None,
        table=told if values else None, notes=notes,
    )  # fmt: skip


def coefficients(data: Data) -> Iterator[ReportSection]:
    """What each feature adds to a linear score."""
    found = data["coefficients"]
    if found is None:
        return
    text = (
        "How much the score changes when a feature grows by one standard deviation. A "
        "positive number moves the score towards class "
        f"{data['model']['classes'][1]['label']}."
    )
    if found["low"] is not None:
        text += f" Lines are {percent(found['confidence'])} intervals."
    notes = [found["doubt"]] if found["doubt"] else []
    if found["no_data"]:
        more = len(found["no_data"]) - MOST_NAMED
        named = ", ".join(found["no_data"][:MOST_NAMED])
        notes.append(
            "The fit had no data on these features, so they have no coefficient: "
            f"{named}{f' and {more} more' if more > 0 else ''}."
        )
    if found["left_out"]:
        notes.append(f"{number(found['left_out'])} smaller ones are left out.")
    yield _ranked(
        "coefficients", "Coefficients", found, text, notes, name="Feature",
        of="change of the score for one standard deviation more",
    )  # fmt: skip


def importance(data: Data) -> Iterator[ReportSection]:
    """The power that each column is worth."""
    found = data["importance"]
    if found is None:
        return
    text = (
        "How much power is lost when the values of a column are shuffled among the "
        f"rows, at an error of {percent(data['certificate']['alpha'])}. Point: mean of "
        f"{found['repeats']} shuffle{'s' * (found['repeats'] != 1)}; line: from the "
        f"smallest to the largest loss. Measured on {number(found['rows'])} rows that "
        f"the fit had not seen, where the power is {share(found['power'])} before "
        "shuffling."
    )
    notes = ["If two columns carry the same information, each looks unimportant."]
    yield _ranked(
        "importance", "Which columns matter", found, text, notes, name="Column",
        of="power lost", shares=True,
    )  # fmt: skip


def comparison(data: Data) -> Iterator[ReportSection]:
    """The methods that were compared, the best first."""
    found = data["comparison"]
    if found is None:
        return
    every = sorted(found["candidates"], key=lambda c: -(c["power"] or -1.0))
    names = [c["name"] + " (chosen)" * (c["name"] == found["chosen"]) for c in every]
    told = table(
        ("Method", str, names),
        ("Power", share, [c["power"] for c in every]),
        ("Standard error", share, [c["standard_error"] for c in every]),
        ("Time", "{:.1f} s".format, [c["seconds"] for c in every]),
        ("Note", str, [c["note"] or "" for c in every]),
    )
    text = f"Methods were not compared: {found.get('note')}."
    if not found.get("note"):
        sizes = number(found["controlled_rows"]), number(found["other_rows"])
        power = f"at an error of {percent(found['alpha'])}"
        if found["alpha"] is None:
            power = (
                f"as the mean share of {', '.join(found['compared'])} that gets its "
                "own class, under the bounds"
            )
        text = (
            f"Each method was fitted on training rows alone, {found['folds']} times, "
            f"and its power measured on the rows left out, {power}. Rows: {sizes[0]} "
            f"of bounded classes and {sizes[1]} of others. Time: "
            f"{found['seconds']:.0f} of {found['budget']:.0f} seconds. These powers "
            "choose a method; the power to expect is the one further up."
        )
    yield ReportSection(
        "comparison", "Methods compared", [text], table=told if every else None
    )
