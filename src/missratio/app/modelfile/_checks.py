"""Whether a model that was loaded makes sense, before it is used."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from missratio._files import Cells
from missratio.app.modelfile._model import TableModel, TrainingData
from missratio.app.modelfile._parts import check_parts, require
from missratio.app.modelfile._types import ModelFileError
from missratio.app.tables import Encoder, TableColumn
from missratio.classifier import (
    Calibration,
    CandidatePower,
    Certificate,
    NeymanPearsonClassifier,
    PowerComparison,
)
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
        require(isinstance(classifier, NeymanPearsonClassifier), "it is no classifier")
        _check_certificate(classifier)
        _check_calibration(classifier)
        _check_missingness(classifier)
        check_parts(classifier)
        _check_scores(classifier)
        _check_header(model, header)
    except ModelFileError:
        raise
    except Exception as error:
        raise ModelFileError(f"It holds no sound model: {error}") from error


def header_of(model: TableModel | NeymanPearsonClassifier) -> dict[str, Any]:
    """What can be known of a model without loading it."""
    if isinstance(model, NeymanPearsonClassifier):
        return {"certificate": plain(model.certificate_.to_dict())}
    return {
        "certificate": plain(model.certificate.to_dict()),
        "method": model.method,
        "target": model.target,
        "columns": [
            {"name": column.name, "levels": plain(column.levels)}
            for column in model.encoder.columns
        ],
        "training": {
            "file": model.training.file,
            "sha256": model.training.sha256,
            "rows": plain(model.training.rows),
            "missing": plain(model.training.missing),
        },
    }


def _check_header(model: Any, header: dict[str, Any]) -> None:
    expected = header_of(model)
    require(
        header.get("certificate") == expected["certificate"], "its certificates differ"
    )
    for name, value in expected.items():
        require(header.get(name) == value, f"its header has another {name}")


def plain(value: Any) -> Any:
    """Plain data as JSON has it: tuples are lists, and scalars are Python's."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _check_table_model(model: TableModel) -> None:
    encoder = model.encoder
    require(isinstance(encoder, Encoder), "its columns are of another type")
    require(isinstance(encoder.cells, Cells), "its cells are of another type")
    for column in encoder.columns:
        named = isinstance(column, TableColumn) and isinstance(column.name, str)
        require(named, "a column is of another type")
        levels = column.levels
        require(
            levels is None
            or (len(set(levels)) >= 2 and all(isinstance(x, str) for x in levels)),
            f"column {column.name!r} has no levels",
        )
    kinds = [column.levels is None for column in encoder.columns]
    require(kinds == sorted(kinds, reverse=True), "its columns are out of order")
    require(len(set(encoder.names)) == len(encoder.names), "columns are doubled")
    require(
        encoder.width == model.classifier.n_features_in_,
        "it has other columns than its classifier",
    )
    require(isinstance(model.target, str), "its target is unknown")
    require(isinstance(model.method, str), "its method is unknown")
    require(
        model.report is None or isinstance(model.report, str), "its report is no text"
    )
    require(
        isinstance(model.dropped, tuple)
        and all(isinstance(name, str) for name in model.dropped),
        "the columns that it leaves out are no names",
    )
    require(
        isinstance(model.rest, tuple) and all(isinstance(x, str) for x in model.rest),
        "the labels that it takes together are no texts",
    )
    _check_training(model)
    _check_comparison(model)
    if model.covariance is not None:
        size = len(model.classifier.estimator_.coef_) + 1
        require(
            model.covariance.shape == (size, size)
            and bool(np.isfinite(model.covariance).all()),
            "its covariance is of another size",
        )


def _check_comparison(model: TableModel) -> None:
    """What was compared must be figures, and lead to the method that it has."""
    comparison = model.comparison
    if comparison is None:
        return
    require(
        isinstance(comparison, PowerComparison)
        and all(isinstance(each, CandidatePower) for each in comparison.candidates)
        and comparison.chosen == model.method,
        "its comparison of methods is for another",
    )
    for each in comparison.candidates:
        named = isinstance(each.name, str) and isinstance(each.note, str)
        measured = each.power is None or 0.0 <= each.power <= 1.0
        require(named and measured, "a compared method has no power")


