"""The covariance of a fitted ratio, from the rows that it was fitted to."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from missratio._base.reading import joined
from missratio._base.threads import one_blas_thread
from missratio._base.typing import FloatArray, IntArray
from missratio.learning import LearnedMissingness, was_learned_from
from missratio.missingness import BlockMissingness, Missingness
from missratio.ratio import (
    JointRatio,
    NaiveBayesRatio,
    Optimum,
    check_choice,
    feature_names,
    joint_ratio,
    missingness_of,
    optimum,
)
from missratio.rows import ClassRows, class_model
from missratio.uncertainty._covariance import (
    ClassMeans,
    LearnedPart,
    Spread,
    undetermined_features,
)
from missratio.uncertainty._expansion import Expansion, Means, expand
from missratio.uncertainty._intervals import (
    FEWEST_BY_ROWS,
    FEWEST_BY_WEIGHTS,
    LearnedOn,
    RatioUncertainty,
    UnreliableIntervalWarning,
)
from missratio.uncertainty._tail import (
    FEWEST_EXPECTED,
    expected_in_tail,
    largest_weights,
)

LEARNED_ON = ("auto", "same", "other")
BOOTSTRAP = (
    "For others draw rows with replacement within each class, fit again, and take the "
    "spread of the results (the bootstrap)."
)


def ratio_uncertainty(
    ratio: JointRatio | NaiveBayesRatio,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    inclusion: ArrayLike | None = None,
    learned_on: LearnedOn = "auto",
) -> RatioUncertainty:
    """Estimate the covariance of a fitted ratio's (θ̂, log N̂) by the sandwich formula.

    The sum over rows, in both classes, of the outer product of what each row does to
    the estimates, divided by 1 − its leverage as if it had been left out (the
    infinitesimal jackknife, with HC3's correction). Rows are independent and drawn
    within their class; the basis and the penalty are taken as given (that which KLIEPCV
    chose too), so that under a penalty intervals are for what the penalised fit tends
    to.

    If φ was learned (`learn_missingness`), the error of its parameters is included. If
    it was learned from the same rows, the two errors are correlated, which mostly
    lowers the variance unless few values were looked up.

    Parameters
    ----------
    ratio : KLIEP, KLIEPCV, FDivergenceRatio, ObjectiveRatio or NaiveBayesRatio
        Fitted, and with a log link.
    X : array-like or dataframe of shape (n_rows, n_columns)
        The rows of the fit.
    y : array-like of shape (n_rows,)
        Their labels.
    sample_weight : array-like of shape (n_rows,), optional
        Where the fit had them.
    inclusion : array-like of shape (n_rows,) or (n_rows, n_columns), optional
        Where the fit had them.
    learned_on : {"auto", "same", "other"}, default="auto"
        Whether a learned φ comes from these rows (or these and more of the same class),
        or from others. "auto" detects by counts and sums whether it is exactly these
        rows, and otherwise treats them as others. What the table itself taught always
        counts as learned from others: how its rows move φ isn't kept.
        `RatioUncertainty.learned_on` says which.

    Returns
    -------
    RatioUncertainty

    Warns
    -----
    UnreliableIntervalWarning
        Where a few rows decide, or the rows say nothing of a coefficient.

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> Z1, Z0 = rng.normal(0.5, 1, (2000, 1)), rng.normal(0, 1, (2000, 1))
    >>> phi = mr.StepMissingness(direction=1.0, threshold=0.0, probability=0.8)
    >>> X = np.concatenate([mr.corrupt(Z1, phi, random_state=0), Z0])
    >>> y = np.repeat([1, 0], 2000)
    >>> ratio = mr.KLIEP(missingness={1: phi}).fit(X, y)
    >>> uncertainty = mr.ratio_uncertainty(ratio, X, y)
    >>> uncertainty.standard_errors.round(3)
    array([0.046, 0.019])
    >>> lower, upper = uncertainty.interval([[1.0]])
    >>> lower.round(2), upper.round(2)
    (array([0.32]), array([0.44]))
    """
    _check(ratio)
    check_choice("learned_on", learned_on, LEARNED_ON)
    rows = optimum(ratio, X, y, sample_weight, inclusion)
    with one_blas_thread(rows.denominator.source.size):
        expansions = [expand(factor) for factor in rows.factors]
        _check_solved(ratio, expansions, rows)
        size = len(ratio.coef_) + 1
        none = np.zeros(size)
        spread = Spread(np.zeros((size, size)), none, none, none, none)
        found: dict[Any, LearnedOn] = {}
        in_tail = np.inf
        for own in (rows.numerator, rows.denominator):
            learned = _learned(ratio, own, learned_on)
            if learned:
                same = all(part.shared for part in learned)
                found[own.label] = "same" if same else "other"
            means = [
                (
                    each.features,
                    each.numerator if own is rows.numerator else each.denominator,
                )
                for each in expansions
            ]
            model = class_model(missingness_of(ratio), own.label, own.names)
            in_tail = min(in_tail, expected_in_tail(own, model))
            # Values that were looked up have weights of their own.
            largest = largest_weights(own, model) if inclusion is None else None
            own_means = ClassMeans(own, means, largest)
            spread += own_means.spread(learned, _to_results(means, size))
        undetermined = _undetermined(ratio, rows)
    uncertainty = RatioUncertainty(
        ratio,
        _positive(spread.covariance),
        found,
        np.minimum(spread.by_rows, spread.by_weights),
        (spread.by_rows >= FEWEST_BY_ROWS)
        & (spread.by_weights >= FEWEST_BY_WEIGHTS)
        & (in_tail >= FEWEST_EXPECTED),
        undetermined,
    )
    _warn_if_unreliable(uncertainty)
    return uncertainty


def _learned(
    ratio: JointRatio | NaiveBayesRatio, own: ClassRows, learned_on: LearnedOn
) -> list[LearnedPart]:
    """A class's φ, where it was learned: of all columns, and of each category."""
    names = getattr(ratio, "feature_names_in_", None)
    model = class_model(missingness_of(ratio), own.label, names)
    if not isinstance(model, Missingness) or not model.learned:
        return []
    if own.adjusted is not None:
        raise ValueError(
            "Means that are adjusted by regression move with a learned φ in more ways "
            f"than the sandwich formula here has. Use normalize='hajek'. {BOOTSTRAP}"
        )
    blocks = model.blocks if isinstance(model, BlockMissingness) else ()
    base = model.base if isinstance(model, BlockMissingness) else model
    table = own.source.block(0, own.n_rows).rows
    parts = []
    if isinstance(base, LearnedMissingness):
        # What it says of columns in blocks is not looked at.
        rest = np.array(table)
        rest[:, [j for block in blocks for j in block.columns]] = 0.0
        parts.append(LearnedPart(base, _shared(base, rest, learned_on)))
    for block in blocks:
        if isinstance(block.model, LearnedMissingness):
            shared = _shared(block.model, table[:, list(block.inputs)], learned_on)
            parts.append(LearnedPart(block.model, shared, block))
    if base.learned + sum(block.model.learned for block in blocks) > len(parts):
        raise ValueError(
            "How rows move a φ that was learned by another class than "
            f"LearnedMissingness is not known. {BOOTSTRAP}"
        )
    return parts


def _shared(
    model: LearnedMissingness, table: FloatArray, learned_on: LearnedOn
) -> bool:
    """Whether φ̂ and the ratio come from the same rows, and how φ̂ moves is kept."""
    if any(shadow is not None for shadow in model.shadow):
        return False
    if learned_on == "auto":
        return was_learned_from(model, table)
    return learned_on == "same"


def _undetermined(
    ratio: JointRatio | NaiveBayesRatio, rows: Optimum
) -> dict[int, float]:
    classes = [rows.denominator]
    if not joint_ratio(ratio)._objective().linear_numerator:
        classes.append(rows.numerator)
    return undetermined_features(classes, isinstance(ratio, NaiveBayesRatio))


def _warn_if_unreliable(uncertainty: RatioUncertainty) -> None:
    names = feature_names(uncertainty.ratio)
    parts = []
    if uncertainty.undetermined:
        unknown = joined([repr(names[j]) for j in uncertainty.undetermined])
        parts.append(
            f"{unknown}: every complete row of the denominator has the same value, so "
            "that the penalty alone made the coefficient up; it has no interval. Drop "
            "the feature, or bring rows with other values."
        )
    few = [
        repr(names[j])
        for j in np.flatnonzero(~uncertainty.reliable[:-1]).tolist()
        if j not in uncertainty.undetermined
    ]
    if few:
        parts.append(
            f"{joined(few)}: a few rows with large weights decide, or would if they "
            "had been observed. Intervals may be too short, since such rows would have "
            "moved the estimate. Bring more rows, or look up missing values where φ is "
            "close to 1."
        )
    if parts:
        warnings.warn(" ".join(parts), UnreliableIntervalWarning, stacklevel=3)


def _check(ratio: Any) -> None:
    if not isinstance(ratio, JointRatio | NaiveBayesRatio):
        raise TypeError(
            "ratio must be a fitted KLIEP, FDivergenceRatio, ObjectiveRatio or "
            f"NaiveBayesRatio, got {ratio!r}. {BOOTSTRAP}"
        )
    check_is_fitted(ratio)
    joint = joint_ratio(ratio)
    if not joint._is_log_linear():
        raise ValueError(
            f"{ratio!r} models the ratio itself, not its logarithm. Use link='log'. "
            f"{BOOTSTRAP}"
        )
    if joint._fitted_strength[0].any():
        raise ValueError(
            "Under an L1 penalty some coefficients are held at zero, and the sandwich "
            f"formula does not apply. Use a ridge penalty (l2). {BOOTSTRAP}"
        )
    if joint.fallback_used_:
        raise ValueError(
            "Class 0 had too few complete rows, and its columns were taken as "
            f"independent. {BOOTSTRAP}"
        )
    if not getattr(ratio, "converged_", True):
        raise ValueError(
            f"{type(ratio).__name__} did not converge, and standard errors hold at an "
            "optimum only. Add a ridge penalty (l2=0.01 is a start), or raise max_iter."
        )


def _check_solved(
    ratio: JointRatio | NaiveBayesRatio, expansions: list[Expansion], rows: Optimum
) -> None:
    """Refuse rows that the ratio was not fitted to."""
    worst = max(expansion.decrement for expansion in expansions)
    few = min(rows.numerator.n_rows, rows.denominator.n_rows)
    if worst > max(10.0 * joint_ratio(ratio).tol, 0.01 / np.sqrt(few)):
        raise ValueError(
            "X and y are not the rows that the ratio was fitted to: its coefficients "
            f"are not optimal for them (decrement {worst:.2g}). Give the rows of the "
            "fit, and its sample_weight where it had any."
        )


def _to_results(means: list[tuple[IntArray, Means]], size: int) -> FloatArray:
    """What the means of one class do to (θ, log N̂): log normalisers add up."""
    columns = []
    for features, each in means:
        block = np.zeros((size, each.to_result.shape[1]))
        block[features] = each.to_result[:-1]
        block[-1] = each.to_result[-1]
        columns.append(block)
    return np.concatenate(columns, axis=1)


def _positive(covariance: FloatArray) -> FloatArray:
    """The nearest matrix that is positive semi-definite.

    With φ learned for several features, what is taken off for each by the model can in
    a small sample exceed what is there by the rows.
    """
    covariance = (covariance + covariance.T) / 2.0
    scale = np.sqrt(np.maximum(np.diagonal(covariance), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    if values[0] >= 0.0:
        return covariance
    half = vectors * np.sqrt(np.maximum(values, 0.0)) * scale[:, None]
    return np.asarray(half @ half.T)
