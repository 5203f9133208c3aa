"""A threshold chosen on rows of one class, for a classifier of two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from missratio._base.blocks import take_rows
from missratio._base.hints import check_number
from missratio._base.seeds import generator
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.classifier._calibration import Calibration
from missratio.classifier._cautions import (
    MOST_ROWS,
    warn_of_repeated_rows,
    warn_without_power,
)
from missratio.classifier._certificate import Certificate, tested
from missratio.classifier._certify import certify
from missratio.classifier._meta import (
    DEPLOYMENTS,
    INFEASIBLE,
    CertifiedClassifier,
    check_factor,
    not_a_class,
)
from missratio.classifier._models import (
    calibration_model,
    complete_weights,
)
from missratio.classifier._predicted import with_low_stratum
from missratio.classifier._promise import Promise
from missratio.classifier._reading import read_rows
from missratio.classifier._scores import scorable, score_rows
from missratio.classifier._target import (
    TargetRatio,
    learn_target,
    warn_of_weak_target,
)
from missratio.classifier._trust import ScoredRows
from missratio.missingness import (
    Missingness,
    MissingnessCheck,
    RowInclusion,
    missingness_check,
    refuse_contradiction,
)
from missratio.ratio import check_choice
from missratio.rows import weighed_twice
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
