"""One look at a table before anything else: how it reads, and what could be promised.

What was found is a list of findings. Those that can be settled without a person become
settings, which `missratio.toml` holds for the other commands; the others are questions.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from missratio._base.hints import listed
from missratio._files import TableFile, open_table
from missratio._files.cells import DATE, Cells, NotNumbersError, parse_number
from missratio.app.options import SETTINGS, CheckOptions, FitOptions, Listener
from missratio.app.report import pages
from missratio.app.report.sections import ReportSection, Table
from missratio.app.tables import labelled
from missratio.app.tables.columns import MOST_LEVELS
from missratio.app.workflow.account import Way, ways_of
from missratio.classifier import NeymanPearsonClassifier
from missratio.exceptions import TableError

# Lines in which a header is looked for where the first isn't one.
_LINES = 12
_LIMIT = re.compile(r"(<=?|>=?|≤|≥|<|>)\s*[\d.,]+")
_KEY = re.compile(r"(.*[\W_])?(id|nr|no|key|code|number)", re.IGNORECASE)
_TARGET = re.compile(
    r"target|class|label|outcome|state|status|diagnosis|result|y", re.IGNORECASE
)
# A column of so many labels at most may be the target.
_MOST_LABELS = 6
# A spelling may be a slip of one that is so many times as frequent.
_SLIP = 10
# Rows on which the power of rows as observed is tried.
_TRIED = 4_000
_SHOWN = 5


@dataclass(frozen=True)
class Finding:
    """What a look at a table found.

    Parameters
    ----------
    column : str
        Or "" for the file.
    sentence : str
    setting : str
        What it changes in how the table is read, such as ``drop``; or "".
    value : str
    settled : bool
        Whether it is done; otherwise a person has to decide.
    """

    column: str
    sentence: str
    setting: str = ""
    value: str = ""
    settled: bool = True


@dataclass(frozen=True, eq=False)
class CheckedTable:
    """How a table reads.

    Parameters
    ----------
    file : dict
        Name, rows, columns, and how the file is read.
    columns : list of dict
        Name, kind, example values, number of blanks of each column.
    findings : list of Finding
    questions : list of str
        What only a person can say.
    blanks : dict
        Blanks by column and class, complete rows, and the commonest patterns.
    observed : dict or None
        The power of rows as they are observed.
    ways : list of Way
        To a promise about complete rows.
    settings : dict
        What `missratio.toml` is to say.
    kept : bool
        Whether there is one, which stays as it is.
    """

    file: dict[str, Any]
    columns: list[dict[str, Any]]
    findings: list[Finding]
    questions: list[str]
    blanks: dict[str, Any]
    observed: dict[str, Any] | None
    ways: list[Way]
    settings: dict[str, Any]
    kept: bool = False

    def toml(self) -> str:
        """The settings, with the reasons, and what is left to decide as comments."""
        lines = [
            "# How to read the table, and what was decided, by `missratio check`.",
            "# `check`, `query` and `fit` read it in the folder in which they run, and",
            "# an option on the command line wins. Change what isn't as you mean it.",
        ]
        for name, value in self.settings.items():
            lines += [
                f"# {finding.sentence}"
                for finding in self.findings
                if finding.setting == name and finding.settled
            ]
            lines.append(f"{name} = {_toml(value)}")
        lines += [f"# {question}" for question in self.questions]
        for finding in self.findings:
            if finding.setting and not finding.settled:
                lines.append(f"# {finding.sentence}")
                lines.append(f"# {finding.setting} = {_toml([finding.value])}")
        return "\n".join(lines) + "\n"

    def sections(self) -> list[ReportSection]:
        """The same for a page."""
        settled = [each for each in self.findings if each.settled]
        open_ones = [each for each in self.findings if not each.settled]
        undecided = [*self.questions, *(each.sentence for each in open_ones)]
        rows = [
            [e["name"], e["kind"], str(e["blanks"]), ", ".join(map(str, e["examples"]))]
            for e in self.columns
        ]
        parts = [
            ReportSection(
                "decide", "To decide", items=[("", each) for each in undecided]
            ),
            ReportSection(
                "done", "What was done", items=[("", each.sentence) for each in settled]
            ),
            ReportSection(
                "columns",
                "Columns",
                table=Table(
                    ["Column", "Holds", "Blanks", "Such as"], rows, texts=[1, 3]
                ),
            ),
        ]
        if self.blanks:
            rows_of, lost = self.blanks["rows"], self.blanks["columns"]
            labels = list(rows_of)
            names = sorted(
                {name for counts in lost.values() for name in counts},
                key=lambda name: -sum(counts.get(name, 0) for counts in lost.values()),
            )
            cells = [
                [
                    name,
                    *(_share(lost[k].get(name, 0), rows_of[k]) for k in labels),
                ]
                for name in names
            ]
            complete = [
                f"{self.blanks['complete'][k]} of {rows_of[k]} {k!r} rows are complete."
                for k in labels
            ]
            patterns = [
                f"{each['rows']} rows miss {listed(each['columns'], _SHOWN)}."
                for each in self.blanks["patterns"]
            ]
            parts.append(
                ReportSection(
                    "blanks",
                    "Blanks by class",
                    text=complete,
                    table=Table(["Column", *labels], cells) if cells else None,
                    notes=patterns,
                )
            )
        promises = [("If new rows have blanks like these", self.observed_words())]
        for way in self.ways:
            commands = f" {way.between} ".join(way.commands)
            promises.append((way.what, f"{way.promise}. {commands}"))
        if self.observed is not None:
            parts.append(
                ReportSection("ways", "What could be promised", items=promises)
            )
        return parts

    def page(self, suffix: str) -> str:
        """A page, or the same as Markdown."""
        title = f"A look at {self.file['name']}"
        meta = f"{self.file['rows']} rows, {self.file['columns']} columns"
        if suffix == ".md":
            return pages.text(title, meta, self.sections(), [])
        return pages.page(title, meta, self.sections(), [], asdict(self))

    def observed_words(self) -> str:
        """What could be promised for rows as they are observed."""
        if self.observed is None:
            return ""
        if (power := self.observed["power"]) is None:
            return f"nothing can be certified yet. {self.observed['why']}"
        others, why = self.observed["other"], self.observed["why"]
        return (
            f"finds about {power:.0%} of {others} ({why}). "
            "Then: missratio fit --new-rows blanks --out model.skops"
        )

    def lines(self) -> list[str]:
        """What there is to say, in lines."""
        file, blanks = self.file, self.blanks
        said = [f"{file['name']}: {file['rows']} rows, {file['columns']} columns."]
        said += [f"- {finding.sentence}" for finding in self.findings]
        if blanks:
            for label, rows in blanks["rows"].items():
                lost = sorted(blanks["columns"][label].items(), key=lambda e: -e[1])
                most = ", ".join(f"{name!r} {n / rows:.0%}" for name, n in lost[:3])
                said.append(
                    f"{label!r}: {rows} rows, {blanks['complete'][label]} of them "
                    "complete" + (f"; blanks in {most}." if most else ".")
                )
        if self.observed is not None:
            said.append(f"If new rows have blanks like these: {self.observed_words()}")
        if self.ways:
            said += ["If new rows will be complete:", *map(str, self.ways)]
        said += [f"To decide: {question}" for question in self.questions]
        said.append(
            f"{SETTINGS} is there already, and stays as it is (--force to write it "
            "anew)."
            if self.kept
            else f"Written: {SETTINGS}, which check, query and fit read."
        )
        return said


def _share(count: int, total: int) -> str:
    return f"{count} ({count / total:.0%})" if count else "none"


def _toml(value: Any) -> str:
    # JSON's texts, numbers and lists are TOML's, too.
    return json.dumps(value, ensure_ascii=False)


def check_table(
    options: CheckOptions, progress: Listener, *, kept: bool = False
) -> CheckedTable:
    """Look at a table: how it reads, what is odd about it, and what could be promised.

    Parameters
    ----------
    options : CheckOptions
        What is known already; the rest is found out.
    progress : Listener
    kept : bool
        Whether `missratio.toml` is there and stays as it is.
    """
    progress.step(f"Reading {options.data}")
    source, findings = _open(options)
    table = source.read(source.names)
    cells = Cells(
        tuple(options.missing_value), source.marks, tuple(options.merged.items())
    )
    columns = []
    seen: dict[Any, str] = {}
    for name in source.names:
        if name in options.drop:
            continue
        entry, mine = _column(
            name, table.column(name).combine_chunks(), cells, options, seen
        )
        columns.append(entry)
        findings += mine
    if codes := [each for each in findings if each.setting == "missing_value"]:
        findings = _where_no_number(findings, codes, columns)
    questions, settings = _settings(options, source, columns, findings)
    blanks, observed, ways = _promises(settings, options, progress, findings, kept)
    file: dict[str, Any] = {
        "name": source.path.name,
        "rows": len(table),
        "columns": len(source.names),
        **{
            k: settings[k] for k in ("encoding", "sheet", "header_row") if k in settings
        },
        "decimal_marks": list(source.marks),
    }
    if any(blanks and blanks["columns"].values()) and "new_rows" not in settings:
        questions.append(
            "Will new rows have blanks like these, or will they be complete? "
            '(new_rows = "blanks" or "complete")'
        )
    for entry in columns:
        entry.pop("spellings")
    return CheckedTable(
        file, columns, findings, questions, blanks, observed, ways, settings, kept
    )


def _open(options: CheckOptions) -> tuple[TableFile, list[Finding]]:
    """The file, with its header where that is, and in its encoding."""
    how, found = options.how, []
    source = open_table(options.data, **how, fallback="cp1252")
    encoding = getattr(source, "encoding", "utf-8")
    if how["encoding"] is None and encoding == "cp1252":
        found.append(
            Finding(
                "",
                "The file isn't UTF-8; it is read as Windows wrote it (cp1252).",
                "encoding",
                encoding,
            )
        )
    named = len({name for name in source.names if name})
    if how["header_row"] is None and (named < 2 or named < len(source.names)):
        for line in range(1, _LINES + 1):
            with suppress(TableError):
                other = open_table(
                    options.data, **how | {"header_row": line}, fallback="cp1252"
                )
                names = {name for name in other.names if name}
                if len(names) > max(named, 1) and len(names) == len(other.names):
                    found.append(
                        Finding(
                            "",
                            f"The column names are in line {line}; what stands above "
                            "is left out.",
                            "header_row",
                            str(line),
                        )
                    )
                    source = other
                    break
    source.check_header()
    sheet = getattr(source, "sheet", "")
    for note in source.notes:
        taken = ("sheet", sheet) if "--sheet" in note else ()
        found.append(Finding("", note, *taken))
    return source, found


def _column(
    name: str, column: Any, cells: Cells, options: CheckOptions, seen: dict[Any, str]
) -> tuple[dict[str, Any], list[Finding]]:
    """What a column holds, and what is odd about it."""
    entry: dict[str, Any] = {"name": name, "kind": "numbers", "spellings": Counter()}
    kind = str(column.type)
    if kind.startswith(("date", "timestamp", "time")):
        entry |= {"kind": "dates", "blanks": column.null_count, "examples": []}
        return entry, [_date(name)]
    texts = cells.texts(column)
    spellings: Counter[str] = Counter(
        {
            each["values"]: each["counts"]
            for each in texts.drop_null().value_counts().to_pylist()
        }
    )
    n_known = sum(spellings.values())
    common = [text for text, _ in spellings.most_common(3)]
    entry |= {
        "spellings": spellings,
        "blanks": len(column) - n_known,
        "examples": common,
    }

    def drop(reason: str, kind: str) -> tuple[dict[str, Any], list[Finding]]:
        entry["kind"] = kind
        said = f"Column {name!r} {reason}: it is left out."
        needed = name in (options.target, *options.categorical)
        return entry, [] if needed else [Finding(name, said, "drop", name)]

    if not spellings:
        return drop("has no value in any row", "nothing")
    if len(spellings) == 1 and n_known == len(column):
        return drop(f"is {common[0]!r} in every row", "one value")
    key = hash(tuple(texts.to_pylist()))
    if (twin := seen.setdefault(key, name)) != name:
        return drop(f"repeats {twin!r}", "repeated")
    unit = "%" * all(text.endswith("%") for text in spellings)
    numbers = {t for t in spellings if _is_number(t.removesuffix(unit), cells)}
    others = Counter({t: n for t, n in spellings.items() if t not in numbers})
    share = 1.0 - sum(others.values()) / n_known
    if not others and name not in options.categorical:
        whole = all(re.fullmatch(r"[+-]?\d+", text) for text in numbers)
        if (
            len(spellings) == n_known > MOST_LEVELS
            and whole
            and (_KEY.fullmatch(name) or _consecutive(numbers))
        ):
            return drop(
                "has a different whole number in every row, as keys have", "key"
            )
        try:
            values = cells.numbers(column)[:, None]
        except NotNumbersError:
            return drop("has whole numbers too long to be exact, as keys have", "key")
        return entry, [
            Finding(
                name,
                f"Column {name!r} is {value} in {note.facts['count']} rows, far from "
                "all its other values: that counts as missing.",
                "missing_value",
                value,
            )
            for note in labelled.sentinels(values, [name])
            for value in [f"{note.facts['value']:g}"]
        ]
    if share > 0.5 and name not in options.categorical:
        return entry, list(_no_numbers(name, others))
    if all(DATE.fullmatch(text) for text in spellings):
        entry["kind"] = "dates"
        return entry, [_date(name)]
    entry["kind"] = f"{len(spellings)} categories"
    if len(spellings) > MOST_LEVELS:
        unique = (
            "a different text in every row"
            if len(spellings) == n_known
            else (f"{len(spellings)} different texts")
        )
        return drop(f"has {unique}, as names and notes have", "texts")
    return entry, list(_spellings(name, spellings))


def _date(name: str) -> Finding:
    return Finding(
        name,
        f"Column {name!r} holds dates, which say little about new rows: it is left "
        "out. Make an age or a duration of it, if that matters.",
        "drop",
        name,
    )


def _is_number(text: str, cells: Cells) -> bool:
    try:
        parse_number(text, frozenset(cells.marks), finite=False)
    except ValueError:
        return False
    return True


def _consecutive(numbers: set[str]) -> bool:
    values = sorted(map(int, numbers))
    return values[-1] - values[0] == len(values) - 1


def _no_numbers(name: str, others: Mapping[str, int]) -> Iterator[Finding]:
    """Texts among numbers: limits of detection, codes for nothing, and slips."""
    limits = [text for text in others if _LIMIT.fullmatch(text)]
    for text in limits:
        yield Finding(
            name,
            f"Column {name!r} says {text!r} in {others[text]} cells, a limit of "
            "detection: they count as missing because of their value. Write a number "
            "in their place if you know a better one.",
            "missing_value",
            text,
        )
    codes = [text for text in others if text not in limits]
    for text in codes[:_SHOWN]:
        frequent = others[text] > 1 or not any(c.isalnum() for c in text)
        yield Finding(
            name,
            f"Column {name!r} holds numbers, and {text!r} in {others[text]} cells: "
            + (
                "it counts as missing." if frequent else "correct it, or is it missing?"
            ),
            "missing_value",
            text,
            settled=frequent,
        )
    if len(codes) > _SHOWN:
        yield Finding(
            name,
            f"Column {name!r} holds {len(codes)} different texts among its numbers: "
            "correct them.",
        )


def _spellings(name: str, spellings: Counter[str]) -> Iterator[Finding]:
    """Texts that seem to be the same, spelled in two ways."""
    alike: dict[str, list[str]] = {}
    for text, _ in spellings.most_common():
        alike.setdefault(" ".join(re.findall(r"\w+", text.casefold())), []).append(text)
    for same, *variants in alike.values():
        for text in variants:
            yield Finding(
                name,
                f"Column {name!r} says {same!r} ({spellings[same]} cells) and {text!r} "
                f"({spellings[text]}): they are taken for the same.",
                "merge",
                f"{text}={same}",
            )
    kept = [same for same, *_ in alike.values()]
    for text in kept:
        common = [
            other for other in kept if spellings[other] >= _SLIP * spellings[text]
        ]
        if len(text) > 3 and (near := get_close_matches(text, common, 1, 0.75)):
            yield Finding(
                name,
                f"Column {name!r} says {text!r} in {spellings[text]} cells: is it "
                f"{near[0]!r} ({spellings[near[0]]} cells), misspelled?",
                "merge",
                f"{text}={near[0]}",
                settled=False,
            )


def _where_no_number(
    findings: Sequence[Finding], codes: Sequence[Finding], columns: Sequence[Any]
) -> list[Finding]:
    """Leave codes to a person that other columns have as values."""
    dropped = {each.column for each in findings if each.setting == "drop"}
    taken = {
        code.value
        for code in codes
        for entry in columns
        if entry["name"] not in {code.column, *dropped}
        and code.value in entry["spellings"]
        and not any(c.column == entry["name"] and c.value == code.value for c in codes)
    }
    return [
        replace(each, settled=each.settled and each.value not in taken)
        if each.setting == "missing_value"
        else each
        for each in findings
    ]


def _settings(
    options: CheckOptions,
    source: TableFile,
    columns: Sequence[Mapping[str, Any]],
    findings: Sequence[Finding],
) -> tuple[list[str], dict[str, Any]]:
    """What is asked of a person, and what the other commands are told."""
    settings: dict[str, Any] = {"data": str(options.data)}
    questions = []
    for name in ("encoding", "sheet", "header_row", "target", "controlled", "versus"):
        if (value := getattr(options, name)) is not None:
            settings[name] = value
    for name in ("drop", "categorical", "missing_value", "merge"):
        settings[name] = list(getattr(options, name))
    for finding in findings:
        name, value = finding.setting, finding.value
        if not name or not finding.settled:
            continue
        if isinstance(settings.get(name), list):
            settings[name] += [value] * (value not in settings[name])
        else:
            settings[name] = int(value) if name == "header_row" else value
    labels = {
        entry["name"]: [text for text, _ in entry["spellings"].most_common()]
        for entry in columns
        if 2 <= len(entry["spellings"]) <= _MOST_LABELS
    }
    likely = [name for name in labels if _TARGET.fullmatch(name)] or list(labels)
    target = options.target
    if target is None:
        questions.append(
            f"Which column holds the labels? It may be {listed(likely, _SHOWN)}. "
            f"(target = {_toml(likely[0])})"
            if likely
            else "Which column holds the labels? None has two to six different values."
        )
    elif target not in source.names:
        raise TableError(f"--target {target} is not a column of {source.path}.")
    elif options.controlled is None:
        merged = {text.partition("=")[0] for text in settings["merge"]}
        names = [text for text in labels.get(target, []) if text not in merged]
        example = _toml(names[0] if names else "LABEL")
        questions.append(
            f"Which of the labels {listed(names)} is the one whose error is bounded? "
            f"(controlled = {example})"
        )
    if options.alpha is not None:
        settings["alpha"] = options.alpha
    else:
        questions.append(
            "What share of that class may be classified wrongly? 5% is taken. "
            '(alpha = "10%")'
        )
    if options.new_rows is not None:
        settings["new_rows"] = options.new_rows
    return questions, {k: v for k, v in settings.items() if v != []}


def _promises(
    settings: dict[str, Any],
    options: CheckOptions,
    progress: Listener,
    findings: list[Finding],
    kept: bool,
) -> tuple[dict[str, Any], dict[str, Any] | None, list[Way]]:
    """Blanks by class, and what could be promised, as far as that can be told."""
    if options.target is None:
        return {}, None, []
    known: dict[str, Any] = {**settings, "data": options.data}
    known["alpha"] = [settings.get("alpha", "5%")]
    asked = FitOptions(**known, out=Path("model.skops"))
    source = open_table(asked.data, **asked.how)
    try:
        cells = {**asked.cells, "skip_unlabelled": True}
        table = labelled.read_labelled(
            source, options.target, drop=asked.drop, blank_level=True, **cells
        )
        numbers = table.encoder.names[: table.encoder.n_numeric]
        X = table.X
        constant = [
            name
            for j, name in enumerate(numbers)
            if not np.fmin.reduce(X[:, j]) < np.fmax.reduce(X[:, j])
        ]
        if constant:
            findings.append(
                Finding("", f"{listed(constant)} have one value only: leave them out.")
            )
    except TableError as error:
        findings.append(Finding("", f"The table can't be read as it is: {error}"))
        return {}, None, []
    unlabelled = [note for note in table.notes if "without a label" in str(note)]
    if unlabelled:
        settings["skip_unlabelled"] = True
        asked = replace(asked, skip_unlabelled=True)
    lost = np.isnan(X)
    patterns = Counter(
        tuple(names)
        for names in (
            [name for name, own in table.encoder.places.items() if row[own[0]]]
            for row in lost[table.incomplete]
        )
    )
    blanks = {
        "rows": {str(label): count for label, count in table.counts.items()},
        "complete": {str(label): table.n_complete(label) for label in table.counts},
        "columns": {str(label): counts for label, counts in table.missing.items()},
        "patterns": [
            {"columns": list(names), "rows": n} for names, n in patterns.most_common(5)
        ],
    }
    if asked.controlled is None:
        return blanks, None, []
    table, controlled = labelled.two_classes(table, asked.controlled, asked.versus)
    progress.step("Trying out what could be promised")
    observed = _as_observed(table, controlled, asked)
    ways = []
    if len(table.incomplete):
        trial = {
            "alpha": next(iter(asked.levels.values())),
            "delta": asked.delta,
            "calibration_size": asked.calibration_size,
            "random_state": asked.seed,
        }
        said = None if kept else {**settings, "data": options.data}
        ways = list(ways_of(table, controlled, asked, trial, said))
    return blanks, observed, ways


def _as_observed(
    table: labelled.LabelledTable, controlled: Any, asked: FitOptions
) -> dict[str, Any]:
    """The power for rows as they are, on half of the other class's rows."""
    rng = np.random.default_rng(asked.seed)
    own = rng.permutation(np.flatnonzero(table.y == controlled))[:_TRIED]
    other = rng.permutation(np.flatnonzero(table.y != controlled))[:_TRIED]
    fitted, rest = np.split(other, [len(other) // 2])
    rows = np.concatenate([own, fitted])
    level = next(iter(asked.levels.values()))
    try:
        classifier = NeymanPearsonClassifier(
            alpha=level,
            delta=asked.delta,
            controlled_class=controlled,
            deployment="as-observed",
            random_state=asked.seed,
        ).fit(table.X[rows], table.y[rows])
    except ValueError as error:
        return {"power": None, "why": str(error)}
    power = float(np.mean(classifier.predict(table.X[rest]) != controlled))
    others = listed([label for label in table.counts if label != controlled])
    why = f"tried on {len(rest)} rows left out"
    return {"power": power, "other": others, "why": why}
