"""Ratios of many columns that differ in few directions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_scalar

from missratio._base.callbacks import CallbackSupportMixin, told
from missratio._base.seeds import generator
from missratio._base.storable import storable
from missratio._base.typing import FloatArray
from missratio.exceptions import FlatRatioWarning, Message
from missratio.ratio.base import MissingnessParameter, Two, callers_level, deal
from missratio.ratio.complete import CompleteRowsRatio, WeightedTable
from missratio.ratio.kernel import KernelRatio, LeastSquares


@storable(finite=("directions_", "largest_"))
@dataclass(eq=False, repr=False)
class SubspaceRatio(CallbackSupportMixin, CompleteRowsRatio):
    """Density ratio of the few directions in which two laws of many columns differ.

    Distances in fifty columns are all alike, and kernels see little. Where the ratio
    depends on a few directions, they are found first: Fisher's, along which the means
    differ, then those along which the covariances differ most. All moments are of
    complete rows weighted by 1/P(complete). A ratio is fitted to these directions, on
    the half of the rows that they were not found on, and once more with the halves
    exchanged; r̂ is the mean of both. The number of directions has the best score on
    folds held out; if none is better than a ratio of one, that is the ratio, with a
    `FlatRatioWarning`. Scores are minus the squared error of the relative ratio
    2r/(r + 1), which is bounded: of laws that lie far apart the squared error of r
    itself is decided by a row or two.

    Parameters
    ----------
    estimator : ratio estimator, default=None
        For the directions found; it is cloned. None is
        ``KernelRatio("kliep", flat_within=0)``.
    missingness : mapping from class to Missingness, "ignore" or None, default=None
        Why values are missing, as for `KernelRatio`.
    n_directions : int or sequence of int, default=(1, 2, 3, 5)
        How many directions, or the numbers to try.
    shrinkage : float, default=0.1
        The share, between 0 and 1, in which the covariance that whitens the columns
        is replaced by its diagonal: with as many columns as hundreds of rows it is
        noisy.
    cv : int, default=3
        The number of folds.
    random_state : int, RandomState, Generator or None, default=None
        For the folds.

    Attributes
    ----------
    directions_ : list of ndarray of shape (n_columns, n_directions)
        Of each half: rows times these are the coordinates that its ratio is of. Empty
        for a ratio of one.
    estimators_ : list of ratio estimators
        Of the coordinates, for each half.
    scores_ : dict from int to float
        The mean score for each number of directions.
    classes_ : ndarray of shape (2,)
    effective_sample_size_ : dict from class to SampleSize
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_columns,)

    Examples
    --------
    Fifty columns, of which one has another spread:

    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> X1, X0 = rng.normal(0, 1, (600, 50)), rng.normal(0, 1, (600, 50))
    >>> X1[:, 7] *= 3
    >>> ratio = mr.density_ratio(X1, X0, mr.SubspaceRatio(random_state=0))
    >>> int(np.abs(ratio.directions_[0][:, -1]).argmax())
    7
    """

    estimator: Any = None
    missingness: MissingnessParameter = None
    n_directions: Any = (1, 2, 3, 5)
    shrinkage: float = 0.1
    cv: int = 3
    random_state: Any = None

    def _learn_tables(self, tables: Two[WeightedTable]) -> None:
        if not 0.0 <= self.shrinkage <= 1.0:
            raise ValueError(f"shrinkage must lie in [0, 1], got {self.shrinkage!r}.")
        check_scalar(self.cv, "cv", Integral, min_val=2)
        given = np.atleast_1d(np.asarray(self.n_directions))
        if given.ndim != 1 or given.dtype.kind not in "iu" or (given < 1).any():
            raise ValueError(
                "n_directions must be a positive number, or several; got "
                f"{self.n_directions!r}."
            )
        n_columns = tables.numerator.rows.shape[1]
        counts = sorted({min(int(count), n_columns) for count in given})
        rng = generator(self.random_state)
        folds = list(_split(tables, self.cv, rng))

        def scores(fold: Split) -> list[float]:
            fitted, held = fold
            halves = (self._halves(fitted, count, rng) for count in counts)
            return [_relative_score(each, held) for each in halves]

        mean = np.mean(told(self, "fold", folds, scores, self.cv), axis=0)
        self.scores_ = dict(zip(counts, mean.tolist(), strict=True))
        best = max(counts, key=lambda count: self.scores_[count])
        halves: list[Half] = []
        if self.scores_[best] > 0.0:
            halves = self._halves(tables, best, rng)
        else:
            message = Message(
                "The ratio is one everywhere: for no number of directions it had a "
                "better score on rows held out than a ratio of one. The samples may "
                "come from one law, or be too small to tell.",
                remedies=("give another estimator", "bring more rows"),
            )
            warnings.warn(FlatRatioWarning(message), stacklevel=callers_level())
        self.directions_ = [directions for directions, _ in halves]
        self.estimators_ = [estimator for _, estimator in halves]

    def _halves(
        self, tables: Two[WeightedTable], count: int, rng: np.random.Generator
    ) -> list[Half]:
        """Directions from each half of the rows, and a ratio fitted to the other."""
        halves = []
        for fitting, finding in _split(tables, 2, rng):
            directions = differing_directions(finding, self.shrinkage)[:, :count]
            # Whether it is flat is decided by the folds.
            default = KernelRatio("kliep", flat_within=0.0)
            inner = clone(default if self.estimator is None else self.estimator)
            if inner.get_params().get("random_state", 0) is None:
                inner.set_params(random_state=int(rng.integers(2**31 - 1)))
            rows = np.concatenate([table.rows @ directions for table in fitting])
            weights = [table.weights * len(table) for table in fitting]
            labels = np.repeat([1, 0], [len(table) for table in fitting])
            inner.fit(rows, labels, np.concatenate(weights))
            halves.append((directions, inner))
        return halves

    def _complete_log_ratio(self, rows: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.log(_mean_ratio(self._fitted_halves(), rows))

    def _score_tables(self, tables: Two[WeightedTable]) -> float:
        return _relative_score(self._fitted_halves(), tables)

    def _fitted_halves(self) -> list[Half]:
        return list(zip(self.directions_, self.estimators_, strict=True))


# Directions found on a half of the rows, and the ratio fitted to the other half.
Half = tuple[FloatArray, Any]
# Rows that are fitted, and rows held out.
Split = tuple[Two[WeightedTable], Two[WeightedTable]]


def _split(
    tables: Two[WeightedTable], n_folds: int, rng: np.random.Generator
) -> Iterator[Split]:
    """Fold by fold all others, and the fold itself, dealt within each class."""
    numerator, denominator = tables
    folds = tables.map(lambda table: deal(rng.permutation(len(table)), n_folds))
    for fold in range(n_folds):
        held = Two(*(numbers == fold for numbers in folds))
        yield (
            Two(numerator.take(~held.numerator), denominator.take(~held.denominator)),
            Two(numerator.take(held.numerator), denominator.take(held.denominator)),
        )


def _mean_ratio(halves: list[Half], rows: FloatArray) -> FloatArray:
    """The mean of the halves' ratios; one where there are none."""
    if not halves:
        return np.ones(len(rows))
    ratios = [ratio.predict_ratio(rows @ directions) for directions, ratio in halves]
    return np.asarray(np.mean(ratios, axis=0))


