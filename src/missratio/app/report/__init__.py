"""A page that shows what a classifier guarantees, and what that rests on."""

from missratio.app.report._build import build_report, describe
from missratio.app.report._classes_build import describe_classes
from missratio.app.report._columns import Names
from missratio.app.report._groups_build import describe_groups
from missratio.app.report._origin import Origin
from missratio.app.report._report import Report
from missratio.app.report._rows import LabelledRows

__all__ = [
    "LabelledRows",
    "Names",
    "Origin",
    "Report",
    "build_report",
    "describe",
    "describe_classes",
    "describe_groups",
]
