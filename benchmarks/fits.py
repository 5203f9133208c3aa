"""Fits of ratios against LogisticRegression, loops and SciPy: large, small, many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from draws import (
    FloatArray,
    TwoClasses,
    effective_rows,
    gaussian_classes,
    moment_mismatch,
    statistical_distance,
)
from measure import Result, Table, Target, Tell, check, duration, race
from memory import extra_memory
from sklearn.linear_model import LogisticRegression

from missratio import (
    KLIEP,
    NaiveBayesRatio,
    StepMissingness,
    corrupt,
    density_ratio,
)
from missratio.ratio import fit_batch

MAIN_SHIFT = 0.2
PEER = "LogisticRegression"
FASTER_LARGE = Target("at least", 5.0)
LEANER = Target("at most", 0.1)
# Float32 rows carry rounding of their own into the sums.
MISMATCH = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-5}


def large(tell: Tell, *, quick: bool) -> Table:
    n_rows, n_columns = (20_000, 20) if quick else (1_000_000, 50)
    repeats = 2 if quick else 5
    results: list[Result] = []
    for shift in (0.2, 0.1, 0.3):
        data = gaussian_classes(n_rows, n_columns, shift=shift)
        name = f"shift {shift:g}, sorted by class"
        results.append(_race(name, data, _fit(data), FASTER_LARGE, repeats, tell))
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
        note="Class 1 is class 0, N(0, I), moved by shift · N(0, I). `KLIEP().fit` "
        "ends at a gradient of 1e-8 or less; the peer is `LogisticRegression(C=inf)`, "
        "lbfgs at its default tolerance. Memory is what a fit needs beyond the table.",
    )


def _fit(data: TwoClasses) -> Callable[[], Any]:
    return lambda: KLIEP().fit(data.X, data.y)


def _other_forms(data: TwoClasses, repeats: int, tell: Tell) -> Iterator[Result]:
    """The same rows as two tables, and in mixed order."""

    def two_samples() -> Any:
        return density_ratio(data.rows(1), data.rows(0))

    name = f"shift {MAIN_SHIFT:g}, two samples"
    yield _race(name, data, two_samples, FASTER_LARGE, repeats, tell)
    shuffled = data.shuffled()
    name = f"shift {MAIN_SHIFT:g}, shuffled, the peer at tol=1e-8"
    yield _race(name, shuffled, _fit(shuffled), FASTER_LARGE, repeats, tell, tol=1e-8)
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


CORRELATION = 0.9
SOLVERS = ("lbfgs", "newton-cholesky", "newton-cg")
FASTER_CORRELATED = Target("at least", 5.0)


def correlated(tell: Tell, *, quick: bool) -> Table:
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
            FASTER_CORRELATED if solver == best else None,
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
FASTER_COLUMNS = Target("at least", 1.5)


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
        FASTER_COLUMNS,
        f"gradient norm {mismatch:.0e}, {ours.n_iter_} steps; "
        f"peer {peer.n_iter_[0]} steps; weights worth {worth:,.0f} rows",
        equal=bool(ours.converged_),
    )


def columns(tell: Tell, *, quick: bool) -> Table:
    results = tuple(one(*case, tell) for case in (QUICK if quick else CASES))
    return Table(
        "Columns",
        "time of LogisticRegression / time of missratio",
        results,
        note="`KLIEP(tol=1e-6).fit` against `LogisticRegression(tol=1e-6)`, lbfgs. "
        "KLIEP's exponential weights leave fewer rows for each of many independent "
        "columns than the peer's bounded ones, so it takes more passes.",
    )


AT_MOST_HALF = Target("at most", 0.5)


def small(tell: Tell, *, quick: bool) -> Table:
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


LINEAR = Target("at most", 1.5)


def growth(tell: Tell, *, quick: bool) -> Table:
    few, many, n_columns = (10_000, 100_000, 20) if quick else (100_000, 4_000_000, 20)
    small = gaussian_classes(few, n_columns, shift=0.2)
    large = gaussian_classes(many, n_columns, shift=0.2)
    timings, fitted = race(
        {
            "small": lambda: KLIEP().fit(small.X, small.y),
            "large": lambda: KLIEP().fit(large.X, large.y),
        },
        2 if quick else 7,
        tell,
        warm_up=True,
    )
    for name, data in (("small", small), ("large", large)):
        mismatch = moment_mismatch(data, fitted[name].coef_)
        check(mismatch <= 1e-8, f"growth, {name}: gradient norm {mismatch:.1e}")
    per_row_small = timings["small"] / (2 * few)
    per_row_large = timings["large"] / (2 * many)
    result = Result(
        "time per row",
        str(per_row_large),
        str(per_row_small),
        per_row_large.best / per_row_small.best,
        LINEAR,
        f"{fitted['large'].n_iter_} and {fitted['small'].n_iter_} steps; in all "
        f"{duration(timings['large'].best)} and {duration(timings['small'].best)}",
    )
    return Table(
        f"Growth: {many:,} rows a class against {few:,}, {n_columns} columns",
        "time per row of the larger / of the smaller",
        (result,),
        note="`KLIEP().fit` against itself: the first time is the larger table's.",
    )


def naive_bayes(tell: Tell, *, quick: bool) -> Table:
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


N_COLUMNS = 5
TRUTH = np.full(N_COLUMNS, -0.1)
PHI = StepMissingness(direction=np.ones(N_COLUMNS), threshold=0.0, probability=0.5)
ESTIMATORS = {
    "known φ": KLIEP(missingness={1: PHI}),
    "ignore": KLIEP(missingness="ignore"),
}
LOOP_STRIDE = 10
FASTER_BATCH = Target("at least", 15.0)


@dataclass(frozen=True)
class Simulations:
    """Data sets of one size, a leading axis over simulations."""

    X1: FloatArray
    X0: FloatArray


def draw(sizes: range, n_simulations: int) -> list[Simulations]:
    """p1 = N(0, I), p0 = N(0.1, I); class 1 loses half its rows with a sum above 0."""
    rng = np.random.default_rng(0)
    drawn = []
    for n_rows in sizes:
        shape = (n_simulations, n_rows, N_COLUMNS)
        complete = rng.standard_normal((n_simulations * n_rows, N_COLUMNS))
        X1 = corrupt(complete, PHI, random_state=rng).reshape(shape)
        drawn.append(Simulations(X1, 0.1 + rng.standard_normal(shape)))
    return drawn


def fit_all(data: list[Simulations]) -> dict[str, list[Any]]:
    """Every fit, a batch for each size and estimator."""
    return {
        name: [fit_batch(estimator, each.X1, each.X0) for each in data]
        for name, estimator in ESTIMATORS.items()
    }


def loop(data: list[Simulations], stride: int) -> int:
    """Every stride-th fit by LogisticRegression, one after the other."""
    chosen = list(_tasks(data))[::stride]
    for X1, X0, weigh in chosen:
        observed = X1[~np.isnan(X1).any(axis=1)]
        X = np.concatenate([observed, X0])
        y = np.repeat([1, 0], [len(observed), len(X0)])
        weight = None
        if weigh:
            weight = np.ones(len(X))
            weight[: len(observed)] /= 1.0 - PHI.missing_probability(observed)
        LogisticRegression(C=np.inf).fit(X, y, sample_weight=weight)
    return len(chosen)


def _tasks(data: list[Simulations]) -> Iterator[tuple[FloatArray, FloatArray, bool]]:
    # Estimators outermost: innermost, an even stride would leave one of them out.
    for weigh in (True, False):
        for each in data:
            for X1, X0 in zip(each.X1, each.X0, strict=True):
                yield X1, X0, weigh


def batch(tell: Tell, *, quick: bool) -> Table:
    sizes = range(100, 1600, 500) if quick else range(100, 1600, 100)
    n_simulations = 20 if quick else 100
    tell("drawing")
    data = draw(sizes, n_simulations)
    n_fits = len(sizes) * n_simulations * len(ESTIMATORS)
    stride = 2 if quick else LOOP_STRIDE
    timings, fitted = race(
        {"missratio": lambda: fit_all(data), "loop": lambda: loop(data, stride)},
        2 if quick else 5,
        tell,
        warm_up=True,
    )
    _check(data, fitted["missratio"])
    peer = timings["loop"] * (n_fits / fitted["loop"])
    whole, _ = race({"with drawing": _drawn(sizes, n_simulations)}, 2, tell)
    ours = timings["missratio"]
    distances = ", ".join(
        f"{name} {np.mean((fits[-1].coef - TRUTH) ** 2) * N_COLUMNS:.2g}"
        for name, fits in fitted["missratio"].items()
    )
    results = (
        Result(
            "all fits",
            str(ours),
            str(peer),
            peer.best / ours.best,
            FASTER_BATCH,
            f"mean squared distance at n = {sizes[-1]}: {distances}",
        ),
        Result(
            "drawing the data included",
            str(whole["with drawing"]),
            str(peer),
            peer.best / whole["with drawing"].best,
            None,
            "the loop's time is without drawing",
        ),
    )
    return Table(
        f"Batch: {n_fits:,} fits of {sizes[0]} to {sizes[-1]} rows a class, "
        f"{N_COLUMNS} columns",
        "time of a loop over LogisticRegression / time of fit_batch",
        results,
        note=(
            f"{len(sizes)} sizes × {n_simulations} simulations × M-KLIEP with φ known "
            "and complete cases, in one `fit_batch` for each size and estimator, "
            "against a loop of `LogisticRegression(C=inf)` with the same weights, run "
            f"for one fit in {stride} and scaled up."
        ),
    )


def _drawn(sizes: range, n_simulations: int) -> Callable[[], Any]:
    return lambda: fit_all(draw(sizes, n_simulations))


def _check(data: list[Simulations], fitted: dict[str, list[Any]]) -> None:
    """The batch gives what single fits give."""
    for name, estimator in ESTIMATORS.items():
        for each, fits in zip(data, fitted[name], strict=True):
            check(bool(fits.converged.all()), f"batch, {name}: a fit did not converge")
            X = np.concatenate([each.X1[0], each.X0[0]])
            y = np.repeat([1, 0], [len(each.X1[0]), len(each.X0[0])])
            gap = np.abs(estimator.fit(X, y).coef_ - fits.coef[0]).max()
            check(gap <= 1e-7, f"batch, {name}: {gap:.1e} from the single fit")
