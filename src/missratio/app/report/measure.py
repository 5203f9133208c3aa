"""What a report measures on rows: errors and power, what scores depend on, blanks.

Shares have intervals: Clopper and Pearson's where rows count the same, and Korn and
Graubard's where they are weighted.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from missratio._base.reading import as_frame
from missratio._base.typing import BoolArray, FloatArray
from missratio.app.modelfile import TWO_CLASSES, certificates_of, kind_of
from missratio.app.report.rows import LabelledRows, Names, numbers
from missratio.classifier import measured_power, sensitivity_curve
from missratio.classifier.estimators import default_estimator
from missratio.evaluation import weighted_share
from missratio.imputation import ImputationEnsemble
from missratio.weights import effective_sample_size

Data = dict[str, Any]

EXACT = "Clopper and Pearson's exact interval"
WEIGHTED = "Korn and Graubard's interval for weighted rows, approximate"
POOLED = ", for rows pooled over the fits"
# Levels of the NP-ROC: close together where certificates are wanted most.
LEVELS = np.r_[0.001:0.02:0.001, 0.02:0.1:0.005, 0.1:0.3:0.01, 0.3:0.51:0.05].round(4)
SOURCES = {
    "test": "test rows, which took no part in fitting",
    "cross-validation": "rows left out in turn while the classifier was fitted again",
    "held-out": "rows of the other class, which took no part in fitting",
    "held out": "rows held out of the fit, though thresholds were chosen on them",
}
# Refits that impute values take nearly all of a fit's time: one is made, without a
# third of the rows.
IMPUTED_FOLDS = 3
# Rows of each class that a refit takes at most.
MOST_REFITTED = 20_000
MOST_LISTED, MOST_DRAWN = 60, 12
# Rows of each class to shuffle, and shuffles in all: a wide table would take long.
MOST_SHUFFLED, MOST_SHUFFLES, REPEATS = 1500, 120, 5
# Points of a profile of φ, and the level of a band that no certificate rests on.
POINTS, BAND_DELTA = 25, 0.05


def last_step(estimator: Any) -> Any:
    """The last step of a pipeline; another estimator itself."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


# Errors and power --------------------------------------------------------------------


def share_of(
    events: BoolArray | FloatArray,
    weights: FloatArray,
    confidence: float,
    fits: int = 1,
    doubt: FloatArray | None = None,
) -> Data:
    """The weighted share of events with its interval; rows of weight 0 are left out."""
    counted = weights[weights > 0.0]
    share, (low, high), method = None, (0.0, 1.0), EXACT
    if len(counted):
        error = 0.0 if doubt is None else float(np.average(doubt, weights=weights))
        share, (low, high) = weighted_share(events, weights, confidence, error)
        exact = events.dtype == bool and not np.ptp(counted) > 0.0
        method = EXACT if exact else WEIGHTED
    method += POOLED * (fits > 1)
    return {"estimate": share, "low": low, "high": high, "rows": len(counted),
            "confidence": confidence, "method": method}  # fmt: skip


def fresh(
    rows: LabelledRows,
    few: LabelledRows,
    test: LabelledRows | None,
    folds: int,
    rng: np.random.Generator,
) -> tuple[list[LabelledRows], str]:
    """Rows that are new to the classifier that they come with, and their source.

    Test rows, or those left out in turn of fits to `few` of the rows; where no such fit
    is certified, or there is none, rows that were held out.
    """
    classifier = rows.classifier
    if test is not None:
        return [test], "test"
    if kind_of(classifier) == TWO_CLASSES:
        if not hasattr(classifier, "calibration_index_"):
            return [rows], "held-out"
        parts = list(_rescored(rows, folds, rng))
        return parts or [few.take(np.arange(0))], "cross-validation"
    parts = list(_refits(few, folds, rng))
    if all(any(len(part.index(k)) for part in parts) for k in rows.labels):
        return parts, "cross-validation"
    if rows.groups is None:
        held = [classifier.calibration_index_, classifier.choice_index_]
        few = rows.take(np.sort(np.concatenate(held)))
    return [few], "held out"


