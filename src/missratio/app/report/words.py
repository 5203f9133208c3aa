"""What a report says in sentences: the promise, what it rests on, cautions, advice."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from missratio.app.modelfile import certificates_of
from missratio.app.report.rows import LabelledRows
from missratio.classifier import Certificate, named, rows_of
from missratio.classifier.certificate import on_sensitivity
from missratio.threshold import binomial_tail, fewest

Data = dict[str, Any]


def percent(value: float | None) -> str:
    """A share as a percentage, with three significant digits."""
    return "–" if value is None else f"{100.0 * value:.3g}%"


def share(value: float | None) -> str:
    """A share as a percentage of one decimal, so that a column of them aligns."""
    return "–" if value is None else f"{100.0 * value:.1f}%"


def span(interval: Data) -> str:
    """An interval of shares, with one decimal."""
    low, high = interval["low"], interval["high"]
    if low is None or high is None:
        return "–"
    return f"{100.0 * low:.1f} to {100.0 * high:.1f}%"


def measured(entry: Data | None) -> str:
    """A share that was measured, with its interval."""
    if entry is None or entry["estimate"] is None:
        return "an unknown share"
    return f"{share(entry['estimate'])} ({span(entry)})"


def number(value: float | None, digits: int = 4) -> str:
    """A count exactly, another number with so many significant digits.

    Thousands are set apart by commas, and there are no powers of ten.
    """
    if value is None:
        return "–"
    if isinstance(value, int) or abs(value) >= 1000.0:
        return f"{value:,.0f}".replace("-", "−")
    rounded = float(f"{value:.{digits}g}")
    return np.format_float_positional(rounded, trim="-").replace("-", "−")


def sentence(text: str) -> str:
    """A text as a sentence."""
    first = text[:1] if text.startswith("φ") else text[:1].upper()
    return f"{first}{text[1:].rstrip('.')}."


def listed(texts: Iterable[Any]) -> str:
    """Some words with commas, and "and" before the last."""
    *rest, last = map(str, texts)
    return f"{', '.join(rest)} and {last}" if rest else last


# The certificate -------------------------------------------------------------------


def certificate_words(rows: LabelledRows, data: Data) -> Data:
    """What is guaranteed, for which rows, and what it rests on.

    Returns
    -------
    dict
        `headline`, `guarantee`, `blanks`, `meaning`, `assumptions` and `checks`.
    """
    certificate, every = rows.classifier.certificate_, certificates_of(rows.classifier)
    first, many = every[0], len(every) > 1
    sure, lost = percent(1.0 - certificate.delta), blank_share(data)
    promised, blanks = _promised(rows, data["errors"]), None
    meant = "complete rows" if first.deployment == "complete" else "rows"
    if promised and first.deployment == "complete":
        shares = [
            f"{percent(1.0 - k['complete'] / k['rows'])} of the {rows_of(k['label'])}"
            for k in data["missingness"]["classes"]
            if k["complete"] < k["rows"]
        ]
        blanks = (
            "It is not about rows with a blank, which are always classified as "
            f"{named(data['model']['fallback'])}. "
        )
        blanks += (
            f"{percent(lost)} of the rows of this table have one: {listed(shares)}."
            if shares
            else "This table has none."
        )
    elif promised and lost:
        promised = f"of rows with blanks like these, {promised}"
        meant = "rows, with blanks like those of this table,"
    if promised:
        headline = f"{promised}, with {sure} confidence{', all together' * many}"
        guarantee = f"This is about all future {meant} from the same source."
        meaning = (
            "If the whole analysis were repeated on new data many times, at least "
            f"{sure} of the classifiers would keep "
            f"{'all promises' if many else 'the promise'}. That holds for any method, "
            "and however well or badly the method fits."
        )
    else:
        headline = f"No threshold could be certified at {percent(first.alpha)}"
        guarantee = (
            f"Every row is classified as {named(first.controlled_class)}, and no "
            f"{rows_of(rows.other)} are recognised."
        )
        meaning = (
            f"With {number(first.rows)} calibration rows, {number(first.observed)} of "
            "them usable, no threshold can be shown to keep the error below "
            f"{percent(first.alpha)} with {sure} confidence."
        )
    # They may begin with a column's name.
    checks = (f"{text.rstrip('.')}." for promise in every for text in promise.checks)
    return {
        "headline": sentence(headline),
        "guarantee": guarantee,
        "blanks": blanks,
        "meaning": meaning,
        "assumptions": [
            *map(sentence, certificate.assumptions),
            sentence(f"it holds {certificate.valid_while}"),
        ],
        "checks": list(dict.fromkeys(checks)),
    }


def blank_share(data: Data) -> float:
    """The share of the table's rows that have a blank."""
    classes = data["missingness"]["classes"]
    complete, rows = (sum(entry[k] for entry in classes) for k in ("complete", "rows"))
    return 1.0 - float(complete / rows)


