"""What the command line does with a table, without the command line."""

from missratio.app.workflow.account import PlanOptions, plan_table
from missratio.app.workflow.fit import FittedTable, Heard, budget_words, fit_table
from missratio.app.workflow.options import Bounds, FitOptions, GroupBounds
from missratio.app.workflow.phi_file import EXAMPLE, PhiFileError, read_missingness
from missratio.app.workflow.predict import Predicted, PredictOptions, predict_table
from missratio.app.workflow.stream import fit_streamed, is_large, read_streamed
from missratio.app.workflow.watch import LabelDraw, Watched, facts_of, watch_table

__all__ = [
    "EXAMPLE",
    "Bounds",
    "FitOptions",
    "FittedTable",
    "GroupBounds",
    "Heard",
    "LabelDraw",
    "PhiFileError",
    "PlanOptions",
    "PredictOptions",
    "Predicted",
    "Watched",
    "budget_words",
    "facts_of",
    "fit_streamed",
    "fit_table",
    "is_large",
    "plan_table",
    "predict_table",
    "read_missingness",
    "read_streamed",
    "watch_table",
]
