"""The sections of a report: each a function of the data that says what there is to say.

A section is a title, sentences, figures to see first, a list, a chart and a table; or
parts that are sections themselves. Pages and text are loops over `sections(data)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from missratio.app.modelfile import GROUPS, SEVERAL_CLASSES
from missratio.app.report import charts
from missratio.app.report.charts import Chart, Series, axis, layer, points
from missratio.app.report.measure import SOURCES
from missratio.app.report.words import (
    listed,
    measured,
    number,
    percent,
    share,
    span,
)
from missratio.classifier import named, rows_of

Data = dict[str, Any]
Pairs = Sequence[tuple[str, str]]

MOST_BARS = 25
ALPHA_TICKS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3]


@dataclass(frozen=True)
class Table:
    """Cells as texts; folded away beside a chart unless it is `shown`."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    shown: bool = False
    texts: Sequence[int] = ()
    """The columns that hold sentences."""


def table(
    entries: Sequence[Any],
    *columns: tuple[str, str | Callable[[Any], Any], Callable[[Any], str]],
    shown: bool = False,
) -> Table:
    """A table of entries: of each column its name, what it shows, and how.

    What it shows is a key of the entries or a function of them. What is written by
    `str` is a text.
    """
    rows = [
        [write(get(e) if callable(get) else e[get]) for _, get, write in columns]
        for e in entries
    ]
    texts = [j for j, (_, _, write) in enumerate(columns) if write is str]
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
    commands: Sequence[str] = ()
    """What does each of them, to be pasted into a shell; "" where nothing does."""
    chart: Chart | None = None
    table: Table | None = None
    notes: Sequence[str] = ()
    parts: Sequence[ReportSection] = ()
    layout: str = ""
    """How the page arranges it, by a class of its style."""
    status: str = ""
    levels: Sequence[Data] = ()
    own: int = 0
    """The levels that a slider goes through, and where it begins."""


