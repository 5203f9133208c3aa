"""Draw the README's picture: ``python docs/make_hero.py``.

Class 1 loses four in five of its positive values. On the left the log ratio that is
learned from the rest, on the right the true errors of many thresholds that all promise
to misclassify at most 10% of class 0, which now loses the same values.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

import missratio as mr

ALPHA, DELTA, ROWS, REPEATS = 0.1, 0.05, 2000, 400
# How far class 1 lies above class 0, on the left and on the right.
NEAR, FAR = 0.5, 1.5
OURS, COMPLETE, TRUTH = "#1f77b4", "#d62728", "0.35"
PHI = mr.StepMissingness(direction=1.0, threshold=0.0, probability=0.8)


def learned_ratios() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    X1 = mr.corrupt(rng.normal(NEAR, 1, (ROWS, 1)), PHI, rng)
    X0 = rng.normal(0, 1, (ROWS, 1))
    grid = np.linspace(-3, 4, 200)[:, None]
    ours = mr.density_ratio(X1, X0, missingness={1: PHI})
    complete = mr.density_ratio(X1, X0, missingness="ignore")
    return {
        "grid": grid[:, 0],
        "truth": NEAR * grid[:, 0] - NEAR**2 / 2,
        "ours": ours.predict_log_ratio(grid),
        "complete": complete.predict_log_ratio(grid),
    }


def true_errors(missingness: object) -> np.ndarray:
    """The true error of each threshold; the score is the value itself, up to scale."""
    errors = []
    for repeat in range(REPEATS):
        rng = np.random.default_rng(repeat)
        X0 = mr.corrupt(rng.normal(0, 1, (ROWS, 1)), PHI, rng)
        X1 = rng.normal(FAR, 1, (ROWS, 1))
        X, y = np.concatenate([X0, X1]), np.repeat([0, 1], ROWS)
        if missingness == "ignore":
            seen = ~np.isnan(X[:, 0])
            X, y, given = X[seen], y[seen], None
        else:
            given = {0: PHI}
        classifier = mr.NeymanPearsonClassifier(
            mr.FDivergenceRatio("js"), ALPHA, DELTA, given, random_state=repeat
        ).fit(X, y)
        grid = np.linspace(-2, 6, 80_001)
        called = grid[classifier.predict(grid[:, None]) == 1]
        errors.append(norm.sf(called.min()) if called.size else 0.0)
    return np.array(errors)


def draw_ratios(ax: plt.Axes, found: dict[str, np.ndarray]) -> None:
    for name, label, colour, style in (
        ("complete", "complete cases", COMPLETE, "-"),
        ("ours", "missratio", OURS, "-"),
        ("truth", "the truth", TRUTH, "--"),
    ):
        ax.plot(found["grid"], found[name], style, color=colour, lw=2, label=label)
    ax.set(
        title="A density ratio from what is left",
        xlabel="value (80% of the positive ones are lost)",
        ylabel="log ratio",
    )
    ax.legend(frameon=False)


def draw_errors(ax: plt.Axes, errors: dict[str, np.ndarray]) -> None:
    for label, colour, place in (
        ("complete cases", COMPLETE, 13),
        ("missratio", OURS, 11),
    ):
        found, bins = errors[label], np.arange(0.0, 41.0)
        counts, _, _ = ax.hist(100 * found, bins, color=colour, alpha=0.8)
        broken = f"{label}: {np.mean(found > ALPHA):.0%} broken"
        ax.text(place, counts.max() + 4, broken, color=colour)
    ax.axvline(100 * ALPHA, color="0.2", ls="--", lw=1)
    ax.set(
        title=f"{REPEATS} promises of at most 10% error",
        xlabel="true error in % (dashed: the promise)",
        ylabel="classifiers",
    )
    ax.set_ylim(0, 1.1 * ax.get_ylim()[1])


def main() -> None:
    plt.rcParams.update({"font.size": 11, "axes.titlesize": 12})
    plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
    left = partial(draw_ratios, found=learned_ratios())
    errors = {"complete cases": true_errors("ignore"), "missratio": true_errors("φ")}
    right = partial(draw_errors, errors=errors)
    # The panels by themselves stand below each other on a phone.
    for name, panels in (
        ("hero", (left, right)),
        ("hero_left", (left,)),
        ("hero_right", (right,)),
    ):
        size = 4.3 * len(panels), 3.5
        fig, axes = plt.subplots(
            1, len(panels), figsize=size, layout="constrained", squeeze=False
        )
        for panel, ax in zip(panels, axes[0], strict=True):
            panel(ax)
        fig.savefig(Path(__file__).parent / "_static" / f"{name}.png", dpi=160)


if __name__ == "__main__":
    main()
