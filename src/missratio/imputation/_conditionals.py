"""The law of one column given the others, tilted to the entries that are missing.

All are fitted where the column is observed, with weights 1/(1 − φ_j): these recover the
conditional law of the complete data. Other columns may be imputed there. Entries go
missing independently given the row, so that they call for no weights of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from missratio._typing import FloatArray, IntArray
from missratio.imputation._donors import Donors
from missratio.imputation._levels import NumericLevels

RIDGE = 1.0
FOLDS = 3
_BLOCK_ROWS = 8192


@dataclass(frozen=True)
class Entries:
    """Where a column is observed: what a conditional law is fitted to.

    Parameters
    ----------
    regressors : ndarray of shape (n, width)
        What models see of the other columns.
    levels : ndarray of int of shape (n,)
        The column's values, as places among its levels.
    weights : ndarray of shape (n,)
        ∝ 1/(1 − φ_j); they sum to Kish's effective number of entries.
    tilt : ndarray of shape (n_levels,)
        φ_j/max φ_j of each level.
    """

    regressors: FloatArray
    levels: IntArray
    weights: FloatArray
    tilt: FloatArray

    @property
    def marginal(self) -> FloatArray:
        """The law of the missing entries as a whole, up to a factor, by level."""
        mass = np.bincount(self.levels, self.weights, minlength=len(self.tilt))
        marginal: FloatArray = mass * self.tilt
        return marginal


class Conditional(Protocol):
    """Draws levels of one column where it is missing."""

    def draw(self, regressors: FloatArray, rng: np.random.Generator) -> IntArray:
        """A level for each row of what models see of the other columns."""

    def thinned(self, rng: np.random.Generator) -> Conditional:
        """What is to be kept for later rows."""


class Location(Protocol):
    """Predicts where a column's scores lie."""

    def predict(self, regressors: FloatArray) -> FloatArray:
        """A location for each row."""


