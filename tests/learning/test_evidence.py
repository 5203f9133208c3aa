"""Fits to looked-up values: optima, Firth's penalty, and what grouping keeps."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from missratio.learning import evidence as evidence_module
from missratio.learning.evidence import Evidence, fit_evidence


def collect(observed, revealed, n_missing):
    """The evidence of values of shape (n_columns, n_values)."""
    lost = np.full((n_missing, len(observed)), np.nan)
    answers = np.full((observed.shape[1] + n_missing, len(observed)), np.nan)
    answers[observed.shape[1] :][: revealed.shape[1]] = revealed.T
    return Evidence.of(np.concatenate([observed.T, lost]), answers)


def evidence_of(n=400, m=30, d=1, seed=0, n_missing=100, shift=1.0):
    rng = np.random.default_rng(seed)
    observed, revealed = rng.normal(size=(d, n)), rng.normal(shift, 1.0, (d, m))
    return collect(observed, revealed, n_missing)


def separated():
    return collect(np.linspace(-1.0, 0.4, 30)[None], np.linspace(0.5, 1, 9)[None], 20)


def errors_of(evidence, theta):
    """Standard errors of (a, β) by Fisher's information."""
    design = np.concatenate([np.ones((1, len(evidence.mass))), evidence.values])
    p = expit(theta @ design)
    information = (design * evidence.mass * p * (1.0 - p)) @ design.T
    return np.sqrt(np.diagonal(np.linalg.inv(information)))


def objective(theta, evidence, penalised):
    """Minus the log-likelihood, less half the log-determinant of the information."""
    x = np.concatenate([np.ones((1, len(evidence.mass))), evidence.values])
    score, revealed = theta @ x, np.arange(x.shape[1]) < evidence.n_revealed
    value = evidence.mass @ np.logaddexp(0.0, np.where(revealed, -score, score))
    information = (x * evidence.mass * expit(score) * expit(-score)) @ x.T
    return value - penalised * 0.5 * np.linalg.slogdet(information)[1]


# Fits


@pytest.mark.parametrize("penalised", [False, True])
@pytest.mark.parametrize("evidence", [evidence_of(), evidence_of(d=3), separated()])
def test_a_fit_is_the_optimum_of_its_objective(evidence, penalised):
    fit = fit_evidence(evidence, penalised=penalised)
    assert fit.separated == (len(evidence.mass) < 100 and not penalised)
    if fit.separated:
        return
    assert fit.converged
    best = minimize(objective, fit.theta, (evidence, penalised), tol=1e-10)
    # Under Firth's penalty the intercept is set anew.
    first = 1 if penalised else 0
    assert fit.theta[first:] == pytest.approx(best.x[first:], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("penalised", [False, True])
def test_a_fit_moves_with_the_scale_and_origin_of_the_values(penalised):
    evidence = evidence_of()
    moved = Evidence(3.0 + 100.0 * evidence.values, 30, evidence.mass, 100)
    here, there = (
        fit_evidence(each, penalised=penalised).theta for each in (evidence, moved)
    )
    assert there[1] == pytest.approx(here[1] / 100.0, rel=1e-4)
    assert there[0] == pytest.approx(here[0] - 3.0 * here[1] / 100.0, rel=1e-4)


@pytest.mark.parametrize("evidence", [evidence_of(d=2), separated()])
def test_firths_fit_expects_as_many_revealed_as_there_were(evidence):
    fit = fit_evidence(evidence, penalised=True)
    p = expit(fit.theta[0] + fit.theta[1:] @ evidence.values)
    assert evidence.mass @ p == pytest.approx(evidence.n_revealed, rel=1e-9)
    assert -fit.log_likelihood == pytest.approx(objective(fit.theta, evidence, False))


def test_firth_takes_the_bias_of_the_slope_away():
    # 12 looked up beside 100: the estimator of maximum likelihood is too steep.
    problems = [evidence_of(100, 12, seed=seed) for seed in range(1500)]
    slopes = {
        penalised: np.array(
            [fit_evidence(each, penalised=penalised).theta[1] for each in problems]
        )
        for penalised in (False, True)
    }
    error = slopes[True].std() / np.sqrt(1500)
    assert abs(slopes[True].mean() - 1.0) < 4 * error
    assert slopes[False].mean() - 1.0 > 5 * error


# What is kept of many values


@pytest.fixture
def ungrouped(monkeypatch):
    """Evidence that keeps every value."""

    def whole(*arguments):
        with monkeypatch.context() as patch:
            patch.setattr(evidence_module, "GROUPS", 10**9)
            patch.setattr(evidence_module, "KEPT_ROWS", 10**9)
            return collect(*arguments)

    return whole


@pytest.mark.parametrize("law", ["normal", "standard_cauchy", "exponential"])
@pytest.mark.parametrize("penalised", [False, True])
def test_grouping_moves_a_fit_by_thousandths_of_its_standard_error(
    ungrouped, law, penalised
):
    rng = np.random.default_rng(0)
    values = getattr(rng, law)(size=(1, 60_000))
    lost = rng.uniform(size=values.shape) < expit(0.5 * values - 2.0)
    arguments = values[~lost][None], values[lost][None, :300], int(lost.sum())
    few, whole = collect(*arguments), ungrouped(*arguments)
    assert len(few.mass) < 2000 < len(whole.mass)
    assert few.mass.sum() == whole.mass.sum()
    grouped, exact = (fit_evidence(e, penalised=penalised).theta for e in (few, whole))
    errors = errors_of(whole, exact)
    allowed = 1e-3 if law == "normal" else 5e-3
    assert (np.abs(grouped - exact) < allowed * errors).all()
    assert errors_of(few, grouped) == pytest.approx(errors, rel=1e-3)


def test_of_very_many_rows_some_stand_for_all(ungrouped):
    rng = np.random.default_rng(0)
    arguments = rng.normal(size=(2, 70_000)), rng.normal(0.5, 1.0, (2, 100)), 5000
    few, whole = collect(*arguments), ungrouped(*arguments)
    assert len(few.mass) < 2**15
    assert few.mass.sum() == pytest.approx(70_100)
    some, exact = (fit_evidence(e, penalised=True).theta for e in (few, whole))
    assert (np.abs(some - exact) < 0.2 * errors_of(whole, exact)).all()
