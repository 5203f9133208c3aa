"""Learning why values are missing, for many features at once."""

from __future__ import annotations

import numpy as np
from measure import Result, Table, Target, Tell, check, duration, race

from missratio import LogisticMissingness, corrupt, learn_missingness

REVEALED = 50
SECONDS = Target("at most", 1.0)


def run(tell: Tell, *, quick: bool) -> Table:
    n_rows, n_columns = (10_000, 10) if quick else (100_000, 62)
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((n_rows, n_columns))
    phi = LogisticMissingness(
        rng.normal(-1.0, 1.0, n_columns), rng.normal(0.0, 1.0, n_columns)
    )
    X = corrupt(Z, phi, rng)
    revealed = np.full_like(X, np.nan)
    for j in range(n_columns):
        missing = np.flatnonzero(np.isnan(X[:, j]))
        chosen = rng.choice(missing, REVEALED, replace=False)
        revealed[chosen, j] = Z[chosen, j]
    timings, models = race(
        {
            "firth": lambda: learn_missingness(X, revealed, "firth", from_table=False),
            "ml": lambda: learn_missingness(X, revealed, "ml", from_table=False),
        },
        3 if quick else 10,
        tell,
        warm_up=True,
    )
    results = []
    for method, model in models.items():
        off = (model.coef - np.asarray(phi.coef)) / model.standard_errors[:, 1]
        spread = float(np.sqrt(np.mean(off**2)))
        check(0.6 < spread < 1.6, f"learned: slopes are off by {spread:.2f} se")
        timing = timings[method]
        results.append(
            Result(
                f"method={method!r}",
                str(timing),
                duration(SECONDS.value),
                timing.best,
                SECONDS,
                f"slopes are off by {spread:.2f} standard errors, root mean square",
            )
        )
    return Table(
        f"Learned φ: {n_rows:,} rows, {n_columns} columns, {REVEALED} values revealed "
        "of each",
        "seconds",
        tuple(results),
        note="`learn_missingness`, checks of the tables included.",
    )
