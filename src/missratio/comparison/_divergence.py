"""How far apart two samples' laws are, with an interval."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from scipy.stats import norm
from sklearn.base import clone
from sklearn.utils import check_scalar

from missratio._base.blocks import take_rows
from missratio._base.seeds import generator as seeded
from missratio._base.typing import FloatArray, IntArray
from missratio.comparison._samples import Inclusion, Sample, read_samples
from missratio.objective import Divergence, JensenShannon, KullbackLeibler, Pearson
from missratio.ratio import KLIEP, MissingnessParameter, stack_samples

# In units of the means' variances: enough for an optimum, too little for a bias.
RIDGE = 0.01

DivergenceName = Literal["kl", "js", "pearson"]
# By how much each generator's divergence is divided: JS is half of its f-divergence.
_KNOWN: dict[str, tuple[Divergence, float]] = {
    "kl": (KullbackLeibler(), 1.0),
    "js": (JensenShannon(), 2.0),
    "pearson": (Pearson(), 1.0),
}


@dataclass(frozen=True)
class DivergenceEstimate:
    """An estimated divergence of P1 from P0.

    Parameters
    ----------
    divergence : str
    estimate : float
        May be a little below zero where the laws are close.
    standard_error : float
    interval : tuple of float
        At `confidence`, cut off at zero.
    confidence : float
    """

    divergence: str
    estimate: float
    standard_error: float
    interval: tuple[float, float]
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
    small. φ counts as known.

    Parameters
    ----------
    X1, X0 : array-like or dataframe of shape (n_rows, n_columns)
        Rows of P1 and P0, NaN where a value is missing.
    divergence : {"kl", "js", "pearson"}, default="kl"
        E₁[log r]; the mean of both laws' KL divergences from their mixture (at most
        log 2); E₀[(r − 1)²].
    estimator : ratio estimator, default=None
        How the ratio is estimated; it is cloned. None is `KLIEP` in all columns,
        their squares and products, with a ridge penalty too small to matter.
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

    Examples
    --------
    KL(N(1, 1)‖N(0, 1)) is a half.

    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> X1, X0 = rng.normal(1, 1, (2000, 1)), rng.normal(0, 1, (2000, 1))
    >>> found = mr.estimate_divergence(X1, X0, random_state=0)
    >>> low, high = found.interval
    >>> low < 0.5 < high
    True
    """
    if divergence not in _KNOWN:
        raise ValueError(
            f"divergence must be one of {list(_KNOWN)}, got {divergence!r}."
        )
    check_scalar(
        confidence, "confidence", Real, min_val=0.0, max_val=1.0,
        include_boundaries="neither",
    )  # fmt: skip
    check_scalar(cv, "cv", Integral, min_val=2)
    samples = read_samples(X1, X0, missingness, inclusion)
    if estimator is None:
        estimator = KLIEP("polynomial", l2=RIDGE, penalty_weights="standard-error")
    rng = seeded(random_state)
    generator, share = _KNOWN[divergence]
    # Rows that a ratio was fitted to make it look better by as much as fresh rows make
    # it look worse: the mean of both is free of it, to first order.
    crossed = _terms(
        generator, crossed_ratios(samples, estimator, missingness, cv, rng)
    )
    fitted = _terms(generator, own_ratios(samples, estimator, missingness))
    terms = [(one + two) / 2.0 for one, two in zip(crossed, fitted, strict=True)]
    means = [
        _mean(term, each.weights) for term, each in zip(terms, samples, strict=True)
    ]
    value = (means[0][0] - means[1][0]) / share
    error = float(np.hypot(means[0][1], means[1][1])) / share
    reach = float(norm.ppf(0.5 + confidence / 2.0)) * error
    interval = max(0.0, value - reach), max(0.0, value + reach)
    return DivergenceEstimate(divergence, value, error, interval, float(confidence))


