"""Many columns: time against LogisticRegression, at equal accuracy."""

from __future__ import annotations

import numpy as np
from data import effective_rows, gaussian_classes, moment_mismatch
from measure import Result, Table, Target, Tell, race
from sklearn.linear_model import LogisticRegression

from missratio import KLIEP

# Rows a class, columns, correlation, l2.
CASES = (
    (100_000, 50, 0.0, 0.0),
    (100_000, 200, 0.0, 0.0),
    (100_000, 200, 0.9, 0.0),
    (50_000, 500, 0.0, 0.0),
    (50_000, 500, 0.9, 0.0),
    (20_000, 1000, 0.0, 0.0),
    (20_000, 1000, 0.9, 0.0),
    (5_000, 3000, 0.0, 0.01),
    (5_000, 3000, 0.9, 0.01),
)
QUICK = ((5_000, 50, 0.0, 0.0), (5_000, 100, 0.9, 0.0))
TOL = 1e-6
FASTER = Target("at least", 1.5)


def one(
    n_rows: int, n_columns: int, correlation: float, l2: float, tell: Tell
) -> Result:
    # The classes are as far apart for any number of columns.
    shift = np.sqrt((1.0 - correlation) / n_columns)
    data = gaussian_classes(n_rows, n_columns, shift=shift, correlation=correlation)
    penalty = np.inf if l2 == 0.0 else 1.0 / (l2 * n_rows)
    timings, fitted = race(
        {
            "missratio": lambda: KLIEP(l2=l2, tol=TOL).fit(data.X, data.y),
            "peer": lambda: LogisticRegression(C=penalty, tol=TOL, max_iter=10_000).fit(
                data.X, data.y
            ),
        },
        2,
        tell,
    )
    ours, peer = fitted["missratio"], fitted["peer"]
    mismatch = moment_mismatch(data, ours.coef_, l2)
    worth = effective_rows(data, ours.coef_)
    kind = f"ρ = {correlation:g}" if correlation else "independent"
    return Result(
        f"{n_rows:,} × {n_columns}, {kind}" + (f", l2 = {l2:g}" if l2 else ""),
        str(timings["missratio"]),
        str(timings["peer"]),
        timings["peer"].best / timings["missratio"].best,
        FASTER,
        f"gradient norm {mismatch:.0e}, {ours.n_iter_} steps; "
        f"peer {peer.n_iter_[0]} steps; weights worth {worth:,.0f} rows",
        equal=bool(ours.converged_),
    )


def run(tell: Tell, *, quick: bool) -> Table:
    results = tuple(one(*case, tell) for case in (QUICK if quick else CASES))
    return Table(
        "Columns",
        "time of LogisticRegression / time of missratio",
        results,
        note="`KLIEP(tol=1e-6).fit` against `LogisticRegression(tol=1e-6)`, lbfgs. "
        "KLIEP weighs denominator rows by exponentials of scores, which leaves fewer "
        "rows for each of many independent columns than the peer's bounded weights do. "
        "So its Hessian is worse conditioned, and it takes more passes.",
    )
