"""Why values are missing, learned from some that are looked up."""

from missratio.learning._plan import QueryPlan, plan_queries
from missratio.learning._plan_answers import Revealed

__all__ = ["QueryPlan", "Revealed", "plan_queries"]
