"""Why values are missing: models of φ(z) = P(missing | z) for one class."""

from missratio.missingness.check import (
    DOUBT,
    MissingnessCheck,
    MissingnessContradictionError,
    MissingnessContradictionWarning,
    contradictions,
    missingness_check,
    refuse_contradiction,
    warn_of_contradiction,
)
from missratio.missingness.contract import Missingness, corrupt, joint_weight, once
from missratio.missingness.logistic import LogisticMissingness, NamedMissingness
from missratio.missingness.look_ups import (
    RowInclusion,
    drawn_together,
    looked_up_terms,
    read_inclusion,
    refuse_misplaced,
    row_probability,
)
from missratio.missingness.models import (
    Block,
    BlockMissingness,
    FunctionMissingness,
    StepMissingness,
)
from missratio.missingness.patterns import (
    LittleTest,
    MissingnessPatterns,
    missingness_patterns,
)

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
    "NamedMissingness",
    "RowInclusion",
    "StepMissingness",
    "contradictions",
    "corrupt",
    "drawn_together",
    "joint_weight",
    "looked_up_terms",
    "missingness_check",
    "missingness_patterns",
    "once",
    "read_inclusion",
    "refuse_contradiction",
    "refuse_misplaced",
    "row_probability",
    "warn_of_contradiction",
]
