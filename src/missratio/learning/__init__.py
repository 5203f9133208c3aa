"""Learning why values are missing: from the table, and from values looked up."""

from missratio.learning.assume import Assumption as Assumption
from missratio.learning.checks import Check as Check
from missratio.learning.checks import MissingnessWarning as MissingnessWarning
from missratio.learning.learn import learn_missingness as learn_missingness
from missratio.learning.learned import LearnedMissingness as LearnedMissingness
