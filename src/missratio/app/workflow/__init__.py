"""What the command line does with a table, without the command line."""

from missratio.app.workflow.account import plan_table as plan_table
from missratio.app.workflow.check import check_table as check_table
from missratio.app.workflow.fit import fit_table as fit_table
from missratio.app.workflow.phi_file import read_missingness as read_missingness
from missratio.app.workflow.predict import predict_table as predict_table
from missratio.app.workflow.watch import watch_table as watch_table
