"""Kernel ratios with their cross-validation, against densratio and ADAPT.

Times are the processor's, and BLAS has one thread: idle ones of one package would go on
spinning on the other's time. ADAPT brings TensorFlow: where it isn't installed its
lines are left out.
"""

from __future__ import annotations

import contextlib
import io
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import densratio
import numpy as np
from data import FloatArray
from kernel import draw, log_mean, true_ratio
from measure import Result, Table, Target, Tell, race
from threadpoolctl import threadpool_limits

from missratio import KernelRatio, density_ratio, ratio_test

TENFOLD = Target("at least", 10.0)
BELOW_FIVE_SECONDS = Target("at most", 5.0)
SMALLEST = 1e-12
# What the examples in ADAPT's docstrings try: it has no grid by default.
ADAPT_GAMMAS = [0.1, 1.0, 10.0]
ADAPT_LAMBDAS = [0.1, 1.0, 10.0]


def squares(ratio1: FloatArray, ratio0: FloatArray) -> float:
    """uLSIF's loss, to be minimised, at the ratio's best scale."""
    return float(-(ratio1.mean() ** 2) / (2.0 * (ratio0**2).mean()))


def minus_log_mean(ratio1: FloatArray, ratio0: FloatArray) -> float:
    return -log_mean(np.maximum(ratio1, SMALLEST), ratio0)


def relative_squares(
    ratio1: FloatArray, ratio0: FloatArray, alpha: float = 0.1
) -> float:
    """RuLSIF's loss, to be minimised."""
    mixed = alpha * (ratio1**2).mean() + (1.0 - alpha) * (ratio0**2).mean()
    return float(0.5 * mixed - ratio1.mean())


Ratio = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Peer:
    """A package's method, and the one of missratio that it is compared with."""

    case: str
    method: str
    fit: Callable[[FloatArray, FloatArray], Ratio]
    loss: Callable[[FloatArray, FloatArray], float]
    repeats: int = 1


def _densratio(name: str) -> Callable[[FloatArray, FloatArray], Ratio]:
    def fit(X1: FloatArray, X0: FloatArray) -> Ratio:
        np.random.seed(0)  # noqa: NPY002
        found = getattr(densratio, name)(X1, X0, verbose=False)
        return found.compute_density_ratio  # type: ignore[no-any-return]

    return fit


def _adapt(name: str, **options: Any) -> Callable[[FloatArray, FloatArray], Ratio]:
    def fit(X1: FloatArray, X0: FloatArray) -> Ratio:
        from adapt import instance_based

        np.random.seed(0)  # noqa: NPY002
        model = getattr(instance_based, name)(
            kernel="rbf", gamma=ADAPT_GAMMAS, random_state=0, verbose=0, **options
        )
        model.fit_weights(X0, X1)
        return lambda X: np.maximum(model.predict_weights(X), 0.0)

    return fit


PEERS = (
    Peer("uLSIF, densratio", "ulsif", _densratio("uLSIF"), squares),
    Peer("RuLSIF, densratio", "rulsif", _densratio("RuLSIF"), relative_squares),
    Peer("KLIEP, densratio", "kliep", _densratio("KLIEP"), minus_log_mean, 5),
    Peer("uLSIF, ADAPT", "ulsif", _adapt("ULSIF", lambdas=ADAPT_LAMBDAS), squares),
    Peer(
        "RuLSIF, ADAPT",
        "rulsif",
        _adapt("RULSIF", lambdas=ADAPT_LAMBDAS, alpha=0.1),
        relative_squares,
    ),
    Peer("KLIEP, ADAPT", "kliep", _adapt("KLIEP"), minus_log_mean),
)


