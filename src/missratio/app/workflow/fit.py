"""From a labelled table to a certified model: one way for every kind of promise.

Read the table, account for missing values, choose a method, fit and calibrate, describe
it for a report, and put the model together.
"""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from missratio import classifier as classifiers
from missratio import exceptions
from missratio._base.blocks import rows_with_nan
from missratio._base.hints import listed
from missratio._base.reading import columns_named
from missratio.app.modelfile import TableModel, TrainingData, plain
from missratio.app.options import CheckOptions, CommandOutcome, FitOptions, Listener
from missratio.app.report import LabelledRows, Names, describe
from missratio.app.report.rows import narrowed
from missratio.app.tables import labelled
from missratio.app.tables.columns import BLANK
from missratio.app.workflow import methods
from missratio.app.workflow.account import account_of, read_table, ways_of
from missratio.app.workflow.spelling import check_spellings
from missratio.learning import MissingnessWarning
from missratio.missingness import MissingnessContradictionError

# Cells of a table below which fits lose by several threads, of BLAS and of trees: these
# wait for each other busily, and on a machine with other work much longer than they
# work (logistic regression on 7,000 × 60: 3.4 s of processor time instead of 0.14).
THREADED_CELLS = 1_000_000
# More than these make a model's file larger than one may be, which is 8 MiB of text.
MOST_COLUMNS = 5_500
# The library's share of rows to choose offsets by, where several classes are bounded.
CHOICE_SIZE = 0.1
# Rows of each class to compare methods on, and parts to leave out in turn, where
# missing values are drawn: a fit takes several times as long.
IMPUTED_ROWS, IMPUTED_FOLDS = 2_000, 3
# Columns that a message names.
NAMED = 3


