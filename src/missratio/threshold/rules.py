"""Rules that choose a threshold with P(type I error > α) ≤ δ."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from scipy.special import bdtr, bdtrik, betaincinv, poch
from scipy.stats import binom
from sklearn.base import BaseEstimator

from missratio._base.storable import storable
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.threshold.sample import CalibrationSample

BoundUse = Literal["needed", "given", "used", "unused"]


@dataclass(frozen=True, slots=True)
class Selection:
    """What a rule chose.

    Parameters
    ----------
    threshold : float or None
        Rows that score above it are given to the other class; None where no threshold
        can be certified.
    rule : str
        The rule's name.
    error_bound : float
        The bound on the type I error that holds with probability 1 − δ: α, or a smaller
        one where order statistics don't come any closer.
    """

    threshold: float | None
    rule: str
    error_bound: float


class Rule(BaseEstimator, ABC):
    """Chooses the smallest threshold C that certifies P(h(Z⁰) > C) ≤ α.

    Every rule tests, at each candidate, whether the error is above α, and takes the
    smallest C that passes. The tests are monotone in C, so that no correction for
    looking at many candidates is needed: a wrong choice means that the test at the one
    critical threshold inf{C : P(h > C) ≤ α} was wrong, ties in the scores included.

    A rule of one's own gives `select`. It must be fixed before any calibration score is
    seen; `prepare` may learn from training rows. Parameters that its `__init__` stores
    under their names can be searched.

    Attributes
    ----------
    name : str
        By default that of the class.
    bound : {"needed", "given", "used", "unused"}
        Whether a bound on the weights is needed, is needed just as the model gives it,
        is of use, or makes no difference. Where it is not taken as given, rows of large
        weight may be given up for a smaller one.
    """

    name: ClassVar[str]
    bound: ClassVar[BoundUse] = "needed"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.name = getattr(cls, "name", cls.__name__)

    @abstractmethod
    def select(
        self, sample: CalibrationSample, alpha: float, delta: float
    ) -> Selection:
        """Choose a threshold.

        Parameters
        ----------
        sample : CalibrationSample
            All that a rule may know of the calibration rows, random numbers included:
            the same sample gives the same threshold.
        alpha, delta : float
        """

    def prepare(self, training: CalibrationSample | None, *, complete: bool) -> Rule:
        """The rule to use, once training rows are known; by default itself.

        Parameters
        ----------
        training : CalibrationSample or None
            Scored rows of the controlled class that take no part in calibration.
        complete : bool
            Whether calibration rows can't be missing.
        """
        return self

    def expected_root(
        self, n_rows: int, bound: float | None, alpha: float, delta: float
    ) -> float | None:
        """The mean of √μ, μ the error that it should certify; None if it can't tell.

        Parameters
        ----------
        n_rows : int
            Calibration rows to come, missing ones included.
        bound : float or None
            Of their weights.
        alpha, delta : float
        """
        return None

    def least_rows(self, alpha: float, delta: float, bound: float) -> int | None:
        """The fewest rows that certify any threshold, if φ = 1 − 1/bound throughout.

        Parameters
        ----------
        alpha, delta : float
        bound : float
            B, which is then the weight of every observed row.

        Returns
        -------
        int or None
            None where none is found up to the largest number tried.
        """

        def passes(n_rows: int) -> bool:
            observed = max(1, round(n_rows / bound))
            weights = np.repeat([bound, 0.0], [observed, max(n_rows - observed, 0)])
            scores = np.arange(len(weights), 0, -1, dtype=np.float64)
            sample = CalibrationSample.build(scores, weights, bound)
            rule = self.prepare(sample, complete=False)
            return rule.select(sample, alpha, delta).threshold is not None

        return fewest(passes, 10**5)

    def _from_tail(
        self, sample: CalibrationSample, n_tail: int, alpha: float
    ) -> Selection:
        certified = n_tail >= 0 and sample.n_scored > 0
        threshold = sample.threshold(n_tail) if certified else None
        return Selection(threshold, self.name, alpha)

    def _counted(
        self,
        sample: CalibrationSample,
        kept: BoolArray,
        trials: int,
        bound: float,
        alpha: float,
        delta: float,
        coin: float,
    ) -> Selection:
        """The kept row above which as many kept rows lie as Bin(trials, α/B) allows."""
        most = int(binomial_tail(trials, alpha / bound, delta, coin))
        if most < 0 or not sample.n_scored:
            return Selection(None, self.name, alpha)
        places = np.flatnonzero(kept)
        n_tail = int(places[most]) if len(places) > most else sample.n_observed
        error_bound = alpha
        if coin == 1.0:
            # A coin uses up δ; without one the error may be less.
            error_bound = min(alpha, bound * binomial_bound(trials, most, delta))
        return Selection(sample.threshold(n_tail), self.name, error_bound)


def fewest(passes: Callable[[int], bool], most: int = 10**9) -> int | None:
    """The smallest number that passes a test which is monotone; None if above most."""
    low, high = 0, 1
    while not passes(high):
        low, high = high, 2 * high
        if low >= most:
            return None
    return low + 1 + bisect_left(range(low + 1, high), True, key=passes)


def least_trials(share: float, delta: float) -> int:
    """The fewest rows of which one or more lies in a tail of this share, but for δ."""
    rows = math.log(delta) / math.log1p(-share)
    # More than any table has, where α is so small that there is no such number.
    return math.ceil(min(rows, 1e18))


def binomial_tail(
    n_rows: int | IntArray, alpha: float, delta: float, coin: float = 1.0
) -> IntArray:
    """The most of n_rows rows that may score above a threshold; −1 if none may.

    The largest k with P(Bin(n, α) ≤ k) ≤ δ, for each n. With i* = n − k it is the
    paper's Algorithm 2: the smallest i* with P(Bin(n, 1 − α) ≥ i*) ≤ δ. A coin, uniform
    and drawn beforehand, allows k + 1 with the probability that makes the level exactly
    δ.
    """
    # The quantile as a real number, then the exact probability at whole ones.
    quantile = np.ceil(bdtrik(delta, n_rows, alpha))
    # SciPy has none where α is tiny, or of no rows: none of them may lie above.
    start = np.where(np.isnan(quantile), 0.0, quantile) + 1.0
    k: IntArray = np.minimum(start, np.subtract(n_rows, 1.0)).astype(np.intp)
    while True:
        above = (k >= 0) & ~few_enough(k, n_rows, alpha, delta, coin)
        if not above.any():
            return k
        k = k - above


def few_enough(
    k: IntArray, n_rows: int | IntArray, alpha: float, delta: float, coin: float
) -> BoolArray:
    """Whether P(Bin(n, α) < k) + coin·P(Bin(n, α) = k) ≤ δ.

    For a coin that is uniform this holds with probability δ where k itself is
    Bin(n, α), and it falls with k and grows with α, as without the coin. Rows so few
    that the highest of them would be wrong more often than not certify none.
    """
    most = bdtr(k, n_rows, alpha)
    less = np.where(k > 0, bdtr(np.maximum(k - 1, 0), n_rows, alpha), 0.0)
    level = coin * most + (1.0 - coin) * less
    return np.asarray((level <= delta) & ((k > 0) | (most <= max(delta, 0.5))))


def mean_root(k: IntArray, n_rows: int | IntArray) -> FloatArray:
    """The mean of the root of a Beta(k + 1, n − k) variable; 0 for k = −1."""
    roots = poch(np.maximum(k, 0) + 1, 0.5) / poch(np.add(n_rows, 1), 0.5)
    return np.where(k >= 0, roots, 0.0)


def binomial_bound(n_rows: int, n_tail: int, delta: float) -> float:
    """Clopper and Pearson's upper bound on the error, for a tail of fixed size."""
    if n_tail >= n_rows:
        return 1.0
    return float(betaincinv(n_tail + 1, n_rows - n_tail, 1.0 - delta))


