"""Standard errors of a fitted ratio, and intervals on what it predicts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from scipy.special import stdtrit

from missratio._base.reading import row_blocks
from missratio._base.summary import Summary, figure
from missratio._base.typing import BoolArray, FloatArray
from missratio.ratio import (
    JointRatio,
    NaiveBayesRatio,
    basis_features,
    check_choice,
    feature_names,
)

SCALES = ("log", "ratio")
LearnedOn = Literal["auto", "same", "other"]
Backend = Literal["pandas", "polars", "pyarrow"]
# Below so many degrees of freedom, by the rows' influences or by their weights'
# spread, intervals are not reliable.
FEWEST_BY_ROWS, FEWEST_BY_WEIGHTS = 5.0, 30.0


class UnreliableIntervalWarning(UserWarning):
    """Intervals that may be too short, or that can't be computed."""


@dataclass(frozen=True, eq=False)
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
    degrees_of_freedom : ndarray of shape (n_basis_features + 1,), optional
        Of the standard errors: by how evenly rows contribute to them (Satterthwaite),
        or by how widely weights like theirs are spread, whichever is less. None: many.
    steady : ndarray of bool of shape (n_basis_features + 1,), optional
        Where there are enough of them, 5 by the rows and 30 by the weights. Elsewhere a
        few rows decide, and rows as heavy that did not happen to be observed would have
        moved the estimate. None: everywhere.
    undetermined : dict from int to float, optional
        Basis features that have one value only in the denominator's rows, and that
        value. A penalty made their coefficients up, so that they have no interval, nor
        has log r at a row where the feature has another value.
    """

    ratio: JointRatio | NaiveBayesRatio
    covariance: FloatArray
    learned_on: dict[Any, LearnedOn]
    degrees_of_freedom: FloatArray | None = None
    steady: BoolArray | None = None
    undetermined: dict[int, float] = field(default_factory=dict)

    @property
    def standard_errors(self) -> FloatArray:
        """Those of the coefficients and, last, of the log normaliser.

        NaN for a coefficient that the rows say nothing of.
        """
        errors = np.asarray(np.sqrt(np.diagonal(self.covariance)))
        errors[list(self.undetermined)] = np.nan
        return errors

    @property
    def reliable(self) -> BoolArray:
        """Whether each coefficient's interval, and the log normaliser's, is reliable.

        It is where the rows determine the coefficient and no handful of them decides.
        """
        reliable = np.ones(len(self.covariance), dtype=bool)
        if self.steady is not None:
            reliable &= self.steady
        reliable[list(self.undetermined)] = False
        return reliable

    @property
    def _degrees(self) -> FloatArray:
        if self.degrees_of_freedom is None:
            return np.full(len(self.covariance), np.inf)
        return self.degrees_of_freedom

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
        features = basis_features(self.ratio, X)
        variance, inverse = np.empty((2, len(features)))
        size = features.shape[1]
        first, cross = self.covariance[:size, :size], self.covariance[:size, size]
        own, last = np.diagonal(first), self.covariance[size, size]
        rates = 1.0 / self._degrees
        for rows in row_blocks((len(features), size)):
            block = features[rows].astype(np.float64, copy=False)
            variance[rows] = ((block @ first - 2.0 * cross) * block).sum(axis=1)
            parts = block**2
            total = parts @ own + last
            shared = parts @ (own * rates[:size]) + last * rates[size]
            inverse[rows] = shared / np.where(total > 0.0, total, 1.0)
            for j, value in self.undetermined.items():
                variance[rows][block[:, j] != value] = np.nan
        error = np.sqrt(np.maximum(variance + last, 0.0))
        with np.errstate(divide="ignore"):
            return error, 1.0 / inverse

    def interval(
        self, X: Any, level: float = 0.95, scale: Literal["log", "ratio"] = "log"
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds that hold the ratio at a row with probability `level`, row by row.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
        level : float, default=0.95
        scale : {"log", "ratio"}, default="log"
            Bounds on log r, or on r itself: their exponentials.

        Returns
        -------
        lower, upper : ndarray of shape (n_rows,)
            NaN for a row that has a missing value, and where `log_ratio` has no
            standard error.
        """
        check_choice("scale", scale, SCALES)
        error, degrees = self._errors(X)
        estimate = self.ratio.predict_log_ratio(X)
        reach = _quantile(level, degrees) * error
        bounds = estimate - reach, estimate + reach
        if scale == "log":
            return bounds
        with np.errstate(over="ignore"):
            return np.exp(bounds[0]), np.exp(bounds[1])

    def reach(self, level: float = 0.95) -> FloatArray:
        """Half the width of each coefficient's interval, by Student's quantile.

        Parameters
        ----------
        level : float, default=0.95

        Returns
        -------
        ndarray of shape (n_features,)
        """
        errors = self.standard_errors[:-1]
        return _quantile(level, self._degrees[:-1]) * errors

    def summary(self, level: float = 0.95) -> Summary:
        """Coefficients with standard errors and intervals, at a glance.

        Parameters
        ----------
        level : float, default=0.95
            Of the intervals.

        Returns
        -------
        Summary
            Prints as text, and renders in a notebook.
        """
        whole = self.ratio.summary()
        coef, error = self.ratio.coef_, self.standard_errors
        reach, reliable = self.reach(level), self.reliable
        with np.errstate(divide="ignore", invalid="ignore"):
            z = coef / error[:-1]
        rows = [
            (name, *(figure(float(cell)) for cell in cells), "" if sound else "(!)")
            for name, sound, *cells in zip(
                feature_names(self.ratio),
                reliable[:-1].tolist(),
                coef,
                error[:-1],
                z,
                coef - reach,
                coef + reach,
                strict=True,
            )
        ]
        tail = f"{(1.0 - level) / 2.0:.3g}", f"{(1.0 + level) / 2.0:.3g}"
        header = ("feature", "coefficient", "std. error", "z", *tail, "")
        log_error = ("std. error of it", figure(float(error[-1])))
        return Summary(
            title=f"{whole.title}, with standard errors",
            facts=(*whole.facts, log_error),
            header=header,
            rows=tuple(rows),
            notes=self._notes(),
        )

    def _notes(self) -> tuple[str, ...]:
        notes = ["Standard errors by the sandwich formula; intervals by Student's t."]
        for label, source in self.learned_on.items():
            rows = "these rows" if source == "same" else "other rows"
            notes.append(
                f"φ of class {label!r} was learned from {rows}; its error is included."
            )
        if not self.reliable.all():
            notes.append(
                "(!) A few rows decide, or none: the interval may be too short, or "
                "there is none."
            )
        return tuple(notes)

    def summary_frame(self, level: float = 0.95, backend: Backend = "pandas") -> Any:
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
        reach = self.reach(level)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = coef / error
        columns = {
            "feature": feature_names(self.ratio),
            "coefficient": coef.tolist(),
            "standard_error": error.tolist(),
            "z": z.tolist(),
            "lower": (coef - reach).tolist(),
            "upper": (coef + reach).tolist(),
            "reliable": self.reliable[:-1].tolist(),
        }
        return nw.from_dict(columns, backend=backend).to_native()


def _quantile(level: float, degrees: FloatArray) -> FloatArray:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie strictly between 0 and 1: got {level}.")
    return np.asarray(stdtrit(degrees, 0.5 + level / 2.0))
