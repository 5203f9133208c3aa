"""Learning φ: from the table, from a few missing values looked up, or from both."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2
from sklearn.exceptions import ConvergenceWarning

from missratio._base.callbacks import task
from missratio._base.hints import did_you_mean
from missratio._base.reading import (
    as_frame,
    as_numeric_array,
    column_name,
    float_blocks,
    joined,
    names_or_numbers,
)
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.learning.checks import (
    LEVEL,
    REMEDY,
    Check,
    Kind,
    LookupFunctions,
    MissingnessWarning,
    Overidentification,
    Source,
    carrying_share,
    failing,
    form_test,
    least_factor,
    others_test,
)
from missratio.learning.evidence import (
    Evidence,
    Fitted,
    evidence_of_features,
    evidence_of_rows,
    fit_lookups,
)
from missratio.learning.learned import LearnedMissingness
from missratio.learning.region import lookup_covariance
from missratio.learning.shadow import ScoredTable, ShadowEvidence
from missratio.learning.table import (
    FEWEST_SHARED,
    Category,
    TableFit,
    equivalent_lookups,
    find_categories,
    fit_features,
    fit_rows,
    named_categories,
    shadows_of,
    shared_masks,
    usable_features,
)
from missratio.missingness import DOUBT, Block, BlockMissingness


def places_of(
    columns: Sequence[str | int], names: tuple[str, ...], parameter: str
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


def always_places(columns: Sequence[str | int], names: tuple[str, ...]) -> IntArray:
    """Columns that are always observed; some, and not all."""
    places = places_of(columns, names, "always_observed")
    if not 0 < len(places) < len(names):
        raise ValueError(
            "always_observed must name one column or more, and leave one or more: got "
            f"{list(columns)} of {len(names)} columns."
        )
    return places


def always_observed_columns(
    table: NDArray[Any], places: IntArray, names: tuple[str, ...]
) -> dict[str, FloatArray]:
    """Columns that are always observed, by name."""
    values = table[:, places].astype(np.float64)
    lossy = np.isnan(values).any(axis=0)
    if lossy.any():
        found = [names[places[j]] for j in np.flatnonzero(lossy)]
        raise ValueError(
            f"Column(s) {joined(found)} have missing values: always_observed takes "
            "columns that have none."
        )
    return {names[j]: values[:, i] for i, j in enumerate(places.tolist())}


def check_columns(X: Any, revealed: Any, names: tuple[str, ...]) -> None:
    """Two dataframes are matched by place, so that names must be the same."""
    frame = as_frame(revealed)
    if frame is None or as_frame(X) is None:
        return
    found = tuple(map(str, frame.columns))
    if len(found) == len(names) and found != names:
        raise ValueError(
            f"revealed must have the columns of X, {joined(names)}, in their order: "
            f"got {joined(found)}."
        )


def check_answers(table: NDArray[Any], answers: NDArray[Any], source: Any) -> None:
    """Refuse answers that don't fit the table."""
    if table.shape != answers.shape:
        raise ValueError(
            f"revealed must have the shape of X: got {answers.shape} and {table.shape}."
            " Put NaN where nothing was looked up."
        )
    for rows, block in float_blocks(table, source):
        values = answers[rows]
        contradicted = ~np.isnan(block) & ~np.isnan(values)
        if contradicted.any() or np.isinf(values).any():
            bad = contradicted | np.isinf(values)
            row, column = np.argwhere(bad)[0]
            where = f"row {rows.start + row}, column {column_name(source, int(column))}"
            why = "isn't missing in X" if contradicted[row, column] else "is infinite"
            raise ValueError(
                f"revealed has {values[row, column]} at {where}, which {why}. Only "
                "cells that are missing can be revealed, by finite values."
            )


TEACHES_NOTHING = 5.0
TEACHES_LITTLE = 20.0
# Half of all weight on a smaller share of the observed rows hangs on a handful.
CARRYING = 0.05
FEWEST_ROWS = 40
# What a test says that doesn't fail, and makes a guarantee doubtful.
DOUBTS: dict[Kind, str] = {
    "form": "log-odds linear in the value are doubtful",
    "other columns": "another column may tell more about what is missing",
    "agreement": "looked-up values and the other columns may contradict each other",
}


@dataclass(frozen=True, slots=True)
class _Finding:
    """A check before the number of tests is known."""

    kind: Kind
    feature: str
    source: Source
    statistic: float
    p_value: float | None
    fails: bool
    good: str
    bad: str
    odds_factor: float | None = None


