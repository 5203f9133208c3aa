"""The naive-Bayes ratio: a product of one-dimensional fits."""

from __future__ import annotations

from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from missratio._base.storable import storable
from missratio._base.typing import FloatArray
from missratio.basis import Basis, LinearBasis
from missratio.ratio.base import BaseRatio, EachColumnBasis, MissingnessParameter
from missratio.ratio.fit import (
    Backend,
    JointRatio,
    check_log_linear,
)
from missratio.ratio.kliep import KLIEP


@storable(finite=("coef_", "intercept_", "log_normalizer_", "column_log_normalizer_"))
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

    _ratio: JointRatio

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
        inner._fit(X, y, sample_weight, inclusion, stacklevel=2)
        self._ratio = inner
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` has been called."""
        return "_ratio" in self.__dict__

    def __getattr__(self, name: str) -> Any:
        """What was learned is the machine's that fits columns apart."""
        learned = name.endswith("_") and not name.startswith("_")
        if learned and "_ratio" in self.__dict__:
            return getattr(self._ratio, name)
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}.")

    @property
    def bases_(self) -> list[Basis]:
        """The fitted basis of each column."""
        if isinstance(basis := self._ratio.basis_, EachColumnBasis):
            return basis.bases_
        return [LinearBasis().fit(np.zeros((1, 1)))] * self.n_features_in_

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
        check_is_fitted(self)
        return self._ratio.predict_log_ratio(X)

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
        return self._ratio.score(X, y, sample_weight, inclusion)

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
        basis, names = self._ratio.basis_, self._ratio._column_names()
        at = basis.required_columns_.argmax(axis=1)
        columns = {
            "column": [names[j] for j in at],
            "feature": [str(each) for each in basis.get_feature_names_out(names)],
            "coefficient": self.coef_.tolist(),
            "log_normalizer": self.column_log_normalizer_[at].tolist(),
            "converged": self.column_converged_[at].tolist(),
            "n_iter": self._ratio._column_iterations[at].tolist(),
        }
        return nw.from_dict(columns, backend=backend).to_native()
