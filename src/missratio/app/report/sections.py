"""The sections of a report: each a function of the data that says what there is to say.

A section is a title, sentences, figures to see first, a list, a chart and a table; or
parts that are sections themselves. Pages and text are loops over `sections(data)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from missratio.app.report.charts import (
    BARS,
    CONTROLLED,
    INK,
    MUTED,
    OTHER,
    PAGE,
    WARN,
    Chart,
    axis,
    by_name,
    cells,
    layer,
    plane,
    points,
    steps,
)
from missratio.app.report.measure import SOURCES
from missratio.app.report.words import (
    GROUPS,
    NO_SLACK,
    SEVERAL_CLASSES,
    TWO_CLASSES,
    listed,
    number,
    percent,
    share,
    span,
)

Data = dict[str, Any]
Pairs = Sequence[tuple[str, str]]

MOST_BARS, MOST_PATTERNS, MOST_NAMED = 25, 15, 20
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
    *columns: tuple[str, Callable[[Any], str], Iterable[Any]],
    shown: bool = False,
    texts: Sequence[int] = (),
) -> Table:
    """A table of columns: their names, how cells are written, and values."""
    written = [[write(value) for value in values] for _, write, values in columns]
    rows = [list(row) for row in zip(*written, strict=True)]
    return Table([name for name, _, _ in columns], rows, shown, texts)


@dataclass(frozen=True)
class Fact:
    """A figure to see first: its name, what it is, a note, and a word to explain."""

    name: str
    value: str
    note: str
    term: str = ""


@dataclass(frozen=True)
class ReportSection:
    """What there is to say about one thing; what is empty is left out."""

    id: str
    title: str
    text: Sequence[str] = ()
    facts: Sequence[Fact] = ()
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
    every = [
        certificate(data),
        cautions(data),
        next_steps(data),
        *promises(data),
        errors(data),
        levels(data),
        sensitivity(data),
        trade_offs(data),
        missing(data),
        patterns(data),
        weights(data),
        coefficients(data),
        importance(data),
        comparison(data),
    ]
    return [section for section in every if section is not None]


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


def certificate(data: Data) -> ReportSection:
    """What is guaranteed, what is assumed, and what would break it."""
    said = data["words"]
    certified = data["certificate"].get("certified", True)
    if data["kind"] == GROUPS:
        certified = any(entry["certified"] for entry in data["groups"])
    parts = [
        ("assumed", "This is assumed", said["assumptions"] if certified else []),
        ("breaks", "This would break it", said["breaks"] if certified else []),
        ("tested", "This was tested", said["checks"]),
        ("robust", "How wrong may φ be?", [said["robustness"] or ""]),
    ]
    return ReportSection(
        "certificate",
        said["headline"],
        [said["guarantee"], said["meaning"]],
        _facts(data),
        parts=[
            ReportSection(id, title, items=[("", text) for text in texts])
            for id, title, texts in parts
            if any(texts)
        ],
        status="Certified" if certified else "Not certified",
        layout="columns",
        terms=("phi",),
    )


def _basis(found: Data) -> list[Fact]:
    """The rows that a certificate rests on, and how wrong φ may be."""
    size = f"effective sample size {number(found['effective_rows'])}"
    facts = [Fact("Calibration rows", number(found["rows"]), size, "calibration")]
    if found["looked_up"]:
        lost = f"{number(found['not_found'])} not found, counted as errors"
        rows = f"{number(found['looked_up'])} rows"
        facts.append(
            Fact("Looked up", rows, lost if found["not_found"] else "all found")
        )
    elif found["certified"] and found["observed"] < found["rows"]:
        gamma = found["sensitivity"]
        value = "> 1000" if gamma is None else number(gamma, 3)
        note = "factor by which odds may be wrong"
        facts.append(Fact("Sensitivity Γ", value, note, "gamma"))
    return facts


def _facts(data: Data) -> list[Fact]:
    if data["kind"] != TWO_CLASSES:
        return []
    found, type_i, power = data["certificate"], data["type_i"], _power(data["curve"])
    sure = f"with {percent(1.0 - found['delta'])} confidence"
    where = "on test rows" if type_i["source"] == "test" else "estimated"
    interval = span(power["low"], power["high"])
    return [
        Fact("Bound α", percent(found["alpha"]), sure, "alpha"),
        Fact("Type I error", share(type_i["estimate"]), where, "alpha"),
        Fact("Power", share(power["estimate"]), interval, "power"),
        *_basis(found),
    ]


def _power(curve: Data) -> Data:
    """The power at the classifier's own level, as other shares are."""
    own = curve["own"]
    return {
        "estimate": curve["power"][own], "low": curve["power_low"][own],
        "high": curve["power_high"][own], "rows": curve["power_rows"],
        "method": curve["power_method"],
    }  # fmt: skip


