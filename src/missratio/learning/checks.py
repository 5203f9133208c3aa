"""Tests of a learned φ, each with its level: by more equations, and by look-ups.

More equations than parameters: tests of the φ that a table taught.

Two functions h of the other columns fix φ_j. For every further one, E[m h] = 0 for the
residual m = 1{observed}/(1 − φ_j) − 1 tests what was assumed: that the log-odds are
linear in z_j, that they depend on nothing else, and that entries go missing
independently. Each equation is made orthogonal to those that φ was estimated from, so
that the estimate's error doesn't matter. Functions are bounded, and small where weights
are expected to be large.

Given the rows, m is −1 with probability φ and φ/(1 − φ) otherwise, independently. So
the law of a sum Σ m g is known from φ, and needs no variance from the rows that went
missing: where a few are expected to go missing together and none does, those would
have next to none. With K the logarithm of the sum's moment generating function,
Chernoff's bound exp(−I), I = sup_s (s Σ m g − K(s)), and the saddlepoint's tail hold
for counts of any size, far out in the tail as well.

Tests of a φ that was learned from looked-up values.

Values that were looked up follow the observed ones, tilted by the odds e^(βᵀz), if φ is
logistic in them and depends on nothing else. Score tests (Rao 1948) of the logistic
regression of "was missing" on the value: does a further function f of the row help? Its
score Σ (y − p) f is made orthogonal to those of the parameters, so that their error
doesn't matter; f is bounded, so that the normal law holds with few values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.polynomial import legendre
from scipy.special import erfcx, expit
from scipy.stats import chi2
from scipy.stats import t as student

from missratio._base.blocks import any_by_row
from missratio._base.storable import storable
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.learning.evidence import Evidence
from missratio.learning.shadow import ScoredTable

Kind = Literal[
    "form", "other columns", "agreement", "weights", "instrument", "together", "label"
]
Source = Literal["table", "looked up"]

LEVEL = 0.01
"""How often a right φ is called wrong, by any of a model's tests, at most."""

REMEDY = (
    "Don't weight by this φ: use looked-up values as data, or model φ in another way."
)


class MissingnessWarning(UserWarning):
    """The data contradicts a learned φ, or can't teach it."""


@storable()
@dataclass(frozen=True)
class Check:
    """One test of a learned φ, of one feature.

    Parameters
    ----------
    kind : str
        "form": is φ logistic in the value? "other columns": does it depend on others,
        or do entries go missing together? "agreement": do looked-up values and the
        table say the same? "weights": do a handful of rows carry half of them?
        "instrument": could the table teach φ at all? "together": do columns go missing
        in the same rows? "label": is φ the same in all classes (`compare_classes`)?
    feature : str
        "rows" for a rowwise model.
    source : {"table", "looked up"}
        What the check was computed from.
    statistic : float
        "form" and "agreement": χ²; "other columns": a normal deviate; "weights": the
        share of observed rows that carries half of the weight; "instrument": how many
        looked-up values would teach as much.
    p_value : float or None
        None for a check that is no test.
    failed : bool
        Whether it speaks against the model, by `LEVEL` for all tests of the model.
    sentence : str
        What was found, and what to do about it where it failed.
    odds_factor : float or None
        By what factor the odds φ/(1 − φ) would have to be wrong, at the least, to
        explain what a test found; None for a check that is no test.
    """

    kind: Kind
    feature: str
    source: Source
    statistic: float
    p_value: float | None
    failed: bool
    sentence: str
    odds_factor: float | None = None

    @property
    def finding(self) -> str:
        """The sentence without what to do about it."""
        return self.sentence.removesuffix(f" {REMEDY}")


def failing(checks: Sequence[Check]) -> str:
    """The sentences of checks that failed, one a line; empty if there are none."""
    return "\n".join(check.sentence for check in checks if check.failed)


LARGEST_LOG_ODDS = 50.0
RANKED = 4096
DEGREES = (2, 3, 4)
# Of so many functions at most, those that deviate most, the rates are computed.
MOST_REFINED = 8
NEWTON_STEPS = 20
RATE_TOLERANCE = 1e-3
SMALLEST = 1e-300


