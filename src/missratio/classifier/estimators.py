"""Any estimator, fitted to rows of which some are missing, and its scores.

The larger a score, the more like the class that is not controlled.

By how much a row's score may differ with the batch that it is scored in.

A matrix product rounds differently for one row than for many, for rows in memory order
than for columns, and in single precision. Where scores tie, as those of discrete
columns do, such a difference would put rows above a threshold that tie with the row it
was chosen by, and rounding would break the certificate.

Let h be any function of the row, and ε a bound on |score − h|, whatever the batch. The
threshold Ĉ that a rule chooses grows with the scores, so Ĉ ≥ C − ε, C being the one
that it would have chosen by h. A row that scores above Ĉ + 2ε then has h > C. So the
error of the threshold Ĉ + 2ε is at most that of C by h, which is certified.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy.special import softmax
from sklearn import get_config
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import has_fit_parameter

from missratio._base.blocks import in_double, rows_with_nan, take_rows
from missratio._base.hints import check_number
from missratio._base.reading import as_array, as_frame, refuse_foreign
from missratio._base.storable import storable
from missratio._base.threads import THREADED_ELEMENTS, hold_threads
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.classifier.reading import one_of_each
from missratio.exceptions import (
    DataError,
    Explained,
    Message,
    Remedy,
    UnexplainedMissingError,
)
from missratio.imputation import TiltedImputer
from missratio.missingness import Missingness, RowInclusion
from missratio.ratio import LinearRatio, weight_parameter
from missratio.rows import LabelledSource, weighed_twice
from missratio.weights import complete_row_weights, effective_sample_size

# How far above 1 a probability may be rounded.
ROUNDING = 1e-6


def complete_mask(X: Any) -> BoolArray:
    """Which rows of an array or dataframe have no missing value."""
    if type(X) is np.ndarray and X.dtype.kind == "f":
        return ~rows_with_nan(X)
    if (frame := as_frame(X)) is not None:
        missing = np.zeros(len(frame), dtype=bool)
        for column in frame.iter_columns():
            missing |= column.is_null().to_numpy()
            if column.dtype.is_float():
                missing |= column.is_nan().fill_null(True).to_numpy()
        return ~missing
    table = as_array(X)
    if table.dtype.kind == "O":
        # NaN is unequal to itself, and pandas' NA neither equal nor not.
        rows = ([x is not None and str(x == x) == "True" for x in row] for row in table)
        return np.array(list(map(all, rows)), dtype=bool)
    if table.dtype.kind != "f":
        return np.ones(len(table), dtype=bool)
    return ~rows_with_nan(table)


def scored_rows(
    X: Any, deployment: str, among: BoolArray | None = None
) -> tuple[BoolArray, Any]:
    """Which rows are scored, complete ones if these are meant; and the rows."""
    rows = np.ones(X.shape[0], dtype=bool) if among is None else among
    if deployment == "complete":
        rows = rows & complete_mask(X)
    return rows, in_double(X if rows.all() else take_rows(X, np.flatnonzero(rows)))


def raw_scores(
    estimator: Any,
    X: Any,
    deployment: str,
    n_classes: int = 2,
    sign: float = 1.0,
    unscored: float = np.nan,
    among: BoolArray | None = None,
) -> FloatArray:
    """Scores of rows as a fitted estimator gives them: log-odds, or log-probabilities.

    Parameters
    ----------
    estimator : estimator
        With `decision_function`, which is taken first of two classes, or
        `predict_proba`.
    X : array-like or dataframe of shape (n_rows, n_columns)
    deployment : {"complete", "as-observed"}
        Whether complete rows alone are scored.
    n_classes : int, default=2
    sign : {1.0, -1.0}
        1.0 where the estimator's second class is the one not controlled.
    unscored : float
        For a row that isn't scored.
    among : ndarray of bool of shape (n_rows,), optional
        Rows that may be scored; all unless told otherwise.

    Returns
    -------
    ndarray of shape (n_rows,), or (n_rows, n_classes) for more than two
        −∞ where the estimator gives NaN.
    """
    rows, chosen = scored_rows(X, deployment, among)
    shape = (len(rows),) if n_classes == 2 else (len(rows), n_classes)
    scores = np.full(shape, unscored)
    if not rows.any():
        return scores
    wanted, has_probabilities = shape[1:], hasattr(estimator, "predict_proba")
    decides = hasattr(estimator, "decision_function")
    if not decides and not has_probabilities:
        raise TypeError(
            f"{estimator!r} has neither decision_function nor predict_proba: it can't "
            "score rows."
        )
    # A score that overflows is ±∞, or NaN where both meet.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if decides and (n_classes == 2 or not has_probabilities):
            raw = np.asarray(estimator.decision_function(chosen), dtype=np.float64)
        else:
            raw = np.asarray(estimator.predict_proba(chosen), dtype=np.float64)
            # NaN is at most nothing, too.
            bad = raw[~((raw >= 0.0) & (raw <= 1.0 + ROUNDING))]
            if len(bad):
                raise ValueError(
                    f"{type(estimator).__name__}.predict_proba must give probabilities,"
                    f" from 0 to 1: got {bad[0]}. Take an estimator that gives one for "
                    "every row; under deployment='as-observed' some have blanks."
                )
            raw = np.log(raw)
            if n_classes == 2 and raw.shape == (len(chosen), 2):
                raw = raw[:, 1] - raw[:, 0]
    if raw.shape != (len(chosen), *wanted):
        raise ValueError(
            f"{estimator!r} must give one score a row, or one for each of {n_classes} "
            f"classes: got shape {raw.shape}. Fit it with rows of all classes."
        )
    scores[rows] = np.where(np.isnan(raw), -np.inf, sign * raw)
    return scores


def probabilities(
    estimator: Any, X: Any, deployment: str, n_classes: int = 2
) -> FloatArray:
    """Those of a fitted estimator; NaN where "complete" and the row has a blank."""
    rows, chosen = scored_rows(X, deployment)
    shares = np.full((len(rows), n_classes), np.nan)
    if rows.any():
        shares[rows] = estimator.predict_proba(chosen)
    return shares


# How many calibration rows are scored again: near the threshold, and all over.
NEAR, ALL_OVER, ALONE = 32, 16, 2
# More than this share of the scores' size is no rounding.
LARGEST = 1e-4


class UnstableScoresWarning(UserWarning):
    """A row's score depends on the rows that it is scored with."""


