"""What a method fits to a run is what the estimators fit by themselves."""

import warnings

import numpy as np
import pytest
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

import missratio as mr
from missratio.ratio import stack_samples
from missratio.reproduce import Conditions
from missratio.reproduce.experiments import SplitSizes, draw_run
from missratio.reproduce.methods import (
    INFINITE,
    LEARNERS,
    RealTable,
    Run,
    fit_linear,
    known,
    learned,
    learned_phi,
    linear_score,
    pairs_of_numbers,
    score_run,
)

PUBLISHED, CORRECTED = Conditions(), Conditions("corrected")
BY_COLUMN = ["M-KLIEP (known)", "M-KLIEP (learned)", "CC-KLIEP"]


def scores(method, run, conditions=PUBLISHED):
    """Those of a run's calibration and test rows; None where there are none."""
    score = score_run(method, run, conditions)
    return score and score.at(np.concatenate([run.calibration, run.test]))


def test_columns_without_a_finite_optimum_outweigh_all_others():
    denominator = np.tile(np.linspace(-1.0, 1.0, 50)[:, None], (1, 3))
    numerator = denominator * 0.1 + np.array([1.5, 0.2, -2.0])
    phi = mr.LogisticMissingness(np.full(3, -np.inf), np.zeros(3))
    run = Run(None, phi, numerator, numerator, denominator, denominator)
    coef = fit_linear(run, mr.KLIEP()).coef
    assert coef[0] == INFINITE
    assert coef[2] == -INFINITE
    assert 0 < coef[1] < 2


@pytest.mark.parametrize(
    ("method", "numerator", "model"),
    [
        ("KLIEP (full data)", lambda run: run.complete, lambda run: None),
        ("CC-KLIEP", lambda run: run.numerator, lambda run: "ignore"),
        ("M-KLIEP (known)", lambda run: run.numerator, lambda run: {1: run.phi}),
        ("M-KLIEP (learned)", lambda run: run.numerator,
         lambda run: {1: mr.learn_missingness(
             run.numerator, run.revealed, method="ml", from_table=False)}),
        ("Iterative imputation",
         lambda run: IterativeImputer().fit_transform(run.numerator), lambda run: None),
    ],
)  # fmt: skip
def test_scores_are_those_of_naive_bayes_on_the_same_rows(
    make_run, method, numerator, model
):
    """They are the estimator's decision function, but for a constant."""
    run = make_run()
    with warnings.catch_warnings(action="ignore"):
        kliep = mr.KLIEP(normalize="horvitz-thompson")
        ratio = mr.NaiveBayesRatio(kliep, model(run))
        ratio.fit(*stack_samples(numerator(run), run.denominator))
    rows = np.concatenate([run.calibration, run.test])
    assert np.ptp(scores(method, run) - ratio.decision_function(rows)) < 1e-6


@pytest.mark.parametrize(
    "method", ["Iterative imputation", "Iterative imputation and trees"]
)
def test_imputation_has_nothing_to_do_where_nothing_is_lost(make_run, method):
    assert scores(method, make_run(share=0.0)) is None
    assert not np.isnan(scores(method, make_run(share=0.3))).any()


def test_where_nothing_is_lost_all_are_kliep(make_run):
    run = make_run(share=0.0)
    full, *others = (scores(name, run) for name in ("KLIEP (full data)", *BY_COLUMN))
    for each in others:
        np.testing.assert_allclose(each, full, atol=1e-9)
    for conditions in (PUBLISHED, CORRECTED):
        phi = learned_phi(run, conditions)
        assert (phi.missing_probability(run.complete) == 0.0).all()


@pytest.mark.parametrize(
    ("variant", "method"), [("published", "ml"), ("corrected", "firth")]
)
def test_phi_is_that_of_learn_missingness_and_other_columns_teach_nothing(
    make_run, variant, method
):
    """The paper learns each φ_j from its own column alone, as naive Bayes does r_j."""
    run = make_run(variant)
    phi = learned_phi(run, Conditions(variant))
    for j in range(3):
        alone = mr.learn_missingness(
            run.numerator[:, [j]], run.revealed[:, [j]], method, from_table=False
        )
        np.testing.assert_allclose(phi.intercept[j], alone.intercept, rtol=1e-9)
        np.testing.assert_allclose(phi.coef[j], alone.coef, rtol=1e-9)


def looked_up(X, revealed):
    return Run(None, None, X, X, X, X, revealed)


def test_published_takes_a_slope_of_100_through_the_midpoint_where_separated():
    # 40 values of three columns, of which the third's are not separated.
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 1.0, (40, 3))
    revealed = np.full_like(X, np.nan)
    revealed[:5] = rng.uniform([[2.0, -3.0, 0.0]], [[3.0, -2.0, 1.0]], (5, 3))
    X[:10] = np.nan
    phi = learned_phi(looked_up(X, revealed), PUBLISHED)
    np.testing.assert_array_equal(phi.coef[:2], [100.0, -100.0])
    midpoints = [
        (np.nanmax(X[:, 0]) + np.nanmin(revealed[:, 0])) / 2,
        (np.nanmin(X[:, 1]) + np.nanmax(revealed[:, 1])) / 2,
    ]
    # Five of the ten that are missing were looked up.
    expected = -phi.coef[:2] * midpoints + np.log(2.0)
    np.testing.assert_allclose(phi.intercept[:2], expected)
    others = mr.learn_missingness(X[:, 2:], revealed[:, 2:], method="ml")
    np.testing.assert_array_equal(phi.coef[2:], others.coef)
    alone = learned_phi(looked_up(X[:, :2], revealed[:, :2]), PUBLISHED)
    np.testing.assert_array_equal(alone.coef, phi.coef[:2])
    # Corrected, slopes stay finite.
    phi = learned_phi(looked_up(X, revealed), CORRECTED)
    assert (np.abs(phi.coef) < 50).all()
    assert phi.coef[0] > 0 > phi.coef[1]


def test_products_are_of_columns_that_are_no_indicators_and_that_rows_have(make_run):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(1600, 2)), rng.integers(0, 2, 1600)])
    table = RealTable(X, np.arange(1600) >= 400)
    run = draw_run(table, SplitSizes(100, 50, 5), None, rng, CORRECTED)
    assert pairs_of_numbers(run) == [(0, 0), (0, 1), (1, 1)]
    run = make_run(share=0.9)
    seen = (~np.isnan(run.numerator)).astype(int)
    every = [(j, k) for j in range(3) for k in range(j, 3)]
    frequent = [pair for pair in every if (seen.T @ seen)[pair] >= 100]
    assert pairs_of_numbers(run) == frequent
    assert len(frequent) < 6


@pytest.mark.parametrize(
    "pair",
    [
        *([known(name), learned(name)] for name in LEARNERS),
        ["Trees on NaN", "Trees (full data)"],
    ],
)
def test_where_nothing_is_lost_there_is_nothing_to_know_better(make_run, pair):
    run = make_run(share=0.0)
    made = [scores(name, run, CORRECTED) for name in pair]
    np.testing.assert_allclose(*made, atol=1e-6)


def test_rows_that_are_alike_score_alike(make_run):
    run = make_run()
    rows = np.concatenate([run.calibration, run.test])
    made = linear_score(run, np.array([0.3, -0.7, 0.1])).at(rows)
    _, group = np.unique(rows, axis=0, return_inverse=True)
    for number in range(group.max() + 1):
        assert len(np.unique(made[group == number])) == 1
