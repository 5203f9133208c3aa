"""One style for all figures: ours as lines with bars, the published curves dashed."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from missratio._base.typing import FloatArray
from missratio.reproduce._boundary import Boundary
from missratio.reproduce._experiment import (
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
    fits_of,
    known,
    learned,
)
from missratio.reproduce._published import MeanCurve
from missratio.reproduce._results import Result
from missratio.reproduce._scores import METHODS, Draws
from missratio.reproduce._simulated import Simulated, certified_excess

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
REFERENCES = (TRUE_RATIO, M_KLIEP, KNOWN)
MARKERS = "os^Dvp"
MANY = 6
SIZE = (6.4, 4.2)
SCATTER_SIZES = {"diff_variance": 500.0}
GRID_POINTS = 241


def figures(result: Result) -> dict[str, dict[str, bytes]]:
    """An experiment's figures by name, each as PNG and SVG."""
    experiment, made = result.experiment, {}
    procedure = experiment.procedure
    if isinstance(procedure, Boundary):
        draws = procedure.draw(range(1), result.conditions)
        made[experiment.id] = _rendered(
            lambda ax: _draw_plane(ax, draws, tuple(result.values), experiment.title)
        )
        return made
    for name, part in parts(result).items():
        made[name] = _rendered(partial(_draw_curves, part))
    if isinstance(procedure, Simulated) and experiment.id in SCATTER_SIZES:
        n_rows = SCATTER_SIZES[experiment.id]
        draws = procedure.draw(
            n_rows, range(1), Conditions(seed=result.conditions.seed)
        )
        made[f"{experiment.id}_boundary"] = _rendered(
            lambda ax: _draw_plane(
                ax,
                draws,
                experiment.methods,
                f"Boundaries of one run, variances that differ, n = {n_rows:g}",
            )
        )
    return made


def parts(result: Result) -> dict[str, Result]:
    """The curves of each figure: the paper's; those past it beside a few; errors.

    A figure that the paper hasn't got has the experiment's name alone.
    """
    experiment = result.experiment
    paper = [m for m in result.values if m in experiment.methods]
    past = [m for m in result.values if m in experiment.beyond]
    if not past or not paper:
        return {experiment.id: result}
    beside = [m for m in paper if m in REFERENCES]
    errors = [m for m in past if m != fits_of(m)]
    powers = [m for m in past if m == fits_of(m)]
    title = experiment.title.replace("power", "type I error on fresh rows")
    renamed = replace(experiment, title=title, y_name=TYPE_ONE)
    made = {
        experiment.id: result.only(paper),
        f"{experiment.id}_beyond": result.only([*beside, *powers]),
        f"{experiment.id}_type_one": replace(result.only(errors), experiment=renamed),
    }
    return {name: part for name, part in made.items() if part.values}


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
        _draw_curve(ax, x + shift, curve, method, MARKERS[place % len(MARKERS)])
        if method in published:
            _draw_published(ax, x + shift, published[method], method)
    if published:
        ax.plot([], [], color="0.4", linestyle="--", label="published, dashed")
    ax.set_xlabel(experiment.x_name)
    ax.set_ylabel(experiment.y_name)
    ax.set_title(f"{experiment.title} ({result.conditions.variant})")
    if experiment.y_name == TYPE_ONE:
        ax.plot(x, x, color="0.4", linestyle=":", label="the bound")
    ax.legend(fontsize=8 if len(curves) <= MANY else 6.5)


def _draw_curve(
    ax: Any, x: FloatArray, curve: MeanCurve, method: str, marker: str
) -> None:
    mean, low, high = (_array(part) for part in (curve.mean, curve.lo, curve.hi))
    bars = np.nan_to_num(np.array([mean - low, high - mean]))
    again = fits_of(method) not in COLOURS and method.endswith(learned(""))
    ax.errorbar(
        x,
        mean,
        yerr=bars,
        color=colour(method),
        marker=marker,
        markersize=4,
        markerfacecolor="white" if again else None,
        linestyle=":" if again else "-",
        linewidth=1.2,
        capsize=2,
        label=method,
    )


def _draw_published(ax: Any, x: FloatArray, curve: MeanCurve, method: str) -> None:
    mean, low, high = (_array(part) for part in (curve.mean, curve.lo, curve.hi))
    ax.plot(x, mean, color=colour(method), linestyle="--", linewidth=1, alpha=0.8)
    ax.fill_between(x, low, high, color=colour(method), alpha=0.15, linewidth=0)


def _array(values: tuple[float | None, ...]) -> FloatArray:
    return np.array([np.nan if value is None else value for value in values])


def _draw_plane(ax: Any, draws: Draws, methods: tuple[str, ...], title: str) -> None:
    """The points of a run, those that were lost faded, and the boundaries."""
    rows_1, rows_0 = draws.complete[0], draws.denominator[0]
    lost = np.isnan(draws.numerator[0]).any(axis=1)
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
        excess = certified_excess(METHODS[method](draws))[0](points)
        ax.contour(
            x1, x2, excess.reshape(x1.shape), levels=[0.0], colors=[colour(method)]
        )
        ax.plot([], [], color=colour(method), label=method)
    ax.set_xlabel("x1")
    ax.set_ylabel("x2")
    ax.set_title(title)
    ax.legend(fontsize=7, loc="upper right")
