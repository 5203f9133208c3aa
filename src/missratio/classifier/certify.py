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
values, every point is tried. Where several do, each column's points are tried in turn,
the others being the worst that were found, twice over.

How weights are taken and by which rule: what promises most power.

Judged by training rows alone, so before any calibration row is seen: caps on the
weights, for a learned φ by a few of those that it may be.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.spatial import KDTree
from scipy.special import gammaln

from missratio._base.reading import as_numeric_array
from missratio._base.typing import FloatArray, IntArray
from missratio.classifier.certificate import Certificate, assumptions
from missratio.classifier.planner import infeasible
from missratio.classifier.promise import Calibration, Promise, ScoredRows, Trust
from missratio.classifier.scores import measure_rounding
from missratio.learning import LearnedMissingness
from missratio.missingness import LogisticMissingness, Missingness
from missratio.threshold import Rule, make_rule

# So many rows of the other class tell whether any is recognised.
MOST_ROWS = 1000
# A column that has this many values, as a share of the distinct rows, is continuous.
DISTINCT = 0.5
# Rows that occur more often than this on average are kinds, and not copies of units.
MOST_COPIES = 10
# Rows this many steps of a column's last place apart, or fewer, are near each other.
NEAR = 5
# From which share of repeated rows on it is said.
REPEATED = 0.05
# How unlikely their numbers must be for rows that are drawn independently.
SURPRISING = 0.001


class NoPowerWarning(UserWarning):
    """A certificate holds, but no row is given to the other class."""


class RepeatedRowsWarning(UserWarning):
    """Calibration rows are copies of training rows, or of each other."""


def warn_without_power(calibrated: FloatArray, threshold: float, other: Any) -> None:
    """Warn where a certified threshold lies above all scores.

    Parameters
    ----------
    calibrated : ndarray of shape (n_rows,)
        Scores of calibration rows.
    threshold : float
    other : ndarray of shape (n_other,), or None
        Scores of rows of the other class.
    """
    seen = calibrated[calibrated > -np.inf]
    if len(seen) and seen.min() == seen.max():
        what = f"all {len(seen)} calibration rows have the same score"
    elif other is not None and len(other) and not (other > threshold).any():
        what = f"none of {len(other)} rows of the other class scores above it"
    else:
        return
    warnings.warn(
        f"The threshold {threshold:.6g} is certified, but has no power: {what}, so "
        "(nearly) every row gets the controlled class. Take an estimator that tells "
        "the classes apart, a larger alpha, or more calibration rows.",
        NoPowerWarning,
        stacklevel=2,
    )


def warn_of_repeated_rows(rows: Any, training: Any = None) -> None:
    """Warn where calibration rows are copies of training rows, or of each other.

    Independent rows coincide, too, where values are rounded or are categories. Nothing
    is said of rows that chance explains: see `_are_copies`.

    Parameters
    ----------
    rows, training : array-like or dataframe of shape (n, n_columns)
        Of the controlled class; no training rows where they are not known.
    """
    if issparse(rows) or issparse(training):
        return
    try:
        own = _complete(rows)
        known = own[:0] if training is None else _complete(training)
    except ValueError:
        # Columns that are not numbers.
        return
    table = np.concatenate([own, known])
    _, first, places, counts = np.unique(
        _fingerprints(table), return_index=True, return_inverse=True, return_counts=True
    )
    places = places.ravel()
    trained = np.isin(places[: len(own)], places[len(own) :])
    twice = np.bincount(places[: len(own)], minlength=len(counts))[places[: len(own)]]
    affected = trained | (twice > 1)
    if not len(own) or affected.mean() < REPEATED:
        return
    if not _are_copies(table[first], counts):
        return
    if trained.mean() >= REPEATED:
        what = (
            f"{trained.mean():.0%} of the calibration rows are training rows as well. "
            "The estimator knows these rows, so its scores on them are not those of "
            "new rows"
        )
    else:
        what = (
            f"{affected.mean():.0%} of the calibration rows are there more than once. "
            "Copies say nothing new, and are counted as if they did"
        )
    warnings.warn(
        f"{what}, and the certificate does not hold. Calibrate with rows that took no "
        "part in fitting. Where one unit has several rows, say by groups= which rows "
        "are of one unit.",
        RepeatedRowsWarning,
        stacklevel=2,
    )


