"""The naive-Bayes ratio: a product of one-dimensional fits."""

from __future__ import annotations

import warnings
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.basis import Basis, LinearBasis
from missratio.exceptions import (
    Message,
    NoFiniteOptimumWarning,
    NotSolvedWarning,
    Remedy,
)
from missratio.ratio.base import BaseRatio, EachColumnBasis, MissingnessParameter, given
from missratio.ratio.fit import (
    Backend,
    JointRatio,
    check_log_linear,
    classes_elsewhere,
)
from missratio.ratio.kliep import KLIEP
from missratio.rows import by_partition
from missratio.solver import Status
from missratio.weights import SampleSize


class NaiveBayesRatio(BaseRatio):
    """Density ratio r̂(z) = Π_j r̂_j(z_j), each factor from its own column alone.

    The paper's answer to partial missingness: where columns are independent within each
    class, the ratio is the product of the columns' ratios, and column j is fitted on
    all rows in which it is observed, with weights 1/(1 − φ_j). All columns are solved
    as one batch.

    Parameters
    ----------
    estimator : KLIEP, FDivergenceRatio or ObjectiveRatio, default=None
        How each column is fitted; None stands for ``KLIEP()``. Its basis is evaluated
        column by column.
    missingness : mapping from class to Missingness, "ignore" or None, default=None
        Why values are missing, by row or by entry; None takes the estimator's. "ignore"
        uses the entries that are observed as they are (per-feature complete case).

    Attributes
    ----------
    coef_ : ndarray of shape (n_basis_features,)
        Coefficients, column after column.
    log_normalizer_ : float
        Sum of the columns' log normalisers.
    intercept_ : float
        −log_normalizer_.
    column_log_normalizer_ : ndarray of shape (n_columns,)
    column_converged_ : ndarray of bool of shape (n_columns,)
    converged_ : bool
        Whether all columns converged.
    n_iter_ : int
        The most iterations that a column took.
    effective_sample_size_ : dict from class to SampleSize
        Of the column with the smallest effective size.
    classes_ : ndarray of shape (2,)

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> Z1, Z0 = rng.normal(0.5, 1, (2000, 2)), rng.normal(0, 1, (2000, 2))
    >>> phi = mr.LogisticMissingness(intercept=0.0, coef=[1.0, -1.0])
    >>> X = np.concatenate([mr.corrupt(Z1, phi, random_state=0), Z0])
    >>> y = np.repeat([1, 0], 2000)
    >>> mr.NaiveBayesRatio(missingness={1: phi}).fit(X, y).coef_.round(1)
    array([0.5, 0.5])
    """

    classes_: Any
    coef_: FloatArray
    log_normalizer_: float
    intercept_: float
    column_log_normalizer_: FloatArray
    converged_: bool
    n_iter_: int
    effective_sample_size_: dict[Any, SampleSize]

    def __init__(
        self,
        estimator: JointRatio | None = None,
        missingness: MissingnessParameter = None,
    ) -> None:
        self.estimator = estimator
        self.missingness = missingness

    def _inner(self) -> JointRatio:
        """How each column is to be fitted, with the missingness that holds here."""
        estimator = KLIEP() if self.estimator is None else self.estimator
        if not isinstance(estimator, JointRatio):
            raise TypeError(
                "estimator must be a KLIEP, FDivergenceRatio or ObjectiveRatio, got "
                f"{self.estimator!r}."
            )
        check_log_linear(estimator)
        inner: JointRatio = clone(estimator)
        inner.set_params(missingness=self._own_missingness())
        inner._columns_apart = True
        return inner

    def _own_missingness(self) -> MissingnessParameter:
        if self.missingness is not None or self.estimator is None:
            return self.missingness
        inner: MissingnessParameter = getattr(self.estimator, "missingness", None)
        return inner

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        inclusion: ArrayLike | None = None,
    ) -> Self:
        """Learn each column's ratio.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns), or source
            NaN where a value is missing. A source has its labels with it.
        y : array-like of shape (n_rows,)
            Two labels. The one sorted last is the numerator: 1 of {0, 1}.
        sample_weight : array-like of shape (n_rows,), optional
            Further weights of the rows, which multiply the inverse-probability ones.
        inclusion : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            Probabilities by design, as for `KLIEP`.

        Returns
        -------
        Self
            The fitted estimator.
        """
        inner = self._inner()
        classes = classes_elsewhere(
            inner, X, y, sample_weight=sample_weight, inclusion=inclusion
        )
        if classes is not None:
            _copy_names(inner, self)
        else:
            read = self._read(X, given(y), sample_weight, inclusion, reset=True)
            _copy_names(self, inner)
            classes = inner._both_classes(read, fit=True)
        problem, solution = inner._fit_rows(*classes)
        self._ratio = inner
        self.coef_ = inner.coef_
        self.column_log_normalizer_ = -solution.intercepts
        self.log_normalizer_ = float(self.column_log_normalizer_.sum())
        self.intercept_ = -self.log_normalizer_
        self.column_converged_ = solution.status == Status.CONVERGED
        self.converged_, self.n_iter_ = inner.converged_, inner.n_iter_
        self._column_iterations = solution.n_iter
        self.effective_sample_size_ = inner.effective_sample_size_
        self.weight_check_ = inner.weight_check_
        self._warn_of_columns(solution.status)
        inner._warn_of_weights(problem, *classes, stacklevel=2)
        return self

    @property
    def bases_(self) -> list[Basis]:
        """The fitted basis of each column."""
        if isinstance(basis := self._ratio.basis_, EachColumnBasis):
            return basis.bases_
        return [LinearBasis().fit(np.zeros((1, 1)))] * self.n_features_in_

    def _column_names(self) -> list[str]:
        if hasattr(self, "feature_names_in_"):
            return [str(name) for name in self.feature_names_in_]
        return [f"x{j}" for j in range(self.n_features_in_)]

    def _warn_of_columns(self, status: IntArray) -> None:
        """Warn of columns without an optimum, or that weren't solved."""
        without = status == Status.NO_OPTIMUM
        if without.any():
            message = Message(
                "Column(s) [{columns}] have no finite optimum: the numerator's "
                "weighted mean lies outside the range of the denominator's values, or "
                "on its border.",
                **self._named(without),
                remedies=(
                    Remedy.COLUMN_PENALTY,
                    Remedy.DROP_COLUMNS,
                    "bring more denominator rows",
                ),
            )
            warnings.warn(NoFiniteOptimumWarning(message), stacklevel=3)
        slow = (status != Status.CONVERGED) & ~without
        if slow.any():
            message = Message(
                "Column(s) [{columns}] were not solved to tol. Raise max_iter or tol, "
                "or add a ridge penalty.",
                **self._named(slow),
            )
            warnings.warn(NotSolvedWarning(message), stacklevel=3)

    def _named(self, chosen: BoolArray) -> dict[str, Any]:
        """Some columns' positions and names, for messages."""
        names, places = self._column_names(), np.flatnonzero(chosen).tolist()
        return {"columns": tuple(places), "names": tuple(names[j] for j in places)}

    @by_partition
    def predict_log_ratio(self, X: Any) -> FloatArray:
        """The logarithm of the estimated density ratio, Σ_j log r̂_j(z_j).

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
            NaN is accepted where the estimator has a missingness model.

        Returns
        -------
        ndarray of shape (n_rows,)
            NaN for a row that has a missing value.
        """
        table = self._read_rows(X)
        log_ratio: FloatArray = self._ratio._evaluate_basis(X, table) @ self.coef_
        return log_ratio + self.intercept_

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        inclusion: ArrayLike | None = None,
    ) -> float:
        """How well the columns fit rows: minus the sum of their objectives.

        The penalty is left out, and weights for missing values are included.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
        inclusion : array-like of shape (n_rows,) or (n_rows, n_columns), optional

        Returns
        -------
        float
            The larger the better.
        """
        check_is_fitted(self)
        read = self._read(X, y, sample_weight, inclusion, reset=False)
        return self._ratio._score_rows(*self._ratio._both_classes(read))

    def summary_frame(self, backend: Backend = "pandas") -> Any:
        """Coefficients and diagnostics, a row for each basis feature of each column.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}
            The kind of dataframe.

        Returns
        -------
        dataframe
            Columns: `column`, `feature`, `coefficient`, `log_normalizer` (the
            column's), `converged`, `n_iter`.
        """
        check_is_fitted(self)
        basis, names = self._ratio.basis_, self._column_names()
        at = basis.required_columns_.argmax(axis=1)
        columns = {
            "column": [names[j] for j in at],
            "feature": [str(each) for each in basis.get_feature_names_out(names)],
            "coefficient": self.coef_.tolist(),
            "log_normalizer": self.column_log_normalizer_[at].tolist(),
            "converged": self.column_converged_[at].tolist(),
            "n_iter": self._column_iterations[at].tolist(),
        }
        return nw.from_dict(columns, backend=backend).to_native()


def _copy_names(of: Any, to: Any) -> None:
    """Let one estimator know the classes and columns that another has seen."""
    for name in ("classes_", "n_features_in_", "feature_names_in_"):
        if hasattr(of, name):
            setattr(to, name, getattr(of, name))
