"""What all density-ratio estimators share: reading, predicting and summing up."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    check_is_fitted,
)

from missratio._base.blocks import in_double
from missratio._base.reading import (
    check_no_infinity,
    column_names,
    read_labels,
    read_table,
)
from missratio._base.storable import storable
from missratio._base.summary import Summary, figure
from missratio._base.typing import BoolArray, FloatArray, Names
from missratio.basis import Basis, LinearBasis, as_basis
from missratio.exceptions import NoFiniteOptimumWarning, NotSolvedWarning
from missratio.missingness import Missingness
from missratio.rows import (
    ClassRows,
    MemorySource,
    Normalization,
    as_weighing,
    by_partition,
    check_inclusion,
    check_missingness,
    class_model,
)
from missratio.solver import Status
from missratio.tensor import as_numpy, is_tensor, on_host
from missratio.weights import complete_row_weights

# Of the largest weight: sums of squares of 2⁴⁰⁰ fit by far.
_LARGEST_EXPONENT = 400

# Logarithms of positive numbers in double precision lie within ±744.5.
FARTHEST = 745.0


class BaseRatio(ClassifierMixin, BaseEstimator):
    """Fit, score and predict, given how a ratio is learned and evaluated."""

    _doc_link_module = "missratio"
    _doc_link_template = (
        "https://missratio.readthedocs.io/en/latest/generated/"
        "missratio.{estimator_name}.html"
    )

    classes_: Any

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        return {"estimator_name": type(self).__name__}

    @abstractmethod
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        inclusion: ArrayLike | None = None,
    ) -> Self:
        """Learn the ratio from labelled rows."""

    @abstractmethod
    def predict_log_ratio(self, X: Any) -> FloatArray:
        """Evaluate log r̂."""

    @by_partition
    def predict_ratio(self, X: Any) -> FloatArray:
        """The estimated density ratio r̂ = p̂1/p̂0 at each row.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
            NaN for a row that has a missing value.
        """
        log_ratio = self.predict_log_ratio(X)
        if is_tensor(log_ratio):
            return log_ratio.exp()  # type: ignore[attr-defined, no-any-return]
        with np.errstate(over="ignore"):
            return np.exp(log_ratio)

    def importance_weights(self, X: Any, *, clip: float | None = None) -> FloatArray:
        """Weights under which the denominator's rows stand for the numerator.

        Proportional to r̂, times 1/P(complete) where the denominator loses values, with
        a sum of n, the number of rows. Hand them to any learner as `sample_weight`: a
        model that is fitted to the denominator's rows, where labels are, then minimises
        the risk over the numerator, where it will be used (covariate shift).

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
            Rows of the denominator.
        clip : float, optional
            The largest ratio, more than 0: larger ones are cut to it before they are
            scaled. Less variance for some bias.

        Returns
        -------
        ndarray of shape (n_rows,)
            0 for a row that has a missing value.
        """
        if clip is not None and not clip > 0.0:
            raise ValueError(f"clip must be positive or None, got {clip!r}.")
        ratio = as_numpy(self.predict_ratio(X))
        ratio = np.where(np.isnan(ratio), 0.0, np.minimum(ratio, clip or np.inf))
        label = self.classes_[0]
        label = label.item() if hasattr(label, "item") else label
        model = class_model(self._own_missingness(), label, column_names(X))
        if isinstance(model, Missingness):
            ratio = ratio * complete_row_weights(X, model)
        total = float(ratio.sum())
        if not 0.0 < total < np.inf:
            raise ValueError(
                f"The ratios of these rows sum to {total}, which can't be scaled to "
                "their number. Set clip, or bring rows near those of the numerator."
            )
        return ratio * (len(ratio) / total)

    def _own_missingness(self) -> Any:
        """Why values are missing, by class."""
        return getattr(self, "missingness", None)

    def decision_function(self, X: Any) -> FloatArray:
        """The log ratio: positive where the numerator class is the likelier.

        It is finite: where the ratio is 0 or ∞ it is ∓745, beyond the logarithm of any
        other number.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
            NaN for a row that has a missing value.
        """
        score = self.predict_log_ratio(X)
        if isinstance(score, np.ndarray) and np.isinf(score).any():
            return np.nan_to_num(score, nan=np.nan, posinf=FARTHEST, neginf=-FARTHEST)
        return score

    @by_partition
    def predict(self, X: Any) -> Any:
        """The class with the larger density; the denominator for a row with NaN.

        For a bound on one of the two errors, choose the threshold by
        Neyman-Pearson classification instead.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        chosen = self.predict_log_ratio(X) > 0.0
        return self.classes_[as_numpy(chosen).astype(np.intp)]

    def summary(self) -> Summary:
        """The fit at a glance: classes, rows, optimum and coefficients.

        Returns
        -------
        Summary
            Prints as text, and renders in a notebook.
        """
        from missratio.ratio.base import summarize

        return summarize(self)

    def __sklearn_tags__(self) -> Any:
        """Two classes only; NaN where there is a model of why."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = self._allows_nan()
        return tags

    def _allows_nan(self) -> bool:
        """Whether there is a model of why values are missing."""
        return self._own_missingness() is not None

    def _read(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        inclusion: ArrayLike | None,
        *,
        reset: bool,
    ) -> ReadRows:
        """Validate a labelled table. NaN and infinities are seen to later."""
        X, y = on_host(X), on_host(y)
        given = X
        X = read_table(self, X, reset=reset)
        y = read_labels(y, X)
        if reset:
            self.classes_ = two_classes(y)
        is_numerator = y == self.classes_[1]
        if not reset and not (is_numerator | (y == self.classes_[0])).all():
            raise ValueError(f"y has labels other than {self.classes_.tolist()}.")
        if not reset and (is_numerator.all() or not is_numerator.any()):
            raise ValueError("y has rows of one class only: a ratio needs both.")
        if sample_weight is not None:
            sample_weight = check_sample_weight(sample_weight, len(X))
        if inclusion is not None:
            inclusion = check_inclusion(inclusion, X)
        return ReadRows(given, X, is_numerator, sample_weight, inclusion)

    def _read_rows(self, X: Any) -> Any:
        """Validate rows to be scored."""
        check_is_fitted(self)
        finite = "allow-nan" if self._allows_nan() else True
        return read_table(self, on_host(X), reset=False, finite=finite)


def given(y: ArrayLike | None) -> ArrayLike:
    """Labels, which only a source has with it."""
    if y is None:
        raise ValueError(
            "fit requires y to be passed, but the target y is None: give a label for "
            "each row."
        )
    return y


@dataclass(frozen=True, slots=True)
class ReadRows:
    """A validated table and its labels.

    Parameters
    ----------
    given : array-like or dataframe
        What the table was read from.
    table : ndarray of shape (n_rows, n_columns)
    is_numerator : ndarray of bool of shape (n_rows,)
    sample_weight : ndarray of shape (n_rows,), or None
    inclusion : ndarray of shape (n_rows,) or (n_rows, n_columns), or None
        Probabilities by design.
    """

    given: Any
    table: FloatArray
    is_numerator: BoolArray
    sample_weight: FloatArray | None
    inclusion: FloatArray | None


def check_sample_weight(sample_weight: ArrayLike, n_rows: int) -> FloatArray:
    """One finite weight for each row, not negative and not all zero."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}: give one "
            "weight for each row."
        )
    if not (np.isfinite(weights) & (weights >= 0.0)).all():
        raise ValueError("sample_weight must be finite and not negative.")
    _, exponent = np.frexp(weights.max(initial=0.0))
    if abs(exponent) > _LARGEST_EXPONENT:
        # Only proportions matter, and sums and squares of these weights would overflow.
        weights = np.ldexp(weights, -exponent)
    return weights


