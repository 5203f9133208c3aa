"""The one accumulator: log-scaled weighted sums over rows that merge.

Every objective here is a function of weighted sums over rows, so every engine is a map
over blocks of rows and a merge: `accumulate` makes the sums of a block, `Sums.merged`
adds several of them, and merging blocks equals accumulating all their rows at once.

Arrays have a leading axis over problems, so that many small problems of one shape are
one batch; a single fit is a batch of one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from missratio._base.typing import FloatArray
from missratio.objective import Term

# With fewer features the square root of the mass costs more than it saves.
SYRK_FEATURES = 8

Link = Callable[[FloatArray], Term]


@dataclass(frozen=True, slots=True)
class Parameters:
    """Where the sums are taken: scores s = θᵀ(f − centre) + intercept.

    Parameters
    ----------
    coef : ndarray of shape (n_problems, n_features)
    centre : ndarray of shape (n_problems, n_features), or None
        Subtracted from the features, so that second moments are free of cancellation;
        None where the features are centred already.
    intercept : ndarray of shape (n_problems,), or None
        None where the model has none; the sums then leave it out as well.
    """

    coef: FloatArray
    centre: FloatArray | None
    intercept: FloatArray | None

    def score(self, features: FloatArray) -> FloatArray:
        """The scores of rows, of shape (n_problems, n_rows)."""
        coef = self.coef.astype(features.dtype, copy=False)
        score: FloatArray
        if features.shape[-1] == 1:
            # Elementwise, in whatever order the rows lie in memory.
            score = features[..., 0] * coef
        elif len(features) == 1:
            # It lets go of the interpreter lock, as in `_first_moments`.
            score = np.dot(features[0], coef[0])[None]
        else:
            score = (features @ coef[..., None])[..., 0]
        offset = 0.0 if self.intercept is None else self.intercept
        if self.centre is not None:
            offset = offset - np.vecdot(self.coef, self.centre)
        if np.ndim(offset):
            score += np.asarray(offset)[:, None]
        return score


@dataclass(frozen=True, slots=True)
class Sums:
    """Weighted sums of a term g over rows, times exp(−log_scale).

    With f̃ the centred features, and a last entry of 1 where there is an intercept:

    Parameters
    ----------
    log_scale : ndarray of shape (n_problems,)
    value : ndarray of shape (n_problems,)
        Σ w g(s).
    slope : ndarray of shape (n_problems, n_parameters)
        Σ w g'(s) f̃.
    curvature : ndarray of shape (n_problems, n_parameters, n_parameters), or None
        Σ w g''(s) f̃ f̃ᵀ, where asked for.
    lowest, highest : ndarray of shape (n_problems,)
        The extreme scores.
    """

    log_scale: FloatArray
    value: FloatArray
    slope: FloatArray
    curvature: FloatArray | None
    lowest: FloatArray
    highest: FloatArray

    @classmethod
    def merged(cls, parts: Sequence[Sums]) -> Sums:
        """The sums over all sets of rows."""
        scales = np.array([part.log_scale for part in parts])
        log_scale = scales.max(axis=0)
        factors = np.exp(scales - log_scale)
        curvature = None
        if all(part.curvature is not None for part in parts):
            curvature = _combine(factors, [part.curvature for part in parts])
        return cls(
            log_scale,
            _combine(factors, [part.value for part in parts]),
            _combine(factors, [part.slope for part in parts]),
            curvature,
            np.min([part.lowest for part in parts], axis=0),
            np.max([part.highest for part in parts], axis=0),
        )


def _combine(factors: FloatArray, arrays: Sequence[Any]) -> FloatArray:
    """Σ factor · array, a factor for each array and problem."""
    return np.asarray(np.einsum("kb,kb...->b...", factors, np.array(arrays)))


# A step tried too far may overflow: its sums aren't finite, and solvers turn back.
@np.errstate(over="ignore", invalid="ignore")
def accumulate(
    term_of: Link,
    features: FloatArray,
    weights: FloatArray | None,
    at: Parameters,
    *,
    second_order: bool,
) -> Sums:
    """Sum a term over a block of rows.

    Parameters
    ----------
    term_of : callable
        From scores to a `Term`.
    features : ndarray of shape (n_problems, n_rows, n_features)
        The basis features of the block.
    weights : ndarray of shape (n_problems, n_rows) or (1, n_rows), or None
        None stands for ones.
    at : Parameters
    second_order : bool
        Whether to sum the curvature, by far the dearest part.
    """
    if features.dtype == np.float32 and at.centre is not None:
        # Single precision can't spare the digits that an offset would take.
        features = features - at.centre[:, None, :].astype(np.float32)
        at = replace(at, centre=None)
    score = at.score(features)
    term = term_of(score)
    high = score.max(axis=-1) if term.highest is None else term.highest
    # Σ w g and Σ w g' f̃, and Σ w g'' f̃f̃ᵀ.
    mass = term.slope if weights is None else weights * term.slope
    value = total = mass.sum(axis=-1, dtype=np.float64)
    if term.value is not term.slope:
        values = term.value if weights is None else weights * term.value
        value = values.sum(axis=-1, dtype=np.float64)
    slope, curvature = _first_moments(mass, total, features, at), None
    if second_order:
        if term.curvature is not term.slope:
            mass = term.curvature if weights is None else weights * term.curvature
        centred = features if at.centre is None else features - at.centre[:, None, :]
        if features.shape[-1] == 1:
            second = np.vecdot(mass * centred[..., 0], centred[..., 0])[:, None, None]
        elif features.shape[-1] >= SYRK_FEATURES and mass.min() >= 0.0:
            # One operand on both sides, so that BLAS does half of the work (syrk), and
            # one array as large as the block: a second one took three times as long.
            root, out = np.sqrt(mass)[..., None], None if at.centre is None else centred
            scaled = np.multiply(centred, root, out=out)
            second = scaled.swapaxes(1, 2) @ scaled
        else:
            second = (centred * mass[..., None]).swapaxes(1, 2) @ centred
        curvature = np.asarray(second, dtype=np.float64)
        if at.intercept is not None:
            # Bordered by the first moments.
            total = mass.sum(axis=-1, dtype=np.float64)
            first = _first_moments(mass, total, features, at)
            curvature = np.concatenate([second, first[:, None, :-1]], axis=1)
            curvature = np.concatenate([curvature, first[:, :, None]], axis=2)
    scale = np.zeros(len(score)) + term.log_scale
    return Sums(scale, value, slope, curvature, score.min(axis=-1), high)


def _first_moments(
    mass: FloatArray, total: FloatArray, features: FloatArray, at: Parameters
) -> FloatArray:
    """Σ v f̃, and Σ v where there is an intercept."""
    first: FloatArray
    if features.shape[-1] == 1:
        first = np.vecdot(mass, features[..., 0])[:, None]
    elif len(mass) == len(features) == 1:
        # NumPy's matmul keeps the interpreter lock where a result has fewer than 500
        # numbers, so that threads wait for one another; its dot never does. On 16
        # threads a pass over rows of 50 columns takes a quarter of the time.
        first = np.asarray(np.dot(mass[0], features[0]))[None]
    else:
        first = (mass[:, None, :] @ features)[:, 0, :]
    if at.centre is not None:
        first = first - total[:, None] * at.centre
    if at.intercept is None:
        return first
    return np.concatenate([first, total[:, None]], axis=1)