def _are_copies(distinct: FloatArray, counts: IntArray) -> bool:
    """Whether independent rows would hardly coincide as often as these.

    Either of two facts says so.

    1. Rows with a continuous column coincide, and nothing is near them. Rounded values
       coincide where others lie a few steps of the last place away. Rows of a few kinds
       occur more than ten times each.
    2. Numbers of copies vary less than chance lets them. Let m_k be the expected number
       of distinct rows that occur k times. If rows are independent, whatever their law,
       k·m_k² ≤ (k + 1)·m_{k−1}·m_{k+1}.
    """
    values = max(len(np.unique(column)) for column in distinct.T)
    repeated = np.flatnonzero(counts > 1)
    continuous = values >= DISTINCT * len(distinct)
    units = counts.mean() <= MOST_COPIES
    if continuous and units and len(repeated) >= REPEATED * len(distinct):
        scaled = np.column_stack([column / _step(column) for column in distinct.T])
        # The nearest one of each is the row itself.
        away, _ = KDTree(scaled).query(
            scaled[repeated], 2, p=np.inf, distance_upper_bound=NEAR + 0.5
        )
        if np.count_nonzero(away[:, 1] == np.inf) >= REPEATED * len(distinct):
            return True
    return _regularity(counts) < SURPRISING


def _step(column: FloatArray) -> float:
    """The smallest difference between two values, but for rounding errors; or one."""
    gaps = np.diff(np.unique(column))
    gaps = gaps[gaps > 1e-9 * np.ptp(column)]
    return float(gaps.min()) if len(gaps) else 1.0


