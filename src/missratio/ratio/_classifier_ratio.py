"""Any probabilistic classifier as a density ratio."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from scipy.special import log_expit
from sklearn import get_config
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from missratio._base.typing import FloatArray
from missratio.ratio._base import check_choice
from missratio.ratio._complete import CompleteRowsRatio, TwoTables
from missratio.ratio._reading import MissingnessParameter

CalibrationMethod = Literal["sigmoid", "isotonic", "temperature"]


class ClassifierRatio(CompleteRowsRatio):
    """Density ratio r̂(z) = P̂(1|z)/P̂(0|z) from any classifier, the classes balanced.

    By Bayes' rule, the odds of class 1 given z are the density ratio times the prior
    odds. The classifier is fitted to complete rows weighted by 1/P(complete), and each
    class is scaled to half of the weight. The prior odds are then one, and log r̂ is
    the classifier's log-odds.

    Parameters
    ----------
    estimator : classifier, default=None
        With `predict_proba`, or with a `decision_function` that is calibrated; its
        `fit` takes `sample_weight`, or that of a pipeline's last step does. It is
        cloned. None stands for ``LogisticRegression()``.
        ``HistGradientBoostingClassifier()`` makes boosted trees a ratio.
    missingness : mapping from class to Missingness, "ignore" or None, default=None
        Why values are missing; a class left out is complete. NaN in a class without a
        model is an error. "ignore" drops rows with missing values. The classifier
        sees complete rows only, even if it could take others.
    calibration : {"sigmoid", "isotonic", "temperature"} or None, default=None
        Whether to calibrate the probabilities, and how, as scikit-learn's
        `CalibratedClassifierCV` does. Ratios are odds: a classifier that is too sure
        of itself gives ratios that are too extreme.
    cv : int, default=5
        The number of folds for the calibration.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier, calibrated if `calibration` is set.
    classes_ : ndarray of shape (2,)
        The denominator's and the numerator's label.
    effective_sample_size_ : dict from class to SampleSize
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_columns,)

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X1, X0 = rng.normal(1, 1, (500, 1)), rng.normal(0, 1, (2000, 1))
    >>> ratio = mr.density_ratio(X1, X0, mr.ClassifierRatio(LogisticRegression(C=100)))
    >>> ratio.predict_ratio([[0.5], [2.0]]).round(1)
    array([1. , 4.6])
    """

    estimator_: Any

    def __init__(
        self,
        estimator: Any = None,
        missingness: MissingnessParameter = None,
        calibration: CalibrationMethod | None = None,
        cv: int = 5,
    ) -> None:
        self.estimator = estimator
        self.missingness = missingness
        self.calibration = calibration
        self.cv = cv

    def _fit_tables(self, tables: TwoTables) -> None:
        inner = LogisticRegression() if self.estimator is None else self.estimator
        inner = clone(inner)
        parameter = weight_parameter(inner)
        if self.calibration is not None:
            check_choice("calibration", self.calibration, get_args(CalibrationMethod))
            inner = CalibratedClassifierCV(inner, method=self.calibration, cv=self.cv)
            parameter = "sample_weight"
        elif not hasattr(inner, "predict_proba"):
            raise TypeError(
                f"{type(inner).__name__} has no predict_proba, and a ratio is the odds "
                'of its probabilities. Set calibration="sigmoid", or use a classifier '
                "that has it."
            )
        rows, labels, weights = balanced(tables)
        self.estimator_ = inner.fit(rows, labels, **{parameter: weights})

    def _complete_log_ratio(self, rows: FloatArray) -> FloatArray:
        probability = np.asarray(self.estimator_.predict_proba(rows), dtype=np.float64)
        with np.errstate(divide="ignore"):
            return np.log(probability[:, 1]) - np.log(probability[:, 0])

    def _score_tables(self, tables: TwoTables) -> float:
        """Minus the balanced log loss, plus log 2 so that a ratio of one has 0."""
        own, other = tables.numerator, tables.denominator
        found = own.weights @ log_expit(self._complete_log_ratio(own.rows))
        found += other.weights @ log_expit(-self._complete_log_ratio(other.rows))
        return float(found / 2.0 + np.log(2.0))


def balanced(tables: TwoTables) -> tuple[FloatArray, Any, FloatArray]:
    """Both classes' rows as one table, with labels, and weights of one on average.

    Each class has half of the weight.
    """
    own, other = tables.numerator, tables.denominator
    rows = np.concatenate([own.rows, other.rows])
    labels = np.repeat([1, 0], [len(own), len(other)])
    weights = np.concatenate([own.weights, other.weights]) * len(rows) / 2.0
    return rows, labels, weights


def weight_parameter(estimator: Any) -> str:
    """What the parameter for sample weights is called in an estimator's fit."""
    if get_config()["enable_metadata_routing"]:
        # A pipeline hands it to the steps that request it.
        return "sample_weight"
    last, prefix = estimator, ""
    while isinstance(last, Pipeline):
        prefix += f"{last.steps[-1][0]}__"
        last = last.steps[-1][1]
    if not has_fit_parameter(last, "sample_weight"):
        raise ValueError(
            f"{type(last).__name__} takes no sample_weight, so weights for missing "
            "rows can't reach it. Use one that does, or a ratio of missratio."
        )
    return f"{prefix}sample_weight"
