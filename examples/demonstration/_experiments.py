"""What the demonstration does: fits on lossy tables, and thresholds for them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from missratio import plan_queries
from missratio._base.typing import FloatArray, IntArray
from missratio.classifier import NeymanPearsonClassifier, RepeatedRowsWarning
from missratio.learning import MissingnessWarning, learn_missingness
from missratio.missingness import (
    LogisticMissingness,
    Missingness,
    StepMissingness,
    corrupt,
)
from missratio.ratio import KLIEP, NaiveBayesRatio
from missratio.ratio.base import BaseRatio
from missratio.theory import oracle_threshold
from missratio.weights import WeightConcentrationWarning

COLUMNS = (
    "mean texture",
    "mean smoothness",
    "mean compactness",
    "mean concavity",
    "mean symmetry",
    "mean fractal dimension",
)
ALPHA, DELTA = 0.1, 0.05
# Without a penalty most of these fits have no finite optimum: the benign mean lies at
# the edge of the malignant tumours.
L2 = 0.1
LOOKED_UP = 20
REPEATS, QUICK_REPEATS = 100, 8
# Calibration rows, how often they are drawn for each fit, and who is lost among them.
CALIBRATION_ROWS, DRAWS = 400, 10
LOST_COLUMN, LOST_PROBABILITY = "mean concavity", 0.75


@dataclass(frozen=True, slots=True)
class Method:
    """One row of the table.

    Parameters
    ----------
    name, colour : str
    make : callable
        From the benign class's φ, known and learned, to an estimator, not fitted.
    lossy : bool
        Whether it sees the table that lost values, rather than the complete one.
    looked_up : bool
        Whether the readings that were looked up are in the table, with the probability
        of their draw.
    """

    name: str
    colour: str
    make: Callable[[Missingness, Missingness], BaseRatio]
    lossy: bool = True
    looked_up: bool = False


# The first is what the others are compared with.
METHODS = (
    Method(
        "KLIEP, nothing lost", "#000000", lambda phi, learned: KLIEP(l2=L2), lossy=False
    ),
    Method(
        "M-KLIEP",
        "#0072B2",
        lambda phi, learned: KLIEP(l2=L2, missingness={1: phi}),
    ),
    Method(
        "M-KLIEP, φ learned",
        "#009E73",
        lambda phi, learned: KLIEP(l2=L2, missingness={1: learned}),
    ),
    Method(
        "KLIEP, 20 looked up",
        "#CC79A7",
        lambda phi, learned: KLIEP(l2=L2),
        looked_up=True,
    ),
    Method(
        "CC-KLIEP",
        "#D55E00",
        lambda phi, learned: KLIEP(l2=L2, missingness="ignore"),
    ),
    Method(
        "naive Bayes M-KLIEP",
        "#56B4E9",
        lambda phi, learned: NaiveBayesRatio(KLIEP(l2=L2), missingness={1: phi}),
    ),
    Method(
        "naive Bayes CC-KLIEP",
        "#E69F00",
        lambda phi, learned: NaiveBayesRatio(KLIEP(l2=L2), missingness="ignore"),
    ),
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A way in which benign tumours lose readings.

    Parameters
    ----------
    title, explanation : str
    draw : callable
        From the benign rows and signs, one for each column, to φ. A sign says whether
        high or low readings are the ones that are lost.
    """

    title: str
    explanation: str
    draw: Callable[[FloatArray, FloatArray], Missingness]


