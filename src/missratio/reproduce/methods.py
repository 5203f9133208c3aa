"""How each curve of the paper's figures learns its scores, in simulated and real runs.

A method is a function of a run. It is the same for simulated laws and for data sets.
"""

from __future__ import annotations

import hashlib
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations_with_replacement
from typing import Any, Literal

import numpy as np

from missratio._base.typing import BoolArray, FloatArray
from missratio.basis import PolynomialBasis
from missratio.datasets import Simulation
from missratio.imputation import ImputationEnsemble, TiltedImputer
from missratio.learning import LearnedMissingness, learn_missingness
from missratio.missingness import LogisticMissingness, Missingness
from missratio.ratio import KLIEP, KLIEPCV, NaiveBayesRatio, stack_samples

Variant = Literal["published", "corrected"]
VARIANTS: tuple[Variant, ...] = ("published", "corrected")
# The variant "corrected" mends which rows and values a data set has, how φ is learned,
# and what a score at the threshold counts for.
Correction = Literal["data", "learning", "threshold"]

M_KLIEP, CC_KLIEP, TRUE_RATIO = "M-KLIEP", "CC-KLIEP", "True ratio"
FULL_DATA = "KLIEP (full data)"
KNOWN, LEARNED = f"{M_KLIEP} (known)", f"{M_KLIEP} (learned)"
IMPUTATION = "Iterative imputation"
# These go past the paper; the first three with φ known or learned.
JOINT, PRODUCTS = "Joint M-KLIEP", "Joint M-KLIEP with products"
TILTED = "Tilted imputation and trees"
LEARNERS = (JOINT, PRODUCTS, TILTED)
IMPUTED_TREES, NAN_TREES = "Iterative imputation and trees", "Trees on NaN"
FULL_TREES = "Trees (full data)"

INFINITE = 100.0
"""What stands for an infinite coefficient: beside it no other column counts."""
SEPARATED_SLOPE = 100.0
"""What the published code took for an infinite slope, in standard deviations."""
# What imputations differ by matters less, and costs more, the more rows there are.
FEW_ROWS, N_IMPUTATIONS = 20_000, (5, 2)
LEAST_ROWS = 100


def known(name: str) -> str:
    """The name of a curve with φ known."""
    return f"{name} (known)"


def learned(name: str) -> str:
    """The name of a curve with φ learned."""
    return f"{name} (learned)"


@dataclass(frozen=True, slots=True)
class Conditions:
    """What, besides the experiment itself, determines its numbers.

    Parameters
    ----------
    variant : {"published", "corrected", "data", "learning", "threshold"}
        As the published curves were made, with all their defects mended, or with one.
    seed : int
    """

    variant: Variant | Correction = "published"
    seed: int = 0

    def corrects(self, what: Correction) -> bool:
        """Whether a defect of the published runs is mended."""
        return self.variant in ("corrected", what)

    def generator(self, *key: str | int) -> np.random.Generator:
        """A generator for one run, named by what it is for and not by when it is made.

        Parameters
        ----------
        *key : str or int
            Such as the experiment, the point and the number of the run.
        """
        words = [
            zlib.crc32(part.encode()) if isinstance(part, str) else part for part in key
        ]
        sequence = np.random.SeedSequence(self.seed, spawn_key=words)
        return np.random.default_rng(sequence)


@dataclass(frozen=True, eq=False)
class RealTable:
    """A data set with two classes.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        NaN where the data set itself lacks a value. Runs read it column by column, so
        columns should be contiguous.
    is_numerator : ndarray of bool of shape (n_rows,)
    """

    X: FloatArray
    is_numerator: BoolArray

    @cached_property
    def digest(self) -> str:
        """A checksum of the values and the classes."""
        parts = self.X.T.tobytes(), self.is_numerator.tobytes()
        return hashlib.sha256(b"".join(parts)).hexdigest()


