"""Neyman-Pearson classification of several classes: their errors bounded together.

What a certificate needs is the same for unordered classes and for ordered ones: for
each bounded class k a number h_k(x) such that a row x of class k is wrong exactly when
h_k(x) > t_k, where t_k is the one threshold that is chosen on rows of class k and h_k
is fixed before these rows are seen. Any rule for one threshold then bounds the error of
class k, and thresholds of other classes have no part in it.

Offsets of classes are chosen before any certifying row is seen: held-out rows that take
no part in a certificate stand for those to come. None of this can break a guarantee;
what it decides is the power.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from scipy.special import logsumexp, ndtr
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from missratio._base.blocks import take_rows
from missratio._base.callbacks import with_callbacks_of
from missratio._base.hints import nearest
from missratio._base.storable import storable
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.classifier.base import CertifiedClassifier, few
from missratio.classifier.certificate import Certificate, MulticlassCertificate, percent
from missratio.classifier.certify import Chosen, certify, choose_trust, infeasible
from missratio.classifier.estimators import ChoosingRows, ClassTable
from missratio.classifier.promise import Calibration, Promise, Trust
from missratio.exceptions import Message, NoCertificateError
from missratio.missingness import Missingness
from missratio.tensor import in_library_of
from missratio.threshold import Rule, binomial_tail, check_levels


@storable()
@dataclass(frozen=True)
class UnorderedDecision:
    """A bounded class, unless a free one beats it by more than its threshold.

    1. Among the bounded classes the one with the largest score plus offset wins; it is
       a class k, say. Among the free ones likewise; it is u, say.
    2. The row gets u if score_u + offset_u − score_k − offset_k > t_k, else k.

    A row of class k is wrong where another bounded class won in step 1, whatever the
    thresholds (h_k = ∞), and otherwise where its margin in step 2 is above t_k.

    Parameters
    ----------
    bounded : tuple of int
        Positions of the classes whose errors are bounded.
    offsets : ndarray of shape (n_classes,)
    thresholds : ndarray of shape (n_classes,)
        Of the bounded classes; the others are not used.
    fallback : int
        The class of a row without scores.
    """

    bounded: tuple[int, ...]
    offsets: FloatArray
    thresholds: FloatArray
    fallback: int

    @property
    def free(self) -> tuple[int, ...]:
        """Positions of the classes whose errors are not bounded."""
        every = range(len(self.offsets))
        return tuple(position for position in every if position not in self.bounded)

    def scores(self, class_scores: FloatArray, position: int) -> FloatArray:
        """h_k of rows, k being the class at a position.

        Parameters
        ----------
        class_scores : ndarray of shape (n_rows, n_classes)
        position : int
        """
        winner, _, margin = self.contest(class_scores)
        scores = np.where(winner == position, margin, np.inf)
        unscored = -np.inf if position == self.fallback else np.inf
        return np.where(np.isnan(class_scores[:, 0]), unscored, scores)

    def lead(self, class_scores: FloatArray, position: int) -> FloatArray:
        """By how much another bounded class leads one; rows above 0 are taken by it."""
        tilted = class_scores + self.offsets
        others = [other for other in self.bounded if other != position]
        lead = tilted[:, others].max(axis=1) - tilted[:, position]
        unscored = -np.inf if position == self.fallback else np.inf
        return np.where(np.isnan(lead), unscored, lead)

    def contest(
        self, class_scores: FloatArray
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """The bounded class that wins, the free one, and by how much this one leads.

        Where all classes are bounded none leads: the margin is 0.
        """
        tilted = class_scores + self.offsets
        winner = np.array(self.bounded)[np.argmax(tilted[:, self.bounded], axis=1)]
        if not self.free:
            return winner, winner, np.zeros(len(winner))
        rival = np.array(self.free)[np.argmax(tilted[:, self.free], axis=1)]
        places = np.arange(len(winner))
        return winner, rival, tilted[places, rival] - tilted[places, winner]

    def decide(self, class_scores: FloatArray) -> IntArray:
        """Positions of the classes that rows get."""
        winner, rival, margin = self.contest(class_scores)
        chosen = np.where(margin > self.thresholds[winner], rival, winner)
        return np.where(np.isnan(class_scores[:, 0]), self.fallback, chosen)


@storable()
@dataclass(frozen=True)
class OrderedDecision:
    """The most severe class whose threshold a row doesn't exceed.

    At step k a row that no earlier class took is passed on where
    log Σ_{j after k} exp(score_j) − score_k > t_k, and gets class k otherwise. A row of
    class k is under-classified where it is passed on at step k: not where an earlier
    class took it (h_k = −∞). Thresholds of earlier classes are chosen on other rows,
    those of their own classes, so h_k is fixed before rows of class k are seen.

    Parameters
    ----------
    order : tuple of int
        Positions of the classes, the most severe first.
    thresholds : ndarray of shape (n_classes,)
    """

    order: tuple[int, ...]
    thresholds: FloatArray

    @property
    def bounded(self) -> tuple[int, ...]:
        """Positions of the classes whose errors are bounded: all but the last."""
        return self.order[:-1]

    @property
    def fallback(self) -> int:
        """The class of a row without scores: then it isn't under-classified."""
        return self.order[0]

    def scores(self, class_scores: FloatArray, position: int) -> FloatArray:
        """h_k of rows, k being the class at a position."""
        place = self.order.index(position)
        passed = np.isfinite(class_scores[:, 0])
        for earlier in self.order[:place]:
            passed &= self._passed(class_scores, earlier)
        scores = np.full(len(class_scores), -np.inf)
        scores[passed] = self._step(class_scores[passed], position)
        return scores

    def decide(self, class_scores: FloatArray) -> IntArray:
        """Positions of the classes that rows get."""
        chosen = np.full(len(class_scores), self.order[-1])
        for position in reversed(self.order[:-1]):
            chosen[~self._passed(class_scores, position)] = position
        return np.where(np.isnan(class_scores[:, 0]), self.fallback, chosen)

    def _passed(self, class_scores: FloatArray, position: int) -> BoolArray:
        steps = self._step(class_scores, position)
        return np.asarray(steps > self.thresholds[position])

    def _step(self, class_scores: FloatArray, position: int) -> FloatArray:
        later = self.order[self.order.index(position) + 1 :]
        less: FloatArray = logsumexp(class_scores[:, later], axis=1)
        return less - class_scores[:, position]


