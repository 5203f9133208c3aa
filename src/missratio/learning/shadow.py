"""What a table says of φ without a look-up: moment equations of shadow variables.

Instruments: functions of the other columns that say most about a column's φ.

E[m | u] = 0 holds for the residual m = 1{observed}/(1 − φ) − 1 of the right φ, given
the other columns u. The most efficient functions of u are then E[∂m | u] / Var(m | u) =
E[φ·(1, z) | u] / E[φ/(1 − φ) | u]. They are computed as if z were normal about a
prediction from u. Any others are as valid: a poor prediction widens errors and
biases nothing.

Whether entry j is missing depends on z_j alone, and entries go missing independently
given the row. Then every function h of the other columns, and of which of them are
missing, is a shadow variable (d'Haultfœuille 2010; Miao and Tchetgen Tchetgen 2016):

    E[(1{observed}/(1 − φ(z)) − 1) h] = 0.

With a logistic φ the weight is 1 + exp(α + βᵀz), so that an observed row adds
exp(α + βᵀz) h and a missing one −h. As many functions h as φ has parameters fix it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import expit, ndtri

from missratio._base.storable import storable
from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.learning.evidence import KEPT_ROWS, Coordinates, group_starts


@dataclass(frozen=True, slots=True)
class ScoredTable:
    """Standardised values and masks, and how each column's values are ordered.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns)
        Of mean 0 and unit variance where observed, 0 where missing or where the column
        is constant.
    missing : ndarray of bool of shape (n_rows, n_columns)
    order : list of ndarray of int
        For each column its observed rows, by increasing value.
    """

    values: FloatArray
    missing: BoolArray
    order: list[IntArray]

    @classmethod
    def of(cls, table: FloatArray) -> ScoredTable:
        """Standardise every column; none of them is missing throughout."""
        missing: BoolArray = np.isnan(table)
        values = np.zeros(table.shape, order="F")

        def standardise(j: int) -> IntArray:
            rows = np.flatnonzero(~missing[:, j])
            column = table[rows, j]
            centred = column - column.mean()
            values[rows, j] = centred / (float(centred.std()) or 1.0)
            return rows[np.argsort(column, kind="stable")]

        with one_blas_thread(table.size) as threads:
            order = share(standardise, range(table.shape[1]), threads)
        return cls(values, missing, order)

    def prediction_features(self) -> FloatArray:
        """What columns are predicted from: values, centred masks and a constant."""
        return self._with_masks(self.values)

    def test_features(self) -> FloatArray:
        """Functions for tests: the same, of columns as normal scores.

        Quantiles of the normal law at the ranks of values have light tails, and spread
        what a skewed column crowds together. Ties share the middle of their ranks.
        """
        scores = np.zeros(self.values.shape, order="F")

        def score(j: int) -> None:
            order = self.order[j]
            scores[order, j] = _normal_scores(self.values[order, j])

        with one_blas_thread(scores.size) as threads:
            share(score, range(len(self.order)), threads)
        return self._with_masks(scores)

    def _with_masks(self, values: FloatArray) -> FloatArray:
        masks = self.missing - self.missing.mean(axis=0)
        return np.concatenate([values, masks, np.ones((len(masks), 1))], axis=1)


def _normal_scores(ordered: FloatArray) -> FloatArray:
    """Normal scores of values in increasing order, standardised; 0 if all are equal."""
    starts = np.flatnonzero(np.diff(ordered, prepend=-np.inf) > 0.0)
    ends = np.append(starts[1:], len(ordered))
    scores = ndtri((starts + ends) / (2.0 * len(ordered)))
    counts = ends - starts
    scores = scores - scores @ counts / len(ordered)
    spread = np.sqrt((scores**2) @ counts / len(ordered))
    return np.repeat(scores / (spread or 1.0), counts)


FOLDS = 5
# More rows hardly change a prediction from a hundred columns.
FIT_ROWS = 20_000
PENALTIES = 10.0 ** np.arange(-4.0, 1.5, 0.5)
GRID = 129
NODES, NODE_WEIGHTS = hermegauss(9)
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()
LARGEST_EXPECTED = 20.0


def predict_columns(
    features: FloatArray,
    table: ScoredTable,
    columns: IntArray,
    usable: BoolArray,
    fit_rows: int = FIT_ROWS,
) -> FloatArray:
    """Cross-fitted ridge predictions of columns from features, their own among these.

    A row's prediction comes from a fit to other rows, so that it is a function of the
    row's features alone. The penalty is chosen by generalised cross-validation.

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_features)
        The first are the table's columns, as they are to be predicted.
    table : ScoredTable
    columns : ndarray of int
        Those of the table that are to be predicted.
    usable : ndarray of bool of shape (n_predicted, n_features)
        What each may be predicted from.
    fit_rows : int
        So many rows, about, are fitted to.

    Returns
    -------
    ndarray of shape (n_rows, n_predicted)
    """

    def coefficients(i: int) -> FloatArray:
        used = np.flatnonzero(usable[i])
        result = np.zeros((FOLDS, features.shape[1]))
        result[:, used] = _ridge_by_fold(
            features, table, int(columns[i]), used, fit_rows
        )
        return result

    with one_blas_thread(features.size) as threads:
        found = np.stack(share(coefficients, range(len(columns)), threads))
    predicted = np.empty((len(features), len(columns)), order="F")
    for fold in range(FOLDS):
        predicted[fold::FOLDS] = features[fold::FOLDS] @ found[:, fold].T
    # Beyond what was observed there are no predictions but accidents.
    for i, j in enumerate(columns):
        ends = features[table.order[j][[0, -1]], j]
        np.clip(predicted[:, i], *ends, out=predicted[:, i])
    return predicted


def _ridge_by_fold(
    features: FloatArray,
    table: ScoredTable,
    column: int,
    used: IntArray,
    fit_rows: int,
) -> FloatArray:
    """Coefficients for each fold, from the rows of the others: (FOLDS, n_used)."""
    rows = np.flatnonzero(~table.missing[:, column])
    rows = rows[:: max(1, len(rows) // fit_rows)]
    grams, products = [], []
    squares = 0.0
    for fold in range(FOLDS):
        own = rows[rows % FOLDS == fold]
        design = features[own][:, used]
        target = features[own, column]
        grams.append(design.T @ design)
        products.append(design.T @ target)
        squares += float(target @ target)
    gram, product = np.sum(grams, axis=0), np.sum(products, axis=0)
    penalty = _penalty(gram, product, squares, len(rows)) * np.eye(len(used))
    return np.stack(
        [
            np.linalg.solve(gram - own + penalty, product - without)
            for own, without in zip(grams, products, strict=True)
        ]
    )


def _penalty(
    gram: FloatArray, product: FloatArray, squares: float, n_rows: int
) -> float:
    """The penalty with the least generalised cross-validation error."""
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 0.0)
    along = (vectors.T @ product) ** 2
    penalties = PENALTIES[:, None] * n_rows
    shrunk = values + penalties
    residual = squares - (along * (values + 2.0 * penalties) / shrunk**2).sum(axis=1)
    freedom = (values / shrunk).sum(axis=1)
    error = residual / np.maximum(1.0 - freedom / n_rows, 1e-3) ** 2
    return float(penalties[np.argmin(error), 0])


def efficient_instruments(
    predicted: FloatArray,
    deviation: float,
    ends: tuple[float, float],
    theta: FloatArray,
) -> FloatArray:
    """E[φ·(1, z) | u] / E[φ/(1 − φ) | u] at predictions, of shape (n_rows, 2).

    Parameters
    ----------
    predicted : ndarray of shape (n_rows,)
        A standardised column, predicted from u.
    deviation : float
        The standard deviation of values about their prediction.
    ends : tuple of float
        The least and the largest observed value.
    theta : ndarray of shape (2,)
        A first estimate of φ's standardised parameters.
    """
    grid = np.linspace(predicted.min(), predicted.max(), GRID)
    z = np.clip(grid[:, None] + deviation * NODES, *ends)
    log_odds = np.clip(theta[0] + theta[1] * z, -LARGEST_EXPECTED, LARGEST_EXPECTED)
    probability = expit(log_odds)
    variance = np.exp(log_odds) @ NODE_WEIGHTS
    means = (probability @ NODE_WEIGHTS, (probability * z) @ NODE_WEIGHTS)
    return np.stack(
        [np.interp(predicted, grid, mean / variance) for mean in means], axis=1
    )


# The log-odds change by this much per standard deviation of the values, give or take:
# a prior that matters only where the table says next to nothing.
PRIOR_DEVIATION = 1.4
LARGEST_LOG_ODDS = 50.0
RIDGE = 1e-10
# Below so many degrees of freedom nothing would ever be ruled out.
LEAST_FREEDOM = 30.0
MAX_STEPS = 100
ROUNDS = 4


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
    """

    values: FloatArray
    sums: FloatArray
    squares: FloatArray
    missing_sum: FloatArray
    missing_square: FloatArray
    counts: FloatArray
    coordinates: Coordinates

    @classmethod
    def collect(
        cls,
        values: FloatArray,
        observed: IntArray,
        missing: IntArray,
        instruments: FloatArray,
    ) -> ShadowEvidence:
        """Sum instruments over groups of neighbours.

        Parameters
        ----------
        values : ndarray of shape (n_columns, n_observed)
            In the order of `observed`; of one column increasing.
        observed, missing : ndarray of int
            Rows.
        instruments : ndarray of shape (n_rows, n_instruments)
        """
        h = instruments[observed]
        lost = instruments[missing]
        if len(values) == 1:
            starts = group_starts(values.shape[1])
        else:
            # Whole rows have no neighbours: a few stand for all of them.
            stride = max(1, values.shape[1] // KEPT_ROWS)
            starts = np.arange(0, values.shape[1], stride)
        counts = np.diff(starts, append=values.shape[1]).astype(np.float64)
        if len(values) == 1:
            means = np.add.reduceat(values, starts, axis=1) / counts
            sums = np.add.reduceat(h, starts, axis=0)
            squares = np.add.reduceat(h[:, :, None] * h[:, None], starts, axis=0)
        else:
            means, kept = values[:, starts], h[starts]
            sums = kept * counts[:, None]
            squares = kept[:, :, None] * kept[:, None] * counts[:, None, None]
        coordinates = Coordinates.of(values, np.ones(values.shape[1]))
        return cls(
            means, sums, squares, lost.sum(axis=0), lost.T @ lost, counts, coordinates
        )

    def thinned(self, share: float) -> ShadowEvidence:
        """As if only this share of the rows had been there: Ω and the moments shrink.

        Where part of the missing values was looked up, that part of what the table
        says is known already.
        """
        return replace(
            self,
            sums=share * self.sums,
            squares=share * self.squares,
            missing_sum=share * self.missing_sum,
            missing_square=share * self.missing_square,
        )

    @property
    def design(self) -> FloatArray:
        """(1, z) of every group, z standardised: (n_parameters, n_groups)."""
        return self.coordinates.design(self.values)

    @property
    def prior(self) -> FloatArray:
        """Precision of standardised parameters; none of the intercept."""
        return np.diag(np.append(0.0, np.full(len(self.values), PRIOR_DEVIATION**-2.0)))

    def odds(self, points: FloatArray) -> FloatArray:
        """Odds of being missing in every group, at standardised (…, n_parameters)."""
        score = np.clip(points @ self.design, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
        return np.asarray(np.exp(score))

    def moments(self, odds: FloatArray) -> FloatArray:
        """Sums of the moment equations over all rows, (…, n_instruments)."""
        return np.asarray(odds @ self.sums - self.missing_sum)

    def spread(self, odds: FloatArray) -> FloatArray:
        """The covariance of those sums, (…, n_instruments, n_instruments)."""
        size = len(self.missing_sum)
        squares = (odds**2) @ self.squares.reshape(len(self.sums), -1)
        return np.asarray(
            squares.reshape(*odds.shape[:-1], size, size) + self.missing_square
        )

    def slopes(self, odds: FloatArray) -> FloatArray:
        """The moments' derivatives, (n_instruments, n_parameters)."""
        return np.asarray((self.sums.T * odds) @ self.design.T)

    def criterion(self, points: FloatArray) -> FloatArray:
        """The moments' distance from 0 at points, Anderson and Rubin's statistic.

        At the true parameters it is χ² in the limit, with a degree of freedom for each
        instrument, however weak these are. Where a few rows with large odds make most
        of the moments' spread, that is estimated from as few: the statistic T is then
        about Hotelling's T² with ν degrees of freedom, Kish's number of rows by their
        part in the spread (30 at least), and (ν − k + 1)·log(1 + T/ν) has the same tail
        as a χ² (for two instruments exactly).

        Parameters
        ----------
        points : ndarray of shape (n_points, n_parameters)
            Standardised.
        """
        odds = self.odds(points)
        moments = self.moments(odds)
        inverse = self._inverse(odds)
        statistic = np.einsum("pi,pij,pj->p", moments, inverse, moments)
        freedom = np.maximum(self._freedom(odds, inverse), LEAST_FREEDOM)
        width = inverse.shape[-1]
        return np.asarray((freedom - width + 1.0) * np.log1p(statistic / freedom))

    def freedom(self, points: FloatArray) -> FloatArray:
        """From how many rows of equal part the moments' spread is known, at points."""
        odds = self.odds(points)
        return self._freedom(odds, self._inverse(odds))

    def _inverse(self, odds: FloatArray) -> FloatArray:
        """That of the moments' spread."""
        spread = self.spread(odds)
        # Far out one row outweighs all others, and the sum over rows has rank one.
        ridge = RIDGE * np.trace(spread, axis1=-2, axis2=-1)[:, None, None]
        return np.asarray(np.linalg.inv(spread + ridge * np.eye(spread.shape[-1])))

    def _freedom(self, odds: FloatArray, inverse: FloatArray) -> FloatArray:
        """From how many rows of equal part the spread is estimated, at points."""
        size = inverse.shape[-1]
        flat = inverse.reshape(len(inverse), -1)
        parts = odds**2 * (flat @ self.squares.reshape(len(self.sums), -1).T)
        lost = flat @ self.missing_square.ravel()
        n_lost = self.missing_sum[0] ** 2 / max(self.missing_square[0, 0], 1e-300)
        found = (parts**2) @ (1.0 / self.counts) + lost**2 / max(n_lost, 1.0)
        return np.asarray(np.maximum(size**2 / np.maximum(found, 1e-300), float(size)))

    def information(self, theta: FloatArray) -> FloatArray:
        """JᵀΩ⁻¹J at standardised parameters: of the table alone, without the prior."""
        odds = self.odds(theta)
        slopes = self.slopes(odds)
        inverse = np.linalg.pinv(self.spread(odds), hermitian=True)
        return np.asarray(slopes.T @ inverse @ slopes)


@dataclass(frozen=True, slots=True)
class Lookups:
    """What looked-up values say: a normal law of the standardised parameters."""

    centre: FloatArray
    precision: FloatArray


def solve_moments(
    evidence: ShadowEvidence, lookups: Lookups | None = None
) -> tuple[FloatArray, bool]:
    """Minimise ḡᵀΩ⁻¹ḡ + prior + (γ − γ_q)ᵀI_q(γ − γ_q) over standardised parameters.

    By Gauss–Newton steps, damped as Levenberg and Marquardt do. Ω is that of the
    estimate before, a few times over.

    Returns
    -------
    theta : ndarray of shape (n_parameters,)
    """
    width = len(evidence.design)
    precision, pull = evidence.prior, np.zeros(width)
    if lookups is not None:
        precision = precision + lookups.precision
        pull = lookups.precision @ lookups.centre
    theta = np.zeros(width)
    # Where nothing depends on the values, the odds are the same everywhere.
    theta[0] = np.log(evidence.missing_sum[0] / evidence.sums[:, 0].sum())
    converged = False
    for _ in range(ROUNDS):
        spread = evidence.spread(evidence.odds(theta))
        inverse = np.asarray(np.linalg.pinv(spread, hermitian=True))
        before = theta
        theta, converged = _descend(evidence, theta, inverse, precision, pull)
        if np.abs(theta - before).max() < 1e-4:
            break
    return theta, converged


def _descend(
    evidence: ShadowEvidence,
    theta: FloatArray,
    inverse: FloatArray,
    precision: FloatArray,
    pull: FloatArray,
) -> tuple[FloatArray, bool]:
    def value(point: FloatArray, moments: FloatArray) -> float:
        return float(
            moments @ inverse @ moments + point @ precision @ point - 2.0 * pull @ point
        )

    odds = evidence.odds(theta)
    moments = evidence.moments(odds)
    current, damping = value(theta, moments), 1e-6
    for _ in range(MAX_STEPS):
        # 1. The linearised problem, its diagonal raised by the damping.
        slopes = evidence.slopes(odds)
        gradient = slopes.T @ inverse @ moments + precision @ theta - pull
        curvature = slopes.T @ inverse @ slopes + precision
        raised = curvature + damping * np.diag(np.diag(curvature))
        step = np.linalg.solve(raised, gradient)
        # 2. A step that doesn't lead down is tried again, shorter.
        tried = theta - step
        new_odds = evidence.odds(tried)
        new_moments = evidence.moments(new_odds)
        new = value(tried, new_moments)
        if not new <= current + 1e-12 * (1.0 + abs(current)):
            damping *= 10.0
            if damping > 1e12:
                break
            continue
        # 3. Done where the step would be a tiny part of a standard error.
        small = float(step @ curvature @ step) < 1e-8
        theta, odds, moments, current = tried, new_odds, new_moments, new
        damping = max(damping / 10.0, 1e-9)
        if small:
            return theta, True
    # Where the moments can't all be met, the last steps are slow: a hundredth of a
    # standard error is close enough.
    slopes = evidence.slopes(odds)
    gradient = slopes.T @ inverse @ moments + precision @ theta - pull
    curvature = slopes.T @ inverse @ slopes + precision
    return theta, float(gradient @ np.linalg.solve(curvature, gradient)) < 1e-4
