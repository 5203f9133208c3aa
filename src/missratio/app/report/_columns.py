"""The columns of a table: names, values where they are numbers, what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from scipy.sparse import issparse

from missratio._base.typing import BoolArray, FloatArray


class Column(NamedTuple):
    """One column.

    Parameters
    ----------
    name : str
    values : ndarray of shape (n,), or None
        None where they aren't numbers.
    missing : ndarray of bool of shape (n,)
    """

    name: str
    values: FloatArray | None
    missing: BoolArray


@dataclass(frozen=True)
class Names:
    """What the features are called, and which columns of a table they come from.

    Parameters
    ----------
    features : tuple of str
    origins : tuple of str
        The original column of each feature: several of one, where it has categories.
    blank : tuple of bool
        Which features say that their column is blank.
    """

    features: tuple[str, ...]
    origins: tuple[str, ...]
    blank: tuple[bool, ...]

    @classmethod
    def of(
        cls,
        features: Sequence[str],
        origins: Sequence[str] | None = None,
        blank: Sequence[bool] | None = None,
    ) -> Names:
        """Names of features that are columns themselves, unless told otherwise.

        Parameters
        ----------
        features : sequence of str
        origins : sequence of str, optional
        blank : sequence of bool, optional
        """
        return cls(
            tuple(features),
            tuple(features if origins is None else origins),
            (False,) * len(features) if blank is None else tuple(blank),
        )

    @property
    def columns(self) -> list[str]:
        """The original columns, each once."""
        return list(dict.fromkeys(self.origins))

    def members(self) -> list[list[int]]:
        """The places of the features of each original column."""
        places: dict[str, list[int]] = {name: [] for name in self.columns}
        for j, origin in enumerate(self.origins):
            places[origin].append(j)
        return list(places.values())

    def missing(self, X: Any) -> BoolArray:
        """Which rows lack which original columns; no column of a sparse table.

        Parameters
        ----------
        X : array or dataframe of shape (n, d)

        Returns
        -------
        ndarray of bool of shape (n, n_columns)
        """
        found: list[BoolArray] = []
        place = {name: k for k, name in enumerate(self.columns)}
        for j, column in enumerate(columns_of(X, list(self.features))):
            lost = column.missing
            if self.blank[j] and column.values is not None:
                lost = lost | (column.values == 1.0)
            k = place[self.origins[j]]
            if k == len(found):
                found.append(lost)
            else:
                found[k] = found[k] | lost
        if not found:
            return np.zeros((X.shape[0], 0), dtype=bool)
        return np.column_stack(found)


def columns_of(X: Any, names: list[str]) -> Iterator[Column]:
    """Each column of an array or dataframe; none of a sparse table.

    Parameters
    ----------
    X : array or dataframe of shape (n, d)
    names : list of str
        Of an array's columns.
    """
    if issparse(X):
        return
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        for name in frame.columns:
            yield _of_series(str(name), frame.get_column(name))
        return
    table = np.asarray(X)
    for j in range(table.shape[1]):
        yield _of_array(names[j], table[:, j])


def _of_series(name: str, column: nw.Series[Any]) -> Column:
    missing = column.is_null().to_numpy().astype(bool)
    if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
        return Column(name, None, missing)
    values = column.cast(nw.Float64).fill_null(np.nan).to_numpy().astype(np.float64)
    return Column(name, values, missing | np.isnan(values))


def _of_array(name: str, column: Any) -> Column:
    if column.dtype.kind in "fiub":
        values = column.astype(np.float64)
        return Column(name, values, np.isnan(values))
    missing = np.array([v is None or v != v for v in column.tolist()], dtype=bool)
    return Column(name, None, missing)