def own_ratios(
    samples: tuple[Sample, Sample], estimator: Any, missingness: Any
) -> tuple[FloatArray, FloatArray]:
    """The ratio at complete rows of both samples, from a fit to all rows."""
    everything = [np.arange(len(each)) for each in samples]
    fitted = fit_some(samples, everything, estimator, missingness)
    found = [np.full(len(each), np.nan) for each in samples]
    for ratios, sample in zip(found, samples, strict=True):
        seen = np.flatnonzero(sample.weights > 0.0)
        ratios[seen] = fitted.predict_ratio(sample.take(seen))
    return found[0], found[1]


def crossed_ratios(
    samples: tuple[Sample, Sample],
    estimator: Any,
    missingness: Any,
    n_folds: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """The ratio at complete rows of both samples, from fits to the other folds."""
    folds = [_fold_numbers(each, n_folds, rng) for each in samples]
    found = [np.full(len(each), np.nan) for each in samples]
    for fold in range(n_folds):
        kept = [np.flatnonzero(numbers != fold) for numbers in folds]
        fitted = fit_some(samples, kept, estimator, missingness)
        for ratios, sample, numbers in zip(found, samples, folds, strict=True):
            held = np.flatnonzero((numbers == fold) & (sample.weights > 0.0))
            ratios[held] = fitted.predict_ratio(sample.take(held))
    return found[0], found[1]


def fit_some(
    samples: tuple[Sample, Sample],
    kept: list[IntArray],
    estimator: Any,
    missingness: Any,
) -> Any:
    """Fit a clone to some rows of both samples."""
    fitted = clone(estimator)
    if missingness is not None:
        fitted.set_params(missingness=missingness)
    X, y = stack_samples(
        *(take_rows(each.given, rows) for each, rows in zip(samples, kept, strict=True))
    )
    if all(each.inclusion is None for each in samples):
        return fitted.fit(X, y)
    parts = [
        np.ones(each.table.shape) if each.inclusion is None else each.inclusion
        for each in samples
    ]
    wide = [
        np.broadcast_to(part[:, None], each.table.shape) if part.ndim == 1 else part
        for part, each in zip(parts, samples, strict=True)
    ]
    by_row = all(p.ndim == 1 for p in parts)
    chosen = parts if by_row else wide
    chosen = [part[rows] for part, rows in zip(chosen, kept, strict=True)]
    return fitted.fit(X, y, inclusion=np.concatenate(chosen))


def _fold_numbers(sample: Sample, n_folds: int, rng: np.random.Generator) -> IntArray:
    """The fold of each row, with as many complete rows in every fold."""
    if np.count_nonzero(sample.weights) < n_folds:
        raise ValueError(
            f"cv={n_folds} folds need as many complete rows of each sample; one has "
            f"{np.count_nonzero(sample.weights)}. Lower cv, or bring more rows."
        )
    order = rng.permutation(len(sample))
    order = order[np.argsort(sample.weights[order] == 0.0, kind="stable")]
    numbers = np.empty(len(sample), dtype=np.intp)
    numbers[order] = np.arange(len(sample)) % n_folds
    return numbers


def _terms(
    generator: Divergence, ratios: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """f'(r) at numerator rows, and r f'(r) − f(r) at denominator rows."""
    floor = np.finfo(np.float64).tiny
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        own = generator.first(ratios[0])
        at = np.maximum(ratios[1], floor)
        other = at * generator.first(at) - generator.generator(at)
    for term, ratio, name in ((own, ratios[0], "X1"), (other, ratios[1], "X0")):
        bad = ~np.isfinite(term) & ~np.isnan(ratio)
        if bad.any():
            raise ValueError(
                f"The estimated ratio is {ratio[bad][0]:g} at {np.count_nonzero(bad)} "
                f"row(s) of {name}, and the divergence there is not finite. Choose an "
                "estimator whose ratios are positive (KLIEP, KLIEPCV), another "
                "divergence ('js' is bounded), or more rows."
            )
    return own, other


def _mean(values: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """A weighted mean and its standard error (Hájek's)."""
    seen = weights > 0.0
    values, share = values[seen], weights[seen] / weights.sum()
    mean = float(share @ values)
    n_rows = len(values)
    square = float(share**2 @ (values - mean) ** 2) * n_rows / (n_rows - 1.0)
    return mean, square**0.5
