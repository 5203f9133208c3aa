"""Objectives: functions of two weighted expectations, and nothing about data."""

from missratio.objective._base import Combination, Expectations, Objective, Term
from missratio.objective._divergence import (
    Divergence,
    FDivergenceObjective,
    JensenShannon,
    JensenShannonObjective,
    KullbackLeibler,
    KullbackLeiblerObjective,
    Link,
    Pearson,
    as_divergence_objective,
)
from missratio.objective._kliep import KLIEPObjective

__all__ = [
    "Combination",
    "Divergence",
    "Expectations",
    "FDivergenceObjective",
    "JensenShannon",
    "JensenShannonObjective",
    "KLIEPObjective",
    "KullbackLeibler",
    "KullbackLeiblerObjective",
    "Link",
    "Objective",
    "Pearson",
    "Term",
    "as_divergence_objective",
]
