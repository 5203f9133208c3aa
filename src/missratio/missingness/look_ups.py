"""Rows and values that are known by design: drawn at random and looked up.

`looked_up_terms` estimates means over a class with help from other columns. Of the M
missing values of a column m were drawn and looked up. Their mean is unbiased
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

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from missratio._base.blocks import any_by_row, inverse_where_positive
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.missingness.contract import once

# Shares of the same draw may differ by this much.
ROUNDING = 1e-9
FOLDS = 5
# With fewer looked-up rows a slope costs more than it can bring.
FEWEST = 10


@dataclass(frozen=True)
class RowInclusion:
    """How likely rows were to be in a table as a whole."""

    # 1 for a complete row, 0 for one that has a value missing still and was not drawn,
    # between them for one that was drawn.
    probability: FloatArray
    # Within each, incomplete rows were equally likely to be drawn. None: all were.
    strata: IntArray | None
    # Whether a row is complete now. One that was drawn may not be.
    complete: BoolArray
    # The shares of other rows of the class: of incomplete ones, and of those of these
    # that were drawn.
    expected: tuple[float, float] | None = None

    @classmethod
    def of(
        cls,
        inclusion: ArrayLike,
        complete: BoolArray,
        width: int,
        labels: ArrayLike | None = None,
    ) -> RowInclusion:
        """Rows by the probabilities of rows or of their entries.

        Where entries were drawn column by column, rows that miss the same columns are
        equally likely to be looked up in all of them: these are the strata. Where rows
        were drawn whole (`drawn_whole`), all of a class were. Rows with an entry that
        couldn't be drawn, NaN, are a stratum of their own: nothing stands for them.
        """
        n_rows = len(complete)
        never = np.isnan(np.asarray(inclusion, dtype=np.float64))
        never = any_by_row(never) if never.ndim == 2 else never
        given = read_inclusion(inclusion, (n_rows, width))
        if given.ndim == 1:
            refuse_misplaced(given, ~complete)
            return cls(given, None, complete)
        lost = given < 1.0
        by_row, strata = np.empty(n_rows), np.zeros(n_rows, dtype=np.intp)
        classes = np.zeros(n_rows) if labels is None else np.asarray(labels)
        for label in np.unique(classes):
            rows = np.flatnonzero(classes == label)
            reached = rows[~never[rows]]
            by_row[rows], by_row[reached] = 0.0, row_probability(given[reached])
            pattern = np.zeros(len(rows), dtype=np.intp)
            if not drawn_whole(given[reached]):
                pattern = np.unique(lost[rows], axis=0, return_inverse=True)[1]
            strata[rows] = strata.max(initial=0) + 1 + pattern
            strata[rows[never[rows]]] = strata.max(initial=0) + 1
        refuse_misplaced(by_row, ~complete)
        return cls(by_row, strata, complete)

    @property
    def weights(self) -> FloatArray:
        """One over the probability for rows that are there, 0 for the others."""
        return inverse_where_positive(np.where(self.complete, self.probability, 0.0))

    @property
    def by_design(self) -> bool:
        """Whether any row was drawn, or left out."""
        return bool((self.probability < 1.0).any())

    @property
    def looked_up(self) -> bool:
        """Whether any row was drawn: what is missing still says nothing of a draw."""
        return bool(((self.probability > 0.0) & (self.probability < 1.0)).any())

    def take(self, rows: IntArray) -> RowInclusion:
        """That of some rows."""
        strata = None if self.strata is None else self.strata[rows]
        probability, complete = self.probability[rows], self.complete[rows]
        return replace(self, probability=probability, strata=strata, complete=complete)

    def besides(self, rows: IntArray, others: IntArray) -> RowInclusion:
        """That of some rows, which are expected to be drawn like some others."""
        if not len(others):
            return self.take(rows)
        incomplete = self.probability[others] < 1.0
        drawn = self.probability[others][incomplete] > 0.0
        share = float(drawn.mean()) if len(drawn) else 1.0
        return replace(self.take(rows), expected=(float(incomplete.mean()), share))


def drawn_whole(inclusion: FloatArray) -> bool:
    """Whether the rows of a class were drawn whole, by the entries' probabilities.

    Then all missing entries of a row were drawn or none, with the same probability for
    every row. Where columns were drawn from one by one, some row that misses two was
    drawn for one of them only, but for accidents among very few rows.
    """
    lost = inclusion < 1.0
    least = inclusion.min(axis=1, initial=1.0)
    most = inclusion.max(axis=1, where=lost, initial=0.0)
    if (most != least)[any_by_row(lost)].any():
        return False
    drawn = most[most > 0.0]
    return bool(np.ptp(drawn) <= ROUNDING) if len(drawn) else True


def drawn_together(inclusion: FloatArray) -> IntArray:
    """Columns with equal numbers were drawn together, by the entries' probabilities.

    All of them where rows were drawn whole; else those with the same probability in
    every row, as the indicators of one category. Of columns that were drawn from one by
    one, other rows are found.
    """
    if drawn_whole(inclusion):
        return np.zeros(inclusion.shape[1], dtype=np.intp)
    return np.unique(inclusion, axis=1, return_inverse=True)[1]


def row_probability(inclusion: FloatArray) -> FloatArray:
    """How likely rows of a class were to be there as a whole, by their entries."""
    least = inclusion.min(axis=1, initial=1.0)
    if drawn_whole(inclusion):
        return np.asarray(least)
    alone = inclusion[:, once(drawn_together(inclusion))]
    return np.where(least == 0.0, 0.0, alone.prod(axis=1))


def read_inclusion(inclusion: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """A copy of the inclusion probabilities of a table's rows or entries.

    Entries that couldn't be drawn are NaN, and 0 in the copy.
    """
    given = np.array(inclusion, dtype=np.float64)
    if given.shape not in (shape[:1], shape):
        raise ValueError(
            f"inclusion must have shape {shape[:1]}, for whole rows, or {shape}, for "
            f"single entries: got {given.shape}."
        )
    if given.ndim == 2:
        given[np.isnan(given)] = 0.0
    if not ((given >= 0.0) & (given <= 1.0)).all():
        raise ValueError(
            "inclusion must hold probabilities in [0, 1]: 1 where a value was "
            "observed, the share looked up where it was looked up, 0 where it is "
            "missing still."
        )
    return given


def refuse_misplaced(probability: FloatArray, lost: BoolArray) -> None:
    """Refuse rows or entries that are surely there and missing, or the reverse."""
    what = "row" if lost.ndim == 1 else "entry"
    for wrong, how in (
        ((probability == 1.0) & lost, f"1, and the {what} has NaN"),
        ((probability == 0.0) & ~lost, f"0, and the {what} has no NaN"),
    ):
        if wrong.any():
            first, count = tuple(np.argwhere(wrong)[0].tolist()), wrong.sum()
            raise ValueError(
                f"inclusion at {first} is {how} ({count} such). It is 1 for what was "
                "observed, and 0 for what wasn't and is missing still: take it from "
                "revealed.fill(X), with the table that it fills in."
            )


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
    base, answers = np.zeros(features.shape), features[drawn]
    explained = np.zeros(answers.shape)
    if len(answers) >= FEWEST and observed.sum() > others.shape[1] + FEWEST:
        # These take long to load, and most fits have no look-ups.
        from sklearn.impute import SimpleImputer
        from sklearn.linear_model import Ridge
        from sklearn.preprocessing import StandardScaler

        # Ridge predictions from the other columns and from which of them are missing.
        imputer = SimpleImputer(add_indicator=True, keep_empty_features=True)
        design = imputer.fit_transform(others)
        design = StandardScaler().fit(design[observed]).transform(design)
        ridge = Ridge(alpha=np.sqrt(observed.sum()), solver="cholesky")
        coef = ridge.fit(design[observed], features[observed]).coef_
        prediction = design @ np.reshape(coef, (-1, design.shape[1])).T
        # Each looked-up row's slope of features on predictions, by other folds' rows.
        predicted, slopes = prediction[drawn], np.empty(answers.shape)
        fold = np.arange(len(answers)) % FOLDS
        for place in range(FOLDS):
            p, f = predicted[fold != place], answers[fold != place]
            p, f = p - p.mean(axis=0), f - f.mean(axis=0)
            square = (p**2).sum(axis=0)
            slope = (p * f).sum(axis=0) / np.where(square > 0.0, square, 1.0)
            # Shrunk by the noise of the slope: what of its square isn't explained.
            noise = ((f - slope * p) ** 2).sum(axis=0) / max(len(f) - 2, 1)
            signal = slope**2 * square
            kept = np.maximum(1.0 - noise / np.where(signal > 0.0, signal, 1.0), 0.0)
            slopes[fold == place] = slope * kept
        explained = slopes * predicted
        helps = (answers - explained).var(axis=0) < answers.var(axis=0)
        explained = np.where(helps, explained, 0.0)
        base = helps * prediction * np.average(slopes, axis=0, weights=count[drawn])
    # 2. The mean of what they leave, and each looked-up row's part in it.
    rest = answers - explained
    mean = np.average(rest, axis=0, weights=count[drawn])
    terms[lost] = mean + base[lost]
    terms[drawn] += (n_lost / n_drawn) * (rest - mean)
    return terms
