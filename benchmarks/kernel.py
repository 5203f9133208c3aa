"""Gaussian kernels: time and objective against densratio."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import densratio
import numpy as np
from data import FloatArray
from measure import Result, Table, Target, Tell, check, race

from missratio import KLIEP, FDivergenceRatio, density_ratio
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
        # Pearson's f is (u − 1)², twice what uLSIF minimises, and so is its penalty.
        lambda basis: FDivergenceRatio(
            "pearson", link="identity", basis=basis, l2=2 * LSIF_L2
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


def run(tell: Tell, *, quick: bool) -> Table:
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
            f"cross-validation. Penalties: {LSIF_L2:g} for both LSIFs, the best for "
            "densratio's of 0.1, 0.01 and 0.001; "
            f"{KLIEP_L2:g} for missratio's KLIEP, none for densratio's, which has no "
            "such option. KLIEP: E1[log r] with r normalised, the larger the better. "
            "LSIF: ½E0[r²] − E1[r], the smaller the "
            "better. The models differ: densratio's ratio is a sum of Gaussians with "
            "weights that are not negative; missratio's KLIEP is log-linear in them, "
            "and its LSIF has an intercept and no constraint. densratio is as pip "
            "installs it, without numba."
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
