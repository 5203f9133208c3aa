"""Pictures of curves, ratios, monitors and certificates, in scikit-learn's manner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from missratio._base.blocks import take_rows
from missratio._base.typing import FloatArray
from missratio.classifier import complete_mask
from missratio.evaluation.curves import NPROC, np_roc
from missratio.evaluation.monitor import TypeIErrorMonitor

# Ratios smaller than this, beside the largest, are drawn as if they were this.
SMALLEST = 1e-2


class _Display:
    """What pictures share: they are drawn on axes of the user's, or on new ones."""

    def _axes(self, ax: Any, *shape: int, **options: Any) -> Any:
        """Keep the axes given or, where there are none, make a new figure's."""
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError as error:
                raise ImportError(
                    f"{type(self).__name__} draws with matplotlib: pip install "
                    "'missratio[report]'."
                ) from error
            ax = plt.subplots(*shape, **options)[1]
        self.ax_, self.figure_ = ax, np.ravel(ax)[0].figure
        return ax


@dataclass(kw_only=True, eq=False)
class NPROCDisplay(_Display):
    """An NP-ROC curve with its band.

    Parameters
    ----------
    roc : NPROC
    estimator_name : str, optional

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Artist
    band_ : matplotlib Artist

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> display = mr.NPROCDisplay.from_predictions(
    ...     rng.normal(0, 1, 1000), rng.normal(2, 1, 1000)
    ... )  # doctest: +SKIP
    """

    roc: NPROC
    estimator_name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve of a fitted Neyman-Pearson classifier on fresh rows.

        Parameters
        ----------
        estimator : NeymanPearsonClassifier
            Fitted. Its calibration rows are not used: give rows that it hasn't seen.
        X : array-like or dataframe of shape (n_rows, n_columns)
            Rows of the controlled class that have lost values are weighted as in
            calibration. Those of the other class must be complete, unless the
            classifier is for rows as they are observed.
        y : array-like of shape (n_rows,)
        name : str, optional
        **kwargs : dict
            For `from_predictions`, such as `alphas` and `ax`.

        Returns
        -------
        NPROCDisplay
            With what was drawn.
        """
        check_is_fitted(estimator, "threshold_")
        controlled = np.asarray(y) == estimator.certificate_.controlled_class
        rows = take_rows(X, np.flatnonzero(controlled))
        others = take_rows(X, np.flatnonzero(~controlled))
        sample: Any = estimator.score_samples(rows)
        if estimator.row_weights(rows, np.asarray(y)[controlled]) is not None:
            sample = estimator.calibration_sample(rows)
        if estimator.deployment == "complete" and not complete_mask(others).all():
            raise ValueError(
                "Rows of the other class have missing values (NaN), and the classifier "
                "is for complete rows: the power on complete rows can't be read off "
                "them. Give complete rows of that class."
            )
        return cls.from_predictions(
            sample,
            estimator.score_samples(others),
            delta=estimator.delta - estimator.certificate_.missingness_delta,
            name=name or type(estimator.estimator).__name__,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        controlled_scores: ArrayLike,
        other_scores: ArrayLike,
        *,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve of held-out scores.

        Parameters
        ----------
        controlled_scores, other_scores : array-like
            As for `np_roc`.
        name : str, optional
        ax : matplotlib Axes, optional
        **kwargs : dict
            For `np_roc`.

        Returns
        -------
        NPROCDisplay
            With what was drawn.
        """
        roc = np_roc(controlled_scores, other_scores, name=name, **kwargs)
        return cls(roc=roc, estimator_name=name).plot(ax=ax)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            None makes a new figure.
        name : str, optional
        **kwargs : dict
            For matplotlib's `plot`.

        Returns
        -------
        NPROCDisplay
            Itself, with what was drawn.
        """
        ax, roc = self._axes(ax), self.roc
        label = name or self.estimator_name
        (self.line_,) = ax.plot(roc.alpha, roc.power, label=label, **kwargs)
        style = {"color": self.line_.get_color(), "alpha": 0.2, "linewidth": 0}
        self.band_ = ax.fill_between(roc.alpha, roc.lower, roc.upper, **style)
        sure = f"certified type I error (with probability {1 - roc.delta:g})"
        ax.set(xlabel=sure, ylabel="power", xlim=(0, roc.alpha.max()), ylim=(0, 1))
        if label is not None:
            ax.legend(loc="lower right")
        return self


@dataclass(kw_only=True, eq=False)
class RatioDisplay(_Display):
    """Histograms of log r̂ at the numerator's and the denominator's rows.

    They lie apart where the ratio tells the two apart. For a ratio over one column,
    scikit-learn's `PartialDependenceDisplay` takes any ratio.

    Parameters
    ----------
    log_ratio : ndarray of shape (n_rows,)
        NaN for rows that aren't drawn.
    is_numerator : ndarray of bool of shape (n_rows,), or None

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(0, 1, (200, 1)), rng.normal(1, 1, (200, 1))]
    >>> y = np.repeat([0, 1], 200)
    >>> ratio = mr.KLIEP().fit(X, y)
    >>> display = mr.RatioDisplay.from_estimator(ratio, X, y)  # doctest: +SKIP
    """

    log_ratio: FloatArray
    is_numerator: Any = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike | None = None, *, ax: Any = None
    ) -> Self:
        """Draw a fitted ratio.

        Parameters
        ----------
        estimator : ratio estimator
            Fitted.
        X : array-like or dataframe of shape (n_rows, n_columns)
            Rows with a missing value are not drawn.
        y : array-like of shape (n_rows,), optional
            Labels, for the colours.
        ax : matplotlib Axes, optional

        Returns
        -------
        RatioDisplay
            With what was drawn.
        """
        check_is_fitted(estimator)
        complete = np.flatnonzero(complete_mask(X))
        log_ratio = np.full(np.shape(X)[0], np.nan)
        log_ratio[complete] = estimator.predict_log_ratio(take_rows(X, complete))
        of_numerator = None if y is None else np.asarray(y) == estimator.classes_[1]
        return cls(log_ratio=log_ratio, is_numerator=of_numerator).plot(ax=ax)

    @classmethod
    def from_predictions(
        cls, ratio: ArrayLike, y: ArrayLike | None = None, *, ax: Any = None
    ) -> Self:
        """Draw ratios that were predicted, by whatever estimator.

        Parameters
        ----------
        ratio : array-like of shape (n_rows,)
            r̂, not negative; NaN where a row isn't to be drawn.
        y : array-like of shape (n_rows,), optional
            Labels; the one sorted last is the numerator.
        ax : matplotlib Axes, optional

        Returns
        -------
        RatioDisplay
            With what was drawn.
        """
        values = np.asarray(ratio, dtype=np.float64)
        if values.ndim != 1 or (values < 0.0).any():
            raise ValueError(
                f"ratio must be one number a row, not negative; got shape "
                f"{values.shape}. predict_ratio gives them."
            )
        with np.errstate(divide="ignore"):
            log_ratio = np.log(values)
        of_numerator = None if y is None else np.asarray(y) == np.unique(y)[-1]
        return cls(log_ratio=log_ratio, is_numerator=of_numerator).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            None makes a new figure.

        Returns
        -------
        RatioDisplay
            Itself, with what was drawn.
        """
        ax, drawn = self._axes(ax), ~np.isnan(self.log_ratio)
        groups: dict[Any, Any] = {None: drawn}
        if self.is_numerator is not None:
            groups = {"denominator": drawn & ~self.is_numerator}
            groups["numerator"] = drawn & self.is_numerator
        # The lowest log ratio that is drawn, since that of zero has no place.
        floor = self.log_ratio[drawn].max(initial=0.0) + np.log(SMALLEST)
        heights = np.maximum(self.log_ratio, floor)
        bins = np.histogram_bin_edges(heights[drawn], bins=40)
        for name, rows in groups.items():
            ax.hist(heights[rows], bins=bins, density=True, alpha=0.55, label=name)
        ax.axvline(0.0, color="0.4", linewidth=1, linestyle=":")
        ax.set(xlabel="log ratio", ylabel="density")
        if self.is_numerator is not None:
            ax.legend(frameon=False)
        return self


