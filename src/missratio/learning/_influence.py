"""How a learned φ depends on the rows that it was learned from.

Write p for the probability that a known row was missing: with ρ = m/n_missing of the
missing rows revealed, p = ρφ/(ρφ + 1 − φ). An observed row moves the parameters by
−I⁻¹ p x, x = (1, z), and a missing one, which need not be among the revealed, by
I⁻¹(1 − p) x where it is and by its share in ρ. The latter aren't kept row by row: given
its value, a missing row moves nothing else, and how much all of them move the
parameters follows from the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from missratio._base.blocks import any_by_row
from missratio._base.reading import as_numeric_array, float_blocks
from missratio._base.typing import BoolArray, FloatArray
from missratio.learning._evidence import KEPT_ROWS, Evidence
from missratio.learning._learned import LearnedMissingness
from missratio.learning._precision import inverse_information

# Sums over the same values in another order differ by no more than this, relatively.
SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Influence:
    """What rows do to learned parameters, feature by feature, or of whole rows.

    Parameters
    ----------
    revealed_share : ndarray of shape (n_groups,)
        ρ; 1 where nothing is missing.
    information_inverse : ndarray of shape (n_groups, width, width)
        I⁻¹, without the correction of the intercept; 0 where nothing is missing.
    variance : ndarray of shape (n_groups, width, width)
        What the movements of all rows add up to. Those of observed rows are summed as
        they are, so that together with another sum over the same rows it makes a
        positive semi-definite matrix; those of missing rows come from the model.
    """

    revealed_share: FloatArray
    information_inverse: FloatArray
    variance: FloatArray


def influence_of(model: LearnedMissingness) -> Influence:
    """Measure what rows do to a learned model."""
    width = model.covariance.shape[-1]
    share = np.ones(len(model.evidence))
    inverse, variance = np.zeros((2, len(model.evidence), width, width))
    for j, evidence in enumerate(model.evidence):
        if evidence is None:
            continue
        theta = model._thetas[j]
        size = len(theta)
        share[j] = np.exp(evidence.sampling_offset)
        if not evidence.n_revealed:
            # Of the table alone: how its rows move φ isn't kept.
            continue
        inverse[j, :size, :size] = inverse_information(evidence, theta)
        variance[j, :size, :size] = _variance(evidence, theta)
    return Influence(share, inverse, variance)


def _variance(evidence: Evidence, theta: FloatArray) -> FloatArray:
    design = np.concatenate([np.ones((1, len(evidence.mass))), evidence.values])
    probability = expit(theta @ design)
    # Missing rows: a known row is one of them with probability p.
    squares = probability * (1.0 - probability) ** 2
    squares[evidence.n_revealed :] += probability[evidence.n_revealed :] ** 2
    inverse = inverse_information(evidence, theta)
    meat = (design * (evidence.mass * squares)) @ design.T
    variance = inverse @ meat @ inverse
    # That m were revealed, no more and no less, is no chance.
    variance[0, 0] -= 1.0 / evidence.revealed_mass - 1.0 / evidence.n_missing
    return np.asarray(variance)


def was_learned_from(model: LearnedMissingness, X: Any) -> bool:
    """Whether a model was learned from these rows of a class, by their counts and sums.

    Whole rows, where they are very many, must come in the same order as well. What was
    learned from the table itself counts as learned elsewhere: how its rows move φ isn't
    kept, and φ's covariance is added as if it were independent.
    """
    if any(shadow is not None for shadow in model.shadow):
        return False
    table = as_numeric_array(X)
    groups = [e for e in model.evidence if e is not None]
    if not groups or table.shape[1] != len(model.feature_names):
        return not groups
    observed, sums, sizes = _totals(model, table)
    for j, evidence in enumerate(model.evidence):
        count = float(observed[j if not model.rowwise else 0])
        n_missing = 0 if evidence is None else evidence.n_missing
        if len(table) - count != n_missing:
            return False
        if evidence is not None and len(evidence.values):
            kept = slice(evidence.n_revealed, None)
            total = evidence.values[:, kept] @ evidence.mass[kept]
            where = slice(None) if model.rowwise else slice(j, j + 1)
            if (np.abs(sums[where] - total) > SAME * sizes[where]).any():
                return False
    return True


def _totals(
    model: LearnedMissingness, table: Any
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """How often each column is observed, and the sums of its values and their sizes."""
    count, sums, sizes = np.zeros((3, table.shape[1]))
    stride, factor = 1, 1.0
    if model.rowwise and model.evidence[0] is not None:
        stride, factor = _thinning(model.evidence[0])
    seen = 0
    for _, block in float_blocks(table, table):
        known: BoolArray = ~np.isnan(block)
        values = np.where(known, block, 0.0)
        count += known.sum(axis=0)
        if stride > 1:
            rows = values[any_by_row(known)]
            values, seen = rows[-seen % stride :: stride], seen + len(rows)
        sums += factor * values.sum(axis=0)
        sizes += factor * np.abs(values).sum(axis=0)
    return count, sums, sizes


def _thinning(evidence: Evidence) -> tuple[int, float]:
    """Which observed rows were kept, every so many, and what each stands for."""
    counts = evidence.mass[evidence.n_revealed :]
    n_observed = round(counts.sum())
    if len(evidence.values) == 1 or n_observed <= 2 * KEPT_ROWS:
        return 1, 1.0
    return n_observed // KEPT_ROWS, float(counts[0])
