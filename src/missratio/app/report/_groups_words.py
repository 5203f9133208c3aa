"""The certificate of several groups in plain words."""

from __future__ import annotations

from typing import Any

from missratio.app.report._words import (
    measured,
    number,
    percent,
    robustness,
    together_words,
)
from missratio.classifier import GroupedCertificate, KeptPromise, named, rows_of

Data = dict[str, Any]


def group_words(certificate: GroupedCertificate) -> Data:
    """What is guaranteed together, under which assumptions, and what would break it."""
    every = certificate.certificates
    sure = percent(1.0 - certificate.delta)
    kept = [each for each in certificate.promises if each.certified]
    together = " for all of this together" if len(kept) > 1 else ""
    headline = f"{_promised(certificate, kept)}, with {sure} confidence{together}"
    if not kept:
        headline = "No threshold could be certified for any group"
    kind = _kind(certificate)
    return together_words(
        every,
        certificate.assumptions,
        certificate.delta,
        headline,
        f"This is about all future {kind}rows of these groups from the same "
        "source. The chance that one or more of these promises is broken is at "
        f"most {percent(certificate.delta)}.",
    )


def group_data(
    certificate: GroupedCertificate, promise: KeptPromise, error: Data, power: Data
) -> Data:
    """What a group gets: its promise, what came of it and what was measured.

    Parameters
    ----------
    certificate : GroupedCertificate
    promise : KeptPromise
    error, power : dict
        Measured shares of the group's rows of either class that get the other class.
    """
    own = next(
        c
        for c, p in zip(certificate.certificates, certificate.promises, strict=False)
        if p is promise
    )
    found = {
        "group": promise.group,
        "name": group_name(promise),
        "level": promise.level,
        "certified": promise.certified,
        "bound": promise.bound if promise.certified else None,
        "rows": promise.rows,
        "effective_rows": own.effective_rows,
        "delta": promise.delta,
        "error": error,
        "power": power,
        "robustness": robustness(own),
    }
    return {**found, "sentence": _sentence(certificate, found)}


def group_name(promise: KeptPromise) -> str:
    """What the rows of a promise are called."""
    return "all rows" if promise.group is None else str(promise.group)


def _sentence(certificate: GroupedCertificate, entry: Data) -> str:
    """What becomes of a group, in a sentence."""
    controlled = certificate.certificates[0].controlled_class
    other = certificate.certificates[0].other_class
    name = entry["name"] if entry["group"] is None else f"Group {entry['group']!r}"
    start = f"{name[:1].upper()}{name[1:]}: "
    if not entry["certified"]:
        return (
            f"{start}finds no {other!r}, as {number(entry['rows'])} calibration rows "
            f"can't certify {percent(entry['level'])}; every row is called "
            f"{controlled!r}."
        )
    return (
        f"{start}finds {measured(entry['power'])} of {other!r} while at most "
        f"{percent(entry['level'])} of {controlled!r} are called {other!r} (measured: "
        f"{measured(entry['error'])})."
    )


def _promised(certificate: GroupedCertificate, kept: list[KeptPromise]) -> str:
    """The promises in one sentence; groups of one level are named together."""
    any_of = certificate.certificates[0]
    rows = f"{_kind(certificate)}{rows_of(any_of.controlled_class)}"
    levels: dict[float, list[str]] = {}
    for each in kept:
        where = "" if each.group is None else repr(each.group)
        if each.kind == "error":
            levels.setdefault(each.level, []).append(where)
    parts = []
    for level, places in levels.items():
        named_groups = [place for place in places if place]
        if "" in places:
            parts.append(f"at most {percent(level)} of all {rows}")
        if named_groups:
            *rest, last = named_groups
            inside = f"{', '.join(rest)} and {last}" if rest else last
            place = "each of the groups" if rest else "group"
            parts.append(f"at most {percent(level)} of {rows} in {place} {inside}")
    text = f"{' and '.join(parts)} are classified as {named(any_of.other_class)}"
    for each in kept:
        if each.kind == "precision":
            text += (
                f"; at least {percent(each.level)} of the rows classified as "
                f"{named(any_of.other_class)} are of that class"
            )
    return text


def _kind(certificate: GroupedCertificate) -> str:
    deployment = certificate.certificates[0].deployment
    return "complete " if deployment == "complete" else ""
