"""The families of classifiers to choose from, and which one by default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from missratio._base.hints import did_you_mean, listed
from missratio.classifier import (
    PowerComparison,
)
from missratio.exceptions import TableError
from missratio.imputation import ImputationEnsemble, TiltedImputer
from missratio.ratio import (
    KLIEP,
    KLIEPCV,
    FDivergenceRatio,
    KernelName,
    KernelRatio,
    LinearRatio,
    NaiveBayesRatio,
)

# A category that only one class has would have an infinite coefficient otherwise.
INDICATOR_PENALTY = 0.01
# Complete rows of the controlled class for each column that a joint fit should have.
ROWS_PER_COLUMN = 20
LEAST_ROWS = 200
# And with a penalty.
PENALISED_ROWS_PER_COLUMN = 2
LEAST_PENALISED_ROWS = 50
# What one imputation makes up, others make up differently, and it averages out.
IMPUTATIONS = 5
SITUATIONS = frozenset({"nothing", "rows", "values", "ignored"})


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
    """

    n_numeric: int
    n_indicators: int
    missing: str
    complete_rows: int
    seed: int

    @property
    def n_columns(self) -> int:
        """Columns of the matrix."""
        return self.n_numeric + self.n_indicators


@dataclass(frozen=True)
class Method:
    """A family of classifiers.

    Parameters
    ----------
    summary : str
    make : callable
        From a situation to an estimator.
    deals_with : frozenset of str
        Which of the situations' `missing`.
    refusal : str
        Why it doesn't with others.
    compared_for : frozenset of str
        In which situations "auto" compares it with the others.
    """

    summary: str
    make: Callable[[Situation], Any]
    deals_with: frozenset[str] = SITUATIONS
    refusal: str = ""
    compared_for: frozenset[str] = SITUATIONS


def _kliep(situation: Situation) -> KLIEP:
    return KLIEP(l2=_penalty(situation), missingness=_ignored(situation))


def _js(situation: Situation) -> FDivergenceRatio:
    return FDivergenceRatio(
        "js", l2=_penalty(situation), missingness=_ignored(situation)
    )


def _penalty(situation: Situation) -> Any:
    if not situation.n_indicators:
        return 0.0
    penalty = np.zeros(situation.n_columns)
    penalty[situation.n_numeric :] = INDICATOR_PENALTY
    return penalty


def _kliep_cv(situation: Situation) -> KLIEPCV:
    return KLIEPCV(missingness=_ignored(situation), random_state=situation.seed)


def _naive_bayes(situation: Situation) -> NaiveBayesRatio:
    penalty = INDICATOR_PENALTY if situation.n_indicators else 0.0
    return NaiveBayesRatio(KLIEP(l2=penalty), missingness=_ignored(situation))


def _kernel(method: KernelName) -> Callable[[Situation], KernelRatio]:
    def make(situation: Situation) -> KernelRatio:
        # A flat ratio ranks no row above another, and a threshold is certified for
        # any ranking: one that may be chance is better than none.
        return KernelRatio(
            method,
            missingness=_ignored(situation),
            flat_within=0.0,
            random_state=situation.seed,
        )

    return make


def _trees(situation: Situation) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(random_state=situation.seed)


def _imputed_trees(situation: Situation) -> ImputationEnsemble:
    # Of a complete table all imputations are the same.
    times = IMPUTATIONS if situation.missing == "values" else 1
    imputer = TiltedImputer(n_imputations=times, random_state=situation.seed)
    return ImputationEnsemble(imputer, _trees(situation))


def _ignored(situation: Situation) -> Any:
    return "ignore" if situation.missing == "ignored" else None


METHODS: dict[str, Method] = {
    "kliep": Method(
        "the density ratio of all columns jointly (M-KLIEP)",
        _kliep,
    ),
    "js": Method(
        "the same by the Jensen-Shannon divergence: logistic regression with balanced "
        "classes, from complete rows",
        _js,
    ),
    "kliep-cv": Method(
        "M-KLIEP with a ridge penalty, chosen by cross-validation",
        _kliep_cv,
    ),
    "ulsif": Method(
        "a sum of Gaussian bumps, for ratios that bend, by least squares (uLSIF)",
        _kernel("ulsif"),
    ),
    "rulsif": Method(
        "the same for the ratio to a mixture of both classes, which is bounded "
        "(RuLSIF)",
        _kernel("rulsif"),
    ),
    "kernel-kliep": Method(
        "a sum of Gaussian bumps by likelihood (KLIEP as it was published)",
        _kernel("kliep"),
    ),
    "kmm": Method(
        "a sum of Gaussian bumps by kernel mean matching",
        _kernel("kmm"),
    ),
    "naive-bayes": Method(
        "a product of one-dimensional density ratios, a column at a time",
        _naive_bayes,
    ),
    "logistic": Method(
        "logistic regression, with weights where rows are missing",
        lambda _: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        frozenset({"nothing", "rows"}),
        "needs complete rows, and single values are missing",
        frozenset(),
    ),
    "trees": Method(
        "boosted trees, with weights where rows are missing; they take blanks as such",
        _trees,
    ),
    "imputed-trees": Method(
        "boosted trees on tables whose missing values were drawn by why they are "
        "missing (tilted imputation)",
        _imputed_trees,
        frozenset({"nothing", "values"}),
        "draws single values by why they are missing; where whole rows are missing "
        "there is nothing to draw from, and where they are to be ignored no reason",
        frozenset({"values"}),
    ),
}
"""By the names that ``--method`` takes."""


