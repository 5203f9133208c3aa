"""Every φ that a learned model's evidence leaves possible calibrates by itself.

The true φ is fixed, and with probability 1 − δ_φ it lies in the confidence region of
what was learned. Each φ of the region weighs the calibration rows and chooses a
threshold of its own, by a rule fixed beforehand; the largest of these thresholds is
taken. If the true φ is among them, the error at the threshold that it chose is at most
α but for the rule's part of δ, and a larger threshold has a smaller error. Nothing is
paid for looking at many φ, since only one of them is true.

All of them count the same rows: those within reach of a cap on the largest weight that
any φ of the region gives. A single φ that is the worst before the cap may be the
mildest after it: the steepest one gives its weight to the farthest rows, and these are
the ones out of reach.

A region is given by points on its boundary, column by column. Where one column loses
values, every point is tried. Where several do, each column's points are tried in turn,
the others being the worst that were found, twice over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from missratio._base.reading import as_numeric_array
from missratio._base.typing import FloatArray
from missratio.classifier._calibration import Calibration
from missratio.classifier._promise import Promise
from missratio.classifier._trust import ScoredRows, Trust
from missratio.learning import LearnedMissingness
from missratio.missingness import LogisticMissingness
from missratio.threshold import Rule

# Columns that lose values beyond which the band stands for the region.
MOST_COLUMNS = 8
SWEEPS = 2
# Of a region's points the first sweep tries every so many.
FIRST = 4
# Levels, as multiples of α, at which the φ that asks most is kept.
LEVELS = (1.0, 0.25, 0.5, 2.0, 4.0)
# Log-odds beyond which φ is as good as 1: a row observed there refutes it.
MOST = 34.0


def calibrate(
    promise: Promise,
    trust: Trust,
    how: str | Rule,
    rows: ScoredRows,
    training: ScoredRows | None,
    delta: float,
    step: int = 1,
) -> Calibration:
    """What a threshold is chosen from: of a learned φ, all that it may be.

    Parameters
    ----------
    promise : Promise
    trust : Trust
    how : str or Rule
        The rule, or its name.
    rows : ScoredRows
        Calibration rows.
    training : ScoredRows or None
        Rows that prepare the rule.
    delta : float
        The rule's part of δ.
    step : int, default=1
        1 tries all points of a region, as a certificate has to; a larger number takes
        every so many, for a forecast.
    """

    def under(own: Trust, at: ScoredRows, prepared: ScoredRows | None) -> Calibration:
        sample = at.sample(own)
        rule = promise.resolve_rule(
            how, own, prepared, looked_up=sample.lookups is not None
        )
        return Calibration(sample, own, rule, delta)

    if not is_searched(trust):
        return under(trust, rows, training)
    # Which rows are within reach is the same for all φ of the region.
    within = replace(rows, scores=trust.score(rows))
    known = training and replace(training, scores=trust.score(training))

    def at_point(own: Trust) -> Calibration:
        return replace(under(own.at_point, within, known), trust=own)

    given = [rows] if training is None else [rows, training]
    return _under_all(trust, given, at_point, promise.alpha, step)


def is_searched(trust: Trust) -> bool:
    """Whether every φ of a region calibrates, instead of a band round them.

    A φ of whole rows in several columns has a region of too many dimensions.
    """
    model = trust.model
    if not isinstance(model, LearnedMissingness) or trust.delta is None:
        return False
    if trust.target is not None or (model.rowwise and np.size(model.coef) > 1):
        return False
    return sum(each is not None for each in model.evidence) <= MOST_COLUMNS


def _under_all(
    trust: Trust,
    rows: list[ScoredRows],
    calibrate: Callable[[Trust], Calibration],
    alpha: float,
    step: int,
) -> Calibration:
    """The calibration under the φ that asks for the largest threshold at α.

    Those that ask most at some other levels are kept beside it.
    """
    model, delta = trust.model, trust.delta
    assert isinstance(model, LearnedMissingness)
    assert delta is not None
    regions = [points[::step] for points in _possible(model, delta, rows)]
    lossy = [j for j, points in enumerate(regions) if len(points)]
    coef = np.atleast_1d(np.asarray(model.coef, dtype=np.float64)).copy()
    intercept = np.broadcast_to(np.asarray(model.intercept), coef.shape).copy()

    def under(j: int, point: FloatArray) -> Calibration:
        first, slopes = intercept.copy(), coef.copy()
        first[j], slopes[j] = point[:2]
        if model.rowwise:
            phi = LogisticMissingness(first[0], slopes, rowwise=True)
        else:
            phi = LogisticMissingness(first, slopes)
        return calibrate(replace(trust, point=phi))

    levels = [times * alpha for times in LEVELS if times * alpha < 1.0]
    levels = levels if step == 1 else levels[:1]
    found: list[Calibration] = []
    asked: list[list[float]] = []
    for sweep in range(SWEEPS if len(lossy) > 1 else 1):
        last = sweep == SWEEPS - 1 or len(lossy) == 1
        found = [calibrate(replace(trust, point=model.as_known()))]
        asked = [_thresholds(found[0], levels)]
        for j in lossy:
            points = regions[j] if last else regions[j][::FIRST]
            tried = [under(j, point) for point in points]
            thresholds = [_thresholds(each, levels) for each in tried]
            place = int(np.argmax([each[0] for each in thresholds]))
            intercept[j], coef[j] = points[place, :2]
            found += tried
            asked += thresholds
    most = [int(place) for place in np.argmax(asked, axis=0)]
    others = tuple(found[place] for place in dict.fromkeys(most) if place != most[0])
    return replace(found[most[0]], others=others)


def _thresholds(calibration: Calibration, levels: list[float]) -> list[float]:
    """What is asked for at some levels; infinite where nothing can be certified."""
    chosen = [each.threshold for each in calibration.select(levels)]
    return [np.inf if threshold is None else threshold for threshold in chosen]


def _possible(
    model: LearnedMissingness, delta: float, rows: list[ScoredRows]
) -> list[FloatArray]:
    """Points (intercept, slope) of each column's region; none where nothing is lost.

    A φ that gives an observed row no chance is refuted by it. In its place comes the
    one on the way from the estimate at which the row is just possible.
    """
    tables = [as_numeric_array(each.rows).astype(np.float64) for each in rows]
    estimate = np.stack(np.broadcast_arrays(model.intercept, model.coef), axis=-1)
    possible = []
    for j, points in enumerate(model.region(delta)):
        if not np.isfinite(points).all():
            possible.append(points[:0])
            continue
        ends = [
            end.reduce(table[:, j], initial=np.nan)
            for table in tables
            for end in (np.fmin, np.fmax)
        ]
        design = np.stack([np.ones(len(ends)), ends])
        centre = np.atleast_2d(estimate)[j]
        start, away = centre @ design, (points[:, :2] - centre) @ design
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(start + away > MOST, (MOST - start) / away, 1.0)
        share = np.clip(share.min(axis=1, keepdims=True), 0.0, 1.0)
        possible.append(centre + share * (points[:, :2] - centre))
    return possible
