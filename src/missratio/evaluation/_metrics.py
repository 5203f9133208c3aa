"""Errors of the two kinds, with exact intervals."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import ArrayLike
from scipy.stats import beta
from sklearn.metrics import make_scorer
from sklearn.utils.validation import check_consistent_length, column_or_1d


class Interval(NamedTuple):
    """A confidence interval for a probability."""

    low: float
    high: float


def exact_interval(n_events: int, n_rows: int, confidence: float = 0.95) -> Interval:
    """Clopper and Pearson's interval for a probability, from n_events of n_rows.

    Parameters
    ----------
    n_events, n_rows : int
    confidence : float, default=0.95

    Returns
    -------
    Interval

    Examples
    --------
    >>> from missratio import exact_interval
    >>> interval = exact_interval(5, 100)
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.016, 0.113)
    """
    if not 0 <= n_events <= n_rows or n_rows == 0:
        raise ValueError(
            f"n_events must lie between 0 and n_rows > 0, got {n_events} of {n_rows}."
        )
    if not 0.0 < confidence < 1.0:
        raise ValueError(
            f"confidence must lie strictly between 0 and 1, got {confidence}."
        )
    tail = (1.0 - confidence) / 2.0
    low = beta.ppf(tail, n_events, n_rows - n_events + 1) if n_events else 0.0
    high = 1.0
    if n_events < n_rows:
        high = beta.ppf(1.0 - tail, n_events + 1, n_rows - n_events)
    return Interval(float(low), float(high))


def _wrong(
    y_true: ArrayLike, y_pred: ArrayLike, controlled_class: Any, *, of_controlled: bool
) -> tuple[int, int]:
    """How many rows of one class there are, and how many are classified wrongly."""
    truth, predicted = column_or_1d(y_true), column_or_1d(y_pred)
    check_consistent_length(truth, predicted)
    rows = (truth == controlled_class) == of_controlled
    n_rows = int(rows.sum())
    if n_rows == 0:
        which = "the controlled" if of_controlled else "the other"
        raise ValueError(
            f"y_true has no row of {which} class (controlled_class="
            f"{controlled_class!r}): its error can't be told."
        )
    said_controlled = predicted[rows] == controlled_class
    return int((said_controlled != of_controlled).sum()), n_rows


def type_i_error(
    y_true: ArrayLike, y_pred: ArrayLike, *, controlled_class: Any = 0
) -> float:
    """Share of the controlled class's rows that are given to the other class.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
    controlled_class : object, default=0

    Returns
    -------
    float

    Examples
    --------
    >>> from missratio import type_i_error
    >>> type_i_error([0, 0, 0, 0, 1], [0, 1, 0, 0, 1])
    0.25
    """
    wrong, rows = _wrong(y_true, y_pred, controlled_class, of_controlled=True)
    return wrong / rows


def type_ii_error(
    y_true: ArrayLike, y_pred: ArrayLike, *, controlled_class: Any = 0
) -> float:
    """Share of the other class's rows that are given to the controlled class.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
    controlled_class : object, default=0

    Returns
    -------
    float
    """
    wrong, rows = _wrong(y_true, y_pred, controlled_class, of_controlled=False)
    return wrong / rows


def power(y_true: ArrayLike, y_pred: ArrayLike, *, controlled_class: Any = 0) -> float:
    """Share of the other class's rows that are recognised: one minus the type II error.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
    controlled_class : object, default=0

    Returns
    -------
    float
    """
    return 1.0 - type_ii_error(y_true, y_pred, controlled_class=controlled_class)


def type_i_interval(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    controlled_class: Any = 0,
    confidence: float = 0.95,
) -> Interval:
    """Exact confidence interval of the type I error.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
    controlled_class : object, default=0
    confidence : float, default=0.95

    Returns
    -------
    Interval
    """
    wrong, rows = _wrong(y_true, y_pred, controlled_class, of_controlled=True)
    return exact_interval(wrong, rows, confidence)


def power_interval(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    controlled_class: Any = 0,
    confidence: float = 0.95,
) -> Interval:
    """Exact confidence interval of the power.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
    controlled_class : object, default=0
    confidence : float, default=0.95

    Returns
    -------
    Interval
    """
    wrong, rows = _wrong(y_true, y_pred, controlled_class, of_controlled=False)
    return exact_interval(rows - wrong, rows, confidence)


def error_scorer(kind: str, controlled_class: Any = 0) -> Any:
    """A scorer for cross-validation and grid search.

    Parameters
    ----------
    kind : {"type_i_error", "type_ii_error", "power"}
        Errors are negated, so that larger is better.
    controlled_class : object, default=0

    Returns
    -------
    callable
        As from `sklearn.metrics.make_scorer`.

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> from sklearn.model_selection import cross_val_score
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (600, 2)), rng.normal(1.5, 1, (600, 2))])
    >>> y = np.repeat([0, 1], 600)
    >>> clf = mr.NeymanPearsonClassifier(mr.KLIEP(), alpha=0.1, random_state=0)
    >>> scores = cross_val_score(clf, X, y, scoring=mr.error_scorer("power"))
    >>> bool(scores.mean() > 0.6)
    True
    """
    functions = {
        "type_i_error": type_i_error,
        "type_ii_error": type_ii_error,
        "power": power,
    }
    if kind not in functions:
        raise ValueError(f"kind must be one of {list(functions)}, got {kind!r}.")
    return make_scorer(
        functions[kind],
        greater_is_better=kind == "power",
        controlled_class=controlled_class,
    )
