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
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn import ensemble, linear_model
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

import missratio
from missratio._base.typing import FloatArray
from missratio._files import written_whole
from missratio.app.modelfile import TWO_CLASSES, TableModel, kind_of
from missratio.basis import LinearBasis
from missratio.classifier import NeymanPearsonClassifier
from missratio.ratio import LinearRatio

LINEAR = (
    linear_model.LogisticRegression,
    linear_model.LogisticRegressionCV,
    linear_model.RidgeClassifier,
    linear_model.SGDClassifier,
    LinearSVC,
)
FORESTS = (
    DecisionTreeClassifier,
    ensemble.RandomForestClassifier,
    ensemble.ExtraTreesClassifier,
)
EXPORTED = (
    "KLIEP, KLIEPCV, FDivergenceRatio and NaiveBayesRatio with a linear basis, "
    "LogisticRegression, RidgeClassifier, SGDClassifier, LinearSVC, "
    "HistGradientBoostingClassifier without categories, DecisionTreeClassifier, "
    "RandomForestClassifier, ExtraTreesClassifier, and pipelines of StandardScaler "
    "and one of these"
)


class CantExportError(ValueError):
    """A classifier that ONNX can't hold, with its name and why."""


class Linear(NamedTuple):
    """x·coef + intercept."""

    coef: FloatArray
    intercept: float


class Tree(NamedTuple):
    """Nodes of one tree, the root first: an array for each, an entry a node."""

    feature: Any
    left: Any
    right: Any
    limit: Any
    """Rows with a value up to it go left."""
    missing_left: Any
    is_leaf: Any
    value: Any
    """What leaves add to the score, or the probability of the second class there."""
    rest: Any = None
    """The probability of the first."""


class Trees(NamedTuple):
    """The sum of trees and a start; or the log-odds of their mean probability.

    Of probabilities values are rounded to single precision before they are compared.
    """

    trees: Sequence[Tree]
    start: float | None = None


Scaling = tuple[FloatArray, FloatArray]
"""The mean and the scale: (x − mean) / scale, before anything else."""


def read_estimator(estimator: Any) -> tuple[list[Scaling], Linear | Trees]:
    """What a fitted estimator computes.

    Raises
    ------
    CantExportError
        By the name of what can't be exported.
    """
    scalings: list[Scaling] = []
    while isinstance(estimator, Pipeline):
        *before, (_, estimator) = estimator.steps
        for step in (each for _, each in before if each != "passthrough"):
            if type(step) is not StandardScaler:
                raise _cant(step, "it comes before the classifier in a pipeline")
            mean = 0.0 if step.mean_ is None else step.mean_
            scale = 1.0 if step.scale_ is None else step.scale_
            scalings.append((np.asarray(mean), np.asarray(scale)))
    if isinstance(estimator, LinearRatio):
        for basis in getattr(estimator.basis_, "bases_", [estimator.basis_]):
            if type(basis) is not LinearBasis:
                name = type(basis).__name__
                raise _cant(estimator, f"its basis is {name}, and not linear")
    if isinstance(estimator, LinearRatio) or type(estimator) in LINEAR:
        coef = np.asarray(estimator.coef_, dtype=np.float64).ravel()
        return scalings, Linear(coef, float(np.ravel(estimator.intercept_)[0]))
    if type(estimator) is HistGradientBoostingClassifier:
        every = [predictor.nodes for (predictor,) in estimator._predictors]
        if any(nodes["is_categorical"].any() for nodes in every):
            raise _cant(estimator, "it splits by categories")
        names = ("feature_idx", "left", "right", "num_threshold",
                 "missing_go_to_left", "is_leaf", "value")  # fmt: skip
        trees = [Tree(*(nodes[name] for name in names)) for nodes in every]
        trees = [each._replace(is_leaf=each.is_leaf.astype(bool)) for each in trees]
        return scalings, Trees(
            trees, float(np.ravel(estimator._baseline_prediction)[0])
        )
    if type(estimator) not in FORESTS:
        raise _cant(estimator, "it is neither linear nor made of trees")
    trees = []
    for member in getattr(estimator, "estimators_", [estimator]):
        tree = member.tree_
        probability = tree.value[:, 0, :] / tree.value[:, 0, :].sum(axis=1)[:, None]
        trees.append(
            Tree(tree.feature, tree.children_left, tree.children_right, tree.threshold,
                 tree.missing_go_to_left, tree.children_left == -1, probability[:, 1],
                 probability[:, 0])
        )  # fmt: skip
    return scalings, Trees(trees)


def _cant(what: Any, why: str) -> CantExportError:
    return CantExportError(
        f"{type(what).__name__} can't be exported to ONNX: {why}. These can: "
        f"{EXPORTED}."
    )


