"""Plans of what to look up, as tables that a person fills in, and their answers."""

from missratio.app.queries.answers import Revealed as Revealed
from missratio.app.queries.plan import PlannedPower as PlannedPower
from missratio.app.queries.plan import QueryPlan as QueryPlan
from missratio.app.queries.plan import plan_queries as plan_queries