_INCOMPLETE = (
    "The binomial rule is for complete calibration rows; these have missing rows or "
    "weights. Choose a weighted rule, or rule='auto'."
)


@storable()
class BinomialRule(Rule):
    """The binomial order-statistic rule for complete rows (the paper's Algorithm 2).

    Exact for continuous scores, and valid with ties: rows must score strictly above.
    """

    name = "binomial"

    def select(
        self, sample: CalibrationSample, alpha: float, delta: float
    ) -> Selection:
        """Choose an order statistic."""
        if (sample.weights != 1.0).any() or sample.n_observed < sample.n_rows:
            raise ValueError(_INCOMPLETE)
        kept, coin = sample.kept(1.0)[0], 1.0
        return self._counted(sample, kept, sample.n_rows, 1.0, alpha, delta, coin)

    def expected_root(
        self, n_rows: int, bound: float | None, alpha: float, delta: float
    ) -> float:
        """The root by the law of an order statistic."""
        return float(mean_root(binomial_tail(n_rows, alpha, delta), n_rows))

    def least_rows(self, alpha: float, delta: float, bound: float) -> int | None:
        """As many as are needed to see one above the critical threshold."""
        if bound != 1.0:
            raise ValueError(_INCOMPLETE)
        return least_trials(alpha, delta)