def fit_table(
    options: FitOptions,
    progress: Listener = Listener(),  # noqa: B008
    phrase: Callable[[exceptions.Message], str] = str,
) -> tuple[TableModel, CommandOutcome]:
    """Fit and calibrate a classifier to a table: the model, and what to say of it.

    Parameters
    ----------
    options : FitOptions
        Which were checked.
    progress : Listener
    phrase : callable
        Which words what the report warns of.
    """
    # 1. The table, the bounded classes with their levels, and their order.
    progress.step(f"Reading {options.data}")
    source, table = read_table(options, blank_level=options.as_observed)
    with exceptions.about_file(source.path):
        spelled = check_spellings(table)
        table.notes.extend(spelled)
        try:
            bounded: dict[Any, float] = {}
            for typed, level in options.levels.items():
                if options.several:
                    label = labelled.find_label(table, "--alpha", typed)
                else:
                    table, label = labelled.two_classes(table, typed, options.versus)
                if label in bounded:
                    raise exceptions.TableError(f"--alpha names {label!r} twice.")
                bounded[label] = level
            order = None
            if options.ordered is not None:
                every = (word.strip() for word in options.ordered.split(","))
                order = [labelled.find_label(table, "--ordered", x) for x in every]
        except exceptions.TableError as error:
            notes = (note for note in spelled if note.facts["name"] == table.target)
            raise exceptions.TableError(" ".join(map(str, [error, *notes]))) from error
    encoder = table.encoder
    numbers, names = encoder.n_numeric, encoder.encoded_names
    if len(encoder.columns) > MOST_COLUMNS:
        raise exceptions.TableError(
            f"{source.path} has {len(encoder.columns):,} columns to learn from, "
            f"and a model file can hold {MOST_COLUMNS:,}. Leave out (--drop) those "
            "that say least about the classes."
        )
    several = options.several
    controlled = None if several else next(iter(bounded))
    # None leaves the number of threads as it is.
    threads = 1 if table.X.size < THREADED_CELLS else None
    recorded = warnings.catch_warnings(record=True, action="always")
    with threadpool_limits(threads), recorded as caught:
        # 2. What is done about missing values, and what a method has to deal with.
        account = account_of(table, controlled, source, options, progress)
        missing, alpha = "nothing", options.trial["alpha"]
        taught = account.way == "table"
        complete = min(map(table.n_complete, table.counts if several else bounded))
        if account.inclusion is not None:
            whole = ~rows_with_nan(account.X) & (table.y == controlled)
            complete, missing = int(np.count_nonzero(whole)), "rows"
        if account.deployment == "as-observed" and len(table.incomplete):
            missing = "ignored"
        elif account.models:
            by_row = all(model.rowwise for model in account.models.values())
            missing = "rows" if by_row else "values"
        folds = IMPUTED_FOLDS if missing == "values" else 5
        share = 1.0 - options.calibration_size - CHOICE_SIZE * several
        situation = methods.Situation(
            numbers, len(names) - numbers, missing, int(share * complete),
            options.seed, several, fitted_rows=max(1, int(share * len(table.y))),
        )  # fmt: skip
        # 3. The method: as asked for, or what finds most of those compared.
        method, why = methods.choose_method(options.method, situation)
        compares = options.method == "auto" and options.compare_seconds > 0.0
        if compares:
            bounds: dict[str, Any] = {"alpha": alpha}
            if several:
                places = {label: k for k, label in enumerate(sorted(table.counts))}
                bounds = {
                    "alpha": {places[label]: a for label, a in bounded.items()},
                    "delta": options.delta,
                    "order": order and [places[label] for label in order],
                    "certifying": options.calibration_size / max(share, 0.01),
                }
            estimator = classifiers.PowerSearch(
                methods.candidates(situation),
                **bounds,
                deployment=account.deployment,
                seconds=options.compare_seconds,
                cv=folds,
                most_rows=IMPUTED_ROWS if missing == "values" else 5_000,
                random_state=options.seed,
                on_candidate=lambda n: progress.step(f"Comparing methods: {n}"),
            )
        else:
            progress.step(f"Fitting {method} and calibrating")
            estimator = methods.METHODS[method].make(situation)
        # 4. The classifier, fitted and calibrated.
        common: dict[str, Any] = {
            **options.trial,
            "missingness": dict(account.models) or None,
            "rule": options.rule,
            "deployment": account.deployment,
            "odds_factor": options.odds_factor,
        }
        if several:
            kind: Any = classifiers.MulticlassNeymanPearsonClassifier
            common |= {"alpha": bounded, "order": order, "choice_size": CHOICE_SIZE}
        else:
            kind = classifiers.NeymanPearsonClassifier
            common["controlled_class"] = controlled
            common["on_infeasible"] = options.on_infeasible
        if table.groups is not None:
            kind = classifiers.GroupedNeymanPearsonClassifier
            claim = f"--group-alpha {{}} is not a group in {options.groups!r}"
            known = sorted(set(table.groups.tolist()), key=str)
            common["group_alpha"] = {
                labelled.find_name(typed, known, claim.format(repr(typed))): level
                for typed, level in options.group_levels.items()
            } or None
        classifier = kind(estimator, **common)
        more = {} if table.groups is None else {"groups": table.groups}
        try:
            with columns_named(names):
                classifier.fit(account.X, table.y, inclusion=account.inclusion, **more)
        except (exceptions.DataError, exceptions.NoCertificateError) as error:
            error = error.named(names).about(source.path)
            if taught and isinstance(error, exceptions.NoCertificateError):
                weak = [x for x in caught if x.category is MissingnessWarning]
                said = "\n".join(condensed(_messages(weak, names), phrase, NAMED))
                ways = ways_of(table, controlled, options, taken="learned")
                claim = "{said}\n" * bool(said) + error.message.claim
                claim += " Half of delta is kept for what is learned.\n"
                # δ is the one that was asked for.
                given = {"said": said, "delta": options.delta}
                given["ways"] = "\n".join(map(str, ways))
                again = replace(
                    error.message,
                    claim=f"{claim}These ways are open instead:\n{{ways}}",
                    facts={**error.message.facts, **given},
                    remedies=(),
                )
                raise type(error)(again) from error
            raise error from error.__cause__
        except ValueError as error:
            if isinstance(error, exceptions.Explained):
                raise exceptions.TableError(error.message) from error
            doubts = "".join(f" {message}" for message in _messages(caught, names))
            raise exceptions.TableError(f"{error}{doubts}") from error
    comparison = None
    if compares:
        comparison = _settled(classifier)
        method, why = methods.reason_of(comparison, method, why)
    # 5. The report, and the model that holds it.
    with threadpool_limits(threads):
        progress.step("Describing it for a report")
        rows = LabelledRows.read(
            classifier, account.X, table.y, account.inclusion,
            before=table.X, groups=table.groups,
        )  # fmt: skip
        if taught and any(each.category is MissingnessWarning for each in caught):
            account.ways.extend(ways_of(table, controlled, options, taken="learned"))
        file, digest = source.path.name, source.file.sha256()
        origins = [c.name for c in encoder.columns for _ in range(c.width)]
        # Features that say that their column is blank.
        levels = [k for c in encoder.columns for k in (c.levels or ("", "number"))[1:]]
        blank = frozenset(j for j, level in enumerate(levels) if level == BLANK)
        report = describe(
            rows,
            title=f"Predicting {options.target} in {file}",
            names=Names(names, origins, blank),
            origin={
                "method": f"{method}, {why}",
                "file": file,
                "sha256": digest,
                **_origin(options),
            },
            folds=folds,
            column=options.groups or "group",
        )
    if compares:
        # What the chosen method finds was measured, whatever its coefficients rest on.
        small = exceptions.SmallSampleWarning
        caught = [each for each in caught if not issubclass(each.category, small)]
    warned = _messages(caught, names)
    report.data["cautions"] += [
        {"title": title, "text": text}
        for title, messages in (
            ("The table may not be as it was meant", table.notes),
            ("Warned of in the fit", warned),
        )
        for text in condensed(messages, phrase)
    ]
    ends = [each.reduce(table.X[:, :numbers]) for each in (np.fmin, np.fmax)]
    ranges = np.array([float(f"{end:.3g}") for end in np.transpose(ends).flat])
    training = TrainingData(
        file, digest, dict(table.counts), table.missing, ranges.reshape(-1, 2)
    )
    model = TableModel(
        classifier, encoder, options.target, table.dropped, method, training,
        report.json(), rest=table.rest, group_column=options.groups,
    )  # fmt: skip
    # 6. What there is to say about it.
    errors = report.data["errors"]
    findings = [entry["sentence"] for entry in errors]
    measured = {"errors": errors, "findings": findings}
    if report.data["curve"] is not None:
        measured = {"power": errors[0]["found"], "finding": findings[0]}
        if account.way == "assumed":
            power = errors[0]["found"]["estimate"]
            measured["range"] = _over_the_range(rows, power)
            findings.append(measured["range"]["sentence"])
    remarks = [*table.notes, *warned]
    facts = {
        "model": str(options.out),
        "method": method,
        "why": why,
        "way": account.way,
        "missingness": account.sentence,
        "ways": [asdict(way) for way in account.ways],
        "certificate": plain(model.certificate.to_dict()),
        "rows": plain(model.training.rows),
        "missing": plain(model.training.missing),
        "columns": model.encoder.names,
        "training_sha256": digest,
        "comparison": None if comparison is None else plain(asdict(comparison)),
        "warnings": list(dict.fromkeys(map(phrase, remarks))),
        **measured,
    }
    sizes = ", ".join(f"{n} of {label!r}" for label, n in table.counts.items())
    page = options.out.with_suffix(".html")
    shown = shlex.join(["missratio", "report", str(options.out), "--out", str(page)])
    certificate = model.certificate
    if getattr(certificate, "checks", ()) and certificate.missingness_delta:
        # Warnings tell of those tests of a learned φ that fail.
        certificate = replace(certificate, checks=())
    lines = [
        account.sentence,
        f"Rows: {sizes}. Columns: {len(model.encoder.columns)}.",
        f"Method: {method}, {why}.",
        *findings,
        str(certificate),
        *(f"Warning: {text}" for text in condensed(remarks, phrase, NAMED)),
        f"Written: {options.out}",
        f"Then: {shown}",
    ]
    if account.ways:
        start = "If new rows will be complete, there is a promise for such rows, too:"
        if taught:
            start = "The table teaches little about why values are missing. Instead:"
        lines += [start, *map(str, account.ways)]
    return model, CommandOutcome(facts, lines)


