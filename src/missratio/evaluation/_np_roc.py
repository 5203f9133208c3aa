"""The NP-ROC: power against the type I error that is certified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from missratio._base.typing import BoolArray, FloatArray
from missratio.classifier import sorted_scores
from missratio.evaluation._metrics import exact_interval
from missratio.threshold import (
    CalibrationSample,
    Rule,
    binomial_tail,
    check_levels,
    make_rule,
)

LEVELS = tuple(np.linspace(0.005, 0.5, 100).tolist())


@dataclass(frozen=True)
class NPROC:
    """Power at each certified type I error, with a band.

    Parameters
    ----------
    alpha : ndarray of shape (n_levels,)
        The type I error that is certified, each with probability 1 − δ.
    threshold : ndarray of shape (n_levels,)
        Infinite where no threshold can be certified.
    power : ndarray of shape (n_levels,)
        Share of the other class's rows above the threshold.
    lower, upper : ndarray of shape (n_levels,)
        Exact band of the power, of confidence 1 − δ at each level.
    delta : float
    rule : tuple of str
        The rule used at each level.
    name : str or None
    sample : CalibrationSample
        The controlled class's scores, for `compare_np_roc`.
    other : ndarray of shape (n_other,)
        The other class's scores, sorted.
    """

    alpha: FloatArray
    threshold: FloatArray
    power: FloatArray
    lower: FloatArray
    upper: FloatArray
    delta: float
    rule: tuple[str, ...]
    name: str | None
    sample: CalibrationSample = field(repr=False)
    other: FloatArray = field(repr=False)

    def to_frame(self, backend: Any = "pandas") -> Any:
        """The curve as a dataframe, a row for each level.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}

        Returns
        -------
        dataframe
        """
        columns = {
            "alpha": self.alpha.tolist(),
            "threshold": self.threshold.tolist(),
            "power": self.power.tolist(),
            "lower": self.lower.tolist(),
            "upper": self.upper.tolist(),
            "rule": list(self.rule),
        }
        return nw.from_dict(columns, backend=backend).to_native()


def np_roc(
    controlled_scores: ArrayLike | CalibrationSample,
    other_scores: ArrayLike,
    *,
    delta: float = 0.05,
    alphas: Sequence[float] = LEVELS,
    weights: ArrayLike | None = None,
    bound: float | None = None,
    rule: str | Rule = "auto",
    training: CalibrationSample | None = None,
    name: str | None = None,
    random_state: int | None = 0,
) -> NPROC:
    """The NP-ROC of held-out scores.

    At each level α the threshold is chosen by a certifying rule, so that the type I
    error is at most α with probability 1 − δ, and the power is measured on rows of the
    other class. A plain ROC curve reads both errors off the same rows and certifies
    nothing.

    Parameters
    ----------
    controlled_scores : array-like of shape (n_controlled,), or CalibrationSample
        Of calibration rows, which took no part in fitting. A sample brings its own
        weights and bound, and what these may be wrong by: see
        `NeymanPearsonClassifier.calibration_sample`.
    other_scores : array-like of shape (n_other,)
        Of complete rows of the other class, which took no part in fitting either.
    delta : float, default=0.05
        For a sample whose φ was learned: what is left of it beside the part for φ.
    alphas : sequence of float
        The levels.
    weights : array-like of shape (n_controlled,), optional
        Inverse-probability weights of the calibration rows, zero for missing ones;
        None where they are complete.
    bound : float, optional
        The largest weight possible; None where it is not known.
    rule : str or Rule, default="auto"
    training : CalibrationSample, optional
        Scored training rows, for rules that learn from them.
    name : str, optional
        Of the classifier, for display.
    random_state : int, optional

    Returns
    -------
    NPROC

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> roc = mr.np_roc(rng.normal(0, 1, 2000), rng.normal(2, 1, 2000), alphas=[0.1])
    >>> roc.power.round(1)
    array([0.7])
    """
    sample = _sample(controlled_scores, weights, bound, random_state)
    chooser = make_rule(rule, training=training, complete=sample.masses is None)
    return _curve(sample, sorted_scores(other_scores), alphas, delta, chooser, name)


def _sample(
    scores: ArrayLike | CalibrationSample,
    weights: ArrayLike | None,
    bound: float | None,
    random_state: int | None,
) -> CalibrationSample:
    if not isinstance(scores, CalibrationSample):
        return CalibrationSample.build(
            scores, weights, bound, random_state=random_state
        )
    if weights is not None or bound is not None:
        raise ValueError(
            "A CalibrationSample has its own weights and bound: give them there."
        )
    return scores


def _curve(
    sample: CalibrationSample,
    other: FloatArray,
    alphas: Sequence[float],
    delta: float,
    rule: Rule,
    name: str | None,
) -> NPROC:
    """A threshold for each level, and the power above it."""
    levels = np.asarray(alphas, dtype=np.float64)
    for level in levels:
        check_levels(float(level), delta)
    chosen = rule.select_levels(sample, levels.tolist(), delta)
    thresholds = np.array(
        [np.inf if c.threshold is None else c.threshold for c in chosen]
    )
    above = len(other) - np.searchsorted(other, thresholds, side="right")
    bands = [exact_interval(int(n), len(other), 1.0 - delta) for n in above]
    return NPROC(
        levels,
        thresholds,
        above / len(other),
        np.array([band.low for band in bands]),
        np.array([band.high for band in bands]),
        delta,
        tuple(c.rule for c in chosen),
        name,
        sample,
        other,
    )


@dataclass(frozen=True)
class NPROCComparison:
    """At which levels the scores of one classifier separate the classes better.

    Parameters
    ----------
    alpha : ndarray of shape (n_levels,)
    difference : ndarray of shape (n_levels,)
        Power of a less that of b, at their certified thresholds.
    a_better, b_better : ndarray of bool of shape (n_levels,)
        Where it is shown, with confidence 1 − δ at each level, that the score has more
        power at a type I error of α.
    """

    alpha: FloatArray
    difference: FloatArray
    a_better: BoolArray
    b_better: BoolArray


def compare_np_roc(a: NPROC, b: NPROC) -> NPROCComparison:
    """Compare two classifiers' scores at each level of the type I error.

    The question is which score has more power where its type I error is α. Comparing
    two thresholds would not answer it, because these also differ by the luck of their
    calibration rows. A score is better if a lower bound on its power exceeds an upper
    bound on the other's. Both bounds allow for the calibration rows and the other
    class's rows; each of the eight bounds involved fails with probability at most δ/8.
    So at each level two scores of equal power are called different with probability at
    most δ, whether or not they were measured on the same rows.

    Parameters
    ----------
    a, b : NPROC
        At the same levels and δ.

    Returns
    -------
    NPROCComparison
    """
    if not np.array_equal(a.alpha, b.alpha):
        raise ValueError("Both curves must have the same levels alpha.")
    if a.delta != b.delta:
        raise ValueError(
            f"Both curves must have the same delta: got {a.delta} and {b.delta}."
        )
    least_a, most_a = _power_limits(a)
    least_b, most_b = _power_limits(b)
    return NPROCComparison(
        a.alpha, a.power - b.power, least_a > most_b, least_b > most_a
    )


def _power_limits(roc: NPROC) -> tuple[FloatArray, FloatArray]:
    """Bounds on the power of a score where its type I error is α.

    The critical threshold lies below one that is certified to have an error of α at
    most, and above one that is shown to have at least α: of rows kept with probability
    W/B, more lie above it than Bin(n, α/B) makes likely.
    """
    part = roc.delta / 8.0
    sample, bound = roc.sample, roc.sample.bound
    if bound is None:
        raise ValueError(
            "The curves can't be compared: the controlled class's weights have no "
            "bound. Give one, or a model of the missingness that has a maximum."
        )
    kept_low, kept_high = sample.kept(bound)
    certain = _tail_scores(sample.scores[kept_high])
    likely = _tail_scores(sample.scores[kept_low])
    n_other, limits = len(roc.other), []
    for alpha in roc.alpha.tolist():
        few = binomial_tail(sample.n_rows, alpha / bound, part)
        many = int(binom.isf(part, sample.n_rows, alpha / bound)) + 1
        strict = certain[min(few, len(certain) - 1)] if few >= 0 else np.inf
        loose = likely[many - 1] if many <= len(likely) - 1 else -np.inf
        least = n_other - np.searchsorted(roc.other, strict, side="right")
        most = n_other - np.searchsorted(roc.other, loose, side="left")
        limits.append(
            (
                exact_interval(int(least), n_other, 1.0 - 2.0 * part).low,
                exact_interval(int(most), n_other, 1.0 - 2.0 * part).high,
            )
        )
    low, high = np.array(limits).T
    return low, high


def _tail_scores(kept: FloatArray) -> FloatArray:
    """Scores from the highest on; beyond the last of them all rows lie above."""
    return np.append(kept, -np.inf)
