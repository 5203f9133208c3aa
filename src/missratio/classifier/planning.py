"""What becomes of a certificate if φ is wrong, or better known.

A tilt of s multiplies the odds of being missing by exp(a + s·t), where t is the value
in standard deviations of what is observed in its column (or, where rows are missing as
a whole, the row's score). The number a is not free: as many values are missing as are,
so the weights of the observed ones must sum to what they did.

Those who impute know the same as an adjustment by δ. Under odds exp(a + bz) the missing
values follow the law of the observed ones tilted by exp(bz); for a normal column of
variance σ² that is the same law moved by δ = bσ². So a tilt of s moves the missing
values by s standard deviations, which is what mice and rbmi add to imputed values.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_scalar

from missratio import missingness
from missratio import threshold as rules
from missratio._base.blocks import rows_with_nan, take_rows
from missratio._base.hints import generator
from missratio._base.reading import read_labels
from missratio._base.typing import FloatArray
from missratio.classifier.certify import infeasible
from missratio.classifier.estimators import ClassTable
from missratio.classifier.neyman_pearson import NeymanPearsonClassifier
from missratio.classifier.promise import Calibration, Promise, Trust, Weighted
from missratio.classifier.reading import calibrated_rows, check_same_rows
from missratio.exceptions import NoCertificateError
from missratio.weights import complete_row_weights

# Rows that a plan may ask for.
MOST_ROWS = 10**9


def _weight_bound(alpha: float, delta: float, phi_max: float) -> float:
    """The largest weight of a row, once levels are checked."""
    rules.check_levels(alpha, delta)
    if not 0.0 <= phi_max < 1.0:
        raise ValueError(f"phi_max must lie in [0, 1), got {phi_max}.")
    return 1.0 / (1.0 - phi_max)


def required_calibration_rows(
    alpha: float, delta: float, phi_max: float = 0.0, rule: str | rules.Rule = "auto"
) -> int:
    """The smallest number of rows with which a rule can certify any threshold at all.

    With this number the threshold is the largest score seen. For more power you need
    several times as many rows: see `expected_power`.

    Parameters
    ----------
    alpha, delta : float
    phi_max : float
        ‖φ‖∞, the largest missing probability of the controlled class; 0 where it is
        complete. Rules that use more of φ are planned for φ = phi_max throughout.
    rule : str or Rule, default="auto"

    Returns
    -------
    int
        For "thinning", which keeps a random number of rows, the number with which it
        can certify a threshold with probability 0.9.

    Examples
    --------
    >>> from missratio.classifier import required_calibration_rows
    >>> required_calibration_rows(0.05, 0.05)
    59
    >>> required_calibration_rows(0.1, 0.05, phi_max=0.8, rule="paper")
    23966
    """
    bound = _weight_bound(alpha, delta, phi_max)
    chosen = rules.make_rule(rule)
    needed = chosen.least_rows(alpha, delta, bound)
    if needed is None or needed > MOST_ROWS:
        raise NoCertificateError(
            f"No number of rows up to {MOST_ROWS:.0e} is enough for rule "
            f"{chosen.name!r} at alpha={alpha}, delta={delta}, phi_max={phi_max}. "
            "Raise alpha or delta, or choose another rule."
        )
    return needed


def sorted_scores(other_scores: ArrayLike) -> FloatArray:
    """Scores of the other class, sorted, to measure power with."""
    scores = np.sort(np.asarray(other_scores, dtype=np.float64))
    if len(scores) == 0 or np.isnan(scores[-1]):
        raise ValueError(
            "other_scores must hold the other class's scores, one or more and none of "
            "them NaN: give a row that has no score −∞."
        )
    return scores


def expected_power(
    controlled_scores: ArrayLike,
    other_scores: ArrayLike,
    n_rows: int,
    *,
    alpha: float,
    delta: float,
    phi_max: float = 0.0,
    rule: str | rules.Rule = "auto",
    n_draws: int = 200,
    random_state: int | None = 0,
) -> float:
    """The power to expect from n_rows calibration rows, by the scores of a pilot.

    Draws calibration samples from the pilot's scores, loses each row with probability
    phi_max, and averages the share of `other_scores` above the thresholds certified.

    Parameters
    ----------
    controlled_scores, other_scores : array-like of shape (n,)
        Scores of a pilot's rows of either class.
    n_rows : int
        Calibration rows planned for, missing ones included.
    alpha, delta : float
    phi_max : float
        Missing probability.
    rule : str or Rule, default="auto"
    n_draws : int
    random_state : int, optional

    Returns
    -------
    float
        Draws without a certificate count as power 0.

    Examples
    --------
    >>> import numpy as np
    >>> from missratio.classifier import expected_power
    >>> rng = np.random.default_rng(0)
    >>> controlled, other = rng.normal(0, 1, 5000), rng.normal(1.5, 1, 5000)
    >>> power = expected_power(controlled, other, 300, alpha=0.1, delta=0.05)
    >>> round(power, 1)
    0.5
    """
    bound = _weight_bound(alpha, delta, phi_max)
    check_scalar(n_rows, "n_rows", Integral, min_val=0)
    check_scalar(n_draws, "n_draws", Integral, min_val=1)
    controlled = np.asarray(controlled_scores, dtype=np.float64)
    if controlled.ndim != 1 or not len(controlled):
        raise ValueError(
            "controlled_scores must hold one score or more, in one dimension: got "
            f"shape {controlled.shape}."
        )
    other, rng = sorted_scores(other_scores), np.random.default_rng(random_state)

    def draw() -> rules.CalibrationSample:
        """So many of the scores, each lost with probability phi_max."""
        weights = np.where(rng.uniform(size=n_rows) < phi_max, 0.0, bound)
        chosen = rng.choice(controlled, n_rows)
        return rules.CalibrationSample.build(chosen, weights, bound, random_state=rng)

    powers = np.zeros(n_draws)
    for i in range(n_draws):
        chosen = rules.make_rule(rule, training=draw(), complete=phi_max == 0.0)
        threshold = chosen.select(draw(), alpha, delta).threshold
        powers[i] = 0.0 if threshold is None else (other > threshold).mean()
    return float(powers.mean())


class PowerForecast(NamedTuple):
    """The power that a certificate is expected to have; 0 with why there is none."""

    power: float
    reason: ValueError | None = None


def forecast_power(
    classifier: NeymanPearsonClassifier, X: Any, y: ArrayLike, n_trials: int = 3
) -> PowerForecast:
    """The power to expect if a classifier is fitted, by its training rows alone.

    In each trial some of the rows that it would be fitted to take the place of those
    that calibrate, repeated until they are as many: φ, its band and the rule have the
    same say. No row that calibrates is looked at, so that a classifier may be chosen by
    it. A trial takes about as long as the fit. On small tables the forecast is off by
    0.1 on average, as much as the power of a fit varies with its split.

    Parameters
    ----------
    classifier : NeymanPearsonClassifier
        Not fitted; with a model of missingness that is known, stated or learned. With
        an int as `random_state` the rows are those that the fit splits off.
    X : array-like or dataframe of shape (n_rows, n_columns)
    y : array-like of shape (n_rows,)
    n_trials : int, default=3

    Returns
    -------
    PowerForecast
        `power`, of complete rows of the other class, NaN where none of them is
        complete; and `reason`: the error that says why nothing would be certified, or
        None.

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> from missratio.classifier import forecast_power
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(4000, 1)) + 0.7 * rng.normal(size=(4000, 3))
    >>> y = np.arange(4000) % 2
    >>> Z[y == 1] += 2.0
    >>> X = mr.corrupt(Z, mr.LogisticMissingness(-2.0, 0.5), rng)
    >>> phi = {label: mr.learn_missingness(X[y == label]) for label in (0, 1)}
    >>> classifier = mr.NeymanPearsonClassifier(missingness=phi, random_state=0)
    >>> forecast = forecast_power(classifier, X, y)
    >>> power = (classifier.fit(X, y).predict(Z[y == 1]) == 1).mean()
    >>> bool(abs(forecast.power - power) < 0.15)
    True
    """
    trial = clone(classifier).set_params(on_infeasible="reject_all")
    powers, reason = [0.0], None
    with warnings.catch_warnings():
        # What is wrong is said by the fit itself.
        warnings.simplefilter("ignore")
        try:
            table = trial._table(X, y, None, {})
            table = trial._split(table, generator(trial.random_state))
            (promise,) = trial._promises(table)
            asked = trial, X, y, table, promise
            powers = [_tried_power(*asked, seed) for seed in range(n_trials)]
        except ValueError as error:
            reason = error
    return PowerForecast(float(np.mean(powers)), reason)


def _tried_power(
    trial: NeymanPearsonClassifier,
    X: Any,
    y: ArrayLike,
    table: ClassTable,
    promise: Promise,
    seed: int,
) -> float:
    """The power that one split of a table's training rows certifies."""
    rng = np.random.default_rng(seed)
    training = table.rows_of(0, table.fitted)
    others, fresh = np.array_split(rng.permutation(table.rows_of(1, table.fitted)), 2)
    some = np.append(training, others)
    trial.set_params(random_state=seed)
    trial.fit(take_rows(X, some), read_labels(y)[some])
    times = max(1, round(len(promise.held) / len(trial.calibration_index_)))

    def repeated(calibration: Calibration) -> Calibration:
        """As if there were as many rows as will calibrate."""
        again = tuple(map(repeated, calibration.others))
        rows = calibration.sample.repeated(times, rng)
        return replace(calibration, sample=rows, others=again)

    calibration = repeated(trial.calibration_)
    threshold = calibration.threshold(trial.alpha)
    if threshold == np.inf:
        raise infeasible(promise, calibration, calibration.rule.name)
    rows = take_rows(trial._read(X), fresh)
    scores = calibration.trust.score(rows, trial._score(rows))
    model, _ = table.reasons(1, fresh)
    weights = complete_row_weights(rows, "ignore" if model is None else model)
    total = weights.sum()
    return float((scores > threshold) @ weights / total) if total else np.nan


