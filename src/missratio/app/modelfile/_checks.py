"""Whether a model that was loaded makes sense, before it is used."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from missratio.app.modelfile._model import TableModel, TrainingData
from missratio.app.modelfile._types import ModelFileError
from missratio.app.tables import Cells, Column, Encoder
from missratio.classifier import Calibration, Certificate, NeymanPearsonClassifier
from missratio.imputation import ImputationEnsemble, TiltedImputer
from missratio.missingness import Missingness
from missratio.threshold import CalibrationSample, Rule, check_levels

_CERTIFICATE = {
    "alpha": float, "delta": float, "rule": str, "deployment": str, "rows": int,
    "observed": int, "effective_rows": float, "threshold": float,
    "estimated_error": float, "error_bound": float, "certified": bool,
    "assumptions": tuple, "missingness_delta": float,
}  # fmt: skip


def check_model(model: Any, header: dict[str, Any]) -> None:
    """Refuse a loaded object that isn't a sound model.

    Loading sets attributes without a look at them: a file made up by hand could hold
    anything of the right types.

    Parameters
    ----------
    model : object
    header : dict
        What the file says about it.

    Raises
    ------
    ModelFileError
    """
    try:
        classifier = model
        if isinstance(model, TableModel):
            _check_table_model(model)
            classifier = model.classifier
        _require(isinstance(classifier, NeymanPearsonClassifier), "it is no classifier")
        _check_certificate(classifier)
        _check_calibration(classifier)
        _check_missingness(classifier)
        _check_trees(classifier)
        _check_scores(classifier)
        data = classifier.certificate_.to_dict()
        _require(header.get("certificate") == plain(data), "its certificates differ")
    except ModelFileError:
        raise
    except Exception as error:
        raise ModelFileError(f"It holds no sound model: {error}") from error


def plain(value: Any) -> Any:
    """Plain data as JSON has it: tuples are lists, and scalars are Python's."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _require(condition: Any, otherwise: str) -> None:
    if not condition:
        raise ModelFileError(f"It holds no sound model: {otherwise}.")


def _check_table_model(model: TableModel) -> None:
    encoder = model.encoder
    _require(isinstance(encoder, Encoder), "its columns are of another type")
    _require(isinstance(encoder.cells, Cells), "its cells are of another type")
    for column in encoder.columns:
        named = isinstance(column, Column) and isinstance(column.name, str)
        _require(named, "a column is of another type")
        levels = column.levels
        _require(
            levels is None
            or (len(set(levels)) >= 2 and all(isinstance(x, str) for x in levels)),
            f"column {column.name!r} has no levels",
        )
    kinds = [column.levels is None for column in encoder.columns]
    _require(kinds == sorted(kinds, reverse=True), "its columns are out of order")
    _require(len(set(encoder.names)) == len(encoder.names), "columns are doubled")
    _require(
        encoder.width == model.classifier.n_features_in_,
        "it has other columns than its classifier",
    )
    _require(isinstance(model.training, TrainingData), "its training data is unknown")
    _require(isinstance(model.target, str), "its target is unknown")
    if model.covariance is not None:
        size = len(model.classifier.estimator_.coef_) + 1
        _require(
            model.covariance.shape == (size, size)
            and bool(np.isfinite(model.covariance).all()),
            "its covariance is of another size",
        )


def _check_certificate(classifier: Any) -> None:
    certificate = classifier.certificate_
    _require(isinstance(certificate, Certificate), "it has no certificate")
    for name, kind in _CERTIFICATE.items():
        value = getattr(certificate, name)
        sound = isinstance(value, kind) or (kind is float and isinstance(value, int))
        _require(sound, f"its certificate's {name} is {value!r}")
    check_levels(certificate.alpha, certificate.delta)
    classes = classifier.classes_
    _require(isinstance(classes, np.ndarray) and classes.shape == (2,), "its classes")
    _require(
        certificate.controlled_class in classes.tolist(),
        "its certificate is for another class",
    )
    same = all(
        getattr(classifier, name) == getattr(certificate, name)
        for name in ("alpha", "delta", "deployment")
    )
    _require(
        same and classifier.threshold_ == certificate.threshold,
        "its certificate is for another threshold",
    )
    _require(not math.isnan(certificate.threshold), "its threshold is NaN")
    _require(
        certificate.certified or certificate.threshold == math.inf,
        "it has a threshold without a certificate",
    )


def _check_calibration(classifier: Any) -> None:
    """Make its samples once more, and choose the certificate's threshold once more."""
    calibration = classifier.calibration_
    _require(isinstance(calibration, Calibration), "it has no calibration")
    _require(isinstance(calibration.rule, Rule), "its rule is of another type")
    training = getattr(calibration.rule, "training", None)
    for sample in (calibration.sample, training):
        if sample is not None:
            _require(isinstance(sample, CalibrationSample), "its calibration rows")
            sample.check()
    certificate, sample = classifier.certificate_, calibration.sample
    _require(
        (sample.n_rows, sample.n_observed) == (certificate.rows, certificate.observed),
        "its certificate is for other rows",
    )
    if sample.n_observed:
        chosen = calibration.select([certificate.alpha])[0].threshold
        _require(
            (math.inf if chosen is None else chosen) == certificate.threshold,
            "its certificate is for another threshold",
        )


def _check_missingness(classifier: Any) -> None:
    trust = classifier.calibration_.trust
    models = {**(classifier.missingness or {}), "trusted": trust.model}
    for model in models.values():
        if model is None:
            continue
        _require(isinstance(model, Missingness), "its missingness is of another type")
        # Makes it once more, with all the checks of a new one.
        replace(model)
    for value in (trust.delta, trust.cap, trust.odds_factor):
        _require(value is None or isinstance(value, int | float), "its weights")


def _check_trees(classifier: Any) -> None:
    """scikit-learn follows a tree's nodes without a look at where they lead."""
    estimator = classifier.estimator_
    models = [estimator]
    if isinstance(estimator, ImputationEnsemble):
        _require(isinstance(estimator.imputer_, TiltedImputer), "it has no imputer")
        models = estimator.estimators_
    for model in models:
        if isinstance(model, HistGradientBoostingClassifier):
            _check_nodes(model, classifier.n_features_in_)


def _check_nodes(model: HistGradientBoostingClassifier, width: int) -> None:
    for predictor in (tree for trees in model._predictors for tree in trees):
        nodes = predictor.nodes
        places = np.arange(len(nodes))
        inner = nodes["is_leaf"] == 0
        for side in ("left", "right"):
            ahead = nodes[side][inner]
            _require(
                (ahead > places[inner]).all() and (ahead < len(nodes)).all(),
                "a tree's branches lead nowhere",
            )
        _require(
            len(nodes) > 0 and (nodes["feature_idx"][inner] < width).all(),
            "a tree asks for columns that there aren't",
        )
        _require(not nodes["is_categorical"].any(), "a tree has categories")
        _require(np.isfinite(nodes["value"]).all(), "a tree's values aren't finite")


def _check_scores(classifier: Any) -> None:
    """Score three rows: coefficients that don't fit together show here."""
    width = classifier.n_features_in_
    _require(isinstance(width, int) and 0 < width <= 10**6, "its number of columns")
    rows = np.stack([np.zeros(width), np.ones(width), -np.ones(width)])
    scores = classifier.score_samples(rows)
    _require(scores.shape == (3,) and not np.isnan(scores).any(), "it gives no scores")
