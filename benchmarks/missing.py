"""What missing values cost: fits of lossy tables as multiples of the complete one's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from data import gaussian_classes
from measure import Result, Table, Target, Tell, check, race

from missratio import (
    KLIEP,
    LogisticMissingness,
    NaiveBayesRatio,
    StepMissingness,
    corrupt,
)
from missratio.missingness import Missingness

COMPLETE = "complete"
TARGETS = {
    "whole rows missing": 1.5,
    "single entries missing": 4.0,
    "naive Bayes, single entries missing": 6.0,
}


def run(tell: Tell, *, quick: bool) -> Table:
    n_rows, n_columns = (10_000, 20) if quick else (300_000, 40)
    data = gaussian_classes(n_rows, n_columns, shift=0.2)
    rows = StepMissingness(np.eye(n_columns)[0], 0.0, 0.5)
    entries = LogisticMissingness(np.zeros(n_columns), np.ones(n_columns))

    def lossy(estimator: Any, phi: Missingness) -> Callable[[], Any]:
        X = np.concatenate([data.rows(0), corrupt(data.rows(1), phi, random_state=0)])
        return lambda: estimator.set_params(missingness={1: phi}).fit(X, data.y)

    whole, single, naive = TARGETS
    timings, fitted = race(
        {
            COMPLETE: lambda: KLIEP().fit(data.X, data.y),
            whole: lossy(KLIEP(), rows),
            single: lossy(KLIEP(), entries),
            naive: lossy(NaiveBayesRatio(), entries),
        },
        2 if quick else 7,
        tell,
        warm_up=True,
    )
    results = []
    for case, most in TARGETS.items():
        gap = float(np.abs(fitted[case].coef_ - data.coef).max())
        allowed = 30.0 / np.sqrt(n_rows)
        check(gap <= allowed, f"{case}: a coefficient is {gap:.2g} from the truth")
        results.append(
            Result(
                case,
                str(timings[case]),
                str(timings[COMPLETE]),
                timings[case].best / timings[COMPLETE].best,
                Target("at most", most),
                f"coefficients within {gap:.2g} of the truth",
                equal=fitted[case].converged_,
            )
        )
    return Table(
        f"Missing values: {n_rows:,} rows a class, {n_columns} columns",
        "time with missing values / time of `KLIEP().fit` on the complete table",
        tuple(results),
        note=(
            "Class 1 loses half of its rows on one side of a threshold, or about half "
            "of its entries with log-odds equal to the value; φ is known."
        ),
    )
