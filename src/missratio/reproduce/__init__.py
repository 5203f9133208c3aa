"""The paper's experiments, as data and as one command.

``missratio reproduce`` runs them from the command line, `reproduce` from Python.
"""

from missratio.reproduce._experiment import (
    VARIANTS,
    Conditions,
    Experiment,
    Variant,
    chosen,
)
from missratio.reproduce._published import MeanCurve, overlap, published_curves
from missratio.reproduce._registry import EXPERIMENTS
from missratio.reproduce._reproduce import (
    Options,
    Reproduction,
    load_results,
    reproduce,
)
from missratio.reproduce._results import Result, count_overlaps

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
