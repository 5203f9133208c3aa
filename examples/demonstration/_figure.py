"""The demonstration's figure."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from demonstration._experiments import (
    ALPHA,
    CALIBRATIONS,
    DELTA,
    METHODS,
    SCENARIOS,
    Calibrated,
    Method,
    Outcome,
)
from demonstration._tables import half_width, percent
from missratio._base.typing import FloatArray


def figure(
    results: Sequence[Sequence[Outcome]], certified: Sequence[Calibrated]
) -> bytes:
    """The figure as a PNG: coefficients, power, and the errors of thresholds."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    fig = Figure(
        figsize=(11, 10.8),
        dpi=150,
        layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08),
    )
    fig.suptitle(
        "Dropping incomplete rows breaks the promise; weights keep it, and mend the "
        "ratio",
        fontsize=14,
        fontweight="bold",
    )
    rows: Any = fig.subfigures(len(SCENARIOS) + 1, 1, hspace=0.04)
    for part, scenario, outcomes in zip(rows[1:], SCENARIOS, results, strict=True):
        part.suptitle(f"{scenario.title}: {scenario.explanation}", fontsize=11)
        axes = part.subplots(1, 3, width_ratios=[1, 1, 1.25])
        by_name = {m.name: (m, o) for m, o in _pairs(METHODS, outcomes)}
        for ax, name in zip(axes, ("CC-KLIEP", "M-KLIEP"), strict=False):
            _draw_coefficients(ax, *by_name[name], outcomes[0])
        powers = [(m.name, m.colour, o.power) for m, o in _pairs(METHODS, outcomes)]
        _draw_power(axes[2], powers)
        axes[2].set_xlabel("% cleared, where 10 % of malignant ones are too")
    rows[0].suptitle(
        f"A certificate: at most {percent(ALPHA)} of malignant tumours cleared, with "
        f"probability {percent(1 - DELTA)}",
        fontsize=11,
    )
    left, right = rows[0].subplots(1, 2, width_ratios=[2.1, 1.25])
    _draw_errors(left, certified)
    powers = [
        (c.name, c.colour, o.power.mean(axis=1))
        for c, o in _pairs(CALIBRATIONS, certified)
    ]
    _draw_power(right, powers)
    right.set_xlabel("% cleared at the threshold chosen")
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png")
    return buffer.getvalue()


def _draw_coefficients(
    ax: Any, method: Method, outcome: Outcome, reference: Outcome
) -> None:
    """A dot for each coefficient of each repeat; on the diagonal all is well."""
    ax.axline((0, 0), slope=1, color="0.5", linewidth=1, zorder=1)
    ax.scatter(
        reference.coef, outcome.coef, s=9, color=method.colour, alpha=0.35, linewidth=0
    )
    ax.set_xlim(-5.5, 4.5)
    ax.set_ylim(-9, 9)
    ax.set_title(f"Coefficients by {method.name}", fontsize=10, color=method.colour)
    ax.set_xlabel("with nothing lost")
    ax.set_ylabel("from what is left")
    ax.spines[["top", "right"]].set_visible(False)


def _draw_errors(ax: Any, outcomes: Sequence[Calibrated]) -> None:
    """How the true errors of the thresholds are spread, one ridge for each way."""
    bins = np.arange(0.0, 32.0)
    shown = [
        pair for pair in _pairs(CALIBRATIONS, outcomes) if pair[0].name != "law known"
    ]
    for place, (calibration, outcome) in enumerate(shown):
        counts, _ = np.histogram(100 * outcome.error, bins)
        heights = place - 0.85 * counts / counts.max()
        ax.stairs(
            heights,
            bins,
            baseline=place,
            fill=True,
            color=calibration.colour,
            alpha=0.8,
        )
        ax.annotate(
            f"{100 * outcome.violations / outcome.error.size:.1f} % break it",
            (0.99, place - 0.4),
            xycoords=("axes fraction", "data"),
            ha="right",
            fontsize=9,
        )
    ax.axvline(100 * ALPHA, color="0.3", linestyle="--", linewidth=1)
    ax.set_yticks(range(len(shown)), [calibration.name for calibration, _ in shown])
    ax.set_ylim(len(shown) - 0.9, -1.05)
    ax.set_xlim(-1, 31)
    ax.set_title("True errors of the thresholds chosen", fontsize=10)
    ax.set_xlabel("% of malignant tumours cleared; dashed: what is promised")
    ax.spines[["top", "right"]].set_visible(False)


def _pairs(ways: Sequence[Any], outcomes: Sequence[Any]) -> list[tuple[Any, Any]]:
    return list(zip(ways, outcomes, strict=True))


def _draw_power(ax: Any, powers: Sequence[tuple[str, str, FloatArray]]) -> None:
    """The share of benign tumours cleared: every repeat, and the mean."""
    jitter = np.random.default_rng(0)
    for place, (_, colour, power) in enumerate(powers):
        values = 100 * power
        heights = place + jitter.uniform(-0.22, 0.22, len(values))
        ax.scatter(
            values, heights, s=7, color=colour, alpha=0.25, linewidth=0, zorder=1
        )
        ax.errorbar(
            values.mean(),
            place,
            xerr=half_width(values),
            fmt="o",
            color=colour,
            markeredgecolor="white",
            markersize=8,
            capsize=4,
            elinewidth=2,
            zorder=2,
        )
        ax.annotate(
            f"{values.mean():.1f} %",
            (1.02, place),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=9,
            annotation_clip=False,
        )
    ax.set_yticks(range(len(powers)), [name for name, *_ in powers])
    ax.set_ylim(len(powers) - 0.5, -0.5)
    lowest = min(power.min() for *_, power in powers)
    ax.set_xlim(30 if lowest > 0 else -4, 101)
    ax.set_title("Benign tumours cleared", fontsize=10)
    ax.grid(axis="x", color="0.9")
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
