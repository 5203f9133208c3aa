"""Inverse-probability weights 1{observed} / (1 − φ), and what they leave of a sample.

By the paper's Lemma main_prob, E g(Z) = E[1{X ≠ ∅} / (1 − φ(X)) g(X)]: weighted means
of what is observed are unbiased for means of what was there.
"""

from missratio.exceptions import WeightConcentrationWarning
from missratio.weights._inverse import (
    complete_row_weight_edges,
    complete_row_weights,
    inverse_probability_weights,
    row_weights,
    weight_edges,
)
from missratio.weights._size import (
    SampleSize,
    effective_sample_size,
    sample_size,
    warn_if_concentrated,
    worst_case_sample_size,
)

__all__ = [
    "SampleSize",
    "WeightConcentrationWarning",
    "complete_row_weight_edges",
    "complete_row_weights",
    "effective_sample_size",
    "inverse_probability_weights",
    "row_weights",
    "sample_size",
    "warn_if_concentrated",
    "weight_edges",
    "worst_case_sample_size",
]
