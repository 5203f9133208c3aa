"""Every experiment of the paper, by its id."""

from __future__ import annotations

from functools import cache

from missratio.datasets import Simulation, simulations
from missratio.reproduce._boundary import Boundary
from missratio.reproduce._experiment import CC_KLIEP, M_KLIEP, TRUE_RATIO, Experiment
from missratio.reproduce._simulated import Simulated, squared_distance

SIZES = tuple(float(n) for n in range(100, 1501, 100))
COMPARED = (TRUE_RATIO, M_KLIEP, CC_KLIEP)
ROWS, POWER = "n0=n1", "expected power"
RUNS = 100


@cache
def _simulation(name: str, *parameters: float) -> Simulation:
    """Kept, since the tails of a ratio that is not linear take a while."""
    made: Simulation = getattr(simulations, name)(*parameters)
    return made


def _simulated() -> list[Experiment]:
    return [
        Experiment(
            "msd_5dim",
            "Mean squared distance from the true parameter, five dimensions",
            ROWS,
            "mean squared distance ||theta_hat-theta_tilde||^2",
            SIZES,
            (M_KLIEP, CC_KLIEP),
            RUNS,
            0.99,
            Simulated(
                "msd_5dim", lambda _: _simulation("msd_5dim"), int, squared_distance
            ),
        ),
        Experiment(
            "np_boundary",
            "Boundaries of one run on a mixture, n = 500",
            "x2",
            "x1 on the boundary",
            tuple(step / 4 for step in range(-12, 29)),
            COMPARED,
            1,
            0.99,
            Boundary(
                Simulated("np_boundary", lambda _: _simulation("np_mixture"), int), 500
            ),
            shares_fits=True,
        ),
        Experiment(
            "np_power",
            "Power on a mixture, by sample size",
            ROWS,
            POWER,
            SIZES,
            COMPARED,
            RUNS,
            0.99,
            Simulated("np_power", lambda _: _simulation("np_mixture"), int),
        ),
        Experiment(
            "naive_bayes",
            "Power of naive Bayes, by the correlation of its features",
            "correlation rho",
            POWER,
            tuple(step / 10 for step in range(10)),
            COMPARED,
            RUNS,
            0.95,
            Simulated(
                "naive_bayes",
                lambda rho: _simulation("naive_bayes", rho),
                lambda _: 100,
                naive_bayes=True,
            ),
        ),
        Experiment(
            "diff_variance",
            "Power where variances differ, by sample size",
            ROWS,
            POWER,
            SIZES,
            COMPARED,
            RUNS,
            0.95,
            Simulated("diff_variance", lambda _: _simulation("diff_variance"), int),
        ),
        Experiment(
            "misspecification",
            "Power by the level of misspecification",
            "misspecification 2 rho",
            POWER,
            (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0),
            COMPARED,
            RUNS,
            0.95,
            Simulated(
                "misspecification",
                lambda level: _simulation("misspecification", level / 2),
                lambda _: 500,
            ),
        ),
    ]


EXPERIMENTS: dict[str, Experiment] = {each.id: each for each in _simulated()}