def _origin(options: FitOptions) -> dict[str, str]:
    """The command, and others to look at the table again."""
    # In full, as missratio.toml may have said a part of it.
    command = options.command("fit", FitOptions, {})
    origin = {"model": options.out.name, "command": command}
    if not options.several:
        again = {"force": False, "new_rows": None, "out": None}
        plan = "plan.csv" if options.queries is None else "longer-plan.csv"
        origin["check"] = options.command("check", CheckOptions, {}, **again)
        origin["query"] = options.query_command({}, out=plan)
    return origin


def condensed(
    messages: Iterable[exceptions.Message],
    phrase: Callable[[exceptions.Message], str] = str,
    most: int | None = None,
) -> list[str]:
    """Messages that say the same of several columns as one, the worst named first.

    What differs may be names, in quotation marks or before a colon, and numbers. A
    message is worse than another where it counts more rows, or less weight.

    Parameters
    ----------
    messages : iterable of Message
    phrase : callable
        Which words a message.
    most : int, optional
        How many columns are named; by default all.
    """
    alike: dict[str, list[tuple[float, list[str], str]]] = {}
    for each in messages:
        order = each.facts.get("kish", -each.facts.get("count", 0))
        for text in phrase(each).split("\n"):
            names, key = _shape(text)
            alike.setdefault(key, []).append((order, names, text))
    said = []
    for group in alike.values():
        (_, worst, text), *others = sorted(group, key=lambda each: each[0])
        new = ([name for name in names if name not in worst] for _, names, _ in others)
        if also := list(dict.fromkeys(names[0] for names in new if names)):
            text += f" The same is true of {listed(also, most and most - 1)}"
            text += " (--json has all)." if most and len(also) >= most else "."
        said.append(text)
    return said


