"""Learning why values are missing: from the table, and from values looked up."""

from missratio.learning._checks import Check, MissingnessWarning
from missratio.learning._classes import compare_classes
from missratio.learning._display import MissingnessDisplay
from missratio.learning._goodness import GoodnessOfFit
from missratio.learning._influence import Influence, influence_of, was_learned_from
from missratio.learning._learn import learn_missingness
from missratio.learning._learned import LearnedMissingness
from missratio.learning._plan import QueryPlan
from missratio.learning._plan_answers import Revealed
from missratio.learning._plan_power import PlannedPower
from missratio.learning._plan_queries import plan_queries

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
