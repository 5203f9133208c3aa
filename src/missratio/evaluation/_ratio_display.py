"""Drawing a density ratio, in scikit-learn's manner."""

from __future__ import annotations

from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from missratio._base.typing import FloatArray
from missratio.evaluation._pyplot import pyplot

GRID = 200
GRID_TWO = 60
# Ratios smaller than this, beside the largest, are drawn as if they were this.
SMALLEST = 1e-2


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
        plt = pyplot(self)
        if ax is None:
            _, ax = plt.subplots()
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
