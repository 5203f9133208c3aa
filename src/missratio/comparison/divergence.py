"""How far apart two samples' laws are, with an interval."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal

import numpy as np
from scipy.special import log_expit
from scipy.stats import norm
from sklearn.utils import check_scalar

from missratio._base.blocks import inverse_where_positive
from missratio._base.hints import check_real
from missratio._base.seeds import generator
from missratio._base.typing import FloatArray, IntArray
from missratio.comparison.samples import (
    ComparedSample,
    ConfidenceInterval,
    Inclusion,
    Samples,
    fit_some,
    read_samples,
)
from missratio.exceptions import DataError, Message, SmallSampleWarning
from missratio.missingness import (
    Missingness,
    missingness_check,
    warn_of_contradiction,
)
from missratio.ratio import FDivergenceRatio, MissingnessParameter, check_choice
from missratio.weights import effective_sample_size

# In units of the means' variances: enough for an optimum, too little for a bias.
RIDGE = 0.01
# Quantiles of the columns at which scores may bend, and the rows that a feature needs.
KNOTS = (0.1, 0.3, 0.5, 0.7, 0.9)
ROWS_PER_FEATURE = 10
# Effective rows of X0 that a mean of r, or of r², needs. With fewer, 95% intervals
# missed 18% (KL of N(2, 1) from N(0, 1), 300 rows each) and 25% (Pearson's divergence
# of N(1, 1), 500 rows each).
LEAST_CARRYING = 100.0

# Log ratios, or terms, at complete rows of the numerator and of the denominator.
Scores = tuple[FloatArray, FloatArray]
DivergenceName = Literal["kl", "js", "pearson"]
DIVERGENCES = ("kl", "js", "pearson")


@dataclass(frozen=True)
class DivergenceEstimate:
    """An estimated divergence of P1 from P0.

    Parameters
    ----------
    divergence : str
    estimate : float
        May be a little below zero where the laws are close. Where the ratio's model
        doesn't hold the truth, the divergence is at least this, up to chance.
    standard_error : float
    confidence_interval : ConfidenceInterval
        Its ends `low` and `high` at `confidence`, cut off at zero.
    confidence : float
    """

    divergence: str
    estimate: float
    standard_error: float
    confidence_interval: ConfidenceInterval
    confidence: float


def estimate_divergence(
    X1: Any,
    X0: Any,
    divergence: DivergenceName = "kl",
    estimator: Any = None,
    *,
    missingness: MissingnessParameter = None,
    inclusion: Inclusion = None,
    confidence: float = 0.95,
    cv: int = 5,
    random_state: Any = None,
) -> DivergenceEstimate:
    """Estimate D_f(P1‖P0) from samples of both, with an interval of given confidence.

    The estimate is Ê₁[f'(r̂)] − Ê₀[r̂f'(r̂) − f(r̂)] with weights 1/P(complete). It is
    largest, and equal to the divergence, at the true ratio, so that an error of r̂
    counts by its square only, upwards at rows that it was fitted to and downwards at
    others: the mean is taken of both, by a fit to all rows and by fits to the other
    folds. The interval is of a weighted mean. Two conditions for its confidence: the
    ratio's model holds the truth, up to errors that are small against n^(-1/4), and
    the laws differ. Where they don't, the estimate's error is no longer normal: test
    that with `ratio_test`. A model that is too simple gives a divergence that is too
    small: what it can't see isn't in the estimate, and "at least" is all that can be
    said. φ counts as known. Pearson's divergence, and KL of laws that are far apart,
    are means with long tails: a `SmallSampleWarning` says where fewer than 100
    effective rows of X0 carry them, so that the interval may miss the truth far too
    often.

    Parameters
    ----------
    X1, X0 : array-like or dataframe of shape (n_rows, n_columns)
        Rows of P1 and P0, NaN where a value is missing.
    divergence : {"kl", "js", "pearson"}, default="kl"
        E₁[log r]; the mean of both laws' KL divergences from their mixture (at most
        log 2); E₀[(r − 1)²].
    estimator : ratio estimator, default=None
        How the ratio is estimated; it is cloned. None is logistic regression
        (`FDivergenceRatio` with "js") on all columns and their squares, and, where
        there are ten rows for each feature and its log loss on folds held out is the
        smaller, on products of two columns or on bends of single ones as well; with a
        ridge penalty too small to matter where the samples overlap.
    missingness : mapping from {1, 0} to Missingness, "ignore" or None
        Why values are missing.
    inclusion : tuple of array-like or None, default=None
        Probabilities by design of X1's and X0's rows or entries.
    confidence : float, default=0.95
    cv : int, default=5
        The number of folds.
    random_state : int, RandomState, Generator or None, default=None
        For the folds.

    Returns
    -------
    DivergenceEstimate

    Raises
    ------
    DataError
        The samples don't overlap, so that KL and Pearson's divergence are infinite or
        can't be told.

    Warns
    -----
    SmallSampleWarning
        Few rows carry the estimate, or the samples don't overlap.

    Examples
    --------
    KL(N(1, 1)‖N(0, 1)) is a half.

    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> X1, X0 = rng.normal(1, 1, (2000, 1)), rng.normal(0, 1, (2000, 1))
    >>> found = mr.estimate_divergence(X1, X0, random_state=0)
    >>> low, high = found.confidence_interval
    >>> low < 0.5 < high
    True
    """
    check_choice("divergence", divergence, DIVERGENCES)
    check_real(
        confidence, "confidence", min_val=0.0, max_val=1.0, include_boundaries="neither"
    )
    check_scalar(cv, "cv", Integral, min_val=2)
    samples = read_samples(X1, X0, missingness, inclusion)
    for label, each in zip((1, 0), samples, strict=True):
        if isinstance(each.model, Missingness):
            checks = missingness_check(each.table, each.model, complete=True)
            against = [check for check in checks if check.verdict != "consistent"]
            warn_of_contradiction(tuple(against), label, 2)
    refuse_disjoint_columns(samples, divergence)
    rng = generator(random_state)
    folds = [_fold_numbers(each, cv, rng) for each in samples]
    models = [(samples, estimator, missingness)]
    if estimator is None:
        models = [(*model, None) for model in _logistics(samples)]
    crossed, model = min(
        ((_scores(*each, folds), each) for each in models),
        key=lambda pair: _logistic_loss(samples, pair[0]),
    )
    # Rows that a ratio was fitted to make it look better by as much as fresh rows make
    # it look worse: the mean of both is free of it, to first order.
    fitted = _scores(*model, None)
    refuse_separated((crossed, fitted) if estimator is None else (crossed,), divergence)
    pairs = zip(_terms(divergence, crossed), _terms(divergence, fitted), strict=True)
    value, variance = 0.0, 0.0
    for sign, sample, (one, two) in zip((1.0, -1.0), samples, pairs, strict=True):
        term, n_rows = (one + two) / 2.0, len(sample.rows)
        mean = sample.mean(term)
        value += sign * mean
        influences = sample.shares * (term - mean) * np.sqrt(n_rows / (n_rows - 1.0))
        variance += float(influences @ influences)
    if divergence != "js":
        # The terms of the others have no bound.
        warn_of_long_tail(fitted[1], samples[1], divergence, stacklevel=2)
    error = float(np.sqrt(variance))
    reach = float(norm.ppf(0.5 + confidence / 2.0)) * error
    interval = ConfidenceInterval(max(0.0, value - reach), max(0.0, value + reach))
    return DivergenceEstimate(divergence, value, error, interval, float(confidence))


def _logistics(samples: Samples) -> list[tuple[Samples, FDivergenceRatio]]:
    """Balanced logistic regressions on columns and what is made of them.

    They are hardly penalised, and have an optimum where KLIEP has none: where means of
    the numerator's features lie outside of the denominator's rows. Squares see means
    and spreads, products correlations, and bends |z − knot| other shapes of single
    columns. Each has the samples' features in the place of their columns, in units
    that a ridge treats alike: a column far from zero is all but a multiple of its
    square.
    """
    rows = np.concatenate([each.complete for each in samples])
    shares = np.concatenate([each.shares for each in samples])
    shares /= shares.sum()
    origin, unit = _spread(rows, shares)
    size = min(float(effective_sample_size(each.weights)) for each in samples)
    knots = np.quantile((rows - origin) / unit, KNOTS, axis=0)
    width = len(unit)
    pairs = np.triu_indices(width, k=1)

    def features(table: FloatArray, more: str) -> FloatArray:
        z = (table - origin) / unit
        parts = [z, z**2]
        if more == "products":
            parts.append(z[:, pairs[0]] * z[:, pairs[1]])
        elif more == "bends":
            parts += [np.abs(z - knot) for knot in knots]
        return np.concatenate(parts, axis=1)

    numbers = {"": 0.0, "bends": width * (2 + len(KNOTS))}
    if width > 1:
        numbers["products"] = width * (width + 3) / 2
    models = []
    for more in (m for m, n in numbers.items() if ROWS_PER_FEATURE * n <= size):
        _, deviation = _spread(features(rows, more), shares)
        one, two = (
            replace(
                each,
                given=(table := features(each.table, more)),
                table=table,
                inclusion=inverse_where_positive(each.weights),
            )
            for each in samples
        )
        l2 = RIDGE * deviation**2 / size
        models.append(((one, two), FDivergenceRatio("js", l2=l2)))
    return models


def _logistic_loss(samples: Samples, scores: Scores) -> float:
    """The balanced log loss of log ratios, which is least at the truth."""
    signed = zip((1.0, -1.0), scores, samples, strict=True)
    return -sum(sample.mean(log_expit(sign * score)) for sign, score, sample in signed)


def _spread(table: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weighted means and standard deviations, 1 where a column is constant."""
    mean = shares @ table
    deviation = np.sqrt(shares @ (table - mean) ** 2)
    constant = (table == table[0]).all(axis=0)
    return mean, np.where(constant | (deviation == 0.0), 1.0, deviation)


