"""The paper's data: simulators with their true ratios, and loaders of its data sets."""

from missratio.datasets import simulations as simulations
from missratio.datasets.files import DataFile as DataFile
from missratio.datasets.files import available as available
from missratio.datasets.files import data_folder as data_folder
from missratio.datasets.files import fetch as fetch
from missratio.datasets.loaders import load_ctg as load_ctg
from missratio.datasets.loaders import load_fire as load_fire
from missratio.datasets.loaders import load_weather as load_weather
from missratio.datasets.simulations import GaussianMixture as GaussianMixture
from missratio.datasets.simulations import Simulation as Simulation
