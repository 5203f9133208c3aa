"""Whether a table contradicts φ: with a right one, weights have mean one."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from missratio._base.reading import as_numeric_array, column_name, column_names
from missratio._base.typing import FloatArray
from missratio.exceptions import Explained, Message, Remedy
from missratio.missingness._evidence import WeightEvidence, log_evidence
from missratio.missingness.contract import Missingness, once

LEVEL = 1e-3
"""How often, at most, a table that φ does describe is said to contradict it."""

DOUBT = 0.05
"""Below which p-value, of all checks together, a guarantee comes with a warning."""

# Nobody means odds that are wrong by more.
_LARGEST_FACTOR = 20.0

_PAIR_ENTRIES = 2_000_000
_SHOWN = 3


@dataclass(frozen=True)
class MissingnessCheck:
    """One comparison of φ with a table: missing shares expected and found.

    Parameters
    ----------
    what : str
        "rows", a column's name, or two columns' names.
    n_rows, n_observed : int
    expected : float
        The missing share by φ: its mean under the weights.
    found : float
        The missing share of the table.
    mean_weight : float
        One on average, if φ is right.
    log_e_value : float
        Natural logarithm of the evidence against φ.
    level : float
        The chance that a φ that is right is said to be contradicted.
    exact : bool
        Whether that level is guaranteed. It isn't for too little weight where φ's
        maximum is not known.
    joint : bool
        Whether it is about entries that go missing together.
    """

    what: str
    n_rows: int
    n_observed: int
    expected: float
    found: float
    mean_weight: float
    log_e_value: float
    level: float
    exact: bool
    joint: bool = False

    @property
    def p_value(self) -> float:
        """min(1, 1/e-value): small where the table speaks against φ."""
        return math.exp(-max(self.log_e_value, 0.0))

    @property
    def verdict(self) -> Literal["consistent", "shortfall", "contradiction"]:
        """What the check finds.

        "contradiction": φ is wrong, but for a chance of `level`. "shortfall": φ is
        wrong, or values are missing of which none like them was observed.
        """
        if self.log_e_value < math.log(1.0 / self.level):
            return "consistent"
        return "contradiction" if self.exact else "shortfall"

    @property
    def odds_factor(self) -> float:
        """By what factor the odds φ/(1 − φ) are wrong, if all are wrong alike."""
        odds = self.found * (1.0 - self.expected), self.expected * (1.0 - self.found)
        return max(odds) / min(odds) if min(odds) > 0.0 else math.inf

    @property
    def sentence(self) -> str:
        """What φ expects and what the table has."""
        expected, found = _percentages(self.expected, self.found)
        if self.joint:
            whose = "any column" if self.what == "rows" else self.what
            return (
                f"φ expects {expected} of the rows to miss a value in {whose}, the "
                f"table has {found}"
            )
        whose = "the rows" if self.what == "rows" else self.what
        return f"φ expects {expected} of {whose} missing, the table has {found}"


class MissingnessContradictionError(Explained, ValueError):
    """The data contradict φ, so that no guarantee can rest on it.

    Parameters
    ----------
    checks : sequence of MissingnessCheck, or of a learned φ's `Check`
        Those that contradict φ, the clearest first.
    label : object
        The class.
    """

    def __init__(self, checks: Sequence[Any], label: Any) -> None:
        self.checks = tuple(checks)
        super().__init__(_with_remedies(checks, label, refuted=True))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.checks, self.label)

    def _saying(self, message: Message) -> MissingnessContradictionError:
        error = type(self)(self.checks, self.label)
        error.args = (message,)
        return error


class MissingnessContradictionWarning(Explained, UserWarning):
    """The table contradicts φ or has a shortfall: weighted estimates are biased."""


def missingness_check(
    X: Any,
    missingness: Missingness,
    *,
    level: float = LEVEL,
    complete: bool = False,
    odds_factor: float = 1.0,
    names: Sequence[str] | None = None,
) -> tuple[MissingnessCheck, ...]:
    """Test E W = 1 for the rows of one class, to see whether the table contradicts φ.

    All the checks together contradict a right φ with probability at most `level`, which
    is Markov's bound on an e-value. That makes it strict: at level 0.05 it finds fault
    with 0 to 3 of 1,000 tables that φ does describe, as docs/missingness.md prints.

    Parameters
    ----------
    X : array-like or dataframe of shape (n, d)
        The rows of one class, NaN where missing.
    missingness : Missingness
        If it was learned, only what no φ in its band explains speaks against it.
    level : float, default=0.001
    complete : bool, default=False
        Whether to test as well that entries go missing independently given the row.
    odds_factor : float, default=1.0
        By what factor the odds φ/(1 − φ) may be wrong either way.
    names : sequence of str, optional
        Of the columns, for messages; those of a dataframe are known.

    Returns
    -------
    tuple of MissingnessCheck
        One for the rows, or one for each column (then for pairs and complete rows).

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> phi = mr.LogisticMissingness(-1.0, [2.0])
    >>> X = mr.corrupt(rng.normal(size=(500, 1)), phi, rng)
    >>> [check.verdict for check in mr.missingness_check(X, phi)]
    ['consistent']
    >>> mirrored = mr.LogisticMissingness(-1.0, [-2.0])
    >>> (check,) = mr.missingness_check(X, mirrored)
    >>> check.verdict, check.sentence
    ('contradiction', 'φ expects 90% of column 0 missing, the table has 34%')
    """
    missingness = missingness.bound(column_names(X) if names is None else names)
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level}.")
    edges = _edges(X, missingness, level, odds_factor)
    return _checks(X, missingness, edges, level, complete, odds_factor, names)


def contradictions(
    X: Any,
    missingness: Missingness,
    *,
    complete: bool = False,
    names: Sequence[str] | None = None,
) -> tuple[MissingnessCheck, ...]:
    """The checks that speak against φ; quick where none does.

    Parameters
    ----------
    X : array-like or dataframe of shape (n, d)
    missingness : Missingness
    complete : bool, default=False
    names : sequence of str, optional
    """
    if missingness.learned:
        # What the learned φ explains itself, its band explains, too.
        bound = missingness.bound(column_names(X) if names is None else names)
        estimated = [_weights(bound.missing_probability(X), 1.0)]
        checks = _checks(X, bound, estimated, LEVEL, complete, 1.0, names)
        if all(check.verdict == "consistent" for check in checks):
            return ()
    checks = missingness_check(X, missingness, complete=complete, names=names)
    return tuple(check for check in checks if check.verdict != "consistent")


def _checks(
    X: Any,
    missingness: Missingness,
    edges: Sequence[FloatArray],
    level: float,
    complete: bool,
    odds_factor: float,
    names: Sequence[str] | None,
) -> tuple[MissingnessCheck, ...]:
    """Test weights, or their edges, for all that a model's columns are."""
    n_columns = as_numeric_array(X).shape[1]
    bounds = _weights(missingness.column_maxima(n_columns), odds_factor)
    if missingness.rowwise:
        return check_weights(edges, ["rows"], bounds, level)
    known = [column_name(X, j) for j in range(n_columns)] if names is None else names
    shown = [f"column {name if names is None else repr(name)}" for name in known]
    if missingness.groups is not None:
        # What goes missing together is one thing to test.
        kept = once(missingness.groups)
        edges = [each[:, kept] for each in edges]
        shown, bounds = [shown[j] for j in kept], bounds[kept]
    return check_weights(edges, shown, bounds, level, complete=complete)