def known_bound(sample: CalibrationSample, name: str) -> float:
    """The bound on weights, or an error where the rule needs one."""
    if sample.bound is None:
        raise ValueError(
            f"The rule {name!r} needs the largest missing probability, and the "
            "missingness model doesn't know it. Give it a maximum below 1, or choose "
            "rule='flipped-betting' or rule='auto', which need none."
        )
    return sample.bound


@storable()
class PaperRule(Rule):
    """The paper's rule: mean W·1{h > C} ≤ α − √(16 log(1/δ)/m_eff).

    As its Lemma on missing NP classification has it, summing strictly above C; the
    printed Algorithm 1 sums from C on, which is one order statistic stricter.
    """

    name = "paper"
    bound: ClassVar[BoundUse] = "given"

    def margin(self, alpha: float, delta: float, effective_rows: float) -> float:
        """The paper's Δ."""
        return math.sqrt(16.0 * math.log(1.0 / delta) / effective_rows)

    def select(
        self, sample: CalibrationSample, alpha: float, delta: float
    ) -> Selection:
        """Choose by a margin below α."""
        bound = known_bound(sample, self.name)
        allowed = alpha - self.margin(alpha, delta, sample.n_rows / bound)
        sums = np.append(0.0, np.cumsum(sample.ranked.high)) / sample.n_rows
        n_tail = int(np.searchsorted(sums, allowed, side="right")) - 1
        return self._from_tail(sample, n_tail, alpha)

    def least_rows(self, alpha: float, delta: float, bound: float) -> int | None:
        """So many that the margin is α at most."""
        return fewest(lambda n: self.margin(alpha, delta, n / bound) <= alpha)


@storable()
class BernsteinRule(PaperRule):
    """A margin √(2α log(1/δ)/m_eff), from the second moment E[W²1{h > C}] ≤ Bα.

    For W ≥ 0, E exp(−sW) ≤ exp(−sμ + s²E[W²]/2), so the mean falls short of μ by t with
    probability exp(−nt²/(2E[W²])) at most.
    """

    name = "bernstein"
    bound = "needed"

    def margin(self, alpha: float, delta: float, effective_rows: float) -> float:
        """Smaller than the paper's by the factor √(α/8)."""
        return math.sqrt(2.0 * alpha * math.log(1.0 / delta) / effective_rows)


