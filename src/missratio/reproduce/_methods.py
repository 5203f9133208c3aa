"""How each curve of the real-data experiments learns its scores."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np

from missratio._typing import FloatArray
from missratio.reproduce._columns import fit_columns
from missratio.reproduce._experiment import (
    CC_KLIEP,
    FULL_DATA,
    IMPUTATION,
    KNOWN,
    LEARNED,
    Variant,
)
from missratio.reproduce._learned import learned_weights
from missratio.reproduce._loss import Run

Scores = list[tuple[FloatArray, FloatArray]]
"""For each run the scores of its calibration and of its test rows."""


def full_data(runs: Sequence[Run], variant: Variant) -> Scores:
    """KLIEP on what nothing was lost from."""
    del variant
    return _naive_bayes(runs, _means(runs, [run.complete for run in runs]))


def known(runs: Sequence[Run], variant: Variant) -> Scores:
    """M-KLIEP with the true φ."""
    del variant
    masses = [run.observed / (1.0 - run.missing_probability) for run in runs]
    return _naive_bayes(runs, _means(runs, masses))


def learned(runs: Sequence[Run], variant: Variant) -> Scores:
    """M-KLIEP with φ learned from the values that were looked up."""
    weights = learned_weights(runs, variant)
    masses = [run.observed * own for run, own in zip(runs, weights, strict=True)]
    return _naive_bayes(runs, _means(runs, masses))


def complete_case(runs: Sequence[Run], variant: Variant) -> Scores:
    """CC-KLIEP: each column's observed values are taken for all of them."""
    del variant
    shares = [
        run.observed * (run.complete.sum(axis=1) / run.observed.sum(axis=1))[:, None]
        for run in runs
    ]
    return _naive_bayes(runs, _means(runs, shares))


def imputed(runs: Sequence[Run], variant: Variant) -> Scores:
    """KLIEP on rows completed by scikit-learn's IterativeImputer; NaN if none need be.

    Class 1 enters a fit through the means of its columns alone.
    """
    del variant
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    means = np.full((len(runs), runs[0].table.n_columns), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for mean, run in zip(means, runs, strict=True):
            if run.lost.any():
                mean[:] = IterativeImputer().fit_transform(run.numerator_rows()).mean(0)
    done = ~np.isnan(means).any(axis=1)
    scores = iter(
        _naive_bayes([r for r, d in zip(runs, done, strict=True) if d], means[done])
    )
    nothing = np.array([np.nan])
    return [next(scores) if one else (nothing, nothing) for one in done]


METHODS: dict[str, Callable[[Sequence[Run], Variant], Scores]] = {
    FULL_DATA: full_data,
    KNOWN: known,
    LEARNED: learned,
    CC_KLIEP: complete_case,
    IMPUTATION: imputed,
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
    if not runs:
        return []
    grids = np.stack([run.grids[0] for run in runs])
    counts = np.stack([run.denominator for run in runs])
    coef = fit_columns(means, grids, counts)
    return [run.scores(own) for run, own in zip(runs, coef, strict=True)]
