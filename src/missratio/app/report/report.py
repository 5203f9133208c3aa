"""A report: measured once as plain data, and shown as a page, as text or as JSON."""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from itertools import zip_longest
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from missratio._base.hints import shown
from missratio.app.modelfile import (
    SEVERAL_CLASSES,
    TWO_CLASSES,
    certificates_of,
    kind_of,
    plain,
)
from missratio.app.report import measure, pages, sections, words
from missratio.app.report.rows import LabelledRows, Names, narrowed
from missratio.classifier import (
    GroupedNeymanPearsonClassifier,
    MulticlassNeymanPearsonClassifier,
    NeymanPearsonClassifier,
    check_same_rows,
)
from missratio.weights import complete_row_weights

Certified = (
    NeymanPearsonClassifier
    | MulticlassNeymanPearsonClassifier
    | GroupedNeymanPearsonClassifier
)
FORMAT = 9
FRAME_HEIGHT = 900
# Refits use at most so many rows of each class.
MOST_ROWS = 20_000
# More than any number is worth.
DIGITS = 7
# Commands among what is known of where a report is from.
COMMANDS = ("command", "check", "query")


@dataclass(frozen=True, repr=False, eq=False)
class Report:
    """What a certified classifier guarantees, and what that rests on.

    Made by `build_report`, or from the data of another report; a notebook shows it by
    itself. Every page is rendered from `data` alone, so that a report can be stored
    beside its model and shown where neither the model nor its rows are.

    Parameters
    ----------
    data : dict
        Lists, dicts, strings and numbers only, as JSON has them.

    Examples
    --------
    >>> import missratio as mr
    >>> report = mr.build_report(classifier, X, y)  # doctest: +SKIP
    >>> Path("report.html").write_text(report.html())  # doctest: +SKIP
    """

    data: dict[str, Any]

    def __post_init__(self) -> None:
        written = self.data.get("format") if isinstance(self.data, dict) else None
        if written != FORMAT:
            raise ValueError(
                f"A report's data must be of format {FORMAT}: got {written!r}. Build "
                "the report again with this version of missratio."
            )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """A report from what `json` gave.

        Parameters
        ----------
        text : str

        Returns
        -------
        Report
        """
        return cls(json.loads(text))

    def json(self) -> str:
        """The report's data as JSON.

        Returns
        -------
        str
            The same sections as data.
        """
        return json.dumps(self.data, ensure_ascii=False, allow_nan=False)

    def html(self) -> str:
        """One page that needs nothing but a browser: no file beside it, no network.

        Returns
        -------
        str
            One page that needs no other file.
        """
        return pages.html(sections.document(self.data), self.data)

    def markdown(self) -> str:
        """The report as text, without its figures.

        Returns
        -------
        str
            CommonMark, with tables as GitHub has them.
        """
        return pages.markdown(sections.document(self.data))

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that neither style meets the other."""
        return (
            f'<iframe srcdoc="{escape(self.html())}" title="missratio report" '
            f'style="width: 100%; height: {FRAME_HEIGHT}px; border: 0" '
            'sandbox="allow-scripts allow-popups"></iframe>'
        )

    def __repr__(self) -> str:
        """The certificate's headline."""
        return f"Report({self.data['words']['headline']!r})"


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
        Of cross-validation. 0 leaves the power unknown where there are no test rows.
    confidence : float, default=0.95, of intervals
    feature_names : sequence of str, where X is an array

    Returns
    -------
    Report
        To be written as a page, Markdown or JSON.

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
    grouped = isinstance(classifier, GroupedNeymanPearsonClassifier)
    if grouped != (groups is not None):
        raise ValueError(
            "The classifier has promises to groups: give groups, one for each row."
            if grouped
            else "The classifier has no promises to groups: leave out groups."
        )
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test and y_test go together: give both, or neither.")
    if grouped and X_test is not None and groups_test is None:
        raise ValueError("Test rows have groups, too: give groups_test.")
    if isinstance(classifier, NeymanPearsonClassifier):
        check_same_rows(classifier, X, y)
        X, X_test = (t if t is None else classifier._used(t) for t in (X, X_test))
        classifier = classifier.of_used_columns()
    check_is_fitted(classifier, "certificate_")
    width = classifier.n_features_in_
    names = getattr(classifier, "feature_names_in_", feature_names)
    if names is None:
        names = [f"x{j}" for j in range(width)]
    if len(names) != width:
        raise ValueError(
            f"feature_names must name {width} columns, got {len(names)} names."
        )
    test = None
    if X_test is not None and y_test is not None:
        test = LabelledRows.read(classifier, X_test, y_test, groups=groups_test)
    given = None if inclusion is None else np.asarray(inclusion, dtype=np.float64)
    columns = [*map(str, names)]
    return describe(
        LabelledRows.read(classifier, X, y, given, groups=groups),
        test,
        title=title,
        names=Names(columns, columns),
        folds=folds,
        confidence=confidence,
    )


