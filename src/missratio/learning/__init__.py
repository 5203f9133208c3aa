"""Learning why values are missing: from the table, and from values looked up."""

from missratio.learning.answers import Revealed
from missratio.learning.checks import Check, GoodnessOfFit, MissingnessWarning
from missratio.learning.display import MissingnessDisplay
from missratio.learning.learn import learn_missingness
from missratio.learning.learned import (
    Influence,
    LearnedMissingness,
    compare_classes,
    influence_of,
    was_learned_from,
)
from missratio.learning.plan import PlannedPower, QueryPlan, plan_queries

__all__ = [
    "Check",
    "GoodnessOfFit",
    "Influence",
    "LearnedMissingness",
    "MissingnessDisplay",
    "MissingnessWarning",
    "PlannedPower",
    "QueryPlan",
    "Revealed",
    "compare_classes",
    "influence_of",
    "learn_missingness",
    "plan_queries",
    "was_learned_from",
]
