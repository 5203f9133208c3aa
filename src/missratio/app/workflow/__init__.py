"""What the command line does with a table, without the command line."""

from missratio.app.workflow.account import PlanOptions, plan_table
from missratio.app.workflow.fit import FittedTable, Heard, fit_table
from missratio.app.workflow.options import Bounds, FitOptions, GroupBounds
from missratio.app.workflow.phi_file import EXAMPLE, PhiFileError, read_missingness
from missratio.app.workflow.predict import Predicted, PredictOptions, predict_table
from missratio.app.workflow.watch import Watched, facts_of, watch_table

__all__ = [
    "EXAMPLE",
    "Bounds",
    "FitOptions",
    "FittedTable",
    "GroupBounds",
    "Heard",
    "PhiFileError",
    "PlanOptions",
    "PredictOptions",
    "Predicted",
    "Watched",
    "facts_of",
    "fit_table",
    "plan_table",
    "predict_table",
    "read_missingness",
    "watch_table",
]
