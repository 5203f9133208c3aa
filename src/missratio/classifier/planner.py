"""How many calibration rows a certificate needs, and the power to expect of them."""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar

from missratio._base.typing import FloatArray
from missratio.classifier.promise import Calibration
from missratio.exceptions import Message, NoCertificateError, Remedy
from missratio.threshold import (
    CalibrationSample,
    Rule,
    check_levels,
    fewest,
    fewest_look_ups,
    make_rule,
)

# Rows that a plan may ask for, and those that it may try out by repeating a sample.
MOST_ROWS = 10**9
MOST_REPEATED = 200_000
MOST_TIMES = 64


def required_calibration_rows(
    alpha: float, delta: float, phi_max: float = 0.0, rule: str | Rule = "auto"
) -> int:
    """The smallest number of rows with which a rule can certify any threshold at all.

    With this number the threshold is the largest score seen. For more power you need
    several times as many rows: see `expected_power`.

    Parameters
    ----------
    alpha, delta : float
    phi_max : float
        ‖φ‖∞, the largest missing probability of the controlled class; 0 where it is
        complete. Rules that use more of φ are planned for φ = phi_max throughout.
    rule : str or Rule, default="auto"

    Returns
    -------
    int
        For "thinning", which keeps a random number of rows, the number with which it
        can certify a threshold with probability 0.9.

    Examples
    --------
    >>> from missratio.classifier import required_calibration_rows
    >>> required_calibration_rows(0.05, 0.05)
    59
    >>> required_calibration_rows(0.1, 0.05, phi_max=0.8, rule="paper")
    23966
    """
    check_levels(alpha, delta)
    if not 0.0 <= phi_max < 1.0:
        raise ValueError(f"phi_max must lie in [0, 1), got {phi_max}.")
    chosen = make_rule(rule)
    needed = chosen.least_rows(alpha, delta, 1.0 / (1.0 - phi_max))
    if needed is None or needed > MOST_ROWS:
        raise NoCertificateError(
            f"No number of rows up to {MOST_ROWS:.0e} is enough for rule "
            f"{chosen.name!r} at alpha={alpha}, delta={delta}, phi_max={phi_max}. "
            "Raise alpha or delta, or choose another rule."
        )
    return needed


