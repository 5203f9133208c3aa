"""Drawing what becomes of a certificate if φ is wrong."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from missratio.classifier import SensitivityCurve, sensitivity_curve
from missratio.evaluation._pyplot import pyplot


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
        self.figure_, self.axes_ = pyplot(self).subplots(
            1,
            len(panels),
            figsize=(4.2 * len(panels), 3.6),
            layout="constrained",
            sharey=True,
            squeeze=False,
        )
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
