"""Imputation that knows why values are missing, and learners on several imputations."""

from missratio.imputation.chains import ImputationTrace
from missratio.imputation.ensemble import ImputationEnsemble
from missratio.imputation.imputer import TiltedImputer

__all__ = ["ImputationEnsemble", "ImputationTrace", "TiltedImputer"]
