"""Pictures of curves, ratios, monitors and certificates, in scikit-learn's manner."""

from __future__ import annotations

from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from missratio._base.blocks import take_rows
from missratio._base.typing import FloatArray
from missratio.classifier import (
    SensitivityCurve,
    TradeOff,
    complete_mask,
    sensitivity_curve,
)
from missratio.evaluation.curves import NPROC, np_roc
from missratio.evaluation.monitor import TypeIErrorMonitor

GRID = 200
GRID_TWO = 60
# Ratios smaller than this, beside the largest, are drawn as if they were this.
SMALLEST = 1e-2


def new_axes(display: Any, *shape: int, **options: Any) -> Any:
    """Axes of a new figure, or how to get matplotlib."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{type(display).__name__} draws with matplotlib: pip install "
            "'missratio[report]'."
        ) from error
    return plt.subplots(*shape, **options)[1]


class NPROCDisplay:
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

    def __init__(self, *, roc: NPROC, estimator_name: str | None = None) -> None:
        self.roc = roc
        self.estimator_name = estimator_name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        name: str | None = None,
        ax: Any = None,
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
        ax : matplotlib Axes, optional
        **kwargs : dict
            For `np_roc`, such as `alphas`, and for `plot`.

        Returns
        -------
        NPROCDisplay
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
            ax=ax,
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
        line_options: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve of held-out scores.

        Parameters
        ----------
        controlled_scores, other_scores : array-like
            As for `np_roc`.
        name : str, optional
        ax : matplotlib Axes, optional
        line_options : dict, optional
            For matplotlib's `plot`.
        **kwargs : dict
            For `np_roc`.

        Returns
        -------
        NPROCDisplay
        """
        roc = np_roc(controlled_scores, other_scores, name=name, **kwargs)
        display = cls(roc=roc, estimator_name=name)
        return display.plot(ax=ax, **(line_options or {}))

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
        """
        if ax is None:
            ax = new_axes(self)
        label = name or self.estimator_name
        (self.line_,) = ax.plot(self.roc.alpha, self.roc.power, label=label, **kwargs)
        self.band_ = ax.fill_between(
            self.roc.alpha,
            self.roc.lower,
            self.roc.upper,
            color=self.line_.get_color(),
            alpha=0.2,
            linewidth=0,
        )
        ax.set_xlabel(
            f"certified type I error (with probability {1 - self.roc.delta:g})"
        )
        ax.set_ylabel("power")
        ax.set_xlim(0, float(self.roc.alpha.max()))
        ax.set_ylim(0, 1)
        if label is not None:
            ax.legend(loc="lower right")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class RatioDisplay:
    """A density ratio over a sample, over one column or over two.

    Over the sample: histograms of log r̂ at the numerator's and the denominator's rows,
    which lie apart where the ratio tells them apart. Over one column: r̂ at every row
    against the column, and its curve with the other columns at their medians. Over
    two: contours of log r̂, likewise, and the rows.

    Parameters
    ----------
    log_ratio : ndarray of shape (n_rows,)
        NaN for rows that aren't drawn.
    is_numerator : ndarray of bool of shape (n_rows,), or None
    columns : ndarray of shape (n_rows, n_drawn), or None
        The columns drawn over.
    names : sequence of str
        Their names.
    grid : tuple of ndarray, or None
        Values of the columns, and log r̂ there, with the others at their medians.

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
    >>> display = mr.RatioDisplay.from_estimator(
    ...     ratio, X, y, columns=[0]
    ... )  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        log_ratio: FloatArray,
        is_numerator: Any = None,
        columns: FloatArray | None = None,
        names: Any = (),
        grid: tuple[FloatArray, ...] | None = None,
    ) -> None:
        self.log_ratio = log_ratio
        self.is_numerator = is_numerator
        self.columns = columns
        self.names = names
        self.grid = grid

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        columns: Any = None,
        ax: Any = None,
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
        columns : list of one or two columns, by number or name; None
            None draws over the sample.
        ax : matplotlib Axes, optional

        Returns
        -------
        RatioDisplay
        """
        check_is_fitted(estimator)
        table, all_names = _read(X)
        complete = ~np.isnan(table).any(axis=1)
        log_ratio = np.full(len(table), np.nan)
        log_ratio[complete] = estimator.predict_log_ratio(_like(X, table[complete]))
        own = None if y is None else np.asarray(y) == estimator.classes_[1]
        if columns is None:
            return cls(log_ratio=log_ratio, is_numerator=own).plot(ax=ax)
        places = _places(columns, all_names)
        axes = [
            np.linspace(*_range(table[complete, place]), n)
            for place, n in zip(
                places, [GRID] if len(places) == 1 else [GRID_TWO] * 2, strict=True
            )
        ]
        mesh = np.meshgrid(*axes, indexing="ij")
        points = np.tile(np.median(table[complete], axis=0), (mesh[0].size, 1))
        for place, values in zip(places, mesh, strict=True):
            points[:, place] = values.ravel()
        height = estimator.predict_log_ratio(_like(X, points)).reshape(mesh[0].shape)
        return cls(
            log_ratio=log_ratio,
            is_numerator=own,
            columns=table[:, places],
            names=[all_names[place] for place in places],
            grid=(*axes, height),
        ).plot(ax=ax)

    @classmethod
    def from_predictions(
        cls,
        ratio: ArrayLike,
        y: ArrayLike | None = None,
        *,
        columns: Any = None,
        ax: Any = None,
    ) -> Self:
        """Draw ratios that were predicted, by whatever estimator.

        Parameters
        ----------
        ratio : array-like of shape (n_rows,)
            r̂, not negative; NaN where a row isn't to be drawn.
        y : array-like of shape (n_rows,), optional
            Labels; the one sorted last is the numerator.
        columns : array-like or dataframe of shape (n_rows, 1) or (n_rows, 2), optional
            What to draw over; None draws over the sample.
        ax : matplotlib Axes, optional

        Returns
        -------
        RatioDisplay
        """
        values = np.asarray(ratio, dtype=np.float64)
        if values.ndim != 1 or (values < 0.0).any():
            raise ValueError(
                f"ratio must be one number a row, not negative; got shape "
                f"{values.shape}. predict_ratio gives them."
            )
        with np.errstate(divide="ignore"):
            log_ratio = np.log(values)
        own = None
        if y is not None:
            labels = np.asarray(y)
            own = labels == np.unique(labels)[-1]
        if columns is None:
            return cls(log_ratio=log_ratio, is_numerator=own).plot(ax=ax)
        table, names = _read(columns)
        if table.shape[1] not in (1, 2) or len(table) != len(values):
            raise ValueError(
                f"columns must be one or two, of {len(values)} rows; got shape "
                f"{table.shape}."
            )
        display = cls(log_ratio=log_ratio, is_numerator=own, columns=table, names=names)
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            None makes a new figure.

        Returns
        -------
        RatioDisplay
        """
        if ax is None:
            ax = new_axes(self)
        self.ax_, self.figure_ = ax, ax.figure
        if self.columns is None:
            self._plot_sample(ax)
        elif self.columns.shape[1] == 1:
            self._plot_one(ax)
        else:
            self._plot_two(ax)
        return self

    def _groups(self) -> list[tuple[str | None, str, Any]]:
        """Which rows are drawn in which colour, and what they are called."""
        drawn = ~np.isnan(self.log_ratio)
        if self.is_numerator is None:
            return [(None, "C0", drawn)]
        return [
            ("denominator", "C0", drawn & ~self.is_numerator),
            ("numerator", "C1", drawn & self.is_numerator),
        ]

    @property
    def _floor(self) -> float:
        """The lowest log ratio that is drawn, since that of zero has no place."""
        drawn = self.log_ratio[~np.isnan(self.log_ratio)]
        return float(drawn.max(initial=0.0) + np.log(SMALLEST))

    def _heights(self) -> FloatArray:
        return np.maximum(self.log_ratio, self._floor)

    def _plot_sample(self, ax: Any) -> None:
        heights = self._heights()
        edges = np.histogram_bin_edges(heights[~np.isnan(heights)], bins=40)
        for name, colour, rows in self._groups():
            ax.hist(
                heights[rows], bins=edges, density=True, alpha=0.55, color=colour,
                label=name,
            )  # fmt: skip
        ax.axvline(0.0, color="0.4", linewidth=1, linestyle=":")
        ax.set(xlabel="log ratio", ylabel="density")
        if self.is_numerator is not None:
            ax.legend(frameon=False, markerscale=2)

    def _plot_one(self, ax: Any) -> None:
        assert self.columns is not None
        for name, colour, rows in self._groups():
            ax.scatter(
                self.columns[rows, 0], np.exp(self._heights()[rows]), s=8, alpha=0.4,
                color=colour, label=name, linewidths=0,
            )  # fmt: skip
        if self.grid is not None:
            curve = np.exp(np.maximum(self.grid[1], self._floor))
            label = "others at their medians"
            ax.plot(self.grid[0], curve, color="black", linewidth=1.5, label=label)
        ax.axhline(1.0, color="0.4", linewidth=1, linestyle=":")
        ax.set(xlabel=self.names[0], ylabel="ratio", yscale="log")
        if self.is_numerator is not None or self.grid is not None:
            ax.legend(frameon=False, markerscale=2)

    def _plot_two(self, ax: Any) -> None:
        assert self.columns is not None
        drawn = ~np.isnan(self.log_ratio)
        heights = self._heights()
        if self.grid is not None:
            heights = np.maximum(self.grid[2], self._floor)
        reach = max(
            float(np.quantile(np.abs(heights[np.isfinite(heights)]), 0.98)), 0.1
        )
        if self.grid is None:
            shown = ax.scatter(
                *self.columns[drawn].T, c=heights[drawn], s=10, cmap="RdBu_r",
                vmin=-reach, vmax=reach,
            )  # fmt: skip
        else:
            first, second, _ = self.grid
            shown = ax.contourf(
                first, second, np.clip(heights, -reach, reach).T,
                levels=np.linspace(-reach, reach, 21), cmap="RdBu_r",
            )  # fmt: skip
            for name, _, rows in self._groups():
                marker = "x" if name == "numerator" else "."
                ax.scatter(
                    *self.columns[rows].T, s=9, color="black", alpha=0.35,
                    marker=marker, linewidths=0.6, label=name,
                )  # fmt: skip
            if self.is_numerator is not None:
                ax.legend(loc="upper right", markerscale=2)
        self.figure_.colorbar(shown, ax=ax, label="log ratio")
        ax.set(xlabel=self.names[0], ylabel=self.names[1])


