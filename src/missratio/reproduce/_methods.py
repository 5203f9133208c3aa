"""How each curve of the real-data experiments learns its scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from missratio._typing import FloatArray
from missratio.reproduce._beyond import BEYOND, NOTHING, Scores, iterative
from missratio.reproduce._columns import fit_columns
from missratio.reproduce._experiment import (
    CC_KLIEP,
    FULL_DATA,
    IMPUTATION,
    KNOWN,
    LEARNED,
    Conditions,
)
from missratio.reproduce._learned import learned_weights
from missratio.reproduce._loss import Run


def full_data(runs: Sequence[Run], conditions: Conditions) -> Scores:
    """KLIEP on what nothing was lost from."""
    del conditions
    return _naive_bayes(runs, _means(runs, [run.complete for run in runs]))


def known(runs: Sequence[Run], conditions: Conditions) -> Scores:
    """M-KLIEP with the true φ."""
    del conditions
    masses = [run.observed / (1.0 - run.missing_probability) for run in runs]
    return _naive_bayes(runs, _means(runs, masses))


def learned(runs: Sequence[Run], conditions: Conditions) -> Scores:
    """M-KLIEP with φ learned from the values that were looked up."""
    weights = learned_weights(runs, corrected=conditions.corrects("learning"))
    masses = [run.observed * own for run, own in zip(runs, weights, strict=True)]
    return _naive_bayes(runs, _means(runs, masses))


def complete_case(runs: Sequence[Run], conditions: Conditions) -> Scores:
    """CC-KLIEP: each column's observed values are taken for all of them."""
    del conditions
    shares = [
        run.observed * (run.complete.sum(axis=1) / run.observed.sum(axis=1))[:, None]
        for run in runs
    ]
    return _naive_bayes(runs, _means(runs, shares))


def imputed(runs: Sequence[Run], conditions: Conditions) -> Scores:
    """KLIEP on rows completed by scikit-learn's IterativeImputer."""
    del conditions
    return [_imputed(run) for run in runs]


def _imputed(run: Run) -> tuple[FloatArray, FloatArray]:
    """The scores of a run; NaN where nothing is to be imputed."""
    if not run.lost.any():
        return NOTHING
    completed = iterative(run)
    # Class 1 enters a fit through the means of its columns alone.
    return _naive_bayes([run], completed.mean(axis=0)[None])[0]


# A further curve is a function here, and its name among an experiment's methods.
METHODS: dict[str, Callable[[Sequence[Run], Conditions], Scores]] = {
    FULL_DATA: full_data,
    KNOWN: known,
    LEARNED: learned,
    CC_KLIEP: complete_case,
    IMPUTATION: imputed,
    **BEYOND,
}


def _means(runs: Sequence[Run], masses: Sequence[FloatArray]) -> FloatArray:
    """Σ mass·z / n of class 1, the printed objective's, as (n_runs, n_columns)."""
    sums = [
        (mass * run.grids[1]).sum(axis=1) / len(run.numerator_train)
        for run, mass in zip(runs, masses, strict=True)
    ]
    return np.stack(sums)


def _naive_bayes(runs: Sequence[Run], means: FloatArray) -> Scores:
    """A one-dimensional fit for every run and column, and the products' scores."""
    grids = np.stack([run.grids[0] for run in runs])
    counts = np.stack([run.denominator for run in runs])
    coef = fit_columns(means, grids, counts)
    return [run.scores(own) for run, own in zip(runs, coef, strict=True)]