@dataclass(frozen=True, eq=False)
class Run:
    """The samples of one run.

    Parameters
    ----------
    origin : Simulation or RealTable
        The laws that rows were drawn from, or the data set that was split.
    phi : Missingness
        By which class 1 lost values.
    numerator, complete : ndarray of shape (n_numerator, n_columns)
        Class-1 rows to fit with, NaN where lost; and before they lost anything.
    denominator, calibration : ndarray of shape (n_rows, n_columns)
        Class-0 rows to fit and to calibrate with.
    revealed : ndarray of shape (n_numerator, n_columns), optional
        Of a data set: lost values that were looked up; NaN elsewhere.
    test : ndarray of shape (n_test, n_columns), optional
        Of a data set: class-1 rows to test with.
    seed : int
        For learners that draw.
    strict : bool
        Of a data set: whether a score at the threshold is not beyond it.
    """

    origin: Any
    phi: Missingness
    numerator: FloatArray
    complete: FloatArray
    denominator: FloatArray
    calibration: FloatArray
    revealed: FloatArray | None = None
    test: FloatArray | None = None
    seed: int = 0
    strict: bool = False


@dataclass(frozen=True)
class Score:
    """What a method learned in one run.

    Parameters
    ----------
    at : callable
        From rows to their scores.
    coef : ndarray, optional
        Where scores are θᵀz plus a constant.
    tail : callable, optional
        From a cut to P(score(Z¹) > cut), where that is known.
    """

    at: Callable[[FloatArray], FloatArray]
    coef: FloatArray | None = None
    tail: Callable[[float], FloatArray] | None = None


def linear_score(run: Run, coef: FloatArray) -> Score:
    """Scores θᵀz. Their tails have a closed form under mixtures of normal laws."""

    def at(rows: FloatArray) -> FloatArray:
        # Rows which are alike score alike where they are added up column by column.
        score = np.zeros(len(rows))
        for column, slope in zip(rows.T, coef, strict=True):
            score += slope * column
        return score

    if isinstance(run.origin, Simulation):
        return Score(at, coef, partial(run.origin.numerator.tail, coef))
    return Score(at, coef)


def fit_linear(run: Run, ratio: KLIEP) -> Score:
    """Fit a ratio of all columns where whole rows are lost, else naive Bayes.

    Coefficients of naive Bayes are ±100 where no finite optimum exists, since the
    numerator's weighted mean lies outside the range of the denominator's values.
    """
    X, y = stack_samples(run.numerator, run.denominator)
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        if run.phi.rowwise:
            return linear_score(run, ratio.fit(X, y).coef_)
        by_column = NaiveBayesRatio(ratio).fit(X, y)
    infinite = np.copysign(INFINITE, by_column.coef_)
    coef = np.where(by_column.column_converged_, by_column.coef_, infinite)
    return linear_score(run, coef)


def learned_phi(run: Run, conditions: Conditions) -> LogisticMissingness:
    """φ̂ of normalised class-1 rows by `learn_missingness`.

    Each column learns from its own values alone, as in the paper. Corrected: with
    Firth's penalty. Published: by maximum likelihood, and where the values looked up
    are separated from those observed, a slope of ±100 through the midpoint.
    """
    X, revealed = run.numerator, run.revealed
    assert revealed is not None
    mends = conditions.corrects("learning")
    low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    lowest, highest = np.fmin.reduce(revealed, axis=0), np.fmax.reduce(revealed, axis=0)
    above = lowest > high
    separated = (above | (highest < low)) & (not mends)
    slope = np.where(above, SEPARATED_SLOPE, -SEPARATED_SLOPE)
    midpoint = np.where(above, lowest + high, highest + low) / 2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (~np.isnan(revealed)).sum(axis=0) / np.isnan(X).sum(axis=0)
        intercept = -slope * midpoint - np.log(share)
    if not separated.all():
        others = X[:, ~separated], revealed[:, ~separated]
        method: Literal["firth", "ml"] = "firth" if mends else "ml"
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            phi = learn_missingness(*others, method, from_table=False, check=False)
        # Entries go missing one by one here, so that no columns are a category.
        assert isinstance(phi, LearnedMissingness)
        exact = phi.as_known()
        intercept[~separated], slope[~separated] = exact.intercept, exact.coef
    return LogisticMissingness(intercept, slope)


