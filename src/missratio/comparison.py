"""Two samples compared: how far apart they are, and whether they differ at all.

Rows or entries of either sample may be missing: complete rows weigh 1/P(complete).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import log_expit
from scipy.stats import norm
from sklearn.base import clone
from sklearn.utils import check_scalar

from missratio import ratio as ratios
from missratio._base.hints import check_choice, check_probability, generator
from missratio._base.reading import column_names, read_floats
from missratio._base.threads import one_blas_thread
from missratio._base.typing import FloatArray
from missratio.exceptions import DataError, Message, SmallSampleWarning, warn
from missratio.missingness import Missingness, missingness_check, warn_of_contradiction
from missratio.ratio import Fold, Two, WeightedTable, deal
from missratio.rows import ClassModel, check_missingness, class_model
from missratio.weights import complete_row_weights, effective_sample_size

__all__ = ["DivergenceEstimate", "RatioTest", "estimate_divergence", "ratio_test"]

DivergenceName = Literal["kl", "js", "pearson"]

# Quantiles of the columns at which scores may bend, and the rows that a feature needs.
KNOTS = (0.1, 0.3, 0.5, 0.7, 0.9)

N_CENTERS, N_WIDTHS = 100, 5


@dataclass(frozen=True)
class ComparedSample:
    """Rows of one sample.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
        All rows, NaN where a value is missing.
    model : Missingness, "ignore" or None
        Why values are missing, for these columns.
    rows : ndarray of shape (n_complete, n_columns)
        Complete rows.
    weights : ndarray of shape (n_complete,)
        Their 1/P(complete).
    """

    table: FloatArray
    model: ClassModel
    rows: FloatArray
    weights: FloatArray

    @property
    def shares(self) -> FloatArray:
        """The weights of complete rows, of sum one."""
        return np.asarray(self.weights / self.weights.sum())


def read_samples(X1: Any, X0: Any, missingness: Any) -> Two[ComparedSample]:
    """The numerator's and the denominator's sample, checked."""
    check_missingness(missingness, [0, 1])
    samples = []
    for X, label in ((X1, 1), (X0, 0)):
        model = class_model(missingness, label, column_names(X))
        table = read_floats(X, f"X{label}")
        weights = complete_row_weights(table, model)
        complete = weights > 0.0
        if complete.sum() < 2:
            raise ValueError(
                f"X{label} has {complete.sum()} complete row(s) of {len(table)}, not 2."
            )
        rows, weights = table[complete], weights[complete]
        samples.append(ComparedSample(table, model, rows, weights))
    ratios.check_columns(X1, X0)
    return Two(*samples)


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
        Its ends `low` and `high` at `confidence`, not below zero; the upper one is the
        farther from the estimate.
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
    *,
    missingness: ratios.MissingnessParameter = None,
    confidence: float = 0.95,
    cv: int = 5,
    random_state: Any = None,
) -> DivergenceEstimate:
    """Estimate D_f(P1‖P0) from samples of both, with an interval of given confidence.

    The ratio r̂ is logistic regression (`FDivergenceRatio` with "js") on all columns and
    their squares, and, where there are ten rows for each feature and its log loss on
    folds held out is the smaller, on products of two columns or on bends of single
    ones as well; with a ridge penalty too small to matter where the samples overlap.

    The estimate is Ê₁[f'(r̂)] − Ê₀[r̂f'(r̂) − f(r̂)] with weights 1/P(complete). It is
    largest, and equal to the divergence, at the true ratio, so that an error of r̂
    counts by its square only, upwards at rows that it was fitted to and downwards at
    others: the mean is taken of both, by a fit to all rows and by fits to the other
    folds. The interval is of a weighted mean, in roots. Two conditions for its
    confidence: the ratio's model holds the truth, up to errors that are small against
    n^(-1/4), and the laws differ. Where they don't, the estimate's error is no longer
    normal: test that with `ratio_test`. A model that is too simple gives a divergence
    that is too small: what it can't see isn't in the estimate, and "at least" is all
    that can be said. φ counts as known. Pearson's divergence, and KL of laws that are
    far apart, are means with long tails: a `SmallSampleWarning` says where fewer than
    100 effective rows of X0 carry them, so that the interval may miss the truth far too
    often.

    Parameters
    ----------
    X1, X0 : array-like or dataframe of shape (n_rows, n_columns)
        Rows of P1 and P0, NaN where a value is missing.
    divergence : {"kl", "js", "pearson"}, default="kl"
        E₁[log r]; the mean of both laws' KL divergences from their mixture (at most
        log 2); E₀[(r − 1)²].
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
    check_probability("confidence", confidence)
    check_scalar(cv, "cv", Integral, min_val=2)
    samples = read_samples(X1, X0, missingness)
    for label, sample in zip((1, 0), samples, strict=True):
        if isinstance(sample.model, Missingness):
            checks = missingness_check(sample.table, sample.model, complete=True)
            warn_of_contradiction(checks, label)
    # A column with one value in one sample, and never that in the other. KL and
    # Pearson's divergence, which must be finite, are infinite even if X1 alone has
    # other values.
    numerator, denominator = (sample.rows for sample in samples)
    for name, rows, others in (
        ("X1", numerator, denominator),
        ("X0", denominator, numerator),
    ):
        differs = others != rows[0]
        any_tells = divergence != "js" and name == "X0"
        tells = differs.any(axis=0) if any_tells else differs.all(axis=0)
        columns = np.flatnonzero((rows == rows[0]).all(axis=0) & tells)
        if len(columns):
            raise DataError(
                Message(
                    "Column(s) {columns} have one value in all complete rows of "
                    f"{name}, and other values in the other sample: where the laws "
                    "don't overlap, KL and Pearson's divergence are infinite.",
                    columns=tuple(columns.tolist()),
                    remedies=("drop them", "bring more rows"),
                )
            )
    # 1. Every complete row is held out once, and once none is.
    every = samples.map(lambda sample: np.ones(len(sample.rows), dtype=bool))
    if min(map(len, every)) < cv:
        raise ValueError(
            f"cv={cv} folds need as many complete rows of each sample; one has "
            f"{min(map(len, every))}. Lower cv, or bring more rows."
        )
    folds = deal(every, cv, generator(random_state))

    # 2. Log ratios, by the model of the least balanced log loss on folds held out. Rows
    #    that a ratio was fitted to make it look better by as much as fresh rows make it
    #    look worse: the mean of both is free of it, to first order.
    def log_loss(scores: Two[FloatArray]) -> float:
        gains = [samples.numerator.shares @ log_expit(scores.numerator)]
        gains += [samples.denominator.shares @ log_expit(-scores.denominator)]
        return -float(sum(gains))

    tried = [(_scores(*model, folds), model) for model in _logistics(samples)]
    crossed, model = min(tried, key=lambda pair: log_loss(pair[0]))
    fitted = _scores(*model, [(every, every)])
    if any(s1.min() > s0.max() for s1, s0 in (crossed, fitted)):
        message = Message(
            "The estimated ratio tells X1 from X0 without error: the rows don't show "
            "where the laws overlap. KL and Pearson's divergence can't be told, and "
            "an interval for Jensen and Shannon's, close to log 2, is too short.",
            remedies=("test the difference by ratio_test", "bring more rows"),
        )
        if divergence != "js":
            raise DataError(message)
        warn(SmallSampleWarning(message))
    # 3. The estimate, a difference of weighted means, and its error.
    pairs = zip(_terms(divergence, crossed), _terms(divergence, fitted), strict=True)
    value, variance = 0.0, 0.0
    for sign, sample, pair in zip((1.0, -1.0), samples, pairs, strict=True):
        term, shares, n_rows = sum(pair) / 2.0, sample.shares, len(sample.rows)
        mean = float(shares @ term)
        value += sign * mean
        influences = shares * (term - mean) * np.sqrt(n_rows / (n_rows - 1.0))
        variance += float(influences @ influences)
    if divergence != "js":
        # The terms of the others have no bound, and few rows may carry their means.
        power, what = (2, "squared ratio") if divergence == "pearson" else (1, "ratio")
        size = np.inf
        for scores in (crossed, fitted):
            log_mass = np.log(samples.denominator.shares) + power * scores.denominator
            masses = np.exp(log_mass - log_mass.max())
            size = min(size, effective_sample_size(masses))
        # A mean of r, or of r², needs 100 effective rows of X0. With fewer, 95%
        # intervals missed 18% (KL of N(2, 1) from N(0, 1), 300 rows each) and 25%
        # (Pearson's divergence of N(1, 1), 500 rows each).
        if size < 100.0:
            message = Message(
                f"The interval may miss the truth too often: the mean of the {what} "
                f"rests on {size:.1f} effective rows of X0 (Kish), fewer than 100.",
                remedies=("take divergence='js', which is bounded", "bring more rows"),
            )
            warn(SmallSampleWarning(message))
    # Divergences grow with the square of how far the laws are apart, and so do their
    # errors: the ends are as far from the estimate in roots, Pearson's in roots of
    # log(1 + D). A margin of the estimate itself is too small where that is too small.
    error, level, slope = float(np.sqrt(variance)), max(value, 0.0), 1.0
    if divergence == "pearson":
        level, slope = float(np.log1p(level)), 1.0 + level
    reach = float(norm.ppf(0.5 + confidence / 2.0)) * error / slope / 2.0
    square = max(level, reach, 1e-300)
    ends = square + np.array([-2.0, 2.0]) * reach + reach**2 / square
    ends = np.maximum(ends, 0.0)
    ends = np.expm1(ends) if divergence == "pearson" else ends
    interval = ConfidenceInterval(*map(float, ends))
    return DivergenceEstimate(divergence, value, error, interval, float(confidence))