EPS = float(np.finfo(np.float64).eps)
# What the few operations around a sum round by, in units of EPS.
AROUND = 4
# A sum of absolute terms below this can't overflow, in whichever order.
LARGEST_SIZE = float(np.finfo(np.float64).max) / 4.0


def least_product(intercept: float, threshold: float) -> float:
    """The least p for which p + intercept, rounded, is above the threshold.

    Rounding is monotone, so comparing p with this is the same as comparing the score
    with the threshold, and what can differ is the rounding of p alone: nothing is lost
    where an intercept is far larger than all that p varies by.

    Examples
    --------
    >>> least_product(1.0, 1.0) == 2.0**-53 * (1 + 2.0**-52)
    True
    """
    if not math.isfinite(threshold):
        return threshold
    above = math.nextafter(threshold, math.inf)
    if not math.isfinite(above):
        return math.inf
    middle = (Fraction(threshold) + Fraction(above)) / 2
    try:
        found = float(middle - Fraction(intercept))
    except OverflowError:
        return math.inf if threshold > intercept else -math.inf
    while found + intercept > threshold:
        found = math.nextafter(found, -math.inf)
    while found + intercept <= threshold:
        found = math.nextafter(found, math.inf)
    return found


OPSET, TREES_OPSET = 18, 5
# As ONNX numbers what becomes of trees' values, and how a node compares.
SUM, LEQ = 1, 0


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

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """A node with one output, and the output's name."""
        from onnx import helper

        name = attributes.pop("output", f"v{len(self.nodes)}")
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return str(name)

    def constant(self, value: Any) -> str:
        """An array that is part of the graph."""
        from onnx import numpy_helper

        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name


def _linear(
    graph: Graph, rows: str, score: Linear, threshold: float
) -> tuple[str, str]:
    """A sum that may overflow has the score −∞, however large its other terms are."""
    product = graph.add("MatMul", rows, graph.constant(score.coef[:, None]))
    total = graph.add("Add", product, graph.constant([score.intercept]))
    absolute = graph.constant(np.abs(score.coef)[:, None])
    size = graph.add("MatMul", graph.add("Abs", rows), absolute)
    # False for NaN too.
    is_sound = graph.add("Less", size, graph.constant([LARGEST_SIZE]))
    lowest = graph.constant([-np.inf])
    found = graph.add("Where", is_sound, total, lowest)
    # By how much the product may come out lower elsewhere.
    n_columns = len(score.coef)
    share = graph.constant([(n_columns + AROUND) * EPS])
    least = graph.constant([2.0 * n_columns * math.ulp(0.0)])
    margin = graph.add("Add", graph.add("Mul", size, share), least)
    surely = graph.add("Sub", product, margin)
    limit = least_product(score.intercept, threshold)
    above = graph.add("GreaterOrEqual", surely, graph.constant([limit]))
    return found, graph.add("And", above, is_sound)


def _trees(graph: Graph, rows: str, score: Trees, threshold: float) -> tuple[str, str]:
    from onnx import TensorProto

    def total(what: str) -> str:
        attributes = _ensemble(score.trees, what)
        return graph.add("TreeEnsemble", rows, domain="ai.onnx.ml", **attributes)

    if score.start is not None:
        found = graph.add("Add", total("value"), graph.constant([score.start]))
    else:
        single = graph.add("Cast", rows, to=TensorProto.FLOAT)
        rows = graph.add("Cast", single, to=TensorProto.DOUBLE)
        count = graph.constant([float(len(score.trees))])
        means = (graph.add("Div", total(what), count) for what in ("value", "rest"))
        found = graph.add("Sub", *[graph.add("Log", mean) for mean in means])
    if np.isfinite(threshold):
        # By how much the sum of trees, or its log-odds, may come out lower elsewhere;
        # at the threshold neither logarithm is beyond |threshold| + log 2.
        size = 2.0 * (1.0 + abs(threshold) + math.log(2.0))
        if score.start is not None:
            size = sum(float(np.abs(t.value[t.is_leaf]).max()) for t in score.trees)
            size += abs(score.start) + abs(threshold)
        threshold += (len(score.trees) + AROUND) * EPS * size
    return found, graph.add("Greater", found, graph.constant([threshold]))


