"""Equal laws should give a ratio of one: how often, and what it costs elsewhere.

``python benchmarks/flat_ratios.py`` prints the table of the docs.
"""

from __future__ import annotations

import argparse

import numpy as np

from missratio import KernelRatio, density_ratio

METHODS = ("ulsif", "rulsif", "kliep", "kmm")
LAWS = ("normal", "t", "exponential")
SHIFTS = (0.25, 0.5)
N_FRESH = 5000
WITHIN = (0.0, 2.0)


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
    """Whether the ratio is flat, and its score on fresh rows; for each margin."""
    rng = np.random.default_rng(seed)
    law, d = LAWS[seed % len(LAWS)], int(rng.integers(1, 6))
    n = int(np.exp(rng.uniform(np.log(100), np.log(1000))))
    samples = draw(rng, n, d, law, shift), draw(rng, n, d, law, 0.0)
    fresh = np.concatenate(
        [draw(rng, N_FRESH, d, law, shift), draw(rng, N_FRESH, d, law, 0.0)]
    )
    labels = np.repeat([1, 0], N_FRESH)
    found = []
    for within in WITHIN:
        ratio = KernelRatio(method, flat_within=within, random_state=seed)
        fitted = density_ratio(*samples, ratio)
        flat = bool(np.isinf(fitted.l2_))
        # A ratio may be zero where fresh rows of class 1 are, and its logarithm isn't
        # finite there: all are mixed with 1% of a ratio of one.
        score = _score(fitted, fresh, labels)
        found.append((flat, score))
    return found


def _score(fitted: KernelRatio, X: np.ndarray, y: np.ndarray) -> float:
    """By how much the loss on fresh rows lies below that of a ratio of one."""
    ratio = 0.99 * fitted.predict_ratio(X) + 0.01
    own, other = ratio[y == 1], ratio[y == 0]
    if fitted.method == "kliep":
        return float(np.log(own).mean() - other.mean() + 1.0)
    alpha = fitted.alpha if fitted.method == "rulsif" else 0.0
    squares = alpha * (own**2).mean() + (1.0 - alpha) * (other**2).mean()
    return float(own.mean() - 0.5 * squares - 0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    given = parser.parse_args()
    print(
        "| method | laws | flat, least loss | flat, two errors "
        "| gain, least loss | gain, two errors | standard error of their difference |"
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
