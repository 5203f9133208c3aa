"""Curves past the paper on data sets: joint fits, and learners on imputations."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from missratio._typing import FloatArray
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
from missratio.reproduce._learned import learned_log_odds
from missratio.reproduce._loss import Run

Scores = list[tuple[FloatArray, FloatArray]]
"""For each run the scores of its calibration and of its test rows."""
Method = Callable[[Sequence[Run], Conditions], Scores]
Make = Callable[[Run, LogisticMissingness], Any]
"""From a run and class 1's φ to a learner."""

# What imputations differ by matters less, and costs more, the more rows there are.
FEW_ROWS, N_IMPUTATIONS = 20_000, (5, 2)
LEAST_ROWS = 100
NOTHING = np.array([np.nan]), np.array([np.nan])
"""Scores where a method has nothing to do."""


def joint(run: Run, phi: LogisticMissingness) -> Any:
    """One log-linear ratio of all columns, the penalty chosen by cross-validation."""
    del run
    return KLIEPCV(missingness={1: phi}, random_state=0)


def with_products(run: Run, phi: LogisticMissingness) -> Any:
    """The same with squares and products of columns that are not indicators.

    Products that hardly any class-1 row has both columns of are left out.
    """
    distinct = [len(np.unique(values[:-1])) for values in run.table.grid]
    numbers = [j for j, count in enumerate(distinct) if count > 2]
    seen = (~run.lost).astype(np.int64)
    together = seen @ seen.T
    pairs = [
        (j, k)
        for j, k in combinations_with_replacement(numbers, 2)
        if together[j, k] >= LEAST_ROWS
    ]
    basis = PolynomialBasis(1, interactions=pairs)
    return KLIEPCV(basis, missingness={1: phi}, random_state=0)


def tilted(run: Run, phi: LogisticMissingness) -> Any:
    """Boosted trees on imputations that know φ, their scores averaged."""
    rows = run.numerator_train
    n_imputations = N_IMPUTATIONS[len(rows) > FEW_ROWS]
    imputer = TiltedImputer(
        {1: phi}, n_imputations=n_imputations, random_state=int(rows[0])
    )
    return ImputationEnsemble(imputer, trees())


def trees() -> Any:
    """Boosted trees as scikit-learn has them."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=0)


def iterative(run: Run) -> FloatArray:
    """The class-1 training rows, completed by scikit-learn's IterativeImputer."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        completed: FloatArray = IterativeImputer().fit_transform(run.numerator_rows())
    return completed


def _imputed_trees(runs: Sequence[Run], conditions: Conditions) -> Scores:
    del conditions
    return [
        _scores(run, trees(), iterative(run)) if run.lost.any() else NOTHING
        for run in runs
    ]


def _nan_trees(runs: Sequence[Run], conditions: Conditions) -> Scores:
    """Trees that take NaN for a value like others."""
    del conditions
    return [_scores(run, trees(), run.numerator_rows()) for run in runs]


def _full_trees(runs: Sequence[Run], conditions: Conditions) -> Scores:
    """What trees would reach if nothing were lost."""
    del conditions
    return [_scores(run, trees(), run.numerator_rows(complete=True)) for run in runs]


def _with_known(make: Make) -> Method:
    def method(runs: Sequence[Run], conditions: Conditions) -> Scores:
        del conditions
        return [
            _scores(run, make(run, run.missingness), run.numerator_rows())
            for run in runs
        ]

    return method


def _with_learned(make: Make) -> Method:
    def method(runs: Sequence[Run], conditions: Conditions) -> Scores:
        corrected = conditions.corrects("learning")
        log_odds = learned_log_odds(runs, corrected=corrected)
        models = [LogisticMissingness(*own) for own in log_odds]
        return [
            _scores(run, make(run, phi), run.numerator_rows())
            for run, phi in zip(runs, models, strict=True)
        ]

    return method


def _scores(
    run: Run, learner: Any, numerator: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Fit to class-1 rows and the class-0 training rows, and score fresh ones."""
    with warnings.catch_warnings():
        # Of the runs of an experiment one looks at the curves.
        warnings.simplefilter("ignore", UserWarning)
        model = learner.fit(*run.training_rows(numerator))
    calibration, test = (model.decision_function(rows) for rows in run.fresh_rows())
    return calibration, test


LEARNERS: dict[str, Make] = {JOINT: joint, PRODUCTS: with_products, TILTED: tilted}
BEYOND: dict[str, Method] = {
    **{known(name): _with_known(make) for name, make in LEARNERS.items()},
    **{learned(name): _with_learned(make) for name, make in LEARNERS.items()},
    IMPUTED_TREES: _imputed_trees,
    NAN_TREES: _nan_trees,
    FULL_TREES: _full_trees,
}
