"""Two million rows: time against LogisticRegression, and extra memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from data import TwoClasses, gaussian_classes, moment_mismatch, statistical_distance
from measure import Result, Table, Target, Tell, check, race
from memory import extra_memory
from sklearn.linear_model import LogisticRegression

from missratio import KLIEP, density_ratio

MAIN_SHIFT = 0.2
PEER = "LogisticRegression"
FASTER = Target("at least", 5.0)
LEANER = Target("at most", 0.1)
# Float32 rows carry rounding of their own into the sums.
MISMATCH = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-5}


def run(tell: Tell, *, quick: bool) -> Table:
    n_rows, n_columns = (20_000, 20) if quick else (1_000_000, 50)
    repeats = 2 if quick else 5
    results: list[Result] = []
    for shift in (0.2, 0.1, 0.3):
        data = gaussian_classes(n_rows, n_columns, shift=shift)
        name = f"shift {shift:g}, sorted by class"
        results.append(_race(name, data, _fit(data), FASTER, repeats, tell))
        if shift == MAIN_SHIFT:
            results += _other_forms(data, repeats, tell)
    data = gaussian_classes(n_rows, n_columns, shift=MAIN_SHIFT, dtype=np.float32)
    name = f"shift {MAIN_SHIFT:g}, sorted by class, float32"
    results.append(_race(name, data, _fit(data), None, repeats, tell))
    del data
    results += _memory(n_rows, n_columns, tell)
    return Table(
        f"Large: {n_rows:,} rows a class, {n_columns} columns",
        f"time of {PEER} / time of missratio; for memory, the part of X",
        tuple(results),
        note=(
            "Class 1 is class 0, N(0, I), moved by shift · N(0, I). `KLIEP().fit` ends "
            "at a gradient of norm 1e-8 or less, recomputed here from the rows; the "
            "peer is `LogisticRegression(C=inf)`, lbfgs at its default tolerance. "
            "Memory is what a fit needs at its peak beyond what was held before, in a "
            "process of its own."
        ),
    )


def _fit(data: TwoClasses) -> Callable[[], Any]:
    return lambda: KLIEP().fit(data.X, data.y)


def _other_forms(data: TwoClasses, repeats: int, tell: Tell) -> Iterator[Result]:
    """The same rows as two tables, and in mixed order."""

    def two_samples() -> Any:
        return density_ratio(data.rows(1), data.rows(0))

    name = f"shift {MAIN_SHIFT:g}, two samples"
    yield _race(name, data, two_samples, FASTER, repeats, tell)
    shuffled = data.shuffled()
    name = f"shift {MAIN_SHIFT:g}, shuffled, the peer at tol=1e-8"
    yield _race(name, shuffled, _fit(shuffled), FASTER, repeats, tell, tol=1e-8)
    # As a dataframe holds them.
    by_column = replace(shuffled, X=np.asfortranarray(shuffled.X))
    name = f"shift {MAIN_SHIFT:g}, shuffled, column-major, the peer at tol=1e-8"
    yield _race(name, by_column, _fit(by_column), None, repeats, tell, tol=1e-8)


def _race(
    name: str,
    data: TwoClasses,
    fit: Callable[[], Any],
    target: Target | None,
    repeats: int,
    tell: Tell,
    tol: float = 1e-4,
) -> Result:
    """One form of the fit against the peer on the same rows."""
    X, y = data.X, data.y
    timings, fitted = race(
        {
            f"{name}: missratio": fit,
            f"{name}: {PEER}": lambda: LogisticRegression(C=np.inf, tol=tol).fit(X, y),
        },
        repeats,
        tell,
    )
    ours, peer = fitted.values()
    mismatch = moment_mismatch(data, ours.coef_)
    limit = MISMATCH[X.dtype]
    wrong = f"{name}: gradient norm {mismatch:.1e} > {limit:.0e}"
    distance = float(np.linalg.norm(ours.coef_ - data.coef))
    allowed = statistical_distance(len(X) // 2, X.shape[1])
    check(distance <= allowed, f"{name}: {distance:.2g} from the truth")
    mine, theirs = timings.values()
    ended = "" if ours.converged_ else " WITHOUT CONVERGING"
    return Result(
        name,
        str(mine),
        str(theirs),
        theirs.best / mine.best,
        target,
        f"gradient norm {mismatch:.0e}, {ours.n_iter_} steps{ended}; {PEER} "
        f"{peer.n_iter_[0]} steps",
        equal=ours.converged_,
        wrong=wrong if mismatch > limit else "",
    )


def _memory(n_rows: int, n_columns: int, tell: Tell) -> Iterator[Result]:
    for form, dtype, target in (
        ("sorted", "float64", LEANER),
        ("two samples", "float64", LEANER),
        ("shuffled", "float64", LEANER),
        ("sorted", "float32", None),
    ):
        tell(f"memory, {form}, {dtype}")
        memory = extra_memory(n_rows, n_columns, form, dtype)
        peak = max(memory.resident, memory.traced)
        yield Result(
            f"memory: {form}, {dtype}",
            f"{peak / 1e6:.0f} MB",
            f"X: {memory.table / 1e6:.0f} MB",
            peak / memory.table,
            target,
            f"resident {memory.resident / 1e6:.0f} MB, by tracemalloc "
            f"{memory.traced / 1e6:.0f} MB; the larger counts",
        )
