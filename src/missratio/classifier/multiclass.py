"""Neyman-Pearson classification of several classes: their errors bounded together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from missratio._base.callbacks import handed_down
from missratio._base.hints import another_type, did_you_mean
from missratio._base.seeds import generator
from missratio._base.storable import storable
from missratio._base.typing import FloatArray, IntArray
from missratio.classifier.base import DEPLOYMENTS, CertifiedClassifier, check_factor
from missratio.classifier.certificate import Certificate, MulticlassCertificate, percent
from missratio.classifier.classes import (
    BoundedClass,
    Choice,
    ChoosingRows,
    ClassTable,
    Decision,
    Score,
    Training,
    UnorderedDecision,
    candidate_offsets,
    choose,
    mistaken,
    ordered,
    unordered,
)
from missratio.classifier.promise import Calibration, Promise, Trust
from missratio.classifier.reading import read_labelled, read_rows
from missratio.classifier.scores import scorable
from missratio.exceptions import Message, NoCertificateError, Remedy
from missratio.missingness import Missingness
from missratio.ratio import check_choice
from missratio.rows import refuse_source
from missratio.threshold import Rule, check_levels


@dataclass(frozen=True)
class Asked:
    """Bounds on errors of several classes.

    Parameters
    ----------
    alpha : mapping from class to float
    delta : float
    order : sequence of classes, or None
        The most severe first.
    labels : list
        The classes that there are, sorted.
    """

    alpha: Mapping[Any, float]
    delta: float
    order: Sequence[Any] | None
    labels: list[Any]

    @property
    def part(self) -> float:
        """Each bounded class's part of δ."""
        return self.delta / len(self.alpha)

    @property
    def most(self) -> float:
        """What part of δ a class can have at most: all, if thresholds move together."""
        return self.delta if self.order is None else self.part

    @property
    def positions(self) -> tuple[int, ...]:
        """The bounded classes, in the order in which thresholds are chosen."""
        return self.undecided().bounded

    @property
    def levels(self) -> dict[int, float]:
        """α of the bounded classes, by position."""
        return {self.labels.index(label): level for label, level in self.alpha.items()}

    @property
    def fallback(self) -> Any:
        """The class of a row that can't be scored."""
        return self.labels[self.undecided().fallback]

    def wrong(self, label: Any) -> tuple[Any, ...]:
        """The classes that a row of a bounded class must not get."""
        if self.order is None:
            return tuple(other for other in self.labels if other != label)
        return tuple(self.order)[list(self.order).index(label) + 1 :]

    def undecided(self) -> Decision:
        """The decision before anything is chosen."""
        if self.order is not None:
            return ordered([self.labels.index(label) for label in self.order])
        bounded = [self.labels.index(label) for label in self.alpha]
        return unordered(len(self.labels), bounded)

    def check(self) -> None:
        """Refuse bounds that don't fit the classes."""
        if len(self.labels) < 2:
            raise ValueError(
                f"y has one class only, {self.labels[0]!r}: there is nothing to tell "
                "apart."
            )
        if not isinstance(self.alpha, Mapping) or not self.alpha:
            raise TypeError(
                "alpha must map classes to the bounds on their errors, such as "
                f"{{{self.labels[0]!r}: 0.05}}: got {self.alpha!r}."
            )
        for label, level in self.alpha.items():
            self._check_label(label, "alpha")
            check_levels(level, self.delta)
        if self.order is not None:
            self._check_order(list(self.order))

    def _check_order(self, order: list[Any]) -> None:
        for label in order:
            self._check_label(label, "order")
        if len(order) != len(self.labels) or len(set(order)) != len(order):
            raise ValueError(
                f"order must list each class once, the most severe first: got {order} "
                f"for the classes {self.labels}."
            )
        if set(self.alpha) != set(order[:-1]):
            raise ValueError(
                "With order, alpha has a bound for each class but the last, "
                f"{order[:-1]}: got {list(self.alpha)}."
            )

    def _check_label(self, label: Any, parameter: str) -> None:
        if label not in self.labels:
            hint = another_type(label, self.labels)
            if not hint:
                hint = did_you_mean(str(label), [str(known) for known in self.labels])
            raise ValueError(
                f"{parameter} names a class {label!r}, but the classes are "
                f"{self.labels}.{hint}"
            )


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

    def taken_for_another(
        self, label: Any, calibration: Calibration
    ) -> NoCertificateError:
        """Why one of the two has no threshold, where the other leaves it no room.

        Parameters
        ----------
        label : object
        calibration : Calibration
            Of its rows; those taken for another bounded class have an infinite value.
        """
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
                    "sentence": self.sentence,
                    "share": percent(calibration.sample.estimated_error(LARGEST)),
                    "rows": calibration.sample.n_rows,
                },
            )
        )


