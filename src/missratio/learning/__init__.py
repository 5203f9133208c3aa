"""Learning why values are missing: from the table, and from values looked up."""

from missratio.learning.assume import Assumption
from missratio.learning.checks import Check, MissingnessWarning
from missratio.learning.learn import learn_missingness
from missratio.learning.learned import (
    Influence,
    LearnedMissingness,
    influence_of,
    was_learned_from,
)

__all__ = [
    "Assumption",
    "Check",
    "Influence",
    "LearnedMissingness",
    "MissingnessWarning",
    "influence_of",
    "learn_missingness",
    "was_learned_from",
]
