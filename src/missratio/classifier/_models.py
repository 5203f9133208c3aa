"""Which models of missingness a classifier goes by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from missratio._base.blocks import take_rows
from missratio._base.typing import FloatArray
from missratio.classifier._scores import complete_mask
from missratio.classifier._training import missingness_parameters
from missratio.exceptions import Message, Remedy, UnexplainedMissingError
from missratio.missingness import Missingness
from missratio.rows import check_missingness, class_model
from missratio.weights import complete_row_weights

Models = Mapping[Any, Missingness]


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
