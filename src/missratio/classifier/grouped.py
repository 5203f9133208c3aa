"""Several promises at once: one for each group, for all rows, and for precision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from missratio._base.callbacks import handed_down
from missratio._base.hints import another_type, check_number, did_you_mean, listed
from missratio._base.seeds import generator
from missratio._base.storable import storable
from missratio._base.typing import FloatArray, IntArray
from missratio.classifier.base import (
    DEPLOYMENTS,
    INFEASIBLE,
    CertifiedClassifier,
    check_factor,
    not_a_class,
)
from missratio.classifier.certificate import (
    Certificate,
    GroupedCertificate,
    KeptPromise,
)
from missratio.classifier.classes import (
    BoundedClass,
    ChoosingRows,
    ClassTable,
    Score,
    Training,
)
from missratio.classifier.planner import infeasible
from missratio.classifier.promise import Calibration, Promise, ScoredRows, Trust
from missratio.classifier.reading import (
    read_groups,
    read_labelled,
    read_rows,
    shares_by_group,
    warn_of_unknown_groups,
)
from missratio.classifier.scores import scorable
from missratio.exceptions import NoCertificateError, Remedy
from missratio.missingness import Missingness, RowInclusion
from missratio.ratio import check_choice, two_classes
from missratio.threshold import (
    CalibrationSample,
    Rule,
    binomial_bound,
    binomial_tail,
    check_levels,
    make_rule,
)

THRESHOLDS = ("own", "shared")


@dataclass(frozen=True)
class GroupsAsked:
    """Bounds on the error of groups, or of all rows, and on the precision.

    Parameters
    ----------
    alpha, delta : float
    group_alpha : mapping from group to float, or None
    threshold : {"own", "shared"}
    precision, prevalence : float or None
    """

    alpha: float
    delta: float
    group_alpha: Mapping[Any, float] | None
    threshold: str
    precision: float | None
    prevalence: float | None

    def check(self) -> None:
        """Refuse what isn't among the choices, and what doesn't go together."""
        check_levels(self.alpha, self.delta)
        if self.group_alpha is not None and not isinstance(self.group_alpha, Mapping):
            raise TypeError(
                "group_alpha must map groups to the bounds on their errors, such as "
                f"{{'north': 0.05}}: got {self.group_alpha!r}."
            )
        for level in (self.group_alpha or {}).values():
            check_levels(level, self.delta)
        check_choice("threshold", self.threshold, THRESHOLDS)
        if self.precision is None:
            if self.prevalence is not None:
                raise ValueError(
                    f"prevalence={self.prevalence} is for a precision, and none is "
                    "asked for: set precision, or leave out prevalence."
                )
            return
        for name, value in (
            ("precision", self.precision),
            ("prevalence", self.prevalence),
        ):
            if value is not None:
                check_number(name, value)
            if value is None or not 0.0 < value < 1.0:
                raise ValueError(
                    f"{name} must lie strictly between 0 and 1, got {value}: a "
                    "precision is for a known share of the other class."
                )
        if self.threshold != "shared":
            raise ValueError(
                "A precision is promised for all rows: set threshold='shared'."
            )

    def levels(self, groups: list[Any]) -> dict[Any, float]:
        """The level of each promise about the error; None stands for all rows."""
        given = dict(self.group_alpha or {})
        for group in given:
            if group not in groups:
                hint = another_type(group, groups)
                hint = hint or did_you_mean(str(group), [str(x) for x in groups])
                raise ValueError(
                    f"group_alpha names a group {group!r} that no row is in.{hint} "
                    f"There are {listed(groups)}."
                )
        if self.threshold == "shared":
            return {None: self.alpha, **given}
        return {group: given.get(group, self.alpha) for group in groups}


CONTROLLED, OTHER = 0, 1
MORE_ROWS = "bring more rows of that class"


@dataclass(frozen=True)
class GroupPromises:
    """Rows of the controlled class, and what is promised of each group of them.

    P(a group's threshold breaks its promise) ≤ the promise's δ, group by group: the
    caller splits δ.

    Parameters
    ----------
    table : ClassTable
        Its first class is the controlled one.
    calibrating : ndarray of int
        Rows that calibrate.
    members : ndarray of object of shape (n_rows,)
        The group of each row.
    promise : Promise
        At each group's part of δ; levels come with the calls.
    """

    table: ClassTable
    calibrating: IntArray
    members: Any
    promise: Promise

    def refuse_too_few_rows(self, levels: Mapping[Any, float]) -> None:
        """Refuse levels that a group's rows can't certify, whatever their scores."""
        if self.promise.on_infeasible != "raise":
            return
        for group, level in levels.items():
            try:
                self._bounded(group, level).refuse_too_few_rows()
            except NoCertificateError as error:
                remedies = (Remedy.RAISE_LEVELS, MORE_ROWS, Remedy.REJECT_ALL)
                found = replace(error.message, remedies=remedies)
                raise _about(group, NoCertificateError(found)) from None

    def with_cap(
        self, score: Score, fitted: IntArray, level: float
    ) -> tuple[GroupPromises, Trust | None]:
        """The same, with a cap on weights for all groups where that promises power.

        Rows above it get the controlled class.

        Parameters
        ----------
        score : callable
            Gives the score of rows.
        fitted : ndarray of int
            Rows that the scores were fitted to.
        level : float
            The least of the levels that are promised.
        """
        other = ChoosingRows.few(self.table.rows_of(OTHER, fitted))
        trust = self._bounded(None, level).chosen_cap(score, self.table.take(other))
        if trust is None:
            return self, None
        return replace(self, promise=replace(self.promise, cap=trust.cap)), trust

    def certify(
        self, group: Any, level: float, score: Score, rng: np.random.Generator
    ) -> tuple[Certificate, Calibration]:
        """A threshold for the error of one group, or of all rows where it is None.

        Raises
        ------
        NoCertificateError
            Where none can be certified, unless the promise rejects all rows then.
        """
        bounded = self._bounded(group, level)
        found, calibration = bounded.certify(score, level, rng)
        if not found.certified and self.promise.on_infeasible == "raise":
            error = infeasible(calibration, bounded.label, level, found.rule)
            raise _about(group, error)
        return found, calibration

    def _bounded(self, group: Any, level: float) -> BoundedClass:
        """A group's calibration rows; those of all groups where it is None."""
        own = self.table.rows_of(CONTROLLED, self.calibrating)
        if group is not None:
            own = own[self.members[own] == group]
        promise = replace(self.promise, alpha=level, on_infeasible="reject_all")
        fallback = self.promise.controlled
        return BoundedClass.among(self.table, promise, fallback, self.calibrating, own)


def _about(group: Any, error: NoCertificateError) -> NoCertificateError:
    """The same about one group, which could also be merged with another."""
    if group is None:
        return error
    message = error.message
    *others, last = message.remedies
    return NoCertificateError(
        replace(
            message,
            claim="Group {group!r}: " + message.claim,
            remedies=(*others, "merge the group with another", last),
            facts={**message.facts, "group": group},
        )
    )


# Parts of α that the error may be certified at, so that the precision is kept.
SHARES = tuple(2.0 ** -(step / 2) for step in range(13))
TOLERANCE = 1e-4


@dataclass(frozen=True)
class PrecisionPromise:
    """P(other class | classified as it) ≥ p, with probability 1 − δ.

    With the error at most a, and the power at least b on rows of the other class that
    had no part in the choice of the threshold, the precision at prevalence π is at
    least πb / (πb + (1 − π)a).

    Parameters
    ----------
    precision, prevalence : float
        p and π.
    delta : float
        The promise's part of δ.
    """

    precision: float
    prevalence: float
    delta: float

    def at(self, error: float, power: float) -> float:
        """The precision at an error and a power."""
        found = self.prevalence * power
        return found / (found + (1.0 - self.prevalence) * error) if found else 0.0

    def choose_level(
        self,
        table: ClassTable,
        chosen: IntArray,
        held: IntArray,
        alpha: float,
        score: Score,
    ) -> float:
        """The largest level at which the precision should be kept.

        By rows that take no part in the certificate; where none should do, the one
        that comes closest.
        """
        rows = []
        for position in (CONTROLLED, OTHER):
            index = ChoosingRows.few(table.rows_of(position, chosen))
            scores, weights = score(table.take(index)), table.weights(position, index)
            rows.append((scores, ChoosingRows.of(scores, weights), weights > 0.0))
        n_rows = [len(table.rows_of(k, held)) for k in (CONTROLLED, OTHER)]
        expected = {}
        for share in SHARES:
            level = share * alpha
            allowed = binomial_tail(n_rows[CONTROLLED], level, self.delta)
            if allowed < 0:
                continue
            scores, own, seen = rows[CONTROLLED]
            limit = own.threshold(scores[seen], allowed / n_rows[CONTROLLED])
            scores, own, seen = rows[OTHER]
            missed = own.share(scores[seen] <= limit)
            worst = binomial_bound(
                n_rows[OTHER], int(np.ceil(missed * n_rows[OTHER])), self.delta
            )
            expected[level] = self.at(level, 1.0 - worst)
        good = [level for level, found in expected.items() if found >= self.precision]
        if good:
            return float(max(good))
        return max(expected, key=lambda level: expected[level], default=alpha)

    def keep(
        self,
        table: ClassTable,
        held: IntArray,
        threshold: float,
        error: float,
        score: Score,
        rule: str | Rule,
    ) -> KeptPromise:
        """What precision is certified at a threshold.

        Parameters
        ----------
        table : ClassTable
        held : ndarray of int
            Rows that calibrate, of either class.
        threshold : float
            Chosen by rows of the controlled class.
        error : float
            What the error is certified to be at most.
        score : callable
        rule : str or Rule

        Raises
        ------
        NoCertificateError
            Where it is less than was promised.
        """
        index = table.rows_of(OTHER, held)
        rows, model = table.take(index), table.model(OTHER, index)
        draws = np.random.default_rng(0).uniform(size=len(index))
        # A row is missed where its negative score is above all those below −threshold.
        missed = -score(rows)
        limit = np.nextafter(-threshold, -np.inf)
        sample = ScoredRows(rows, missed, draws).sample(Trust(model))
        name = rule
        if rule == "auto":
            weighted = "flipped-betting" if sample.bound is None else "counting"
            name = "binomial" if model is None else weighted
        worst = error_bound_at(sample, make_rule(name), limit, self.delta)
        found = self.at(error, 1.0 - worst)
        estimated = self.at(error, 1.0 - sample.estimated_error(limit))
        if found < self.precision:
            raise NoCertificateError(
                f"A precision of {self.precision:g} can't be certified at a prevalence "
                f"of {self.prevalence:g}: {found:.3g} can, with an error of at most "
                f"{error:.3g} and a power of at least {1.0 - worst:.3g} on "
                f"{len(index)} rows. Lower it, bring more rows, or take an estimator "
                "that tells the classes apart."
            )
        return KeptPromise(
            "precision",
            None,
            self.precision,
            found,
            estimated,
            len(index),
            self.delta,
            threshold,
        )


def error_bound_at(
    sample: CalibrationSample, rule: Rule, threshold: float, delta: float
) -> float:
    """An upper bound on P(score > threshold) that holds with probability 1 − δ.

    By inverting a rule: the least level at which it certifies this threshold. A rule
    that is wrong with probability δ at the true error is wrong here with no more.

    Parameters
    ----------
    sample : CalibrationSample
        Rows that had no part in the choice of the threshold.
    rule : Rule
        Fixed before their scores were seen, and monotone in the level.
    threshold : float
    delta : float
    """

    def certifies(level: float) -> bool:
        chosen = rule.select(sample, level, delta).threshold
        return chosen is not None and chosen <= threshold

    low, high = 0.0, 1.0 - TOLERANCE
    if not sample.n_observed or not certifies(high):
        return 1.0
    while high - low > TOLERANCE:
        middle = (low + high) / 2.0
        low, high = (low, middle) if certifies(middle) else (middle, high)
    return high


NOT_TOGETHER = (
    "inclusion and precision don't go together: a precision needs rows of the other "
    "class that are whole, or whose missingness has a model. Leave out one of them."
)


@storable()
class GroupedNeymanPearsonClassifier(CertifiedClassifier):
    """A classifier that keeps several promises about one class's error together.

    P(some promise is broken) ≤ δ. With a threshold of its own, each group's error on
    the controlled class is at most its α, whatever the groups' sizes (Mondrian). With a
    shared threshold, the error over all rows is at most `alpha`, that of each group in
    `group_alpha` at most its level, and the precision, if asked for, at least
    `precision`. Each promise has an equal part of δ.

    Parameters
    ----------
    estimator : estimator
        As for `NeymanPearsonClassifier`.
    alpha : float, default=0.05
        Bound on the error: of each group, or over all rows if the threshold is shared.
    delta : float, default=0.05
        Probability that one or more of the promises may fail.
    group_alpha : mapping from group to float or None, default=None
        Bounds on the errors of some groups.
    threshold : {"own", "shared"}, default="own"
        Whether each group has a threshold of its own. A shared one is the strictest
        that any promise needs.
    precision : float or None, default=None
        The share of rows classified as the other class that are of that class, at
        least. Needs a shared threshold and `prevalence`.
    prevalence : float or None, default=None
        The share of the other class among rows to be classified.
    missingness, rule, deployment : as for `NeymanPearsonClassifier`
    calibration_size : float, default=0.5
        Share of the controlled class's rows to calibrate with; with `precision` a
        third of each class's rows, and another third decides how strict to be.
    controlled_class : object, default=0
    on_infeasible : {"raise", "reject_all"}, default="raise"
        What to do where a group's rows are too few to certify a threshold of its own:
        raise, or give all its rows to the controlled class. The certificate says so.
    random_state : int, Generator or None, default=None
    odds_factor : float, default=1.0
        As for `NeymanPearsonClassifier`.

    Attributes
    ----------
    certificate_ : GroupedCertificate
        `to_frame()` is the table of what each group gets.
    thresholds_ : dict
        By group; None is the threshold of all rows where it is shared.
    cap_ : Trust or None
        The cap on weights above which rows get the controlled class, where there is
        one.
    groups_ : list
        The groups that have a threshold, or a promise of their own.
    calibrations_ : tuple of Calibration
        What each of `certificate_.certificates` was chosen from.
    classes_ : ndarray of shape (2,)
    n_features_in_ : int
    feature_names_in_ : ndarray

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> y, groups = np.repeat([0, 1], 2000), rng.choice(["old", "young"], 4000)
    >>> X = rng.normal(size=(4000, 1)) + 2.0 * y[:, None] + (groups == "old")[:, None]
    >>> clf = mr.GroupedNeymanPearsonClassifier(
    ...     LogisticRegression(), alpha=0.1, random_state=0
    ... ).fit(X, y, groups)
    >>> clf.certificate_.to_frame()[["group", "asked", "certified"]]
       group  asked  certified
    0    old    0.1       True
    1  young    0.1       True
    >>> bool(clf.thresholds_["old"] > clf.thresholds_["young"])
    True
    """

    def __init__(
        self,
        estimator: Any,
        alpha: float = 0.05,
        delta: float = 0.05,
        group_alpha: Mapping[Any, float] | None = None,
        threshold: Literal["own", "shared"] = "own",
        precision: float | None = None,
        prevalence: float | None = None,
        missingness: Mapping[Any, Missingness] | None = None,
        rule: str | Rule = "auto",
        deployment: Literal["complete", "as-observed"] = "complete",
        calibration_size: float = 0.5,
        controlled_class: Any = 0,
        on_infeasible: Literal["raise", "reject_all"] = "raise",
        random_state: Any = None,
        odds_factor: float = 1.0,
    ) -> None:
        self.estimator = estimator
        self.alpha = alpha
        self.delta = delta
        self.group_alpha = group_alpha
        self.threshold = threshold
        self.precision = precision
        self.prevalence = prevalence
        self.missingness = missingness
        self.rule = rule
        self.deployment = deployment
        self.calibration_size = calibration_size
        self.controlled_class = controlled_class
        self.on_infeasible = on_infeasible
        self.random_state = random_state
        self.odds_factor = odds_factor

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        groups: ArrayLike,
        inclusion: ArrayLike | None = None,
    ) -> Self:
        """Fit the estimator, and choose thresholds on rows that it hasn't seen.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
            NaN where a value is missing.
        y, groups : array-like of shape (n_rows,)
            Two labels, the controlled class among them; and the group of each row.
        inclusion : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            Where values were looked up, the probability with which each row or entry is
            there: `X, inclusion = revealed.fill(X)`.

        Returns
        -------
        Self
            The fitted classifier.
        """
        asked = self._check_parameters()
        if inclusion is not None and self.precision is not None:
            raise ValueError(NOT_TOGETHER)
        X, y = read_labelled(self, X, y)
        self.classes_ = two_classes(y)
        members = read_groups(groups, X)
        table = self._table(X, y, self._drawn(inclusion, X, y))
        rng = generator(self.random_state)
        # 1. Rows to fit on, to choose by (for precision) and to calibrate on.
        both = self.precision is not None
        sizes = (1 / 3, 1 / 3) if both else (0.1, self.calibration_size)
        bounded = (CONTROLLED, OTHER) if both else (CONTROLLED,)
        fitted, chosen, held = table.split(bounded, *sizes, rng)
        self.calibration_index_, self.choice_index_ = held, chosen
        # 2. What can be known to be impossible is said now.
        levels = asked.levels(sorted(set(members.tolist()), key=str))
        part = self.delta / (len(levels) + both)
        promise = self._promise(table, part)
        promises = GroupPromises(table, held, members, promise)
        promises.refuse_too_few_rows(levels)
        # 3. Scores.
        given = None if inclusion is None else np.asarray(inclusion, dtype=np.float64)
        self.cap_: Trust | None = None
        estimator = handed_down(self, self.estimator)
        self.scores_ = Training(table, fitted, given, {}).fit(estimator)
        # 4. A threshold for each promise, on the rows of the controlled class.
        level = min(levels.values())
        promises, self.cap_ = promises.with_cap(self._score, fitted, level)
        self._certify(promises, levels, chosen, rng)
        return self

    def predict(self, X: Any, groups: ArrayLike | None = None) -> Any:
        """The other class for rows that score above their threshold.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
        groups : array-like of shape (n_rows,), optional
            Needed where each group has a threshold of its own. Rows of a group that
            has none get the controlled class.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        scores = self.score_samples(X)
        limits = np.full(len(scores), self.thresholds_.get(None, np.inf))
        if self.threshold == "own":
            if groups is None:
                raise ValueError(
                    "Each group has a threshold of its own: give groups, one for each "
                    "row."
                )
            members = read_groups(groups, scores)
            warn_of_unknown_groups(members.tolist(), list(self.thresholds_))
            known = (self.thresholds_.get(group, np.inf) for group in members.tolist())
            limits = np.array(list(known))
        controlled = int(np.flatnonzero(self.classes_ == self.controlled_class)[0])
        return self.classes_[np.where(scores > limits, 1 - controlled, controlled)]

    def score_samples(self, X: Any) -> FloatArray:
        """How much more each row is like the other class than like the controlled one.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
            −∞ for a row that can't be scored, or that goes missing too often.
        """
        check_is_fitted(self, "certificate_")
        return self._score(read_rows(self, X, reset=False))

    @property
    def thresholds_(self) -> dict[Any, float]:
        """By group; None is the threshold of all rows where it is shared."""
        return self.certificate_.thresholds

    def group_table(self, X: Any, y: ArrayLike, groups: ArrayLike) -> Any:
        """Errors and power of each group, measured on labelled rows: no guarantees.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
        y, groups : array-like of shape (n_rows,)

        Returns
        -------
        dataframe
            For each group its rows of either class, the error on the controlled class
            and the power, the share of the other class that is recognised.
        """
        predicted = np.asarray(self.predict(X, groups)) != self.controlled_class
        is_other = np.asarray(y) != self.controlled_class
        members = read_groups(groups, X)
        return shares_by_group(members, predicted, is_other)

    def _check_parameters(self) -> GroupsAsked:
        self._check_estimator()
        check_choice("on_infeasible", self.on_infeasible, INFEASIBLE)
        check_choice("deployment", self.deployment, DEPLOYMENTS)
        check_factor("odds_factor", self.odds_factor)
        asked = GroupsAsked(
            self.alpha,
            self.delta,
            self.group_alpha,
            self.threshold,
            self.precision,
            self.prevalence,
        )
        asked.check()
        return asked

    def _table(self, X: Any, y: Any, drawn: RowInclusion | None) -> ClassTable:
        labels = self.classes_.tolist()
        if self.controlled_class not in labels:
            raise not_a_class(self.controlled_class, labels)
        labels.sort(key=lambda label: label != self.controlled_class)
        models = self._resolve_missingness()
        codes = (np.asarray(y) != self.controlled_class).astype(np.intp)
        return ClassTable(X, codes, labels, models, drawn, self.deployment)

    def _promise(self, table: ClassTable, part: float) -> Promise:
        """What is promised of the error over all rows, at a part of δ."""
        return Promise(
            alpha=self.alpha,
            delta=part,
            missingness_delta=None,
            odds_factor=self.odds_factor,
            rule=self.rule,
            deployment=self.deployment,
            on_infeasible=self.on_infeasible,
            controlled=table.labels[CONTROLLED],
            other=table.labels[OTHER],
            caps=False,
        )

    def _certify(
        self,
        promises: GroupPromises,
        levels: Mapping[Any, float],
        chosen: IntArray,
        rng: np.random.Generator,
    ) -> None:
        """A threshold for each promise about the error, and the precision there."""
        table, held = promises.table, promises.calibrating
        part = promises.promise.delta
        certified_at, precise, alpha = dict(levels), None, self.alpha
        if self.precision is not None and self.prevalence is not None:
            precise = PrecisionPromise(self.precision, self.prevalence, part)
            alpha = precise.choose_level(table, chosen, held, self.alpha, self._score)
            certified_at[None] = alpha
        found = {
            group: promises.certify(group, level, self._score, rng)
            for group, level in certified_at.items()
        }
        self.calibrations_: tuple[Calibration, ...] = tuple(
            calibration for _, calibration in found.values()
        )
        self._keep({group: each[0] for group, each in found.items()}, levels, part)
        if precise is not None:
            self._keep_precision(precise, table, held, alpha)

    def _keep(
        self,
        certificates: Mapping[Any, Certificate],
        levels: Mapping[Any, float],
        part: float,
    ) -> None:
        """Thresholds, and the promises as a table."""
        thresholds = {
            group: found.threshold if found.certified else np.inf
            for group, found in certificates.items()
        }
        self.groups_ = [group for group in levels if group is not None]
        if self.threshold == "shared":
            thresholds = {None: max(thresholds.values())}
        promises = tuple(
            KeptPromise.of(
                group,
                levels[group],
                found,
                part,
                thresholds.get(group, thresholds.get(None, np.inf)),
            )
            for group, found in certificates.items()
        )
        self.certificate_ = GroupedCertificate(
            self.delta,
            self.threshold == "shared",
            promises,
            tuple(certificates.values()),
            self.prevalence if self.precision is not None else None,
        )

    def _keep_precision(
        self, precise: PrecisionPromise, table: ClassTable, held: IntArray, alpha: float
    ) -> None:
        threshold = self.thresholds_[None]
        kept = precise.keep(table, held, threshold, alpha, self._score, self.rule)
        promises = (*self.certificate_.promises, kept)
        self.certificate_ = replace(self.certificate_, promises=promises)

    def _score(self, X: Any) -> FloatArray:
        """How much more a row is like the other class; −∞ where it has no score."""
        scores = self.scores_.of(X, scorable(X, self.deployment))
        margin = scores[:, OTHER] - scores[:, CONTROLLED]
        margin = np.where(np.isnan(margin), -np.inf, margin)
        return margin if self.cap_ is None else self.cap_.score(ScoredRows(X, margin))
