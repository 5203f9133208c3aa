"""From scored rows of the controlled class to a certificate.

Every φ that a learned model's evidence leaves possible calibrates by itself.

The true φ is fixed, and with probability 1 − δ_φ it lies in the confidence region of
what was learned. Each φ of the region weighs the calibration rows and chooses a
threshold of its own, by a rule fixed beforehand; the largest of these thresholds is
taken. If the true φ is among them, the error at the threshold that it chose is at most
α but for the rule's part of δ, and a larger threshold has a smaller error. Nothing is
paid for looking at many φ, since only one of them is true.

All of them count the same rows: those within reach of a cap on the largest weight that
any φ of the region gives. A single φ that is the worst before the cap may be the
mildest after it: the steepest one gives its weight to the farthest rows, and these are
the ones out of reach.

A region is given by points on its boundary, column by column. Where one column loses
values, every point is tried. Where several do, the search begins at the worst of some φ
drawn from the region, and tries each column's points in turn, the others being the
worst that were found, twice over.

Caps on the weights, and the rule, are what promises most power. Training rows alone
judge that, so it is decided before any calibration row is seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from missratio._base.reading import as_numeric_array
from missratio._base.typing import FloatArray
from missratio.classifier.certificate import Certificate, assumptions, tested
from missratio.classifier.estimators import measure_rounding
from missratio.classifier.promise import (
    Calibration,
    Promise,
    Trust,
    Weighted,
    demanded,
)
from missratio.exceptions import Message, NoCertificateError, Remedy
from missratio.learning import LearnedMissingness
from missratio.missingness import (
    LogisticMissingness,
    Missingness,
    missingness_check,
    refuse_contradiction,
)
from missratio.ratio import check_choice
from missratio.threshold import (
    Rule,
    TargetRule,
    fewest,
    fewest_look_ups,
    make_rule,
)

Score = Callable[[Any], FloatArray]

# Odds that are wrong by more are as good as unknown.
LARGEST_FACTOR = 1024.0
FACTOR_PRECISION = 1e-3


def certify(
    promise: Promise,
    model: Missingness | None,
    rows: Weighted,
    training: Weighted | None,
    other: Weighted | None,
    score: Score,
    rng: np.random.Generator,
) -> tuple[Certificate, Calibration]:
    """Choose the threshold above which a row of a class is wrong, and what that keeps.

    Parameters
    ----------
    promise : Promise
    model : Missingness or None
        Why rows of the class are missing; None where none can be, or it was drawn which
        of them are there.
    rows : Weighted
        Calibration rows, of the class. Weights are found here, for all rows.
    training : Weighted or None
        Rows of the class that take no part in calibration, to prepare the rule with.
    other : Weighted or None
        Rows of the other class, to choose a cap by.
    score : callable
        Gives the scores of rows, to see how they are rounded.
    rng : Generator
        For rules that draw.
    """
    # 1. Whether rows contradict φ.
    checks: Any = ()
    if model is not None:
        if len(rows.scores):
            # A group may have no row at all.
            checks = missingness_check(
                rows.X, model, complete=True, odds_factor=promise.odds_factor
            )
        tests = getattr(model, "checks", ())
        refuse_contradiction(checks, promise.label, tests, promise.odds_factor)
        draws = rng.uniform(size=len(rows.scores))
        rows = replace(rows, draws=draws, coin=float(rng.uniform()))
    if promise.target is not None:
        promise.target.check(rows.X, "calibration")
    # 2. Weights, and by training rows what promises most power.
    trust, delta = promise.trust(model), promise.delta - promise.missingness_part(model)
    rows = rows.weighed(trust)
    known = None
    if training is not None and (model is not None or promise.target is not None):
        known = training.weighed(trust)
    trust, how = choose_trust(promise, trust, known, other, len(rows.scores))
    calibration = calibrate(promise.alpha, trust, how, rows, known, delta)
    # 3. The threshold, and how much more it would hold for.
    sample, name = calibration.sample, calibration.rule.name
    threshold, facts = np.inf, dict[str, Any]()
    if sample.n_observed:
        chosen = calibration.select([promise.alpha])[0]
        name = chosen.rule
        if chosen.threshold is not None:
            rounding = measure_rounding(score, rows.X, rows.scores, chosen.threshold)
            calibration = replace(calibration, rounding=rounding)
            threshold = rounding.moved(chosen.threshold)
            slack = [
                _sensitivity(promise, rows, each, threshold)
                for each in (calibration, *calibration.others)
            ]
            facts = {
                "certified": True,
                "threshold": threshold,
                "estimated_error": sample.estimated_error(threshold),
                "error_bound": chosen.error_bound,
                "sensitivity": min((x for x in slack if x is not None), default=None),
                "target_factor": _target_factor(promise, rows, calibration, threshold),
            }
    if not facts and promise.on_infeasible == "raise":
        raise infeasible(promise, calibration, name)
    # 4. The certificate; without a threshold all rows get the controlled class.
    lookups, target = sample.lookups, promise.target
    certificate = Certificate(
        alpha=promise.alpha,
        delta=promise.delta,
        rule=name,
        controlled_class=promise.label,
        other_class=promise.wrong,
        deployment=promise.deployment,
        rows=sample.n_rows,
        observed=sample.n_known,
        effective_rows=sample.effective_rows,
        threshold=threshold,
        estimated_error=0.0,
        error_bound=0.0,
        certified=False,
        assumptions=assumptions(promise, model, trust.cap, lookups is not None),
        checks=tested(model, checks),
        target_rows=None if target is None else target.rows,
        missingness_delta=promise.missingness_part(model),
        looked_up=0 if lookups is None else int(lookups.drawn.sum()),
        not_found=0 if lookups is None else lookups.not_found,
    )
    return replace(certificate, **facts), calibration


def _sensitivity(
    promise: Promise, rows: Weighted, calibration: Calibration, threshold: float
) -> float | None:
    """By what factor the odds of being missing, as calibrated with, may be wrong.

    The largest Γ at which the rule, with weights between those of odds/Γ and of
    odds·Γ, would have chosen this threshold or a smaller one.
    """
    trust = calibration.trust
    if trust.model is None or trust.target is not None:
        return None
    reached = rows.at(trust)
    if trust.point is None:
        assert rows.high is not None
        reached = replace(rows, scores=trust.apply(rows.scores, rows.high))
    # Sorted once, so that the sample of every factor need not be.
    reached = reached.taken(np.argsort(-reached.scores))

    def holds(factor: float) -> bool:
        sample = reached.widened(factor).sample(trust.widened(factor))
        return calibration.forecast(sample).threshold(promise.alpha) <= threshold

    return largest_factor(holds, promise.odds_factor)


def _target_factor(
    promise: Promise, rows: Weighted, calibration: Calibration, threshold: float
) -> float | None:
    """By what factor the target's density ratio may be wrong, either way."""
    trust, target = calibration.trust, promise.target
    if target is None or trust.cap is None:
        return None
    cap, low, high = trust.cap, rows.low, rows.high
    assert low is not None
    assert high is not None

    def holds(factor: float) -> bool:
        more = factor / target.factor
        wider = replace(trust, target=replace(target, factor=factor), cap=cap * more)
        sample = replace(rows, low=low / more, high=high * more).sample(wider)
        widened = replace(calibration, sample=sample)
        return widened.threshold(promise.alpha) <= threshold

    return largest_factor(holds, target.factor)


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


