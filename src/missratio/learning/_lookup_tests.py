"""Tests of a φ that was learned from looked-up values.

Values that were looked up follow the observed ones, tilted by the odds e^(βᵀz), if φ is
logistic in them and depends on nothing else. Score tests (Rao 1948) of the logistic
regression of "was missing" on the value: does a further function f of the row help? Its
score Σ (y − p) f is made orthogonal to those of the parameters, so that their error
doesn't matter; f is bounded, so that the normal law holds with few values.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import legendre
from scipy.special import expit
from scipy.stats import chi2
from scipy.stats import t as student

from missratio._base.typing import BoolArray, FloatArray
from missratio.learning._evidence import Evidence

DEGREES = (2, 3, 4)
LARGEST_LOG_ODDS = 50.0
SAME = 1e-10


def form_test(evidence: Evidence, theta: FloatArray) -> tuple[float, float, float]:
    """Test whether polynomials of the value's rank help: χ², three degrees of freedom.

    The statistic, p, and by what factor the odds must be wrong to explain it.

    Parameters
    ----------
    evidence : Evidence
        With values looked up, and a slope.
    theta : ndarray of shape (n_parameters,)
        Its intercept not corrected. Whole rows are ranked by their log-odds.
    """
    score = theta[1:] @ evidence.values
    rank = ranks_in_laws(score, evidence).sum(axis=0) - 1.0
    basis = np.stack([legendre.legval(rank, np.eye(1 + k)[k]) for k in DEGREES])
    design = evidence.coordinates.design(evidence.values)
    sums, rest, weight = _scores(evidence, theta, design, basis)
    covariance = (rest * weight) @ rest.T
    worst = np.linalg.pinv(covariance, hermitian=True) @ sums
    statistic = float(worst @ sums)
    rank_of = int(np.linalg.matrix_rank(covariance, hermitian=True))
    p_value = float(chi2.sf(statistic, max(rank_of, 1)))
    return statistic, p_value, _factor(statistic, weight, worst @ rest)


def _factor(total: float, weight: FloatArray, function: FloatArray) -> float:
    """By what factor odds must be wrong, to first order, to explain a score."""
    reach = float(weight @ np.abs(function))
    return float(np.exp(min(abs(total) / reach, LARGEST_LOG_ODDS))) if reach else np.inf


def ranks_in_laws(score: FloatArray, evidence: Evidence) -> FloatArray:
    """Where known values lie among observed and among missing ones, in [0, 1].

    Ties lie in the middle. The law of missing values is the fit's: the observed ones,
    tilted by their odds.

    Returns
    -------
    ndarray of shape (2, n_known)
    """
    first = evidence.n_revealed
    observed, mass = score[first:], evidence.mass[first:]
    order = np.argsort(observed, kind="stable")
    placed = observed[order]
    tilted = mass * np.exp(observed - observed.max())
    # Means of equal values differ from these by rounding.
    slack = SAME * (1.0 + np.abs(score).max())
    ranks = np.zeros((2, len(score)))
    for i, law in enumerate((mass, tilted)):
        sums = np.concatenate([[0.0], np.cumsum(law[order])]) / law.sum()
        below = np.searchsorted(placed, score - slack, side="left")
        up_to = np.searchsorted(placed, score + slack, side="right")
        ranks[i] = (sums[below] + sums[up_to]) / 2.0
    return ranks


def _scores(
    evidence: Evidence, theta: FloatArray, design: FloatArray, functions: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scores of functions (n_functions, n_known) less φ's part of them; p(1 − p)."""
    probability = expit(theta[0] + theta[1:] @ evidence.values)
    weight = evidence.mass * probability * (1.0 - probability)
    information = (design * weight) @ design.T
    projection = ((functions * weight) @ design.T) @ np.linalg.inv(information)
    rest = functions - projection @ design
    sums = rest @ (evidence.mass * (evidence.outcome - probability))
    return sums, rest, weight


def others_test(
    evidence: Evidence, theta: FloatArray, functions: FloatArray, usable: BoolArray
) -> tuple[float, float, int, float]:
    """Test whether a function of another column helps, by the one that helps most.

    Parameters
    ----------
    evidence : Evidence
    theta : ndarray of shape (n_parameters,)
    functions : ndarray of shape (n_known, n_functions)
        In the order of the evidence, of known values one by one.
    usable : ndarray of bool of shape (n_functions,)

    Returns
    -------
    statistic : float
        A normal deviate, judged by Student's law with as many degrees of freedom as
        values looked up, less one.
    p_value : float
        Bonferroni's over all functions.
    place : int
        Of the function.
    factor : float
        By what factor the odds must be wrong to explain it.
    """
    probability = expit(theta[0] + theta[1:] @ evidence.values)
    weight = evidence.mass * probability * (1.0 - probability)
    design = evidence.coordinates.design(evidence.values)
    information = (design * weight) @ design.T
    products = (design * weight) @ functions
    projection = np.linalg.solve(information, products)
    residual = evidence.mass * (evidence.outcome - probability)
    sums = residual @ functions - (residual @ design.T) @ projection
    whole = weight @ functions**2
    variances = whole - (products * projection).sum(axis=0)
    tested = usable & (variances > 1e-6 * whole) & (whole > 0.0)
    if not tested.any():
        return 0.0, 1.0, 0, 1.0
    deviates = np.where(tested, sums, 0.0) / np.sqrt(np.where(tested, variances, 1.0))
    place = int(np.argmax(np.abs(deviates)))
    statistic = float(deviates[place])
    # Far out in the tails, where the worst of many functions is judged, few values are
    # not yet normal: Student's law is on the safe side.
    freedom = max(evidence.revealed_mass - 1.0, 1.0)
    p_value = 2.0 * float(student.sf(abs(statistic), freedom)) * int(tested.sum())
    rest = functions[:, place] - projection[:, place] @ design
    factor = _factor(float(sums[place]), weight, rest)
    return statistic, min(1.0, p_value), place, factor


def carrying_share(evidence: Evidence, theta: FloatArray) -> float:
    """The smallest share of observed rows that carries half of all weight.

    `theta` has its intercept corrected.
    """
    first = evidence.n_revealed
    mass = evidence.mass[first:]
    log_odds = theta[0] + theta[1:] @ evidence.values[:, first:]
    weight = np.logaddexp(0.0, np.minimum(log_odds, LARGEST_LOG_ODDS))
    weight = np.exp(weight - weight.max())
    order = np.argsort(-weight)
    carried = np.cumsum((mass * weight)[order])
    place = int(np.searchsorted(carried, carried[-1] / 2.0))
    before = carried[place - 1] if place else 0.0
    rows = np.cumsum(mass[order])[place - 1] if place else 0.0
    rows += (carried[-1] / 2.0 - before) / weight[order][place]
    return float(rows / mass.sum())
