"""Why values are missing: models of φ(z) = P(missing | z) for one class."""

from missratio.missingness._check import (
    MissingnessCheck,
    MissingnessContradictionError,
    MissingnessContradictionWarning,
    check_missingness,
)
from missratio.missingness.base import Missingness
from missratio.missingness.corruption import corrupt
from missratio.missingness.function import FunctionMissingness
from missratio.missingness.logistic import LogisticMissingness
from missratio.missingness.step import StepMissingness

__all__ = [
    "FunctionMissingness",
    "LogisticMissingness",
    "Missingness",
    "MissingnessCheck",
    "MissingnessContradictionError",
    "MissingnessContradictionWarning",
    "StepMissingness",
    "check_missingness",
    "corrupt",
]
