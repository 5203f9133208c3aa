"""Learning why values are missing, from a few of them that were looked up."""

from missratio.learning._display import MissingnessDisplay
from missratio.learning._goodness import GoodnessOfFit
from missratio.learning._learn import learn_missingness
from missratio.learning._learned import LearnedMissingness
from missratio.learning._plan import QueryPlan, plan_queries
from missratio.learning._plan_answers import Revealed

__all__ = [
    "GoodnessOfFit",
    "LearnedMissingness",
    "MissingnessDisplay",
    "QueryPlan",
    "Revealed",
    "learn_missingness",
    "plan_queries",
]
