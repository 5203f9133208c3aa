"""Joint fits: one log-linear (or linear) model in all basis features."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from missratio._threads import one_blas_thread
from missratio._typing import FloatArray, IntArray
from missratio.basis import Basis, LinearBasis, as_basis
from missratio.missingness import Missingness
from missratio.objective import Objective
from missratio.ratio._adjusted import adjust
from missratio.ratio._base import (
    NORMALIZATIONS,
    SOLVERS,
    BaseRatio,
    SolverName,
    Survey,
    check_choice,
    class_index,
    look_over,
    report_status,
)
from missratio.ratio._checks import (
    check_rank,
    class_size,
    feature_sizes,
    read_two_samples,
    stack_samples,
)
from missratio.ratio._parts import (
    FALLBACKS,
    Fallback,
    JointProblem,
    JointSolution,
    Side,
    few_complete_rows,
    joint_problem,
    separate_problem,
)
from missratio.ratio._penalty import (
    PENALTY_WEIGHTS,
    PenaltyUnits,
    PenaltyWeights,
    Strength,
    penalty_units,
)
from missratio.ratio._rows import (
    ClassRows,
    Normalization,
    check_concentration,
    check_missingness,
    class_model,
    read_class,
)
from missratio.solver import Status
from missratio.weights import SampleSize

MissingnessParameter = Mapping[Any, Missingness] | Literal["ignore"] | None
Backend = Literal["pandas", "polars", "pyarrow"]


class JointRatio(BaseRatio):
    """A ratio whose score is θᵀf(z) + intercept, fitted to one objective.

    A subclass says which objective. Everything else (missingness, basis, penalty,
    solver) is the same for all of them.
    """

    basis: Any
    missingness: MissingnessParameter
    normalize: Normalization
    l2: Any
    l1: Any = 0.0
    penalty_weights: PenaltyWeights = "uniform"
    fallback: Fallback = "raise"
    solver: SolverName
    tol: float
    max_iter: int

    basis_: Basis
    coef_: FloatArray
    intercept_: float
    log_normalizer_: float
    n_iter_: int
    converged_: bool
    effective_sample_size_: dict[Any, SampleSize]
    objective_value_: float
    fallback_used_: bool
    standard_error_: FloatArray | None

    @abstractmethod
    def _objective(self) -> Objective:
        """The objective to minimise."""

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the ratio from labelled rows.

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
        table, is_numerator, weight, survey = self._read(
            X, y, sample_weight, reset=True
        )
        check_missingness(self.missingness, self.classes_)
        features = self._fit_basis(X, table, is_numerator)
        upper = self._side(table, features, is_numerator, 1, weight, survey)
        lower = self._side(table, features, ~is_numerator, 0, weight, survey)
        with one_blas_thread(features.size // 2):
            return self._fit_sides(upper, lower)

    def _fit_two_samples(self, X1: Any, X0: Any) -> Self:
        """Fit two tables, the numerator's and the denominator's, where they lie."""
        basis = as_basis(self.basis)
        if type(basis) is not LinearBasis:
            both, labels = stack_samples(X1, X0)
            return self.fit(both, labels)
        upper_table, lower_table = read_two_samples(self, X1, X0)
        check_missingness(self.missingness, self.classes_)
        self.basis_ = self._linear_basis(upper_table.shape[1])
        sides = []
        for table, label in ((upper_table, 1), (lower_table, 0)):
            everything = np.ones(len(table), dtype=bool)
            survey = look_over(table, everything if label else None)
            sides.append(self._side(table, table, everything, label, None, survey))
        with one_blas_thread(min(upper_table.size, lower_table.size)):
            return self._fit_sides(*sides)

    def _linear_basis(self, n_columns: int) -> LinearBasis:
        """A fitted linear basis, without another look at the table."""
        basis = LinearBasis()
        basis.required_columns_ = np.eye(n_columns, dtype=bool)
        basis.n_features_in_ = n_columns
        if hasattr(self, "feature_names_in_"):
            basis.feature_names_in_ = self.feature_names_in_
        return basis

    def _fit_basis(self, X: Any, table: FloatArray, is_numerator: Any) -> FloatArray:
        """Fit the basis and evaluate it; a linear one costs nothing."""
        basis = as_basis(self.basis)
        if type(basis) is LinearBasis:
            self.basis_ = self._linear_basis(table.shape[1])
            return table
        source = X if hasattr(self, "feature_names_in_") else table
        with config_context(assume_finite=True):
            self.basis_ = clone(basis).fit(source, is_numerator.astype(int))
        return self._evaluate_basis(X, table)

    def _evaluate_basis(self, X: Any, table: FloatArray) -> FloatArray:
        """Basis features of a validated table; X is what it was read from."""
        if type(self.basis_) is LinearBasis:
            return table
        source = X if hasattr(self, "feature_names_in_") else table
        with config_context(assume_finite=True, transform_output="default"):
            features: FloatArray = np.asarray(self.basis_.transform(source))
        return features

    def _side(
        self,
        table: FloatArray,
        features: FloatArray,
        mask: Any,
        position: int,
        sample_weight: FloatArray | None,
        survey: Survey,
    ) -> Side:
        """One class's features and weights."""
        label = self.classes_[position]
        label = label.item() if hasattr(label, "item") else label
        rows = read_class(
            table,
            class_index(mask),
            label,
            class_model(self.missingness, label),
            sample_weight,
            self.normalize,
            complete=survey.complete,
            sums=survey.sums if position and features is table else None,
            names=getattr(self, "feature_names_in_", None),
        )
        if position == 1:
            rows = adjust(table, features, rows, self.basis_.required_columns_)
        return features, rows

    def _check_parameters(self) -> None:
        check_choice("normalize", self.normalize, NORMALIZATIONS)
        check_choice("solver", self.solver, SOLVERS)
        check_choice("fallback", self.fallback, FALLBACKS)
        check_choice("penalty_weights", self.penalty_weights, PENALTY_WEIGHTS)
        if self.normalize == "regression" and not self._objective().linear_numerator:
            raise ValueError(
                "normalize='regression' is for objectives in which the numerator "
                "enters through means, as KLIEP's; got "
                f"{self!r}. Use 'hajek' or 'horvitz-thompson'."
            )
        if not self.tol > 0.0 or not self.max_iter >= 1:
            raise ValueError(
                f"tol must be above 0 and max_iter at least 1, got {self.tol!r} and "
                f"{self.max_iter!r}."
            )

    def _strength(
        self, problem: JointProblem, units: PenaltyUnits, upper: Side, lower: Side
    ) -> Strength:
        """The penalties' strength."""
        return Strength.checked(
            self.l1, self.l2, self.penalty_weights, problem.n_features
        )

    def _fit_sides(self, upper: Side, lower: Side) -> Self:
        self._check_parameters()
        self._choose_fallback(lower[1])
        problem = self._build(self._objective(), upper, lower)
        units = self._units(problem, upper)
        self.standard_error_ = units.l1
        strength = self._strength(problem, units, upper, lower)
        self._fitted_strength = (strength.l1, strength.l2)
        penalised = problem.penalised(units, strength)
        self._check_rank(penalised, strength, lower[1])
        tol = float(max(self.tol, 32.0 * np.finfo(upper[0].dtype).eps))
        solution = penalised.solve(solver=self.solver, tol=tol, max_iter=self.max_iter)
        names = self.basis_.get_feature_names_out
        for side, each in zip((upper, lower), problem.weights, strict=True):
            check_concentration(each, side[1].label, names, stacklevel=4)
        worst = solution.worst
        report_status(
            int(worst.status[0]),
            float(worst.decrement[0]),
            int(worst.n_iter[0]),
            type(self).__name__,
            stacklevel=3,
        )
        self._store(penalised, solution, upper, lower)
        return self

    def _choose_fallback(self, rows: ClassRows) -> None:
        """Raise or fall back where the denominator has too few complete rows."""
        few = few_complete_rows(rows, self.basis_.required_columns_.shape[1])
        if few is not None and self.fallback == "raise":
            raise ValueError(
                f"{few} Set fallback='naive-bayes' in KLIEP to take its columns as "
                "independent, or use NaiveBayesRatio, fewer columns or more rows."
            )
        self.fallback_used_ = few is not None

    def _build(self, objective: Objective, upper: Side, lower: Side) -> JointProblem:
        """The optimisation problem without penalties."""
        build = separate_problem if self.fallback_used_ else joint_problem
        return build(objective, upper, lower, self.basis_)

    def _check_rank(
        self, problem: JointProblem, strength: Strength, rows: ClassRows
    ) -> None:
        """Refuse what can't have a single optimum."""
        held = strength.l1 + strength.l2
        if held.all():
            return
        for part in problem.parts:
            named = partial(self._named, part.features)
            check_rank(part.problem.denominator, rows, named, held[part.features])

    def _named(
        self, part: IntArray | slice, chosen: IntArray
    ) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Positions and names of some features of a part."""
        names = self.basis_.get_feature_names_out()
        places = np.arange(len(names))[part][chosen]
        return tuple(places.tolist()), tuple(str(name) for name in names[places])

    def _units(self, problem: JointProblem, upper: Side) -> PenaltyUnits:
        """What a penalty of strength one is."""
        if self.penalty_weights == "uniform":
            return PenaltyUnits()
        return penalty_units(
            self.penalty_weights,
            *upper,
            problem.weights[0],
            problem.numerator_mean(),
            problem.denominator_variance(),
        )

    def _store(
        self,
        problem: JointProblem,
        solution: JointSolution,
        upper: Side,
        lower: Side,
    ) -> None:
        """Set what was learned."""
        self.coef_ = solution.coef
        self._part_intercepts = solution.intercepts
        self.intercept_ = float(solution.intercepts.sum())
        self.log_normalizer_ = -self.intercept_ if self._is_log_linear() else 0.0
        self.n_iter_ = solution.n_iter
        self.converged_ = int(solution.worst.status[0]) == Status.CONVERGED
        self.objective_value_ = solution.value
        weights = problem.weights
        self.effective_sample_size_ = {
            upper[1].label: class_size(upper[1], weights[0]),
            lower[1].label: class_size(lower[1], weights[1]),
        }
        self._summary = {
            "numerator_mean": problem.centre(),
            "mismatch": solution.gradient,
            "effective_rows": feature_sizes(upper[1], weights[0], len(self.coef_)),
        }

    def _is_log_linear(self) -> bool:
        """Whether the score is log r, rather than r."""
        return True

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
        features = self._evaluate_basis(X, self._read_rows(X))
        score: FloatArray = features @ self.coef_ + self.intercept_
        if self._is_log_linear():
            return score
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(score, 0.0))

    def score(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
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

        Returns
        -------
        float
            The larger the better.
        """
        check_is_fitted(self)
        table, is_numerator, weight, survey = self._read(
            X, y, sample_weight, reset=False
        )
        features = self._evaluate_basis(X, table)
        upper = self._side(table, features, is_numerator, 1, weight, survey)
        lower = self._side(table, features, ~is_numerator, 0, weight, survey)
        problem = self._build(self._objective(), upper, lower)
        return -problem.value(self.coef_, self._part_intercepts)

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


def check_log_linear(estimator: JointRatio) -> None:
    """Refuse the identity link where log ratios are added up."""
    if not estimator._is_log_linear():
        raise ValueError(
            f"{estimator!r} models the ratio itself, not its logarithm. Use link='log'."
        )
