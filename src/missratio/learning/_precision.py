"""How precisely parameters of φ are known, from looked-up values and from the table."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from missratio._base.typing import FloatArray
from missratio.learning._coordinates import Coordinates
from missratio.learning._evidence import Evidence
from missratio.learning._shadow import ShadowEvidence


def fisher_information(
    evidence: Evidence, theta: FloatArray, coordinates: Coordinates
) -> FloatArray:
    """Σ p(1 − p) xxᵀ over known values, of standardised parameters.

    `theta` is standardised, its intercept not corrected.
    """
    return _information_and_expected(evidence, theta, coordinates)[0]


def _information_and_expected(
    evidence: Evidence, theta: FloatArray, coordinates: Coordinates
) -> tuple[FloatArray, float]:
    """Fisher's information, and how many revealed rows the fit expects."""
    design = coordinates.design(evidence.values)
    probability = expit(theta @ design)
    weights = evidence.mass * probability * (1.0 - probability)
    return (design * weights) @ design.T, float(probability @ evidence.mass)


def lookup_covariance(
    evidence: Evidence, theta: FloatArray, coordinates: Coordinates
) -> FloatArray:
    """The covariance of standardised parameters that looked-up values alone give.

    The inverse of Fisher's information, less what is certain about the intercept: of
    the n_missing missing values not a random number but m were revealed, which takes
    1/m − 1/n_missing from its variance.
    """
    information, expected = _information_and_expected(evidence, theta, coordinates)
    covariance = np.linalg.inv(information)
    rest = evidence.unrevealed_mass
    covariance[0, 0] -= 1.0 / expected - 1.0 / (expected + rest)
    return np.asarray(covariance)


def lookup_precision(
    evidence: Evidence, theta: FloatArray, coordinates: Coordinates
) -> FloatArray:
    """What looked-up values say beyond the table, of standardised parameters.

    Their law is that of the observed values tilted by e^(βᵀz): it says nothing of the
    intercept, which follows from how many are missing, and that the table knows as
    well. Only of the part of the missing values that was looked up, and that is left
    out of the table's account, they bring the intercept too.
    """
    full = np.linalg.inv(lookup_covariance(evidence, theta, coordinates))
    level = full[:, :1] @ full[:1] / full[0, 0]
    share = evidence.revealed_mass / evidence.n_missing
    return np.asarray(full - (1.0 - share) * level)


def standard_precision(
    evidence: Evidence, theta: FloatArray, shadow: ShadowEvidence
) -> FloatArray:
    """The information of table, looked-up values and prior together, standardised."""
    standard = shadow.coordinates.standardise(theta)
    at = standard.copy()
    at[0] -= evidence.sampling_offset
    precision = shadow.information(at) + shadow.prior
    if evidence.n_revealed:
        precision += lookup_precision(evidence, standard, shadow.coordinates)
    return precision


def standard_covariance(
    evidence: Evidence,
    theta: FloatArray,
    shadow: ShadowEvidence | None,
    coordinates: Coordinates,
) -> FloatArray:
    """The covariance of standardised parameters; arguments as of `covariance_of`."""
    if shadow is not None:
        return np.asarray(np.linalg.inv(standard_precision(evidence, theta, shadow)))
    return lookup_covariance(evidence, coordinates.standardise(theta), coordinates)


def covariance_of(
    evidence: Evidence, theta: FloatArray, shadow: ShadowEvidence | None = None
) -> FloatArray:
    """The covariance of estimated (α, β).

    Parameters
    ----------
    evidence : Evidence
    theta : ndarray of shape (n_parameters,)
        Where values were looked up, its intercept is not corrected.
    shadow : ShadowEvidence, optional
        What the table says by itself: its information and the prior's are added.
    """
    coordinates = (shadow or evidence).coordinates
    covariance = standard_covariance(evidence, theta, shadow, coordinates)
    return coordinates.restore_covariance(covariance)


def inverse_information(evidence: Evidence, theta: FloatArray) -> FloatArray:
    """The inverse of Fisher's information of (α, β), from looked-up values alone."""
    coordinates = evidence.coordinates
    standard = coordinates.standardise(theta)
    information = fisher_information(evidence, standard, coordinates)
    return coordinates.restore_covariance(np.asarray(np.linalg.inv(information)))
