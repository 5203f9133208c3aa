"""From a labelled table to the two classes' rows, with their basis features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from sklearn import config_context
from sklearn.base import clone

from missratio._base.blocks import in_double
from missratio._base.typing import FloatArray
from missratio.basis import Basis, LinearBasis, as_basis
from missratio.missingness import Missingness
from missratio.ratio._base import BaseRatio, ReadRows, check_no_infinity
from missratio.ratio._each_column import EachColumnBasis
from missratio.rows import (
    ClassRows,
    MemorySource,
    Normalization,
    as_weighing,
    check_missingness,
    class_model,
)

MissingnessParameter = Mapping[Any, Missingness] | Literal["ignore"] | None


class ReadingRatio(BaseRatio):
    """A ratio in basis features, of classes whose values may be missing."""

    basis: Any
    missingness: MissingnessParameter
    normalize: Normalization
    basis_: Basis
    # Whether each column is fitted by itself, as `NaiveBayesRatio` has it.
    _columns_apart: bool = False

    def _both_classes(
        self, read: ReadRows, *, fit: bool = False
    ) -> tuple[ClassRows, ClassRows]:
        """The numerator's and the denominator's rows, with their basis features."""
        if fit:
            check_missingness(self.missingness, self.classes_)
            self._fit_basis(read)
        features = self._evaluate_basis(read.given, read.table)
        found = []
        for position, chosen in ((1, read.is_numerator), (0, ~read.is_numerator)):
            source = MemorySource.of(read.table, features, chosen, read.sample_weight)
            inclusion = None
            if read.inclusion is not None:
                inclusion = read.inclusion[source.index]
            found.append(self._class_rows(source, position, inclusion))
        return found[0], found[1]

    def _class_rows(
        self, source: MemorySource, position: int, inclusion: FloatArray | None
    ) -> ClassRows:
        """One class's rows, and what they weigh."""
        label = self.classes_[position]
        label = label.item() if hasattr(label, "item") else label
        names = getattr(self, "feature_names_in_", None)
        model = class_model(self.missingness, label, names)
        if isinstance(model, Missingness):
            try:
                model.check_width(source.table.shape[1])
            except ValueError as error:
                raise ValueError(f"Class {label!r}: {error}") from error
        return ClassRows(
            label,
            source,
            as_weighing(model, inclusion, label),
            self.normalize,
            names,
        )

    def _linear_basis(self, n_columns: int) -> LinearBasis:
        """A fitted linear basis, without another look at the table."""
        basis = LinearBasis()
        basis.required_columns_ = np.eye(n_columns, dtype=bool)
        basis.n_features_in_ = n_columns
        if hasattr(self, "feature_names_in_"):
            basis.feature_names_in_ = self.feature_names_in_
        return basis

    def _fit_basis(self, read: ReadRows) -> None:
        """Fit the basis; a linear one costs nothing."""
        basis = as_basis(self.basis)
        if type(basis) is LinearBasis:
            self.basis_ = self._linear_basis(read.table.shape[1])
            return
        check_no_infinity(read.table)
        if self._columns_apart:
            basis = EachColumnBasis(basis)
        source = read.given if hasattr(self, "feature_names_in_") else read.table
        with config_context(assume_finite=True):
            self.basis_ = clone(basis).fit(
                in_double(source), read.is_numerator.astype(int)
            )

    def _evaluate_basis(self, X: Any, table: FloatArray) -> FloatArray:
        """Basis features of a validated table; X is what it was read from."""
        if type(self.basis_) is LinearBasis:
            return table
        # Squares and products of single-precision values would lose their digits.
        source = in_double(X if hasattr(self, "feature_names_in_") else table)
        with config_context(assume_finite=True, transform_output="default"):
            features: FloatArray = np.asarray(self.basis_.transform(source))
        return features
