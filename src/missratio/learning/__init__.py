"""Learning why values are missing, from a few of them that were looked up."""

from missratio.learning._learn import learn_missingness
from missratio.learning._learned import LearnedMissingness

__all__ = ["LearnedMissingness", "learn_missingness"]
