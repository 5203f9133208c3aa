"""How many calibration rows a certificate needs, and the power to expect of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from missratio.classifier._calibration import check_levels, make_rule, sorted_scores
from missratio.exceptions import Message, NoCertificateError, Remedy
from missratio.threshold import BernsteinRule, CalibrationSample, PaperRule

_MOST_ROWS = 10**9
# With how much certainty the random number of rows that thinning keeps is to suffice.
_THINNING_CERTAINTY = 0.9


def required_calibration_rows(
    alpha: float, delta: float, phi_max: float = 0.0, rule: str = "auto"
) -> int:
    """The smallest number of rows with which a rule can certify any threshold at all.

    With so few rows the threshold is the largest score seen; power needs several times
    as many, see `expected_power`.

    Parameters
    ----------
    alpha, delta : float
    phi_max : float
        ‖φ‖∞, the largest missing probability of the controlled class; 0 where it is
        complete. Rules that use more of φ are planned for φ = phi_max throughout.
    rule : str

    Returns
    -------
    int
        For "thinning", which keeps a random number of rows, so many that it can with
        probability 0.9.

    Examples
    --------
    >>> from missratio import required_calibration_rows
    >>> required_calibration_rows(0.05, 0.05)
    59
    >>> required_calibration_rows(0.1, 0.05, phi_max=0.8, rule="paper")
    23966
    """
    check_levels(alpha, delta)
    if not 0.0 <= phi_max < 1.0:
        raise ValueError(f"phi_max must lie in [0, 1), got {phi_max}.")
    bound = 1.0 / (1.0 - phi_max)
    margins = {"paper": PaperRule(), "bernstein": BernsteinRule()}
    least = math.ceil(math.log(delta) / math.log1p(-alpha))

    def feasible(n_rows: int) -> bool:
        if rule == "thinning" or (rule == "auto" and phi_max > 0.0):
            too_few = binom.cdf(least - 1, n_rows, 1.0 / bound)
            return bool(too_few <= 1.0 - _THINNING_CERTAINTY)
        by_margin = margins.get(rule)
        if by_margin is not None:
            return by_margin.margin(alpha, delta, n_rows / bound) <= alpha
        sample = _typical_sample(n_rows, bound)
        chosen = make_rule(rule, training=sample, complete=phi_max == 0.0)
        rng = np.random.default_rng(0)
        return chosen.select(sample, alpha, delta, rng).threshold is not None

    low, high = 0, least
    while not feasible(high):
        low, high = high, 2 * high
        if high > _MOST_ROWS:
            raise ValueError(
                f"No number of rows up to {_MOST_ROWS:.0e} is enough for rule {rule!r} "
                f"at alpha={alpha}, delta={delta}, phi_max={phi_max}."
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if feasible(middle) else (middle, high)
    return high


def _typical_sample(n_rows: int, bound: float) -> CalibrationSample:
    """Rows of which the expected number is observed, with equal weights."""
    observed = max(1, round(n_rows / bound))
    scores = np.arange(observed, 0, -1, dtype=np.float64)
    return CalibrationSample(scores, np.full(observed, bound), n_rows, bound)


def infeasible(
    sample: CalibrationSample,
    training: CalibrationSample | None,
    controlled: Any,
    alpha: float,
    delta: float,
    rule: str,
) -> NoCertificateError:
    """Why no threshold can be certified, and what to do."""
    bound = sample.bound
    if bound is None:
        # As if φ were everywhere what the heaviest weight seen implies.
        seen = [s.weights.max() for s in (sample, training) if s and s.n_observed]
        bound = max(seen, default=1.0)
    about = "" if sample.bound is not None else "about "
    needed = required_calibration_rows(alpha, delta, 1.0 - 1.0 / bound, rule)
    return NoCertificateError(
        Message(
            "No threshold certifies alpha={alpha:g} at delta={delta:g}: got {rows} "
            "calibration rows of class {label!r} ({observed} observed), and rule "
            "{rule!r} needs {about}{needed} or more.",
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
                "rule": rule,
                "about": about,
                "needed": needed,
            },
        )
    )


def expected_power(
    controlled_scores: ArrayLike,
    other_scores: ArrayLike,
    n_rows: int,
    *,
    alpha: float,
    delta: float,
    phi_max: float = 0.0,
    rule: str = "auto",
    n_draws: int = 200,
    random_state: int | None = 0,
) -> float:
    """The power to expect of n_rows calibration rows, from a pilot's scores.

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
    rule : str
    n_draws : int
    random_state : int, optional

    Returns
    -------
    float
        Draws without a certificate count as power 0.

    Examples
    --------
    >>> import numpy as np
    >>> from missratio import expected_power
    >>> rng = np.random.default_rng(0)
    >>> controlled, other = rng.normal(0, 1, 5000), rng.normal(1.5, 1, 5000)
    >>> power = expected_power(controlled, other, 300, alpha=0.1, delta=0.05)
    >>> round(power, 1)
    0.5
    """
    check_levels(alpha, delta)
    if not 0.0 <= phi_max < 1.0:
        raise ValueError(f"phi_max must lie in [0, 1), got {phi_max}.")
    controlled = np.asarray(controlled_scores, dtype=np.float64)
    other = sorted_scores(other_scores)
    rng = np.random.default_rng(random_state)
    bound = 1.0 / (1.0 - phi_max)

    def draw() -> CalibrationSample:
        lost = rng.uniform(size=n_rows) < phi_max
        weights = np.where(lost, 0.0, bound)
        return CalibrationSample.build(rng.choice(controlled, n_rows), weights, bound)

    powers = np.zeros(n_draws)
    for i in range(n_draws):
        chosen = make_rule(rule, training=draw(), complete=phi_max == 0.0)
        threshold = chosen.select(draw(), alpha, delta, rng).threshold
        if threshold is not None:
            above = len(other) - np.searchsorted(other, threshold, side="right")
            powers[i] = above / len(other)
    return float(powers.mean())
