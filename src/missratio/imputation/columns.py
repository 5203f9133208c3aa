"""Columns as models see them: numbers and categories, and the levels that they take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy.special import ndtri

from missratio._base.hints import listed
from missratio._base.reading import (
    as_frame,
    as_numeric_array,
    category_codes,
    column_places,
    column_values,
    names_or_numbers,
)
from missratio._base.storable import storable
from missratio._base.typing import BoolArray, FloatArray, IntArray

Categories = tuple[Any, ...]
SHOWN = 5
WORDS = (nw.String, nw.Categorical, nw.Enum, nw.Object, nw.Boolean)


@storable()
@dataclass(frozen=True)
class Columns:
    """Which columns are categories, and which categories there are.

    A number is itself, and so is a category that is a number. Any other category is
    its place among the sorted categories, 0, 1, …: that is what φ sees.
    """

    # For messages: labels in a dataframe, else positions.
    names: tuple[str, ...]
    # The sorted categories of each column, and what φ sees of them; None for numbers.
    categories: tuple[Categories | None, ...]
    codes: tuple[Any, ...]

    @classmethod
    def read(cls, X: Any, categorical: Any) -> Columns:
        """Find the categories of a table."""
        # 1. Which columns have them: those of words, or those that are named.
        frame = as_frame(X)
        names = names_or_numbers(X, X.shape[1])
        dtypes = [] if frame is None else list(frame.schema.values())
        chosen = [j for j, dtype in enumerate(dtypes) if dtype in WORDS]
        if not isinstance(categorical, str):
            given = [] if categorical is None else np.ravel(categorical).tolist()
            chosen = column_places(given, names, "categorical_features").tolist()
        # 2. The categories of each.
        categories: list[Categories | None] = [None] * len(names)
        codes: list[Any] = [None] * len(names)
        for j in chosen:
            try:
                seen = {*_values(X, frame, j)} - {None}
                declared: list[Any] = []
                if frame is not None and dtypes[j] in (nw.Categorical, nw.Enum):
                    declared = frame[:, j].cat.get_categories().to_list()
                every = sorted(seen.union(declared))
                categories[j] = tuple(level for level in every if level in seen)
                codes[j] = category_codes(every)[[level in seen for level in every]]
            except TypeError as error:
                raise ValueError(
                    f"The categories of column {names[j]!r} must be of one type, so "
                    f"that they can be sorted: {error}. Turn them into strings."
                ) from error
        return cls(names, tuple(categories), tuple(codes))

    def encode(self, X: Any) -> FloatArray:
        """The table as numbers, NaN where missing, column-major."""
        frame = as_frame(X)
        table = np.empty((X.shape[0], len(self.names)), order="F")
        numeric = [j for j, known in enumerate(self.categories) if known is None]
        if numeric:
            part = X[:, numeric] if frame is None else frame[:, numeric].to_native()
            table[:, numeric] = as_numeric_array(part)
        for j, known in enumerate(self.categories):
            if known is None:
                continue
            code = dict(zip(known, self.codes[j], strict=True)) | {None: np.nan}
            try:
                table[:, j] = [code[value] for value in _values(X, frame, j)]
            except KeyError as error:
                raise ValueError(
                    f"Column {self.names[j]!r} has the category {error.args[0]!r}, "
                    f"which it had not when fitted: there were {listed(known, SHOWN)}. "
                    "Fit with rows that have it."
                ) from None
        return table

    def complete(self, X: Any, table: FloatArray, missing: BoolArray) -> Any:
        """X with what is missing taken from a table of numbers; X's kind and dtypes."""
        frame = as_frame(X)
        columns = np.flatnonzero(missing.any(axis=0)).tolist()
        if frame is None:
            return np.array(table, dtype=X.dtype if X.dtype.kind == "f" else float)
        series = []
        for j in columns:
            column, known, values = frame[:, j], self.categories[j], table[:, j].copy()
            if known is None:
                new = nw.new_series(column.name, values, backend=frame.implementation)
                series.append(new.cast(column.dtype))
                continue
            (rows,) = np.nonzero(missing[:, j])
            places = np.searchsorted(self.codes[j], values[rows])
            series.append(column.scatter(rows.tolist(), [known[i] for i in places]))
        return frame.with_columns(*series).to_native() if series else X


def _values(X: Any, frame: nw.DataFrame[Any] | None, column: int) -> list[Any]:
    """The values of a column, None where missing."""
    if frame is not None:
        return column_values(frame[:, column])
    return [None if v is None or v != v else v for v in X[:, column].tolist()]