def _refits(
    rows: LabelledRows, folds: int, rng: np.random.Generator
) -> Iterator[LabelledRows]:
    """What is new to fits without one fold of each class in turn.

    A fit that can't be made or certified is passed over.
    """
    seed = rows.classifier.random_state
    seed = seed if isinstance(seed, (int, np.integer)) else 0
    parameters: Data = {"random_state": seed}
    if rows.groups is not None:
        # A group that can't be certified leaves the others theirs.
        parameters["on_infeasible"] = "reject_all"
    folds, turns = _turns(rows, folds)
    fold = np.full(len(rows.y), -1)
    for label in rows.labels:
        index = rows.index(label)
        fold[index] = rng.permutation(len(index)) % max(folds, 1)
    for k in range(turns):
        index, new = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        if not len(new):
            continue
        kept, again = rows.take(index), clone(rows.classifier).set_params(**parameters)
        more = {} if rows.groups is None else {"groups": kept.groups}
        with warnings.catch_warnings(action="ignore"):
            try:
                again.fit(kept.X, kept.y, inclusion=kept.inclusion, **more)
            except (ValueError, np.linalg.LinAlgError):
                continue
        if rows.groups is not None:
            # A refit tells nothing of a group that it alone lacks a threshold for.
            before, after = (
                np.array([limits.get(group, np.inf) for group in rows.groups])
                for limits in (rows.classifier.thresholds_, again.thresholds_)
            )
            new = new[(np.isinf(before) | np.isfinite(after))[new]]
        yield replace(rows.take(new), classifier=again)


def _turns(rows: LabelledRows, folds: int) -> tuple[int, int]:
    """Into how many folds rows are split, and how many of them are left out in turn."""
    turns = folds if folds > 1 else 0
    if isinstance(last_step(rows.classifier.estimator), ImputationEnsemble):
        return IMPUTED_FOLDS, min(turns, 1)
    return folds, turns


def _rescored(
    rows: LabelledRows, folds: int, rng: np.random.Generator
) -> Iterator[LabelledRows]:
    """Rows of the other class, by classifiers whose estimator hasn't seen them.

    The classifier itself has seen all of them, so that its estimator is fitted again
    without one fold of them in turn. Its calibration rows stay as they are, and no
    threshold is certified again: that of a refit is `moved`. They come with the rows.
    """
    classifier, folds_and_turns = rows.classifier, _turns(rows, folds)
    held, known = classifier.calibration_index_, classifier.training_index_
    mine = known[rows.y[known] == rows.controlled]
    others = rng.permutation(rows.index(rows.other))[:MOST_REFITTED]
    mine = rng.permutation(mine)[:MOST_REFITTED]
    table = copy(classifier)._table(rows.X, rows.y, rows.inclusion, {})
    estimator = classifier.estimator
    if estimator is None:
        estimator = default_estimator(table, known)
    for k in range(folds_and_turns[1]):
        new = others[k :: folds_and_turns[0]]
        kept = np.sort(np.concatenate([mine, np.setdiff1d(others, new)]))
        again, part = copy(classifier), rows.take(np.concatenate([held, new]))
        with warnings.catch_warnings(action="ignore"):
            try:
                again.estimator_ = table.fit_one(estimator, kept)
            except (ValueError, np.linalg.LinAlgError):
                continue
        again._sign = 1.0
        limit = np.array([classifier.threshold_])
        again.threshold_ = float(moved(limit, part, classifier, again)[0])
        yield replace(part, classifier=again)


