"""Fits to looked-up values: optima, Firth's penalty, grouping, and regions."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, xlogy
from scipy.stats import chi2

from missratio.learning import evidence as evidence_module
from missratio.learning.evidence import Evidence, fit_evidence
from missratio.learning.learned import region_boundary


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


# The likelihood-ratio region, against its definition.


def region(evidence, delta):
    """Points on the boundary, and King and Zeng's estimate under Firth's penalty."""
    theta = fit_evidence(evidence, penalised=True).theta
    theta[0] -= evidence.sampling_offset
    return region_boundary(evidence, theta, None, delta), theta


def profile(evidence, alpha, beta):
    """Scott and Wild's profile likelihood: the stationary point in u, by search.

    It is a minimum in u, for the multinomial part is concave in the masses.
    """
    m, rest = evidence.n_revealed, evidence.n_unrevealed
    scores = alpha + np.asarray(beta) @ evidence.values

    def value(u):
        likelihood = (scores + u)[: evidence.n_revealed].sum()
        likelihood -= np.logaddexp(0.0, scores + u).sum()
        return likelihood - m * u - xlogy(rest, -np.expm1(u))

    found = minimize_scalar(value, bounds=(-12.0, -1e-9), method="bounded",
                            options={"xatol": 1e-10})  # fmt: skip
    return found.fun


def fall(evidence, points):
    """Twice the fall of the profile likelihood from its maximum, King and Zeng's."""
    theta = fit_evidence(evidence, penalised=False).theta
    best = profile(evidence, theta[0] - evidence.sampling_offset, theta[1:])
    return np.array([2 * (best - profile(evidence, a, b)) for a, *b in points])


@pytest.mark.parametrize("delta", [0.01, 0.05, 0.3])
@pytest.mark.parametrize(
    "evidence", [evidence_of(200), evidence_of(200, shift=-1), evidence_of(200, d=3)]
)
def test_points_lie_where_the_fall_is_chi_squares_quantile(delta, evidence):
    points, theta = region(evidence, delta)
    limit = chi2.ppf(1.0 - delta, len(theta))
    assert fall(evidence, points[::3]) == pytest.approx(limit, rel=0.01)


@pytest.mark.parametrize("m", [4, 15, 90])
def test_its_extremes_are_those_of_all_points_within(m):
    evidence = evidence_of(200, m, n_missing=90, shift=0.8)
    points, theta = region(evidence, 0.05)
    reach = 1.3 * np.abs(points - theta).max(axis=0)
    a, b = (np.linspace(-r, r, 41) for r in reach)
    grid = theta + np.stack(np.meshgrid(a, b), axis=-1).reshape(-1, 2)
    inside = grid[fall(evidence, grid) <= chi2.ppf(0.95, 2)]
    at = np.array([-2.0, 0.0, 1.0, 3.0])
    scores, all_scores = (z[:, :1] + z[:, 1:] * at for z in (points, inside))
    spread = np.ptp(all_scores, axis=0)
    assert (np.abs(scores.min(axis=0) - all_scores.min(axis=0)) < 0.06 * spread).all()
    assert (np.abs(scores.max(axis=0) - all_scores.max(axis=0)) < 0.06 * spread).all()
