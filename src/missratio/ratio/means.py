"""Terms of a class's means that other columns make less noisy.

A feature's mean over all rows is ΣWf/ΣW over those in which it is observed. What the
other columns of a row tell of it is added here, at no cost in bias: by predictions
where values were looked up by lot, and by regression elsewhere.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from missratio._base.blocks import inverse_where_positive
from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.missingness import joint_weight, looked_up_terms
from missratio.rows import ClassRows, only_columns, weighted_sums

FOLDS = 5


def adjust(rows: ClassRows, required: BoolArray) -> ClassRows:
    """A class's rows, where single entries are missing, with the terms of its means.

    Where entries were looked up, the other columns of all rows predict a value, and the
    rows looked up correct the prediction (`looked_up_terms`). Features of several
    columns have terms whose mean is ΣWf/ΣW.

    Elsewhere it is for normalize="regression". Given Z the entries go missing
    independently, and a weight W_j has mean one whatever the rest of the row:
    (W_j − 1)·g has mean zero for every g that entry j has no part in. Such controls are
    subtracted from Wf in the amount that makes its mean least noisy. For a feature of
    column j they are (W_j − 1)·{1, W_k z_k} over all other columns k; for one of two
    columns, (W_j − 1)·{1, W_k, W_k z_k, W_k z_k²} and the same with j and k exchanged;
    for one of more columns, its own weight less one.

    `required` are the columns that each feature needs.
    """
    drawn = rows.model is None and rows.known is not None
    plain = rows.normalize == "horvitz-thompson"
    plain |= rows.normalize == "hajek" and not drawn
    if plain or not (rows.by_entry and rows.corrects):
        return rows
    # φ's weights are written down, for all passes to come.
    weights = rows.weights()
    assert weights is not None
    rows = replace(rows, known=weights)
    # What is never observed has no mean, adjusted or not.
    rows.feature_sums(only_columns(required))
    block = rows.source.every(1).block()
    counts = block.sample_weight
    counts = np.ones(len(weights)) if counts is None else counts
    # Columns with equal numbers are there or missing together.
    owner = np.arange(weights.shape[1]) if rows.groups is None else rows.groups
    # Values are centred, so that no shift of a column matters.
    sums = weighted_sums(block.rows, weights, block.sample_weight)
    centre = sums.sums / np.where(sums.mass > 0.0, sums.mass, 1.0)
    values = np.where(weights > 0.0, block.rows - centre, 0.0)
    one = np.ones((len(weights), 1))
    partners = np.concatenate([one, weights * values], axis=1)
    adjusted = np.empty(block.features.shape)

    def work(group: IntArray) -> None:
        """The terms of features that need the same columns."""
        columns = np.flatnonzero(required[group[0]])
        weight = joint_weight(weights[:, columns], owner[columns])[:, None]
        seen, features = weight > 0.0, block.features[:, group]
        if drawn and len(columns) > 1:
            total = counts @ weight
            mean = counts @ (weight * np.where(seen, features, 0.0)) / total
            part = weight * (counts.sum() / total)
            adjusted[:, group] = mean + part * np.where(seen, features - mean, 0.0)
            return
        if drawn:
            column = int(columns[0])
            inclusion = inverse_where_positive(weights[:, column])
            others = np.delete(block.rows, column, axis=1)
            features = np.where(seen, features, np.nan)
            try:
                adjusted[:, group] = looked_up_terms(
                    features, inclusion, others, counts
                )
            except ValueError as error:
                name = column if rows.names is None else rows.names[column]
                raise ValueError(
                    f"Class {rows.label!r}, column {name!r}: {error}"
                ) from error
            return
        controls = weight - 1.0
        if len(columns) == 1:
            # A column is no partner of its own, nor is one that goes missing with it.
            controls = controls * partners
            controls[:, 1 + np.flatnonzero(owner == owner[columns[0]])] = 0.0
        elif len(columns) == 2 and owner[columns[0]] != owner[columns[1]]:
            sides = []
            for j, k in (columns, columns[::-1]):
                w, z = weights[:, [k]], values[:, [k]]
                side = np.concatenate([one, w, w * z, w * z**2], axis=1)
                sides.append((weights[:, [j]] - 1.0) * side)
            controls = np.concatenate(sides, axis=1)
        terms = weight * np.where(seen, features, 0.0)
        adjusted[:, group] = regressed(terms, controls, counts)

    _, numbers = np.unique(required, axis=0, return_inverse=True)
    groups = [np.flatnonzero(numbers == i) for i in range(int(numbers.max()) + 1)]
    with one_blas_thread(adjusted.size) as threads:
        share(work, groups, threads)
    return replace(rows, adjusted=adjusted)


def regressed(
    terms: FloatArray, controls: FloatArray, sample_weight: FloatArray
) -> FloatArray:
    """Terms less their regression on controls, which have mean zero.

    A row's slopes come from the folds that it is not in, so that its controls still
    have mean zero given them, and the adjustment has no bias.
    """
    target = terms - np.average(terms, axis=0, weights=sample_weight)
    folds = [slice(fold, None, FOLDS) for fold in range(FOLDS)]
    moments = []
    for fold in folds:
        design = sample_weight[fold, None] * controls[fold]
        moments.append((design.T @ controls[fold], design.T @ target[fold]))
    # As much ridge as the controls would find in noise.
    ridge = controls.shape[1] / (len(terms) * (1.0 - 1.0 / FOLDS))
    adjusted = terms.copy()
    for place, fold in enumerate(folds):
        others = moments[:place] + moments[place + 1 :]
        gram, product = (np.sum(parts, axis=0) for parts in zip(*others, strict=True))
        # What is always zero gets no slope.
        scale = np.sqrt(np.diagonal(gram))[:, None]
        scale = np.where(scale > 0.0, scale, 1.0)
        gram = gram / (scale * scale.T)
        np.fill_diagonal(gram, 1.0 + ridge)
        slope = np.linalg.solve(gram, product / scale) / scale
        adjusted[fold] -= controls[fold] @ slope
    return adjusted
