"""What an estimator computes, as numbers that a graph can be made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from missratio._base.typing import FloatArray
from missratio.basis import LinearBasis
from missratio.ratio import LinearRatio

LINEAR = (
    LogisticRegression,
    LogisticRegressionCV,
    RidgeClassifier,
    SGDClassifier,
    LinearSVC,
)
FORESTS = (DecisionTreeClassifier, RandomForestClassifier, ExtraTreesClassifier)
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