def _edges(
    X: Any, missingness: Missingness, level: float, odds_factor: float
) -> list[FloatArray]:
    """The weights; or the least and the largest ones that φ may give."""
    if not (missingness.learned or missingness.rowwise) and odds_factor == 1.0:
        return [missingness.weights(X)]
    if missingness.learned:
        low, high = missingness.probability_band(X, level)
    else:
        low = high = missingness.missing_probability(X)
    edges = [_weights(low, 1.0 / odds_factor)]
    if low is not high or odds_factor > 1.0:
        edges.append(_weights(high, odds_factor))
    return edges


def check_weights(
    edges: Sequence[FloatArray],
    names: Sequence[str],
    bounds: Sequence[float] | FloatArray,
    level: float = LEVEL,
    *,
    complete: bool = False,
) -> tuple[MissingnessCheck, ...]:
    """Test that weights have mean one.

    Parameters
    ----------
    edges : sequence of ndarray of shape (n,) or (n, d)
        The weights; or the least and the largest ones that φ may give.
    names : sequence of str
        Of the columns; of one thing, the rows, where weights have shape (n,).
    bounds : sequence of float
        On the weights of each column; inf where none is known.
    level : float
        Over all checks together.
    complete : bool
        Whether to test products over columns as well.
    """
    columns = [each.reshape(len(each), -1) for each in edges]
    by_column = zip(*map(WeightEvidence.of_columns, columns), strict=True)
    tested: list[tuple[tuple[int, ...], Sequence[WeightEvidence]]] = [
        ((j,), sums) for j, sums in enumerate(by_column)
    ]
    lossy = [j for (j,), sums in tested if sums[-1].total != sums[-1].n_rows]
    if complete and len(lossy) > 1:
        pairs = list(combinations(lossy, 2))
        # Some of the rows are enough where there are many pairs.
        step = 1 + len(columns[0]) * len(pairs) // _PAIR_ENTRIES
        for group in [*pairs, *([tuple(lossy)] if len(lossy) > 2 else [])]:
            some = slice(None, None, step if len(group) == 2 else 1)
            products = [_products(each[some, list(group)]) for each in columns]
            tested.append((group, [WeightEvidence.of(each) for each in products]))
    # Each is tested on two sides.
    share = level / (2 * len(tested))
    bounds = [math.prod(float(bounds[j]) for j in group) for group, _ in tested]
    limits = [each if math.isfinite(each) else None for each in bounds]
    # Too much weight even at the least, or too little even at the largest.
    over, under = log_evidence([sums[0] for _, sums in tested], limits)
    if len(edges) > 1:
        under = log_evidence([sums[-1] for _, sums in tested], limits)[1]
    checks = []
    for k, (group, sums) in enumerate(tested):
        what = " or ".join(names[j] for j in group) if len(group) < 3 else "rows"
        too_much = over[k] >= under[k]
        worse, exact = sums[0 if too_much else -1], too_much or limits[k] is not None
        strength = max(over[k], under[k])
        checks.append(_check(what, worse, strength, share, exact, len(group) > 1))
    return tuple(checks)


