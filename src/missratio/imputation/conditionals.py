"""The law of one column given the others, tilted to the entries that are missing.

All are fitted where the column is observed, with weights 1/(1 − φ_j): these recover the
conditional law of the complete data. Other columns may be imputed there. Entries go
missing independently given the row, so that they call for no weights of their own.

Where entries that were lost, drawn at random and looked up tell the law, nothing is
assumed about why entries go missing. Models see beside the other columns whether an
entry had been lost, and missing ones are drawn as lost: so a shift of the lost entries
is learned from those that were looked up, and what both kinds have in common from all
of them. Once there are enough looked-up entries, slopes may differ too. Residuals are
lent by looked-up entries alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from missratio._base.blocks import any_by_row
from missratio._base.storable import storable
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.imputation.columns import NumericLevels

# Donors that are kept for later rows.
KEPT_DONORS = 10_000
# Proposals that may be refused before one of many candidates is chosen.
TRIES = 100
# With fewer entries left than these, each gets several proposals at once.
FEW_ENTRIES = 1000
CANDIDATES = 500
POOL = 4
RIDGE = 1.0

Keys = NDArray[np.uint64]
# The multipliers and shifts of SplitMix64.
_STEP = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_WORD = 2**64
_BLOCK = 8192


# Where draws take their randomness from: a generator, or the row itself. A score has to
# be a function of the row alone: were the noise of a new row to depend on its place in
# the batch, rows scored one at a time would have another law than the rows that the
# threshold was calibrated on.


@dataclass(frozen=True)
class DrawnNoise:
    """A generator's numbers in the order in which entries come."""

    rng: np.random.Generator
    size: int

    def uniform(self) -> FloatArray:
        """The next number of each entry, in [0, 1)."""
        return self.rng.random(self.size)

    def below(self, end: int) -> IntArray:
        """The next number of each entry, among 0, …, end − 1."""
        return self.rng.integers(end, size=self.size)

    def tries(self, count: int, _: int) -> DrawnNoise:
        """The noise of so many tries of each entry, those of one after another."""
        return DrawnNoise(self.rng, self.size * count)

    def chosen(self, entries: IntArray) -> DrawnNoise:
        """The noise of some of the entries, from here on."""
        return DrawnNoise(self.rng, len(entries))


class RowNoise:
    """Numbers that are a function of the row: SplitMix64, started from its content."""

    def __init__(self, keys: Keys, turn: int = 0) -> None:
        self._keys = keys
        self._turn = turn

    @classmethod
    def of(cls, table: FloatArray, seed: Any) -> RowNoise:
        """Noise of the rows of a table."""
        start = seed.generate_state(1, np.uint64)[0]
        keys = np.full(len(table), start, dtype=np.uint64)
        for column in table.T:
            values = column + 0.0
            values[np.isnan(values)] = np.nan
            keys ^= values.view(np.uint64)
            _mix(keys)
        return cls(keys)

    def stream(self, *place: int) -> RowNoise:
        """Noise for another purpose, independent of this one."""
        keys = self._keys.copy()
        for number in place:
            keys += np.uint64(_STEP * (number + 1) % _WORD)
            _mix(keys)
        return RowNoise(keys)

    def uniform(self) -> FloatArray:
        """The next number of each entry, in [0, 1)."""
        self._turn += 1
        words = self._keys + np.uint64(_STEP * self._turn % _WORD)
        _mix(words)
        words >>= np.uint64(11)
        numbers: FloatArray = words * np.float64(2.0**-53)
        return numbers

    def below(self, end: int) -> IntArray:
        """The next number of each entry, among 0, …, end − 1."""
        # The product is rounded, so that it might reach the end.
        return np.minimum((self.uniform() * end).astype(np.intp), end - 1)

    def tries(self, count: int, numbers: int) -> RowNoise:
        """The noise of so many tries of each entry, each of which takes some numbers.

        They are those that the tries would take one by one, so that it doesn't matter
        how many are made at once.
        """
        begin = self._turn + numbers * np.arange(count, dtype=np.uint64)
        self._turn += numbers * count
        return RowNoise((self._keys[:, None] + begin * np.uint64(_STEP)).ravel())

    def chosen(self, entries: IntArray) -> RowNoise:
        """The noise of some of the entries, from here on."""
        return RowNoise(self._keys[entries], self._turn)