def moved(
    limits: FloatArray, rows: LabelledRows, classifier: Any, refit: Any
) -> FloatArray:
    """Thresholds of a refit above which as many rows lie as above a classifier's.

    That is the share, by weight, of the calibration rows, which neither was fitted to.
    """
    held = rows.take(rows.index(rows.controlled))
    scores = classifier.score_samples(held.X)
    # The same rows are beyond the certificate's cap: φ's band is slow to evaluate.
    again = np.where(np.isneginf(scores), -np.inf, refit._score(held.X))
    order = np.argsort(-again, kind="stable")
    masses, values = np.cumsum(held.weights[order]), again[order]
    # Each row may be the first that isn't above; of equal ones the first of all.
    first = np.searchsorted(-values, -values, side="left")
    above = np.append(0.0, masses)[first]
    result = np.full(len(limits), np.inf)
    for place, limit in enumerate(limits):
        if limit < np.inf and len(values):
            mass = held.weights[scores > limit].sum()
            result[place] = values[np.argmin(np.abs(above - mass))]
    return result


def found(
    rows: LabelledRows, parts: list[LabelledRows], limits: FloatArray
) -> tuple[BoolArray | FloatArray, FloatArray]:
    """How the other class's rows of `parts` count for the power at some thresholds.

    Rows that a refit left out are new to it, but its threshold is only about the
    classifier's: `moved` by few rows. The other refits, with such thresholds as well,
    and the classifier itself have seen the row. By how much these differ says how far
    off thresholds are, or how much more a refit knows by heart: half of it is added,
    and is the doubt in the other half.

    Returns
    -------
    counted, doubt : ndarray of shape (n_limits, n_rows)
    """
    classifier, columns, doubts = rows.classifier, [], []
    refitted = parts[0].classifier is not classifier
    places = [
        moved(limits, part, classifier, part.classifier) if refitted else limits
        for part in parts
    ]
    for k, part in enumerate(parts):
        X = part.rows(rows.other)
        scores = classifier.score_samples(X)
        above = [scores > limits[:, None]]
        if refitted:
            # The same rows are beyond the certificate's cap.
            lost, by_all = np.isneginf(scores), above[0].astype(np.float64)
            above = [
                np.where(lost, -np.inf, refit.classifier._score(X)) > place[:, None]
                for refit, place in zip(parts, places, strict=True)
            ]
        new = above.pop(k if refitted else 0)
        doubts.append(np.zeros(new.shape))
        if above:
            doubts[-1] = (by_all - np.mean(above, axis=0)) / 2.0
            new = new + doubts[-1]
        columns.append(new)
    return np.concatenate(columns, axis=1), np.concatenate(doubts, axis=1)


def curve(rows: LabelledRows, parts: list[LabelledRows], confidence: float) -> Data:
    """The NP-ROC: what is certified at each level, and the power there.

    It is measured on the other class's rows of `parts`, by the classifier of each.
    """
    classifier = rows.classifier
    alphas = np.unique([*LEVELS, classifier.alpha]).tolist()
    chosen = classifier.calibration_.select(alphas)
    limits = np.array([np.inf if s.threshold is None else s.threshold for s in chosen])
    parts = [part for part in parts if len(part.index(rows.other))]
    above: Any = np.zeros((len(alphas), 0))
    doubts, counted = above, np.zeros(0)
    if parts:
        above, doubts = found(rows, parts, limits)
        counted = np.concatenate([p.weights[p.index(rows.other)] for p in parts])
    levels = []
    for alpha, selection, events, doubt in zip(
        alphas, chosen, above, doubts, strict=True
    ):
        power = share_of(events, counted, confidence, len(parts), doubt)
        level = {"alpha": alpha, "threshold": np.inf, "rule": selection.rule,
                 "error_bound": None, "estimated_error": 0.0, **power}  # fmt: skip
        if selection.threshold in (None, np.inf):
            level |= {"estimate": 0.0, "low": 0.0, "high": 0.0}
        else:
            error = classifier.calibration_.sample.estimated_error(selection.threshold)
            level |= {"threshold": selection.threshold, "estimated_error": error,
                      "error_bound": selection.error_bound}  # fmt: skip
        levels.append(level)
    return {"levels": levels, "own": alphas.index(classifier.alpha)}


