"""Neyman-Pearson classification: one error bounded, with a certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.exceptions import NotFittedError
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import check_is_fitted

from missratio._base.blocks import take_rows
from missratio._base.callbacks import handed_down
from missratio._base.hints import check_number
from missratio._base.seeds import generator
from missratio._base.storable import storable
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.classifier.base import (
    DEPLOYMENTS,
    INFEASIBLE,
    CertifiedClassifier,
    check_factor,
    not_a_class,
)
from missratio.classifier.certificate import Certificate, by_unit, tested
from missratio.classifier.certify import (
    MOST_ROWS,
    PILOT,
    cap_may_pay,
    certify,
    warn_of_repeated_rows,
    warn_without_power,
)
from missratio.classifier.promise import Calibration, Promise, ScoredRows
from missratio.classifier.reading import (
    hold_out,
    one_of_each,
    read_labelled,
    read_rows,
    read_units,
    refuse_in_memory,
)
from missratio.classifier.scores import scorable, score_rows, with_low_stratum
from missratio.classifier.target import TargetRatio, learn_target, warn_of_weak_target
from missratio.classifier.training import (
    calibration_model,
    complete_weights,
    fit_estimator,
    fit_source_estimator,
    overfits,
    relabelled,
    split_rows,
    takes_groups,
    unexplained,
    unseen_scores,
    users_labels,
)
from missratio.missingness import (
    Missingness,
    MissingnessCheck,
    RowInclusion,
    missingness_check,
    refuse_contradiction,
)
from missratio.ratio import check_choice, two_classes
from missratio.rows import LabelledSource, as_source, by_partition, weighed_twice
from missratio.threshold import CalibrationSample, Rule, check_levels


class CalibratedClassifier(CertifiedClassifier):
    """What is chosen once an estimator is fitted: the threshold and its certificate."""

    alpha: float
    delta: float
    rule: str | Rule
    deployment: Literal["complete", "as-observed"]
    controlled_class: Any
    on_infeasible: Literal["raise", "reject_all"]
    random_state: Any
    missingness_delta: float | None
    odds_factor: float
    target_ratio: Any
    target_factor: float
    estimator_: Any
    classes_: Any
    target_: TargetRatio | None
    calibration_index_: IntArray
    training_index_: IntArray
    certificate_: Certificate
    calibration_: Calibration
    # Which of the rows that `calibrate` got calibrate, where some don't.
    _calibrating: IntArray
    # Of the estimator's scores: −1 where it takes the controlled class for its second.
    _sign: float

    def calibration_sample(self, X0: Any) -> CalibrationSample:
        """Scored rows of the controlled class, weighted as the certificate does.

        Parameters
        ----------
        X0 : array-like or dataframe of shape (n_rows, n_columns)
            Rows of the controlled class, NaN where a value is missing.

        Returns
        -------
        CalibrationSample
            For `np_roc`, for example.
        """
        check_is_fitted(self, "threshold_")
        X0 = read_rows(self, X0, reset=False)
        return self._scored(X0).sample(self.calibration_.trust)

    def _check_parameters(self) -> None:
        self._check_estimator()
        check_levels(self.alpha, self.delta)
        part = self.missingness_delta
        if part is not None:
            check_number("missingness_delta", part)
        if part is not None and not 0.0 < part < self.delta:
            raise ValueError(
                "missingness_delta is a part of delta, so it must lie strictly between "
                f"0 and {self.delta}: got {part}."
            )
        check_factor("odds_factor", self.odds_factor)
        check_factor("target_factor", self.target_factor)
        check_choice("deployment", self.deployment, DEPLOYMENTS)
        check_choice("on_infeasible", self.on_infeasible, INFEASIBLE)

    def _controlled(self) -> Any:
        if self.controlled_class is None:
            return self.classes_[:1].tolist()[0]
        if self.controlled_class not in self.classes_.tolist():
            raise not_a_class(self.controlled_class, self.classes_.tolist())
        return self.controlled_class

    def _other(self) -> Any:
        """The class that is not controlled."""
        return self.classes_[self.classes_ != self._controlled()].tolist()[0]

    def _scored(self, X: Any) -> ScoredRows:
        return ScoredRows(X, self._score(X))

    def _score(self, X: Any, estimator: Any = None) -> FloatArray:
        rows = scorable(X, self.deployment)
        fitted = self.estimator_ if estimator is None else estimator
        return score_rows(fitted, X, rows, self._sign)

    def _weighs(self, missingness: Mapping[Any, Missingness] | None) -> bool:
        """Whether calibration rows count by weights, so that rules are to be judged."""
        modelled = self._controlled() in (missingness or {})
        return self.target_ is not None or (modelled and self.deployment == "complete")

    def _read_inclusion(
        self,
        inclusion: ArrayLike | None,
        X: Any,
        y: Any,
        missingness: Mapping[Any, Missingness] | None,
    ) -> RowInclusion | None:
        """The draw by which rows are there; None where that isn't asked for."""
        drawn, controlled = self._drawn(inclusion, X, y), self._controlled()
        if drawn is not None and controlled in (missingness or {}):
            of_class = np.flatnonzero(np.asarray(y) == controlled)
            if drawn.take(of_class).looked_up:
                raise weighed_twice(controlled)
        return drawn

    def _learn_target(
        self,
        target: Any,
        X: Any,
        y: Any,
        missingness: Mapping[Any, Missingness] | None,
        drawn: RowInclusion | None,
    ) -> TargetRatio:
        """The target's density ratio, from rows that don't calibrate."""
        if self.deployment != "complete" or drawn is not None:
            raise ValueError(
                "A target is for deployment='complete', and for rows that were not "
                "looked up: it needs the density of complete rows. Leave out target, "
                "or give models of missingness."
            )
        rest = self.training_index_
        labels, source = np.asarray(y)[rest], take_rows(X, rest)
        classes = self.classes_.tolist()
        weights = complete_weights(source, labels, classes, missingness)
        for label in classes:
            # Rows that calibrate are missing here: the others stand for them.
            own = labels == label
            weights[own] *= np.count_nonzero(np.asarray(y) == label) / own.sum()
        if not hasattr(target, "predict_log_ratio"):
            target = read_rows(self, target, reset=False)
        return learn_target(
            target, self.target_ratio, source, weights, self.target_factor
        )

    def _recalibrate(
        self,
        X: Any,
        is_other: BoolArray,
        missingness: Mapping[Any, Missingness] | None,
        rng: np.random.Generator | None = None,
        drawn: RowInclusion | None = None,
        unseen: FloatArray | None = None,
    ) -> None:
        """Choose the threshold on the calibration rows of the table fitted on.

        Rules and caps are judged by unseen scores of the other rows, where given.
        """
        chosen, fitted = self.calibration_index_, self.training_index_
        others, detected = fitted[~is_other[fitted]], fitted[is_other[fitted]]
        rows, training = take_rows(X, chosen), take_rows(X, others)
        own = None
        if drawn is not None:
            own = with_low_stratum(
                drawn.besides(chosen, others),
                rows,
                drawn.take(others),
                training,
                self._score,
                self.alpha,
            )
        self._calibrate(
            rows,
            training,
            lambda: take_rows(X, detected),
            missingness,
            rng or generator(self.random_state),
            own,
            None if unseen is None else (unseen[others], unseen[detected]),
        )

    def _calibrate(
        self,
        X0: Any,
        training_rows: Any,
        other_rows: Callable[[], Any] | None,
        missingness: Mapping[Any, Missingness] | None,
        rng: np.random.Generator,
        drawn: RowInclusion | None = None,
        unseen: tuple[FloatArray, FloatArray] | None = None,
    ) -> None:
        """Choose the threshold on rows of the controlled class."""
        # 1. Why rows are missing, and whether they contradict it. Where the class has
        #    a model, that explains what is missing.
        model: Missingness | None = None
        checks: tuple[MissingnessCheck, ...] = ()
        explained = self._controlled() in (missingness or {})
        by_design = drawn is not None and drawn.by_design and not explained
        if self.deployment == "complete" and not by_design:
            model = calibration_model(X0, missingness, self._controlled())
        if model is not None:
            checks = missingness_check(
                X0, model, complete=True, odds_factor=self.odds_factor
            )
            tests = getattr(model, "checks", ())
            refuse_contradiction(checks, self._controlled(), tests, self.odds_factor)
        if self.target_ is not None:
            self.target_.check(X0, "calibration")
        # 2. The scores of all rows that the rule learns from.
        training = None
        weighted = model is not None or self.target_ is not None
        if weighted and training_rows is not None:
            training = self._scored(training_rows)
        other = None if other_rows is None else lambda: self._scored(other_rows())
        if unseen is not None and training is not None and other_rows is not None:
            training = replace(training, scores=unseen[0])
            other = partial(ScoredRows, other_rows(), unseen[1])
        scored = self._scored(X0)
        if model is not None:
            scored = scored.drawn(rng)
        if by_design:
            scored = replace(scored, inclusion=drawn)
        # 3. The threshold and its certificate.
        certificate, self.calibration_ = certify(
            self._promise(), scored, training, other, model, self._score
        )
        self.certificate_ = replace(certificate, checks=tested(model, checks))
        self.threshold_ = self.certificate_.threshold
        warn_of_repeated_rows(X0, training_rows)
        self._warn_of_weakness(scored.scores, other_rows)

    def _forget_rows(self) -> None:
        """Rows of an earlier fit are no longer those that this one is about."""
        for name in ("calibration_index_", "training_index_", "_calibrating"):
            self.__dict__.pop(name, None)

    def _promise(self) -> Promise:
        """What is to be guaranteed."""
        return Promise(
            alpha=self.alpha,
            delta=self.delta,
            missingness_delta=self.missingness_delta,
            odds_factor=self.odds_factor,
            rule=self.rule,
            deployment=self.deployment,
            on_infeasible=self.on_infeasible,
            controlled=self._controlled(),
            other=self._other(),
            target=self.target_,
        )

    def _warn_of_weakness(
        self, scores: FloatArray, other_rows: Callable[[], Any] | None
    ) -> None:
        """Warn where a target is hardly known, or hardly any row is detected."""
        if self.target_ is not None:
            sample = self.calibration_.sample
            warn_of_weak_target(self.target_, sample.effective_rows, sample.n_rows)
        if not self.certificate_.certified:
            return
        shown = None if other_rows is None else other_rows()
        if shown is not None:
            few = np.linspace(0, shown.shape[0] - 1, MOST_ROWS).astype(np.intp)
            rows = self._scored(take_rows(shown, np.unique(few)))
            shown = self.calibration_.trust.score(rows)
        warn_without_power(scores, self.threshold_, shown)


