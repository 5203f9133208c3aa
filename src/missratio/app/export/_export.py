"""A certified classifier as an ONNX file, its threshold included."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import missratio
from missratio._files import written_whole
from missratio.app.export._graph import (
    OPSET,
    TREES_OPSET,
    Graph,
    any_missing,
    decide,
    score_rows,
)
from missratio.app.export._scores import CantExportError, read_estimator
from missratio.app.modelfile import (
    GroupedTableModel,
    MulticlassTableModel,
    TableModel,
)
from missratio.classifier import (
    GroupedNeymanPearsonClassifier,
    MulticlassNeymanPearsonClassifier,
    NeymanPearsonClassifier,
)


def export_onnx(model: Any, path: str | Path, *, force: bool = False) -> Path:
    """Write a certified classifier as ONNX: the same labels, in any ONNX runtime.

    The graph takes a tensor `X` of doubles, a row for each row, NaN where a value is
    missing, and gives `label` and `score`. All of it is computed in double precision;
    the threshold is part of it, and so is what becomes of a row that can't be scored.
    Where rounding decides, or a score overflows, a row gets the controlled class: the
    graph never gives a row to the other class that `predict` doesn't.
    The columns' names and the certificate are among the file's metadata.

    Parameters
    ----------
    model : NeymanPearsonClassifier or TableModel
        Fitted, or as `load_model` gives it. A model of a table takes the columns that
        its encoder makes of the table, in their order.
    path : str or Path
    force : bool, default=False
        Whether a file that is there is overwritten.

    Returns
    -------
    Path

    Raises
    ------
    CantExportError
        Where a part of the classifier can't be exported; it is named.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 500)
    >>> X = rng.normal(size=(1000, 2)) + y[:, None]
    >>> clf = mr.NeymanPearsonClassifier(LogisticRegression(), random_state=0)
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = mr.export_onnx(clf.fit(X, y), pathlib.Path(folder) / "model.onnx")
    ...     file.stat().st_size < 5000
    True
    """
    made = _checked_model(model)
    path = Path(path)
    with written_whole(path, force=force) as draft:
        draft.write_bytes(made.SerializeToString())
    return path


def _checked_model(model: Any) -> Any:
    """The ONNX model, after ONNX's own check."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError(
            "Export needs the package onnx: pip install 'missratio[onnx]'."
        ) from error
    classifier, encoder = model, None
    if isinstance(model, TableModel):
        classifier, encoder = model.classifier, model.encoder
    if isinstance(model, MulticlassTableModel | MulticlassNeymanPearsonClassifier):
        raise CantExportError(
            "A model of several classes (MulticlassNeymanPearsonClassifier) can't be "
            "exported to ONNX: only one of two classes can. Serve it from Python, by "
            "load_model(path).predict(frame)."
        )
    if isinstance(model, GroupedTableModel | GroupedNeymanPearsonClassifier):
        raise CantExportError(
            "A model with promises to groups (GroupedNeymanPearsonClassifier) can't be "
            "exported to ONNX: only one with a single threshold for all rows can. "
            "Serve it from Python, by load_model(path).predict(frame)."
        )
    if not isinstance(classifier, NeymanPearsonClassifier):
        raise CantExportError(
            f"{type(model).__name__} can't be exported to ONNX: a fitted "
            "NeymanPearsonClassifier can, or a model that missratio fit wrote."
        )
    check_is_fitted(classifier, "threshold_")
    graph = _build(classifier, None if encoder is None else encoder.n_numeric)
    made = _model(classifier, graph, model)
    onnx.checker.check_model(made, full_check=True)
    return made


def _build(classifier: NeymanPearsonClassifier, n_numeric: int | None) -> Graph:
    if classifier.calibration_.trust.cap is not None:
        raise CantExportError(
            "The certificate's cap can't be exported to ONNX: rows that go missing "
            "too often get the controlled class, and that takes the model of "
            "missingness. Calibrate with a rule that needs no cap, such as "
            "rule='flipped-betting'."
        )
    if classifier._sign < 0.0:
        raise CantExportError(
            "An estimator whose second class is the controlled one can't be exported "
            "to ONNX. Use fit, which fits the estimator itself, instead of calibrate."
        )
    graph = Graph()
    scalings, read = read_estimator(classifier.estimator_)
    threshold = float(classifier.threshold_)
    score, above = score_rows(graph, "X", scalings, read, threshold)
    unscored = None
    if classifier.deployment == "complete":
        unscored = any_missing(graph, "X", 0)
    elif n_numeric is not None and n_numeric < classifier.n_features_in_:
        # A category that was never seen can't be scored.
        unscored = any_missing(graph, "X", n_numeric)
    certificate = classifier.certificate_
    labels = np.array([certificate.controlled_class, certificate.other_class])
    if labels.dtype.kind == "U":
        labels = labels.astype(object)
    decide(graph, score, above, unscored, labels)
    return graph


def _model(classifier: NeymanPearsonClassifier, graph: Graph, model: Any) -> Any:
    from onnx import TensorProto, helper

    width = classifier.n_features_in_
    kind = {"U": TensorProto.STRING, "O": TensorProto.STRING}.get(
        classifier.classes_.dtype.kind
    )
    if kind is None:
        kind = helper.np_dtype_to_tensor_dtype(classifier.classes_.dtype)
    rows = helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["rows", width])
    outputs = [
        helper.make_tensor_value_info("label", kind, ["rows"]),
        helper.make_tensor_value_info("score", TensorProto.DOUBLE, ["rows"]),
    ]
    made = helper.make_model(
        helper.make_graph(graph.nodes, "missratio", [rows], outputs, graph.constants),
        producer_name="missratio",
        producer_version=missratio.__version__,
        opset_imports=[
            helper.make_opsetid("", OPSET),
            helper.make_opsetid("ai.onnx.ml", TREES_OPSET),
        ],
        ir_version=10,
    )
    helper.set_model_props(made, _facts(classifier, model))
    return made


def _facts(classifier: NeymanPearsonClassifier, model: Any) -> dict[str, str]:
    """What goes with the graph, as texts."""
    names = getattr(classifier, "feature_names_in_", None)
    if isinstance(model, TableModel):
        names = model.encoder.encoded_names
    columns = [f"x{j}" for j in range(classifier.n_features_in_)]
    if names is not None:
        columns = [str(name) for name in names]
    certificate = classifier.certificate_
    return {
        "columns": json.dumps(columns),
        "certificate": str(certificate),
        "alpha": repr(float(certificate.alpha)),
        "delta": repr(float(certificate.delta)),
        "threshold": repr(float(classifier.threshold_)),
        "deployment": classifier.deployment,
    }
