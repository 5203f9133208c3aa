"""What look-ups buy where nobody knows φ.

    python benchmarks/look_ups.py power [--repeats 300]
    python benchmarks/look_ups.py ctg [--repeats 40] [--budget 320] [--data FOLDER]

power: scores N(0, 1) in the controlled class and N(1.5, 1) in the other; rows are
incomplete with probability expit(−1 ± 1.5 z), about a third of them; α = 0.1,
δ = 0.05. At the best threshold the power is 0.586.

ctg: two thirds of the cardiotocograms; four columns lose a quarter of their values
each, the higher the likelier, in both classes. `plan_queries` spends 320 look-ups, they
are filled in as data, and a logistic regression with the weights of the draw gets a
certificate that assumes nothing about φ.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from missratio import NeymanPearsonClassifier, QueryPlan, corrupt, plan_queries
from missratio.datasets import load_ctg
from missratio.missingness import LogisticMissingness
from missratio.threshold import (
    BinomialRule,
    CalibrationSample,
    LookUpRule,
    looked_up_sample,
)

ALPHA, DELTA = 0.1, 0.05
SETTINGS = ((236, 20), (236, 37), (1000, 82), (1000, 164), (4000, 331))
COLUMNS = {"AC": 1, "ASTV": 4, "ALTV": 6, "Mean": 8}
LOST, SLOPE = 0.25, 1.0


def thresholds(n_rows, n_drawn, slope, rng):
    """With some of the incomplete rows looked up, and with nothing missing."""
    z = rng.normal(size=n_rows)
    incomplete = rng.uniform(size=n_rows) < expit(slope * z - 1.0)
    rows = rng.permutation(np.flatnonzero(incomplete))
    inclusion = np.where(incomplete, 0.0, 1.0)
    inclusion[rows[:n_drawn]] = min(n_drawn, len(rows)) / len(rows)
    sample = looked_up_sample(z, inclusion)
    whole = CalibrationSample.build(z)
    return {
        "look-ups": LookUpRule().select(sample, ALPHA, DELTA).threshold,
        "complete": BinomialRule().select(whole, ALPHA, DELTA).threshold,
    }


def power(repeats: int) -> None:
    print("rows  drawn  slope  rule      power ± se     violations")
    for n_rows, n_drawn in SETTINGS:
        for slope in (1.5, -1.5):
            rng = np.random.default_rng([n_rows, n_drawn, int(slope > 0)])
            runs = [thresholds(n_rows, n_drawn, slope, rng) for _ in range(repeats)]
            for name in runs[0]:
                found = [run[name] for run in runs]
                powers = [0.0 if c is None else norm.sf(c - 1.5) for c in found]
                wrong = np.mean([c is not None and norm.sf(c) > ALPHA for c in found])
                print(
                    f"{n_rows:4}  {n_drawn:5}  {slope:5}  {name:8}  "
                    f"{np.mean(powers):.3f} ± {np.std(powers) / repeats**0.5:.3f}  "
                    f"{wrong:10.3f}",
                    flush=True,
                )


def losing(Z: np.ndarray) -> LogisticMissingness:
    """A φ under which each of the columns loses a quarter, the high ones first."""
    intercept, coef = np.full(Z.shape[1], -700.0), np.zeros(Z.shape[1])
    for column in COLUMNS.values():
        values = (Z[:, column] - Z[:, column].mean()) / Z[:, column].std()
        start = brentq(lambda a, v=values: expit(a + SLOPE * v).mean() - LOST, -20, 20)
        coef[column] = SLOPE / Z[:, column].std()
        intercept[column] = start - coef[column] * Z[:, column].mean()
    return LogisticMissingness(intercept, coef)


def one_split(Z: np.ndarray, y: np.ndarray, budget: int, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    test = np.zeros(len(y), dtype=bool)
    for label in (0, 1):
        rows = rng.permutation(np.flatnonzero(y == label))
        test[rows[: len(rows) // 3]] = True
    full, labels = Z[~test], y[~test]
    X = corrupt(full, losing(full), rng)
    levels = {"alpha": ALPHA, "delta": DELTA, "random_state": seed}
    plan = plan_queries(X, labels, budget=budget, goal="both", **levels)
    table = plan.to_frame()
    table["value"] = full[plan.rows, plan.columns]
    filled, inclusion = QueryPlan.read(table, X, labels).fill(X)
    clf = NeymanPearsonClassifier(
        make_pipeline(StandardScaler(), LogisticRegression()),
        on_infeasible="reject_all",
        **levels,
    ).fit(filled, labels, inclusion=inclusion)
    given = clf.predict(Z[test]) == 1
    return {
        "certified": float(clf.certificate_.certified),
        "error": float(given[y[test] == 0].mean()),
        "power": float(given[y[test] == 1].mean()),
        "planned power": float(plan.power.power[plan.power.values <= budget][-1]),
        "rows, controlled": len(np.unique(plan.rows[plan.labels == 0])),
        "rows, other": len(np.unique(plan.rows[plan.labels == 1])),
        "values": len(plan),
    }


def ctg(repeats: int, budget: int, folder: str | None) -> None:
    Z, y = load_ctg(return_X_y=True, data_home=folder)
    found = [one_split(Z, y, budget, seed) for seed in range(repeats)]
    print(f"{repeats} splits, {budget} look-ups, mean and standard error")
    for name in found[0]:
        values = np.array([split[name] for split in found])
        error = values.std() / np.sqrt(len(values))
        print(f"{name:>18}  {values.mean():8.3f}  ± {error:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["power", "ctg"])
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--budget", type=int, default=320)
    parser.add_argument("--data", default=None)
    given = parser.parse_args()
    if given.part == "power":
        power(given.repeats or 300)
    else:
        ctg(given.repeats or 40, given.budget, given.data)


if __name__ == "__main__":
    main()