def trade_offs(
    choice: Choice, decision: UnorderedDecision, labels: Sequence[Any]
) -> tuple[TradeOff, ...]:
    """The trade-off of every pair of bounded classes, the tightest first."""
    found = [
        _trade_off(choice, decision, pair, labels)
        for pair in combinations(decision.bounded, 2)
    ]
    return tuple(sorted(found, key=lambda each: -each.least_factor))


def _trade_off(
    choice: Choice, decision: UnorderedDecision, pair: tuple[int, int], labels: Any
) -> TradeOff:
    errors = []
    for offset in candidate_offsets(choice, decision, pair, pair[1]):
        moved = replace(decision, offsets=decision.offsets.copy())
        moved.offsets[pair[1]] = offset
        errors.append([choice.confusion(moved, position) for position in pair])
    shares = np.array(errors).reshape(-1, 2)
    shares = shares[np.argsort(shares[:, 0], kind="stable")]
    certifiable = np.array(
        [
            [choice.least_level(k, share) for k, share in zip(pair, row, strict=True)]
            for row in shares
        ]
    ).reshape(-1, 2)
    first, second = pair
    return TradeOff(
        (labels[first], labels[second]),
        (choice.levels[first], choice.levels[second]),
        shares,
        certifiable,
    )


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
    calibration_size : float, default=0.4
        Share of each bounded class's rows that its threshold is chosen with.
    choice_size : float, default=0.2
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
        calibration_size: float = 0.4,
        choice_size: float = 0.2,
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
        self._check_estimator()
        X, y = read_labelled(self, X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        asked = Asked(self.alpha, self.delta, self.order, self.classes_.tolist())
        self._check_parameters(asked)
        models = self._resolve_missingness()
        if get_config()["enable_metadata_routing"]:
            params = process_routing(self, "fit", **params).estimator.fit
        drawn = self._drawn(inclusion, X, y)
        table = ClassTable(X, codes, asked.labels, models, drawn, self.deployment)
        rng = generator(self.random_state)
        # 1. Three parts; what can be known to be impossible is said now.
        fitted, self.choice_index_, self.calibration_index_ = table.split(
            asked.positions, self.choice_size, self.calibration_size, rng
        )
        bounded = self._bounded(table, asked)
        for each in bounded.values():
            each.refuse_too_few_rows()
        # 2. Scores of every class.
        given = None if inclusion is None else np.asarray(inclusion, dtype=np.float64)
        estimator = handed_down(self, self.estimator)
        self.scores_ = Training(table, fitted, given, params).fit(estimator)
        # 3. Rows that go missing too often to be certified get the fallback.
        self.caps_: dict[Any, Trust] = {}
        bounded = self._capped(table, fitted, asked, bounded)
        # 4. How scores become labels, chosen on the second part.
        parts = {place: each.at(asked.part) for place, each in bounded.items()}
        choice = self._choice(table, asked, parts, fitted)
        decision, levels = choose(choice, asked.undecided())
        together = isinstance(decision, UnorderedDecision) and (
            not choice.is_possible or choice.certain(decision) < SURE
        )
        if together:
            choice = self._choice(table, asked, bounded, fitted)
            decision, levels = choose(choice, asked.undecided())
        self.trade_offs_: tuple[TradeOff, ...] = ()
        if isinstance(decision, UnorderedDecision) and choice.is_possible:
            self.trade_offs_ = trade_offs(choice, decision, asked.labels)
        # 5. A threshold for each bounded class, on the third part.
        path = None
        if together and choice.is_possible:
            path = choice.with_thresholds(decision).thresholds
        elif together:
            path = decision.thresholds
        self._certify(decision, levels, bounded if together else parts, path, rng)
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

    def _check_parameters(self, asked: Asked) -> None:
        asked.check()
        check_choice("deployment", self.deployment, DEPLOYMENTS)
        check_factor("odds_factor", self.odds_factor)

    def _bounded(self, table: ClassTable, asked: Asked) -> dict[int, BoundedClass]:
        """The bounded classes: rows that calibrate, and the others."""
        found = {}
        for position in asked.positions:
            label = asked.labels[position]
            promise = Promise(
                alpha=self.alpha[label],
                delta=asked.most,
                missingness_delta=None,
                odds_factor=self.odds_factor,
                rule=self.rule,
                deployment=self.deployment,
                on_infeasible="reject_all",
                controlled=label,
                other=asked.wrong(label),
                caps=False,
            )
            found[position] = BoundedClass.among(
                table, promise, asked.fallback, self.calibration_index_
            )
        return found

    def _capped(
        self,
        table: ClassTable,
        fitted: IntArray,
        asked: Asked,
        bounded: Mapping[int, BoundedClass],
    ) -> dict[int, BoundedClass]:
        """Caps on weights, where giving rows up is an error of no bounded class.

        A row that weighs more than a class's cap gets the fallback. Where classes are
        ordered, that isn't under-classified; where only one is bounded, it is that one.
        """
        found = dict(bounded)
        if self.order is None and len(bounded) > 1:
            return found
        for position, each in bounded.items():
            wrong = [asked.labels.index(label) for label in asked.wrong(each.label)]
            others = ChoosingRows.few(fitted[np.isin(table.codes[fitted], wrong)])
            score = self._alone(asked, position)
            trust = each.chosen_cap(score, table.take(others))
            if trust is not None:
                self.caps_[each.label] = trust
                found[position] = each.with_cap(trust)
        return found

    def _choice(
        self,
        table: ClassTable,
        asked: Asked,
        bounded: Mapping[int, BoundedClass],
        fitted: IntArray,
    ) -> Choice:
        """The rows to choose by, and what those to calibrate on are worth."""
        worth, expected = {}, {}

        def scored(index: IntArray) -> list[ChoosingRows]:
            found = []
            for position in range(len(asked.labels)):
                few = ChoosingRows.few(table.rows_of(position, index))
                scores = self._class_scores(table.take(few))
                rows = ChoosingRows.of(scores, table.weights(position, few))
                found.append(rows)
                if position in bounded:
                    share = rows.effective / max(len(few), 1)
                    worth[position] = round(share * bounded[position].n_rows)
            return found

        training, rows = scored(fitted), scored(self.choice_index_)
        # Rows that the estimator was fitted to tell as much, unless it knows them by
        # heart.
        error, margin = mistaken(rows)
        if mistaken(training)[0] >= error - margin:
            pairs = zip(rows, training, strict=True)
            rows = [each.joined(more) for each, more in pairs]
        for position in bounded:
            level = bounded[position].expected(self._alone(asked, position))
            if level is not None:
                expected[position] = level
        delta = next(iter(bounded.values())).promise.delta
        return Choice(tuple(rows), asked.levels, worth, delta, expected)

    def _alone(self, asked: Asked, position: int) -> Score:
        """h_k as if no other class had a threshold yet."""
        decision = asked.undecided()
        for each in asked.positions:
            # What earlier classes will take isn't known yet.
            decision = decision.with_threshold(each, -np.inf)

        def score(X: Any) -> FloatArray:
            return decision.scores(self._class_scores(X), position)

        return score

    def _class_scores(self, X: Any) -> FloatArray:
        scores = self.scores_.of(X, scorable(X, self.deployment))
        for trust in self.caps_.values():
            assert trust.cap is not None
            scores[trust.edges(X)[1] > trust.cap] = np.nan
        return scores

    def _certify(
        self,
        decision: Decision,
        levels: Mapping[int, float],
        bounded: Mapping[int, BoundedClass],
        path: FloatArray | None,
        rng: np.random.Generator,
    ) -> None:
        """One threshold after the other, the most severe class's first.

        With a path, which was fixed beforehand, all thresholds move together along it,
        as far down as each class is certified.
        """
        certificates, self.calibrations_ = [], {}
        for position in decision.bounded:
            each, fixed = bounded[position], decision

            def score(
                X: Any, fixed: Decision = fixed, position: int = position
            ) -> FloatArray:
                return fixed.scores(self._class_scores(X), position)

            certificate, calibration = each.certify(score, levels[position], rng)
            if not certificate.certified:
                raise self._without_certificate(each, certificate, calibration)
            decision = decision.with_threshold(position, certificate.threshold)
            certificates.append(certificate)
            self.calibrations_[each.label] = calibration
        if path is not None:
            places = list(decision.bounded)
            start = np.where(np.isfinite(path), path, 0.0)[places]
            least = decision.thresholds[places]
            moved = np.maximum(least, start + (least - start).max()).tolist()
            for k, (place, threshold) in enumerate(zip(places, moved, strict=True)):
                decision = decision.with_threshold(place, threshold)
                sample = self.calibrations_[certificates[k].controlled_class].sample
                error = sample.estimated_error(threshold)
                certificates[k] = replace(
                    certificates[k], threshold=threshold, estimated_error=error
                )
        self.decision_ = decision
        self.certificate_ = MulticlassCertificate(
            self.delta,
            tuple(certificates),
            None if self.order is None else tuple(self.order),
            self.classes_.tolist()[decision.fallback],
        )

    def _without_certificate(
        self, each: BoundedClass, certificate: Certificate, calibration: Calibration
    ) -> NoCertificateError:
        """Why a class has no threshold, and what to do."""
        crowded = [trade for trade in self.trade_offs_ if each.label in trade.labels]
        if not crowded or not (calibration.sample.values == np.inf).any():
            return each.too_few_rows(calibration, certificate.rule)
        return crowded[0].taken_for_another(each.label, calibration)
