"""Values that are missing with one probability beyond a threshold."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from missratio._base.typing import FloatArray
from missratio.missingness.base import Missingness, common_width, read_only_parameter


@dataclass(frozen=True, eq=False, repr=False)
class StepMissingness(Missingness):
    """φ(x) = probability where direction·x > threshold, and 0 elsewhere.

    Rowwise, the row is missing as a whole. With ``rowwise=False`` entry j is missing
    with φ_j(x) = probability_j where direction_j x_j > threshold_j; scalars hold for
    every feature.

    Parameters
    ----------
    direction : array-like of shape (d,), or a scalar
        The direction along which values are missing; for a rowwise model a scalar means
        d = 1.
    threshold, probability : float, or with ``rowwise=False`` array-like of shape (d,)
        Where the step is and how high it is, 0 ≤ probability < 1.
    rowwise : bool, default=True
        Whether whole rows are missing, rather than single entries.

    Examples
    --------
    >>> from missratio.missingness import StepMissingness
    >>> phi = StepMissingness(direction=[0.0, 1.0], threshold=2.0, probability=0.9)
    >>> phi.missing_probability([[5.0, 1.0], [5.0, 3.0]])
    array([0. , 0.9])
    >>> phi = StepMissingness([1, -1], 0, 0.8, rowwise=False)
    >>> phi.missing_probability([[1.0, 1.0]])
    array([[0.8, 0. ]])
    """

    direction: ArrayLike
    threshold: ArrayLike
    probability: ArrayLike
    rowwise: bool = True

    def __post_init__(self) -> None:
        direction = read_only_parameter(self.direction, "direction")
        threshold = read_only_parameter(self.threshold, "threshold")
        probability = read_only_parameter(self.probability, "probability")
        if self.rowwise:
            direction = direction.reshape(-1)
            if threshold.ndim or probability.ndim:
                raise ValueError(
                    "A rowwise step has one threshold and one probability: got "
                    f"shapes {threshold.shape} and {probability.shape}. Set "
                    "rowwise=False for one step per feature."
                )
        for name, value in (("direction", direction), ("threshold", threshold)):
            if not np.isfinite(value).all():
                raise ValueError(f"{name} must be finite: got {value.tolist()}.")
        if not ((probability >= 0) & (probability < 1)).all():
            raise ValueError(
                f"probability must lie in [0, 1): got {probability.tolist()}. What is "
                "always missing can't be weighted back."
            )
        common_width(direction=direction, threshold=threshold, probability=probability)
        object.__setattr__(self, "direction", direction)
        object.__setattr__(self, "threshold", threshold)
        object.__setattr__(self, "probability", probability)

    @property
    def maximum(self) -> float:
        """The supremum ‖φ‖∞: the largest probability."""
        return float(np.max(self.probability))

    def column_maxima(self, n_columns: int) -> FloatArray:
        """The height of each column's step, or of the one for whole rows."""
        size = 1 if self.rowwise else n_columns
        return np.broadcast_to(np.asarray(self.probability), (size,))

    @property
    def n_features(self) -> int | None:
        """The number of features; None where every parameter is a scalar."""
        return common_width(
            direction=np.asarray(self.direction),
            threshold=np.asarray(self.threshold),
            probability=np.asarray(self.probability),
        )

    def _evaluate(self, X: FloatArray) -> FloatArray:
        direction = np.asarray(self.direction)
        with np.errstate(over="ignore", invalid="ignore"):
            projection = X @ direction if self.rowwise else X * direction
        beyond = projection > np.asarray(self.threshold)
        # Of a sum that overflows it is not known on which side it lies.
        return np.where(
            np.isfinite(projection), np.where(beyond, self.probability, 0.0), np.nan
        )