def _check_training(model: TableModel) -> None:
    """The table that it was fitted on must be one that it can be fitted on."""
    training, columns = model.training, set(model.encoder.names)
    require(isinstance(training, TrainingData), "its training data is unknown")
    require(
        isinstance(training.file, str)
        and isinstance(training.sha256, str)
        and re.fullmatch("[0-9a-f]{64}", training.sha256),
        "its training file is unknown",
    )
    labels = set(model.classifier.classes_.tolist())
    require(
        set(training.rows) == labels and set(training.missing) == labels,
        "its training data has other classes",
    )
    for label in labels:
        rows, missing = training.rows[label], training.missing[label]
        require(type(rows) is int and rows > 0, "its numbers of rows")
        require(set(missing) <= columns, "columns are missing that it doesn't have")
        sound = all(type(n) is int and 0 < n <= rows for n in missing.values())
        require(sound, "more is missing than there is")
    controlled = model.certificate.controlled_class
    require(
        model.certificate.rows <= training.rows[controlled],
        "its certificate is for more rows than there are",
    )


def _check_certificate(classifier: Any) -> None:
    certificate = classifier.certificate_
    require(isinstance(certificate, Certificate), "it has no certificate")
    for name, kind in _CERTIFICATE.items():
        value = getattr(certificate, name)
        sound = isinstance(value, kind) or (kind is float and isinstance(value, int))
        require(sound, f"its certificate's {name} is {value!r}")
    check_levels(certificate.alpha, certificate.delta)
    classes = classifier.classes_
    require(isinstance(classes, np.ndarray) and classes.shape == (2,), "its classes")
    require(
        certificate.controlled_class in classes.tolist(),
        "its certificate is for another class",
    )
    same = all(
        getattr(classifier, name) == getattr(certificate, name)
        for name in ("alpha", "delta", "deployment")
    )
    require(
        same and classifier.threshold_ == certificate.threshold,
        "its certificate is for another threshold",
    )
    require(not math.isnan(certificate.threshold), "its threshold is NaN")
    require(
        certificate.certified or certificate.threshold == math.inf,
        "it has a threshold without a certificate",
    )


def _check_calibration(classifier: Any) -> None:
    """Make its samples once more, and choose the certificate's threshold once more."""
    calibration = classifier.calibration_
    require(isinstance(calibration, Calibration), "it has no calibration")
    require(isinstance(calibration.rule, Rule), "its rule is of another type")
    training = getattr(calibration.rule, "training", None)
    for sample in (calibration.sample, training):
        if sample is not None:
            require(isinstance(sample, CalibrationSample), "its calibration rows")
            sample.check()
    certificate, sample = classifier.certificate_, calibration.sample
    require(
        (sample.n_rows, sample.n_known) == (certificate.rows, certificate.observed),
        "its certificate is for other rows",
    )
    if sample.n_observed:
        chosen = calibration.select([certificate.alpha])[0].threshold
        require(
            (math.inf if chosen is None else chosen) == certificate.threshold,
            "its certificate is for another threshold",
        )


def _check_missingness(classifier: Any) -> None:
    trust = classifier.calibration_.trust
    models = {**(classifier.missingness or {}), "trusted": trust.model}
    for model in models.values():
        if model is None:
            continue
        require(isinstance(model, Missingness), "its missingness is of another type")
        # Makes it once more, with all the checks of a new one.
        replace(model)
    for value in (trust.delta, trust.cap, trust.odds_factor):
        require(value is None or isinstance(value, int | float), "its weights")


def _check_scores(classifier: Any) -> None:
    """Score three rows: coefficients that don't fit together show here."""
    width = classifier.n_features_in_
    require(isinstance(width, int) and 0 < width <= 10**6, "its number of columns")
    rows = np.stack([np.zeros(width), np.ones(width), -np.ones(width)])
    with warnings.catch_warnings():
        # A classifier that was fitted to a dataframe misses its names here.
        warnings.simplefilter("ignore", UserWarning)
        scores = classifier.score_samples(rows)
    require(scores.shape == (3,) and not np.isnan(scores).any(), "it gives no scores")