FACTORS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0)
SLOPES = (-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0)
BOUND_STEPS = 14


@dataclass(frozen=True, eq=False)
class Variation:
    """One way to be wrong about φ, from not at all to far.

    Parameters
    ----------
    amount : ndarray of shape (n_points,)
        The odds factor Γ, or the tilt in standard deviations.
    error : ndarray of shape (n_points,)
        The least α that the classifier's threshold would still be certified at.
    power : ndarray of shape (n_points,)
        Of the threshold that α would get instead; 0 where it gets none.
    tipping : tuple of float
        Where the error passes α, by linear interpolation between the points: the first
        on either side of no error at all, or infinite.
    """

    amount: FloatArray
    error: FloatArray
    power: FloatArray
    tipping: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class SensitivityCurve:
    """Certified error and power where φ is not what was assumed.

    Parameters
    ----------
    alpha : float
    odds : Variation
        The odds of being missing of the controlled class wrong by up to Γ, row by row,
        either way. It has one tipping point, the certificate's Γ.
    controlled, other : Variation or None
        A tilt of φ of the one class or of the other; None where nothing of it is
        missing. That of the other class has no bearing on the certificate, only on the
        power. Two tipping points: towards lower and towards higher values missing.
    """

    alpha: float
    odds: Variation
    controlled: Variation
    other: Variation | None

    @property
    def tipping_factor(self) -> float:
        """The largest Γ at which the certificate holds."""
        return self.odds.tipping[-1]

    def to_frame(self, backend: Any = "pandas") -> Any:
        """All points, a line each.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"

        Returns
        -------
        dataframe
            A row for each odds factor.
        """
        parts = {"odds": self.odds, "controlled": self.controlled, "other": self.other}
        known = {name: part for name, part in parts.items() if part is not None}
        columns = {
            "variation": np.repeat(list(known), [len(p.amount) for p in known.values()])
        }
        for key in ("amount", "error", "power"):
            columns[key] = np.concatenate([getattr(p, key) for p in known.values()])
        return nw.from_dict(columns, backend=backend).to_native()