def _mix(words: Keys) -> None:
    """SplitMix64's bijection, which makes near words far, in place."""
    # In blocks that fit the cache.
    for start in range(0, len(words), _BLOCK):
        block = words[start : start + _BLOCK]
        block ^= block >> np.uint64(30)
        block *= np.uint64(_FIRST)
        block ^= block >> np.uint64(27)
        block *= np.uint64(_SECOND)
        block ^= block >> np.uint64(31)


Noise = DrawnNoise | RowNoise


def draw_from(cumulative: FloatArray, uniform: FloatArray) -> IntArray:
    """Places drawn by uniform numbers, as likely as the masses that were summed."""
    mark = uniform * cumulative[-1]
    place = np.searchsorted(cumulative, mark, side="right")
    # Should rounding take a mark to the very end: the last place with any mass.
    last = np.searchsorted(cumulative, cumulative[-1])
    return np.asarray(np.minimum(place, last))


@dataclass(frozen=True)
class Entries:
    """Where a column is observed: what a conditional law is fitted to."""

    # What models see of the other columns, (n, width).
    regressors: FloatArray
    # The column's values, as places among its levels.
    levels: IntArray
    # ∝ 1/(1 − φ_j); they sum to Kish's effective number of entries.
    weights: FloatArray
    # φ_j/max φ_j of each level.
    tilt: FloatArray
    # What each entry weighs as a donor of its residual, where that is not `weights`.
    lent: FloatArray | None = None

    @property
    def marginal(self) -> FloatArray:
        """The law of the missing entries as a whole, up to a factor, by level."""
        weights = self.weights if self.lent is None else self.lent
        mass = np.bincount(self.levels, weights, minlength=len(self.tilt))
        return np.asarray(mass * self.tilt)


@storable()
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
        total, root = float(weights.sum()), np.sqrt(weights)
        # A product with its own transpose takes BLAS half the time of another.
        rows = regressors * root[:, None]
        mean, level = root @ rows / total, float(weights @ target) / total
        gram = rows.T @ rows - total * np.outer(mean, mean)
        gram[np.diag_indices(len(gram))] += RIDGE
        moment = (root * target) @ rows - total * level * mean
        coef = np.asarray(np.linalg.solve(gram, moment), dtype=np.float64)
        return cls(float(level - mean @ coef), coef)

    def predict(self, regressors: FloatArray) -> FloatArray:
        """A location for each row.

        Summed column by column: BLAS rounds a row's sum by how many rows there are and
        where they lie, and a row's location is to depend on that row alone.
        """
        location = np.full(len(regressors), self.intercept)
        for column, coef in zip(regressors.T, self.coef, strict=True):
            location += coef * column
        return location


@storable()
@dataclass(frozen=True)
class BinaryLogistic:
    """Logistic regression of one of two, with the ridge of a linear location."""

    log_odds: LinearLocation
    classes_: ClassVar[IntArray] = np.arange(2)

    @classmethod
    def fit(
        cls, entries: Entries, second: BoolArray, start: BinaryLogistic | None
    ) -> BinaryLogistic:
        """Newton's method, as weighted least squares of a working response.

        From round to round of a chain it changes little: started from the last round's,
        it takes two steps at most.
        """
        X, y, w = entries.regressors, second.astype(np.float64), entries.weights
        zero = LinearLocation(0.0, np.zeros(X.shape[1]))
        model = zero if start is None else start.log_odds
        score = model.predict(X)
        probability = expit(score)
        for _ in range(50 if start is None else 2):
            spread = np.maximum(probability * (1.0 - probability), 1e-6)
            response = score + (y - probability) / spread
            aim = LinearLocation.fit(X, w * spread, response)
            step = aim.predict(X) - score
            longest = float(np.abs(step).max())
            # A long step is cut short, since the response is only good nearby.
            part = 5.0 / max(longest, 5.0)
            model = LinearLocation(
                model.intercept + part * (aim.intercept - model.intercept),
                model.coef + part * (aim.coef - model.coef),
            )
            score += part * step
            before, probability = probability, expit(score)
            # Draws are by probabilities: where the two are all but separated, log-odds
            # go on growing long after these have settled.
            if np.abs(probability - before).max() < 0.01:
                break
        return cls(model)

    def predict_proba(self, regressors: FloatArray) -> FloatArray:
        """The probabilities of both."""
        second = expit(self.log_odds.predict(regressors))
        return np.column_stack([1.0 - second, second])


