"""Learning φ from observed values and a few that were missing and then looked up."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from missratio._blocks import any_by_row
from missratio._hints import did_you_mean
from missratio._typing import FloatArray
from missratio.learning._evidence import Evidence, Fits, fit_evidence
from missratio.learning._learned import LearnedMissingness, covariance_of
from missratio.missingness.arrays import (
    as_frame,
    as_numeric_array,
    check_no_partial_row,
    column_name,
    float_blocks,
    listed,
)

METHODS = ("firth", "ml")


def learn_missingness(
    X: Any,
    revealed: Any,
    method: Literal["firth", "ml"] = "firth",
    *,
    rowwise: bool = False,
) -> LearnedMissingness:
    """Learn a logistic φ from observed values and from missing ones that were revealed.

    For each feature a logistic regression of "was missing" on the value, over the
    observed values and the m revealed ones; as only m of n_missing are known, the
    intercept is then lowered by log(m / n_missing) (King and Zeng 2001; the paper's
    section on learning φ). The revealed ones must be drawn by chance among the missing.

    Parameters
    ----------
    X : array-like or dataframe of shape (n, d)
        The rows of one class, NaN where missing.
    revealed : array-like or dataframe of shape (n, d)
        Values of cells that are missing in X and were looked up; NaN elsewhere.
    method : {"firth", "ml"}, default="firth"
        Firth's penalised likelihood, which is nearly unbiased with few revealed values
        and finite where these are separated from the observed ones; its intercept is
        then set so that the fit reproduces the number revealed. Or plain maximum
        likelihood.
    rowwise : bool, default=False
        Whole rows are missing, with φ logistic in all features.

    Returns
    -------
    LearnedMissingness
        A `LogisticMissingness` with covariance, a confidence band and more.

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(2000, 1))
    >>> X = mr.corrupt(Z, mr.LogisticMissingness(-1.0, 1.5), rng)
    >>> missing = np.flatnonzero(np.isnan(X))
    >>> revealed = np.full_like(X, np.nan)
    >>> looked_up = rng.choice(missing, 60, replace=False)
    >>> revealed[looked_up] = Z[looked_up]
    >>> phi = mr.learn_missingness(X, revealed)
    >>> phi.coef.round(2), phi.standard_errors[:, 1].round(2)
    (array([1.62]), array([0.18]))
    """
    if method not in METHODS:
        hint = did_you_mean(str(method), METHODS)
        raise ValueError(
            f"method must be one of {list(METHODS)}, got {method!r}.{hint}"
        )
    table, answers = as_numeric_array(X), as_numeric_array(revealed)
    names = _names(X, table.shape[1])
    _check_columns(X, revealed, names)
    _check(table, answers, X)
    collect = _of_rows if rowwise else _of_features
    evidence = collect(table, answers, names)
    fits = _fit(evidence, method, names)
    if rowwise:
        return _whole_row_model(evidence[0], fits, method, names)
    return _feature_model(evidence, fits, method, names)


def _check_columns(X: Any, revealed: Any, names: tuple[str, ...]) -> None:
    """Two dataframes are matched by place, so that names must be the same."""
    frame = as_frame(revealed)
    if frame is None or as_frame(X) is None:
        return
    found = tuple(frame.columns)
    if len(found) == len(names) and found != names:
        raise ValueError(
            f"revealed must have the columns of X, {listed(names)}, in their order: "
            f"got {listed(found)}."
        )


def _check(table: NDArray[Any], answers: NDArray[Any], source: Any) -> None:
    if table.shape != answers.shape:
        raise ValueError(
            f"revealed must have the shape of X: got {answers.shape} and {table.shape}."
            " Put NaN where nothing was looked up."
        )
    for rows, block in float_blocks(table, source):
        values = answers[rows]
        contradicted = ~np.isnan(block) & ~np.isnan(values)
        if contradicted.any() or np.isinf(values).any():
            bad = contradicted | np.isinf(values)
            row, column = np.argwhere(bad)[0]
            where = f"row {rows.start + row}, column {column_name(source, int(column))}"
            why = "isn't missing in X" if contradicted[row, column] else "is infinite"
            raise ValueError(
                f"revealed has {values[row, column]} at {where}, which {why}. Only "
                "cells that are missing can be revealed, by finite values."
            )


def _names(X: Any, width: int) -> tuple[str, ...]:
    frame = as_frame(X)
    return tuple(frame.columns) if frame is not None else tuple(map(str, range(width)))


def _of_features(
    table: NDArray[Any], answers: NDArray[Any], names: tuple[str, ...]
) -> list[Evidence | None]:
    """Each feature's evidence; None where it is never missing."""
    evidence: list[Evidence | None] = []
    unknown, unseen = [], []
    for j, name in enumerate(names):
        column = table[:, j].astype(np.float64, copy=False)
        known = answers[:, j].astype(np.float64, copy=False)
        observed, looked_up = column[~np.isnan(column)], known[~np.isnan(known)]
        n_missing = len(column) - len(observed)
        if n_missing == 0:
            evidence.append(None)
            continue
        unknown += [] if len(looked_up) else [name]
        unseen += [] if len(observed) else [name]
        if len(looked_up) and len(observed):
            found = Evidence.collect(observed[None], looked_up[None], n_missing)
            evidence.append(found if not found.constant[0] else found.without_slope())
    if unseen:
        raise ValueError(
            f"Column(s) {listed(unseen)} are never observed: what is always missing "
            "can't be weighted back. Leave them out."
        )
    if unknown:
        raise ValueError(
            f"Column(s) {listed(unknown)} have missing values and none revealed: why "
            "they are missing can't be learned. Look up some of them (plan_queries "
            "says which), or leave the columns out."
        )
    return evidence


