"""Plans of what to look up, as tables that a person fills in, and their answers."""

from missratio.app.queries.answers import Revealed
from missratio.app.queries.plan import PlannedPower, QueryPlan, plan_queries

__all__ = ["PlannedPower", "QueryPlan", "Revealed", "plan_queries"]