def concluded(findings: Sequence[_Finding]) -> tuple[Check, ...]:
    """Checks of a model; a test fails at `LEVEL` over all of them (Bonferroni)."""
    n_tests = max(1, sum(found.p_value is not None for found in findings))
    checks = []
    for found in findings:
        failed, p_value = found.fails, found.p_value
        sentence = found.good
        if p_value is not None:
            failed = p_value * n_tests <= LEVEL
            if p_value * n_tests < DOUBT:
                sentence = f"{found.feature}: {DOUBTS[found.kind]}."
        if failed:
            sentence = found.bad
        if p_value is not None:
            sentence = f"{sentence[:-1]} (p = {p_value:.2g})."
            sentence += f" {REMEDY}" * failed
        facts = found.kind, found.feature, found.source, found.statistic
        checks.append(Check(*facts, p_value, failed, sentence, found.odds_factor))
    return tuple(checks)


def warn_of(checks: Sequence[Check], stacklevel: int) -> None:
    """Warn of checks that failed, if any did."""
    text = failing(checks)
    if text:
        warnings.warn(text, MissingnessWarning, stacklevel=stacklevel + 1)


def assess_features(
    answers: FloatArray,
    values: FloatArray,
    evidence: Sequence[Evidence | None],
    fitted: Fitted,
    taught: dict[int, TableFit],
    thetas: dict[int, FloatArray],
    names: Sequence[str],
) -> tuple[Check, ...]:
    """Every check of a per-feature φ.

    Parameters
    ----------
    answers, values : ndarray of shape (n_rows, n_columns)
        What was looked up, and the table.
    evidence, fitted, taught
        What was learned from, by feature.
    thetas : dict of int to ndarray
        The model's parameters, by feature.
    names : sequence of str
    """
    findings = []
    functions = None
    if len(names) > 1:
        missing = np.isnan(values)
        shared = shared_masks(missing)
        usable = usable_features(missing, shared)
        if fitted:
            functions = LookupFunctions.of(values, answers, usable)
        findings += _together(shared, missing, taught, fitted, names)
    for j, theta in thetas.items():
        own = evidence[j]
        assert own is not None
        name = names[j]
        if j in fitted and len(fitted[j][0]) > 1:
            findings.append(form_finding(own, fitted[j][0], name))
            if functions is not None:
                findings.append(
                    _others_from_lookups(functions, j, fitted[j][0], own, names)
                )
        if j in taught:
            fit = taught[j]
            findings.append(instrument_finding(fit, name, own))
            if fit.tests is not None:
                # A positive residual is an entry observed more often than φ says.
                direction = -fit.tests.other_statistic
                told = _dependence(name, fit.tests.other, direction, names)
                findings += _from_tests(fit.tests, name, told)
            if j in fitted:
                findings.append(_agreement(fit, fitted[j], name))
        findings += weights_finding(own, theta, name)
    return concluded(findings)


def form_finding(evidence: Evidence, theta: FloatArray, name: str) -> _Finding:
    """Whether looked-up values are spread as a logistic φ says."""
    statistic, p_value, factor = form_test(evidence, theta)
    return _Finding(
        "form",
        name,
        "looked up",
        statistic,
        p_value,
        False,
        f"{name}: the values looked up agree with log-odds linear in the value.",
        f"{name}: the values looked up contradict log-odds linear in the value.",
        factor,
    )


def weights_finding(evidence: Evidence, theta: FloatArray, name: str) -> list[_Finding]:
    """Whether a handful of rows carry the weights."""
    n_observed = float(evidence.mass[evidence.n_revealed :].sum())
    if n_observed < FEWEST_ROWS or not len(evidence.values):
        return []
    share = carrying_share(evidence, theta)
    carried = f"half of all weight lies on {share:.1%} of the observed rows."
    return [
        _Finding(
            "weights",
            name,
            "table",
            share,
            None,
            share < CARRYING,
            f"{name}: {carried}",
            f"{name}: {carried} Estimates hang on a handful of rows. Use looked-up "
            "values as data, or cap φ by design.",
        )
    ]


def instrument_finding(fit: TableFit, name: str, evidence: Evidence) -> _Finding:
    """How much the other columns could teach."""
    worth = float(equivalent_lookups(fit.shadow, fit.theta).min())
    good = (
        f"{name}: the other columns teach as much about why it is missing as about "
        f"{worth:,.0f} looked-up values would."
    )
    if worth < TEACHES_LITTLE:
        good = (
            f"{name}: the other columns teach little about why it is missing, as much "
            f"as about {worth:.0f} looked-up values would."
        )
    bad = (
        f"{name}: the other columns don't predict it, so the table can't teach why it "
        "is missing, and the slope of φ is a guess close to 0. Look up some of its "
        "missing values."
    )
    fails = worth < TEACHES_NOTHING and not evidence.n_revealed
    return _Finding("instrument", name, "table", worth, None, fails, good, bad)


