"""A labelled table of which values are missing, and any estimator fitted to it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import has_fit_parameter

from missratio._base.blocks import take_rows
from missratio._base.typing import FloatArray, IntArray
from missratio.classifier.scores import ClassScores, complete_mask
from missratio.exceptions import DataError, Message, Remedy, UnexplainedMissingError
from missratio.missingness import Missingness, RowInclusion
from missratio.ratio import LinearRatio, weight_parameter
from missratio.rows import check_missingness, class_model, weighed_twice
from missratio.weights import complete_row_weights, inverse_probability_weights

Models = Mapping[Any, Missingness]

# Parts of the training rows, each scored by an estimator fitted on the others.
FOLDS = 3
# Rows of either class a coefficient, with which in-sample scores are as good.
FEW_ROWS = 10


@dataclass(frozen=True)
class ClassTable:
    """Rows of two classes or more, and why values of them are missing.

    Parameters
    ----------
    X : array or dataframe of shape (n_rows, n_columns)
    codes : ndarray of int of shape (n_rows,)
        Positions of the rows' classes among the labels.
    labels : list
        Of two classes with one bounded, that one comes first.
    models : mapping from class to Missingness, or None
    deployment : {"complete", "as-observed"}
    inclusion : ndarray of shape (n_rows,) or (n_rows, n_columns), or None
        The probabilities with which values are there, where some were looked up.
    drawn : RowInclusion or None
        The same by row.
    params : dict
        Of the estimator's fit.
    units : ndarray of int of shape (n_rows,), or None
        Rows with equal numbers are of one unit.
    """

    X: Any
    codes: IntArray
    labels: list[Any]
    models: Models | None
    deployment: str
    inclusion: FloatArray | None = None
    drawn: RowInclusion | None = None
    params: dict[str, Any] = field(default_factory=dict)
    units: IntArray | None = None

    def rows_of(self, position: int, index: IntArray | None = None) -> IntArray:
        """The rows of one class, among some rows or all."""
        if index is None:
            return np.flatnonzero(self.codes == position)
        rows: IntArray = index[self.codes[index] == position]
        return rows

    def take(self, index: IntArray) -> Any:
        """Some rows."""
        return take_rows(self.X, index)

    def model(self, position: int, index: IntArray) -> Missingness | None:
        """Why rows of one class are missing; None where none is, or it doesn't matter.

        Raises
        ------
        UnexplainedMissingError
            Where some are missing and nothing says why.
        """
        if self.deployment != "complete" or self.design(position, index) is not None:
            return None
        return calibration_model(self.take(index), self.models, self.labels[position])

    def design(self, position: int, index: IntArray) -> RowInclusion | None:
        """The draw by which rows of one class are there; None where φ says that.

        Where a class has a model, that explains what is missing.
        """
        if self.drawn is None:
            return None
        drawn, label = self.drawn.take(index), self.labels[position]
        if label not in (self.models or {}):
            return drawn if drawn.by_design else None
        if drawn.looked_up:
            raise weighed_twice(label)
        return None

    def weights(self, position: int, index: IntArray) -> FloatArray:
        """What rows of one class stand for, where complete rows are meant."""
        design = self.design(position, index)
        if design is not None:
            return design.weights
        model = self.model(position, index)
        if model is None:
            return np.ones(len(index))
        return complete_row_weights(self.take(index), model)

    def fit(self, estimator: Any, rows: IntArray) -> ClassScores:
        """Fit one estimator to all classes, or one for each but a reference.

        Parameters
        ----------
        estimator : estimator
            One that only knows two classes, as density ratios do, is fitted to each
            class and the largest; of two classes the reference is the first.
        rows : ndarray of int
            The rows to fit on.
        """
        n_classes = len(self.labels)
        counts = np.bincount(self.codes[rows], minlength=n_classes)
        reference = int(np.argmax(counts)) if n_classes > 2 else 0
        if n_classes > 2 and get_tags(estimator).classifier_tags.multi_class:
            every = {position: position for position in range(n_classes)}
            return ClassScores((self._fit(estimator, every, rows),), (), 0, n_classes)
        others = tuple(k for k in range(n_classes) if k != reference)
        fitted = tuple(self._fit(estimator, {reference: 0, k: 1}, rows) for k in others)
        return ClassScores(fitted, others, reference, n_classes)

    def _fit(self, estimator: Any, seen: Mapping[int, int], rows: IntArray) -> Any:
        """Fit a clone that sees some classes, under other labels."""
        codes = {self.labels[position]: code for position, code in seen.items()}
        target = np.full(len(self.labels), -1)
        target[list(seen)] = list(seen.values())
        labels = target[self.codes]
        try:
            return fit_estimator(
                _under_labels(estimator, codes),
                self.X,
                labels,
                rows[labels[rows] >= 0],
                _renamed(self.models, codes),
                self.params,
                self.inclusion,
                self.drawn,
            )
        except DataError as error:
            names = {code: label for label, code in codes.items()}
            raise error.relabelled(names) from error

    def unseen_scores(
        self,
        estimator: Any,
        rows: IntArray,
        score: Callable[[Any, Any], FloatArray],
    ) -> FloatArray | None:
        """Scores of rows by estimators of two classes that were not fitted on them.

        Parameters
        ----------
        estimator : estimator
        rows : ndarray of int
        score : callable
            Gives the scores of rows by a fitted estimator.

        Returns
        -------
        ndarray of shape (n_rows,), or None
            NaN for other rows; None where a part of the rows is too few to fit on.
        """
        scores, units = np.full(len(self.codes), np.nan), self.units
        splitter = StratifiedKFold if units is None else StratifiedGroupKFold
        parts = splitter(FOLDS, shuffle=True, random_state=0)
        members = None if units is None else units[rows]
        with warnings.catch_warnings():
            # What there is to say was said of the fit to all of these rows.
            warnings.simplefilter("ignore")
            try:
                for rest, part in parts.split(rows, self.codes[rows], members):
                    fitted = self._fit(estimator, {0: 0, 1: 1}, rows[rest])
                    scores[rows[part]] = score(self.take(rows[part]), fitted)
            except ValueError:
                return None
        return scores


def missingness_parameters(estimator: Any) -> dict[str, Any]:
    """Parameters called `missingness` of an estimator and of those inside it."""
    return {
        name: value
        for name, value in estimator.get_params(deep=True).items()
        if name.split("__")[-1] == "missingness"
    }


def _renamed(models: Any, codes: Mapping[Any, int]) -> Models | None:
    """Models under the labels that an estimator sees."""
    if models is None:
        return None
    return {code: models[label] for label, code in codes.items() if label in models}


def _under_labels(estimator: Any, codes: Mapping[Any, int]) -> Any:
    """A clone whose own models are under the labels that it will see."""
    estimator = clone(estimator)
    for name, value in missingness_parameters(estimator).items():
        if isinstance(value, Mapping):
            estimator.set_params(**{name: _renamed(value, codes)})
    return estimator


def fit_estimator(
    estimator: Any,
    X: Any,
    labels: IntArray,
    rows: IntArray,
    missingness: Models | None,
    params: dict[str, Any],
    inclusion: FloatArray | None = None,
    drawn: RowInclusion | None = None,
) -> Any:
    """Fit an estimator, with weights if it knows no missingness.

    Parameters
    ----------
    estimator : estimator
        Its own models, if any, are under the labels that it sees.
    X : array or dataframe of shape (n_rows, n_columns)
    labels : ndarray of int of shape (n_rows,)
        As the estimator is to see them: for two classes 0 for the controlled one.
    rows : ndarray of int
        The rows to fit on.
    missingness : mapping from these labels to Missingness, or None
        Reaches parameters called `missingness` that are None; where there are none, the
        weights of whole-row models are passed as `sample_weight`.
    params : dict
        Of the fit.
    inclusion : ndarray of shape (n_rows,) or (n_rows, n_columns), or None
        The probabilities of a draw, for an estimator that takes them.
    drawn : RowInclusion or None
        The same by row, for one that takes weights.
    """
    weights = None
    if not _informed(estimator, missingness) and missingness:
        weights = _training_weights(estimator, X, labels, rows, missingness)
    name = inclusion_parameter(estimator)
    if drawn is not None and name is not None:
        params = {**params, name: inclusion}
    elif drawn is not None and drawn.take(rows).by_design:
        explained = [label for label, model in (missingness or {}).items() if model]
        own = np.where(np.isin(labels[rows], explained), 1.0, drawn.weights[rows])
        weights = own if weights is None else own * weights
    if weights is not None:
        rows, weights = rows[weights > 0.0], weights[weights > 0.0]
    chosen = {
        name: _safe_indexing(value, rows) if np.ndim(value) else value
        for name, value in params.items()
    }
    if weights is not None:
        name = weight_parameter(estimator)
        given = chosen.pop("sample_weight", 1.0)
        chosen[name] = weights * np.asarray(chosen.get(name, given))
    return estimator.fit(take_rows(X, rows), labels[rows], **chosen)


def overfits(estimator: Any, labels: IntArray) -> bool:
    """Whether an estimator may score the rows that it was fitted on unlike others.

    It does unless it has few coefficients for so many rows of each class.
    """
    last = getattr(estimator, "best_estimator_", estimator)
    last = last[-1] if isinstance(last, Pipeline) else last
    coef = getattr(last, "coef_", None)
    return coef is None or np.size(coef) * FEW_ROWS > np.bincount(labels).min()


def _informed(estimator: Any, missingness: Models | None) -> bool:
    """Tell an estimator the models; whether it has parameters for them."""
    parameters = missingness_parameters(estimator)
    for name, value in parameters.items():
        if value is None and missingness is not None:
            estimator.set_params(**{name: missingness})
    return bool(parameters)


def inclusion_parameter(estimator: Any) -> str | None:
    """What the parameter for a draw is called in an estimator's fit; None for none.

    Of a pipeline, that of an imputer at its beginning: what follows has whole rows.
    """
    first, prefix = estimator, ""
    while isinstance(first, Pipeline):
        prefix += f"{first.steps[0][0]}__"
        first = first.steps[0][1]
    if not has_fit_parameter(first, "inclusion"):
        return None
    routed = get_config()["enable_metadata_routing"]
    return "inclusion" if routed else f"{prefix}inclusion"


def takes_groups(estimator: Any) -> bool:
    """Whether an estimator's fit is to be told which rows are of one unit."""
    if get_config()["enable_metadata_routing"]:
        return bool(get_routing_for_object(estimator).consumes("fit", ["groups"]))
    return has_fit_parameter(estimator, "groups") or isinstance(estimator, BaseSearchCV)


