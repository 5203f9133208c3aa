"""From scored rows of the controlled class to a certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from missratio._base.typing import FloatArray
from missratio.classifier._calibration import Calibration
from missratio.classifier._certificate import Certificate, assumptions
from missratio.classifier._choice import choose_trust
from missratio.classifier._planner import infeasible
from missratio.classifier._promise import Promise
from missratio.classifier._rounding import measure_rounding
from missratio.classifier._trust import ScoredRows
from missratio.classifier._worst import calibrate
from missratio.missingness import Missingness

# Odds that are wrong by more are as good as unknown.
LARGEST_FACTOR = 1024.0
FACTOR_PRECISION = 1e-3


def certify(
    promise: Promise,
    rows: ScoredRows,
    training: ScoredRows | None,
    other: Callable[[], ScoredRows] | None,
    model: Missingness | None,
    score: Callable[[Any], FloatArray],
) -> tuple[Certificate, Calibration]:
    """Choose a threshold and say what it guarantees.

    Parameters
    ----------
    promise : Promise
    rows : ScoredRows
        Calibration rows, of the controlled class.
    training : ScoredRows or None
        Rows of the controlled class that take no part in calibration, to prepare
        the rule with.
    other : callable or None
        Gives rows of the other class, where a cap has to be chosen by them.
    model : Missingness or None
        Why rows are missing; None where none can be.
    score : callable
        Gives the scores of rows, to see how they are rounded.
    """
    delta = promise.delta - promise.missingness_part(model)
    trust, how = choose_trust(promise, model, training, other, len(rows.scores))
    calibration = calibrate(promise, trust, how, rows, training, delta)
    sample, rule = calibration.sample, calibration.rule
    name, threshold, error_bound, factor = rule.name, None, 0.0, None
    if sample.n_observed:
        chosen = calibration.select([promise.alpha])[0]
        name, threshold = chosen.rule, chosen.threshold
        if threshold is not None:
            rounding = measure_rounding(score, rows.rows, rows.scores, threshold)
            calibration = replace(calibration, rounding=rounding)
            threshold = rounding.moved(threshold)
            error_bound = chosen.error_bound
            slack = [
                _sensitivity(promise, rows, each, threshold)
                for each in (calibration, *calibration.others)
            ]
            factor = min((each for each in slack if each is not None), default=None)
    if threshold is None and promise.on_infeasible == "raise":
        raise infeasible(calibration, promise.controlled, promise.alpha, name)
    certificate = replace(_nothing_certified(promise, calibration, model), rule=name)
    if threshold is not None:
        certificate = replace(
            certificate,
            threshold=threshold,
            estimated_error=sample.estimated_error(threshold),
            error_bound=error_bound,
            certified=True,
            sensitivity=factor,
            target_factor=_target_factor(promise, rows, calibration, threshold),
        )
    return certificate, calibration


def _nothing_certified(
    promise: Promise, calibration: Calibration, model: Missingness | None
) -> Certificate:
    """The certificate of a classifier that gives all to the controlled class."""
    sample, lookups = calibration.sample, calibration.sample.lookups
    return Certificate(
        alpha=promise.alpha,
        delta=promise.delta,
        rule=calibration.rule.name,
        controlled_class=promise.controlled,
        other_class=promise.other,
        deployment=promise.deployment,
        rows=sample.n_rows,
        observed=sample.n_known,
        effective_rows=sample.effective_rows,
        threshold=np.inf,
        estimated_error=0.0,
        error_bound=0.0,
        certified=False,
        assumptions=assumptions(
            promise.controlled,
            promise.deployment,
            model,
            promise.odds_factor,
            calibration.trust.cap,
            looked_up=lookups is not None,
            target=promise.target,
        ),
        target_rows=None if promise.target is None else promise.target.rows,
        missingness_delta=promise.missingness_part(model),
        looked_up=0 if lookups is None else int(lookups.drawn.sum()),
        not_found=0 if lookups is None else lookups.not_found,
    )


def _sensitivity(
    promise: Promise, rows: ScoredRows, calibration: Calibration, threshold: float
) -> float | None:
    """By what factor the odds of being missing, as calibrated with, may be wrong.

    The largest Γ at which the rule, with weights between those of odds/Γ and of
    odds·Γ, would have chosen this threshold or a smaller one.
    """
    trust = calibration.trust
    if trust.model is None or trust.target is not None:
        return None
    assert trust.phi is not None
    scores = trust.score(rows)
    # Sorted once, so that the sample of every factor need not be.
    order = np.argsort(-scores)
    probability = trust.phi.missing_probability(rows.rows)[order]
    assert rows.draws is not None
    draws = rows.draws[order]
    reached = replace(rows, scores=scores[order], draws=draws, probability=probability)

    def holds(factor: float) -> bool:
        widened = calibration.forecast(reached.sample(trust.widened(factor)))
        chosen = widened.select([promise.alpha])[0].threshold
        return chosen is not None and chosen <= threshold

    return largest_factor(holds, promise.odds_factor)


def _target_factor(
    promise: Promise, rows: ScoredRows, calibration: Calibration, threshold: float
) -> float | None:
    """By what factor the target's density ratio may be wrong, either way."""
    trust, target = calibration.trust, calibration.trust.target
    if target is None or trust.cap is None:
        return None
    cap, start = trust.cap, target.factor

    def holds(factor: float) -> bool:
        wider = replace(
            trust, target=replace(target, factor=factor), cap=cap * factor / start
        )
        widened = replace(calibration, sample=rows.sample(wider))
        chosen = widened.select([promise.alpha])[0].threshold
        return chosen is not None and chosen <= threshold

    return largest_factor(holds, start)


def largest_factor(holds: Callable[[float], bool], start: float = 1.0) -> float:
    """The largest factor up to which a claim holds; infinite beyond 1024.

    Parameters
    ----------
    holds : callable
    start : float
        A factor at which it is known to.
    """
    low, high = start, 2.0 * start
    while holds(high):
        low, high = high, 2.0 * high
        if low >= LARGEST_FACTOR:
            return np.inf
    while high - low > FACTOR_PRECISION * low:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