@dataclass(eq=False)
class MonitorDisplay(_Display):
    """The confidence sequence for the error, and the capital against the promise.

    Parameters
    ----------
    monitor : TypeIErrorMonitor
        What was watched.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : ndarray of two matplotlib Axes
        The error above, the capital below.
    """

    monitor: TypeIErrorMonitor

    @classmethod
    def from_monitor(cls, monitor: TypeIErrorMonitor) -> Self:
        """Draw a monitor."""
        return cls(monitor).plot()

    def plot(self, ax: Any = None) -> Self:
        """Draw on two axes of one's own, or on new ones.

        Parameters
        ----------
        ax : sequence of two matplotlib Axes, optional
        """
        options = {"sharex": True, "figsize": (7, 5), "layout": "constrained"}
        self.ax_ = np.asarray(self._axes(ax, 2, 1, **options))
        monitor, (above, below) = self.monitor, self.ax_
        points = [(0, 0.0, 0.0, 1.0), *monitor.history]
        rows, capital, low, high = zip(*points, strict=True)
        dashed: dict[str, Any] = {"linestyle": "--", "linewidth": 1}
        above.fill_between(rows, low, high, alpha=0.25, label="confidence sequence")
        above.axhline(monitor.alpha, color="0.3", label="promised", **dashed)
        top = min(1.0, 4.0 * max(monitor.alpha, low[-1]))
        above.set(ylim=(0.0, top), ylabel="error of the controlled class")
        below.plot(rows, np.exp(np.clip(capital, -50.0, 300.0)), label="capital")
        below.axhline(1.0 / monitor.delta, color="tab:red", label="alarm", **dashed)
        if monitor.alarm_row is not None:
            below.axvline(monitor.alarm_row, color="tab:red", linewidth=1)
        below.set(yscale="log", xlabel="rows of the controlled class")
        below.set_ylabel("capital against the promise")
        for each in self.ax_:
            each.legend(frameon=False)
        return self
