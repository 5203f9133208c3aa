"""What a table says of φ without a look-up: moment equations of shadow variables.

Whether entry j is missing depends on z_j alone, and entries go missing independently
given the row. Then every function h of the other columns, and of which of them are
missing, is a shadow variable (d'Haultfœuille 2010; Miao and Tchetgen Tchetgen 2016):

    E[(1{observed}/(1 − φ(z)) − 1) h] = 0.

With a logistic φ the weight is 1 + exp(α + βᵀz), so that an observed row adds
exp(α + βᵀz) h and a missing one −h. As many functions h as φ has parameters fix it:
these are its instruments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import leastsq

from missratio._base.storable import storable
from missratio._base.typing import FloatArray, IntArray
from missratio.learning.evidence import KEPT_ROWS, Coordinates, group_starts, one_hot

LARGEST_LOG_ODDS = 50.0
RIDGE = 1e-10
SMALLEST = 1e-300


@storable()
@dataclass(frozen=True)
class ShadowEvidence:
    """Sums of instruments over a feature's rows, by which φ's moments are computed.

    Parameters
    ----------
    values : ndarray of shape (n_columns, n_groups)
        Mean values of groups of observed rows.
    sums : ndarray of shape (n_groups, n_instruments)
        Of the instruments h over each group.
    squares : ndarray of shape (n_groups, n_instruments, n_instruments)
        Of h hᵀ.
    missing_sum : ndarray of shape (n_instruments,)
        Of h over missing rows.
    missing_square : ndarray of shape (n_instruments, n_instruments)
    counts : ndarray of shape (n_groups,)
        Rows of each group.
    coordinates : Coordinates
        Mean and standard deviation of the observed values.
    stated : tuple of two floats, or None
        The least and the largest slope that φ is stated to have, standardised; None
        where the moments tell.
    """

    values: FloatArray
    sums: FloatArray
    squares: FloatArray
    missing_sum: FloatArray
    missing_square: FloatArray
    counts: FloatArray
    coordinates: Coordinates
    stated: tuple[float, float] | None = None

    @classmethod
    def collect(
        cls,
        values: FloatArray,
        observed: IntArray,
        missing: IntArray,
        instruments: FloatArray,
        share: float = 1.0,
        stated: tuple[float, float] | None = None,
    ) -> ShadowEvidence:
        """Sum instruments over groups of neighbours, or over the levels of a category.

        Parameters
        ----------
        values : ndarray of shape (n_columns, n_observed)
            In the order of `observed`; of one column increasing.
        observed, missing : ndarray of int
            Rows.
        instruments : ndarray of shape (n_rows, n_instruments)
        share : float
            Moments and their spread are as if only this share of the rows had been
            there: where part of the missing values was looked up, that part of what the
            table says is known already.
        stated : tuple of two floats, or None
        """
        h, lost = instruments[observed], instruments[missing]
        size, coordinates = len(h), Coordinates.of(values)
        levels = len(values) > 1 and one_hot(values)
        if len(values) == 1 or levels:
            starts = group_starts(size)
            if levels:
                place = np.unique(values, axis=1, return_inverse=True)[1].ravel()
                order = np.argsort(place, kind="stable")
                starts = np.flatnonzero(np.diff(place[order], prepend=-1))
                values, h = values[:, order], h[order]
            counts = np.diff(starts, append=size).astype(np.float64)
            means = np.add.reduceat(values, starts, axis=1) / counts
            sums = np.add.reduceat(h, starts, axis=0)
            squares = np.add.reduceat(h[:, :, None] * h[:, None], starts, axis=0)
        else:
            # Whole rows have no neighbours: a few stand for all of them.
            starts = np.arange(0, size, max(1, size // KEPT_ROWS))
            counts = np.diff(starts, append=size).astype(np.float64)
            means, kept = values[:, starts], h[starts]
            sums = kept * counts[:, None]
            squares = kept[:, :, None] * kept[:, None] * counts[:, None, None]
        lost_sum, lost_square = share * lost.sum(axis=0), share * (lost.T @ lost)
        taught = share * sums, share * squares
        return cls(means, *taught, lost_sum, lost_square, counts, coordinates, stated)

    @property
    def design(self) -> FloatArray:
        """(1, z) of every group, z standardised: (n_parameters, n_groups)."""
        return self.coordinates.design(self.values)

    @property
    def prior(self) -> FloatArray:
        """Precision of standardised parameters; none of the intercept."""
        # The log-odds change by this much per standard deviation of the values, give or
        # take: a prior that matters only where the table says next to nothing.
        deviation = 1.4
        if self.stated is not None:
            # That of a uniform law over the range.
            deviation = max((self.stated[1] - self.stated[0]) / 12.0**0.5, 1e-3)
        return np.diag(np.append(0.0, np.full(len(self.values), deviation**-2.0)))

    def odds(self, points: FloatArray) -> FloatArray:
        """Odds of being missing in every group, at standardised (…, n_parameters)."""
        score = np.clip(points @ self.design, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
        return np.asarray(np.exp(score))

    def moments(self, odds: FloatArray) -> FloatArray:
        """Sums of the moment equations over all rows, (…, n_instruments)."""
        return np.asarray(odds @ self.sums - self.missing_sum)

    def spread(self, odds: FloatArray) -> FloatArray:
        """The covariance of those sums, (…, n_instruments, n_instruments)."""
        return np.tensordot(odds**2, self.squares, 1) + self.missing_square

    def spread_by_phi(self, odds: FloatArray) -> FloatArray:
        """The same, of missing rows what φ expects; few of them may show no spread."""
        return np.tensordot(odds * (1.0 + odds), self.squares, 1)

    def slopes(self, odds: FloatArray) -> FloatArray:
        """The moments' derivatives, (n_instruments, n_parameters)."""
        return np.asarray((self.sums.T * odds) @ self.design.T)

    def criterion(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The moments' distance from 0 at points, Anderson and Rubin's statistic.

        With the spread that φ expects at the point: that of a few missing rows rules
        the truth out too often. At the true parameters it is χ² in the limit, with a
        degree of freedom for each instrument, however weak these are. Where a few rows
        with large odds make most of the spread, that is estimated from as few: the
        statistic T is then about Hotelling's T² with ν degrees of freedom, Kish's
        number of rows by their part in the spread (30 at least), and
        (ν − k + 1)·log(1 + T/ν) has the same tail as a χ² (for two instruments
        exactly).

        Parameters
        ----------
        points : ndarray of shape (n_points, n_parameters)
            Standardised.

        Returns
        -------
        distance, freedom : ndarray of shape (n_points,)
            With Kish's number of rows.
        """
        odds = self.odds(points)
        moments, spread = self.moments(odds), self.spread_by_phi(odds)
        width = spread.shape[-1]
        # Far out one row outweighs all others, and the sum over rows has rank one.
        ridge = RIDGE * np.trace(spread, axis1=-2, axis2=-1)[:, None, None]
        inverse = np.linalg.inv(spread + ridge * np.eye(width))
        statistic = np.einsum("pi,pij,pj->p", moments, inverse, moments)
        # How many rows of equal part make the spread.
        flat = inverse.reshape(len(inverse), -1)
        parts = flat @ self.squares.reshape(len(self.sums), -1).T
        parts *= odds * (1.0 + odds)
        total = (parts**2) @ (1.0 / self.counts)
        kish = np.maximum(width**2 / np.maximum(total, SMALLEST), float(width))
        # With fewer degrees of freedom nothing would ever be ruled out.
        freedom = np.maximum(kish, 30.0)
        return (freedom - width + 1.0) * np.log1p(statistic / freedom), kish

    def information(self, theta: FloatArray) -> FloatArray:
        """JᵀΩ⁻¹J at standardised parameters: of the table alone, without the prior."""
        odds = self.odds(theta)
        slopes = self.slopes(odds)
        inverse = np.linalg.pinv(self.spread(odds), hermitian=True)
        return np.asarray(slopes.T @ inverse @ slopes)

    def equivalent_lookups(self, theta: FloatArray) -> FloatArray:
        """How many looked-up values would teach each slope as well as the table does.

        m values tell a slope with a variance of 1/(m·v) and more, v being the variance
        of missing values. `theta` is standardised.
        """
        odds = self.odds(theta)
        slopes = self.slopes(odds)
        inverse = np.linalg.pinv(self.spread_by_phi(odds), hermitian=True)
        # A tiny prior keeps what nothing is known of invertible.
        precision = slopes.T @ inverse @ slopes + 1e-6 * self.prior
        errors = np.diagonal(np.linalg.inv(precision))[1:]
        mass, values = odds * self.counts, self.design[1:]
        mean = values @ mass / mass.sum()
        variance = ((values - mean[:, None]) ** 2) @ mass / mass.sum()
        # What never varied where it was observed, but for rounding, teaches nothing of
        # a slope.
        varies = variance > 1e-12
        return np.where(varies, 1.0 / (errors * np.where(varies, variance, 1.0)), 0.0)


def solve_moments(
    evidence: ShadowEvidence,
    centre: FloatArray | None = None,
    precision: FloatArray | None = None,
) -> tuple[FloatArray, bool]:
    """Minimise ḡᵀΩ⁻¹ḡ + prior + (γ − γ_q)ᵀI_q(γ − γ_q) over standardised parameters.

    By Levenberg and Marquardt's steps. Ω is that of the estimate before, a few times
    over. γ_q and I_q are what looked-up values say. The result is θ, and whether the
    steps converged.
    """
    total, pull, theta = evidence.prior, *np.zeros((2, len(evidence.design)))
    if centre is not None and precision is not None:
        total, pull = total + precision, precision @ centre
    # The prior and what was looked up are one quadratic, about its own middle.
    values, vectors = np.linalg.eigh(total)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    middle = np.linalg.pinv(total, hermitian=True) @ pull
    # Where nothing depends on the values, the odds are the same everywhere.
    theta[0] = np.log(evidence.missing_sum[0] / evidence.sums[:, 0].sum())

    def residuals(point: FloatArray, whiten: FloatArray) -> FloatArray:
        moments = evidence.moments(evidence.odds(point))
        return np.concatenate([whiten @ moments, root @ (point - middle)])

    def slopes(point: FloatArray, whiten: FloatArray) -> FloatArray:
        by_theta = evidence.slopes(evidence.odds(point))
        return np.concatenate([whiten @ by_theta, root])

    converged, close = False, {"xtol": 1e-6, "ftol": 1e-9}
    for _ in range(4):
        spread, axes = np.linalg.eigh(evidence.spread(evidence.odds(theta)))
        known = spread > RIDGE * spread[-1]
        whiten = (axes[:, known] / np.sqrt(spread[known])).T
        before = theta
        theta, *_, status = leastsq(residuals, theta, (whiten,), slopes, **close)
        converged = 1 <= status <= 4
        if np.abs(theta - before).max() < 1e-4:
            break
    return theta, converged
