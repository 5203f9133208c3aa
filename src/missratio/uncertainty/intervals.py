"""Standard errors of a fitted ratio, and intervals on what it predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit
from sklearn.utils.validation import check_is_fitted

from missratio import ratio as ratios
from missratio._base.hints import check_probability
from missratio._base.reading import joined, read_table, row_blocks
from missratio._base.threads import one_blas_thread
from missratio._base.typing import BoolArray, FloatArray
from missratio.exceptions import warn
from missratio.learning import LearnedMissingness
from missratio.missingness import Block, Missingness
from missratio.ratio import LinearRatio
from missratio.rows import ClassRows
from missratio.tensor import on_host
from missratio.uncertainty import reliability
from missratio.uncertainty.covariance import LearnedPart, class_spread, expand

BOOTSTRAP = (
    "For others draw rows with replacement within each class, fit again, and take the "
    "spread of the results (the bootstrap)."
)


class UnreliableIntervalWarning(UserWarning):
    """Intervals that may be too short, or that can't be computed."""


@dataclass(frozen=True, eq=False, repr=False)
class RatioUncertainty:
    """How far (θ̂, log N̂) and log r̂ may be off: what `ratio_uncertainty` returns.

    Intervals are ± Student's quantile times the standard error.

    Parameters
    ----------
    ratio : KLIEP, KLIEPCV, FDivergenceRatio, ObjectiveRatio or NaiveBayesRatio
        The fitted ratio.
    covariance : ndarray of shape (n_basis_features + 1, n_basis_features + 1)
        Of (θ̂, log N̂), the coefficients and the log normaliser.
    learned_on : dict from class to {"same", "other"}
        For each class whose missingness was learned, whether its rows are taken to be
        those that it was learned from.
    degrees_of_freedom : ndarray of shape (n_basis_features + 1,)
        Of the standard errors: by how evenly rows contribute to them (Satterthwaite),
        or by how widely weights like theirs are spread, whichever is less.
    reliable : ndarray of bool of shape (n_basis_features + 1,)
        Whether each coefficient's interval, and the log normaliser's, is reliable: the
        rows determine it, and there are enough degrees of freedom, 5 by the rows and 30
        by the weights. Elsewhere a few rows decide, and rows as heavy that did not
        happen to be observed would have moved the estimate.
    undetermined : dict from int to float
        Basis features that have one value only in the denominator's rows, and that
        value. A penalty made their coefficients up, so that they have no interval, nor
        has log r at a row where the feature has another value.
    """

    ratio: LinearRatio
    covariance: FloatArray
    learned_on: dict[Any, str]
    degrees_of_freedom: FloatArray
    reliable: BoolArray
    undetermined: dict[int, float]

    def __repr__(self) -> str:
        """Whose uncertainty it is, and of how many coefficients."""
        kind, size = type(self.ratio).__name__, len(self.covariance) - 1
        return f"<RatioUncertainty of a {kind}, {size} coefficients>"

    @property
    def standard_errors(self) -> FloatArray:
        """Those of the coefficients and, last, of the log normaliser.

        NaN for a coefficient that the rows say nothing of.
        """
        errors = np.asarray(np.sqrt(np.diagonal(self.covariance)))
        errors[list(self.undetermined)] = np.nan
        return errors

    def log_ratio(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """The estimated log ratio at each row, and its standard error.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        estimate, standard_error : ndarray of shape (n_rows,)
            NaN for a row that has a missing value. The standard error alone is NaN
            where a feature that is undetermined has another value than it had.
        """
        return self.ratio.predict_log_ratio(X), self._errors(X)[0]

    def _errors(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Standard errors of log r, and their degrees of freedom.

        A row's 1/df is the mean of the coefficients' by their shares in the variance.
        """
        ratio, X = self.ratio, on_host(X)
        finite = ratio._missingness() is None or "allow-nan"
        features = ratio._features(X, read_table(ratio, X, reset=False, finite=finite))
        variance, inverse = np.empty((2, len(features)))
        size = features.shape[1]
        first, cross = self.covariance[:size, :size], self.covariance[:size, size]
        diagonal, last = np.diagonal(first), self.covariance[size, size]
        rates = 1.0 / self.degrees_of_freedom
        for rows in row_blocks((len(features), size)):
            block = features[rows].astype(np.float64, copy=False)
            variance[rows] = ((block @ first - 2.0 * cross) * block).sum(axis=1)
            parts = block**2
            total = parts @ diagonal + last
            shared = parts @ (diagonal * rates[:size]) + last * rates[size]
            inverse[rows] = shared / np.where(total > 0.0, total, 1.0)
            for j, value in self.undetermined.items():
                variance[rows][block[:, j] != value] = np.nan
        error = np.sqrt(np.maximum(variance + last, 0.0))
        with np.errstate(divide="ignore"):
            return error, 1.0 / inverse

    def interval(self, X: Any, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Bounds that hold log r at a row with probability `level`, row by row.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
        level : float, default=0.95

        Returns
        -------
        lower, upper : ndarray of shape (n_rows,)
            NaN for a row that has a missing value, and where `log_ratio` has no
            standard error.
        """
        error, degrees = self._errors(X)
        estimate = self.ratio.predict_log_ratio(X)
        reach = _quantile(level, degrees) * error
        return estimate - reach, estimate + reach

    def summary_frame(self, level: float = 0.95, backend: Any = "pandas") -> Any:
        """Coefficients with their uncertainty, a row for each basis feature.

        Parameters
        ----------
        level : float, default=0.95
            Of the intervals.
        backend : {"pandas", "polars", "pyarrow"}
            The kind of dataframe.

        Returns
        -------
        dataframe
            Columns: `feature`, `coefficient`, `standard_error`, `z` (their quotient),
            `lower` and `upper`, the ends of the interval, and `reliable`. Where the
            rows say nothing of a coefficient there is no interval (NaN).
        """
        coef, error = self.ratio.coef_, self.standard_errors[:-1]
        reach = _quantile(level, self.degrees_of_freedom[:-1]) * error
        with np.errstate(divide="ignore", invalid="ignore"):
            z = coef / error
        columns: dict[str, Any] = {
            "feature": self.ratio.basis_.get_feature_names_out().tolist(),
            "coefficient": coef.tolist(),
            "standard_error": error.tolist(),
            "z": z.tolist(),
            "lower": (coef - reach).tolist(),
            "upper": (coef + reach).tolist(),
            "reliable": self.reliable[:-1].tolist(),
        }
        return nw.from_dict(columns, backend=backend).to_native()


def _quantile(level: float, degrees: FloatArray) -> FloatArray:
    check_probability("level", level)
    return np.asarray(stdtrit(degrees, 0.5 + level / 2.0))


def ratio_uncertainty(
    ratio: LinearRatio,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    inclusion: ArrayLike | None = None,
) -> RatioUncertainty:
    """Estimate the covariance of a fitted ratio's (θ̂, log N̂) by the sandwich formula.

    The sum over rows, in both classes, of the outer product of what each row does to
    the estimates, divided by 1 − its leverage as if it had been left out (the
    infinitesimal jackknife, with HC3's correction). Rows are independent and drawn
    within their class; the basis and the penalty are taken as given (that which KLIEPCV
    chose too), so that under a penalty intervals are for what the penalised fit tends
    to.

    If φ was learned (`learn_missingness`), the error of its parameters is included. If
    it was learned from the same rows, which is found out by their counts and sums, the
    two errors are correlated, which mostly lowers the variance unless few values were
    looked up. What the table itself taught counts as learned from other rows.

    Parameters
    ----------
    ratio : KLIEP, KLIEPCV, FDivergenceRatio, ObjectiveRatio or NaiveBayesRatio
        Fitted, and with a log link.
    X : array-like or dataframe of shape (n_rows, n_columns)
        The rows of the fit.
    y : array-like of shape (n_rows,)
        Their labels.
    sample_weight : array-like of shape (n_rows,), optional
        Where the fit had them.
    inclusion : array-like of shape (n_rows,) or (n_rows, n_columns), optional
        Where the fit had them.

    Returns
    -------
    RatioUncertainty
        With standard errors, and intervals at any row.

    Warns
    -----
    UnreliableIntervalWarning
        Where a few rows decide, or the rows say nothing of a coefficient.

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> Z1, Z0 = rng.normal(0.5, 1, (2000, 1)), rng.normal(0, 1, (2000, 1))
    >>> phi = mr.StepMissingness(direction=1.0, threshold=0.0, probability=0.8)
    >>> X = np.concatenate([mr.corrupt(Z1, phi, random_state=0), Z0])
    >>> y = np.repeat([1, 0], 2000)
    >>> ratio = mr.KLIEP(missingness={1: phi}).fit(X, y)
    >>> uncertainty = mr.ratio_uncertainty(ratio, X, y)
    >>> uncertainty.standard_errors.round(3)
    array([0.046, 0.019])
    >>> lower, upper = uncertainty.interval([[1.0]])
    >>> lower.round(2), upper.round(2)
    (array([0.32]), array([0.44]))
    """
    if not isinstance(ratio, LinearRatio):
        raise TypeError(
            "ratio must be a fitted KLIEP, FDivergenceRatio, ObjectiveRatio or "
            f"NaiveBayesRatio, got {ratio!r}. {BOOTSTRAP}"
        )
    check_is_fitted(ratio)
    if ratio._fitted_strength[0].any():
        raise ValueError(
            "Under an L1 penalty some coefficients are held at zero, and the sandwich "
            f"formula does not apply. Use a ridge penalty (l2). {BOOTSTRAP}"
        )
    if not getattr(ratio, "converged_", True):
        raise ValueError(
            f"{type(ratio).__name__} did not converge, and standard errors hold at an "
            "optimum only. Add a ridge penalty (l2=0.01 is a start), or raise max_iter."
        )
    if ratio.pairs_used_:
        raise ValueError(
            "The ratio was fitted by pairs of columns, which have no standard errors "
            "here. Use the bootstrap, or pairs=False where enough rows are complete."
        )
    # The problem that it was fitted by, made again from the rows of the fit.
    rows = ratio._oriented(ratio._read(X, y, sample_weight, inclusion, reset=False))
    problem, required = ratio._posed(rows), ratio.basis_.required_columns_
    settings, sign = ratio._settings(), ratios.SIGN[ratio.direction_]
    units = ratios.penalty_units(
        settings.penalty_weights, rows.numerator, required, problem
    )
    problem = problem.penalised(units, ratio._fitted_strength)
    linear = problem.objective.linear_numerator
    by_feature = rows.numerator.by_entry and linear and not ratio._apart
    needed = required if by_feature else None
    with one_blas_thread(rows.denominator.source.size):
        expansions = []
        for i, width in enumerate((problem.features >= 0).sum(axis=1).tolist()):
            features = problem.features[i, :width]
            used = np.ones(required.shape[1], bool)
            if ratio._apart:
                used = required[features[0]]
            part = problem.problems(slice(i, i + 1), width)
            solved = sign * ratio.coef_[features], sign * ratio._part_intercepts[i]
            expansions.append((features, *expand(part, *solved, used, needed)))
        worst = max(decrement for _, _, decrement in expansions)
        n_rows = min(side.source.n_rows for side in rows)
        if worst > max(10.0 * settings.tol, 0.01 / np.sqrt(n_rows)):
            raise ValueError(
                "X and y are not the rows that the ratio was fitted to: its "
                f"coefficients are not optimal for them (decrement {worst:.2g}). Give "
                "the rows of the fit, and its sample_weight where it had any."
            )
        size, in_tail, spreads = len(ratio.coef_) + 1, np.inf, []
        taught: dict[Any, str] = {}
        for place, side in enumerate(rows):
            learned = _learned(side)
            if learned:
                same = all(part.shared for part in learned)
                taught[side.label] = "same" if same else "other"
            means = [(features, pair[place]) for features, pair, _ in expansions]
            # What the class's means do to (θ, log N̂): log normalisers add up.
            columns = []
            for features, mean in means:
                block = np.zeros((size, mean.to_result.shape[1]))
                block[features], block[-1] = mean.to_result[:-1], mean.to_result[-1]
                columns.append(block)
            to_result = np.concatenate(columns, axis=1)
            in_tail = min(in_tail, reliability.expected_in_tail(side))
            spreads.append(class_spread(side, means, learned, to_result))
        covariance, variance, fourth, through, heavy = (
            np.sum(both, axis=0) for both in zip(*spreads, strict=True)
        )
        classes = [rows.denominator]
        if not linear:
            classes.append(rows.numerator)
        by_column = isinstance(ratio, ratios.NaiveBayesRatio)
        undetermined = reliability.undetermined_features(classes, by_column)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Satterthwaite's degrees of freedom by the rows' influences I: a sum of squares
        # V = ΣI² with relative variance ΣI⁴/V² is spread as χ² with 2V²/ΣI⁴. About 2n/3
        # for normal influences, and few where a handful of rows decides.
        by_rows = np.where(fourth > 0.0, 2.0 * variance**2 / fourth, np.inf)
        # Those that weights like these have on average. The rows alone can't tell:
        # where the heaviest happen not to be observed, all seems well. Two or more,
        # since even a single row gives so many.
        by_weights = np.where(heavy > 0.0, through / heavy, np.inf)
    by_weights = np.maximum(by_weights, 2.0)
    # With fewer degrees of freedom intervals are not reliable.
    reliable = (by_rows >= 5.0) & (by_weights >= 30.0)
    reliable &= in_tail >= reliability.FEWEST_EXPECTED
    names, parts = [repr(name) for name in ratio.basis_.get_feature_names_out()], []
    unknown = [names[j] for j in undetermined]
    few = [name for name, sound in zip(names, reliable, strict=False) if not sound]
    few = [name for name in few if name not in unknown]
    reliable[list(undetermined)] = False
    if unknown:
        parts.append(
            f"{joined(unknown)}: every complete row of the denominator has the same "
            "value, so that the penalty alone made the coefficient up; it has no "
            "interval. Drop the feature, or bring rows with other values."
        )
    if few:
        parts.append(
            f"{joined(few)}: a few rows with large weights decide, or would if "
            "they had been observed, so that intervals may be too short. Bring more "
            "rows, or look up missing values where φ is close to 1."
        )
    if parts:
        warn(UnreliableIntervalWarning(" ".join(parts)))
    freedom = np.minimum(by_rows, by_weights)
    # The nearest matrix that is positive semi-definite: with φ learned for several
    # features, what is taken off for each by the model can in a small sample exceed
    # what is there by the rows.
    covariance = (covariance + covariance.T) / 2.0
    scale = np.sqrt(np.maximum(np.diagonal(covariance), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    if values[0] < 0.0:
        half = vectors * np.sqrt(np.maximum(values, 0.0)) * scale[:, None]
        covariance = np.asarray(half @ half.T)
    facts = covariance, taught, freedom, reliable, undetermined
    return RatioUncertainty(ratio, *facts)


def _learned(rows: ClassRows) -> list[LearnedPart]:
    """A class's φ, where it was learned: of all columns, and of each category."""
    model = rows.model
    if model is None or not model.learned:
        return []
    if rows.adjusted is not None:
        raise ValueError(
            "Means that are adjusted by regression move with a learned φ in more ways "
            f"than the sandwich formula here has. Use normalize='hajek'. {BOOTSTRAP}"
        )
    base, blocks = getattr(model, "base", model), getattr(model, "blocks", ())
    table = rows.source.every(1).block().rows
    # What the base says of columns in blocks is not looked at.
    rest = np.array(table)
    rest[:, [j for block in blocks for j in block.columns]] = 0.0
    phis: list[tuple[Missingness, Block | None, FloatArray]] = [(base, None, rest)]
    phis += [(block.model, block, table[:, list(block.inputs)]) for block in blocks]
    parts = []
    for phi, place, values in phis:
        if phi.learned and not isinstance(phi, LearnedMissingness):
            raise ValueError(
                "How rows move a φ that was learned by another class than "
                f"LearnedMissingness is not known. {BOOTSTRAP}"
            )
        if isinstance(phi, LearnedMissingness):
            parts.append(LearnedPart(phi, phi.was_learned_from(values), place))
    return parts
