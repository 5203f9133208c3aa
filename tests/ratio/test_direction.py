"""The ratio the other way round, and by pairs of columns."""

import warnings

import numpy as np
import pytest
from data import corrupted, equicorrelated, stacked

import missratio as mr
from missratio.exceptions import SmallSampleWarning
from missratio.ratio import fit_batch


def lossy(n=600, d=4, seed=0, classes=(0,)):
    """Classes of which some lose entries, labels, the models, and what was there.

    About a quarter of each column is lost, at large values or at small ones.
    """
    rng = np.random.default_rng(seed)
    Z, y = stacked(*(equicorrelated(rng, n, d) for _ in range(2)))
    Z[n:, ::2] += 0.4
    phi = mr.LogisticMissingness([-1.5] * d, np.where(np.arange(d) % 2, 1.0, -1.0))
    models = dict.fromkeys(classes, phi)
    return corrupted(Z, y, models, seed), y, models, Z


@pytest.mark.parametrize("classes", [(), (1,)])
@pytest.mark.parametrize("kind", [mr.KLIEP, mr.KLIEPCV])
def test_where_the_denominator_is_complete_nothing_changes(kind, classes):
    X, y, models, _ = lossy(classes=classes)
    options = {"missingness": models} | (
        {"random_state": 0} if kind is mr.KLIEPCV else {}
    )
    auto = kind(**options).fit(X, y)
    forward = kind(**options, direction="forward", pairs=False).fit(X, y)
    assert auto.direction_ == "forward"
    assert not auto.pairs_used_
    np.testing.assert_array_equal(auto.coef_, forward.coef_)
    assert auto.intercept_ == forward.intercept_


