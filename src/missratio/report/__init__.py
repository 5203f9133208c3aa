"""A page that shows what a classifier guarantees, and what that rests on."""

from missratio.report._build import build_report
from missratio.report._report import Report

__all__ = ["Report", "build_report"]
