"""Three ways to a certificate where nobody knows φ, on the same tables.

Two normal classes with three columns; in the controlled class the first column goes
missing by a logistic φ, or by a step that no logistic φ can follow. 160 look-ups.

    python benchmarks/three_ways.py [--repeats 20] [--means] [--write docs/look_ups.md]

With --means, errors of columns' means instead: five columns that go missing by several
forms of φ, 50 look-ups a column. With --write, a table goes to its place on a page:
ways on docs/look_ups.md, means on docs/validity.md.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pages
from learning_table import mean_errors
from scipy.special import expit

from missratio import (
    KLIEP,
    NeymanPearsonClassifier,
    QueryPlan,
    learn_missingness,
    plan_queries,
)
from missratio.missingness import MissingnessContradictionError

N_ROWS, ALPHA, DELTA, BUDGET = 1000, 0.1, 0.1, 160
PHI = {
    "logistic": lambda z: expit(-1.0 + 1.5 * z),
    "step": lambda z: np.where(z > 1.0, 0.85, 0.1),
}


def table(phi, rng):
    y = np.repeat([0, 1], N_ROWS)
    noise = rng.normal(size=(2 * N_ROWS, 3))
    Z = noise + 0.4 * noise[:, [1, 2, 0]] + np.where(y == 1, 1.0, 0.0)[:, None]
    X = Z.copy()
    lost = (rng.uniform(size=len(y)) < phi(Z[:, 0])) & (y == 0)
    X[lost, 0] = np.nan
    return X, y, Z


def answered(X, y, Z, seed, **options):
    plan = plan_queries(X, y, budget=BUDGET, random_state=seed, **options)
    frame = plan.to_frame()
    frame["value"] = Z[plan.rows, plan.columns]
    return QueryPlan.read(frame, X, y)


def classifier(seed, **options):
    return NeymanPearsonClassifier(
        KLIEP(),
        alpha=ALPHA,
        delta=DELTA,
        on_infeasible="reject_all",
        random_state=seed,
        **options,
    )


def one(phi, seed):
    rng = np.random.default_rng(seed)
    X, y, Z = table(phi, rng)
    filled, inclusion = answered(X, y, Z, seed, rowwise=True).fill(X)
    revealed = answered(X, y, Z, seed)
    learned = {0: learn_missingness(X[y == 0], revealed[0])}
    complete = ~np.isnan(X).any(axis=1)
    fits = {
        "look-ups as data": lambda: classifier(seed).fit(
            filled, y, inclusion=inclusion
        ),
        "look-ups teach φ": lambda: classifier(seed, missingness=learned).fit(X, y),
        "complete cases": lambda: classifier(seed).fit(X[complete], y[complete]),
        "nothing missing": lambda: classifier(seed).fit(Z, y),
    }
    _, fresh_y, fresh = table(phi, np.random.default_rng(10_000 + seed))
    found = {}
    for name, fit in fits.items():
        try:
            given = fit().predict(fresh) == 1
        except MissingnessContradictionError:
            found[name] = np.nan, np.nan  # the data refute φ: no certificate
        else:
            found[name] = given[fresh_y == 0].mean(), given[fresh_y == 1].mean()
    return found


HEADS = {
    "ways": [
        "", "logistic φ: error", "above α", "power", "a step: error", "above α", "power"
    ],
    "means": [
        "column, true φ", "complete cases", "look-ups teach a logistic φ",
        "the table teaches it", "look-ups as data",
    ],
}  # fmt: skip


def certificates(repeats: int) -> list[list[str]]:
    """Errors and powers by the ways to a certificate, a line for each."""
    cells: dict[str, list[str]] = {}
    for phi in PHI.values():
        runs = [one(phi, seed) for seed in range(repeats)]
        for name in runs[0]:
            error, power = np.array([run[name] for run in runs]).T
            refused, kept = np.isnan(error).sum(), ~np.isnan(error)
            if not kept.any():
                shown = ["refused", "–", "–"]
            else:
                above = (error[kept] > ALPHA + 0.01).mean()
                note = f" ({refused} refused)" if refused else ""
                shown = [f"{error[kept].mean():.3f}{note}", f"{above:.2g}"]
                shown.append(f"{power[kept].mean():.3f}")
            cells.setdefault(name, []).extend(shown)
    return [[name, *row] for name, row in cells.items()]


def means(repeats: int) -> list[list[str]]:
    """Errors of means by the four ways to them, in standard deviations."""
    lines = []
    for law in ("normal", "lognormal"):
        for form in ("logistic", "step", "tail", "U"):
            errors = mean_errors(form, law, 50, repeats).values()
            lines.append([f"{law}, {form}", *(f"{error:.3f}" for error in errors)])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--means", action="store_true")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    part = "means" if options.means else "ways"
    measure = means if options.means else certificates
    made = pages.table(HEADS[part], measure(options.repeats))
    print(made)
    if options.write:
        pages.put(options.write, part, made)


if __name__ == "__main__":
    main()
