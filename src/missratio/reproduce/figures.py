"""One style for all figures: ours as lines with bars, the published curves dashed."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from missratio.reproduce.methods import (
    CC_KLIEP,
    FULL_DATA,
    FULL_TREES,
    IMPUTATION,
    IMPUTED_TREES,
    JOINT,
    KNOWN,
    LEARNED,
    M_KLIEP,
    NAN_TREES,
    PRODUCTS,
    TILTED,
    TRUE_RATIO,
    TYPE_ONE,
    WEIGHTED_TREES,
    Conditions,
    Run,
    fits_of,
    known,
    learned,
)
from missratio.reproduce.procedures import Boundary, Simulated, certified_excess
from missratio.reproduce.results import MeanCurve, Result

# Okabe and Ito's colours, which the colour-blind tell apart.
COLOURS = {
    TRUE_RATIO: "#000000",
    FULL_DATA: "#000000",
    M_KLIEP: "#0072B2",
    KNOWN: "#0072B2",
    LEARNED: "#009E73",
    CC_KLIEP: "#D55E00",
    IMPUTATION: "#CC79A7",
    JOINT: "#56B4E9",
    PRODUCTS: "#009E73",
    TILTED: "#E69F00",
    WEIGHTED_TREES: "#E69F00",
    IMPUTED_TREES: "#CC79A7",
    NAN_TREES: "#D55E00",
    FULL_TREES: "#000000",
}
MARKERS = "os^Dvp"
MANY = 6
SIZE = (6.4, 4.2)
SCATTER_SIZES = {"diff_variance": 500.0}
GRID_POINTS = 241


def figures(result: Result) -> dict[str, dict[str, bytes]]:
    """An experiment's figures by name, each as PNG and SVG."""
    experiment = result.experiment
    name, procedure = experiment.id, experiment.procedure
    if isinstance(procedure, Boundary):
        (run,) = procedure.simulated.draw(procedure.point, range(1), result.conditions)
        methods, title = tuple(result.values), experiment.title
        return {name: _rendered(lambda ax: _draw_plane(ax, run, methods, title))}
    made = {
        part: _rendered(partial(_draw_curves, curves))
        for part, curves in result.parts().items()
    }
    if isinstance(procedure, Simulated) and name in SCATTER_SIZES:
        n_rows, conditions = (
            SCATTER_SIZES[name],
            Conditions(seed=result.conditions.seed),
        )
        (run,) = procedure.draw(n_rows, range(1), conditions)
        title = f"Boundaries of one run, variances that differ, n = {n_rows:g}"
        made[f"{name}_boundary"] = _rendered(
            lambda ax: _draw_plane(ax, run, experiment.methods, title)
        )
    return made


def colour(method: str) -> str:
    """The colour of a curve, the same in all figures, and with φ known or learned."""
    fits = fits_of(method)
    return (
        COLOURS.get(fits)
        or COLOURS[fits.removesuffix(known("")).removesuffix(learned(""))]
    )


def _rendered(draw: Callable[[Any], None]) -> dict[str, bytes]:
    """A figure in both formats, the same bytes every time."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    style: dict[Any, Any] = {
        "font.size": 9,
        "axes.titlesize": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "0.92",
        "legend.frameon": False,
        "svg.hashsalt": "missratio",
    }
    made = {}
    with rc_context(style):
        figure = Figure(figsize=SIZE, dpi=120, layout="constrained")
        draw(figure.subplots())
        for kind in ("png", "svg"):
            buffer = io.BytesIO()
            metadata = {"Date": None} if kind == "svg" else {"Software": None}
            figure.savefig(buffer, format=kind, metadata=metadata)
            made[kind] = buffer.getvalue()
    return made


def _draw_curves(result: Result, ax: Any) -> None:
    experiment = result.experiment
    past = any(method in experiment.beyond for method in result.values)
    published = {} if past else result.published
    x = np.array(experiment.x)
    step = (x.max() - x.min()) / max(len(x) - 1, 1)
    curves = result.curves
    for place, (method, curve) in enumerate(curves.items()):
        # Curves that coincide are moved apart by a little.
        shift = min(0.08, 0.4 / len(curves)) * step * (place - (len(curves) - 1) / 2)
        mean, low, high = (
            np.array(part, dtype=np.float64)
            for part in (curve.mean, curve.lo, curve.hi)
        )
        again = fits_of(method) not in COLOURS and method.endswith(learned(""))
        ax.errorbar(
            x + shift,
            mean,
            yerr=np.nan_to_num(np.array([mean - low, high - mean])),
            color=colour(method),
            marker=MARKERS[place % len(MARKERS)],
            markersize=4,
            markerfacecolor="white" if again else None,
            linestyle=":" if again else "-",
            linewidth=1.2,
            capsize=2,
            label=method,
        )
        if method in published:
            theirs: MeanCurve = published[method]
            mean, low, high = (
                np.array(part, dtype=np.float64)
                for part in (theirs.mean, theirs.lo, theirs.hi)
            )
            style = {"color": colour(method), "linewidth": 1}
            ax.plot(x + shift, mean, linestyle="--", alpha=0.8, **style)
            ax.fill_between(
                x + shift, low, high, **style | {"alpha": 0.15, "linewidth": 0}
            )
    if published:
        ax.plot([], [], color="0.4", linestyle="--", label="published, dashed")
    ax.set_xlabel(experiment.x_name)
    ax.set_ylabel(experiment.y_name)
    ax.set_title(f"{experiment.title} ({result.conditions.variant})")
    if experiment.y_name == TYPE_ONE:
        ax.plot(x, x, color="0.4", linestyle=":", label="the bound")
    ax.legend(fontsize=8 if len(curves) <= MANY else 6.5)


def _draw_plane(ax: Any, run: Run, methods: tuple[str, ...], title: str) -> None:
    """The points of a run, those that were lost faded, and the boundaries."""
    rows_1, rows_0 = run.complete, run.denominator
    lost = np.isnan(run.numerator).any(axis=1)
    ax.scatter(*rows_0.T, s=8, color="#E69F00", linewidth=0, label="class 0")
    ax.scatter(*rows_1[~lost].T, s=8, color="#56B4E9", linewidth=0, label="class 1")
    ax.scatter(
        *rows_1[lost].T, s=8, color="#56B4E9", alpha=0.25, linewidth=0,
        label="class 1, lost",
    )  # fmt: skip
    both = np.concatenate([rows_0, rows_1])
    low, high = both.min(axis=0) - 0.5, both.max(axis=0) + 0.5
    axes = [np.linspace(a, b, GRID_POINTS) for a, b in zip(low, high, strict=True)]
    x1, x2 = np.meshgrid(*axes)
    points = np.stack([x1.ravel(), x2.ravel()], axis=1)
    for method in methods:
        excess = certified_excess([run], method)[0](points)
        ax.contour(
            x1, x2, excess.reshape(x1.shape), levels=[0.0], colors=[colour(method)]
        )
        ax.plot([], [], color=colour(method), label=method)
    ax.set_xlabel("x1")
    ax.set_ylabel("x2")
    ax.set_title(title)
    ax.legend(fontsize=7, loc="upper right")
