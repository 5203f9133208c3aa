"""Why values are missing: models of φ(z) = P(missing | z) for one class."""

from missratio.missingness._check import (
    DOUBT,
    MissingnessCheck,
    MissingnessContradictionError,
    MissingnessContradictionWarning,
    contradictions,
    missingness_check,
    refuse_contradiction,
    warn_of_contradiction,
)
from missratio.missingness._inclusion import (
    RowInclusion,
    drawn_together,
    row_probability,
)
from missratio.missingness._looked_up_terms import looked_up_terms
from missratio.missingness.base import Missingness, once
from missratio.missingness.blocks import Block, BlockMissingness
from missratio.missingness.by_name import NamedMissingness
from missratio.missingness.corruption import corrupt
from missratio.missingness.function import FunctionMissingness
from missratio.missingness.logistic import LogisticMissingness
from missratio.missingness.patterns import (
    LittleTest,
    MissingnessPatterns,
    MissingnessPatternsDisplay,
    missingness_patterns,
)
from missratio.missingness.step import StepMissingness

__all__ = [
    "DOUBT",
    "Block",
    "BlockMissingness",
    "FunctionMissingness",
    "LittleTest",
    "LogisticMissingness",
    "Missingness",
    "MissingnessCheck",
    "MissingnessContradictionError",
    "MissingnessContradictionWarning",
    "MissingnessPatterns",
    "MissingnessPatternsDisplay",
    "NamedMissingness",
    "RowInclusion",
    "StepMissingness",
    "contradictions",
    "corrupt",
    "drawn_together",
    "looked_up_terms",
    "missingness_check",
    "missingness_patterns",
    "once",
    "refuse_contradiction",
    "row_probability",
    "warn_of_contradiction",
]