def fit_source(
    estimator: Any, source: Any, missingness: Models | None, codes: Mapping[Any, int]
) -> Any:
    """Fit a clone to rows of two classes that are read block by block."""
    if not isinstance(estimator, LinearRatio):
        raise TypeError(
            f"{type(estimator).__name__} can't be fitted to a source that is read "
            "block by block. Use KLIEP, FDivergenceRatio, ObjectiveRatio or "
            "NaiveBayesRatio, or bring rows into memory."
        )
    informed = _under_labels(estimator, codes)
    _informed(informed, _renamed(missingness, codes))
    try:
        return informed.fit(source)
    except DataError as error:
        names = {code: label for label, code in codes.items()}
        raise error.relabelled(names) from error


def _training_weights(
    estimator: Any, X: Any, labels: IntArray, rows: IntArray, missingness: Models
) -> FloatArray | None:
    """Inverse-probability weights of rows; None for an estimator that takes NaN.

    Raises
    ------
    ValueError
        Under per-feature missingness, for an estimator that doesn't.
    """
    if any(not model.rowwise for model in missingness.values() if model):
        if get_tags(estimator).input_tags.allow_nan:
            return None
        raise ValueError(
            f"{type(estimator).__name__} can't be fitted where single values are "
            "missing, and weights can't help it. Use a ratio of missratio (KLIEP, "
            "NaiveBayesRatio), put an imputer that knows the missingness before it "
            "(TiltedImputer), or take an estimator that accepts NaN."
        )
    weights = np.ones(len(rows))
    for label, model in missingness.items():
        of_class = labels[rows] == label
        if model is not None and of_class.any():
            chosen = take_rows(X, rows[of_class])
            weights[of_class] = inverse_probability_weights(chosen, model)
    return weights


