"""Imputation that knows φ against scikit-learn's IterativeImputer, on one core."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from data import FloatArray
from measure import Result, Table, Target, Tell, Timing, check, duration, race
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from threadpoolctl import threadpool_limits

from missratio import LogisticMissingness, TiltedImputer, corrupt

N_ROUNDS = 10
CORRELATION = 0.5
SMALL_SECONDS = Target("at most", 2.0)
NO_SLOWER = Target("at most", 1.0)


@dataclass(frozen=True)
class Lossy:
    """Equally correlated normal columns, of which half the values are lost."""

    Z: FloatArray
    X: FloatArray
    phi: LogisticMissingness

    @classmethod
    def draw(cls, n_rows: int, n_columns: int) -> Lossy:
        rng = np.random.default_rng(0)
        Z = np.sqrt(1.0 - CORRELATION) * rng.standard_normal((n_rows, n_columns))
        Z += np.sqrt(CORRELATION) * rng.standard_normal((n_rows, 1))
        phi = LogisticMissingness(0.0, np.resize([1.0, -1.0], n_columns))
        return cls(Z, corrupt(Z, phi, rng), phi)

    def bias(self, completed: FloatArray) -> float:
        """How far imputed means are off, in standard deviations, the mean of columns.

        Towards what stays observed is negative.
        """
        lost = np.isnan(self.X)
        gap = np.where(lost, completed - self.Z, 0.0).sum(axis=0) / lost.sum(axis=0)
        return float(np.mean(gap * np.sign(np.asarray(self.phi.coef))))


def tilted(data: Lossy, n_imputations: int) -> list[Any]:
    imputer = TiltedImputer(
        data.phi, n_imputations=n_imputations, n_rounds=N_ROUNDS, random_state=0
    )
    return imputer.fit_impute(data.X)


def iterative(data: Lossy) -> FloatArray:
    # Without a tolerance it makes as many rounds as it is told to.
    imputer = IterativeImputer(max_iter=N_ROUNDS, tol=0.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        completed: FloatArray = imputer.fit_transform(data.X)
    check(imputer.n_iter_ == N_ROUNDS, "imputer: the peer stopped early")
    return completed


def run(tell: Tell, *, quick: bool) -> Table:
    n_rows, n_columns = (5_000, 10) if quick else (100_000, 20)
    with threadpool_limits(1):
        small, ours = _small(tell, quick)
        data = Lossy.draw(n_rows, n_columns)
        timings, completed = race(
            {
                "missratio": lambda: tilted(data, 1)[0],
                "IterativeImputer": lambda: iterative(data),
            },
            2 if quick else 3,
            tell,
        )
    bias = {name: data.bias(table) for name, table in completed.items()}
    check(abs(bias["missratio"]) <= 0.05, f"imputer: off by {bias['missratio']:.2f} sd")
    mine, peer = timings["missratio"], timings["IterativeImputer"]
    results = (
        Result(
            "1,555 rows, 10 columns, 5 imputations",
            str(ours),
            duration(SMALL_SECONDS.value),
            ours.best,
            SMALL_SECONDS,
            f"imputed means off by {small:+.2f} sd; ratio: seconds",
        ),
        Result(
            f"{n_rows:,} rows, {n_columns} columns, 1 imputation",
            str(mine),
            str(peer),
            mine.best / peer.best,
            NO_SLOWER,
            f"imputed means off by {bias['missratio']:+.2f} sd; peer "
            f"{bias['IterativeImputer']:+.2f} sd",
        ),
    )
    return Table(
        "Imputer: half of the values lost by a logistic φ",
        "time of missratio / time of IterativeImputer",
        results,
        note=(
            f"`TiltedImputer`, linear conditionals, {N_ROUNDS} rounds, on one core. "
            "Peer: `IterativeImputer` with its default estimator and as many rounds."
        ),
    )


def _small(tell: Tell, quick: bool) -> tuple[float, Timing]:
    data = Lossy.draw(1555, 10)
    timings, tables = race(
        {"missratio": lambda: tilted(data, 5)}, 2 if quick else 5, tell, warm_up=True
    )
    bias = float(np.mean([data.bias(table) for table in tables["missratio"]]))
    check(abs(bias) <= 0.15, f"imputer: off by {bias:.2f} sd")
    return bias, timings["missratio"]