def _scores(
    samples: Samples, estimator: Any, missingness: Any, folds: list[IntArray] | None
) -> Scores:
    """Log r̂ at complete rows of both samples, from fits to the other folds.

    Without folds, from one fit to all rows.
    """
    if folds is None:
        every = [np.arange(len(each)) for each in samples]
        fitted = fit_some(samples, every, estimator, missingness)
        one, two = (fitted.predict_log_ratio(each.take(each.rows)) for each in samples)
        return one, two
    scores = [np.empty(len(each.rows)) for each in samples]
    for fold in range(int(folds[0].max()) + 1):
        kept = [np.flatnonzero(numbers != fold) for numbers in folds]
        fitted = fit_some(samples, kept, estimator, missingness)
        for each, sample, numbers in zip(scores, samples, folds, strict=True):
            held = numbers[sample.rows] == fold
            each[held] = fitted.predict_log_ratio(sample.take(sample.rows[held]))
    return scores[0], scores[1]


def _fold_numbers(
    sample: ComparedSample, n_folds: int, rng: np.random.Generator
) -> IntArray:
    """The fold of each row, with as many complete rows in every fold."""
    if len(sample.rows) < n_folds:
        raise ValueError(
            f"cv={n_folds} folds need as many complete rows of each sample; one has "
            f"{len(sample.rows)}. Lower cv, or bring more rows."
        )
    order = rng.permutation(len(sample))
    order = order[np.argsort(sample.weights[order] == 0.0, kind="stable")]
    numbers = np.empty(len(sample), dtype=np.intp)
    numbers[order] = np.arange(len(sample)) % n_folds
    return numbers


