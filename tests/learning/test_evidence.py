"""Fits to looked-up values: optima, Firth's penalty, and what grouping keeps."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from missratio.learning import evidence as evidence_module
from missratio.learning.evidence import Evidence, LogisticBatch, fit_evidence


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


def fisher_scoring(evidence, penalised):
    """Firth's fit by modified scores (Heinze and Schemper 2002)."""
    x = np.concatenate([np.ones((1, len(evidence.mass))), evidence.values])
    y, theta = np.arange(x.shape[1]) < evidence.n_revealed, np.zeros(len(x))
    for _ in range(200):
        p = expit(theta @ x)
        w = evidence.mass * p * (1.0 - p)
        inverse = np.linalg.inv((x * w) @ x.T)
        leverage = w * np.einsum("pk,pq,qk->k", x, inverse, x)
        score = x @ (evidence.mass * (y - p) + penalised * leverage * (0.5 - p))
        step = inverse @ score
        theta = theta + step / max(1.0, np.abs(step).max())
    return theta


# The objective


def batch_of(width=3, penalised=True):
    """Three problems, with masses from one half to three."""
    rng = np.random.default_rng(0)
    design = rng.normal(size=(3, width, 60))
    design[:, 0] = 1.0
    score = 0.7 * design[:, 1:].sum(axis=1) - 0.5
    outcome = (rng.uniform(size=score.shape) < expit(score)).astype(float)
    return LogisticBatch(design, outcome, rng.uniform(0.5, 3.0, score.shape), penalised)


@pytest.mark.parametrize("penalised", [False, True])
@pytest.mark.parametrize("width", [1, 2, 4])
def test_gradient_and_hessian_are_those_of_the_value(width, penalised):
    batch = batch_of(width, penalised)
    theta = np.random.default_rng(1).normal(0.0, 0.5, batch.design.shape[:2])
    here, step = batch(theta, second_order=True), 1e-5
    for k in range(width):
        move = step * np.eye(width)[k]
        above = batch(theta + move, second_order=False)
        below = batch(theta - move, second_order=False)
        slope = (above.value - below.value) / (2 * step)
        bend = (above.gradient - below.gradient) / (2 * step)
        assert here.gradient[:, k] == pytest.approx(slope, rel=1e-6, abs=1e-6)
        assert here.hessian[:, k] == pytest.approx(bend, rel=1e-6, abs=1e-6)


def test_the_value_is_the_log_likelihood_less_jeffreyss_prior():
    batch = batch_of()
    theta = np.array([[0.3, -0.2, 0.9]] * 3)
    x, y, mass = batch.design[0], batch.outcome[0], batch.mass[0]
    p = expit(theta[0] @ x)
    likelihood = (mass * np.where(y == 1.0, np.log(p), np.log1p(-p))).sum()
    information = (x * mass * p * (1 - p)) @ x.T
    prior = 0.5 * np.linalg.slogdet(information)[1]
    value = batch(theta, second_order=False).value
    assert value[0] == pytest.approx(-likelihood - prior)


# Fits


