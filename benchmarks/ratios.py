"""Tables of docs/ratios.md.

    python benchmarks/ratios.py flat [--draws 100] [--methods ulsif kliep]
    python benchmarks/ratios.py columns

flat: equal laws should give a ratio of one: how often, and what that costs elsewhere.
columns: how much of the divergence ratios of many columns find on fresh rows.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from scipy.special import log_expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

import missratio as mr

# Least squares gives ratios of zero, which no logarithm forgives: 1% for all.
FLOOR = np.log(0.01)


def js(score1: np.ndarray, score0: np.ndarray) -> float:
    """The divergence that scores account for; at most that of the laws."""
    score1, score0 = np.maximum(score1, FLOOR), np.maximum(score0, FLOOR)
    found = log_expit(score1).mean() + log_expit(-score0).mean()
    return float(found / 2.0 + np.log(2.0))


# Equal laws

METHODS = ("ulsif", "rulsif", "kliep", "kmm")
LAWS = ("normal", "t", "exponential")
SHIFTS = (0.25, 0.5)
WITHIN = (0.0, mr.KernelRatio().flat_within)


def shifted(
    rng: np.random.Generator, n: int, d: int, law: str, shift: float
) -> np.ndarray:
    """Rows of one law, the first column shifted."""
    if law == "normal":
        X = rng.normal(size=(n, d))
    elif law == "t":
        X = rng.standard_t(3, size=(n, d))
    else:
        X = rng.exponential(size=(n, d))
    X[:, 0] += shift * X[:, 0].std()
    return X


def one_flat(method: str, shift: float, seed: int) -> list[tuple[bool, float]]:
    """Whether the ratio is flat, and what it finds in fresh rows; for each margin."""
    rng = np.random.default_rng(seed)
    law, d = LAWS[seed % len(LAWS)], int(rng.integers(1, 6))
    n = int(np.exp(rng.uniform(np.log(100), np.log(1000))))
    samples = shifted(rng, n, d, law, shift), shifted(rng, n, d, law, 0.0)
    fresh = shifted(rng, 5000, d, law, shift), shifted(rng, 5000, d, law, 0.0)
    found = []
    for within in WITHIN:
        ratio = mr.KernelRatio(method, flat_within=within, random_state=seed)
        fitted = mr.density_ratio(*samples, ratio)
        scores = [log_ratio(fitted, X) for X in fresh]
        found.append((bool(np.isinf(fitted.l2_)), js(*scores)))
    return found


def log_ratio(fitted: mr.KernelRatio, X: np.ndarray) -> np.ndarray:
    """RuLSIF's relative ratio is brought back to p1/p0."""
    ratio = fitted.predict_ratio(X)
    if fitted.method == "rulsif":
        mixture = fitted.mixture
        ratio = (1.0 - mixture) * ratio / np.maximum(1.0 - mixture * ratio, 1e-3)
    return np.log(np.maximum(ratio, 1e-3))


def flat(draws: int, methods: list[str]) -> None:
    print(
        "| method | laws | flat, least loss | flat, by the rule "
        "| gain, least loss | gain, by the rule | standard error of their difference |"
    )
    print("|---" * 7 + "|")
    for method in methods:
        for shift in (0.0, *SHIFTS):
            found = np.array([one_flat(method, shift, seed) for seed in range(draws)])
            share, gain = found[:, :, 0].mean(axis=0), found[:, :, 1].mean(axis=0)
            apart = found[:, 1, 1] - found[:, 0, 1]
            error = apart.std() / np.sqrt(len(apart))
            laws = f"{shift:g} sd apart" if shift else "equal"
            print(
                f"| {method} | {laws} | {share[0]:.0%} | {share[1]:.0%} "
                f"| {gain[0]:.4f} | {gain[1]:.4f} | {error:.4f} |",
                flush=True,
            )


# Many columns

N_ROWS, N_FRESH, N_COLUMNS, REPEATS = 1000, 10_000, 50, 2
RATIOS = {
    "uLSIF": mr.KernelRatio(random_state=0),
    "KLIEPCV, linear": mr.KLIEPCV(random_state=0),
    "boosted trees, calibrated": mr.ClassifierRatio(
        CalibratedClassifierCV(HistGradientBoostingClassifier(random_state=0), cv=3)
    ),
    "neural network, calibrated": mr.ClassifierRatio(
        CalibratedClassifierCV(
            MLPClassifier((50, 50), early_stopping=True, random_state=0), cv=3
        )
    ),
}


def columns() -> None:
    """One column is shifted and one has half the spread; then both are rotated."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    print("| columns | " + " | ".join(RATIOS) + " | true ratio |")
    print("|---" * (2 + len(RATIOS)) + "|")
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(N_COLUMNS,) * 2))[0]
    for name, rotation in (("", np.eye(N_COLUMNS)), (", rotated", turned)):
        found = np.zeros((REPEATS, len(RATIOS) + 1))
        for repeat in range(REPEATS):
            rng = np.random.default_rng(repeat)
            rows, fresh = (
                [X @ rotation for X in shift_and_spread(rng, n)]
                for n in (N_ROWS, N_FRESH)
            )
            for i, ratio in enumerate(RATIOS.values()):
                fitted = mr.density_ratio(*rows, ratio)
                found[repeat, i] = js(*map(fitted.predict_log_ratio, fresh))
            found[repeat, -1] = js(*(true_log_ratio(X @ rotation.T) for X in fresh))
        cells = [f"{value:.3f}" for value in found.mean(axis=0)]
        print(f"| {N_COLUMNS}{name} | " + " | ".join(cells) + " |", flush=True)


def shift_and_spread(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    X1, X0 = rng.normal(size=(n, N_COLUMNS)), rng.normal(size=(n, N_COLUMNS))
    X1[:, 0] += 0.8
    X1[:, 1] *= 0.5
    return [X1, X0]


def true_log_ratio(X: np.ndarray) -> np.ndarray:
    return 0.8 * X[:, 0] - 0.32 + np.log(2) - 1.5 * X[:, 1] ** 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["flat", "columns"])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    given = parser.parse_args()
    if given.part == "flat":
        flat(given.draws, given.methods)
    else:
        columns()


if __name__ == "__main__":
    main()