def measure_rounding(
    score: Callable[[Any], FloatArray], rows: Any, scores: FloatArray, threshold: float
) -> tuple[float, float]:
    """By how much scores round: some rows alone, in another order and precision.

    Parameters
    ----------
    score : callable
        Gives the scores of rows.
    rows : array or dataframe of shape (n_rows, n_columns)
    scores : ndarray of shape (n_rows,)
        As they came out together.
    threshold : float
        Rows that score close to it are looked at most.

    Returns
    -------
    relative, scale : float
        ε, as a multiple of the size of a score; and what is added to a score's absolute
        value for its size, so that a score about zero has one too.

    Warns
    -----
    UnstableScoresWarning
        Where scores differ by more than rounding.
    """
    chosen = np.flatnonzero(np.isfinite(scores))
    if not len(chosen):
        return 0.0, 0.0
    low, high = np.quantile(scores[chosen], [0.25, 0.75])
    if len(chosen) > NEAR + ALL_OVER:
        near = np.argpartition(np.abs(scores[chosen] - threshold), NEAR)[:NEAR]
        chosen = np.union1d(chosen[near], chosen[:: len(chosen) // ALL_OVER])
    few, known = take_rows(rows, chosen[::-1]), scores[chosen[::-1]]
    scale = float(high - low)
    size = np.abs(known) + scale
    size = np.where(size > 0.0, size, 1.0)
    # A smaller batch in another order, in memory as well where that is known to matter,
    # and single rows.
    is_array = isinstance(few, np.ndarray) and few.dtype.kind == "f"
    relative = np.abs(score(np.asfortranarray(few) if is_array else few) - known) / size
    alone = [
        abs(score(take_rows(few, np.array([i])))[0] - known[i]) / size[i]
        for i in range(min(ALONE, len(chosen)))
    ]
    changes = np.nan_to_num([*relative, *alone], nan=np.inf, posinf=np.inf)
    worst = float(changes.max())
    if worst > LARGEST:
        warnings.warn(
            "Scores depend on more than the row: scored again in another batch, a "
            f"calibration row's score changed by {worst:.2g} of its size. A "
            "certificate needs scores that are a function of the row. Fix the "
            "estimator's random state, or take one that doesn't look at other rows "
            "when it predicts.",
            UnstableScoresWarning,
            stacklevel=2,
        )
        worst = LARGEST
    # As a table of float32 would have them, where it can.
    frame, single = as_frame(few), None
    if frame is not None:
        double = [name for name, kind in frame.schema.items() if kind == nw.Float64]
        single = frame.with_columns(nw.col(*double).cast(nw.Float32)).to_native()
    elif is_array and np.abs(np.nan_to_num(few)).max() < np.finfo(np.float32).max:
        single = few.astype(np.float32)
    if single is not None:
        # A step of the score that single precision crosses is no rounding of it.
        steps = np.abs(score(single) - known) / size
        worst = max(worst, float(steps[steps <= LARGEST].max(initial=0.0)))
    # ε is eight times the largest difference seen.
    return 8.0 * max(worst, float(np.finfo(np.float64).eps)), scale


# The logarithm of the least positive number: log-scores are kept this side of −∞.
LEAST_LOG = -745.0


@storable()
@dataclass(frozen=True)
class ClassScores:
    """Fitted estimators, and the log-score of each class that they give a row.

    Parameters
    ----------
    estimators : tuple of estimator
        One that knows all classes; or one for each class but the reference, fitted to
        its rows (1) and to those of the reference (0).
    classes : tuple of int
        The class, by position, that each of several estimators is for.
    reference : int
        The position of the class that the others are compared with.
    n_classes : int
    """

    estimators: tuple[Any, ...]
    classes: tuple[int, ...]
    reference: int
    n_classes: int

    def of(self, X: Any, deployment: str, among: BoolArray | None = None) -> FloatArray:
        """Scores of rows; NaN for those that aren't scored.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
        deployment : {"complete", "as-observed"}
            Whether complete rows alone are scored.
        among : ndarray of bool of shape (n_rows,), optional
            Rows that may be scored.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        scores = np.zeros((X.shape[0], self.n_classes))
        if not self.classes:
            scores = raw_scores(
                self.estimators[0], X, deployment, self.n_classes, among=among
            )
        for position, estimator in zip(self.classes, self.estimators, strict=False):
            scores[:, position] = raw_scores(estimator, X, deployment, among=among)
        scores[np.isnan(scores).any(axis=1)] = np.nan
        return np.clip(scores, LEAST_LOG, -LEAST_LOG)

    def probabilities(self, X: Any, deployment: str) -> FloatArray:
        """The probability of each class; NaN for a row that isn't scored."""
        if not self.classes:
            return probabilities(self.estimators[0], X, deployment, self.n_classes)
        return np.asarray(softmax(self.of(X, deployment), axis=1))


@dataclass(frozen=True)
class ChoosingRows:
    """Scored rows of one class, none of them missing.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_classes)
    weights : ndarray of shape (n_rows,)
    """

    scores: FloatArray
    weights: FloatArray

    def joined(self, more: ChoosingRows) -> ChoosingRows:
        """These rows and others of the class."""
        return ChoosingRows(
            np.concatenate([self.scores, more.scores]),
            np.concatenate([self.weights, more.weights]),
        )

    def share(self, which: Any) -> float:
        """The weighted share of rows of a kind; 1 where there is no row."""
        total = float(self.weights.sum())
        return float(self.weights @ which) / total if total else 1.0

    @property
    def effective(self) -> float:
        """How many rows the weights are worth (Kish)."""
        return effective_sample_size(self.weights)

    def threshold(self, scores: FloatArray, share: float) -> float:
        """The smallest threshold with at most this share above it."""
        order = np.argsort(-scores)
        tail = np.cumsum(self.weights[order]) / max(float(self.weights.sum()), 1e-300)
        place = int(np.searchsorted(tail, share, side="right"))
        return float(scores[order][min(place, len(scores) - 1)]) if len(scores) else 0.0


# How many penalties cross-validation chooses among, and by how many parts of the rows.
PENALTIES, PARTS = 10, 5


@dataclass(frozen=True, eq=False)
class ClassTable:
    """Rows of two classes or more, and why values of them are missing.

    Parameters
    ----------
    X : array or dataframe of shape (n_rows, n_columns)
    codes : ndarray of int of shape (n_rows,)
        Positions of the rows' classes among the labels.
    labels : list
        Of two classes with one bounded, that one comes first.
    models : mapping from class to Missingness, or None
    deployment : {"complete", "as-observed"}
    inclusion : ndarray of shape (n_rows,) or (n_rows, n_columns), or None
        The probabilities with which values are there, where some were looked up.
    drawn : RowInclusion or None
        The same by row.
    params : dict
        Of the estimator's fit.
    units : ndarray of int of shape (n_rows,), or None
        Rows with equal numbers are of one unit.
    groups : ndarray of shape (n_rows,), or None
        The group of each row, where groups have promises of their own.
    fitted, chosen, held : ndarray of int
        Rows to fit on, to choose by and to calibrate on.
    """

    X: Any
    codes: IntArray
    labels: list[Any]
    models: Mapping[Any, Missingness] | None
    deployment: str
    inclusion: FloatArray | None = None
    drawn: RowInclusion | None = None
    params: dict[str, Any] = field(default_factory=dict)
    units: IntArray | None = None
    groups: Any = None
    fitted: IntArray = field(default_factory=lambda: np.empty(0, np.intp))
    chosen: IntArray = field(default_factory=lambda: np.empty(0, np.intp))
    held: IntArray = field(default_factory=lambda: np.empty(0, np.intp))

    @cached_property
    def complete(self) -> BoolArray:
        """Which rows have no missing value."""
        return complete_mask(self.X)

    def rows_of(self, position: int, index: IntArray | None = None) -> IntArray:
        """The rows of one class, among some rows or all."""
        among = np.arange(len(self.codes)) if index is None else index
        return np.asarray(among[self.codes[among] == position])

    def split(
        self, sizes: Mapping[int, Mapping[str, float]], rng: np.random.Generator
    ) -> ClassTable:
        """Draw rows to fit on, to choose by and to calibrate on, class by class.

        Parameters
        ----------
        sizes : mapping from int to mapping
            By the class's position, `calibration_size` and `choice_size`: a share of
            its rows, or a number. Of units, where rows have some: one row of each may
            calibrate, and none other of it is fitted on.
        rng : Generator
        """
        parts = dict[str, list[IntArray]](choice_size=[], calibration_size=[])
        what = "rows" if self.units is None else "units"
        for position, taken in sizes.items():
            rows, end = self.rows_of(position), 0
            if taken:
                # Whether losses are explained is a matter of all rows: no seed decides.
                self.reasons(position, rows)
            if self.units is not None:
                rows = one_of_each(self.units, rows, rng)
            rows = rng.permutation(rows)
            for name, size in taken.items():
                check_number(name, size)
                whole = isinstance(size, int | np.integer) and not isinstance(
                    size, bool
                )
                valid = whole or 0.0 < size < 1.0
                share = size * len(rows) if valid else 0.0
                count = int(size) if whole else round(end + share) - end
                left = len(rows) - end - count
                if not valid or left <= 0 or (count <= 0 and name != "choice_size"):
                    facts = (
                        f"takes {count} of {len(rows)} {what} of class "
                        f"{self.labels[position]!r} and leaves {left} to fit on"
                    )
                    raise ValueError(
                        f"{name} must be a share between 0 and 1, or a number of "
                        f"{what} as an int, that leaves some: {size!r} "
                        f"{facts if valid else 'is neither'}."
                    )
                parts[name].append(rows[end : end + count])
                end += count
        chosen, held = (
            np.sort(np.concatenate([self.codes[:0], *part])) for part in parts.values()
        )
        members = np.arange(len(self.codes)) if self.units is None else self.units
        used = np.isin(members, members[np.concatenate([chosen, held])])
        return replace(self, fitted=np.flatnonzero(~used), chosen=chosen, held=held)

    def reasons(
        self, position: int, index: IntArray, *, lenient: bool = False
    ) -> tuple[Missingness | None, RowInclusion | None]:
        """Why rows of one class are missing, or the draw by which they are there.

        Neither where none is missing, or it doesn't matter. Where a class has a model,
        that explains what is missing.

        Raises
        ------
        UnexplainedMissingError
            Where some are missing and nothing says why, unless `lenient`.
        """
        if self.deployment != "complete":
            return None, None
        label = self.labels[position]
        model = (self.models or {}).get(label)
        if self.drawn is not None:
            drawn = self.drawn.take(index)
            if model is not None and drawn.looked_up:
                raise weighed_twice(label)
            if model is None and drawn.by_design:
                return None, drawn
        known = model is not None or lenient
        if not known and not self.complete[index].all():
            raise unexplained(label)
        return model, None

    def weights(
        self, position: int, index: IntArray, *, lenient: bool = False
    ) -> FloatArray:
        """What rows of one class stand for, where complete rows are meant.

        If `lenient`, complete ones stand for themselves where nothing says why others
        are missing.
        """
        model, design = self.reasons(position, index, lenient=lenient)
        if design is not None:
            return design.weights
        if self.deployment != "complete":
            return np.ones(len(index))
        if model is None:
            return self.complete[index].astype(np.float64)
        return complete_row_weights(take_rows(self.X, index), model)

    def choosing(
        self, position: int, index: IntArray, scores: FloatArray
    ) -> ChoosingRows:
        """Scored rows of one class to choose by, without those that are missing."""
        weights = self.weights(position, index, lenient=True)
        return ChoosingRows(scores[weights > 0.0], weights[weights > 0.0])

    def fit(self, estimator: Any, rows: IntArray) -> ClassScores:
        """Fit one estimator to all classes, or one for each but a reference.

        Parameters
        ----------
        estimator : estimator
            One that only knows two classes, as density ratios do, is fitted to each
            class and the largest; of two classes the reference is the first.
        rows : ndarray of int
            The rows to fit on.
        """
        n_classes = len(self.labels)
        counts = np.bincount(self.codes[rows], minlength=n_classes)
        reference = int(np.argmax(counts)) if n_classes > 2 else 0
        if n_classes > 2 and get_tags(estimator).classifier_tags.multi_class:
            return ClassScores((self.fit_one(estimator, rows),), (), 0, n_classes)
        others = tuple(k for k in range(n_classes) if k != reference)
        pairs = ({reference: 0, k: 1} for k in others)
        fitted = tuple(self.fit_one(estimator, rows, pair) for pair in pairs)
        return ClassScores(fitted, others, reference, n_classes)

    def fit_one(
        self,
        estimator: Any,
        rows: IntArray | LabelledSource,
        seen: Mapping[int, int] | None = None,
    ) -> Any:
        """Fit a clone that sees classes by their positions, or some by other labels.

        Models of missingness reach its parameters called `missingness` that are None;
        where there are none, it gets NaN if it takes that, and otherwise complete rows
        with their weights as `sample_weight`.
        What was drawn by design reaches a parameter for that, or these weights. Instead
        of rows of the table it may be a source that has them, and more.
        """
        seen = dict(enumerate(range(len(self.labels)))) if seen is None else seen
        codes = {self.labels[position]: code for position, code in seen.items()}
        names = {code: label for label, code in codes.items()}
        # 1. Models, under the labels that the estimator will see.
        estimator = clone(estimator)
        asked = missingness_parameters(estimator)
        renamed = {
            name: {codes[label]: value[label] for label in codes if value.get(label)}
            for name, value in {"": self.models, **asked}.items()
            if isinstance(value, Mapping)
        }
        models = renamed.pop("", None)
        for name, value in asked.items():
            if name in renamed or (value is None and models is not None):
                estimator.set_params(**{name: renamed.get(name, models)})
        kind, params, drawn = type(estimator).__name__, dict(self.params), self.drawn
        if isinstance(rows, LabelledSource):
            if not isinstance(estimator, LinearRatio):
                raise TypeError(
                    f"{kind} can't be fitted to a source that is read block by block. "
                    "Use KLIEP, FDivergenceRatio, ObjectiveRatio or NaiveBayesRatio, "
                    "or bring rows into memory."
                )
            given: tuple[Any, ...] = (rows,)
        else:
            # 2. Weights of rows, for an estimator that takes no NaN.
            target = np.full(len(self.labels), -1)
            target[list(seen)] = list(seen.values())
            labels = target[self.codes]
            rows, weights = rows[labels[rows] >= 0], None
            if self.inclusion is not None and self.inclusion.ndim == 2:
                # No look-up stands for rows with an entry that couldn't be drawn.
                rows = rows[~rows_with_nan(self.inclusion[rows])]
            entrywise = any(not model.rowwise for model in (models or {}).values())
            if models and not asked and not (entrywise and takes_nan(estimator)):
                weights = np.ones(len(rows))
                for code, model in models.items():
                    members = np.flatnonzero(labels[rows] == code)
                    X = take_rows(self.X, rows[members])
                    weights[members] = complete_row_weights(X, model)
                    if not weights[members].any():
                        raise ValueError(
                            f"No row of class {names[code]!r} to fit on is complete, "
                            f"and {kind} takes no NaN. Use a ratio of missratio "
                            "(KLIEP, NaiveBayesRatio), put a TiltedImputer before it, "
                            "or take an estimator that accepts NaN."
                        )
            place = inclusion_parameter(estimator) if drawn is not None else None
            if place is not None:
                params[place] = self.inclusion
            elif drawn is not None and drawn.take(rows).by_design:
                explained = np.isin(labels[rows], list(models or ()))
                inverse = np.where(explained, 1.0, drawn.weights[rows])
                weights = inverse if weights is None else inverse * weights
            if "sample_weight" in params and isinstance(estimator, Pipeline):
                # A pipeline's last step gets them.
                weights = np.ones(len(rows)) if weights is None else weights
            if weights is not None:
                rows, weights = rows[weights > 0.0], weights[weights > 0.0]
            for name, value in params.items():
                params[name] = take_rows(value, rows) if np.ndim(value) else value
            if weights is not None:
                name = weight_parameter(estimator)
                sample_weight = params.pop("sample_weight", 1.0)
                params[name] = weights * np.asarray(params.get(name, sample_weight))
            given = take_rows(self.X, rows), labels[rows]
        # 3. Errors and warnings are about the user's labels. BLAS's threads only wait
        #    for each other on a small table: ten fits of 142 × 30 took 7 processor
        #    seconds with them, and 2 without.
        small = math.prod(self.X.shape) < THREADED_ELEMENTS
        try:
            with (
                hold_threads(1) if small else nullcontext(),
                warnings.catch_warnings(record=True) as caught,
            ):
                fitted = estimator.fit(*given, **params)
        except DataError as error:
            raise error.relabelled(names) from error
        for warning in caught:
            said = warning.message
            said = said.relabelled(names) if isinstance(said, Explained) else said
            warnings.warn_explicit(
                said, warning.category, warning.filename, warning.lineno
            )
        return fitted


def missingness_parameters(estimator: Any) -> dict[str, Any]:
    """Parameters called `missingness` of an estimator and of those inside it."""
    return {
        name: value
        for name, value in estimator.get_params(deep=True).items()
        if name.split("__")[-1] == "missingness"
    }


def takes_nan(estimator: Any) -> bool:
    """Whether an estimator can be fitted to rows with NaN; of a pipeline every step."""
    steps, names = [estimator], estimator.get_params()
    fills = any(name.split("__")[-1] == "missing_values" for name in names)
    if isinstance(estimator, Pipeline) and not fills:
        steps = [step for _, step in estimator.steps if hasattr(step, "fit")]
    return all(get_tags(step).input_tags.allow_nan for step in steps)


def inclusion_parameter(estimator: Any) -> str | None:
    """What the parameter for a draw is called in an estimator's fit; None for none.

    Of a pipeline, that of an imputer at its beginning: what follows has whole rows.
    """
    first, prefix = estimator, ""
    while isinstance(first, Pipeline):
        prefix += f"{first.steps[0][0]}__"
        first = first.steps[0][1]
    if not has_fit_parameter(first, "inclusion"):
        return None
    routed = get_config()["enable_metadata_routing"]
    return "inclusion" if routed else f"{prefix}inclusion"


def takes_groups(estimator: Any) -> bool:
    """Whether an estimator's fit is to be told which rows are of one unit."""
    if get_config()["enable_metadata_routing"]:
        return bool(get_routing_for_object(estimator).consumes("fit", ["groups"]))
    return has_fit_parameter(estimator, "groups") or isinstance(estimator, BaseSearchCV)


def unexplained(label: Any) -> UnexplainedMissingError:
    """A class has lost values, nothing says why, and complete rows are meant."""
    return UnexplainedMissingError(
        Message(
            "Rows of class {label!r} have missing values (NaN) and no missingness "
            "model, and a certificate for complete rows can't ignore that: the rows "
            "that are complete don't stand for the others.",
            label=label,
            remedies=(
                Remedy.MODEL,
                "give inclusion probabilities where values were looked up",
                Remedy.AS_OBSERVED,
            ),
        )
    )


def default_estimator(table: ClassTable, rows: IntArray) -> Pipeline:
    """What is fitted where no estimator is given, by what the table has lost.

    A logistic fit on standardised columns, with a ridge penalty that cross-validation
    chooses once, by these rows: the Jensen-Shannon ratio, penalised. Before it stands

    1. nothing, where rows are complete or lost as a whole, or where φ depends on other
       columns: it is fitted to complete rows, weighted;
    2. imputation by φ, where that is given for single values: few rows may be complete;
    3. imputation by means with an indicator of what was missing, where rows are
       classified as they are observed.

    Columns of a dataframe that are not numbers are categories: each has an indicator,
    and so has a blank among them.
    """
    n_classes = len(table.labels)
    for position in range(n_classes):
        # Blanks of every class have to be explained.
        table.reasons(position, table.rows_of(position))
    steps: list[Any] = [StandardScaler()]
    if table.deployment == "as-observed" and not table.complete.all():
        means = SimpleImputer(add_indicator=True, keep_empty_features=True)
        steps.insert(0, means)
    frame = as_frame(table.X)
    kinds = {} if frame is None else frame.schema
    if frame and (dates := [k for k, kind in kinds.items() if kind.is_temporal()]):
        refuse_foreign(frame.select(dates).to_native())
    plain = {k for k, kind in kinds.items() if kind.is_numeric() or kind == nw.Boolean}
    if words := [name for name in kinds if name not in plain]:
        numbers = [name for name in kinds if name not in words]
        few_rows = {"min_frequency": 10, "handle_unknown": "infrequent_if_exist"}
        indicators = OneHotEncoder(sparse_output=False, **few_rows)
        both = (make_pipeline(*steps), numbers), (indicators, words)
        steps = [make_column_transformer(*both)]
    models = (table.models or {}).values() if table.deployment == "complete" else ()
    blocks = [block for model in models for block in getattr(model, "blocks", ())]
    apart = all(set(block.inputs) <= set(block.columns) for block in blocks)
    if apart and any(not model.rowwise for model in models):
        steps.insert(0, TiltedImputer(None, random_state=0))
    elif models:
        rows = rows[table.complete[rows]]
    counts = np.bincount(table.codes[rows], minlength=n_classes)
    folds = min(PARTS, int(counts.min()) // 2)
    strength = 1.0
    if folds > 1:
        search = LogisticRegressionCV(
            Cs=PENALTIES,
            cv=folds,
            l1_ratios=(0.0,),
            scoring="neg_log_loss",
            max_iter=1000,
            use_legacy_attributes=False,
        )
        chosen = table.fit_one(make_pipeline(*steps, search), rows)
        strength = float(chosen[-1].C_)
    return make_pipeline(*steps, LogisticRegression(C=strength, max_iter=1000))
