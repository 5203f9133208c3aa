"""What two bounded classes leave each other, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from missratio.classifier import TradeOff

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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

    figure_: Figure
    ax_: Axes

    def __init__(self, trade_off: TradeOff) -> None:
        self.trade_off = trade_off

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> Self:
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

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on axes of one's own, or on new ones.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        """
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=(5.5, 4.5), layout="constrained")
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
        self.ax_, self.figure_ = ax, ax.figure  # type: ignore[assignment]
        return self
