"""What a report says in sentences: the promise, what it rests on, cautions, advice."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from missratio.app.modelfile import GROUPS, SEVERAL_CLASSES, certificates_of, kind_of
from missratio.app.report.measure import last_step
from missratio.app.report.rows import LabelledRows
from missratio.classifier import Certificate, named, rows_of
from missratio.classifier.certificate import on_sensitivity
from missratio.threshold import binomial_tail, fewest

Data = dict[str, Any]

FEW_TAIL_ROWS = 10
MUCH_UNSCORED = 0.01
# Rows to look up where none were.
LOOK_UPS = 80


def percent(value: float | None, digits: int = 3) -> str:
    """A share as a percentage, with so many significant digits."""
    if value is None:
        return "–"
    return f"{float(f'{100.0 * value:.{digits}g}'):g}%"


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
    if 0.0 < abs(rounded) < 1e-4:
        return f"{rounded:.{digits + 4}f}".rstrip("0").rstrip(".").replace("-", "−")
    return f"{rounded:g}".replace("-", "−")


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
    if promised and first.deployment == "complete":
        meant = "complete rows"
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
    elif promised:
        meant = "rows"
        if lost:
            promised = f"of rows with blanks like these, {promised}"
            meant = "rows, with blanks like those of this table,"
    if promised:
        headline = f"{promised}, with {sure} confidence{', all together' * many}"
        guarantee = (
            f"This is about all future {meant} from the same source. The chance that "
            f"{'one or more of these bounds' if many else 'this bound'} is broken is "
            f"at most {percent(certificate.delta)}."
        )
        meaning = (
            "That chance is over the draw of the calibration rows: if the whole "
            f"analysis were repeated on new data many times, at least {sure} of the "
            f"classifiers would keep {'all promises' if many else 'the promise'}. It "
            "holds for any method, and however well or badly the method fits."
        )
    else:
        mine, other = rows_of(first.controlled_class), rows_of(rows.other)
        headline = f"No threshold could be certified at {percent(first.alpha)}"
        guarantee = (
            f"Every row is classified as {named(first.controlled_class)}. So none of "
            f"the {mine} is classified as {named(rows.other)} by mistake, and no "
            f"{other} are recognised."
        )
        meaning = (
            f"With {number(first.rows)} calibration rows, {number(first.observed)} of "
            "them usable, no threshold can be shown to keep the error below "
            f"{percent(first.alpha)} with {sure} confidence."
        )
    # They may begin with a column's name.
    checks = (f"{text.rstrip('.')}." for each in every for text in each.checks)
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
    complete, rows = (sum(each[k] for each in classes) for k in ("complete", "rows"))
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
        names = [repr(group) for group in groups if group is not None]
        if None in groups:
            parts.append(bound)
        if names:
            place = "each of the groups" if len(names) > 1 else "group"
            parts.append(f"{bound} in {place} {listed(names)}")
    wrong = named(first.other_class)
    if kind_of(rows.classifier) == SEVERAL_CLASSES:
        wrong = _wrong_words(rows)
    return f"{' and '.join(parts)} are classified as {wrong}" if parts else ""


def _wrong_words(rows: LabelledRows) -> str:
    """What a row of one of several bounded classes must not be called."""
    ordered = rows.classifier.certificate_.order is not None
    return "less severe" if ordered else "another class"


def robustness(certificate: Certificate) -> str | None:
    """How wrong φ may be, in words."""
    if not certificate.certified or certificate.observed == certificate.rows:
        return None
    learned = certificate.missingness_delta
    parts = [
        "φ is not known exactly, and the guarantee allows for that: it "
        f"takes the worst weights within φ's {percent(1.0 - learned)} band."
    ] * bool(learned)
    if certificate.sensitivity == float("inf"):
        parts.append("The odds of being missing may be wrong by more than 1000 times.")
    else:
        parts += on_sensitivity(certificate.sensitivity, bool(learned))
    return " ".join(parts) or None


def promise_sentence(rows: LabelledRows, entry: Data) -> str:
    """What becomes of a class or group: its bound, if any, and what was measured."""
    label, level, error = entry["label"], entry["level"], measured(entry["error"])
    if kind_of(rows.classifier) == GROUPS:
        name = "All rows" if entry["group"] is None else f"Group {entry['group']!r}"
        called, other = f"{rows.controlled!r}", f"{rows.other!r}"
        if not entry["certified"]:
            return (
                f"{name}: finds no {other}, as {number(entry['rows'])} calibration "
                f"rows can't certify {percent(level)}; every row is called {called}."
            )
        return (
            f"{name}: finds {measured(entry['found'])} of {other} while at most "
            f"{percent(level)} of {called} are called {other} (measured: {error})."
        )
    text = f"Finds {measured(entry['found'])} of {label!r}"
    if level is not None:
        text += f", while at most {percent(level)} are called {_wrong_words(rows)} "
        text += f"(measured: {error})"
    return f"{text}."


# Cautions --------------------------------------------------------------------------


def cautions(rows: LabelledRows, data: Data) -> Iterator[tuple[str, str]]:
    """What a reader should know before relying on the numbers."""
    model, classifier = data["model"], rows.classifier
    fallback = named(model["fallback"])
    if data["curve"] is not None:
        certificate, sample = classifier.certificate_, classifier.calibration_.sample
        tail = int((sample.values > certificate.threshold).sum())
        if certificate.certified and tail < FEW_TAIL_ROWS:
            needed = _needed(certificate, FEW_TAIL_ROWS)
            text = (
                f"The threshold rests on the {number(tail + 1)} calibration rows that "
                f"score highest. The guarantee holds, but with more of these rows"
                f"{f', about {needed}' * bool(needed)} (now "
                f"{number(certificate.rows)}), the power would be higher."
            )
            yield "Few calibration rows", text
        if not getattr(last_step(classifier.estimator_), "converged_", True):
            text = (
                "The fit didn't reach an optimum, or there is none: coefficients and "
                "scores are those of its last step. The certificate holds anyway. A "
                "penalty (l2) or fewer features would give a finite optimum."
            )
            yield "No finite optimum", text
        if data["errors"][0]["found"]["estimate"] is None:
            text = (
                "No row of the other class was left to measure it on: too few of them "
                "are complete. Give complete test rows."
            )
            yield "Power unknown", text
        elif data["measured"] == "training":
            text = (
                "It was measured on the rows that the classifier was fitted on. Give "
                "test rows, or let it be cross-validated (folds=5)."
            )
            yield "Power is too good", text
    certified = any(entry["certified"] for entry in data["errors"])
    if certified and model["deployment"] == "as-observed" and blank_share(data):
        text = (
            "The promise is for rows that lose values as those of this table did. If "
            "more or other values are observed one day, even if every value is, errors "
            "may be more frequent than promised."
        )
        yield "Blanks must stay as they are", text
    for entry in data["missingness"]["classes"]:
        if entry["concentrated"]:
            yield "Concentrated weights", entry["concentrated"]
    lost = [entry["name"] for entry in data["errors"] if entry["certified"] is False]
    if lost and data["kind"] == GROUPS:
        text = (
            f"Every row of {listed(map(repr, lost))} is classified as {fallback}: "
            "their calibration rows are too few. Bring more of their rows, merge them "
            "with another group, or raise α."
        )
        yield "Some groups get nothing", text
    if data["measured"] == "held out":
        text = (
            "They were measured on rows that thresholds were chosen on, because no fit "
            "to a part of the rows could be certified. The bounds hold anyway."
        )
        yield "Errors may be larger than measured", text
    # That blanks have no score where complete rows are meant is said further up.
    reasons = {
        "rare": "rows like them are observed so rarely that nothing can be certified "
        "for them"
    }
    if model["deployment"] == "as-observed":
        reasons["blank"] = "the method can't handle their blanks"
    for why, because in reasons.items():
        shares = [(each[why], each["label"]) for each in data["unscored"]]
        if max(lost for lost, _ in shares) >= MUCH_UNSCORED:
            said = listed(
                f"{share(lost)} of the {rows_of(label)}"
                for lost, label in shares
                if lost
            )
            text = (
                f"In the table, {said} can't be scored, because {because}. These rows "
                f"are always classified as {fallback}, and count as not recognised in "
                "the power on this page."
            )
            yield "Rows without a score", text


def next_steps(rows: LabelledRows, data: Data) -> Iterator[tuple[str, str, str]]:
    """What to do: a title, a text, and a command that does it, or nothing."""
    origin, every = data["origin"], certificates_of(rows.classifier)
    file, first = shlex.quote(origin["model"] or ""), every[0]
    complete, blanks = first.deployment == "complete", blank_share(data)
    wanted = [
        f"{_needed(each, 0) or 'many more'} {rows_of(entry['label'])} for calibration"
        + (f" in group {entry['group']!r}" if entry["group"] is not None else "")
        + f", to promise {percent(each.alpha)} (now {number(each.rows)})"
        for entry, each in zip(data["errors"], every, strict=False)
        if not entry["certified"]
    ]
    if wanted:
        text = f"A threshold would need about {listed(wanted)}; or raise α or δ."
        yield "More rows", text, ""
    if len(wanted) < len(every):
        text = "Each row gets a label, and a score or the reason why it has none."
        if complete and blanks:
            text = (
                f"Bring complete rows: those with a blank, like {percent(blanks)} of "
                f"this table, are all called {named(data['model']['fallback'])}."
            )
        command = f"missratio predict {file} new.csv --out predictions.csv"
        python = "classifier.predict(X_new)"
        yield "Label new rows", text, command if origin["model"] else python
        text = (
            "Once newer rows have their true labels, count the errors, day by day. It "
            "raises an alarm when a promise is broken, which it may be when the "
            "population changes."
        )
        if complete and blanks and first.looked_up:
            text += " The rows have to be complete, as the promise is about such rows."
        command = f"missratio watch {file} labelled.csv"
        python = f"monitor = mr.TypeIErrorMonitor({first.alpha:g}, {first.delta:g})"
        yield "Watch it", text, command if origin["model"] else python
    if blanks and not complete and len(wanted) < len(every):
        text = (
            "This promise is not for them. See what another would take: looking some "
            "values up, or knowing why they are missing."
        )
        yield "If new rows will be complete", text, origin["check"] or ""
    lost, known = (
        sum(sum(each[name]) for each in data["missingness"]["features"])
        for name in ("missing", "looked_up")
    )
    by_phi = any(each.sensitivity is not None for each in every) and not known
    if complete and (by_phi or 0 < known < lost):
        # Values that complete some rows, or twice as many as were looked up.
        price = lost / max(1.0, blanks * data["model"]["rows"])
        budget = min(2 * known or round(LOOK_UPS * price), lost)
        plan = f"{origin['query']} --budget {budget}" if origin["query"] else ""
        text = (
            f"{number(known)} of {number(lost)} missing values were found. With more, "
            "the power rises. A longer plan of the same kind and seed begins with the "
            "values of the first."
        )
        assumed = (
            "The promise holds if φ is right. It needs no φ if some of the rows with "
            "blanks, drawn by lot, are looked up."
        )
        yield (
            ("Assume less", assumed, plan) if by_phi else ("More look-ups", text, plan)
        )


def _needed(certificate: Certificate, tail: int) -> str:
    """How many calibration rows allow so many above the threshold; "" if no more."""
    alpha, delta = certificate.alpha, certificate.delta
    rows = fewest(lambda n: bool(binomial_tail(n, alpha, delta) >= tail))
    worth = certificate.effective_rows / max(certificate.rows, 1)
    if rows is None or rows <= certificate.effective_rows or not worth:
        return ""
    return number(math.ceil(rows / worth))
