"""Joint fits: one log-linear (or linear) model in all basis features."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, Literal, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.utils.validation import check_is_fitted

from missratio._base.threads import one_blas_thread
from missratio._base.typing import FloatArray
from missratio.basis import LinearBasis, as_basis
from missratio.exceptions import Message, SmallSampleWarning
from missratio.objective import KLIEPObjective, Objective
from missratio.ratio._adjusted import adjust
from missratio.ratio._base import SolverName, given, report_status
from missratio.ratio._build import CompleteRows, joint_problem, separate_problem
from missratio.ratio._checks import (
    check_finite,
    check_parameters,
    check_rank,
    check_scale,
    read_two_samples,
    stack_samples,
)
from missratio.ratio._on_device import predict_tensor
from missratio.ratio._parts import JointProblem, JointSolution
from missratio.ratio._penalty import (
    PenaltyUnits,
    PenaltyWeights,
    Strength,
    penalty_units,
)
from missratio.ratio._reading import ReadingRatio
from missratio.ratio._streamed import classes_elsewhere
from missratio.rows import (
    ClassRows,
    MemorySource,
    WeightCheck,
    by_partition,
    check_missingness,
    effective_size,
    only_columns,
    warn_if_contradicted,
    warn_of_concentration,
)
from missratio.solver import Status
from missratio.tensor import (
    as_numpy,
    is_tensor,
    like,
    on_device,
    on_host,
    within_memory,
)
from missratio.weights import SampleSize

# KLIEP's tilted denominator should be worth this many rows a coefficient, or this share
# of its rows: below both, its error was twice that of the Jensen-Shannon fit or more
# (normal classes with 3 columns, each shifted by 1, 300 rows: 22 rows, 4 times).
TILTED_ROWS = 10.0
TILTED_SHARE = 0.2

Backend = Literal["pandas", "polars", "pyarrow"]
Fallback = Literal["raise", "naive-bayes"]


class JointRatio(ReadingRatio):
    """A ratio whose score is θᵀf(z) + intercept, fitted to one objective.

    A subclass says which objective. Everything else (missingness, basis, penalty,
    solver) is the same for all of them.
    """

    l2: Any
    l1: Any = 0.0
    penalty_weights: PenaltyWeights = "uniform"
    fallback: Fallback = "raise"
    solver: SolverName
    tol: float
    max_iter: int

    coef_: FloatArray
    intercept_: float
    log_normalizer_: float
    n_iter_: int
    converged_: bool
    effective_sample_size_: dict[Any, SampleSize]
    objective_value_: float
    fallback_used_: bool
    standard_error_: FloatArray | None
    tilt_sample_size_: float | None
    weight_check_: dict[Any, WeightCheck]

    # Whether rows that are read block by block are refused.
    _needs_memory = False

    @abstractmethod
    def _objective(self) -> Objective:
        """The objective to minimise."""

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        inclusion: ArrayLike | None = None,
    ) -> Self:
        """Learn the ratio from labelled rows.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns), or source
            NaN where a value is missing. A source, as `scan_parquet` gives it, has its
            labels with it, and is read block by block in bounded memory.
        y : array-like of shape (n_rows,)
            Two labels. The one sorted last is the numerator: 1 of {0, 1}.
        sample_weight : array-like of shape (n_rows,), optional
            Further weights of the rows, which multiply the inverse-probability ones.
        inclusion : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            The probability with which each row, or entry, is in the table by design,
            for classes without a missingness model: 1 where it was observed, the share
            looked up where it was looked up, 0 where it is still missing (NaN).

        Returns
        -------
        Self
            The fitted estimator.
        """
        with within_memory(X):
            classes = classes_elsewhere(
                self, X, y, sample_weight=sample_weight, inclusion=inclusion
            )
            if classes is None:
                read = self._read(X, given(y), sample_weight, inclusion, reset=True)
                classes = self._both_classes(read, fit=True)
            problem, solution = self._fit_rows(*classes)
        self._warn_of_weights(problem, *classes, stacklevel=2)
        report_status(*solution.worst, type(self).__name__, stacklevel=2)
        self._warn_of_tilt(stacklevel=2)
        if get_config()["array_api_dispatch"] and is_tensor(X):
            self.coef_ = like(X, self.coef_)
        return self

    def __getstate__(self) -> dict[str, Any]:
        """What is saved: coefficients on the host, wherever they were learned."""
        state: dict[str, Any] = dict(super().__getstate__())
        if is_tensor(state.get("coef_")):
            state["coef_"] = as_numpy(state["coef_"])
        return state

    def _fit_two_samples(self, X1: Any, X0: Any) -> Self:
        """Fit two tables, the numerator's and the denominator's, where they lie."""
        if type(as_basis(self.basis)) is not LinearBasis:
            return self.fit(*stack_samples(X1, X0))
        tables = read_two_samples(self, X1, X0)
        check_missingness(self.missingness, self.classes_)
        self.basis_ = self._linear_basis(tables[0].shape[1])
        numerator, denominator = (
            self._class_rows(MemorySource.of(table, table), position, None)
            for table, position in zip(tables, (1, 0), strict=True)
        )
        problem, solution = self._fit_rows(numerator, denominator)
        self._warn_of_weights(problem, numerator, denominator, stacklevel=3)
        report_status(*solution.worst, type(self).__name__, stacklevel=3)
        self._warn_of_tilt(stacklevel=3)
        return self

    def _strength(
        self,
        problem: JointProblem,
        units: PenaltyUnits,
        numerator: ClassRows,
        denominator: ClassRows,
    ) -> Strength:
        """The penalties' strength."""
        widths = [problem.n_features]
        if self._columns_apart:
            widths = self.basis_.required_columns_.sum(axis=0).tolist()
        return Strength.checked(self.l1, self.l2, self.penalty_weights, widths)

    def _fit_rows(
        self, numerator: ClassRows, denominator: ClassRows
    ) -> tuple[JointProblem, JointSolution]:
        """Fit both classes' rows."""
        check_parameters(self, self._objective())
        with one_blas_thread(min(numerator.source.size, denominator.source.size)):
            return self._fit_checked(numerator, denominator)

    def _fit_checked(
        self, numerator: ClassRows, denominator: ClassRows
    ) -> tuple[JointProblem, JointSolution]:
        numerator = adjust(numerator, self.basis_.required_columns_)
        problem = self._choose_problem(numerator, denominator)
        units = self._units(problem, numerator)
        self.standard_error_ = units.l1
        strength = self._strength(problem, units, numerator, denominator)
        self._fitted_strength = (strength.l1, strength.l2)
        penalised = problem.penalised(units, strength)
        held, names = strength.l1 + strength.l2, self.basis_.get_feature_names_out
        check_rank(penalised, denominator.label, names, held)
        check_scale(problem)
        precision = np.finfo(numerator.source.features.dtype).eps
        solution = penalised.solve(
            solver=self.solver,
            tol=float(max(self.tol, 32.0 * precision)),
            max_iter=self.max_iter,
        )
        check_finite(solution)
        self._store(penalised, solution, numerator, denominator)
        return problem, solution

    def _warn_of_weights(
        self,
        problem: JointProblem,
        numerator: ClassRows,
        denominator: ClassRows,
        stacklevel: int,
    ) -> None:
        """Warn where a few rows carry a class's weight, or the rows contradict φ."""
        columns = only_columns(self.basis_.required_columns_)
        apart = self._columns_apart or self.fallback_used_
        names = self.basis_.get_feature_names_out
        for rows, sums, by_feature in (
            (numerator, problem.numerator, apart or self._objective().linear_numerator),
            (denominator, problem.denominator, apart),
        ):
            required = columns if by_feature else None
            warn_of_concentration(rows, sums, required, names, stacklevel + 1)
            warn_if_contradicted(rows, not by_feature, stacklevel + 1)

    def _warn_of_tilt(self, stacklevel: int) -> None:
        """Warn where few rows of the denominator decide coefficients that are free."""
        label = self.classes_.tolist()[0]
        l1, l2 = self._fitted_strength
        held = bool((l1 + l2).all())
        if self.tilt_sample_size_ is None or held or not self.converged_:
            return
        most = self.effective_sample_size_[label].kish
        n_features = len(self.coef_)
        enough = min(TILTED_ROWS * (1 + n_features), TILTED_SHARE * most)
        if self.tilt_sample_size_ >= enough:
            return
        message = Message(
            "The coefficients rest on few rows of class {label!r}: weighted by the "
            "ratio, its rows are worth {size:.0f} (Kish's effective sample size; "
            "{most:.0f} without the ratio), for {n_features} coefficient(s). Where "
            "classes lie far apart KLIEP is biased and noisy.",
            label=label,
            remedies=(
                "take FDivergenceRatio('js'), which uses the rows of both classes",
                "add a ridge penalty (l2=0.01 is a start)",
                "bring more rows",
            ),
            facts={
                "size": self.tilt_sample_size_, "most": most, "n_features": n_features,
            },
        )  # fmt: skip
        warnings.warn(SmallSampleWarning(message), stacklevel=stacklevel + 1)

    def _choose_problem(
        self, numerator: ClassRows, denominator: ClassRows
    ) -> JointProblem:
        """The problem without penalties; one a column where rows are too few."""
        self.fallback_used_, complete = False, None
        if not self._columns_apart:
            complete = CompleteRows.of(denominator)
            few = None
            if denominator.weighing.by_entry:
                few = complete.few(self.basis_.required_columns_.shape[1])
            if few is not None and self.fallback == "raise":
                raise ValueError(
                    f"{few} Set fallback='naive-bayes' in KLIEP to take its columns as "
                    "independent, or use NaiveBayesRatio, fewer columns or more rows."
                )
            self.fallback_used_ = few is not None
        return self._build(self._objective(), numerator, denominator, complete)

    def _build(
        self,
        objective: Objective,
        numerator: ClassRows,
        denominator: ClassRows,
        complete: CompleteRows | None = None,
    ) -> JointProblem:
        """The optimisation problem without penalties."""
        if self._columns_apart or self.fallback_used_:
            return separate_problem(objective, numerator, denominator, self.basis_)
        return joint_problem(objective, numerator, denominator, self.basis_, complete)

    def _units(self, problem: JointProblem, numerator: ClassRows) -> PenaltyUnits:
        """What a penalty of strength one is."""
        if self.penalty_weights == "uniform":
            return PenaltyUnits()
        return penalty_units(
            self.penalty_weights,
            numerator,
            self.basis_.required_columns_,
            problem.numerator,
            problem.numerator_mean(),
            problem.denominator_variance(),
        )

    def _store(
        self,
        problem: JointProblem,
        solution: JointSolution,
        numerator: ClassRows,
        denominator: ClassRows,
    ) -> None:
        """Set what was learned."""
        self.coef_ = solution.coef
        self._part_intercepts = solution.intercepts
        self.intercept_ = float(solution.intercepts.sum())
        self.log_normalizer_ = -self.intercept_ if self._is_log_linear() else 0.0
        self.n_iter_ = int(solution.n_iter.max())
        self.converged_ = bool((solution.status == Status.CONVERGED).all())
        self.objective_value_ = solution.value
        self.tilt_sample_size_ = None
        if isinstance(self._objective(), KLIEPObjective) and not self._columns_apart:
            self.tilt_sample_size_ = problem.tilt_size(solution)
        found = ((numerator, problem.numerator), (denominator, problem.denominator))
        self.effective_sample_size_ = {
            rows.label: effective_size(rows, sums) for rows, sums in found
        }
        self.weight_check_ = {
            rows.label: sums.check() for rows, sums in found if rows.weighing.corrects
        }
        self._summary = {
            "numerator_mean": problem.centre(),
            "mismatch": solution.gradient,
            "effective_rows": np.zeros(self.coef_.shape) + problem.numerator.kish,
        }

    def _is_log_linear(self) -> bool:
        """Whether the score is log r, rather than r."""
        return True

    @by_partition
    def predict_log_ratio(self, X: Any) -> FloatArray:
        """The logarithm of the estimated density ratio, log r̂ = θ̂ᵀf(z) − log N̂.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
            NaN is accepted where the estimator has a missingness model.

        Returns
        -------
        ndarray of shape (n_rows,)
            NaN for a row that has a missing value.
        """
        if (tensor := on_device(X)) is not None:
            found: FloatArray = predict_tensor(self, tensor)
            return found
        X = on_host(X)
        features = self._evaluate_basis(X, self._read_rows(X))
        score: FloatArray = features @ as_numpy(self.coef_) + float(self.intercept_)
        if self._is_log_linear():
            return score
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(score, 0.0))

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        inclusion: ArrayLike | None = None,
    ) -> float:
        """How well the ratio fits rows: minus the objective, the penalty left out.

        For KLIEP this is E[log r̂(Z¹)] with r̂ normalised on the rows given, the
        likelihood cross-validation score; weights for missing values are included.
        So it can choose a penalty or a basis in a grid search.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
        inclusion : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            As for ``fit``.

        Returns
        -------
        float
            The larger the better.
        """
        check_is_fitted(self)
        read = self._read(X, y, sample_weight, inclusion, reset=False)
        return self._score_rows(*self._both_classes(read))

    def _score_rows(self, numerator: ClassRows, denominator: ClassRows) -> float:
        numerator = adjust(numerator, self.basis_.required_columns_)
        problem = self._build(self._objective(), numerator, denominator)
        return -problem.value(as_numpy(self.coef_), self._part_intercepts)

    def summary_frame(self, backend: Backend = "pandas") -> Any:
        """Coefficients and diagnostics, a row for each basis feature.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}
            The kind of dataframe.

        Returns
        -------
        dataframe
            Columns: `feature`; `coefficient`, the entry of `coef_`; `numerator_mean`,
            the feature's weighted mean over the numerator class; `mismatch`, the
            objective's gradient at the end, l1 left out: zero at an optimum, or within
            ±l1 in its units; and `effective_rows`, Kish's effective number of
            numerator rows behind the mean.
        """
        check_is_fitted(self)
        columns = {
            "feature": self.basis_.get_feature_names_out().tolist(),
            "coefficient": self.coef_.tolist(),
            **{name: values.tolist() for name, values in self._summary.items()},
        }
        return nw.from_dict(columns, backend=backend).to_native()
