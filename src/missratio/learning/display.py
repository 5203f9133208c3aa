"""Pictures of a learned φ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from missratio._base.hints import did_you_mean
from missratio._base.reading import as_numeric_array
from missratio._base.typing import FloatArray
from missratio.learning.learned import LearnedMissingness
from missratio.missingness import Missingness

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GRID = 200
COLUMNS = 4


@dataclass(frozen=True)
class Curve:
    """φ̂ of one feature over its data.

    Parameters
    ----------
    name : str
    values : ndarray of shape (n_points,)
    estimate, lower, upper : ndarray of shape (n_points,)
    truth : ndarray of shape (n_points,), or None
    observed, revealed : ndarray
        The data.
    """

    name: str
    values: FloatArray
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    truth: FloatArray | None
    observed: FloatArray
    revealed: FloatArray


class MissingnessDisplay:
    """φ̂ of each feature with its band, over the data that it was learned from.

    Make it by `from_model`; `plot` draws it.

    Parameters
    ----------
    curves : sequence of Curve
    delta : float
        The bands hold all of φ, for all features of the model at once, with probability
        1 − δ.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes
    """

    def __init__(self, curves: Sequence[Curve], delta: float) -> None:
        self.curves = tuple(curves)
        self.delta = delta

    @classmethod
    def from_model(
        cls,
        model: LearnedMissingness,
        X: Any,
        *,
        features: Sequence[str | int] | None = None,
        delta: float = 0.05,
        truth: Missingness | None = None,
    ) -> Self:
        """Evaluate a model over the observed range of X and of the revealed values.

        Parameters
        ----------
        model : LearnedMissingness
            Per feature.
        X : array-like or dataframe of shape (n, d)
            The table that it was learned from.
        features : sequence of str or int, optional
            Which to show; all that have missing values if None.
        delta : float, default=0.05
        truth : Missingness, optional
            The true φ, where it is known, to be drawn as well.

        Returns
        -------
        MissingnessDisplay
        """
        if model.rowwise:
            raise ValueError(
                "A rowwise φ depends on all features at once and can't be drawn over "
                "one. Plot missing_probability and probability_band over a score."
            )
        table = as_numeric_array(X).astype(np.float64, copy=False)
        chosen = _chosen(model, features)
        grid = np.full((GRID, table.shape[1]), np.nan)
        revealed: dict[int, FloatArray] = {}
        for j in chosen:
            evidence = model.evidence[j]
            assert evidence is not None
            known = evidence.values[:1, : evidence.n_revealed].ravel()
            revealed[j] = known
            column = np.concatenate([table[:, j], known])
            grid[:, j] = np.linspace(np.nanmin(column), np.nanmax(column), GRID)
        estimate = model.missing_probability(grid)
        lower, upper = model.probability_band(grid, delta)
        true = truth.missing_probability(grid) if truth is not None else None
        curves = [
            Curve(
                model.feature_names[j],
                grid[:, j],
                estimate[:, j],
                lower[:, j],
                upper[:, j],
                true[:, j] if true is not None else None,
                table[~np.isnan(table[:, j]), j],
                revealed[j],
            )
            for j in chosen
        ]
        return cls(curves, delta)

    def plot(self, axes: Sequence[Axes] | None = None) -> Self:
        """Draw a panel for each feature.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, optional
            One for each feature; made if None.

        Returns
        -------
        Self
            With `figure_` and `axes_`.
        """
        if axes is None:
            axes = _new_axes(len(self.curves))
        for ax, curve in zip(axes, self.curves, strict=True):
            _draw(ax, curve, self.delta)
        axes[0].set_ylabel("probability of being missing")
        axes[0].legend(loc="best", frameon=False, fontsize="small")
        self.axes_ = np.array(axes, dtype=object)
        self.figure_: Figure = axes[0].figure  # type: ignore[assignment]
        return self


def _chosen(
    model: LearnedMissingness, features: Sequence[str | int] | None
) -> list[int]:
    names = model.feature_names
    if features is None:
        return [j for j, evidence in enumerate(model.evidence) if evidence is not None]
    chosen = []
    for feature in features:
        place = feature if isinstance(feature, int) else None
        if isinstance(feature, str) and feature in names:
            place = names.index(feature)
        if place is None or not -len(names) <= place < len(names):
            hint = did_you_mean(str(feature), names)
            raise ValueError(f"There is no feature {feature!r}.{hint}")
        if model.evidence[place] is None:
            raise ValueError(f"Feature {feature!r} has no missing values to draw.")
        chosen.append(place % len(names))
    return chosen


def _new_axes(count: int) -> list[Axes]:
    import matplotlib.pyplot as plt

    columns = min(count, COLUMNS)
    rows = -(-count // columns)
    figure, grid = plt.subplots(
        rows,
        columns,
        figsize=(3.2 * columns, 2.6 * rows),
        squeeze=False,
        sharey=True,
        layout="constrained",
    )
    axes = list(grid.ravel())
    for spare in axes[count:]:
        spare.remove()
    del figure
    return axes[:count]


def _draw(ax: Axes, curve: Curve, delta: float) -> None:
    counts, edges = np.histogram(curve.observed, bins=30)
    height = 0.25 * counts / max(counts.max(), 1)
    ax.stairs(height, edges, fill=True, color="0.88", label="observed values")
    ax.plot(
        curve.revealed,
        np.full(len(curve.revealed), 0.985),
        "|",
        color="C3",
        markersize=7,
        label="looked up",
    )
    ax.fill_between(
        curve.values,
        curve.lower,
        curve.upper,
        color="C0",
        alpha=0.2,
        linewidth=0,
        label=f"band, {1 - delta:.0%}",
    )
    ax.plot(curve.values, curve.estimate, color="C0", label="learned φ")
    if curve.truth is not None:
        ax.plot(curve.values, curve.truth, "k--", linewidth=1, label="true φ")
    ax.set(ylim=(0.0, 1.0), xlabel=curve.name)
    ax.spines[["top", "right"]].set_visible(False)
