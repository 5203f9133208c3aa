"""The paper's experiments, as data and as one command.

``missratio reproduce`` runs them from the command line, `reproduce` from Python.
"""

from missratio.reproduce.experiments import EXPERIMENTS as EXPERIMENTS
from missratio.reproduce.methods import Conditions as Conditions
from missratio.reproduce.methods import Variant as Variant
from missratio.reproduce.results import Reproduction as Reproduction
from missratio.reproduce.results import Result as Result
from missratio.reproduce.results import count_overlaps as count_overlaps
from missratio.reproduce.results import published_curves as published_curves
from missratio.reproduce.runner import reproduce as reproduce
