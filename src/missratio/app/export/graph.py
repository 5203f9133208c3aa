"""A certified classifier as an ONNX file, in double precision, its threshold included.

A runtime may add up the terms of a score in another order than NumPy does. Two orders
of n terms differ by n·ε·Σ|terms| at most, ε the distance of 1 to the next double
(Higham, Accuracy and Stability of Numerical Algorithms, section 4.2). A graph that
gives a row to the other class only where its score is above the threshold by that much
never does so where `predict` doesn't: rounding only moves rows to the controlled one.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import linear_model
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

import missratio
from missratio._files import write_whole
from missratio.app.modelfile import TWO_CLASSES, TableModel, kind_of
from missratio.basis import LinearBasis
from missratio.ratio import LinearRatio

LINEAR = (
    linear_model.LogisticRegression,
    linear_model.LogisticRegressionCV,
    linear_model.RidgeClassifier,
    linear_model.SGDClassifier,
    LinearSVC,
)
EXPORTED = (
    "KLIEP, KLIEPCV, FDivergenceRatio and NaiveBayesRatio with a linear basis, "
    "LogisticRegression, RidgeClassifier, SGDClassifier, LinearSVC, "
    "HistGradientBoostingClassifier without categories, and pipelines of "
    "StandardScaler and one of these"
)
EPS = float(np.finfo(np.float64).eps)
# The few operations around a sum round by this many units of EPS.
AROUND = 4
OPSET, TREES_OPSET = 18, 5
# ONNX numbers what becomes of trees' values, and how a node compares.
SUM, LEQ = 1, 0


class CantExportError(ValueError):
    """A classifier that ONNX can't hold, with its name and why."""


@dataclass
class Graph:
    """Nodes and constants, as they are added.

    Parameters
    ----------
    nodes, constants : list
        Of ONNX.
    """

    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def add(self, kind: str, *inputs: Any, **attributes: Any) -> str:
        """A node with one output, and the output's name.

        Inputs are names, and arrays that become constants.
        """
        from onnx import helper, numpy_helper

        named = []
        for value in inputs:
            name = value
            if not isinstance(value, str):
                name = f"c{len(self.constants)}"
                array = numpy_helper.from_array(np.asarray(value), name)
                self.constants.append(array)
            named.append(name)
        output: str = attributes.pop("output", f"v{len(self.nodes)}")
        self.nodes.append(helper.make_node(kind, named, [output], **attributes))
        return output


def scored(graph: Graph, rows: str, estimator: Any, threshold: float) -> Any:
    """The score of rows, and by how much it may come out lower in another order.

    At the threshold, that is: what is far from it isn't moved across by rounding.

    Raises
    ------
    CantExportError
        By the name of what can't be exported.
    """
    if isinstance(estimator, Pipeline):
        *before, (_, last) = estimator.steps
        for _, step in before:
            if step == "passthrough":
                continue
            if type(step) is not StandardScaler:
                raise _cant(step, "it comes before the classifier in a pipeline")
            mean = 0.0 if step.mean_ is None else step.mean_
            scale = 1.0 if step.scale_ is None else step.scale_
            rows = graph.add("Div", graph.add("Sub", rows, mean), scale)
        return scored(graph, rows, last, threshold)
    if isinstance(estimator, LinearRatio):
        for basis in getattr(estimator.basis_, "bases_", [estimator.basis_]):
            if type(basis) is not LinearBasis:
                name = type(basis).__name__
                raise _cant(estimator, f"its basis is {name}, and not linear")
    if isinstance(estimator, LinearRatio) or type(estimator) in LINEAR:
        return _linear(graph, rows, estimator)
    if type(estimator) is HistGradientBoostingClassifier:
        return _boosted(graph, rows, estimator, threshold)
    raise _cant(estimator, "it is neither linear nor made of boosted trees")


def _cant(what: Any, why: str) -> CantExportError:
    return CantExportError(
        f"{type(what).__name__} can't be exported to ONNX: {why}. These can: "
        f"{EXPORTED}."
    )


def _linear(graph: Graph, rows: str, estimator: Any) -> tuple[str, str]:
    """x·coef + intercept; a sum that may overflow can come out lower by anything."""
    coef = np.asarray(estimator.coef_, dtype=np.float64).reshape(-1, 1)
    intercept = float(np.ravel(estimator.intercept_)[0])
    score = graph.add("Add", graph.add("MatMul", rows, coef), [intercept])
    # Where four times the terms don't overflow together, no order of them does.
    size = graph.add("MatMul", graph.add("Abs", rows), 4.0 * np.abs(coef))
    share = (len(coef) + AROUND) * EPS
    least = share * abs(intercept) + 2.0 * len(coef) * math.ulp(0.0)
    return score, graph.add("Add", graph.add("Mul", size, [share / 4.0]), [least])


