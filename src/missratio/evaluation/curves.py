"""The NP-ROC: power against the type I error that is certified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike

from missratio._base.typing import BoolArray, FloatArray
from missratio.classifier import sorted_scores
from missratio.evaluation.metrics import exact_interval
from missratio.threshold import CalibrationSample, Rule, check_levels, make_rule

# How often rows are drawn again to compare two curves.
RESAMPLES = 1000
# A resampled tail of fewer rows than these tells nothing.
FEWEST = 10
LEVELS = np.linspace(0.005, 0.5, 100)


@dataclass(frozen=True, repr=False)
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
        The other class's scores.
    """

    alpha: FloatArray
    threshold: FloatArray
    power: FloatArray
    lower: FloatArray
    upper: FloatArray
    delta: float
    rule: tuple[str, ...]
    name: str | None
    sample: CalibrationSample
    other: FloatArray

    def __repr__(self) -> str:
        """The name, δ and how many levels there are."""
        levels = f"{len(self.alpha)} levels"
        return f"<NPROC name={self.name!r}, delta={self.delta:g}, {levels}>"

    def to_frame(self, backend: Any = "pandas") -> Any:
        """The curve as a dataframe, a row for each level.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}

        Returns
        -------
        dataframe
            Of the kind that `backend` names.
        """
        names = ("alpha", "threshold", "power", "lower", "upper", "rule")
        columns = {name: list(getattr(self, name)) for name in names}
        return nw.from_dict(columns, backend=backend).to_native()