def two_classes(y: Any) -> Any:
    """The two labels of y, sorted."""
    if y.dtype.kind in "biu":
        # A few labels tell which two there are, a look at all that there are no more.
        few = y[:: 1 + len(y) // 1024]
        low, high = few.min(), few.max()
        if int(high) - int(low) == 1:
            # Nothing lies between them.
            others = y.min() < low or y.max() > high
        else:
            others = low == high or not ((y == low) | (y == high)).all()
        if not others:
            return np.array([low, high])
    check_classification_targets(y)
    classes = np.unique(y)
    if len(classes) == 1:
        raise ValueError(
            f"y has one class only, {classes.tolist()[0]!r}: a ratio needs rows of 2 "
            "classes, the numerator and the denominator."
        )
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(y)}, with {len(classes)} classes: keep the rows of two."
        )
    return classes


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse a parameter that isn't among its choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {list(choices)}, got {value!r}.")


def check_penalty(strength: Any, n_features: int, name: str = "l2") -> FloatArray:
    """A penalty's strength for each basis feature."""
    if isinstance(strength, float) and strength == 0.0:
        return np.zeros(n_features)
    try:
        penalty = np.asarray(strength, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be a number, or one for each basis feature; got {strength!r}."
        ) from error
    if penalty.ndim > 1 or penalty.size not in (1, n_features):
        raise ValueError(
            f"{name} must be a number, or one for each of the {n_features} basis "
            f"features; got shape {penalty.shape}."
        )
    if not (np.isfinite(penalty) & (penalty >= 0.0)).all():
        raise ValueError(f"{name} must be finite and not negative, got {strength!r}.")
    return np.broadcast_to(penalty.ravel(), (n_features,)).copy()


