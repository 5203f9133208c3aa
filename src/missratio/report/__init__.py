"""A page that shows what a classifier guarantees, and what that rests on."""

from missratio.report._build import build_report, describe
from missratio.report._report import Report
from missratio.report._rows import LabelledRows

__all__ = ["LabelledRows", "Report", "build_report", "describe"]
