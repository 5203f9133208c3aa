"""How weights are taken and by which rule: what promises most power.

Judged by training rows alone, so before any calibration row is seen: caps on the
weights, for a learned φ by a few of those that it may be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np

from missratio.classifier._promise import Promise
from missratio.classifier._trust import ScoredRows, Trust
from missratio.classifier._worst import calibrate, is_searched
from missratio.missingness import Missingness
from missratio.threshold import Rule, make_rule

# Which shares of the observed training rows a cap may leave.
CAP_LEVELS = (0.25, 0.5, 0.75, 0.9, 0.98, 1.0)
# Of the φ that a learned model leaves possible, caps are compared by every so many.
COARSE = 4
TIE = 1e-6
# Rules that can tell what they should certify, so that caps can be judged by it.
JUDGED = ("auto", "thinning", "counting", "tuned-betting")
# Of these, the ones whose forecast needs no training rows.
DRAWING = ("thinning", "counting")
# The share of calibration rows that choose a cap where no others can, how much smaller
# the root of the error has to be without one for that, and what a cap has to promise.
PILOT = 0.2
FEWEST_PILOTS = 10
WORTHWHILE = 0.7
CLEARLY = 0.05


def choose_trust(
    promise: Promise,
    model: Missingness | None,
    training: ScoredRows | None,
    other: Callable[[], ScoredRows] | None,
    n_rows: int,
) -> tuple[Trust, str | Rule]:
    """What the weights are taken for, and the rule.

    Parameters
    ----------
    promise : Promise
    model : Missingness or None
    training : ScoredRows or None
        Rows of the controlled class that take no part in calibration.
    other : callable or None
        Gives rows of the other class, to be told from these. None takes the training
        rows for them, tilted by their scores, and a cap that promises clearly more.
    n_rows : int
        Calibration rows to come.
    """
    delta = promise.missingness_part(model) or None
    trust = Trust(model, delta, promise.odds_factor, target=promise.target)
    if training is None or (model is None and promise.target is None):
        return trust, promise.rule
    how = promise.rule if promise.target is None else promise.target_rule()
    several = other is not None or (how in JUDGED and not is_searched(trust))
    rules = [how]
    if several and how == "auto" and is_searched(trust):
        # One rule for all φ: each φ alone would choose as if it were the true one.
        rules = ["counting", "tuned-betting"]
    choices = [
        choice
        for rule in rules
        for choice in _capped(promise, trust, rule, training, several)
    ]
    if is_searched(trust):
        # Without a bound the one bet is on the level of φ, which φ at the edge of the
        # region have wrong.
        width = training.rows.shape[1]
        choices = [c for c in choices if c[0].bound(width)] or choices
    if not several or len(choices) == 1:
        return choices[0]
    detected, left = None if other is None else other(), promise.delta - (delta or 0.0)
    promised = np.array(
        [
            _promised_power(promise, *choice, training, detected, n_rows, left)
            for choice in choices
        ]
    )
    if other is None:
        promised[0] += CLEARLY
    return choices[int(np.argmax(promised))]


def cap_may_pay(
    promise: Promise, model: Missingness | None, n_rows: int, n_columns: int
) -> bool:
    """Whether a cap may be worth the calibration rows that have to choose it.

    By φ, the number of rows and the levels alone: no row is looked at.
    """
    if model is None or promise.rule not in ("auto", *DRAWING):
        return False
    if round(PILOT * n_rows) < FEWEST_PILOTS:
        return False
    part = promise.missingness_part(model)
    trust, left = Trust(model, part or None, promise.odds_factor), promise.delta - part
    bound = trust.bound(n_columns)
    if is_searched(trust) or bound is None:
        return not is_searched(trust)
    rule, rest = make_rule(promise.rule), n_rows - round(PILOT * n_rows)
    now, best = (
        rule.expected_root(rows, most, promise.alpha, left) or 0.0
        for rows, most in ((n_rows, bound), (rest, 1.0))
    )
    return now < WORTHWHILE * best


def choose_cap(
    promise: Promise,
    model: Missingness,
    training: ScoredRows,
    other: ScoredRows,
    n_rows: int,
) -> Trust | None:
    """The cap that promises most power, where it has to be known beforehand.

    Parameters
    ----------
    promise : Promise
    model : Missingness
    training : ScoredRows
        Rows of the controlled class that take no part in calibration.
    other : ScoredRows
        Rows of other classes, to be told from these.
    n_rows : int
        Calibration rows to come.

    Returns
    -------
    Trust or None
        With its cap; None where no cap does better.
    """
    part = promise.missingness_part(model)
    trust = Trust(model, part or None, promise.odds_factor)
    if not trust.weights(training.rows).any():
        return None
    choices = _capped(promise, trust, promise.rule, training, several=True)
    promised = [
        _promised_power(promise, *each, training, other, n_rows, promise.delta - part)
        for each in choices
    ]
    best = choices[int(np.argmax(promised))][0]
    return None if best.cap is None else best


def expected_error(
    promise: Promise, model: Missingness, training: ScoredRows, n_rows: int
) -> Callable[[float], float] | None:
    """The error that should be certified at a level; None if the rule can't tell.

    Parameters
    ----------
    promise : Promise
    model : Missingness
    training : ScoredRows
        Rows of the controlled class that take no part in calibration.
    n_rows : int
        Calibration rows to come.
    """
    part = promise.missingness_part(model)
    trust = Trust(model, part or None, promise.odds_factor, promise.cap)
    sample = training.sample(trust)
    if not sample.n_observed:
        return None
    rule, left = (
        promise.resolve_rule(promise.rule, trust, training),
        promise.delta - part,
    )

    @cache
    def error(level: float) -> float:
        root = rule.expected_root(n_rows, sample.bound, level, left)
        return max(root or 0.0, 0.0) ** 2

    return (
        None
        if rule.expected_root(n_rows, sample.bound, promise.alpha, left) is None
        else error
    )


def _capped(
    promise: Promise,
    trust: Trust,
    rule: str | Rule,
    training: ScoredRows,
    several: bool,
) -> list[tuple[Trust, str | Rule]]:
    """The same with caps on the weights, or without; the mildest of them first."""
    if promise.cap is not None:
        return [(replace(trust, cap=promise.cap), rule)]
    uses = make_rule(rule).bound
    known = trust.bound(training.rows.shape[1])
    heaviest = trust.edges(training.rows)[1]
    heaviest = heaviest[heaviest > 0.0]
    if uses == "unused" or not len(heaviest) or not promise.caps:
        return [(trust, rule)]
    caps = np.unique(np.quantile(heaviest, CAP_LEVELS))[::-1]
    if known is not None:
        caps = caps[caps < known] if uses != "given" else caps[:0]
    capped = [(replace(trust, cap=cap), rule) for cap in caps.tolist()]
    if capped and not several:
        # Nobody can say what it costs to give rows up: only where there's no bound.
        return capped[:1] if known is None else [(trust, rule)]
    if capped and known is None and uses != "used":
        return capped
    return [(trust, rule), *capped]


def _promised_power(
    promise: Promise,
    trust: Trust,
    how: str | Rule,
    training: ScoredRows,
    other: ScoredRows | None,
    n_rows: int,
    delta: float,
) -> float:
    """The power that training rows promise.

    At the error that so many calibration rows should certify, no certificate being no
    power: for rules that draw, this is exact. For others it is averaged with the power
    at the threshold that the training rows themselves certify, as it is where every φ
    that a model leaves possible has a say.
    """
    plain = replace(training, coin=1.0)
    likely = calibrate(promise, trust, how, plain, plain, delta, COARSE)
    sample, rule = likely.sample, likely.rule
    root = rule.expected_root(n_rows, sample.bound, promise.alpha, delta)
    if other is None:
        return _tilted_power(training, trust, max(root or 0.0, 0.0) ** 2)
    scores, powers = trust.score(other), []
    if root is not None:
        possible = root > 0.0 and sample.n_scored
        expected = sample.threshold(sample.tail_of(root**2)) if possible else np.inf
        powers.append(float(np.mean(scores > expected)))
    found = likely.select([promise.alpha])[0]
    if root is None or is_searched(trust) or found.rule not in DRAWING:
        own = found.threshold
        powers.append(-1.0 if own is None else float(np.mean(scores > own)))
    # Of caps that promise the same power, the one that certifies the larger error.
    return float(np.mean(powers)) + TIE * (root or 0.0)


def _tilted_power(training: ScoredRows, trust: Trust, error: float) -> float:
    """The power at an error, if the other class were this one tilted by exp(score).

    It is, where scores are log-ratios. Between rows the curve is taken to be straight.
    """
    weights, scores = trust.weights(training.rows), trust.score(training)
    known = (weights > 0.0) & np.isfinite(training.scores)
    if not known.any():
        return 0.0
    tilt = np.exp(training.scores[known] - training.scores[known].max())
    tilt *= weights[known]
    order = np.argsort(-scores[known])
    reached = order[scores[known][order] > -np.inf]
    errors = np.cumsum(weights[known][reached]) / weights[known].sum()
    powers = np.cumsum(tilt[reached]) / tilt.sum()
    return float(np.interp(error, np.append(0.0, errors), np.append(0.0, powers)))
