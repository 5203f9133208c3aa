"""Whether a model that was loaded makes sense, before it is used."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from missratio._files import Cells
from missratio.app.modelfile._certified import check_grouped, check_several, check_two
from missratio.app.modelfile._frame import FrameModel, TrainingData
from missratio.app.modelfile._groups import GroupedTableModel
from missratio.app.modelfile._model import TableModel
from missratio.app.modelfile._parts import check_methods, require
from missratio.app.modelfile._several import MulticlassTableModel
from missratio.app.modelfile._types import ModelFileError
from missratio.app.tables import Encoder, TableColumn
from missratio.classifier import (
    CandidatePower,
    Certificate,
    GroupedNeymanPearsonClassifier,
    MulticlassNeymanPearsonClassifier,
    NeymanPearsonClassifier,
    PowerComparison,
)

FRAMES: dict[type, type] = {
    TableModel: NeymanPearsonClassifier,
    MulticlassTableModel: MulticlassNeymanPearsonClassifier,
    GroupedTableModel: GroupedNeymanPearsonClassifier,
}
"""For each model of a table, the classifier that it has."""


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
        check_methods(model)
        classifier = model
        if isinstance(model, FrameModel):
            classifier = model.classifier
            kind = FRAMES[type(model)]
            require(isinstance(classifier, kind), "its classifier is of another type")
            _check_frame(model)
        if isinstance(classifier, MulticlassNeymanPearsonClassifier):
            check_several(classifier)
        elif isinstance(classifier, GroupedNeymanPearsonClassifier):
            check_grouped(classifier)
        else:
            is_known = isinstance(classifier, NeymanPearsonClassifier)
            require(is_known, "it is no classifier")
            check_two(classifier)
        _check_header(model, header)
    except ModelFileError:
        raise
    except Exception as error:
        raise ModelFileError(f"It holds no sound model: {error}") from error


def header_of(model: Any) -> dict[str, Any]:
    """What can be known of a model without loading it."""
    if not isinstance(model, FrameModel):
        return {"certificate": _facts(plain(model.certificate_.to_dict()))}
    return {
        "certificate": _facts(plain(model.certificate.to_dict())),
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


def _facts(value: Any) -> Any:
    """A certificate without what is said anew of it, in words that may change."""
    if isinstance(value, dict):
        return {k: _facts(item) for k, item in value.items() if k != "valid_while"}
    return [_facts(item) for item in value] if isinstance(value, list) else value


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


def _check_frame(model: FrameModel) -> None:
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
        "the columns that it leaves out aren't names",
    )
    _check_training(model)
    _check_comparison(model)
    if isinstance(model, TableModel | GroupedTableModel):
        texts = isinstance(model.rest, tuple) and all(
            isinstance(label, str) for label in model.rest
        )
        require(texts, "the labels that it takes together aren't texts")
    if isinstance(model, GroupedTableModel):
        require(model.group_column in model.dropped, "its column of groups is unknown")
    if isinstance(model, TableModel) and model.covariance is not None:
        size = len(model.classifier.estimator_.coef_) + 1
        require(
            model.covariance.shape == (size, size)
            and bool(np.isfinite(model.covariance).all()),
            "its covariance is of another size",
        )


def _check_comparison(model: FrameModel) -> None:
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


def _check_training(model: FrameModel) -> None:
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
    found = model.certificate
    for certificate in (
        (found,) if isinstance(found, Certificate) else found.certificates
    ):
        require(
            certificate.rows <= training.rows[certificate.controlled_class],
            "its certificate is for more rows than there are",
        )