@pytest.mark.parametrize("penalised", [False, True])
@pytest.mark.parametrize("d", [1, 3])
def test_the_optimum_is_that_of_fisher_scoring(d, penalised):
    evidence = evidence_of(d=d)
    fits = fit_evidence([evidence], penalised=penalised)
    assert fits.converged.all()
    expected = fisher_scoring(evidence, penalised)
    # Under Firth's penalty the intercept is set anew.
    first = 1 if penalised else 0
    assert fits.theta[0, first:] == pytest.approx(expected[first:], rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("penalised", [False, True])
def test_a_batch_of_any_sizes_equals_one_at_a_time(monkeypatch, penalised):
    monkeypatch.setattr(evidence_module, "BATCH_ENTRIES", 1000)
    sizes = [(900, 20), (50, 5), (400, 80), (60, 60), (300, 10)]
    problems = [evidence_of(n, m, seed=n) for n, m in sizes]
    together = fit_evidence(problems, penalised=penalised)
    for i, problem in enumerate(problems):
        alone = fit_evidence([problem], penalised=penalised)
        assert together.theta[i] == pytest.approx(alone.theta[0], abs=1e-5)
        assert together.log_likelihood[i] == pytest.approx(alone.log_likelihood[0])


@pytest.mark.parametrize("penalised", [False, True])
def test_a_fit_moves_with_the_scale_and_origin_of_the_values(penalised):
    evidence = evidence_of()
    moved = Evidence(3.0 + 100.0 * evidence.values, 30, evidence.mass, 100)
    here, there = fit_evidence([evidence, moved], penalised=penalised).theta
    assert there[1] == pytest.approx(here[1] / 100.0, rel=1e-4)
    assert there[0] == pytest.approx(here[0] - 3.0 * here[1] / 100.0, rel=1e-4)


@pytest.mark.parametrize("evidence", [evidence_of(d=2), separated()])
def test_firths_fit_expects_as_many_revealed_as_there_were(evidence):
    fits = fit_evidence([evidence], penalised=True)
    p = expit(fits.theta[0, 0] + fits.theta[0, 1:] @ evidence.values)
    assert evidence.mass @ p == pytest.approx(evidence.n_revealed, rel=1e-9)
    first = evidence.n_revealed
    expected = np.log(p[:first]).sum() + np.log1p(-p[first:]).sum()
    assert fits.log_likelihood[0] == pytest.approx(expected)


def test_separation_is_found_out_by_maximum_likelihood_and_firths_fit_is_finite():
    assert fit_evidence([separated()], penalised=False).separated[0]
    firth = fit_evidence([separated(), evidence_of()], penalised=True)
    assert firth.converged.all()
    assert not firth.separated.any()
    slope = fisher_scoring(separated(), penalised=True)[1]
    assert firth.theta[0, 1] == pytest.approx(slope, rel=1e-4)


def test_firth_takes_the_bias_of_the_slope_away():
    # 12 looked up beside 100: the estimator of maximum likelihood is too steep.
    problems = [evidence_of(100, 12, seed=seed) for seed in range(1500)]
    slopes = {
        penalised: fit_evidence(problems, penalised=penalised).theta[:, 1]
        for penalised in (False, True)
    }
    error = slopes[True].std() / np.sqrt(1500)
    assert abs(slopes[True].mean() - 1.0) < 4 * error
    assert slopes[False].mean() - 1.0 > 5 * error


def test_values_that_repeat_are_counted_and_weigh_as_much():
    rng = np.random.default_rng(0)
    values, revealed = rng.integers(0, 300, (1, 50_000)) / 10.0, np.array([[9.0, 21.0]])
    evidence = collect(values, revealed, 10)
    distinct, counts = np.unique(values, return_counts=True)
    assert (evidence.values[0, 2:] == distinct).all()
    assert (evidence.mass[2:] == counts).all()
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
    model.fit(np.append(revealed, values)[:, None], np.arange(50_002) < 2)
    theta = fit_evidence([evidence], penalised=False).theta[0]
    expected = [model.intercept_[0], model.coef_[0, 0]]
    assert theta == pytest.approx(expected, abs=1e-4)


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
    fits = fit_evidence([few, whole], penalised=penalised)
    errors = errors_of(whole, fits.theta[1])
    allowed = 1e-3 if law == "normal" else 5e-3
    assert (np.abs(fits.theta[0] - fits.theta[1]) < allowed * errors).all()
    assert errors_of(few, fits.theta[0]) == pytest.approx(errors, rel=1e-3)


def test_of_very_many_rows_some_stand_for_all(ungrouped):
    rng = np.random.default_rng(0)
    arguments = rng.normal(size=(2, 70_000)), rng.normal(0.5, 1.0, (2, 100)), 5000
    few, whole = collect(*arguments), ungrouped(*arguments)
    assert len(few.mass) < 2**15
    assert few.mass.sum() == pytest.approx(70_100)
    fits = fit_evidence([few, whole], penalised=True)
    errors = errors_of(whole, fits.theta[1])
    assert (np.abs(fits.theta[0] - fits.theta[1]) < 0.2 * errors).all()


def test_groups_keep_the_mean_and_the_outermost_values():
    values = np.random.default_rng(0).standard_cauchy((1, 50_000))
    kept, mass = collect(values, np.zeros((1, 1)), 10).observed
    assert (kept * mass).sum() == pytest.approx(values.sum())
    ordered = np.sort(values[0])
    assert (kept[0, :100] == ordered[:100]).all()
    assert (kept[0, -100:] == ordered[-100:]).all()
    assert mass.sum() == 50_000


def test_another_budget_is_expected_to_bring_what_the_fit_says():
    evidence = evidence_of()
    theta = fit_evidence([evidence], penalised=False).theta[0]
    larger = evidence.at_budget(60, theta[1:])
    assert larger.revealed_mass == pytest.approx(60.0)
    assert larger.sampling_offset == pytest.approx(np.log(60 / 100))
    again = fit_evidence([larger], penalised=False).theta[0]
    assert again[1:] == pytest.approx(theta[1:], abs=1e-5)
    # No more can be looked up than are missing.
    most = evidence.at_budget(1e6, theta[1:])
    assert most.revealed_mass == pytest.approx(100.0)
    assert most.sampling_offset == pytest.approx(0.0)
    assert evidence.at_budget(30, theta[1:]) is evidence