def _terms(divergence: str, scores: Scores) -> Scores:
    """f'(r) at numerator rows, and r f'(r) − f(r) at denominator rows, of log r."""
    s1, s0 = scores
    with np.errstate(over="ignore"):
        if divergence == "kl":
            terms = 1.0 + s1, np.exp(s0)
        elif divergence == "js":
            # Half of the f-divergence.
            half = np.log(2.0)
            terms = (half + log_expit(s1)) / 2.0, (-log_expit(-s0) - half) / 2.0
        else:
            terms = 2.0 * np.expm1(s1), np.expm1(2.0 * s0)
        squares = [term**2 for term in terms]
    for square, score, name in zip(squares, scores, ("X1", "X0"), strict=True):
        bad = ~np.isfinite(square) & ~np.isnan(score)
        if bad.any():
            raise DataError(
                Message(
                    f"The estimated log ratio is {score[bad][0]:.3g} at {bad.sum()} "
                    f"row(s) of {name}, and {divergence!r} is not finite there.",
                    remedies=(
                        "leave out estimator, or give one whose ratios are positive",
                        "bring more rows",
                    ),
                )
            )
    return terms


def refuse_disjoint_columns(samples: Samples, divergence: str) -> None:
    """Refuse columns of which one sample has one value, outside of the other's.

    For KL and Pearson's divergence also those of which X0 has one value, and X1 others
    besides.
    """
    X1, X0 = (each.complete for each in samples)
    for name, rows, others in (("X1", X1, X0), ("X0", X0, X1)):
        is_infinite = name == "X0" and divergence != "js"
        same = others == rows[0]
        shared = same.all(axis=0) if is_infinite else same.any(axis=0)
        bad = np.flatnonzero((rows == rows[0]).all(axis=0) & ~shared)
        if len(bad):
            raise DataError(
                Message(
                    "Column(s) {columns} have one value in all complete rows of "
                    f"{name}, and other values in the other sample: where the laws "
                    "don't overlap, KL and Pearson's divergence are infinite (and "
                    "Jensen and Shannon's is log 2 if nothing overlaps).",
                    columns=tuple(bad.tolist()),
                    remedies=("drop them", "bring more rows"),
                )
            )