def _promised(rows: LabelledRows, entries: Sequence[Data]) -> str:
    """Every bound in one sentence; groups of one level are named together."""
    first = certificates_of(rows.classifier)[0]
    bounds: dict[tuple[float, Any], list[Any]] = {}
    for entry in entries:
        if entry["certified"]:
            key = entry["level"], entry["label"]
            bounds.setdefault(key, []).append(entry["group"])
    parts = []
    for (alpha, label), groups in bounds.items():
        complete = "complete " * (first.deployment == "complete")
        bound = f"at most {percent(alpha)} of {complete}{rows_of(label)}"
        if rows.groups is not None:
            place = "each of the groups" if len(groups) > 1 else "group"
            bound += f" in {place} {listed(map(repr, groups))}"
        parts.append(bound)
    called = f"are classified as {_wrong_words(rows)}"
    return f"{' and '.join(parts)} {called}" if parts else ""


def _wrong_words(rows: LabelledRows) -> str:
    """What a row of a bounded class must not be called."""
    if len(rows.labels) == 2:
        return named(rows.other)
    ordered = rows.classifier.certificate_.order is not None
    return "less severe" if ordered else "another class"


def robustness(certificate: Certificate) -> str | None:
    """How wrong φ may be, in words."""
    if not certificate.certified or certificate.observed == certificate.rows:
        return None
    learned = certificate.missingness_delta
    band = (
        "φ is not known exactly, and the guarantee allows for that: it takes the worst "
        f"weights within φ's {percent(1.0 - learned)} band."
    )
    slack = on_sensitivity(certificate.sensitivity, bool(learned))
    return " ".join([band] * bool(learned) + slack) or None


def promise_sentence(rows: LabelledRows, entry: Data) -> str:
    """What becomes of a class or group: its bound, if any, and what was measured."""
    label, level, one_bound = entry["label"], entry["level"], len(rows.labels) == 2
    name, right, wrong = "", label, _wrong_words(rows)
    if rows.groups is not None:
        name = f"Group {entry['group']!r}: "
    if one_bound:
        right, wrong = rows.other, f"{rows.other!r}"
    text = f"{name}finds {measured(entry['found'])} of {right!r}"
    if one_bound and not entry["certified"]:
        text = (
            f"{name}finds no {right!r}, as {number(entry['rows'])} calibration rows "
            f"can't certify {percent(level)}; every row is called {label!r}"
        )
    elif level is not None:
        text += f" while at most {percent(level)} of {label!r} are called {wrong}"
        if entry["error"].get("source") != "calibration":
            text += f" (measured: {measured(entry['error'])})"
    return f"{text[0].upper()}{text[1:]}."


# Cautions and advice ---------------------------------------------------------------


