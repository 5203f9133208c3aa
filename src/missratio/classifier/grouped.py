"""Neyman-Pearson classification with a promise to each group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from missratio._base.hints import another_type, did_you_mean, listed
from missratio._base.storable import storable
from missratio._base.typing import FloatArray, IntArray
from missratio.classifier.base import PromisedRows, few
from missratio.classifier.certificate import GroupedCertificate
from missratio.classifier.certify import choose_cap
from missratio.classifier.neyman_pearson import TwoClassClassifier
from missratio.classifier.planner import infeasible
from missratio.classifier.promise import Promise, Trust, Weighted
from missratio.classifier.reading import (
    read_groups,
    read_rows,
    shares_by_group,
    warn_of_unknown_groups,
)
from missratio.classifier.scores import ClassScores, scorable, score_rows
from missratio.classifier.training import ClassTable
from missratio.exceptions import NoCertificateError, Remedy
from missratio.missingness import Missingness
from missratio.ratio import check_choice
from missratio.threshold import Rule, check_levels

THRESHOLDS = ("own", "shared")
MORE_ROWS = "bring more rows of that class"


@storable()
class GroupedNeymanPearsonClassifier(TwoClassClassifier):
    """A classifier that keeps several promises about one class's error together.

    P(some promise is broken) ≤ δ. With a threshold of its own, each group's error on
    the controlled class is at most its α, whatever the groups' sizes (Mondrian). With a
    shared threshold, the error over all rows is at most `alpha`, and that of each group
    in `group_alpha` at most its level. Each promise has an equal part of δ.

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
    missingness, rule, deployment : as for `NeymanPearsonClassifier`
    calibration_size : float or int, default=0.5
        Share or number of the controlled class's rows to calibrate with.
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
        self._check_parameters()
        table = self._table(X, y, inclusion, {})
        return self._fit(table, members=read_groups(groups, table.X))

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

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_levels(self.alpha, self.delta)
        levels = self.group_alpha
        if levels is not None and not isinstance(levels, Mapping):
            raise TypeError(
                "group_alpha must map groups to the bounds on their errors, such as "
                f"{{'north': 0.05}}: got {levels!r}."
            )
        for level in (levels or {}).values():
            check_levels(level, self.delta)
        check_choice("threshold", self.threshold, THRESHOLDS)

    def _promises(self, table: ClassTable, **options: Any) -> list[tuple[Promise, Any]]:
        members = options["members"]
        groups = sorted(set(members.tolist()), key=str)
        given = dict(self.group_alpha or {})
        for group in given:
            if group not in groups:
                hint = another_type(group, groups)
                hint = hint or did_you_mean(str(group), [str(x) for x in groups])
                raise ValueError(
                    f"group_alpha names a group {group!r} that no row is in.{hint} "
                    f"There are {listed(groups)}."
                )
        levels = {group: given.get(group, self.alpha) for group in groups}
        if self.threshold == "shared":
            levels = {None: self.alpha, **given}
        part = self.delta / len(levels)
        return [
            (
                self._promise(level, part, group=group),
                None if group is None else members == group,
            )
            for group, level in levels.items()
        ]

    def _refuse_too_few_rows(
        self, table: ClassTable, evidence: list[PromisedRows]
    ) -> None:
        for each in evidence if self.on_infeasible == "raise" else ():
            try:
                each.refuse_too_few_rows(table.X.shape[1])
            except NoCertificateError as error:
                remedies = (Remedy.RAISE_LEVELS, MORE_ROWS, Remedy.REJECT_ALL)
                told = NoCertificateError(replace(error.message, remedies=remedies))
                raise _about(each.promise.group, told) from None

    def _certify(
        self,
        table: ClassTable,
        scores: ClassScores,
        evidence: list[PromisedRows],
        fitted: IntArray,
        chosen: IntArray,
        rng: np.random.Generator,
        **options: Any,
    ) -> None:
        self.scores_ = scores
        self.cap_: Trust | None = None
        # 1. Scores of all rows that a cap and thresholds are chosen by.
        held = self.calibration_index_
        weighted = table.model(0, held) is not None
        other = few(table.rows_of(1, fitted))
        known = [evidence[0].training, other] if weighted else []
        index = np.concatenate([held, *known])
        values = np.full(len(table.codes), np.nan)
        values[index] = self._score(table.take(index))
        # 2. A cap on weights for all groups, where that promises power.
        if weighted:
            every = replace(evidence[0], held=held)
            level = min(each.promise.alpha for each in evidence)
            self.cap_ = choose_cap(
                replace(every.promise, alpha=level, group=None),
                table.model(0, held),
                every.known(table, values),
                Weighted(table.take(other), values[other]),
                len(held),
            )
        if self.cap_ is not None:
            values[index] = self.cap_.score(table.take(index), values[index])
            evidence = [each.promising(cap=self.cap_.cap) for each in evidence]
        # 3. A threshold for each promise.
        certified = []
        for each in evidence:
            promise = each.promise
            try:
                found, calibration = each.certify(table, values, self._score, rng)
            except NoCertificateError as error:
                raise _about(promise.group, error) from None
            if found.certified and found.threshold == np.inf:
                # No threshold below ∞ leaves few enough rows above it.
                found = replace(found, certified=False)
                if self.on_infeasible == "raise":
                    level, rule = promise.alpha, found.rule
                    failure = infeasible(calibration, promise.label, level, rule)
                    raise _about(promise.group, failure)
            certified.append((found, calibration))
        self.calibrations_ = tuple(calibration for _, calibration in certified)
        self.certificate_ = GroupedCertificate(
            self.delta,
            tuple(found for found, _ in certified),
            tuple(each.promise.group for each in evidence),
            self.threshold == "shared",
        )
        self.groups_ = [g for g in self.certificate_.groups if g is not None]

    def _score(self, X: Any) -> FloatArray:
        """How much more a row is like the other class; −∞ where it has no score."""
        estimator = self.scores_.estimators[0]
        scores = score_rows(estimator, X, scorable(X, self.deployment), 1.0)
        return scores if self.cap_ is None else self.cap_.score(X, scores)


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
