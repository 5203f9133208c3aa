"""Correlated features: time against each solver of LogisticRegression."""

from __future__ import annotations

import numpy as np
from data import gaussian_classes, moment_mismatch, statistical_distance
from measure import Result, Table, Target, Tell, check, race
from sklearn.linear_model import LogisticRegression

from missratio import KLIEP

CORRELATION = 0.9
SOLVERS = ("lbfgs", "newton-cholesky", "newton-cg")
FASTER = Target("at least", 5.0)


def run(tell: Tell, *, quick: bool) -> Table:
    n_rows, n_columns = (10_000, 20) if quick else (100_000, 50)
    # In units of the classes' common spread, the shift is that of the large benchmark.
    shift = 0.2 * np.sqrt(1.0 - CORRELATION)
    data = gaussian_classes(n_rows, n_columns, shift=shift, correlation=CORRELATION)

    def peer(solver: str) -> LogisticRegression:
        model = LogisticRegression(C=np.inf, solver=solver, max_iter=10_000)
        return model.fit(data.X, data.y)

    contenders = {solver: lambda solver=solver: peer(solver) for solver in SOLVERS}
    timings, fitted = race(
        {"missratio": lambda: KLIEP().fit(data.X, data.y), **contenders},
        2 if quick else 7,
        tell,
        warm_up=True,
    )
    ours = fitted["missratio"]
    mismatch = moment_mismatch(data, ours.coef_)
    check(ours.converged_ and mismatch <= 1e-7, f"correlated: gradient {mismatch:.1e}")
    distance = np.linalg.norm(ours.coef_ - data.coef) * np.sqrt(1.0 - CORRELATION)
    allowed = statistical_distance(n_rows, n_columns)
    check(distance <= allowed, f"correlated: {distance:.2g} from the truth")

    best = min(SOLVERS, key=lambda solver: timings[solver].best)
    results = tuple(
        Result(
            f"{solver} (its best)" if solver == best else solver,
            str(timings["missratio"]),
            str(timings[solver]),
            timings[solver].best / timings["missratio"].best,
            FASTER if solver == best else None,
            f"gradient norm {mismatch:.0e}, {ours.n_iter_} steps; "
            f"peer {fitted[solver].n_iter_[0]} steps",
        )
        for solver in SOLVERS
    )
    return Table(
        f"Correlated: ρ = {CORRELATION:g}, {n_rows:,} rows a class, "
        f"{n_columns} columns",
        "time of LogisticRegression / time of missratio",
        results,
        note="`KLIEP().fit` against `LogisticRegression(C=inf)` with each solver, at "
        "its default tolerance.",
    )
