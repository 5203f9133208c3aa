"""Equal laws should give a ratio of one: how often, and what it costs elsewhere.

``python benchmarks/flat_ratios.py`` prints the table of the docs.
"""

from __future__ import annotations

import argparse

import numpy as np
from many_columns import js

from missratio import KernelRatio, density_ratio

METHODS = ("ulsif", "rulsif", "kliep", "kmm")
LAWS = ("normal", "t", "exponential")
SHIFTS = (0.25, 0.5)
N_FRESH = 5000
WITHIN = (0.0, KernelRatio().flat_within)


def draw(
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


def one(method: str, shift: float, seed: int) -> list[tuple[bool, float]]:
    """Whether the ratio is flat, and what it finds in fresh rows; for each margin."""
    rng = np.random.default_rng(seed)
    law, d = LAWS[seed % len(LAWS)], int(rng.integers(1, 6))
    n = int(np.exp(rng.uniform(np.log(100), np.log(1000))))
    samples = draw(rng, n, d, law, shift), draw(rng, n, d, law, 0.0)
    fresh = draw(rng, N_FRESH, d, law, shift), draw(rng, N_FRESH, d, law, 0.0)
    found = []
    for within in WITHIN:
        ratio = KernelRatio(method, flat_within=within, random_state=seed)
        fitted = density_ratio(*samples, ratio)
        scores = [log_ratio(fitted, X) for X in fresh]
        found.append((bool(np.isinf(fitted.l2_)), js(scores[0], scores[1])))
    return found


def log_ratio(fitted: KernelRatio, X: np.ndarray) -> np.ndarray:
    """RuLSIF's relative ratio is brought back to p1/p0."""
    ratio = fitted.predict_ratio(X)
    if fitted.method == "rulsif":
        ratio = (1.0 - fitted.alpha) * ratio
        ratio /= np.maximum(1.0 - fitted.alpha * fitted.predict_ratio(X), 1e-3)
    return np.log(np.maximum(ratio, 1e-3))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    given = parser.parse_args()
    print(
        "| method | laws | flat, least loss | flat, by the rule "
        "| gain, least loss | gain, by the rule | standard error of their difference |"
    )
    print("|---" * 7 + "|")
    for method in given.methods:
        for shift in (0.0, *SHIFTS):
            found = np.array([one(method, shift, s) for s in range(given.draws)])
            flat, gain = found[:, :, 0].mean(axis=0), found[:, :, 1].mean(axis=0)
            apart = found[:, 1, 1] - found[:, 0, 1]
            error = apart.std() / np.sqrt(len(apart))
            laws = f"{shift:g} sd apart" if shift else "equal"
            print(
                f"| {method} | {laws} | {flat[0]:.0%} | {flat[1]:.0%} | {gain[0]:.4f} "
                f"| {gain[1]:.4f} | {error:.4f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