# Rows that may be tried out by repeating a sample, and how often it may be.
MOST_REPEATED, MOST_TIMES = 200_000, 64
MORE_ROWS = "bring more rows of that class"


def refuse_too_few_rows(
    promise: Promise, model: Missingness | None, n_rows: int, n_columns: int
) -> None:
    """Refuse a level that so few rows can't certify, whatever their scores."""
    bound: float | None = 1.0
    if model is not None:
        bound = model.weight_bound(n_columns, promise.odds_factor)
    rule, needed = make_rule(promise.rule, complete=model is None), None
    if bound is not None:
        needed = rule.least_rows(promise.alpha, promise.delta, bound)
    if needed is not None and needed > n_rows:
        raise _no_certificate(
            "alpha={alpha:g} for class {label!r} can't be certified at its part "
            "{delta:.3g} of delta: {rows} rows would calibrate, and rule {rule!r} "
            "needs {needed} or more.",
            promise,
            (Remedy.RAISE_LEVELS, MORE_ROWS, Remedy.CALIBRATE_MORE, *promise.remedies),
            delta=promise.delta,
            rows=n_rows,
            rule=rule.name,
            needed=needed,
        )


def infeasible(
    promise: Promise, calibration: Calibration, rule: str
) -> NoCertificateError:
    """Why no threshold can be certified, and what to do."""
    sample, delta = calibration.sample, calibration.delta
    lookups = sample.lookups
    no_threshold = "No threshold certifies alpha={alpha:g} at delta={delta:g}: "
    if lookups is not None:
        drawn = int(lookups.drawn.sum())
        needed, wants = fewest_look_ups(sample, promise.alpha, delta), MORE_ROWS
        if needed is not None and needed > drawn:
            wants = f"look up {needed} of them or more, several times that for power"
        return _no_certificate(
            no_threshold + "of {rows} calibration rows of class {label!r}, "
            "{incomplete} are incomplete and {drawn} of these were looked up ({lost} "
            "not found).",
            promise,
            (wants, Remedy.RAISE_LEVELS, *promise.remedies),
            delta=delta,
            rows=sample.n_rows,
            incomplete=int(lookups.incomplete.sum()),
            drawn=drawn,
            lost=lookups.not_found,
        )
    needed, about = None, ""
    if sample.bound is not None:
        needed = calibration.rule.least_rows(promise.alpha, delta, sample.bound)
    if needed is None or needed <= sample.n_rows:
        needed, about = _rows_like(calibration, promise.alpha), "about "
    wants = f"rule {rule!r} needs {about}{needed} or more"
    if needed is None:
        wants = f"rule {rule!r} would need very many more rows like these"
    return _no_certificate(
        no_threshold + "got {rows} calibration rows of class {label!r} ({observed} "
        "observed), and {wants}.",
        promise,
        (Remedy.RAISE_LEVELS, MORE_ROWS, Remedy.OTHER_RULE, *promise.remedies),
        delta=delta,
        rows=sample.n_rows,
        observed=sample.n_observed,
        wants=wants,
    )