def _regularity(counts: IntArray) -> float:
    """The p-value of rows that occur k times being too many, over all k together.

    Where k·m_k² = (k + 1)·m_{k−1}·m_{k+1}, the law of the three numbers given their sum
    and the sum of their copies is known, and only one of them is free.
    """
    often = np.bincount(counts, minlength=2)
    often = np.append(often, 0)
    tested = [k for k in range(2, len(often) - 1) if often[k] > 1]
    smallest = 1.0
    for k in tested:
        fewer, own, more = (int(often[j]) for j in (k - 1, k, k + 1))
        both = np.arange((fewer + own + more - abs(more - fewer)) // 2 + 1)
        low, high = both + max(fewer - more, 0), both + max(more - fewer, 0)
        middle = fewer + own + more - low - high
        log_mass = -(
            gammaln(low + 1.0)
            + gammaln(middle + 1.0)
            + gammaln(high + 1.0)
            + low * gammaln(k)
            + middle * gammaln(k + 1.0)
            + high * gammaln(k + 2.0)
        )
        mass = np.exp(log_mass - log_mass.max())
        smallest = min(smallest, float(mass[middle >= own].sum() / mass.sum()))
    return smallest * max(len(tested), 1)


def _complete(rows: Any) -> FloatArray:
    table = as_numeric_array(rows).astype(np.float64)
    # No zero is negative.
    return np.ascontiguousarray(table[~np.isnan(table).any(axis=1)] + 0.0)


def _fingerprints(table: FloatArray) -> Any:
    """A number for each row, the same for equal rows."""
    factors = np.random.default_rng(0).integers(2**63, size=table.shape[1], dtype="u8")
    with np.errstate(over="ignore"):
        return (table.view(np.uint64) * (2 * factors + 1)).sum(axis=1, dtype=np.uint64)


# Columns that lose values beyond which the band stands for the region.
MOST_COLUMNS = 8
SWEEPS = 2
# Of a region's points the first sweep tries every so many.
FIRST = 4
# Levels, as multiples of α, at which the φ that asks most is kept.
LEVELS = (1.0, 0.25, 0.5, 2.0, 4.0)
# Log-odds beyond which φ is as good as 1: a row observed there refutes it.
MOST = 34.0


def calibrate(
    promise: Promise,
    trust: Trust,
    how: str | Rule,
    rows: ScoredRows,
    training: ScoredRows | None,
    delta: float,
    step: int = 1,
) -> Calibration:
    """What a threshold is chosen from: of a learned φ, all that it may be.

    Parameters
    ----------
    promise : Promise
    trust : Trust
    how : str or Rule
        The rule, or its name.
    rows : ScoredRows
        Calibration rows.
    training : ScoredRows or None
        Rows that prepare the rule.
    delta : float
        The rule's part of δ.
    step : int, default=1
        1 tries all points of a region, as a certificate has to; a larger number takes
        every so many, for a forecast.
    """

    def under(own: Trust, at: ScoredRows, prepared: ScoredRows | None) -> Calibration:
        sample = at.sample(own)
        rule = promise.resolve_rule(
            how, own, prepared, looked_up=sample.lookups is not None
        )
        return Calibration(sample, own, rule, delta)

    if not is_searched(trust):
        return under(trust, rows, training)
    # Which rows are within reach is the same for all φ of the region.
    within = replace(rows, scores=trust.score(rows))
    known = training and replace(training, scores=trust.score(training))

    def at_point(own: Trust) -> Calibration:
        return replace(under(own.at_point, within, known), trust=own)

    given = [rows] if training is None else [rows, training]
    return _under_all(trust, given, at_point, promise.alpha, step)


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


def _under_all(
    trust: Trust,
    rows: list[ScoredRows],
    calibrate: Callable[[Trust], Calibration],
    alpha: float,
    step: int,
) -> Calibration:
    """The calibration under the φ that asks for the largest threshold at α.

    Those that ask most at some other levels are kept beside it.
    """
    model, delta = trust.model, trust.delta
    assert isinstance(model, LearnedMissingness)
    assert delta is not None
    regions = [points[::step] for points in _possible(model, delta, rows)]
    lossy = [j for j, points in enumerate(regions) if len(points)]
    coef = np.atleast_1d(np.asarray(model.coef, dtype=np.float64)).copy()
    intercept = np.broadcast_to(np.asarray(model.intercept), coef.shape).copy()

    def under(j: int, point: FloatArray) -> Calibration:
        first, slopes = intercept.copy(), coef.copy()
        first[j], slopes[j] = point[:2]
        if model.rowwise:
            phi = LogisticMissingness(first[0], slopes, rowwise=True)
        else:
            phi = LogisticMissingness(first, slopes)
        return calibrate(replace(trust, point=phi))

    levels = [times * alpha for times in LEVELS if times * alpha < 1.0]
    levels = levels if step == 1 else levels[:1]
    found: list[Calibration] = []
    asked: list[list[float]] = []
    for sweep in range(SWEEPS if len(lossy) > 1 else 1):
        last = sweep == SWEEPS - 1 or len(lossy) == 1
        found = [calibrate(replace(trust, point=model.as_known()))]
        asked = [_thresholds(found[0], levels)]
        for j in lossy:
            points = regions[j] if last else regions[j][::FIRST]
            tried = [under(j, point) for point in points]
            thresholds = [_thresholds(each, levels) for each in tried]
            place = int(np.argmax([each[0] for each in thresholds]))
            intercept[j], coef[j] = points[place, :2]
            found += tried
            asked += thresholds
    most = [int(place) for place in np.argmax(asked, axis=0)]
    others = tuple(found[place] for place in dict.fromkeys(most) if place != most[0])
    return replace(found[most[0]], others=others)


def _thresholds(calibration: Calibration, levels: list[float]) -> list[float]:
    """What is asked for at some levels; infinite where nothing can be certified."""
    chosen = [each.threshold for each in calibration.select(levels)]
    return [np.inf if threshold is None else threshold for threshold in chosen]


def _possible(
    model: LearnedMissingness, delta: float, rows: list[ScoredRows]
) -> list[FloatArray]:
    """Points (intercept, slope) of each column's region; none where nothing is lost.

    A φ that gives an observed row no chance is refuted by it. In its place comes the
    one on the way from the estimate at which the row is just possible.
    """
    tables = [as_numeric_array(each.rows).astype(np.float64) for each in rows]
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
    if capped and known is None:
        # Without a bound all rests on bets, which certify far less often.
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
