"""A small table: the whole fit, validation included."""

from __future__ import annotations

import numpy as np
from data import gaussian_classes, moment_mismatch
from measure import Result, Table, Target, Tell, check, race
from sklearn.linear_model import LogisticRegression

from missratio import KLIEP

AT_MOST_HALF = Target("at most", 0.5)


def run(tell: Tell, *, quick: bool) -> Table:
    n_rows, n_columns = 1500, 5
    data = gaussian_classes(n_rows, n_columns, shift=0.2)
    timings, fitted = race(
        {
            "missratio": lambda: KLIEP().fit(data.X, data.y),
            "LogisticRegression": lambda: LogisticRegression(C=np.inf).fit(
                data.X, data.y
            ),
        },
        5 if quick else 30,
        tell,
        number=5 if quick else 50,
        warm_up=True,
    )
    ours, peer = timings["missratio"], timings["LogisticRegression"]
    mismatch = moment_mismatch(data, fitted["missratio"].coef_)
    check(mismatch <= 1e-8, f"small: gradient norm {mismatch:.1e}")
    result = Result(
        "KLIEP().fit",
        str(ours),
        str(peer),
        ours.best / peer.best,
        AT_MOST_HALF,
        f"gradient norm {mismatch:.0e}, {fitted['missratio'].n_iter_} steps; peer "
        f"{fitted['LogisticRegression'].n_iter_[0]} steps",
    )
    return Table(
        f"Small: {n_rows:,} rows a class, {n_columns} columns",
        "time of missratio / time of LogisticRegression",
        (result,),
        note="Peer: `LogisticRegression(C=inf)`, lbfgs at its default tolerance.",
    )