def _no_certificate(
    claim: str, promise: Promise, remedies: tuple[str, ...], **facts: Any
) -> NoCertificateError:
    """What can't be promised; about a group where the promise is."""
    if promise.group is not None:
        claim = "Group {group!r}: " + claim
    facts = {**facts, "alpha": promise.alpha, "group": promise.group}
    return NoCertificateError(
        Message(claim, label=promise.label, remedies=remedies, facts=facts)
    )


def _rows_like(calibration: Calibration, alpha: float) -> int | None:
    """How many rows like a sample's own would certify a threshold; None if too many.

    The sample is repeated whole, as if so many more rows of the same kind had come.
    """
    sample, rng = calibration.sample, np.random.default_rng(0)

    def passes(further: int) -> bool:
        more = calibration.forecast(sample.repeated(1 + further, rng))
        return bool(sample.n_scored and more.threshold(alpha) < np.inf)

    most = min(MOST_TIMES, MOST_REPEATED // max(sample.n_rows, 1))
    further = fewest(passes, most)
    return None if further is None else (1 + further) * sample.n_rows


# Columns that lose values beyond which the band stands for the region.
MOST_COLUMNS = 8
STARTS = 32
# Of a region's points the first sweep tries every so many.
FIRST = 4
# Levels, as multiples of α, at which the φ that asks most is kept.
LEVELS = (1.0, 0.25, 0.5, 2.0, 4.0)
# Log-odds beyond which φ is as good as 1: a row observed there refutes it.
MOST = 34.0


def calibrate(
    alpha: float,
    trust: Trust,
    rule: str | Rule,
    rows: Weighted,
    training: Weighted | None,
    delta: float,
    step: int = 1,
) -> Calibration:
    """What a threshold is chosen from: of a learned φ, all that it may be.

    Of all φ of a region it is the calibration under the one that asks for the largest
    threshold at α. Those that ask most at some other levels are kept beside it.

    Parameters
    ----------
    alpha : float
    trust : Trust
    rule : str or Rule
    rows, training : Weighted
        Calibration rows, and rows that prepare the rule.
    delta : float
        The rule's part of δ.
    step : int, default=1
        1 tries all points of a region, as a certificate has to; a larger number takes
        every so many, for a forecast.
    """
    if not is_searched(trust):
        return Calibration.under(trust, rule, delta, rows, training)
    model = trust.model
    assert isinstance(model, LearnedMissingness)
    assert trust.delta is not None
    tables = [rows.X] if training is None else [rows.X, training.X]
    regions = [points[::step] for points in _possible(model, trust.delta, tables)]
    lossy = [j for j, points in enumerate(regions) if len(points)]
    coef = np.atleast_1d(np.asarray(model.coef, dtype=np.float64))
    worst = np.stack([np.broadcast_to(model.intercept, coef.shape), coef])
    levels = [times * alpha for times in LEVELS if times * alpha < 1.0]
    levels = levels if step == 1 else levels[:1]

    def under(phi: Missingness) -> tuple[Calibration, list[float]]:
        tried = Calibration.under(
            replace(trust, point=phi), rule, delta, rows, training
        )
        return tried, [demanded(each.threshold) for each in tried.select(levels)]

    def search(candidates: list[FloatArray]) -> None:
        """Try intercepts and slopes of all columns; note those that ask most."""
        nonlocal worst
        found = []
        for intercept, slopes in candidates:
            first = intercept[0] if model.rowwise else intercept
            phi = LogisticMissingness(first, slopes, rowwise=model.rowwise)
            found.append(under(phi))
        tried.extend(found)
        worst = candidates[int(np.argmax([thresholds[0] for _, thresholds in found]))]

    def moved(points: dict[int, FloatArray]) -> FloatArray:
        """The worst, but for some columns."""
        candidate = worst.copy()
        for j, point in points.items():
            candidate[:, j] = point[:2]
        return candidate

    tried = [under(model.as_known())]
    sweeps = [1]
    if len(lossy) > 1:
        sweeps = [FIRST, 1]
        # What is worst of one column depends on the others: the search begins at the
        # worst of some φ drawn from the region.
        draw = np.random.default_rng(0).random((STARTS if step == 1 else 0, len(lossy)))
        starts = [
            moved(
                {
                    j: regions[j][int(share * len(regions[j]))]
                    for j, share in zip(lossy, shares, strict=True)
                }
            )
            for shares in draw
        ]
        search([worst, *starts])
    for every in sweeps:
        for j in lossy:
            search([moved({j: point}) for point in regions[j][::every]])
    demands = np.array([thresholds for _, thresholds in tried])
    most: list[int] = np.argmax(demands, axis=0).tolist()
    others = tuple(tried[at][0] for at in dict.fromkeys(most) if at != most[0])
    return replace(tried[most[0]][0], others=others)


def is_searched(trust: Trust) -> bool:
    """Whether every φ of a region calibrates, instead of a band round them.

    A φ of whole rows in several columns has a region of too many dimensions.
    """
    model = trust.model
    if not isinstance(model, LearnedMissingness) or trust.delta is None:
        return False
    if trust.target is not None or (model.rowwise and np.size(model.coef) > 1):
        return False
    return sum(each is not None for each in model.evidence) <= MOST_COLUMNS


def _possible(
    model: LearnedMissingness, delta: float, rows: list[Any]
) -> list[FloatArray]:
    """Points (intercept, slope) of each column's region; none where nothing is lost.

    A φ that gives an observed row no chance is refuted by it. In its place comes the
    one on the way from the estimate at which the row is just possible.
    """
    tables = [as_numeric_array(X).astype(np.float64) for X in rows]
    estimate = np.stack(np.broadcast_arrays(model.intercept, model.coef), axis=-1)
    possible = []
    for j, points in enumerate(model.region(delta)):
        if not np.isfinite(points).all():
            possible.append(points[:0])
            continue
        ends = [
            end.reduce(table[:, j], initial=np.nan)
            for table in tables
            for end in (np.fmin, np.fmax)
        ]
        design = np.stack([np.ones(len(ends)), ends])
        centre = np.atleast_2d(estimate)[j]
        start, away = centre @ design, (points[:, :2] - centre) @ design
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(start + away > MOST, (MOST - start) / away, 1.0)
        share = np.clip(share.min(axis=1, keepdims=True), 0.0, 1.0)
        possible.append(centre + share * (points[:, :2] - centre))
    return possible


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
    trust: Trust,
    training: Weighted | None,
    other: Weighted | None,
    n_rows: int,
) -> tuple[Trust, str | Rule]:
    """What the weights are taken for, and the rule.

    Parameters
    ----------
    promise : Promise
    trust : Trust
    training : Weighted or None
        Weighed rows of the controlled class that take no part in calibration.
    other : Weighted or None
        Rows of the other class, to be told from these. None takes the training rows for
        them, tilted by their scores, and a cap that promises clearly more.
    n_rows : int
        Calibration rows to come.
    """
    if training is None:
        return trust, promise.rule
    how, searched = promise.rule, is_searched(trust)
    if promise.target is not None and isinstance(how, str):
        # Weights may not average to one.
        check_choice("rule", how, ("auto", TargetRule.name))
        how = TargetRule()
    several, rules = other is not None or (how in JUDGED and not searched), [how]
    if several and how == "auto" and searched:
        # One rule for all φ: each φ alone would choose as if it were the true one.
        rules = ["counting", "tuned-betting"]
    choices = [
        c for rule in rules for c in _capped(promise, trust, rule, training, several)
    ]
    if not several or len(choices) == 1:
        return choices[0]
    promised = _promised_powers(promise, choices, training, other, n_rows)
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
    trust, left = promise.trust(model), promise.delta - promise.missingness_part(model)
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
    model: Missingness | None,
    training: Weighted,
    other: Weighted,
    n_rows: int,
) -> Trust | None:
    """As `choose_trust`, where a cap has to be known beforehand; None without one."""
    if model is None:
        return None
    known = training.weighed(promise.trust(model))
    promise = replace(promise, caps=True)
    trust, _ = choose_trust(promise, promise.trust(model), known, other, n_rows)
    return None if trust.cap is None else trust