def sections(data: Data) -> list[ReportSection]:
    """Every section of a report that has something to say, in the page's order."""

    def known(name: str, section: Callable[[Data], ReportSection]) -> Any:
        return [section(data)] if data[name] else []

    return [
        certificate(data),
        cautions(data),
        *known("next", next_steps),
        errors(data),
        *known("curve", levels),
        *known("sensitivity", sensitivity),
        missing(data),
        *known("importance", importance),
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
    every = {
        "Made": f"{found['date']}, by missratio {data['model']['version']}",
        "Method": found["method"],
        "Seed": found["seed"],
        "Command": found["command"],
        "Table": found["sha256"] and f"{found['file']}, SHA-256 {found['sha256']}",
        "Read": found["reading"],
    }
    return [(name, str(text)) for name, text in every.items() if text is not None]


def _colour(label: Any, data: Data) -> str:
    return "controlled" if label in data["model"]["bounded"] else "other"


def cautions(data: Data) -> ReportSection:
    """What a reader should know before relying on the numbers."""
    items = [(entry["title"], entry["text"]) for entry in data["cautions"]]
    text = ["Nothing more than what is assumed above."] * (not items)
    title = "Before you rely on it"
    return ReportSection("cautions", title, text, items=items, layout="cautions")


def next_steps(data: Data) -> ReportSection:
    """What to do, with commands."""
    steps = data["next"]
    return ReportSection(
        "next", "What to do next", items=[(e["title"], e["text"]) for e in steps],
        commands=[e["command"] for e in steps], layout="next",
    )  # fmt: skip


def certificate(data: Data) -> ReportSection:
    """What is guaranteed, and what it rests on."""
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
        if parts := power.get("parts"):
            blank, whole = (share(each["estimate"]) for each in parts.values())
            note = f"{whole} of complete rows"
            facts.insert(3, ("Power with blanks", blank, note, "power"))
        if found["looked_up"]:
            lost = f"{number(found['not_found'])} not found, counted as errors"
            note = lost if found["not_found"] else "all found"
            facts.append(("Looked up", f"{number(found['looked_up'])} rows", note, ""))
        elif found["certified"] and found["observed"] < found["rows"]:
            gamma = found["sensitivity"]
            value = "> 1000" if gamma is None else number(gamma, 3)
            note = "factor by which odds may be wrong"
            facts.append(("Sensitivity Γ", value, note, "gamma"))
    # Where there is more to say of it, it has a section of its own.
    robust = [] if data["sensitivity"] else entries
    named_all = len(entries) > 1
    parts = [
        ("assumed", "This is assumed", [("", x) for x in said["assumptions"]]),
        ("tested", "This was tested", [("", text) for text in said["checks"]]),
        (
            "robust",
            "How wrong may φ be?",
            [(e["name"] * named_all, x) for e in robust if (x := e["robustness"])],
        ),
    ]
    return ReportSection(
        "certificate",
        said["headline"],
        [text for k in ("guarantee", "blanks", "meaning") if (text := said[k])],
        facts,
        parts=[
            ReportSection(id, title, items=items)
            for id, title, items in parts[not certified :]
            if items
        ],
        status="Certified" if certified else "Not certified",
        layout="columns",
    )


def errors(data: Data) -> ReportSection:
    """What each class or group is promised, and what becomes of it."""
    kind, entries = data["kind"], data["errors"]
    several = kind == SEVERAL_CLASSES
    one, finds = ("a class", "Found") if several else ("the other class", "Power")
    drawn = {"error": ("error", "controlled"), finds.lower(): ("found", "other")}
    chart = charts.by_name(
        [e["name"] for e in entries],
        {
            name: Series(
                colour,
                [e[k]["estimate"] for e in entries],
                [(e[k]["low"], e[k]["high"]) for e in entries],
                [e["level"] for e in entries] if k == "error" else (),
            )
            for name, (k, colour) in drawn.items()
        },
        axis("share of rows", share=True, domain=[0, 1]),
        caption="Upright strokes: the error that was promised at most.",
    )
    split: Data = next((p for e in entries if (p := e["found"].get("parts"))), {})
    told = table(
        entries,
        ("Group" if kind == GROUPS else "Class", "name", str),
        ("Promised at most", "level", percent),
        ("Certified at most", "bound", percent),
        ("Error", "error", measured),
        (finds, "found", measured),
        *(
            (f"{finds}: {name}", lambda e, k=name: (e["found"]["parts"] or {}).get(k),
             measured)
            for name in split
        ),
        shown=True,
    )  # fmt: skip
    notes = [
        "Error: the share of rows that are classified as a class which they must not "
        f"be. {finds}: the share of {one} that is recognised. Measured on "
        f"{SOURCES[data['measured']]}; in brackets: "
        f"{entries[0]['found']['method']}."
    ]
    if entries[0]["error"].get("source") == "calibration":
        notes.append(
            "The error is estimated on calibration rows, which took no part in "
            "fitting; its interval is the certificate's bound, with "
            f"{percent(entries[0]['error']['confidence'])} confidence."
        )
    text, parts = [], []
    if kind == GROUPS:
        text = [
            "One threshold serves all rows: it is the strictest that any promise needs."
            if data["model"]["shared"]
            else "Each group has a threshold of its own, chosen on its own rows."
        ]
    if several:
        called = table(
            data["confusion"],
            ("In truth", "label", str),
            *(
                (f"as {entry['label']}", lambda e, k=k: e["shares"][k], share)
                for k, entry in enumerate(data["confusion"])
            ),
        )
        title = "What classes are called"
        parts.append(ReportSection("confusion", title, table=called))
    title = "Errors and power"
    return ReportSection(
        "errors", title, text, chart=chart, table=told, notes=notes, parts=parts
    )


def levels(data: Data) -> ReportSection:
    """The NP-ROC, and what is certified at a level that the reader chooses."""
    curve, own = data["curve"]["levels"], data["curve"]["own"]
    told = table(
        curve,
        ("α", "alpha", percent),
        ("Threshold", "threshold", number),
        ("Certified error", "error_bound", percent),
        ("Estimated error", "estimated_error", share),
        ("Power", "estimate", share),
        ("Interval", lambda level: level, span),
        ("Rule", "rule", str),
    )
    names = ("alpha", "threshold", "bound", "estimate", "power", "interval", "rule")
    line = [{"i": i, "x": e["alpha"], "y": e["estimate"]} for i, e in enumerate(curve)
            if e["estimate"] is not None]  # fmt: skip
    at = [{"i": row["i"], "x": row["x"]} for row in line]
    band = [{"x": e["alpha"], "y": e["low"], "y2": e["high"]} for e in curve]
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
        axis("certified type I error α", share=True, log=True, grid=False,
             domain=[curve[0]["alpha"], curve[-1]["alpha"]], values=ALPHA_TICKS),
        axis("power", share=True, domain=[0, 1]),
        300,
        "NP-ROC: power against the certified error, with a "
        f"{percent(curve[own]['confidence'])} band at each level.",
        chosen=own,
    )  # fmt: skip
    text = (
        "Each level α has its own threshold, its own guarantee and its own power. If "
        "you use this page to choose α, you choose after seeing the calibration rows, "
        "and the guarantee is lost: calibrate again on fresh rows."
    )
    return ReportSection(
        "levels", "Choose another α", [text], chart=chart, table=told, own=own,
        levels=[dict(zip(names, row, strict=True)) for row in told.rows],
    )  # fmt: skip


