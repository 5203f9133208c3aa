"""Whether two samples have one law: a test by their estimated divergence."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_scalar

from missratio._base.seeds import generator
from missratio._base.threads import one_blas_thread
from missratio._base.typing import FloatArray
from missratio.comparison.samples import (
    Inclusion,
    Samples,
    missing_alike,
    read_samples,
)
from missratio.exceptions import Message, SmallSampleWarning
from missratio.missingness import Missingness
from missratio.ratio import (
    Bumps,
    MissingnessParameter,
    Two,
    WeightedTable,
    check_choice,
    gaussian,
)
from missratio.weights import complete_row_weights, effective_sample_size

TestMethod = Literal["auto", "permutation", "bootstrap"]
N_CENTERS, N_WIDTHS = 100, 5
# Of the bumps' mean variance, added to all of them.
RIDGE = 0.1
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
    inclusion: Inclusion = None,
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
    inclusion : tuple of array-like or None, probabilities by design of X1 and X0
    method : {"auto", "permutation", "bootstrap"}, default="auto"
        "auto" permutes where that is exact; "permutation" is an error elsewhere.
    n_resamples : int, default=1000
    random_state : int, RandomState, Generator or None, default=None

    Returns
    -------
    RatioTest

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
    samples = read_samples(X1, X0, missingness, inclusion)
    check_choice("method", method, ("auto", "permutation", "bootstrap"))
    alike = missing_alike(missingness, inclusion)
    if method == "auto":
        method = "permutation" if alike else "bootstrap"
    if method == "permutation" and not alike:
        raise ValueError(
            "Permutation is not exact where the samples lose values for different "
            "reasons: complete rows of one law then have different laws. Use "
            "method='bootstrap', or 'auto'."
        )
    if method == "bootstrap":
        warn_of_heavy_rows(samples, stacklevel=2)
    rng = generator(random_state)
    with one_blas_thread(N_CENTERS * sum(map(len, samples))):
        divergences = _kernel_divergences(samples, method, n_resamples, rng)
    statistic, divergence, rounding = _largest_over_widths(divergences)
    # Rounding must not tell a resample from its equal. The tolerance is the same for
    # all resamples, so that it can make the p-value larger only.
    as_large = int((statistic[1:] >= statistic[0] - rounding).sum())
    pvalue = (1 + as_large) / len(statistic)
    return RatioTest(pvalue, float(statistic[0]), divergence, method, n_resamples)


def warn_of_heavy_rows(samples: Samples, stacklevel: int) -> None:
    """Warn where single rows decide the weighted means that a bootstrap draws.

    Rows that would weigh most may be those that are missing: a sample's heaviest
    weight is looked for in the other sample, too, which has the same law under the
    hypothesis; and weights that add up to fewer rows than there are tell of a part of
    the law of which no row was observed.

    Warns
    -----
    SmallSampleWarning
    """
    complete = np.concatenate([each.complete for each in samples])
    for label, sample in zip((1, 0), samples, strict=True):
        model = sample.model
        total, heaviest = float(sample.weights.sum()), float(sample.weights.max())
        weighed = isinstance(model, Missingness) or sample.inclusion is not None
        lacking = weighed and total < LEAST_MASS * len(sample)
        if isinstance(model, Missingness):
            heaviest = float(complete_row_weights(complete, model).max())
            total = float(len(sample))
        if heaviest <= LARGEST_SHARE * total and not lacking:
            continue
        message = Message(
            "The bootstrap's level can't be trusted: one complete row of X{label} may "
            "weigh {share:.0%} of its sample, more than {most:.0%}, and its complete "
            "rows stand for {mass:.0f} of {n_rows} rows (Kish's effective sample size "
            "{kish:.1f}). The test may reject far too often.",
            label=label,
            remedies=(
                "bring more rows",
                "cap the missing probability by design",
                "take the p-value for a rough guide",
            ),
            facts={
                "share": heaviest / total,
                "most": LARGEST_SHARE,
                "mass": float(sample.weights.sum()),
                "n_rows": len(sample),
                "kish": effective_sample_size(sample.weights),
            },
        )
        warnings.warn(SmallSampleWarning(message), stacklevel=stacklevel + 1)
        return


def _largest_over_widths(found: FloatArray) -> tuple[FloatArray, float, float]:
    """The statistic of all resamples, the samples' divergence, and the rounding.

    A width at which all resamples have one divergence, up to rounding, tells nothing:
    its deviation is made of rounding errors, and to divide by it would blow them up.
    """
    size, spread = np.abs(found).max(axis=0), found.std(axis=0)
    varies = spread > CONSTANT * size
    if not varies.any():
        return np.zeros(len(found)), float(found[0].max()), 0.0
    found, size, spread = found[:, varies], size[varies], spread[varies]
    scaled = (found - found.mean(axis=0)) / spread
    rounding = ROUNDING * float((size / spread).max())
    return scaled.max(axis=1), float(found[0, scaled[0].argmax()]), rounding


def _kernel_divergences(
    samples: Samples,
    method: str,
    n_resamples: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Divergences of the samples, then of all resamples, at every width."""
    rows = np.concatenate([each.complete for each in samples])
    weights = [each.weights[each.rows] for each in samples]
    n_numerator = len(weights[0])
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
    widths = bumps.widths(both, N_WIDTHS, 2.0, rng)
    share = n_numerator / len(rows)
    features = [
        (1.0 - share) * _whitened(gaussian(squares, float(width)), pooled.weights)
        for width in widths
    ]
    # 2. Each resample is a row of signed weights; the first are the samples' own.
    make = _permuted if method == "permutation" else _perturbed
    found = [np.zeros((0, len(widths)))]
    for contrasts in make(weights, n_resamples, rng):
        each = [((contrasts @ matrix) ** 2).sum(axis=1) for matrix in features]
        found.append(np.column_stack(each))
    return np.concatenate(found)


