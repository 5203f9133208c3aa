"""How good a certified classifier is: errors, power, and the NP-ROC."""

from missratio.evaluation.curves import NPROC, NPROCComparison, compare_np_roc, np_roc
from missratio.evaluation.displays import MonitorDisplay, NPROCDisplay, RatioDisplay
from missratio.evaluation.metrics import (
    ErrorScorer,
    Interval,
    error_scorer,
    exact_interval,
    power,
    power_interval,
    type_i_error,
    type_i_interval,
    type_ii_error,
)
from missratio.evaluation.monitor import TypeIErrorMonitor, WatchedPoint

__all__ = [
    "NPROC",
    "ErrorScorer",
    "Interval",
    "MonitorDisplay",
    "NPROCComparison",
    "NPROCDisplay",
    "RatioDisplay",
    "TypeIErrorMonitor",
    "WatchedPoint",
    "compare_np_roc",
    "error_scorer",
    "exact_interval",
    "np_roc",
    "power",
    "power_interval",
    "type_i_error",
    "type_i_interval",
    "type_ii_error",
]
