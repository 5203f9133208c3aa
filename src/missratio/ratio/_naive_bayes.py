"""The naive-Bayes ratio: a product of one-dimensional fits."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from missratio._typing import FloatArray, IntArray
from missratio.basis import Basis, LinearBasis, as_basis
from missratio.exceptions import (
    DataError,
    Message,
    NoFiniteOptimumWarning,
    NotSolvedWarning,
    Remedy,
)
from missratio.ratio._base import (
    BaseRatio,
    check_penalty,
    class_index,
)
from missratio.ratio._batch import batch_problem, batch_sample
from missratio.ratio._checks import class_size, constant_error
from missratio.ratio._joint import (
    Backend,
    JointRatio,
    MissingnessParameter,
    check_log_linear,
)
from missratio.ratio._kliep import KLIEP
from missratio.ratio._penalty import check_ridge_alone
from missratio.ratio._problem import RatioProblem
from missratio.ratio._rows import (
    ClassRows,
    check_concentration,
    check_missingness,
    class_model,
    read_class,
)
from missratio.ratio._solve import solve
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
    bases_: list[Basis]
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
        if self.estimator is None:
            return KLIEP()
        if not isinstance(self.estimator, JointRatio):
            raise TypeError(
                "estimator must be a KLIEP, FDivergenceRatio or ObjectiveRatio, got "
                f"{self.estimator!r}."
            )
        check_log_linear(self.estimator)
        check_ridge_alone(self.estimator, "NaiveBayesRatio")
        return self.estimator

    def _allows_nan(self) -> bool:
        return self._missingness() is not None

    def _missingness(self) -> MissingnessParameter:
        if self.missingness is not None or self.estimator is None:
            return self.missingness
        inner: MissingnessParameter = getattr(self.estimator, "missingness", None)
        return inner

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn each column's ratio.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
            NaN where a value is missing.
        y : array-like of shape (n_rows,)
            Two labels. The one sorted last is the numerator: 1 of {0, 1}.
        sample_weight : array-like of shape (n_rows,), optional
            Further weights of the rows, which multiply the inverse-probability ones.

        Returns
        -------
        Self
            The fitted estimator.
        """
        inner = self._inner()
        inner._check_parameters()
        table, is_numerator, weight, survey = self._read(
            X, y, sample_weight, reset=True
        )
        check_missingness(self._missingness(), self.classes_)
        upper, lower = (
            self._class_rows(inner, table, mask, position, weight, survey.complete)
            for mask, position in ((is_numerator, 1), (~is_numerator, 0))
        )
        self.bases_ = self._fit_bases(inner, table, is_numerator)
        self._allocate()
        tol = float(max(inner.tol, 32.0 * np.finfo(table.dtype).eps))
        for columns in self._columns_by_width():
            problem = self._column_problem(inner, table, upper, lower, columns)
            if problem.l2 is None:
                self._check_rank(problem.denominator.features, lower, columns)
            self._fit_columns(inner, problem, columns, tol)
        self._finish()
        for rows in (upper, lower):
            check_concentration(
                rows.weights, rows.label, self._column_names, stacklevel=3
            )
        self.effective_sample_size_ = {
            rows.label: class_size(rows, rows.weights) for rows in (upper, lower)
        }
        return self

    def _class_rows(
        self,
        inner: JointRatio,
        table: FloatArray,
        mask: Any,
        position: int,
        sample_weight: FloatArray | None,
        complete: bool,
    ) -> ClassRows:
        label = self.classes_[position]
        label = label.item() if hasattr(label, "item") else label
        return read_class(
            table,
            class_index(mask),
            label,
            class_model(self._missingness(), label),
            sample_weight,
            inner.normalize,
            complete=complete,
            names=getattr(self, "feature_names_in_", None),
        )

    def _column_names(self) -> list[str]:
        if hasattr(self, "feature_names_in_"):
            return [str(name) for name in self.feature_names_in_]
        return [f"x{j}" for j in range(self.n_features_in_)]

    def _fit_bases(
        self, inner: JointRatio, table: FloatArray, is_numerator: Any
    ) -> list[Basis]:
        """One basis for each column, fitted to it."""
        basis = as_basis(inner.basis)
        if type(basis) is LinearBasis:
            return [basis.fit(table[:1, :1])] * table.shape[1]
        labels = is_numerator.astype(int)
        return [
            clone(basis).fit(table[:, j : j + 1], labels) for j in range(table.shape[1])
        ]

    def _columns_by_width(self) -> list[IntArray]:
        """Columns in groups with as many basis features each."""
        widths = np.array([len(basis.required_columns_) for basis in self.bases_])
        return [np.flatnonzero(widths == width) for width in np.unique(widths)]

    def _allocate(self) -> None:
        n_columns = len(self.bases_)
        self._column_coef: list[FloatArray] = [np.empty(0)] * n_columns
        self.column_log_normalizer_ = np.zeros(n_columns)
        self._column_status = np.zeros(n_columns, dtype=np.int64)
        self._column_iterations = np.zeros(n_columns, dtype=np.int64)

    def _column_problem(
        self,
        inner: JointRatio,
        table: FloatArray,
        upper: ClassRows,
        lower: ClassRows,
        columns: IntArray,
    ) -> RatioProblem:
        """The problems of some columns as one batch."""
        samples = []
        for rows in (upper, lower):
            features = self._column_features(table, rows, columns)
            weights = column_weights(rows, columns)
            total = None
            if rows.normalize == "horvitz-thompson":
                total = float(rows.total(weights)[0])
            if weights is not None:
                self._check_observed(weights, rows, columns)
            samples.append(batch_sample(features, weights, total))
        l2 = check_penalty(inner.l2, samples[0].features.shape[2])
        return batch_problem(inner._objective(), samples[0], samples[1], l2)

    def _fit_columns(
        self, inner: JointRatio, problem: RatioProblem, columns: IntArray, tol: float
    ) -> None:
        """Solve some columns as one batch."""
        solution = solve(problem, solver="newton", tol=tol, max_iter=inner.max_iter)
        for j, theta in zip(columns, solution.theta, strict=True):
            self._column_coef[j] = theta[: problem.centre.shape[1]]
        self.column_log_normalizer_[columns] = -problem.intercept(solution)
        self._column_status[columns] = solution.status
        self._column_iterations[columns] = solution.n_iter

    def _column_features(
        self, table: FloatArray, rows: ClassRows, columns: IntArray
    ) -> FloatArray:
        """Basis features of a class, of shape (n_columns, n_rows, n_features)."""
        values = table[rows.index]
        if type(self.bases_[0]) is LinearBasis:
            return np.array(values[:, columns].T, order="C")[..., None]
        features = [
            np.asarray(self.bases_[j].transform(values[:, j : j + 1])).T
            for j in columns
        ]
        return np.array(features).swapaxes(1, 2)

    def _check_observed(
        self, weights: FloatArray, rows: ClassRows, columns: IntArray
    ) -> None:
        """Refuse columns of which nothing is observed in a class."""
        never = ~weights.any(axis=1)
        if never.any():
            raise DataError(
                Message(
                    "Column(s) [{columns}] are never observed in class {label!r}.",
                    label=rows.label,
                    remedies=(
                        Remedy.DROP_COLUMNS,
                        "bring rows in which they are observed",
                    ),
                    **self._named(columns[never]),
                )
            )

    def _check_rank(
        self, features: FloatArray, rows: ClassRows, columns: IntArray
    ) -> None:
        """Refuse columns that are constant where nothing holds their coefficient."""
        if features.shape[1] <= features.shape[2]:
            raise DataError(
                Message(
                    "Class {label!r} has {n_rows} rows (n_samples = {n_rows}) for "
                    "{n_features} basis features a column: without a penalty there is "
                    "no finite optimum.",
                    label=rows.label,
                    remedies=(Remedy.PENALTY, Remedy.MORE_ROWS),
                    facts={
                        "n_rows": features.shape[1],
                        "n_features": features.shape[2],
                    },
                )
            )
        constant = (features == features[:, :1]).all(axis=1).any(axis=1)
        if constant.any():
            raise constant_error(rows.label, **self._named(columns[constant]))

    def _named(self, columns: IntArray) -> dict[str, Any]:
        """Some columns' positions and names, for messages."""
        names, places = self._column_names(), tuple(columns.tolist())
        return {"columns": places, "names": tuple(names[j] for j in places)}

    def _finish(self) -> None:
        """Gather the columns' results, and warn of those without an optimum."""
        self.coef_ = np.concatenate(self._column_coef)
        self.log_normalizer_ = float(self.column_log_normalizer_.sum())
        self.intercept_ = -self.log_normalizer_
        self.column_converged_ = self._column_status == Status.CONVERGED
        self.converged_ = bool(self.column_converged_.all())
        self.n_iter_ = int(self._column_iterations.max())
        without = np.flatnonzero(self._column_status == Status.NO_OPTIMUM)
        if len(without):
            message = Message(
                "Column(s) [{columns}] have no finite optimum: the numerator's "
                "weighted mean lies outside the range of the denominator's values, or "
                "on its border. Add a ridge penalty (KLIEP(l2=0.01) is a start), drop "
                "them, or bring more denominator rows.",
                **self._named(without),
            )
            warnings.warn(NoFiniteOptimumWarning(message), stacklevel=3)
        slow = ~self.column_converged_
        slow[without] = False
        if slow.any():
            message = Message(
                "Column(s) [{columns}] were not solved to tol. Raise max_iter or tol, "
                "or add a ridge penalty.",
                **self._named(np.flatnonzero(slow)),
            )
            warnings.warn(NotSolvedWarning(message), stacklevel=3)

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
        if type(self.bases_[0]) is LinearBasis:
            linear: FloatArray = table @ self.coef_ + self.intercept_
            return linear
        score = np.full(len(table), self.intercept_)
        for j, basis in enumerate(self.bases_):
            features = np.asarray(basis.transform(table[:, j : j + 1]))
            score += features @ self._column_coef[j]
        return score

    def score(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """How well the columns fit rows: minus the sum of their objectives.

        The penalty is left out, and weights for missing values are included.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        float
            The larger the better.
        """
        check_is_fitted(self)
        inner = self._inner()
        table, is_numerator, weight, survey = self._read(
            X, y, sample_weight, reset=False
        )
        upper, lower = (
            self._class_rows(inner, table, mask, position, weight, survey.complete)
            for mask, position in ((is_numerator, 1), (~is_numerator, 0))
        )
        total = 0.0
        for columns in self._columns_by_width():
            problem = self._column_problem(inner, table, upper, lower, columns)
            coef = np.array([self._column_coef[j] for j in columns])
            theta = problem.theta(coef, -self.column_log_normalizer_[columns])
            unpenalised = replace(problem, l2=None)
            total -= float(unpenalised(theta, second_order=False).value.sum())
        return total

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
        names = self._column_names()
        rows = []
        for j, basis in enumerate(self.bases_):
            features = basis.get_feature_names_out([names[j]])
            rows += [
                (names[j], str(feature), float(coefficient), j)
                for feature, coefficient in zip(
                    features, self._column_coef[j], strict=True
                )
            ]
        at = [row[3] for row in rows]
        columns = {
            "column": [row[0] for row in rows],
            "feature": [row[1] for row in rows],
            "coefficient": [row[2] for row in rows],
            "log_normalizer": self.column_log_normalizer_[at].tolist(),
            "converged": self.column_converged_[at].tolist(),
            "n_iter": self._column_iterations[at].tolist(),
        }
        return nw.from_dict(columns, backend=backend).to_native()


def column_weights(rows: ClassRows, columns: IntArray) -> FloatArray | None:
    """Weights of a class's rows for each column, of shape (n_columns, n_rows)."""
    weights = rows.combined(rows.weights)
    if weights is None:
        return None
    if weights.ndim == 2:
        return np.array(weights[:, columns].T, order="C")
    return np.tile(weights, (len(columns), 1))