def sensitivity(data: Data) -> ReportSection:
    """What becomes of the certificate if φ is wrong."""
    found = data["sensitivity"]
    told = table(
        points(**{name: found["odds"][name] for name in ("amount", "error", "power")}),
        ("If odds of being missing are wrong by a factor of up to", "amount", number),
        ("Error that the threshold still guarantees", "error", percent),
        ("Power of a threshold that still guarantees α", "power", share),
    )
    tilt = found["controlled"]
    mine = f"missing values of the {rows_of(data['model']['classes'][0]['label'])} "
    tipping = [
        f"{number(abs(at), 2)} standard deviations {where}"
        for at, where in zip(tilt["tipping"], ("lower", "higher"), strict=True)
        if at is not None
    ]
    text = f"It is lost where the {mine}lie {' or '.join(tipping)} than φ says."
    if not tipping:
        text = (
            f"It survives {mine}that lie lower or higher than φ says by up to "
            f"{number(max(map(abs, tilt['amount'])), 2)} of their standard deviations."
        )
    return ReportSection(
        "sensitivity", "What if φ is wrong?",
        [*filter(None, [data["errors"][0]["robustness"]]), text],
        table=told
    )  # fmt: skip


def missing(data: Data) -> ReportSection:
    """What is missing of each column, and φ along it."""
    found, title = data["missingness"], "What is missing"
    if not any(any(feature["missing"]) for feature in found["features"]):
        return ReportSection("missing", title, ["No value is missing."])
    classes, features = found["classes"], found["features"]
    items: list[tuple[str, str]] = []
    for entry in classes:
        text = (
            f"{number(entry['complete'])} of {number(entry['rows'])} rows are "
            f"complete. {_model_words(entry, data['model']['deployment'])}"
        )
        items.append((f"Class {entry['label']}", text.strip()))
        failed = [each["sentence"] for each in entry["checks"] if each["failed"]]
        items += [("Check failed", text) for text in failed]
        if passed := len(entry["checks"]) - len(failed):
            items.append(("", f"{number(passed)} checks of φ passed."))
    looked_up = any(any(feature["looked_up"]) for feature in features)
    kinds = [("Missing, {}", "missing", number), ("Share, {}", "share", share)]
    kinds += [("Looked up, {}", "looked_up", number)] * looked_up
    columns = [
        (name.format(f"class {e['label']}"), lambda f, p=p, k=k: f[p][k], write)
        for k, e in enumerate(classes)
        for name, p, write in kinds
    ]
    lossy = [feature for feature in features if any(feature["missing"])]
    left = found["left_out"] + len(features) - len(lossy)
    few = f"The other {number(left)} columns have fewer." if found["left_out"] else ""
    return ReportSection(
        "missing",
        title,
        items=items,
        table=table(lossy, ("Column", "name", str), *columns),
        notes=[few or "The other columns have no blanks."] if left else [],
        parts=_profiles(data),
    )


