"""The paper's simulated experiments, each as two laws and what class 1 loses.

Laws are mixtures of normal ones, so that ratios, tails and the power that no test
exceeds are known. Where the curves that were published came from other laws than the
text describes, these are the laws of the curves. `sample` of a simulation draws a table
with NaN, and its labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, ndtr, ndtri
from sklearn.utils import Bunch

from missratio._base.hints import check_probability
from missratio._base.threads import one_blas_thread
from missratio._base.typing import FloatArray, IntArray
from missratio.missingness import Missingness, StepMissingness, corrupt
from missratio.missingness.contract import RandomState

__all__ = ["diff_variance", "misspecification", "msd_5dim", "naive_bayes", "np_mixture"]

Rng = np.random.Generator | np.random.RandomState

_LOG2_POINTS = 17
_SEED = 20230425


@dataclass(frozen=True, eq=False, init=False)
class GaussianMixture:
    """The law p(z) = Σₖ wₖ N(z; μₖ, Σₖ).

    Parameters
    ----------
    weights : array-like of shape (k,)
        Non-negative, of sum one.
    means : array-like of shape (k, d)
    covariances : array-like of shape (k, d, d)
        Symmetric and positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from missratio.datasets import GaussianMixture
    >>> law = GaussianMixture([0.5, 0.5], [[0.0], [4.0]], [[[1.0]], [[1.0]]])
    >>> law.sample(3, np.random.default_rng(0)).shape
    (3, 1)
    >>> law.tail([[1.0], [1.0]], [2.0, 4.0]).round(3)
    array([0.5 , 0.25])
    """

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray

    def __init__(
        self, weights: ArrayLike, means: ArrayLike, covariances: ArrayLike
    ) -> None:
        given = {"weights": weights, "means": means, "covariances": covariances}
        for name, values in given.items():
            object.__setattr__(self, name, np.array(values, dtype=np.float64))
        shares, centres, spreads = self.weights, self.means, self.covariances
        k, d = centres.shape if centres.ndim == 2 else (0, 0)
        if not (
            (shares.shape == (k,) and spreads.shape == (k, d, d) and k * d > 0)
            and (shares >= 0.0).all()
            and np.isclose(shares.sum(), 1.0, rtol=0, atol=1e-9)
            and np.isfinite(centres).all()
            and np.allclose(spreads, spreads.transpose(0, 2, 1))
            and (np.linalg.eigvalsh(spreads) > 0.0).all()
        ):
            raise ValueError(
                "A mixture has weights of shape (k,), non-negative and of sum 1, "
                "finite means of shape (k, d), and covariances of shape (k, d, d), "
                f"symmetric and positive definite: got {shares.tolist()}, "
                f"{centres.tolist()} and {spreads.tolist()}."
            )

    @cached_property
    def _roots(self) -> FloatArray:
        return np.asarray(np.linalg.cholesky(self.covariances), dtype=np.float64)

    @property
    def n_features(self) -> int:
        """The dimension d."""
        return int(self.means.shape[1])

    @property
    def mean(self) -> FloatArray:
        """E Z, of shape (d,)."""
        return np.asarray(self.weights @ self.means)

    def sample(self, n: int, rng: Rng) -> FloatArray:
        """Draw independent rows.

        How many come from each component is multinomial; which of the rows do is
        random too, so that any part of the sample is a sample.

        Parameters
        ----------
        n : int
        rng : numpy Generator or RandomState

        Returns
        -------
        ndarray of shape (n, d)
            The rows.
        """
        weights, means = self.weights, self.means
        rows: FloatArray = rng.standard_normal((n, self.n_features))
        with one_blas_thread(rows.size):
            if len(weights) == 1:
                return np.asarray(rows @ self._roots[0].T + means[0])
            counts = rng.multinomial(n, weights / weights.sum())
            component = rng.permutation(np.repeat(np.arange(len(weights)), counts))
            for k, (root, mean) in enumerate(zip(self._roots, means, strict=True)):
                drawn = component == k
                rows[drawn] = rows[drawn] @ root.T + mean
        return rows

    def log_density(self, X: ArrayLike) -> FloatArray:
        """The logarithm of p at the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n,)
            A logarithm for each row.
        """
        from scipy.stats import multivariate_normal

        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise ValueError(
                f"X must have shape (n, {self.n_features}): got {rows.shape}."
            )
        terms = [
            multivariate_normal.logpdf(rows, mean, covariance).reshape(len(rows))
            for mean, covariance in zip(self.means, self.covariances, strict=True)
        ]
        return np.asarray(logsumexp(terms, axis=0, b=self.weights[:, None]))

    def tail(self, direction: ArrayLike, cut: ArrayLike) -> FloatArray:
        """P(direction·Z > cut), exactly, for any number of half-spaces at once.

        The power, or the error, of a classifier with a linear score. For a direction
        of zero it is 1 where 0 > cut, else 0.

        Parameters
        ----------
        direction : array-like of shape (..., d)
        cut : array-like of shape (...)
            Broadcast against the leading dimensions of `direction`; may be infinite.

        Returns
        -------
        ndarray of the broadcast shape (...)
            A probability for each half-space.
        """
        along = np.asarray(direction, dtype=np.float64)
        beyond = np.asarray(cut, dtype=np.float64)
        total = np.zeros(np.broadcast_shapes(along.shape[:-1], beyond.shape))
        for weight, mean, root in zip(
            self.weights, self.means, self._roots, strict=True
        ):
            spread = np.sqrt(np.square(along @ root).sum(axis=-1))
            distance = along @ mean - beyond
            with np.errstate(divide="ignore", invalid="ignore"):
                certain = np.where(distance > 0, np.inf, -np.inf)
                standard = np.where(spread > 0, distance / spread, certain)
            total += weight * ndtr(standard)
        return total


@dataclass(frozen=True, eq=False)
class Simulation:
    """Two laws with the ratio r = p₁/p₀, and the missingness of their samples.

    Parameters
    ----------
    name : str
        The experiment's.
    numerator, denominator : GaussianMixture
        The laws of class 1, on which the power is measured, and of class 0, whose
        error is controlled.
    missingness : mapping from class to Missingness
        A class left out is complete.

    Examples
    --------
    >>> import numpy as np
    >>> from missratio.datasets import simulations
    >>> simulation = simulations.msd_5dim()
    >>> simulation.coef
    array([-0.1, -0.1, -0.1, -0.1, -0.1])
    >>> X, y = simulation.draw(3, 2, np.random.default_rng(0))
    >>> X.shape, y
    ((5, 5), array([1, 1, 1, 0, 0]))
    >>> round(simulation.oracle_power(0.1), 4)
    0.1450
    """

    name: str
    numerator: GaussianMixture
    denominator: GaussianMixture
    missingness: Mapping[int, Missingness]

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return self.numerator.n_features

    def draw(self, n1: int, n0: int, rng: Rng) -> tuple[FloatArray, IntArray]:
        """Complete rows with their labels, those of class 1 before those of class 0.

        Parameters
        ----------
        n1, n0 : int
            Rows of class 1 and of class 0.
        rng : numpy Generator or RandomState

        Returns
        -------
        X : ndarray of shape (n1 + n0, d)
            The rows.
        y : ndarray of shape (n1 + n0,)
            Their labels, 1 and 0.
        """
        rows = [self.numerator.sample(n1, rng), self.denominator.sample(n0, rng)]
        return np.concatenate(rows), np.repeat([1, 0], [n1, n0])

    def sample(
        self, n_samples: int | Sequence[int], *, random_state: RandomState = None
    ) -> Bunch:
        """A table in mixed order that has lost values, and what it was before.

        Parameters
        ----------
        n_samples : int or pair of int
            Rows in all, half of them in each class, or the rows of class 0 and of
            class 1.
        random_state : int, RandomState, Generator or None, default=None
            Random seed; an int gives the same sample every time.

        Returns
        -------
        Bunch
            With `data` (NaN where missing), `target` (1 for the numerator, 0 for the
            controlled class), `complete` (the data before values were lost) and
            `missingness`.

        Examples
        --------
        >>> from missratio.datasets import simulations
        >>> sample = simulations.np_mixture().sample((300, 200), random_state=0)
        >>> sample.data.shape, int(sample.target.sum())
        ((500, 2), 200)
        """
        sizes = np.asarray(n_samples)
        if sizes.shape == () and sizes.dtype.kind in "iu":
            sizes = np.array([sizes // 2, sizes - sizes // 2])
        if sizes.shape != (2,) or sizes.dtype.kind not in "iu" or sizes.min() < 0:
            raise ValueError(
                "n_samples must be a number of rows, or the rows of class 0 and of "
                f"class 1: got {n_samples!r}."
            )
        n0, n1 = sizes.tolist()
        rng = random_state
        if not isinstance(rng, np.random.RandomState):
            rng = np.random.default_rng(rng)
        complete, target = self.draw(n1, n0, rng)
        order = rng.permutation(n0 + n1)
        complete, target = complete[order], target[order]
        data = complete.copy()
        for label, phi in self.missingness.items():
            rows = target == label
            data[rows] = corrupt(complete[rows], phi, rng)
        truth = {"complete": complete, "missingness": self.missingness}
        return Bunch(data=data, target=target, **truth)

    def log_ratio(self, X: ArrayLike) -> FloatArray:
        """The logarithm of p₁/p₀ at the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n,)
            A logarithm for each row.
        """
        if self._linear is not None:
            coef, intercept = self._linear
            return np.asarray(X, dtype=np.float64) @ coef + intercept
        return self.numerator.log_density(X) - self.denominator.log_density(X)

    @property
    def coef(self) -> FloatArray | None:
        """θ where the log ratio is intercept + θᵀz; None where it is not linear.

        It is for two normal laws of one covariance Σ: θ = Σ⁻¹(μ₁ − μ₀).
        """
        return None if self._linear is None else self._linear[0]

    @property
    def intercept(self) -> float | None:
        """The constant of a linear log ratio, −θᵀ(μ₁ + μ₀)/2; None elsewhere."""
        return None if self._linear is None else self._linear[1]

    @cached_property
    def _linear(self) -> tuple[FloatArray, float] | None:
        within = self.numerator.covariances[self.numerator.weights > 0]
        other = self.denominator.covariances[self.denominator.weights > 0]
        if len(within) > 1 or not np.array_equal(within, other):
            return None
        mean_1, mean_0 = self.numerator.mean, self.denominator.mean
        coef = np.asarray(np.linalg.solve(within[0], mean_1 - mean_0))
        coef.flags.writeable = False
        return coef, float(-0.5 * coef @ (mean_1 + mean_0))

    def ratio_tail(self, cut: ArrayLike) -> FloatArray:
        """P(log r(Z¹) > cut): the power of the true ratio.

        Exact where the log ratio is linear. Elsewhere from 2¹⁷ points of a scrambled
        Sobol sequence for each component, the same every time. Over scramblings the
        standard deviation was at most 8e-5 at a given cut, and 3e-4 for the oracle's
        power, whose cut is a quantile; 1,000,000 draws have one of up to 5e-4 at a
        given cut.

        Parameters
        ----------
        cut : array-like
            One or many.

        Returns
        -------
        ndarray of the shape of `cut`
            A probability for each cut.
        """
        if self._linear is not None:
            coef, intercept = self._linear
            return self.numerator.tail(coef, np.asarray(cut) - intercept)
        values, beyond = self._scores[1]
        return np.asarray(beyond[np.searchsorted(values, cut, side="right")])

    @cached_property
    def _scores(self) -> list[tuple[FloatArray, FloatArray]]:
        """Of class 0 and class 1, sorted log ratios and the mass beyond each."""
        scores = []
        for law in (self.denominator, self.numerator):
            rows, masses = spread_points(law)
            values = self.log_ratio(rows)
            order = np.argsort(values)
            beyond = np.cumsum(masses[order][::-1])[::-1]
            scores.append((values[order], np.append(beyond / beyond[0], 0.0)))
        return scores

    def oracle_threshold(self, alpha: float) -> float:
        """C* with P(log r(Z⁰) > C*) = α, that of the Neyman–Pearson test.

        Parameters
        ----------
        alpha : float

        Returns
        -------
        float
            Of the log ratio; exact or nearly so as in `ratio_tail`.
        """
        check_probability("alpha", alpha)
        if self._linear is None:
            values, beyond = self._scores[0]
            return float(values[np.argmax(beyond[1:] <= alpha)])
        coef, intercept = self._linear
        # As coef = Σ⁻¹(μ₁ − μ₀), this is the variance of the log ratio.
        variance = coef @ (self.numerator.mean - self.denominator.mean)
        level = intercept + coef @ self.denominator.mean
        return float(level - np.sqrt(variance) * ndtri(alpha))

    def oracle_power(self, alpha: float) -> float:
        """The largest power of any test of level α (Neyman and Pearson's lemma).

        Parameters
        ----------
        alpha : float

        Returns
        -------
        float
            P(log r(Z¹) > C*), exact or nearly so as in `ratio_tail`.
        """
        return float(self.ratio_tail(self.oracle_threshold(alpha)))


def spread_points(
    law: GaussianMixture, log2_points: int = _LOG2_POINTS
) -> tuple[FloatArray, FloatArray]:
    """Points that stand for a law, the same every time, and the mass of each."""
    from scipy.stats.qmc import Sobol

    rows, masses = [], []
    for weight, mean, root in zip(law.weights, law.means, law._roots, strict=True):
        if weight > 0:
            cube = Sobol(law.n_features, rng=_SEED).random_base2(log2_points)
            # The sequence may hold an exact 0, whose quantile is infinite.
            inner = np.clip(cube, 2.0**-33, 1 - 2.0**-33)
            with one_blas_thread(inner.size):
                rows.append(ndtri(inner) @ root.T + mean)
            masses.append(np.full(len(cube), weight / len(cube)))
    return np.concatenate(rows), np.concatenate(masses)


def msd_5dim() -> Simulation:
    """Two normal laws in five dimensions, with a log-linear ratio.

    p₁ = N(0, I) and p₀ = N(0.1·1, I), so that θ = −0.1·1. A row of class 1 is missing
    with probability 0.5 where its sum is positive. The paper's Figure 1; in its text
    the two means are swapped.

    Returns
    -------
    Simulation
        Its laws and what class 1 loses.

    Examples
    --------
    >>> from missratio.datasets import simulations
    >>> simulations.msd_5dim().coef
    array([-0.1, -0.1, -0.1, -0.1, -0.1])
    """
    phi = StepMissingness(np.ones(5), threshold=0.0, probability=0.5)
    laws = _normal(np.zeros(5)), _normal(np.full(5, 0.1))
    return Simulation("msd_5dim", *laws, {1: phi})


def np_mixture() -> Simulation:
    """Two mixtures of two normal laws in the plane; the log ratio is not linear.

    p₁ = ½N((0, 0), I) + ½N((−1, 4), I) and p₀ = ½N((1, 0), I) + ½N((0, 4), I). A row of
    class 1 is missing with probability 0.9 where x₂ > 2. The paper's Figures 2 and 3.

    Returns
    -------
    Simulation
        Its laws and what class 1 loses.

    Examples
    --------
    >>> from missratio.datasets import simulations
    >>> round(simulations.np_mixture().oracle_power(0.1), 2)
    0.39
    """
    phi = StepMissingness([0.0, 1.0], threshold=2.0, probability=0.9)
    half, spread = [0.5, 0.5], [np.eye(2)] * 2
    numerator = GaussianMixture(half, [[0.0, 0.0], [-1.0, 4.0]], spread)
    denominator = GaussianMixture(half, [[1.0, 0.0], [0.0, 4.0]], spread)
    return Simulation("np_mixture", numerator, denominator, {1: phi})


def naive_bayes(rho: float = 0.0) -> Simulation:
    """Two normal laws in the plane whose features have the correlation ρ.

    p₁ = N((0, 0), Σ) and p₀ = N((1, 2), Σ), Σ = [[1, ρ], [ρ, 1]]. Entries of class 1
    are missing one by one: x₁ with probability 0.8 where x₁ > 0, x₂ where x₂ < 0. Naive
    Bayes is right for ρ = 0 only.

    Parameters
    ----------
    rho : float, default=0.0
        −1 < ρ < 1.

    Returns
    -------
    Simulation
        Its laws and what class 1 loses.

    Examples
    --------
    >>> from missratio.datasets import simulations
    >>> simulations.naive_bayes(0.5).coef
    array([ 0., -2.])
    """
    if not -1.0 < rho < 1.0:
        raise ValueError(f"rho, a correlation, must lie in (-1, 1): got {rho}.")
    covariance = [[1.0, rho], [rho, 1.0]]
    phi = StepMissingness([1.0, -1.0], threshold=0.0, probability=0.8, rowwise=False)
    laws = _normal([0.0, 0.0], covariance), _normal([1.0, 2.0], covariance)
    return Simulation("naive_bayes", *laws, {1: phi})


def diff_variance() -> Simulation:
    """Two normal laws in the plane of different variances; the log ratio is quadratic.

    p₁ = N((0, 0), I) and p₀ = N((1, 1), diag(1, 2)). A row of class 1 is missing with
    probability 0.8 where x₂ > 0; in the paper's text, where x₁ > 0.

    Returns
    -------
    Simulation
        Its laws and what class 1 loses.

    Examples
    --------
    >>> from missratio.datasets import simulations
    >>> round(simulations.diff_variance().oracle_power(0.1), 2)
    0.50
    """
    phi = StepMissingness([0.0, 1.0], threshold=0.0, probability=0.8)
    laws = _normal([0.0, 0.0]), _normal([1.0, 1.0], np.diag([1.0, 2.0]))
    return Simulation("diff_variance", *laws, {1: phi})


def misspecification(rho: float = 0.25) -> Simulation:
    """A share ρ of class 1 lies on the far side of class 0.

    p₁ = (1 − ρ)N((0, 0), I) + ρN((2, 0), I) and p₀ = N((1, 1), I). A row of class 1 is
    missing with probability 0.8 where x₁ < 0. The log ratio is linear for ρ = 0 only.
    In the paper's text the mean of class 0 is (1, 0), and rows go where x₁ > 0.

    Parameters
    ----------
    rho : float, default=0.25
        0 ≤ ρ ≤ 1; the paper calls 2ρ the level of misspecification.

    Returns
    -------
    Simulation
        Its laws and what class 1 loses.

    Examples
    --------
    >>> from missratio.datasets import simulations
    >>> round(simulations.misspecification(0.0).oracle_power(0.1), 2)
    0.55
    """
    if not 0.0 <= rho <= 1.0:
        raise ValueError(f"rho, a share, must lie in [0, 1]: got {rho}.")
    phi = StepMissingness([-1.0, 0.0], threshold=0.0, probability=0.8)
    numerator = GaussianMixture(
        [1.0 - rho, rho], [[0.0, 0.0], [2.0, 0.0]], [np.eye(2)] * 2
    )
    return Simulation("misspecification", numerator, _normal([1.0, 1.0]), {1: phi})


def _normal(mean: ArrayLike, covariance: ArrayLike | None = None) -> GaussianMixture:
    spread = np.eye(np.size(mean)) if covariance is None else np.asarray(covariance)
    return GaussianMixture([1.0], [np.asarray(mean)], [spread])