def sensitivity_curve(
    classifier: NeymanPearsonClassifier,
    X: Any,
    y: ArrayLike,
    *,
    factors: Sequence[float] = FACTORS,
    slopes: Sequence[float] = SLOPES,
) -> SensitivityCurve:
    """How the certified error and the power change if φ is wrong.

    Parameters
    ----------
    classifier : NeymanPearsonClassifier
        Fitted, with a model of missingness for the controlled class.
    X : array-like or dataframe of shape (n_rows, n_columns)
        The rows that it was fitted with.
    y : array-like of shape (n_rows,)
    factors : sequence of float
        Odds factors Γ, 1 or more.
    slopes : sequence of float
        Tilts, in log-odds per standard deviation of the observed values.

    Returns
    -------
    SensitivityCurve
        What is certified at each odds factor.

    Notes
    -----
    A category is tilted by the mean score of the rows of each level. For a number, a
    tilt of s stands for missing values that lie s standard deviations higher than
    assumed, where a column is about normal: it is the δ of mice and rbmi, in standard
    deviations. The difference is that weights are tilted here, and no value is imputed.

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (2000, 1)), rng.normal(2, 1, (500, 1))])
    >>> y = np.repeat([0, 1], [2000, 500])
    >>> phi = mr.LogisticMissingness([-1.0], [0.5])
    >>> X[y == 0] = mr.corrupt(X[y == 0], phi, random_state=0)
    >>> classifier = mr.NeymanPearsonClassifier(
    ...     mr.KLIEP(), alpha=0.2, missingness={0: phi}, random_state=0
    ... ).fit(X, y)
    >>> curve = mr.sensitivity_curve(classifier, X, y, slopes=[-0.5, 0.0, 0.5])
    >>> bool((np.diff(curve.controlled.error) > 0).all())
    True
    """
    check_same_rows(classifier, X, y)
    calibration = classifier.calibration_
    model = calibration.trust.point or calibration.trust.model
    if model is None:
        raise ValueError(
            "The certificate assumes no model of missingness, so there is none to "
            "vary: its calibration rows are complete, were looked up, or are "
            "classified as they are observed."
        )
    wrong, tilts = (np.asarray(x, dtype=np.float64) for x in (factors, slopes))
    if not wrong.size or not (wrong >= 1.0).all():
        raise ValueError(f"factors are odds factors, 1 or more: got {wrong.tolist()}.")
    # 1. The rows, and the rule that was chosen: other levels and other φ don't change
    #    it.
    alpha, limit = classifier.alpha, classifier.threshold_
    certificate, kept = classifier.certificate_, calibration.sample
    if isinstance(calibration.rule, rules.AutoRule):
        rule = calibration.rule.choose(
            kept.n_rows, kept.bound, alpha, calibration.delta
        )[0]
        calibration = replace(calibration, rule=rule)
    X = classifier._read(X)
    labels = read_labels(y, X)
    is_other = labels != certificate.controlled_class
    rows = take_rows(X, calibrated_rows(classifier, labels))
    others = take_rows(X, np.flatnonzero(is_other))
    scores, other_scores = (
        calibration.trust.score(part, classifier._score(part))
        for part in (rows, others)
    )
    models = classifier._models() or {}
    other_model = models.get(certificate.other_class)
    draws = np.zeros(len(scores))
    if kept.draws is not None:
        draws[scores > -np.inf] = kept.draws[kept.values > -np.inf]

    def power(threshold: float, phi: missingness.Missingness | None) -> float:
        # Where nothing says why the other class misses values, complete rows count.
        weights = complete_row_weights(others, "ignore" if phi is None else phi)
        return float(np.average(other_scores > threshold, weights=weights))

    def at(trust: Trust) -> tuple[float, float]:
        """The certified error of the threshold as it is, and the power of a new one."""
        weighed = Weighted.by(trust, rows, scores, draws=draws, coin=kept.coin)
        sample = weighed.sample(trust)
        again = replace(calibration, sample=sample, others=())
        low, high = 0.0, 1.0
        for _ in range(BOUND_STEPS):
            # Small levels matter, so that steps are by roots.
            middle = ((low**0.5 + high**0.5) / 2) ** 2
            holds = again.threshold(middle) <= limit
            low, high = (low, middle) if holds else (middle, high)
        return high, power(again.threshold(alpha), other_model)

    def tilted(slope: float) -> Trust:
        """Trust in a tilted φ of the controlled class, for the rows that count now."""
        phi = _tilted(model, rows, slope, classifier._score)
        known = calibration.trust.bound(rows.shape[1])
        if known is None:
            return Trust(phi)
        reached = complete_row_weights(rows, phi)[scores > -np.inf]
        # Rounding must not take a row's score.
        return Trust(
            phi, cap=max(known, float(reached.max(initial=1.0))) * (1.0 + 1e-9)
        )

    # 2. Odds that are wrong by a factor, and tilts of either class's φ.
    odds = np.array([at(calibration.trust.widened(f)) for f in wrong.tolist()])
    factor = np.inf if certificate.sensitivity is None else certificate.sensitivity
    tilts = np.sort(tilts)
    own, other = np.array([at(tilted(s)) for s in tilts.tolist()]), None
    if other_model is not None:
        powers = [
            power(limit, _tilted(other_model, others, s, classifier._score))
            for s in tilts.tolist()
        ]
        error = np.full(len(tilts), certificate.error_bound)
        other = Variation(tilts, error, np.array(powers), ())
    # 3. Where the error passes α, on either side of no tilt.
    start = int(np.argmin(np.abs(tilts)))
    down = _first_above(tilts[start::-1], own[start::-1, 0], alpha)
    up = _first_above(tilts[start:], own[start:, 0], alpha)
    tipping = (-np.inf if down is None else down, np.inf if up is None else up)
    return SensitivityCurve(
        alpha,
        Variation(wrong, odds[:, 0], odds[:, 1], (factor,)),
        Variation(tilts, own[:, 0], own[:, 1], tipping),
        other,
    )


