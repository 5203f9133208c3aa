"""What all density-ratio estimators share: reading, predicting and summing up."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_scalar
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from missratio import exceptions
from missratio import rows as class_rows
from missratio._base import reading
from missratio._base.blocks import in_double, rows_with_nan
from missratio._base.hints import check_probability
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.basis import Basis, ColumnwiseBasis, LinearBasis, as_basis
from missratio.exceptions import DataError, Message, Remedy
from missratio.missingness import Missingness
from missratio.rows import ClassRows, MemorySource, Normalization
from missratio.solver import Status
from missratio.tensor import in_library_of, is_tensor, like, on_host
from missratio.weights import SampleSize, complete_row_weights

TINY = float(np.finfo(np.float64).tiny)

T = TypeVar("T")
R = TypeVar("R")
SolverName = Literal["auto", "newton", "lbfgs"]
MissingnessParameter = (
    Mapping[Any, Missingness] | Missingness | Literal["ignore"] | None
)


class Two(NamedTuple, Generic[T]):
    """Something of the numerator, and the same of the denominator."""

    numerator: T
    denominator: T

    def map(self, function: Callable[[T], R]) -> Two[R]:
        """What a function makes of both."""
        return Two(function(self.numerator), function(self.denominator))


class BaseRatio(ClassifierMixin, BaseEstimator):
    """Fit, score and predict, given how a ratio is learned and evaluated.

    A subclass says how it is learned from two classes' rows (`_learn`), what its score
    is there (`_score_rows`), and how it is evaluated (`_log_ratio`).
    """

    _doc_link_module = "missratio"
    _doc_link_template = (
        "https://missratio.readthedocs.io/en/latest/generated/"
        "missratio.{estimator_name}.html"
    )

    basis: Any = "linear"
    normalize: Normalization = "hajek"
    missingness: MissingnessParameter
    missingness_: MissingnessParameter
    basis_: Basis
    classes_: Any
    coef_: Any
    effective_sample_size_: dict[Any, SampleSize]
    # Whether each column is fitted by itself.
    _apart: ClassVar[bool] = False

    @abstractmethod
    def _learn(self, two: Two[ClassRows]) -> None:
        """Learn from both classes' rows, and warn of what the fit may lack."""

    @abstractmethod
    def _log_ratio(self, X: Any) -> FloatArray:
        """Evaluate log r̂."""

    @abstractmethod
    def _score_rows(self, two: Two[ClassRows]) -> float:
        """How well the ratio fits rows; the larger the better."""

    def _rows_elsewhere(
        self, X: Any, y: Any, **not_taken: Any
    ) -> Two[ClassRows] | None:
        """Both classes' rows where they don't lie in memory; None where they do.

        Ratios that need all rows at once refuse others.
        """
        remedy = "Bring some of them into memory, or fit KLIEP."
        class_rows.refuse_source(self, X, remedy)
        return None

    def _missingness(self) -> MissingnessParameter:
        """Why values are missing, by class."""
        return self.missingness

    def _settings(self) -> Any:
        """Whose basis and normalisation hold."""
        return self

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
            labels with it, and is read block by block in bounded memory; ratios by an
            objective take it, and others need rows in memory.
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
        weights = {"sample_weight": sample_weight, "inclusion": inclusion}
        array = isinstance(X, np.ndarray)
        two = None if array else self._rows_elsewhere(X, y, **weights)
        self._learn(self._read(X, y, **weights, reset=True) if two is None else two)
        follows = not array and is_tensor(X) and get_config()["array_api_dispatch"]
        if follows and "coef_" in self.__dict__ and not self._apart:
            self.coef_ = like(X, self.coef_)
        return self

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        inclusion: ArrayLike | None = None,
    ) -> float:
        """How well the ratio fits rows: minus the loss, penalties left out.

        The loss is the objective, or what parameters are chosen by; weights for missing
        values are included. For KLIEP this is E[log r̂(Z¹)] with r̂ normalised on the
        rows given, the likelihood cross-validation score; for naive Bayes the sum over
        columns. So it can choose a penalty or a basis in a grid search.

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
        two = self._read(X, y, sample_weight, inclusion, reset=False)
        return self._score_rows(two)

    def predict_log_ratio(self, X: Any) -> FloatArray:
        """The logarithm of the estimated density ratio, log r̂.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
            NaN is accepted where the estimator has a missingness model.

        Returns
        -------
        ndarray of shape (n_rows,)
            −inf where the estimated ratio is zero, NaN for a row that has a missing
            value.
        """
        check_is_fitted(self)
        return self._log_ratio(X)

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
            return log_ratio.exp_()  # type: ignore[attr-defined, no-any-return]
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
        ratio = on_host(self.predict_ratio(X))
        ratio = np.where(np.isnan(ratio), 0.0, np.minimum(ratio, clip or np.inf))
        label, names = self.classes_.tolist()[0], reading.column_names(X)
        model = class_rows.class_model(self.missingness_, label, names)
        if isinstance(model, Missingness):
            ratio = ratio * complete_row_weights(X, model)
        total = float(ratio.sum())
        if not 0.0 < total < np.inf:
            raise ValueError(
                f"The ratios of these rows sum to {total}, which can't be scaled to "
                "their number. Set clip, or bring rows near those of the numerator."
            )
        return ratio * (len(ratio) / total)

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
            # Logarithms of positive numbers in double precision lie within ±744.5.
            return np.nan_to_num(score, nan=np.nan, posinf=745.0, neginf=-745.0)
        return score

    def predict_proba(self, X: Any, *, prior: float = 0.5) -> FloatArray:
        """The probabilities of the denominator's and of the numerator's class.

        By Bayes' formula, P(numerator) = r̂π/(r̂π + 1 − π), with π the share of rows that
        are the numerator's where the ratio is used. The shares of the rows that it was
        fitted to have no part in it.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
        prior : float, default=0.5
            π. With one half the likelier class is the one that `predict` gives.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            NaN for a row that has a missing value.
        """
        check_probability("prior", prior)
        log_odds = on_host(self.decision_function(X)) + logit(prior)
        return np.column_stack([expit(-log_odds), expit(log_odds)])

    def predict(self, X: Any) -> Any:
        """The class with the larger density; the denominator for ties and for NaN.

        Densities tie where their log ratio is below 1e-9: closer to zero its sign is
        rounding, and differs from machine to machine. For a bound on one of the two
        errors, choose the threshold by Neyman-Pearson classification instead.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
            A label for each row.
        """
        chosen = self.predict_log_ratio(X) > 1e-9
        return in_library_of(X, self.classes_[on_host(chosen).astype(np.intp)])

    def __sklearn_tags__(self) -> Any:
        """Two classes only; NaN where there is a model of why."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = self._missingness() is not None
        return tags

    def _read(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        inclusion: ArrayLike | None,
        *,
        reset: bool,
    ) -> Two[ClassRows]:
        """Both classes' rows of a labelled table, with their basis features.

        NaN and infinities are seen to later.
        """
        if y is None:
            raise ValueError("fit requires y to be passed, but the target y is None.")
        X, y = (
            given if isinstance(given, np.ndarray) else on_host(given)
            for given in (X, y)
        )
        table = reading.read_table(self, X, reset=reset)
        labels = reading.read_labels(y, table)
        if reset:
            self.classes_ = two_classes(labels)
        elif not np.array_equal(np.unique(labels), self.classes_):
            raise ValueError(
                f"y must have the labels {self.classes_.tolist()}, both and no other; "
                f"got {np.unique(labels)[:5].tolist()}."
            )
        is_numerator = labels == self.classes_[1]
        weights: FloatArray | None = None
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, table, dtype=np.float64, ensure_non_negative=True
            )
        if inclusion is not None:
            inclusion = class_rows.check_inclusion(inclusion, table)
        if reset:
            incomplete = partial(rows_with_nan, table)
            self.missingness_ = class_rows.check_missingness(
                self._missingness(), self.classes_, labels, incomplete
            )
            if self._is_linear():
                names = getattr(self, "feature_names_in_", None)
                self.basis_ = LinearBasis.of_columns(table.shape[1], names)
            else:
                reading.check_no_infinity(table)
                named = X if hasattr(self, "feature_names_in_") else table
                self._fit_basis(named, is_numerator)
        linear, chosen = type(self.basis_) is LinearBasis, (is_numerator, ~is_numerator)
        features = table if linear else self._features(X, table)
        parts = (MemorySource.of(table, features, rows, weights) for rows in chosen)
        shares = [None if inclusion is None else inclusion[rows] for rows in chosen]
        return self._weighed(Two(*parts), shares)

    def _weighed(
        self, sources: Two[Any], inclusion: Sequence[Any] = (None, None)
    ) -> Two[ClassRows]:
        """Both classes' rows, and what they weigh."""
        names = getattr(self, "feature_names_in_", None)
        settings = (self.missingness_, self._settings().normalize, names)
        labels = self.classes_[::-1]
        parts = zip(sources, labels, inclusion, strict=True)
        return Two(*(ClassRows.of(s, label, *settings, i) for s, label, i in parts))

    def _is_linear(self) -> bool:
        """Whether the features are the columns."""
        basis = self._settings().basis
        return type(basis) is LinearBasis or (
            isinstance(basis, str) and basis == "linear"
        )

    def _fit_basis(self, rows: Any, is_numerator: BoolArray) -> None:
        """Fit a basis that isn't linear to validated rows."""
        basis = as_basis(self._settings().basis)
        basis = ColumnwiseBasis(basis) if self._apart else clone(basis)
        with config_context(assume_finite=True):
            self.basis_ = basis.fit(in_double(rows), is_numerator.astype(int))

    def _features(self, X: Any, table: FloatArray) -> FloatArray:
        """Basis features of a validated table; X is what it was read from."""
        if type(self.basis_) is LinearBasis:
            return table
        # Squares and products of single-precision values would lose their digits.
        rows = in_double(X if hasattr(self, "feature_names_in_") else table)
        with config_context(assume_finite=True, transform_output="default"):
            return np.asarray(self.basis_.transform(rows))


