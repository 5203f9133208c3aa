"""What a threshold is to guarantee, and what rows that it is chosen by stand for.

A target is a population whose covariates have another distribution than the rows at
hand.

Under covariate shift, where a class is as likely given the columns in the one
population as in the other, rows of the controlled class stand for the target's with
weights r(x) = p_target(x) / p_source(x), and for complete rows with r(x)/(1 − φ(x)).
These don't average to one: the target may have more rows of that class, or fewer. What
is certified is therefore E[W·1{h > C}] ≤ α·E[W], for which the scale of W is of no
importance.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.base import clone

from missratio._base.blocks import take_rows
from missratio._base.storable import storable
from missratio._base.typing import FloatArray
from missratio.classifier.estimators import Rounding, complete_mask
from missratio.exceptions import Remedy
from missratio.learning import LearnedMissingness
from missratio.missingness import LogisticMissingness, Missingness, RowInclusion, once
from missratio.ratio import KLIEP, check_choice, stack_samples
from missratio.threshold import (
    CalibrationSample,
    LookUpRule,
    Rule,
    Selection,
    looked_up_sample,
    make_rule,
)
from missratio.weights import (
    complete_row_weight_edges,
    inverse_probability_weights,
    row_weights,
)

# Rows that stand for more than this many times the average are as good as unseen.
LARGEST_LOG = 50.0
# A ratio that was learned from fewer rows is hardly known; nor is an error by so few.
FEWEST_ROWS, FEWEST_EFFECTIVE = 50, 20.0


class WeakTargetWarning(UserWarning):
    """A certificate is for a target that little is known about."""


@storable()
@dataclass(frozen=True)
class TargetRatio:
    """How much denser the target is than the source, up to a factor.

    Parameters
    ----------
    ratio : object
        With `predict_log_ratio`.
    rows : int
        Target rows that it was learned from; 0 where it was given.
    shift : float
        Taken off the logarithm, so that weights are one on average.
    factor : float
        By what factor the ratio may be wrong, either way.
    """

    ratio: Any
    rows: int
    shift: float = 0.0
    factor: float = 1.0

    def weights(self, rows: Any) -> FloatArray:
        """R of complete rows, 0 of others."""
        return np.exp(np.minimum(self.log_ratios(rows) - self.shift, LARGEST_LOG))

    def log_ratios(self, rows: Any, what: str = "") -> FloatArray:
        """Log r as the ratio gives it for complete rows, −∞ for others.

        Parameters
        ----------
        rows : array or dataframe of shape (n_rows, n_columns)
        what : str
            What the rows are, where a certificate is made of them: a ratio that can't
            weigh them is refused.
        """
        complete = complete_mask(rows)
        found = np.full(len(complete), -np.inf)
        name = f"{type(self.ratio).__name__}.predict_log_ratio"
        if complete.any():
            chosen = take_rows(rows, np.flatnonzero(complete))
            logs = np.asarray(self.ratio.predict_log_ratio(chosen), dtype=np.float64)
            if logs.shape != (len(chosen),) or np.isnan(logs).any():
                raise ValueError(
                    "The target's density ratio must be one number for each row, and "
                    f"not NaN: {name} gave shape {logs.shape} for {len(chosen)} rows, "
                    f"{np.count_nonzero(np.isnan(logs))} of the values NaN. Give a "
                    "ratio that is a number at every row of X."
                )
            found[complete] = logs
        if what and (found == np.inf).any():
            raise ValueError(
                f"The target's density ratio must be finite: {name} gave +inf at "
                f"{np.count_nonzero(found == np.inf)} of {len(found)} {what} rows, and "
                "no row stands for infinitely many. Give a bounded ratio, or one with "
                "more penalty."
            )
        if what and not (found > -np.inf).any():
            raise ValueError(
                f"The target's density ratio must be above 0 at some rows: {name} gave "
                f"-inf, a ratio of 0, at all {len(found)} {what} rows. The target has "
                "no rows like these, so they say nothing about it. Bring rows like the "
                "target's, or give a ratio that overlaps with X."
            )
        return found


def learn_target(
    target: Any, estimator: Any, source: Any, weights: FloatArray, factor: float
) -> TargetRatio:
    """The target's density ratio: as it was given, or learned.

    Parameters
    ----------
    target : array or dataframe of shape (n_target_rows, n_columns), or ratio
        Complete rows of the target, of any class; or an object with
        `predict_log_ratio`, for a ratio that is known.
    estimator : ratio or None
        How to learn it; None for KLIEP.
    source : array or dataframe of shape (n_rows, n_columns)
        Rows of both classes that take no part in calibration.
    weights : ndarray of shape (n_rows,)
        What they stand for in the source; 0 for incomplete ones.
    factor : float
        By what factor the ratio is to be allowed to be wrong.
    """
    ratio, n_rows = target, 0
    if not hasattr(target, "predict_log_ratio"):
        complete = complete_mask(target)
        if not complete.all():
            raise ValueError(
                f"{int((~complete).sum())} target row(s) have missing values: which "
                "rows are complete says nothing about the target as a whole. Give "
                "complete rows, or a ratio that was learned from incomplete ones with "
                "its missingness."
            )
        seen, n_rows = np.flatnonzero(weights > 0.0), len(complete)
        X, labels = stack_samples(target, take_rows(source, seen))
        learner = KLIEP() if estimator is None else clone(estimator)
        own = np.concatenate([np.ones(n_rows), weights[seen]])
        ratio = learner.fit(X, labels, sample_weight=own)
    found = TargetRatio(ratio, n_rows, factor=factor)
    # Weights are one on average.
    total = logsumexp(found.log_ratios(source, "training"), b=weights)
    return replace(found, shift=float(total - np.log(weights.sum())))


def warn_of_weak_target(found: TargetRatio, effective_rows: float, n_rows: int) -> None:
    """Warn where little is known about a target.

    Parameters
    ----------
    found : TargetRatio
    effective_rows : float
        Kish's effective size of the calibration rows, as the target weighs them.
    n_rows : int
        How many calibration rows there are.
    """
    known = []
    if 0 < found.rows < FEWEST_ROWS:
        known.append(
            f"its density ratio was learned from {found.rows} target row(s), fewer "
            f"than {FEWEST_ROWS}, and the certificate takes the ratio at its word"
        )
    if effective_rows < FEWEST_EFFECTIVE:
        known.append(
            f"the {n_rows} calibration rows are worth {effective_rows:.3g} as the "
            "target weighs them: few of them are like its rows"
        )
    if known:
        warnings.warn(
            f"Little is known about the target: {'; '.join(known)}. Bring more rows "
            "like the target's, or allow for a wrong ratio by target_factor.",
            WeakTargetWarning,
            stacklevel=2,
        )


# What a cap stays below when odds are widened, and a weight in any case.
LARGEST_LOG_CAP, HEAVIEST = 700.0, 1e15


@dataclass(frozen=True)
class Promise:
    """P(error of a class above α) ≤ δ, and how the threshold is chosen.

    Parameters
    ----------
    label, wrong : object
        The class, and the one or those that its rows must not get.
    alpha, delta : float
    model : Missingness or None
        Why rows of the class are missing; None where none can be, or it was drawn which
        of them are there.
    rule : str or Rule
    deployment : {"complete", "as-observed"}
    odds_factor : float
        By what factor the odds of being missing may be wrong.
    missingness_delta : float or None
        The part of δ that a learned φ may be out of its region with; None for half.
    on_infeasible : {"raise", "reject_all"}
    group : object
        The group of rows that it is about; None for all.
    fallback : object
        The class of rows without a score; None for the label.
    target : TargetRatio or None
        Of the population that the guarantee is for, where that is another.
    remedies : tuple of str
        What else helps where nothing can be certified.
    caps : bool
        Whether rows of large weight may be given up for a smaller bound.
    cap : float or None
        A cap that was chosen before.
    by_unit : bool
        Whether one row of each unit calibrates.
    columns : tuple or None
        The columns that scores are made of, where these are not all.
    kept : float
        The share of the columns with a learned φ that these are. Each column's region
        is the one that it has beside all others.
    """

    label: Any
    wrong: Any
    alpha: float
    delta: float
    model: Missingness | None = None
    rule: str | Rule = "auto"
    deployment: str = "complete"
    odds_factor: float = 1.0
    missingness_delta: float | None = None
    on_infeasible: str = "raise"
    group: Any = None
    fallback: Any = None
    target: TargetRatio | None = None
    remedies: tuple[str, ...] = (Remedy.REJECT_ALL,)
    caps: bool = False
    cap: float | None = None
    by_unit: bool = False
    columns: tuple[Any, ...] | None = None
    kept: float = 1.0

    @property
    def trust(self) -> Trust:
        """How far the weights by the model are trusted, before a cap is chosen."""
        part = self.kept * self.missingness_part or None
        return Trust(self.model, part, self.odds_factor, self.cap, self.target)

    @property
    def missingness_part(self) -> float:
        """The part of δ that a learned φ may be out of its region with."""
        if self.model is None or not self.model.learned:
            return 0.0
        part = self.missingness_delta
        return self.delta / 2.0 if part is None else part

    @property
    def rule_part(self) -> float:
        """The part of δ that is the rule's."""
        return self.delta - self.missingness_part


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
    def at_point(self) -> Trust:
        """Trust in that φ alone, for rows within reach, and their largest weight."""
        cap = self.cap
        if cap is not None and isinstance(self.point, LogisticMissingness):
            cap = min(cap, self._largest_within(self.point, cap) * (1.0 + 1e-9))
        return Trust(self.point, None, self.odds_factor, cap, self.target)

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

    def widened(self, factor: float) -> Trust:
        """The estimated odds wrong by up to a factor, of rows within the same reach."""
        cap = self.cap if self.point is None else self.at_point.cap
        if cap is not None and self.model is not None:
            more = max(factor / self.odds_factor, 1.0)
            if self.model.rowwise:
                cap = 1.0 + (cap - 1.0) * more
            else:
                cap = math.exp(min(more * math.log(cap), LARGEST_LOG_CAP))
        return Trust(self.point or self.model, None, factor, cap, self.target)

    def score(
        self, X: Any, scores: FloatArray, heaviest: FloatArray | None = None
    ) -> FloatArray:
        """Scores of any rows, −∞ where too little is ever observed.

        Parameters
        ----------
        X : array or dataframe of shape (n_rows, n_columns)
        scores : ndarray of shape (n_rows,)
        heaviest : ndarray of shape (n_rows,), optional
            The largest that the rows' weights may be, where that is known.
        """
        if self.cap is None:
            return scores
        if heaviest is None:
            heaviest = self.edges(X)[1]
        return np.where(heaviest > self.cap, -np.inf, scores)

    def edges(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """The least and the largest that the weights of complete rows may be."""
        low = high = np.ones(X.shape[0])
        if self.model is not None:
            low, high = complete_row_weight_edges(
                X, self.model, delta=self.delta, odds_factor=self.odds_factor
            )
        if self.target is None:
            return low, high
        ratio = self.target.weights(X)
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


@dataclass(frozen=True)
class Weighted:
    """Scored rows of one class, and what they stand for: computed once, and carried.

    Parameters
    ----------
    X : array or dataframe of shape (n_rows, n_columns)
        NaN where a value is missing.
    scores : ndarray of shape (n_rows,)
    weights, low, high : ndarray of shape (n_rows,), or None
        What rows stand for, 0 where any entry is missing, and the least and the largest
        that this may be; None where all rows count the same.
    entries : ndarray of shape (n_rows,) or (n_rows, n_columns), or None
        The weights 1/(1 − φ) that these are made of.
    draws : ndarray of shape (n_rows,), or None
        Random numbers for rules that keep rows at random.
    coin : float
        One more random number for these rules.
    inclusion : RowInclusion or None
        By what draw rows are there, where that takes the place of φ.
    """

    X: Any
    scores: FloatArray
    weights: FloatArray | None = None
    low: FloatArray | None = None
    high: FloatArray | None = None
    entries: FloatArray | None = None
    draws: FloatArray | None = None
    coin: float = 1.0
    inclusion: RowInclusion | None = None

    def weighed(self, trust: Trust) -> Weighted:
        """The same rows with their weights: φ is evaluated here, and nowhere else."""
        if trust.model is None and trust.target is None:
            return self
        entries, weights = None, np.ones(len(self.scores))
        if trust.model is not None:
            entries = inverse_probability_weights(self.X, trust.model)
            if trust.model.groups is not None:
                entries = entries[:, once(trust.model.groups)]
            weights = entries if entries.ndim == 1 else row_weights(entries)
        low = high = weights
        if trust.delta is not None:
            low, high = replace(trust, target=None).edges(self.X)
        elif entries is not None and trust.odds_factor != 1.0:
            low, high = widened_weights(entries, trust.odds_factor)
        if trust.target is not None:
            ratio, factor = trust.target.weights(self.X), trust.target.factor
            weights = weights * ratio
            low, high = low * ratio / factor, high * ratio * factor
        # The edges are kept from being huge; rounding apart, this is all that clipping
        # does.
        weights = np.clip(weights, low, high)
        return replace(self, weights=weights, low=low, high=high, entries=entries)

    def at(self, trust: Trust) -> Weighted:
        """The same by the one φ of a region that a trust is in."""
        assert self.high is not None
        within = replace(self, scores=trust.score(self.X, self.scores, self.high))
        return within.weighed(trust.at_point)

    def sample(self, trust: Trust) -> CalibrationSample:
        """Rows of the controlled class, as a rule sees them."""
        if trust.point is not None:
            return self.at(trust).sample(trust.at_point)
        drawn = self.inclusion
        if drawn is not None:
            scores = np.where(drawn.found, self.scores, np.nan)
            return looked_up_sample(
                scores, drawn.probability, drawn.strata, expected=drawn.expected
            )
        if self.weights is None or self.low is None or self.high is None:
            return CalibrationSample.build(self.scores)
        certain = trust.delta is None and trust.odds_factor == 1.0
        certain &= trust.target is None or trust.target.factor == 1.0
        return CalibrationSample.build(
            trust.score(self.X, self.scores, self.high),
            np.clip(self.weights, self.low, self.high),
            trust.bound(self.X.shape[1]),
            None if certain else (self.low, self.high),
            self.draws,
            coin=self.coin,
        )


def widened_weights(
    entries: FloatArray, factor: float
) -> tuple[FloatArray, FloatArray]:
    """The least and the largest weight of rows whose odds may be wrong by a factor."""
    edges = []
    for times in (1.0 / factor, factor):
        with np.errstate(over="ignore"):
            weights = np.where(entries > 0.0, 1.0 + times * (entries - 1.0), 0.0)
            weights = weights if weights.ndim == 1 else weights.prod(axis=1)
            edges.append(np.minimum(weights, HEAVIEST))
    return edges[0], edges[1]


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

    @classmethod
    def under(
        cls,
        trust: Trust,
        rule: str | Rule,
        delta: float,
        rows: Weighted,
        training: Weighted | None,
    ) -> Calibration:
        """Rows weighed by one φ, and the rule prepared by training rows."""
        sample = rows.sample(trust)
        if sample.lookups is not None and isinstance(rule, str):
            check_choice("rule", rule, ("auto", LookUpRule.name))
            return cls(sample, trust, LookUpRule(), delta)
        known = None if training is None else training.sample(trust)
        complete = trust.model is None and trust.target is None
        return cls(
            sample, trust, make_rule(rule, training=known, complete=complete), delta
        )

    def select(self, alphas: Sequence[float]) -> list[Selection]:
        """The thresholds that the rule certifies at some levels.

        Parameters
        ----------
        alphas : sequence of float
        """
        chosen = [[self.rule.select(self.sample, a, self.delta) for a in alphas]]
        chosen += [other.select(alphas) for other in self.others]
        strictest = []
        for each in zip(*chosen, strict=True):
            one = max(
                each, key=lambda x: np.inf if x.threshold is None else x.threshold
            )
            if one.threshold is not None:
                one = replace(one, threshold=self.rounding.moved(one.threshold))
            strictest.append(one)
        return strictest

    def threshold(self, alpha: float) -> float:
        """The one at a level; infinite where none is certified."""
        threshold = self.select([alpha])[0].threshold
        return math.inf if threshold is None else threshold
