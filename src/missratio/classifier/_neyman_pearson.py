"""Neyman-Pearson classification: one error bounded, with a certificate."""

from __future__ import annotations

from collections.abc import Mapping
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
from missratio._base.seeds import generator
from missratio._base.typing import FloatArray, IntArray
from missratio.classifier._calibrated import CalibratedClassifier
from missratio.classifier._certificate import by_unit
from missratio.classifier._choice import PILOT, cap_may_pay
from missratio.classifier._groups import one_of_each, read_units
from missratio.classifier._models import calibration_model, unexplained
from missratio.classifier._reading import read_labelled, read_rows
from missratio.classifier._streamed import hold_out, refuse_in_memory
from missratio.classifier._training import (
    fit_estimator,
    fit_source_estimator,
    overfits,
    relabelled,
    split_rows,
    takes_groups,
    unseen_scores,
    users_labels,
)
from missratio.missingness import Missingness
from missratio.ratio import two_classes
from missratio.rows import LabelledSource, as_source, by_partition
from missratio.threshold import Rule


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
