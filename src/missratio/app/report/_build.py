"""From a fitted classifier and its rows to a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from missratio.app.report._cautions import cautions
from missratio.app.report._classes_build import describe_classes
from missratio.app.report._coefficients import coefficients
from missratio.app.report._columns import Names
from missratio.app.report._complete_case import complete_case
from missratio.app.report._groups_build import describe_groups
from missratio.app.report._importance import importance
from missratio.app.report._missing import missing_values
from missratio.app.report._next import next_steps
from missratio.app.report._origin import Origin, estimator_name
from missratio.app.report._performance import curve, score_histograms, type_i
from missratio.app.report._plain import plain
from missratio.app.report._report import FORMAT, TWO_CLASSES, Report
from missratio.app.report._rows import LabelledRows
from missratio.app.report._scored import unscored
from missratio.app.report._sensitivity import sensitivity
from missratio.app.report._sizes import weights_by_class
from missratio.app.report._words import certificate_words
from missratio.classifier import (
    GroupedNeymanPearsonClassifier,
    MulticlassNeymanPearsonClassifier,
    NeymanPearsonClassifier,
    PowerComparison,
    check_same_rows,
)

Certified = (
    NeymanPearsonClassifier
    | MulticlassNeymanPearsonClassifier
    | GroupedNeymanPearsonClassifier
)
# Refits and histograms use at most so many rows of each class.
MOST_ROWS = 20_000


def build_report(
    classifier: Certified,
    X: Any,
    y: ArrayLike,
    *,
    inclusion: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    X_test: Any = None,
    y_test: ArrayLike | None = None,
    groups_test: ArrayLike | None = None,
    title: str | None = None,
    folds: int = 5,
    confidence: float = 0.95,
    feature_names: Sequence[str] | None = None,
) -> Report:
    """Report what a certified classifier guarantees, how good it is, and the evidence.

    Parameters
    ----------
    classifier : classifier
        Fitted: a `NeymanPearsonClassifier`, a `MulticlassNeymanPearsonClassifier` or a
        `GroupedNeymanPearsonClassifier`.
    X, y : array-like or dataframe of shape (n_rows, n_columns), array-like
        The rows that it was fitted with, in the same order; or those it was calibrated
        with, and rows of the other class that the estimator hasn't seen.
    inclusion, groups : array-like, optional, that it was fitted with
    X_test, y_test, groups_test : optional
        Rows that took no part, to measure errors on; without them: cross-validation.
    title : str, optional
    folds : int, default=5
        Of cross-validation. 0 measures the power on the rows fitted on, and says so.
    confidence : float, default=0.95, of intervals
    feature_names : sequence of str, where X is an array

    Returns
    -------
    Report

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (600, 2)), rng.normal(1, 1, (600, 2))])
    >>> y = np.repeat([0, 1], 600)
    >>> clf = mr.NeymanPearsonClassifier(mr.KLIEP(), alpha=0.1, random_state=0)
    >>> report = mr.build_report(clf.fit(X, y), X, y)
    >>> print(report.data["words"]["headline"])
    At most 10% of complete class-0 rows are classified as class 1, with 95% confidence.
    """
    words = _describer(classifier, X, y, groups)
    given = None if inclusion is None else np.asarray(inclusion, dtype=np.float64)
    rows = LabelledRows.read(classifier, X, y, given, groups=groups)
    test = _read_test(classifier, X_test, y_test, groups_test)
    names = Names.of(_feature_names(classifier, feature_names))
    return words(
        rows, test, title=title, folds=folds, confidence=confidence, names=names
    )


def describe(
    rows: LabelledRows,
    test: LabelledRows | None = None,
    *,
    title: str | None,
    names: Names,
    folds: int = 5,
    confidence: float = 0.95,
    comparison: PowerComparison | None = None,
    origin: Origin | None = None,
    sampled: bool = False,
) -> Report:
    """What `build_report` gives, for rows of which the calibration sample is at hand.

    Parameters
    ----------
    rows, test : LabelledRows
        Those that its classifier was fitted with, and others.
    title : str or None
    names : Names
        Of the features and of their columns.
    folds : int, default=5
    confidence : float, default=0.95
    comparison, origin : optional
        The methods that were compared; the command and file that the rows came by.
    sampled : bool, default=False
        Whether rows are a sample that took no part in the fit, so that nothing can be
        calibrated again.
    """
    classifier = rows.classifier
    rng = np.random.default_rng(0)
    few = rows.sampled(MOST_ROWS, rng)
    certificate = classifier.certificate_
    curve_data, fresh = curve(
        rows, test, folds=folds, confidence=confidence, most=MOST_ROWS, rng=rng
    )
    linear = coefficients(rows, few, confidence, list(names.features))
    data: dict[str, Any] = {
        "format": FORMAT,
        "kind": TWO_CLASSES,
        "title": title or "Certified classifier",
        "model": _model(rows),
        "origin": (origin or Origin()).described(classifier),
        "certificate": certificate.to_dict(),
        "words": certificate_words(certificate, rows.other),
        "type_i": type_i(rows, test, confidence),
        "curve": curve_data,
        "unscored": unscored(few),
        "scores": score_histograms(few),
        "missingness": missing_values(rows, few, names),
        "sensitivity": None if sampled else sensitivity(rows, MOST_ROWS),
        "weights": weights_by_class(rows),
        "complete_case": complete_case(few, test, confidence),
        "coefficients": linear,
        "importance": None if linear else importance(fresh, names, classifier.alpha),
        "comparison": None if comparison is None else asdict(comparison),
    }  # fmt: skip
    data["cautions"] = cautions(rows, data)
    data["next"] = next_steps(rows, data)
    return Report(plain(data))


def _describer(
    classifier: Any, X: Any, y: ArrayLike, groups: ArrayLike | None
) -> Callable[..., Report]:
    """What describes a classifier of its kind; refuse rows that aren't for it."""
    grouped = isinstance(classifier, GroupedNeymanPearsonClassifier)
    if grouped != (groups is not None):
        raise ValueError(
            "The classifier has promises to groups: give groups, one for each row."
            if grouped
            else "The classifier has no promises to groups: leave out groups."
        )
    if isinstance(classifier, NeymanPearsonClassifier):
        check_same_rows(classifier, X, y)
        return describe
    check_is_fitted(classifier, "certificate_")
    return describe_groups if grouped else describe_classes


