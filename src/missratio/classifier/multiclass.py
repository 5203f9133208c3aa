"""Neyman-Pearson classification of several classes: their errors bounded together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from missratio._base.blocks import take_rows
from missratio._base.callbacks import handed_down
from missratio._base.hints import generator
from missratio._base.storable import storable
from missratio._base.typing import FloatArray, IntArray
from missratio.classifier.base import CertifiedClassifier, few
from missratio.classifier.certificate import MulticlassCertificate, percent
from missratio.classifier.certify import (
    certify,
    choose_cap,
    expected_error,
    infeasible,
)
from missratio.classifier.decision import (
    Choice,
    ClassBounds,
    Decision,
    UnorderedDecision,
    choose_offsets,
    mistaken,
    moved_offsets,
    with_threshold,
)
from missratio.classifier.estimators import ClassTable
from missratio.classifier.promise import Calibration, Promise, Trust
from missratio.classifier.reading import read_rows
from missratio.exceptions import Message, NoCertificateError, Remedy
from missratio.missingness import Missingness
from missratio.rows import refuse_source
from missratio.threshold import Rule

# Below +∞ and above every score.
LARGEST = float(np.finfo(np.float64).max)


@storable()
@dataclass(frozen=True)
class TradeOff:
    """The errors of two bounded classes as the border between them moves.

    From held-out rows that take no part in a certificate, so an estimate. What
    other bounded classes take of the two is counted in.

    Parameters
    ----------
    labels : tuple of two labels
    levels : tuple of two floats
        The bounds that are asked for.
    errors : ndarray of shape (n_points, 2)
        Estimated shares of the two classes' rows that get a wrong bounded class.
    certifiable : ndarray of shape (n_points, 2)
        The least levels that the certifying rows would certify at these errors.
    """

    labels: tuple[Any, Any]
    levels: tuple[float, float]
    errors: FloatArray
    certifiable: FloatArray

    @property
    def has_room(self) -> bool:
        """Whether some border should keep both bounds."""
        return bool((self.certifiable <= self.levels).all(axis=1).any())

    def least_level(self, place: int) -> float | None:
        """The least level of one class, 0 or 1, if the other keeps its own.

        None where none is small enough for the other.
        """
        kept = self.certifiable[:, 1 - place] <= self.levels[1 - place]
        return float(self.certifiable[kept, place].min()) if kept.any() else None

    @property
    def least_factor(self) -> float:
        """By what factor both levels have to grow until there is room."""
        return float((self.certifiable / self.levels).max(axis=1).min())

    @property
    def sentence(self) -> str:
        """What there is room for."""
        (a, b), (level_a, level_b) = self.labels, self.levels
        text = f"alpha={level_a:g} for {a!r} and {level_b:g} for {b!r} "
        if self.has_room:
            return f"{text}leave each other little room."
        least = [self.least_level(0), self.least_level(1)]
        found = [(x, label) for x, label in zip(least, self.labels, strict=True) if x]
        text += "leave no room"
        if found:
            smallest = min(x for x, _ in found)
            ways = " or ".join(f"{x:.2g} for {label!r}" for x, label in found)
            text += f": at least {smallest:.2g} for one of them ({ways})"
        scaled = [min(1.0, self.least_factor * level) for level in self.levels]
        return f"{text}; or {scaled[0]:.2g} and {scaled[1]:.2g} for both."


def trade_offs(
    choice: Choice, decision: UnorderedDecision, labels: Sequence[Any]
) -> tuple[TradeOff, ...]:
    """The trade-off of every pair of bounded classes, the tightest first."""
    found = []
    for pair in combinations(decision.bounded, 2):
        errors = [
            [
                choice.rows[k].share(moved.scores(choice.rows[k].scores, k) == np.inf)
                for k in pair
            ]
            for moved in moved_offsets(choice, decision, pair, pair[1])
        ]
        shares = np.array(sorted(errors)).reshape(-1, 2)
        least = [list(map(choice.least_level, pair, row)) for row in shares]
        first, second = pair
        found.append(
            TradeOff(
                (labels[first], labels[second]),
                (choice.levels[first], choice.levels[second]),
                shares,
                np.array(least).reshape(-1, 2),
            )
        )
    return tuple(sorted(found, key=lambda each: -each.least_factor))


# With a smaller chance of a certificate at their parts of δ, classes share all of it.
SURE = 0.95
IN_MEMORY = "Bring some into memory, or bound one error with NeymanPearsonClassifier."


@storable()
class MulticlassNeymanPearsonClassifier(CertifiedClassifier):
    """A classifier that keeps the errors of several classes below their own α.

    P(for some k: P(predicted ≠ k | class k) > α_k) ≤ δ for unordered classes; with
    `order`, the same for P(predicted is less severe than k | class k). The errors that
    are not bounded are made as small as the bounds allow.

    Rows are split in three. The first part fits an estimator. The second decides how
    scores become labels. On the third each of the m bounded classes gets one threshold,
    from its own rows, by a rule for one threshold at its part δ/m of δ. Where unordered
    classes may leave each other too little room for that, each is tested at δ, and all
    thresholds move together along a path that was fixed beforehand, as far as all tests
    are passed: the first place that breaks a bound is fixed, too, and passes the test
    of that class with probability δ at most. The guarantee holds for any estimator,
    good or bad.

    Parameters
    ----------
    estimator : estimator
        A classifier of several classes with `predict_proba` or `decision_function`; or
        one of two classes, such as a density ratio, which is then fitted to each class
        and the largest.
    alpha : mapping from class to float
        The bound on each class's error. Classes left out are not bounded. With `order`
        all classes but the last have one.
    delta : float, default=0.05
        Probability that one or more of the bounds may fail, over the draw of the
        calibration rows.
    order : sequence of classes or None, default=None
        The classes, the most severe first, where only errors in favour of a less severe
        class are bounded. None for unordered classes.
    missingness : mapping from class to Missingness or None, default=None
        Why values are missing, as for `NeymanPearsonClassifier`.
    rule : str or Rule, default="auto"
        As for `NeymanPearsonClassifier`.
    deployment : {"complete", "as-observed"}, default="complete"
        Rows to be classified are complete, and one with a missing value gets the
        most severe class, or the first in `alpha`; or they lose values as the
        calibration rows did, and are scored as they are. The latter needs no φ.
    calibration_size : float, default=0.5
        Share of each bounded class's rows that its threshold is chosen with.
    choice_size : float, default=0.1
        Share of each class's rows that decide how scores become labels.
    random_state : int, Generator or None, default=None
        For the split, and for rules that draw.
    odds_factor : float, default=1.0
        The guarantee holds even if the odds of being missing are wrong by up to this
        factor, either way.

    Attributes
    ----------
    certificate_ : MulticlassCertificate
        What is guaranteed, and under which assumptions; `certificate_[label]` is that
        of one class.
    trade_offs_ : tuple of TradeOff
        Which bounds each pair of bounded classes can meet together, the tightest
        first. Available even if the fit failed because they can't all be met. Empty
        for ordered classes.
    scores_ : ClassScores
        The fitted estimators.
    decision_ : UnorderedDecision or OrderedDecision
        Offsets and thresholds.
    calibrations_ : dict
        What each threshold was chosen from.
    caps_ : dict
        For classes that have one, the cap on weights above which rows are given up:
        they get the most severe class, or the first in `alpha`.
    calibration_index_, choice_index_ : ndarray of int
        Rows that thresholds were chosen with, and those that decided before.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> centres = {"flu": (0, 0), "cold": (3, 0), "well": (1, 3)}
    >>> X = np.concatenate([rng.normal(c, 1, (900, 2)) for c in centres.values()])
    >>> y = np.repeat(list(centres), 900)
    >>> clf = mr.MulticlassNeymanPearsonClassifier(
    ...     LogisticRegression(), alpha={"flu": 0.1, "cold": 0.15}, random_state=0
    ... ).fit(X, y)
    >>> [each.error_bound <= each.alpha for each in clf.certificate_.certificates]
    [True, True]
    """

    def __init__(
        self,
        estimator: Any,
        alpha: Mapping[Any, float],
        delta: float = 0.05,
        order: Sequence[Any] | None = None,
        missingness: Mapping[Any, Missingness] | None = None,
        rule: str | Rule = "auto",
        deployment: Literal["complete", "as-observed"] = "complete",
        calibration_size: float = 0.5,
        choice_size: float = 0.1,
        random_state: Any = None,
        odds_factor: float = 1.0,
    ) -> None:
        self.estimator = estimator
        self.alpha = alpha
        self.delta = delta
        self.order = order
        self.missingness = missingness
        self.rule = rule
        self.deployment = deployment
        self.calibration_size = calibration_size
        self.choice_size = choice_size
        self.random_state = random_state
        self.odds_factor = odds_factor

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        inclusion: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Fit the estimator, choose how scores become labels, and calibrate.

        Parameters
        ----------
        X, y : array-like or dataframe of shape (n_rows, n_columns), array-like
            NaN where a value is missing.
        inclusion : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            Probabilities of looked-up values: `X, inclusion = revealed.fill(X)`.
        **params : dict
            Such as `sample_weight`, for the estimator's fit; calibration has none.

        Returns
        -------
        Self
            The fitted classifier. `NoCertificateError` is raised where there are too
            few rows, or the bounds leave each other no room.
        """
        refuse_source(self, X, IN_MEMORY)
        self._check_parameters()
        table, rng = self._table(X, y, inclusion, params), generator(self.random_state)
        self.caps_: dict[Any, Trust] = {}
        self.trade_offs_: tuple[TradeOff, ...] = ()
        labels = table.labels
        bounds = ClassBounds(self.alpha, self.delta, self.order, labels)
        undecided = bounds.undecided()
        # With one bounded class of two nothing has to be chosen.
        settled = len(labels) == 2 and len(self.alpha) == 1
        sizes = {k: dict[str, float]() for k in range(len(labels))}
        for position, taken in sizes.items():
            if position in undecided.bounded:
                taken["calibration_size"] = self.calibration_size
            if not settled:
                taken["choice_size"] = self.choice_size
        fitted, chosen, held = table.split(sizes, rng)
        self.calibration_index_, self.choice_index_ = held, chosen
        self.scores_ = table.fit(handed_down(self, self.estimator), fitted)
        known, promises = np.sort(np.concatenate([fitted, chosen])), {}
        for position in undecided.bounded:
            label = labels[position]
            promises[position] = self._promise(
                table,
                self.alpha[label],
                bounds.most,
                held,
                known,
                position,
                wrong=bounds.wrong(label),
                on_infeasible="reject_all",
                fallback=bounds.fallback,
                remedies=("bound fewer classes",),
            )
        # 1. Scores of all rows that anything is chosen by.
        training, choosing = (
            [few(table.rows_of(k, part)) for k in range(len(labels))]
            for part in (fitted, chosen)
        )
        weighted = [x.training for x in promises.values() if x.model]
        index = np.unique(np.concatenate([held, *training, *choosing, *weighted]))
        values = np.full((len(table.codes), len(labels)), np.nan)
        values[index] = self._class_scores(take_rows(table.X, index))
        # 2. Caps on weights, where giving rows up is an error of no bounded class: one
        #    that weighs more gets the fallback. Where classes are ordered, that isn't
        #    under-classified; where only one is bounded, it is that one.
        for position in promises if self.order or len(promises) == 1 else ():
            promise, alone = promises[position], bounds.alone().scores(values, position)
            wrong = [training[labels.index(label)] for label in promise.wrong]
            others = few(np.sort(np.concatenate(wrong)))
            trust = choose_cap(promise, table, alone, others)
            if trust is not None:
                self.caps_[promise.label] = trust
                promises[position] = replace(promise, cap=trust.cap)
                rows = np.flatnonzero(~np.isnan(values[:, 0]))
                X = take_rows(table.X, rows)
                values[rows] = self._beyond_caps(X, values[rows])
        # 3. How scores become labels, by parts of δ; or, where there may be too little
        #    room for that, by all of it: then a path is fixed, along which thresholds
        #    move together, as far down as each class is certified.
        parts = {k: replace(each, delta=bounds.part) for k, each in promises.items()}
        choice = self._choice(bounds, table, training, choosing, parts, values)
        decision, path = choose_offsets(choice, undecided), None
        if isinstance(decision, UnorderedDecision):
            if not choice.is_possible or choice.certain(decision) < SURE:
                parts = promises
                choice = self._choice(bounds, table, training, choosing, parts, values)
                decision = choose_offsets(choice, undecided)
                path = decision.thresholds
            if choice.is_possible:
                assert isinstance(decision, UnorderedDecision)
                self.trade_offs_ = trade_offs(choice, decision, labels)
            if choice.is_possible and path is not None:
                path = choice.with_thresholds(decision).thresholds
        # 4. One threshold after the other, the most severe class's first.
        certificates, self.calibrations_ = [], {}
        for position in decision.bounded:

            def score(
                X: Any, fixed: Decision = decision, position: int = position
            ) -> FloatArray:
                return fixed.scores(self._class_scores(X), position)

            promise, label = parts[position], labels[position]
            own = decision.scores(values, position)
            found, calibration = certify(promise, table, own, score, rng)
            if not found.certified or found.threshold == np.inf:
                # No threshold below ∞ leaves few enough rows above it.
                crowded = [trade for trade in self.trade_offs_ if label in trade.labels]
                sample, needed = calibration.sample, None
                if sample.lookups is None:
                    levels = found.alpha, calibration.delta
                    needed = calibration.rule.least_rows(*levels, sample.bound or 1.0)
                lost = (sample.values == np.inf).any()
                if crowded and lost and (needed or 0) <= sample.n_rows:
                    raise self._crowded(crowded[0], label, calibration)
                raise infeasible(promise, calibration, found.rule)
            decision = with_threshold(decision, position, found.threshold)
            certificates.append(found)
            self.calibrations_[label] = calibration
        if path is not None:
            places = list(decision.bounded)
            start = np.where(np.isfinite(path), path, 0.0)[places]
            least = decision.thresholds[places]
            moved = np.maximum(least, start + (least - start).max()).tolist()
            for k, (place, threshold) in enumerate(zip(places, moved, strict=True)):
                decision = with_threshold(decision, place, threshold)
                sample = self.calibrations_[labels[place]].sample
                error = sample.estimated_error(threshold)
                certificates[k] = replace(
                    certificates[k], threshold=threshold, estimated_error=error
                )
        self.decision_ = decision
        order = None if self.order is None else tuple(self.order)
        self.certificate_ = MulticlassCertificate(
            self.delta, tuple(certificates), order, bounds.fallback
        )
        return self

    def predict(self, X: Any) -> Any:
        """The classes of rows.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        check_is_fitted(self, "certificate_")
        return self.classes_[self.decision_.decide(self.class_scores(X))]

    def class_scores(self, X: Any) -> FloatArray:
        """The estimators' log-scores of each class, up to a common term.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            NaN for a row that can't be scored: under deployment "complete" one with a
            missing value, and one that goes missing too often for a certificate.
        """
        check_is_fitted(self, "scores_")
        return self._class_scores(read_rows(self, X, reset=False))

    def _labels(self, y: Any) -> list[Any]:
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        labels: list[Any] = self.classes_.tolist()
        ClassBounds(self.alpha, self.delta, self.order, labels).check()
        return labels

    def _choice(
        self,
        bounds: ClassBounds,
        table: ClassTable,
        training: list[IntArray],
        choosing: list[IntArray],
        promises: Mapping[int, Promise],
        values: FloatArray,
    ) -> Choice:
        """The rows to choose by, and what those to calibrate on are worth."""
        worth, expected = {}, {}
        seen, rows = (
            [table.choosing(k, index, values[index]) for k, index in enumerate(part)]
            for part in (training, choosing)
        )
        for position, promise in promises.items():
            share = rows[position].effective / max(len(choosing[position]), 1)
            worth[position] = round(share * len(promise.held))
            alone = bounds.alone().scores(values, position)
            level = expected_error(promise, table, alone)
            if level is not None:
                expected[position] = level
        # Rows that the estimator was fitted to tell as much, unless it knows them by
        # heart.
        error, margin = mistaken(rows)
        if mistaken(seen)[0] >= error - margin:
            rows = [each.joined(more) for each, more in zip(rows, seen, strict=True)]
        delta = next(iter(promises.values())).delta
        return Choice(tuple(rows), bounds.levels, worth, delta, expected)

    def _class_scores(self, X: Any) -> FloatArray:
        scores = self.scores_.of(X, self.deployment)
        return self._beyond_caps(X, scores)

    def _beyond_caps(self, X: Any, scores: FloatArray) -> FloatArray:
        """No scores for rows that may weigh more than a cap."""
        for trust in self.caps_.values():
            assert trust.cap is not None
            scores[trust.edges(X)[1] > trust.cap] = np.nan
        return scores

    def _crowded(
        self, trade: TradeOff, label: Any, calibration: Calibration
    ) -> NoCertificateError:
        """A class has no threshold, as another leaves it no room."""
        sample = calibration.sample
        return NoCertificateError(
            Message(
                "{sentence} In fact, {share} of {rows} calibration rows of class "
                "{label!r} are taken for another bounded class.",
                label=label,
                remedies=(
                    "raise one of the levels",
                    "bound fewer classes",
                    "bring more rows",
                    "take an estimator that tells these classes apart",
                    Remedy.SEE_TRADE_OFF,
                ),
                facts={
                    "sentence": trade.sentence,
                    "share": percent(sample.estimated_error(LARGEST)),
                    "rows": sample.n_rows,
                },
            )
        )
