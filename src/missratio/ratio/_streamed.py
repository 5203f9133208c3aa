"""Both classes of rows that don't lie in an array: in files, on a cluster, a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn import config_context
from sklearn.base import clone

from missratio._base.typing import FloatArray
from missratio.basis import Basis, LinearBasis, as_basis
from missratio.missingness import Missingness
from missratio.ratio._each_column import EachColumnBasis
from missratio.rows import (
    ClassRows,
    LabelledSource,
    as_source,
    check_missingness,
    class_rows,
    refuse_source,
    survey,
    with_features,
)
from missratio.tensor import labelled_tensor, on_device, tensor_classes

if TYPE_CHECKING:
    from missratio.ratio._joint import JointRatio


@dataclass(frozen=True)
class _Evaluate:
    """Basis features of a block of rows."""

    basis: Basis
    names: tuple[str, ...] | None

    def __call__(self, rows: FloatArray) -> FloatArray:
        with config_context(assume_finite=True, transform_output="default"):
            return np.asarray(self.basis.transform(_named(rows, self.names)))


def _named(rows: FloatArray, names: tuple[str, ...] | None) -> Any:
    """Rows as a table that has the columns' names, if they have some."""
    if names is None:
        return rows
    return nw.from_numpy(rows, list(names), backend="pyarrow").to_native()


def classes_elsewhere(
    ratio: JointRatio, X: Any, y: Any, **not_taken: Any
) -> tuple[ClassRows, ClassRows] | None:
    """The numerator's and the denominator's rows where they don't lie in an array.

    They may lie in files, on a cluster or in a tensor. Sets the estimator's classes,
    columns and basis.

    Parameters
    ----------
    ratio : JointRatio
    X, y
        As given to ``fit``.
    **not_taken
        Arguments of ``fit`` that go with tables in memory only.

    Returns
    -------
    numerator, denominator : ClassRows
        Or None for a table in memory.
    """
    labelled, tensor = as_source(X, y), on_device(X)
    if labelled is None and tensor is None:
        return None
    if labelled is not None and ratio._needs_memory:
        refuse_source(
            ratio,
            X,
            "Choose the penalty on some rows in memory, and fit all of them by "
            "KLIEP(l1=…, l2=…).",
        )
    for name, value in not_taken.items():
        if value is not None:
            raise ValueError(
                f"{name} goes with a table in memory, and these rows are read block by "
                "block. Leave it out, or bring the rows into memory."
            )
    if ratio.normalize == "regression":
        raise ValueError(
            "normalize='regression' needs all rows in memory. Use 'hajek' or "
            "'horvitz-thompson', or bring the rows into memory."
        )
    if labelled is not None:
        return _streamed_classes(ratio, labelled)
    linear = type(as_basis(ratio.basis)) is LinearBasis
    if not linear or ratio._columns_apart:
        # Any basis, and columns one by one, are worked out on the host.
        return _streamed_classes(ratio, labelled_tensor(tensor, y), named=False)
    ratio.classes_, numerator, denominator = tensor_classes(
        tensor, y, ratio.missingness, ratio.normalize
    )
    check_missingness(ratio.missingness, ratio.classes_)
    ratio.n_features_in_ = int(X.shape[1])
    ratio.basis_ = ratio._linear_basis(ratio.n_features_in_)
    for rows in (numerator, denominator):
        _check_model(rows, ratio.n_features_in_)
    return numerator, denominator


def _check_model(rows: ClassRows, n_columns: int) -> None:
    model = getattr(rows.weighing, "model", None)
    if isinstance(model, Missingness):
        model.check_width(n_columns)


def _streamed_classes(
    ratio: JointRatio, labelled: LabelledSource, *, named: bool = True
) -> tuple[ClassRows, ClassRows]:
    """Both classes after a first pass over all rows.

    A basis that isn't linear is fitted to the rows that the pass draws into memory.
    """
    basis = as_basis(ratio.basis)
    linear = type(basis) is LinearBasis
    sources = survey(labelled, ratio.missingness, ratio.normalize, linear=linear)
    ratio.classes_ = np.array(list(sources))
    check_missingness(ratio.missingness, ratio.classes_)
    ratio.n_features_in_ = len(labelled.names)
    names = labelled.names if named else None
    if names is not None:
        ratio.feature_names_in_ = np.array(names, dtype=object)
    if linear:
        ratio.basis_ = ratio._linear_basis(ratio.n_features_in_)
    else:
        if ratio._columns_apart:
            basis = EachColumnBasis(basis)
        drawn = [source.drawn.table for source in sources.values()]
        y = np.repeat([0, 1], [len(rows) for rows in drawn])
        few = _named(np.concatenate(drawn), names)
        with config_context(assume_finite=True):
            ratio.basis_ = clone(basis).fit(few, y)
        evaluate = _Evaluate(ratio.basis_, names)
        sources = {
            label: with_features(source, evaluate) for label, source in sources.items()
        }
    found = []
    for label, source in sources.items():
        rows = class_rows(source, label, ratio.missingness, ratio.normalize, names)
        _check_model(rows, ratio.n_features_in_)
        found.append(rows)
    denominator, numerator = found
    return numerator, denominator