def np_roc(
    controlled_scores: ArrayLike | CalibrationSample,
    other_scores: ArrayLike,
    *,
    delta: float = 0.05,
    alphas: Sequence[float] | None = None,
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
    alphas : sequence of float, optional
        The levels; None takes 100 from 0.005 to 0.5.
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
        The curve, with its band.

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> roc = mr.np_roc(rng.normal(0, 1, 2000), rng.normal(2, 1, 2000), alphas=[0.1])
    >>> roc.power.round(1)
    array([0.7])
    """
    if not isinstance(controlled_scores, CalibrationSample):
        kinds = [np.asarray(x).dtype.kind for x in (controlled_scores, other_scores)]
        if kinds[0] in "OUSTb" or (kinds[0] in "iu" and kinds[1] == "f"):
            raise ValueError(
                "controlled_scores must be the scores of rows of the controlled class, "
                "and looks like labels. Give scores[y == controlled_class] and "
                "scores[y != controlled_class]."
            )
        controlled_scores = CalibrationSample.build(
            controlled_scores, weights, bound, random_state=random_state
        )
    elif weights is not None or bound is not None:
        raise ValueError(
            "A CalibrationSample has its own weights and bound: give them there."
        )
    sample = controlled_scores
    chooser = make_rule(rule, training=training, complete=sample.masses is None)
    other = np.asarray(other_scores, dtype=np.float64)
    levels = np.asarray(LEVELS if alphas is None else alphas, dtype=np.float64)
    for level in levels:
        check_levels(float(level), delta)
    # Sorted once, for all levels.
    sample.ranked  # noqa: B018
    chosen = [chooser.select(sample, level, delta) for level in levels.tolist()]
    certified = [np.inf if c.threshold is None else c.threshold for c in chosen]
    thresholds = np.array(certified)
    above = len(other) - np.searchsorted(sorted_scores(other), thresholds, "right")
    bands = [exact_interval(int(n), len(other), 1.0 - delta) for n in above]
    lower, upper = np.array(bands).reshape(-1, 2).T
    rules, power = tuple(c.rule for c in chosen), above / len(other)
    curve = levels, thresholds, power, lower, upper
    return NPROC(*curve, delta, rules, name, sample, other)


@dataclass(frozen=True, repr=False)
class NPROCComparison:
    """At which levels the scores of one classifier separate the classes better.

    Parameters
    ----------
    alpha : ndarray of shape (n_levels,)
    difference : ndarray of shape (n_levels,)
        Power of a less that of b, where the type I error of each is α.
    low, high : ndarray of shape (n_levels,)
        An interval of confidence 1 − δ for it at each level; from −1 to 1 where too few
        rows tell.
    """

    alpha: FloatArray
    difference: FloatArray
    low: FloatArray
    high: FloatArray

    def __repr__(self) -> str:
        """At how many of the levels either is better."""
        better = f"a better at {self.a_better.sum()}, b at {self.b_better.sum()}"
        return f"<NPROCComparison {better} of {len(self.alpha)} levels>"

    @property
    def a_better(self) -> BoolArray:
        """Where a has more power."""
        return np.greater(self.low, 0.0)

    @property
    def b_better(self) -> BoolArray:
        """Where b has more power."""
        return np.less(self.high, 0.0)


def compare_np_roc(
    a: NPROC, b: NPROC, *, random_state: int | None = 0
) -> NPROCComparison:
    """Compare two classifiers' scores at each level of the type I error.

    The question is which score has more power where its type I error is α. Comparing
    two certified thresholds would not answer it, because these also differ by the luck
    of their calibration rows. Intervals are a bootstrap's percentiles, which allow for
    the calibration rows and the other class's rows. If both classifiers have scored the
    same rows, in the same order, these are drawn together: what both have in common
    cancels. At each level scores of equal power are called different with probability
    about δ at most. Weights are taken to be right.

    Parameters
    ----------
    a, b : NPROC
        At the same levels and δ. Curves of as many rows with the same weights count as
        scores of the same rows, unless both are sorted; all others as independent.
    random_state : int, optional

    Returns
    -------
    NPROCComparison
        The difference of the powers and its interval at each level.

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(0, 1, (2000, 2)), rng.normal(1.2, 1, (2000, 2))]
    >>> one, both = (
    ...     mr.np_roc(*(rows @ weights for rows in X), alphas=[0.1])
    ...     for weights in ([1, 0], [1, 1])
    ... )
    >>> mr.evaluation.compare_np_roc(both, one).a_better
    array([ True])
    """
    if not np.array_equal(a.alpha, b.alpha):
        raise ValueError("Both curves must have the same levels alpha.")
    if a.delta != b.delta:
        raise ValueError(
            f"Both curves must have the same delta: got {a.delta} and {b.delta}."
        )
    weights_a, weights_b = a.sample.weights, b.sample.weights
    paired = _same_rows(a.sample.values, b.sample.values)
    paired = paired and np.array_equal(weights_a, weights_b)
    paired_other = _same_rows(a.other, b.other)
    rng = np.random.default_rng(random_state)

    def drawn(scores: FloatArray) -> Any:
        n_rows = len(scores)
        return np.bincount(rng.integers(n_rows, size=n_rows), minlength=n_rows)

    power_a, power_b = _power_curve(a), _power_curve(b)
    differences = np.empty((RESAMPLES, len(a.alpha)))
    for resample in range(RESAMPLES):
        counts, other = drawn(a.sample.values), drawn(a.other)
        resampled = power_a(counts * weights_a, other)
        counts = counts if paired else drawn(b.sample.values)
        other = other if paired_other else drawn(b.other)
        differences[resample] = resampled - power_b(counts * weights_b, other)
    low, high = np.quantile(differences, [a.delta / 2.0, 1.0 - a.delta / 2.0], axis=0)
    estimate_a = power_a(weights_a, np.ones(len(a.other)))
    estimate_b = power_b(weights_b, np.ones(len(b.other)))
    # A bootstrap of a handful of rows is none.
    tail = a.alpha * min(a.sample.effective_rows, b.sample.effective_rows)
    above = np.maximum(estimate_a * len(a.other), estimate_b * len(b.other))
    below = np.maximum((1 - estimate_a) * len(a.other), (1 - estimate_b) * len(b.other))
    enough = np.minimum(tail, np.minimum(above, below)) >= FEWEST
    low, high = np.where(enough, low, -1.0), np.where(enough, high, 1.0)
    return NPROCComparison(a.alpha, estimate_a - estimate_b, low, high)


def _same_rows(a: FloatArray, b: FloatArray) -> bool:
    """Whether scores can be of the same rows; sorted ones are in no order of rows."""
    steps = np.diff(a), np.diff(b)
    is_sorted = all((step <= 0).all() or (step >= 0).all() for step in steps)
    return len(a) == len(b) and not is_sorted


def _power_curve(roc: NPROC) -> Callable[[FloatArray, FloatArray], Any]:
    """The power where the type I error is α, for any weights of the rows."""
    order, other_order = np.argsort(-roc.sample.values), np.argsort(roc.other)
    scores = roc.sample.values[order]
    at_most = np.searchsorted(roc.other[other_order], scores, side="right")

    def power(controlled: FloatArray, other: FloatArray) -> Any:
        tail = np.cumsum(controlled[order])
        places = np.searchsorted(tail, roc.alpha * tail[-1], side="right")
        below = np.append(0.0, np.cumsum(other[other_order]))
        return 1.0 - below[at_most[places]] / below[-1]

    return power
