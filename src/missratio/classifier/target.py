"""A population whose covariates have another distribution than the rows at hand.

Under covariate shift, where a class is as likely given the columns in the one
population as in the other, rows of the controlled class stand for the target's with
weights r(x) = p_target(x) / p_source(x), and for complete rows with r(x)/(1 − φ(x)).
These don't average to one: the target may have more rows of that class, or fewer. What
is certified is therefore E[W·1{h > C}] ≤ α·E[W], for which the scale of W is of no
importance.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.base import clone

from missratio._base.blocks import take_rows
from missratio._base.storable import storable
from missratio._base.typing import FloatArray
from missratio.classifier.scores import complete_mask
from missratio.ratio import KLIEP, stack_samples

# Rows that stand for more than this many times the average are as good as unseen.
LARGEST_LOG = 50.0
# A ratio that was learned from fewer rows is hardly known; nor is an error by so few.
FEWEST_ROWS, FEWEST_EFFECTIVE = 50, 20.0


class WeakTargetWarning(UserWarning):
    """A certificate is for a target that little is known about."""


@storable()
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
        logs = self.log_ratios(rows)
        return np.exp(np.minimum(logs - self.shift, LARGEST_LOG))

    def log_ratios(self, rows: Any) -> FloatArray:
        """Log r as the ratio gives it for complete rows, −∞ for others."""
        complete = complete_mask(rows)
        found = np.full(len(complete), -np.inf)
        if complete.any():
            chosen = rows
            if not complete.all():
                chosen = take_rows(rows, np.flatnonzero(complete))
            logs = np.asarray(self.ratio.predict_log_ratio(chosen), dtype=np.float64)
            if logs.shape != (int(complete.sum()),) or np.isnan(logs).any():
                bad = np.count_nonzero(np.isnan(logs))
                raise ValueError(
                    "The target's density ratio must be one number for each row, and "
                    f"not NaN: {type(self.ratio).__name__}.predict_log_ratio gave "
                    f"shape {logs.shape} for {int(complete.sum())} rows, {bad} of the "
                    "values NaN. Give a ratio that is a number at every row of X."
                )
            found[complete] = logs
        return found

    def check(self, rows: Any, what: str) -> FloatArray:
        """Log r of rows that a certificate is made of; refuse what can't weigh them.

        Parameters
        ----------
        rows : array or dataframe of shape (n_rows, n_columns)
        what : str
            What the rows are, for errors.
        """
        logs = self.log_ratios(rows)
        name = f"{type(self.ratio).__name__}.predict_log_ratio"
        infinite = np.count_nonzero(logs == np.inf)
        if infinite:
            raise ValueError(
                f"The target's density ratio must be finite: {name} gave +inf at "
                f"{infinite} of {len(logs)} {what} rows, and no row stands for "
                "infinitely many. Give a bounded ratio, or one with more penalty."
            )
        if not (logs > -np.inf).any():
            raise ValueError(
                f"The target's density ratio must be above 0 at some rows: {name} gave "
                f"-inf, a ratio of 0, at all {len(logs)} {what} rows. The target has "
                "no rows like these, so they say nothing about it. Bring rows like the "
                "target's, or give a ratio that overlaps with X."
            )
        return logs


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
    logs = found.check(source, "training")
    seen = (weights > 0.0) & (logs > -np.inf)
    total = logsumexp(logs[seen], b=weights[seen])
    return replace(found, shift=float(total - np.log(weights.sum())))


def warn_of_weak_target(found: TargetRatio, effective_rows: float, n_rows: int) -> None:
    """Warn where little is known about a target.

    Parameters
    ----------
    found : TargetRatio
    effective_rows : float
        Kish's effective size of the calibration rows, as the target weighs them.
    n_rows : int
        How many calibration rows there are.
    """
    known = []
    if 0 < found.rows < FEWEST_ROWS:
        known.append(
            f"its density ratio was learned from {found.rows} target row(s), fewer "
            f"than {FEWEST_ROWS}, and the certificate takes the ratio at its word"
        )
    if effective_rows < FEWEST_EFFECTIVE:
        known.append(
            f"the {n_rows} calibration rows are worth {effective_rows:.3g} as the "
            "target weighs them: few of them are like its rows"
        )
    if known:
        warnings.warn(
            f"Little is known about the target: {'; '.join(known)}. Bring more rows "
            "like the target's, or allow for a wrong ratio by target_factor.",
            WeakTargetWarning,
            stacklevel=2,
        )
