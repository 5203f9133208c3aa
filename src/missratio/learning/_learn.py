"""Learning φ: from the table, from a few missing values looked up, or from both."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from missratio._base.callbacks import task
from missratio._base.hints import did_you_mean
from missratio._base.reading import as_numeric_array, joined, names_or_numbers
from missratio._base.typing import FloatArray, IntArray
from missratio.learning._assess import (
    assess_features,
    concluded,
    findings_of_rows,
    form_finding,
    instrument_finding,
    warn_of,
    weights_finding,
)
from missratio.learning._categories import (
    Category,
    find_categories,
    named_categories,
    shadows_of,
)
from missratio.learning._checks import Check
from missratio.learning._evidence import Evidence
from missratio.learning._from_lookups import (
    Fitted,
    evidence_of_features,
    evidence_of_rows,
    fit_lookups,
)
from missratio.learning._from_rows import fit_rows
from missratio.learning._from_table import TableFit, fit_features
from missratio.learning._learn_input import (
    always_observed_columns,
    always_places,
    check_answers,
    check_columns,
    places_of,
)
from missratio.learning._learned import LearnedMissingness
from missratio.learning._scores import ScoredTable
from missratio.learning._shadow import ShadowEvidence
from missratio.missingness import Block, BlockMissingness

METHODS = ("firth", "ml")


def learn_missingness(
    X: Any,
    revealed: Any = None,
    method: Literal["firth", "ml"] = "firth",
    *,
    rowwise: bool = False,
    from_table: bool = True,
    always_observed: Sequence[str | int] | None = None,
    categories: Sequence[Sequence[str | int]] | None = None,
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
        one column, with one φ over the levels: a `BlockMissingness`.

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
    table = as_numeric_array(X)
    names = names_or_numbers(X, table.shape[1])
    if revealed is None:
        answers = np.full(table.shape, np.nan)
    else:
        answers = as_numeric_array(revealed)
        check_columns(X, revealed, names)
    check_answers(table, answers, X)
    if always_observed is not None:
        always = always_places(always_observed, names)
        kept = np.setdiff1d(np.arange(len(names)), always)
        rest = tuple(names[j] for j in kept)
        shadows = always_observed_columns(table, always, names)
        parts = table[:, kept], answers[:, kept]
        return _learn_rows(*parts, method, rest, shadows, check)
    if rowwise:
        return _learn_rows(table, answers, method, names, None, check)
    values = table.astype(np.float64, copy=False)
    if categories is None:
        blocks = find_categories(values)
    else:
        given = [places_of(each, names, "categories") for each in categories]
        blocks = named_categories(values, answers, given, names)
    if not from_table:
        blocks = [b for b in blocks if not np.isnan(answers[:, b.columns[0]]).all()]
    in_blocks = np.array([j for b in blocks for j in b.columns], dtype=np.intp)
    base = _learn_features(
        values,
        answers,
        method,
        names,
        from_table,
        check,
        in_blocks,
        task("learn_missingness", callbacks),
    )
    if not blocks:
        return base
    scored = ScoredTable.of(values) if from_table else None
    learned = [
        _learn_category(values, answers, method, names, scored, block, check)
        for block in blocks
    ]
    return BlockMissingness(base, tuple(learned), len(names))


def _learn_category(
    values: FloatArray,
    answers: NDArray[Any],
    method: str,
    names: tuple[str, ...],
    scored: ScoredTable | None,
    category: Category,
    check: bool,
) -> Block:
    """One φ over the levels of a category: its indicators are one column."""
    inputs = list(category.inputs)
    shadows = None if scored is None else shadows_of(category, scored, names)
    model = _learn_rows(
        values[:, inputs],
        answers[:, inputs],
        method,
        tuple(names[j] for j in inputs),
        shadows or None,
        check,
        joined([names[j] for j in category.columns]),
    )
    return Block(category.columns, category.inputs, model)


def _learn_rows(
    table: NDArray[Any],
    answers: NDArray[Any],
    method: str,
    names: tuple[str, ...],
    always: dict[str, FloatArray] | None,
    check: bool,
    called: str = "rows",
) -> LearnedMissingness:
    # 1. Rows looked up, and what columns that are always observed say.
    evidence = evidence_of_rows(table, answers, names, needed=always is None)
    fitted = fit_lookups(evidence, method, names)
    found = evidence[0]
    intercept, coef = -np.inf, np.zeros(len(names))
    checks: tuple[Check, ...] = ()
    shadow = None
    if found is not None:
        known = fitted.get(0)
        findings = []
        if always is not None and found.revealed_mass < found.n_missing:
            values = table.astype(np.float64, copy=False)
            shadows = np.column_stack(list(always.values()))
            fit = fit_rows(values, shadows, found, known)
            theta, shadow = fit.theta, fit.shadow
            findings.append(instrument_finding(fit, called, found))
            findings += findings_of_rows(fit, list(always), called)
        else:
            assert known is not None
            theta = known[0].copy()
            theta[0] -= found.sampling_offset
        intercept, coef = theta[0], theta[1:]
        # 2. Whether the data contradicts it.
        if check:
            if known is not None:
                findings.append(form_finding(found, known[0], called))
            checks = concluded([*findings, *weights_finding(found, theta, called)])
            warn_of(checks, stacklevel=3 if called == "rows" else 4)
    return LearnedMissingness(
        intercept,
        coef,
        True,
        tuple(evidence),
        method,
        names,
        (shadow,),
        checks,
    )


def _learn_features(
    values: FloatArray,
    answers: NDArray[Any],
    method: str,
    names: tuple[str, ...],
    from_table: bool,
    check: bool,
    in_blocks: IntArray,
    listener: Any,
) -> LearnedMissingness:
    # 1. What was looked up, and what the other columns say.
    evidence = evidence_of_features(values, answers, names)
    for j in in_blocks.tolist():
        evidence[j] = None
    fitted = fit_lookups(evidence, method, names)
    taught: dict[int, TableFit] = {}
    if from_table and len(names) > 1:
        taught = fit_features(values, evidence, fitted, listener, check)
    _check_taught(evidence, fitted, taught, names)
    # 2. Parameters, feature by feature.
    intercept, coef = np.full(len(names), -np.inf), np.zeros(len(names))
    shadow: list[ShadowEvidence | None] = [None] * len(names)
    thetas: dict[int, FloatArray] = {}
    for j, found in enumerate(evidence):
        if found is None:
            continue
        if j in taught:
            theta, shadow[j] = taught[j].theta, taught[j].shadow
        elif j in fitted:
            theta = fitted[j][0].copy()
            theta[0] -= found.sampling_offset
        else:
            # A value that never changes: φ is the share that is missing.
            n_observed = float(found.mass.sum())
            theta = np.array([np.log(found.n_missing / n_observed)])
        intercept[j], coef[j] = theta[0], theta[1] if len(theta) > 1 else 0.0
        thetas[j] = theta
    # 3. Whether the data contradicts them.
    checks: tuple[Check, ...] = ()
    if check:
        checks = assess_features(
            answers, values, evidence, fitted, taught, thetas, names
        )
        warn_of(checks, stacklevel=3)
    return LearnedMissingness(
        intercept,
        coef,
        False,
        tuple(evidence),
        method,
        names,
        tuple(shadow),
        checks,
    )


def _check_taught(
    evidence: list[Evidence | None],
    fitted: Fitted,
    taught: dict[int, TableFit],
    names: tuple[str, ...],
) -> None:
    unknown = [
        names[j]
        for j, found in enumerate(evidence)
        if found is not None and j not in fitted and j not in taught
    ]
    if unknown:
        raise ValueError(
            f"Column(s) {joined(unknown)} have missing values and none revealed, and "
            "there is no other column to learn from: why they are missing can't be "
            "learned. Look up some of them (plan_queries says which), or leave the "
            "columns out."
        )
    unsolved = [names[j] for j, fit in taught.items() if not fit.converged]
    if unsolved:
        warnings.warn(
            f"The missingness of {joined(unsolved)} was not learned from the table to "
            "full precision. Look for outliers, and look up some missing values.",
            ConvergenceWarning,
            stacklevel=4,
        )
