"""Learning why values are missing, from a few of them that were looked up."""

from missratio.learning._influence import Influence, influence_of, was_learned_from
from missratio.learning._learn import learn_missingness
from missratio.learning._learned import LearnedMissingness

__all__ = [
    "Influence",
    "LearnedMissingness",
    "influence_of",
    "learn_missingness",
    "was_learned_from",
]
