"""A report: measured once as plain data, and shown as a page, as text or as JSON."""

from __future__ import annotations

import json
import math
import tempfile
import webbrowser
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from missratio.app.modelfile import GROUPS, TWO_CLASSES, kind_of
from missratio.app.report import measure, words
from missratio.app.report.effects import (
    coefficients,
    importance,
    last_step,
    sensitivity,
)
from missratio.app.report.missing import missing_values
from missratio.app.report.rows import LabelledRows, Names
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
FORMAT = 5
FRAME_HEIGHT = 900
# Refits and histograms use at most so many rows of each class.
MOST_ROWS = 20_000
# Pairs of bounded classes that are drawn, the tightest first.
MOST_PAIRS = 3
DIGITS = 7


@dataclass(frozen=True, repr=False, eq=False)
class Report:
    """What a certified classifier guarantees, and what that rests on.

    Made by `build_report`, or from the data of another report. Every page is rendered
    from `data` alone, so that a report can be stored beside its model and shown where
    neither the model nor its rows are.

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
        found = self.data.get("format") if isinstance(self.data, dict) else None
        if found != FORMAT:
            raise ValueError(
                f"A report's data must be of format {FORMAT}: got {found!r}. Build the "
                "report again with this version of missratio."
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
        """
        return json.dumps(self.data, ensure_ascii=False, allow_nan=False)

    def html(self) -> str:
        """One page that needs nothing but a browser: no file beside it, no network.

        Returns
        -------
        str
        """
        from missratio.app.report.pages import html

        return html(self.data)

    def markdown(self) -> str:
        """The report as text, without its figures.

        Returns
        -------
        str
            CommonMark, with tables as GitHub has them.
        """
        from missratio.app.report.pages import markdown

        return markdown(self.data)

    def open(self) -> None:
        """Show the page: in a notebook within the output, elsewhere in a browser."""
        try:
            from IPython import get_ipython
            from IPython.display import display
        except ImportError:
            shell = None
        else:
            shell = get_ipython()
        if shell is not None and hasattr(shell, "kernel"):
            display(self)
            return
        folder = Path(tempfile.mkdtemp(prefix="missratio-"))
        page = folder / "report.html"
        page.write_text(self.html(), encoding="utf-8")
        webbrowser.open(page.as_uri())

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