Decision = UnorderedDecision | OrderedDecision


def with_threshold(decision: Decision, position: int, threshold: float) -> Decision:
    """The same with another threshold of one class."""
    thresholds = decision.thresholds.copy()
    thresholds[position] = threshold
    return replace(decision, thresholds=thresholds)


# Offsets that are tried for one class at a time, and how often all are gone through.
CANDIDATES = 48
SWEEPS = 4


def mistaken(rows: Sequence[ChoosingRows]) -> tuple[float, float]:
    """The mean share of rows whose class has not the largest score; its error."""
    shares, variance = [], 0.0
    for position, members in enumerate(rows):
        scores = np.nan_to_num(members.scores, nan=-np.inf)
        shares.append(members.share(scores.argmax(axis=1) != position))
        variance += shares[-1] * (1.0 - shares[-1]) / max(members.effective, 1.0)
    return float(np.mean(shares)), math.sqrt(variance) / len(rows)


@dataclass(frozen=True)
class Choice:
    """What there is to choose by.

    Parameters
    ----------
    rows : tuple of ChoosingRows
        By position of the class.
    levels : mapping from int to float
        α of each bounded class.
    certifying : mapping from int to int
        How many rows, worth as much as one without weights, are to certify it.
    delta : float
        Each class's part of δ.
    """

    rows: tuple[ChoosingRows, ...]
    levels: Mapping[int, float]
    certifying: Mapping[int, int]
    delta: float

    @property
    def is_possible(self) -> bool:
        """Whether there are rows of every class to choose by."""
        return all(len(rows.weights) for rows in self.rows)

    def allowed(self, position: int) -> float:
        """The share of wrong rows that should still be certified."""
        n_rows = max(self.certifying[position], 1)
        tail = int(binomial_tail(n_rows, self.levels[position], self.delta))
        return max(tail, 0) / n_rows

    def certain(self, decision: Decision) -> float:
        """The probability that bounded classes leave each other enough room.

        Certifying rows are confused more often than these by chance; the square root
        of a share has a variance that hardly depends on it. Borders are blurred, as few
        rows lie near them. Ordered classes always leave some.
        """
        probability = 1.0
        if isinstance(decision, OrderedDecision):
            return probability
        for position in decision.bounded if len(decision.bounded) > 1 else ():
            rows = self.rows[position]
            lead = decision.lead(rows.scores, position)
            size = max(rows.effective, 1.0)
            finite = lead[np.isfinite(lead)]
            width = float(np.std(finite)) * size**-0.2 if len(finite) else 0.0
            confused = rows.share(ndtr(lead / width) if width else lead > 0.0)
            # Never quite 0 or 1, or a few rows would be taken for certain.
            share = (confused * size + 0.5) / (size + 1.0)
            certifying = max(self.certifying[position], 1)
            variance = 0.25 * (1.0 - share) * (1.0 / size + 1.0 / certifying)
            room = math.sqrt(self.allowed(position)) - math.sqrt(share)
            probability *= float(ndtr(room / math.sqrt(variance)))
        return probability

    def with_thresholds(self, decision: Decision) -> Decision:
        """Thresholds that should be about those to come."""
        for position in decision.bounded:
            rows = self.rows[position]
            scores = decision.scores(rows.scores, position)
            threshold = rows.threshold(scores, self.allowed(position))
            decision = with_threshold(decision, position, threshold)
        return decision

    def cost(self, decision: UnorderedDecision) -> float:
        """The expected error of the free classes; 1 where nothing is certified."""
        certain, error = self.certain(decision), 0.0
        if decision.free:
            settled = self.with_thresholds(decision)
            rows = {k: self.rows[k] for k in decision.free}
            shares = [x.share(settled.decide(x.scores) != k) for k, x in rows.items()]
            error = float(np.mean(shares))
        return 1.0 - certain + certain * error


