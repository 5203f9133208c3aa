"""What the command line does with a table, without the command line."""

from missratio.app.workflow.account import plan_table
from missratio.app.workflow.check import CheckedTable, check_table
from missratio.app.workflow.fit import FittedTable, condensed, fit_table
from missratio.app.workflow.phi_file import EXAMPLE, PhiFileError, read_missingness
from missratio.app.workflow.predict import predict_table
from missratio.app.workflow.watch import Watched, watch_table

__all__ = [
    "EXAMPLE",
    "CheckedTable",
    "FittedTable",
    "PhiFileError",
    "Watched",
    "check_table",
    "condensed",
    "fit_table",
    "plan_table",
    "predict_table",
    "read_missingness",
    "watch_table",
]
