"""One-dimensional fits of many columns: at once, and in a loop over KLIEP."""

from __future__ import annotations

import numpy as np
from data import FloatArray, gaussian_classes
from measure import Result, Table, Tell, check, race

from missratio import KLIEP, NaiveBayesRatio


def run(tell: Tell, *, quick: bool) -> Table:
    n_rows, n_columns = (5000, 10) if quick else (100_000, 62)
    data = gaussian_classes(n_rows, n_columns, shift=0.2)

    def loop() -> FloatArray:
        columns = (data.X[:, [j]] for j in range(n_columns))
        return np.concatenate([KLIEP().fit(each, data.y).coef_ for each in columns])

    timings, fitted = race(
        {"missratio": lambda: NaiveBayesRatio().fit(data.X, data.y), "loop": loop},
        2 if quick else 5,
        tell,
        warm_up=True,
    )
    gap = np.abs(fitted["missratio"].coef_ - fitted["loop"]).max()
    check(gap <= 1e-7, f"naive Bayes: {gap:.1e} from the fits of single columns")
    ours, peer = timings["missratio"], timings["loop"]
    result = Result(
        "NaiveBayesRatio().fit",
        str(ours),
        str(peer),
        peer.best / ours.best,
        None,
        f"coefficients differ by {gap:.0e}",
    )
    return Table(
        f"Naive Bayes: {n_rows:,} rows a class, {n_columns} columns",
        "time of a loop over columns / time at once",
        (result,),
        note="The loop calls `KLIEP().fit` on each column.",
    )