@dataclass(frozen=True, slots=True)
class Overidentification:
    """Two tests of the φ of one feature, or of whole rows.

    Parameters
    ----------
    form_statistic, form_p : float
        Polynomials of the predicted value's rank: χ² with three degrees of freedom.
    other_statistic, other_p : float
        Of the function of another column that fits worst, a normal deviate. Its p-value
        is Bonferroni's over all of them.
    other : int
        Which function that is: a place among the shadow features.
    form_factor, other_factor : float
        By what factor the odds would have to be wrong, at the least, to explain each.
    """

    form_statistic: float
    form_p: float
    other_statistic: float
    other_p: float
    other: int
    form_factor: float
    other_factor: float


@dataclass(frozen=True, slots=True)
class Residuals:
    """The fitted φ of a feature, or of whole rows, row by row.

    Parameters
    ----------
    log_odds : ndarray of shape (n_observed,)
        Of being missing.
    values : ndarray of shape (n_columns, n_observed)
        Standardised: of the feature, or of the columns of whole rows.
    observed : ndarray of int
        The rows of those.
    instruments : ndarray of shape (n_rows, 1 + n_columns)
        That φ was estimated with; the first is positive.
    """

    log_odds: FloatArray
    values: FloatArray
    observed: IntArray
    instruments: FloatArray

    @property
    def odds(self) -> FloatArray:
        """Of being missing, of observed rows."""
        return np.exp(np.minimum(self.log_odds, LARGEST_LOG_ODDS))

    @property
    def residual(self) -> FloatArray:
        """1{observed}/(1 − φ) − 1 of every row."""
        residual = np.full(len(self.instruments), -1.0)
        residual[self.observed] = self.odds
        return residual

    @property
    def laws(self) -> tuple[tuple[FloatArray, FloatArray], ...]:
        """Rows that stand for all, twice over: how many each stands for, and its odds.

        Observed rows stand for the missing ones that are like them, in proportion to
        their odds. Or missing rows stand for themselves, with odds in proportion to
        1/v, on average those of missing rows: for what hardly occurs among observed
        rows.
        """
        odds, v = self.odds, self.instruments[:, 0]
        counts = np.zeros(len(v))
        counts[self.observed] = 1.0 + odds
        every = (odds @ (odds * v[self.observed]) / odds.sum()) / v
        every[self.observed] = odds
        return (counts, every), (np.ones(len(v)), every)

    def orthogonal(
        self, functions: FloatArray, squares: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sums Σ m g of g = v f less what the estimate takes from it.

        Parameters
        ----------
        functions, squares : ndarray of shape (n_rows, n_functions)
            f, and f².

        Returns
        -------
        sums, variances : ndarray of shape (n_functions,)
            The variance is that by φ, the larger one of the two `laws`.
        projections : ndarray of shape (n_functions, 1 + n_columns)
            The instruments' part that is subtracted from each function.
        """
        h, residual = self.instruments, self.residual
        width = h.shape[1]
        # How the residual moves with φ's parameters.
        slopes = np.zeros((width, len(h)))
        slopes[0, self.observed] = self.odds
        slopes[1:, self.observed] = self.odds * self.values
        v = h[:, 0]
        spreads = [counts * odds for counts, odds in self.laws]
        weighted = np.concatenate(
            [[v * residual], v * slopes, *(v * spread * h.T for spread in spreads)]
        )
        products = weighted @ functions
        projections = products[1 : 1 + width].T @ np.linalg.inv(slopes @ h)
        sums = products[0] - projections @ (residual @ h)
        variances = np.zeros(len(sums))
        for k, spread in enumerate(spreads, start=1):
            mixed = products[1 + k * width : 1 + (k + 1) * width].T
            found = (spread * v**2) @ squares - 2.0 * (projections * mixed).sum(axis=1)
            found += ((projections @ ((h.T * spread) @ h)) * projections).sum(axis=1)
            variances = np.maximum(variances, found)
        return sums, variances, projections

    def tails(
        self, functions: FloatArray, projections: FloatArray, sums: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Rates I of sums, and how probable it is that they are as far out.

        By the one of the two `laws` that makes them more probable. Parameters are those
        of `orthogonal`.
        """
        h = self.instruments
        g = h[:, :1] * functions - h @ projections.T
        first, second = (_tails(g, *law, sums) for law in self.laws)
        return np.minimum(first[0], second[0]), np.maximum(first[1], second[1])

    def factor(
        self, function: FloatArray, projection: FloatArray, total: float
    ) -> float:
        """By what factor odds must be wrong, at the least, to explain one sum."""
        h = self.instruments
        g = (h[:, 0] * function - h @ projection)[self.observed]
        return least_factor(self.odds * g, total)

    def form(self, predicted: FloatArray) -> tuple[float, float, float]:
        """The test by polynomials of the prediction's rank, in the worst direction."""
        kept = np.sort(predicted[:: max(1, len(predicted) // RANKED)])
        rank = np.interp(predicted, kept, np.linspace(-1.0, 1.0, len(kept)))
        basis = np.stack(
            [legendre.legval(rank, np.eye(1 + k)[k]) for k in DEGREES], axis=1
        )
        sums, _, projections = self.orthogonal(basis, basis**2)
        h = self.instruments
        g = h[:, :1] * basis - h @ projections.T
        spread = np.prod(self.laws[0], axis=0)
        worst = np.linalg.pinv((g.T * spread) @ g, hermitian=True) @ sums
        function, projection = basis @ worst, worst @ projections
        total = np.array([worst @ sums])
        rates, _ = self.tails(function[:, None], projection[None], total)
        statistic = 2.0 * float(rates[0])
        factor = self.factor(function, projection, float(total[0]))
        return statistic, float(chi2.sf(statistic, len(DEGREES))), factor

    def others(
        self, functions: FloatArray, squares: FloatArray, usable: BoolArray
    ) -> tuple[float, float, int, float]:
        """The function of other columns that deviates most.

        Its normal deviate, p, place and `factor`. p is that of the function by itself;
        it is 1 where it says nothing.
        """
        sums, variances, projections = self.orthogonal(functions, squares)
        tested = usable & (variances > 1e-9 * variances.max())
        deviates = np.where(tested, sums, 0.0) / np.sqrt(np.where(tested, variances, 1))
        far = np.argsort(-np.abs(deviates))[:MOST_REFINED]
        place = int(far[0])
        # Of a count the rate is at most the deviate's square: of a small one it says
        # nothing beside that many functions.
        far = far[deviates[far] ** 2 > np.log(2.0 * len(tested))]
        if not len(far):
            return float(deviates[place]), 1.0, place, 1.0
        rates, p_values = self.tails(functions[:, far], projections[far], sums[far])
        worst = int(np.argmax(rates))
        place, total = int(far[worst]), float(sums[far[worst]])
        statistic = float(np.copysign(np.sqrt(2.0 * rates[worst]), total))
        factor = self.factor(functions[:, place], projections[place], total)
        return statistic, float(p_values[worst]), place, factor


def least_factor(parts: FloatArray, total: float) -> float:
    """By what factor odds must be wrong, either way and at the least, to explain a sum.

    Parameters
    ----------
    parts : ndarray
        What observed rows add to it, each in proportion to its odds.
    total : float
        The sum: of these, and of what missing rows add.
    """
    parts = parts * np.copysign(1.0, total)
    more, less = parts[parts > 0.0].sum(), -parts[parts < 0.0].sum()
    # more·(1 − 1/Γ) + less·(Γ − 1) = |total|.
    half = (less - more + abs(total)) / 2.0
    if less <= SMALLEST * more:
        return float(more / (more - abs(total))) if more > abs(total) else np.inf
    return float((half + np.sqrt(half**2 + more * less)) / less)


def _tails(
    g: FloatArray, counts: FloatArray, odds: FloatArray, sums: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """I = sup_s (s·sum − K(s)), by Newton's method, and the two tails beyond the sums.

    K(s) = Σ counts·(s g o + log(1 + φ(e^(−s g (1 + o)) − 1))). The tails are Lugannani
    and Rice's (1980), as of sums on a lattice, in steps of what a row adds; but at most
    Chernoff's bound.
    """
    kept = counts > 0.0
    g, counts, odds = g[kept], counts[kept], odds[kept, None]
    phi, jumps = odds / (1.0 + odds), g * (1.0 + odds)
    largest = LARGEST_LOG_ODDS / np.abs(jumps).max(axis=0)

    def rate(s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        power = np.expm1(-s * jumps)
        below = 1.0 + phi * power
        value = s * sums - counts @ (s * g * odds + np.log(below))
        slope = sums + counts @ (g * odds * (1.0 - phi) * power / below)
        return value, slope, counts @ (g**2 * odds * (1.0 + power) / below**2)

    s = np.zeros(len(sums))
    best, slope, curvature = rate(s)
    lattice = counts @ (g**2 * odds * np.abs(jumps)) / curvature
    step = slope / curvature
    for _ in range(NEWTON_STEPS):
        tried = np.clip(s + step, -largest, largest)
        found, *rest = rate(tried)
        up = found > best
        s, best = np.where(up, tried, s), np.where(up, found, best)
        slope, curvature = (
            np.where(up, a, b) for a, b in zip(rest, (slope, curvature), strict=True)
        )
        step = np.where(up, slope / np.maximum(curvature, SMALLEST), step / 4.0)
        if (np.abs(slope * step) < RATE_TOLERANCE).all():
            break
    root = np.sqrt(2.0 * np.maximum(best, SMALLEST))
    scale = -np.expm1(-np.abs(s) * lattice) / lattice * np.sqrt(curvature)
    mills = np.sqrt(np.pi / 2.0) * erfcx(root / np.sqrt(2.0))
    tail = np.sqrt(2.0 / np.pi) * (
        mills + 1.0 / np.maximum(scale, SMALLEST) - 1.0 / root
    )
    return best, np.exp(-best) * np.clip(tail, 0.0, 1.0)


def overidentification(
    residuals: Residuals,
    predicted: FloatArray,
    features: FloatArray,
    squares: FloatArray,
    usable: BoolArray,
    lost: FloatArray | None = None,
) -> Overidentification:
    """Test the φ of one feature, or of whole rows.

    Parameters
    ----------
    residuals : Residuals
    predicted : ndarray of shape (n_rows,)
        The feature, or the log-odds of whole rows, predicted from the other columns.
    features, squares : ndarray of shape (n_rows, n_features)
        Functions of the other columns, and their squares.
    usable : ndarray of bool of shape (n_features,)
        Those that don't belong to the feature.
    lost : ndarray of shape (n_rows,), optional
        One function more, in the place after these: how many other columns are missing.
        Where few rows miss any two of them, it finds what no pair shows.
    """
    form_statistic, form_p, form_factor = residuals.form(predicted)
    statistic, p_value, place, factor = residuals.others(features, squares, usable)
    n_tests = int(usable.sum())
    if lost is not None:
        more = (lost - lost.mean())[:, None]
        found = residuals.others(more, more**2, np.ones(1, dtype=bool))
        n_tests += 1
        if found[1] < p_value:
            statistic, p_value, _, factor = found
            place = features.shape[1]
    p_value = min(1.0, n_tests * p_value)
    form = form_statistic, form_p
    return Overidentification(*form, statistic, p_value, place, form_factor, factor)


SAME = 1e-10


def form_test(evidence: Evidence, theta: FloatArray) -> tuple[float, float, float]:
    """Test whether polynomials of the value's rank help: χ², three degrees of freedom.

    The statistic, p, and by what factor the odds must be wrong to explain it.

    Parameters
    ----------
    evidence : Evidence
        With values looked up, and a slope.
    theta : ndarray of shape (n_parameters,)
        Its intercept not corrected. Whole rows are ranked by their log-odds.
    """
    score = theta[1:] @ evidence.values
    rank = ranks_in_laws(score, evidence).sum(axis=0) - 1.0
    basis = np.stack([legendre.legval(rank, np.eye(1 + k)[k]) for k in DEGREES])
    design = evidence.coordinates.design(evidence.values)
    sums, rest, weight = _scores(evidence, theta, design, basis)
    covariance = (rest * weight) @ rest.T
    worst = np.linalg.pinv(covariance, hermitian=True) @ sums
    statistic = float(worst @ sums)
    rank_of = int(np.linalg.matrix_rank(covariance, hermitian=True))
    p_value = float(chi2.sf(statistic, max(rank_of, 1)))
    return statistic, p_value, _factor(statistic, weight, worst @ rest)


def _factor(total: float, weight: FloatArray, function: FloatArray) -> float:
    """By what factor odds must be wrong, to first order, to explain a score."""
    reach = float(weight @ np.abs(function))
    return float(np.exp(min(abs(total) / reach, LARGEST_LOG_ODDS))) if reach else np.inf


def ranks_in_laws(score: FloatArray, evidence: Evidence) -> FloatArray:
    """Where known values lie among observed and among missing ones, in [0, 1].

    Ties lie in the middle. The law of missing values is the fit's: the observed ones,
    tilted by their odds.

    Returns
    -------
    ndarray of shape (2, n_known)
    """
    first = evidence.n_revealed
    observed, mass = score[first:], evidence.mass[first:]
    order = np.argsort(observed, kind="stable")
    placed = observed[order]
    tilted = mass * np.exp(observed - observed.max())
    # Means of equal values differ from these by rounding.
    slack = SAME * (1.0 + np.abs(score).max())
    ranks = np.zeros((2, len(score)))
    for i, law in enumerate((mass, tilted)):
        sums = np.concatenate([[0.0], np.cumsum(law[order])]) / law.sum()
        below = np.searchsorted(placed, score - slack, side="left")
        up_to = np.searchsorted(placed, score + slack, side="right")
        ranks[i] = (sums[below] + sums[up_to]) / 2.0
    return ranks


def _scores(
    evidence: Evidence, theta: FloatArray, design: FloatArray, functions: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scores of functions (n_functions, n_known) less φ's part of them; p(1 − p)."""
    probability = expit(theta[0] + theta[1:] @ evidence.values)
    weight = evidence.mass * probability * (1.0 - probability)
    information = (design * weight) @ design.T
    projection = ((functions * weight) @ design.T) @ np.linalg.inv(information)
    rest = functions - projection @ design
    sums = rest @ (evidence.mass * (evidence.outcome - probability))
    return sums, rest, weight


def others_test(
    evidence: Evidence, theta: FloatArray, functions: FloatArray, usable: BoolArray
) -> tuple[float, float, int, float]:
    """Test whether a function of another column helps, by the one that helps most.

    Parameters
    ----------
    evidence : Evidence
    theta : ndarray of shape (n_parameters,)
    functions : ndarray of shape (n_known, n_functions)
        In the order of the evidence, of known values one by one.
    usable : ndarray of bool of shape (n_functions,)

    Returns
    -------
    statistic : float
        A normal deviate, judged by Student's law with as many degrees of freedom as
        values looked up, less one.
    p_value : float
        Bonferroni's over all functions.
    place : int
        Of the function.
    factor : float
        By what factor the odds must be wrong to explain it.
    """
    probability = expit(theta[0] + theta[1:] @ evidence.values)
    weight = evidence.mass * probability * (1.0 - probability)
    design = evidence.coordinates.design(evidence.values)
    information = (design * weight) @ design.T
    products = (design * weight) @ functions
    projection = np.linalg.solve(information, products)
    residual = evidence.mass * (evidence.outcome - probability)
    sums = residual @ functions - (residual @ design.T) @ projection
    whole = weight @ functions**2
    variances = whole - (products * projection).sum(axis=0)
    tested = usable & (variances > 1e-6 * whole) & (whole > 0.0)
    if not tested.any():
        return 0.0, 1.0, 0, 1.0
    deviates = np.where(tested, sums, 0.0) / np.sqrt(np.where(tested, variances, 1.0))
    place = int(np.argmax(np.abs(deviates)))
    statistic = float(deviates[place])
    # Far out in the tails, where the worst of many functions is judged, few values are
    # not yet normal: Student's law is on the safe side.
    freedom = max(evidence.revealed_mass - 1.0, 1.0)
    p_value = 2.0 * float(student.sf(abs(statistic), freedom)) * int(tested.sum())
    rest = functions[:, place] - projection[:, place] @ design
    factor = _factor(float(sums[place]), weight, rest)
    return statistic, min(1.0, p_value), place, factor


def carrying_share(evidence: Evidence, theta: FloatArray) -> float:
    """The smallest share of observed rows that carries half of all weight.

    `theta` has its intercept corrected.
    """
    first = evidence.n_revealed
    mass = evidence.mass[first:]
    log_odds = theta[0] + theta[1:] @ evidence.values[:, first:]
    weight = np.logaddexp(0.0, np.minimum(log_odds, LARGEST_LOG_ODDS))
    weight = np.exp(weight - weight.max())
    order = np.argsort(-weight)
    carried = np.cumsum((mass * weight)[order])
    place = int(np.searchsorted(carried, carried[-1] / 2.0))
    before = carried[place - 1] if place else 0.0
    rows = np.cumsum(mass[order])[place - 1] if place else 0.0
    rows += (carried[-1] / 2.0 - before) / weight[order][place]
    return float(rows / mass.sum())


# Rows beside looked-up ones that a test takes, at least, and for each looked-up value:
# they stand for all rows, and their own noise is 2 to 3% of its variance. To take all
# of 100,000 rows takes longer than to learn φ.
TEST_ROWS, ROWS_PER_ANSWER = 2000, 50


@dataclass(frozen=True, slots=True)
class LookupFunctions:
    """Functions of the columns, at looked-up rows and at some of the others.

    Parameters
    ----------
    functions : ndarray of shape (n_kept, n_functions)
    sampled : ndarray of bool of shape (n_kept,)
        Which rows stand for all, whatever was looked up of them.
    usable : ndarray of bool of shape (n_columns, n_functions)
        Which of them a test of each column may take.
    answers, values : ndarray of shape (n_kept, n_columns)
        What was looked up of these rows, and what was observed.
    n_observed : ndarray of int of shape (n_columns,)
        Of the whole table.
    """

    functions: FloatArray
    sampled: BoolArray
    usable: BoolArray
    answers: FloatArray
    values: FloatArray
    n_observed: IntArray

    @classmethod
    def of(
        cls, values: FloatArray, answers: FloatArray, usable: BoolArray
    ) -> LookupFunctions:
        """Those of a table, with what was looked up of it."""
        known = ~np.isnan(answers)
        n_wanted = max(TEST_ROWS, ROWS_PER_ANSWER * int(known.sum(axis=0).max()))
        sampled = np.zeros(len(values), dtype=bool)
        sampled[:: max(1, len(values) // n_wanted)] = True
        if np.isnan(values[sampled]).all(axis=0).any():
            sampled[:] = True
        kept = sampled | any_by_row(known)
        functions = ScoredTable.of(values[kept]).test_features()
        tested = usable.copy()
        # The constant is no function of a column.
        tested[:, -1] = False
        n_observed = len(values) - np.isnan(values).sum(axis=0)
        parts = tested, answers[kept], values[kept], n_observed
        return cls(functions, sampled[kept], *parts)


@dataclass(frozen=True)
class GoodnessOfFit:
    """Where the revealed values lie within the law that the model gives missing ones.

    If φ is right, missing values follow the observed ones tilted by the odds φ/(1 − φ).
    The ranks of the revealed ones within that law are then uniform. The test asks
    whether polynomials of the rank would help to tell revealed from observed values.

    Parameters
    ----------
    feature_names : tuple of str
        Features that have values looked up; for a rowwise model "rows", which are
        ranked by their fitted log-odds.
    ranks : tuple of ndarray
        Of the revealed values, in [0, 1] and sorted.
    statistic : ndarray of shape (n_features,)
        Rao's score statistic, χ² with three degrees of freedom; 0 where there is only
        one value, and nothing that could be off.
    p_value : ndarray of shape (n_features,)
        A logistic φ has one below 0.05 in at most about 5% of tables.
    """

    feature_names: tuple[str, ...]
    ranks: tuple[FloatArray, ...]
    statistic: FloatArray
    p_value: FloatArray

    @classmethod
    def of(cls, tested: Sequence[tuple[str, Evidence, FloatArray]]) -> GoodnessOfFit:
        """Test evidences, by name, against fits with uncorrected intercepts."""
        tests = [
            form_test(evidence, theta)[:2] if len(theta) > 1 else (0.0, 1.0)
            for _, evidence, theta in tested
        ]
        # Where revealed rows lie in the law of missing ones; ties in the middle.
        ranks = [
            ranks_in_laws(theta[1:] @ evidence.values, evidence)[
                1, : evidence.n_revealed
            ]
            for _, evidence, theta in tested
        ]
        return cls(
            tuple(name for name, _, _ in tested),
            tuple(np.sort(own) for own in ranks),
            np.array([statistic for statistic, _ in tests]),
            np.array([p_value for _, p_value in tests]),
        )

    def to_frame(self, backend: Any = "pandas") -> Any:
        """The test as a dataframe, a row for each feature.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}

        Returns
        -------
        dataframe
        """
        columns = {
            "feature": list(self.feature_names),
            "revealed": [len(ranks) for ranks in self.ranks],
            "statistic": self.statistic.tolist(),
            "p_value": self.p_value.tolist(),
        }
        return nw.from_dict(columns, backend=backend).to_native()