ESTIMATORS = {
    "plain": mr.KLIEP(),
    "ridge in units of its errors": mr.KLIEP(l2=0.1, penalty_weights="standard-error"),
    "l1": mr.KLIEP(l1=0.02),
    "regression": mr.KLIEP(normalize="regression"),
    "polynomial": mr.KLIEP(mr.PolynomialBasis(2, "all"), l2=0.01),
    "cross-validated": mr.KLIEPCV(random_state=0, cv=3),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_reverse_is_the_ratio_of_exchanged_labels_negated(name):
    X, y, models, _ = lossy()
    phi = models[0]
    estimator = ESTIMATORS[name].set_params(missingness={0: phi})
    reverse = estimator.fit(X, y)
    assert reverse.direction_ == "reverse"
    exchanged = type(estimator)(**estimator.get_params(deep=False))
    exchanged.set_params(missingness={1: phi}, direction="forward").fit(X, 1 - y)
    np.testing.assert_allclose(reverse.coef_, -exchanged.coef_, atol=1e-12)
    assert reverse.intercept_ == pytest.approx(-exchanged.intercept_)
    assert reverse.score(X, y) == pytest.approx(exchanged.score(X, 1 - y))
    if name in ("plain", "cross-validated"):
        errors = [
            mr.ratio_uncertainty(ratio, X, labels).standard_errors
            for ratio, labels in ((reverse, y), (exchanged, 1 - y))
        ]
        np.testing.assert_allclose(*errors)


def power(ratio, d=20):
    """At a type-I error of a tenth, the threshold known."""
    rng = np.random.default_rng(1)
    Z0, Z1 = equicorrelated(rng, 40_000, d), equicorrelated(rng, 40_000, d)
    Z1[:, ::2] += 0.4
    threshold = np.quantile(ratio.predict_log_ratio(Z0), 0.9)
    return (ratio.predict_log_ratio(Z1) > threshold).mean()


@pytest.mark.parametrize(("classes", "least"), [((0,), 0.98), ((0, 1), 0.95)])
def test_blanks_in_twenty_columns_cost_little_power(classes, least):
    X, y, models, Z = lossy(5000, 20, 3, classes)
    best = power(mr.KLIEP().fit(Z, y))
    with warnings.catch_warnings(action="ignore", category=SmallSampleWarning):
        ratio = mr.KLIEP(missingness=models).fit(X, y)
    assert ratio.direction_ == "reverse"
    assert ratio.pairs_used_ == (len(classes) == 2)
    assert power(ratio) > least * best
    apart = mr.NaiveBayesRatio(missingness=models).fit(X, y)
    assert power(apart) < 0.8 * best


def test_pairs_of_complete_tables_are_fishers_discriminant():
    _, y, _, Z = lossy()
    ratio = mr.KLIEP(pairs=True).fit(Z, y)
    means = [Z[y == label].mean(axis=0) for label in (0, 1)]
    covariance = sum(np.cov(Z[y == label].T, bias=True) for label in (0, 1)) / 2
    coef = np.linalg.solve(covariance, means[1] - means[0])
    np.testing.assert_allclose(ratio.coef_, coef, rtol=1e-9)
    assert ratio.intercept_ == pytest.approx(-coef @ (means[0] + means[1]) / 2)
    ridge = mr.KLIEP(pairs=True, l2=0.5).fit(Z, y).coef_
    expected = np.linalg.solve(covariance + np.eye(4) / 2, means[1] - means[0])
    np.testing.assert_allclose(ridge, expected, rtol=1e-9)


def test_pairs_are_weighted_by_their_own_probability():
    """Moments of lossy pairs come to those of what was there."""
    X, y, models, Z = lossy(40_000, 3, 5, (0, 1))
    found = mr.KLIEP(missingness=models, pairs=True).fit(X, y).coef_
    truth = mr.KLIEP(pairs=True).fit(Z, y).coef_
    ignored = mr.KLIEP(missingness="ignore", pairs=True).fit(X, y).coef_
    assert np.abs(found - truth).max() < 0.05
    assert np.abs(ignored - truth).max() > 0.05


@pytest.mark.filterwarnings(
    "ignore::missratio.missingness.MissingnessContradictionWarning"
)
def test_pairs_need_no_complete_row_and_say_so():
    X, y, models, _ = lossy(300, 3, classes=(0, 1))
    X[np.arange(len(X)), np.arange(len(X)) % 3] = np.nan
    with pytest.warns(SmallSampleWarning, match="fitted by pairs of columns"):
        ratio = mr.KLIEP(missingness=models).fit(X, y)
    assert ratio.pairs_used_
    assert ratio.converged_
    assert np.isfinite(ratio.score(X, y))
    with pytest.raises(ValueError, match="pairs of columns"):
        mr.ratio_uncertainty(ratio, X, y)
    with pytest.warns(SmallSampleWarning, match="fitted by pairs of columns"):
        chosen = mr.KLIEPCV(missingness=models, random_state=0).fit(X, y)
    assert chosen.pairs_used_
    assert chosen.l2_ > 0.0


@pytest.mark.filterwarnings("ignore::missratio.exceptions.SmallSampleWarning")
@pytest.mark.parametrize("classes", [(0,), (1,), (0, 1)])
def test_objectives_that_count_complete_rows_give_way_to_klieps(classes):
    X, y, models, _ = lossy(400, 12, classes=classes)
    with pytest.warns(SmallSampleWarning, match="few as .* KLIEP's, which takes"):
        ratio = mr.FDivergenceRatio("js", missingness=models).fit(X, y)
    kliep = mr.KLIEP(missingness=models).fit(X, y)
    np.testing.assert_allclose(ratio.coef_, kliep.coef_)
    assert ratio.score(X, y) == pytest.approx(kliep.score(X, y))


# Values missing in both classes, and columns that are far from independent.


ABOVE = mr.FunctionMissingness(lambda z: 0.6 * (z > 0), rowwise=False, maximum=0.6)
BELOW = mr.FunctionMissingness(lambda z: 0.5 * (z < 0), rowwise=False, maximum=0.5)


def test_with_both_classes_lossy_the_joint_fit_finds_the_truth_and_others_do_not():
    """N(μ, Σ) over N(0, Σ), so that θ is Σ⁻¹μ."""
    rng, mean, models = (
        np.random.default_rng(0),
        np.array([0.5, 0.0]),
        {1: ABOVE, 0: BELOW},
    )
    Z0, Z1 = (equicorrelated(rng, 40_000, 2, 0.8) + shift for shift in (0.0, mean))
    X, y = stacked(Z0, Z1)
    X = corrupted(X, y, models)
    truth = np.linalg.solve([[1.0, 0.8], [0.8, 1.0]], mean)
    found = mr.KLIEP(missingness=models).fit(X, y).coef_
    np.testing.assert_allclose(found, truth, atol=0.06)
    complete_case = mr.KLIEP(missingness="ignore").fit(X, y).coef_
    assert np.abs(complete_case - truth).max() > 0.2
    apart = mr.NaiveBayesRatio(missingness=models).fit(X, y).coef_
    assert np.abs(apart - truth).max() > 0.3


def test_products_work_in_both_classes():
    # log r = 0.4 z0 z1 + const for a change of correlation, up to the marginals' shape.
    rng, models, law = (
        np.random.default_rng(0),
        {1: ABOVE, 0: BELOW},
        [[1, 0.4], [0.4, 1]],
    )
    Z0, Z1 = rng.normal(size=(2, 40_000, 2))
    X, y = stacked(Z0, Z1 @ np.linalg.cholesky(law).T)
    basis = mr.PolynomialBasis(2, interactions="all")
    coef = mr.KLIEP(basis, missingness=models).fit(corrupted(X, y, models), y).coef_
    (own, other), _ = np.linalg.inv(law)
    expected = [0, (1 - own) / 2, 0, (1 - own) / 2, -other]
    np.testing.assert_allclose(coef, expected, atol=0.07)


def test_what_has_no_meaning_is_refused():
    X, y, models, _ = lossy()
    products = mr.PolynomialBasis(1, [(0, 1)])
    for estimator, message in (
        (mr.KLIEP(direction="backward"), "direction must be one of"),
        (mr.KLIEP(pairs="never"), "pairs must be one of"),
        (mr.KLIEP(products, pairs=True), "one column each"),
    ):
        with pytest.raises(ValueError, match=message):
            estimator.set_params(missingness=models).fit(X, y)
    with pytest.raises(ValueError, match="complete rows"):
        fit_batch(mr.KLIEP(pairs=True), X[None], X[None])
