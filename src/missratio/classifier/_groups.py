"""The groups that rows are in."""

from __future__ import annotations

import warnings
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.utils.validation import check_consistent_length

from missratio._base.hints import another_type, listed
from missratio._base.typing import BoolArray, IntArray

SHOWN = 5


class UnknownGroupWarning(UserWarning):
    """Rows are of groups that have no threshold, and get the controlled class."""


def read_groups(groups: Any, X: Any, instead: str = "such as 'unknown'") -> Any:
    """The group of each row.

    Parameters
    ----------
    groups : array-like of shape (n_rows,)
    X : array-like or dataframe of shape (n_rows, n_columns)
    instead : str
        What to give a row that has none.
    """
    members = np.asarray(groups, dtype=object)
    if members.ndim != 1:
        what = "None" if groups is None else f"shape {members.shape}"
        raise ValueError(
            f"groups must hold one label for each row: got {what}. To cross several "
            "columns, join them into one, such as 'old/north'."
        )
    check_consistent_length(X, members)
    missing = [g is None or g != g for g in members.tolist()]
    if any(missing):
        raise ValueError(
            f"{sum(missing)} row(s) have no group. Give each row one, {instead}."
        )
    return members


def read_units(groups: Any, X: Any) -> IntArray:
    """The unit of each row, as a number."""
    members = read_groups(groups, X, "and one of its own where its unit is not known")
    numbers = {unit: place for place, unit in enumerate(dict.fromkeys(members))}
    return np.array([numbers[unit] for unit in members], dtype=np.intp)


def one_of_each(units: IntArray, rows: IntArray, rng: np.random.Generator) -> IntArray:
    """One row of each unit, drawn at random among these rows; in their order."""
    drawn = rng.permutation(rows)
    return np.sort(drawn[np.unique(units[drawn], return_index=True)[1]])


def warn_of_unknown_groups(members: list[Any], known: list[Any]) -> None:
    """Warn where rows are of groups that have no threshold."""
    have = set(known)
    unknown = [group for group in members if group not in have]
    if not unknown:
        return
    names = sorted(set(unknown), key=str)
    hint = next(filter(None, (another_type(name, known) for name in names)), "")
    warnings.warn(
        f"{len(unknown)} of {len(members)} row(s) are of groups without a threshold, "
        f"and get the controlled class: {listed(names, SHOWN)}. The groups with "
        f"one are {listed(known[:SHOWN])}{' …' if len(known) > SHOWN else ''}.{hint}",
        UnknownGroupWarning,
        stacklevel=3,
    )


def shares_by_group(members: Any, predicted: BoolArray, is_other: BoolArray) -> Any:
    """For each group its rows of either class, the error and the power, as a table.

    Parameters
    ----------
    members : ndarray of shape (n_rows,)
        The group of each row.
    predicted, is_other : ndarray of bool of shape (n_rows,)
        Which rows were given to the other class, and which are of it.
    """
    names = sorted(set(members.tolist()), key=str)
    columns: dict[str, list[Any]] = {
        "group": [str(name) for name in names],
        "controlled_rows": [],
        "other_rows": [],
        "error": [],
        "power": [],
    }
    for name in names:
        for kind, rows, share in (
            (~is_other, "controlled_rows", "error"),
            (is_other, "other_rows", "power"),
        ):
            own = kind & (members == name)
            columns[rows].append(int(own.sum()))
            columns[share].append(float(predicted[own].mean()) if own.any() else np.nan)
    return nw.from_dict(columns, backend="pandas").to_native()