def _first_above(amount: FloatArray, error: FloatArray, alpha: float) -> float | None:
    """Where a curve first exceeds α, walking away from the start."""
    # What is certified at the start is, but for the steps of the search.
    above = np.flatnonzero(error > alpha * (1.0 + 1e-3))
    if not len(above):
        return None
    ends = slice(max(above[0] - 1, 0), above[0] + 1)
    return float(np.interp(alpha, error[ends], amount[ends]))


def _tilted(
    model: missingness.Missingness,
    rows: Any,
    slope: float,
    score: Callable[[Any], FloatArray],
) -> missingness.Missingness:
    """φ with odds times exp(a + slope·t), the a such that weights sum to the rows."""
    if isinstance(model, missingness.BlockMissingness):
        base = _tilted(model.base, rows, slope, score)
        tilted = (_tilted_block(block, rows, slope, score) for block in model.blocks)
        return missingness.BlockMissingness(base, tuple(tilted), model.n_columns)
    probability = model.missing_probability(rows)
    odds = probability / (1.0 - probability)
    values = np.asarray(rows, dtype=np.float64)
    if model.rowwise:
        values = score(rows)[:, None]
        values = np.where(np.isfinite(values), values, np.nan)
        odds = odds[:, None]
    centre, spread = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    spread = np.where(spread > 0.0, spread, 1.0)
    tilt = slope * (values - centre) / spread
    mass = np.nansum(odds * np.exp(tilt), axis=0)
    n_missing = np.isnan(values).sum(axis=0)
    as_it_was = np.nansum(odds, axis=0)
    # As many missing as φ said, which is about as many as are.
    scale = np.ones(len(mass))
    wanted = np.where(n_missing > 0, as_it_was, 0.0)
    np.divide(wanted, mass, out=scale, where=mass > 0.0)

    def function(block: FloatArray) -> FloatArray:
        own = model.missing_probability(block)
        own = own[:, None] if model.rowwise else own
        at = score(block)[:, None] if model.rowwise else block
        with np.errstate(over="ignore"):
            lifted = scale * own / (1.0 - own) * np.exp(slope * (at - centre) / spread)
        lifted = np.minimum(lifted, 1e12)
        phi = lifted / (1.0 + lifted)
        return np.asarray(phi[:, 0] if model.rowwise else phi)

    return missingness.FunctionMissingness(function, rowwise=model.rowwise)