def expected_error(
    promise: Promise, model: Missingness | None, training: Weighted, n_rows: int
) -> Callable[[float], float] | None:
    """The error that should be certified at a level, where rows are weighted.

    None where they count the same, or the rule can't tell.
    """
    if model is None:
        return None
    trust, left = promise.trust(model), promise.delta - promise.missingness_part(model)
    weighed = training.weighed(trust)
    sample = weighed.sample(trust)
    if not sample.n_observed:
        return None
    rule = make_rule(promise.rule, training=sample)

    @cache
    def error(level: float) -> float:
        root = rule.expected_root(n_rows, sample.bound, level, left)
        return max(root or 0.0, 0.0) ** 2

    known = rule.expected_root(n_rows, sample.bound, promise.alpha, left)
    return None if known is None else error


def _capped(
    promise: Promise,
    trust: Trust,
    rule: str | Rule,
    training: Weighted,
    several: bool,
) -> list[tuple[Trust, str | Rule]]:
    """The same with caps on the weights, or without; the mildest of them first."""
    uses, known = make_rule(rule).bound, trust.bound(training.X.shape[1])
    heaviest = training.high
    assert heaviest is not None
    heaviest = heaviest[heaviest > 0.0]
    if uses == "unused" or not len(heaviest) or not promise.caps:
        return [(trust, rule)]
    caps = np.unique(np.quantile(heaviest, CAP_LEVELS))[::-1]
    if known is not None:
        caps = caps[caps < known] if uses != "given" else caps[:0]
    capped = [(replace(trust, cap=cap), rule) for cap in caps.tolist()]
    if capped and not several:
        return capped[:1] if known is None else [(trust, rule)]
    if capped and known is None:
        # Without a bound all rests on bets, which certify far less often.
        return capped
    return [(trust, rule), *capped]