def choose_offsets(choice: Choice, decision: Decision) -> Decision:
    """Offsets with the least expected cost: room for all bounds, and little free error.

    One class at a time is given the best of many offsets, until none changes. Ordered
    classes have none.
    """
    if isinstance(decision, OrderedDecision) or not choice.is_possible:
        return decision
    best, cost = decision, choice.cost(decision)
    for _ in range(SWEEPS):
        before = cost
        for group in (decision.bounded, decision.free):
            for position in group[1:]:
                tried = moved_offsets(choice, best, group, position)
                costs = [choice.cost(candidate) for candidate in tried]
                # Another offset must gain something: an untouched one is right for
                # well-calibrated scores.
                if costs and min(costs) < cost - 0.01:
                    cost = min(costs)
                    best = tried[costs.index(cost)]
        if cost == before:
            break
    return best


def moved_offsets(
    choice: Choice, decision: UnorderedDecision, group: tuple[int, ...], position: int
) -> list[UnorderedDecision]:
    """The decision with other offsets of one class, which change who wins its group.

    Halfway between those at which a row changes hands, so that no row is on the border.
    """
    others = [other for other in group if other != position]
    borders = []
    for member in group:
        scores = choice.rows[member].scores
        tilted = scores + decision.offsets
        borders.append(tilted[:, others].max(axis=1) - scores[:, position])
    known = np.unique(np.concatenate(borders))
    if not len(known):
        return []
    between = (known[:-1] + known[1:]) / 2.0
    offsets = np.array([known[0] - 1.0, *between, known[-1] + 1.0])
    moved = np.arange(len(decision.offsets)) == position
    return [
        replace(decision, offsets=np.where(moved, offset, decision.offsets))
        for offset in few(offsets, CANDIDATES)
    ]


@dataclass(frozen=True)
class ClassBounds:
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
        """The decision before anything is chosen: no row gets a free class."""
        unknown = np.full(len(self.labels), np.inf)
        if self.order is not None:
            return OrderedDecision(tuple(map(self.labels.index, self.order)), unknown)
        bounded = tuple(map(self.labels.index, self.alpha))
        offsets = np.zeros(len(self.labels))
        return UnorderedDecision(bounded, offsets, unknown, fallback=bounded[0])

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
        named = [("alpha", label) for label in self.alpha]
        for parameter, label in [*named, *(("order", x) for x in self.order or ())]:
            if label not in self.labels:
                raise ValueError(
                    f"{parameter} names a class {label!r}, but the classes are "
                    f"{self.labels}.{nearest(label, self.labels)}"
                )
        for level in self.alpha.values():
            check_levels(level, self.delta)
        if self.order is None:
            return
        order = list(self.order)
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


# It lies below +∞ and above every score.
LARGEST = float(np.finfo(np.float64).max)
# With a smaller chance of a certificate at their parts of δ, classes share all of it.
SURE = 0.95