def _read(X: Any) -> tuple[FloatArray, list[str]]:
    """A table of numbers, and the columns' names."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return np.asarray(frame.to_numpy(), dtype=np.float64), list(frame.columns)
    table = np.asarray(X, dtype=np.float64)
    if table.ndim != 2:
        raise ValueError(f"X must be a table of rows and columns, got {table.shape}.")
    return table, [f"x{j}" for j in range(table.shape[1])]


def _like(X: Any, rows: FloatArray) -> Any:
    """Rows as a table of the kind that X is."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return nw.from_numpy(
            rows, list(frame.columns), backend=frame.implementation
        ).to_native()
    return rows


def _places(columns: Any, names: list[str]) -> list[int]:
    chosen = list(columns) if isinstance(columns, list | tuple) else [columns]
    if len(chosen) not in (1, 2):
        raise ValueError(f"columns must name one or two columns, got {columns!r}.")
    places = []
    for each in chosen:
        if each in names:
            places.append(names.index(each))
        elif isinstance(each, int | np.integer) and 0 <= each < len(names):
            places.append(int(each))
        else:
            raise ValueError(f"There is no column {each!r} among {names}.")
    return places


def _range(values: FloatArray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    margin = 0.05 * (high - low or 1.0)
    return low - margin, high + margin


class MonitorDisplay:
    """The confidence sequence for the error, and the capital against the promise.

    Parameters
    ----------
    monitor : TypeIErrorMonitor
        What was watched. It has seen a row at least.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : ndarray of two matplotlib Axes
        The error above, the capital below.
    """

    def __init__(self, monitor: TypeIErrorMonitor) -> None:
        if not monitor.history:
            raise ValueError("The monitor has seen no row: update it first.")
        self.monitor = monitor

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
        if ax is None:
            ax = new_axes(self, 2, 1, sharex=True, figsize=(7, 5), layout="constrained")
        self.ax_ = np.asarray(ax)
        self.figure_ = self.ax_[0].figure
        history, alpha = self.monitor.history, self.monitor.alpha
        rows = [0, *(point.n_rows for point in history)]
        above, below = self.ax_
        low = [0.0, *(point.low for point in history)]
        high = [1.0, *(point.high for point in history)]
        above.fill_between(rows, low, high, alpha=0.25, label="confidence sequence")
        dashed: dict[str, Any] = {"linestyle": "--", "linewidth": 1}
        above.axhline(alpha, color="0.3", label="promised", **dashed)
        above.set_ylim(0.0, min(1.0, 4.0 * max(alpha, low[-1])))
        above.set_ylabel("error of the controlled class")
        capital = [0.0, *(point.log_capital for point in history)]
        below.plot(rows, np.exp(np.clip(capital, -50.0, 300.0)), label="capital")
        below.axhline(
            1.0 / self.monitor.delta, color="tab:red", label="alarm", **dashed
        )
        if self.monitor.alarm_row is not None:
            below.axvline(self.monitor.alarm_row, color="tab:red", linewidth=1)
        below.set_yscale("log")
        below.set_xlabel("rows of the controlled class")
        below.set_ylabel("capital against the promise")
        for each in self.ax_:
            each.legend(frameon=False)
        return self


class SensitivityDisplay:
    """Certified error and power against the odds factor and against tilts of φ.

    Parameters
    ----------
    curve : SensitivityCurve

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(self, *, curve: SensitivityCurve) -> None:
        self.curve = curve

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, **kwargs: Any
    ) -> Self:
        """Draw the curve of a fitted Neyman-Pearson classifier.

        Parameters
        ----------
        estimator : NeymanPearsonClassifier
        X, y : array-like
            The rows that it was fitted with.
        **kwargs : dict
            For `sensitivity_curve`.

        Returns
        -------
        SensitivityDisplay
        """
        return cls(curve=sensitivity_curve(estimator, X, y, **kwargs)).plot()

    def plot(self) -> Self:
        """Draw.

        Returns
        -------
        SensitivityDisplay
        """
        curve = self.curve
        panels = [
            (curve.odds, "odds of being missing wrong by a factor of up to Γ"),
            (curve.controlled, "controlled class: log-odds per sd added to φ"),
        ]
        if curve.other is not None:
            panels.append((curve.other, "other class: log-odds per sd added to φ"))
        self.axes_ = new_axes(
            self,
            1,
            len(panels),
            figsize=(4.2 * len(panels), 3.6),
            layout="constrained",
            sharey=True,
            squeeze=False,
        )
        self.figure_ = self.axes_[0, 0].figure
        for axis, (part, label) in zip(self.axes_[0], panels, strict=True):
            axis.plot(part.amount, part.error, color="C3", label="certified error")
            axis.plot(part.amount, part.power, color="C0", label="power")
            axis.axhline(curve.alpha, color="0.5", linestyle=":", label="α")
            for place, tip in enumerate(t for t in part.tipping if np.isfinite(t)):
                name = "the certificate is lost" if place == 0 else None
                axis.axvline(tip, color="0.3", linestyle="--", label=name)
            axis.set_xlabel(label)
            axis.set_ylim(0.0, 1.0)
        self.axes_[0, 0].set_xscale("log")
        ticks = [1, 1.5, 2, 3, 4]
        shown = [t for t in ticks if t <= float(curve.odds.amount.max())]
        self.axes_[0, 0].set_xticks(shown, [f"{t:g}" for t in shown])
        self.axes_[0, 0].minorticks_off()
        handles, labels = self.axes_[0, 1].get_legend_handles_labels()
        self.figure_.legend(handles, labels, loc="outside upper center", ncols=4)
        return self


class TradeOffDisplay:
    """The least errors that two bounded classes can have together.

    Parameters
    ----------
    trade_off : TradeOff

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> import missratio as mr
    >>> from missratio.evaluation import TradeOffDisplay
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(np.repeat([[0], [1], [3]], 500, 0)), np.repeat([0, 1, 2], 500)
    >>> clf = mr.MulticlassNeymanPearsonClassifier(
    ...     LogisticRegression(), alpha={0: 0.05, 1: 0.05}, random_state=0
    ... )
    >>> try:
    ...     clf.fit(X, y)
    ... except mr.exceptions.NoCertificateError:
    ...     display = TradeOffDisplay.from_estimator(clf)
    >>> display.ax_.get_xlabel()
    'error of class 0'
    """

    def __init__(self, trade_off: TradeOff) -> None:
        self.trade_off = trade_off

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the tightest trade-off that a classifier found.

        Parameters
        ----------
        estimator : MulticlassNeymanPearsonClassifier
            After `fit`, also after one that found no room.
        ax : matplotlib Axes, optional
        """
        found: tuple[TradeOff, ...] = getattr(estimator, "trade_offs_", ())
        if not found:
            raise ValueError(
                "The classifier has no trade-off to draw: it isn't fitted, its classes "
                "are ordered, or it bounds one class only."
            )
        return cls(found[0]).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on axes of one's own, or on new ones.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        """
        if ax is None:
            ax = new_axes(self, figsize=(5.5, 4.5), layout="constrained")
        (a, b), (level_a, level_b) = self.trade_off.labels, self.trade_off.levels
        ax.plot(*self.trade_off.errors.T, label="estimated errors", color="tab:blue")
        ax.plot(
            *self.trade_off.certifiable.T,
            label="least levels that can be certified",
            color="tab:orange",
        )
        ax.fill_between(
            [0.0, level_a], 0.0, level_b, color="0.85", label="asked for", zorder=0
        )
        ax.plot([level_a], [level_b], "ko", markersize=5)
        most = max(
            4.0 * max(level_a, level_b),
            1.3 * self.trade_off.least_factor * max(level_a, level_b),
        )
        ax.set_xlim(0.0, min(most, 1.0))
        ax.set_ylim(0.0, min(most, 1.0))
        ax.set_xlabel(f"error of class {a!r}")
        ax.set_ylabel(f"error of class {b!r}")
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