def _logistics(
    samples: Two[ComparedSample],
) -> Iterator[tuple[Two[WeightedTable], ratios.FDivergenceRatio]]:
    """Balanced logistic regressions on columns and what is made of them.

    They are hardly penalised, and have an optimum where KLIEP has none: where means of
    the numerator's features lie outside of the denominator's rows. Squares see means
    and spreads, products correlations, and bends |z − knot| other shapes of single
    columns. Each comes with the features of complete rows, in units that a ridge treats
    alike: a column far from zero is all but a multiple of its square.
    """
    rows = np.concatenate([sample.rows for sample in samples])
    shares = np.concatenate([sample.shares for sample in samples]) / 2.0

    def spread(table: FloatArray) -> FloatArray:
        deviation = np.sqrt(shares @ (table - shares @ table) ** 2)
        constant = (table == table[0]).all(axis=0) | (deviation == 0.0)
        return np.where(constant, 1.0, deviation)

    origin, unit, width = shares @ rows, spread(rows), rows.shape[1]
    knots = np.quantile((rows - origin) / unit, KNOTS, axis=0)
    first, second = np.triu_indices(width, k=1)

    def features(table: FloatArray, more: str) -> FloatArray:
        z = (table - origin) / unit
        parts = [z, z**2]
        if more == "products":
            parts.append(z[:, first] * z[:, second])
        elif more == "bends":
            parts += [np.abs(z - knot) for knot in knots]
        return np.concatenate(parts, axis=1)

    size = min(effective_sample_size(sample.weights) for sample in samples)
    numbers = {"": 0.0, "bends": width * (2 + len(KNOTS))}
    numbers["products"] = width * (width + 3) / 2 if width > 1 else np.inf
    for more in (m for m, n in numbers.items() if 10 * n <= size):
        made = [WeightedTable(features(s.rows, more), s.shares) for s in samples]
        # The ridge of a divergence's ratio, in units of the means' variances: enough
        # for an optimum, too little for a bias.
        l2 = 0.01 * spread(features(rows, more)) ** 2 / size
        yield Two(*made), ratios.FDivergenceRatio("js", l2=l2)


