"""The families of classifiers to choose from, and which one by default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from missratio import ratio
from missratio._base.hints import listed
from missratio.classifier import PowerComparison
from missratio.exceptions import TableError
from missratio.imputation import ImputationEnsemble, TiltedImputer

# A category that only one class has would have an infinite coefficient otherwise.
INDICATOR_PENALTY = 0.01
# A joint fit should have this many complete rows of the controlled class for each
# column, and at least so many; with a penalty it needs fewer.
ROWS_PER_COLUMN = 20
LEAST_ROWS = 200
PENALISED_ROWS_PER_COLUMN = 2
LEAST_PENALISED_ROWS = 50
# What one imputation makes up, others make up differently, and it averages out. More of
# them take longer, and there is a fit for each fold of a comparison and of a report.
IMPUTATIONS, ROUNDS = 2, 4
SITUATIONS = frozenset({"nothing", "rows", "values", "ignored"})
# Kernels tell rows apart by distances, which say little among more columns.
KERNEL_COLUMNS = 20
# Trees of thousands of columns take most of a comparison's time, and a choice of
# penalties takes memory for every pair of columns.
WIDE_COLUMNS = 1_000
# The variance of a score that a penalty on standardised columns expects.
SCORE_VARIANCE = 10.0


@dataclass(frozen=True)
class Situation:
    """What a method has to deal with.

    Parameters
    ----------
    n_numeric, n_indicators : int
        Columns of the matrix.
    missing : {"nothing", "rows", "values", "ignored"}
        What is missing, or that it is to be left out of account.
    complete_rows : int
        Complete rows of the controlled class that there are to fit on.
    seed : int
    several : bool
        Whether several classes are bounded.
    fitted_rows : int
        Rows of all classes that there are to fit on.
    """

    n_numeric: int
    n_indicators: int
    missing: str
    complete_rows: int
    seed: int
    several: bool = False
    fitted_rows: int = 1

    @property
    def n_columns(self) -> int:
        """Columns of the matrix."""
        return self.n_numeric + self.n_indicators

    @property
    def wanted_rows(self) -> int:
        """Complete rows that a joint fit without a penalty should have."""
        return max(LEAST_ROWS, ROWS_PER_COLUMN * self.n_columns)

    @property
    def missingness(self) -> Any:
        """What ratios are told of missing values; None where they are given models."""
        return "ignore" if self.missing == "ignored" else None

    @property
    def penalty(self) -> Any:
        """The ridge penalty of a joint fit: on categories alone."""
        if not self.n_indicators:
            return 0.0
        return np.repeat([0.0, INDICATOR_PENALTY], [self.n_numeric, self.n_indicators])


@dataclass(frozen=True)
class Method:
    """A family of classifiers.

    Parameters
    ----------
    make : callable
        From a situation to an estimator.
    deals_with : frozenset of str
        Which of the situations' `missing`.
    refusal : str
        Why it doesn't with others.
    compared : callable
        Whether "auto" compares it with the others, from a situation.
    """

    make: Callable[[Situation], Any]
    deals_with: frozenset[str] = SITUATIONS
    refusal: str = ""
    compared: Callable[[Situation], bool] = lambda _: False


def _kernel(method: ratio.KernelName) -> Method:
    # A flat ratio ranks no row above another, and a threshold is certified for any
    # ranking: one that may be chance is better than none.
    return Method(
        lambda situation: ratio.KernelRatio(
            method,
            missingness=situation.missingness,
            flat_within=0.0,
            random_state=situation.seed,
        ),
        compared=lambda s: _whole(s) and s.n_columns < KERNEL_COLUMNS,
    )


def _whole(situation: Situation) -> bool:
    """Whether rows are complete, or missing as a whole."""
    return situation.missing in ("nothing", "rows")


def _joint(situation: Situation) -> bool:
    """Whether a ratio of all columns has the complete rows that it needs."""
    enough = situation.complete_rows >= situation.wanted_rows
    return _whole(situation) or (situation.missing == "values" and enough)


def _with_indicators(last: Any) -> Any:
    """Means where values are missing, and columns that say where, standardised."""
    means = SimpleImputer(add_indicator=True, keep_empty_features=True)
    return make_pipeline(means, StandardScaler(), last)


def _penalised(situation: Situation) -> LogisticRegression:
    """As if each of the columns had the same small share in the score."""
    strength = SCORE_VARIANCE / situation.n_columns
    return LogisticRegression(C=strength, max_iter=1000)


def _trees(situation: Situation) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(random_state=situation.seed)


def _imputed(situation: Situation, model: Any) -> ImputationEnsemble:
    # Of a complete table all imputations are the same.
    times = IMPUTATIONS if situation.missing == "values" else 1
    imputer = TiltedImputer(
        n_imputations=times, n_rounds=ROUNDS, random_state=situation.seed
    )
    return ImputationEnsemble(imputer, model)


_drawing = partial(
    Method,
    deals_with=frozenset({"nothing", "values"}),
    refusal="draws single values by why they are missing; where whole rows are missing "
    "there is nothing to draw from, and where they are to be ignored no reason",
    compared=lambda s: s.missing == "values",
)
_blanks = partial(
    Method,
    deals_with=frozenset({"nothing", "ignored"}),
    refusal="is for new rows with blanks like these (--new-rows blanks)",
    compared=lambda s: s.missing == "ignored",
)
METHODS: dict[str, Method] = {
    "kliep": Method(
        lambda s: ratio.KLIEP(l2=s.penalty, missingness=s.missingness), compared=_joint
    ),
    "js": Method(
        lambda s: ratio.FDivergenceRatio("js", l2=s.penalty, missingness=s.missingness),
        compared=_joint,
    ),
    "kliep-cv": Method(
        lambda s: ratio.KLIEPCV(missingness=s.missingness, random_state=s.seed),
        compared=lambda s: _whole(s) and s.n_columns <= WIDE_COLUMNS,
    ),
    "indicators": _blanks(lambda s: _with_indicators(_penalised(s))),
    "indicators-js": _blanks(
        lambda s: _with_indicators(
            ratio.FDivergenceRatio(
                "js", l2=s.n_columns / (SCORE_VARIANCE * s.fitted_rows)
            )
        )
    ),
    "ulsif": _kernel("ulsif"),
    "rulsif": _kernel("rulsif"),
    "kernel-kliep": _kernel("kliep"),
    "kmm": _kernel("kmm"),
    "naive-bayes": Method(
        lambda s: ratio.NaiveBayesRatio(
            ratio.KLIEP(l2=INDICATOR_PENALTY if s.n_indicators else 0.0),
            missingness=s.missingness,
        ),
        compared=lambda s: s.missing != "ignored",
    ),
    "logistic": Method(
        lambda _: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        frozenset({"nothing", "rows"}),
        "needs complete rows, and single values are missing",
    ),
    "imputed-logistic": _drawing(
        lambda s: _imputed(s, make_pipeline(StandardScaler(), _penalised(s)))
    ),
    "trees": Method(
        _trees, compared=lambda s: s.missing != "values" and s.n_columns <= WIDE_COLUMNS
    ),
    "imputed-trees": _drawing(lambda s: _imputed(s, _trees(s))),
}
"""By the names that ``--method`` takes."""


def choose_method(name: str, situation: Situation) -> tuple[str, str]:
    """The method to take without a comparison, and why.

    Parameters
    ----------
    name : str
        One of `METHODS`, or "auto".
    situation : Situation
    """
    if name != "auto":
        if situation.missing not in METHODS[name].deals_with:
            able = [k for k, m in METHODS.items() if situation.missing in m.deals_with]
            raise TableError(
                f"--method {name} {METHODS[name].refusal}. Choose one of "
                f"{listed(able)}."
            )
        return name, "as asked for"
    if situation.missing == "ignored":
        return "indicators", "which reads rows with blanks"
    if situation.several and situation.missing == "values":
        weighs = "which weighs single missing values, class by class"
        return "js", f"{weighs} against the largest"
    if situation.several:
        return "logistic", "as rows are whole (--method trees for classes that bend)"
    rows, single = situation.complete_rows, situation.missing == "values"
    why = f"as there are {rows} complete rows of the controlled class to fit "
    why += f"{situation.n_columns} column(s) on"
    least = max(LEAST_PENALISED_ROWS, PENALISED_ROWS_PER_COLUMN * situation.n_columns)
    if rows >= situation.wanted_rows:
        # Of single values KLIEP uses each that the other class has; the Jensen-Shannon
        # fit needs complete rows of both, and is far better between distant classes.
        return "kliep" if single else "js", why
    why += f", and a joint fit should have {situation.wanted_rows}"
    if single:
        return "imputed-logistic", why
    if rows >= least:
        return "kliep-cv", f"{why} without a penalty"
    return "naive-bayes", f"{why}, or {least} with a penalty"


def candidates(situation: Situation) -> dict[str, Any]:
    """The estimators that "auto" compares, what is taken without evidence first."""
    first = choose_method("auto", situation)[0]
    # Time may run out, and trees are the most unlike a ratio.
    return {
        name: METHODS[name].make(situation)
        for name in dict.fromkeys([first, "trees", *METHODS])
        if name == first or METHODS[name].compared(situation)
    }


def reason_of(comparison: PowerComparison, method: str, why: str) -> tuple[str, str]:
    """The method that a comparison leads to, and why; else the one without it.

    Parameters
    ----------
    comparison : PowerComparison
    method, why : str
        What is taken without a comparison.
    """
    ranked, at = comparison.ranked, "under the bounds"
    if comparison.alpha is not None:
        at = f"at an error of {100.0 * comparison.alpha:.4g}%"
        if not ranked:
            note = f"; methods are not compared, as {comparison.note}"
            return method, why + note * bool(comparison.note)
    if not ranked:
        why = f"as no method could be compared in {comparison.budget:g} s"
        return comparison.chosen, why
    # No power of the model: that is measured once its threshold is certified.
    shares = ", ".join(f"{each.name} {each.power:.0%}" for each in ranked[:2])
    return comparison.chosen, (
        f"the best of {len(ranked)} methods compared on training rows left out in "
        f"turn, in at most {comparison.budget:g} s (shares found there, {at}: {shares})"
    )
