"""Every experiment of the paper, as data: what is varied, measured, and how often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from scipy.special import ndtri

from missratio.datasets import Simulation, simulations
from missratio.reproduce.methods import (
    CC_KLIEP,
    FULL_DATA,
    FULL_TREES,
    IMPUTATION,
    IMPUTED_TREES,
    JOINT,
    KNOWN,
    LEARNED,
    LEARNERS,
    M_KLIEP,
    NAN_TREES,
    PRODUCTS,
    TILTED,
    TRUE_RATIO,
    WEIGHTED_TREES,
    known,
    learned,
    type_one,
)
from missratio.reproduce.procedures import (
    Boundary,
    Procedure,
    RealData,
    Simulated,
    SplitSizes,
    squared_distance,
)

SIZES = tuple(float(n) for n in range(100, 1501, 100))
TENTHS = tuple(step / 10 for step in range(10))
COMPARED = (TRUE_RATIO, M_KLIEP, CC_KLIEP)
ROWS, EXPECTED = "n0=n1", "expected power"
RUNS, FEWER_QUERIES = 100, 10


@dataclass(frozen=True)
class Experiment:
    """A figure of the paper as data: what is varied, what is measured, and how often.

    Parameters
    ----------
    id : str
    title : str
    x_name, y_name : str
    x : tuple of float
        The points of the horizontal axis.
    methods : tuple of str
        The curves that the paper draws; none where it has no such figure.
    runs : int
        How often the paper repeats it.
    confidence : float
        Of the intervals, mean ± z·sd/√runs.
    procedure : Procedure
    runs_per_task : int
        How many runs are computed together.
    shares_fits : bool
        Whether all points are computed from the same fits.
    slow_methods : tuple of str
        Computed apart from the others.
    slow_seconds : float, optional
        For how long runs of slow methods are begun by default; None: without end.
    beyond : tuple of str
        Curves that go past the paper.
    beyond_runs : int, optional
        How often these are repeated; None: as often as the paper's.
    """

    id: str
    title: str
    x_name: str
    y_name: str
    x: tuple[float, ...]
    methods: tuple[str, ...]
    runs: int
    confidence: float
    procedure: Procedure
    runs_per_task: int = 50
    shares_fits: bool = False
    slow_methods: tuple[str, ...] = ()
    slow_seconds: float | None = None
    beyond: tuple[str, ...] = ()
    beyond_runs: int | None = None

    @property
    def curves(self) -> tuple[str, ...]:
        """The paper's curves and those past it."""
        return self.methods + self.beyond

    @property
    def blocks(self) -> tuple[tuple[float, ...], ...]:
        """Points that are computed together."""
        return (self.x,) if self.shares_fits else tuple((point,) for point in self.x)

    @property
    def z(self) -> float:
        """The normal quantile of the intervals: 1.96 or 2.576."""
        return float(ndtri(0.5 + 0.5 * self.confidence))


@cache
def _simulation(name: str, *parameters: float) -> Simulation:
    """Kept, since the tails of a ratio that is not linear take a while."""
    made: Simulation = getattr(simulations, name)(*parameters)
    return made


def _mixture(_: float) -> Simulation:
    return _simulation("np_mixture")


def _power(
    name: str,
    title: str,
    axis: tuple[str, tuple[float, ...]],
    simulation: Callable[[float], Simulation],
    n_rows: Callable[[float], int] = int,
    **others: Any,
) -> Experiment:
    """Power on known laws; by sample size unless `n_rows` says otherwise."""
    settings: dict[str, Any] = {"methods": COMPARED, "confidence": 0.95, **others}
    procedure = Simulated(name, simulation, n_rows)
    x_name, x = axis
    return Experiment(
        name, title, x_name, EXPECTED, x, runs=RUNS, procedure=procedure, **settings
    )


MSD = Experiment(
    "msd_5dim",
    "Mean squared distance from the true parameter, five dimensions",
    ROWS,
    "mean squared distance to the true parameter",
    SIZES,
    (M_KLIEP, CC_KLIEP),
    RUNS,
    0.99,
    Simulated("msd_5dim", lambda _: _simulation("msd_5dim"), int, squared_distance),
)
BOUNDARY = Experiment(
    "np_boundary",
    "Boundaries of one run on a mixture, n = 500",
    "x2",
    "x1 on the boundary",
    tuple(step / 4 for step in range(-12, 29)),
    COMPARED,
    1,
    0.99,
    Boundary(Simulated("np_boundary", _mixture, int), 500),
    shares_fits=True,
)


