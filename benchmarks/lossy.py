"""What missing values cost: fits of lossy tables, a learned φ, and imputation."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from draws import FloatArray, gaussian_classes
from measure import Result, Table, Target, Tell, Timing, check, duration, race
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from threadpoolctl import threadpool_limits

from missratio import (
    KLIEP,
    LogisticMissingness,
    NaiveBayesRatio,
    StepMissingness,
    TiltedImputer,
    corrupt,
    learn_missingness,
)
from missratio.missingness import Missingness

COMPLETE = "complete"
TARGETS = {
    "whole rows missing": 1.3,
    "single entries missing": 2.2,
    "naive Bayes, single entries missing": 4.0,
}


def missing(tell: Tell, *, quick: bool) -> Table:
    n_rows, n_columns = (10_000, 20) if quick else (300_000, 40)
    data = gaussian_classes(n_rows, n_columns, shift=0.2)
    rows = StepMissingness(np.eye(n_columns)[0], 0.0, 0.5)
    entries = LogisticMissingness(np.zeros(n_columns), np.ones(n_columns))

    def lossy(estimator: Any, phi: Missingness) -> Callable[[], Any]:
        X = np.concatenate([data.rows(0), corrupt(data.rows(1), phi, random_state=0)])
        return lambda: estimator.set_params(missingness={1: phi}).fit(X, data.y)

    whole, single, naive = TARGETS
    timings, fitted = race(
        {
            COMPLETE: lambda: KLIEP().fit(data.X, data.y),
            whole: lossy(KLIEP(), rows),
            single: lossy(KLIEP(), entries),
            naive: lossy(NaiveBayesRatio(), entries),
        },
        2 if quick else 7,
        tell,
        warm_up=True,
    )
    results = []
    for case, most in TARGETS.items():
        gap = float(np.abs(fitted[case].coef_ - data.coef).max())
        allowed = 30.0 / np.sqrt(n_rows)
        check(gap <= allowed, f"{case}: a coefficient is {gap:.2g} from the truth")
        results.append(
            Result(
                case,
                str(timings[case]),
                str(timings[COMPLETE]),
                timings[case].best / timings[COMPLETE].best,
                Target("at most", most),
                f"coefficients within {gap:.2g} of the truth",
                equal=fitted[case].converged_,
            )
        )
    return Table(
        f"Missing values: {n_rows:,} rows a class, {n_columns} columns",
        "time with missing values / time of `KLIEP().fit` on the complete table",
        tuple(results),
        note=(
            "Class 1 loses half of its rows on one side of a threshold, or about half "
            "of its entries with log-odds equal to the value; φ is known."
        ),
    )


REVEALED = 50
SECONDS = Target("at most", 1.0)


def learned(tell: Tell, *, quick: bool) -> Table:
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


def imputer(tell: Tell, *, quick: bool) -> Table:
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
