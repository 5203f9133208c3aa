"""Two samples compared: how far apart they are, and whether they differ at all.

Rows or entries of either sample may be missing: complete rows weigh 1/P(complete).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import log_expit
from scipy.stats import norm
from sklearn.base import clone
from sklearn.utils import check_scalar

from missratio._base.blocks import take_rows
from missratio._base.hints import check_choice, check_real, generator
from missratio._base.reading import column_names, read_floats
from missratio._base.threads import one_blas_thread
from missratio._base.typing import FloatArray, IntArray
from missratio.exceptions import DataError, Message, SmallSampleWarning
from missratio.missingness import (
    Missingness,
    missingness_check,
    warn_of_contradiction,
)
from missratio.ratio import (
    Bumps,
    FDivergenceRatio,
    MissingnessParameter,
    Two,
    WeightedTable,
    check_columns,
    gaussian,
    stack_samples,
)
from missratio.rows import ClassModel, check_missingness, class_model
from missratio.weights import complete_row_weights, effective_sample_size

__all__ = ["DivergenceEstimate", "RatioTest", "estimate_divergence", "ratio_test"]

DivergenceName = Literal["kl", "js", "pearson"]
TestMethod = Literal["auto", "permutation", "bootstrap"]

# Of a divergence. In units of the means' variances: enough for an optimum, too little
# for a bias.
PENALTY = 0.01
# Quantiles of the columns at which scores may bend, and the rows that a feature needs.
KNOTS = (0.1, 0.3, 0.5, 0.7, 0.9)
ROWS_PER_FEATURE = 10
# Effective rows of X0 that a mean of r, or of r², needs. With fewer, 95% intervals
# missed 18% (KL of N(2, 1) from N(0, 1), 300 rows each) and 25% (Pearson's divergence
# of N(1, 1), 500 rows each).
LEAST_CARRYING = 100.0

# Of the test. Of the bumps' mean variance, added to all of them.
RIDGE = 0.1
N_CENTERS, N_WIDTHS = 100, 5
# Relative to the largest divergence: rounding of kernel means stays far below it.
ROUNDING = 1e-9
# A divergence that varies by less than this over resamples doesn't vary.
CONSTANT = 1e-6
# Resamples whose means are taken at once, in numbers.
BLOCK_ELEMENTS = 4_000_000
# Of its sample's weight, that one row may have. With step φ at 0.9 and shares of 0.1 to
# 0.17 the test rejected 3% to 5% of the time at 1%.
LARGEST_SHARE = 0.05
# Of the rows, that the weights must add up to.
LEAST_MASS = 2.0 / 3.0


@dataclass(frozen=True)
class ComparedSample:
    """Rows of one sample.

    Parameters
    ----------
    given : array-like or dataframe of shape (n_rows, n_columns)
        As the user has them.
    table : ndarray of shape (n_rows, n_columns)
    weights : ndarray of shape (n_rows,)
        1/P(complete), and 0 for a row with a missing value.
    model : Missingness, "ignore" or None
        Why values are missing, for these columns.
    """

    given: Any
    table: FloatArray
    weights: FloatArray
    model: ClassModel

    @cached_property
    def rows(self) -> IntArray:
        """The places of complete rows."""
        return np.flatnonzero(self.weights)

    @cached_property
    def complete(self) -> FloatArray:
        """Complete rows."""
        return self.table[self.rows]

    @cached_property
    def shares(self) -> FloatArray:
        """The weights of complete rows, of sum one."""
        return np.asarray(self.weights[self.rows] / self.weights.sum())


Samples = tuple[ComparedSample, ComparedSample]


def read_samples(X1: Any, X0: Any, missingness: Any) -> Samples:
    """The numerator's and the denominator's sample, checked."""
    check_missingness(missingness, [0, 1])
    samples = []
    for X, label in ((X1, 1), (X0, 0)):
        model, table = (
            class_model(missingness, label, column_names(X)),
            read_floats(X, f"X{label}"),
        )
        if not len(table):
            raise ValueError(f"X{label} has no rows.")
        weights = complete_row_weights(table, model)
        if (complete := np.count_nonzero(weights)) < 2:
            raise ValueError(
                f"X{label} has {complete} complete row(s) of {len(table)}; at least 2 "
                "are needed."
            )
        samples.append(ComparedSample(X, table, weights, model))
    check_columns(X1, X0)
    return samples[0], samples[1]


class ConfidenceInterval(NamedTuple):
    """The ends of an interval."""

    low: float
    high: float


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
    confidence : float, default=0.95
    cv : int, default=5
        The number of folds.
    random_state : int, RandomState, Generator or None, default=None
        For the folds.

    Returns
    -------
    DivergenceEstimate
        The estimate, its standard error and its interval.

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
    check_choice("divergence", divergence, ("kl", "js", "pearson"))
    limits = {"min_val": 0.0, "max_val": 1.0, "include_boundaries": "neither"}
    check_real(confidence, "confidence", **limits)
    check_scalar(cv, "cv", Integral, min_val=2)
    samples = read_samples(X1, X0, missingness)
    for label, sample in zip((1, 0), samples, strict=True):
        if isinstance(sample.model, Missingness):
            checks = missingness_check(sample.table, sample.model, complete=True)
            warn_of_contradiction(checks, label, 2)
    # 1. A column that has one value in one sample, and never in the other, tells them
    #    apart. KL and Pearson's divergence are infinite even if X1 alone has others.
    for name, one, two in (("X1", *samples), ("X0", *samples[::-1])):
        same = two.complete == one.complete[0]
        infinite = name == "X0" and divergence != "js"
        shared = same.all(axis=0) if infinite else same.any(axis=0)
        constant = (one.complete == one.complete[0]).all(axis=0)
        if (constant & ~shared).any():
            raise DataError(
                Message(
                    "Column(s) {columns} have one value in all complete rows of "
                    f"{name}, and other values in the other sample: where the laws "
                    "don't overlap, KL and Pearson's divergence are infinite (and "
                    "Jensen and Shannon's is log 2 if nothing overlaps).",
                    columns=tuple(np.flatnonzero(constant & ~shared).tolist()),
                    remedies=("drop them", "bring more rows"),
                )
            )
    # 2. The folds have as many complete rows each.
    rng, folds = generator(random_state), []
    for sample in samples:
        if len(sample.rows) < cv:
            raise ValueError(
                f"cv={cv} folds need as many complete rows of each sample; one has "
                f"{len(sample.rows)}. Lower cv, or bring more rows."
            )
        order = rng.permutation(len(sample.table))
        order = order[np.argsort(sample.weights[order] == 0.0, kind="stable")]
        folds.append(np.empty(len(order), dtype=np.intp))
        folds[-1][order] = np.arange(len(order)) % cv
    # 3. Log ratios, by the model of the least balanced log loss on folds held out. Rows
    #    that a ratio was fitted to make it look better by as much as fresh rows make it
    #    look worse: the mean of both is free of it, to first order.
    if estimator is None:
        models = [*_logistics(samples)]
    else:
        ratio = clone(estimator)
        if missingness is not None:
            ratio.set_params(missingness=missingness)
        models = [(samples, ratio)]

    def log_loss(scores: Sequence[FloatArray]) -> float:
        signed = zip((1.0, -1.0), scores, samples, strict=True)
        return -float(
            sum(each.shares @ log_expit(s * score) for s, score, each in signed)
        )

    weighed = estimator is None
    tried = [(_scores(*model, folds, cv, weighed), model) for model in models]
    crossed, model = min(tried, key=lambda pair: log_loss(pair[0]))
    fitted = _scores(*model, [0 * fold_of for fold_of in folds], 1, weighed)
    shown = (crossed, fitted) if estimator is None else (crossed,)
    if any(np.nanmin(s1) > np.nanmax(s0) for s1, s0 in shown):
        what = "KL and Pearson's divergence can't be told"
        if divergence == "js":
            what = "the interval, close to log 2, is too short"
        message = Message(
            "The estimated ratio tells X1 from X0 without error: the rows don't show "
            f"where the laws overlap, and {what}.",
            remedies=(
                "test the difference by ratio_test",
                "bring more rows",
                "use fewer columns",
            ),
        )
        if divergence != "js":
            raise DataError(message)
        warnings.warn(SmallSampleWarning(message), stacklevel=2)
    # 4. The estimate, a difference of weighted means, and its error.
    pairs = zip(_terms(divergence, crossed), _terms(divergence, fitted), strict=True)
    value, variance = 0.0, 0.0
    for sign, sample, pair in zip((1.0, -1.0), samples, pairs, strict=True):
        term, n_rows = sum(pair) / 2.0, len(sample.rows)
        mean = float(sample.shares @ term)
        value += sign * mean
        influences = sample.shares * (term - mean) * np.sqrt(n_rows / (n_rows - 1.0))
        variance += float(influences @ influences)
    if divergence != "js":
        # The terms of the others have no bound, and few rows may carry their means.
        power, what = (
            (2.0, "squared ratio") if divergence == "pearson" else (1.0, "ratio")
        )
        carried = np.log(samples[1].shares) + power * fitted[1]
        with np.errstate(under="ignore"):
            size = float(effective_sample_size(np.exp(carried - carried.max())))
        if size < LEAST_CARRYING:
            message = Message(
                f"The interval can't be trusted: the mean of the {what} rests on "
                f"{size:.1f} effective rows of X0 (Kish), fewer than "
                f"{LEAST_CARRYING:.0f}. It may miss the truth far more often than its "
                "confidence says.",
                remedies=("take divergence='js', which is bounded", "bring more rows"),
            )
            warnings.warn(SmallSampleWarning(message), stacklevel=2)
    error = float(np.sqrt(variance))
    reach = float(norm.ppf(0.5 + confidence / 2.0)) * error
    interval = ConfidenceInterval(max(0.0, value - reach), max(0.0, value + reach))
    return DivergenceEstimate(divergence, value, error, interval, float(confidence))


def _logistics(samples: Samples) -> Iterator[tuple[Samples, FDivergenceRatio]]:
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

    def spread(table: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean = shares @ table
        deviation = np.sqrt(shares @ (table - mean) ** 2)
        constant = (table == table[0]).all(axis=0) | (deviation == 0.0)
        return mean, np.where(constant, 1.0, deviation)

    origin, unit = spread(rows)
    width, pairs = len(unit), np.triu_indices(len(unit), k=1)
    knots = np.quantile((rows - origin) / unit, KNOTS, axis=0)

    def features(table: FloatArray, more: str) -> FloatArray:
        z = (table - origin) / unit
        parts = [z, z**2]
        if more == "products":
            parts.append(z[:, pairs[0]] * z[:, pairs[1]])
        elif more == "bends":
            parts += [np.abs(z - knot) for knot in knots]
        return np.concatenate(parts, axis=1)

    size = min(float(effective_sample_size(each.weights)) for each in samples)
    numbers = {"": 0.0, "bends": width * (2 + len(KNOTS))}
    if width > 1:
        numbers["products"] = width * (width + 3) / 2
    for more in (m for m, n in numbers.items() if ROWS_PER_FEATURE * n <= size):
        one, two = (replace(each, given=features(each.table, more)) for each in samples)
        l2 = PENALTY * spread(features(rows, more))[1] ** 2 / size
        # Complete rows alone, by their weights.
        yield (one, two), FDivergenceRatio("js", l2=l2, missingness="ignore")


def _scores(
    samples: Samples,
    ratio: Any,
    folds: Sequence[IntArray],
    n_folds: int,
    weighed: bool,
) -> list[FloatArray]:
    """Log r̂ at complete rows of both samples, from fits to the other folds.

    With one fold, from a fit to all rows. Rows are weighed here where the ratio isn't
    told why values are missing.
    """
    scores = [np.empty(len(each.rows)) for each in samples]
    for fold in range(n_folds):
        kept = [np.flatnonzero((fold_of != fold) | (n_folds == 1)) for fold_of in folds]
        pairs = list(zip(samples, kept, strict=True))
        X, y = stack_samples(*(take_rows(each.given, rows) for each, rows in pairs))
        weights = np.concatenate([each.weights[rows] for each, rows in pairs])
        fitted = clone(ratio).fit(X, y, **{"sample_weight": weights} if weighed else {})
        for each, sample, fold_of in zip(scores, samples, folds, strict=True):
            held = fold_of[sample.rows] == fold
            rows = take_rows(sample.given, sample.rows[held])
            each[held] = fitted.predict_log_ratio(rows)
    return scores


def _terms(divergence: str, scores: Sequence[FloatArray]) -> tuple[FloatArray, ...]:
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


@dataclass(frozen=True)
class RatioTest:
    """A test of P1 = P0.

    Parameters
    ----------
    pvalue : float
        (1 + b)/(1 + B), where b of B resamples have a statistic as large.
    statistic : float
        The largest of the divergences at all widths, each less its mean over resamples
        and divided by its deviation.
    divergence : float
        The estimated squared distance E[(r − 1)²] of the relative ratio
        r = p1/(αp1 + (1 − α)p0), with α the numerator's share of the rows.
    method : {"permutation", "bootstrap"}
    n_resamples : int
        B.
    """

    pvalue: float
    statistic: float
    divergence: float
    method: str
    n_resamples: int


def ratio_test(
    X1: Any,
    X0: Any,
    *,
    missingness: MissingnessParameter = None,
    method: TestMethod = "auto",
    n_resamples: int = 1000,
    random_state: Any = None,
) -> RatioTest:
    """Test whether two samples have one law: P(p-value ≤ a) ≤ a if they have.

    The statistic is the largest of several divergences that kernel least squares
    (RuLSIF) estimates, one for each width of the kernel, with weights 1/P(complete).
    If φ is the same in both samples, labels are permuted: the level is exact. If not, a
    weighted multiplier bootstrap takes over, whose level holds for large samples; a
    `SmallSampleWarning` says if single rows decide. φ counts as known.

    Parameters
    ----------
    X1, X0 : array-like or dataframe of shape (n_rows, n_columns)
        Rows of P1 and P0, NaN where a value is missing.
    missingness : mapping from {1, 0} to Missingness, "ignore" or None
        Why values are missing. With "ignore" the test is of the laws of complete rows.
    method : {"auto", "permutation", "bootstrap"}, default="auto"
        "auto" permutes where that is exact; "permutation" is an error elsewhere.
    n_resamples : int, default=1000
    random_state : int, RandomState, Generator or None, default=None

    Returns
    -------
    RatioTest
        With `pvalue` and `statistic`.

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> X1, X0 = rng.normal(0, 1.5, (200, 2)), rng.normal(0, 1, (200, 2))
    >>> mr.ratio_test(X1, X0, random_state=0).pvalue < 0.01
    True
    """
    check_scalar(n_resamples, "n_resamples", Integral, min_val=1)
    samples = read_samples(X1, X0, missingness)
    check_choice("method", method, ("auto", "permutation", "bootstrap"))
    # 1. Labels are permuted where both samples lose values for the same reason, as far
    #    as is known.
    alike = True
    if isinstance(missingness, Mapping):
        one, two = missingness.get(1), missingness.get(0)
        alike = one is two or (
            type(one) is type(two)
            and is_dataclass(one)
            and all(
                np.array_equal(getattr(one, each.name), getattr(two, each.name))
                for each in fields(one)
            )
        )
    if method == "permutation" and not alike:
        raise ValueError(
            "Permutation is not exact where the samples lose values for different "
            "reasons: complete rows of one law then have different laws. Use "
            "method='bootstrap', or 'auto'."
        )
    if method == "auto":
        method = "permutation" if alike else "bootstrap"
    if method == "bootstrap":
        _warn_of_heavy_rows(samples)
    # 2. The statistic of the samples, and of all resamples. A width at which all have
    #    one divergence, up to rounding, tells nothing: to divide by its deviation, made
    #    of rounding errors, would blow them up.
    with one_blas_thread(N_CENTERS * sum(len(each.table) for each in samples)):
        found = _kernel_divergences(
            samples, method, n_resamples, generator(random_state)
        )
    size, spread = np.abs(found).max(axis=0), found.std(axis=0)
    varies = spread > CONSTANT * size
    if not varies.any():
        return RatioTest(1.0, 0.0, float(found[0].max()), method, n_resamples)
    found, size, spread = found[:, varies], size[varies], spread[varies]
    scaled = (found - found.mean(axis=0)) / spread
    statistic, divergence = scaled.max(axis=1), float(found[0, scaled[0].argmax()])
    # 3. Rounding must not tell a resample from its equal. The tolerance is the same for
    #    all resamples, so that it can make the p-value larger only.
    rounding = ROUNDING * float((size / spread).max())
    as_large = int((statistic[1:] >= statistic[0] - rounding).sum())
    pvalue = (1 + as_large) / len(statistic)
    return RatioTest(pvalue, float(statistic[0]), divergence, method, n_resamples)


def _warn_of_heavy_rows(samples: Samples) -> None:
    """Warn where single rows decide the weighted means that a bootstrap draws.

    Rows that would weigh most may be those that are missing: a sample's heaviest
    weight is looked for in the other sample, too, which has the same law under the
    hypothesis; and weights that add up to fewer rows than there are tell of a part of
    the law of which no row was observed.
    """
    complete = np.concatenate([each.complete for each in samples])
    for label, sample in zip((1, 0), samples, strict=True):
        n_rows, mass = len(sample.weights), float(sample.weights.sum())
        total, heaviest = mass, float(sample.weights.max())
        modelled = isinstance(sample.model, Missingness)
        if modelled:
            heaviest = float(complete_row_weights(complete, sample.model).max())
            total = float(n_rows)
        unseen = modelled and mass < LEAST_MASS * n_rows
        if heaviest <= LARGEST_SHARE * total and not unseen:
            continue
        message = Message(
            f"The bootstrap's level can't be trusted: one complete row of X{label} may "
            f"weigh {heaviest / total:.0%} of its sample, more than "
            f"{LARGEST_SHARE:.0%}, and its complete rows stand for {mass:.0f} of "
            f"{n_rows} rows (Kish's effective sample size "
            f"{effective_sample_size(sample.weights):.1f}). The test may reject far "
            "too often.",
            label=label,
            remedies=(
                "bring more rows",
                "cap the missing probability by design",
                "take the p-value for a rough guide",
            ),
        )
        warnings.warn(SmallSampleWarning(message), stacklevel=3)
        return


def _kernel_divergences(
    samples: Samples, method: str, n_resamples: int, rng: np.random.Generator
) -> FloatArray:
    """Divergences of the samples, then of all resamples, at every width."""
    rows = np.concatenate([each.complete for each in samples])
    weights = [each.weights[each.rows] for each in samples]
    if (rows == rows[0]).all():
        return np.zeros((n_resamples + 1, 1))
    # 1. What doesn't depend on the labels: centres, widths, and the bumps' covariance,
    #    under which the divergence is the squared length of a difference of means.
    shares = np.concatenate(weights)
    if method == "bootstrap":
        shares = np.concatenate([w * len(w) / w.sum() for w in weights])
    pooled = WeightedTable(rows, shares / shares.sum())
    both = Two(pooled, pooled)
    bumps = Bumps.around(both, N_CENTERS, True, rng)
    squares = bumps.squares(rows)
    features = []
    for width in bumps.widths(both, N_WIDTHS, 2.0, rng):
        # Bumps whose squared length is that of the penalised regression on them.
        kernel = gaussian(squares, float(width))
        centred = kernel - pooled.weights @ kernel
        scaled = centred * np.sqrt(pooled.weights)[:, None]
        values, vectors = np.linalg.eigh(scaled.T @ scaled)
        ridge = RIDGE * max(float(values.mean()), np.finfo(np.float64).tiny)
        whitened = (centred @ vectors) / np.sqrt(np.maximum(values, 0) + ridge)
        features.append((1.0 - len(weights[0]) / len(rows)) * whitened)
    # 2. Each resample is a row of signed weights; the first are the samples' own.
    make = _permuted if method == "permutation" else _perturbed
    most = max(1, BLOCK_ELEMENTS // len(rows))
    counts = [min(most, n_resamples - i) for i in range(0, n_resamples, most)]
    found = []
    for contrasts in make(weights, counts, rng):
        each = [((contrasts @ matrix) ** 2).sum(axis=1) for matrix in features]
        found.append(np.column_stack(each))
    return np.concatenate(found)


def _permuted(
    weights: list[FloatArray], counts: list[int], rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Weights of a difference of weighted means; labels as they are, then permuted."""
    together = np.concatenate(weights)
    own = np.arange(len(together)) < len(weights[0])
    for count in (0, *counts):
        labels = rng.permuted(np.tile(own, (count, 1)), axis=1) if count else own[None]
        numerator = np.where(labels, together, 0.0)
        denominator = np.where(labels, 0.0, together)
        numerator /= numerator.sum(axis=-1, keepdims=True)
        denominator /= denominator.sum(axis=-1, keepdims=True)
        yield numerator - denominator


def _perturbed(
    weights: list[FloatArray], counts: list[int], rng: np.random.Generator
) -> Iterator[FloatArray]:
    """The difference of means, then its errors as random multipliers draw them.

    A row's error is its weight times its distance from the class's mean, and larger
    than it looks by 1/(1 − share), since the row pulls the mean towards itself.
    """
    numerator, denominator = (each / each.sum() for each in weights)
    yield np.concatenate([numerator, -denominator])[None]
    for count in counts:
        parts = []
        for share, sign in ((numerator, 1.0), (denominator, -1.0)):
            drawn = rng.standard_normal((count, len(share))) * (share / (1.0 - share))
            drawn -= drawn.sum(axis=1, keepdims=True) * share
            parts.append(sign * drawn)
        yield np.concatenate(parts, axis=1)