def cautions(data: Data) -> ReportSection | None:
    """What a reader should know before relying on the numbers."""
    found = [(entry["title"], entry["text"]) for entry in data["cautions"]]
    title = "Before you rely on it"
    return (
        ReportSection("cautions", title, items=found, layout="cautions")
        if found
        else None
    )


def next_steps(data: Data) -> ReportSection | None:
    """What would raise the power."""
    found = [(entry["title"], entry["text"]) for entry in data["next"]]
    notes = ["These are estimates for planning. They certify nothing."]
    if not found:
        return None
    return ReportSection(
        "next", "What to do next", items=found, notes=notes, layout="next"
    )


def promises(data: Data) -> Iterator[ReportSection]:
    """What each of several classes is promised."""
    measured = {entry["label"]: entry["error"] for entry in data["errors"]}
    for k, promise in enumerate(data["promises"], start=1):
        found, error = promise["certificate"], measured[promise["label"]]
        part = f"its part of δ is {percent(found['delta'])}"
        bound, estimate = percent(found["error_bound"]), share(found["estimated_error"])
        interval = span(error["low"], error["high"])
        facts = [
            Fact("Bound α", percent(found["alpha"]), part, "alpha"),
            Fact("Certified error", bound, f"rule {found['rule']}"),
            Fact("Estimated error", estimate, "on calibration rows"),
            Fact("Measured error", share(error["estimate"]), interval),
            *_basis(found),
        ]
        text, robust = [promise["sentence"]], promise["robustness"]
        notes = [f"How wrong may φ be? {robust}"] if robust else []
        yield ReportSection(f"promise-{k}", promise["title"], text, facts, notes=notes)


def errors(data: Data) -> ReportSection:
    """What each class or group is promised, and what becomes of it."""
    model, kind = data["model"], data["kind"]
    labels = [str(entry["label"]) for entry in model["classes"]]
    wrong, right = f"class {labels[0]} that is classified as {labels[1]}", labels[1]
    source = SOURCES[data["measured"] or data["curve"]["source"]]
    text, title, who, finds = [], "What each group gets", "Group", "Power"
    if kind == GROUPS:
        entries = [{**entry, "found": entry["power"]} for entry in data["groups"]]
        text.append(
            "One threshold serves all rows: it is the strictest that any promise needs."
            if model["shared"]
            else "Each group has a threshold of its own, chosen on its own calibration "
            "rows."
        )
        if not all(entry["certified"] for entry in entries):
            text.append(
                "A group without a certified threshold has no power: all its rows are "
                f"classified as {model['fallback']}."
            )
    elif kind == TWO_CLASSES:
        title, who = "The two errors", "Class"
        found = data["certificate"]
        entries = [
            {"name": labels[0], "level": found["alpha"], "error": data["type_i"],
             "bound": found["error_bound"] if found["certified"] else None,
             "found": _power(data["curve"])}
        ]  # fmt: skip
        text = _mixed(entries[0], model)
    else:
        title, who, finds = "Every class's errors", "Class", "Found"
        bounds = {p["label"]: p["certificate"]["error_bound"] for p in data["promises"]}
        entries = [
            {**entry, "name": str(entry["label"]), "level": entry["bound"],
             "bound": bounds.get(entry["label"])}
            for entry in data["errors"]
        ]  # fmt: skip
        order = data["certificate"]["order"]
        less = "less severe; of the last class, as any other"
        wrong = f"a class that is classified as {less if order else 'another class'}"
        right = "a class that gets its own label"
    if kind != SEVERAL_CLASSES:
        right = f"class {right} that is recognised"
    first = entries[0]
    notes = [
        f"Error: the share of {wrong}. {finds}: the share of {right}. Measured on "
        f"{source}; the interval is {first['found']['method']}."
    ]
    if kind == TWO_CLASSES and first["error"]["source"] != "test":
        notes.append(
            "The error is estimated on calibration rows, which took no part in "
            "fitting; its interval is the certificate's bound, with "
            f"{percent(first['error']['confidence'])} confidence."
        )
    shares = [("error", "error"), (finds.lower(), "found")]
    rows = [
        {"name": e["name"], "series": name, "value": e[k]["estimate"],
         "x": e[k]["low"], "x2": e[k]["high"]}
        for e in entries
        for name, k in shares
        if e[k]["estimate"] is not None
    ]  # fmt: skip
    said = "; ".join(
        f"{r['series']} of {r['name']} {percent(r['value'])}" for r in rows
    )
    robust = [(e["name"], e["robustness"]) for e in data["groups"] if e["robustness"]]
    how = (
        [ReportSection("robust-groups", "How wrong may φ be?", items=robust)]
        if robust
        else []
    )
    certified = [
        "no" if e["bound"] is None and e["level"] is not None else percent(e["bound"])
        for e in entries
    ]
    columns: list[tuple[str, Callable[[Any], str], list[Any]]] = []
    for name, k in (("Error", "error"), (finds, "found")):
        found = [entry[k] for entry in entries]
        columns += [
            (name, share, [e["estimate"] for e in found]),
            (f"{name}, interval", str, [span(e["low"], e["high"]) for e in found]),
            ("Rows", number, [e["rows"] for e in found]),
        ]
    return ReportSection(
        "errors",
        title,
        text,
        chart=by_name(
            rows,
            axis("share of rows", share=True, domain=[0, 1]),
            f"Measured shares, and the errors that were promised: {said}.",
            {"error": CONTROLLED, finds.lower(): OTHER},
            ticks=[
                {"name": e["name"], "value": e["level"], "series": "error"}
                for e in entries
                if e["level"] is not None
            ],
            caption="Upright strokes: the error that was promised at most.",
            key=[("controlled", "error"), ("other", finds.lower())],
        ),
        table=table(
            (who, str, [e["name"] for e in entries]),
            ("Promised", _at_most, [e["level"] for e in entries]),
            ("Certified", str, certified),
            *columns,
            shown=True,
        ),
        notes=notes,
        parts=[*_confusion(data), *how, *_unscored(data)],
        terms=("power",),
    )


