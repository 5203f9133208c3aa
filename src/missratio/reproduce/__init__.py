"""The paper's experiments, as data and as one command.

``missratio reproduce`` runs them from the command line, `reproduce` from Python.
"""

from missratio.reproduce.experiments import EXPERIMENTS
from missratio.reproduce.methods import Conditions, Variant
from missratio.reproduce.results import (
    Reproduction,
    Result,
    count_overlaps,
    published_curves,
)
from missratio.reproduce.runner import Options, reproduce

__all__ = [
    "EXPERIMENTS",
    "Conditions",
    "Options",
    "Reproduction",
    "Result",
    "Variant",
    "count_overlaps",
    "published_curves",
    "reproduce",
]
