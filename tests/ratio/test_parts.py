"""Values missing in both classes: complete denominator rows, or pairs of columns."""

import numpy as np
from data import equicorrelated

import missratio as mr

ABOVE = mr.FunctionMissingness(lambda z: 0.6 * (z > 0), rowwise=False, maximum=0.6)
BELOW = mr.FunctionMissingness(lambda z: 0.5 * (z < 0), rowwise=False, maximum=0.5)


def lossy(n, seed=0):
    """N(μ, Σ) over N(0, Σ), Σ far from diagonal; θ = Σ⁻¹μ."""
    rng, mean = np.random.default_rng(seed), np.array([0.5, 0.0])
    Z1, Z0 = equicorrelated(rng, n, 2, 0.8) + mean, equicorrelated(rng, n, 2, 0.8)
    X = np.concatenate([mr.corrupt(Z1, ABOVE, seed), mr.corrupt(Z0, BELOW, seed + 1)])
    return X, np.repeat([1, 0], n), np.linalg.solve([[1.0, 0.8], [0.8, 1.0]], mean)


def test_with_both_classes_lossy_the_joint_fit_finds_the_truth_and_others_do_not():
    X, y, truth = lossy(40_000)
    models = {1: ABOVE, 0: BELOW}
    np.testing.assert_allclose(
        mr.KLIEP(missingness=models).fit(X, y).coef_, truth, atol=0.06
    )
    complete_case = mr.KLIEP(missingness="ignore").fit(X, y).coef_
    assert np.abs(complete_case - truth).max() > 0.2
    apart = mr.NaiveBayesRatio(missingness=models).fit(X, y).coef_
    assert np.abs(apart - truth).max() > 0.3


def test_products_work_in_both_classes():
    rng = np.random.default_rng(0)
    n = 40_000
    # log r = 0.4 z0 z1 + const for a change of correlation, up to the marginals' shape.
    Z0 = rng.normal(size=(n, 2))
    rho = 0.4
    Z1 = rng.normal(size=(n, 2)) @ np.linalg.cholesky([[1, rho], [rho, 1]]).T
    X = np.concatenate([mr.corrupt(Z1, ABOVE, 0), mr.corrupt(Z0, BELOW, 1)])
    y = np.repeat([1, 0], n)
    basis = mr.PolynomialBasis(2, interactions="all")
    coef = mr.KLIEP(basis, missingness={1: ABOVE, 0: BELOW}).fit(X, y).coef_
    precision = np.linalg.inv([[1, rho], [rho, 1]])
    expected = [0, (1 - precision[0, 0]) / 2, 0, (1 - precision[1, 1]) / 2]
    expected.append(-precision[0, 1])
    np.testing.assert_allclose(coef, expected, atol=0.07)
