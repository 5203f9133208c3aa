"""What a threshold is to guarantee, and of which rows with which weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from missratio._base.storable import storable
from missratio._base.typing import FloatArray
from missratio.classifier.scores import Rounding
from missratio.classifier.target import TargetRatio
from missratio.learning import LearnedMissingness
from missratio.missingness import LogisticMissingness, Missingness, RowInclusion
from missratio.ratio import check_choice
from missratio.threshold import (
    CalibrationSample,
    LookUpRule,
    Rule,
    Selection,
    TargetRule,
    looked_up_sample,
    make_rule,
)
from missratio.weights import (
    complete_row_weight_edges,
    complete_row_weights,
    weight_edges,
)

# What a cap stays below when odds are widened.
LARGEST_LOG_CAP = 700.0


@dataclass(frozen=True)
class ScoredRows:
    """Rows with their scores.

    Parameters
    ----------
    rows : array or dataframe of shape (n_rows, n_columns)
        NaN where a value is missing.
    scores : ndarray of shape (n_rows,)
    draws : ndarray of shape (n_rows,), optional
        Random numbers for rules that keep rows at random.
    probability : ndarray of shape (n_rows,) or (n_rows, n_columns), optional
        The controlled class's φ there, where it was computed already.
    inclusion : RowInclusion, optional
        By what draw rows are there, where that takes the place of φ.
    coin : float
        One more random number for these rules.
    """

    rows: Any
    scores: FloatArray
    draws: FloatArray | None = None
    probability: FloatArray | None = None
    inclusion: RowInclusion | None = None
    coin: float = 1.0

    def drawn(self, rng: np.random.Generator) -> ScoredRows:
        """The same with random numbers for rules that keep rows at random."""
        draws = rng.uniform(size=len(self.scores))
        return replace(self, draws=draws, coin=float(rng.uniform()))

    def sample(self, trust: Trust) -> CalibrationSample:
        """Rows of the controlled class, as a rule sees them."""
        if self.inclusion is not None:
            drawn = self.inclusion
            scores = np.where(drawn.found, self.scores, np.nan)
            return looked_up_sample(
                scores,
                drawn.probability,
                drawn.strata,
                predicted=drawn.predicted,
                expected=drawn.expected,
            )
        if trust.model is None and trust.target is None:
            return CalibrationSample.build(self.scores)
        if trust.point is not None:
            within = replace(self, scores=trust.score(self))
            return within.sample(trust.at_point)
        bound = trust.bound(self.rows.shape[1])
        if self.probability is None:
            weights = trust.weights(self.rows)
            low = high = weights
            if not (trust.is_certain and trust.cap is None):
                low, high = trust.edges(self.rows)
        else:
            weights = self._weights
            low, high = weight_edges(
                self.probability, self.probability, trust.odds_factor
            )
        scores, edges = trust.apply(self.scores, high), None
        # The edges are kept from being huge, and a cap is made of them; rounding
        # apart, this is all that clipping does.
        weights = np.clip(weights, low, high)
        if not trust.is_certain:
            edges = low, high
        return CalibrationSample.build(
            scores, weights, bound, edges, self.draws, coin=self.coin
        )

    @cached_property
    def _weights(self) -> FloatArray:
        """The weights, from the probability that was computed already."""
        assert self.probability is not None
        return weight_edges(self.probability, self.probability, 1.0)[0]


@storable()
@dataclass(frozen=True)
class Trust:
    """How far the weights of the controlled class are trusted.

    Parameters
    ----------
    model : Missingness or None
        Why its rows are missing; None where none is.
    delta : float or None
        φ lies within its band at this level; None takes it at its word.
    odds_factor : float
        By what factor the odds of being missing may be wrong beyond that.
    cap : float or None
        Rows that may weigh more get the controlled class, so that all that are left
        weigh less, however close to 1 φ comes.
    target : TargetRatio or None
        How much denser the population that the guarantee is for is at a row, where it
        is not the one that the rows come from.
    point : Missingness or None
        The one φ of a learned model's region that rows are weighed by; None for the
        band. The cap counts by the band all the same, so that all φ of the region have
        the same rows within reach.
    """

    model: Missingness | None
    delta: float | None = None
    odds_factor: float = 1.0
    cap: float | None = None
    target: TargetRatio | None = None
    point: Missingness | None = None

    @property
    def phi(self) -> Missingness | None:
        """What rows are weighed by."""
        return self.model if self.point is None else self.point

    @property
    def at_point(self) -> Trust:
        """Trust in that φ alone, for rows within reach, and their largest weight."""
        cap = self.cap
        if cap is not None and isinstance(self.point, LogisticMissingness):
            cap = min(cap, self._largest_within(self.point, cap) * (1.0 + 1e-9))
        return Trust(self.phi, None, self.odds_factor, cap, self.target)

    def _largest_within(self, point: LogisticMissingness, cap: float) -> float:
        """The largest weight that one φ of the region gives to a row within reach.

        Known where one column loses values: the largest odds that the region allows
        grow beyond the cap at some value, or at one on either side.
        """
        assert isinstance(self.model, LearnedMissingness)
        assert self.delta is not None
        regions = self.model.region(self.delta)
        lossy = [j for j, points in enumerate(regions) if np.isfinite(points).all()]
        if len(lossy) != 1 or cap <= 1.0:
            return cap
        first, slope = regions[lossy[0]][:, 0], regions[lossy[0]][:, 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            reached = (math.log((cap - 1.0) / self.odds_factor) - first) / slope
        ends = np.array(
            [
                reached[slope < 0.0].max(initial=-np.inf),
                reached[slope > 0.0].min(initial=np.inf),
            ]
        )
        intercept = np.broadcast_to(point.intercept, np.shape(point.coef))
        along = np.asarray(point.coef)[lossy[0]]
        with np.errstate(invalid="ignore"):
            highest = float(np.nanmax(intercept[lossy[0]] + along * ends))
        return 1.0 + self.odds_factor * math.exp(min(highest, LARGEST_LOG_CAP))

    @property
    def is_certain(self) -> bool:
        """Whether the weights are what the model says."""
        known = self.target is None or self.target.factor == 1.0
        return self.delta is None and self.odds_factor == 1.0 and known

    def widened(self, factor: float) -> Trust:
        """The estimated odds wrong by up to a factor, of rows within the same reach."""
        cap = self.cap if self.point is None else self.at_point.cap
        if cap is not None and self.model is not None:
            more = max(factor / self.odds_factor, 1.0)
            if self.model.rowwise:
                cap = 1.0 + (cap - 1.0) * more
            else:
                cap = math.exp(min(more * math.log(cap), LARGEST_LOG_CAP))
        return Trust(self.phi, None, factor, cap, self.target)

    def score(self, scored: ScoredRows) -> FloatArray:
        """Scores of any rows, −∞ where too little is ever observed."""
        if self.cap is None:
            return scored.scores
        return self.apply(scored.scores, self.edges(scored.rows)[1])

    def apply(self, scores: FloatArray, heaviest: FloatArray) -> FloatArray:
        """Take the scores of rows that may weigh more than the cap."""
        if self.cap is None:
            return scores
        return np.where(heaviest > self.cap, -np.inf, scores)

    def weights(self, rows: Any) -> FloatArray:
        """What rows stand for; 0 where any entry is missing."""
        weights = np.ones(rows.shape[0])
        if self.model is not None:
            weights = complete_row_weights(rows, self.model)
        return weights if self.target is None else weights * self.target.weights(rows)

    def edges(self, rows: Any) -> tuple[FloatArray, FloatArray]:
        """The least and the largest that the weights of complete rows may be."""
        low = high = np.ones(rows.shape[0])
        if self.model is not None:
            low, high = complete_row_weight_edges(
                rows, self.model, delta=self.delta, odds_factor=self.odds_factor
            )
        if self.target is None:
            return low, high
        ratio = self.target.weights(rows)
        return low * ratio / self.target.factor, high * ratio * self.target.factor

    def bound(self, n_columns: int) -> float | None:
        """The largest weight of a row that can be in a tail; None if unknown."""
        if self.target is not None:
            return self.cap
        if self.model is None:
            return 1.0
        known = self.model.weight_bound(n_columns, self.odds_factor)
        bounds = [bound for bound in (known, self.cap) if bound is not None]
        return min(bounds, default=None)


@dataclass(frozen=True, slots=True)
class Promise:
    """What a threshold is to guarantee, and how it is chosen.

    Parameters
    ----------
    alpha, delta : float
    missingness_delta : float or None
        The part of δ that a learned φ may be out of its band with; None for half.
    odds_factor : float
    rule : str or Rule
    deployment : {"complete", "as-observed"}
    on_infeasible : {"raise", "reject_all"}
    controlled, other : object
        The controlled class, and the other.
    caps : bool
        Whether rows of large weight may be given up for a smaller bound, by giving
        them the controlled class.
    target : TargetRatio or None
        Of the population that the guarantee is for, where that is another.
    cap : float or None
        A cap that was chosen before.
    """

    alpha: float
    delta: float
    missingness_delta: float | None
    odds_factor: float
    rule: str | Rule
    deployment: str
    on_infeasible: str
    controlled: Any
    other: Any
    caps: bool = True
    target: TargetRatio | None = None
    cap: float | None = None

    def missingness_part(self, model: Missingness | None) -> float:
        """The part of δ that a learned φ may be out of its region with."""
        if model is None or not model.learned:
            return 0.0
        part = self.missingness_delta
        return self.delta / 2.0 if part is None else part

    def resolve_rule(
        self,
        rule: str | Rule,
        trust: Trust,
        training: ScoredRows | None,
        *,
        looked_up: bool = False,
    ) -> Rule:
        """The rule itself, prepared by the weights of training rows."""
        if looked_up and isinstance(rule, str):
            check_choice("rule", rule, ("auto", LookUpRule.name))
            return LookUpRule()
        known = None
        is_complete = trust.model is None and trust.target is None
        if training is not None and not is_complete:
            known = training.sample(trust)
        return make_rule(rule, training=known, complete=is_complete)

    def target_rule(self) -> Rule:
        """The rule for weights that may not average to one."""
        if isinstance(self.rule, Rule):
            return self.rule
        check_choice("rule", self.rule, ("auto", TargetRule.name))
        return TargetRule()


@storable()
@dataclass(frozen=True)
class Calibration:
    """What a threshold was chosen from, so that it can be chosen at any level α.

    Parameters
    ----------
    sample : CalibrationSample
        The calibration rows, as the rule sees them.
    trust : Trust
        How far their weights are trusted.
    rule : Rule
        Fixed before their scores were seen.
    delta : float
        The part of δ that is the rule's.
    rounding : Rounding
        How far thresholds are moved up, so that rounding can't lift a row above them.
    others : tuple of Calibration
        The same rows under other φ that a learned model leaves possible. A threshold
        is certified by all of them.
    """

    sample: CalibrationSample
    trust: Trust
    rule: Rule
    delta: float
    rounding: Rounding = field(default_factory=Rounding)
    others: tuple[Calibration, ...] = ()

    def select(self, alphas: Sequence[float]) -> list[Selection]:
        """The thresholds that the rule certifies at some levels.

        Parameters
        ----------
        alphas : sequence of float
        """
        found = [self.rule.select_levels(self.sample, alphas, self.delta)]
        found += [other.select(alphas) for other in self.others]
        strictest = [max(each, key=_asked) for each in zip(*found, strict=True)]
        return [
            replace(chosen, threshold=self.rounding.moved(chosen.threshold))
            if chosen.threshold is not None
            else chosen
            for chosen in strictest
        ]

    def forecast(self, sample: CalibrationSample) -> Calibration:
        """The same with other rows, under the φ that asks most at α alone."""
        return replace(self, sample=sample, others=())


def _asked(chosen: Selection) -> float:
    """The threshold; infinite where none is certified."""
    return math.inf if chosen.threshold is None else chosen.threshold
