"""How large an error may be at a threshold that was chosen by other rows."""

from __future__ import annotations

from missratio.threshold import CalibrationSample, Rule

PRECISION = 1e-4


def error_bound_at(
    sample: CalibrationSample, rule: Rule, threshold: float, delta: float
) -> float:
    """An upper bound on P(score > threshold) that holds with probability 1 − δ.

    By inverting a rule: the least level at which it certifies this threshold. A rule
    that is wrong with probability δ at the true error is wrong here with no more.

    Parameters
    ----------
    sample : CalibrationSample
        Rows that had no part in the choice of the threshold.
    rule : Rule
        Fixed before their scores were seen, and monotone in the level.
    """

    def certifies(level: float) -> bool:
        chosen = rule.select(sample, level, delta).threshold
        return chosen is not None and chosen <= threshold

    low, high = 0.0, 1.0 - PRECISION
    if not sample.n_observed or not certifies(high):
        return 1.0
    while high - low > PRECISION:
        middle = (low + high) / 2.0
        low, high = (low, middle) if certifies(middle) else (middle, high)
    return high
