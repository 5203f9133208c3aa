"""Power of certificates from look-ups, at several numbers of them, against the ideal.

Scores N(0, 1) in the controlled class and N(1.5, 1) in the other; rows are incomplete
with probability expit(−1 ± 1.5 z), about a third of them; α = 0.1, δ = 0.05. At the
best threshold the power is 0.586. "two strata" is the test of K + k/q by its supremum
over multinomial laws, for rows drawn by coins.

    python benchmarks/lookup_power.py [--repeats 300]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.special import expit
from scipy.stats import binom, norm

from missratio.threshold import (
    BinomialRule,
    CalibrationSample,
    LookUpRule,
    looked_up_sample,
)

ALPHA, DELTA = 0.1, 0.05
SETTINGS = ((236, 20), (236, 37), (1000, 82), (1000, 164), (4000, 331))


def multinomial_threshold(complete, drawn, n_rows, share):
    """The smallest threshold that the test of K + k/q passes."""
    scores = np.sort(np.concatenate([complete, drawn]))[::-1]
    low, high = -1, len(scores)
    while high - low > 1:
        middle = (low + high) // 2
        total = (complete > scores[middle]).sum() + (
            drawn > scores[middle]
        ).sum() / share
        k = np.arange(int(total * share + 1e-9) + 1)
        worst = max(
            (
                binom.pmf(k, n_rows, share * b)
                * binom.cdf(
                    np.floor(total - k / share + 1e-9),
                    n_rows - k,
                    (ALPHA - b) / (1 - share * b),
                )
            ).sum()
            for b in np.linspace(0.0, ALPHA, 21)
        )
        low, high = (middle, high) if worst <= DELTA else (low, middle)
    return scores[low] if low >= 0 else None


def one(n_rows, n_drawn, slope, rng, *, compare):
    z = rng.normal(size=n_rows)
    incomplete = rng.uniform(size=n_rows) < expit(slope * z - 1.0)
    rows = rng.permutation(np.flatnonzero(incomplete))
    drawn = rows[:n_drawn]
    inclusion = np.where(incomplete, 0.0, 1.0)
    inclusion[drawn] = len(drawn) / len(rows)
    start = time.perf_counter()
    sample = looked_up_sample(z, inclusion)
    found = {"look-ups": LookUpRule().select(sample, ALPHA, DELTA).threshold}
    took = time.perf_counter() - start
    whole = CalibrationSample.build(z)
    found["complete"] = BinomialRule().select(whole, ALPHA, DELTA).threshold
    if compare:
        share = n_drawn / len(rows)
        coins = rows[rng.uniform(size=len(rows)) < share]
        found["two strata"] = multinomial_threshold(
            z[~incomplete], z[coins], n_rows, share
        )
    return found, took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=300)
    repeats = parser.parse_args().repeats
    print("rows  drawn  slope  rule         power ± se       violations  ms")
    for n_rows, n_drawn in SETTINGS:
        for slope in (1.5, -1.5):
            rng = np.random.default_rng([n_rows, n_drawn, int(slope > 0)])
            compare = n_rows <= 1000 and slope > 0
            runs = [
                one(n_rows, n_drawn, slope, rng, compare=compare)
                for _ in range(repeats)
            ]
            for name in runs[0][0]:
                found = [run[0][name] for run in runs]
                power = [0.0 if c is None else norm.sf(c - 1.5) for c in found]
                wrong = np.mean([c is not None and norm.sf(c) > ALPHA for c in found])
                ms = 1e3 * np.median([run[1] for run in runs])
                shown = f"{ms:5.1f}" if name == "look-ups" else ""
                print(
                    f"{n_rows:4}  {n_drawn:5}  {slope:5}  {name:11}  "
                    f"{np.mean(power):.3f} ± {np.std(power) / repeats**0.5:.3f}  "
                    f"{wrong:10.3f}  {shown}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
