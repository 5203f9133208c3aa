"""Imputation that knows why values are missing, and learners on several imputations."""

from missratio.imputation._ensemble import ImputationEnsemble
from missratio.imputation._tilted import TiltedImputer
from missratio.imputation._trace import ImputationTrace

__all__ = ["ImputationEnsemble", "ImputationTrace", "TiltedImputer"]