def _products(weights: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", invalid="ignore"):
        product = weights.prod(axis=1)
    return np.where((weights > 0).all(axis=1), product, 0.0)


def _check(
    what: str,
    worse: WeightEvidence,
    strength: float,
    level: float,
    exact: bool,
    joint: bool,
) -> MissingnessCheck:
    n = max(worse.n_rows, 1)
    expected = 1.0 - worse.n_observed / worse.total if worse.n_observed else 1.0
    return MissingnessCheck(
        what,
        worse.n_rows,
        worse.n_observed,
        expected,
        1.0 - worse.n_observed / n,
        worse.total / n,
        # Where nothing is observed there is nothing to compare.
        strength if worse.n_observed else -math.inf,
        level,
        exact,
        joint,
    )


def describe(checks: Sequence[MissingnessCheck], label: Any) -> str:
    """The claim, the facts and what to do, for a message.

    Parameters
    ----------
    checks : sequence of MissingnessCheck
        Contradictions or shortfalls, the clearest first.
    label : object
        The class.
    """
    facts = "; ".join(check.sentence for check in checks[:_SHOWN])
    more = len(checks) - _SHOWN
    facts += f"; and {more} more" if more > 0 else ""
    if all(check.joint for check in checks):
        remedy = (
            "Entries must go missing independently given the row: take a rowwise model "
            "where they go together."
        )
    elif not checks[0].exact:
        remedy = (
            "φ is too small or was made for other units (a scaler before it?), or some "
            "values go missing so surely that none like them was observed: correct φ, "
            "declare its maximum, or look some of the missing values up."
        )
    else:
        remedy = (
            "Was φ made for other units (a scaler before it?) or for another class, or "
            "is its sign wrong? Were missing rows dropped from the table? Correct φ, "
            "or let it be learned."
        )
    claim = "contradicts" if checks[0].exact else "doesn't fit"
    if checks[0].verdict == "consistent":
        claim = "hardly fits"
    return f"The table {claim} φ of class {label!r}: {facts}. {remedy}"


def _describe_tests(tests: Sequence[Any], label: Any, refuted: bool) -> str:
    """The claim and the facts, of a φ that was learned."""
    facts = " ".join(test.finding for test in tests[:_SHOWN])
    more = len(tests) - _SHOWN
    facts += f" And {more} more." if more > 0 else ""
    claim = "contradict" if refuted else "cast doubt on"
    return f"The data {claim} the φ that was learned for class {label!r}: {facts}"


def _with_remedies(checks: Sequence[Any], label: Any, refuted: bool) -> Message:
    """What speaks against φ, and how to come by a guarantee."""
    if isinstance(checks[0], MissingnessCheck):
        text = describe(checks, label)
    else:
        text = _describe_tests(checks, label, refuted)
    text += " No guarantee can rest on this φ." * refuted
    factor = max(check.odds_factor for check in checks)
    remedies = [Remedy.LOOKED_UP, Remedy.AS_OBSERVED, Remedy.OTHER_FORM]
    if factor <= _LARGEST_FACTOR:
        remedies.append(Remedy.ODDS_FACTOR)
        factor = math.ceil(100.0 * factor) / 100.0
    facts = {"text": text, "factor": factor}
    return Message("{text}", label=label, remedies=tuple(remedies), facts=facts)


def refuse_contradiction(
    checks: Sequence[MissingnessCheck],
    label: Any,
    tests: Sequence[Any] = (),
    odds_factor: float = 1.0,
) -> None:
    """Refuse a φ that data refute beyond doubt, for a guarantee, and warn of doubts.

    Refuted: p < 0.001 over all checks, or over all tests of a learned φ. Doubtful: p <
    0.05. What an odds factor explains is neither.

    Parameters
    ----------
    checks : sequence of MissingnessCheck
        Made at `LEVEL`, with the odds factor.
    label : object
        The class.
    tests : sequence of Check
        Of a learned φ: those that have a p-value count.
    odds_factor : float, default=1.0
        By what factor the odds may be wrong.
    """
    tests = [test for test in tests if test.p_value is not None]
    n_tests = len(tests)
    tests = [test for test in tests if not test.odds_factor <= odds_factor]
    tests.sort(key=lambda test: test.p_value)

    def below(level: float) -> list[list[Any]]:
        against = [test for test in tests if n_tests * test.p_value < level]
        return [found for found in (_clearest(checks, level), against) if found]

    for found in below(LEVEL):
        raise MissingnessContradictionError(found, label)
    for found in below(DOUBT):
        message = _with_remedies(found, label, refuted=False)
        warnings.warn(MissingnessContradictionWarning(message), stacklevel=3)


def warn_of_contradiction(
    checks: Sequence[MissingnessCheck], label: Any, stacklevel: int = 2
) -> None:
    """Warn where a check contradicts φ or finds a shortfall: for an estimate.

    Parameters
    ----------
    checks : sequence of MissingnessCheck
    label : object
        The class.
    stacklevel : int, default=2
        As for `warnings.warn`; 2 is the caller of this function.
    """
    found = _clearest(checks, LEVEL)
    if found:
        warnings.warn(
            describe(found, label),
            MissingnessContradictionWarning,
            stacklevel=stacklevel,
        )


def _clearest(
    checks: Sequence[MissingnessCheck], level: float
) -> list[MissingnessCheck]:
    """Those that speak against φ: columns before products, contradictions first."""
    found = [check for check in checks if check.p_value <= check.level * level / LEVEL]
    found.sort(key=lambda check: (check.joint, not check.exact, -check.log_e_value))
    return found


def _weights(probability: FloatArray, odds_factor: float) -> FloatArray:
    """1/(1 − φ) with the odds of being missing multiplied; 0 where φ is NaN."""
    with np.errstate(divide="ignore"):
        weights = 1.0 + odds_factor * probability / (1.0 - probability)
    weights[np.isnan(weights)] = 0.0
    return np.asarray(weights)


def _percentages(expected: float, found: float) -> tuple[str, str]:
    """Two shares, with as many digits as tell them apart."""
    for digits in range(4):
        texts = [f"{100 * share:.{digits}f}%" for share in (expected, found)]
        if texts[0] != texts[1]:
            break
    return texts[0], texts[1]