def _shape(text: str) -> tuple[list[str], str]:
    """The names in a message, and what it says of any of them."""
    head, _, rest = text.partition(": ")
    # A column's name before a colon is no sentence.
    if not rest or ". " in head or "'" in head:
        head, rest = "", text
    _, several, worst_of = head.rpartition("columns, the worst of them ")
    names = worst_of.split(", ") if several else [head] * bool(head)
    # Apostrophes are no quotation marks.
    names += re.findall(r"(?<!\w)'([^']*)'(?!\w)", rest)
    return names, re.sub(r"(?<!\w)'[^']*'(?!\w)|\d[\d.,]*", "#", rest)


def _messages(caught: list[Any], names: list[str]) -> list[exceptions.Message]:
    """What was warned of, with the table's names for the columns."""
    return [
        warning.message.named(names)
        if isinstance(warning, exceptions.Explained)
        else exceptions.Message.plain(str(warning))
        for warning in (each.message for each in caught)
    ]


def _over_the_range(rows: LabelledRows, power: float | None) -> dict[str, Any]:
    """What it would find if stated slopes were known, at the ends of their range.

    Rows that the estimator knows say by how much the power changes.
    """
    classifier, mine = rows.classifier, rows.index(rows.controlled)
    held = mine[np.isin(mine, classifier.calibration_index_)]
    others = np.flatnonzero((rows.y == rows.other) & (rows.weights > 0.0))

    def share_of(calibrated: Any, label: Any) -> float:
        called = calibrated.predict(rows.X[others]) == label
        return float(np.average(called, weights=rows.weights[others]))

    whole = share_of(classifier, rows.other)
    powers: dict[str, Any] = {"whole": power}
    # The estimator knows the controlled class as 0, and the other as 1.
    labels, known = enumerate((rows.controlled, rows.other)), classifier.missingness
    coded = {k: known[label] for k, label in labels if label in known}
    words = []
    for end, name in enumerate(("mildest", "steepest")):
        again = clone(classifier).set_params(
            estimator=classifier.estimator_,
            controlled_class=0,
            missingness={k: narrowed(model, end) for k, model in coded.items()},
            on_infeasible="reject_all",
        )
        training, powers[name] = rows.X[np.setdiff1d(mine, held)], None
        words.append("unknown")
        try:
            with warnings.catch_warnings(action="ignore"):
                again.calibrate(rows.X[held], X0_training=training)
            if power is not None and whole:
                powers[name] = min(power * share_of(again, 1) / whole, 1.0)
                words[-1] = f"about {powers[name]:.0%}"
        except MissingnessContradictionError:
            words[-1] += ", as the table contradicts such a φ"
    return {
        **powers,
        "sentence": "That is for the whole range of what was stated. Were φ known to "
        f"be at its mildest, it would be {words[0]}; at its steepest, {words[1]}.",
    }


def _settled(classifier: Any) -> classifiers.PowerComparison:
    """Put the winner in the search's place: both give the same scores."""
    alone = hasattr(classifier, "estimator_")
    search = classifier.estimator_ if alone else classifier.scores_.estimators[0]
    comparison: classifiers.PowerComparison = search.comparison_
    classifier.estimator = search.candidates[comparison.chosen]
    if alone:
        classifier.estimator_ = search.estimator_
    else:
        classifier.scores_ = search.scores_
        labels = classifier.classes_.tolist()
        names = tuple(str(labels[int(place)]) for place in comparison.compared)
        comparison = replace(comparison, compared=names)
    return comparison