def cautions(data: Data) -> Iterator[Data]:
    """What a reader should know before relying on the numbers; a fit warns of more."""
    if all(entry["found"]["estimate"] is None for entry in data["errors"]):
        text = "No row was left to measure it on. Give test rows, complete ones."
        yield {"title": "Power unknown", "text": text}
    certified = any(entry["certified"] for entry in data["errors"])
    observed = data["model"]["deployment"] == "as-observed"
    if certified and observed and blank_share(data):
        text = (
            "The promise is for rows that lose values as those of this table did. If "
            "more or other values are observed one day, even if every value is, errors "
            "may be more frequent than promised."
        )
        yield {"title": "Blanks must stay as they are", "text": text}
    if data["measured"] == "held out":
        text = (
            "They were measured on rows that thresholds were chosen on, as there is no "
            "certified fit to a part of the rows. The bounds hold anyway."
        )
        yield {"title": "Errors may be larger than measured", "text": text}


def next_steps(rows: LabelledRows, data: Data) -> Iterator[tuple[str, str, str]]:
    """What to do: a title, a text, and a command that does it, or nothing."""
    origin, every = data["origin"], certificates_of(rows.classifier)
    file, first = shlex.quote(origin.get("model", "")), every[0]
    complete, blanks = first.deployment == "complete", blank_share(data)
    wanted = [
        f"{_needed(promise) or 'many more'} {rows_of(entry['label'])} for "
        "calibration"
        + (f" in group {entry['group']!r}" if entry["group"] is not None else "")
        + f", to promise {percent(promise.alpha)} (now {number(promise.rows)})"
        for entry, promise in zip(data["errors"], every, strict=False)
        if not entry["certified"]
    ]
    if wanted:
        text = (
            f"A threshold would need about {listed(wanted)}; or raise α or δ. Without "
            f"one, every row{' there' * (rows.groups is not None)} is called "
            f"{named(data['model']['fallback'])}."
        )
        yield "More rows", text, ""
    if len(wanted) < len(every):
        text = "Each row gets a label, and a score or the reason why it has none."
        if complete and blanks:
            text = (
                f"Bring complete rows: those with a blank, like {percent(blanks)} of "
                f"this table, are all called {named(data['model']['fallback'])}."
            )
        command = f"missratio predict {file} new.csv --out predictions.csv"
        yield "Label new rows", text, command * ("model" in origin)
        text = (
            "Once newer rows have their true labels, count the errors, day by day. It "
            "raises an alarm when a promise is broken, which it may be when the "
            "population changes."
        )
        if complete and blanks and first.looked_up:
            text += " The rows have to be complete, as the promise is about such rows."
        command = f"missratio watch {file} labelled.csv"
        yield "Watch it", text, command * ("model" in origin)
        if blanks and not complete:
            text = (
                "This promise is not for them. See what another would take: looking "
                "some values up, or knowing why they are missing."
            )
            yield "If new rows will be complete", text, origin.get("check", "")
    lost, known = (
        sum(sum(feature[name]) for feature in data["missingness"]["features"])
        for name in ("missing", "looked_up")
    )
    by_phi = any(promise.sensitivity is not None for promise in every)
    if complete and 0 < known < lost:
        text = (
            f"{number(known)} of {number(lost)} missing values were found. With more, "
            "the power rises. A longer plan of the same kind and seed begins with the "
            "values of the first."
        )
        longer = f" --budget {min(2 * known, lost)}"
        plan = origin["query"] + longer if "query" in origin else ""
        yield "More look-ups", text, plan
    elif complete and by_phi and not known:
        text = (
            "The promise holds if φ is right. It needs no φ if some of the rows with "
            "blanks, drawn by lot, are looked up. See how many it takes."
        )
        yield "Assume less", text, origin.get("check", "")


def _needed(certificate: Certificate) -> str:
    """How many calibration rows would do; "" where more are no remedy."""
    alpha, delta = certificate.alpha, certificate.delta
    rows = fewest(lambda n: bool(binomial_tail(n, alpha, delta) >= 0))
    worth = certificate.effective_rows / max(certificate.rows, 1)
    if rows is None or rows <= certificate.effective_rows or not worth:
        return ""
    return number(math.ceil(rows / worth))
