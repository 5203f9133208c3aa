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
from typing import Any

import numpy as np

from missratio import missingness
from missratio import threshold as rules
from missratio._base.blocks import take_rows
from missratio._base.hints import check_choice
from missratio._base.reading import as_coded_array, column_names
from missratio._base.typing import FloatArray, IntArray
from missratio.classifier.certificate import Certificate, assumptions
from missratio.classifier.estimators import ClassTable, measure_rounding
from missratio.classifier.promise import (
    Calibration,
    Promise,
    Trust,
    Weighted,
    widened_weights,
)
from missratio.classifier.reading import warn_of_repeated_rows
from missratio.exceptions import Message, NoCertificateError, Remedy
from missratio.learning import LearnedMissingness

FACTOR_PRECISION = 1e-3
# Odds factors that are looked at one by one: those of a sensitivity curve, and doubled.
# Odds that are wrong by more are as good as unknown.
FACTORS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0)
FURTHER_FACTORS = tuple(2.0**k for k in range(3, 11))


# What weights are taken for, the rule, and training rows that prepare it.
Chosen = tuple[Trust, str | rules.Rule, Weighted | None]


def certify(
    promise: Promise,
    table: ClassTable,
    scores: FloatArray,
    score: Callable[[Any], FloatArray],
    rng: np.random.Generator,
    chosen: Chosen,
) -> tuple[Certificate, Calibration]:
    """Choose the threshold above which a row of a class is wrong, and what that keeps.

    Parameters
    ----------
    promise : Promise
        With the rows of the table that calibrate, and others of the class.
    table : ClassTable
    scores : ndarray of shape (n_rows,)
        Of these rows of the table, at least.
    score : callable
        Gives the scores of rows, to see how they are rounded.
    rng : Generator
        For rules that draw.
    chosen : tuple of Trust, rule and Weighted or None
        By `choose_trust`.
    """
    model, (trust, how, known) = promise.model, chosen
    X, n_rows = take_rows(table.X, promise.held), len(promise.held)
    drawn: dict[str, Any] = {"inclusion": promise.design}
    # 1. Whether rows contradict φ. Rows of one unit are not independent: a unit
    #    calibrates by one row. A group may have no row at all, and a forecast repeats
    #    its rows.
    checks: tuple[missingness.MissingnessCheck, ...] = ()
    if model is not None:
        independent = [np.unique(promise.held)]
        independent += [promise.training] if table.units is None else []
        if n_rows:
            rows = take_rows(table.X, np.concatenate(independent))
            checks = missingness.missingness_check(
                rows, model, complete=True, odds_factor=promise.odds_factor
            )
        tests = getattr(model, "checks", ())
        missingness.refuse_contradiction(
            checks, promise.label, tests, promise.odds_factor
        )
        drawn |= {"draws": rng.uniform(size=n_rows), "coin": float(rng.uniform())}
    # 2. Weights.
    held = Weighted.by(trust, X, scores[promise.held], **drawn)
    calibration = calibrate(promise, trust, how, held, known)
    # 3. The threshold, and how much more it would hold for.
    sample, name = calibration.sample, calibration.rule.name
    lookups, threshold, facts = sample.lookups, np.inf, dict[str, Any]()
    if sample.n_observed:
        selection = calibration.select([promise.alpha])[0]
        name = selection.rule
        if selection.threshold is not None:
            rounding = measure_rounding(score, X, held.scores, selection.threshold)
            calibration = replace(calibration, rounding=rounding)
            threshold = calibration.threshold(promise.alpha)
            every = calibration, *calibration.others
            slack = [_slack(promise, held, each, threshold) for each in every]
            least = min((x for x in slack if x is not None), default=None)
            facts = {
                "certified": True,
                "estimated_error": sample.estimated_error(threshold),
                "error_bound": selection.error_bound,
                "sensitivity": least,
            }
    if not facts and promise.on_infeasible == "raise":
        raise infeasible(promise, calibration, name)
    # 4. The certificate; without a threshold all rows get the controlled class. Of a
    #    stated φ it names the three tests closest to a contradiction, of a learned
    #    one those that failed when it was learned.
    telling = [check for check in checks if check.expected or check.found]
    closest = sorted(telling, key=lambda check: check.pvalue)[:3]
    said = tuple(f"{check.sentence} (p = {check.pvalue:.2g})" for check in closest)
    if model is not None and model.learned:
        tests = getattr(model, "checks", ())
        said = tuple(test.sentence.rstrip(".") for test in tests if test.failed)
    nothing = {"certified": False, "estimated_error": 0.0, "error_bound": 0.0}
    certificate = Certificate(
        alpha=promise.alpha,
        delta=promise.delta,
        rule=name,
        controlled_class=promise.label,
        other_class=promise.wrong,
        deployment=table.deployment,
        rows=sample.n_rows,
        observed=sample.n_known,
        effective_rows=sample.effective_rows,
        threshold=threshold,
        assumptions=assumptions(promise, table, trust.cap, lookups is not None),
        checks=said,
        missingness_delta=promise.parts[0],
        columns=promise.columns,
        looked_up=0 if lookups is None else int(lookups.drawn.sum()),
        not_found=0 if lookups is None else lookups.not_found,
        **(facts or nothing),
    )
    warn_of_repeated_rows(
        X, take_rows(table.X, promise.training) if len(promise.training) else None
    )
    return certificate, calibration