def _tilted_block(
    block: missingness.Block,
    rows: Any,
    slope: float,
    score: Callable[[Any], FloatArray],
) -> missingness.Block:
    """The same for a category, whose levels are tilted by their rows' mean score."""
    inputs = np.asarray(rows, dtype=np.float64)[:, list(block.inputs)]
    scores = score(rows)
    known = np.isfinite(scores) & ~rows_with_nan(inputs)
    levels, place, count = np.unique(
        inputs[known], axis=0, return_inverse=True, return_counts=True
    )
    mean = np.bincount(place, scores[known]) / count
    away = mean - np.average(mean, weights=count)
    spread = np.sqrt(np.average(away**2, weights=count))
    probability = block.model.missing_probability(levels)
    odds = probability / (1.0 - probability)
    lifted = odds * np.exp(slope * away / (spread if spread > 0.0 else 1.0))
    if (total := count @ lifted) > 0.0:
        lifted *= (count @ odds) / total

    def function(table: FloatArray) -> FloatArray:
        phi = np.array(block.model.missing_probability(table))
        for level, own in zip(levels, lifted / (1.0 + lifted), strict=True):
            phi[(table == level).all(axis=1)] = own
        return phi

    return replace(block, model=missingness.FunctionMissingness(function, rowwise=True))
