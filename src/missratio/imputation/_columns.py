"""Numbers and categories: a table as numbers, and back again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from missratio._base.hints import did_you_mean, listed
from missratio._base.reading import as_frame, as_numeric_array
from missratio._base.typing import BoolArray, FloatArray

Categories = tuple[Any, ...]
SHOWN = 5
WORDS = (nw.String, nw.Categorical, nw.Enum, nw.Object)


@dataclass(frozen=True)
class Columns:
    """Which columns are categories, and which categories there are.

    A number is itself, and so is a category that is a number. Any other category is
    its place among the sorted categories, 0, 1, …: that is what φ sees.

    Parameters
    ----------
    names : tuple of str
        For messages: labels in a dataframe, else positions.
    categories : tuple of (tuple or None)
        The sorted categories of each column; None for numbers.
    """

    names: tuple[str, ...]
    categories: tuple[Categories | None, ...]

    @classmethod
    def read(cls, X: Any, categorical: Any) -> Columns:
        """Find the categories of a table.

        Parameters
        ----------
        X : ndarray or dataframe of shape (n, d)
        categorical : "auto", or array-like of names, positions or bool
            "auto": what isn't a number in a dataframe.
        """
        frame = as_frame(X)
        if frame is None:
            names = tuple(str(j) for j in range(X.shape[1]))
            chosen = _chosen(categorical, names, np.zeros(len(names), dtype=bool))
        else:
            names = tuple(frame.columns)
            words = [
                dtype == nw.Boolean or dtype in WORDS for dtype in frame.schema.values()
            ]
            chosen = _chosen(categorical, names, np.array(words))
        categories = [
            _sorted_categories(_values(X, frame, j), names[j]) if chosen[j] else None
            for j in range(len(names))
        ]
        return cls(names, tuple(categories))

    def encode(self, X: Any) -> FloatArray:
        """The table as numbers, NaN where missing, column-major.

        Raises
        ------
        ValueError
            Where a column of numbers has others, or a category wasn't there before.
        """
        frame = as_frame(X)
        table = np.empty((X.shape[0], len(self.names)), order="F")
        numeric = [j for j, known in enumerate(self.categories) if known is None]
        if numeric:
            part = X[:, numeric] if frame is None else frame[:, numeric].to_native()
            table[:, numeric] = as_numeric_array(part)
        for j, known in enumerate(self.categories):
            if known is not None:
                table[:, j] = self._encode_categories(_values(X, frame, j), j, known)
        return table

    def _encode_categories(
        self, values: Sequence[Any], column: int, known: Categories
    ) -> FloatArray:
        code = dict(zip(known, category_codes(known), strict=True))
        try:
            return np.array([np.nan if v is None else code[v] for v in values])
        except KeyError as error:
            raise ValueError(
                f"Column {self.names[column]!r} has the category {error.args[0]!r}, "
                f"which it had not when fitted: there were {listed(known, SHOWN)}. "
                "Fit with rows that have it."
            ) from None

    def complete(self, X: Any, table: FloatArray, missing: BoolArray) -> Any:
        """X with what is missing taken from a table of numbers; X's kind and dtypes."""
        frame = as_frame(X)
        columns = np.flatnonzero(missing.any(axis=0)).tolist()
        if frame is None:
            return self._complete_array(X, table, columns, missing)
        series = []
        for j in columns:
            decoded = self._decode(table[:, j], j)
            name, dtype = frame.columns[j], frame.schema[frame.columns[j]]
            new = nw.new_series(name, decoded, backend=frame.implementation)
            series.append(new if dtype == nw.Object else new.cast(dtype))
        return frame.with_columns(*series).to_native() if series else X

    def _complete_array(
        self, X: Any, table: FloatArray, columns: list[int], missing: BoolArray
    ) -> Any:
        if X.dtype.kind != "O":
            return np.array(table, dtype=X.dtype if X.dtype.kind == "f" else float)
        result = X.copy()
        for j in columns:
            decoded = np.array(self._decode(table[:, j], j), dtype=object)
            result[missing[:, j], j] = decoded[missing[:, j]]
        return result

    def _decode(self, numbers: FloatArray, column: int) -> Any:
        known = self.categories[column]
        if known is None:
            return numbers.copy()
        place = np.searchsorted(category_codes(known), numbers)
        return [known[i] for i in place.tolist()]


def category_codes(categories: Categories) -> FloatArray:
    """What φ sees: categories that are numbers as they are, others as their places."""
    if all(isinstance(value, (int, float, bool, np.number)) for value in categories):
        return np.array(categories, dtype=np.float64)
    return np.arange(len(categories), dtype=np.float64)


def _values(X: Any, frame: nw.DataFrame[Any] | None, column: int) -> list[Any]:
    """The values of a column, None where missing."""
    values = X[:, column].tolist() if frame is None else frame[:, column].to_list()
    return [None if v is None or v != v else v for v in values]


def _sorted_categories(values: Sequence[Any], name: str) -> Categories:
    try:
        return tuple(sorted({value for value in values if value is not None}))
    except TypeError as error:
        raise ValueError(
            f"The categories of column {name!r} must be of one type, so that they can "
            f"be sorted: {error}. Turn them into strings."
        ) from error


def _chosen(categorical: Any, names: Sequence[str], automatic: BoolArray) -> BoolArray:
    if isinstance(categorical, str) and categorical == "auto":
        return automatic
    given = [] if categorical is None else np.asarray(categorical).ravel().tolist()
    if len(given) == len(names) and all(isinstance(each, bool) for each in given):
        return np.array(given)
    chosen = np.zeros(len(names), dtype=bool)
    for each in given:
        if each in names:
            chosen[names.index(each)] = True
        elif isinstance(each, int) and -len(names) <= each < len(names):
            chosen[each] = True
        else:
            raise ValueError(
                f"categorical_features must be 'auto', or name columns of X: got "
                f"{each!r}, and X has {listed(names, SHOWN)}."
                f"{did_you_mean(str(each), names)}"
            )
    return chosen
