"""Γ, and what else becomes of a certificate if φ is wrong."""

import classifiers
import numpy as np
import pytest
from classifiers import Total
from data import corrupted, equicorrelated, stacked

import missratio as mr
from missratio.classifier.certify import FACTOR_PRECISION

STEP = mr.StepMissingness(1.0, 0.0, 0.6)


def certified(model, **options):
    options = {"alpha": 0.2, "missingness": {0: model}} | options
    return classifiers.certified(Total(), **options)


def stepped(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X0 = mr.corrupt(rng.normal(size=(n, 1)), STEP, rng)
    return stacked(X0, rng.normal(1.5, 1.0, (400, 1)))


@pytest.mark.parametrize("rule", ["auto", "thinning", "betting", "bernstein"])
@pytest.mark.parametrize("factor", [1.0, 1.2, 1.5])
def test_what_was_allowed_for_is_what_can_be_borne(rule, factor):
    X, y = stepped()
    model = certified(STEP, rule=rule, odds_factor=factor).fit(X, y)
    gamma = model.certificate_.sensitivity
    assert gamma >= factor * (1 - 2 * FACTOR_PRECISION)
    # A threshold is a score: there is slack up to the next, and not more.
    assert gamma <= factor * 1.1


def test_the_factor_is_the_largest_at_which_the_rule_chooses_as_much():
    X, y = stepped()
    model = certified(STEP, rule="betting").fit(X, y)
    gamma = model.certificate_.sensitivity
    at_it = certified(STEP, rule="betting", odds_factor=gamma).fit(X, y)
    beyond = certified(STEP, rule="betting", odds_factor=1.01 * gamma).fit(X, y)
    assert at_it.threshold_ == model.threshold_
    assert beyond.threshold_ > model.threshold_


def test_nothing_is_said_where_nothing_is_missing_or_certified(two_normals):
    X, y = two_normals(400, 1, shift=1.5)
    complete = mr.NeymanPearsonClassifier(mr.KLIEP(), alpha=0.2, random_state=0)
    certificate = complete.fit(X, y).certificate_
    assert certificate.sensitivity is None
    assert "Γ" not in str(certificate)
    X, y, *known = classifiers.learned(60, m=5)
    for phi in known:
        model = certified(phi, alpha=0.01)
        with pytest.raises(ValueError, match="No threshold certifies"):
            model.fit(X, y)
        model.set_params(on_infeasible="reject_all").fit(X, y)
        assert model.certificate_.sensitivity is None
        assert (model.predict(X[-50:]) == 0).all()


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [1600, 1000])
    Z = rng.normal(y[:, None] * 1.3, 1.0, (len(y), 2))
    phi = {
        0: mr.LogisticMissingness([-1.5, -1.5], [1.0, 0.5]),
        1: mr.LogisticMissingness([-1.5, -1.0], [1.0, 0.5]),
    }
    X = Z.copy()
    for label, model in phi.items():
        X[y == label] = mr.corrupt(Z[y == label], model, random_state=label)
    clf = classifiers.certified(mr.KLIEP(), delta=0.05, missingness=phi)
    return clf.fit(X, y), X, y


@pytest.fixture(scope="module")
def curve(fitted):
    return mr.sensitivity_curve(*fitted)


def test_without_a_change_it_is_the_certificate(fitted, curve):
    certificate = fitted[0].certificate_
    here = curve.controlled.amount == 0.0
    for error in (curve.odds.error[0], curve.controlled.error[here][0]):
        assert error <= certificate.alpha * 1.001
        assert error == pytest.approx(certificate.error_bound, rel=0.02)


def test_the_tipping_factor_is_that_of_the_certificate(fitted, curve):
    clf, X, y = fitted
    factor = curve.tipping_factor
    assert factor == clf.certificate_.sensitivity
    near = mr.sensitivity_curve(clf, X, y, factors=[factor, 1.1 * factor], slopes=[0.0])
    assert near.odds.error[0] <= 0.1 * 1.001 < near.odds.error[1]


@pytest.mark.parametrize(
    ("seed", "n", "learned"), [(1, 1500, True), (1, 600, False), (2, 600, False)]
)
def test_the_curve_holds_up_to_the_factor_and_no_further(seed, n, learned):
    """Rules that draw may choose the same threshold again for a larger factor."""
    rng = np.random.default_rng(seed)
    Z0, Z1 = equicorrelated(rng, n, 3), equicorrelated(rng, n // 2, 3) + 1.2
    phi = mr.LogisticMissingness([-1.5] * 3, rng.normal(0.0, 0.7, 3))
    X, y = stacked(mr.corrupt(Z0, phi, random_state=seed), Z1)
    model = mr.learn_missingness(X[y == 0]) if learned else phi
    clf = certified(model, delta=0.1, random_state=seed).fit(X, y)
    odds = mr.sensitivity_curve(clf, X, y, slopes=[0.0]).odds
    assert (np.diff(odds.error) >= 0.0).all()
    within = odds.amount <= clf.certificate_.sensitivity
    np.testing.assert_array_equal(odds.error <= 0.2 * 1.002, within)


def test_a_tilt_to_the_true_phi_finds_the_true_error():
    """φ assumed flat where it rises by one per standard deviation."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], [6000, 1000])
    Z = rng.normal(y[:, None] * 1.3, 1.0, (len(y), 1))
    X = corrupted(Z, y, {0: mr.LogisticMissingness(-1.0, 1.0)})
    share = np.isnan(X[y == 0]).mean()
    flat = mr.LogisticMissingness(np.log(share / (1 - share)), 0.0)
    clf = classifiers.certified(mr.KLIEP(), delta=0.05, missingness={0: flat})
    clf.fit(X, y)
    fresh = rng.normal(size=(100_000, 1))
    error = float((clf.predict(fresh) == 1).mean())
    assert error > 0.11
    slope = np.nanstd(X[y == 0])
    found = mr.sensitivity_curve(clf, X, y, slopes=[0.0, slope], factors=[1.0])
    assert found.controlled.error[0] <= 0.1 * 1.001
    assert error <= found.controlled.error[1] < 1.5 * error
    assert 0.0 < found.controlled.tipping[1] < slope


def test_the_certificate_fails_as_odds_widen_and_high_values_are_lost_more_often(
    fitted, curve
):
    assert (np.diff(curve.odds.error) >= 0).all()
    assert (np.diff(curve.odds.power) <= 0).all()
    assert curve.odds.error[-1] > 0.2
    error = curve.controlled.error
    assert error[0] < error[len(error) // 2] < error[-1]
    assert curve.controlled.tipping[0] == -np.inf
    assert 0.0 <= curve.controlled.tipping[1] < 1.0
    assert len(curve.to_frame(backend="pyarrow")) == 7 + 9
    for factors in ([0.5], [], [np.nan]):
        with pytest.raises(ValueError, match="1 or more"):
            mr.sensitivity_curve(*fitted, factors=factors)


def test_without_a_model_there_is_nothing_to_vary(two_normals):
    X, y = two_normals(200, 2)
    clf = mr.NeymanPearsonClassifier(mr.KLIEP(), alpha=0.2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="no model of missingness"):
        mr.sensitivity_curve(clf, X, y)
