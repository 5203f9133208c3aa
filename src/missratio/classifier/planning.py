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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_scalar

from missratio import threshold as rules
from missratio._base.blocks import take_rows
from missratio._base.hints import generator
from missratio._base.reading import as_coded_array, column_names, read_labels
from missratio._base.typing import FloatArray
from missratio.classifier.certify import FACTORS, infeasible
from missratio.classifier.estimators import ClassTable, complete_mask
from missratio.classifier.neyman_pearson import NeymanPearsonClassifier
from missratio.classifier.promise import Calibration, Promise, Trust, Weighted
from missratio.classifier.reading import calibrated_rows, check_same_rows
from missratio.exceptions import NoCertificateError
from missratio.missingness import once
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


# The share of training rows that calibrate in a trial.
PART = 0.25


def forecast_power(
    classifier: NeymanPearsonClassifier, X: Any, y: ArrayLike, n_trials: int = 3
) -> PowerForecast:
    """The power to expect if a classifier is fitted, by its training rows alone.

    In each trial a quarter of the rows that it would be fitted to take the place of
    those that calibrate, repeated until they are as many: φ, its band and the rule have
    the same say. No row that calibrates is looked at, so that a classifier may be
    chosen by it. A trial takes about as long as the fit. On small tables the forecast
    is off by 0.1 on average, as much as the power of a fit varies with its split.

    Parameters
    ----------
    classifier : NeymanPearsonClassifier
        Not fitted; with a model of missingness that is known, stated or learned, or for
        rows as they are observed. With an int as `random_state` the rows are those that
        the fit splits off.
    X : array-like or dataframe of shape (n_rows, n_columns)
    y : array-like of shape (n_rows,)
    n_trials : int, default=3

    Returns
    -------
    PowerForecast
        `power`, of complete rows of the other class, NaN where none of them is
        complete, or of rows as they are observed; and `reason`: the error that says why
        nothing would be certified, or None.

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
    powers, reason = list[float](), None
    # What is wrong is said by the fit itself.
    with warnings.catch_warnings(action="ignore"):
        try:
            table = trial._table(X, y, None, {})
            table = trial._split(table, generator(trial.random_state))
            (promise,) = trial._promises(table)
            for seed in range(n_trials):
                power, reason = _tried_power(trial, X, y, table, promise, seed)
                powers.append(power)
        except ValueError as error:
            return PowerForecast(0.0, error)
    power = float(np.mean(powers))
    return PowerForecast(power, None if power else reason)


def _tried_power(
    trial: NeymanPearsonClassifier,
    X: Any,
    y: ArrayLike,
    table: ClassTable,
    promise: Promise,
    seed: int,
) -> PowerForecast:
    """The power that one split of a table's training rows certifies."""
    rng = np.random.default_rng(seed)
    training = table.rows_of(0, table.fitted)
    others, fresh = np.array_split(rng.permutation(table.rows_of(1, table.fitted)), 2)
    some = np.append(training, others)
    # A part of the rows to fit on calibrates, and counts as all that will.
    trial.set_params(random_state=seed, calibration_size=PART)
    again = trial._table(take_rows(X, some), read_labels(y)[some], None, {})
    trial._fit(again, len(promise.held))
    calibration = trial.calibration_
    if trial.threshold_ == np.inf:
        error = infeasible(promise, calibration, calibration.rule.name)
        return PowerForecast(0.0, error)
    rows = take_rows(trial._read(X), fresh)
    scores = calibration.trust.score(rows, trial._score(rows))
    # Where nothing says why the other class misses values, complete rows count.
    weights = table.weights(1, fresh, lenient=True)
    if not weights.any():
        return PowerForecast(np.nan)
    above = scores > trial.threshold_
    return PowerForecast(float(np.average(above, weights=weights)))


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
    controlled : Variation
        A tilt of φ of the controlled class. Two tipping points: towards lower and
        towards higher values missing.
    """

    alpha: float
    odds: Variation
    controlled: Variation

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
            `variation` ("odds" or "controlled"), `amount`, `error` and `power`.
        """
        parts = self.odds, self.controlled
        sizes = [len(part.amount) for part in parts]
        columns = {"variation": np.repeat(["odds", "controlled"], sizes)}
        for name in ("amount", "error", "power"):
            columns[name] = np.concatenate([getattr(part, name) for part in parts])
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
        What is certified at each odds factor, and at each tilt.

    Notes
    -----
    A category is tilted by the score of its row. For a number, a
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
    # 1. The rows.
    alpha, limit = classifier.alpha, classifier.threshold_
    certificate, kept = classifier.certificate_, calibration.sample
    X = classifier._read(X)
    labels = read_labels(y, X)
    is_other = labels != certificate.controlled_class
    rows = take_rows(X, calibrated_rows(classifier, labels))
    others = take_rows(X, np.flatnonzero(is_other))
    scores, other_scores = (
        calibration.trust.score(part, classifier._score(part))
        for part in (rows, others)
    )
    # Where nothing says why the other class misses values, complete rows count.
    other_model = (classifier._models() or {}).get(certificate.other_class)
    masses = complete_row_weights(others, other_model or "ignore")
    draws = np.zeros(len(scores))
    if kept.draws is not None:
        # A row at the cap itself is within reach or not as when it calibrated.
        whole = complete_mask(rows)
        scores[whole], draws[whole] = kept.values, kept.draws

    def measured(
        sample: rules.CalibrationSample, calibration: Calibration = calibration
    ) -> tuple[float, float]:
        """The certified error of the threshold as it is, and the power of a new one.

        By the rule that would have been chosen, whatever the level.
        """
        rule, facts = calibration.rule, (sample.n_rows, sample.bound)
        if isinstance(rule, rules.AutoRule):
            rule, _ = rule.choose(*facts, alpha, calibration.delta)
        again = replace(calibration, sample=sample, rule=rule, others=())
        low, high = 0.0, 1.0
        for _ in range(BOUND_STEPS):
            # Small levels matter, so that steps are by roots.
            middle = ((low**0.5 + high**0.5) / 2) ** 2
            holds = again.threshold(middle) <= limit
            low, high = (low, middle) if holds else (middle, high)
        above = other_scores > again.threshold(alpha)
        return high, float(np.average(above, weights=masses))

    def weighed(trust: Trust) -> Weighted:
        return Weighted.by(trust, rows, scores, draws=draws, coin=kept.coin)

    # 2. Odds that are wrong by up to a factor, from whatever φ a learned one may be.
    wrong = np.sort(wrong)
    odds = np.stack([np.zeros(len(wrong)), np.ones(len(wrong))], axis=1)
    for each in (calibration, *calibration.others):
        widened = map(each.trust.widened, wrong.tolist())
        measures = [measured(weighed(trust).sample(trust), each) for trust in widened]
        odds[:, 0] = np.maximum(odds[:, 0], np.transpose(measures)[0])
        odds[:, 1] = np.minimum(odds[:, 1], np.transpose(measures)[1])
    np.maximum.accumulate(odds[:, 0], out=odds[:, 0])
    np.minimum.accumulate(odds[:, 1], out=odds[:, 1])
    factor = np.inf if certificate.sensitivity is None else certificate.sensitivity
    # 3. Tilts of φ: by the value of a number, and by the score of a category or row.
    #    As many values are missing as φ said, which is about as many as are.
    entries = weighed(Trust(model)).entries.reshape(len(scores), -1)
    values = np.where(np.isfinite(scores), scores, np.nan)[:, None]
    if not model.rowwise:
        numbers, names = as_coded_array(rows).astype(float), column_names(rows) or ()
        words = [j for j, name in enumerate(names) if name in classifier._words.columns]
        blocks = (block.columns for block in getattr(model, "blocks", ()))
        for columns in (words, *blocks):
            numbers[:, list(columns)] = values
        values = numbers if model.groups is None else numbers[:, once(model.groups)]
    spread = np.nanstd(values, axis=0)
    away = (values - np.nanmean(values, axis=0)) / np.where(spread > 0.0, spread, 1.0)
    lost, seen = np.isnan(values).any(axis=0), (entries > 0.0) & ~np.isnan(away)
    known, by_tilt, tilts = calibration.trust.bound(rows.shape[1]), [], np.sort(tilts)
    for slope in tilts.tolist():
        tilted = np.where(seen, entries - 1.0, 0.0)
        as_it_was = tilted.sum(axis=0)
        tilted = np.nan_to_num(tilted * np.exp(slope * away))
        mass = tilted.sum(axis=0)
        tilted *= np.where(lost & (mass > 0.0), as_it_was, 0.0) / np.where(
            mass, mass, 1
        )
        weights = np.where(entries > 0.0, 1.0 + np.minimum(tilted, 1e12), 0.0)
        weights = weights.prod(axis=1)
        # Rounding must not take a row's score.
        most = float(weights[scores > -np.inf].max(initial=1.0))
        bound = None if known is None else max(known, most) * (1.0 + 1e-9)
        sample = rules.CalibrationSample.build(
            scores, weights, bound, None, draws, coin=kept.coin
        )
        by_tilt.append(measured(sample))
    error, power = np.transpose(by_tilt)
    # 4. Where the error passes α, on either side of no tilt, but for the steps of the
    #    search.
    start, tipping = int(np.argmin(np.abs(tilts))), [-np.inf, np.inf]
    for side, places in enumerate((slice(start, None, -1), slice(start, None))):
        above = np.flatnonzero(error[places] > alpha * (1.0 + 1e-3))
        if len(above):
            ends = slice(max(above[0] - 1, 0), above[0] + 1)
            amounts = tilts[places][ends]
            tipping[side] = float(np.interp(alpha, error[places][ends], amounts))
    return SensitivityCurve(
        alpha,
        Variation(wrong, odds[:, 0], odds[:, 1], (factor,)),
        Variation(tilts, error, power, tuple(tipping)),
    )
