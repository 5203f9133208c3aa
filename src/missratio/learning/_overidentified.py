"""More equations than parameters: tests of the φ that a table taught.

Two functions h of the other columns fix φ_j. For every further one, E[m h] = 0 for the
residual m = 1{observed}/(1 − φ_j) − 1 tests what was assumed: that the log-odds are
linear in z_j, that they depend on nothing else, and that entries go missing
independently. Each equation is made orthogonal to those that φ was estimated from, so
that the estimate's error doesn't matter. Functions are bounded, and small where weights
are expected to be large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre
from scipy.special import ndtr
from scipy.stats import chi2

from missratio._base.typing import BoolArray, FloatArray, IntArray

LARGEST_LOG_ODDS = 50.0
RANKED = 4096
DEGREES = (2, 3, 4)


@dataclass(frozen=True, slots=True)
class Overidentification:
    """Two tests of the φ of one feature, or of whole rows.

    Parameters
    ----------
    form_statistic, form_p : float
        Polynomials of the predicted value's rank: χ² with three degrees of freedom.
    other_statistic, other_p : float
        Of the function of another column that fits worst, a normal deviate. Its p-value
        is Bonferroni's over all of them.
    other : int
        Which function that is: a place among the shadow features.
    """

    form_statistic: float
    form_p: float
    other_statistic: float
    other_p: float
    other: int


@dataclass(frozen=True, slots=True)
class Residuals:
    """The fitted φ of a feature, or of whole rows, row by row.

    Parameters
    ----------
    log_odds : ndarray of shape (n_observed,)
        Of being missing.
    values : ndarray of shape (n_columns, n_observed)
        Standardised: of the feature, or of the columns of whole rows.
    observed : ndarray of int
        The rows of those.
    instruments : ndarray of shape (n_rows, 1 + n_columns)
        That φ was estimated with; the first is positive.
    """

    log_odds: FloatArray
    values: FloatArray
    observed: IntArray
    instruments: FloatArray

    def orthogonal_test(
        self, functions: FloatArray, squares: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sums Σ m v f, what the estimate takes from them, and their variances.

        Parameters
        ----------
        functions, squares : ndarray of shape (n_rows, n_functions)
            f, and f².

        Returns
        -------
        sums, variances : ndarray of shape (n_functions,)
        projections : ndarray of shape (n_functions, 1 + n_columns)
            The instruments' part that is subtracted from each function.
        """
        odds = np.exp(np.minimum(self.log_odds, LARGEST_LOG_ODDS))
        h = self.instruments
        residual = np.full(len(h), -1.0)
        residual[self.observed] = odds
        # How the residual moves with φ's parameters.
        slopes = np.zeros((h.shape[1], len(h)))
        slopes[0, self.observed] = odds
        slopes[1:, self.observed] = odds * self.values
        own = np.linalg.inv(slopes @ h)
        v = h[:, 0]
        weighted = np.stack([v * residual, *(v * slopes), *(v * residual**2 * h.T)])
        products = weighted @ functions
        projections = products[1 : 1 + len(slopes)].T @ own
        sums = products[0] - projections @ (residual @ h)
        square = (h.T * residual**2) @ h
        variances = (v * residual) ** 2 @ squares
        variances -= 2.0 * (projections * products[1 + len(slopes) :].T).sum(axis=1)
        variances += ((projections @ square) * projections).sum(axis=1)
        return sums, np.maximum(variances, 0.0), projections

    def form(self, predicted: FloatArray) -> tuple[float, float]:
        """The test by polynomials of the prediction's rank."""
        kept = np.sort(predicted[:: max(1, len(predicted) // RANKED)])
        rank = np.interp(predicted, kept, np.linspace(-1.0, 1.0, len(kept)))
        basis = np.stack(
            [legendre.legval(rank, np.eye(1 + k)[k]) for k in DEGREES], axis=1
        )
        sums, _, projections = self.orthogonal_test(basis, basis**2)
        h = self.instruments
        residual = np.full(len(h), -1.0)
        residual[self.observed] = np.exp(np.minimum(self.log_odds, LARGEST_LOG_ODDS))
        rows = (h[:, :1] * basis - h @ projections.T) * residual[:, None]
        statistic = float(sums @ np.linalg.pinv(rows.T @ rows, hermitian=True) @ sums)
        return statistic, float(chi2.sf(statistic, len(DEGREES)))

    def others(
        self, functions: FloatArray, squares: FloatArray, usable: BoolArray
    ) -> tuple[float, float, int]:
        """The largest of the deviates of functions of other columns."""
        sums, variances, _ = self.orthogonal_test(functions, squares)
        tested = usable & (variances > 1e-9 * variances.max())
        if not tested.any():
            return 0.0, 1.0, 0
        deviates = np.where(tested, sums, 0.0) / np.sqrt(np.where(tested, variances, 1))
        place = int(np.argmax(np.abs(deviates)))
        statistic = float(deviates[place])
        p_value = 2.0 * float(ndtr(-abs(statistic))) * int(tested.sum())
        return statistic, min(1.0, p_value), place


def overidentification(
    residuals: Residuals,
    predicted: FloatArray,
    features: FloatArray,
    squares: FloatArray,
    usable: BoolArray,
) -> Overidentification:
    """Test the φ of one feature, or of whole rows.

    Parameters
    ----------
    residuals : Residuals
    predicted : ndarray of shape (n_rows,)
        The feature, or the log-odds of whole rows, predicted from the other columns.
    features, squares : ndarray of shape (n_rows, n_features)
        Functions of the other columns, and their squares.
    usable : ndarray of bool of shape (n_features,)
        Those that don't belong to the feature.
    """
    form_statistic, form_p = residuals.form(predicted)
    other_statistic, other_p, place = residuals.others(features, squares, usable)
    return Overidentification(form_statistic, form_p, other_statistic, other_p, place)
