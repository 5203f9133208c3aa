"""What pages say in figures and sentences, ready to be set."""

from __future__ import annotations

from typing import Any

from missratio.app.report._words import number, percent, share, span

Data = dict[str, Any]


def facts(data: Data) -> list[dict[str, str]]:
    """The few numbers to be seen first."""
    certificate, type_i, curve = data["certificate"], data["type_i"], data["curve"]
    own = curve["own"]
    found = [
        {
            "name": "Bound α",
            "term": "alpha",
            "value": percent(certificate["alpha"]),
            "note": f"with {percent(1.0 - certificate['delta'])} confidence",
        },
        {
            "name": "Type I error",
            "term": "alpha",
            "value": share(type_i["estimate"]),
            "note": "on test rows" if type_i["source"] == "test" else "estimated",
        },
        {
            "name": "Power",
            "term": "power",
            "value": share(curve["power"][own]),
            "note": span(curve["power_low"][own], curve["power_high"][own]),
        },
        {
            "name": "Calibration rows",
            "term": "calibration",
            "value": number(certificate["rows"]),
            "note": f"effective sample size {number(certificate['effective_rows'])}",
        },
    ]
    if certificate["looked_up"]:
        lost = certificate["not_found"]
        found.append(
            {
                "name": "Looked up",
                "term": "",
                "value": f"{number(certificate['looked_up'])} rows",
                "note": f"{number(lost)} not found, counted as errors"
                if lost
                else "all found",
            }
        )
    elif certificate["certified"] and certificate["observed"] < certificate["rows"]:
        gamma = certificate["sensitivity"]
        found.append(
            {
                "name": "Sensitivity Γ",
                "term": "gamma",
                "value": "> 1000" if gamma is None else number(gamma, 3),
                "note": "factor by which odds may be wrong",
            }
        )
    return found


def thousand_rows(data: Data) -> list[list[str]] | None:
    """Of a thousand rows of each class, how many are classified as what.

    None where the power is unknown.
    """
    error, own = data["type_i"]["estimate"], data["curve"]["own"]
    power = data["curve"]["power"][own]
    if power is None:
        return None
    model = data["model"]
    return [
        [f"1,000 of class {label}", *(number(round(1000 * part)) for part in parts)]
        for label, parts in (
            (model["controlled"], (1.0 - error, error)),
            (model["other"], (1.0 - power, power)),
        )
    ]


def mixed_words(data: Data) -> str:
    """What a thousand rows come to, in the mix of the table."""
    model, error = data["model"], data["type_i"]["estimate"]
    power = data["curve"]["power"][data["curve"]["own"]]
    others = model["other_rows"] / max(1, model["rows"])
    right = round(1000.0 * others * power)
    wrong = round(1000.0 * (1.0 - others) * error)
    told = (
        f"Of 1,000 rows mixed as in this table ({round(1000 * others)} of class "
        f"{model['other']}), about {right + wrong} are classified as "
        f"{model['other']}"
    )
    if not right + wrong:
        return f"{told}."
    return (
        f"{told}: {right} rightly and {wrong} wrongly, so "
        f"{share(right / (right + wrong))} of these calls are right."
    )


def compared_rows(comparison: Data) -> list[list[str]]:
    """The methods that were compared, the best first, as texts."""
    every = sorted(comparison["candidates"], key=lambda c: -(c["power"] or -1.0))
    return [
        [
            f"{c['name']} (chosen)" if c["name"] == comparison["chosen"] else c["name"],
            share(c["power"]),
            share(c["standard_error"]),
            f"{c['seconds']:.1f} s",
            c["note"] or "",
        ]
        for c in every
    ]


def compared_words(comparison: Data) -> str:
    """How methods were compared, or why not."""
    if comparison.get("note"):
        return f"Methods were not compared: {comparison['note']}."
    sizes = (
        number(comparison["controlled_rows"]),
        number(comparison["other_rows"]),
    )
    if comparison["alpha"] is None:
        names = ", ".join(comparison["compared"])
        measured = (
            "and offsets and thresholds chosen for the rows left out, under the "
            f"bounds. Power: the share of {names} that gets its own class, the mean "
            f"over these classes. Rows: {sizes[0]} of bounded classes and {sizes[1]} "
            "of others"
        )
    else:
        measured = (
            "and its power measured on the rows left out, at an error of "
            f"{percent(comparison['alpha'])}. Rows: {sizes[0]} and {sizes[1]} of the "
            "two classes"
        )
    return (
        f"Each method was fitted on training rows alone, {comparison['folds']} times, "
        f"{measured}. Time: {comparison['seconds']:.0f} of "
        f"{comparison['budget']:.0f} seconds. These powers choose a method; the power "
        "to expect is the one further up."
    )


