"""Curves past the paper on data sets: joint fits, and learners on imputations."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from missratio._base.typing import FloatArray
from missratio.basis import PolynomialBasis
from missratio.imputation import ImputationEnsemble, TiltedImputer
from missratio.missingness import LogisticMissingness
from missratio.ratio import KLIEPCV
from missratio.reproduce._experiment import (
    FULL_TREES,
    IMPUTED_TREES,
    JOINT,
    NAN_TREES,
    PRODUCTS,
    TILTED,
    Conditions,
    known,
    learned,
)
from missratio.reproduce._fits import learned_missingness, quiet, stacked
from missratio.reproduce._runs import RealRun

RunScores = tuple[FloatArray, FloatArray]
"""The scores of a run's calibration rows and of its test rows."""
RunMethod = Callable[[RealRun, Conditions], RunScores]
Phi = Callable[[RealRun, Conditions], LogisticMissingness]
Make = Callable[[RealRun, LogisticMissingness], Any]
"""From a run and class 1's φ to a learner."""

# What imputations differ by matters less, and costs more, the more rows there are.
FEW_ROWS, N_IMPUTATIONS = 20_000, (5, 2)
LEAST_ROWS = 100
NOTHING = np.array([np.nan]), np.array([np.nan])
"""Scores where a method has nothing to do."""


def joint(run: RealRun, phi: LogisticMissingness) -> Any:
    """One log-linear ratio of all columns, the penalty chosen by cross-validation."""
    del run
    return KLIEPCV(missingness={1: phi}, random_state=0)


def with_products(run: RealRun, phi: LogisticMissingness) -> Any:
    """The same with squares and products of columns that are not indicators.

    Products that hardly any class-1 row has both columns of are left out.
    """
    distinct = [len(np.unique(x[~np.isnan(x)])) for x in run.table.X.T]
    numbers = [j for j, count in enumerate(distinct) if count > 2]
    seen = (~np.isnan(run.numerator)).astype(np.float64)
    together = seen.T @ seen
    pairs = [
        (j, k)
        for j, k in combinations_with_replacement(numbers, 2)
        if together[j, k] >= LEAST_ROWS
    ]
    basis = PolynomialBasis(1, interactions=pairs)
    return KLIEPCV(basis, missingness={1: phi}, random_state=0)


def tilted(run: RealRun, phi: LogisticMissingness) -> Any:
    """Boosted trees on imputations that know φ, their scores averaged."""
    n_imputations = N_IMPUTATIONS[len(run.numerator) > FEW_ROWS]
    imputer = TiltedImputer(
        {1: phi}, n_imputations=n_imputations, random_state=run.seed
    )
    return ImputationEnsemble(imputer, trees())


def trees() -> Any:
    """Boosted trees as scikit-learn has them."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=0)


def iterative(run: RealRun) -> FloatArray:
    """The class-1 training rows, completed by scikit-learn's IterativeImputer."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        completed: FloatArray = IterativeImputer().fit_transform(run.numerator)
    return completed


def true_phi(run: RealRun, conditions: Conditions) -> LogisticMissingness:
    """The φ by which class 1 lost values."""
    del conditions
    return run.missingness


def learned_phi(run: RealRun, conditions: Conditions) -> LogisticMissingness:
    """The φ learned from the values that were looked up."""
    corrected = conditions.corrects("learning")
    return learned_missingness(run.numerator, run.revealed, corrected=corrected)


def _scores(run: RealRun, learner: Any, numerator: FloatArray) -> RunScores:
    """Fit to class-1 rows and the class-0 training rows, and score fresh ones."""
    X, y = stacked(numerator, run.denominator)
    with quiet():
        model = learner.fit(X, y)
    return model.decision_function(run.calibration), model.decision_function(run.test)


def _with_phi(make: Make, phi: Phi) -> RunMethod:
    return lambda run, conditions: _scores(
        run, make(run, phi(run, conditions)), run.numerator
    )


LEARNERS: dict[str, Make] = {JOINT: joint, PRODUCTS: with_products, TILTED: tilted}
BEYOND: dict[str, RunMethod] = {
    **{known(name): _with_phi(make, true_phi) for name, make in LEARNERS.items()},
    **{learned(name): _with_phi(make, learned_phi) for name, make in LEARNERS.items()},
    IMPUTED_TREES: lambda run, _: (
        _scores(run, trees(), iterative(run)) if run.is_lossy else NOTHING
    ),
    # Trees take NaN for a value like others.
    NAN_TREES: lambda run, _: _scores(run, trees(), run.numerator),
    # What trees would reach if nothing were lost.
    FULL_TREES: lambda run, _: _scores(run, trees(), run.complete),
}
