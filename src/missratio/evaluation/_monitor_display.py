"""A monitor's course, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from missratio.evaluation._monitor import TypeIErrorMonitor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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

    figure_: Figure
    ax_: Any

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
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(
                2, 1, sharex=True, figsize=(7, 5), layout="constrained"
            )
        self.ax_ = np.asarray(ax)
        self.figure_ = self.ax_[0].figure
        rows = [0, *(point.n_rows for point in self.monitor.history)]
        self._draw_error(self.ax_[0], rows)
        self._draw_capital(self.ax_[1], rows)
        return self

    def _draw_error(self, ax: Axes, rows: list[int]) -> None:
        history, alpha = self.monitor.history, self.monitor.alpha
        low = [0.0, *(point.low for point in history)]
        high = [1.0, *(point.high for point in history)]
        ax.fill_between(rows, low, high, alpha=0.25, label="confidence sequence")
        ax.axhline(alpha, color="0.3", linestyle="--", linewidth=1, label="promised")
        ax.set_ylim(0.0, min(1.0, 4.0 * max(alpha, low[-1])))
        ax.set_ylabel("error of the controlled class")
        ax.legend(frameon=False)

    def _draw_capital(self, ax: Axes, rows: list[int]) -> None:
        capital = [0.0, *(point.log_capital for point in self.monitor.history)]
        ax.plot(rows, np.exp(np.clip(capital, -50.0, 300.0)), label="capital")
        ax.axhline(
            1.0 / self.monitor.delta,
            color="tab:red",
            linestyle="--",
            linewidth=1,
            label="alarm",
        )
        if self.monitor.alarm_row is not None:
            ax.axvline(self.monitor.alarm_row, color="tab:red", linewidth=1)
        ax.set_yscale("log")
        ax.set_xlabel("rows of the controlled class")
        ax.set_ylabel("capital against the promise")
        ax.legend(frameon=False)
