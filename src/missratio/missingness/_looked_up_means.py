"""Means over a class of which some values were looked up, with help from other columns.

Of the M missing values of a column m were drawn and looked up. Their mean is unbiased
for that of all M, whatever φ is. So is the difference estimator

    mean over all M of c·p  +  mean over the m of (f − c·p),

for any prediction p of the feature f from the other columns and any number c that the
draw had no part in: the prediction may be as wrong as it likes. It is less noisy where
f − c·p varies less than f does. The prediction is a ridge regression on the rows where
the column is observed, and c the regression slope of f on p among the looked-up rows of
the other folds, so that it has no part in a row's own draw. c is shrunk, and is zero
where the folds don't agree that it helps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from missratio._typing import BoolArray, FloatArray

FOLDS = 5
# With fewer looked-up rows a slope costs more than it can bring.
FEWEST = 10


@dataclass(frozen=True)
class LookedUpMeans:
    """Means of features of one column over all rows of a class.

    Parameters
    ----------
    means : ndarray of shape (n_features,)
    standard_errors : ndarray of shape (n_features,)
        By the draw of the rows that were looked up; the rows themselves are given.
    adjusted : ndarray of bool of shape (n_features,)
        Which of them other columns helped with.
    """

    means: FloatArray
    standard_errors: FloatArray
    adjusted: BoolArray


def looked_up_means(
    features: FloatArray, inclusion: FloatArray, others: FloatArray
) -> LookedUpMeans:
    """Means of features, adjusted by a regression on the other columns where it helps.

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_features)
        Features of one column, of the rows of one class; NaN where it is missing still.
    inclusion : ndarray of shape (n_rows,)
        1 where the column was observed, m/M where it was looked up, 0 elsewhere.
    others : ndarray of shape (n_rows, n_columns)
        The other columns, NaN where missing.
    """
    observed, drawn = inclusion == 1.0, (inclusion > 0.0) & (inclusion < 1.0)
    drawn &= ~np.isnan(features).any(axis=1)
    lost = inclusion < 1.0
    n_rows, n_lost, n_drawn = len(inclusion), int(lost.sum()), int(drawn.sum())
    known = features[observed].sum(axis=0)
    if n_lost == 0:
        none = np.zeros(features.shape[1], dtype=bool)
        return LookedUpMeans(known / n_rows, np.zeros(len(none)), none)
    if n_drawn == 0:
        raise ValueError(
            f"{n_lost} values are missing and none of them was looked up, so nothing "
            "is known of their mean. Look some up, or give a model of missingness."
        )
    found = features[drawn]
    plain, adjusted = found, np.zeros(features.shape[1], dtype=bool)
    if n_drawn >= FEWEST and observed.sum() > others.shape[1] + FEWEST:
        prediction = _predicted(features, observed, others)
        terms = _differences(found, prediction[drawn], prediction[lost].mean(axis=0))
        adjusted = terms.var(axis=0) < plain.var(axis=0)
        plain = np.where(adjusted, terms, plain)
    mean = plain.mean(axis=0)
    spread = plain.std(axis=0, ddof=1) if n_drawn > 1 else np.full(len(mean), np.inf)
    error = spread * np.sqrt((1.0 - n_drawn / n_lost) / n_drawn)
    share = n_lost / n_rows
    return LookedUpMeans(known / n_rows + share * mean, share * error, adjusted)


def _predicted(
    features: FloatArray, observed: BoolArray, others: FloatArray
) -> FloatArray:
    """Ridge predictions from the other columns and from which of them are missing."""
    gone = np.isnan(others)
    centre = np.nanmean(np.where(gone.all(axis=0), 0.0, others), axis=0)
    filled = np.where(gone, centre, others)
    design = np.column_stack([filled, gone[:, gone.any(axis=0)].astype(np.float64)])
    middle, scale = design[observed].mean(axis=0), design[observed].std(axis=0)
    design = (design - middle) / np.where(scale > 0.0, scale, 1.0)
    start = features[observed].mean(axis=0)
    rows = design[observed]
    gram = rows.T @ rows + np.eye(design.shape[1]) * np.sqrt(len(rows))
    slopes = np.linalg.solve(gram, rows.T @ (features[observed] - start))
    return np.asarray(start + design @ slopes)


def _differences(
    found: FloatArray, prediction: FloatArray, everywhere: FloatArray
) -> FloatArray:
    """Terms f − c·(p − mean p), whose mean is the difference estimator."""
    fold = np.arange(len(found)) % FOLDS
    terms = np.array(found)
    for place in range(FOLDS):
        rest, own = fold != place, fold == place
        p = prediction[rest] - prediction[rest].mean(axis=0)
        f = found[rest] - found[rest].mean(axis=0)
        square = (p**2).sum(axis=0)
        slope = (p * f).sum(axis=0) / np.where(square > 0.0, square, 1.0)
        # Shrunk by the noise of the slope: what of its square isn't explained by it.
        noise = ((f - slope * p) ** 2).sum(axis=0) / max(len(f) - 2, 1)
        signal = slope**2 * square
        slope = slope * np.maximum(1.0 - noise / np.where(signal > 0, signal, 1.0), 0.0)
        terms[own] -= slope * (prediction[own] - everywhere)
    return terms