def report_status(
    status: int, decrement: float, n_iter: int, what: str, stacklevel: int
) -> None:
    """Warn, with the remedy, where an optimum wasn't reached."""
    if status == Status.CONVERGED:
        return
    if status == Status.NO_OPTIMUM:
        warnings.warn(
            f"{what} has no finite optimum: some score puts the numerator's weighted "
            "mean (all of its rows, where they enter one by one) above all of the "
            "denominator's rows, or level with them, as where it lies outside their "
            "convex hull, and the coefficients grow without bound. What is returned is "
            "where the solver stopped, and its scale means nothing. Add a ridge "
            "penalty (l2=0.01 is a start), use fewer features, or bring more "
            "denominator rows.",
            NoFiniteOptimumWarning,
            stacklevel=stacklevel + 1,
        )
        return
    reason = {
        int(Status.STALLED): "no step made the objective smaller",
        int(Status.OUT_OF_ITERATIONS): "max_iter was reached",
    }[int(status)]
    warnings.warn(
        f"{what} was not solved to tol: {reason} after {n_iter} iterations, at a "
        f"decrement of {decrement:.2g}. Raise max_iter or tol, add a ridge penalty, or "
        "scale the features.",
        NotSolvedWarning,
        stacklevel=stacklevel + 1,
    )


SolverName = Literal["auto", "newton", "lbfgs"]


