"""Whether missingness depends on the label: φ of one class against that of another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import chi2

from missratio._base.typing import FloatArray
from missratio.learning._checks import LEVEL, Check
from missratio.learning._coordinates import Coordinates
from missratio.learning._learned import LearnedMissingness


def compare_classes(models: Mapping[Any, LearnedMissingness]) -> tuple[Check, ...]:
    """Test, feature by feature, whether φ is the same in all classes.

    The statistic is Σ (γ_c − γ)ᵀ C_c⁻¹ (γ_c − γ), where γ_c and C_c are a class's
    parameters and their covariance and γ is their weighted mean: χ² in the limit where
    φ is the same. If it isn't, the label says something of what is missing: each class
    needs a φ of its own, and one that was learned from both is wrong for both.

    Parameters
    ----------
    models : mapping of label to LearnedMissingness
        Two or more, for the same features, and learned from rows of one class each.

    Returns
    -------
    tuple of Check
        Of kind "label", for the features that are missing in two classes or more;
        `failed` where φ differs, by `LEVEL` over all features.
    """
    if len(models) < 2:
        raise ValueError(f"Two classes or more can be compared: got {len(models)}.")
    first = next(iter(models.values()))
    for label, model in models.items():
        if (model.feature_names, model.rowwise) != (first.feature_names, first.rowwise):
            raise ValueError(
                f"The model of class {label!r} is for other features than the first: "
                "learn all of them from the same columns."
            )
    names = ("rows",) if first.rowwise else first.feature_names
    found = {}
    for j, name in enumerate(names):
        lossy = [m for m in models.values() if m.evidence[j] is not None]
        if len(lossy) > 1:
            found[name] = _difference(lossy, j)
    checks = []
    for name, (statistic, p_value) in found.items():
        failed = p_value * len(found) <= LEVEL
        words = (
            "it goes missing for other reasons in one class than in another"
            if failed
            else "nothing says that it goes missing differently by class"
        )
        sentence = f"{name}: {words} (p = {p_value:.2g})."
        if failed:
            sentence += " Learn φ for each class by itself."
        checks.append(
            Check("label", name, "looked up", statistic, p_value, failed, sentence)
        )
    return tuple(checks)


def _difference(models: list[LearnedMissingness], j: int) -> tuple[float, float]:
    """The statistic of one feature, or of whole rows, and its p-value."""
    evidence = models[0].evidence[j]
    assert evidence is not None
    size = min(len(m._thetas[j]) for m in models)
    own: Coordinates = evidence.coordinates
    centre, scale = own.centre[: size - 1], own.scale[: size - 1]
    coordinates = Coordinates(centre, scale)
    points: list[FloatArray] = []
    precisions: list[FloatArray] = []
    for model in models:
        covariance = model.covariance if model.rowwise else model.covariance[j]
        linear = coordinates.standardise(np.eye(size)).T
        standard = linear @ covariance[:size, :size] @ linear.T
        precisions.append(np.asarray(np.linalg.inv(standard), dtype=np.float64))
        coef = np.asarray(model.coef)
        slopes = coef if model.rowwise else coef[j : j + 1]
        theta = np.append(np.atleast_1d(np.asarray(model.intercept))[j], slopes)
        points.append(coordinates.standardise(theta[:size]))
    total = np.sum(precisions, axis=0)
    pulls = [P @ point for P, point in zip(precisions, points, strict=True)]
    mean = np.linalg.solve(total, np.sum(pulls, axis=0))
    statistic = sum(
        float((point - mean) @ P @ (point - mean))
        for P, point in zip(precisions, points, strict=True)
    )
    return statistic, float(chi2.sf(statistic, size * (len(models) - 1)))
