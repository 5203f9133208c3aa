"""The paper's data: simulators with their true ratios, and loaders of its data sets."""

from missratio.datasets import simulations
from missratio.datasets._ctg import load_ctg
from missratio.datasets._files import DataFile, available, data_folder, fetch
from missratio.datasets._fire import load_fire
from missratio.datasets._make import (
    make_diff_variance,
    make_misspecification,
    make_msd_5dim,
    make_naive_bayes,
    make_np_mixture,
)
from missratio.datasets._mixture import GaussianMixture
from missratio.datasets._simulation import Simulation
from missratio.datasets._weather import load_weather

__all__ = [
    "DataFile",
    "GaussianMixture",
    "Simulation",
    "available",
    "data_folder",
    "fetch",
    "load_ctg",
    "load_fire",
    "load_weather",
    "make_diff_variance",
    "make_misspecification",
    "make_msd_5dim",
    "make_naive_bayes",
    "make_np_mixture",
    "simulations",
]
