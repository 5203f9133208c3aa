"""Learning φ: from the table, from a few missing values looked up, or from both."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from missratio._base.blocks import any_by_row
from missratio._base.callbacks import task
from missratio._base.hints import did_you_mean
from missratio._base.reading import (
    as_frame,
    column_name,
    joined,
    names_or_numbers,
    read_floats,
)
from missratio._base.typing import FloatArray, IntArray
from missratio.learning.checks import (
    Finding,
    MissingnessWarning,
    agreement,
    concluded,
    form_by_lookups,
    missing_together,
    others_by_lookups,
    warning_text,
)
from missratio.learning.evidence import Evidence, fit_lookups
from missratio.learning.learned import LearnedMissingness
from missratio.learning.table import (
    ScoredTable,
    Taught,
    complete_names,
    find_categories,
    shared_masks,
    teach_features,
    teach_rows,
    usable_features,
)
from missratio.missingness import Block, BlockMissingness
from missratio.missingness.contract import check_no_partial_row

METHODS = ("firth", "ml")
# Rows beside looked-up ones that a test takes, at least, and for each looked-up value:
# they stand for all rows, and their own noise is 2 to 3% of its variance. To take all
# of 100,000 rows takes longer than to learn φ.
TEST_ROWS, ROWS_PER_ANSWER = 2000, 50


def learn_missingness(
    X: Any,
    revealed: Any = None,
    method: Literal["firth", "ml"] = "firth",
    *,
    rowwise: bool = False,
    from_table: bool = True,
    always_observed: Sequence[str | int] | None = None,
    categories: Sequence[Sequence[str | int]] | None = None,
    depends_on: Sequence[str | int] = (),
    check: bool = True,
    callbacks: Sequence[Any] | None = None,
) -> LearnedMissingness | BlockMissingness:
    """Learn a logistic φ from the table, from missing values looked up, or from both.

    From the table, per feature: whether entry j is missing depends on z_j alone, and
    entries go missing independently given the row. Then E[(1{j observed}/(1 − φ_j) − 1)
    h] = 0 for every function h of the other columns and of which of them are missing.
    Two such functions, built on a prediction of z_j, fix φ_j (generalised method of
    moments); a weak prior, N(0, 1.4²) on the slope per standard deviation, tames
    columns that nothing predicts.

    From looked-up values: a logistic regression of "was missing" on the value, over the
    observed values and the m revealed ones. As only m of n_missing are known, its
    intercept is too low by log(n_missing / m) and is raised by that (King and Zeng
    2001; the paper's section on learning φ). The revealed ones must be drawn by chance
    among the missing. The two are weighted by their information.

    Parameters
    ----------
    X : array-like or dataframe of shape (n, d)
        The rows of one class, NaN where missing.
    revealed : array-like or dataframe of shape (n, d), optional
        Values of cells that are missing in X and were looked up; NaN elsewhere.
    method : {"firth", "ml"}, default="firth"
        For looked-up values: Firth's penalised likelihood, which is nearly unbiased
        with few of them and finite where these are separated from the observed ones;
        its intercept is then set so that the fit reproduces the number revealed. Or
        plain maximum likelihood.
    rowwise : bool, default=False
        Whole rows are missing, with φ logistic in all features.
    from_table : bool, default=True
        Whether the other columns may teach; False learns from looked-up values alone.
    always_observed : sequence of str or int, optional
        Columns of X, by name or place, that are observed where the rest of the row is
        missing as a whole. They must tell nothing of why rows are missing beyond what
        the rest of the row tells. φ is then rowwise, and logistic in the other columns:
        give those to an estimator.
    categories : sequence of sequences of str or int, optional
        The indicators of each category, by name or place: they are one column, which is
        missing as a whole. None finds those that are one-hot and missing in the same
        rows, five or more.
    depends_on : sequence of str or int, default=()
        Columns, by name or place, on which it may depend too whether a value is
        missing, such as the age that decides who is tested. They must have no missing
        values. φ of each column is then logistic in the value and in these, and what is
        learned from are the columns beside them.
    check : bool, default=True
        Whether to test if the data contradicts the model, and to warn where it does.
        The tests take longer than the fit; False leaves `checks` empty.
    callbacks : sequence of scikit-learn callbacks, optional
        Told of every few columns that the table has taught, such as
        `sklearn.callback.ProgressBar()`.

    Returns
    -------
    LearnedMissingness or BlockMissingness
        A `LogisticMissingness` with covariance, a confidence band and checks. With
        `always_observed` it is for the other columns of X, in their order. Where X has
        a category's indicators, which are one-hot and go missing together, these are
        one column, with one φ over the levels: a `BlockMissingness`. With `depends_on`
        every column with missing values is such a block.

    Warns
    -----
    MissingnessWarning
        Where the data contradicts the model (see `LearnedMissingness.checks`), and
        where nothing could teach a column's slope.

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(2000, 1)) + 0.7 * rng.normal(size=(2000, 3))
    >>> X = mr.corrupt(Z, mr.LogisticMissingness(-1.0, [1.5, 1.0, 0.0]), rng)
    >>> phi = mr.learn_missingness(X)
    >>> phi.coef.round(1), phi.standard_errors[:, 1].round(1)
    (array([1.4, 1.2, 0. ]), array([0.1, 0.1, 0.1]))

    With 60 values of each column looked up as well:

    >>> revealed = np.full_like(X, np.nan)
    >>> for j in range(3):
    ...     chosen = rng.choice(np.flatnonzero(np.isnan(X[:, j])), 60, replace=False)
    ...     revealed[chosen, j] = Z[chosen, j]
    >>> mr.learn_missingness(X, revealed).standard_errors[:, 1].round(2)
    array([0.1 , 0.09, 0.05])
    """
    if method not in METHODS:
        hint = did_you_mean(str(method), METHODS)
        raise ValueError(
            f"method must be one of {list(METHODS)}, got {method!r}.{hint}"
        )
    table, answers, names = _read(X, revealed)

    def learn_rows(
        columns: IntArray, inputs: IntArray, name: str, always: dict[str, FloatArray]
    ) -> LearnedMissingness:
        """One φ of columns that go missing together, logistic in the inputs."""
        # What is always observed counts as missing with them, and as looked up.
        there = ~np.isnan(table[:, columns[:1]])
        known = any_by_row(~np.isnan(answers[:, columns]))[:, None]
        values, looked_up = table[:, inputs], answers[:, inputs]
        looked_up = np.where(np.isnan(looked_up), values, looked_up)
        if set(inputs) - set(columns):
            values = np.where(there, values, np.nan)
        looked_up = np.where(known, looked_up, np.nan)
        called = [names[j] for j in inputs]
        return _learn(values, looked_up, called, method, check, name, always)

    every = np.arange(len(names))
    if rowwise and always_observed is None:
        return learn_rows(every, every, "rows", {})
    if always_observed is not None:
        places = _complete(always_observed, table, names, "always_observed")
        rest = np.setdiff1d(every, places)
        if not len(places) or not len(rest):
            raise ValueError(
                "always_observed must name one column or more, and leave one or more: "
                f"got {list(always_observed)} of {len(names)} columns."
            )
        beside = {names[j]: table[:, j] for j in places}
        return learn_rows(rest, rest, "rows", beside)
    # The indicators of a category are one column: one φ over its levels.
    given = None
    if categories is not None:
        given = [_places(each, names, "categories") for each in categories]
    found = find_categories(table, answers, given, names)
    if len(depends_on):
        further = _complete(depends_on, table, names, "depends_on")
        in_blocks = [j for columns, _ in found for j in columns]
        lossy = np.setdiff1d(np.flatnonzero(np.isnan(table).any(axis=0)), in_blocks)
        found += [(np.array([j]), np.array([j])) for j in lossy]
        found = [(columns, np.append(inputs, further)) for columns, inputs in found]
    if not from_table:
        found = [each for each in found if not np.isnan(answers[:, each[0][0]]).all()]
    apart = [j for columns, _ in found for j in columns]
    listener = task("learn_missingness", callbacks)
    options = {"from_table": from_table, "apart": apart, "listener": listener}
    base = _learn(table, answers, names, method, check, **options)
    if not found:
        return base
    scored = ScoredTable.of(table)
    blocks = []
    for columns, inputs in found:
        # What the other columns say of a category: values, and which are missing.
        always: dict[str, FloatArray] = {}
        for j in np.setdiff1d(every, columns).tolist() if from_table else []:
            always[names[j]] = scored.values[:, j]
            always[f"missing {names[j]}"] = scored.missing[:, j].astype(np.float64)
        always = {column: each for column, each in always.items() if np.ptp(each) > 0.0}
        name = joined([names[j] for j in columns])
        model = learn_rows(columns, inputs, name, always)
        blocks.append(Block(tuple(columns.tolist()), tuple(inputs.tolist()), model))
    return BlockMissingness(base, tuple(blocks), len(names))


def _read(X: Any, revealed: Any) -> tuple[FloatArray, FloatArray, list[str]]:
    """The table, what was looked up of it, and the names of its columns."""
    table = read_floats(X)
    names = list(names_or_numbers(X, table.shape[1]))
    answers = np.full(table.shape, np.nan)
    if revealed is not None:
        answers = read_floats(revealed, "revealed")
        frame = as_frame(revealed)
        if frame is not None and as_frame(X) is not None:
            # Two dataframes are matched by place, so that names must be the same.
            found = list(map(str, frame.columns))
            if len(found) == len(names) and found != names:
                raise ValueError(
                    f"revealed must have the columns of X, {joined(names)}, in their "
                    f"order: got {joined(found)}."
                )
    if table.shape != answers.shape:
        raise ValueError(
            f"revealed must have the shape of X: got {answers.shape} and {table.shape}."
            " Put NaN where nothing was looked up."
        )
    contradicted = np.argwhere(~np.isnan(table) & ~np.isnan(answers))
    if len(contradicted):
        row, column = contradicted[0].tolist()
        raise ValueError(
            f"revealed has {answers[row, column]} at row {row}, column "
            f"{column_name(X, column)}, which isn't missing in X. Only cells that are "
            "missing can be revealed."
        )
    unseen = np.flatnonzero(np.isnan(table).all(axis=0)).tolist()
    if unseen:
        raise ValueError(
            f"Column(s) {joined([names[j] for j in unseen])} are never observed: what "
            "is always missing can't be weighted back. Leave them out."
        )
    return table, answers, names


def _complete(
    columns: Sequence[str | int],
    table: FloatArray,
    names: Sequence[str],
    parameter: str,
) -> IntArray:
    """Where columns are that must have no missing values."""
    places = _places(columns, names, parameter)
    lossy = [names[j] for j in places if np.isnan(table[:, j]).any()]
    if lossy:
        raise ValueError(
            f"Column(s) {joined(lossy)} have missing values: {parameter} takes columns "
            "that have none."
        )
    return places


def _places(
    columns: Sequence[str | int], names: Sequence[str], parameter: str
) -> IntArray:
    """Where columns are, each once."""
    places = []
    for column in columns:
        known = column if isinstance(column, int) else None
        if isinstance(column, str) and column in names:
            known = names.index(column)
        if known is None or not 0 <= known < len(names):
            hint = did_you_mean(str(column), names)
            raise ValueError(f"{parameter}: X has no column {column!r}.{hint}")
        places.append(known)
    return np.unique(np.array(places, dtype=np.intp))


def _learn(
    table: FloatArray,
    answers: FloatArray,
    names: Sequence[str],
    method: str,
    check: bool,
    rows: str | None = None,
    always: Mapping[str, FloatArray] | None = None,
    *,
    from_table: bool = False,
    apart: Sequence[int] = (),
    listener: Any = None,
) -> LearnedMissingness:
    """Learn one φ for each column, or one for all of them, which go missing together.

    Parameters
    ----------
    table, answers : ndarray of shape (n_rows, n_columns)
    names : sequence of str
    method : {"firth", "ml"}
    check : bool
    rows : str or None
        What columns that go missing together are called; None where they don't.
    always : mapping of str to ndarray, or None
        Columns that are there where these are missing, to learn from.
    from_table : bool
        Whether each of the columns may teach the others' φ.
    apart : sequence of int
        Columns that are learned elsewhere.
    listener : task, or None
    """
    called = list(names) if rows is None else [rows]
    # 1. What was looked up, and what the other columns say.
    evidence: list[Evidence | None] = [None] * len(called)
    taught: dict[int, Taught] = {}
    if rows is None:
        for j in np.setdiff1d(np.arange(len(names)), apart).tolist():
            one = slice(j, j + 1)
            parts = table[:, one], answers[:, one], names[one]
            evidence[j] = _evidence(*parts, whole=False)
    else:
        evidence[0] = _evidence(table, answers, names, whole=True)
    by_lookups = fit_lookups(evidence, method, called)
    if from_table and len(names) > 1:
        taught = teach_features(
            table, evidence, by_lookups, names, test=check, listener=listener
        )
    elif always and (whole := evidence[0]) and whole.revealed_mass < whole.n_missing:
        known = by_lookups.get(0)
        taught[0] = teach_rows(table, always, whole, known, called[0], test=check)
    known_of = by_lookups.keys() | taught.keys()
    unknown = [called[j] for j, e in enumerate(evidence) if e and j not in known_of]
    if unknown:
        raise ValueError(
            f"Column(s) {joined(unknown)} have missing values and none revealed, and "
            "there is no other column to learn from: why they are missing can't be "
            "learned. Look up some of them, or leave the columns out."
        )
    unsolved = [called[j] for j, fit in taught.items() if not fit.converged]
    if unsolved:
        warnings.warn(
            f"The missingness of {joined(unsolved)} was not learned from the table to "
            "full precision. Look for outliers, and look up some missing values.",
            ConvergenceWarning,
            stacklevel=3,
        )
    # 2. Parameters, one by one.
    intercept = np.full(len(called), -np.inf)
    coef = np.zeros((len(called), len(names) if rows else 1))
    for j in known_of:
        theta = taught[j].theta if j in taught else by_lookups[j]
        intercept[j], coef[j, : len(theta) - 1] = theta[0], theta[1:]
    # 3. Whether the data contradicts them.
    model = LearnedMissingness(
        intercept[0] if rows else intercept,
        coef[0] if rows else coef[:, 0],
        rows is not None,
        tuple(evidence),
        method,
        tuple(names),
        tuple(taught[j].shadow if j in taught else None for j in range(len(called))),
    )
    if not check:
        return model
    findings: list[Finding] = []
    others: dict[int, Finding] = {}
    if rows is None and len(names) > 1:
        missing = np.isnan(table)
        shared = shared_masks(missing)
        by_table = np.isin(range(len(names)), [*(taught.keys() - by_lookups.keys())])
        findings += missing_together(shared, missing, by_table, names)
        usable, complete = (
            usable_features(missing, shared),
            complete_names(missing, names),
        )
        n_observed, answered = (~missing).sum(axis=0), ~np.isnan(answers)
        # Whether another column helps to tell looked-up values from observed ones: by
        # functions of the columns at looked-up rows and at some others, which stand for
        # all, whatever was looked up of them.
        n_wanted = max(TEST_ROWS, ROWS_PER_ANSWER * int(answered.sum(axis=0).max()))
        sampled = np.zeros(len(table), dtype=bool)
        sampled[:: max(1, len(table) // n_wanted)] = True
        if missing[sampled].all(axis=0).any():
            sampled[:] = True
        kept = sampled | any_by_row(answered)
        tested = [j for j, theta in by_lookups.items() if len(theta) > 1]
        functions = (
            ScoredTable.of(table[kept]).features(ranked=True) if tested else None
        )
        for j in tested:
            assert functions is not None
            revealed = np.flatnonzero(answered[kept, j])
            observed = np.flatnonzero(sampled[kept] & ~missing[kept, j])
            mass = np.ones(len(revealed) + len(observed))
            mass[len(revealed) :] = n_observed[j] / len(observed)
            column = np.append(answers[kept, j][revealed], table[kept, j][observed])
            n_missing = len(table) - int(n_observed[j])
            single = Evidence(column[None], len(revealed), mass, n_missing)
            rows_of = functions[np.append(revealed, observed)].T
            # The constant is no function of a column.
            of_others = np.append(usable[j, :-1], False)
            others[j] = others_by_lookups(
                single, by_lookups[j], rows_of, of_others, names[j], names, complete
            )
    for j in sorted(known_of):
        found = evidence[j]
        assert found is not None
        if j in by_lookups and len(found.values):
            findings.append(form_by_lookups(found, by_lookups[j], called[j]))
            findings += [others[j]] if j in others else []
        if j in taught:
            findings += taught[j].findings
            if j in by_lookups and rows is None:
                shadow = taught[j].shadow
                findings.append(agreement(shadow, found, by_lookups[j], called[j]))
    checks = concluded(findings)
    if text := warning_text(checks):
        warnings.warn(text, MissingnessWarning, stacklevel=4 if rows else 3)
    return replace(model, checks=checks)


def _evidence(
    table: FloatArray, answers: FloatArray, names: Sequence[str], *, whole: bool
) -> Evidence | None:
    """The evidence of a column, or with `whole` of columns that go missing together."""
    if whole:
        check_no_partial_row(table, 0)
        blank = np.isnan(answers)
        partial = any_by_row(blank) & any_by_row(~blank)
        if partial.any():
            raise ValueError(
                "revealed has some but not all entries of row "
                f"{int(np.argmax(partial))}: a rowwise model needs whole rows. Look up "
                "the rest, or set them to NaN."
            )
    evidence = Evidence.of(table, answers)
    if evidence is None:
        return None
    constant = np.ptp(evidence.values, axis=1) == 0.0
    if whole and constant.any():
        found = [name for name, never in zip(names, constant, strict=True) if never]
        raise ValueError(
            f"Column(s) {joined(found)} are constant: their slope can't be learned. "
            "Leave them out."
        )
    return replace(evidence, values=evidence.values[~constant])
