"""The paper's data: simulators with their true ratios, and loaders of its data sets."""

from missratio.datasets import simulations
from missratio.datasets.files import DataFile, available, data_folder, fetch
from missratio.datasets.laws import GaussianMixture, Simulation
from missratio.datasets.loaders import load_ctg, load_fire, load_weather
from missratio.datasets.simulations import (
    make_diff_variance,
    make_misspecification,
    make_msd_5dim,
    make_naive_bayes,
    make_np_mixture,
)

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
