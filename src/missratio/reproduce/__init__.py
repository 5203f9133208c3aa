"""The paper's experiments, as data and as one command.

``missratio reproduce`` runs them from the command line, `reproduce` from Python.
"""

from missratio.reproduce.experiments import EXPERIMENTS, Experiment
from missratio.reproduce.methods import VARIANTS, Conditions, Variant
from missratio.reproduce.results import (
    MeanCurve,
    Reproduction,
    Result,
    count_overlaps,
    overlap,
    published_curves,
)
from missratio.reproduce.runner import Options, chosen, load_results, reproduce

__all__ = [
    "EXPERIMENTS",
    "VARIANTS",
    "Conditions",
    "Experiment",
    "MeanCurve",
    "Options",
    "Reproduction",
    "Result",
    "Variant",
    "chosen",
    "count_overlaps",
    "load_results",
    "overlap",
    "published_curves",
    "reproduce",
]
