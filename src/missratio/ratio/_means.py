"""Weighted means of basis features, each over all rows where it is observed."""

from __future__ import annotations

import numpy as np

from missratio._threads import one_blas_thread, share
from missratio._typing import BoolArray, FloatArray
from missratio.engine import BLOCK_ELEMENTS
from missratio.ratio._rows import ClassRows


def feature_weights(
    entry_weights: FloatArray, required_columns: BoolArray
) -> FloatArray:
    """Each basis feature's weight: the product over the columns that it needs.

    Parameters
    ----------
    entry_weights : ndarray of shape (n_rows, n_columns)
    required_columns : ndarray of bool of shape (n_features, n_columns)

    Returns
    -------
    ndarray of shape (n_rows, n_features)
    """
    if is_identity(required_columns):
        return entry_weights
    weights = np.ones((len(entry_weights), len(required_columns)))
    for j, needed in enumerate(required_columns):
        for column in np.flatnonzero(needed):
            weights[:, j] *= entry_weights[:, column]
    return weights


def is_identity(required_columns: BoolArray) -> bool:
    """Whether each feature needs its own column alone, in order."""
    n_features, n_columns = required_columns.shape
    return n_features == n_columns and np.array_equal(
        required_columns, np.eye(n_features, dtype=bool)
    )


def weighted_mean(
    features: FloatArray, rows: ClassRows, required_columns: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """E f by weighted means, each feature over all rows where it is observed.

    Returns
    -------
    mean : ndarray of shape (n_features,)
        Weighted means.
    mass : ndarray of shape (n_features,) or (1,)
        The means of the weights.
    weights : ndarray of shape (n_rows,) or (n_rows, n_features), or None
        The inverse-probability weights of each row or feature.
    """
    if rows.weights is not None and rows.weights.ndim == 2:
        return _feature_means(features, rows, required_columns)
    combined = rows.combined(rows.weights)
    total = rows.total(combined)
    mean = _row_mean(features, rows, combined) / total
    mass = np.ones(1) if combined is None else combined.sum() / total
    return mean, mass, rows.weights


def _feature_means(
    features: FloatArray, rows: ClassRows, required_columns: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The same where each feature has weights of its own, in blocks of rows."""
    assert rows.weights is not None
    entries, own, n_features = rows.weights, rows.sample_weight, len(required_columns)
    weights = entries
    single = is_identity(required_columns)
    if not single:
        weights = np.empty((rows.n_rows, n_features))
    length = max(1, BLOCK_ELEMENTS // max(n_features, 1))

    def block_sums(start: int) -> FloatArray:
        block = slice(start, min(start + length, rows.n_rows))
        if not single:
            weights[block] = feature_weights(entries[block], required_columns)
        weight = weights[block]
        combined = weight if own is None else weight * own[block, None]
        values = np.where(combined > 0.0, rows.block(features, block), 0.0)
        return np.array([combined.sum(axis=0), np.einsum("ij,ij->j", combined, values)])

    with one_blas_thread(rows.n_rows * n_features) as threads:
        starts = range(0, rows.n_rows, length)
        mass, sums = np.sum(share(block_sums, starts, threads), axis=0)
    if rows.adjusted is not None:
        # Terms of all rows: a fold may do without any in which a feature is observed.
        mean = np.average(rows.adjusted, axis=0, weights=own)
        return mean, np.ones(n_features), weights
    check_observed(mass > 0.0, rows)
    total = mass if rows.normalize != "horvitz-thompson" else rows.total(None)
    return sums / total, mass / total, weights


def check_observed(observed: BoolArray, rows: ClassRows) -> None:
    """Refuse features that no row of a class has."""
    if not observed.all():
        never = np.flatnonzero(~observed)[:10].tolist()
        raise ValueError(
            f"Class {rows.label!r}: basis feature(s) {never} are never observed. "
            "Drop them, or bring rows in which they are."
        )


def _row_mean(
    features: FloatArray, rows: ClassRows, weights: FloatArray | None
) -> FloatArray:
    """Σ w f over a class's rows, in blocks, missing rows left out."""
    if weights is None and rows.sums is not None:
        return rows.sums
    length = max(1, BLOCK_ELEMENTS // max(features.shape[1], 1))

    def block_sum(start: int) -> FloatArray:
        stop = min(start + length, rows.n_rows)
        block = rows.block(features, slice(start, stop))
        if weights is None:
            return (np.ones(len(block), dtype=block.dtype) @ block).astype(np.float64)
        weight = weights[start:stop]
        if not weight.all():
            block, weight = block[weight > 0.0], weight[weight > 0.0]
        return weight @ block

    starts = range(0, rows.n_rows, length)
    if len(starts) == 1:
        return block_sum(0)
    with one_blas_thread(rows.n_rows * features.shape[1]) as threads:
        total: FloatArray = np.sum(share(block_sum, starts, threads), axis=0)
    return total
