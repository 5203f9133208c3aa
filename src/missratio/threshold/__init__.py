"""Thresholds with a certificate: P(type I error > α) ≤ δ, on complete and MNAR rows."""

from missratio.threshold.auto import RULES as RULES
from missratio.threshold.auto import AutoRule as AutoRule
from missratio.threshold.auto import check_levels as check_levels
from missratio.threshold.auto import make_rule as make_rule
from missratio.threshold.checks import check_rule as check_rule
from missratio.threshold.look_ups import LookUpRule as LookUpRule
from missratio.threshold.look_ups import fewest_look_ups as fewest_look_ups
from missratio.threshold.look_ups import looked_up_sample as looked_up_sample
from missratio.threshold.rules import BinomialRule as BinomialRule
from missratio.threshold.rules import PaperRule as PaperRule
from missratio.threshold.rules import Rule as Rule
from missratio.threshold.rules import Selection as Selection
from missratio.threshold.rules import binomial_tail as binomial_tail
from missratio.threshold.rules import fewest as fewest
from missratio.threshold.sample import CalibrationSample as CalibrationSample
from missratio.threshold.sample import LookUps as LookUps
