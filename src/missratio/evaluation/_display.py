"""Drawing the NP-ROC, in scikit-learn's manner."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from missratio._base.blocks import take_rows
from missratio.classifier import complete_mask
from missratio.evaluation._np_roc import NPROC, np_roc
from missratio.evaluation._pyplot import pyplot


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
        plt = pyplot(self)
        if ax is None:
            _, ax = plt.subplots()
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
