"""One look at a table before anything else: how it reads, and what could be promised.

What was found is a list of findings. Those that can be settled without a person become
settings, which `missratio.toml` holds for the other commands; the others are questions.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from missratio._base.hints import listed
from missratio._files import TableFile, open_table, write_whole
from missratio._files.cells import DATE, Cells, NotNumbersError, parse_number
from missratio.app import options as asked
from missratio.app.report import pages
from missratio.app.report.sections import ReportSection, Table
from missratio.app.report.words import sentence
from missratio.app.tables import labelled
from missratio.app.tables.columns import MOST_LEVELS, check_names, named_columns
from missratio.app.workflow.account import Way, first_columns, read_table, ways_of
from missratio.app.workflow.spelling import variants
from missratio.exceptions import TableError
from missratio.missingness import missingness_patterns

# Lines in which a header is looked for where the first isn't one.
_LINES = 12
_LIMIT = re.compile(r"(<=?|>=?|≤|≥)\s*(\d+[.,]?\d*)")
_UNIT = re.compile(r"[+-]?\d[\d.,]*(\s*[^\s\d.,:;/_+-][^\d,;]*)")
_KEY = re.compile(r"(.*[\W_])?(id|nr|no|key|code|number)", re.IGNORECASE)
_TARGET = re.compile(
    r"target|class|label|outcome|state|status|diagnosis|result|y", re.IGNORECASE
)
# A column of so many labels at most may be the target.
_MOST_LABELS = 6
_SHOWN = 5
# What `missratio.toml` may say of a table, in its order.
_SETTINGS = (
    "encoding", "sheet", "header_row", "target", "controlled", "versus", "drop",
    "categorical", "missing_value", "merge", "alpha", "new_rows",
)  # fmt: skip


@dataclass
class Finding:
    """What a look at a table found.

    Parameters
    ----------
    column : str
        Or "" for the file.
    sentence : str
    setting : str
        What it changes in how the table is read, such as ``drop``; or "".
    value : object
    settled : bool
        Whether it is done; otherwise a person has to decide.
    """

    column: str
    sentence: str
    setting: str = ""
    value: Any = ""
    settled: bool = True


def _toml(value: Any) -> str:
    # JSON's texts, numbers and lists are TOML's, too.
    return json.dumps(value, ensure_ascii=False)


def check_table(
    options: asked.CheckOptions, progress: asked.Listener
) -> asked.CommandOutcome:
    """Look at a table: how it reads, what is odd about it, and what could be promised.

    Parameters
    ----------
    options : CheckOptions
        What is known already; the rest is found out.
    progress : Listener
    """
    # 1. The file, and column by column what it holds and what is odd about it.
    progress.step(f"Reading {options.data}")
    source, findings = _open(options)
    check_names(source, "--target", [options.target] if options.target else [])
    drop = [n for n in named_columns(source, options.drop) if n != options.target]
    names = [name for name in source.names if name not in drop]
    table = source.read(names)
    cells = Cells(
        tuple(options.missing_value), source.marks, tuple(options.merged.items())
    )
    if drop:
        left = f"Left out, as {asked.SETTINGS} or --drop says: "
        findings.append(Finding("", f"{left}{listed(drop)}."))
    columns: list[dict[str, Any]] = []
    seen: dict[int, str] = {}
    spellings: dict[str, Counter[str]] = {}
    for name in names:
        column = table.column(name).combine_chunks()
        texts = cells.texts(column)
        counts = texts.drop_null().value_counts().to_pylist()
        texts_seen = Counter({each["values"]: each["counts"] for each in counts})
        kind, mine = _column(name, column, cells, options, texts_seen)
        key = hash(tuple(texts.to_pylist()))
        if (twin := seen.setdefault(key, name)) != name and kind != "nothing":
            kind, mine = "repeated", [_drop(name, f"repeats {twin!r}")]
        needed = (options.target, *options.categorical)
        findings += [e for e in mine if e.setting != "drop" or name not in needed]
        examples = ", ".join(text for text, _ in texts_seen.most_common(3))
        lost = len(column) - texts_seen.total()
        columns.append(
            {"name": name, "kind": kind, "blanks": lost, "examples": examples}
        )
        spellings[name] = texts_seen
    # Rows that differ in no column, where one has many values, hardly coincide.
    copies = len(table) - table.group_by(names).aggregate([]).num_rows
    if copies and 2 * max(map(len, spellings.values()), default=0) > len(table):
        repeated = f"{copies} rows repeat another in every column. If they are copies, "
        repeated += "take them out of the file: copies count as if they were new."
        findings.append(Finding("", repeated, settled=False))
    # 2. Codes for nothing that other columns have as values are left to a person.
    codes = {(e.column, e.value) for e in findings if e.setting == "missing_value"}
    dropped = {each.column for each in findings if each.setting == "drop"}
    for each in (each for each in findings if each.setting == "missing_value"):
        held = {name for name in spellings if each.value in spellings[name]}
        also = [n for n in held - dropped if (n, each.value) not in codes]
        each.settled &= not also
        option = shlex.join(["--missing-value", each.value])
        beside = f" (then in {listed(sorted(also), _SHOWN)} as well)" if also else ""
        asked_of = f"is it missing? If so, add {option}{beside}."
        each.sentence += f": {'it counts as missing.' if each.settled else asked_of}"
    # 3. What the other commands are told, and what is asked of a person.
    settings: dict[str, Any] = {"data": str(options.data)}
    for name in _SETTINGS:
        value = getattr(options, name)
        values = [e.value for e in findings if e.setting == name and e.settled]
        if isinstance(value, list):
            value = list(dict.fromkeys([*value, *values]))
        elif values:
            value = values[-1]
        if value not in (None, []):
            settings[name] = value
    questions = list(_questions(options, spellings, settings))
    # 4. Blanks by class, and what could be promised.
    before, said = "", asked.read_settings()
    if options.force or options.sheet not in (None, said.get("sheet", options.sheet)):
        said = {}
    elif asked.SETTINGS.exists():
        before = asked.SETTINGS.read_text(encoding="utf-8")
    blanks, ways = _promises(settings, options, progress, findings, said)
    if any(blanks and blanks["columns"].values()) and "new_rows" not in settings:
        questions.append(
            "Will new rows have blanks like these, or will they be complete? "
            '(new_rows = "blanks" or "complete")'
        )
    # 5. What is remembered of it. A file that is there stays as it is, and what it
    # doesn't say is added. What the command line says otherwise is changed in it, and
    # what that adds to a list stands first there.
    changed = []
    for name in (name for name in _SETTINGS if name in said):
        value, known = getattr(options, name), said[name]
        stands = re.compile(rf"^{name}\s*=\s*(\[|.*$)", re.MULTILINE)
        if not isinstance(known, list):
            text = _toml(value) if value and str(value) != str(known) else ""
        elif text := "".join(f"{_toml(v)}, " for v in value if v not in known):
            text = f"[{text}"
        if text and stands.search(before):
            line = f"{name} = {text}".replace("\\", r"\\")
            before = stands.sub(line, before, count=1)
            changed.append(name)
    settings = {k: v for k, v in settings.items() if k not in said}
    toml = _settings_text(settings, findings, questions)
    if before:
        added = [f"{k} = {_toml(v)}\n" for k, v in settings.items()]
        toml = "".join([before.rstrip("\n") + "\n", *added])
    facts: dict[str, Any] = {
        "file": {
            "name": source.path.name,
            "rows": len(table),
            "columns": len(source.names),
            "decimal_marks": list(source.marks),
            **{k: settings.get(k, v) for k, v in options.how.items()},
        },
        "columns": columns,
        "findings": [asdict(finding) for finding in findings],
        "questions": questions,
        "blanks": blanks,
        "ways": [asdict(way) for way in ways],
        "settings": settings,
        "toml": toml,
    }
    written = {asked.SETTINGS: toml}
    if (out := options.out) is not None:
        page = _document(facts, findings, ways)
        as_text = out.suffix == ".md"
        written[out] = pages.markdown(page) if as_text else pages.html(page, facts)
    for path, text in written.items():
        write_whole(path, text)
    # 6. What there is to say, in lines.
    lines = [f"{source.path.name}: {len(table)} rows, {len(source.names)} columns."]
    lines += [f"- {finding.sentence}" for finding in findings]
    for label, count in blanks.get("rows", {}).items():
        named = [
            f"{name!r} {n / count:.0%}"
            for name, n in Counter(blanks["columns"][label]).most_common()
        ]
        most = f"; blanks in {first_columns(named)}" if named else ""
        complete = f"{count} rows, {blanks['complete'][label]} of them complete"
        lines.append(f"{label!r}: {complete}{most}.")
    if ways:
        lines += ["What could be promised:", *map(str, ways)]
    lines += [f"To decide: {question}" for question in questions]
    end = f"Written: {asked.SETTINGS}, which check, query and fit read."
    if before:
        end = f"{asked.SETTINGS} is there already, and stays as it is (--force to "
        end += "write it anew)."
        if added := [*settings, *changed]:
            end = f"Added to {asked.SETTINGS}: {', '.join(added)}. What else it says "
            end += "stays (--force to write it anew)."
    return asked.CommandOutcome(facts, [*lines, end])


def _settings_text(
    settings: Mapping[str, Any], findings: Sequence[Finding], questions: Sequence[str]
) -> str:
    """The settings, with the reasons, and what is left to decide as comments."""
    lines = [
        "# How to read the table, and what was decided, by `missratio check`.",
        "# `check`, `query` and `fit` read it in the folder in which they run, and",
        "# options on the command line win, or add to a list. Change what isn't as",
        "# you mean it.",
    ]
    undecided = [each for each in findings if each.setting and not each.settled]
    for name, value in settings.items():
        reasons = [e for e in findings if e.setting == name and e.settled]
        lines += [f"# {each.sentence}" for each in reasons]
        text = _toml(value)
        # What is undecided is a comment within the list: each name stands once.
        if mine := [each for each in undecided if each.setting == name]:
            said = (f"  # {e.sentence}\n  # {_toml(e.value)},\n" for e in mine)
            text = f"{text[:-1]},\n{''.join(said)}]"
        lines.append(f"{name} = {text}")
    lines += [f"# {question}" for question in questions]
    for each in (each for each in undecided if each.setting not in settings):
        lines += [f"# {each.sentence}", f"# {each.setting} = {_toml([each.value])}"]
    return "\n".join(lines) + "\n"


def _document(
    facts: Mapping[str, Any], findings: Sequence[Finding], ways: Sequence[Way]
) -> ReportSection:
    """The same as a page."""
    undecided = [each.sentence for each in findings if not each.settled]
    names = ("name", "kind", "blanks", "examples")
    rows = [[str(entry[name]) for name in names] for entry in facts["columns"]]
    parts = [
        ReportSection(key, title, items=[("", text) for text in texts])
        for key, title, texts in (
            ("decide", "To decide", [*facts["questions"], *undecided]),
            ("done", "What was done", [e.sentence for e in findings if e.settled]),
        )
        if texts
    ]
    holds = Table(["Column", "Holds", "Blanks", "Such as"], rows, texts=[1, 3])
    parts.append(ReportSection("columns", "Columns", table=holds))
    if blanks := facts["blanks"]:
        sizes, lost = blanks["rows"], blanks["columns"]
        every: Counter[str] = sum(map(Counter, lost.values()), Counter())
        cells = [
            [name, *(f"{lost[k].get(name, 0) / n:.0%}" for k, n in sizes.items())]
            for name, _ in every.most_common()
        ]
        text = [
            f"{blanks['complete'][k]} of {n} {k!r} rows are complete."
            for k, n in sizes.items()
        ]
        notes = [
            f"{each['rows']} rows miss {listed(each['columns'], _SHOWN)}."
            for each in blanks["patterns"]
        ]
        table = Table(["Column", *sizes], cells) if cells else None
        title = "Blanks by class"
        parts.append(ReportSection("blanks", title, text, table=table, notes=notes))
    if ways:
        items = [
            (sentence(way.what).rstrip("."), sentence(f"{way.power}; {way.promise}"))
            for way in ways
        ]
        commands = [f"\n# {way.between}\n".join(way.commands) for way in ways]
        could = "What could be promised"
        parts.append(
            ReportSection("ways", could, items=items, commands=commands, layout="next")
        )
    file = facts["file"]
    meta = f"{file['rows']} rows, {file['columns']} columns"
    return ReportSection("check", f"A look at {file['name']}", [meta], parts=parts)


def _open(options: asked.CheckOptions) -> tuple[TableFile, list[Finding]]:
    """The file, with its header where that is, and in its encoding."""
    how, findings = {**options.how, "fallback": "cp1252"}, []
    source = open_table(options.data, **how)
    # A sheet of one column at most, as notes have it, is no table.
    if source.sheet_note and not (source.n_rows and len(source.names) > 1):
        for sheet in getattr(source, "sheets", ()):
            other = open_table(options.data, **how | {"sheet": sheet})
            if other.n_rows and len(other.names) > 1:
                said = f"Sheet {sheet!r} is read: those before it have no table."
                findings.append(Finding("", said, "sheet", sheet))
                source, how["sheet"] = other, sheet
                break
    if how["encoding"] is None and getattr(source, "encoding", "") == "cp1252":
        said = "The file isn't UTF-8; it is read as Windows wrote it (cp1252)."
        findings.append(Finding("", said, "encoding", "cp1252"))
    named = len({name for name in source.names if name})
    sound = how["header_row"] is not None or 2 <= named == len(source.names)
    for line in () if sound else range(1, _LINES + 1):
        with suppress(TableError):
            other = open_table(options.data, **how | {"header_row": line})
            names = {name for name in other.names if name}
            if len(names) > max(named, 1) and len(names) == len(other.names):
                said = f"The column names are in line {line}; what stands above is "
                findings.append(Finding("", f"{said}left out.", "header_row", line))
                source = other
                break
    source.check_header()
    for note in source.notes:
        chosen = ("sheet", source.sheet) if note == source.sheet_note else ()
        findings.append(Finding("", note, *chosen))
    return source, findings


def _drop(name: str, reason: str) -> Finding:
    return Finding(name, f"Column {name!r} {reason}: it is left out.", "drop", name)


def _column(
    name: str,
    column: Any,
    cells: Cells,
    options: asked.CheckOptions,
    spellings: Counter[str],
) -> tuple[str, list[Finding]]:
    """What a column holds, and what is odd about it."""
    dates = str(column.type).startswith(("date", "timestamp", "time"))
    if dates or (spellings and all(map(DATE.fullmatch, spellings))):
        said = "holds dates, which say little about new rows; make an age or a "
        return "dates", [_drop(name, f"{said}duration of it, if that matters")]
    n_known = spellings.total()
    if not spellings:
        return "nothing", [_drop(name, "has no value in any row")]
    if len(spellings) == 1 and n_known == len(column):
        return "one value", [_drop(name, f"is {next(iter(spellings))!r} in every row")]
    marks, others, numbers = frozenset(cells.marks), Counter(spellings), None
    with suppress(NotNumbersError):
        numbers = cells.numbers(column)
        others.clear()
    unit = "%" * all(text.endswith("%") for text in spellings)
    for text in list(others):
        with suppress(ValueError):
            parse_number(text.removesuffix(unit), marks, finite=False)
            del others[text]
    is_category = name in options.categorical
    if not others and not is_category:
        if len(spellings) == n_known > MOST_LEVELS and all(
            re.fullmatch(r"[+-]?\d+", text) for text in spellings
        ):
            values = sorted(map(int, spellings))
            if _KEY.fullmatch(name) or values[-1] - values[0] == n_known - 1:
                said = "has a different whole number in every row, as keys have"
                return "key", [_drop(name, said)]
        if numbers is None:
            said = "has whole numbers too long to be exact, as keys have"
            return "key", [_drop(name, said)]
        if len(spellings) == 1:
            return "one value", [_drop(name, "has one value only, and blanks")]
    if 2 * others.total() < n_known and not is_category:
        findings = list(_no_numbers(name, others, next(iter(spellings))))
        known = replace(cells, missing_values=(*cells.missing_values, *others))
        with suppress(NotNumbersError):
            for note in labelled.sentinels(known.numbers(column)[:, None], [name]):
                value, said = f"{note.facts['value']:g}", str(note).partition(". If")[0]
                far = note.facts["why"] == labelled.FAR
                findings.append(Finding(name, said, "missing_value", value, far))
        return "numbers", findings
    alone = (match and match[1] for match in map(_UNIT.fullmatch, spellings))
    units, with_unit = set(alone), ""
    if len(units) == 1 and None not in units:
        with_unit = f"numbers with a unit, such as {next(iter(spellings))!r} (take "
        with_unit += f"{units.pop()!r} away in the file to use them as numbers)"
    if len(spellings) > MOST_LEVELS:
        unique = len(spellings) == n_known
        many = "a different text in every row"
        many = many if unique else f"{len(spellings)} different texts"
        many += ", as names and notes have"
        return "texts", [_drop(name, f"has {with_unit or many}")]
    findings = []
    if with_unit and not is_category:
        said = f"Column {name!r} has {with_unit}: each is a category as it stands."
        findings.append(Finding(name, said, settled=False))
    for text, same, certain in variants(spellings):
        said = f"Column {name!r} says {same!r} ({spellings[same]} cells) and {text!r} "
        said += f"({spellings[text]}): they are taken for the same."
        if not certain:
            said = f"Column {name!r} says {text!r} in {spellings[text]} cells: is it "
            said += f"{same!r} ({spellings[same]} cells), misspelled? If so, add "
            said += f"{shlex.join(['--merge', f'{text}={same}'])}."
        findings.append(Finding(name, said, "merge", f"{text}={same}", certain))
    return f"{len(spellings)} categories", findings


def _no_numbers(name: str, others: Mapping[str, int], first: str) -> Iterator[Finding]:
    """Texts among numbers: limits of detection, codes for nothing, units, and slips."""
    codes = []
    for text in others:
        if (limit := _LIMIT.fullmatch(text)) is None:
            codes.append(text)
            continue
        # What is never seen can't be weighted: a number stands for it.
        number = float(limit[2].replace(",", ".")) / (2.0 if text[0] in "<≤" else 1.0)
        written = f"{number:g}".replace(".", "," if "," in text else ".")
        said = f"Column {name!r} says {text!r} in {others[text]} cells, a limit of "
        said += f"detection: {written} stands for it, here and in new rows."
        yield Finding(name, said, "merge", f"{text}={written}")
    for text in codes[:_SHOWN]:
        settled = others[text] > 1 or not any(c.isalnum() for c in text)
        # A second line of the header holds units.
        settled |= text == first and not any(c.isdigit() for c in text)
        said = f"Column {name!r} holds numbers, and {text!r} in {others[text]} cells"
        yield Finding(name, said, "missing_value", text, settled)
    if len(codes) > _SHOWN:
        said = f"Column {name!r} holds {len(codes)} different texts among its numbers: "
        yield Finding(name, f"{said}correct them.")


def _questions(
    options: asked.CheckOptions,
    spellings: Mapping[str, Counter[str]],
    settings: Mapping[str, Any],
) -> Iterator[str]:
    """What only a person can say about labels and levels."""
    target = options.target
    if target is None:
        fits = [k for k, each in spellings.items() if 2 <= len(each) <= _MOST_LABELS]
        likely = [name for name in fits if _TARGET.fullmatch(name)] or fits
        yield "Which column holds the labels? " + (
            f"It may be {listed(likely, _SHOWN)}. (target = {_toml(likely[0])})"
            if likely
            else "None has two to six different values."
        )
    else:
        merged = {text.rpartition("=")[0] for text in settings.get("merge", [])}
        names = [text for text, _ in spellings[target].most_common()]
        names = [text for text in names if text not in merged]
        if options.controlled is None:
            yield (
                f"Which of the labels {listed(names, _MOST_LABELS)} is the one whose "
                "error is bounded? (controlled = "
                f"{_toml(names[0] if names else 'LABEL')})"
            )
        if len(names) > 2 and options.versus is None:
            yield (
                'Against which of the other labels? (versus = "rest" takes them as '
                "one class; to bound several errors: missratio fit --alpha LABEL=SHARE "
                "for each.)"
            )
    if options.alpha is None:
        yield (
            "What share of the class whose error is bounded may be classified wrongly? "
            '5% is taken. (alpha = "10%")'
        )


def _promises(
    settings: dict[str, Any],
    options: asked.CheckOptions,
    progress: asked.Listener,
    findings: list[Finding],
    said: Mapping[str, Any],
) -> tuple[dict[str, Any], list[Way]]:
    """Blanks by class, and what could be promised, as far as that can be told.

    `said` is what `missratio.toml` says already.
    """
    if options.target is None:
        return {}, []
    known: dict[str, Any] = {**settings, "data": options.data, "skip_unlabelled": True}
    known["alpha"] = [settings.get("alpha", "5%")]
    given = asked.FitOptions(**known)
    try:
        _, table = read_table(given)
    except TableError as error:
        findings.append(Finding("", f"The table can't be read as it is: {error}"))
        return {}, []
    if notes := [str(each) for each in table.notes if "unlabelled" in each.facts]:
        settings["skip_unlabelled"] = True
        findings.append(Finding("", notes[0], "skip_unlabelled"))
    else:
        given = replace(given, skip_unlabelled=False)
    names = np.array(table.encoder.names, dtype=object)
    firsts = [at[0] for at in table.encoder.places.values()]
    together = missingness_patterns(table.X[np.ix_(table.incomplete, firsts)])
    blanks = {
        "rows": {str(label): count for label, count in table.counts.items()},
        "complete": {str(label): table.n_complete(label) for label in table.counts},
        "columns": {str(label): counts for label, counts in table.missing.items()},
        "patterns": [
            {"columns": names[lost].tolist(), "rows": int(n)}
            for lost, n in zip(together.missing[:5], together.counts[:5], strict=True)
        ],
    }
    if given.controlled is None:
        return blanks, []
    if len(table.counts) > 2 and given.versus is None:
        labelled.find_label(table, "--controlled", given.controlled)
        return blanks, []
    table, controlled = labelled.two_classes(table, given.controlled, given.versus)
    progress.step("Trying out what could be promised")
    known = {**said, **settings, "data": said.get("data", options.data)}
    return blanks, list(ways_of(table, controlled, given, known))