def choose_method(
    name: str, situation: Situation, *, several: bool = False
) -> tuple[str, str]:
    """The method to take without a comparison, and why.

    Parameters
    ----------
    name : str
        One of `METHODS`, or "auto".
    situation : Situation
    several : bool
        Whether there are several bounded classes.
    """
    if name == "auto":
        return _for_several(situation) if several else _sensible(situation)
    if name not in METHODS:
        choices = ["auto", *METHODS]
        hint = did_you_mean(name, choices)
        raise TableError(
            f"--method must be one of {listed(choices)}, got {name!r}.{hint}"
        )
    if situation.missing not in METHODS[name].deals_with:
        able = [key for key, m in METHODS.items() if situation.missing in m.deals_with]
        raise TableError(
            f"--method {name} {METHODS[name].refusal}. Choose one of {listed(able)}."
        )
    return name, "as asked for"


def candidates(
    situation: Situation, *, ratios_only: bool, several: bool = False
) -> dict[str, Any]:
    """The estimators that "auto" compares, what is taken without evidence first.

    Parameters
    ----------
    situation : Situation
    ratios_only : bool
        Whether it must be a density ratio that has standard errors.
    several : bool
        Whether there are several bounded classes.
    """
    first = (_for_several if several else _sensible)(situation)[0]
    # Time may run out, and trees are the most unlike a ratio.
    names = dict.fromkeys([first, "trees", *METHODS])
    made = {
        name: METHODS[name].make(situation)
        for name in names
        if name == first or situation.missing in METHODS[name].compared_for
    }
    if ratios_only:
        made = {
            name: each for name, each in made.items() if isinstance(each, LinearRatio)
        }
    return made


def said_of(comparison: PowerComparison, found: str) -> str:
    """Why a method was taken, in a sentence.

    Parameters
    ----------
    comparison : PowerComparison
    found : str
        What it finds a share of.
    """
    ranked = comparison.ranked
    within = f"{len(ranked)} methods compared, in at most {comparison.budget:g} s"
    if not ranked:
        return f"as no method could be compared in {comparison.budget:g} s"
    best = f"which finds {ranked[0].power:.0%} of {found} among training rows left "
    best += "out in turn, "
    if comparison.alpha is None:
        best += "under the bounds"
    else:
        best += f"at an error of {100.0 * comparison.alpha:.4g}%"
    if len(ranked) == 1:
        return f"{best} ({within})"
    return f"{best}; {ranked[1].name} comes next with {ranked[1].power:.0%} ({within})"


def _sensible(situation: Situation) -> tuple[str, str]:
    wanted = max(LEAST_ROWS, ROWS_PER_COLUMN * situation.n_columns)
    if situation.complete_rows >= wanted:
        # Of single values KLIEP uses each that the other class has; the Jensen-Shannon
        # fit needs complete rows of both, and is far better between distant classes.
        return "kliep" if situation.missing == "values" else "js", (
            f"{situation.complete_rows} complete rows of the controlled class to fit "
            f"{situation.n_columns} column(s) on are enough for a joint fit"
        )
    few = (
        f"{situation.complete_rows} complete rows of the controlled class to fit "
        f"{situation.n_columns} column(s) on are too few for a joint fit"
    )
    least = max(LEAST_PENALISED_ROWS, PENALISED_ROWS_PER_COLUMN * situation.n_columns)
    if situation.complete_rows >= least:
        return "kliep-cv", f"{few} without a penalty, which should have {wanted}"
    return "naive-bayes", (
        f"{few}, which should have {least} at least; columns are fitted one at a time, "
        "as if independent within each class"
    )


def _for_several(situation: Situation) -> tuple[str, str]:
    if situation.missing in ("nothing", "rows"):
        return "logistic", "as rows are whole (--method trees for classes that bend)"
    if situation.missing == "ignored":
        return "trees", "which take blanks as such"
    return (
        "js",
        "which weighs single missing values, class by class against the largest",
    )
