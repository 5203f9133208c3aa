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

The estimate is given as one term for each row, whose mean it is: f where f was
observed; c·p + ē where it is missing, ē being the mean of e = f − c·p over the rows
that were looked up; and (M/m)·(e − ē) more where it was looked up. The terms' spread is
then that of the estimate, by rows and draw together.
"""

from __future__ import annotations

import numpy as np

from missratio._base.typing import BoolArray, FloatArray

FOLDS = 5
# With fewer looked-up rows a slope costs more than it can bring.
FEWEST = 10


def looked_up_terms(
    features: FloatArray,
    inclusion: FloatArray,
    others: FloatArray,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Terms whose mean estimates that of features of one column, over all rows.

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_features)
        Features of one column, of the rows of one class; NaN where it is missing still.
    inclusion : ndarray of shape (n_rows,)
        1 where the column was observed, m/M where it was looked up, 0 elsewhere.
    others : ndarray of shape (n_rows, n_columns)
        The other columns, NaN where missing.
    weights : ndarray of shape (n_rows,), optional
        What rows count; None for one each.

    Returns
    -------
    ndarray of shape (n_rows, n_features)
    """
    observed, lost = inclusion == 1.0, inclusion < 1.0
    drawn = lost & (inclusion > 0.0) & ~np.isnan(features).any(axis=1)
    terms = np.array(features)
    if not lost.any():
        return terms
    count = np.ones(len(inclusion)) if weights is None else weights
    n_lost, n_drawn = float(count[lost].sum()), float(count[drawn].sum())
    if n_drawn == 0.0:
        raise ValueError(
            f"{np.count_nonzero(lost)} values are missing and none of them was looked "
            "up, so nothing is known of their mean. Look some up, or give a model of "
            "missingness."
        )
    # 1. What other columns say of every missing value, and of the looked-up ones by
    #    slopes that their own draw had no part in.
    base, own = np.zeros(features.shape), np.zeros((drawn.sum(), features.shape[1]))
    if drawn.sum() >= FEWEST and observed.sum() > others.shape[1] + FEWEST:
        prediction = _predicted(features, observed, others)
        slopes = _slopes(features[drawn], prediction[drawn])
        own = slopes * prediction[drawn]
        helps = (features[drawn] - own).var(axis=0) < features[drawn].var(axis=0)
        own = np.where(helps, own, 0.0)
        base = helps * prediction * np.average(slopes, axis=0, weights=count[drawn])
    # 2. The mean of what they leave, and each looked-up row's part in it.
    rest = features[drawn] - own
    mean = np.average(rest, axis=0, weights=count[drawn])
    terms[lost] = mean + base[lost]
    terms[drawn] += (n_lost / n_drawn) * (rest - mean)
    return terms


def _predicted(
    features: FloatArray, observed: BoolArray, others: FloatArray
) -> FloatArray:
    """Ridge predictions from the other columns and from which of them are missing."""
    gone = np.isnan(others)
    known = ~gone.all(axis=0)
    others, gone = others[:, known], gone[:, known]
    filled = np.where(gone, np.nanmean(others, axis=0), others)
    design = np.column_stack([filled, gone[:, gone.any(axis=0)].astype(np.float64)])
    rows = design[observed]
    middle, scale = rows.mean(axis=0), rows.std(axis=0)
    varies = scale > 1e-12 * np.maximum(np.abs(middle), 1.0)
    design = (design[:, varies] - middle[varies]) / scale[varies]
    start = features[observed].mean(axis=0)
    rows = design[observed]
    gram = rows.T @ rows + np.eye(design.shape[1]) * np.sqrt(len(rows))
    slopes = np.linalg.solve(gram, rows.T @ (features[observed] - start))
    return np.asarray(design @ slopes)


def _slopes(found: FloatArray, prediction: FloatArray) -> FloatArray:
    """Each row's slope of features on predictions, by the rows of other folds."""
    fold = np.arange(len(found)) % FOLDS
    slopes = np.empty(found.shape)
    for place in range(FOLDS):
        rest = fold != place
        p = prediction[rest] - prediction[rest].mean(axis=0)
        f = found[rest] - found[rest].mean(axis=0)
        square = (p**2).sum(axis=0)
        slope = (p * f).sum(axis=0) / np.where(square > 0.0, square, 1.0)
        # Shrunk by the noise of the slope: what of its square isn't explained by it.
        noise = ((f - slope * p) ** 2).sum(axis=0) / max(len(f) - 2, 1)
        signal = slope**2 * square
        kept = np.maximum(1.0 - noise / np.where(signal > 0.0, signal, 1.0), 0.0)
        slopes[fold == place] = slope * kept
    return slopes
