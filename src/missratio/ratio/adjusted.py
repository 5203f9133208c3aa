"""Weighted means made less noisy by what the weights are known to average to.

Given Z the entries go missing independently, and a weight W_j has mean one whatever
the rest of the row: (W_j − 1)·g has mean zero for every g that entry j has no part in.
So such products can be subtracted from a weighted mean at no cost in bias, in the
amount that makes it least noisy: regression estimation, as in survey sampling.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from missratio._base.blocks import inverse_where_positive
from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.missingness import joint_weight, looked_up_terms
from missratio.rows import ClassRows, RowBlock, only_columns, weighted_sums

# A block of rows with its controls fits the processor's cache.
BLOCK_ROWS = 4096
FOLDS = 5


def adjust(rows: ClassRows, required: BoolArray) -> ClassRows:
    """Add to a class's rows the adjusted terms whose means estimate E f.

    Only where single entries are missing: whole rows leave nothing to regress on but
    the weights themselves, which Hájek's division does. Entries that were looked up are
    adjusted by predictions from the other columns (`looked_up_terms`), whatever
    normalisation but Horvitz and Thompson's; others where normalize="regression".

    There, a feature of column j is adjusted by (W_j − 1)·{1, W_k z_k} for all other
    columns k, one of two columns j and k by (W_j − 1)·{1, W_k, W_k z_k, W_k z_k²} and
    the same with j and k exchanged, and one of more columns by its own weight less one.

    Parameters
    ----------
    rows : ClassRows
    required : ndarray of bool of shape (n_features, n_columns)
        The columns that each feature needs.
    """
    weighing = rows.weighing
    if rows.normalize == "horvitz-thompson" or not (
        weighing.by_entry and weighing.corrects
    ):
        return rows
    if rows.weighing.by_design:
        return _by_draw(rows, required)
    if rows.normalize == "hajek":
        return rows
    # Observed at all? What is not has no mean, adjusted or not.
    rows.feature_sums(only_columns(required))
    rows = rows.known()
    block = rows.source.every(1).block()
    weights, features = rows.weights(), block.features
    assert weights is not None
    controls = _Controls(block, weights, rows.groups)
    adjusted = np.empty(features.shape)

    def work(group: IntArray) -> None:
        columns = np.flatnonzero(required[group[0]])
        groups = None if rows.groups is None else rows.groups[columns]
        weight = joint_weight(weights[:, columns], groups)[:, None]
        terms = weight * np.where(weight > 0.0, features[:, group], 0.0)
        adjusted[:, group] = controls.regress_out(terms, columns)

    with one_blas_thread(features.size) as threads:
        share(work, _same_columns(required), threads)
    return replace(rows, adjusted=adjusted)


def _by_draw(rows: ClassRows, required: BoolArray) -> ClassRows:
    """Terms of features whose columns were looked up by lot."""
    rows.feature_sums(only_columns(required))
    block = rows.source.every(1).block()
    weights = rows.weights()
    assert weights is not None
    inclusion = inverse_where_positive(weights)
    adjusted = np.empty(block.features.shape)
    for group in _same_columns(required):
        columns = np.flatnonzero(required[group[0]])
        seen = np.asarray((weights[:, columns] > 0.0).all(axis=1, keepdims=True))
        features = np.where(seen, block.features[:, group], np.nan)
        if len(columns) == 1:
            others = np.delete(block.rows, columns[0], axis=1)
            with about_column(rows, int(columns[0])):
                adjusted[:, group] = looked_up_terms(
                    features, inclusion[:, columns[0]], others, block.sample_weight
                )
            continue
        weight = joint_weight(
            weights[:, columns], None if rows.groups is None else rows.groups[columns]
        )
        adjusted[:, group] = _hajek_terms(features, weight, block.sample_weight)
    return replace(rows, adjusted=adjusted)


def _hajek_terms(
    features: FloatArray, weight: FloatArray, own: FloatArray | None
) -> FloatArray:
    """Terms whose mean is ΣWf/ΣW, and whose spread is that of this estimate."""
    own = np.ones(len(weight)) if own is None else own
    seen = weight > 0.0
    mean = np.average(features[seen], axis=0, weights=(own * weight)[seen])
    scale = own.sum() / float((own * weight).sum())
    terms = np.broadcast_to(mean, features.shape).copy()
    terms[seen] += scale * weight[seen, None] * (features[seen] - mean)
    return terms


@contextmanager
def about_column(rows: ClassRows, column: int) -> Iterator[None]:
    """Errors that say which class and column they are about."""
    try:
        yield
    except ValueError as error:
        name = column if rows.names is None else rows.names[column]
        raise ValueError(f"Class {rows.label!r}, column {name!r}: {error}") from error


def _same_columns(required: BoolArray) -> list[IntArray]:
    """Features in groups that need the same columns."""
    _, group = np.unique(required, axis=0, return_inverse=True)
    return [np.flatnonzero(group == i) for i in range(int(group.max()) + 1)]


class _Controls:
    """What has mean zero, from one class's weights and values."""

    def __init__(
        self, block: RowBlock, weights: FloatArray, groups: IntArray | None
    ) -> None:
        self.weights = weights
        self.groups = np.arange(weights.shape[1]) if groups is None else groups
        self.share = block.sample_weight
        found = weighted_sums(block.rows, weights, block.sample_weight)
        mean = found.sums / np.where(found.mass > 0.0, found.mass, 1.0)
        # Centred, so that no shift of a column matters.
        self.values = np.where(weights > 0.0, block.rows - mean, 0.0)
        self.partners = np.column_stack([np.ones(len(weights)), weights * self.values])

    def regress_out(self, terms: FloatArray, columns: IntArray) -> FloatArray:
        """Terms less their regression on the controls of some columns.

        A row's slopes come from the folds that it is not in, so that its control
        still has mean zero given them, and the adjustment has no bias.
        """
        centred = terms - np.average(terms, axis=0, weights=self.share)
        moments = [self._moments(centred, columns, fold) for fold in range(FOLDS)]
        gram = sum(gram for gram, _ in moments)
        product = sum(product for _, product in moments)
        n_fitted = len(terms) * (1.0 - 1.0 / FOLDS)
        adjusted = terms.copy()
        for fold, (own_gram, own_product) in enumerate(moments):
            slope = _slope(gram - own_gram, product - own_product, n_fitted)
            for rows in _blocks(len(terms), fold):
                adjusted[rows] -= self._block(columns, rows) @ slope
        return adjusted

    def _moments(
        self, terms: FloatArray, columns: IntArray, fold: int
    ) -> tuple[FloatArray, FloatArray]:
        """The controls' products with each other and with the terms, over a fold."""
        gram, product = np.zeros((1, 1)), np.zeros((1, 1))
        for rows in _blocks(len(terms), fold):
            controls, target = self._block(columns, rows), terms[rows]
            if self.share is not None:
                root = np.sqrt(self.share[rows, None])
                controls, target = root * controls, root * target
            gram = gram + controls.T @ controls
            product = product + controls.T @ target
        return gram, product

    def _block(self, columns: IntArray, rows: slice) -> FloatArray:
        """The controls of a feature of these columns, for some rows."""
        weights = self.weights[rows][:, columns]
        if len(columns) > 2 or len(np.unique(self.groups[columns])) < len(columns):
            return joint_weight(weights, self.groups[columns])[:, None] - 1.0
        if len(columns) == 1:
            controls = (weights - 1.0) * self.partners[rows]
            # A column is no partner of its own, nor one that goes missing with it; what
            # is always zero gets no slope.
            own = self.groups == self.groups[columns[0]]
            controls[:, 1 + np.flatnonzero(own)] = 0.0
            return controls
        found = []
        for j, k in ((0, 1), (1, 0)):
            value = self.values[rows, columns[k]]
            powers = np.column_stack([np.ones_like(value), value, value**2])
            excess = weights[:, [j]] - 1.0
            found += [excess, excess * weights[:, [k]] * powers]
        return np.concatenate(found, axis=1)


def _slope(gram: FloatArray, product: FloatArray, n_rows: float) -> FloatArray:
    """Regression slopes, with as much ridge as the controls would find in noise."""
    scale = np.sqrt(np.diagonal(gram))
    scale = np.where(scale > 0.0, scale, 1.0)
    scaled = gram / np.outer(scale, scale)
    np.fill_diagonal(scaled, 1.0 + len(gram) / n_rows)
    slope: FloatArray = np.linalg.solve(scaled, product / scale[:, None])
    return slope / scale[:, None]


def _blocks(n_rows: int, fold: int) -> list[slice]:
    """Rows at a fixed stride, in blocks."""
    step = BLOCK_ROWS * FOLDS
    return [
        slice(start + fold, min(start + step, n_rows), FOLDS)
        for start in range(0, n_rows, step)
    ]
