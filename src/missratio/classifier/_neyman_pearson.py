"""Neyman-Pearson classification: one error bounded, with a certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.exceptions import NotFittedError
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import (
    check_is_fitted,
)

from missratio._base.blocks import take_rows
from missratio._base.hints import check_number
from missratio._base.seeds import generator
from missratio._base.typing import BoolArray, FloatArray
from missratio.classifier._cautions import (
    MOST_ROWS,
    warn_of_repeated_rows,
    warn_without_power,
)
from missratio.classifier._certificate import tested
from missratio.classifier._certify import Promise
from missratio.classifier._meta import (
    DEPLOYMENTS,
    INFEASIBLE,
    CertifiedClassifier,
    check_factor,
    not_a_class,
    weighed_twice,
)
from missratio.classifier._models import (
    calibration_model,
    find_models,
    weights_of_classes,
)
from missratio.classifier._predicted import with_low_stratum
from missratio.classifier._reading import read_labelled, read_rows
from missratio.classifier._scores import complete_mask, score_rows
from missratio.classifier._streamed import as_table, hold_out
from missratio.classifier._target import (
    TargetRatio,
    learn_target,
    warn_of_weak_target,
)
from missratio.classifier._training import (
    fit_estimator,
    fit_source_estimator,
    relabelled,
    split_rows,
    users_labels,
)
from missratio.classifier._trust import ScoredRows
from missratio.missingness import (
    Missingness,
    MissingnessCheck,
    RowInclusion,
    missingness_check,
    refuse_contradiction,
)
from missratio.ratio import check_choice, two_classes
from missratio.rows import LabelledSource, as_source, by_partition
from missratio.threshold import CalibrationSample, Rule, check_levels
from missratio.weights import complete_row_weights


class NeymanPearsonClassifier(CertifiedClassifier):
    """A classifier whose error on one class is at most α with probability 1 − δ.

    Splits the rows of the controlled class in two: on the one part, and on the rows of
    the other class, it fits an estimator, a density ratio or any scikit-learn
    classifier; on the other part it chooses the threshold above which a score is given
    to the other class (Neyman-Pearson classification; the paper's Algorithms 1 and 2).
    The guarantee holds whatever the estimator, and however well it does.

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
        rows. Or a `missratio.threshold.Rule` of one's own.
    deployment : {"complete", "as-observed"}, default="complete"
        Rows to be classified are complete, and one with a missing value gets the
        controlled class; or they lose values as the calibration rows did, and are
        scored as they are by an estimator that takes NaN. The latter needs no φ.
    calibration_size : float or int, default=0.5
        Share or number of the controlled class's rows to calibrate with.
    controlled_class : object, default=0
        The label whose error is bounded; None for the one sorted first.
    on_infeasible : {"raise", "reject_all"}, default="raise"
        What to do where no threshold can be certified: raise, or give everything to
        the controlled class.
    random_state : int, Generator or None, default=None
        For the split, and for rules that draw.
    missingness_delta : float or None, default=None
        Where the controlled class's φ was learned: the part of `delta` that φ may be
        out of its band with; the rest is the rule's. None for half of it.
    odds_factor : float, default=1.0
        The guarantee is to hold even if the odds of being missing are wrong by this
        factor, either way.
    target_ratio : ratio or None, default=None
        How the density ratio of a target population is learned, where `fit` is given
        one; None for `KLIEP`.
    target_factor : float, default=1.0
        The guarantee for a target is to hold even if that ratio is wrong by this
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
            nothing about why values are missing. The weights reach an estimator that
            takes `inclusion` as they are, and any other as `sample_weight`.
        target : array-like or dataframe of shape (n_target_rows, n_columns), or ratio
            Complete rows, without labels, of the population that the guarantee is to be
            for, where its columns are distributed otherwise; or their density ratio to
            the rows of X, an object with `predict_log_ratio`. A ratio is learned from
            these rows, and from rows of X that don't calibrate.
        **params : dict
            Such as `sample_weight`, for the estimator's fit; calibration has none.

        Returns
        -------
        Self
            The fitted classifier.
        """
        self._check_parameters()
        if (source := as_source(X, y)) is not None:
            return self._fit_source(source, inclusion, target, params)
        X, y = read_labelled(self, X, y)
        self.classes_ = two_classes(y)
        missingness = self._resolve_missingness()
        is_other = y != self._controlled()
        rng = generator(self.random_state)
        drawn = self._read_inclusion(inclusion, X, y, missingness)
        fitted, held = split_rows(is_other, self.calibration_size, rng)
        self.calibration_index_ = held
        if get_config()["enable_metadata_routing"]:
            params = process_routing(self, "fit", **params).estimator.fit
        with users_labels(self.classes_, self._controlled()):
            self.estimator_ = fit_estimator(
                self.estimator,
                X,
                is_other.astype(int),
                fitted,
                relabelled(missingness, self._controlled()),
                self._controlled(),
                params,
                None if inclusion is None else np.asarray(inclusion, dtype=np.float64),
                drawn,
            )
        # The estimator has seen the controlled class as 0, its first.
        self._sign = 1.0
        self.target_ = None
        if target is not None:
            self.target_ = self._learn_target(target, X, y, held, missingness, drawn)
        self._recalibrate(X, is_other, missingness, rng, drawn)
        return self

    def _fit_source(
        self,
        source: LabelledSource,
        inclusion: ArrayLike | None,
        target: Any,
        params: dict[str, Any],
    ) -> Self:
        """The same for rows that are read block by block."""
        in_memory = {"inclusion": inclusion, "target": target}
        given = sorted([*params, *(n for n, x in in_memory.items() if x is not None)])
        if given:
            raise ValueError(
                f"{given} go with a table in memory, and these rows are read "
                "block by block. Leave them out, or bring the rows into memory."
            )
        rng = generator(self.random_state)
        seed = int(rng.integers(2**31))
        rest, drawn = hold_out(
            source, self.controlled_class, self.calibration_size, seed
        )
        self.classes_ = two_classes(np.array(drawn.labels))
        missingness = self._resolve_missingness()
        tables = [
            as_table(rows, source.names)
            for rows in (drawn.held, drawn.training, drawn.other)
        ]
        held, training, other = (
            read_rows(self, table, reset=position == 0)
            for position, table in enumerate(tables)
        )
        with users_labels(self.classes_, self._controlled()):
            self.estimator_ = fit_source_estimator(
                self.estimator,
                rest,
                relabelled(missingness, self._controlled()),
                self._controlled(),
            )
        self.__dict__.pop("calibration_index_", None)
        self._sign, self.target_ = 1.0, None
        self._calibrate(held, training, lambda: other, missingness, rng)
        return self

    def calibrate(
        self, X0: Any, X0_training: Any = None, inclusion: ArrayLike | None = None
    ) -> Self:
        """Choose the threshold of an estimator that is fitted already.

        Parameters
        ----------
        X0 : array-like or dataframe of shape (n_rows, n_columns)
            Rows of the controlled class that the estimator hasn't seen.
        X0_training : array-like or dataframe, optional
            Other rows of that class, such as those it was fitted on, for rules that
            learn from them.
        inclusion : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            Where values of X0 were looked up, with which probability.

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
        # Rows of an earlier fit, if any, are no longer those calibrated with.
        self.__dict__.pop("calibration_index_", None)
        self._sign = 1.0 if self.classes_[0] == self._controlled() else -1.0
        self.target_ = None
        missingness = self._resolve_missingness()
        rng = generator(self.random_state)
        labels = np.full(X0.shape[0], self._controlled())
        drawn = self._read_inclusion(inclusion, X0, labels, missingness)
        self._calibrate(X0, X0_training, None, missingness, rng, drawn)
        return self

    @by_partition
    def decision_function(self, X: Any) -> FloatArray:
        """The score's distance from the threshold, positive for the second class.

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

    def calibration_sample(self, X0: Any) -> CalibrationSample:
        """Scored rows of the controlled class, weighted as the certificate does.

        Parameters
        ----------
        X0 : array-like or dataframe of shape (n_rows, n_columns)
            Rows of the controlled class, NaN where a value is missing.

        Returns
        -------
        CalibrationSample
            For `np_roc`, say.
        """
        check_is_fitted(self, "threshold_")
        X0 = read_rows(self, X0, reset=False)
        return self._scored(X0).sample(self.calibration_.trust)

    def row_weights(self, X: Any, y: ArrayLike) -> FloatArray | None:
        """What each row stands for where errors on complete rows are to be measured.

        Under deployment "complete" a row that has lost a value is not classified but
        given to the controlled class, so that shares of the rows at hand say nothing
        about complete rows. The complete ones among them do, with the weights
        1/(1 − φ) of their class.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)

        Returns
        -------
        ndarray of shape (n_rows,), or None
            0 for a row that has lost a value; None where all rows count the same.

        Raises
        ------
        ValueError
            Where rows have lost values and their class has no model.
        """
        check_is_fitted(self, "threshold_")
        X = read_rows(self, X, reset=False)
        if self.deployment == "as-observed" or issparse(X) or complete_mask(X).all():
            return None
        classes, models = self.classes_.tolist(), self._resolve_missingness()
        return weights_of_classes(X, np.asarray(y), classes, models)

    def __sklearn_tags__(self) -> Any:
        """Two classes; NaN and sparse tables where the estimator takes them."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

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

    def _resolve_missingness(self) -> Mapping[Any, Missingness] | None:
        """The models by label: the classifier's own, or the estimator's."""
        names = getattr(self, "feature_names_in_", None)
        return find_models(self.missingness, self.estimator, self.classes_, names)

    def _scored(self, X: Any) -> ScoredRows:
        return ScoredRows(X, self._score(X))

    def _score(self, X: Any) -> FloatArray:
        if self.deployment == "complete" and not issparse(X):
            rows = complete_mask(X)
        else:
            rows = np.ones(X.shape[0], dtype=bool)
        return score_rows(self.estimator_, X, rows, self._sign)

    def _recalibrate(
        self,
        X: Any,
        is_other: BoolArray,
        missingness: Mapping[Any, Missingness] | None,
        rng: np.random.Generator | None = None,
        drawn: RowInclusion | None = None,
    ) -> None:
        """Choose the threshold on the calibration rows of the table fitted on."""
        held = np.zeros(len(is_other), dtype=bool)
        held[self.calibration_index_] = True
        chosen = np.flatnonzero(held)
        others = np.flatnonzero(~held & ~is_other)
        rows, training = take_rows(X, chosen), take_rows(X, others)
        own = None
        if drawn is not None:
            own = with_low_stratum(
                drawn.take(chosen),
                rows,
                drawn.take(others),
                training,
                self._score,
                self.alpha,
            )
        self._calibrate(
            rows,
            training,
            lambda: take_rows(X, np.flatnonzero(is_other)),
            missingness,
            rng or generator(self.random_state),
            own,
        )

    def _learn_target(
        self,
        target: Any,
        X: Any,
        y: Any,
        held: Any,
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
        rest = np.setdiff1d(np.arange(len(y)), held)
        labels, weights = np.asarray(y)[rest], np.ones(len(rest))
        for label in self.classes_.tolist():
            of_class = np.flatnonzero(labels == label)
            rows = take_rows(X, rest[of_class])
            model = calibration_model(rows, missingness, label)
            if model is not None:
                weights[of_class] = complete_row_weights(rows, model)
            # Rows that calibrate are missing here: the others stand for them.
            weights[of_class] *= np.count_nonzero(np.asarray(y) == label) / len(
                of_class
            )
        if not hasattr(target, "predict_log_ratio"):
            target = read_rows(self, target, reset=False)
        source = take_rows(X, rest)
        return learn_target(
            target, self.target_ratio, source, weights, self.target_factor
        )

    def _read_inclusion(
        self,
        inclusion: ArrayLike | None,
        X: Any,
        y: Any,
        missingness: Mapping[Any, Missingness] | None,
    ) -> RowInclusion | None:
        """By what draw rows are there; None where that isn't asked for."""
        drawn, controlled = self._drawn(inclusion, X, y), self._controlled()
        if drawn is not None and controlled in (missingness or {}):
            of_class = np.flatnonzero(np.asarray(y) == controlled)
            if drawn.take(of_class).looked_up:
                raise weighed_twice(controlled)
        return drawn

    def _calibrate(
        self,
        X0: Any,
        training_rows: Any,
        other_rows: Callable[[], Any] | None,
        missingness: Mapping[Any, Missingness] | None,
        rng: np.random.Generator,
        drawn: RowInclusion | None = None,
    ) -> None:
        model = None
        # Where the class has a model, that explains what is missing.
        explained = self._controlled() in (missingness or {})
        by_design = drawn is not None and drawn.by_design and not explained
        if self.deployment == "complete" and not by_design:
            model = calibration_model(X0, missingness, self._controlled())
        checks: tuple[MissingnessCheck, ...] = ()
        if model is not None:
            checks = missingness_check(
                X0, model, complete=True, odds_factor=self.odds_factor
            )
            refuse_contradiction(checks, self._controlled())
        if self.target_ is not None:
            self.target_.check(X0, "calibration")
        training = None
        weighted = model is not None or self.target_ is not None
        if weighted and training_rows is not None:
            training = self._scored(training_rows)
        promise = Promise(
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
        other = None if other_rows is None else lambda: self._scored(other_rows())
        scored = self._scored(X0)
        if model is not None:
            scored = replace(scored, draws=rng.uniform(size=len(scored.scores)))
        if by_design:
            scored = replace(scored, inclusion=drawn)
        self.certificate_, self.calibration_ = promise.certify(
            scored, training, other, model, self._score
        )
        self.certificate_ = replace(self.certificate_, checks=tested(model, checks))
        self.threshold_ = self.certificate_.threshold
        if self.target_ is not None:
            sample = self.calibration_.sample
            warn_of_weak_target(self.target_, sample.effective_rows, sample.n_rows)
        if training_rows is not None:
            warn_of_repeated_rows(X0, training_rows)
        if self.certificate_.certified:
            shown = None if other_rows is None else other_rows()
            if shown is not None:
                few = np.linspace(0, shown.shape[0] - 1, MOST_ROWS).astype(np.intp)
                shown = self.score_samples(take_rows(shown, np.unique(few)))
            warn_without_power(scored.scores, self.threshold_, shown)
