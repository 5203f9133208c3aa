"""Whether the data contradicts a learned φ: tests by look-ups and by more equations.

Look-ups: values that were looked up follow the observed ones, tilted by the odds
e^(βᵀz), if φ is logistic in them and depends on nothing else. Score tests (Rao 1948) of
the logistic regression of "was missing" on the value: does a further function f of the
row help? Its score Σ (y − p) f is made orthogonal to those of the parameters, so that
their error doesn't matter; f is bounded, so that the normal law holds with few values.

More equations than parameters: as many functions h of the other columns as φ_j has
parameters fix it. For every further one, E[m h] = 0 for the residual
m = 1{observed}/(1 − φ_j) − 1 tests what was assumed: that the log-odds are linear in
z_j, that they depend on nothing else, and that entries go missing independently. Each
equation is made orthogonal to those that φ was estimated from, so that the estimate's
error doesn't matter. Functions are bounded, and small where weights are expected to be
large.

Given the rows, m is −1 with probability φ and φ/(1 − φ) otherwise, independently. So
the law of a sum Σ m g is known from φ, and needs no variance from the rows that went
missing: where a few are expected to go missing together and none does, those would
have next to none. With K the logarithm of the sum's moment generating function,
Chernoff's bound exp(−I), I = sup_s (s Σ m g − K(s)), and the saddlepoint's tail hold
for counts of any size, far out in the tail as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.polynomial import legendre
from scipy.stats import chi2
from scipy.stats import t as student

from missratio._base.reading import joined
from missratio._base.storable import storable
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.learning.evidence import Evidence, Unit
from missratio.learning.shadow import LARGEST_LOG_ODDS
from missratio.missingness.check import DOUBT, least_factor, residual_tails

Kind = Literal["form", "other columns", "agreement", "instrument", "together"]
Source = Literal["table", "looked up", "stated"]

LEVEL = 0.01
"""How often a right φ is called wrong, by any of a model's tests, at most."""

REMEDY = (
    "Don't weight by this φ: use looked-up values as data, or model φ in another way."
)
# What a test says unless it fails, if it does where another column has no part, and if
# it doesn't fail but makes a guarantee doubtful.
SENTENCES: dict[Kind, tuple[str, str, str]] = {
    "form": (
        "{who} agree with log-odds linear in the value.",
        "{who} contradict log-odds linear in the value.",
        "log-odds linear in the value are doubtful.",
    ),
    "other columns": (
        "no other column tells more about what is missing.",
        "",
        "another column may tell more about what is missing.",
    ),
    "agreement": (
        "{who} and the other columns say the same of φ.",
        "{who} and the other columns contradict each other.",
        "{who} and the other columns may contradict each other.",
    ),
}
WHO: dict[Source, str] = {
    "looked up": "looked-up values",
    "table": "the other columns",
    "stated": "what was stated",
}
# Fewer missing rows may be the same by chance.
FEWEST_SHARED = 5
# Columns with one finding that are named.
SHOWN = 3
DEGREES = (2, 3, 4)
# A variance, as part of the largest, below which a function says nothing.
TELLING = 1e-9
# Entries of a table up to which columns are pooled: in larger ones each says enough.
MOST_POOLED = 1_500_000


class MissingnessWarning(UserWarning):
    """The data contradicts a learned φ, or can't teach it."""


@storable()
@dataclass(frozen=True)
class Check:
    """One test of a learned φ, of one feature.

    Parameters
    ----------
    kind : str
        "form": is φ logistic in the value? "other columns": does it depend on others,
        or do entries go missing together? "agreement": do looked-up values and the
        table say the same? "instrument": could the table teach φ at all? "together":
        do columns go missing in the same rows?
    feature : str
        "rows" for a rowwise model.
    source : {"table", "looked up", "stated"}
        What the check was computed from.
    statistic : float
        "form" and "agreement": χ²; "other columns": a normal deviate; "instrument": how
        many looked-up values would teach as much.
    pvalue : float or None
        None for a check that is no test.
    failed : bool
        Whether it speaks against the model, by `LEVEL` for all tests of the model.
    sentence : str
        What was found, and what to do about it where it failed.
    odds_factor : float or None
        By what factor the odds φ/(1 − φ) would have to be wrong, at the least, to
        explain what a test found; None for a check that is no test.
    """

    kind: Kind
    feature: str
    source: Source
    statistic: float
    pvalue: float | None
    failed: bool
    sentence: str
    odds_factor: float | None = None

    @property
    def finding(self) -> str:
        """The sentence without what to do about it."""
        return self.sentence.removesuffix(f" {REMEDY}")


