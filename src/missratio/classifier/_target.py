"""A population whose covariates are distributed otherwise than the rows at hand.

Under covariate shift, where a class is as likely given the columns in the one
population as in the other, rows of the controlled class stand for the target's with
weights r(x) = p_target(x) / p_source(x), and for complete rows with r(x)/(1 − φ(x)).
These don't average to one: the target may have more rows of that class, or fewer. What
is certified is therefore E[W·1{h > C}] ≤ α·E[W], for which the scale of W is of no
importance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from missratio._base.blocks import take_rows
from missratio._base.typing import FloatArray
from missratio.classifier._scores import complete_mask
from missratio.ratio import KLIEP, stack_samples

# Rows that stand for more than this many times the average are as good as unseen.
LARGEST_LOG = 50.0


@dataclass(frozen=True)
class TargetRatio:
    """How much denser the target is than the source, up to a factor.

    Parameters
    ----------
    ratio : object
        With `predict_log_ratio`.
    rows : int
        Target rows that it was learned from; 0 where it was given.
    shift : float
        Taken off the logarithm, so that weights are one on average.
    factor : float
        By what factor the ratio may be wrong, either way.
    """

    ratio: Any
    rows: int
    shift: float = 0.0
    factor: float = 1.0

    def weights(self, rows: Any) -> FloatArray:
        """R of complete rows, 0 of others.

        Parameters
        ----------
        rows : array or dataframe of shape (n_rows, n_columns)
        """
        complete = complete_mask(rows)
        weights = np.zeros(len(complete))
        if complete.any():
            chosen = rows
            if not complete.all():
                chosen = take_rows(rows, np.flatnonzero(complete))
            logs = np.asarray(self.ratio.predict_log_ratio(chosen), dtype=np.float64)
            if logs.shape != (int(complete.sum()),) or np.isnan(logs).any():
                raise ValueError(
                    "The target's density ratio must be one number for each row, and "
                    f"not NaN: {type(self.ratio).__name__}.predict_log_ratio gave "
                    f"shape {logs.shape}."
                )
            limited = np.clip(logs - self.shift, -LARGEST_LOG, LARGEST_LOG)
            weights[complete] = np.exp(limited)
        return weights


def learn_target(
    target: Any,
    estimator: Any,
    source: Any,
    weights: FloatArray,
    factor: float,
) -> TargetRatio:
    """The target's density ratio: as it was given, or learned.

    Parameters
    ----------
    target : array or dataframe of shape (n_target_rows, n_columns), or ratio
        Complete rows of the target, of any class; or an object with
        `predict_log_ratio`, for a ratio that is known.
    estimator : ratio or None
        How to learn it; None for KLIEP.
    source : array or dataframe of shape (n_rows, n_columns)
        Rows of both classes that take no part in calibration.
    weights : ndarray of shape (n_rows,)
        What they stand for in the source; 0 for incomplete ones.
    factor : float
        By what factor the ratio is to be allowed to be wrong.
    """
    if hasattr(target, "predict_log_ratio"):
        return _centred(TargetRatio(target, 0, factor=factor), source, weights)
    complete = complete_mask(target)
    if not complete.all():
        raise ValueError(
            f"{int((~complete).sum())} target row(s) have missing values: which rows "
            "are complete says nothing about the target as a whole. Give complete "
            "rows, or a ratio that was learned from incomplete ones with its "
            "missingness."
        )
    seen = np.flatnonzero(weights > 0.0)
    X, labels = stack_samples(target, take_rows(source, seen))
    own = np.where(labels == 1, 1.0, 0.0)
    own[labels == 0] = weights[seen]
    learner = KLIEP() if estimator is None else clone(estimator)
    learned = learner.fit(X, labels, sample_weight=own)
    found = TargetRatio(learned, len(complete), factor=factor)
    return _centred(found, source, weights)


def _centred(found: TargetRatio, source: Any, weights: FloatArray) -> TargetRatio:
    """The same with weights that are one on average."""
    mean = float(np.average(found.weights(source), weights=weights))
    return TargetRatio(found.ratio, found.rows, float(np.log(mean)), found.factor)