@dataclass(frozen=True)
class Origin:
    """The command that a report was made by, as typed; its table's name and digest."""

    command: str | None = None
    file: str | None = None
    sha256: str | None = None


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
    check_is_fitted(classifier, "certificate_")
    width = classifier.n_features_in_
    names = getattr(classifier, "feature_names_in_", feature_names)
    if names is not None and len(names) != width:
        raise ValueError(
            f"feature_names must name {width} columns, got {len(names)} names."
        )
    named = [f"x{j}" for j in range(width)] if names is None else [*map(str, names)]
    given = None if inclusion is None else np.asarray(inclusion, dtype=np.float64)
    test = None
    if X_test is not None and y_test is not None:
        test = LabelledRows.read(classifier, X_test, y_test, groups=groups_test)
    return describe(
        LabelledRows.read(classifier, X, y, given, groups=groups),
        test,
        title=title,
        names=Names.of(named),
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
    comparison: PowerComparison | None = None,
    origin: Origin | None = None,
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
    comparison, origin : optional
        The methods that were compared; the command and file that the rows came by.
    column : str, default="group"
        What groups are groups of.
    """
    classifier, kind = rows.classifier, kind_of(rows.classifier)
    certificate, seed = classifier.certificate_, classifier.random_state
    scores = getattr(classifier, "scores_", None)
    estimator = classifier.estimator_ if scores is None else scores.estimators[0]
    rng = np.random.default_rng(0)
    few = rows.sampled(MOST_ROWS, rng)
    data: dict[str, Any] = {
        "format": FORMAT,
        "kind": kind,
        "title": title or "Certified classifier",
        "model": {
            "version": version("missratio"),
            "estimator": type(last_step(estimator)).__name__,
            "features": classifier.n_features_in_,
            "rows": len(rows.y),
            "classes": [
                {"label": label, "rows": len(rows.index(label))}
                for label in rows.labels
            ],
            "bounded": rows.bounded,
            "fallback": getattr(certificate, "fallback", rows.controlled),
            "deployment": classifier.deployment,
            "odds_factor": classifier.odds_factor,
            "column": column,
            "shared": getattr(certificate, "shared", None),
        },
        "origin": {
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "seed": int(seed) if isinstance(seed, (int, np.integer)) else None,
            **asdict(origin or Origin()),
        },
        "certificate": certificate.to_dict(),
        "words": words.certificate_words(rows),
        "unscored": measure.unscored(few),
        "missingness": missing_values(rows, few, names),
        "weights": measure.weights_by_class(rows),
        "comparison": None if comparison is None else asdict(comparison),
        **dict.fromkeys(["type_i", "curve", "scores", "sensitivity", "coefficients"]),
        **dict.fromkeys(["importance", "measured", "confusion"]),
        **dict.fromkeys(["next", "promises", "errors", "trade_offs", "groups"], ()),
    }
    if kind == TWO_CLASSES:
        data["curve"], fresh = measure.curve(rows, few, test, folds, confidence, rng)
        linear = coefficients(rows, few, confidence, list(names.features))
        data |= {
            "type_i": measure.type_i(rows, test, confidence),
            "scores": measure.score_histograms(few),
            "sensitivity": sensitivity(rows, MOST_ROWS),
            "coefficients": linear,
        }
        if linear is None:
            data["importance"] = importance(fresh, names, classifier.alpha)
        data["next"] = words.titled(words.next_steps(data))
    else:
        found = measure.confusion(few, test, folds, rng)
        data["measured"] = found.source
        parts = _of_groups if kind == GROUPS else _of_classes
        data |= parts(rows, found, confidence)
    data["cautions"] = words.titled(words.cautions(rows, data))
    return Report(plain(data))


def _of_classes(
    rows: LabelledRows, found: measure.Confusion, confidence: float
) -> dict[str, Any]:
    """What each of several classes is promised, and what becomes of it."""
    classifier, certificate = rows.classifier, rows.classifier.certificate_
    promised = {each.controlled_class: each for each in certificate.certificates}
    errors = []
    for label in rows.labels:
        bound, wrong = None, [each for each in rows.labels if each != label]
        if label in promised:
            bound, wrong = promised[label].alpha, list(promised[label].other_class)
        error = found.share(label, wrong, confidence)
        right = found.share(label, [label], confidence)
        text = words.class_sentence(certificate.order, label, bound, error, right)
        errors.append({"label": label, "bound": bound, "error": error, "found": right,
                       "sentence": text})  # fmt: skip
    return {
        "promises": [words.promise_data(classifier, c) for c in promised.values()],
        "errors": errors,
        "confusion": {"labels": rows.labels, "shares": found.shares()},
        "trade_offs": [
            {**asdict(trade), "has_room": trade.has_room, "factor": trade.least_factor,
             "sentence": words.room_words(trade)}
            for trade in classifier.trade_offs_[:MOST_PAIRS]
        ],
    }  # fmt: skip


def _of_groups(
    rows: LabelledRows, found: measure.Confusion, confidence: float
) -> dict[str, Any]:
    """What each group is promised, and what becomes of it."""
    certificate, entries = rows.classifier.certificate_, []
    for promise, each in zip(
        certificate.promises, certificate.certificates, strict=True
    ):
        mine = found.of_group(promise.group)
        entry = {
            "group": promise.group,
            "name": "all rows" if promise.group is None else str(promise.group),
            "level": promise.level,
            "certified": promise.certified,
            "bound": promise.bound if promise.certified else None,
            "rows": promise.rows,
            "effective_rows": each.effective_rows,
            "delta": promise.delta,
            "error": mine.share(rows.controlled, [rows.other], confidence),
            "power": mine.share(rows.other, [rows.other], confidence),
            "robustness": words.robustness(each),
        }
        entries.append({**entry, "sentence": words.group_sentence(rows, entry)})
    return {"groups": entries}


def plain(value: Any) -> Any:
    """Lists, dicts, strings and numbers only, as JSON has them.

    Numbers keep seven digits, which is more than any of them is worth; one that isn't
    finite is None.
    """
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int) else str(value)
