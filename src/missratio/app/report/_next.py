"""What to do next: what more look-ups, more rows or another method would buy."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from missratio.app.report._rows import LabelledRows
from missratio.app.report._words import number, percent, share
from missratio.classifier import query_budget
from missratio.learning import LearnedMissingness
from missratio.threshold import CalibrationSample, looked_up_sample

Data = dict[str, Any]

# Beyond so many rows more of them buy nothing to speak of, and trying takes long.
MOST_ROWS = 50_000
TIMES = (2, 4)
DRAWS = 20
# Power that is worth a sentence.
WORTH = 0.005


def next_steps(rows: LabelledRows, data: Data) -> list[Data]:
    """What would raise the power, and by how much; estimates to plan by.

    Returns
    -------
    list of dict
        With `title` and `text`; empty where nothing can be said.
    """
    certified = rows.classifier.certificate_.certified
    found = [
        *_look_ups(rows, data),
        *(_more_rows(rows, data) if certified else []),
        *_other_level(data),
        *_other_method(data),
        *_unscored(rows, data),
    ]
    return [{"title": title, "text": text} for title, text in found]


def _power_at(data: Data, error: float) -> float | None:
    """The power of the threshold with an estimated error, along the NP-ROC."""
    curve = data["curve"]
    points = sorted(
        (e, p)
        for e, p in zip(curve["estimated_error"], curve["power"], strict=True)
        if p is not None
    )
    if not points:
        return None
    errors, powers = np.array(points).T
    return float(np.interp(error, errors, powers))


def _own_power(data: Data) -> float | None:
    power: float | None = data["curve"]["power"][data["curve"]["own"]]
    return power


def _bought(said: list[tuple[str, float]], own: float) -> str:
    """A sentence on the power that each of some efforts would give."""
    parts = [f"about {share(power)} {what}" for what, power in said]
    listed = (
        parts[-1] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    )
    return f"The power is {share(own)} now. It would be {listed}."


def _look_ups(rows: LabelledRows, data: Data) -> list[tuple[str, str]]:
    own, classifier = _own_power(data), rows.classifier
    if own is None or rows.certificate.rows > MOST_ROWS:
        return []
    if classifier.calibration_.sample.lookups is not None:
        return _more_drawn(rows, data, own)
    model = rows.model(rows.controlled)
    fitted = hasattr(classifier, "calibration_index_")
    if not fitted or not isinstance(model, LearnedMissingness):
        return []
    first = max((e.n_revealed for e in model.evidence if e is not None), default=0)
    if not first:
        return []
    budgets = [float(times * first) for times in (1, *TIMES)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            bought = query_budget(classifier, rows.X, rows.y, budgets)
        except ValueError:
            return []
    # What was tried is measured on rows that were fitted on: gains are carried over.
    gains = bought.power[1:] - bought.power[0]
    said = [
        (
            f"with {number(int(budget))} values of each column looked up instead of "
            f"{number(first)}",
            min(own + max(float(gain), 0.0), 1.0),
        )
        for budget, gain in zip(budgets[1:], gains, strict=True)
    ]
    best = min(own + max(bought.known - float(bought.power[0]), 0.0), 1.0)
    said.append(("if φ were known exactly", best))
    text = _bought(said, own)
    if best - own < WORTH:
        text = (
            "More look-ups would buy next to nothing: φ is known well enough. "
            f"If it were known exactly, the power would be about {share(best)}."
        )
    return [("More look-ups", text)]


def _more_drawn(rows: LabelledRows, data: Data, own: float) -> list[tuple[str, str]]:
    """The same where look-ups are data: more of the incomplete rows are drawn."""
    sample = rows.classifier.calibration_.sample
    lookups = sample.lookups
    assert lookups is not None
    if len(lookups.incomplete) != 1 or not lookups.drawn[0]:
        return []
    size, drawn = int(lookups.incomplete[0]), int(lookups.drawn[0])
    known = sample.values[lookups.stratum == 0]
    # A row that was not found has the score ∞, and keeps it where all rows are drawn.
    revealed = sample.values[lookups.stratum > 0]
    rng, said = np.random.default_rng(0), []
    for times in TIMES:
        more = min(times * drawn, size)
        errors = []
        for _ in range(DRAWS):
            scores = np.concatenate(
                [known, rng.choice(revealed, more), np.zeros(size - more)]
            )
            inclusion = np.repeat(
                [1.0, more / size, 0.0], [len(known), more, size - more]
            )
            errors.append(_error_with(rows, looked_up_sample(scores, inclusion)))
        power = _power_at(data, float(np.mean(errors)))
        if power is not None:
            what = f"with {number(more)} calibration rows looked up instead of "
            said.append((f"{what}{number(drawn)}", max(power, own)))
        if more == size:
            break
    return [("More look-ups", _bought(said, own))] if said else []


def _error_with(rows: LabelledRows, sample: CalibrationSample) -> float:
    """The error, as estimated now, of the threshold that another sample certifies."""
    calibration = rows.classifier.calibration_
    chosen = replace(calibration, sample=sample).select([rows.classifier.alpha])[0]
    if chosen.threshold is None:
        return 0.0
    return float(calibration.sample.estimated_error(float(chosen.threshold)))


def _more_rows(rows: LabelledRows, data: Data) -> list[tuple[str, str]]:
    calibration, own = rows.classifier.calibration_, _own_power(data)
    sample = calibration.sample
    if own is None or sample.lookups is not None:
        return []
    if TIMES[0] * sample.n_rows > MOST_ROWS:
        gap = rows.certificate.alpha - rows.certificate.estimated_error
        return [
            (
                "More calibration rows",
                f"They would buy little: with {number(sample.n_rows)} of them the "
                f"estimated error is within {percent(gap, 2)} of α.",
            )
        ]
    rng, said = np.random.default_rng(0), []
    for times in TIMES:
        error = _error_with(rows, sample.repeated(times, rng))
        power = _power_at(data, error)
        if power is not None:
            what = f"with {number(times * sample.n_rows)} calibration rows of "
            what += f"{rows.controlled} instead of {number(sample.n_rows)}"
            said.append((what, max(power, own)))
    if not said:
        return []
    if said[-1][1] - own < WORTH:
        text = f"Even {TIMES[-1]} times as many would buy next to nothing: the power "
        return [("More calibration rows", f"{text}would stay at about {share(own)}.")]
    return [("More calibration rows", _bought(said, own))]


def _other_level(data: Data) -> list[tuple[str, str]]:
    """A bound that is twice as loose."""
    curve, own = data["curve"], _own_power(data)
    looser = [
        (alpha, power)
        for alpha, power in zip(curve["alpha"], curve["power"], strict=True)
        if power is not None and alpha >= 2.0 * data["certificate"]["alpha"]
    ]
    if own is None or not looser or looser[0][1] - own < WORTH:
        return []
    alpha, power = looser[0]
    return [
        (
            "A looser bound",
            f"At α = {percent(alpha)} the power would be about {share(power)} instead "
            f"of {share(own)}. For a guarantee at the new α, fit again with "
            "calibration rows that had no part in this choice.",
        )
    ]


def _other_method(data: Data) -> list[tuple[str, str]]:
    compared = data["comparison"]
    if compared is None:
        return [
            (
                "Another method",
                "Methods were not compared. missratio fit without --method compares "
                "them by their power, on training rows alone.",
            )
        ]
    others = [
        c for c in compared["candidates"]
        if c["power"] is not None and c["name"] != compared["chosen"]
    ]  # fmt: skip
    if not others:
        return []
    best = max(others, key=lambda c: c["power"])
    return [
        (
            "Another method",
            f"{compared['chosen']} did best of those compared; the next, "
            f"{best['name']}, had a power of {share(best['power'])} there. A better "
            "score is likelier to come from other columns than from another method.",
        )
    ]


def _unscored(rows: LabelledRows, data: Data) -> list[tuple[str, str]]:
    lost = data["unscored"][1]["share"]
    if lost < WORTH:
        return []
    how = (
        "A method that takes blanks as they are (--method trees) scores them"
        if rows.classifier.deployment == "as-observed"
        else "Finding out the values of a row before it is classified gives it a score"
    )
    return [
        (
            "Rows without a score",
            f"{share(lost)} of class {rows.other} in the table get no score and so "
            f"can't be recognised. {how}.",
        )
    ]