_TAIL = 1e-9
_TIED_SHARE = 0.1
# To look up a level is several times faster than to search for it; the grid is finer
# than 0.0002 standard deviations.
_GRID = 2**16
_LARGEST = 6.0
_CELLS = _GRID / (2 * _LARGEST)


@storable()
@dataclass(frozen=True)
class NumericLevels:
    """Numbers, seen as normal scores Φ⁻¹(F(z)).

    F is the distribution of the complete column, estimated with weights 1/(1 − φ);
    where values tie it is taken halfway up its step. However skewed a column is, linear
    models then suit it as they suit normal ones (a Gaussian copula). A value that makes
    up a tenth of the column, such as zero among amounts, is a matter of its own: F is
    the distribution of the others, and models also see whether it is that value.
    """

    # Sorted values, and their scores.
    values: FloatArray
    scores: FloatArray
    # F⁻¹(Φ(score)), as places, on an even grid of scores.
    inverse: IntArray
    # The place of the value that makes up a tenth or more, and the most.
    spike: int | None
    # Whether another makes up a tenth of the rest.
    ties: bool

    @classmethod
    def build(
        cls, observed: FloatArray, weights: FloatArray
    ) -> tuple[NumericLevels, IntArray]:
        """The levels of observed values, and each one's place among them."""
        values, places = np.unique(observed, return_inverse=True)
        mass = np.bincount(places, weights).astype(np.float64)
        spike = None
        if mass.max() >= _TIED_SHARE * mass.sum() and len(values) > 1:
            spike = int(np.argmax(mass))
            mass[spike] = 0.0
        ties = bool(mass.max() >= _TIED_SHARE * mass.sum())
        return cls(values, *_scores(mass, spike), spike, ties), places

    def reweighted(self, places: IntArray, weights: FloatArray) -> NumericLevels:
        """The same levels with F by other weights of the observed values."""
        mass = np.bincount(places, weights, len(self.values)).astype(np.float64)
        if self.spike is not None:
            mass[self.spike] = 0.0
        scores, inverse = _scores(mass, self.spike)
        return replace(self, scores=scores, inverse=inverse)

    @property
    def width(self) -> int:
        """One number, or two where there is a spike."""
        return 1 if self.spike is None else 2

    def regressors(self, places: IntArray) -> FloatArray:
        """The scores of levels, and whether they are the spike."""
        if self.spike is None:
            return self.scores[places][:, None]
        return np.column_stack([self.scores[places], places == self.spike])

    def nearest(self, scores: FloatArray) -> IntArray:
        """The levels F⁻¹(Φ(score)) of scores, as places; never the spike."""
        cell = (scores + _LARGEST) * _CELLS
        return self.inverse[np.clip(cell, 0, _GRID - 1).astype(np.intp)]

    def encode(self, values: FloatArray) -> FloatArray:
        """Scores, linear between levels and constant beyond them, and the spike."""
        scores = np.interp(values, self.values, self.scores)
        if self.spike is None:
            return scores[:, None]
        return np.column_stack([scores, values == self.values[self.spike]])


def _scores(mass: FloatArray, spike: int | None) -> tuple[FloatArray, IntArray]:
    """Normal scores of levels by their masses, and the inverse on a grid."""
    upper = np.cumsum(mass)
    scores = ndtri(np.clip((upper - mass / 2.0) / upper[-1], _TAIL, 1.0 - _TAIL))
    if spike is not None:
        others = np.delete(scores, spike)
        scores[spike] = np.clip(scores[spike], others.min(), others.max())
    edges = ndtri(upper[:-1] / upper[-1])
    inverse = np.searchsorted(edges, (np.arange(_GRID) + 0.5) / _CELLS - _LARGEST)
    return scores, inverse


@storable()
@dataclass(frozen=True)
class CategoricalLevels:
    """Categories, seen as indicators of all but the first."""

    values: FloatArray

    @property
    def width(self) -> int:
        """One number a category, but for the first."""
        return len(self.values) - 1

    def regressors(self, places: IntArray) -> FloatArray:
        """Indicators of levels."""
        seen = places[:, None] == np.arange(1, len(self.values))
        return np.asarray(seen, dtype=np.float64)

    def encode(self, values: FloatArray) -> FloatArray:
        """Indicators of values; all zero where there is no such level."""
        seen = values[:, None] == self.values[1:]
        return np.asarray(seen, dtype=np.float64)


# The distinct observed values of a column, in order. An imputed value is one of them,
# held as its place; a model of other columns sees `width` numbers for it.
Levels = NumericLevels | CategoricalLevels
