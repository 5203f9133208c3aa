"""Learning why values are missing: from the table, and from values looked up."""

from missratio.learning.answers import Revealed
from missratio.learning.checks import Check, MissingnessWarning
from missratio.learning.learn import learn_missingness
from missratio.learning.learned import (
    Influence,
    LearnedMissingness,
    influence_of,
    was_learned_from,
)
from missratio.learning.plan import PlannedPower, QueryPlan, plan_queries

__all__ = [
    "Check",
    "Influence",
    "LearnedMissingness",
    "MissingnessWarning",
    "PlannedPower",
    "QueryPlan",
    "Revealed",
    "influence_of",
    "learn_missingness",
    "plan_queries",
    "was_learned_from",
]
