"""Mixtures of normal laws: drawn from, evaluated, and integrated over half-spaces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from missratio._base.threads import one_blas_thread
from missratio._base.typing import FloatArray

Rng = np.random.Generator | np.random.RandomState

_LOG_2_PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
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

    weights: ArrayLike
    means: ArrayLike
    covariances: ArrayLike

    def __post_init__(self) -> None:
        for name, ndim in (("weights", 1), ("means", 2), ("covariances", 3)):
            value = np.array(getattr(self, name), dtype=np.float64)
            if value.ndim != ndim or not np.isfinite(value).all():
                raise ValueError(
                    f"{name} must be finite and have {ndim} dimension(s): got shape "
                    f"{value.shape}. For k components in d dimensions the shapes are "
                    "(k,), (k, d) and (k, d, d)."
                )
            value.flags.writeable = False
            object.__setattr__(self, name, value)
        self._check_shapes()
        self._check_values()

    def _check_shapes(self) -> None:
        weights, means, covariances = self._parameters
        k, d = means.shape
        if d == 0 or weights.shape != (k,) or covariances.shape != (k, d, d):
            raise ValueError(
                "weights, means and covariances must have shapes (k,), (k, d) and (k, "
                f"d, d), d above 0: got {weights.shape}, {means.shape} and "
                f"{covariances.shape}."
            )

    def _check_values(self) -> None:
        weights, _, covariances = self._parameters
        if (weights < 0).any() or not np.isclose(weights.sum(), 1.0, rtol=0, atol=1e-9):
            raise ValueError(
                "weights must be non-negative and have the sum 1: got "
                f"{weights.tolist()}."
            )
        symmetric = np.allclose(covariances, covariances.transpose(0, 2, 1))
        if not symmetric or (np.linalg.eigvalsh(covariances) <= 0).any():
            raise ValueError(
                "covariances must be symmetric and positive definite: got "
                f"{covariances.tolist()}."
            )

    @property
    def _parameters(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return (
            np.asarray(self.weights),
            np.asarray(self.means),
            np.asarray(self.covariances),
        )

    @cached_property
    def _roots(self) -> FloatArray:
        return np.linalg.cholesky(np.asarray(self.covariances))

    @property
    def n_features(self) -> int:
        """The dimension d."""
        return int(np.shape(self.means)[1])

    @property
    def mean(self) -> FloatArray:
        """E Z, of shape (d,)."""
        weights, means, _ = self._parameters
        return np.asarray(weights @ means)

    @property
    def covariance(self) -> FloatArray:
        """Cov Z, of shape (d, d): within the components, and between their means."""
        weights, means, covariances = self._parameters
        apart = means - self.mean
        between = np.einsum("k,ki,kj->ij", weights, apart, apart)
        return np.asarray(np.einsum("k,kij->ij", weights, covariances) + between)

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
        """
        weights, means, _ = self._parameters
        rows: FloatArray = rng.standard_normal((n, self.n_features))
        with one_blas_thread(rows.size):
            if len(weights) == 1:
                return np.asarray(rows @ self._roots[0].T + means[0])
            counts = rng.multinomial(n, weights / weights.sum())
            component = rng.permutation(np.repeat(np.arange(len(weights)), counts))
            for k, (root, mean) in enumerate(zip(self._roots, means, strict=True)):
                own = component == k
                rows[own] = rows[own] @ root.T + mean
        return rows

    def log_density(self, X: ArrayLike) -> FloatArray:
        """The logarithm of p at the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n,)
        """
        rows = self._as_rows(X)
        weights, means, _ = self._parameters
        terms = []
        with one_blas_thread(rows.size):
            for weight, mean, root in zip(weights, means, self._roots, strict=True):
                if weight > 0:
                    standard = (rows - mean) @ np.linalg.inv(root).T
                    volume = np.log(np.diag(root)).sum() + 0.5 * len(mean) * _LOG_2_PI
                    squares = np.einsum("ij,ij->i", standard, standard)
                    terms.append(np.log(weight) - volume - 0.5 * squares)
        return reduce(np.logaddexp, terms)

    def _as_rows(self, X: ArrayLike) -> FloatArray:
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise ValueError(
                f"X must have shape (n, {self.n_features}): got {rows.shape}."
            )
        return rows

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
        """
        along = np.asarray(direction, dtype=np.float64)
        beyond = np.asarray(cut, dtype=np.float64)
        if along.ndim == 0 or along.shape[-1] != self.n_features:
            raise ValueError(
                f"direction must have shape (..., {self.n_features}): got "
                f"{along.shape}."
            )
        weights, means, _ = self._parameters
        total = np.zeros(np.broadcast_shapes(along.shape[:-1], beyond.shape))
        for weight, mean, root in zip(weights, means, self._roots, strict=True):
            spread = np.sqrt(np.square(along @ root).sum(axis=-1))
            distance = along @ mean - beyond
            with np.errstate(divide="ignore", invalid="ignore"):
                standard = np.where(
                    spread > 0,
                    distance / spread,
                    np.where(distance > 0, np.inf, -np.inf),
                )
            total += weight * ndtr(standard)
        return total
