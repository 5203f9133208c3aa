"""An ONNX graph in double precision: rows in, labels and scores out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from missratio.app.export._margins import (
    LARGEST_SIZE,
    least_product,
    product_margin,
    trees_margin,
)
from missratio.app.export._scores import (
    ExportedLinear,
    Scaling,
    Score,
    Tree,
    TreeScore,
)

OPSET, TREES_OPSET = 18, 5
# As ONNX numbers what becomes of trees' values, and how a node compares.
SUM, LEQ = 1, 0
NODE = (
    "featureids",
    "truenodeids",
    "falsenodeids",
    "trueleafs",
    "falseleafs",
    "missing_value_tracks_true",
)


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


def score_rows(
    graph: Graph, rows: str, scalings: list[Scaling], score: Score, threshold: float
) -> tuple[str, str]:
    """The scores of rows, and which surely are above the threshold, as columns.

    Parameters
    ----------
    graph : Graph
    rows : str
        The name of a tensor of doubles.
    scalings : list of Scaling
    score : ExportedLinear or TreeScore
    threshold : float
    """
    for scaling in scalings:
        centred = graph.add("Sub", rows, graph.constant(scaling.mean))
        rows = graph.add("Div", centred, graph.constant(scaling.scale))
    if isinstance(score, ExportedLinear):
        return _linear(graph, rows, score, threshold)
    found = _trees(graph, rows, score)
    if np.isfinite(threshold):
        threshold += trees_margin(score, threshold)
    return found, graph.add("Greater", found, graph.constant(np.array([threshold])))


def _linear(
    graph: Graph, rows: str, score: ExportedLinear, threshold: float
) -> tuple[str, str]:
    """A sum that may overflow has the score −∞, however large its other terms are."""
    product = graph.add("MatMul", rows, graph.constant(score.coef[:, None]))
    total = graph.add("Add", product, graph.constant(np.array([score.intercept])))
    absolute = graph.constant(np.abs(score.coef)[:, None])
    size = graph.add("MatMul", graph.add("Abs", rows), absolute)
    # False for NaN too.
    is_sound = graph.add("Less", size, graph.constant(np.array([LARGEST_SIZE])))
    lowest = graph.constant(np.array([-np.inf]))
    found = graph.add("Where", is_sound, total, lowest)
    least, share = product_margin(len(score.coef))
    margin = graph.add("Mul", size, graph.constant(np.array([share])))
    margin = graph.add("Add", margin, graph.constant(np.array([least])))
    surely = graph.add("Sub", product, margin)
    limit = least_product(score.intercept, threshold)
    above = graph.add("GreaterOrEqual", surely, graph.constant(np.array([limit])))
    return found, graph.add("And", above, is_sound)


def _trees(graph: Graph, rows: str, score: TreeScore) -> str:
    from onnx import TensorProto

    if score.in_single:
        single = graph.add("Cast", rows, to=TensorProto.FLOAT)
        rows = graph.add("Cast", single, to=TensorProto.DOUBLE)

    def total(what: str) -> str:
        attributes = _ensemble(score.trees, what)
        return graph.add("TreeEnsemble", rows, domain="ai.onnx.ml", **attributes)

    if not score.is_probability:
        return graph.add("Add", total("value"), graph.constant(np.array([score.start])))
    count = graph.constant(np.array([float(len(score.trees))]))
    logs = [
        graph.add("Log", graph.add("Div", total(what), count))
        for what in ("value", "rest")
    ]
    return graph.add("Sub", *logs)


def _ensemble(trees: tuple[Tree, ...], what: str) -> dict[str, Any]:
    """The trees as attributes of a node; what leaves hold as its targets.

    Nodes are numbered through all trees, and leaves by themselves. A tree that is one
    leaf gets a node whose branches both end there.
    """
    from onnx import TensorProto, helper

    def tensor(name: str, values: Any, kind: int = TensorProto.DOUBLE) -> Any:
        return helper.make_tensor(name, kind, [len(values)], values)

    columns: dict[str, list[Any]] = {name: [] for name in (*NODE, "limit", "value")}
    roots = []
    for tree in trees:
        roots.append(len(columns["limit"]))
        _number(tree, getattr(tree, what), columns)
    return {
        "n_targets": 1,
        "aggregate_function": SUM,
        "tree_roots": roots,
        **{f"nodes_{name}": columns[name] for name in NODE},
        "nodes_modes": tensor(
            "modes", [LEQ] * len(columns["limit"]), TensorProto.UINT8
        ),
        "nodes_splits": tensor("limits", columns["limit"]),
        "leaf_targetids": [0] * len(columns["value"]),
        "leaf_weights": tensor("values", columns["value"]),
    }


def _number(tree: Tree, values: Any, columns: dict[str, list[Any]]) -> None:
    """Add one tree's nodes and leaves to the columns of an ensemble."""
    places = np.where(
        tree.is_leaf,
        len(columns["value"]) + np.cumsum(tree.is_leaf) - 1,
        len(columns["limit"]) + np.cumsum(~tree.is_leaf) - 1,
    )
    inner = np.flatnonzero(~tree.is_leaf)
    left, right = tree.left[inner], tree.right[inner]
    if tree.is_leaf[0]:
        inner = left = right = np.zeros(1, dtype=np.intp)
    columns["value"] += values[tree.is_leaf].tolist()
    columns["limit"] += np.where(tree.is_leaf, 0.0, tree.limit)[inner].tolist()
    for name, found in (
        ("featureids", np.where(tree.is_leaf, 0, tree.feature)[inner]),
        ("truenodeids", places[left]),
        ("falsenodeids", places[right]),
        ("trueleafs", tree.is_leaf[left]),
        ("falseleafs", tree.is_leaf[right]),
        ("missing_value_tracks_true", tree.missing_left[inner]),
    ):
        columns[name] += [int(x) for x in found]


def decide(
    graph: Graph, score: str, above: str, unscored: str | None, labels: Any
) -> None:
    """Labels of rows, and their scores as predictions have them.

    Parameters
    ----------
    graph : Graph
    score, above : str
        Columns: the scores, and which of them are above the threshold.
    unscored : str or None
        Which rows get the controlled class whatever their score.
    labels : ndarray of shape (2,)
        The controlled class, and the other.
    """
    from onnx import TensorProto

    never = graph.add("IsNaN", score)
    if unscored is not None:
        never = graph.add("Or", never, unscored)
    lowest = graph.constant(np.array([-np.inf]))
    kept = graph.add("Where", never, lowest, score)
    flat = graph.constant(np.array([-1], dtype=np.int64))
    graph.add("Reshape", kept, flat, output="score")
    chosen = graph.add("And", above, graph.add("Not", never))
    place = graph.add("Cast", chosen, to=TensorProto.INT64)
    places = graph.add("Reshape", place, flat)
    graph.add("Gather", graph.constant(labels), places, output="label")


def any_missing(graph: Graph, rows: str, first: int) -> str:
    """Which rows have NaN in a column from `first` on, as a column."""
    from onnx import TensorProto

    if first:
        start = graph.constant(np.array([first], dtype=np.int64))
        end = graph.constant(np.array([np.iinfo(np.int64).max]))
        axis = graph.constant(np.array([1], dtype=np.int64))
        rows = graph.add("Slice", rows, start, end, axis)
    missing = graph.add("Cast", graph.add("IsNaN", rows), to=TensorProto.INT32)
    axes = graph.constant(np.array([1], dtype=np.int64))
    most = graph.add("ReduceMax", missing, axes, keepdims=1)
    return graph.add("Cast", most, to=TensorProto.BOOL)
