"""What an estimator computes, as numbers that a graph can be made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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

from missratio._base.typing import FloatArray, IntArray
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


@dataclass(frozen=True)
class ExportedLinear:
    """x·coef + intercept.

    Parameters
    ----------
    coef : ndarray of shape (n_columns,)
    intercept : float
    """

    coef: FloatArray
    intercept: float


@dataclass(frozen=True)
class Tree:
    """Nodes of one tree, the root first.

    Parameters
    ----------
    feature, left, right : ndarray of int of shape (n_nodes,)
    limit : ndarray of shape (n_nodes,)
        Rows with a value up to it go left.
    missing_left : ndarray of bool of shape (n_nodes,)
    is_leaf : ndarray of bool of shape (n_nodes,)
    value : ndarray of shape (n_nodes,)
        What leaves add to the score, or the probability of the second class there.
    rest : ndarray of shape (n_nodes,), optional
        The probability of the first.
    """

    feature: IntArray
    left: IntArray
    right: IntArray
    limit: FloatArray
    missing_left: Any
    is_leaf: Any
    value: FloatArray
    rest: FloatArray | None = None


@dataclass(frozen=True)
class TreeScore:
    """The sum of trees, or the log-odds of their mean probability.

    Parameters
    ----------
    trees : tuple of Tree
    start : float
        What is added to a sum.
    is_probability : bool
        Whether leaves hold probabilities, and the score is the log-odds of their means.
    in_single : bool
        Whether values are rounded to single precision before they are compared.
    """

    trees: tuple[Tree, ...]
    start: float = 0.0
    is_probability: bool = False
    in_single: bool = False


Score = ExportedLinear | TreeScore


Scaling = tuple[FloatArray, FloatArray]
"""The mean and the scale: (x − mean) / scale, before anything else."""


def read_estimator(estimator: Any) -> tuple[list[Scaling], Score]:
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
    return scalings, _score(estimator)


def _score(estimator: Any) -> Score:
    if isinstance(estimator, LinearRatio):
        return _ratio(estimator)
    if type(estimator) in LINEAR:
        coef = np.asarray(estimator.coef_, dtype=np.float64).ravel()
        intercept = float(np.ravel(estimator.intercept_)[0])
        return _checked(estimator, ExportedLinear(coef, intercept))
    if type(estimator) is HistGradientBoostingClassifier:
        return _boosted(estimator)
    if type(estimator) in FORESTS:
        return _forest(estimator)
    raise _cant(estimator, "it is neither linear nor made of trees")


def _ratio(ratio: LinearRatio) -> ExportedLinear:
    columns: Sequence[Any] = getattr(ratio, "bases_", [ratio.basis_])
    for each in columns:
        if type(each) is not LinearBasis:
            raise _cant(ratio, f"its basis is {type(each).__name__}, and not linear")
    coef = np.asarray(ratio.coef_, dtype=np.float64)
    return _checked(ratio, ExportedLinear(coef, float(ratio.intercept_)))


def _checked(estimator: Any, score: ExportedLinear) -> ExportedLinear:
    """Refuse an estimator whose scores are not what its coefficients say."""
    rows = np.random.default_rng(0).normal(size=(16, len(score.coef)))
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        found = np.asarray(estimator.decision_function(rows), dtype=np.float64)
        if not np.allclose(found, rows @ score.coef + score.intercept):
            raise _cant(estimator, "its scores are not linear in the columns")
    return score


def _boosted(model: HistGradientBoostingClassifier) -> TreeScore:
    trees = []
    for (predictor,) in model._predictors:
        nodes = predictor.nodes
        if nodes["is_categorical"].any():
            raise _cant(model, "it splits by categories")
        trees.append(
            Tree(
                nodes["feature_idx"].astype(np.intp),
                nodes["left"].astype(np.intp),
                nodes["right"].astype(np.intp),
                nodes["num_threshold"].astype(np.float64),
                nodes["missing_go_to_left"].astype(bool),
                nodes["is_leaf"].astype(bool),
                nodes["value"].astype(np.float64),
            )
        )
    start = float(np.ravel(model._baseline_prediction)[0])
    return TreeScore(tuple(trees), start)


def _forest(model: Any) -> TreeScore:
    members = [model] if hasattr(model, "tree_") else model.estimators_
    trees = []
    for member in members:
        tree = member.tree_
        counts = tree.value[:, 0, :]
        trees.append(
            Tree(
                np.maximum(tree.feature, 0).astype(np.intp),
                tree.children_left.astype(np.intp),
                tree.children_right.astype(np.intp),
                tree.threshold.astype(np.float64),
                tree.missing_go_to_left.astype(bool),
                tree.children_left == -1,
                counts[:, 1] / counts.sum(axis=1),
                counts[:, 0] / counts.sum(axis=1),
            )
        )
    return TreeScore(tuple(trees), 0.0, is_probability=True, in_single=True)


def _cant(what: Any, why: str) -> CantExportError:
    return CantExportError(
        f"{type(what).__name__} can't be exported to ONNX: {why}. These can: "
        f"{EXPORTED}."
    )
