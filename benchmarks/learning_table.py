"""What the table teaches of φ: errors, bands, tests, and power on data sets.

python benchmarks/learning_table.py [slopes] [right] [band] [wrong] [rows] [ctg]
                                    [weather] [speed]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import numpy as np
from scipy.stats import binomtest
from table_simulation import (
    FORMS,
    LAWS,
    ROW_FORMS,
    Outcome,
    learn,
    powers,
    right_form,
    rows_form,
    rows_of,
    slope_errors,
    wrong_form,
)

import missratio as mr

BAND = 0.9
SLOPES = ((1500, 5, 0.3), (1500, 5, 0.7), (1500, 5, 0.9), (400, 5, 0.7),
          (20_000, 10, 0.5))  # fmt: skip


def slopes(repeats: int) -> bool:
    """At n=20,000 the error is at most half of that with 50 look-ups a column."""
    for n, d, rho in SLOPES:
        few = max(2, repeats // (1 if n < 20_000 else 10))
        errors = slope_errors(n, d, rho, few)
        shown = ", ".join(f"{name} {error:.3f}" for name, error in errors.items())
        print(f"n={n:,} d={d} rho={rho}: error of slopes: {shown}")
    return errors["none"] <= 0.5 * errors["50 looked up"]


def right(repeats: int) -> bool:
    """Bands hold φ in 95% of tables, and tests reject a right φ in 5% at most."""
    outcomes = [right_form(seed) for seed in range(5 * repeats)]
    covered = sum(outcome.covered for outcome in outcomes)
    failed = sum(outcome.failed for outcome in outcomes)
    print(f"band: {covered} of {len(outcomes)} hold all of φ (95% promised)")
    print(f"warned of a right φ: {failed} of {len(outcomes)} (1% promised)")
    good = binomtest(covered, len(outcomes), 0.94, "less").pvalue > 1e-3
    kinds = sorted({kind for outcome in outcomes for kind in outcome.p_values})
    for kind in kinds:
        found = np.concatenate([o.p_values.get(kind, []) for o in outcomes])
        count = int((found <= 0.05).sum())
        print(f"{kind[0]} ({kind[1]}): {count} of {len(found)} below 0.05")
        good &= binomtest(count, len(found), 0.06, "greater").pvalue > 1e-3
    return good


def band(repeats: int) -> bool:
    """With no look-up, 90% bands miss some of φ in 10% of tables at most."""
    outcomes = [
        right_form(seed, 1.0 - BAND, look_ups=False) for seed in range(10 * repeats)
    ]
    print("\n".join(band_section(outcomes)))
    missed = sum(not outcome.covered for outcome in outcomes)
    return binomtest(missed, len(outcomes), 1.0 - BAND, "greater").pvalue > 1e-3


def band_section(outcomes: Sequence[Outcome]) -> list[str]:
    """What docs/learning_validity.md says of bands with no look-up."""
    groups = {"all": [True] * len(outcomes)}
    for law in LAWS:
        groups[law] = [outcome.setting.law == law for outcome in outcomes]
    for n in sorted({outcome.setting.n for outcome in outcomes}):
        groups[f"{n:,} rows"] = [outcome.setting.n == n for outcome in outcomes]
    lines = ["| tables | | miss some of φ | share, with its standard error |"]
    lines += ["|---|---|---|---|"]
    for name, chosen in groups.items():
        found = np.array(
            [o.covered for o, own in zip(outcomes, chosen, strict=True) if own]
        )
        share, missed = 1.0 - found.mean(), int((~found).sum())
        error = np.sqrt(share * (1.0 - share) / len(found))
        lines.append(
            f"| {name} | {len(found)} | {missed} | {share:.3f} ± {error:.3f} |"
        )
    return lines


def wrong(repeats: int) -> bool:
    """Tables whose φ is no logistic function of the value are warned of."""
    every = True
    for law in ("normal", "lognormal"):
        for form in ("logistic", *FORMS):
            counts = []
            for m in (0, 50):
                models = [wrong_form(form, law, m, i) for i in range(repeats)]
                counts.append(sum(any(c.failed for c in x.checks) for x in models))
            print(
                f"{law}, {form}: warned in {counts[0]} of {repeats} with no look-up, "
                f"in {counts[1]} with 50 a column"
            )
            if form in ("step", "tail", "U"):
                every &= counts[1] == repeats
    return every


def rows(repeats: int) -> bool:
    """Of whole rows too, tests reject a right φ in 5% at most, and find wrong ones."""
    good = True
    for form in ("logistic", *ROW_FORMS):
        total = (10 if form == "logistic" else 2) * repeats
        tests = [
            {
                check.kind: check
                for check in rows_form(form, seed).checks
                if check.p_value
            }
            for seed in range(total)
        ]
        tests = [each for each in tests if each]
        warned = sum(any(c.failed for c in each.values()) for each in tests)
        shown = [f"warned in {warned}"]
        for kind in ("form", "other columns"):
            count = sum(each[kind].p_value <= 0.05 for each in tests)
            shown.append(f"{kind} below 0.05 in {count}")
            if form == "logistic":
                found = binomtest(count, len(tests), 0.05, "greater")
                good &= found.pvalue > 1e-3
        print(
            f"whole rows, {form}: of {len(tests)} tables ({total - len(tests)} more "
            f"teach too little to test) {', '.join(shown)}"
        )
        good &= form == "logistic" or warned >= 0.4 * len(tests)
    return good


def on_data(name: str, repeats: int) -> dict[str, float]:
    found = [powers(name, seed) for seed in range(repeats)]
    means = {key: float(np.mean([f[key] for f in found])) for key in found[0]}
    for key, mean in means.items():
        spread = np.std([f[key] - f["known"] for f in found]) / np.sqrt(repeats)
        print(f"{name}, φ {key}: power {mean:.3f} (to known ± {spread:.3f})")
    return means


def ctg(repeats: int) -> bool:
    """With no look-up the power is within 0.01 of that of a known φ."""
    means = on_data("ctg", repeats)
    return means["none"] >= means["known"] - 0.01


def weather(repeats: int) -> bool:
    """0.55 with no look-up, and 0.57 with 50 a column."""
    means = on_data("weather", max(1, repeats // 10))
    return means["none"] >= 0.55 and means["none, with 50"] >= 0.57


def speed(repeats: int) -> bool:
    """100,000 rows of 62 columns within 10 s on two cores: 20 s of processor time."""
    rng = np.random.default_rng(0)
    Z = rows_of(100_000, 62, 0.5, "normal", rng)
    X = mr.corrupt(Z, mr.LogisticMissingness(0.0, 1.0), rng)
    wall, processor = time.perf_counter(), time.process_time()
    learn(X, None)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    print(f"100,000 x 62: {wall:.1f} s, of two processors {processor:.1f} s")
    return min(wall, processor / 2.0) <= 10.0


PARTS = {"slopes": slopes, "right": right, "band": band, "wrong": wrong, "rows": rows,
         "ctg": ctg, "weather": weather, "speed": speed}  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args(arguments)
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"no part is called {unknown[0]!r}; there are {', '.join(PARTS)}")
    missed = 0
    for part in options.parts or PARTS:
        met = PARTS[part](options.repeats)
        print(f"{'met' if met else 'MISSED'}: {PARTS[part].__doc__}")
        missed += not met
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