# What scores and the certificate depend on -------------------------------------------


def importance(fresh: LabelledRows, names: Names, alpha: float) -> Data | None:
    """The power lost at error α where the values of a column are shuffled.

    Every feature of the column is shuffled together, among the rows of both classes,
    and the threshold is moved so that the (weighted) share α of the controlled class
    lies above it as before. Columns, most important first, with the mean loss, its
    range over shuffles, and the correlation of a number with the score; None without
    rows of both classes.
    """
    rng = np.random.default_rng(0)
    usable = np.flatnonzero(fresh.weights > 0.0)
    rows = fresh.take(usable).sampled(MOST_SHUFFLED, rng)
    if len(np.unique(rows.y)) < len(rows.labels):
        return None
    frame, is_other = as_frame(rows.X), rows.y == rows.other
    # Rows beyond the certificate's cap stay there: φ's band is slow to evaluate.
    scores = rows.classifier.score_samples(rows.X)

    def power(places: Sequence[int]) -> float:
        order, X = rng.permutation(len(rows.y)), rows.X
        if frame is not None:
            columns = [frame.get_column(frame.columns[j])[order] for j in places]
            X = frame.with_columns(columns).to_native()
        elif places:
            X = np.array(X)
            X[:, places] = X[order][:, places]
        again = np.where(np.isneginf(scores), -np.inf, rows.classifier._score(X))
        share, _ = measured_power(again, is_other, rows.weights, alpha)
        assert share is not None
        return share

    values, _ = numbers(rows.X)
    slopes = np.full(len(names.members), np.nan)
    for j, places in enumerate(names.members.values()):
        column = values[:, places[0]]
        known = np.isfinite(column) & np.isfinite(scores)
        if len(places) == 1 and known.any() and np.ptp(column[known]):
            slopes[j] = np.corrcoef(column[known], scores[known])[0, 1]
    whole, columns, members = power([]), [*names.members], [*names.members.values()]
    # Where columns are very many, categories and those that go with the score count.
    shuffled = np.argsort(-np.abs(np.nan_to_num(slopes, nan=1.0)), kind="stable")
    shuffled = np.sort(shuffled[:MOST_SHUFFLES])
    repeats = int(np.clip(MOST_SHUFFLES // max(len(shuffled), 1), 1, REPEATS))
    lost = np.array(
        [[whole - power(members[j]) for _ in range(repeats)] for j in shuffled]
    )
    order = np.argsort(-lost.mean(axis=1), kind="stable")
    return {
        "names": [columns[shuffled[j]] for j in order],
        "values": lost.mean(axis=1)[order],
        "low": lost.min(axis=1)[order],
        "high": lost.max(axis=1)[order],
        "correlation": slopes[shuffled][order],
        "power": whole,
        "rows": len(rows.y),
        "repeats": repeats,
        "left_out": len(columns) - len(shuffled),
    }


def sensitivity(rows: LabelledRows, most: int) -> Data | None:
    """Certified error and power where φ is another, and the tipping points.

    None where no φ is assumed, nothing is certified, or rows are more than `most`.
    """
    classifier = rows.classifier
    certificate = classifier.certificate_
    model = classifier.calibration_.trust.model
    if model is None or not certificate.certified or certificate.rows > most:
        return None
    # Rows of a dataframe are scored as an array, and the estimator says so.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        curve = sensitivity_curve(classifier, rows.X, rows.y)
    return {**asdict(curve), "tipping_factor": curve.tipping_factor}


# What is missing ---------------------------------------------------------------------


def missing_values(rows: LabelledRows, few: LabelledRows, names: Names) -> Data:
    """Missing values by class and column, with φ and its band where it is modelled.

    φ along columns is that of `few` of the rows.

    Returns
    -------
    dict
        `classes`: the model of each. `features`: the columns, those with the most
        missing values first, with counts by class, and how many of these were looked
        up. `profiles`: φ along columns. `left_out`: how many columns are not listed.
    """
    missing, columns = names.missing(rows.as_found.X), list(names.members)
    lost = names.blanks(rows.as_found.X)
    filled = missing & ~names.missing(rows.X)
    counts, looked_up = (
        np.array([mask[rows.y == label].sum(axis=0) for label in rows.labels])
        for mask in (missing, filled)
    )
    totals = np.array([max(1, len(rows.index(label))) for label in rows.labels])
    shares = counts / totals[:, None]
    order = np.argsort(-shares.max(axis=0, initial=0.0), kind="stable")
    first = [places[0] for places in names.members.values()]
    profiles: list[Data] = []
    for place, label in enumerate(rows.labels):
        # A column of numbers is its own feature; categories can't be drawn.
        lossy = [first[j] for j in order if counts[place, j]]
        lossy = [j for j in lossy if names.features[j] in columns]
        profiles += _profiles(few, label, lossy, names.features)
    return {
        "classes": [_class_model(rows, label, ~lost) for label in rows.labels],
        "features": [
            {"name": columns[j], "missing": counts[:, j], "share": shares[:, j],
             "looked_up": looked_up[:, j]}
            for j in order[:MOST_LISTED]
        ],
        "left_out": max(0, len(columns) - MOST_LISTED),
        "profiles": profiles,
    }  # fmt: skip


def _class_model(rows: LabelledRows, label: Any, whole: BoolArray) -> Data:
    model, index = rows.model(label), rows.index(label)
    complete, weights = whole[index], rows.weights[index]
    drawn = np.zeros(len(index), dtype=bool)
    if model is None and rows.drawn is not None:
        drawn = ~complete & (rows.drawn.probability[index] > 0.0)
    kind = "none" if model is None else "learned" if model.learned else "known"
    return {
        "label": label,
        "rows": len(index),
        "complete": int(complete.sum()),
        "kind": "looked-up" if drawn.any() else kind,
        "drawn": int(drawn.sum()),
        "found": int((drawn & rows.complete[index]).sum()),
        "largest": weights.max(initial=0.0),
        "effective_rows": effective_sample_size(weights),
        "whole_rows": None if model is None else model.rowwise,
        "band_confidence": 1.0 - _band_delta(rows, label),
        "checks": [
            {"sentence": check.sentence, "failed": check.failed}
            for check in getattr(model, "checks", ())
        ],
    }


def _band_delta(rows: LabelledRows, label: Any) -> float:
    """At which level φ's band is shown: the certificate's, where that rests on it."""
    every = certificates_of(rows.classifier)
    parts = [c.missingness_delta for c in every if c.controlled_class == label]
    return max(parts, default=0.0) or BAND_DELTA


def _profiles(
    rows: LabelledRows, label: Any, lossy: list[int], names: Sequence[str]
) -> list[Data]:
    """φ of one class, and its band, along each of the features that miss most.

    The other features are in the middle of what is known of them.
    """
    model = rows.model(label)
    if model is None or not lossy:
        return []
    values, _ = numbers(rows.as_found.rows(label))
    lossy = [j for j in lossy if not np.isnan(values[:, j]).all()]
    # Categories, and columns that no row has.
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        middle = np.nan_to_num(np.nanmedian(values, axis=0))
    profiles: list[Data] = []
    for j in lossy:
        low, high = np.nanquantile(values[:, j], [0.005, 0.995])
        if low < high and len(profiles) < MOST_DRAWN:
            table = np.tile(middle, (POINTS, 1))
            table[:, j] = np.linspace(low, high, POINTS)
            phi = model.missing_probability(table)
            bands = phi, *model.probability_band(table, _band_delta(rows, label))
            along = (band if model.rowwise else band[:, j] for band in bands)
            profiles.append(
                {"name": names[j], "label": label, "at": table[:, j],
                 **dict(zip(("phi", "low", "high"), along, strict=True))}
            )  # fmt: skip
    return profiles