def _of_rows(
    table: NDArray[Any], answers: NDArray[Any], names: tuple[str, ...]
) -> list[Evidence | None]:
    check_no_partial_row(table, 0)
    lost = any_by_row(np.isnan(table))
    known = ~any_by_row(np.isnan(answers))
    partial = ~known & any_by_row(~np.isnan(answers))
    if partial.any():
        raise ValueError(
            f"revealed has some but not all entries of row {int(np.argmax(partial))}: "
            "a rowwise model needs whole rows. Look up the rest, or set them to NaN."
        )
    if not lost.any():
        return [None]
    if lost.all() or not known.any():
        what = "observed in X" if lost.all() else "revealed"
        raise ValueError(
            f"No row is {what}: why rows are missing can't be learned without. Look up "
            "some missing rows, and give observed ones."
        )
    rows = (table[~lost].T, answers[known].T)
    observed, looked_up = (np.ascontiguousarray(r, dtype=np.float64) for r in rows)
    evidence = Evidence.collect(observed, looked_up, int(lost.sum()))
    if evidence.constant.any():
        flat = [names[j] for j in np.flatnonzero(evidence.constant)]
        raise ValueError(
            f"Column(s) {listed(flat)} are constant: their slope can't be learned. "
            "Leave them out."
        )
    return [evidence]


def _fit(
    evidence: list[Evidence | None], method: str, names: tuple[str, ...]
) -> dict[int, tuple[FloatArray, Evidence]]:
    """Parameters by place, intercepts not yet corrected; features of a kind at once."""
    result: dict[int, tuple[FloatArray, Evidence]] = {}
    widths = {len(e.values) for e in evidence if e is not None}
    for width in sorted(widths):
        of_width = {
            j: e
            for j, e in enumerate(evidence)
            if e is not None and len(e.values) == width
        }
        fits = fit_evidence(list(of_width.values()), penalised=method == "firth")
        _check_fits(fits, [names[j] if len(evidence) > 1 else "rows" for j in of_width])
        for i, (j, e) in enumerate(of_width.items()):
            result[j] = (fits.theta[i], e)
    return result


def _check_fits(fits: Fits, names: list[str]) -> None:
    separated = [names[i] for i in np.flatnonzero(fits.separated)]
    if separated:
        raise ValueError(
            f"In {listed(separated)} the revealed values are separated from the "
            "observed ones, so that no maximum of the likelihood exists. Use "
            "method='firth', or look up more values."
        )
    if not fits.converged.all():
        failed = [names[i] for i in np.flatnonzero(~fits.converged)]
        warnings.warn(
            f"The missingness of {listed(failed)} was not learned to full precision: "
            "its values may be on very different scales. Rescale them, and look for "
            "outliers.",
            ConvergenceWarning,
            stacklevel=4,
        )


def _feature_model(
    evidence: list[Evidence | None],
    fits: dict[int, tuple[FloatArray, Evidence]],
    method: str,
    names: tuple[str, ...],
) -> LearnedMissingness:
    width = len(names)
    intercept, coef = np.full(width, -np.inf), np.zeros(width)
    covariance = np.zeros((width, 2, 2))
    for j, (theta, found) in fits.items():
        intercept[j] = theta[0] - found.sampling_offset
        coef[j] = theta[1] if len(theta) > 1 else 0.0
        size = len(theta)
        covariance[j, :size, :size] = covariance_of(found, theta)
    return LearnedMissingness(
        intercept, coef, False, covariance, tuple(evidence), method, names
    )


def _whole_row_model(
    evidence: Evidence | None,
    fits: dict[int, tuple[FloatArray, Evidence]],
    method: str,
    names: tuple[str, ...],
) -> LearnedMissingness:
    width = len(names)
    if evidence is None:
        covariance = np.zeros((1 + width, 1 + width))
        return LearnedMissingness(
            -np.inf, np.zeros(width), True, covariance, (None,), method, names
        )
    theta, found = fits[0]
    return LearnedMissingness(
        theta[0] - found.sampling_offset,
        theta[1:],
        True,
        covariance_of(found, theta),
        (evidence,),
        method,
        names,
    )
