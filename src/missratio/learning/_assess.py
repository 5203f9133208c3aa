"""All checks of a learned φ, in words."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from missratio._base.reading import joined
from missratio._base.typing import BoolArray, FloatArray
from missratio.learning._categories import FEWEST_SHARED
from missratio.learning._checks import (
    LEVEL,
    REMEDY,
    Check,
    Kind,
    MissingnessWarning,
    Source,
    failing,
)
from missratio.learning._evidence import Evidence
from missratio.learning._from_lookups import Fitted
from missratio.learning._from_table import (
    TableFit,
    equivalent_lookups,
    shared_masks,
    usable_features,
)
from missratio.learning._lookup_functions import LookupFunctions
from missratio.learning._lookup_tests import carrying_share, form_test, others_test
from missratio.learning._overidentified import Overidentification, least_factor
from missratio.learning._precision import lookup_covariance
from missratio.missingness import DOUBT

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
