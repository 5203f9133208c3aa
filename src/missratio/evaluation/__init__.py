"""How good a certified classifier is: errors, power, and the NP-ROC."""

from missratio.evaluation.curves import NPROC as NPROC
from missratio.evaluation.curves import NPROCComparison as NPROCComparison
from missratio.evaluation.curves import compare_np_roc as compare_np_roc
from missratio.evaluation.curves import np_roc as np_roc
from missratio.evaluation.displays import MonitorDisplay as MonitorDisplay
from missratio.evaluation.displays import NPROCDisplay as NPROCDisplay
from missratio.evaluation.metrics import ErrorScorer as ErrorScorer
from missratio.evaluation.metrics import Interval as Interval
from missratio.evaluation.metrics import error_scorer as error_scorer
from missratio.evaluation.metrics import exact_interval as exact_interval
from missratio.evaluation.metrics import power as power
from missratio.evaluation.metrics import power_interval as power_interval
from missratio.evaluation.metrics import type_i_error as type_i_error
from missratio.evaluation.metrics import type_i_interval as type_i_interval
from missratio.evaluation.metrics import type_ii_error as type_ii_error
from missratio.evaluation.metrics import weighted_share as weighted_share
from missratio.evaluation.monitor import TypeIErrorMonitor as TypeIErrorMonitor
from missratio.evaluation.monitor import WatchedPoint as WatchedPoint
