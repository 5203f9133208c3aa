"""Gaussian kernels: time and objective against densratio and ADAPT, and with their
cross-validation.

With cross-validation times are the processor's, and BLAS has one thread: idle ones of
one package would go on spinning on the other's time. ADAPT brings TensorFlow: where it
isn't installed its lines are left out.
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
from draws import FloatArray
from measure import Result, Table, Target, Tell, check, race
from threadpoolctl import threadpool_limits

from missratio import KLIEP, KernelRatio, density_ratio, ratio_test
from missratio.basis import GaussianBasis

N_CENTERS = 100
BANDWIDTH = 1.0
FASTER = Target("at least", 2.0)
# KLIEP's penalty, which its peer has none of, and LSIF's, the one that suits its peer
# best of 0.1, 0.01 and 0.001.
KLIEP_L2 = 0.01
LSIF_L2 = 0.1


# Of the components of class 1 and of class 0, each with variance one.
MEANS = (((0.0, 0.0), (-1.0, 4.0)), ((1.0, 0.0), (0.0, 4.0)))


def draw(n_rows: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """The paper's two mixtures of two Gaussians each, X1 and X0."""
    rng = np.random.default_rng(seed)
    tables = []
    for means in MEANS:
        component = rng.integers(2, size=n_rows)
        tables.append(np.array(means)[component] + rng.standard_normal((n_rows, 2)))
    return tables[0], tables[1]


def true_ratio(X: FloatArray) -> FloatArray:
    """p1/p0 of what `draw` draws."""
    densities = [
        sum(np.exp(-0.5 * ((X - mean) ** 2).sum(axis=1)) for mean in np.array(means))
        for means in MEANS
    ]
    return np.asarray(densities[0] / densities[1])


def log_mean(ratio1: FloatArray, ratio0: FloatArray) -> float:
    """KLIEP's objective, to be maximised: E1[log r] with r scaled to E0[r] = 1."""
    return float(np.log(ratio1).mean() - np.log(ratio0.mean()))


def least_squares(ratio1: FloatArray, ratio0: FloatArray) -> float:
    """The Pearson (LSIF) objective, to be minimised: ½E0[r²] − E1[r]."""
    return float(0.5 * (ratio0**2).mean() - ratio1.mean())


@dataclass(frozen=True)
class Pair:
    """Two estimators of one family, and the objective they share."""

    case: str
    ours: Callable[[GaussianBasis], Any]
    peer: Callable[[FloatArray, FloatArray], Any]
    objective: Callable[[FloatArray, FloatArray], float]
    sign: int


PAIRS = (
    Pair(
        "KLIEP",
        lambda basis: KLIEP(basis=basis, l2=KLIEP_L2),
        lambda X1, X0: densratio.KLIEP(
            X1, X0, sigma=BANDWIDTH, kernel_num=N_CENTERS, verbose=False
        ),
        log_mean,
        +1,
    ),
    Pair(
        "LSIF",
        lambda basis: KernelRatio(
            centers=basis.centers,
            sigma_grid=[basis.bandwidth],
            l2_grid=[LSIF_L2],
            scale=False,
            flat_within=0.0,
        ),
        lambda X1, X0: densratio.uLSIF(
            X1,
            X0,
            sigma=BANDWIDTH,
            lambda_=LSIF_L2,
            kernel_num=N_CENTERS,
            verbose=False,
        ),
        least_squares,
        -1,
    ),
)


def kernel(tell: Tell, *, quick: bool) -> Table:
    n_rows = 1000 if quick else 5000
    X1, X0 = draw(n_rows, seed=0)
    fresh = draw(100_000, seed=1)
    results = tuple(
        _race(pair, (X1, X0), fresh, 3 if quick else 20, tell) for pair in PAIRS
    )
    return Table(
        f"Kernel: {N_CENTERS} Gaussians, {n_rows:,} rows a class, 2 columns",
        "time of densratio / time of missratio",
        results,
        note=(
            f"The same centres and bandwidth {BANDWIDTH:g}; nothing is chosen by "
            f"cross-validation. Penalties: {LSIF_L2:g} for both LSIFs, {KLIEP_L2:g} "
            "for missratio's KLIEP, none for densratio's, which has no such option. "
            "The models differ: densratio's ratio is a sum of Gaussians with weights "
            "that are not negative; missratio's KLIEP is log-linear in them, and its "
            "LSIF has an intercept and no constraint. densratio is without numba."
        ),
    )


def _race(
    pair: Pair,
    rows: tuple[FloatArray, FloatArray],
    fresh: tuple[FloatArray, FloatArray],
    repeats: int,
    tell: Tell,
) -> Result:
    def peer() -> Any:
        # It draws its centres from numpy's global state: the same ones each time.
        np.random.seed(0)  # noqa: NPY002
        return pair.peer(*rows)

    centers = peer().kernel_info.centers
    basis = GaussianBasis(centers=centers, bandwidth=BANDWIDTH)

    def ours() -> Any:
        return density_ratio(*rows, estimator=pair.ours(basis))

    timings, fitted = race(
        {f"{pair.case}: missratio": ours, f"{pair.case}: densratio": peer},
        repeats,
        tell,
        warm_up=True,
    )
    mine, theirs = fitted.values()
    check(mine.converged_, f"kernel, {pair.case}: the fit did not converge")
    values = [
        [pair.objective(evaluate(X1), evaluate(X0)) for X1, X0 in (rows, fresh)]
        for evaluate in (mine.predict_ratio, theirs.compute_density_ratio)
    ]
    gains = pair.sign * (np.array(values[0]) - np.array(values[1]))
    my_timing, their_timing = timings.values()
    return Result(
        pair.case,
        str(my_timing),
        str(their_timing),
        their_timing.best / my_timing.best,
        FASTER,
        f"objective {values[0][0]:.3f} against {values[1][0]:.3f}; on fresh rows "
        f"{values[0][1]:.3f} against {values[1][1]:.3f}",
        equal=bool((gains >= 0.0).all()),
    )


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


def kernel_cv(tell: Tell, *, quick: bool) -> Table:
    n_rows = 500 if quick else 5000
    rows, fresh = draw(n_rows, seed=0), draw(50_000, seed=1)
    results = [
        _race_cv(peer, rows, fresh, tell) for peer in PEERS if _installed(peer.case)
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
            "its own grid (ADAPT has none: the one of its example); 100 centres; the "
            "loss on fresh rows must not be larger. KMM: ADAPT matches once, with "
            "gamma 1, and has weights for the rows alone."
        ),
    )


def _race_cv(
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
