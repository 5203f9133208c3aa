"""Fitting any estimator on rows of which some are missing."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import has_fit_parameter

from missratio._base.blocks import take_rows
from missratio._base.hints import check_number
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.classifier.reading import one_of_each
from missratio.classifier.scores import complete_mask
from missratio.exceptions import DataError, Message, Remedy, UnexplainedMissingError
from missratio.missingness import Missingness, RowInclusion
from missratio.ratio import LinearRatio, weight_parameter
from missratio.rows import check_missingness, class_model
from missratio.weights import complete_row_weights, inverse_probability_weights

Models = Mapping[Any, Missingness]

# Parts of the training rows, each scored by an estimator fitted on the others.
FOLDS = 3
# Rows of either class a coefficient, with which in-sample scores are as good.
FEW_ROWS = 10


def split_rows(
    is_other: BoolArray,
    size: float,
    rng: np.random.Generator,
    units: IntArray | None = None,
) -> tuple[IntArray, IntArray]:
    """Rows to fit on, and rows of the controlled class to calibrate on.

    Of a unit of several rows one may calibrate, and none of the others is fitted on.

    Parameters
    ----------
    is_other : ndarray of bool of shape (n_rows,)
        Which rows are not of the controlled class.
    size : float or int
        Share or number of the controlled class's rows, or units, to calibrate on.
    rng : Generator
    units : ndarray of int of shape (n_rows,), or None
        The unit of each row.
    """
    of_class = np.flatnonzero(~is_other)
    if units is not None:
        of_class = one_of_each(units, of_class, rng)
    controlled = rng.permutation(of_class)
    whole = isinstance(size, (int, np.integer)) and not isinstance(size, bool)
    if not whole:
        check_number("calibration_size", size)
        if not 0.0 < size < 1.0:
            raise ValueError(
                "calibration_size must be a share between 0 and 1, or a number of "
                f"{'rows' if units is None else 'units'} as an int: got {size!r}."
            )
    count = int(size) if whole else round(size * len(controlled))
    if not 0 < count < len(controlled):
        raise ValueError(
            f"calibration_size={size!r} leaves {len(controlled) - count} of "
            f"{len(controlled)} {'rows' if units is None else 'units'} of the "
            f"controlled class to fit on and {count} "
            "to calibrate on; both need some. Give a share between 0 and 1, or a "
            "smaller number."
        )
    held = np.sort(controlled[:count])
    own = np.arange(len(is_other)) if units is None else units
    return np.flatnonzero(~np.isin(own, own[held])), held


def missingness_parameters(estimator: Any) -> dict[str, Any]:
    """Parameters called `missingness` of an estimator and of those inside it."""
    return {
        name: value
        for name, value in estimator.get_params(deep=True).items()
        if name.split("__")[-1] == "missingness"
    }


def relabelled(models: Models | None, controlled: Any) -> Models | None:
    """Models under the labels that an estimator sees: 0 for the controlled class.

    None for the controlled class leaves models that are under these labels already.
    """
    if models is None or controlled is None:
        return models
    return {int(label != controlled): model for label, model in models.items()}


@contextmanager
def users_labels(classes: Any, controlled: Any) -> Iterator[None]:
    """Errors of an estimator, which sees labels 0 and 1, under the users' labels."""
    try:
        yield
    except DataError as error:
        other = next(label for label in classes.tolist() if label != controlled)
        raise error.relabelled({0: controlled, 1: other}) from error


def fit_estimator(
    estimator: Any,
    X: Any,
    labels: IntArray,
    rows: IntArray,
    missingness: Models | None,
    controlled: Any,
    params: dict[str, Any],
    inclusion: FloatArray | None = None,
    drawn: RowInclusion | None = None,
) -> Any:
    """Fit a clone, with weights if it knows no missingness.

    Parameters
    ----------
    estimator : estimator
    X : array or dataframe of shape (n_rows, n_columns)
    labels : ndarray of int of shape (n_rows,)
        As the estimator is to see them: for two classes 0 for the controlled one.
    rows : ndarray of int
        The rows to fit on.
    missingness : mapping from these labels to Missingness, or None
        Reaches parameters called `missingness` that are None; where there are none, the
        weights of whole-row models are passed as `sample_weight`.
    controlled : object
        The controlled class, for models that the estimator has under users' labels;
        None where it has none such.
    params : dict
        Of the fit.
    inclusion : ndarray of shape (n_rows,) or (n_rows, n_columns), or None
        The probabilities of a draw, for an estimator that takes them.
    drawn : RowInclusion or None
        The same by row, for one that takes weights.
    """
    estimator, parameters = _informed(estimator, missingness, controlled)
    weights = None
    if missingness and not parameters:
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


def unseen_scores(
    fit: Callable[[IntArray], Any],
    score: Callable[[Any, Any], FloatArray],
    X: Any,
    labels: IntArray,
    rows: IntArray,
    units: IntArray | None = None,
) -> FloatArray | None:
    """Scores of training rows by estimators that were not fitted on them.

    Parameters
    ----------
    fit : callable
        Fits a clone on some rows.
    score : callable
        Gives the scores of rows by a fitted estimator.
    X : array or dataframe of shape (n_rows, n_columns)
    labels : ndarray of int of shape (n_rows,)
    rows : ndarray of int
        Those fitted on.
    units : ndarray of int of shape (n_rows,), optional
        Rows of one unit stay together.

    Returns
    -------
    ndarray of shape (n_rows,), or None
        NaN for other rows; None where a part of the rows is too few to fit on.
    """
    scores = np.full(len(labels), np.nan)
    splitter = StratifiedKFold if units is None else StratifiedGroupKFold
    parts = splitter(FOLDS, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        # What there is to say was said of the fit to all of these rows.
        warnings.simplefilter("ignore")
        try:
            own = None if units is None else units[rows]
            for rest, part in parts.split(rows, labels[rows], own):
                fitted = fit(rows[rest])
                scores[rows[part]] = score(take_rows(X, rows[part]), fitted)
        except ValueError:
            return None
    return scores


def _informed(
    estimator: Any, missingness: Models | None, controlled: Any
) -> tuple[Any, dict[str, Any]]:
    """A clone that knows the models, and its parameters called `missingness`."""
    estimator = clone(estimator)
    parameters = missingness_parameters(estimator)
    for name, value in parameters.items():
        if isinstance(value, Mapping):
            estimator.set_params(**{name: relabelled(value, controlled)})
        elif value is None and missingness is not None:
            estimator.set_params(**{name: missingness})
    return estimator, parameters


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


def fit_source_estimator(
    estimator: Any, source: Any, missingness: Models | None, controlled: Any
) -> Any:
    """Fit a clone to rows that are read block by block."""
    if not isinstance(estimator, LinearRatio):
        raise TypeError(
            f"{type(estimator).__name__} can't be fitted to a source that is read "
            "block by block. Use KLIEP, FDivergenceRatio, ObjectiveRatio or "
            "NaiveBayesRatio, or bring rows into memory."
        )
    informed, _ = _informed(estimator, missingness, controlled)
    return informed.fit(source)


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
    X0 : array, sparse matrix or dataframe of shape (n_rows, n_columns)
        Of that class: all of them before a split, so that no seed decides.
    missingness : mapping from class to Missingness, or None
    label : object

    Raises
    ------
    UnexplainedMissingError
        Where some are missing and nothing says why.
    """
    model = class_model(missingness, label)
    if model is None and not issparse(X0) and not complete_mask(X0).all():
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
    X : array, sparse matrix or dataframe of shape (n_rows, n_columns)
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
