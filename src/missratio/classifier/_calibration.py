"""From scored rows of the controlled class to a threshold."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from missratio._hints import did_you_mean
from missratio._typing import FloatArray
from missratio.threshold import (
    FIXED_RULES,
    RULES,
    AutoRule,
    CalibrationSample,
    Rule,
    TunedBettingRule,
)


def check_levels(alpha: float, delta: float) -> None:
    """Refuse levels that are not probabilities strictly between 0 and 1."""
    for name, value in (("alpha", alpha), ("delta", delta)):
        if not 0.0 < value < 1.0:
            raise ValueError(f"{name} must lie strictly between 0 and 1, got {value}.")


def sorted_scores(other_scores: ArrayLike) -> FloatArray:
    """Scores of the other class, sorted, to measure power with."""
    scores = np.sort(np.asarray(other_scores, dtype=np.float64))
    if len(scores) == 0 or np.isnan(scores[-1]):
        raise ValueError(
            "other_scores must hold the other class's scores, one or more and none of "
            "them NaN: give a row that has no score −∞."
        )
    return scores


def make_rule(name: str, *, training: CalibrationSample | None, complete: bool) -> Rule:
    """A rule by its name.

    Parameters
    ----------
    name : str
        One of "auto", "binomial", "paper", "bernstein", "hoeffding-bentkus",
        "thinning", "betting", "flipped-betting" and "tuned-betting".
    training : CalibrationSample, optional
        Scored rows that take no part in calibration, for the rules that learn from
        them.
    complete : bool
        Whether calibration rows can't be missing.
    """
    if name not in RULES:
        hint = did_you_mean(str(name), RULES)
        raise ValueError(f"rule must be one of {list(RULES)}, got {name!r}.{hint}")
    if name == "auto":
        return AutoRule(training, complete=complete)
    if name == "tuned-betting":
        if training is None or training.n_observed == 0:
            raise ValueError(
                "The rule 'tuned-betting' learns its bet from training rows of the "
                "controlled class, and there are none. Give training scores, or choose "
                "another rule."
            )
        return TunedBettingRule(training)
    return FIXED_RULES[name]()
