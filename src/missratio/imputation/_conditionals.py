"""The law of one column given the others, tilted to the entries that are missing.

All are fitted where the column is observed, with weights 1/(1 − φ_j): these recover the
conditional law of the complete data. Other columns may be imputed there. Entries go
missing independently given the row, so that they call for no weights of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.imputation._donors import Donors
from missratio.imputation._levels import NumericLevels
from missratio.imputation._noise import Noise

RIDGE = 1.0
FOLDS = 3
_BLOCK_ROWS = 8192
_NEWTON_STEPS, _FURTHER_STEPS = 50, 2
_LONGEST_STEP = 5.0
_LEAST_SPREAD = 1e-6
_SETTLED = 0.01


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
    lent : ndarray of shape (n,), or None
        What each entry weighs as a donor of its residual, where that is not `weights`.
    """

    regressors: FloatArray
    levels: IntArray
    weights: FloatArray
    tilt: FloatArray
    lent: FloatArray | None = None

    def chosen(self, rows: BoolArray) -> Entries:
        """Some of the entries."""
        places = np.flatnonzero(rows)
        # Column by column, in which order regressors lie.
        regressors = np.take(self.regressors.T, places, axis=1).T
        lent = None if self.lent is None else self.lent[places]
        return Entries(
            regressors, self.levels[places], self.weights[places], self.tilt, lent
        )

    @property
    def lenders(self) -> tuple[IntArray | slice, FloatArray]:
        """The entries that lend their residuals, and their weights; all if none do."""
        if self.lent is None or not self.lent.any():
            return slice(None), self.weights
        rows = np.flatnonzero(self.lent)
        return rows, self.lent[rows]

    @property
    def marginal(self) -> FloatArray:
        """The law of the missing entries as a whole, up to a factor, by level."""
        weights = self.weights if self.lent is None else self.lent
        mass = np.bincount(self.levels, weights, minlength=len(self.tilt))
        marginal: FloatArray = mass * self.tilt
        return marginal