class Outcome(NamedTuple):
    """What a test found: its statistic, p, and the odds factor that would explain it.

    `place` is that of the function which fits worst, where there are several.
    """

    statistic: float
    pvalue: float
    odds_factor: float
    place: int = 0


def record(
    unit: Unit, kind: Kind, source: Source, test: Outcome, bad: str = ""
) -> None:
    """Note a test, with what it says if it fails: of another column that is `bad`."""
    sentence = f"{unit.name}: {bad or SENTENCES[kind][1].format(who=WHO[source])}"
    facts = test.statistic, test.pvalue, False, sentence, test.odds_factor
    unit.checks.append(Check(kind, unit.name, source, *facts))


def concluded(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Checks of a model; a test fails at `LEVEL` over all of them (Bonferroni)."""
    n_tests = sum(check.pvalue is not None for check in checks)

    def conclude(check: Check) -> Check:
        if check.pvalue is None:
            return check
        together, sentence = n_tests * check.pvalue, check.sentence
        failed = together <= LEVEL
        if not failed:
            said = SENTENCES[check.kind][2 if together < DOUBT else 0]
            sentence = f"{check.feature}: {said.format(who=WHO[check.source])}"
        sentence = f"{sentence[:-1]} (p = {check.pvalue:.2g})." + f" {REMEDY}" * failed
        return replace(check, failed=failed, sentence=sentence)

    return tuple(map(conclude, checks))


def warning_text(checks: Sequence[Check]) -> str:
    """What failed; of many columns with one finding, the worst by name and a count."""
    failed: dict[tuple[Kind, Source], list[Check]] = {}
    for check in checks:
        if check.failed:
            failed.setdefault((check.kind, check.source), []).append(check)
    lines = []
    for alike in failed.values():
        alike.sort(key=lambda check: check.pvalue or 0.0)
        shown = [check.sentence for check in alike[:SHOWN]]
        if len(alike) > SHOWN:
            names = joined([check.feature for check in alike[:SHOWN]])
            what = alike[0].sentence.removeprefix(f"{alike[0].feature}: ")
            shown = [f"{len(alike)} columns, the worst of them {names}: {what}"]
        lines += shown
    return "\n".join(lines)


def instrument_strength(unit: Unit, worth: float, explained: float) -> None:
    """How much the other columns could teach, in looked-up values.

    `explained` is the share of its variance that they predict.
    """
    # By less than 20 looked-up values they teach little, by less than 5 nothing.
    much, more = ("little", ", as much") if worth < 20.0 else ("as much", "")
    said = (
        f"{unit.name}: the other columns teach {much} about why it is missing{more} as "
        f"about {worth:,.0f} looked-up values would."
    )
    fails = worth < 5.0 and not unit.known.n_revealed
    if fails:
        said = (
            f"{unit.name}: the other columns don't predict it (they explain "
            f"{explained:.0%} of its variance), so the table can't teach why it is "
            "missing, and the slope of φ is a guess close to 0. Look up some of its "
            "missing values, leave the column out, or certify rows as they are "
            "observed."
        )
    facts = worth, None, fails, said
    unit.checks.append(Check("instrument", unit.name, "table", *facts))


def missing_together(missing: BoolArray, units: Sequence[Unit]) -> list[Check]:
    """Columns that go missing in the same rows: the table alone can't teach their φ."""
    groups: dict[bytes, list[Unit]] = {}
    for unit in units:
        lost = missing[:, unit.columns[0]]
        if lost.sum() >= FEWEST_SHARED:
            groups.setdefault(lost.tobytes(), []).append(unit)
    checks = []
    for group in groups.values():
        if len(group) > 1:
            taught = [unit for unit in group if unit.shadow is not None]
            fails = any(
                u.by_lookups is None and u.shadow.stated is None for u in taught
            )
            said = f"{joined([unit.name for unit in group])}: they go missing in the "
            said += "same rows." + fails * (
                " What the table taught of each takes entries to go missing "
                "independently. Look up values of them."
            )
            facts = float(len(group)), None, fails, said
            checks.append(Check("together", group[0].name, "table", *facts))
    return checks


def agreement(unit: Unit) -> None:
    """Whether the table's equations hold at the φ that looked-up values give."""
    shadow, evidence, theta = unit.shadow, unit.known, unit.by_lookups
    standard = shadow.coordinates.standardise(theta)
    covariance = evidence.covariance(standard, shadow.coordinates)
    odds = shadow.odds(standard)
    # Undo the thinning: here the table stands against what was looked up.
    share = 1.0 - evidence.n_revealed / evidence.n_missing
    moments = shadow.moments(odds) / share
    slopes = shadow.slopes(odds) / share
    spread = shadow.spread(odds) / share + slopes @ covariance @ slopes.T
    worst = np.linalg.pinv(spread, hermitian=True) @ moments
    statistic = float(worst @ moments)
    pvalue = float(chi2.sf(statistic, len(moments)))
    factor = least_factor(odds * (shadow.sums @ worst) / share, statistic)
    record(unit, "agreement", "looked up", Outcome(statistic, pvalue, factor))


Sides = list[tuple[str, str, str | None]]
"""Where functions are high, and low; and the column that φ may be let depend on."""


def column_sides(names: Sequence[str], missing: BoolArray) -> Sides:
    """Of columns, which are missing, their squares, and how many are missing."""
    complete = np.asarray(~missing.any(axis=0))
    sides: Sides = [
        (f"{name} is high", f"{name} is low", name if there else None)
        for name, there in zip(names, complete.tolist(), strict=True)
    ]
    sides += [(f"{name} is missing", f"{name} is observed", None) for name in names]
    far, close = "is far from its middle", "is close to its middle"
    sides += [(f"{name} {far}", f"{name} {close}", None) for name in names]
    return [*sides, ("other columns are missing", "other columns are observed", None)]


def dependence(unit: Unit, source: Source, test: Outcome, sides: Sides) -> None:
    """Whether a feature goes missing with a function of another column.

    By the table, a positive residual is an entry observed more often than φ says: it
    speaks for a function's low side.
    """
    high, low, column = sides[test.place]
    side = high if (test.statistic > 0.0) == (source == "looked up") else low
    bad = f"it goes missing more often where {side} than its own value explains."
    if unit.name == "rows" or not len(unit.columns):
        bad = f"they go missing more often where {side} than their own values explain."
    if column is not None:
        bad = f"{bad[:-1]}; depends_on=[{column!r}] lets φ depend on it."
    record(unit, "other columns", source, test, bad)


def form_by_lookups(unit: Unit) -> None:
    """Test whether polynomials of the value's rank help: χ², three degrees of freedom.

    Whole rows are ranked by their log-odds.
    """
    evidence, theta = unit.known, unit.by_lookups
    assert theta is not None
    rank = _ranks_in_laws(theta[1:] @ evidence.values, evidence)
    sums, rest, weight = _scores(evidence, theta, _polynomials(rank))
    covariance = (rest * weight) @ rest.T
    worst = np.linalg.pinv(covariance, hermitian=True) @ sums
    statistic = float(worst @ sums)
    freedom = max(int(np.linalg.matrix_rank(covariance, hermitian=True)), 1)
    factor = _score_factor(statistic, weight, worst @ rest)
    test = Outcome(statistic, float(chi2.sf(statistic, freedom)), factor)
    record(unit, "form", "looked up", test)


def others_by_lookups(
    unit: Unit,
    evidence: Evidence,
    functions: FloatArray,
    usable: BoolArray,
    sides: Sides,
) -> None:
    """Test whether a function of another column helps, by the one that helps most.

    Functions, (n_functions, n_known), are those of values one by one. The statistic is
    a normal deviate, judged by Student's law with as many degrees of freedom as values
    looked up, less one; p is Bonferroni's over all functions.
    """
    assert unit.by_lookups is not None
    sums, rest, weight = _scores(evidence, unit.by_lookups, functions)
    whole, variances = functions**2 @ weight, rest**2 @ weight
    kept = usable & (variances > 1e-6 * whole) & (whole > 0.0)
    test = Outcome(0.0, 1.0, 1.0)
    if kept.any():
        deviates = np.where(kept, sums, 0.0) / np.sqrt(np.where(kept, variances, 1.0))
        place = int(np.argmax(np.abs(deviates)))
        # Far out in the tails, where the worst of many functions is judged, few values
        # are not yet normal: Student's law is on the safe side.
        freedom = max(evidence.n_revealed - 1.0, 1.0)
        pvalue = 2.0 * float(student.sf(abs(deviates[place]), freedom)) * kept.sum()
        factor = _score_factor(float(sums[place]), weight, rest[place])
        test = Outcome(float(deviates[place]), min(1.0, float(pvalue)), factor, place)
    dependence(unit, "looked up", test, sides)


def _scores(
    evidence: Evidence, theta: FloatArray, functions: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scores of functions (n_functions, n_known), these less φ's part, and p(1 − p)."""
    probability = evidence.revealed_probability(theta)
    weight = evidence.mass * probability * (1.0 - probability)
    design = evidence.coordinates.design(evidence.values)
    information = (design * weight) @ design.T
    projection = ((functions * weight) @ design.T) @ np.linalg.inv(information)
    rest = functions - projection @ design
    revealed = np.arange(len(probability)) < evidence.n_revealed
    return rest @ (evidence.mass * (revealed - probability)), rest, weight


def _score_factor(total: float, weight: FloatArray, function: FloatArray) -> float:
    """By what factor odds must be wrong, to first order, to explain a score."""
    reach = float(weight @ np.abs(function))
    return float(np.exp(min(abs(total) / reach, LARGEST_LOG_ODDS))) if reach else np.inf


def _polynomials(rank: FloatArray) -> FloatArray:
    """Legendre's of ranks in [−1, 1], (n_degrees, n_ranks)."""
    return np.stack([legendre.legval(rank, np.eye(1 + k)[k]) for k in DEGREES])


def _ranks_in_laws(score: FloatArray, evidence: Evidence) -> FloatArray:
    """Where known values lie among observed and missing ones together, in [−1, 1].

    Ties lie in the middle. The law of missing values is the fit's: the observed ones,
    tilted by their odds.
    """
    observed, mass = score[evidence.n_revealed :], evidence.observed[1]
    order = np.argsort(observed, kind="stable")
    # Means of equal values differ from these by rounding.
    slack = 1e-10 * (1.0 + np.abs(score).max())
    below = np.searchsorted(observed[order], score - slack, side="left")
    up_to = np.searchsorted(observed[order], score + slack, side="right")
    rank = np.full(len(score), -1.0)
    for law in (mass, mass * np.exp(observed - observed.max())):
        sums = np.append(0.0, np.cumsum(law[order])) / law.sum()
        rank += (sums[below] + sums[up_to]) / 2.0
    return rank


Orthogonal = tuple[FloatArray, FloatArray, FloatArray]
"""Sums, variances and projections of functions, by `Residuals.orthogonal`."""


@dataclass(frozen=True)
class Residuals:
    """The fitted φ of a feature, or of whole rows, row by row.

    Parameters
    ----------
    log_odds : ndarray of shape (n_observed,)
        Of being missing.
    values : ndarray of shape (n_columns, n_observed)
        Standardised: of the feature, or of the columns of whole rows.
    observed : ndarray of int
        The rows of those.
    instruments : ndarray of shape (n_rows, 1 + n_columns)
        That φ was estimated with; the first is positive.
    """

    log_odds: FloatArray
    values: FloatArray
    observed: IntArray
    instruments: FloatArray

    @cached_property
    def odds(self) -> FloatArray:
        """Of being missing, of observed rows."""
        return np.exp(np.minimum(self.log_odds, LARGEST_LOG_ODDS))

    @cached_property
    def laws(self) -> tuple[tuple[FloatArray, FloatArray], ...]:
        """Rows that stand for all, twice over: how many each stands for, and its odds.

        Observed rows stand for the missing ones that are like them, in proportion to
        their odds. Or missing rows stand for themselves, with odds in proportion to
        1/v, on average those of missing rows: for what hardly occurs among observed
        rows.
        """
        odds, v = self.odds, self.instruments[:, 0]
        counts = np.zeros(len(v))
        counts[self.observed] = 1.0 + odds
        every = (odds @ (odds * v[self.observed]) / odds.sum()) / v
        every[self.observed] = odds
        return (counts, every), (np.ones(len(v)), every)

    @cached_property
    def _weighted(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What functions, their squares and instruments are summed with, and the last.

        With v: the residual m, how it moves with φ's parameters, and by each of the
        `laws` the instruments times the variance of m.
        """
        h, v = self.instruments, self.instruments[:, 0]
        residual = np.full(len(h), -1.0)
        residual[self.observed] = self.odds
        slopes = np.zeros((h.shape[1], len(h)))
        slopes[0, self.observed] = self.odds
        slopes[1:, self.observed] = self.odds * self.values
        spreads = np.stack([counts * odds for counts, odds in self.laws])
        rows = [residual[None], slopes, *(spread * h.T for spread in spreads)]
        weighted = np.concatenate(rows)
        of_instruments = weighted @ h
        weighted *= v
        return weighted, spreads * v**2, of_instruments

    def orthogonal(
        self, functions: FloatArray, squares: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sums Σ m g of g = v f less what the estimate takes from it.

        Parameters
        ----------
        functions, squares : ndarray of shape (n_rows, n_functions)
            f, and f².

        Returns
        -------
        sums, variances : ndarray of shape (n_functions,)
            The variance is that by φ, the larger one of the two `laws`.
        projections : ndarray of shape (n_functions, 1 + n_columns)
            The instruments' part that is subtracted from each function.
        """
        weighted, spreads, of_instruments = self._weighted
        width = of_instruments.shape[1]
        products = weighted @ functions
        inverse = np.linalg.inv(of_instruments[1 : 1 + width])
        projections = products[1 : 1 + width].T @ inverse
        sums = products[0] - projections @ of_instruments[0]
        variances = spreads @ squares
        for k, variance in enumerate(variances, start=1):
            part = slice(1 + k * width, 1 + (k + 1) * width)
            variance -= 2.0 * (projections * products[part].T).sum(axis=1)
            inner = projections @ of_instruments[part]
            variance += (inner * projections).sum(axis=1)
        return sums, np.maximum(variances.max(axis=0), 0.0), projections

    def less(self, functions: FloatArray, projections: FloatArray) -> FloatArray:
        """Functions g = v f less what `orthogonal` subtracts from each."""
        h = self.instruments
        return np.asarray(h[:, :1] * functions - h @ projections.T)

    def tails(
        self, functions: FloatArray, projections: FloatArray, sums: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Rates I of sums, and how probable it is that they are as far out.

        By the one of the two `laws` that makes them more probable. Parameters are those
        of `orthogonal`.
        """
        g = self.less(functions, projections)
        first, second = (residual_tails(g, *law, sums) for law in self.laws)
        return np.minimum(first[0], second[0]), np.maximum(first[1], second[1])

    def _factor(
        self, function: FloatArray, projection: FloatArray, total: float
    ) -> float:
        """By what factor odds must be wrong, at the least, to explain one sum."""
        g = self.less(function[:, None], projection[None])[self.observed, 0]
        return least_factor(self.odds * g, total)

    def form(self, predicted: FloatArray) -> Outcome:
        """The test by polynomials of the prediction's rank, in the worst direction."""
        kept = np.sort(predicted[:: max(1, len(predicted) // 4096)])
        rank = np.interp(predicted, kept, np.linspace(-1.0, 1.0, len(kept)))
        basis = _polynomials(rank).T
        sums, _, projections = self.orthogonal(basis, basis**2)
        g = self.less(basis, projections)
        spread = np.prod(self.laws[0], axis=0)
        worst = np.linalg.pinv((g.T * spread) @ g, hermitian=True) @ sums
        function, projection = basis @ worst, worst @ projections
        total = np.array([worst @ sums])
        rates, _ = self.tails(function[:, None], projection[None], total)
        statistic = 2.0 * float(rates[0])
        factor = self._factor(function, projection, float(total[0]))
        return Outcome(statistic, float(chi2.sf(statistic, len(DEGREES))), factor)

    def others(
        self, functions: FloatArray, parts: Orthogonal, usable: BoolArray
    ) -> Outcome:
        """The function of other columns that deviates most, a normal deviate.

        `parts` are the functions made `orthogonal`. p is that of the function by
        itself; it is 1 where it says nothing.
        """
        sums, variances, projections = parts
        kept = usable & (variances > TELLING * variances.max())
        deviates = np.where(kept, sums, 0.0) / np.sqrt(np.where(kept, variances, 1.0))
        # The rates are computed of eight functions at most, those that deviate most.
        far = np.argsort(-np.abs(deviates))[:8]
        place = int(far[0])
        # Of a count the rate is at most the deviate's square: of a small one it says
        # nothing beside that many functions.
        far = far[deviates[far] ** 2 > np.log(2.0 * len(kept))]
        if not len(far):
            return Outcome(float(deviates[place]), 1.0, 1.0, place)
        rates, p_values = self.tails(functions[:, far], projections[far], sums[far])
        worst = int(np.argmax(rates))
        place, total = int(far[worst]), float(sums[far[worst]])
        statistic = float(np.copysign(np.sqrt(2.0 * rates[worst]), total))
        factor = self._factor(functions[:, place], projections[place], total)
        return Outcome(statistic, float(p_values[worst]), factor, place)

    def any_other(
        self,
        functions: FloatArray,
        parts: Orthogonal,
        usable: BoolArray,
        lost: FloatArray | None = None,
    ) -> Outcome:
        """The worst of all functions, with Bonferroni's p over those that are usable.

        `lost` is one function more, in the last place: how many other columns are
        missing. Where few rows miss any two of them, it finds what no pair shows.
        """
        test, n_tests = self.others(functions, parts, usable), int(usable.sum())
        if lost is not None:
            n_tests += 1
            more = (lost - lost.mean())[:, None]
            alone = self.orthogonal(more, more**2)
            by_count = self.others(more, alone, np.ones(1, dtype=bool))
            if by_count.pvalue < test.pvalue:
                test = by_count._replace(place=-1)
        return test._replace(pvalue=min(1.0, n_tests * test.pvalue))


def pooled_dependence(
    tested: Sequence[tuple[Unit, Residuals, Orthogonal, BoolArray]],
    functions: FloatArray,
    sides: Sides,
) -> None:
    """Test whether several features go missing with one other column.

    Each alone may say too little. Given the rows entries go missing independently, so
    that deviates of features add up, and so do the laws of their sums. p is
    Bonferroni's over the columns, which `functions`, (n_rows, n_columns), are of.
    """
    width = functions.shape[1]
    signs = np.zeros((len(tested), width))
    for k, (_, _, (sums, variances, _), usable) in enumerate(tested):
        kept = usable[:width] & (variances[:width] > TELLING * variances.max())
        signs[k, kept] = sums[:width][kept] / np.sqrt(variances[:width][kept])
    count = np.count_nonzero(signs, axis=0)
    deviates = signs.sum(axis=0) / np.sqrt(np.maximum(count, 1))
    place = int(np.argmax(np.where(count > 1, np.abs(deviates), 0.0)))
    test = Outcome(float(deviates[place]), 1.0, 1.0, place)
    chosen = [part for part, sign in zip(tested, signs[:, place], strict=True) if sign]
    if count[place] > 1 and test.statistic**2 > np.log(2.0 * width):
        scaled, parts, total = [], [], float(signs[:, place].sum())
        for _, residuals, (_, variances, projections), _ in chosen:
            g = residuals.less(functions[:, [place]], projections[[place]])[:, 0]
            scaled.append(g / np.sqrt(variances[place]))
            parts.append(residuals.odds * scaled[-1][residuals.observed])
        g, sums, tails = np.concatenate(scaled)[:, None], np.array([total]), []
        for k in range(2):
            laws = [residuals.laws[k] for _, residuals, _, _ in chosen]
            counts, odds = (np.concatenate(law) for law in zip(*laws, strict=True))
            tails.append(residual_tails(g, counts, odds, sums)[1][0])
        pvalue = min(1.0, float(max(tails) * np.count_nonzero(count > 1)))
        factor = least_factor(np.concatenate(parts), total)
        test = test._replace(pvalue=pvalue, odds_factor=factor)
    columns = np.empty(0, dtype=np.intp)
    several = Unit(columns, columns, f"{len(chosen)} columns")
    dependence(several, "table", test, sides)
    tested[0][0].checks += several.checks