def _at_most(level: float | None) -> str:
    return "–" if level is None else f"at most {percent(level)}"


def _mixed(entry: Data, model: Data) -> list[str]:
    """What a thousand rows come to, in the mix of the table."""
    power, error = entry["found"]["estimate"], entry["error"]["estimate"]
    if power is None:
        return []
    other = model["classes"][1]
    part = other["rows"] / max(1, model["rows"])
    right, wrong = round(1000 * part * power), round(1000 * (1 - part) * error)
    text = (
        f"Of 1,000 rows mixed as in this table ({round(1000 * part)} of class "
        f"{other['label']}), about {right + wrong} are classified as {other['label']}"
    )
    return [
        f"{text}: {right} rightly and {wrong} wrongly." if right + wrong else f"{text}."
    ]


def _confusion(data: Data) -> list[ReportSection]:
    found = data["confusion"]
    if found is None:
        return []
    labels, shares = [str(label) for label in found["labels"]], found["shares"]
    rows = [
        {"y": label, "x": called, "value": part}
        for label, parts in zip(labels, shares, strict=True)
        for called, part in zip(labels, parts, strict=True)
        if part is not None
    ]
    # Side by side, long names would run into each other on a phone.
    turned = sum(map(len, labels)) > 24
    right = [shares[k][k] for k in range(len(labels))]
    said = listed(
        f"{share(p)} of class {k}" for k, p in zip(labels, right, strict=True)
    )
    chart = cells(
        rows, ("classified as", "in truth"), OTHER,
        70 + 50 * len(labels) + 90 * turned,
        f"What rows of each class are classified as. Rightly: {said}.",
        turned=-90 * turned, text=True,
    )  # fmt: skip
    called = [(k, share, [row[j] for row in shares]) for j, k in enumerate(labels)]
    told = table(("In truth", str, labels), *called)
    return [
        ReportSection("confusion", "What classes are called", chart=chart, table=told)
    ]


def _unscored(data: Data) -> list[ReportSection]:
    found, model = data["unscored"], data["model"]
    if not any(entry["share"] for entry in found):
        return []
    as_observed = model["deployment"] == "as-observed"
    why = "the method can't handle its blanks" if as_observed else "a value is missing"
    labels, parts = [e["label"] for e in found], [e["share"] for e in found]
    names = [f"class {label}" for label in labels]
    said = listed(f"{share(p)} of {k}" for k, p in zip(names, parts, strict=True))
    text = (
        f"A row without a score is classified as {model['fallback']}. A row has no "
        f"score if {why}, or if rows like it are observed so rarely that nothing can "
        "be certified for them."
    )
    chart = by_name(
        points(name=names, series=["no score"] * len(names), value=parts),
        axis("share of rows without a score", share=True, domain=[0, 1]),
        f"Rows without a score: {said}.",
        {"no score": WARN},
        bars=True,
    )
    told = table(
        ("Class", str, labels),
        ("No score", share, parts),
        ("Rows looked at", number, [e["rows"] for e in found]),
    )
    title = "Rows that can't be scored"
    return [ReportSection("unscored", title, [text], chart=chart, table=told)]