def _whitened(bumps: FloatArray, weights: FloatArray) -> FloatArray:
    """Bumps whose squared length is that of the penalised regression on them."""
    centred = bumps - weights @ bumps
    scaled = centred * np.sqrt(weights)[:, None]
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    ridge = RIDGE * max(float(values.mean()), np.finfo(np.float64).tiny)
    return np.asarray((centred @ vectors) / np.sqrt(np.maximum(values, 0) + ridge))


def _contrast(weights: FloatArray, is_numerator: Any) -> FloatArray:
    """Weights of a difference of weighted means, a row for each resample."""
    numerator = np.where(is_numerator, weights, 0.0)
    denominator = np.where(is_numerator, 0.0, weights)
    numerator /= numerator.sum(axis=-1, keepdims=True)
    denominator /= denominator.sum(axis=-1, keepdims=True)
    return np.asarray(numerator - denominator)


def _permuted(
    weights: list[FloatArray], n_resamples: int, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """The labels as they are, then permuted."""
    together = np.concatenate(weights)
    is_numerator = np.arange(len(together)) < len(weights[0])
    yield _contrast(together, is_numerator)[None]
    for count in _blocks(n_resamples, len(together)):
        labels = rng.permuted(np.tile(is_numerator, (count, 1)), axis=1)
        yield _contrast(together, labels)


def _perturbed(
    weights: list[FloatArray], n_resamples: int, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """The difference of means, then its errors as random multipliers draw them.

    A row's error is its weight times its distance from the class's mean, and larger
    than it looks by 1/(1 − share), since the row pulls the mean towards itself.
    """
    numerator, denominator = (each / each.sum() for each in weights)
    yield np.concatenate([numerator, -denominator])[None]
    for count in _blocks(n_resamples, len(numerator) + len(denominator)):
        parts = []
        for share, sign in ((numerator, 1.0), (denominator, -1.0)):
            drawn = rng.standard_normal((count, len(share))) * (share / (1.0 - share))
            drawn -= drawn.sum(axis=1, keepdims=True) * share
            parts.append(sign * drawn)
        yield np.concatenate(parts, axis=1)


def _blocks(n_resamples: int, n_rows: int) -> Iterator[int]:
    """How many resamples to take at once."""
    most = max(1, BLOCK_ELEMENTS // n_rows)
    for start in range(0, n_resamples, most):
        yield min(most, n_resamples - start)