def _ensemble(trees: Sequence[Tree], what: str) -> dict[str, Any]:
    """The trees as attributes of a node; what leaves hold as its targets.

    Nodes are numbered through all trees, and leaves by themselves. A tree that is one
    leaf gets a node whose branches both end there.
    """
    from onnx import TensorProto, helper

    nodes: dict[str, list[Any]] = {}
    roots: list[int] = []
    limits: list[float] = []
    values: list[float] = []
    for tree in trees:
        roots.append(len(limits))
        leaf, inner = tree.is_leaf, np.flatnonzero(~tree.is_leaf)
        places = np.where(
            leaf, len(values) + np.cumsum(leaf) - 1, len(limits) + np.cumsum(~leaf) - 1
        )
        left, right = tree.left[inner], tree.right[inner]
        if leaf[0]:
            inner = left = right = np.zeros(1, dtype=np.intp)
        values += getattr(tree, what)[leaf].tolist()
        limits += np.where(leaf, 0.0, tree.limit)[inner].tolist()
        for name, column in (
            ("featureids", np.where(leaf, 0, tree.feature)[inner]),
            ("truenodeids", places[left]),
            ("falsenodeids", places[right]),
            ("trueleafs", leaf[left]),
            ("falseleafs", leaf[right]),
            ("missing_value_tracks_true", tree.missing_left[inner]),
        ):
            nodes.setdefault(f"nodes_{name}", []).extend(map(int, column))

    def tensor(name: str, found: Any, kind: int = TensorProto.DOUBLE) -> Any:
        return helper.make_tensor(name, kind, [len(found)], found)

    return {
        **nodes,
        "n_targets": 1,
        "aggregate_function": SUM,
        "tree_roots": roots,
        "nodes_modes": tensor("modes", [LEQ] * len(limits), TensorProto.UINT8),
        "nodes_splits": tensor("limits", limits),
        "leaf_targetids": [0] * len(values),
        "leaf_weights": tensor("values", values),
    }


def any_missing(graph: Graph, rows: str, first: int) -> str:
    """Which rows have NaN in a column from `first` on, as a column."""
    from onnx import TensorProto

    if first:
        start, end = graph.constant([first]), graph.constant([np.iinfo(np.int64).max])
        rows = graph.add("Slice", rows, start, end, graph.constant([1]))
    missing = graph.add("Cast", graph.add("IsNaN", rows), to=TensorProto.INT32)
    most = graph.add("ReduceMax", missing, graph.constant([1]), keepdims=1)
    return graph.add("Cast", most, to=TensorProto.BOOL)


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
    try:
        import onnx
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
    n_numeric = classifier.n_features_in_
    numbered = [f"x{j}" for j in range(n_numeric)]
    columns = getattr(classifier, "feature_names_in_", numbered)
    if isinstance(model, TableModel):
        columns, n_numeric = model.encoder.encoded_names, model.encoder.n_numeric
    made = _model(classifier, n_numeric, [str(name) for name in columns])
    onnx.checker.check_model(made, full_check=True)
    with written_whole(Path(path), force=force) as draft:
        draft.write_bytes(made.SerializeToString())
    return Path(path)


def _model(
    classifier: NeymanPearsonClassifier, n_numeric: int, columns: list[str]
) -> Any:
    """The graph with what goes with it; columns from `n_numeric` on hold categories."""
    from onnx import TensorProto, helper

    graph = Graph()
    certificate, threshold = classifier.certificate_, float(classifier.threshold_)
    # 1. Scores, and which are surely above the threshold.
    scalings, read = read_estimator(classifier.estimator_)
    scaled = "X"
    for mean, scale in scalings:
        centred = graph.add("Sub", scaled, graph.constant(mean))
        scaled = graph.add("Div", centred, graph.constant(scale))
    if isinstance(read, Linear):
        score, above = _linear(graph, scaled, read, threshold)
    else:
        score, above = _trees(graph, scaled, read, threshold)
    # 2. Rows that get the controlled class whatever their score.
    never = graph.add("IsNaN", score)
    if classifier.deployment == "complete":
        never = graph.add("Or", never, any_missing(graph, "X", 0))
    elif n_numeric < classifier.n_features_in_:
        # A category that was never seen can't be scored.
        never = graph.add("Or", never, any_missing(graph, "X", n_numeric))
    # 3. Scores as predictions have them, and labels.
    kept, flat = graph.add("Where", never, graph.constant([-np.inf]), score), [-1]
    graph.add("Reshape", kept, graph.constant(flat), output="score")
    chosen = graph.add("And", above, graph.add("Not", never))
    place = graph.add("Cast", chosen, to=TensorProto.INT64)
    places = graph.add("Reshape", place, graph.constant(flat))
    labels = np.array([certificate.controlled_class, certificate.other_class])
    is_text = labels.dtype.kind in "UO"
    known = graph.constant(labels.astype(object) if is_text else labels)
    graph.add("Gather", known, places, output="label")
    number = helper.np_dtype_to_tensor_dtype
    kind = TensorProto.STRING if is_text else number(labels.dtype)
    info, width = helper.make_tensor_value_info, classifier.n_features_in_
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
        "columns": json.dumps(columns),
        "certificate": str(certificate),
        "alpha": repr(float(certificate.alpha)),
        "delta": repr(float(certificate.delta)),
        "threshold": repr(threshold),
        "deployment": classifier.deployment,
    }
    helper.set_model_props(made, facts)
    return made
