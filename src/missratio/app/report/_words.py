"""The certificate in plain words."""

from __future__ import annotations

from typing import Any

from missratio.classifier import Certificate

# Γ below which a small error in φ undoes the guarantee.
FRAGILE = 1.1


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


def number(value: float | None, digits: int = 4) -> str:
    """A number with so many significant digits; thousands are set apart."""
    if value is None:
        return "–"
    rounded = float(f"{value:.{digits}g}")
    if abs(rounded) >= 10_000:
        return f"{rounded:,.0f}".replace(",", "\u202f")
    return f"{rounded:g}".replace("-", "−")


def certificate_words(certificate: Certificate, other: Any) -> dict[str, Any]:
    """What is guaranteed, under which assumptions, and what would break it.

    Parameters
    ----------
    certificate : Certificate
    other : object
        The class that is not controlled.

    Returns
    -------
    dict
        `headline`, `guarantee`, `meaning`, `assumptions`, `breaks`, `robustness` and
        `checks`.
    """
    controlled = certificate.controlled_class
    alpha, sure = percent(certificate.alpha), percent(1.0 - certificate.delta)
    if not certificate.certified:
        headline = f"No threshold could be certified at {alpha}."
        guarantee = (
            f"Every row is given to class {controlled}. So none of its rows is given "
            f"to class {other} by mistake, and no row of class {other} is recognised."
        )
        meaning = (
            f"With {number(certificate.rows)} calibration rows, "
            f"{number(certificate.observed)} of them usable, no threshold can be "
            f"shown to keep the error below {alpha} with {sure} confidence. More rows "
            f"of class {controlled}, or a larger α or δ, would allow one."
        )
    else:
        headline = (
            f"At most {alpha} of class {controlled} is taken for class {other}, "
            f"with {sure} confidence."
        )
        kind = "complete rows" if certificate.deployment == "complete" else "rows"
        guarantee = (
            f"Of all {kind} of class {controlled} that will ever come from the same "
            f"source, no more than {alpha} will be given to class {other}."
        )
        meaning = (
            f"The {sure} are about the draw of the calibration rows: if the whole "
            f"analysis were repeated on new data many times, at least {sure} of the "
            "classifiers would keep this promise. It holds whatever the model, and "
            "however well it fits."
        )
    return {
        "headline": headline,
        "guarantee": guarantee,
        "meaning": meaning,
        "assumptions": [_sentence(text) for text in certificate.assumptions],
        "breaks": _breaks(certificate),
        "robustness": _robustness(certificate),
        "checks": [_sentence(text) for text in certificate.checks],
    }


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _breaks(certificate: Certificate) -> list[str]:
    """What would break the guarantee, the likeliest first."""
    label = certificate.controlled_class
    breaks = []
    if certificate.deployment == "as-observed":
        breaks.append(
            "Values going missing in another way, or more or less often, than in the "
            "calibration rows."
        )
    elif certificate.looked_up:
        breaks.append(
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
        breaks.append(f"A wrong account of why values are missing: {wrong}.")
    breaks += [
        f"Rows of class {label} that come from another source or another time than the "
        "calibration rows did.",
        "Calibration rows that depend on each other, such as several from one patient, "
        "or that were used before: to fit, to choose the model, α or the rule.",
        "A model or a threshold that is changed afterwards, α on this page among them: "
        "to change it, calibrate again on fresh rows.",
    ]
    return breaks


def _robustness(certificate: Certificate) -> str | None:
    """How wrong φ may be, in words."""
    if not certificate.certified or certificate.observed == certificate.rows:
        return None
    if certificate.looked_up:
        return (
            "No model of φ, the probability of being missing, is assumed: there is "
            "none that could be wrong."
        )
    parts = []
    if certificate.missingness_delta:
        parts.append(
            "Why values are missing was learned from values looked up, and the "
            "guarantee allows for the error of that: it takes the worst weights within "
            f"φ's {percent(1.0 - certificate.missingness_delta)} band."
        )
    gamma = certificate.sensitivity
    if gamma is None:
        return " ".join(parts) or None
    if gamma == float("inf"):
        parts.append(
            "The odds of being missing may be wrong by more than a factor of 1000 "
            "before it fails (Γ > 1000)."
        )
    else:
        parts.append(
            "The odds of being missing may be wrong by a factor of "
            f"Γ = {number(gamma, 3)}, either way, before it fails."
        )
    return " ".join(parts)