@storable()
class EachColumnBasis(Basis):
    """Features of every column by itself, column after column.

    Parameters
    ----------
    basis : Basis
        A copy of it is fitted to each column, as a table of one column.

    Attributes
    ----------
    bases_ : list of Basis
        The fitted copies.
    required_columns_ : ndarray of bool, shape (k, p)
        One true entry a row.
    """

    bases_: list[Basis]

    def __init__(self, basis: Basis) -> None:
        self.basis = basis

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Fit a copy of the basis to each column.

        Parameters
        ----------
        X : array-like or dataframe, shape (n, p)
        y : array-like, shape (n,), optional

        Returns
        -------
        Self
            The fitted basis.
        """
        table = self._validated(X, reset=True)
        n_columns = table.shape[1]
        self.bases_ = [
            clone(self.basis).fit(table[:, j : j + 1], y) for j in range(n_columns)
        ]
        widths = [len(basis.required_columns_) for basis in self.bases_]
        owner = np.repeat(np.arange(n_columns), widths)
        self.required_columns_ = owner[:, None] == np.arange(n_columns)
        return self

    def transform(self, X: Any) -> Any:
        """Evaluate every column's features.

        Parameters
        ----------
        X : array-like or dataframe, shape (n, p)

        Returns
        -------
        ndarray, shape (n, k)
        """
        table = self._validated(X)
        parts = [
            np.asarray(basis.transform(table[:, j : j + 1]))
            for j, basis in enumerate(self.bases_)
        ]
        return np.concatenate(parts, axis=1)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Names:
        """Name the features as the columns' bases do.

        Parameters
        ----------
        input_features : array-like of str, shape (p,), optional

        Returns
        -------
        ndarray of str, shape (k,)
        """
        names = self._input_names(input_features)
        return np.concatenate(
            [
                basis.get_feature_names_out([name])
                for basis, name in zip(self.bases_, names, strict=True)
            ]
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


def summarize(ratio: Any) -> Summary:
    """What a ratio was fitted to, how well it was solved, and its coefficients."""
    check_is_fitted(ratio)
    names = _names(ratio)
    coef = [float(value) for value in getattr(ratio, "coef_", ())] if names else []
    return Summary(
        title=f"{type(ratio).__name__}: log density ratio",
        facts=tuple(_facts(ratio)),
        header=("feature", "coefficient") if coef else (),
        rows=tuple((n, figure(c, 5)) for n, c in zip(names, coef, strict=True)),
        notes=tuple(_notes(ratio, bool(coef))),
    )


def _names(ratio: Any) -> list[str]:
    from missratio.ratio.factors import feature_names
    from missratio.ratio.fit import JointRatio
    from missratio.ratio.naive_bayes import NaiveBayesRatio

    known = isinstance(ratio, JointRatio | NaiveBayesRatio)
    return feature_names(ratio) if known else []


def _facts(ratio: Any) -> list[tuple[str, str]]:
    denominator, numerator = ratio.classes_.tolist()
    found = [("numerator", repr(numerator)), ("denominator", repr(denominator))]
    sizes = getattr(ratio, "effective_sample_size_", {})
    for label in (numerator, denominator):
        if label in sizes:
            size = sizes[label]
            found += [
                (f"rows of {label!r}", f"{size.rows} ({size.observed} observed)"),
                ("effective sample size", figure(size.kish)),
            ]
    for name, attribute in (
        ("objective", "objective_value_"),
        ("iterations", "n_iter_"),
        ("log normaliser", "log_normalizer_"),
        ("penalty chosen", "l2_"),
    ):
        value = getattr(ratio, attribute, None)
        if isinstance(value, int | float):
            found.append((name, figure(value)))
    if hasattr(ratio, "converged_"):
        found.append(("converged", "yes" if ratio.converged_ else "no"))
    return found


def _notes(ratio: Any, has_coefficients: bool) -> list[str]:
    notes = []
    if not getattr(ratio, "converged_", True):
        notes.append(
            "The optimum wasn't reached: coefficients may mean nothing. Add a ridge "
            "penalty (l2), or raise max_iter."
        )
    if getattr(ratio, "fallback_used_", False):
        notes.append(
            "The denominator has too few complete rows, and its columns were taken as "
            "independent."
        )
    if has_coefficients and not notes and _has_standard_errors(ratio):
        notes.append(
            "Standard errors: ratio_uncertainty(ratio, X, y).summary(), with the rows "
            "of the fit."
        )
    return notes


def _has_standard_errors(ratio: Any) -> bool:
    """Whether the sandwich formula is for such a ratio, solved as it was."""
    from missratio.ratio.factors import joint_ratio

    joint = joint_ratio(ratio)
    return bool(joint._is_log_linear() and not joint._fitted_strength[0].any())
