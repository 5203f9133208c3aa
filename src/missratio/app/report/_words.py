"""The certificate in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from missratio.classifier import Certificate, named, rows_of

# Γ below which a small error in φ undoes the guarantee.
FRAGILE = 1.1
# And up to which there is none to speak of.
NO_SLACK = 1.05


def percent(value: float | None, digits: int = 3) -> str:
    """A share as a percentage, with so many significant digits."""
    if value is None:
        return "–"
    return f"{float(f'{100.0 * value:.{digits}g}'):g}%"


def share(value: float | None) -> str:
    """A share as a percentage of one decimal, so that a column of them aligns."""
    return "–" if value is None else f"{100.0 * value:.1f}%"


def span(low: float | None, high: float | None) -> str:
    """An interval of shares, with one decimal."""
    if low is None or high is None:
        return "–"
    return f"{100.0 * low:.1f} to {100.0 * high:.1f}%"


def measured(entry: dict[str, Any]) -> str:
    """A share that was measured, with its interval."""
    if entry["estimate"] is None:
        return "an unknown share"
    return f"{share(entry['estimate'])} ({span(entry['low'], entry['high'])})"


def number(value: float | None, digits: int = 4) -> str:
    """A count exactly, another number with so many significant digits.

    Thousands are set apart by commas, and there are no powers of ten.
    """
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    if abs(value) >= 1000.0:
        return f"{value:,.0f}".replace("-", "−")
    rounded = float(f"{value:.{digits}g}")
    if 0.0 < abs(rounded) < 1e-4:
        return f"{rounded:.{digits + 4}f}".rstrip("0").rstrip(".").replace("-", "−")
    return f"{rounded:g}".replace("-", "−")


def certificate_words(certificate: Certificate, other: Any) -> dict[str, Any]:
    """What is guaranteed, under which assumptions, and what would break it.

    Returns
    -------
    dict
        `headline`, `guarantee`, `meaning`, `assumptions`, `breaks`, `robustness` and
        `checks`.
    """
    rows, name = rows_of(certificate.controlled_class), named(other)
    alpha, sure = percent(certificate.alpha), percent(1.0 - certificate.delta)
    kind = "complete " if certificate.deployment == "complete" else ""
    if not certificate.certified:
        headline = f"No threshold could be certified at {alpha}."
        guarantee = (
            f"Every row is classified as {named(certificate.controlled_class)}. So "
            f"none of the {rows} is classified as {name} by mistake, and no "
            f"{rows_of(other)} are recognised."
        )
        meaning = (
            f"With {number(certificate.rows)} calibration rows, "
            f"{number(certificate.observed)} of them usable, no threshold can be "
            f"shown to keep the error below {alpha} with {sure} confidence. More "
            f"{rows}, or a larger α or δ, would allow one."
        )
    else:
        headline = (
            f"At most {alpha} of {kind}{rows} are classified as {name}, with {sure} "
            "confidence."
        )
        guarantee = (
            f"This is about all future rows: of every {kind}row from the same source "
            f"that is {named(certificate.controlled_class)} in truth, no more than "
            f"{alpha} will be classified as {name}. The chance that this statement is "
            f"wrong is at most {percent(certificate.delta)}."
        )
        meaning = (
            "That chance is over the draw of the calibration rows: if the whole "
            f"analysis were repeated on new data many times, at least {sure} of the "
            "classifiers would keep the promise. It holds for any method, and however "
            "well or badly the method fits."
        )
    return {
        "headline": headline,
        "guarantee": guarantee,
        "meaning": meaning,
        "assumptions": [sentence(text) for text in certificate.assumptions],
        "breaks": breaks(certificate),
        "robustness": robustness(certificate),
        "checks": [sentence(text) for text in certificate.checks],
    }


def together_words(
    certificates: Sequence[Certificate],
    assumptions: Sequence[str],
    delta: float,
    headline: str,
    guarantee: str,
) -> dict[str, Any]:
    """Several certificates in words, as `certificate_words` has those of one.

    Parameters
    ----------
    certificates : sequence of Certificate
    assumptions : sequence of str
    delta : float
        Of all of them together.
    headline, guarantee : str
    """

    def once(texts: Iterable[str]) -> list[str]:
        return list(dict.fromkeys(texts))

    return {
        "headline": sentence(headline),
        "guarantee": guarantee,
        "meaning": (
            "That chance is over the draw of the calibration rows: if the whole "
            "analysis were repeated on new data many times, at least "
            f"{percent(1.0 - delta)} of the classifiers would keep all promises. It "
            "holds for any method, and however well or badly the method fits."
        ),
        "assumptions": [sentence(text) for text in assumptions],
        "breaks": once(t for each in certificates for t in breaks(each, slider=False)),
        "robustness": None,
        "checks": once(sentence(t) for each in certificates for t in each.checks),
    }


def sentence(text: str) -> str:
    """A text as a sentence."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def breaks(certificate: Certificate, *, slider: bool = True) -> list[str]:
    """What would break the guarantee, the likeliest first.

    Parameters
    ----------
    certificate : Certificate
    slider : bool
        Whether the page lets its reader choose another α.
    """
    rows = rows_of(certificate.controlled_class)
    found = []
    if certificate.deployment == "as-observed":
        found.append(
            "Values going missing in another way, or more or less often, than in the "
            "calibration rows."
        )
    elif certificate.looked_up:
        found.append(
            "Look-ups that were not drawn at random, answers that are not true, or a "
            "search that was stopped because of what it found."
        )
    elif certificate.observed < certificate.rows:
        wrong = (
            "a relation between value and missingness that isn't logistic, or values "
            "looked up other than by chance"
            if certificate.missingness_delta
            else "values that go missing for other reasons than the model says"
        )
        found.append(f"A wrong account of why values are missing: {wrong}.")
    changed = "A model or a threshold that is changed afterwards."
    if slider:
        changed += (
            " That includes choosing another α on this page: to change α, calibrate "
            "again on fresh rows."
        )
    found += [
        f"{rows[:1].upper()}{rows[1:]} that come from another source or another time "
        "than the calibration rows did.",
        "Calibration rows that depend on each other, such as several from one patient, "
        "or that were used before: to fit, to choose the model, α or the rule.",
        changed,
    ]
    return found


def robustness(certificate: Certificate) -> str | None:
    """How wrong φ may be, in words."""
    if not certificate.certified or certificate.observed == certificate.rows:
        return None
    if certificate.looked_up:
        return (
            "The guarantee uses no model of φ, the probability of being missing, so no "
            "such model can be wrong."
        )
    parts = []
    if certificate.missingness_delta:
        parts.append(
            "φ was learned, and the guarantee allows for what is not known about it: "
            "it takes the worst weights within φ's "
            f"{percent(1.0 - certificate.missingness_delta)} band."
        )
    gamma = certificate.sensitivity
    if gamma is None:
        return " ".join(parts) or None
    if gamma == float("inf"):
        parts.append(
            "The odds of being missing may be wrong by more than a factor of 1000 "
            "before it fails (Γ > 1000)."
        )
    elif gamma < NO_SLACK:
        exact = "It has no slack: it needs φ to be exact."
        parts.append("Beyond that it has no slack." if parts else exact)
    else:
        parts.append(
            "The odds of being missing may be wrong by a factor of "
            f"Γ = {number(gamma, 3)}, either way, before it fails."
        )
    return " ".join(parts)