def error_rows(data: Data) -> list[dict[str, str]]:
    """The two errors with their intervals."""
    type_i, curve = data["type_i"], data["curve"]
    own = curve["own"]
    power = {
        "estimate": curve["power"][own],
        "low": curve["power_low"][own],
        "high": curve["power_high"][own],
        "confidence": curve["confidence"],
        "rows": curve["power_rows"],
        "source_words": curve["source_words"],
        "method": curve["power_method"],
    }
    return [
        {
            "name": name,
            "estimate": share(entry["estimate"]),
            "interval": span(entry["low"], entry["high"]),
            "confidence": percent(entry["confidence"]),
            "rows": number(entry["rows"]),
            "source": entry["source_words"],
            "method": entry["method"],
        }
        for name, entry in (("Type I error", type_i), ("Power", power))
    ]


def level_rows(data: Data) -> list[dict[str, str]]:
    """The NP-ROC, a row of texts for each level."""
    curve = data["curve"]
    rows = []
    for i, alpha in enumerate(curve["alpha"]):
        certified = curve["threshold"][i] is not None
        rows.append(
            {
                "alpha": percent(alpha),
                "threshold": number(curve["threshold"][i]) if certified else "none",
                "bound": percent(curve["error_bound"][i]) if certified else "none",
                "estimate": share(curve["estimated_error"][i]),
                "power": share(curve["power"][i]),
                "interval": span(curve["power_low"][i], curve["power_high"][i]),
                "rule": curve["rule"][i],
            }
        )
    return rows


def model_words(entry: Data) -> str:
    """Why values of a class are missing, as far as it was said."""
    if entry["kind"] == "none":
        if entry["complete"] == entry["rows"]:
            return ""
        return "Why values are missing was not modelled."
    if entry["kind"] == "looked-up":
        lost = entry["drawn"] - entry["found"]
        found = f"{number(lost)} of them were not found" if lost else "all were found"
        return (
            f"{number(entry['drawn'])} of its incomplete rows were looked up, and "
            f"{found}. No φ is assumed."
        )
    what = "whole rows" if entry["whole_rows"] else "single values"
    if entry["kind"] == "known":
        return f"φ, of {what}, is taken as known: {entry['model']}."
    return (
        f"φ, of {what}, was learned; its band holds everywhere at once with "
        f"{percent(entry['band_confidence'])} confidence."
    )


def complete_case_words(data: Data) -> list[str]:
    """How far complete-case analysis would have been off."""
    case = data["complete_case"]
    if case is None:
        return []
    kept = (
        f"Complete-case analysis uses the {percent(case['kept_share'])} of rows that "
        "are complete, as if they were a random sample"
    )
    kept += "." if case["refitted"] else ", here to choose the threshold only."
    if not case["certified"]:
        return [kept, "It finds too few of them to certify any threshold."]
    how = "on test rows" if case["source"] == "test" else "by the weights"
    real = (
        f"Its classifier would claim an error of at most {percent(case['claimed'])}. "
        f"Estimated {how}, its error is {share(case['estimate'])} "
        f"({span(case['low'], case['high'])})"
    )
    if case["low"] > case["claimed"]:
        verdict = ": more than it claims."
    elif case["high"] < case["claimed"]:
        verdict = ": its claim holds here."
    else:
        verdict = ": whether its claim holds can't be told from these rows."
    return [kept, real + verdict]


def odds_rows(data: Data) -> list[list[str]]:
    """Certified error and power at each odds factor, as texts."""
    odds = data["sensitivity"]["odds"]
    points = zip(odds["amount"], odds["error"], odds["power"], strict=True)
    return [
        [number(factor), percent(error), share(power)]
        for factor, error, power in points
    ]


def pattern_rows(missingness: Data) -> list[list[str]]:
    """Patterns with their rows in each class, as texts."""
    return [
        [
            ", ".join(entry["missing"]) or "nothing",
            *(
                f"{number(rows)} ({share(part)})"
                for rows, part in zip(entry["rows"], entry["share"], strict=True)
            ),
        ]
        for entry in missingness["patterns"]["listed"]
    ]


def pattern_words(missingness: Data) -> list[str]:
    """What tests say of the patterns, class by class."""
    tests = missingness["patterns"]["test"]
    return [
        f"Class {entry['label']}: {text}"
        for entry, text in zip(missingness["classes"], tests, strict=True)
        if text
    ]
