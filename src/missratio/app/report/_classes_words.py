"""The certificate of several classes in plain words."""

from __future__ import annotations

from typing import Any

from missratio.app.report._words import (
    measured,
    number,
    percent,
    robustness,
    sentence,
    share,
    span,
    together_words,
)
from missratio.classifier import (
    Certificate,
    MulticlassCertificate,
    named,
    rows_of,
)

Data = dict[str, Any]


def several_words(certificate: MulticlassCertificate) -> Data:
    """What is guaranteed together, under which assumptions, and what would break it."""
    every = certificate.certificates
    kind = "complete " if every[0].deployment == "complete" else ""
    promised = " and ".join(
        f"at most {percent(each.alpha)} of {kind}{rows_of(each.controlled_class)}"
        for each in every
    )
    sure = percent(1.0 - certificate.delta)
    wrong = _wrong(certificate)
    together = ", all together" if len(every) > 1 else ""
    broken = "one or more of these bounds is" if len(every) > 1 else "this bound is"
    return together_words(
        every,
        certificate.assumptions,
        certificate.delta,
        f"{promised} are {wrong}, with {sure} confidence{together}",
        f"This is about all future {kind}rows from the same source. The chance "
        f"that {broken} broken is at most {percent(certificate.delta)}.",
    )


def promise_data(
    certificate: MulticlassCertificate, each: Certificate, error: Data
) -> Data:
    """One promise: a sentence, and the figures that it rests on."""
    kind = "complete " if each.deployment == "complete" else ""
    rows = rows_of(each.controlled_class)
    facts = [
        ("Bound α", percent(each.alpha), f"its part of δ is {percent(each.delta)}"),
        ("Certified error", percent(each.error_bound), f"rule {each.rule}"),
        ("Estimated error", share(each.estimated_error), "on calibration rows"),
        ("Measured error", share(error["estimate"]), span(error["low"], error["high"])),
        ("Calibration rows", number(each.rows),
         f"effective sample size {number(each.effective_rows)}"),
    ]  # fmt: skip
    if each.sensitivity is not None:
        large = each.sensitivity == float("inf")
        gamma = "> 1000" if large else number(each.sensitivity, 3)
        facts.append(("Sensitivity Γ", gamma, "factor by which odds may be wrong"))
    if each.looked_up:
        facts.append(("Looked up", f"{number(each.looked_up)} rows",
                      f"{number(each.not_found)} not found"))  # fmt: skip
    return {
        "label": each.controlled_class,
        "title": f"{sentence(named(each.controlled_class))[:-1]}: at most "
        f"{percent(each.alpha)}",
        "sentence": (
            f"At most {percent(each.alpha)} of {kind}{rows} are "
            f"{_wrong(certificate, each)}."
        ),
        "facts": [
            {"name": name, "value": value, "note": note} for name, value, note in facts
        ],
        "robustness": robustness(each),
    }


def error_data(
    certificate: MulticlassCertificate, label: Any, error: Data, found: Data
) -> Data:
    """What becomes of a class: its bound, if it has one, and what was measured.

    Parameters
    ----------
    certificate : MulticlassCertificate
    label : object
    error : dict
        The share of its rows that are wrong, in the sense of its bound.
    found : dict
        The share of its rows that get its label.
    """
    bound = next(
        (e.alpha for e in certificate.certificates if e.controlled_class == label), None
    )
    text = f"Finds {measured(found)} of {label!r}"
    if bound is not None:
        kind = "called less severe" if certificate.order else "called another class"
        text += f", while at most {percent(bound)} are {kind}"
        text += f" (measured: {measured(error)})"
    return {
        "label": label,
        "bound": bound,
        "error": error,
        "found": found,
        "sentence": f"{text}.",
    }


def _wrong(certificate: MulticlassCertificate, each: Certificate | None = None) -> str:
    """What the bounded error is."""
    if certificate.order is None:
        return "classified as another class"
    if each is None:
        return "classified as less severe"
    return "classified as " + " or ".join(named(label) for label in each.other_class)