def _slack(
    promise: Promise, rows: Weighted, calibration: Calibration, threshold: float
) -> float | None:
    """By what factor the odds of being missing may be wrong.

    The largest Γ up to which the rule, with weights between those of odds/Γ and of
    odds·Γ, would have chosen this threshold or a smaller one. Infinite beyond 1024. A
    rule that draws rows may choose such a one again for a larger Γ, which doesn't
    count.
    """
    trust, low = calibration.trust, promise.odds_factor
    if trust.model is None:
        return None
    at = rows if trust.point is None else rows.at(trust)
    # Sorted once, so that the sample of every factor need not be.
    reached = trust.score(rows.X, at.scores, rows.high)
    order = np.argsort(-reached)
    sorted_rows = replace(
        at,
        scores=reached[order],
        weights=at.weights[order],
        entries=at.entries[order],
        draws=None if at.draws is None else at.draws[order],
    )

    def holds(factor: float) -> bool:
        least, most = widened_weights(sorted_rows.entries, factor)
        wider = replace(sorted_rows, low=least, high=most)
        sample = wider.sample(trust.widened(factor))
        again = replace(calibration, sample=sample, others=())
        return again.threshold(promise.alpha) <= threshold

    for factor in (*FACTORS[1:], *FURTHER_FACTORS):
        high = factor * promise.odds_factor
        if not holds(high):
            break
        low = high
    else:
        return np.inf
    while high - low > FACTOR_PRECISION * low:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


# Rows that may be tried out by repeating a sample, and how often it may be.
MOST_REPEATED, MOST_TIMES = 200_000, 64
# More rows than this are no advice: a weight is nearly without a bound.
MOST_WANTED = 10**7
MORE_ROWS = "bring more rows of that class"
NO_THRESHOLD = "No threshold certifies alpha={alpha:g} at delta={delta:g}: "