def find_models(
    missingness: Any, estimator: Any, classes: Any, names: Any = None
) -> Models | None:
    """The models by label: the classifier's own, or the estimator's.

    Parameters
    ----------
    missingness : mapping from class to Missingness, or None
        The classifier's.
    estimator : estimator
    classes : ndarray of shape (2,)
    names : sequence of str, optional
        Of the columns, for models that go by them.
    """
    if missingness is None:
        own = missingness_parameters(estimator).values()
        missingness = next((v for v in own if isinstance(v, Mapping)), None)
    if isinstance(missingness, str):
        raise ValueError(
            f"missingness={missingness!r} can't be certified: complete cases don't "
            "stand for complete rows. Give the controlled class's model, or use "
            "deployment='as-observed', which needs none, and set it in the "
            "estimator alone."
        )
    check_missingness(missingness, classes)
    if missingness is None:
        return None
    return {
        label: model.bound(names)
        for label, model in missingness.items()
        if model is not None
    }


def calibration_model(
    X0: Any, missingness: Models | None, label: Any
) -> Missingness | None:
    """Why rows of a class are missing; None where none is.

    Parameters
    ----------
    X0 : array or dataframe of shape (n_rows, n_columns)
        Of that class: all of them before a split, so that no seed decides.
    missingness : mapping from class to Missingness, or None
    label : object

    Raises
    ------
    UnexplainedMissingError
        Where some are missing and nothing says why.
    """
    model = class_model(missingness, label)
    if model is None and not complete_mask(X0).all():
        raise unexplained(label)
    assert not isinstance(model, str)
    return model


def unexplained(label: Any) -> UnexplainedMissingError:
    """A class has lost values, nothing says why, and complete rows are meant."""
    return UnexplainedMissingError(
        Message(
            "Rows of class {label!r} have missing values (NaN) and no missingness "
            "model, and a certificate for complete rows can't ignore that: the rows "
            "that are complete don't stand for the others.",
            label=label,
            remedies=(
                Remedy.MODEL,
                "give inclusion probabilities where values were looked up",
                Remedy.AS_OBSERVED,
            ),
        )
    )


def complete_weights(
    X: Any, y: Any, classes: Sequence[Any], missingness: Models | None
) -> FloatArray:
    """What complete rows stand for by their class's model; 0 for other rows.

    Parameters
    ----------
    X : array or dataframe of shape (n_rows, n_columns)
    y : ndarray of shape (n_rows,)
    classes : sequence of object
    missingness : mapping from class to Missingness, or None
    """
    weights = np.ones(len(y))
    for label in classes:
        of_class = np.flatnonzero(y == label)
        rows = take_rows(X, of_class)
        model = calibration_model(rows, missingness, label)
        if model is not None:
            weights[of_class] = complete_row_weights(rows, model)
    return weights
