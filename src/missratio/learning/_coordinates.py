"""Parameters of φ in standardised coordinates, where linear algebra is safe."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from missratio._base.typing import FloatArray


@dataclass(frozen=True)
class Coordinates:
    """α + βᵀz = a + bᵀ(z − centre)/scale: b = scale·β and a = α + βᵀcentre.

    Values may lie far from the origin compared with their spread. Covariances of (α, β)
    are then singular but for rounding, and those of (a, b) are not.

    Parameters
    ----------
    centre, scale : ndarray of shape (n_columns,)
    """

    centre: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, values: FloatArray, mass: FloatArray) -> Coordinates:
        """Mean and standard deviation of values of shape (n_columns, n_values)."""
        total = mass.sum()
        centre = values @ mass / total
        scale = np.sqrt(((values - centre[:, None]) ** 2) @ mass / total)
        return cls(centre, np.where(scale > 0.0, scale, 1.0))

    def design(self, values: FloatArray) -> FloatArray:
        """(1, z) with z standardised: (1 + n_columns, n_values)."""
        z = (values - self.centre[:, None]) / self.scale[:, None]
        return np.concatenate([np.ones((1, z.shape[1])), z])

    def standardise(self, theta: FloatArray) -> FloatArray:
        """(a, b) of (α, β), along the last axis."""
        slopes = theta[..., 1:]
        first = theta[..., :1] + (slopes * self.centre).sum(axis=-1, keepdims=True)
        return np.concatenate([first, slopes * self.scale], axis=-1)

    def restore(self, theta: FloatArray) -> FloatArray:
        """(α, β) of (a, b), along the last axis."""
        slopes = theta[..., 1:] / self.scale
        first = theta[..., :1] - (slopes * self.centre).sum(axis=-1, keepdims=True)
        return np.concatenate([first, slopes], axis=-1)

    def restore_covariance(self, covariance: FloatArray) -> FloatArray:
        """The covariance of (α, β) from that of (a, b)."""
        linear = self.restore(np.eye(len(covariance))).T
        return np.asarray(linear @ covariance @ linear.T)
