"""Whether a table contradicts φ: evidence that weights don't have mean one.

With a right φ, E[W | z] = 1 for every row, whatever the law of z. So the weights of a
column, the products of two columns' weights and those of complete rows must each sum
to about n. The evidence against that is an e-value. Its mean is at most one if φ is
right, so that it exceeds 1/level with probability `level` at most (Markov). For ξ ≥ −1
with mean zero or less Fan's inequality,

    exp(λξ − ψ(λ)ξ²) ≤ 1 + λξ,    ψ(λ) = −log(1 − λ) − λ,    0 ≤ λ < 1,

makes exp(λ Σξ − ψ(λ) Σξ²) one for every λ, as ∏(1 + λξ) is, and averages over λ are
e-values too.

Too much weight contradicts φ: ξ = W − 1 tests it exactly, however heavy the tail of W.
Too little weight contradicts φ where its maximum is known, and with it a bound B on W:
ξ = (1 − W)/(B − 1) tests it exactly. Where φ may come near to 1, weights that never
came up could make up for any deficit. The test then takes for B the largest observed
weight, with room for a range such as the observed log-odds have, and finds a shortfall:
φ is wrong, or some values go missing so surely that none like them was observed. Either
way the weights don't stand for the whole table. Rules that need no bound on W give no
certificate then, so that a shortfall endangers estimates only.

E[W | z] = 1 holds among any rows that are chosen without looking at whether the column
is missing, such as those in which other columns predict a high value of it. A φ of the
right share and the wrong shape has too little weight among these and too much where
they predict a low one, or the other way round. Each half of the rows is predicted by
what the other half teaches. Given the rows, W − 1 is −1 with probability φ and the odds
o otherwise, independently. So the law of a sum Σ (W − 1) g, g being known from other
columns, follows from φ, with observed rows standing for the missing ones that are like
them, and the saddlepoint's tail holds for counts of any size (`residual_tails`). Rows
like none that was observed, each missing with odds of o* at most, move the sum by |g|
each and all go missing with probability (1 + 1/o*)^−N, N being their number. However
many there are, the tail that allows for them is the one with tilts s of
|s g| ≤ log(1 + 1/o*).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
from scipy.special import erfcx

from missratio._base import reading
from missratio._base.hints import check_probability
from missratio._base.typing import FloatArray
from missratio.exceptions import Explained, Message, Remedy, warn
from missratio.missingness.contract import Missingness, joint_weight, once

# How often, at most, a table that φ does describe is said to contradict it.
LEVEL = 1e-3
# Below this p-value of all checks together, a guarantee comes with a warning.
DOUBT = 0.05


_SHOWN = 3

_BETS = np.geomspace(3e-4, 0.95, 14)
_LOG_STAKES = np.log1p(-_BETS)
_PENALTIES = -_LOG_STAKES - _BETS
# A product of eight must not overflow.
_SMALLEST_ODDS, _LARGEST_ODDS = 1e-16, 1e30
# Rows and columns within which values are predicted from other columns, and the ridge.
_FEWEST_PREDICTED, _MOST_PREDICTED, _WIDEST = 200, 20_000, 200
_THIRDS = ("low", "middling", "high")
# Odds of which no row may have been observed, if nothing says what φ is at most.
_UNSEEN_ODDS = 4.0
# The saddlepoint's tail takes no larger exponents, and divides by nothing smaller.
_LARGEST_EXPONENT, _SMALLEST = 50.0, 1e-300


def weight_evidence(weights: FloatArray, bounds: FloatArray) -> FloatArray:
    """Counts and log e-values of things that go missing, by their rows' weights.

    Weights, of shape (n_things, n_rows), are 0 where missing, else 1/(1 − φ). Where
    φ's maximum isn't known, and a bound is inf, one on weights is taken from those
    observed: with r the range of the observed log-odds, 1 + 2 max o · e^min(r, 1). Were
    what is missing spread over another r of log-odds beyond the largest that was
    observed, some of it would have been observed below the bound. It is at least that
    of a φ of 0.8, which a step may have where no row was observed. A few values show no
    range: then there is no bound.

    Returns
    -------
    ndarray of shape (4, n_things)
        How many weights are positive, the sum of their odds o = W − 1, and the evidence
        against "not too much" and "not too little" weight.
    """
    observed = weights > 0.0
    n_observed = np.count_nonzero(observed, axis=1)
    n_missing = (weights.shape[1] - n_observed)[:, None]
    # Where a weight rounds to less than one, φ is zero.
    odds = np.clip(weights - 1.0, 0.0, _LARGEST_ODDS)
    total, squares = odds.sum(axis=1), np.vecdot(odds, odds)
    least = np.where(observed, odds, np.inf).min(axis=1, initial=np.inf)
    most = odds.max(axis=1, initial=0.0)
    # Σ log(1 + λo), (n_things, n_bets); of products of eight, which is faster.
    eights = np.pad(odds, ((0, 0), (0, -odds.shape[1] % 8))).reshape(len(odds), 8, -1)
    growth = [np.log((1.0 + bet * eights).prod(axis=1)).sum(axis=1) for bet in _BETS]
    over = n_missing * _LOG_STAKES + np.stack(growth, axis=1)
    largest = np.maximum(most, _SMALLEST_ODDS)
    spread = np.log(largest / np.clip(least, _SMALLEST_ODDS, largest))
    plausible = np.maximum(2.0 * most * np.exp(np.minimum(spread, 1.0)), _UNSEEN_ODDS)
    plausible[n_observed < 10] = np.inf
    room = np.where(np.isfinite(bounds), bounds - 1.0, plausible)
    room = np.maximum(room, largest)[:, None]
    # A missing row's ξ = 1/room is known; observed rows take Fan's bound.
    under = (
        n_missing * np.log1p(_BETS / room)
        - _BETS * (total[:, None] / room)
        - _PENALTIES * (squares[:, None] / room / room)
    )
    evidence = np.logaddexp.reduce([over, under], axis=2) - math.log(len(_BETS))
    # Where nothing is observed there is nothing to compare.
    evidence[:, n_observed == 0] = -math.inf
    return np.array([n_observed, total, *evidence])


@dataclass(frozen=True)
class MissingnessCheck:
    """One comparison of φ with a table: missing shares expected and found.

    Parameters
    ----------
    what : str
        "rows", a column's name, or two columns' names.
    n_rows : int
    expected : float
        The missing share by φ: its mean under the weights.
    found : float
        The missing share of the table.
    pvalue : float
        Small where the table speaks against φ.
    level : float
        The chance that a φ that is right is said to be contradicted.
    exact : bool
        Whether that level needs no guess at odds that were never observed. It does for
        too little weight where φ's maximum is not known.
    odds_factor : float
        By what factor the odds φ/(1 − φ) must be wrong, at the least, to explain it.
    joint : bool
        Whether it is about entries that go missing together.
    among : str
        Which rows it is about, where not all.
    """

    what: str
    n_rows: int
    expected: float
    found: float
    pvalue: float
    level: float
    exact: bool
    odds_factor: float
    joint: bool = False
    among: str = ""

    @property
    def statistic(self) -> float:
        """The missing share found, less that expected."""
        return self.found - self.expected

    @property
    def verdict(self) -> Literal["consistent", "shortfall", "contradiction"]:
        """What the check finds.

        "contradiction": φ is wrong, but for a chance of `level`. "shortfall": φ is
        wrong, or values are missing of which none like them was observed.
        """
        if self.pvalue > self.level:
            return "consistent"
        return "contradiction" if self.exact else "shortfall"

    @property
    def sentence(self) -> str:
        """What φ expects and what the table has."""
        # With as many digits as tell them apart.
        for digits in range(4):
            shares = [f"{100 * x:.{digits}f}%" for x in (self.expected, self.found)]
            if shares[0] != shares[1]:
                break
        whose = "the rows" if self.what == "rows" else self.what
        about = f"{whose}{self.among} missing"
        if self.joint:
            whose = "any column" if self.what == "rows" else self.what
            about = f"the rows to miss a value in {whose}"
        return f"φ expects {shares[0]} of {about}, the table has {shares[1]}"


class MissingnessContradictionError(Explained, ValueError):
    """The data contradict φ, so that no guarantee can rest on it.

    Parameters
    ----------
    message : Message
    checks : sequence of MissingnessCheck, or of a learned φ's `Check`
        Those that contradict φ, the clearest first.
    """

    def __init__(self, message: Message, checks: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.checks = tuple(checks)


class MissingnessContradictionWarning(Explained, UserWarning):
    """The table contradicts φ or has a shortfall: weighted estimates are biased."""


def missingness_check(
    X: Any,
    missingness: Missingness,
    *,
    level: float = LEVEL,
    complete: bool = False,
    odds_factor: float = 1.0,
    names: Sequence[str] | None = None,
    weights: FloatArray | None = None,
) -> tuple[MissingnessCheck, ...]:
    """Test E W = 1 for the rows of one class, to see whether the table contradicts φ.

    All the checks together contradict a right φ with probability at most `level`. Most
    of them are strict, by Markov's bound on an e-value: a right φ is contradicted less
    often than that.

    Parameters
    ----------
    X : array-like or dataframe of shape (n, d)
        The rows of one class, NaN where missing.
    missingness : Missingness
        If it was learned, only what no φ in its band explains speaks against it.
    level : float, default=0.001
    complete : bool, default=False
        Whether to test as well that entries go missing independently given the row,
        and that shares are right among rows alike in other columns.
    odds_factor : float, default=1.0
        By what factor the odds φ/(1 − φ) may be wrong either way.
    names : sequence of str, optional
        Of the columns, for messages; those of a dataframe are known.
    weights : ndarray of shape (n,) or (n, d), optional
        The weights 1/(1 − φ), where they are known. A learned φ is then taken at its
        word unless that is contradicted, and rows alike are not looked at.

    Returns
    -------
    tuple of MissingnessCheck
        One for the rows, or one for each column (then for pairs and complete rows).

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> phi = mr.LogisticMissingness(-1.0, [2.0])
    >>> X = mr.corrupt(rng.normal(size=(500, 1)), phi, rng)
    >>> [check.verdict for check in mr.missingness_check(X, phi)]
    ['consistent']
    >>> mirrored = mr.LogisticMissingness(-1.0, [-2.0])
    >>> (check,) = mr.missingness_check(X, mirrored)
    >>> check.verdict, check.sentence
    ('contradiction', 'φ expects 90% of column 0 missing, the table has 34%')
    """
    columns = reading.column_names(X) if names is None else names
    missingness = missingness.bound(columns)
    check_probability("level", level)
    # 1. What is tested: what goes missing together is one thing.
    n_columns, groups = np.shape(X)[1], missingness.groups
    maxima = missingness.column_maxima(n_columns)
    with np.errstate(divide="ignore"):
        bounds = 1.0 + odds_factor * maxima / (1.0 - maxima)
    called = ["rows"]
    if not missingness.rowwise:
        kept = np.arange(n_columns) if groups is None else once(groups)
        called = [
            f"column {reading.column_name(X, j) if names is None else repr(names[j])}"
            for j in kept
        ]
        bounds = bounds[kept]
    # 2. The weights; or the least and the largest ones that φ may give.
    edges, table = [] if weights is None else [weights], None
    if weights is None:
        if missingness.learned:
            low, high = missingness.probability_band(X, level)
        else:
            low = high = missingness.missing_probability(X)
        ends = [(low, 1.0 / odds_factor)]
        ends += [(high, odds_factor)] if low is not high or odds_factor > 1.0 else []
        for probability, factor in ends:
            with np.errstate(divide="ignore"):
                edge = 1.0 + factor * probability / (1.0 - probability)
            edges.append(np.where(np.isnan(edge), 0.0, edge))
        if complete and not missingness.rowwise and groups is None:
            table = reading.as_coded_array(X)
    if groups is not None and not missingness.rowwise:
        edges = [edge[:, kept] for edge in edges]
    checks = check_weights(edges, called, bounds, level, complete=complete, table=table)
    # 3. What speaks against a learned φ is what no φ in its band explains.
    doubtful = any(check.verdict != "consistent" for check in checks)
    if weights is not None and missingness.learned and doubtful:
        return missingness_check(X, missingness, complete=complete, names=names)
    return checks


def _shape_checks(
    X: FloatArray,
    edges: Sequence[FloatArray],
    bounds: FloatArray,
    names: Sequence[str],
    columns: Sequence[int],
    level: float,
) -> list[MissingnessCheck]:
    """Test shares among rows in which other columns predict a low or a high value.

    Rows are thirds by what is predicted of them. In each, g is what speaks most for log
    odds that are too flat or too steep about their mean: E[φ (z − c)] / E[φ/(1 − φ)],
    by the other half of the rows. It is small where weights are large.
    """
    n_rows, width = X.shape
    if n_rows < _FEWEST_PREDICTED or not 1 < width <= _WIDEST:
        return []
    # 1. Predict each half of the rows by what the other half teaches.
    order = np.random.default_rng(0).permutation(n_rows)[:_MOST_PREDICTED]
    table = X[order].astype(np.float64)
    known = ~np.isnan(table)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, table, 0.0).sum(axis=0) / count
    scaled = np.where(known, table - mean, 0.0)
    spread = np.sqrt((scaled * scaled).sum(axis=0) / count)
    varies = spread > 1e-12 * np.abs(mean)
    scaled = np.clip(scaled / np.where(varies, spread, np.inf), -4.0, 4.0)
    third = np.empty(table.shape, dtype=np.intp)
    parts = np.array_split(np.arange(len(order)), 2)
    for half, other in (parts, parts[::-1]):
        products = scaled[other].T @ scaled[other] / len(other)
        precision = np.linalg.inv(products + 0.05 * np.eye(width))
        diagonal = np.diag(precision).copy()
        np.fill_diagonal(precision, 0.0)
        predicted = scaled[half] @ precision / -diagonal
        low, high = np.quantile(predicted, [1 / 3, 2 / 3], axis=0)
        third[half] = (predicted > low).astype(np.intp) + (predicted > high)
    # 2. Compare each column's weights with one, by thirds.
    checks = []
    for j in columns:
        seen = edges[0][order, j] > 0.0
        low, high = (
            np.clip(weights[order[seen], j] - 1.0, 0.0, _LARGEST_ODDS)
            for weights in (edges[0], edges[-1])
        )
        odds, g = np.zeros(len(order)), np.zeros(len(order))
        odds[seen] = np.sqrt(low * high)
        for half, other in (parts, parts[::-1]):
            o, z, place = odds[other], scaled[other, j], third[other, j]
            moved = np.bincount(place, o * (z - o @ z / max(o.sum(), _SMALLEST)), 3)
            weight = np.bincount(place, o * (1.0 + o), 3)
            tilt = moved / np.maximum(weight, _SMALLEST)
            g[half] = (tilt / max(np.abs(tilt).max(), _SMALLEST))[third[half, j]]
        of_seen, lost = g[seen], g[~seen].sum()
        pvalue, factor, worst = 1.0, 1.0, odds[seen]
        # The least sum that φ may give is above zero, or the largest one below.
        for first, second, sign in ((low, high, 1.0), (high, low, -1.0)):
            o = np.where(of_seen > 0.0, first, second)
            total, variance = o @ of_seen - lost, (o * (1.0 + o)) @ of_seen**2
            if not sign * total > np.sqrt(variance) > 0.0:
                continue
            room = bounds[j] - 1.0
            if not np.isfinite(room):
                room = max(math.e * o.max(), _UNSEEN_ODDS)
            steepest = math.log1p(1.0 / max(room, o.max()))
            tilts = [-steepest / max(g.max(), _SMALLEST)]
            tilts.append(steepest / max(-g.min(), _SMALLEST))
            _, (pvalue,) = residual_tails(
                of_seen[:, None], 1.0 + o, o, np.array([total]), tuple(tilts)
            )
            factor, worst = least_factor(o * of_seen, total), o
        # 3. What is said of the third that deviates most.
        place = third[:, j]
        n, n_seen = np.bincount(place, None, 3), np.bincount(place[seen], None, 3)
        expected = np.bincount(place[seen], worst, 3)
        k = int(np.argmax(np.abs(n_seen + expected - n)))
        share = float(expected[k] / max(n_seen[k] + expected[k], _SMALLEST))
        found, exact = float(1.0 - n_seen[k] / max(n[k], 1)), np.isfinite(bounds[j])
        facts = share, found, float(pvalue), level, bool(exact), factor, False
        among = f" (where other columns predict a {_THIRDS[k]} value)"
        checks.append(MissingnessCheck(names[j], int(n[k]), *facts, among))
    return checks


def residual_tails(
    g: FloatArray,
    counts: FloatArray,
    odds: FloatArray,
    sums: FloatArray,
    tilts: tuple[float, float] = (-math.inf, math.inf),
) -> tuple[FloatArray, FloatArray]:
    """How far out sums Σ m g are, where m is −1 with probability φ and the odds else.

    The rates I = sup_s (s·sum − K(s)) by Newton's method, and how probable it is that
    sums are as far out on either side. With φ = odds/(1 + odds), K(s) = Σ counts·(s g o
    + log(1 + φ(e^(−s g (1 + o)) − 1))). The tails are Lugannani and Rice's (1980), as
    of sums on a lattice, in steps of what a row adds; but at most Chernoff's bound,
    which they are where s is at an end of `tilts`.

    Parameters
    ----------
    g : ndarray of shape (n_rows, n_functions)
    counts, odds : ndarray of shape (n_rows,)
        How many rows each stands for.
    sums : ndarray of shape (n_functions,)
    tilts : tuple of two floats
        The least and the largest s.
    """
    kept = counts > 0.0
    if not kept.all():
        g, counts, odds = g[kept], counts[kept], odds[kept]
    odds = odds[:, None]
    phi, jumps = odds / (1.0 + odds), g * (1.0 + odds)
    largest = _LARGEST_EXPONENT / np.abs(jumps).max(axis=0)
    low, high = np.maximum(tilts[0], -largest), np.minimum(tilts[1], largest)
    drift = counts[:, None] * (g * odds)
    total, falls, squares = drift.sum(axis=0), drift * (1.0 - phi), drift * g

    def rate(s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        power = np.expm1(-s * jumps)
        below = 1.0 + phi * power
        value = s * (sums - total) - counts @ np.log(below)
        slope = sums + np.einsum("ij,ij->j", falls, power / below)
        power += 1.0
        power /= below**2
        return value, slope, np.einsum("ij,ij->j", squares, power)

    s = np.zeros(len(sums))
    best, slope, curvature = rate(s)
    lattice = np.einsum("ij,ij->j", squares, np.abs(jumps)) / curvature
    step = slope / curvature
    for _ in range(20):
        tried = np.clip(s + step, low, high)
        value, new_slope, new_curvature = rate(tried)
        up = value > best
        s, best = np.where(up, tried, s), np.where(up, value, best)
        slope = np.where(up, new_slope, slope)
        curvature = np.where(up, new_curvature, curvature)
        step = np.where(up, slope / np.maximum(curvature, _SMALLEST), step / 4.0)
        if (np.abs(slope * step) < 1e-3).all():
            break
    root = np.sqrt(2.0 * np.maximum(best, _SMALLEST))
    scale = -np.expm1(-np.abs(s) * lattice) / lattice * np.sqrt(curvature)
    mills = np.sqrt(np.pi / 2.0) * erfcx(root / np.sqrt(2.0))
    tail = np.sqrt(2.0 / np.pi) * (
        mills + 1.0 / np.maximum(scale, _SMALLEST) - 1.0 / root
    )
    tail[(s <= tilts[0]) | (s >= tilts[1])] = 1.0
    return best, np.exp(-best) * np.clip(tail, 0.0, 1.0)


def least_factor(parts: FloatArray, total: float) -> float:
    """By what factor odds must be wrong, either way and at the least, to explain a sum.

    `parts` are what observed rows add to it, each in proportion to its odds; the total
    has what missing rows add as well.
    """
    parts = parts * np.copysign(1.0, total)
    more, less = parts[parts > 0.0].sum(), -parts[parts < 0.0].sum()
    # more·(1 − 1/Γ) + less·(Γ − 1) = |total|.
    half = (less - more + abs(total)) / 2.0
    if less <= _SMALLEST * more:
        return float(more / (more - abs(total))) if more > abs(total) else np.inf
    return float((half + np.sqrt(half**2 + more * less)) / less)


def check_weights(
    edges: Sequence[FloatArray],
    names: Sequence[str],
    bounds: FloatArray,
    level: float = LEVEL,
    *,
    complete: bool = False,
    table: FloatArray | None = None,
) -> tuple[MissingnessCheck, ...]:
    """Test that weights have mean one.

    `edges` are the weights, (n,) or (n, d); or the least and the largest ones that φ
    may give. `bounds` are on the weights of each column, inf where none is known;
    `level` is over all checks together; `complete` tests products over columns as well,
    and with a `table` each column is tested among rows alike in other columns.
    """
    columns = [weights.reshape(len(weights), -1) for weights in edges]
    n_rows, width = columns[0].shape
    high = columns[-1]
    lossy = np.flatnonzero(((high > 1.0) | (high == 0.0)).any(axis=0)).tolist()
    # 1. What is tested: columns, pairs of them and all; some of the rows are enough
    #    where there are many pairs.
    tested: list[tuple[Sequence[tuple[int, ...]], int]]
    tested = [([(j,) for j in range(width)], 1)]
    if complete and len(lossy) > 1:
        pairs = list(combinations(lossy, 2))
        tested.append((pairs, 1 + n_rows * len(pairs) // 2_000_000))
        tested += [([tuple(lossy)], 1)] * (len(lossy) > 2)
    # 2. A column that has nothing to lose is no test.
    n_tests = len(lossy) * (1 if table is None else 2)
    n_tests += sum(len(groups) for groups, _ in tested[1:])
    each_level, checks = level / max(n_tests, 1), []
    for groups, step in tested:
        limits = np.array([math.prod(float(bounds[j]) for j in g) for g in groups])
        evidence = []
        for weights in columns:
            rows = weights[::step]
            joint = [joint_weight(rows[:, list(group)]) for group in groups]
            evidence.append(weight_evidence(np.stack(joint), limits).T)
        # 3. Too much weight even at the least, or too little even at the largest.
        for group, limit, least, most in zip(
            groups, limits, evidence[0], evidence[-1], strict=True
        ):
            over, under = least[2], most[3]
            (seen, odds, *_), n = least if over >= under else most, len(rows)
            expected = 1.0 - seen / (seen + odds) if seen else 1.0
            found = 1.0 - seen / max(n, 1)
            either = found * (1.0 - expected), expected * (1.0 - found)
            factor = max(either) / min(either) if min(either) > 0.0 else math.inf
            # It is tested in two ways.
            pvalue = min(1.0, 2.0 * math.exp(-max(over, under, 0.0)))
            exact = bool(over >= under or np.isfinite(limit))
            facts = float(expected), float(found), pvalue, each_level, exact, factor
            what = " or ".join(names[j] for j in group) if len(group) < 3 else "rows"
            checks.append(MissingnessCheck(what, n, *facts, len(group) > 1))
    if table is not None:
        checks[width:width] = _shape_checks(
            table, columns, bounds, names, lossy, each_level
        )
    return tuple(checks)


def describe(checks: Sequence[Any], label: Any, refuted: bool = False) -> Message:
    """The claim, the facts and what to do, of a φ that was stated or learned."""
    more = len(checks) - _SHOWN
    first = checks[0]
    if not isinstance(first, MissingnessCheck):
        facts = " ".join(test.finding for test in checks[:_SHOWN])
        facts += f" And {more} more." if more > 0 else ""
        claim = "contradict" if refuted else "cast doubt on"
        claim = f"The data {claim} the φ that was learned for class "
        return Message(claim + "{label!r}: {text}", label=label, facts={"text": facts})
    if all(check.joint for check in checks):
        remedy = (
            "Entries must go missing independently given the row: take a rowwise model "
            "where they go together."
        )
    elif first.among:
        remedy = (
            "φ may have the right share and the wrong shape, or depend on other "
            "columns: correct it, or let it be learned."
        )
    elif not first.exact:
        remedy = (
            "φ is too small or was made for other units (a scaler before it?), or some "
            "values go missing so surely that none like them was observed: correct φ, "
            "declare its maximum, or look some of the missing values up."
        )
    else:
        remedy = (
            "Was φ made for other units (a scaler before it?) or for another class, or "
            "is its sign wrong? Were missing rows dropped from the table? Correct φ, "
            "or let it be learned."
        )
    facts = "; ".join(check.sentence for check in checks[:_SHOWN])
    facts += f"; and {more} more" if more > 0 else ""
    claim = "contradicts" if first.exact else "doesn't fit"
    claim = "hardly fits" if first.verdict == "consistent" else claim
    claim = f"The table {claim} φ of class " + "{label!r}: {text}"
    return Message(claim, label=label, facts={"text": f"{facts}. {remedy}"})


def refuse_contradiction(
    checks: Sequence[MissingnessCheck],
    label: Any,
    tests: Sequence[Any] = (),
    odds_factor: float = 1.0,
) -> None:
    """Refuse a φ that data refute beyond doubt, for a guarantee, and warn of doubts.

    Refuted: p < 0.001 over all checks, or over all tests of a learned φ. Doubtful: p <
    0.05. What an odds factor explains is neither. Either message says how to come by a
    guarantee.
    """
    tests = [test for test in tests if test.pvalue is not None]
    n_tests = len(tests)
    tests = [test for test in tests if not test.odds_factor <= odds_factor]
    tests.sort(key=lambda test: test.pvalue)
    for level in (LEVEL, DOUBT):
        refuting = [test for test in tests if n_tests * test.pvalue < level]
        for against in filter(None, (_clearest(checks, level), refuting)):
            refuted = level == LEVEL
            message = describe(against, label, refuted)
            claim = message.claim + " No guarantee can rest on this φ." * refuted
            factor = max(check.odds_factor for check in against)
            remedies = [Remedy.LOOKED_UP, Remedy.AS_OBSERVED, Remedy.OTHER_FORM]
            # Nobody means odds that are wrong by a larger factor.
            if factor <= 20.0:
                remedies.append(Remedy.ODDS_FACTOR)
                factor = math.ceil(100.0 * factor) / 100.0
            facts = {**message.facts, "factor": factor}
            message = replace(message, claim=claim, remedies=(*remedies,), facts=facts)
            if refuted:
                raise MissingnessContradictionError(message, against)
            warn(MissingnessContradictionWarning(message))


def warn_of_contradiction(checks: Sequence[MissingnessCheck], label: Any) -> None:
    """Warn where a check contradicts φ or finds a shortfall: for an estimate."""
    if against := _clearest(checks, LEVEL):
        warn(MissingnessContradictionWarning(describe(against, label)))


def _clearest(
    checks: Sequence[MissingnessCheck], level: float
) -> list[MissingnessCheck]:
    """Those that speak against φ: columns before products, contradictions first."""

    def order(check: MissingnessCheck) -> tuple[Any, ...]:
        return check.joint, check.among != "", not check.exact, check.pvalue

    against = [check for check in checks if check.pvalue <= check.level * level / LEVEL]
    return sorted(against, key=order)