def _promised_powers(
    promise: Promise,
    choices: list[tuple[Trust, str | Rule]],
    training: Weighted,
    other: Weighted | None,
    n_rows: int,
) -> FloatArray:
    """The power that training rows promise under each choice.

    At the error that so many calibration rows should certify, no certificate being no
    power: for rules that draw, this is exact. For others it is averaged with the power
    at the threshold that the training rows themselves certify, as it is where every φ
    that a model leaves possible has a say.
    """
    first = choices[0][0]
    delta = promise.delta - promise.missingness_part(first.model)
    heaviest = None if other is None else first.edges(other.X)[1]

    def power(trust: Trust, how: str | Rule) -> float:
        likely = calibrate(promise.alpha, trust, how, training, training, delta, COARSE)
        sample, rule = likely.sample, likely.rule
        root = rule.expected_root(n_rows, sample.bound, promise.alpha, delta)
        if other is None or heaviest is None:
            return _tilted_power(training, trust, max(root or 0.0, 0.0) ** 2)
        scores, powers = trust.apply(other.scores, heaviest), []
        if root is not None:
            possible = root > 0.0 and sample.n_scored
            expected = sample.threshold(sample.tail_of(root**2)) if possible else np.inf
            powers.append(float(np.mean(scores > expected)))
        chosen = likely.select([promise.alpha])[0]
        if root is None or is_searched(trust) or chosen.rule not in DRAWING:
            least = chosen.threshold
            powers.append(-1.0 if least is None else float(np.mean(scores > least)))
        # Of caps that promise the same power, the one that certifies the larger error.
        return float(np.mean(powers)) + TIE * (root or 0.0)

    return np.array([power(*choice) for choice in choices])


def _tilted_power(training: Weighted, trust: Trust, error: float) -> float:
    """The power at an error, if the other class were this one tilted by exp(score).

    It is, where scores are log-ratios. Between rows the curve is taken to be straight.
    """
    assert training.weights is not None
    assert training.high is not None
    known = (training.weights > 0.0) & np.isfinite(training.scores)
    if not known.any():
        return 0.0
    weights, raw = training.weights[known], training.scores[known]
    scores = trust.apply(raw, training.high[known])
    tilt = np.exp(raw - raw.max()) * weights
    order = np.argsort(-scores)
    reached = order[scores[order] > -np.inf]
    errors = np.cumsum(weights[reached]) / weights.sum()
    powers = np.cumsum(tilt[reached]) / tilt.sum()
    return float(np.interp(error, np.append(0.0, errors), np.append(0.0, powers)))