def _scores(
    tables: Two[WeightedTable], ratio: Any, folds: Sequence[Fold]
) -> Two[FloatArray]:
    """Log r̂ at the rows of both samples, held out from fits to other rows."""
    scores = tables.map(lambda table: np.empty(len(table)))
    for kept, held in folds:
        pairs = list(zip(tables, kept, strict=True))
        X = np.concatenate([table.rows[chosen] for table, chosen in pairs])
        weights = np.concatenate([table.weights[chosen] for table, chosen in pairs])
        y = np.repeat([1, 0], [chosen.sum() for chosen in kept])
        fitted = clone(ratio).fit(X, y, sample_weight=weights)
        for score, table, chosen in zip(scores, tables, held, strict=True):
            score[chosen] = fitted.predict_log_ratio(table.rows[chosen])
    return scores


def _terms(divergence: str, scores: Two[FloatArray]) -> Two[FloatArray]:
    """f'(r) at numerator rows, and r f'(r) − f(r) at denominator rows, of log r."""
    s1, s0 = scores
    with np.errstate(over="ignore"):
        if divergence == "js":
            # Half of the f-divergence.
            half = np.log(2.0)
            return Two((half + log_expit(s1)) / 2.0, (-log_expit(-s0) - half) / 2.0)
        terms = Two(1.0 + s1, np.exp(s0))
        if divergence == "pearson":
            terms = Two(2.0 * np.expm1(s1), np.expm1(2.0 * s0))
        if all(np.isfinite(term @ term) for term in terms):
            return terms
    raise DataError(
        Message(
            f"The estimated ratio is so large at a row that {divergence!r} overflows.",
            remedies=("take divergence='js'", "bring more rows"),
        )
    )


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
    missingness: ratios.MissingnessParameter = None,
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
    # 1. Labels are permuted where both samples lose values for the same reason, as far
    #    as is known.
    one, two = (sample.model for sample in samples)
    alike = one is two
    if isinstance(one, Missingness) and type(one) is type(two):
        alike = all(map(np.array_equal, vars(one).values(), vars(two).values()))
    if not alike:
        # Warn where single rows decide the weighted means that a bootstrap draws. Rows
        # that would weigh most may be those that are missing: a sample's heaviest
        # weight is looked for in the other sample, too, which has the same law under
        # the hypothesis; and weights that add up to fewer rows than there are tell of
        # a part of the law of which no row was observed.
        complete = np.concatenate([sample.rows for sample in samples])
        for label, sample in zip((1, 0), samples, strict=True):
            n_rows, mass = len(sample.table), float(sample.weights.sum())
            total, heaviest = mass, float(sample.weights.max())
            if isinstance(sample.model, Missingness):
                heaviest = float(complete_row_weights(complete, sample.model).max())
                total = float(n_rows)
            # A row may have a twentieth of its sample's weight, which must add up to
            # two thirds of the rows. With step φ at 0.9 and rows that had 0.1 to 0.17
            # of it the test rejected 3% to 5% of the time at 1%.
            if heaviest <= 0.05 * total and mass >= total * 2.0 / 3.0:
                continue
            message = Message(
                "The bootstrap's level can't be trusted, and it may reject far too "
                f"often: one complete row of X{label} may weigh {heaviest / total:.0%} "
                f"of its sample, and its complete rows stand for {mass:.0f} of "
                f"{n_rows} rows.",
                label=label,
                remedies=("bring more rows", "cap the missing probability by design"),
            )
            warn(SmallSampleWarning(message))
            break
    method = "permutation" if alike else "bootstrap"
    # 2. The statistic of the samples, and of all resamples. A width at which all have
    #    one divergence, up to rounding, tells nothing: to divide by its deviation, made
    #    of rounding errors, would blow them up.
    rng = generator(random_state)
    with one_blas_thread(N_CENTERS * sum(len(sample.table) for sample in samples)):
        distances = _kernel_divergences(samples, method, n_resamples, rng)
    size, spread = np.abs(distances).max(axis=0), distances.std(axis=0)
    # A divergence that varies by less than this over resamples doesn't vary.
    varies = spread > 1e-6 * size
    if not varies.any():
        return RatioTest(1.0, 0.0, float(distances[0].max()), method, n_resamples)
    distances, size, spread = distances[:, varies], size[varies], spread[varies]
    scaled = (distances - distances.mean(axis=0)) / spread
    statistic, divergence = scaled.max(axis=1), float(distances[0, scaled[0].argmax()])
    # 3. Rounding must not tell a resample from its equal. The tolerance is the same for
    #    all resamples, so that it can make the p-value larger only.
    # Relative to the largest divergence: rounding of kernel means stays far below it.
    rounding = 1e-9 * float((size / spread).max())
    as_large = int((statistic[1:] >= statistic[0] - rounding).sum())
    pvalue = (1 + as_large) / len(statistic)
    return RatioTest(pvalue, float(statistic[0]), divergence, method, n_resamples)