def infeasible(
    promise: Promise, calibration: Calibration, rule: str
) -> NoCertificateError:
    """Why no threshold can be certified, and what to do."""
    sample, alpha, delta = calibration.sample, promise.alpha, calibration.delta
    lookups, n_rows = sample.lookups, sample.n_rows
    claim = NO_THRESHOLD
    # The δ that was asked for, of which a learned φ takes a part.
    facts = {"alpha": alpha, "delta": promise.delta, "group": promise.group}
    facts["rows"] = n_rows
    if lookups is not None:
        drawn, wants = int(lookups.drawn.sum()), MORE_ROWS
        needed = rules.fewest_look_ups(sample, alpha, delta)
        if needed is not None and needed > drawn:
            wants = f"look up {needed} of them or more, several times that for power"
        claim += (
            "of {rows} calibration rows of class {label!r}, {incomplete} are "
            "incomplete and {drawn} of these were looked up ({lost} not found)."
        )
        facts |= {"incomplete": int(lookups.incomplete.sum())}
        facts |= {"drawn": drawn, "lost": lookups.not_found}
        remedies: tuple[str, ...] = (wants, Remedy.RAISE_LEVELS)
    else:
        needed, about = None, ""
        if sample.bound is not None:
            needed = calibration.rule.least_rows(alpha, delta, sample.bound)
        if needed is None or needed <= n_rows:
            # The sample is repeated whole, as if so many more rows of the kind had
            # come.
            rng = np.random.default_rng(0)

            def passes(further: int) -> bool:
                rows = sample.repeated(1 + further, rng)
                more = replace(calibration, sample=rows, others=())
                return bool(sample.ranked.n_scored and more.threshold(alpha) < np.inf)

            most = min(MOST_TIMES, MOST_REPEATED // max(n_rows, 1))
            further, about = rules.fewest(passes, most), "about "
            needed = None if further is None else (1 + further) * n_rows
        wants = f"needs {about}{needed} or more"
        if needed is None or needed > MOST_WANTED:
            wants = "would need very many more rows like these"
        claim += (
            "got {rows} calibration rows of class {label!r} ({observed} observed), and "
            "rule {rule!r} {wants}."
        )
        facts |= {"observed": sample.n_observed, "rule": rule, "wants": wants}
        remedies = (Remedy.RAISE_LEVELS, MORE_ROWS, Remedy.OTHER_RULE)
    if promise.group is not None:
        claim = "Group {group!r}: " + claim
    remedies = (*remedies, *promise.remedies)
    return NoCertificateError(
        Message(claim, label=promise.label, remedies=remedies, facts=facts)
    )


# The share of complete rows within reach below which a certificate would be worthless.
REACHED = 0.05


def refuse_open(promise: Promise, rows: Any) -> None:
    """Refuse a learned φ that leaves too much open for any threshold, before any fit.

    A threshold above all rows of the class is certified where (1 − α/B)ⁿ ≤ δ, or where
    the least weights add up to more than 1 − α. So rows that may weigh more than such a
    B are out of reach. `rows` are those that will calibrate.
    """
    model, trust, n_rows = promise.model, promise.trust, rows.shape[0]
    if model is None or model.rowwise or trust.delta is None or trust.searched:
        return
    if promise.rule not in JUDGED or promise.on_infeasible != "raise" or not n_rows:
        return
    low, high = trust.edges(rows)
    whole = high > 0.0
    weights = high[whole]
    most = promise.alpha / -np.expm1(np.log(promise.parts[1]) / n_rows)
    reached = np.count_nonzero(weights <= most) >= REACHED * len(weights)
    if reached or low.mean() > 1.0 - promise.alpha:
        return
    by_column = model.probability_band(rows, trust.delta)[1][whole]
    groups = np.arange(rows.shape[1]) if model.groups is None else model.groups
    kept = missingness.once(groups)
    open_to, names = np.median(by_column, axis=0), column_names(rows)
    # A message names five columns.
    worst = [j for j in kept[np.argsort(-open_to[kept])[:5]].tolist() if open_to[j]]
    weight = f"{np.median(weights):,.0f} rows (the median)"
    weight = weight if np.median(weights) < MOST_WANTED else "any number of rows"
    message = Message(
        NO_THRESHOLD + "what was learned of φ leaves too much open. A complete row of "
        "class {label!r} may stand for {weight}, and {rows} calibration rows allow "
        "{most:.3g}. Most is open in {columns}, which the other columns predict too "
        "little.",
        label=promise.label,
        columns=tuple(worst),
        remedies=("leave such columns out", Remedy.LOOKED_UP, Remedy.AS_OBSERVED),
        facts={
            "alpha": promise.alpha,
            "delta": promise.delta,
            "weight": weight,
            "rows": n_rows,
            "most": float(most),
        },
    )
    raise NoCertificateError(message if names is None else message.named(names))


STARTS = 32
# The first sweep tries every fourth of a region's points.
FIRST = 4
# Levels, as multiples of α, at which the φ that asks most is kept.
LEVELS = (1.0, 0.25, 0.5, 2.0, 4.0)
# Log-odds beyond which φ is as good as 1: a row observed there refutes it.
MOST = 34.0


def calibrate(
    promise: Promise,
    trust: Trust,
    rule: str | rules.Rule,
    rows: Weighted,
    training: Weighted | None,
    step: int = 1,
) -> Calibration:
    """What a threshold is chosen from: of a learned φ, all that it may be.

    Of all φ of a region it is the calibration under the one that asks for the largest
    threshold at α. Those that ask most at some other levels are kept beside it.

    Parameters
    ----------
    promise : Promise
    trust : Trust
    rule : str or Rule
    rows, training : Weighted
        Calibration rows, and rows that prepare the rule.
    step : int, default=1
        1 tries all points of a region, as a certificate has to; a larger number takes
        every so many, for a forecast.
    """
    delta = promise.parts[1]

    def under(trust: Trust) -> Calibration:
        """Rows weighed by one φ, and the rule prepared by training rows."""
        sample = rows.sample(trust)
        if sample.lookups is not None and isinstance(rule, str):
            check_choice("rule", rule, ("auto", rules.LookUpRule.name))
            return Calibration(sample, trust, rules.LookUpRule(), delta)
        known = sample if training is rows else None
        if training is not None and training is not rows:
            known = training.sample(trust)
        prepared = rules.make_rule(rule, training=known, complete=trust.model is None)
        return Calibration(sample, trust, prepared, delta)

    if not trust.searched:
        return under(trust)
    model = trust.model
    assert isinstance(model, LearnedMissingness)
    assert trust.delta is not None
    # 1. Points (intercept, slope) of each column's region; none where nothing is lost.
    #    A φ that gives an observed row no chance is refuted by it. In its place comes
    #    the one on the way from the estimate at which the row is just possible.
    tables = [rows.X] if training is None else [rows.X, training.X]
    tables = [as_coded_array(X).astype(np.float64) for X in tables]
    coef = np.atleast_1d(np.asarray(model.coef, dtype=np.float64))
    worst = np.stack([np.broadcast_to(model.intercept, coef.shape), coef])
    regions = dict[int, FloatArray]()
    for j, points in enumerate(model.region(trust.delta)):
        if not len(points) or not np.isfinite(points).all():
            continue
        ends = [
            end.reduce(values[:, j], initial=np.nan)
            for values in tables
            for end in (np.fmin, np.fmax)
        ]
        design, centre = np.stack([np.ones(len(ends)), ends]), worst[:, j]
        start, away = centre @ design, (points[:, :2] - centre) @ design
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(start + away > MOST, (MOST - start) / away, 1.0)
        share = np.maximum(share.min(axis=1, keepdims=True), 0.0)
        regions[j] = (centre + share * (points[:, :2] - centre))[::step]
    # 2. Ask each φ for its thresholds, and go on from the one that asks most.
    levels = [times * promise.alpha for times in LEVELS if times * promise.alpha < 1.0]
    levels = levels if step == 1 else levels[:1]
    tried: list[tuple[Calibration, list[float]]] = []

    def ask(candidates: list[FloatArray]) -> None:
        """Try intercepts and slopes of all columns; note those that ask most."""
        nonlocal worst
        for intercept, slopes in candidates:
            first = intercept[0] if model.rowwise else intercept
            phi = missingness.LogisticMissingness(first, slopes, rowwise=model.rowwise)
            calibration = under(replace(trust, point=phi))
            tried.append((calibration, [calibration.threshold(a) for a in levels]))
        most = [thresholds[0] for _, thresholds in tried[-len(candidates) :]]
        worst = candidates[int(np.argmax(most))]

    def moved(points: dict[int, FloatArray]) -> FloatArray:
        """The worst, but for some columns."""
        candidate = worst.copy()
        for j, point in points.items():
            candidate[:, j] = point
        return candidate

    ask([worst])
    sweeps = [FIRST, 1] if len(regions) > 1 else [1]
    if len(regions) > 1:
        # What is worst of one column depends on the others: the search begins at the
        # worst of some φ drawn from the region.
        n_starts = STARTS if step == 1 else 0
        starts = [worst]
        for shares in np.random.default_rng(0).random((n_starts, len(regions))):
            pairs = zip(regions.items(), shares, strict=True)
            drawn = {j: points[int(s * len(points))] for (j, points), s in pairs}
            starts.append(moved(drawn))
        ask(starts)
    for every in sweeps:
        for j, points in regions.items():
            ask([moved({j: point}) for point in points[::every]])
    demands = np.array([thresholds for _, thresholds in tried])
    most: list[int] = np.argmax(demands, axis=0).tolist()
    others = tuple(tried[at][0] for at in dict.fromkeys(most) if at != most[0])
    return replace(tried[most[0]][0], others=others)


# Which shares of the observed training rows a cap may leave.
CAP_LEVELS = (0.25, 0.5, 0.75, 0.9, 0.98, 1.0)
# A cap lies this much above the weights it allows: where many rows weigh the same, the
# last bit or single precision must not carry some of them across it when they are used.
ABOVE = 1e-6
TIE = 1e-6
# Rules that can tell what they should certify, so that caps can be judged by it.
JUDGED = ("auto", "thinning", "counting", "tuned-betting")
# Of these, the ones whose forecast needs no training rows.
DRAWING = ("thinning", "counting")
# What a cap has to promise more than none, where rows of the other class are not known.
CLEARLY = 0.1
# The share of calibration rows, and their largest number, that choose a cap where no
# others can, and how much smaller the root of the error has to be without one for that.
PILOT, MOST_PILOTS, FEWEST_PILOTS = 0.15, 200, 10
WORTHWHILE = 0.7
# Few rows of one class don't reach as far as those of another: caps beyond the largest
# weight, odds below which rows are as good as always observed, and the most that
# log-odds move.
BEYOND = (2.0, 4.0)
LEAST_ODDS, LARGEST_SHIFT = 0.1, 50.0


def choose_trust(
    promise: Promise,
    table: ClassTable,
    scores: FloatArray,
    others: IntArray | None,
    *,
    caps: bool = True,
    forecast: bool = False,
) -> tuple[Chosen, float]:
    """What weights are taken for, the rule, training rows, and the power to expect.

    The power is that at the error that so many calibration rows should certify, no
    certificate being no power. Where a rule can't tell, it is that at the threshold
    that the training rows themselves certify; where every φ that a model leaves
    possible has a say, the mean of both.

    Parameters
    ----------
    promise : Promise
        With rows of the class that take no part in calibration.
    table : ClassTable
    scores : ndarray of shape (n_rows,)
        Of these rows of the table, NaN for those that take no part, and of the others.
    others : ndarray of int, or None
        Rows of the other class, to be told from these. None takes the training rows
        for them, moved as if they were tilted by exp(score), and a cap that promises
        clearly more.
    caps : bool, default=True
        Whether weights may be capped at all.
    forecast : bool, default=False
        Whether the power is wanted where there is nothing to choose, too.
    """
    trust, rule, index = promise.trust, promise.rule, promise.training
    index = index[~np.isnan(scores[index])]
    if not len(index) or (promise.model is None and not forecast):
        return (trust, rule, None), 0.0
    training = Weighted.by(trust, take_rows(table.X, index), scores[index])
    if not caps:
        return (trust, rule, training), 0.0
    n_rows, other = len(promise.held), None
    if others is not None:
        other = scores[others], trust.edges(take_rows(table.X, others))[1]
    searched, named = trust.searched, [rule]
    if other is not None and rule == "auto" and searched:
        # One rule for all φ: each φ alone would choose as if it were the true one.
        named = ["counting", "tuned-betting"]
    # 1. No cap on the weights where the rule can do without one, and some caps.
    choices: list[tuple[Trust, str | rules.Rule]] = []
    heaviest = training.high[training.high > 0.0]
    known = trust.bound(training.X.shape[1])
    for way in named:
        uses, tried = rules.make_rule(way).bound, heaviest[:0]
        untouched = uses == "unused" or (uses == "given" and known is not None)
        if not untouched and len(heaviest):
            reach = (1.0, *BEYOND) if other is None else (1.0,)
            tried = np.quantile(heaviest, CAP_LEVELS) * (1.0 + ABOVE)
            tried = np.unique(np.append(tried, np.multiply(reach, tried[-1])))[::-1]
            tried = tried if known is None else tried[tried < known]
        if known is not None or uses in ("used", "unused") or not len(tried):
            choices.append((trust, way))
        choices += [(replace(trust, cap=cap), way) for cap in tried.tolist()]
    if len(choices) == 1 and not forecast:
        return (*choices[0], training), 0.0
    # 2. Rows of the other class. Where scores are log-ratios, they are those of this
    #    one tilted by exp(score): normal scores move by their variance then. Weights go
    #    with scores as they do here, and beyond the highest row as log-odds do.
    tilted = other is None
    seen = (training.weights > 0.0) & np.isfinite(training.scores)
    if other is not None:
        masses = np.ones_like(other[0])
    elif not seen.any():
        return (*choices[0], training), 0.0
    else:
        order = np.flatnonzero(seen)[np.argsort(training.scores[seen])]
        masses, raw = training.weights[order], training.scores[order]
        odds = training.high[order] - 1.0
        log_odds = np.log(np.maximum(odds, LEAST_ODDS))
        variance, covariance = np.cov(raw, log_odds, aweights=masses, ddof=0)[0]
        moved = raw + variance
        like = np.minimum(np.searchsorted(raw, moved), len(raw) - 1)
        beyond = covariance / max(variance, TIE) * np.maximum(moved - raw[-1], 0.0)
        other = moved, 1.0 + odds[like] * np.exp(np.minimum(beyond, LARGEST_SHIFT))
    # 3. The power that each choice promises.
    promised = []
    for capped, how in choices:
        # Of a learned model's region every fourth φ compares caps.
        likely = calibrate(promise, capped, how, training, training, 4)
        sample, alpha, powers = likely.sample, promise.alpha, list[float]()
        root = likely.rule.expected_root(n_rows, sample.bound, alpha, likely.delta)
        reached = capped.score(None, *other)
        order = np.argsort(reached)
        below = np.append(0.0, np.cumsum(masses[order]))
        above = 1.0 - below / below[-1]

        in_order: FloatArray = reached[order]
        if root is not None:
            # The mass above each row, and half of its own. Where weights have no bound,
            # what is short of one a row is above all of them.
            ranked, scored = sample.ranked, slice(sample.ranked.n_scored)
            unseen = max(sample.n_rows - ranked.masses[-1], 0.0)
            mass = (ranked.masses[:-1] + ranked.weights / 2.0)[scored]
            mass = mass + unseen * (not tilted and sample.bound is None)
            shares = np.append(0.0, mass / sample.n_rows)
            places = np.searchsorted(in_order, ranked.scores[scored], side="right")
            at_rows = np.append(0.0, above[places])
            powers.append(float(np.interp(root**2, shares, at_rows)))
        if root is None or searched:
            certain = likely.threshold(alpha)
            place = np.searchsorted(in_order, certain, side="right")
            powers.append(float(above[place]) if certain < np.inf else -1.0)
        # Where caps promise the same power, that of the larger certified error wins.
        promised.append(float(np.mean(powers)) + TIE * (root or 0.0))
        if tilted and capped.cap is None:
            promised[-1] += CLEARLY
    best = int(np.argmax(promised))
    return (*choices[best], training), promised[best]


def pilot_size(promise: Promise, n_columns: int) -> int:
    """How many calibration rows choose a cap instead, where there are no other rows.

    0 where a cap hardly pays, by φ, the number of rows and the levels alone: no row is
    looked at.
    """
    trust, rule, n_rows = promise.trust, promise.rule, len(promise.held)
    few = min(round(PILOT * n_rows), MOST_PILOTS)
    if promise.model is None or len(promise.training) or few < FEWEST_PILOTS:
        return 0
    if trust.searched or rule not in ("auto", *DRAWING):
        return 0
    if (bound := trust.bound(n_columns)) is None:
        return few
    now, best = (
        rules.make_rule(rule).expected_root(rows, most, promise.alpha, promise.parts[1])
        for rows, most in ((n_rows, bound), (n_rows - few, 1.0))
    )
    return few if (now or 0.0) < WORTHWHILE * (best or 0.0) else 0