def _read_test(
    classifier: Any, X: Any, y: ArrayLike | None, groups: ArrayLike | None
) -> LabelledRows | None:
    if (X is None) != (y is None):
        raise ValueError("X_test and y_test go together: give both, or neither.")
    if X is None or y is None:
        return None
    if isinstance(classifier, GroupedNeymanPearsonClassifier) and groups is None:
        raise ValueError("Test rows have groups, too: give groups_test.")
    return LabelledRows.read(classifier, X, y, groups=groups)


def _feature_names(classifier: Any, given: Sequence[str] | None) -> list[str]:
    names = getattr(classifier, "feature_names_in_", given)
    if names is not None and len(names) != classifier.n_features_in_:
        raise ValueError(
            f"feature_names must name {classifier.n_features_in_} columns, got "
            f"{len(names)} names."
        )
    if names is None:
        return [f"x{j}" for j in range(classifier.n_features_in_)]
    return [str(name) for name in names]


def _model(rows: LabelledRows) -> dict[str, Any]:
    classifier = rows.classifier
    return {
        "version": version("missratio"),
        "estimator": estimator_name(classifier.estimator_),
        "features": classifier.n_features_in_,
        "bounded": rows.bounded,
        "controlled": rows.controlled,
        "other": rows.other,
        "rows": len(rows.y),
        "controlled_rows": len(rows.index(rows.controlled)),
        "other_rows": len(rows.index(rows.other)),
        "deployment": classifier.deployment,
    }