def _kernel_divergences(
    samples: Two[ComparedSample],
    method: str,
    n_resamples: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Divergences of the samples, then of all resamples, at every width."""
    rows = np.concatenate([sample.rows for sample in samples])
    if (rows == rows[0]).all():
        return np.zeros((n_resamples + 1, 1))
    # 1. What doesn't depend on the labels: centres, widths, and the bumps' covariance,
    #    under which the divergence is the squared length of a difference of means.
    weights = np.concatenate([sample.weights for sample in samples])
    if method == "bootstrap":
        weights = np.concatenate([len(s.rows) * s.shares for s in samples])
    pooled = WeightedTable(rows, weights / weights.sum())
    both = Two(pooled, pooled)
    bumps = ratios.Bumps.around(both, N_CENTERS, True, rng)
    squares = bumps.squares(rows)
    features = []
    for width in bumps.widths(both, N_WIDTHS, 2.0, rng):
        # Bumps whose squared length is that of the penalised regression on them.
        kernel = ratios.gaussian(squares, float(width))
        centred = kernel - pooled.weights @ kernel
        scaled = centred * np.sqrt(pooled.weights)[:, None]
        values, vectors = np.linalg.eigh(scaled.T @ scaled)
        # The test's ridge, as a part of the bumps' mean variance.
        ridge = 0.1 * max(float(values.mean()), np.finfo(np.float64).tiny)
        whitened = (centred @ vectors) / np.sqrt(np.maximum(values, 0) + ridge)
        features.append(len(samples.denominator.rows) / len(rows) * whitened)
    # 2. Each resample is a row of signed weights; the first are the samples' own.
    resample = _permuted if method == "permutation" else _perturbed
    # The means of resamples of so many numbers are taken at once.
    most = max(1, 4_000_000 // len(rows))
    counts = [min(most, n_resamples - i) for i in range(0, n_resamples, most)]
    observed = np.concatenate([samples.numerator.shares, -samples.denominator.shares])
    blocks = chain([observed[None]], (resample(samples, n, rng) for n in counts))
    distances = [
        [((signed @ z) ** 2).sum(axis=1) for z in features] for signed in blocks
    ]
    return np.concatenate(distances, axis=1).T


def _permuted(
    samples: Two[ComparedSample], count: int, rng: np.random.Generator
) -> FloatArray:
    """Weights of a difference of weighted means, under labels that are permuted."""
    weights = np.concatenate([sample.weights for sample in samples])
    given = np.arange(len(weights)) < len(samples.numerator.weights)
    labels = rng.permuted(np.tile(given, (count, 1)), axis=1)
    numerator, denominator = labels * weights, ~labels * weights
    numerator /= numerator.sum(axis=1, keepdims=True)
    denominator /= denominator.sum(axis=1, keepdims=True)
    return np.asarray(numerator - denominator)


def _perturbed(
    samples: Two[ComparedSample], count: int, rng: np.random.Generator
) -> FloatArray:
    """The errors of a difference of means, as random multipliers draw them.

    A row's error is its weight times its distance from the class's mean, and larger
    than it looks by 1/(1 − share), since the row pulls the mean towards itself.
    """
    parts = []
    for sign, shares in zip((1.0, -1.0), (s.shares for s in samples), strict=True):
        drawn = rng.standard_normal((count, len(shares))) * (shares / (1.0 - shares))
        parts.append(sign * (drawn - drawn.sum(axis=1, keepdims=True) * shares))
    return np.concatenate(parts, axis=1)
