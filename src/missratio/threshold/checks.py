"""Does a rule of your own keep its promise? Tried out on rows whose law is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import binom

from missratio._base.typing import FloatArray
from missratio.threshold.auto import check_levels, make_rule
from missratio.threshold.rules import Rule, Selection
from missratio.threshold.sample import CalibrationSample

# φ as a function of a uniform score, and the largest that it is.
LOSSES: dict[str, tuple[Callable[[FloatArray], Any], float]] = {
    "nothing is missing": (lambda score: 0.0 * score, 0.0),
    "rows are missing alike": (lambda score: 0.0 * score + 0.5, 0.5),
    "high scores are missing": (lambda score: 0.8 * (score > 0.5), 0.8),
    "low scores are missing": (lambda score: 0.7 * expit(3.0 - 6.0 * score), 0.7),
}


def check_rule(
    rule: str | Rule,
    *,
    alpha: float = 0.1,
    delta: float = 0.1,
    n_rows: int = 200,
    repeats: int = 300,
    random_state: int = 0,
) -> dict[str, float]:
    """Try a threshold rule out: whether it keeps its level, and is monotone.

    Scores are uniform, so that the error of a threshold is known. Some go missing, with
    a known φ, and half of the samples have ties.

    Parameters
    ----------
    rule : str or Rule
        A rule of your own, or the name of one.
    alpha, delta : float
        The bound on the error, and how often it may be exceeded.
    n_rows, repeats : int
        Calibration rows, and how many samples of them are drawn for each φ.
    random_state : int

    Returns
    -------
    dict
        By what is missing, the share of samples in which the promise was broken. What
        the rule refuses by a ValueError is left out.

    Raises
    ------
    TypeError
        Where it is no rule, or chooses something else than a `Selection`.
    ValueError
        Where it breaks its promise more often than δ allows, where its threshold
        depends on the rows' order, or falls when scores rise.

    Examples
    --------
    >>> from missratio.threshold import check_rule
    >>> max(check_rule("counting", repeats=100).values()) < 0.2
    True
    """
    check_levels(alpha, delta)
    rng = np.random.default_rng(random_state)
    make_rule(rule)
    name = rule if isinstance(rule, str) else type(rule).__name__

    def draw(what: str, steps: int | None) -> CalibrationSample:
        phi, most = LOSSES[what]
        scores = rng.uniform(size=n_rows)
        scores = scores if steps is None else np.ceil(steps * scores) / steps
        weights = (rng.uniform(size=n_rows) >= phi(scores)) / (1.0 - phi(scores))
        bound = 1.0 / (1.0 - most)
        return CalibrationSample.build(scores, weights, bound, random_state=rng)

    def choose(ready: Rule, sample: CalibrationSample) -> float:
        chosen = ready.select(sample, alpha, delta)
        if not isinstance(chosen, Selection):
            raise TypeError(
                f"{name}.select must return a Selection(threshold, rule, error_bound): "
                f"got {type(chosen).__name__}."
            )
        return math.inf if chosen.threshold is None else float(chosen.threshold)

    broken = dict[str, float]()
    for what in LOSSES:
        wrong, complaints = 0, set[str]()
        try:
            for repeat in range(repeats):
                # Half of the time scores lie on a grid of 40 steps, so that they tie.
                steps = 40 if repeat % 2 else None
                sample, training = draw(what, steps), draw(what, steps)
                complete = sample.bound == 1.0
                ready = make_rule(rule, training=training, complete=complete)
                threshold = choose(ready, sample)
                # 1. The error of the threshold, by the law of the scores.
                below = min(max(threshold, 0.0), 1.0)
                if steps is not None:
                    below = math.floor(steps * below + 1e-9) / steps
                wrong += 1.0 - below > alpha + 1e-9
                # 2. The same rows in another order, and some of them higher.
                order = rng.permutation(sample.n_observed)
                names = ("values", "masses", "draws")
                columns = {column: getattr(sample, column)[order] for column in names}
                if choose(ready, replace(sample, **columns)) != threshold:
                    complaints.add("depends on the order of rows")
                some = rng.uniform(size=sample.n_observed) < 0.2
                higher = replace(sample, values=np.where(some, 1.0, sample.values))
                if choose(ready, higher) < threshold:
                    complaints.add("falls when some scores rise")
        except ValueError:
            # It doesn't serve such rows, as the binomial rule doesn't.
            continue
        if complaints:
            raise ValueError(
                f"{name} is not monotone where {what}: its threshold "
                f"{' and '.join(sorted(complaints))}. A rule tests each threshold "
                "alone, and takes the smallest that passes."
            )
        broken[what] = wrong / repeats
        # A rule that keeps its level breaks so many promises once in 10,000 tries.
        if binom.sf(wrong - 1, repeats, delta) < 1e-4:
            raise ValueError(
                f"{name} breaks its promise: where {what}, the error was above "
                f"alpha={alpha:g} in {wrong / repeats:.0%} of {repeats} samples of "
                f"{n_rows} rows, and delta={delta:g} allows {delta:.0%}. Does it weigh "
                "rows, count those that tie with a threshold as above a lower one, and "
                "spend delta once?"
            )
    if not broken:
        raise ValueError(
            f"{name} refuses rows of every kind, complete ones as well: there is "
            "nothing to check. Call its select on a CalibrationSample to see why."
        )
    return broken