@storable()
@dataclass(eq=False, repr=False)
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
    estimator : estimator or None, default=None
        A classifier of several classes with `predict_proba` or `decision_function`; or
        one of two classes, such as a density ratio, which is then fitted to each class
        and the largest. None is the logistic fit of `NeymanPearsonClassifier`.
    alpha : mapping from class to float
        The bound on each class's error. Classes left out are not bounded. With `order`
        all classes but the last have one.
    delta : float, default=0.05
        Probability that one or more of the bounds may fail, over the draw of the
        calibration rows.
    order : sequence of classes or None, default=None
        The classes, the most severe first, where only errors in favour of a less severe
        class are bounded. None for unordered classes.
    missingness : mapping from class to Missingness, Missingness or None, default=None
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

    estimator: Any = None
    alpha: Any = None
    delta: float = 0.05
    order: Sequence[Any] | None = None
    missingness: Mapping[Any, Missingness] | Missingness | None = None
    rule: str | Rule = "auto"
    deployment: Literal["complete", "as-observed"] = "complete"
    calibration_size: float = 0.5
    choice_size: float = 0.1
    random_state: Any = None
    odds_factor: float = 1.0

    @property
    def _bounds(self) -> ClassBounds:
        return ClassBounds(self.alpha, self.delta, self.order, self.classes_.tolist())

    def _split(self, table: ClassTable, rng: Generator) -> ClassTable:
        bounded, sizes = self._bounds.undecided().bounded, {}
        # With one bounded class of two nothing has to be chosen.
        settled = len(table.labels) == 2 and len(bounded) == 1
        for position in range(len(table.labels)):
            taken = dict[str, float]()
            if position in bounded:
                taken["calibration_size"] = self.calibration_size
            if not settled:
                taken["choice_size"] = self.choice_size
            sizes[position] = taken
        table = table.split(sizes, rng)
        self.choice_index_ = table.chosen
        return table

    def _learn(self, table: ClassTable, estimator: Any, rng: Generator) -> None:
        self.scores_ = table.fit(with_callbacks_of(self, estimator), table.fitted)
        bounds, labels, undecided = self._bounds, table.labels, self._bounds.undecided()
        promises = [
            self._promise(
                table,
                self.alpha[labels[position]],
                bounds.most,
                table.held,
                position,
                wrong=bounds.wrong(labels[position]),
                on_infeasible="reject_all",
                fallback=bounds.fallback,
                remedies=("bound fewer classes",),
            )
            for position in undecided.bounded
        ]
        # 1. Scores of all rows that anything is chosen by.
        training, choosing = (
            [few(table.rows_of(k, part)) for k in range(len(labels))]
            for part in (table.fitted, table.chosen)
        )
        weighted = [promise.training for promise in promises if promise.model]
        index = np.unique(np.concatenate([table.held, *training, *choosing, *weighted]))
        values = np.full((len(table.codes), len(labels)), np.nan)
        rows, self.caps_ = take_rows(table.X, index), dict[Any, Trust]()
        values[index] = self._class_scores(rows)
        # 2. Caps on weights, where giving rows up is an error of no bounded class: one
        #    that weighs more gets the fallback. Where classes are ordered, that isn't
        #    under-classified; where only one is bounded, it is that one.
        trusted: list[Chosen] = []
        capped = self.order is not None or len(promises) == 1
        # As if no class had a threshold yet: what earlier ones take isn't known.
        alone = replace(undecided, thresholds=np.full(len(labels), -np.inf))
        for promise in promises:
            mine = alone.scores(values, labels.index(promise.label))
            wrong = [training[labels.index(label)] for label in promise.wrong]
            others = few(np.sort(np.concatenate(wrong)))
            chosen, _ = choose_trust(promise, table, mine, others, caps=capped)
            trusted.append(chosen)
            if chosen[0].cap is not None:
                self.caps_[promise.label] = chosen[0]
                values[index] = self._beyond_caps(rows, values[index])
        # 3. How scores become labels, by parts of δ; or, where there may be too little
        #    room for that, by all of it: then a path is fixed, along which thresholds
        #    move together, as far down as each class is certified.
        for delta in (bounds.part, bounds.most):
            promises = [replace(promise, delta=delta) for promise in promises]
            choice = self._choice(table, training, choosing, promises, values)
            decision = choose_offsets(choice, undecided)
            if choice.is_possible and choice.certain(decision) >= SURE:
                break
        together = delta > bounds.part
        if together and choice.is_possible:
            decision = choice.with_thresholds(decision)
        # 4. One threshold after the other, the most severe class's first.
        certified = []
        for promise, chosen in zip(promises, trusted, strict=True):
            position = labels.index(promise.label)

            def score(
                X: Any, fixed: Decision = decision, position: int = position
            ) -> FloatArray:
                return fixed.scores(self._class_scores(X), position)

            scores = decision.scores(values, position)
            trust, rule, known = chosen
            if known is not None:
                known = replace(known, scores=scores[promise.training])
            settled = trust, rule, known
            certified.append(certify(promise, table, scores, score, rng, settled))
            self._check_room(promise, *certified[-1])
            if isinstance(decision, OrderedDecision):
                limit = certified[-1][0].threshold
                decision = with_threshold(decision, position, limit)
        # 5. Where thresholds move together, they do along the path that was fixed.
        places, thresholds = list(decision.bounded), decision.thresholds.copy()
        limits = np.array([certificate.threshold for certificate, _ in certified])
        if together:
            start = np.where(np.isfinite(thresholds), thresholds, 0.0)[places]
            limits = np.maximum(limits, start + (limits - start).max())
        thresholds[places] = limits
        self.decision_ = replace(decision, thresholds=thresholds)
        self.calibrations_, certificates = dict[Any, Calibration](), []
        for (kept, calibration), limit in zip(certified, limits.tolist(), strict=True):
            self.calibrations_[kept.controlled_class] = calibration
            error = calibration.sample.estimated_error(limit)
            certificates.append(replace(kept, threshold=limit, estimated_error=error))
        order = None if self.order is None else tuple(self.order)
        self.certificate_ = MulticlassCertificate(
            self.delta, tuple(certificates), order, bounds.fallback
        )

    def _check_room(
        self, promise: Promise, certificate: Certificate, calibration: Calibration
    ) -> None:
        """Refuse where no threshold below ∞ leaves few enough rows above it."""
        if certificate.certified and certificate.threshold < np.inf:
            return
        sample, needed = calibration.sample, None
        if sample.lookups is None:
            alpha, delta = certificate.alpha, calibration.delta
            needed = calibration.rule.least_rows(alpha, delta, sample.bound or 1.0)
        lost = (sample.values == np.inf).any() and not self.order
        if not lost or (needed or 0) > sample.n_rows:
            raise infeasible(promise, calibration, certificate.rule)
        levels = (level / 100 for level in range(1, 100))
        raise NoCertificateError(
            Message(
                "alpha={alpha:g} for class {label!r} leaves no room: {share} of its "
                "{rows} calibration rows are taken for another bounded class, and "
                "{least:g} is about the least that can be certified.",
                label=promise.label,
                remedies=(
                    "raise one of the levels",
                    "bound fewer classes",
                    "bring more rows",
                    "take an estimator that tells these classes apart",
                ),
                facts={
                    "alpha": promise.alpha,
                    "share": percent(sample.estimated_error(LARGEST)),
                    "rows": sample.n_rows,
                    "least": next(
                        (a for a in levels if calibration.threshold(a) < np.inf), 1.0
                    ),
                },
            )
        )

    def predict(self, X: Any) -> Any:
        """The classes of rows.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
            A label for each row.
        """
        check_is_fitted(self, "certificate_")
        places = self.decision_.decide(self.class_scores(X))
        return in_library_of(X, self.classes_[places])

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
        return self._class_scores(self._read(X))

    @available_if(lambda self: hasattr(self.scores_.estimators[0], "predict_proba"))
    def predict_proba(self, X: Any) -> FloatArray:
        """The estimator's class probabilities, in which thresholds have no part.

        A row may be given a class that is not the likeliest one. Classes count as
        frequent as among the rows that the estimator was fitted to; those of ratios
        count as equally frequent.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            In the order of `classes_`; under deployment "complete" NaN for a row with a
            missing value.
        """
        return self.scores_.probabilities(self._read(X), self.deployment)

    def _labels(self, y: Any) -> list[Any]:
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        labels: list[Any] = self.classes_.tolist()
        self._bounds.check()
        return labels

    def _choice(
        self,
        table: ClassTable,
        training: list[IntArray],
        choosing: list[IntArray],
        promises: list[Promise],
        values: FloatArray,
    ) -> Choice:
        """The rows to choose by, and what those to calibrate on are worth."""
        worth = {}
        seen, rows = (
            [table.choosing(k, index, values[index]) for k, index in enumerate(part)]
            for part in (training, choosing)
        )
        for promise in promises:
            position = table.labels.index(promise.label)
            share = rows[position].effective / max(len(choosing[position]), 1)
            worth[position] = round(share * len(promise.held))
        # Rows that the estimator was fitted to tell as much, unless it knows them by
        # heart: then it errs less on them, by more than chance.
        error, margin = mistaken(rows)
        if mistaken(seen)[0] >= error - 2.0 * margin:
            rows = [few.joined(more) for few, more in zip(rows, seen, strict=True)]
        return Choice(tuple(rows), self._bounds.levels, worth, promises[0].delta)

    def _class_scores(self, X: Any) -> FloatArray:
        scores = self.scores_.of(X, self.deployment, self._scorable(X))
        return self._beyond_caps(X, scores)

    def _beyond_caps(self, X: Any, scores: FloatArray) -> FloatArray:
        """No scores for rows that may weigh more than a cap."""
        for trust in self.caps_.values():
            scores[trust.edges(X)[1] > (trust.cap or np.inf)] = np.nan
        return scores