def rows_like(calibration: Calibration, alpha: float) -> int | None:
    """How many rows like a sample's own would certify a threshold; None if too many.

    The sample is repeated whole, as if so many more rows of the same kind had come.
    """
    sample, rng = calibration.sample, np.random.default_rng(0)

    def passes(further: int) -> bool:
        more = calibration.forecast(sample.repeated(1 + further, rng))
        return bool(sample.n_scored and more.select([alpha])[0].threshold is not None)

    most = min(MOST_TIMES, MOST_REPEATED // max(sample.n_rows, 1))
    further = fewest(passes, most)
    return None if further is None else (1 + further) * sample.n_rows


def infeasible(
    calibration: Calibration, controlled: Any, alpha: float, rule: str
) -> NoCertificateError:
    """Why no threshold can be certified, and what to do."""
    sample, delta = calibration.sample, calibration.delta
    if sample.lookups is not None:
        return _too_few_look_ups(sample, controlled, alpha, delta)
    needed, about = None, ""
    if sample.bound is not None:
        needed = calibration.rule.least_rows(alpha, delta, sample.bound)
    if needed is None or needed <= sample.n_rows:
        needed, about = rows_like(calibration, alpha), "about "
    wants = f"rule {rule!r} needs {about}{needed} or more"
    if needed is None:
        wants = f"rule {rule!r} would need very many more rows like these"
    return NoCertificateError(
        Message(
            "No threshold certifies alpha={alpha:g} at delta={delta:g}: got {rows} "
            "calibration rows of class {label!r} ({observed} observed), and {wants}.",
            label=controlled,
            remedies=(
                Remedy.RAISE_LEVELS,
                "bring more rows of that class",
                Remedy.OTHER_RULE,
                Remedy.REJECT_ALL,
            ),
            facts={
                "alpha": alpha,
                "delta": delta,
                "rows": sample.n_rows,
                "observed": sample.n_observed,
                "wants": wants,
            },
        )
    )


def _too_few_look_ups(
    sample: CalibrationSample, controlled: Any, alpha: float, delta: float
) -> NoCertificateError:
    """The same where incomplete rows were looked up."""
    lookups = sample.lookups
    assert lookups is not None
    incomplete, drawn = int(lookups.incomplete.sum()), int(lookups.drawn.sum())
    needed = fewest_look_ups(sample, alpha, delta)
    wants = "bring more rows of that class"
    if needed is not None and needed > drawn:
        wants = f"look up {needed} of them or more, several times that for power"
    return NoCertificateError(
        Message(
            "No threshold certifies alpha={alpha:g} at delta={delta:g}: of {rows} "
            "calibration rows of class {label!r}, {incomplete} are incomplete and "
            "{drawn} of these were looked up ({lost} not found).",
            label=controlled,
            remedies=(wants, Remedy.RAISE_LEVELS, Remedy.REJECT_ALL),
            facts={
                "alpha": alpha,
                "delta": delta,
                "rows": sample.n_rows,
                "incomplete": incomplete,
                "drawn": drawn,
                "lost": lookups.not_found,
            },
        )
    )


def sorted_scores(other_scores: ArrayLike) -> FloatArray:
    """Scores of the other class, sorted, to measure power with."""
    scores = np.sort(np.asarray(other_scores, dtype=np.float64))
    if len(scores) == 0 or np.isnan(scores[-1]):
        raise ValueError(
            "other_scores must hold the other class's scores, one or more and none of "
            "them NaN: give a row that has no score −∞."
        )
    return scores


def _pilot_scores(scores: ArrayLike) -> FloatArray:
    controlled = np.asarray(scores, dtype=np.float64)
    if controlled.ndim != 1 or not len(controlled):
        raise ValueError(
            "controlled_scores must hold one score or more, in one dimension: got "
            f"shape {controlled.shape}."
        )
    return controlled


def _drawn_sample(
    scores: FloatArray, n_rows: int, phi_max: float, rng: np.random.Generator
) -> CalibrationSample:
    """So many of the scores, each lost with probability phi_max."""
    bound = 1.0 / (1.0 - phi_max)
    weights = np.where(rng.uniform(size=n_rows) < phi_max, 0.0, bound)
    chosen = rng.choice(scores, n_rows)
    return CalibrationSample.build(chosen, weights, bound, random_state=rng)


def expected_power(
    controlled_scores: ArrayLike,
    other_scores: ArrayLike,
    n_rows: int,
    *,
    alpha: float,
    delta: float,
    phi_max: float = 0.0,
    rule: str | Rule = "auto",
    n_draws: int = 200,
    random_state: int | None = 0,
) -> float:
    """The power to expect from n_rows calibration rows, by the scores of a pilot.

    Draws calibration samples from the pilot's scores, loses each row with probability
    phi_max, and averages the share of `other_scores` above the thresholds certified.

    Parameters
    ----------
    controlled_scores, other_scores : array-like of shape (n,)
        Scores of a pilot's rows of either class.
    n_rows : int
        Calibration rows planned for, missing ones included.
    alpha, delta : float
    phi_max : float
        Missing probability.
    rule : str or Rule, default="auto"
    n_draws : int
    random_state : int, optional

    Returns
    -------
    float
        Draws without a certificate count as power 0.

    Examples
    --------
    >>> import numpy as np
    >>> from missratio.classifier import expected_power
    >>> rng = np.random.default_rng(0)
    >>> controlled, other = rng.normal(0, 1, 5000), rng.normal(1.5, 1, 5000)
    >>> power = expected_power(controlled, other, 300, alpha=0.1, delta=0.05)
    >>> round(power, 1)
    0.5
    """
    check_levels(alpha, delta)
    if not 0.0 <= phi_max < 1.0:
        raise ValueError(f"phi_max must lie in [0, 1), got {phi_max}.")
    check_scalar(n_rows, "n_rows", Integral, min_val=0)
    check_scalar(n_draws, "n_draws", Integral, min_val=1)
    controlled, other = _pilot_scores(controlled_scores), sorted_scores(other_scores)
    rng = np.random.default_rng(random_state)
    draw = partial(_drawn_sample, controlled, n_rows, phi_max, rng)
    powers = np.zeros(n_draws)
    for i in range(n_draws):
        chosen = make_rule(rule, training=draw(), complete=phi_max == 0.0)
        threshold = chosen.select(draw(), alpha, delta).threshold
        if threshold is not None:
            powers[i] = (other > threshold).mean()
    return float(powers.mean())