def levels(data: Data) -> ReportSection | None:
    """The NP-ROC and the scores, at a level that the reader chooses."""
    curve = data["curve"]
    if curve is None:
        return None
    none = [threshold is None for threshold in curve["threshold"]]
    bounds = [
        None if no else bound
        for no, bound in zip(none, curve["error_bound"], strict=True)
    ]
    told = table(
        ("α", percent, curve["alpha"]),
        ("Threshold", lambda t: "none" if t is None else number(t), curve["threshold"]),
        ("Certified error", lambda b: "none" if b is None else percent(b), bounds),
        ("Estimated error", share, curve["estimated_error"]),
        ("Power", share, curve["power"]),
        ("Interval", lambda ends: span(*ends),
         zip(curve["power_low"], curve["power_high"], strict=True)),
        ("Rule", str, curve["rule"]),
        texts=(6,),
    )  # fmt: skip
    names = ("alpha", "threshold", "bound", "estimate", "power", "interval", "rule")
    return ReportSection(
        "levels",
        "Choose another α",
        [
            "Each level α has its own threshold, its own guarantee and its own power. "
            "If you use this page to choose α, you choose after seeing the calibration "
            "rows, and the guarantee is lost: calibrate again on fresh rows."
        ],
        table=told,
        parts=[_roc(curve), *_scores(data)],
        layout="pair",
        levels=[dict(zip(names, row, strict=True)) for row in told.rows],
        own=curve["own"],
    )


def _roc(curve: Data) -> ReportSection:
    alpha, own, places = curve["alpha"], curve["own"], range(len(curve["alpha"]))
    line = points(i=places, x=alpha, y=curve["power"])
    at = [{"i": row["i"], "x": row["x"]} for row in line]
    here = "datum.i == chosen"
    layers = [
        layer("area", points(x=alpha, y=curve["power_low"], y2=curve["power_high"]),
              OTHER, opacity=0.18),
        layer("line", line, OTHER, strokeWidth=2),
        layer("rule", at, MUTED, f"datum.i == {own}", strokeDash=[3, 3]),
        layer("rule", at, INK, here, strokeWidth=1.5),
        layer("point", line, INK, here, filled=False, fill=PAGE, size=90,
              strokeWidth=2),
        layer("point", line, INK, opacity=0, size=160),
    ]  # fmt: skip
    reach = ""
    if line:
        reach = f" It is {percent(line[-1]['y'])} at α = {percent(line[-1]['x'])}."
    chart = plane(
        layers,
        axis("certified type I error α", share=True, domain=[min(alpha), max(alpha)],
             log=True, grid=False, values=ALPHA_TICKS),
        axis("power", share=True, domain=[0, 1]),
        300,
        f"NP-ROC: power against the type I error that is certified.{reach}",
        "Power against the certified error, with a "
        f"{percent(curve['confidence'])} band at each level.",
        chosen=own,
    )  # fmt: skip
    return ReportSection("roc", "NP-ROC", chart=chart)


def _scores(data: Data) -> list[ReportSection]:
    scores, curve = data["scores"], data["curve"]
    if scores is None:
        return []
    edges = scores["edges"]
    controlled, other = (
        f"class {entry['label']}" for entry in data["model"]["classes"]
    )
    layers = [
        layer("area", steps(edges, scores[name]), colour, opacity=0.25,
              line={"color": colour, "strokeWidth": 1.5}, interpolate="step-after")
        for name, colour in (("controlled", CONTROLLED), ("other", OTHER))
    ]  # fmt: skip
    at = points(i=range(len(curve["alpha"])), x=curve["threshold"])
    within = [row for row in at if edges[0] <= row["x"] <= edges[-1]]
    layers.append(layer("rule", within, INK, "datum.i == chosen", strokeWidth=1.5))
    chart = plane(
        layers,
        axis("score", domain=[edges[0], edges[-1]], grid=False),
        axis("share of the class", share=True, tickCount=4),
        300,
        f"Histograms of the scores of {controlled} and of {other}, with the threshold.",
        f"Rows right of the line are classified as {other}.",
        [("controlled", controlled), ("other", other)],
        chosen=curve["own"],
    )
    return [ReportSection("scores", "Scores", chart=chart)]