def _relative_score(halves: list[Half], tables: Two[WeightedTable]) -> float:
    """Minus the squared error of the relative ratio 2r/(r + 1); 0 for a ratio of one.

    Where r̂ is infinite, it is 2.
    """
    ratio = tables.map(lambda table: _mean_ratio(halves, table.rows))
    relative = ratio.map(lambda each: 2.0 - 2.0 / (each + 1.0))
    return -LeastSquares(0.5).loss(relative, tables.map(lambda table: table.weights))


def differing_directions(tables: Two[WeightedTable], shrinkage: float) -> FloatArray:
    """Directions in which the laws differ, the one with the largest difference first.

    Of shape (n_columns, n_columns); coordinates have a variance of about one. The
    covariance that whitens them is shrunk.
    """
    moments = tables.map(_moments)
    gap = (moments[0][0] - moments[1][0]) / 2.0
    pooled = (moments[0][1] + moments[1][1]) / 2.0 + np.outer(gap, gap)
    spread = np.diagonal(pooled).copy()
    spread[spread <= 0.0] = 1.0
    shrunk = (1.0 - shrinkage) * pooled
    shrunk.flat[:: len(shrunk) + 1] = spread
    values, vectors = np.linalg.eigh(shrunk / np.sqrt(np.outer(spread, spread)))
    whitener = (vectors / np.sqrt(np.maximum(values, 1e-10))).T / np.sqrt(spread)
    # 1. Fisher's direction, in whitened columns.
    fisher = whitener @ gap
    fisher /= np.linalg.norm(fisher) or 1.0
    # 2. Across it, where the covariances differ most, either way.
    change = whitener @ (moments[0][1] - moments[1][1]) @ whitener.T
    across = np.eye(len(change)) - np.outer(fisher, fisher)
    values, vectors = np.linalg.eigh(across @ change @ across)
    order = vectors[:, np.argsort(-np.abs(values))]
    found = np.column_stack([fisher, order])[:, : len(change)]
    return np.ascontiguousarray(whitener.T @ found)


def _moments(table: WeightedTable) -> tuple[FloatArray, FloatArray]:
    mean = table.weights @ table.rows
    centred = (table.rows - mean) * np.sqrt(table.weights)[:, None]
    return mean, centred.T @ centred