SCENARIOS = (
    Scenario(
        "Single readings are lost",
        "half of each column's, by a logistic φ of the reading itself",
        lambda benign, signs: LogisticMissingness.from_proportion(
            benign, coef=2.0 * signs, proportion=0.5
        ),
    ),
    Scenario(
        "Whole tumours are lost",
        "nine in ten of those on one side of the median of a signed sum",
        lambda benign, signs: StepMissingness(
            signs, threshold=float(np.median(benign @ signs)), probability=0.9
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a method did in every repeat.

    Parameters
    ----------
    coef : ndarray of shape (n_repeats, n_columns)
    objective : ndarray of shape (n_repeats,)
        KLIEP's objective on held-out tumours, all complete; the larger the better.
    power : ndarray of shape (n_repeats,)
        The share of held-out benign tumours above the threshold that at most a
        share `ALPHA` of the held-out malignant ones exceed.
    concentrated : int
        How many fits warned that a few rows carry the weight.
    doubted : int
        In how many repeats `learn_missingness` warned of the φ that it learned.
    """

    coef: FloatArray
    objective: FloatArray
    power: FloatArray
    concentrated: int
    doubted: int


def load() -> tuple[FloatArray, IntArray]:
    """The columns in units of their standard deviation; 1 is benign, 0 malignant."""
    table = load_breast_cancer()
    wanted = [table.feature_names.tolist().index(name) for name in COLUMNS]
    X: FloatArray = table.data[:, wanted]
    return (X - X.mean(axis=0)) / X.std(axis=0), table.target


def power(log_ratio: FloatArray, y: IntArray) -> float:
    """The share of class 1 above the score that at most `ALPHA` of class 0 exceed."""
    class_0 = np.sort(log_ratio[y == 0])[::-1]
    threshold = class_0[int(ALPHA * len(class_0))]
    return float(np.mean(log_ratio[y == 1] > threshold))


def objective(log_ratio: FloatArray, y: IntArray) -> float:
    """KLIEP's objective on complete rows: E log r(Z¹) − log E r(Z⁰)."""
    return float(log_ratio[y == 1].mean() - np.log(np.mean(np.exp(log_ratio[y == 0]))))


def fit(
    estimator: BaseRatio,
    X: FloatArray,
    y: IntArray,
    inclusion: FloatArray | None = None,
) -> tuple[Any, bool]:
    """A fitted estimator, and whether it warned that a few rows carry the weight."""
    given = {} if inclusion is None else {"inclusion": inclusion}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(X, y, **given)
    concentrated = [issubclass(w.category, WeightConcentrationWarning) for w in caught]
    for warning, known in zip(caught, concentrated, strict=True):
        if not known:
            warnings.warn(warning.message, warning.category, stacklevel=2)
    return estimator, any(concentrated)


def look_up(
    complete: FloatArray, lossy: FloatArray, rowwise: bool, rng: np.random.Generator
) -> FloatArray:
    """`LOOKED_UP` missing readings of each column, or whole tumours; NaN elsewhere."""
    plan = plan_queries(lossy, per_feature=LOOKED_UP, rowwise=rowwise, random_state=rng)
    revealed = np.full_like(lossy, np.nan)
    revealed[plan.rows, plan.columns] = complete[plan.rows, plan.columns]
    return revealed


def learn(
    lossy: FloatArray, revealed: FloatArray, rowwise: bool
) -> tuple[Missingness, bool]:
    """φ from what was looked up, and whether the look-ups contradict its form."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learned = learn_missingness(lossy, revealed, rowwise=rowwise)
    return learned, any(issubclass(w.category, MissingnessWarning) for w in caught)


def fill(
    lossy: FloatArray, revealed: FloatArray, rowwise: bool
) -> tuple[FloatArray, FloatArray]:
    """What was looked up as data, and the probability that each reading is there.

    `Revealed.fill` does this for a plan that somebody has filled in.
    """
    missing, found = np.isnan(lossy), ~np.isnan(revealed)
    share = found.sum(axis=0) / np.maximum(missing.sum(axis=0), 1)
    inclusion = np.where(missing, np.where(found, share, 0.0), 1.0)
    return np.where(found, revealed, lossy), inclusion[:, 0] if rowwise else inclusion


def run(
    scenario: Scenario, n_repeats: int, seed: int, tick: Callable[[], None]
) -> list[Outcome]:
    """Split, lose values, fit and score, again and again: an outcome for each method.

    All methods share the splits and what is lost.
    """
    X, y = load()
    records: list[list[tuple[FloatArray, float, float, bool]]] = [[] for _ in METHODS]
    n_doubted = 0
    for repeat in range(n_repeats):
        # 1. Half of the tumours are held out, complete.
        rng = np.random.default_rng([seed, repeat])
        train, test = train_test_split(
            np.arange(len(y)),
            test_size=0.5,
            stratify=y,
            random_state=int(rng.integers(2**31)),
        )
        # 2. Benign tumours of the other half lose readings.
        benign = train[y[train] == 1]
        signs = rng.choice([-1.0, 1.0], size=X.shape[1])
        phi = scenario.draw(X[benign], signs)
        lossy = X.copy()
        lossy[benign] = corrupt(X[benign], phi, rng)
        revealed = look_up(X[benign], lossy[benign], phi.rowwise, rng)
        learned, doubted = learn(lossy[benign], revealed, phi.rowwise)
        n_doubted += doubted
        filled = lossy.copy()
        inclusion = np.ones(len(X) if phi.rowwise else X.shape)
        filled[benign], inclusion[benign] = fill(lossy[benign], revealed, phi.rowwise)
        # 3. Every method learns from it and scores the held-out half.
        for method, record in zip(METHODS, records, strict=True):
            rows, drawn = lossy if method.lossy else X, None
            if method.looked_up:
                rows, drawn = filled, inclusion[train]
            estimator = method.make(phi, learned)
            fitted, concentrated = fit(estimator, rows[train], y[train], drawn)
            log_ratio = fitted.predict_log_ratio(X[test])
            record.append(
                (
                    fitted.coef_,
                    objective(log_ratio, y[test]),
                    power(log_ratio, y[test]),
                    concentrated,
                )
            )
        tick()
    return [
        Outcome(
            np.array([coef for coef, *_ in record]),
            np.array([held_out for _, held_out, _, _ in record]),
            np.array([share for _, _, share, _ in record]),
            sum(warned for *_, warned in record),
            n_doubted,
        )
        for record in records
    ]


@dataclass(frozen=True, slots=True)
class Drawn:
    """Malignant tumours to calibrate with, before and after some are lost.

    Parameters
    ----------
    ratio : KLIEP
        Fitted, knowing φ.
    complete, lossy : ndarray of shape (n_rows, n_columns)
    training : ndarray of shape (n_training, n_columns)
        What is left of the malignant tumours that the ratio was fitted on.
    law : ndarray of shape (n_malignant,)
        Scores of the tumours that the rows were drawn from.
    """

    ratio: KLIEP
    complete: FloatArray
    lossy: FloatArray
    training: FloatArray
    law: FloatArray

    def plain(self, rows: FloatArray) -> float:
        """The threshold that is certified for tumours seen as these rows are."""
        classifier = NeymanPearsonClassifier(
            self.ratio, alpha=ALPHA, delta=DELTA, deployment="as-observed"
        )
        return classifier.calibrate(rows).threshold_

    def weighted(self, rule: str) -> float:
        """The threshold that is certified for complete tumours."""
        classifier = NeymanPearsonClassifier(
            self.ratio,
            alpha=ALPHA,
            delta=DELTA,
            rule=rule,
            on_infeasible="reject_all",
            random_state=0,
        )
        return classifier.calibrate(self.lossy, X0_training=self.training).threshold_


@dataclass(frozen=True, slots=True)
class Calibration:
    """One way to choose a threshold: a row of the table on certificates."""

    name: str
    colour: str
    threshold: Callable[[Drawn], float]


CALIBRATIONS = (
    Calibration("law known", "#000000", lambda d: oracle_threshold(d.law, ALPHA)),
    Calibration("nothing lost", "#888888", lambda d: d.plain(d.complete)),
    Calibration(
        "complete cases",
        "#D55E00",
        lambda d: d.plain(d.lossy[~np.isnan(d.lossy).any(axis=1)]),
    ),
    Calibration("weights, paper's rule", "#56B4E9", lambda d: d.weighted("paper")),
    Calibration("weights, auto rule", "#0072B2", lambda d: d.weighted("auto")),
)


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What one way to choose a threshold did.

    Parameters
    ----------
    error, power : ndarray of shape (n_repeats, DRAWS)
        The shares of malignant and of benign tumours that are cleared.
    """

    error: FloatArray
    power: FloatArray

    @property
    def violations(self) -> int:
        """How many thresholds clear more than `ALPHA` of the malignant tumours."""
        return int((self.error > ALPHA).sum())


def run_certificates(
    n_repeats: int, seed: int, tick: Callable[[], None]
) -> list[Calibrated]:
    """Fit, draw rows to calibrate with, lose some, and look at each threshold's error.

    The held-out malignant tumours are the law that rows are drawn from, with
    replacement, so that a threshold's error is known and not estimated.
    """
    X, y = load()
    column = COLUMNS.index(LOST_COLUMN)
    direction = -np.eye(len(COLUMNS))[column]
    results = np.empty((len(CALIBRATIONS), 2, n_repeats, DRAWS))
    for repeat in range(n_repeats):
        # 1. Half of the tumours, some malignant ones lost, to fit M-KLIEP on.
        rng = np.random.default_rng([seed, repeat])
        train, test = train_test_split(
            np.arange(len(y)),
            test_size=0.5,
            stratify=y,
            random_state=int(rng.integers(2**31)),
        )
        malignant = train[y[train] == 0]
        middle = float(np.median(X[malignant, column]))
        phi = StepMissingness(direction, -middle, LOST_PROBABILITY)
        lossy = X.copy()
        lossy[malignant] = corrupt(X[malignant], phi, rng)
        ratio, _ = fit(KLIEP(l2=L2, missingness={0: phi}), lossy[train], y[train])
        # 2. The other half is the law.
        pool = X[test[y[test] == 0]]
        law = ratio.predict_log_ratio(pool)
        benign = ratio.predict_log_ratio(X[test[y[test] == 1]])
        for draw in range(DRAWS):
            # 3. Tumours to calibrate with are drawn from it, and some are lost.
            complete = pool[rng.integers(len(pool), size=CALIBRATION_ROWS)]
            left = corrupt(complete, phi, rng)
            drawn = Drawn(ratio, complete, left, lossy[malignant], law)
            for calibration, result in zip(CALIBRATIONS, results, strict=True):
                with warnings.catch_warnings():
                    # The law has no more than these tumours: draws from it repeat.
                    warnings.simplefilter("ignore", RepeatedRowsWarning)
                    threshold = calibration.threshold(drawn)
                result[0, repeat, draw] = np.mean(law > threshold)
                result[1, repeat, draw] = np.mean(benign > threshold)
        tick()
    return [Calibrated(error, power) for error, power in results]
