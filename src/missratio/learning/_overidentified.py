"""More equations than parameters: tests of the φ that a table taught.

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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre
from scipy.special import erfcx
from scipy.stats import chi2

from missratio._base.typing import BoolArray, FloatArray, IntArray

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