def two_classes(y: Any) -> Any:
    """The two labels of y, sorted."""
    if y.dtype.kind in "biu":
        # Sorting all labels would take a tenth of a large fit.
        classes = np.array([y.min(), y.max()])
        counts = [np.count_nonzero(y == label) for label in classes]
        if classes[0] < classes[1] and sum(counts) == len(y):
            return classes
    check_classification_targets(y)
    classes = np.unique(y)
    if len(classes) == 1:
        raise ValueError(
            f"y has one class only, {classes.tolist()[0]!r}: a ratio needs 2 classes."
        )
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(y)}, with {len(classes)} classes: keep the rows of "
            "two, or classify by MulticlassNeymanPearsonClassifier."
        )
    return classes


def read_grid(name: str, grid: Any, *, positive: bool = False) -> int | FloatArray:
    """How many values to try, or the values, rising."""
    if isinstance(grid, Integral):
        return int(check_scalar(grid, name, Integral, min_val=1))
    values = np.atleast_1d(np.asarray(grid, dtype=np.float64))
    if values.ndim != 1 or not len(values):
        raise ValueError(
            f"{name} must be a number of values to try, or a list: got {grid!r}."
        )
    low, what = (TINY, "positive") if positive else (0.0, "not negative")
    if not ((values >= low) & np.isfinite(values)).all():
        raise ValueError(f"{name} must be finite and {what}, got {grid!r}.")
    return np.unique(values)