def _installed(case: str) -> bool:
    if "ADAPT" not in case:
        return True
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with contextlib.suppress(ImportError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # The import takes seconds, and isn't part of a fit.
        import adapt.instance_based  # noqa: F401

        return True
    return False


def run(tell: Tell, *, quick: bool) -> Table:
    n_rows = 500 if quick else 5000
    rows, fresh = draw(n_rows, seed=0), draw(50_000, seed=1)
    results = [
        _race(peer, rows, fresh, tell) for peer in PEERS if _installed(peer.case)
    ]
    if _installed("ADAPT"):
        results.append(_matching(rows, tell))
    results.append(_test(200 if quick else 1000, tell))
    return Table(
        f"Kernel ratios with cross-validation, {n_rows:,} rows a class, 2 columns",
        "processor time of the peer / that of missratio, with one BLAS thread; for the "
        "test, seconds",
        tuple(results),
        note=(
            "Every package chooses width and penalty by its own cross-validation, from "
            "its own grid (ADAPT has none: the one of its example); 100 centres. Loss "
            "on 50,000 fresh rows a class, the smaller the better: uLSIF's at the best "
            "scale, RuLSIF's with alpha 0.1, KLIEP's −E1[log r] + log E0[r]. KMM: "
            "ADAPT matches once, with gamma 1, and has weights for the rows alone; "
            "missratio chooses among 6 widths and 2 penalties in 5 folds, and has a "
            "ratio everywhere. Weights are compared with the true ratio at the rows."
        ),
    )


def _race(
    peer: Peer,
    rows: tuple[FloatArray, FloatArray],
    fresh: tuple[FloatArray, FloatArray],
    tell: Tell,
) -> Result:
    def ours() -> Ratio:
        estimator = KernelRatio(peer.method, random_state=0)  # type: ignore[arg-type]
        return density_ratio(*rows, estimator).predict_ratio  # type: ignore[no-any-return]

    def theirs() -> Ratio:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return peer.fit(*rows)

    ours()
    with threadpool_limits(1, user_api="blas"):
        timings, fitted = race(
            {"missratio": ours, peer.case: theirs},
            peer.repeats,
            tell,
            clock=time.process_time,
        )
    mine, other = fitted.values()
    losses = [peer.loss(ratio(fresh[0]), ratio(fresh[1])) for ratio in (mine, other)]
    my_timing, their_timing = timings.values()
    return Result(
        peer.case,
        str(my_timing),
        str(their_timing),
        their_timing.best / my_timing.best,
        TENFOLD,
        f"loss on fresh rows {losses[0]:.3f} against {losses[1]:.3f}",
        equal=losses[0] <= losses[1],
    )


def _matching(rows: tuple[FloatArray, FloatArray], tell: Tell) -> Result:
    """Kernel mean matching: weights for the denominator's rows, and the true ones."""
    X1, X0 = rows

    def ours() -> FloatArray:
        fitted = density_ratio(X1, X0, KernelRatio("kmm", random_state=0))
        return np.asarray(fitted.predict_ratio(X0))

    def theirs() -> FloatArray:
        from adapt.instance_based import KMM

        model = KMM(kernel="rbf", gamma=1.0, random_state=0, verbose=0)
        return np.asarray(model.fit_weights(X0, X1))

    contenders = {"missratio": ours, "KMM, ADAPT": theirs}
    with threadpool_limits(1, user_api="blas"):
        timings, found = race(contenders, 3, tell, clock=time.process_time)
    truth = true_ratio(X0)
    errors = [float(np.abs(each - truth).mean()) for each in found.values()]
    mine, other = timings.values()
    return Result(
        "KMM, ADAPT",
        str(mine),
        str(other),
        other.best / mine.best,
        TENFOLD,
        f"mean error of the weights {errors[0]:.3f} against {errors[1]:.3f}",
        equal=errors[0] <= errors[1],
    )


def _test(n_rows: int, tell: Tell) -> Result:
    X1, X0 = draw(n_rows, seed=2)

    def ours() -> Any:
        return ratio_test(X1, X0, n_resamples=1000, random_state=0)

    timings, _ = race({"ratio_test": ours}, 3, tell, warm_up=True)
    timing = timings["ratio_test"]
    return Result(
        f"ratio_test, 1,000 resamples, {n_rows:,} rows a class",
        str(timing),
        "–",
        timing.best,
        BELOW_FIVE_SECONDS,
    )
