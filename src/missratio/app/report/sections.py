"""The sections of a report: each a function of the data that says what there is to say.

A section is a title, sentences, figures to see first, a list, a chart and a table; or
parts that are sections themselves. A whole report is one, too: page and text are loops
over the parts of `document(data)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from missratio.app.modelfile import GROUPS, SEVERAL_CLASSES
from missratio.app.report import charts
from missratio.app.report.charts import Chart, axis, layer, names_axis, points
from missratio.app.report.measure import SOURCES
from missratio.app.report.words import listed, measured, number, percent, share, span
from missratio.classifier import named, rows_of

Data = dict[str, Any]

MOST_BARS = 25
ALPHA_TICKS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3]


@dataclass(frozen=True)
class Table:
    """Cells as texts; folded away beside a chart."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: Sequence[int] = ()
    """The columns that hold sentences."""


def table(
    entries: Sequence[Any],
    *columns: tuple[str, str | Callable[[Any], Any], Callable[[Any], str]],
) -> Table:
    """A table of entries: of each column its name, what it shows, and how.

    What it shows is a key of the entries or a function of them. What is written by
    `str` is a text.
    """
    rows = [
        [write(get(row) if callable(get) else row[get]) for _, get, write in columns]
        for row in entries
    ]
    texts = [j for j, (_, _, write) in enumerate(columns) if write is str]
    return Table([name for name, _, _ in columns], rows, texts)


@dataclass(frozen=True)
class ReportSection:
    """What there is to say about one thing; what is empty is left out."""

    id: str
    title: str
    text: Sequence[str] = ()
    facts: Sequence[tuple[str, str, str, str]] = ()
    """Figures to see first: name, value, a note, and a word to explain or ""."""
    items: Sequence[tuple[str, str]] = ()
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
    chosen: int | None = None
    """The row of the table at which a slider through the rows begins."""


def document(data: Data) -> ReportSection:
    """A report: what was fitted to which rows, its sections, and where it is from."""
    model, origin = data["model"], data["origin"]
    classes = data["missingness"]["classes"]
    sizes = listed(f"{number(k['rows'])} of class {k['label']}" for k in classes)
    many = len(model["bounded"]) > 1
    where = f" in each group of {model['column']}" * (data["kind"] == GROUPS)
    about = (
        f"{model['estimator']} on {number(model['features'])} "
        f"feature{'s' * (model['features'] != 1)}. {number(model['rows'])} rows: "
        f"{sizes}. The error{'s' * many} of {listed(model['bounded'])} "
        f"{'are' if many else 'is'} bounded{where}."
    )
    end = {
        "Made": f"{origin['date']}, by missratio {model['version']}",
        "Method": origin.get("method"),
        "Seed": origin["seed"],
        "Command": origin.get("command"),
        "Table": origin.get("file"),
        "SHA-256": origin.get("sha256"),
    }
    # A section is left out where nothing was measured for it.
    sections = [
        (certificate, True),
        (cautions, True),
        (next_steps, data["next"]),
        (errors, True),
        (levels, data["curve"]),
        (sensitivity, any(entry["robustness"] for entry in data["errors"])),
        (missing, True),
        (importance, data["importance"]),
    ]
    return ReportSection(
        "report",
        data["title"],
        [about],
        items=[(name, str(text)) for name, text in end.items() if text is not None],
        parts=[section(data) for section, known in sections if known],
    )


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
        promise, (entry,) = data["certificate"], entries
        error, power = entry["error"], entry["found"]
        size = f"effective sample size {number(promise['effective_rows'])}"
        facts = [
            ("Bound α", percent(promise["alpha"]),
             f"with {percent(1.0 - promise['delta'])} confidence", "alpha"),
            ("Type I error", share(error["estimate"]),
             "on test rows" if error["source"] == "test" else "estimated", "alpha"),
            ("Power", share(power["estimate"]), span(power), "power"),
            ("Calibration rows", number(promise["rows"]), size, "calibration"),
        ]  # fmt: skip
        if parts := power.get("parts"):
            blank, whole = (share(part["estimate"]) for part in parts.values())
            note = f"{whole} of complete rows"
            facts.insert(3, ("Power with blanks", blank, note, "power"))
        if promise["looked_up"]:
            lost = f"{number(promise['not_found'])} not found, counted as errors"
            note = lost if promise["not_found"] else "all found"
            size = f"{number(promise['looked_up'])} rows"
            facts.append(("Looked up", size, note, ""))
        elif promise["certified"] and promise["observed"] < promise["rows"]:
            gamma = promise["sensitivity"]
            value = "> 1000" if gamma is None else number(gamma, 3)
            note = "factor by which odds may be wrong"
            facts.append(("Sensitivity Γ", value, note, "gamma"))
    rests = {"This was tested": said["checks"]}
    if certified:
        rests = {"This is assumed": said["assumptions"], **rests}
    return ReportSection(
        "certificate",
        said["headline"],
        [text for k in ("guarantee", "blanks", "meaning") if (text := said[k])],
        facts,
        parts=[
            ReportSection(f"rests-{k}", title, items=[("", text) for text in texts])
            for k, (title, texts) in enumerate(rests.items())
            if texts
        ],
        status="Certified" if certified else "Not certified",
        layout="columns",
    )


