"""Imputed values have the law of the values that went missing."""

import numpy as np
import pytest
from scipy.stats import ks_2samp, norm, spearmanr, t

import missratio as mr


def discrepancies(Z, X, completed):
    """How far imputed entries are from the lost ones, marginally and jointly."""
    marginal, joint = [], []
    for j, lost in enumerate(np.isnan(X).T):
        marginal.append(ks_2samp(completed[lost, j], Z[lost, j]).statistic)
        # With the other columns, both of them completed and both of them true.
        ours, truth = (spearmanr(each[lost]).statistic for each in (completed, Z))
        joint.append(np.abs(np.asarray(ours) - truth).max())
    return max(marginal), max(joint)


def test_imputed_values_are_distributed_as_those_that_went_missing(skewed):
    Z, X, phi = skewed()
    for told, bootstrap, right in (
        (phi, True, True),
        (phi, False, True),
        ("ignore", True, False),
    ):
        imputer = mr.TiltedImputer(told, bootstrap=bootstrap, random_state=0)
        marginal, joint = discrepancies(Z, X, imputer.fit_transform(X))
        assert (marginal < 0.08 and joint < 0.1) == right


@pytest.mark.parametrize("probability", [0.2, 0.7])
def test_with_phi_constant_it_is_ordinary_multiple_imputation(skewed, probability):
    _, X, _ = skewed(500)
    phi = mr.FunctionMissingness(lambda X: np.full(X.shape, probability), rowwise=False)
    tilted = mr.TiltedImputer(phi, n_imputations=2, random_state=0).fit_impute(X)
    plain = mr.TiltedImputer("ignore", n_imputations=2, random_state=0).fit_impute(X)
    np.testing.assert_array_equal(tilted, plain)


def test_a_prediction_far_from_where_values_go_missing_gets_one_that_can():
    # z₂ = z₁ by all observed rows, but z₂ = −3 can't go missing, and did.
    rng = np.random.default_rng(0)
    z = rng.normal(size=500)
    X = np.column_stack([z, z])
    X[(z > 0) & (rng.random(500) < 0.5), 1] = np.nan
    X[0] = [-3.0, np.nan]
    phi = mr.StepMissingness([0.0, 1.0], 0.0, [0.0, 0.5], rowwise=False)
    completed = mr.TiltedImputer(phi, random_state=0).fit_transform(X)
    assert completed[0, 1] > 0.0


TILTS = {
    "even": np.ones(20),
    "line": np.linspace(0, 1, 20),
    "one level": np.r_[np.zeros(19), 1.0],
    "steep": np.geomspace(1e-4, 1, 20),
}


@pytest.mark.parametrize("spike", [0.0, 0.4])
@pytest.mark.parametrize("tilt", TILTS.values(), ids=TILTS)
def test_draws_are_tilted_exactly(tilt, spike):
    """Levels 0, …, 19, of which the first may make up a tenth or more."""
    rng = np.random.default_rng(0)
    z = np.where(rng.random(40_000) < spike, 0.0, rng.integers(0, 20, 40_000))

    def probability(X):
        return np.column_stack([0.5 * np.interp(X[:, 0], range(20), tilt), 0 * X[:, 1]])

    phi = mr.FunctionMissingness(probability, rowwise=False)
    rows = np.arange(40_000)
    X = np.column_stack([np.where(rows < 5000, z, np.nan), rows % 2])
    imputer = mr.TiltedImputer(phi, bootstrap=False, n_rounds=1, random_state=0)
    completed = imputer.fit_transform(X)
    mass = np.bincount(z[:5000].astype(int)) * tilt / (1.0 - 0.5 * tilt)
    drawn = np.bincount(completed[5000:, 0].astype(int), minlength=20) / 35_000
    np.testing.assert_allclose(drawn, mass / mass.sum(), atol=0.012)


def rubin_holds(rng, n_imputations=10):
    """Whether Rubin's intervals hold means, slopes and shares, in a random setting."""
    n, correlation = int(rng.choice([200, 500, 1000])), rng.uniform(0.0, 0.8)
    common, own = rng.normal(size=(n, 1)), rng.normal(size=(n, 3))
    Z = np.sqrt(correlation) * common + np.sqrt(1.0 - correlation) * own
    phi = mr.LogisticMissingness(rng.uniform(-1.5, 0.0, 3), rng.uniform(-1.0, 1.0, 3))
    tables = mr.TiltedImputer(
        phi, n_imputations=n_imputations, random_state=int(rng.integers(2**31))
    ).fit_impute(mr.corrupt(Z, phi, rng))
    slope = correlation / (1.0 + correlation)
    truth = np.array([0.0, 0.0, 0.0, norm.sf(1.0), slope, slope])
    found = [analysis(table) for table in tables]
    estimates, variances = (np.array(each) for each in zip(*found, strict=True))
    within = variances.mean(axis=0)
    between = (1 + 1 / n_imputations) * estimates.var(axis=0, ddof=1)
    freedom = (n_imputations - 1) * (1 + within / np.maximum(between, 1e-12)) ** 2
    half = t.ppf(0.975, freedom) * np.sqrt(within + between)
    return np.abs(estimates.mean(axis=0) - truth) < half


def analysis(table):
    """Three means, a share above one and two regression slopes; their variances."""
    n = len(table)
    design = np.column_stack([np.ones(n), table[:, :2]])
    inverse = np.linalg.inv(design.T @ design)
    slopes = inverse @ design.T @ table[:, 2]
    noise = np.sum((table[:, 2] - design @ slopes) ** 2) / (n - 3)
    share = np.mean(table[:, 0] > 1.0)
    estimates = [*table.mean(axis=0), share, *slopes[1:]]
    own = [*(table.var(axis=0, ddof=1) / n), share * (1 - share) / n]
    return estimates, [*own, *(noise * np.diagonal(inverse)[1:])]


def test_rubins_intervals_hold_more_often_than_not():
    held = [rubin_holds(np.random.default_rng([0, k]), 5) for k in range(8)]
    assert np.mean(held) > 0.8


@pytest.mark.validity
def test_rubins_intervals_cover():
    held = [rubin_holds(np.random.default_rng([1, k])) for k in range(200)]
    means, others = np.mean(held, axis=0)[:3], np.mean(held, axis=0)[3:]
    # Three binomial standard deviations are 0.046; of three means' mean 0.035.
    assert 0.91 < means.mean() < 0.98
    assert others.min() > 0.89