def _boosted(
    graph: Graph, rows: str, estimator: Any, threshold: float
) -> tuple[str, Any]:
    """The start, and the sum of what each tree's leaf holds.

    Nodes are numbered through all trees, and leaves by themselves. A tree that is one
    leaf gets a node whose branches both end there.
    """
    from onnx import TensorProto, helper

    trees = [predictor.nodes for (predictor,) in estimator._predictors]
    if any(tree["is_categorical"].any() for tree in trees):
        raise _cant(estimator, "it splits by categories")
    nodes: dict[str, list[Any]] = {}
    roots: list[int] = []
    limits: list[float] = []
    values: list[float] = []
    start = float(np.ravel(estimator._baseline_prediction)[0])
    size = abs(start) + (abs(threshold) if math.isfinite(threshold) else 0.0)
    for tree in trees:
        roots.append(len(limits))
        leaf = tree["is_leaf"].astype(bool)
        inner = np.flatnonzero(~leaf)
        left, right = tree["left"][inner], tree["right"][inner]
        if leaf[0]:
            inner = left = right = np.zeros(1, dtype=np.intp)
        places = np.where(
            leaf, len(values) + np.cumsum(leaf) - 1, len(limits) + np.cumsum(~leaf) - 1
        )
        values += tree["value"][leaf].tolist()
        size += float(np.abs(tree["value"][leaf]).max())
        limits += np.where(leaf, 0.0, tree["num_threshold"])[inner].tolist()
        for name, column in (
            ("featureids", np.where(leaf, 0, tree["feature_idx"])[inner]),
            ("truenodeids", places[left]),
            ("falsenodeids", places[right]),
            ("trueleafs", leaf[left]),
            ("falseleafs", leaf[right]),
            ("missing_value_tracks_true", tree["missing_go_to_left"][inner]),
        ):
            nodes.setdefault(f"nodes_{name}", []).extend(map(int, column))

    def tensor(name: str, numbers: Any, kind: int = TensorProto.DOUBLE) -> Any:
        return helper.make_tensor(name, kind, [len(numbers)], numbers)

    total = graph.add(
        "TreeEnsemble",
        rows,
        domain="ai.onnx.ml",
        **nodes,
        n_targets=1,
        aggregate_function=SUM,
        tree_roots=roots,
        nodes_modes=tensor("modes", [LEQ] * len(limits), TensorProto.UINT8),
        nodes_splits=tensor("limits", limits),
        leaf_targetids=[0] * len(values),
        leaf_weights=tensor("values", values),
    )
    share = (len(trees) + AROUND) * EPS
    return graph.add("Add", total, [start]), [share * size]


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
        The graph, which was also written where a path was given.

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
    try:
        from onnx import TensorProto, checker, helper
    except ImportError as error:
        raise ImportError(
            "Export needs the package onnx: pip install 'missratio[onnx]'."
        ) from error
    classifier = model.classifier if isinstance(model, TableModel) else model
    if kind_of(classifier) != TWO_CLASSES:
        raise CantExportError(
            f"A model by {type(classifier).__name__} can't be exported to ONNX: a "
            "fitted NeymanPearsonClassifier can, which has two classes and one "
            "threshold, or a model of that kind that missratio fit wrote. Serve others "
            "from Python, by load_model(path).predict(frame)."
        )
    check_is_fitted(classifier, "threshold_")
    classifier = classifier.of_used_columns()
    if classifier._sign < 0.0:
        raise CantExportError(
            "An estimator whose second class is the controlled one can't be exported "
            "to ONNX. Use fit, which fits the estimator itself, instead of calibrate."
        )
    if classifier.calibration_.trust.cap is not None:
        raise CantExportError(
            "The certificate's cap can't be exported to ONNX: rows that go missing too "
            "often get the controlled class, which takes φ. Calibrate with a rule that "
            "needs no cap, such as rule='flipped-betting'."
        )
    certificate, threshold = classifier.certificate_, float(classifier.threshold_)
    width = n_numeric = classifier.n_features_in_
    columns = getattr(classifier, "feature_names_in_", [f"x{j}" for j in range(width)])
    if isinstance(model, TableModel):
        columns, n_numeric = model.encoder.encoded_names, model.encoder.n_numeric
    # 1. Scores, and which are surely above the threshold.
    graph = Graph()
    score, margin = scored(graph, "X", classifier.estimator_, threshold)
    least = graph.add("Sub", score, margin)
    above = graph.add("Greater", least, [threshold])
    # 2. Rows that have a score: it is a number, and so is all that it takes. A blank
    # category can't be scored, nor anything blank where complete rows are promised.
    needed = np.ones((width, 1))
    if classifier.deployment == "as-observed":
        needed[:n_numeric] = 0.0
    blank = graph.add("Cast", graph.add("IsNaN", "X"), to=TensorProto.DOUBLE)
    whole = graph.add("Less", graph.add("MatMul", blank, needed), [0.5])
    sound = graph.add("And", whole, graph.add("Greater", least, [-np.inf]))
    # 3. Scores as predictions have them, and labels.
    kept = graph.add("Where", sound, score, [-np.inf])
    graph.add("Reshape", kept, [-1], output="score")
    place = graph.add("Cast", graph.add("And", above, sound), to=TensorProto.INT64)
    labels = np.array([certificate.controlled_class, certificate.other_class])
    is_text = labels.dtype.kind in "UO"
    known = labels.astype(object) if is_text else labels
    graph.add("Gather", known, graph.add("Reshape", place, [-1]), output="label")
    kind = TensorProto.STRING
    if not is_text:
        kind = helper.np_dtype_to_tensor_dtype(labels.dtype)
    info = helper.make_tensor_value_info
    made = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "missratio",
            [info("X", TensorProto.DOUBLE, ["rows", width])],
            [
                info("label", kind, ["rows"]),
                info("score", TensorProto.DOUBLE, ["rows"]),
            ],
            graph.constants,
        ),
        producer_name="missratio",
        producer_version=missratio.__version__,
        opset_imports=[
            helper.make_opsetid("", OPSET),
            helper.make_opsetid("ai.onnx.ml", TREES_OPSET),
        ],
        ir_version=10,
    )
    facts = {
        "columns": json.dumps([str(name) for name in columns]),
        "certificate": str(certificate),
        "alpha": repr(float(certificate.alpha)),
        "delta": repr(float(certificate.delta)),
        "threshold": repr(threshold),
        "deployment": classifier.deployment,
    }
    helper.set_model_props(made, facts)
    checker.check_model(made, full_check=True)
    write_whole(Path(path), made.SerializeToString(), force=force)
    return Path(path)