def _model_words(entry: Data, deployment: str) -> str:
    """Why values of a class are missing, as far as it was said."""
    if entry["kind"] == "none":
        fine = entry["complete"] == entry["rows"] or deployment == "as-observed"
        return "" if fine else "Why values are missing was not modelled."
    if entry["kind"] == "looked-up":
        lost = entry["drawn"] - entry["found"]
        found = f"{number(lost)} of them were not found" if lost else "all were found"
        return (
            f"{number(entry['drawn'])} of its incomplete rows were looked up, and "
            f"{found}. No φ is assumed."
        )
    what = "whole rows" if entry["whole_rows"] else "single values"
    how = "is taken as known"
    if entry["kind"] == "learned":
        how = (
            "is not known exactly; its band holds everywhere at once with "
            f"{percent(entry['band_confidence'])} confidence"
        )
    return (
        f"φ, of {what}, {how}. A complete row stands for 1/(1 − φ) rows, "
        f"{number(entry['largest'])} at most, so that these are worth "
        f"{number(entry['effective_rows'])} rows that count the same (Kish's effective "
        "sample size)."
    )


def _profiles(data: Data) -> list[ReportSection]:
    """φ and its band against a feature, before the feature's values."""
    parts = []
    for k, profile in enumerate(data["missingness"]["profiles"]):
        at, colour = profile["at"], _colour(profile["label"], data)
        line = points(x=at, y=profile["phi"])
        band = points(x=at, y=profile["low"], y2=profile["high"])
        chart = charts.plane(
            [
                layer("area", band, colour, opacity=0.2),
                layer("line", line, colour, strokeWidth=2),
                layer("point", line, colour, opacity=0, size=120),
            ],
            axis(None, domain=[at[0], at[-1]], grid=False),
            axis("missing", share=True, domain=[0, 1], values=[0, 0.25, 0.5, 0.75, 1]),
            200,
            key=[(colour, f"class {profile['label']}")],
        )
        told = table(
            points(x=at, y=profile["phi"], low=profile["low"], high=profile["high"]),
            ("Value", "x", number),
            ("φ", "y", share),
            ("Band", lambda row: row, span),
        )
        parts.append(
            ReportSection(f"profile-{k}", profile["name"], chart=chart, table=told)
        )
    text = "φ, the probability that a value is missing, given the value, and its band."
    whole = [ReportSection("by-value", "By value", [text], parts=parts, layout="many")]
    return whole if parts else []


def importance(data: Data) -> ReportSection:
    """The power that each column is worth, and which way it points."""
    found, other = data["importance"], named(data["model"]["classes"][1]["label"])
    names, values = found["names"], found["values"]
    ends = list(zip(found["low"], found["high"], strict=True))
    chart = charts.by_name(
        names[:MOST_BARS], {"": Series("other", values[:MOST_BARS], ends[:MOST_BARS])},
        axis("power lost", share=True), zero=True,
    )  # fmt: skip
    told = table(
        list(zip(names, values, ends, found["correlation"], strict=True)),
        ("Column", lambda row: row[0], str),
        ("Power lost", lambda row: row[1], share),
        ("Shuffles", lambda row: dict(zip(("low", "high"), row[2], strict=True)), span),
        ("Correlation with the score", lambda row: row[3], lambda x: number(x, 2)),
    )
    text = (
        "How much power is lost when the values of a column are shuffled among the "
        f"rows, at an error of {percent(data['certificate']['alpha'])}. Point: mean of "
        f"{found['repeats']} shuffle{'s' * (found['repeats'] != 1)}; line: from the "
        f"smallest to the largest loss. Measured on {number(found['rows'])} rows that "
        f"the fit had not seen, where the power is {share(found['power'])} before "
        "shuffling."
    )
    notes = [
        "If two columns carry the same information, each looks unimportant. A positive "
        f"correlation with the score means that higher values speak for {other}."
    ]
    if found["left_out"]:
        notes.append(
            f"{number(found['left_out'])} more columns, which hardly go along with the "
            "score, were not shuffled."
        )
    return ReportSection(
        "importance", "Which columns matter", [text], chart=chart, table=told,
        notes=notes,
    )  # fmt: skip