def no_complete_row(label: Any, n_rows: int) -> DataError:
    """The error of a class of which no row is complete, where such are needed."""
    claim = (
        f"Class {{label!r}} has no row in which everything is observed, of {n_rows}. "
        "Use NaiveBayesRatio, fewer columns, or more rows."
    )
    return DataError(Message(claim, label=label))


Fold = tuple[Two[BoolArray], Two[BoolArray]]


def some_rows(two: Two[ClassRows], chosen: Two[BoolArray]) -> Two[ClassRows]:
    """Some rows of both classes."""
    return Two(*(rows.take(mask) for rows, mask in zip(two, chosen, strict=True)))


def deal_folds(two: Two[ClassRows], cv: Any, random: Any) -> list[Fold]:
    """Which rows of both classes to fit in each fold, and which are held out.

    A number deals each class's rows at random, with as many observed ones in every
    fold. All else is scikit-learn's: a splitter, or a list of pairs of row numbers.
    """
    if not isinstance(cv, Integral):
        from sklearn.model_selection import check_cv

        sources: Two[Any] = two.map(lambda rows: rows.source)
        numerator, denominator = (np.asarray(source.index) for source in sources)
        n_rows, table = len(sources.numerator.table), sources.denominator.table
        if sources.numerator.table is not table:
            denominator, n_rows = denominator + n_rows, n_rows + len(table)
        # Pairs have numbers of the table's rows; a splitter deals those at hand.
        order = np.arange(n_rows)
        if hasattr(cv, "split"):
            order = np.sort(np.concatenate([numerator, denominator]))
        labels = np.isin(order, numerator).astype(int)
        splitter = check_cv(cv, labels, classifier=True)
        try:
            parts = list(splitter.split(order[:, None], labels))
        except ValueError as error:
            raise ValueError(
                f"cv={cv!r}: {error} Folds by groups are given as pairs of row "
                "numbers: cv=list(splitter.split(X, y, groups))."
            ) from error

        def masks(part: IntArray) -> Two[BoolArray]:
            chosen = order[part]
            return Two(np.isin(numerator, chosen), np.isin(denominator, chosen))

        return [(masks(fitted), masks(held)) for fitted, held in parts]
    n_folds, observed = int(check_scalar(cv, "cv", Integral, min_val=2)), []
    for rows in two:
        weights, n_rows = rows.weights(), rows.source.n_rows
        if n_rows < n_folds:
            raise ValueError(
                f"cv={n_folds} folds need as many rows of each class; class "
                f"{rows.label!r} has {n_rows}. Lower cv, or bring more rows."
            )
        known = np.ones(n_rows) if weights is None else weights
        observed.append(np.asarray(known.reshape(n_rows, -1).all(axis=1)))
    return deal(Two(*observed), n_folds, random)


