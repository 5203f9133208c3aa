"""The naive-Bayes ratio: a product of one-dimensional fits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from missratio._base.storable import storable
from missratio.basis import Basis, ColumnwiseBasis, LinearBasis
from missratio.ratio.base import MissingnessParameter, Two
from missratio.ratio.fit import JointRatio, LinearRatio, check_log_linear
from missratio.ratio.kliep import KLIEP
from missratio.ratio.problem import RatioProblem
from missratio.rows import ClassRows
from missratio.solver import Solution, Status


@storable(finite=("coef_", "intercept_", "log_normalizer_", "column_log_normalizer_"))
@dataclass(eq=False, repr=False)
class NaiveBayesRatio(LinearRatio):
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

    estimator: JointRatio | None = None
    missingness: MissingnessParameter = None

    _apart = True

    def _settings(self) -> JointRatio:
        """How each column is to be fitted."""
        estimator = KLIEP() if self.estimator is None else self.estimator
        if not isinstance(estimator, JointRatio):
            raise TypeError(
                "estimator must be a KLIEP, FDivergenceRatio or ObjectiveRatio, got "
                f"{self.estimator!r}."
            )
        check_log_linear(estimator)
        return estimator

    def _missingness(self) -> MissingnessParameter:
        if self.missingness is not None or self.estimator is None:
            return self.missingness
        inner: MissingnessParameter = getattr(self.estimator, "missingness", None)
        return inner

    def _store(
        self, problem: RatioProblem, solution: Solution, two: Two[ClassRows]
    ) -> None:
        super()._store(problem, solution, two)
        self.column_log_normalizer_ = -self._part_intercepts
        self.column_converged_ = solution.status == Status.CONVERGED

    @property
    def bases_(self) -> list[Basis]:
        """The fitted basis of each column."""
        if isinstance(self.basis_, ColumnwiseBasis):
            return self.basis_.transformers_
        return [LinearBasis().fit(np.zeros((1, 1)))] * self.n_features_in_