def errors(data: Data) -> ReportSection:
    """What each class or group is promised, and what becomes of it."""
    kind, entries = data["kind"], data["errors"]
    several = kind == SEVERAL_CLASSES
    whose, finds = ("a class", "Found") if several else ("the other class", "Power")
    split: Data = next((p for e in entries if (p := e["found"].get("parts"))), {})
    promised = table(
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
    )  # fmt: skip
    notes = [
        "Error: the share of rows that are classified as a class which they must not "
        f"be. {finds}: the share of {whose} that is recognised. Measured on "
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
        text = ["Each group has a threshold of its own, chosen on its own rows."]
    if several:
        called = table(
            data["confusion"],
            ("In truth", "label", str),
            *(
                (f"as {entry['label']}", lambda e, k=k: e["shares"][k], share)
                for k, entry in enumerate(data["confusion"])
            ),
        )
        parts = [ReportSection("confusion", "What classes are called", table=called)]
    return ReportSection(
        "errors", "Errors and power", text, table=promised, notes=notes, parts=parts
    )


def levels(data: Data) -> ReportSection:
    """The NP-ROC, and what is certified at a level that the reader chooses."""
    curve, chosen = data["curve"]["levels"], data["curve"]["own"]
    by_level = table(
        curve,
        ("α", "alpha", percent),
        ("Threshold", "threshold", number),
        ("Certified error", "error_bound", percent),
        ("Estimated error", "estimated_error", share),
        ("Power", "estimate", share),
        ("Interval", lambda level: level, span),
        ("Rule", "rule", str),
    )
    line = [{"i": i, "x": e["alpha"], "y": e["estimate"]} for i, e in enumerate(curve)
            if e["estimate"] is not None]  # fmt: skip
    stops = [{"i": row["i"], "x": row["x"]} for row in line]
    band = [{"x": e["alpha"], "y": e["low"], "y2": e["high"]} for e in curve]
    here = "datum.i == chosen"
    chart = charts.plane(
        [
            layer("area", band, "other", opacity=0.18),
            layer("line", line, "other", strokeWidth=2),
            layer("rule", stops, "ink", here, strokeWidth=1.5),
            layer("point", line, "ink", here, filled=False, fill=charts.css("page"),
                  size=90, strokeWidth=2),
            layer("point", line, "ink", opacity=0, size=160),
        ],
        axis("certified type I error α", share=True, log=True, grid=False,
             domain=[curve[0]["alpha"], curve[-1]["alpha"]], values=ALPHA_TICKS),
        axis("power", share=True, domain=[0, 1]),
        300,
        "NP-ROC: power against the certified error, with a "
        f"{percent(curve[chosen]['confidence'])} band at each level.",
        chosen,
    )  # fmt: skip
    text = (
        "Each level α has its own threshold, its own guarantee and its own power. If "
        "you use this page to choose α, you choose after seeing the calibration rows, "
        "and the guarantee is lost: calibrate again on fresh rows."
    )
    return ReportSection(
        "levels", "Choose another α", [text], chart=chart, table=by_level,
        chosen=chosen,
    )  # fmt: skip


def sensitivity(data: Data) -> ReportSection:
    """What becomes of the certificate if φ is wrong."""
    entries, title = data["errors"], "What if φ is wrong?"
    text = [
        f"{entry['name']}: {robust}" if len(entries) > 1 else robust
        for entry in entries
        if (robust := entry["robustness"])
    ]
    if not data["sensitivity"]:
        return ReportSection("sensitivity", title, text)
    odds, tilt = (data["sensitivity"][name] for name in ("odds", "controlled"))
    mine = f"missing values of the {rows_of(entries[0]['label'])} "
    tipping = [
        f"{number(abs(shift), 2)} standard deviations {where}"
        for shift, where in zip(tilt["tipping"], ("lower", "higher"), strict=True)
        if shift is not None
    ]
    text.append(
        f"It is lost where the {mine}lie {' or '.join(tipping)} than φ says."
        if tipping
        else f"It survives {mine}that lie lower or higher than φ says by up to "
        f"{number(max(map(abs, tilt['amount'])), 2)} of their standard deviations."
    )
    by_odds = table(
        points(**{name: odds[name] for name in ("amount", "error")}),
        ("If odds are wrong by", "amount", lambda x: f"Γ = {number(x)}"),
        ("Error that the threshold still guarantees", "error", percent),
    )
    return ReportSection("sensitivity", title, text, table=by_odds)


def missing(data: Data) -> ReportSection:
    """What is missing of each column, and φ along it."""
    title = "What is missing"
    classes, features = (data["missingness"][name] for name in ("classes", "features"))
    lossy = [feature for feature in features if any(feature["missing"])]
    if not lossy:
        return ReportSection("missing", title, ["No value is missing."])
    items: list[tuple[str, str]] = []
    for entry in classes:
        text = (
            f"{number(entry['complete'])} of {number(entry['rows'])} rows are "
            f"complete. {_model_words(entry, data['model']['deployment'])}"
        )
        items.append((f"Class {entry['label']}", text.strip()))
        failed = [check["sentence"] for check in entry["checks"] if check["failed"]]
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
    more = data["missingness"]["left_out"]
    return ReportSection(
        "missing",
        title,
        items=items,
        table=table(lossy, ("Column", "name", str), *columns),
        notes=[f"{number(more)} more columns have fewer."] * bool(more),
        parts=_profiles(data),
    )


def _model_words(entry: Data, deployment: str) -> str:
    """Why values of a class are missing, as far as it was said."""
    if entry["kind"] == "none":
        fine = entry["complete"] == entry["rows"] or deployment == "as-observed"
        return "" if fine else "Why values are missing was not modelled."
    if entry["kind"] == "looked-up":
        lost = entry["drawn"] - entry["found"]
        rest = f"{number(lost)} of them were not found" if lost else "all were found"
        return (
            f"{number(entry['drawn'])} of its incomplete rows were looked up, and "
            f"{rest}. No φ is assumed."
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
    """φ and its band against the values of a feature."""
    parts = []
    for k, profile in enumerate(data["missingness"]["profiles"]):
        label, values = profile["label"], profile["at"]
        colour = "controlled" if label in data["model"]["bounded"] else "other"
        ends = {"low": profile["low"], "high": profile["high"]}
        line = points(x=values, y=profile["phi"], **ends)
        band = points(x=values, y=ends["low"], y2=ends["high"])
        chart = charts.plane(
            [
                layer("area", band, colour, opacity=0.2),
                layer("line", line, colour, strokeWidth=2),
                layer("point", line, colour, opacity=0, size=120),
            ],
            axis(None, domain=[values[0], values[-1]], grid=False),
            axis("missing", share=True, domain=[0, 1], values=[0, 0.25, 0.5, 0.75, 1]),
            200,
            f"Class {label}",
        )
        by_value = table(
            line,
            ("Value", "x", number),
            ("φ", "y", share),
            ("Band", lambda row: row, span),
        )
        parts.append(
            ReportSection(f"profile-{k}", profile["name"], chart=chart, table=by_value)
        )
    text = "φ, the probability that a value is missing, given the value, and its band."
    whole = [ReportSection("by-value", "By value", [text], parts=parts, layout="many")]
    return whole if parts else []


def importance(data: Data) -> ReportSection:
    """The power that each column is worth, and which way it points."""
    lost, other = data["importance"], named(data["missingness"]["classes"][1]["label"])
    keys = {"y": "names", "x": "values", "low": "low", "high": "high",
            "r": "correlation"}  # fmt: skip
    rows = zip(*(lost[key] for key in keys.values()), strict=True)
    columns = [dict(zip(keys, row, strict=True)) for row in rows]
    drawn = columns[:MOST_BARS]
    spans = [{"y": e["y"], "x": e["low"], "x2": e["high"]} for e in drawn]
    chart = charts.plane(
        [
            layer("rule", [{"x": 0.0}], "muted"),
            layer("rule", spans, "other", strokeWidth=2),
            layer("point", drawn, "other", size=70),
        ],
        axis("power lost", share=True),
        names_axis([entry["y"] for entry in drawn]),
        60 + 28 * len(drawn),
    )
    by_column = table(
        columns,
        ("Column", "y", str),
        ("Power lost", "x", share),
        ("Shuffles", lambda entry: entry, span),
        ("Correlation with the score", "r", lambda r: number(r, 2)),
    )
    text = (
        "How much power is lost when the values of a column are shuffled among the "
        f"rows, at an error of {percent(data['certificate']['alpha'])}. Point: mean of "
        f"{lost['repeats']} shuffle{'s' * (lost['repeats'] != 1)}; line: from the "
        f"smallest to the largest loss. Measured on {number(lost['rows'])} rows that "
        "the fit had not seen."
    )
    notes = [
        "If two columns carry the same information, each looks unimportant. A positive "
        f"correlation with the score means that higher values speak for {other}."
    ]
    if lost["left_out"]:
        notes.append(
            f"{number(lost['left_out'])} more columns, which hardly go along with the "
            "score, were not shuffled."
        )
    return ReportSection(
        "importance", "Which columns matter", [text], chart=chart, table=by_column,
        notes=notes,
    )  # fmt: skip
