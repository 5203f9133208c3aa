"""A page that shows what a classifier guarantees, and what that rests on."""

from missratio.app.report.report import Report, build_report, describe
from missratio.app.report.rows import LabelledRows, Names

__all__ = ["LabelledRows", "Names", "Report", "build_report", "describe"]
