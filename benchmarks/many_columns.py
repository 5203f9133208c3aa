"""Ratios of many columns: how much of the divergence each finds on fresh rows.

``python benchmarks/many_columns.py`` prints the table of the docs.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.special import log_expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

import missratio as mr

N_ROWS, N_FRESH, REPEATS = 1000, 10_000, 2
# Least squares gives ratios of zero, which no logarithm forgives: 1% for all.
FLOOR = np.log(0.01)
RATIOS = {
    'KernelRatio("ulsif")': mr.KernelRatio(random_state=0),
    "KLIEPCV, linear": mr.KLIEPCV(random_state=0),
    "boosted trees, calibrated": mr.ClassifierRatio(
        HistGradientBoostingClassifier(random_state=0), calibration="sigmoid", cv=3
    ),
    "neural network, calibrated": mr.ClassifierRatio(
        MLPClassifier((50, 50), early_stopping=True, random_state=0),
        calibration="sigmoid",
        cv=3,
    ),
}
SETTINGS = [
    (50, "shift and spread"),
    (50, "shift and spread, rotated"),
    (2, "bimodal"),
]


def draw(rng: np.random.Generator, n: int, d: int, kind: str) -> tuple:  # type: ignore[type-arg]
    X1, X0 = rng.normal(size=(n, d)), rng.normal(size=(n, d))
    if kind == "bimodal":
        X1[:, 0] = np.where(rng.random(n) < 0.5, -1.2, 1.2) + 0.5 * X1[:, 0]
        return X1, X0
    X1[:, 0] += 0.8
    if kind.startswith("shift and spread"):
        X1[:, 1] *= 0.5
    if kind.endswith("rotated"):
        X1, X0 = X1 @ rotation(d), X0 @ rotation(d)
    return X1, X0


def rotation(d: int) -> np.ndarray:
    """So that no column is one of the directions in which the laws differ."""
    rows = np.random.default_rng(0).normal(size=(d, d))
    return np.linalg.qr(rows)[0]


def true_log_ratio(X: np.ndarray, kind: str) -> np.ndarray:
    if kind == "bimodal":
        bumps = [-((X[:, 0] - side) ** 2) / 0.5 for side in (-1.2, 1.2)]
        return np.logaddexp(*bumps) + X[:, 0] ** 2 / 2
    if kind.endswith("rotated"):
        X = X @ rotation(X.shape[1]).T
    found = 0.8 * X[:, 0] - 0.32
    if kind.startswith("shift and spread"):
        found = found + np.log(2) - 1.5 * X[:, 1] ** 2
    return found


def js(score1: np.ndarray, score0: np.ndarray) -> float:
    """The divergence that scores account for; at most that of the laws."""
    score1, score0 = np.maximum(score1, FLOOR), np.maximum(score0, FLOOR)
    found = log_expit(score1).mean() + log_expit(-score0).mean()
    return float(found / 2.0 + np.log(2.0))


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    print("| columns | laws differ in | " + " | ".join(RATIOS) + " | true ratio |")
    print("|---" * (3 + len(RATIOS)) + "|")
    for d, kind in SETTINGS:
        found = np.zeros((REPEATS, len(RATIOS) + 1))
        for repeat in range(REPEATS):
            rng = np.random.default_rng(repeat)
            rows, fresh = draw(rng, N_ROWS, d, kind), draw(rng, N_FRESH, d, kind)
            for i, ratio in enumerate(RATIOS.values()):
                fitted = mr.density_ratio(*rows, ratio)
                found[repeat, i] = js(*map(fitted.predict_log_ratio, fresh))
            found[repeat, -1] = js(*(true_log_ratio(X, kind) for X in fresh))
        cells = [f"{v:.3f}" for v in found.mean(axis=0)]
        print(f"| {d} | {kind} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