def _powers() -> list[Experiment]:
    by_size, by_rho = (ROWS, SIZES), ("correlation rho", TENTHS)
    rowwise: dict[str, Any] = {"beyond": (PRODUCTS, WEIGHTED_TREES), "beyond_runs": 20}
    return [
        _power(
            "np_power",
            "Power on a mixture, by sample size",
            by_size,
            _mixture,
            confidence=0.99,
            **rowwise,
        ),
        _power(
            "naive_bayes",
            "Power of naive Bayes, by the correlation of its features",
            by_rho,
            lambda rho: _simulation("naive_bayes", rho),
            lambda _: 100,
            beyond=(JOINT,),
        ),
        _power(
            "naive_bayes_large",
            "Power of naive Bayes and of joint fits, n = 1000",
            by_rho,
            lambda rho: _simulation("naive_bayes", rho),
            lambda _: 1000,
            methods=(),
            beyond=(*COMPARED, JOINT),
        ),
        _power(
            "diff_variance",
            "Power where variances differ, by sample size",
            by_size,
            lambda _: _simulation("diff_variance"),
            **rowwise,
        ),
        _power(
            "misspecification",
            "Power by the level of misspecification",
            ("misspecification 2 rho", (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)),
            lambda level: _simulation("misspecification", level / 2),
            lambda _: 500,
            **rowwise,
        ),
    ]


BY_SHARE = (known(JOINT), known(PRODUCTS), known(TILTED), IMPUTED_TREES)


def _real(
    name: str,
    title: str,
    sizes: SplitSizes,
    runs: tuple[int, int],
    *,
    by_share: tuple[str, ...] = BY_SHARE,
    **shared: Any,
) -> list[Experiment]:
    """Both experiments on a data set.

    Parameters
    ----------
    name, title : str
    sizes : SplitSizes
        Of experiment 1; experiment 2 looks up `FEWER_QUERIES` values of each feature.
    runs : pair of int
        Of experiments 1 and 2.
    by_share : tuple of str
        Curves past the paper in experiment 2, where each point has its own fits.
    **shared
        Further parameters of both.
    """
    learners = [kind(each) for each in LEARNERS for kind in (known, learned)]
    shared |= {
        "y_name": "out-of-sample power",
        "confidence": 0.95,
        "slow_methods": (IMPUTATION,),
    }
    return [
        Experiment(
            id=f"{name}_vary_alpha",
            title=f"{title}: power by the bound on the type I error",
            x_name="alpha",
            x=(0.05, 0.1, 0.15, 0.2, 0.25, 0.3),
            methods=(FULL_DATA, KNOWN, LEARNED, CC_KLIEP, IMPUTATION),
            runs=runs[0],
            procedure=RealData(name, "alpha", sizes),
            shares_fits=True,
            beyond=(
                *learners,
                IMPUTED_TREES,
                NAN_TREES,
                FULL_TREES,
                *map(type_one, (KNOWN, *learners)),
            ),
            **shared,
        ),
        Experiment(
            id=f"{name}_vary_missing",
            title=f"{title}: power by the share that is missing",
            x_name="target missing proportion",
            x=TENTHS,
            methods=(KNOWN, LEARNED, CC_KLIEP, IMPUTATION),
            runs=runs[1],
            procedure=RealData(name, "missing", replace(sizes, queries=FEWER_QUERIES)),
            beyond=by_share,
            **shared,
        ),
    ]


# Columns of a task's runs are fitted side by side. Rows of the weather can be merged,
# the more the fewer columns there are.
CTG = _real(
    "ctg",
    "CTG",
    SplitSizes(237, 100, 10),
    (1000, 1000),
    runs_per_task=25,
    beyond_runs=200,
)
FIRE = _real(
    "fire",
    "Fire",
    SplitSizes(20_000, 5_000, 50),
    (100, 100),
    runs_per_task=2,
    beyond_runs=10,
)
WEATHER = _real(
    "weather",
    "Weather",
    SplitSizes(15_000, 10_000, 50),
    (100, 30),
    by_share=BY_SHARE[:1],
    runs_per_task=1,
    beyond_runs=10,
    slow_seconds=900.0,
)
EXPERIMENTS: dict[str, Experiment] = {
    each.id: each for each in [MSD, BOUNDARY, *_powers(), *CTG, *FIRE, *WEATHER]
}
