"""Every experiment of the paper, as data: what is varied, measured, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from scipy.special import ndtri

from missratio.datasets import Simulation, simulations
from missratio.reproduce import methods as m
from missratio.reproduce.procedures import (
    Procedure,
    RealData,
    Simulated,
    SplitSizes,
    boundary,
    squared_distance,
)

SIZES = tuple(float(n) for n in range(100, 1501, 100))
TENTHS = tuple(step / 10 for step in range(10))
COMPARED = (m.TRUE_RATIO, m.M_KLIEP, m.CC_KLIEP)
FEWER_QUERIES = 10


@dataclass(frozen=True)
class Experiment:
    """A figure of the paper as data: what is varied, what is measured, and how often.

    Parameters
    ----------
    id : str
    title : str
    procedure : Procedure
    x_name, y_name : str
    x : tuple of float
        The points of the horizontal axis.
    methods : tuple of str
        The curves that the paper draws; none where it has no such figure.
    runs : int
        How often the paper repeats it.
    confidence : float
        Of the intervals, mean ± z·sd/√runs.
    runs_per_task : int
        How many runs are computed together.
    imputation_runs : int, optional
        How often iterative imputation is repeated; None: as often as the others.
    beyond : tuple of str
        Curves that go past the paper.
    beyond_runs : int, optional
        How often these are repeated; None: as often as the paper's.
    shares_fits : bool
        Whether all points are computed from the same fits.
    """

    id: str
    title: str
    procedure: Procedure
    x_name: str = "n0=n1"
    y_name: str = "expected power"
    x: tuple[float, ...] = SIZES
    methods: tuple[str, ...] = COMPARED
    runs: int = 100
    confidence: float = 0.95
    runs_per_task: int = 50
    imputation_runs: int | None = None
    beyond: tuple[str, ...] = ()
    beyond_runs: int | None = None
    shares_fits: bool = False

    @property
    def curves(self) -> tuple[str, ...]:
        """The paper's curves and those past it."""
        return self.methods + self.beyond

    def n_runs(self, method: str) -> int:
        """How often a method is run: fewer times if it is slow or past the paper."""
        fewer = self.imputation_runs if method == m.IMPUTATION else None
        return (self.beyond_runs if method in self.beyond else fewer) or self.runs

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


def _correlated(rho: float) -> Simulation:
    return _simulation("naive_bayes", rho)


BY_RHO: dict[str, Any] = {"x_name": "correlation rho", "x": TENTHS}
TREES: dict[str, Any] = {"beyond": (m.PRODUCTS, m.WEIGHTED_TREES), "beyond_runs": 20}
SIMULATED = [
    Experiment(
        "msd_5dim",
        "Mean squared distance from the true parameter, five dimensions",
        Simulated("msd_5dim", lambda _: _simulation("msd_5dim"), int, squared_distance),
        y_name="mean squared distance to the true parameter",
        methods=(m.M_KLIEP, m.CC_KLIEP),
        confidence=0.99,
    ),
    Experiment(
        "np_boundary",
        "Boundaries of one run on a mixture, n = 500",
        Simulated("np_boundary", _mixture, int, boundary, at=500.0),
        x_name="x2",
        y_name="x1 on the boundary",
        x=tuple(step / 4 for step in range(-12, 29)),
        runs=1,
        confidence=0.99,
        shares_fits=True,
    ),
    Experiment(
        "np_power",
        "Power on a mixture, by sample size",
        Simulated("np_power", _mixture),
        confidence=0.99,
        **TREES,
    ),
    Experiment(
        "naive_bayes",
        "Power of naive Bayes, by the correlation of its features",
        Simulated("naive_bayes", _correlated, lambda _: 100),
        beyond=(m.JOINT,),
        **BY_RHO,
    ),
    Experiment(
        "naive_bayes_large",
        "Power of naive Bayes and of joint fits, n = 1000",
        Simulated("naive_bayes_large", _correlated, lambda _: 1000),
        methods=(),
        beyond=(*COMPARED, m.JOINT),
        **BY_RHO,
    ),
    Experiment(
        "diff_variance",
        "Power where variances differ, by sample size",
        Simulated("diff_variance", lambda _: _simulation("diff_variance")),
        **TREES,
    ),
    Experiment(
        "misspecification",
        "Power by the level of misspecification",
        Simulated(
            "misspecification",
            lambda level: _simulation("misspecification", level / 2),
            lambda _: 500,
        ),
        x_name="misspecification 2 rho",
        x=(0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0),
        **TREES,
    ),
]


def _real(
    name: str,
    title: str,
    sizes: SplitSizes,
    runs: tuple[int, int],
    imputation_runs: tuple[int | None, int | None] = (None, None),
    **shared: Any,
) -> list[Experiment]:
    """Both experiments on a data set.

    Parameters
    ----------
    name, title : str
    sizes : SplitSizes
        Of experiment 1; experiment 2 looks up `FEWER_QUERIES` values of each feature.
    runs, imputation_runs : pair of int
        Of experiments 1 and 2.
    **shared
        Further parameters of both.
    """
    paper = (m.KNOWN, m.LEARNED, m.CC_KLIEP, m.IMPUTATION)
    learners = [kind(each) for each in m.LEARNERS for kind in (m.known, m.learned)]
    trees = (m.IMPUTED_TREES, m.NAN_TREES, m.FULL_TREES)
    # Of the weather, on which each point has its own fits, one takes long enough.
    by_share = (*map(m.known, m.LEARNERS), m.IMPUTED_TREES)
    shared["y_name"] = "out-of-sample power"
    return [
        Experiment(
            f"{name}_vary_alpha",
            f"{title}: power by the bound on the type I error",
            RealData(name, "alpha", sizes),
            x_name="alpha",
            x=(0.05, 0.1, 0.15, 0.2, 0.25, 0.3),
            methods=(m.FULL_DATA, *paper),
            runs=runs[0],
            imputation_runs=imputation_runs[0],
            beyond=(*learners, *trees, *map(m.type_one, (m.KNOWN, *learners))),
            shares_fits=True,
            **shared,
        ),
        Experiment(
            f"{name}_vary_missing",
            f"{title}: power by the share that is missing",
            RealData(name, "missing", sizes._replace(queries=FEWER_QUERIES)),
            x_name="target missing proportion",
            x=TENTHS,
            methods=paper,
            runs=runs[1],
            imputation_runs=imputation_runs[1],
            beyond=by_share[:1] if name == "weather" else by_share,
            **shared,
        ),
    ]


CTG, FIRE = SplitSizes(237, 100, 10), SplitSizes(20_000, 5_000, 50)
WEATHER = SplitSizes(15_000, 10_000, 50)
SLOW: dict[str, Any] = {"runs_per_task": 1, "beyond_runs": 10}
REAL = [
    *_real("ctg", "CTG", CTG, (1000, 1000), runs_per_task=25, beyond_runs=200),
    *_real("fire", "Fire", FIRE, (100, 100), **SLOW),
    *_real("weather", "Weather", WEATHER, (100, 30), (15, 2), **SLOW),
]
EXPERIMENTS: dict[str, Experiment] = {each.id: each for each in [*SIMULATED, *REAL]}
