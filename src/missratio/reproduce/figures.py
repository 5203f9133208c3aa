"""One style for all figures: ours as lines with bars, the published curves dashed."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from missratio.reproduce import methods as m
from missratio.reproduce.experiments import certified_excess
from missratio.reproduce.results import Result

# These are Okabe and Ito's colours, which the colour-blind tell apart. A learner has
# one colour, whether φ is known or learned.
COLOURS = dict(
    zip(
        m.METHODS,
        ("#0072B2", "#D55E00", "#000000", "#000000", "#CC79A7", "#CC79A7", "#D55E00",
         "#000000", "#56B4E9", "#009E73", "#E69F00"),
        strict=True,
    )
)  # fmt: skip
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.92",
    "legend.frameon": False,
    "svg.hashsalt": "missratio",
}


def figures(result: Result) -> dict[str, dict[str, bytes]]:
    """An experiment's figures by name, each as PNG and SVG."""
    name, title = result.experiment.id, result.experiment.title
    drawn = {
        part: partial(_draw_curves, shown) for part, shown in result.parts().items()
    }
    if name == "np_boundary":
        drawn = {name: partial(_draw_plane, result, title=title)}
    elif name == "diff_variance":
        title = "Boundaries of one run, variances that differ, n = 500"
        drawn[f"{name}_boundary"] = partial(_draw_plane, result, title=title)
    return {part: _rendered(draw) for part, draw in drawn.items()}


def _rendered(draw: Callable[[Any], None]) -> dict[str, bytes]:
    """A figure in both formats, the same bytes every time."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    made = {}
    with rc_context(STYLE):
        figure = Figure(figsize=(6.4, 4.2), dpi=120, layout="constrained")
        draw(figure.subplots())
        for kind, date in (("png", "Software"), ("svg", "Date")):
            buffer = io.BytesIO()
            figure.savefig(buffer, format=kind, metadata={date: None})
            made[kind] = buffer.getvalue()
    return made


def _draw_curves(result: Result, ax: Any) -> None:
    experiment, curves = result.experiment, result.curves
    past = any(method in experiment.beyond for method in result.values)
    published = {} if past else result.published
    x = np.array(experiment.x)
    step = np.ptp(x) / max(len(x) - 1, 1)
    for place, (method, curve) in enumerate(curves.items()):
        # Curves that coincide are moved apart by a little.
        shift = min(0.08, 0.4 / len(curves)) * step * (place - (len(curves) - 1) / 2)
        name, learns = m.without_phi(method)
        style = {"color": COLOURS[name]}
        ax.errorbar(
            x + shift,
            curve.mean,
            yerr=np.nan_to_num(curve.hi - curve.mean),
            marker="os^Dvp"[place % 6],
            markersize=4,
            # The marker is open where φ is learned.
            markerfacecolor="white" if learns else None,
            linestyle=":" if learns else "-",
            linewidth=1.2,
            capsize=2,
            label=method,
            **style,
        )
        if method in published:
            theirs = published[method]
            ax.plot(x + shift, theirs.mean, "--", alpha=0.8, linewidth=1, **style)
            band = style | {"alpha": 0.15, "linewidth": 0}
            ax.fill_between(x + shift, theirs.lo, theirs.hi, **band)
    if published:
        ax.plot([], [], color="0.4", linestyle="--", label="published, dashed")
    title = f"{experiment.title} ({result.conditions.variant})"
    ax.set(xlabel=experiment.x_name, ylabel=experiment.y_name, title=title)
    ax.legend(fontsize=8 if len(curves) <= 6 else 6.5)


def _draw_plane(result: Result, ax: Any, *, title: str) -> None:
    """The points of a run, those that were lost faded, and the boundaries."""
    conditions = m.Conditions(seed=result.conditions.seed)
    run = result.experiment.draw(500.0, 0, conditions)
    rows_1, rows_0 = run.complete, run.denominator
    lost = np.isnan(run.numerator).any(axis=1)
    samples = [
        ("class 0", "#E69F00", 1.0, rows_0),
        ("class 1", "#56B4E9", 1.0, rows_1[~lost]),
        ("class 1, lost", "#56B4E9", 0.25, rows_1[lost]),
    ]
    for label, shade, alpha, rows in samples:
        style = {"color": shade, "alpha": alpha, "linewidth": 0}
        ax.scatter(*rows.T, s=8, label=label, **style)
    both = np.concatenate([rows_0, rows_1])
    ends = zip(both.min(axis=0) - 0.5, both.max(axis=0) + 0.5, strict=True)
    x1, x2 = np.meshgrid(*(np.linspace(*pair, 241) for pair in ends))
    points = np.stack([x1.ravel(), x2.ravel()], axis=1)
    for method in filter(result.experiment.methods.__contains__, result.values):
        score = m.METHODS[method](run, run.phi)
        excess = certified_excess(run, score)(points).reshape(x1.shape)
        ax.contour(x1, x2, excess, levels=[0.0], colors=[COLOURS[method]])
        ax.plot([], [], color=COLOURS[method], label=method)
    ax.set(xlabel="x1", ylabel="x2", title=title)
    ax.legend(fontsize=7, loc="upper right")
