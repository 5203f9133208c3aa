"""Why values are missing: models of φ(z) = P(missing | z) for one class."""

from missratio.missingness.check import MissingnessCheck as MissingnessCheck
from missratio.missingness.check import (
    MissingnessContradictionError as MissingnessContradictionError,
)
from missratio.missingness.check import (
    MissingnessContradictionWarning as MissingnessContradictionWarning,
)
from missratio.missingness.check import missingness_check as missingness_check
from missratio.missingness.check import refuse_contradiction as refuse_contradiction
from missratio.missingness.check import warn_of_contradiction as warn_of_contradiction
from missratio.missingness.contract import Missingness as Missingness
from missratio.missingness.contract import check_missingness as check_missingness
from missratio.missingness.contract import corrupt as corrupt
from missratio.missingness.contract import joint_weight as joint_weight
from missratio.missingness.contract import once as once
from missratio.missingness.logistic import LogisticMissingness as LogisticMissingness
from missratio.missingness.logistic import NamedMissingness as NamedMissingness
from missratio.missingness.logistic import balanced_intercepts as balanced_intercepts
from missratio.missingness.look_ups import RowInclusion as RowInclusion
from missratio.missingness.look_ups import drawn_together as drawn_together
from missratio.missingness.look_ups import looked_up_terms as looked_up_terms
from missratio.missingness.look_ups import read_inclusion as read_inclusion
from missratio.missingness.look_ups import refuse_misplaced as refuse_misplaced
from missratio.missingness.models import Block as Block
from missratio.missingness.models import BlockMissingness as BlockMissingness
from missratio.missingness.models import FunctionMissingness as FunctionMissingness
from missratio.missingness.models import StepMissingness as StepMissingness
from missratio.missingness.patterns import MissingnessPatterns as MissingnessPatterns
from missratio.missingness.patterns import missingness_patterns as missingness_patterns