def _together(
    shared: BoolArray,
    missing: BoolArray,
    taught: dict[int, TableFit],
    fitted: Fitted,
    names: Sequence[str],
) -> list[_Finding]:
    """Columns that go missing in the same rows, by whatever each φ was learned from."""
    counts = missing.sum(axis=0)
    findings = []
    lossy = (shared.sum(axis=1) > 1) & (counts >= FEWEST_SHARED)
    for j in np.flatnonzero(lossy).tolist():
        group = np.flatnonzero(shared[j]).tolist()
        if j != group[0]:
            continue
        text = f"{joined([names[k] for k in group])}: they go missing in the same rows."
        bad = (
            f"{text} What the table taught of each takes entries to go missing "
            "independently. Look up values, or learn one φ for these columns "
            "(always_observed)."
        )
        fails = any(k in taught and k not in fitted for k in group)
        size = float(len(group))
        findings.append(
            _Finding("together", names[j], "table", size, None, fails, text, bad)
        )
    return findings


def findings_of_rows(
    fit: TableFit, always: Sequence[str], called: str
) -> list[_Finding]:
    """What columns that are always observed say of the φ of whole rows."""
    if fit.tests is None:
        return []
    place, missed = fit.tests.other, fit.tests.other_statistic < 0.0
    where = "high" if missed else "low"
    if place >= len(always):
        where = "far from its middle" if missed else "close to its middle"
    told = (
        f"{called}: they go missing more often where {always[place % len(always)]} is "
        f"{where} than their own values explain."
    )
    return _from_tests(fit.tests, called, told)


def _from_tests(tests: Overidentification, name: str, told: str) -> list[_Finding]:
    """The tests of more equations than parameters; `told` is what the second finds."""
    form = _Finding(
        "form",
        name,
        "table",
        tests.form_statistic,
        tests.form_p,
        False,
        f"{name}: the other columns agree with log-odds linear in the value.",
        f"{name}: the other columns contradict log-odds linear in the value.",
        tests.form_factor,
    )
    others = _Finding(
        "other columns",
        name,
        "table",
        tests.other_statistic,
        tests.other_p,
        False,
        f"{name}: no other column tells more about what is missing.",
        told,
        tests.other_factor,
    )
    return [form, others]


def _dependence(name: str, place: int, direction: float, names: Sequence[str]) -> str:
    """In words: a feature that goes missing with a function of another column."""
    other = f"{names[place % len(names)]} is"
    sides = ("high", "low") if place < len(names) else ("missing", "observed")
    if place == 2 * len(names):
        other = "other columns are"
    side = sides[0] if direction > 0.0 else sides[1]
    return (
        f"{name}: it goes missing more often where {other} {side} than its own value "
        "explains."
    )


def _others_from_lookups(
    functions: LookupFunctions,
    j: int,
    theta: FloatArray,
    evidence: Evidence,
    names: Sequence[str],
) -> _Finding:
    """Whether another column helps to tell looked-up values from observed ones."""
    found, seen = functions.answers[:, j], functions.values[:, j]
    known = np.flatnonzero(~np.isnan(found))
    observed = np.flatnonzero(functions.sampled & ~np.isnan(seen))
    mass = np.ones(len(known) + len(observed))
    mass[len(known) :] = functions.n_observed[j] / len(observed)
    column = np.concatenate([found[known], seen[observed]])
    single = Evidence(column[None], len(known), mass, evidence.n_missing)
    rows = functions.functions[np.concatenate([known, observed])]
    usable = functions.usable[j]
    statistic, p_value, place, factor = others_test(single, theta, rows, usable)
    name = names[j]
    return _Finding(
        "other columns",
        name,
        "looked up",
        statistic,
        p_value,
        False,
        f"{name}: no other column tells looked-up from observed values.",
        _dependence(name, place, statistic, names),
        factor,
    )


def _agreement(
    fit: TableFit, known: tuple[FloatArray, Evidence], name: str
) -> _Finding:
    """Whether the table's equations hold at the φ that looked-up values give."""
    theta, evidence = known
    shadow = fit.shadow
    standard = shadow.coordinates.standardise(theta)
    covariance = lookup_covariance(evidence, standard, shadow.coordinates)
    standard[0] -= evidence.sampling_offset
    odds = shadow.odds(standard)
    # Undo the thinning: here the table stands against what was looked up.
    share = 1.0 - evidence.revealed_mass / evidence.n_missing
    moments = shadow.moments(odds) / share
    slopes = shadow.slopes(odds) / share
    spread = shadow.spread(odds) / share + slopes @ covariance @ slopes.T
    worst = np.linalg.pinv(spread, hermitian=True) @ moments
    statistic = float(worst @ moments)
    p_value = float(chi2.sf(statistic, len(moments)))
    factor = least_factor(odds * (shadow.sums @ worst) / share, statistic)
    return _Finding(
        "agreement",
        name,
        "looked up",
        statistic,
        p_value,
        False,
        f"{name}: looked-up values and the other columns say the same of φ.",
        f"{name}: looked-up values and the other columns contradict each other.",
        factor,
    )


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