def completed(run: Run) -> Run:
    """A run whose class-1 training rows are completed by IterativeImputer."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return replace(run, numerator=IterativeImputer().fit_transform(run.numerator))


def pairs_of_numbers(run: Run) -> list[tuple[int, int]]:
    """Pairs of a data set's columns that are not indicators, each with itself too.

    Those that hardly any class-1 row has both columns of are left out.
    """
    distinct = [len(np.unique(x[~np.isnan(x)])) for x in run.origin.X.T]
    numbers = [j for j, count in enumerate(distinct) if count > 2]
    seen = (~np.isnan(run.numerator)).astype(np.float64)
    rows = seen.T @ seen
    pairs = combinations_with_replacement(numbers, 2)
    return [(j, k) for j, k in pairs if rows[j, k] >= LEAST_ROWS]


def trees() -> Any:
    """Boosted trees as scikit-learn has them."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=0)


def fit_learner(run: Run, learner: Any) -> Score:
    """The scores of a learner of a run's rows."""
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        model = learner.fit(*stack_samples(run.numerator, run.denominator))
    simulated = isinstance(run.origin, Simulation)
    if simulated and isinstance(model, KLIEPCV) and model.basis == "linear":
        return linear_score(run, model.coef_)
    return Score(model.decision_function)


def fit_joint(run: Run, phi: Missingness, basis: Any = "linear") -> Score:
    """A penalised ratio of all columns at once."""
    return fit_learner(run, KLIEPCV(basis, missingness={1: phi}, random_state=0))


def fit_tilted(run: Run, phi: Missingness) -> Score:
    """Boosted trees on imputations that know φ, their scores averaged."""
    times = N_IMPUTATIONS[len(run.numerator) > FEW_ROWS]
    imputer = TiltedImputer({1: phi}, n_imputations=times, random_state=run.seed)
    return fit_learner(run, ImputationEnsemble(imputer, trees()))


METHODS: dict[str, Callable[[Run, Missingness], Score]] = {
    # The printed objective divides sums by n.
    M_KLIEP: lambda run, phi: fit_linear(
        run, KLIEP(missingness={1: phi}, normalize="horvitz-thompson")
    ),
    # What is observed, of each column or row, is taken for the whole.
    CC_KLIEP: lambda run, _: fit_linear(run, KLIEP(missingness="ignore")),
    FULL_DATA: lambda run, _: fit_linear(replace(run, numerator=run.complete), KLIEP()),
    TRUE_RATIO: lambda run, _: Score(run.origin.log_ratio, tail=run.origin.ratio_tail),
    IMPUTATION: lambda run, _: fit_linear(completed(run), KLIEP()),
    IMPUTED_TREES: lambda run, _: fit_learner(completed(run), trees()),
    # Trees take NaN for a value like others.
    NAN_TREES: lambda run, _: fit_learner(run, trees()),
    # This is what trees would reach if nothing were lost.
    FULL_TREES: lambda run, _: fit_learner(
        replace(run, numerator=run.complete), trees()
    ),
    JOINT: fit_joint,
    PRODUCTS: lambda run, phi: fit_joint(
        run, phi, PolynomialBasis(1, interactions=pairs_of_numbers(run))
    ),
    TILTED: fit_tilted,
}
"""The score of a run by the name of a curve, but for how φ is known.

A further curve is an entry here, and its name among an experiment's methods.
"""


def without_phi(method: str) -> tuple[str, bool]:
    """The name of a curve but for how φ is known, and whether φ is learned."""
    name = method.removesuffix(learned(""))
    return name.removesuffix(known("")), name != method


def score_run(method: str, run: Run, conditions: Conditions) -> Score | None:
    """What a curve's method learns in a run, with φ as its name says.

    None where nothing was lost, and imputation has nothing to do.
    """
    if method in (IMPUTATION, IMPUTED_TREES) and not np.isnan(run.numerator).any():
        return None
    name, learns = without_phi(method)
    return METHODS[name](run, learned_phi(run, conditions) if learns else run.phi)
