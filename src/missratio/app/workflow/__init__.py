"""What the command line does with a table, without the command line."""

from missratio.app.workflow._budget import budget_words
from missratio.app.workflow._fit import FittedTable, fit_table
from missratio.app.workflow._fit_classes import FittedSeveral, fit_classes
from missratio.app.workflow._fit_groups import fit_groups
from missratio.app.workflow._memory import is_large
from missratio.app.workflow._options import Bounds, FitOptions, GroupBounds
from missratio.app.workflow._phi_file import EXAMPLE, PhiFileError, read_missingness
from missratio.app.workflow._plan import PlanOptions, plan_table
from missratio.app.workflow._predict import Predicted, PredictOptions, predict_table
from missratio.app.workflow._stream import Passes, fit_streamed, read_streamed
from missratio.app.workflow._watch import Watched, facts_of, watch_table
from missratio.app.workflow._watch_rows import LabelDraw

__all__ = [
    "EXAMPLE",
    "Bounds",
    "FitOptions",
    "FittedSeveral",
    "FittedTable",
    "GroupBounds",
    "LabelDraw",
    "Passes",
    "PhiFileError",
    "PlanOptions",
    "PredictOptions",
    "Predicted",
    "Watched",
    "budget_words",
    "facts_of",
    "fit_classes",
    "fit_groups",
    "fit_streamed",
    "fit_table",
    "is_large",
    "plan_table",
    "predict_table",
    "read_missingness",
    "read_streamed",
    "watch_table",
]
