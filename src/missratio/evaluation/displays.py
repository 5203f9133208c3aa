"""Pictures of curves and monitors, in scikit-learn's manner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from missratio._base.blocks import take_rows
from missratio.classifier import complete_mask, known_labels
from missratio.evaluation.curves import NPROC, np_roc
from missratio.evaluation.monitor import TypeIErrorMonitor


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
        labels = known_labels(y, X, estimator.classes_)
        controlled = labels == estimator.certificate_.controlled_class
        rows = take_rows(X, np.flatnonzero(controlled))
        others = take_rows(X, np.flatnonzero(~controlled))
        sample: Any = estimator.score_samples(rows)
        if estimator.row_weights(rows, labels[controlled]) is not None:
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
            name=name or type(estimator.estimator_).__name__,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        controlled_scores: ArrayLike,
        other_scores: ArrayLike,
        *,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve of held-out scores.

        Parameters
        ----------
        controlled_scores, other_scores : array-like
            As for `np_roc`.
        ax : matplotlib Axes, optional
        **kwargs : dict
            For `np_roc`, such as `name`.

        Returns
        -------
        NPROCDisplay
            With what was drawn.
        """
        return cls(roc=np_roc(controlled_scores, other_scores, **kwargs)).plot(ax=ax)

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
        label = name or roc.name
        (self.line_,) = ax.plot(roc.alpha, roc.power, label=label, **kwargs)
        style = {"color": self.line_.get_color(), "alpha": 0.2, "linewidth": 0}
        self.band_ = ax.fill_between(roc.alpha, roc.lower, roc.upper, **style)
        sure = f"certified type I error (with probability {1 - roc.delta:g})"
        ax.set(xlabel=sure, ylabel="power", xlim=(0, roc.alpha.max()), ylim=(0, 1))
        if label is not None:
            ax.legend(loc="lower right")
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
        for panel in self.ax_:
            panel.legend(frameon=False)
        return self