def sensitivity(data: Data) -> ReportSection | None:
    """What becomes of the certificate if φ is wrong."""
    found = data["sensitivity"]
    if found is None:
        return None
    odds = found["odds"]
    layers = [layer("rule", [{"y": found["alpha"]}], INK, strokeDash=[3, 3])]
    for name, colour, dash in (("error", CONTROLLED, [1, 0]), ("power", OTHER, [6, 3])):
        line = points(x=odds["amount"], y=odds[name])
        layers += [
            layer("line", line, colour, strokeWidth=2, strokeDash=dash),
            layer("point", line, colour),
        ]
    ends = [
        f"{name}, from {percent(odds[k][0])} to {percent(odds[k][-1])}"
        for name, k in (("certified error", "error"), ("power", "power"))
    ]
    chart = plane(
        layers,
        axis("odds factor Γ", log=True, grid=False, values=odds["amount"]),
        axis(None, share=True, domain=[0, 1]),
        230,
        f"As the odds factor grows to {number(odds['amount'][-1], 3)}: {listed(ends)}.",
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
    text = _tipping(found, data["model"]["classes"][0]["label"])
    return ReportSection(
        "sensitivity", "What if φ is wrong?", text, chart=chart, table=told,
        terms=("gamma",),
    )  # fmt: skip


def _tipping(found: Data, label: Any) -> list[str]:
    """The tipping points in sentences."""
    gamma, tilt = found["tipping_factor"], found["controlled"]
    if gamma is None:
        odds = "No odds factor up to 1000 undoes the certificate."
    elif gamma < NO_SLACK:
        odds = "Tipping point: the certificate has no slack, it needs φ to be exact."
    else:
        odds = (
            "Tipping point: the certificate is lost once the odds of being missing "
            f"are wrong by more than a factor of Γ = {number(gamma, 3)}."
        )
    parts = [
        f"{number(abs(at), 2)} standard deviations {where}"
        for at, where in zip(tilt["tipping"], ("lower", "higher"), strict=True)
        if at is not None
    ]
    start = f"It is lost where the missing values of class {label} lie "
    lost = f"{start}{' or '.join(parts)} than φ says."
    survives = (
        f"It survives missing values of class {label} that lie up to "
        f"{number(max(map(abs, tilt['amount'])), 2)} standard deviations lower or "
        "higher than φ says."
    )
    return [odds, lost if parts else survives]


def trade_offs(data: Data) -> ReportSection | None:
    """What bounded classes leave each other."""
    parts = []
    for k, trade in enumerate(data["trade_offs"]):
        (a, b), (level_a, level_b) = trade["labels"], trade["levels"]
        most = min(1.0, max(2.5, 1.3 * trade["factor"]) * max(level_a, level_b))
        asked = [{"x": 0.0, "y": 0.0, "x2": level_a, "y2": level_b}]
        layers = [layer("rect", asked, BARS, opacity=0.8)]
        for name, colour, dash in (
            ("errors", OTHER, [1, 0]),
            ("certifiable", CONTROLLED, [6, 3]),
        ):
            line = [{"x": x, "y": y} for x, y in trade[name] if max(x, y) <= most]
            layers.append(layer("line", line, colour, strokeWidth=2, strokeDash=dash))
        layers.append(layer("point", [{"x": level_a, "y": level_b}], INK, size=70))
        chart = plane(
            layers,
            axis(f"error of class {a}", share=True, domain=[0, most]),
            axis(f"error of class {b}", share=True, domain=[0, most]),
            320,
            f"What classes {a} and {b} leave each other. {trade['sentence']}",
        )
        step = max(1, -(-len(trade["errors"]) // TRADE_OFF_POINTS))
        told = table(
            *(
                (f"{what} of {label}", share, [pair[j] for pair in trade[name][::step]])
                for what, name in (("Error", "errors"), ("Least α", "certifiable"))
                for j, label in enumerate((a, b))
            )
        )
        parts.append(
            ReportSection(
                f"trade-off-{k}", f"{a} and {b}", [trade["sentence"]], chart=chart,
                table=told,
            )
        )  # fmt: skip
    text = (
        "A row gets one class, so bounded classes take room from each other. Line: "
        "errors that the two can have together, as the border between them moves. "
        "Dashed: the least levels α that could be certified for both. Grey: what was "
        "asked for; there is room where the dashed line reaches into it. These are "
        "estimates from rows that take no part in the certificate."
    )
    title = "What bounded classes leave each other"
    if not parts:
        return None
    return ReportSection("trade-off", title, [text], parts=parts, layout="pair")


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


def missing(data: Data) -> ReportSection:
    """What is missing of each column, and φ along it."""
    found, title = data["missingness"], "What is missing"
    if not found["any"]:
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
    left = found["left_out"]
    return ReportSection(
        "missing",
        title,
        items=items,
        chart=_columns(data, looked_up),
        table=table(("Column", str, [f["name"] for f in features]), *columns),
        notes=[f"{number(left)} more columns are left out."] if left else [],
        parts=_profiles(data),
        terms=("phi",),
    )


def _columns(data: Data, looked_up: bool) -> Chart:
    classes, features = data["missingness"]["classes"], data["missingness"]["features"]
    drawn = [feature for feature in features if any(feature["missing"])][:MOST_BARS]
    places = [(f, k, str(e["label"])) for f in drawn for k, e in enumerate(classes)]
    rows = [
        {"name": f["name"], "series": k, "value": f["share"][j]} for f, j, k in places
    ]
    ticks = [
        {"name": f["name"], "series": k,
         "value": f["looked_up"][j] / max(1, classes[j]["rows"])}
        for f, j, k in places
        if f["looked_up"][j]
    ]  # fmt: skip
    worst = max(rows, key=lambda row: float(row["value"]))
    key = [(_colour(e["label"], data), f"class {e['label']}") for e in classes]
    return by_name(
        rows,
        axis("share missing", share=True),
        f"Share of missing values of {len(drawn)} columns, by class. Most are missing "
        f"of {worst['name']}: {percent(worst['value'])} of class {worst['series']}. "
        "The table below has the numbers.",
        {str(e["label"]): f"var(--{_colour(e['label'], data)})" for e in classes},
        bars=True,
        ticks=ticks,
        caption="Share missing." + " Marks: the part that was looked up." * looked_up,
        key=key,
    )


def _profiles(data: Data) -> list[ReportSection]:
    """φ and its band against a feature, before the feature's values."""
    profiles = data["missingness"]["profiles"]
    if not profiles:
        return []
    parts = [_profile(k, profile, data) for k, profile in enumerate(profiles)]
    phi = "Line and band: φ, the probability that a value is missing, given the value. "
    text = (
        phi
        * any(profile["phi"] for profile in profiles)
        + "Bars: values observed. Thin outline: values before any was lost, as the "
        "weights have them. Short strokes at the top: values that were looked up."
    )
    return [ReportSection("by-value", "By value", [text], parts=parts, layout="many")]


def _profile(k: int, profile: Data, data: Data) -> ReportSection:
    name, label = profile["name"], profile["label"]
    edges, phi, at = profile["edges"], profile["phi"], profile["at"]
    # The tallest bar is at three fifths of the figure.
    unit = 0.6 / max(*profile["observed"], *profile["reweighted"], 1e-12)
    seen, whole = ([unit * h for h in profile[k]] for k in ("observed", "reweighted"))
    css = _colour(label, data)
    colour = f"var(--{css})"
    layers = [
        layer("rect", points(x=edges[:-1], x2=edges[1:], y=seen), BARS, stroke=BARS,
              strokeWidth=0.5, tooltip=None),
        layer("line", steps(edges, whole), MUTED, strokeWidth=1,
              interpolate="step-after"),
    ]  # fmt: skip
    said = "histogram of the values observed."
    if phi:
        line = points(x=at, y=phi)
        layers += [
            layer("area", points(x=at, y=profile["low"], y2=profile["high"]), colour,
                  opacity=0.2),
            layer("line", line, colour, strokeWidth=2),
            layer("point", line, colour, opacity=0, size=120),
        ]  # fmt: skip
        said = (
            f"probability of being missing {percent(phi[0])} at its smallest values, "
            f"{percent(phi[-1])} at its largest."
        )
    marks = [x for x in profile["marks"] if edges[0] <= x <= edges[-1]]
    if marks:
        strokes = [{"x": x, "y": 0.95, "y2": 1.0} for x in marks]
        layers.append(layer("rule", strokes, INK, opacity=0.55, strokeWidth=1))
        said += f" Values looked up lie between {number(min(marks), 3)} and "
        said += f"{number(max(marks), 3)}."
    chart = plane(
        layers,
        axis(None, domain=[edges[0], edges[-1]], grid=False),
        axis("missing" if phi else None, share=True, domain=[0, 1],
             values=[0, 0.25, 0.5, 0.75, 1]),
        200,
        f"{name}, class {label}: {said}",
        key=[(css, f"class {label}")],
    )  # fmt: skip
    bands = zip(profile["low"], profile["high"], strict=True)
    told = table(
        ("Value", number, at), ("φ", share, phi), ("Band", lambda b: span(*b), bands)
    )
    return ReportSection(f"profile-{k}", name, chart=chart, table=told if phi else None)


def patterns(data: Data) -> ReportSection | None:
    """Which columns are missing together."""
    found, classes = data["missingness"]["patterns"], data["missingness"]["classes"]
    if found is None:
        return None
    total = sum(entry["rows"] for entry in classes)
    every, columns = found["listed"], found["columns"][:MOST_BARS]
    drawn = every[:MOST_PATTERNS]
    rows = [
        {"y": f"{place}. {share(sum(pattern['rows']) / total)}", "x": column,
         "value": float(column in pattern["missing"])}
        for place, pattern in enumerate(drawn, start=1)
        for column in columns
    ]  # fmt: skip
    left = found["left_out"]
    notes = [f"{number(left)} rarer patterns are left out."] if left else []
    notes += [
        f"Class {entry['label']}: {text}"
        for entry, text in zip(classes, found["test"], strict=True)
        if text
    ]
    names = [", ".join(pattern["missing"]) or "nothing" for pattern in every]
    chart = cells(
        rows, (None, "share of rows"), INK, 130 + 22 * len(drawn),
        f"The {len(drawn)} most frequent patterns of missing columns. First, with "
        f"{number(sum(drawn[0]['rows']))} of {number(total)} rows, missing: "
        f"{names[0]}. The table below has the others.",
        turned=-45, wide=60 * len(columns),
        caption="Each line is a pattern, the most frequent first.",
        key=[("lost", "columns that are missing"), ("there", "columns that are there")],
    )  # fmt: skip
    by_class = [
        (
            f"Class {entry['label']}",
            [f"{number(p['rows'][k])} ({share(p['share'][k])})" for p in every],
        )
        for k, entry in enumerate(classes)
    ]
    told = table(("Missing", str, names), *((k, str, texts) for k, texts in by_class))
    title = "Missing together"
    return ReportSection("patterns", title, chart=chart, table=told, notes=notes)


def weights(data: Data) -> ReportSection:
    """How rows are weighted, and what that leaves of the sample."""
    entries = data["weights"]
    parts = []
    for k, entry in enumerate(entries):
        if entry["histogram"] is None:
            continue
        label, css = f"class {entry['label']}", _colour(entry["label"], data)
        edges, counts = entry["histogram"]["edges"], entry["histogram"]["rows"]
        bars = points(x=edges[:-1], x2=edges[1:], y=counts)
        chart = plane(
            [layer("rect", bars, f"var(--{css})", stroke=PAGE)],
            axis("weight", log=True, domain=[edges[0], edges[-1]], grid=False),
            axis("rows", tickCount=4, format=",.0f"),
            190,
            f"Histogram of the weights of {label}, from {number(edges[0], 3)} to "
            f"{number(edges[-1], 3)}.",
        )
        told = table(
            ("Weight from", number, edges[:-1]),
            ("to", number, edges[1:]),
            ("Rows", number, counts),
        )
        parts.append(
            ReportSection(
                f"weights-{k}", f"Weights of {label}", chart=chart, table=told
            )
        )
    names = [f"Class {e['label']}" for e in entries]
    if data["kind"] == TWO_CLASSES:
        found = data["certificate"]
        names.append(f"Calibration, class {data['model']['bounded'][0]}")
        calibration = {"largest": None, "heaviest_share": None, **found}
        entries = [*entries, {**calibration, "kish": found["effective_rows"]}]
    text = "All rows count the same."
    if parts:
        text = (
            "A complete row stands for 1/(1 − φ) rows like it, and one that was looked "
            "up for one over the share of rows drawn. The more the weights differ, the "
            "smaller the effective sample size."
        )
    told = table(
        ("Rows", str, names),
        ("All", number, [e["rows"] for e in entries]),
        ("Usable", number, [e["observed"] for e in entries]),
        ("Effective sample size", number, [e["kish"] for e in entries]),
        ("Largest weight", number, [e["largest"] for e in entries]),
        ("Weight on the heaviest 5%", share, [e["heaviest_share"] for e in entries]),
    )
    return ReportSection(
        "weights", "Weights", [text], table=told, parts=parts, layout="many",
        terms=("kish",),
    )  # fmt: skip


def _intervals(found: Data, title: str, shares: bool, note: str) -> Chart:
    """The first names with their values, and intervals where there are some."""
    values, ends = found["values"], found["low"] is not None
    rows = points(
        name=found["names"], series=[""] * len(values), value=values,
        x=found["low"] if ends else values, x2=found["high"] if ends else values,
    )[:MOST_BARS]  # fmt: skip
    first = percent(values[0]) if shares else number(values[0])
    said = (
        f"{len(rows)} {note}; the first is {rows[0]['name']}, {first}. The table below "
        "has the others."
    )
    return by_name(rows, axis(title, share=shares), said, {"": OTHER}, zero=True)


def coefficients(data: Data) -> ReportSection | None:
    """What each feature adds to a linear score."""
    found = data["coefficients"]
    if found is None:
        return None
    text = (
        "How much the score changes when a feature grows by one standard deviation. A "
        "positive number moves the score towards class "
        f"{data['model']['classes'][1]['label']}."
    )
    columns = [("Per standard deviation", number, found["values"])]
    if found["low"] is not None:
        text += f" Lines are {percent(found['confidence'])} intervals."
        columns += [("from", number, found["low"]), ("to", number, found["high"])]
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
    chart = told = None
    if found["names"]:
        title = "change of the score for one standard deviation more"
        what = "coefficients largest in size, per standard deviation"
        chart = _intervals(found, title, False, what)
        told = table(("Feature", str, found["names"]), *columns)
    return ReportSection(
        "coefficients", "Coefficients", [text], chart=chart, table=told, notes=notes
    )


def importance(data: Data) -> ReportSection | None:
    """The power that each column is worth."""
    found = data["importance"]
    if found is None:
        return None
    text = (
        "How much power is lost when the values of a column are shuffled among the "
        f"rows, at an error of {percent(data['certificate']['alpha'])}. Point: mean of "
        f"{found['repeats']} shuffle{'s' * (found['repeats'] != 1)}; line: from the "
        f"smallest to the largest loss. Measured on {number(found['rows'])} rows that "
        f"the fit had not seen, where the power is {share(found['power'])} before "
        "shuffling."
    )
    what = "columns whose shuffling costs most power"
    return ReportSection(
        "importance",
        "Which columns matter",
        [text],
        chart=_intervals(found, "power lost", True, what),
        table=table(
            ("Column", str, found["names"]),
            ("Power lost", percent, found["values"]),
            ("from", percent, found["low"]),
            ("to", percent, found["high"]),
        ),
        notes=["If two columns carry the same information, each looks unimportant."],
        terms=("power",),
    )


def comparison(data: Data) -> ReportSection | None:
    """The methods that were compared, the best first."""
    found = data["comparison"]
    if found is None:
        return None
    every = sorted(found["candidates"], key=lambda c: -(c["power"] or -1.0))
    names = [c["name"] + " (chosen)" * (c["name"] == found["chosen"]) for c in every]
    told = table(
        ("Method", str, names),
        ("Power", share, [c["power"] for c in every]),
        ("Standard error", share, [c["standard_error"] for c in every]),
        ("Time", "{:.1f} s".format, [c["seconds"] for c in every]),
        ("Note", str, [c["note"] or "" for c in every]),
        texts=(4,),
    )
    text = _compared_words(found)
    return ReportSection(
        "comparison", "Methods compared", [text], table=told if every else None
    )


def _compared_words(found: Data) -> str:
    """How methods were compared, or why not."""
    if found.get("note"):
        return f"Methods were not compared: {found['note']}."
    sizes = number(found["controlled_rows"]), number(found["other_rows"])
    if found["alpha"] is None:
        measured = (
            "and offsets and thresholds chosen for the rows left out, under the "
            f"bounds. Power: the share of {', '.join(found['compared'])} that gets its "
            f"own class, the mean over these classes. Rows: {sizes[0]} of bounded "
            f"classes and {sizes[1]} of others"
        )
    else:
        measured = (
            "and its power measured on the rows left out, at an error of "
            f"{percent(found['alpha'])}. Rows: {sizes[0]} and {sizes[1]} of the two "
            "classes"
        )
    return (
        f"Each method was fitted on training rows alone, {found['folds']} times, "
        f"{measured}. Time: {found['seconds']:.0f} of {found['budget']:.0f} seconds. "
        "These powers choose a method; the power to expect is the one further up."
    )
