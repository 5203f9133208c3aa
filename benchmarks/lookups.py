"""The analyst's case: 320 look-ups in a table with holes, and nobody knows φ.

Two thirds of the cardiotocograms; four columns lose a quarter of their values each, the
higher the likelier, in both classes; α = 0.1, δ = 0.05. `plan_queries` spends 320
look-ups, they are filled in as data, and a logistic regression with the weights of the
draw gets a certificate that assumes nothing about φ.

    python benchmarks/lookups.py [--splits 40] [--budget 320] [--data FOLDER]
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from missratio import NeymanPearsonClassifier, QueryPlan, corrupt, plan_queries
from missratio.datasets import load_ctg
from missratio.missingness import LogisticMissingness

COLUMNS = {"AC": 1, "ASTV": 4, "ALTV": 6, "Mean": 8}
ALPHA, DELTA, LOST, SLOPE = 0.1, 0.05, 0.25, 1.0


def losing(Z: np.ndarray) -> LogisticMissingness:
    """A φ under which each of the columns loses a quarter, the high ones first."""
    intercept, coef = np.full(Z.shape[1], -np.inf), np.zeros(Z.shape[1])
    for column in COLUMNS.values():
        values = (Z[:, column] - Z[:, column].mean()) / Z[:, column].std()
        start = brentq(lambda a, v=values: expit(a + SLOPE * v).mean() - LOST, -20, 20)
        coef[column] = SLOPE / Z[:, column].std()
        intercept[column] = start - coef[column] * Z[:, column].mean()
    return LogisticMissingness(np.where(np.isinf(intercept), -700.0, intercept), coef)


def one_split(Z: np.ndarray, y: np.ndarray, budget: int, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    test = np.zeros(len(y), dtype=bool)
    for label in (0, 1):
        rows = rng.permutation(np.flatnonzero(y == label))
        test[rows[: len(rows) // 3]] = True
    full, labels = Z[~test], y[~test]
    X = corrupt(full, losing(full), rng)
    plan = plan_queries(
        X,
        labels,
        budget=budget,
        goal="both",
        alpha=ALPHA,
        delta=DELTA,
        random_state=seed,
    )
    table = plan.to_frame()
    table["value"] = full[plan.rows, plan.columns]
    filled, inclusion = QueryPlan.read(table, X, labels).fill(X)
    clf = NeymanPearsonClassifier(
        make_pipeline(StandardScaler(), LogisticRegression()),
        alpha=ALPHA,
        delta=DELTA,
        on_infeasible="reject_all",
        random_state=seed,
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=40)
    parser.add_argument("--budget", type=int, default=320)
    parser.add_argument("--data", default=None)
    options = parser.parse_args()
    Z, y = load_ctg(return_X_y=True, data_home=options.data)
    found = [one_split(Z, y, options.budget, seed) for seed in range(options.splits)]
    print(
        f"{options.splits} splits, {options.budget} look-ups, mean and standard error"
    )
    for name in found[0]:
        values = np.array([split[name] for split in found])
        error = values.std() / np.sqrt(len(values))
        print(f"{name:>18}  {values.mean():8.3f}  ± {error:.3f}")


if __name__ == "__main__":
    main()
