"""Both classes of a source that is read block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn import config_context
from sklearn.base import clone

from missratio._typing import FloatArray
from missratio.basis import Basis, LinearBasis, as_basis
from missratio.missingness import Missingness
from missratio.ratio._each_column import EachColumnBasis
from missratio.rows import (
    ClassRows,
    LabelledSource,
    check_missingness,
    class_rows,
    survey,
    with_features,
)

if TYPE_CHECKING:
    from missratio.ratio._joint import JointRatio


@dataclass(frozen=True)
class _Evaluate:
    """Basis features of a block of rows."""

    basis: Basis
    names: tuple[str, ...]

    def __call__(self, rows: FloatArray) -> FloatArray:
        with config_context(assume_finite=True, transform_output="default"):
            return np.asarray(self.basis.transform(_named(rows, self.names)))


def _named(rows: FloatArray, names: tuple[str, ...]) -> Any:
    """Rows as a table that has the columns' names."""
    return nw.from_numpy(rows, list(names), backend="pyarrow").to_native()


def streamed_classes(
    ratio: JointRatio, labelled: LabelledSource, **not_taken: Any
) -> tuple[ClassRows, ClassRows]:
    """The numerator's and the denominator's rows, after a first pass over all.

    Sets the estimator's classes, columns and basis. A basis that isn't linear is fitted
    to the rows that the pass draws into memory.

    Parameters
    ----------
    ratio : JointRatio
    labelled : LabelledSource
    **not_taken
        Arguments of ``fit`` that go with tables in memory only.
    """
    for name, value in not_taken.items():
        if value is not None:
            raise ValueError(
                f"{name} goes with a table in memory, and this source is read block by "
                f"block. Leave it out, or read the rows into memory."
            )
    if ratio.normalize == "regression":
        raise ValueError(
            "normalize='regression' needs all rows in memory. Use 'hajek' or "
            "'horvitz-thompson', or read the rows into memory."
        )
    basis = as_basis(ratio.basis)
    linear = type(basis) is LinearBasis
    sources = survey(labelled, ratio.missingness, ratio.normalize, linear=linear)
    ratio.classes_ = np.array(list(sources))
    check_missingness(ratio.missingness, ratio.classes_)
    ratio.n_features_in_ = len(labelled.names)
    ratio.feature_names_in_ = np.array(labelled.names, dtype=object)
    if linear:
        ratio.basis_ = ratio._linear_basis(ratio.n_features_in_)
    else:
        if ratio._columns_apart:
            basis = EachColumnBasis(basis)
        drawn = [source.drawn.table for source in sources.values()]
        y = np.repeat([0, 1], [len(rows) for rows in drawn])
        rows = _named(np.concatenate(drawn), labelled.names)
        with config_context(assume_finite=True):
            ratio.basis_ = clone(basis).fit(rows, y)
        evaluate = _Evaluate(ratio.basis_, labelled.names)
        sources = {
            label: with_features(source, evaluate) for label, source in sources.items()
        }
    found = []
    for label, source in sources.items():
        rows = class_rows(
            source, label, ratio.missingness, ratio.normalize, labelled.names
        )
        model = getattr(rows.weighing, "model", None)
        if isinstance(model, Missingness):
            model.check_width(ratio.n_features_in_)
        found.append(rows)
    denominator, numerator = found
    return numerator, denominator