@dataclass(frozen=True)
class LinearLocation:
    """Weighted least squares with a ridge of one pseudo-entry a coefficient."""

    intercept: float
    coef: FloatArray

    @classmethod
    def fit(cls, entries: Entries, target: FloatArray) -> LinearLocation:
        """Minimise Σ w (target − a − bᵀx)² + ‖b‖², with intercept a."""
        width = entries.regressors.shape[1]
        gram, moment = np.zeros((width, width)), np.zeros(width)
        mean, level = np.zeros(width), 0.0
        # In blocks that fit the cache, without a weighted copy of the whole.
        for start in range(0, len(target), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            root = np.sqrt(entries.weights[rows])
            block = entries.regressors[rows] * root[:, None]
            # A product with its own transpose takes BLAS half the time of another.
            gram += block.T @ block
            moment += (root * target[rows]) @ block
            mean += root @ block
            level += float(entries.weights[rows] @ target[rows])
        total = float(entries.weights.sum())
        mean, level = mean / total, level / total
        gram -= total * np.outer(mean, mean)
        gram[np.diag_indices(width)] += RIDGE
        coef = np.asarray(
            np.linalg.solve(gram, moment - total * level * mean), dtype=np.float64
        )
        return cls(float(level - mean @ coef), coef)

    def predict(self, regressors: FloatArray) -> FloatArray:
        """A location for each row."""
        location: FloatArray = regressors @ self.coef
        location += self.intercept
        return location


@dataclass(frozen=True)
class EstimatorLocation:
    """The mean of regressors that were fitted on all folds but one."""

    models: tuple[Any, ...]

    def predict(self, regressors: FloatArray) -> FloatArray:
        """A location for each row."""
        predictions = [model.predict(regressors) for model in self.models]
        return np.asarray(np.mean(predictions, axis=0))


def cross_fit(
    regressor: Any, entries: Entries, target: FloatArray, rng: np.random.Generator
) -> tuple[EstimatorLocation, FloatArray]:
    """Fit clones of a regressor, and predict each entry by one that hasn't seen it.

    A flexible model comes nearer to the entries that it was fitted on than to missing
    ones. Donors that it had seen would then be too like each other.
    """
    folds = rng.permutation(np.arange(len(target)) % FOLDS)
    location, models = np.empty(len(target)), []
    for fold in range(min(FOLDS, len(target))):
        held, kept = folds == fold, folds != fold
        if not kept.any():
            kept = held
        model = clone(regressor).fit(
            entries.regressors[kept],
            target[kept],
            sample_weight=entries.weights[kept],
        )
        location[held] = model.predict(entries.regressors[held])
        models.append(model)
    return EstimatorLocation(tuple(models)), location


@dataclass(frozen=True)
class NumericConditional:
    """A predicted location, and donors of residuals."""

    location: Location
    donors: Donors

    @classmethod
    def fit(
        cls,
        entries: Entries,
        levels: NumericLevels,
        regressor: Any,
        n_donors: int | None,
        rng: np.random.Generator,
    ) -> NumericConditional:
        """Fit a location to a column's normal scores, linear or by a regressor."""
        target = levels.scores[entries.levels]
        location: Location
        if regressor is None:
            location = LinearLocation.fit(entries, target)
            at_donors = location.predict(entries.regressors)
        else:
            location, at_donors = cross_fit(regressor, entries, target, rng)
        donors = Donors.build(
            levels,
            entries.tilt,
            entries.marginal,
            at_donors,
            target - at_donors,
            entries.weights,
            n_donors,
        )
        return cls(location, donors)

    def draw(self, regressors: FloatArray, rng: np.random.Generator) -> IntArray:
        """A level for each row."""
        return self.donors.draw(self.location.predict(regressors), rng)

    def thinned(self, rng: np.random.Generator) -> NumericConditional:
        """With few enough donors to be kept."""
        return replace(self, donors=self.donors.thinned(rng))


@dataclass(frozen=True)
class CategoricalConditional:
    """Class probabilities, times φ_j of the class.

    Parameters
    ----------
    classifier : classifier or None
        Fitted to levels; None where there is one only.
    tilt : ndarray of shape (n_levels,)
        φ_j/max φ_j of each level.
    marginal : ndarray of shape (n_levels,)
        The law of the missing entries as a whole, for a row where no level that the
        classifier holds possible can go missing.
    """

    classifier: Any
    tilt: FloatArray
    marginal: FloatArray

    @classmethod
    def fit(cls, entries: Entries, classifier: Any) -> CategoricalConditional:
        """Fit a classifier, by default a multinomial logistic regression."""
        if (entries.levels == entries.levels[0]).all():
            return cls(None, entries.tilt, entries.marginal)
        if classifier is None:
            classifier = LogisticRegression(solver="newton-cholesky", C=1.0 / RIDGE)
        model = clone(classifier).fit(
            entries.regressors, entries.levels, sample_weight=entries.weights
        )
        return cls(model, entries.tilt, entries.marginal)

    def draw(self, regressors: FloatArray, rng: np.random.Generator) -> IntArray:
        """A level for each row."""
        mass = np.tile(self.marginal, (len(regressors), 1))
        if self.classifier is not None:
            seen = self.classifier.classes_
            probability = self.classifier.predict_proba(regressors) * self.tilt[seen]
            possible = probability.sum(axis=1) > 0.0
            mass[possible] = 0.0
            mass[np.ix_(possible, seen)] = probability[possible]
        cumulative = np.cumsum(mass, axis=1)
        mark = rng.random(len(mass)) * cumulative[:, -1]
        # The last level with any mass, should rounding take the mark to the very end.
        last = len(self.tilt) - 1 - np.argmax(mass[:, ::-1] > 0.0, axis=1)
        place = (cumulative <= mark[:, None]).sum(axis=1)
        return np.asarray(np.minimum(place, last))

    def thinned(self, rng: np.random.Generator) -> CategoricalConditional:
        """Itself: there are no donors."""
        return self
