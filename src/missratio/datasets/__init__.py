"""The paper's data: simulators with their true ratios, and loaders of its data sets."""

from missratio.datasets import simulations
from missratio.datasets._make import (
    make_diff_variance,
    make_misspecification,
    make_msd_5dim,
    make_naive_bayes,
    make_np_mixture,
)
from missratio.datasets._mixture import GaussianMixture
from missratio.datasets._simulation import Simulation

__all__ = [
    "GaussianMixture",
    "Simulation",
    "make_diff_variance",
    "make_misspecification",
    "make_msd_5dim",
    "make_naive_bayes",
    "make_np_mixture",
    "simulations",
]