def describe(
    rows: LabelledRows,
    test: LabelledRows | None = None,
    *,
    title: str | None,
    names: Names,
    folds: int = 5,
    confidence: float = 0.95,
    origin: Mapping[str, str | None] | None = None,
    column: str = "group",
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
    origin : mapping, optional
        The `command` that rows came by, the `method` and why, the name of the `file`
        with its `sha256`, that of the `model` file, and commands to `check` the table
        and to `query` values.
    column : str, default="group"
        What groups are groups of.
    """
    classifier, kind = rows.classifier, kind_of(rows.classifier)
    certificate, seed = classifier.certificate_, classifier.random_state
    scores = getattr(classifier, "scores_", None)
    estimator = classifier.estimator_ if scores is None else scores.estimators[0]
    # The environment may set the time, so that a report can be made again.
    made = os.environ.get("SOURCE_DATE_EPOCH") or f"{time.time():.0f}"
    if not re.fullmatch(r"\d{1,11}", made):
        raise ValueError(
            f"SOURCE_DATE_EPOCH must be whole seconds since 1970: got {shown(made)}."
        )
    rng = np.random.default_rng(0)
    few = rows.sampled(MOST_ROWS, rng)
    data: dict[str, Any] = {
        "format": FORMAT,
        "kind": kind,
        "title": title or "Certified classifier",
        "model": {
            "version": version("missratio"),
            "estimator": type(measure.last_step(estimator)).__name__,
            "features": classifier.n_features_in_,
            "rows": len(rows.y),
            "bounded": rows.bounded,
            "fallback": getattr(certificate, "fallback", rows.controlled),
            "deployment": classifier.deployment,
            "column": column,
        },
        "origin": {
            "date": f"{datetime.fromtimestamp(int(made), UTC):%Y-%m-%d %H:%M} UTC",
            "seed": int(seed) if isinstance(seed, (int, np.integer)) else None,
            **{
                name: _without_folders(text) if name in COMMANDS else text
                for name, text in (origin or {}).items()
                if text is not None
            },
        },
        "certificate": certificate.to_dict(),
        "missingness": measure.missing_values(rows, few, names),
        **dict.fromkeys(["curve", "sensitivity", "importance"]),
    }
    parts, data["measured"] = measure.fresh(rows, few, test, folds, rng)
    data |= _errors(rows, parts, data["measured"], confidence, names)
    if kind == TWO_CLASSES:
        data["curve"] = measure.curve(rows, parts, confidence)
        data["sensitivity"] = measure.sensitivity(rows, MOST_ROWS)
        data["importance"] = measure.importance(parts[0], names, classifier.alpha)
    data["words"] = words.certificate_words(rows, data)
    data["cautions"] = list(words.cautions(data))
    data["next"] = [
        dict(zip(("title", "text", "command"), step, strict=True))
        for step in words.next_steps(rows, plain(data, DIGITS))
    ]
    return Report(plain(data, DIGITS))


def _without_folders(command: str) -> str:
    """A command in which absolute paths are names of files."""
    folders = re.compile(r"^(--?[\w-]+=)?(?:/|[A-Za-z]:[/\\]).*[/\\](?=.)")
    return shlex.join(folders.sub(r"\1", word) for word in shlex.split(command))


def _errors(
    rows: LabelledRows,
    parts: list[LabelledRows],
    measured: str,
    confidence: float,
    names: Names,
) -> dict[str, Any]:
    """What each class or group is promised, what is certified, and what was measured.

    Of several classes also what each is called.
    """
    certificate, labels, confusion = rows.classifier.certificate_, rows.labels, None
    kind = kind_of(rows.classifier)
    y = np.concatenate([part.y for part in parts])
    weights = np.concatenate([part.weights for part in parts])
    predicted = np.concatenate([part.predicted() for part in parts])
    blank = np.concatenate([names.blanks(part.X) for part in parts])

    def share(label: Any, called: Sequence[Any], group: Any = None) -> dict[str, Any]:
        mine = y == label
        if group is not None:
            mine &= np.concatenate([part.groups for part in parts]) == group
        events, counted = np.isin(predicted[mine], called), weights[mine]
        doubt = None
        if kind == TWO_CLASSES and label == rows.other and mine.any():
            limit = np.array([rows.classifier.threshold_])
            events, doubt = (x[0] for x in measure.found(rows, parts, limit))
        result = measure.share_of(events, counted, confidence, len(parts), doubt)
        if mine.any() and getattr(rows.model(label), "stated", ()):
            # It is as uncertain as what was stated, too.
            for end in (0, 1):
                model = narrowed(rows.model(label), end)
                again = weights.copy()
                again[y == label] = np.concatenate(
                    [complete_row_weights(part.rows(label), model) for part in parts]
                )
                other = measure.share_of(events, again[mine], confidence, 1, doubt)
                result["low"] = min(result["low"], other["low"])
                result["high"] = max(result["high"], other["high"])
        if rows.classifier.deployment == "as-observed":
            # The same of rows with blanks and of complete rows, where there are both.
            lost, both = blank[mine], {}
            if 0 < lost.sum() < len(lost):
                both = {"rows with blanks": lost, "complete rows": ~lost}
            result["parts"] = {
                name: measure.share_of(events[some], counted[some], confidence)
                for name, some in both.items()
            } or None
        return result

    # Whose error it is, in which group, by which certificate; what its rows must not be
    # called, and the class that is to be found.
    controlled, other = labels[:2]
    if kind == SEVERAL_CLASSES:
        # Bounded classes come first.
        asked = []
        for k, c in zip_longest(labels, certificate.certificates):
            wrong = [x for x in labels if x != k] if c is None else c.other_class
            asked.append((k, None, c, wrong, k))
        confusion = [
            {"label": k, "shares": [share(k, [x])["estimate"] for x in labels]}
            for k in labels
        ]
    else:
        groups = [None] if rows.groups is None else certificate.groups
        every = zip(groups, certificates_of(rows.classifier), strict=True)
        asked = [(controlled, group, c, [other], other) for group, c in every]
    entries = []
    for label, group, promise, wrong, right in asked:
        error = share(label, wrong, group)
        certified = getattr(promise, "certified", None)
        if kind == TWO_CLASSES:
            error["source"] = "test"
            if measured != "test" or error["estimate"] is None:
                error = {
                    "estimate": promise.estimated_error,
                    "low": 0.0,
                    "high": promise.error_bound,
                    "rows": promise.observed,
                    "confidence": 1.0 - promise.delta,
                    "method": "the certificate's bound",
                    "source": "calibration",
                }
        power = share(right, [right], group)
        if certified is False and right != label:
            power |= {"estimate": 0.0, "low": 0.0, "high": 0.0}
        entry = {
            "name": str(label if group is None else group),
            "label": label,
            "group": group,
            "error": error,
            "found": power,
            "level": getattr(promise, "alpha", None),
            "certified": certified,
            "bound": promise.error_bound if certified else None,
            "rows": getattr(promise, "rows", None),
            "robustness": None if promise is None else words.robustness(promise),
        }
        entry["sentence"] = words.promise_sentence(rows, entry)
        entries.append(entry)
    return {"errors": entries, "confusion": confusion}