def deal(observed: Two[BoolArray], n_folds: int, random: Any) -> list[Fold]:
    """Deal both classes' rows at random, with as many observed ones in every fold."""
    dealt = []
    for known in observed:
        order = random.permutation(len(known))
        order = order[np.argsort(~known[order], kind="stable")]
        numbers = np.empty(len(order), dtype=np.intp)
        numbers[order] = np.arange(len(order)) % n_folds
        dealt.append(numbers)
    held = [Two(*(numbers == fold for numbers in dealt)) for fold in range(n_folds)]
    return [(chosen.map(np.logical_not), chosen) for chosen in held]


def report_status(
    what: str,
    status: IntArray,
    decrement: FloatArray,
    n_iter: IntArray,
    columns: Sequence[str] = (),
) -> None:
    """Warn, with the remedy, where an optimum wasn't reached.

    Of all columns' fits, where they are apart, those are named that it is about.
    """
    no_optimum = (
        " has no finite optimum: some score puts the numerator's weighted mean (all of "
        "its rows, where they enter one by one) above all of the denominator's rows, "
        "or level with them, and the coefficients grow without bound. For Pearson's "
        "divergence a few rows of the numerator far out are enough. What is returned "
        "is where the solver stopped. More denominator rows help as well."
    )
    unsolved = (
        " was not solved to tol: it ended after {n_iter} iterations, at a decrement of "
        "{decrement:.2g}. A larger max_iter or tol helps as well."
    )
    cases: tuple[Any, ...] = (
        (status == Status.NO_OPTIMUM, no_optimum, exceptions.NoFiniteOptimumWarning),
        (status > Status.NO_OPTIMUM, unsolved, exceptions.NotSolvedWarning),
    )
    for chosen, claim, category in cases:
        if chosen.any():
            places = tuple(np.flatnonzero(chosen).tolist()) if len(columns) else ()
            message = Message(
                what + (": column(s) [{columns}]" if places else "") + claim,
                columns=places,
                names=tuple(columns[j] for j in places),
                remedies=(Remedy.COLUMN_PENALTY, Remedy.FEWER_FEATURES),
                facts={
                    "n_iter": int(n_iter[chosen].max()),
                    "decrement": float(decrement[chosen].max()),
                },
            )
            exceptions.warn(category(message))
