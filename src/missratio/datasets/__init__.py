"""The paper's data: simulators with their true ratios, and loaders of its data sets."""

from missratio.datasets import simulations
from missratio.datasets.files import DataFile, available, data_folder, fetch
from missratio.datasets.loaders import load_ctg, load_fire, load_weather
from missratio.datasets.simulations import GaussianMixture, Simulation

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
    "simulations",
]