def refuse_separated(
    estimates: tuple[Scores, ...], divergence: str, stacklevel: int = 2
) -> None:
    """Refuse samples that a ratio tells apart without error; warn of them for "js".

    Warns
    -----
    SmallSampleWarning
    """
    if not any(np.nanmin(s1) > np.nanmax(s0) for s1, s0 in estimates):
        return
    what = "KL and Pearson's divergence can't be told"
    if divergence == "js":
        what = "the interval, close to log 2, is too short"
    message = Message(
        "The estimated ratio tells X1 from X0 without error: the rows don't show where "
        f"the laws overlap, and {what}.",
        remedies=(
            "test the difference by ratio_test",
            "bring more rows",
            "use fewer columns",
        ),
    )
    if divergence != "js":
        raise DataError(message)
    warnings.warn(SmallSampleWarning(message), stacklevel=stacklevel + 1)


def warn_of_long_tail(
    scores: FloatArray, sample: ComparedSample, divergence: str, stacklevel: int
) -> None:
    """Warn where few denominator rows carry the mean of r (KL) or of r² (Pearson).

    Warns
    -----
    SmallSampleWarning
    """
    power = 2.0 if divergence == "pearson" else 1.0
    carried = np.log(sample.shares) + power * scores
    with np.errstate(under="ignore"):
        size = float(effective_sample_size(np.exp(carried - carried.max())))
    if size >= LEAST_CARRYING:
        return
    what = "the squared ratio" if power == 2.0 else "the ratio"
    message = Message(
        f"The interval can't be trusted: the mean of {what} rests on {size:.1f} "
        f"effective rows of X0 (Kish), fewer than {LEAST_CARRYING:.0f}. It may miss "
        "the truth far more often than its confidence says.",
        remedies=("take divergence='js', which is bounded", "bring more rows"),
    )
    warnings.warn(SmallSampleWarning(message), stacklevel=stacklevel + 1)