@storable()
@dataclass(frozen=True)
class NumericConditional:
    """Draws from p(z_j | z_−j, missing) ∝ p(z_j | z_−j) φ_j(z_j).

    A donor is an entry where column j is observed. Its residual, drawn with probability
    ∝ 1/(1 − φ_j) and added to the location predicted for a missing entry, proposes a
    value from p(z_j | z_−j). The proposal is accepted with probability φ_j/max φ_j, so
    that what is accepted has exactly the tilted law. Over the entries that did go
    missing, this takes n proposals or fewer on average, n being the number of rows.
    """

    model: LinearLocation
    # Of the value that makes up a tenth of the column or more, if any.
    spike: BinaryLogistic | None
    levels: NumericLevels
    # φ_j/max φ_j of each level.
    tilt: FloatArray
    # The cumulative law of the missing entries as a whole, for an entry none of whose
    # proposals can go missing.
    marginal: FloatArray
    # Donors as often as they weigh, `POOL` times as many as entries, sorted by location
    # where an entry has not all of them (elsewhere locations are left out): to draw one
    # of them is faster than to search their weights.
    location: FloatArray
    residual: FloatArray
    # How many of these, those with the nearest locations, an entry has; all that tie
    # with the entry, as those in one leaf of a tree do, are among them.
    n_nearest: int

    @classmethod
    def fit(
        cls,
        entries: Entries,
        levels: NumericLevels,
        last: Conditional | None,
        rng: np.random.Generator,
    ) -> NumericConditional:
        """Fit a linear location to a column's normal scores.

        All are donors where the column is continuous. Where values tie, residuals
        depend on the location, and the nearest twentieth are, 100 at least. `last` is
        the column's conditional of the round before, to start from.
        """
        # 1. The spike apart, if there is one.
        X, weights, lent = entries.regressors, entries.weights, entries.lent
        places, spike = entries.levels, None
        if levels.spike is not None:
            is_spike = places == levels.spike
            before = last.spike if isinstance(last, cls) else None
            spike = BinaryLogistic.fit(entries, is_spike, before)
            (rest,) = np.nonzero(~is_spike)
            # Column by column, in which order regressors lie.
            X = np.take(X.T, rest, axis=1).T
            weights, places = weights[rest], places[rest]
            lent = None if lent is None else lent[rest]
        # 2. A location of the scores.
        target = levels.scores[places]
        model = LinearLocation.fit(X, weights, target)
        location = model.predict(X)
        residual = target - location
        # 3. Donors of residuals, all entries where none of them lends.
        if lent is not None and lent.any():
            (lenders,) = np.nonzero(lent)
            location, residual = location[lenders], residual[lenders]
            weights = lent[lenders]
        n_donors = n_nearest = len(location)
        if levels.ties:
            n_nearest = min(max(100, n_donors // 20), n_donors)
        if n_nearest < n_donors:
            order = np.argsort(location)
            location, residual = location[order], residual[order]
            weights = weights[order]
        ends = np.concatenate([[0.0], np.cumsum(weights)])
        ends = POOL * n_donors * (ends / ends[-1]) + rng.random()
        copies = np.diff(np.floor(ends).astype(np.intp))
        # Where all are donors of each entry, nobody asks where they lie.
        location = np.repeat(location, copies if n_nearest < n_donors else 0)
        donors = location, np.repeat(residual, copies)
        marginal = np.cumsum(entries.marginal)
        facts = spike, levels, entries.tilt, marginal, *donors, POOL * n_nearest
        return cls(model, *facts)

    def draw(self, regressors: FloatArray, noise: Noise) -> IntArray:
        """A level for each row."""
        chance = None
        if self.spike is not None:
            chance = self.spike.predict_proba(regressors)[:, 1]
        location, size = self.model.predict(regressors), len(self.residual)
        if len(self.location):
            # The donors of each entry, from the first to before the last.
            rank = np.searchsorted(self.location, location)
            first = np.clip(rank - self.n_nearest // 2, 0, size - self.n_nearest)
            above = np.searchsorted(self.location, location, side="right")
            last = np.maximum(first + self.n_nearest, above)
            first = np.minimum(first, rank)

        def propose(entries: IntArray, noise: Noise) -> IntArray:
            """A level for each entry, as if it were not known to be missing."""
            if not len(self.location):
                residual = self.residual[noise.below(size)]
            else:
                begin, end = first[entries], last[entries]
                step = (noise.uniform() * (end - begin)).astype(np.intp)
                residual = self.residual[np.minimum(begin + step, end - 1)]
            proposed = self.levels.nearest(location[entries] + residual)
            if chance is not None:
                assert self.levels.spike is not None
                proposed[noise.uniform() < chance[entries]] = self.levels.spike
            return proposed

        drawn = np.empty(len(location), dtype=np.intp)
        waiting, tried = np.arange(len(location)), 0
        numbers = 2 if chance is None else 3
        while len(waiting) and tried < TRIES:
            # Several proposals at once for the few that are left.
            count = min(1 + FEW_ENTRIES // len(waiting), TRIES - tried)
            tries = noise.tries(count, numbers)
            proposed = propose(np.repeat(waiting, count), tries).reshape(-1, count)
            accepted = tries.uniform().reshape(-1, count) < self.tilt[proposed]
            earliest = accepted.argmax(axis=1)
            drawn[waiting] = proposed[np.arange(len(waiting)), earliest]
            refused = np.flatnonzero(~any_by_row(accepted))
            waiting, noise = waiting[refused], noise.chosen(refused)
            tried += count
        # Where few are accepted: one of many proposals, with probability ∝ φ.
        marks = noise.uniform()
        for start in range(0, len(waiting), FEW_ENTRIES):
            part = np.arange(start, min(start + FEW_ENTRIES, len(waiting)))
            left, mark = waiting[part], marks[part]
            tries = noise.chosen(part).tries(CANDIDATES, numbers)
            proposed = propose(np.repeat(left, CANDIDATES), tries)
            proposed = proposed.reshape(-1, CANDIDATES)
            mass = np.cumsum(self.tilt[proposed], axis=1)
            place = (mass <= (mark * mass[:, -1])[:, None]).sum(axis=1)
            place = np.minimum(place, (mass < mass[:, -1:]).sum(axis=1))
            chosen = proposed[np.arange(len(left)), place]
            possible = mass[:, -1] > 0.0
            drawn[left] = np.where(possible, chosen, draw_from(self.marginal, mark))
        return drawn


@dataclass(frozen=True)
class CategoricalConditional:
    """Class probabilities, times φ_j of the class."""

    # Fitted to levels; None where there is one only.
    classifier: Any
    tilt: FloatArray
    # The law of the missing entries as a whole, for a row where no level that the
    # classifier holds possible can go missing.
    marginal: FloatArray

    @classmethod
    def fit(cls, entries: Entries, last: Conditional | None) -> CategoricalConditional:
        """Fit a logistic regression.

        `last` is the column's conditional of the round before, to start from.
        """
        model: Any = None
        if np.ptp(entries.levels) and len(entries.tilt) == 2:
            before = last.classifier if isinstance(last, cls) else None
            model = BinaryLogistic.fit(entries, entries.levels == 1, before)
        elif np.ptp(entries.levels):
            model = LogisticRegression(solver="newton-cholesky", C=1.0 / RIDGE)
            X, weights = entries.regressors, entries.weights
            model.fit(X, entries.levels, sample_weight=weights)
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


@storable()
@dataclass(frozen=True)
class LookedUpConditional:
    """Draws missing entries by a law that is told that they are lost."""

    law: Conditional
    slopes: bool

    def draw(self, regressors: FloatArray, noise: Noise) -> IntArray:
        """A level for each row of what models see of the other columns."""
        lost = np.ones(len(regressors), dtype=bool)
        return self.law.draw(with_status(regressors, lost, self.slopes), noise)


def kish_scaled(weights: FloatArray) -> FloatArray:
    """Weights that sum to Kish's effective number of entries."""
    return np.asarray(weights * (weights.sum() / (weights**2).sum()))


def with_status(regressors: FloatArray, lost: BoolArray, slopes: bool) -> FloatArray:
    """Regressors, whether an entry was lost, and their products where slopes differ."""
    # A shift that is seen three times as large as a score is hardly shrunk.
    parts = [regressors.T, 3.0 * lost[None, :]]
    if slopes:
        parts.append(regressors.T * lost)
    # Column by column, in which order regressors lie.
    return np.concatenate(parts).T


Conditional = NumericConditional | CategoricalConditional | LookedUpConditional


def thinned(law: Conditional, rng: np.random.Generator) -> Conditional:
    """The same law with at most `KEPT_DONORS` donors, chosen at random."""
    if isinstance(law, LookedUpConditional):
        return replace(law, law=thinned(law.law, rng))
    most = POOL * KEPT_DONORS
    if isinstance(law, CategoricalConditional) or len(law.residual) <= most:
        return law
    size = len(law.residual)
    kept = np.sort(rng.choice(size, most, replace=False))
    nearest = max(1, law.n_nearest * most // size)
    location = law.location[kept] if len(law.location) else law.location
    return replace(
        law, location=location, residual=law.residual[kept], n_nearest=nearest
    )
