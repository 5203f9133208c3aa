"""One style for all figures: ours as lines with bars, the published curves dashed."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from missratio.reproduce import methods as m
from missratio.reproduce.methods import fits_of, known, learned
from missratio.reproduce.procedures import Simulated, certified_excess
from missratio.reproduce.results import Result

# Okabe and Ito's colours, which the colour-blind tell apart.
COLOURS = {
    m.TRUE_RATIO: "#000000",
    m.FULL_DATA: "#000000",
    m.M_KLIEP: "#0072B2",
    m.KNOWN: "#0072B2",
    m.LEARNED: "#009E73",
    m.CC_KLIEP: "#D55E00",
    m.IMPUTATION: "#CC79A7",
    m.JOINT: "#56B4E9",
    m.PRODUCTS: "#009E73",
    m.TILTED: "#E69F00",
    m.WEIGHTED_TREES: "#E69F00",
    m.IMPUTED_TREES: "#CC79A7",
    m.NAN_TREES: "#D55E00",
    m.FULL_TREES: "#000000",
}
MARKERS = "os^Dvp"
MANY = 6
SIZE = (6.4, 4.2)
SCATTER_SIZES = {"diff_variance": 500.0}
GRID_POINTS = 241


def figures(result: Result) -> dict[str, dict[str, bytes]]:
    """An experiment's figures by name, each as PNG and SVG."""
    experiment, conditions = result.experiment, result.conditions
    name, procedure = experiment.id, experiment.procedure
    if isinstance(procedure, Simulated) and procedure.at is not None:
        (run,) = procedure.draw(procedure.at, range(1), conditions)
        plane = partial(_draw_plane, run, tuple(result.values), experiment.title)
        return {name: _rendered(plane)}
    made = {
        part: _rendered(partial(_draw_curves, curves))
        for part, curves in result.parts().items()
    }
    if isinstance(procedure, Simulated) and name in SCATTER_SIZES:
        n_rows = SCATTER_SIZES[name]
        (run,) = procedure.draw(n_rows, range(1), m.Conditions(seed=conditions.seed))
        title = f"Boundaries of one run, variances that differ, n = {n_rows:g}"
        plane = partial(_draw_plane, run, experiment.methods, title)
        made[f"{name}_boundary"] = _rendered(plane)
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
        again = fits_of(method) not in COLOURS and method.endswith(learned(""))
        ax.errorbar(
            x + shift,
            curve.mean,
            yerr=np.nan_to_num(curve.hi - curve.mean),
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
            other, style = published[method], {"color": colour(method)}
            ax.plot(x + shift, other.mean, "--", alpha=0.8, linewidth=1, **style)
            band = style | {"alpha": 0.15, "linewidth": 0}
            ax.fill_between(x + shift, other.lo, other.hi, **band)
    if published:
        ax.plot([], [], color="0.4", linestyle="--", label="published, dashed")
    ax.set_xlabel(experiment.x_name)
    ax.set_ylabel(experiment.y_name)
    ax.set_title(f"{experiment.title} ({result.conditions.variant})")
    if experiment.y_name == m.TYPE_ONE:
        ax.plot(x, x, color="0.4", linestyle=":", label="the bound")
    ax.legend(fontsize=8 if len(curves) <= MANY else 6.5)


def _draw_plane(run: m.Run, methods: tuple[str, ...], title: str, ax: Any) -> None:
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
        (score,) = m.METHODS[method](m.Batch([run]), m.Conditions())
        assert score is not None
        excess = certified_excess(run, score)(points)
        ax.contour(
            x1, x2, excess.reshape(x1.shape), levels=[0.0], colors=[colour(method)]
        )
        ax.plot([], [], color=colour(method), label=method)
    ax.set_xlabel("x1")
    ax.set_ylabel("x2")
    ax.set_title(title)
    ax.legend(fontsize=7, loc="upper right")
