"""Imputation that knows why values are missing, and learners on several imputations."""

from missratio.imputation.ensemble import ImputationEnsemble as ImputationEnsemble
from missratio.imputation.imputer import TiltedImputer as TiltedImputer
