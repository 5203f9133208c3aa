"""Thousands of small fits: the paper's five-dimensional example in one batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from data import FloatArray
from measure import Result, Table, Target, Tell, check, race
from sklearn.linear_model import LogisticRegression

from missratio import KLIEP, StepMissingness, corrupt, fit_batch

N_COLUMNS = 5
TRUTH = np.full(N_COLUMNS, -0.1)
PHI = StepMissingness(direction=np.ones(N_COLUMNS), threshold=0.0, probability=0.5)
ESTIMATORS = {
    "known φ": KLIEP(missingness={1: PHI}),
    "ignore": KLIEP(missingness="ignore"),
}
LOOP_STRIDE = 10
FASTER = Target("at least", 15.0)


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


def run(tell: Tell, *, quick: bool) -> Table:
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
            FASTER,
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
            "and complete cases, in one `fit_batch` for each size and estimator. The "
            "loop fits `LogisticRegression(C=inf)` to the observed rows, with the same "
            f"weights; it is run for one fit in {stride}, {fitted['loop']:,} in all, "
            f"and its time scaled up to {n_fits:,}."
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