class Conditional(Protocol):
    """Draws levels of one column where it is missing."""

    def draw(self, regressors: FloatArray, noise: Noise) -> IntArray:
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
    def fit(
        cls, regressors: FloatArray, weights: FloatArray, target: FloatArray
    ) -> LinearLocation:
        """Minimise Σ w (target − a − bᵀx)² + ‖b‖², with intercept a."""
        width = regressors.shape[1]
        gram, moment = np.zeros((width, width)), np.zeros(width)
        mean, level = np.zeros(width), 0.0
        # In blocks that fit the cache, without a weighted copy of the whole.
        for start in range(0, len(target), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            root = np.sqrt(weights[rows])
            block = regressors[rows] * root[:, None]
            # A product with its own transpose takes BLAS half the time of another.
            gram += block.T @ block
            moment += (root * target[rows]) @ block
            mean += root @ block
            level += float(weights[rows] @ target[rows])
        total = float(weights.sum())
        mean, level = mean / total, level / total
        gram -= total * np.outer(mean, mean)
        gram[np.diag_indices(width)] += RIDGE
        coef = np.asarray(
            np.linalg.solve(gram, moment - total * level * mean), dtype=np.float64
        )
        return cls(float(level - mean @ coef), coef)

    def predict(self, regressors: FloatArray) -> FloatArray:
        """A location for each row.

        Summed column by column: BLAS rounds a row's sum by how many rows there are and
        where they lie, and a row's location is to depend on that row alone.
        """
        location = np.full(len(regressors), self.intercept)
        for start in range(0, len(location), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            for column, coef in zip(regressors[rows].T, self.coef, strict=True):
                location[rows] += coef * column
        return location

    def moved(self, aim: LinearLocation, part: float) -> LinearLocation:
        """A part of the way to another."""
        return LinearLocation(
            self.intercept + part * (aim.intercept - self.intercept),
            self.coef + part * (aim.coef - self.coef),
        )


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
class BinaryLogistic:
    """Logistic regression of one of two, with the ridge of a linear location."""

    log_odds: LinearLocation

    @classmethod
    def fit(
        cls, entries: Entries, second: BoolArray, start: BinaryLogistic | None
    ) -> BinaryLogistic:
        """Newton's method, as weighted least squares of a working response.

        From round to round of a chain it changes little: started from the last round's,
        it takes two steps at most.
        """
        X, y, w = entries.regressors, second.astype(np.float64), entries.weights
        model = LinearLocation(0.0, np.zeros(X.shape[1]))
        if start is not None:
            model = start.log_odds
        at = model.predict(X)
        probability = expit(at)
        for _ in range(_NEWTON_STEPS if start is None else _FURTHER_STEPS):
            spread = np.maximum(probability * (1.0 - probability), _LEAST_SPREAD)
            response = at + (y - probability) / spread
            aim = LinearLocation.fit(X, w * spread, response)
            step = aim.predict(X) - at
            longest = float(np.abs(step).max())
            # A long step is cut short, since the response is only good nearby.
            part = _LONGEST_STEP / max(longest, _LONGEST_STEP)
            model = model.moved(aim, part)
            at += part * step
            before, probability = probability, expit(at)
            # Draws are by probabilities: where the two are all but separated, log-odds
            # go on growing long after these have settled.
            if np.abs(probability - before).max() < _SETTLED:
                break
        return cls(model)

    @property
    def classes_(self) -> IntArray:
        """The two levels."""
        return np.arange(2)

    def probability(self, regressors: FloatArray) -> FloatArray:
        """The probability of the second."""
        second: FloatArray = expit(self.log_odds.predict(regressors))
        return second

    def predict_proba(self, regressors: FloatArray) -> FloatArray:
        """The probabilities of both."""
        second = self.probability(regressors)
        return np.column_stack([1.0 - second, second])


@dataclass(frozen=True)
class NumericConditional:
    """A predicted location and donors of residuals; beside them the spike, if any.

    Parameters
    ----------
    location : Location
        Of entries other than the spike.
    donors : Donors
    spike : BinaryLogistic or None
        Whether an entry is the spike.
    """

    location: Location
    donors: Donors
    spike: BinaryLogistic | None

    @classmethod
    def fit(
        cls,
        entries: Entries,
        levels: NumericLevels,
        regressor: Any,
        n_donors: int | None,
        last: Conditional | None,
        rng: np.random.Generator,
    ) -> NumericConditional:
        """Fit a location to a column's normal scores, linear or by a regressor.

        `last` is the column's conditional of the round before, to start from.
        """
        spike, donors = None, entries
        if levels.spike is not None:
            is_spike = entries.levels == levels.spike
            before = last.spike if isinstance(last, cls) else None
            spike = BinaryLogistic.fit(entries, is_spike, before)
            donors = entries.chosen(~is_spike)
        target = levels.scores[donors.levels]
        location: Location
        if regressor is None:
            location = LinearLocation.fit(donors.regressors, donors.weights, target)
            at_donors = location.predict(donors.regressors)
        else:
            location, at_donors = cross_fit(regressor, donors, target, rng)
        lenders, weights = donors.lenders
        pool = Donors.build(
            levels,
            entries.tilt,
            entries.marginal,
            at_donors[lenders],
            (target - at_donors)[lenders],
            weights,
            n_donors,
            rng,
        )
        return cls(location, pool, spike)

    def draw(self, regressors: FloatArray, noise: Noise) -> IntArray:
        """A level for each row."""
        chance = None
        if self.spike is not None:
            chance = self.spike.probability(regressors)
        return self.donors.draw(self.location.predict(regressors), chance, noise)

    def thinned(self, rng: np.random.Generator) -> NumericConditional:
        """The same law with few enough donors to be kept."""
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
    def fit(
        cls, entries: Entries, classifier: Any, last: Conditional | None
    ) -> CategoricalConditional:
        """Fit a classifier, by default a logistic regression.

        `last` is the column's conditional of the round before, to start from.
        """
        if (entries.levels == entries.levels[0]).all():
            return cls(None, entries.tilt, entries.marginal)
        if classifier is None and len(entries.tilt) == 2:
            before = last.classifier if isinstance(last, cls) else None
            model = BinaryLogistic.fit(entries, entries.levels == 1, before)
            return cls(model, entries.tilt, entries.marginal)
        if classifier is None:
            classifier = LogisticRegression(solver="newton-cholesky", C=1.0 / RIDGE)
        model = clone(classifier).fit(
            entries.regressors, entries.levels, sample_weight=entries.weights
        )
        return cls(model, entries.tilt, entries.marginal)

    def draw(self, regressors: FloatArray, noise: Noise) -> IntArray:
        """A level for each row."""
        mass = np.tile(self.marginal, (len(regressors), 1))
        if self.classifier is not None:
            seen = self.classifier.classes_
            probability = self.classifier.predict_proba(regressors) * self.tilt[seen]
            possible = probability.sum(axis=1) > 0.0
            mass[possible] = 0.0
            mass[np.ix_(possible, seen)] = probability[possible]
        cumulative = np.cumsum(mass, axis=1)
        mark = noise.uniform() * cumulative[:, -1]
        # The last level with any mass, should rounding take the mark to the very end.
        last = len(self.tilt) - 1 - np.argmax(mass[:, ::-1] > 0.0, axis=1)
        place = (cumulative <= mark[:, None]).sum(axis=1)
        return np.asarray(np.minimum(place, last))

    def thinned(self, rng: np.random.Generator) -> CategoricalConditional:
        """Itself: there are no donors."""
        return self