@storable()
class NeymanPearsonClassifier(CalibratedClassifier):
    """A classifier whose error on one class is at most α with probability 1 − δ.

    It splits the rows of the controlled class in two. On the first part, and on the
    rows of the other class, it fits an estimator: a density ratio or any scikit-learn
    classifier. On the second part, the calibration rows, it chooses a threshold. Rows
    that score above it are classified as the other class (Neyman-Pearson
    classification; the paper's Algorithms 1 and 2). The guarantee holds for any
    estimator, good or bad.

    Parameters
    ----------
    estimator : estimator
        With `decision_function` or `predict_proba`. It is fitted with labels 0, the
        controlled class, and 1, the other.
    alpha : float, default=0.05
        Bound on the error on the controlled class.
    delta : float, default=0.05
        Probability that the bound may fail, over the draw of the calibration rows.
    missingness : mapping from class to Missingness or None, default=None
        Why values are missing. The model of the controlled class weights calibration
        rows; all of them reach a parameter `missingness` of the estimator, or of one
        inside it, that is None. An estimator without such a parameter gets the weights
        of a whole-row model as `sample_weight`. None takes the estimator's own.
    rule : str or Rule, default="auto"
        "binomial" for complete rows; "paper", "bernstein", "hoeffding-bentkus",
        "thinning", "counting", "betting", "flipped-betting" or "tuned-betting" for rows
        missing not at random; "auto" chooses by φ, the number of rows, and training
        rows. Or your own `missratio.threshold.Rule`.
    deployment : {"complete", "as-observed"}, default="complete"
        Rows to be classified are complete, and one with a missing value gets the
        controlled class; or they lose values as the calibration rows did, and are
        scored as they are by an estimator that takes NaN. The latter needs no φ.
    calibration_size : float or int, default=0.5
        Share or number of the controlled class's rows to calibrate with; of its units,
        where `fit` gets groups.
    controlled_class : object, default=0
        The label whose error is bounded; None for the one sorted first.
    on_infeasible : {"raise", "reject_all"}, default="raise"
        What to do if no threshold can be certified: raise an error, or classify every
        row as the controlled class.
    random_state : int, Generator or None, default=None
        For the split, and for rules that draw.
    missingness_delta : float or None, default=None
        For a learned φ of the controlled class: the part of `delta` for the event that
        φ is outside its band; the rest is for the rule. None is half of it.
    odds_factor : float, default=1.0
        The guarantee holds even if the odds of being missing are wrong by up to this
        factor, either way.
    target_ratio : ratio or None, default=None
        The estimator of a target population's density ratio, if `fit` gets a target;
        None is `KLIEP`.
    target_factor : float, default=1.0
        The guarantee for a target holds even if that ratio is wrong by up to this
        factor, either way.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    threshold_ : float
        On the scale of the estimator's scores.
    certificate_ : Certificate
        What is guaranteed, and under which assumptions.
    calibration_ : Calibration
        What the threshold was chosen from: `calibration_.select(alphas)` chooses it at
        other levels.
    classes_ : ndarray of shape (2,)
    calibration_index_ : ndarray of int
        Rows that the threshold was chosen with. Only after `fit`.
    training_index_ : ndarray of int
        Rows that the estimator was fitted on. Only after `fit`.
    n_features_in_ : int
    feature_names_in_ : ndarray

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (600, 2)), rng.normal(1, 1, (600, 2))])
    >>> y = np.repeat([0, 1], 600)
    >>> clf = mr.NeymanPearsonClassifier(mr.KLIEP(), alpha=0.1, random_state=0)
    >>> clf = clf.fit(X, y)
    >>> clf.certificate_.rule, clf.certificate_.error_bound <= 0.1
    ('binomial', True)
    """

    def __init__(
        self,
        estimator: Any,
        alpha: float = 0.05,
        delta: float = 0.05,
        missingness: Mapping[Any, Missingness] | None = None,
        rule: str | Rule = "auto",
        deployment: Literal["complete", "as-observed"] = "complete",
        calibration_size: float = 0.5,
        controlled_class: Any = 0,
        on_infeasible: Literal["raise", "reject_all"] = "raise",
        random_state: Any = None,
        missingness_delta: float | None = None,
        odds_factor: float = 1.0,
        target_ratio: Any = None,
        target_factor: float = 1.0,
    ) -> None:
        self.estimator = estimator
        self.alpha = alpha
        self.delta = delta
        self.missingness = missingness
        self.rule = rule
        self.deployment = deployment
        self.calibration_size = calibration_size
        self.controlled_class = controlled_class
        self.on_infeasible = on_infeasible
        self.random_state = random_state
        self.missingness_delta = missingness_delta
        self.odds_factor = odds_factor
        self.target_ratio = target_ratio
        self.target_factor = target_factor

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        inclusion: ArrayLike | None = None,
        target: Any = None,
        groups: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Fit the estimator, and calibrate on rows it hasn't seen.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns), or source
            NaN where a value is missing. A source, as `scan_parquet` gives it, has its
            labels with it; the estimator must be a ratio that fits sources.
        y : array-like of shape (n_rows,)
            Two labels, the controlled class among them.
        inclusion : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            Where values were looked up, the probability with which each row or entry is
            there: `X, inclusion = revealed.fill(X)`. The certificate then assumes
            nothing about why values are missing. The estimator gets the weights.
        target : array-like or dataframe of shape (n_target_rows, n_columns), or ratio
            Complete rows, without labels, of another population that the guarantee
            should be for; or that population's density ratio to the rows of X, an
            object with `predict_log_ratio`. From rows a ratio is learned, with rows of
            X that take no part in calibration.
        groups : array-like of shape (n_rows,), optional
            The unit of each row, such as a patient of whom there are several rows. A
            unit is fitted on, or calibrates by one row that is drawn at random; its
            other rows are left out. The error is then that of a random row of a random
            unit. An estimator whose `fit` takes `groups` gets them, too.
        **params : dict
            Such as `sample_weight`, for the estimator's fit; calibration has none.

        Returns
        -------
        Self
            The fitted classifier.
        """
        self._check_parameters()
        if (source := as_source(X, y)) is not None:
            memory = {"inclusion": inclusion, "target": target, "groups": groups}
            refuse_in_memory({**memory, **params})
            return self._fit_source(source)
        rows, labels = read_labelled(self, X, y)
        return self._fit_rows(rows, labels, inclusion, target, groups, params)

    def _fit_rows(
        self,
        X: Any,
        y: Any,
        inclusion: ArrayLike | None,
        target: Any,
        groups: ArrayLike | None,
        params: dict[str, Any],
    ) -> Self:
        """Fit rows in memory."""
        self.classes_ = two_classes(y)
        missingness = self._resolve_missingness()
        is_other = y != self._controlled()
        rng = generator(self.random_state)
        drawn = self._read_inclusion(inclusion, X, y, missingness)
        if self.deployment == "complete" and drawn is None:
            own = take_rows(X, np.flatnonzero(~is_other))
            calibration_model(own, missingness, self._controlled())
        units = None if groups is None else read_units(groups, X)
        if units is not None and takes_groups(self.estimator):
            params = {**params, "groups": groups}
        fitted, held = split_rows(is_other, self.calibration_size, rng, units)
        self.calibration_index_, self.training_index_ = held, fitted
        if get_config()["enable_metadata_routing"]:
            params = process_routing(self, "fit", **params).estimator.fit
        labels, controlled = is_other.astype(int), self._controlled()
        models = relabelled(missingness, controlled)
        given = None if inclusion is None else np.asarray(inclusion, dtype=np.float64)

        def fit_on(estimator: Any, rows: IntArray) -> Any:
            return fit_estimator(
                estimator, X, labels, rows, models, controlled, params, given, drawn
            )

        with users_labels(self.classes_, controlled):
            self.estimator_ = fit_on(handed_down(self, self.estimator), fitted)
        # The estimator has seen the controlled class as 0, its first.
        self._sign = 1.0
        self.target_ = None
        if target is not None:
            self.target_ = self._learn_target(target, X, y, missingness, drawn)
        unseen = None
        if self._weighs(missingness) and overfits(self.estimator_, labels[fitted]):
            fit = partial(fit_on, self.estimator)
            unseen = unseen_scores(fit, self._score, X, labels, fitted, units)
        self._recalibrate(X, is_other, missingness, rng, drawn, unseen)
        if units is not None:
            self.certificate_ = by_unit(self.certificate_)
        return self

    def _fit_source(self, source: LabelledSource) -> Self:
        """The same for rows that are read block by block."""
        rng = generator(self.random_state)
        seed = int(rng.integers(2**31))
        rest, drawn = hold_out(
            source, self.controlled_class, self.calibration_size, seed
        )
        self.classes_ = two_classes(np.array(drawn.labels))
        missingness = self._resolve_missingness()
        explained = self._controlled() in (missingness or {})
        if self.deployment == "complete" and drawn.incomplete and not explained:
            raise unexplained(self._controlled())
        held, training, other = (
            read_rows(self, table, reset=position == 0)
            for position, table in enumerate(drawn.tables(source.names))
        )
        with users_labels(self.classes_, self._controlled()):
            self.estimator_ = fit_source_estimator(
                handed_down(self, self.estimator),
                rest,
                relabelled(missingness, self._controlled()),
                self._controlled(),
            )
        self._forget_rows()
        self._sign, self.target_ = 1.0, None
        self._calibrate(held, training, lambda: other, missingness, rng)
        return self

    def calibrate(
        self,
        X0: Any,
        X0_training: Any = None,
        inclusion: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose the threshold for an estimator that is already fitted.

        Parameters
        ----------
        X0 : array-like or dataframe of shape (n_rows, n_columns)
            Rows of the controlled class that the estimator hasn't seen.
        X0_training : array-like or dataframe, optional
            Other rows of that class, such as those it was fitted on, for rules that
            learn from them, and to choose a cap on weights by. Without them a random
            fifth of X0 does that, where φ comes so close to 1 that it may pay.
        inclusion : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            Where values of X0 were looked up, with which probability.
        groups : array-like of shape (n_rows,), optional
            The unit of each row of X0. One row of each unit, drawn at random,
            calibrates. The estimator must not have seen a row of these units.

        Returns
        -------
        Self
            The calibrated classifier.
        """
        self._check_parameters()
        try:
            check_is_fitted(self.estimator)
        except NotFittedError as error:
            raise NotFittedError(
                "calibrate takes an estimator that is fitted already. Fit it first, or "
                "call fit to do both."
            ) from error
        self.estimator_ = self.estimator
        self.classes_ = np.asarray(self.estimator.classes_)
        if len(self.classes_) != 2:
            raise ValueError(
                f"The estimator must have two classes, got {self.classes_.tolist()}."
            )
        X0 = read_rows(self, X0, reset=True)
        self._forget_rows()
        self._sign = 1.0 if self.classes_[0] == self._controlled() else -1.0
        self.target_ = None
        missingness = self._resolve_missingness()
        rng = generator(self.random_state)
        labels = np.full(X0.shape[0], self._controlled())
        drawn = self._read_inclusion(inclusion, X0, labels, missingness)
        chosen = np.arange(X0.shape[0])
        if groups is not None:
            if self.deployment == "complete" and drawn is None:
                calibration_model(X0, missingness, self._controlled())
            units = read_units(groups, X0)
            chosen = one_of_each(units, chosen, rng)
            drawn = None if drawn is None else drawn.take(chosen)
        if X0_training is None and drawn is None and self._weighs(missingness):
            model = (missingness or {}).get(self._controlled())
            if cap_may_pay(self._promise(), model, len(chosen), X0.shape[1]):
                mixed = rng.permutation(chosen)
                pilot, chosen = np.split(mixed, [round(PILOT * len(chosen))])
                X0_training, chosen = take_rows(X0, np.sort(pilot)), np.sort(chosen)
        if len(chosen) < X0.shape[0]:
            self._calibrating = chosen
            X0 = take_rows(X0, chosen)
        self._calibrate(X0, X0_training, None, missingness, rng, drawn)
        if groups is not None:
            self.certificate_ = by_unit(self.certificate_)
        return self

    @by_partition
    def decision_function(self, X: Any) -> FloatArray:
        """Distance of the score from the threshold, positive for `classes_[1]`.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
            Infinite for a row that can't be scored, or where no threshold was
            certified: such rows get the controlled class.
        """
        scores = self.score_samples(X)
        with np.errstate(invalid="ignore"):
            distance = np.where(scores == -np.inf, -np.inf, scores - self.threshold_)
        if self.threshold_ == np.inf:
            distance = np.full(len(scores), -np.inf)
        if self.classes_[0] == self._controlled():
            return distance
        # A score at the threshold itself belongs to the controlled class, here the
        # second: its decision must be above zero.
        return np.where(distance == 0.0, np.finfo(np.float64).tiny, -distance)

    @by_partition
    def predict(self, X: Any) -> Any:
        """The other class for rows that score above the threshold.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        above = self.score_samples(X) > self.threshold_
        controlled = self._controlled()
        position = int(np.flatnonzero(self.classes_ != controlled)[0])
        return self.classes_[np.where(above, position, 1 - position)]

    @by_partition
    def score_samples(self, X: Any) -> FloatArray:
        """The estimator's scores, the larger the more like the other class.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
            −∞ for a row that can't be scored: under deployment "complete" one with a
            missing value, or one that goes missing with a probability above the
            certificate's cap.
        """
        check_is_fitted(self, "threshold_")
        X = read_rows(self, X, reset=False)
        return self.calibration_.trust.score(self._scored(X))

    def __sklearn_tags__(self) -> Any:
        """Two classes; NaN and sparse tables where the estimator takes them."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