@storable()
class ThinningRule(Rule):
    """Keep row i with probability W_i/B: what is left is a complete i.i.d. sample.

    Its size is random and the exact binomial rule applies to it. The guarantee is over
    the draw of the rows to keep as well, so fix the seed beforehand; one more number,
    the sample's coin, makes the level of the binomial rule exactly δ. Where the weights
    are uncertain, a row in the tail is kept by its largest and any other by its least:
    of the rows kept, at least the share of the error is then in the tail.
    """

    name = "thinning"

    def select(
        self, sample: CalibrationSample, alpha: float, delta: float
    ) -> Selection:
        """Thin, then choose an order statistic."""
        bound = known_bound(sample, self.name)
        low, high = sample.kept(bound)
        if sample.edges is None:
            n_kept, coin = int(high.sum()), sample.coin
            return self._counted(sample, high, n_kept, 1.0, alpha, delta, coin)
        tail = np.append(0, np.cumsum(high))
        rest = np.append(0, np.cumsum(low[::-1]))[::-1]
        # How many may be in the tail: from some number on, too many are.
        levels = alpha, delta, sample.coin
        n_tail = bisect_left(
            range(len(tail)),
            True,
            key=lambda n: not few_enough(tail[n], tail[n] + rest[n], *levels),
        )
        return self._from_tail(sample, n_tail - 1, alpha)

    def expected_root(
        self, n_rows: int, bound: float | None, alpha: float, delta: float
    ) -> float | None:
        """The root by the law of what is kept, which n and the bound determine.

        Of N rows kept the (k + 1)-th highest score is taken, above which there is a
        share that is Beta(k + 1, N − k); N is binomial, and none is certified for
        small N.
        """
        if bound is None:
            return None
        return _root_of_kept(n_rows, bound, alpha, delta)

    def least_rows(self, alpha: float, delta: float, bound: float) -> int | None:
        """So many that enough are kept with probability 0.9."""
        least = least_trials(alpha, delta)
        return fewest(lambda n: bool(binom.sf(least - 1, n, 1.0 / bound) >= 0.9))


@storable()
class CountingRule(Rule):
    """Keep row i with probability W_i/B, and count those kept above the threshold.

    A row, missing or not, is observed, kept and in the tail with probability μ/B, μ
    the error. So of all n rows, the missing ones included, the number kept in the tail
    is exactly Bin(n, μ/B), and the binomial rule applies at the level α/B. It needs the
    weights of rows in the tail only, their largest where they are uncertain; how many
    rows are observed or kept elsewhere doesn't enter. The sample's coin makes the level
    exactly δ.
    """

    name = "counting"

    def select(
        self, sample: CalibrationSample, alpha: float, delta: float
    ) -> Selection:
        """Choose the kept row that has as many kept rows above it as are allowed."""
        bound = known_bound(sample, self.name)
        kept, coin = sample.kept(bound)[1], sample.coin
        return self._counted(sample, kept, sample.n_rows, bound, alpha, delta, coin)

    def expected_root(
        self, n_rows: int, bound: float | None, alpha: float, delta: float
    ) -> float | None:
        """The root by the law of what is kept: μ/B is Beta(k + 1, n − k)."""
        if bound is None:
            return None
        return float(np.sqrt(bound)) * _root_of_kept(n_rows, 1.0, alpha / bound, delta)

    def least_rows(self, alpha: float, delta: float, bound: float) -> int | None:
        """So many that (1 − α/B)ⁿ ≤ δ."""
        return least_trials(alpha / bound, delta)


# A choice among rules and caps asks again and again: a fifth of a fit of 600 rows.
@lru_cache(maxsize=1024)
def _root_of_kept(n_rows: int, bound: float, alpha: float, delta: float) -> float:
    """The mean of √μ over 41 quantiles of how many rows thinning may keep.

    Above the (k + 1)-th highest of n rows, k the number allowed, the error μ is
    Beta(k + 1, n − k); a coin allows one more with the chance that uses up δ.
    """
    levels = (np.arange(41) + 0.5) / 41
    kept = binom.ppf(levels, n_rows, 1.0 / bound).astype(np.intp)
    rows, times = np.unique(kept, return_counts=True)
    k = binomial_tail(rows, alpha, delta)
    more = bdtr(k + 1, rows, alpha)
    spent = np.where(k >= 0, bdtr(np.maximum(k, 0), rows, alpha), 0.0)
    possible = (k + 1 < rows) & few_enough(k + 1, rows, alpha, delta, 0.0)
    chance = np.where(possible, (delta - spent) / np.maximum(more - spent, 1e-300), 0.0)
    roots = (1.0 - chance) * mean_root(k, rows) + chance * mean_root(k + 1, rows)
    return float(np.average(roots, weights=times))
