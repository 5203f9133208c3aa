"""How good a certified classifier is: errors, power, and the NP-ROC."""

from missratio.evaluation._display import NPROCDisplay
from missratio.evaluation._metrics import (
    ErrorScorer,
    Interval,
    beta_interval,
    error_scorer,
    exact_interval,
    power,
    power_interval,
    type_i_error,
    type_i_interval,
    type_ii_error,
)
from missratio.evaluation._monitor import TypeIErrorMonitor, WatchedPoint
from missratio.evaluation._monitor_display import MonitorDisplay
from missratio.evaluation._np_roc import (
    NPROC,
    NPROCComparison,
    compare_np_roc,
    np_roc,
)
from missratio.evaluation._ratio_display import RatioDisplay
from missratio.evaluation._sensitivity_display import SensitivityDisplay
from missratio.evaluation._trade_off_display import TradeOffDisplay

__all__ = [
    "NPROC",
    "ErrorScorer",
    "Interval",
    "MonitorDisplay",
    "NPROCComparison",
    "NPROCDisplay",
    "RatioDisplay",
    "SensitivityDisplay",
    "TradeOffDisplay",
    "TypeIErrorMonitor",
    "WatchedPoint",
    "beta_interval",
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
