"""What a joint fit refuses, and what it reports of its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.utils.validation import validate_data

from missratio._base.blocks import unmasked
from missratio._base.hints import listed
from missratio._base.typing import FloatArray
from missratio.exceptions import DataError, Message, Remedy
from missratio.missingness.arrays import column_names
from missratio.objective import Objective
from missratio.ratio._base import BaseRatio, SolverName, check_choice
from missratio.ratio._parts import (
    JointProblem,
    JointSolution,
    Part,
    constant_features,
)
from missratio.ratio._penalty import PenaltyWeights
from missratio.rows import Normalization

# Squares of larger features, and of smaller ones than its inverse, leave the range.
LARGEST = 1e150
CHOICES = {
    "normalize": get_args(Normalization),
    "solver": get_args(SolverName),
    "fallback": ("raise", "naive-bayes"),
    "penalty_weights": get_args(PenaltyWeights),
}


def check_parameters(estimator: Any, objective: Objective) -> None:
    """Refuse parameters of a joint fit that have no meaning."""
    for name, choices in CHOICES.items():
        check_choice(name, getattr(estimator, name), choices)
    if estimator.normalize == "regression" and not objective.linear_numerator:
        raise ValueError(
            "normalize='regression' is for objectives in which the numerator enters "
            f"through means, as KLIEP's; got {estimator!r}. Use 'hajek' or "
            "'horvitz-thompson'."
        )
    if not estimator.tol > 0.0 or not estimator.max_iter >= 1:
        raise ValueError(
            f"tol must be above 0 and max_iter at least 1, got {estimator.tol!r} and "
            f"{estimator.max_iter!r}."
        )


def stack_samples(X1: Any, X0: Any) -> tuple[Any, Any]:
    """Two tables as one labelled table."""
    check_columns(X1, X0)
    frames = [nw.from_native(X, eager_only=True, pass_through=True) for X in (X1, X0)]
    labels = np.repeat([1, 0], [len(X1), len(X0)])
    if all(isinstance(frame, nw.DataFrame) for frame in frames):
        return nw.concat(frames, how="vertical").to_native(), labels
    return np.concatenate([np.asarray(unmasked(X)) for X in (X1, X0)]), labels


def read_two_samples(
    estimator: BaseRatio, X1: Any, X0: Any
) -> tuple[FloatArray, FloatArray]:
    """Validate a numerator and a denominator table of the same columns."""
    check_columns(X1, X0)
    tables = [
        validate_data(
            estimator,
            unmasked(X),
            reset=True,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
        )
        for X in (X1, X0)
    ]
    validate_data(estimator, X1, reset=False, skip_check_array=True)
    estimator.classes_ = np.array([0, 1])
    return tables[0], tables[1]


def check_columns(X1: Any, X0: Any) -> None:
    """Refuse tables of different columns: other names, another order or number."""
    ours, others = column_names(X1), column_names(X0)
    if ours is not None and others is not None and ours != others:
        raise ValueError(
            f"X1 has the columns {listed(ours, 5)} and X0 has {listed(others, 5)}: "
            "both samples must have the same columns, in the same order."
        )
    shapes = np.shape(X1), np.shape(X0)
    if len(shapes[0]) == len(shapes[1]) == 2 and shapes[0][1] != shapes[1][1]:
        raise ValueError(
            f"X1 has {shapes[0][1]} columns and X0 has {shapes[1][1]}: both samples "
            "must have the same columns."
        )


def check_log_linear(estimator: Any) -> None:
    """Refuse the identity link where log ratios are added up."""
    if not estimator._is_log_linear():
        raise ValueError(
            f"{estimator!r} models the ratio itself, not its logarithm. Use link='log'."
        )


def check_rank(
    problem: JointProblem, label: Any, names: Callable[[], Any], penalty: FloatArray
) -> None:
    """Refuse, where there is no penalty, what can't have a single optimum.

    Parameters
    ----------
    problem : JointProblem
    label : object
        The denominator class, for messages.
    names : callable
        Gives the features' names.
    penalty : ndarray of shape (n_features,)
    """
    if not penalty.all():
        for part in problem.parts:
            _check_part(part, label, names, penalty)


def _check_part(
    part: Part, label: Any, names: Callable[[], Any], penalty: FloatArray
) -> None:
    free = penalty[part.features] == 0.0
    n_rows, n_features = part.problem.n_rows, int(free.sum(axis=1).max())
    if n_rows <= n_features:
        joint = len(part.features) == 1
        rows = "observed rows" if joint else "rows"
        what = "features" if joint else "basis features a column"
        raise DataError(
            Message(
                "Class {label!r} has {n_rows} {rows} (n_samples = {n_rows}) for "
                "{n_features} {what}: without a penalty there is no finite optimum.",
                label=label,
                remedies=(Remedy.PENALTY, Remedy.FEWER_FEATURES, Remedy.MORE_ROWS),
                facts={
                    "n_rows": n_rows,
                    "rows": rows,
                    "n_features": n_features,
                    "what": what,
                },
            )
        )
    constant = part.features[constant_features(part.problem.denominator) & free]
    if len(constant):
        columns = np.sort(constant)
        raise DataError(
            Message(
                "Feature(s) [{columns}] are constant over the observed rows of class "
                "{label!r}: their coefficients are not determined.",
                label=label,
                columns=tuple(columns.tolist()),
                names=tuple(str(name) for name in names()[columns]),
                remedies=(Remedy.DROP_COLUMNS, Remedy.PENALTY),
            )
        )


def check_scale(problem: JointProblem) -> None:
    """Refuse features whose squares leave the range of floating point."""
    for part in problem.parts:
        few = part.problem.denominator.peek().astype(np.float64, copy=False)
        if not part.problem.denominator.centred:
            few = few - part.problem.centre[:, None, :]
        size = np.abs(few).max(axis=1)
        odd = (size > LARGEST) | ((size > 0.0) & (size < 1.0 / LARGEST))
        if odd.any():
            raise DataError(
                Message(
                    "Feature(s) [{columns}] have values of size {size:.2g}, whose "
                    "squares floating point can't hold.",
                    columns=(int(part.features[odd][0]),),
                    remedies=(
                        "scale the columns, to a standard deviation of about one",
                    ),
                    facts={"size": size[odd][0]},
                )
            )


def check_finite(solution: JointSolution) -> None:
    """Refuse sums that overflowed."""
    values = (*solution.coef, *solution.intercepts)
    if not np.isfinite(values).all():
        raise ValueError(
            "The features have values so large that their weighted sums overflow. "
            "Scale the columns, to a standard deviation of about one."
        )
