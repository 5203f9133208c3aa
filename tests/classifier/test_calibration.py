"""A classifier keeps what its threshold was chosen from, for other levels too."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from classifiers import certified
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.classifier import check_same_rows
from missratio.threshold import BernsteinRule, ThinningRule

STEP = mr.StepMissingness([1.0, 1.0], 0.0, 0.7)


def rows(n=1000, model=None):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (n, 2)), rng.normal(1, 1, (n, 2))])
    y = np.repeat([0, 1], n)
    if model is not None:
        X[y == 0] = mr.corrupt(X[y == 0], model, random_state=0)
    return X, y


def fitted(X, y, **options):
    return certified(mr.KLIEP(), **{"delta": 0.05} | options).fit(X, y)


@pytest.mark.parametrize("rule", ["auto", "thinning", "counting", "tuned-betting"])
@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
def test_a_level_is_a_fit_at_that_level(rule, alpha):
    X, y = rows(model=STEP)
    options = {"missingness": {0: STEP}, "rule": rule, "on_infeasible": "reject_all"}
    again = fitted(X, y, alpha=alpha, **options)
    kept = fitted(X, y, **options).calibration_
    falling = [c.threshold for c in kept.select([0.2, 0.3, 0.5])]
    assert falling == sorted(falling, reverse=True)
    if again.calibration_.trust == kept.trust:
        chosen = kept.select([alpha])[0].threshold
        # How far thresholds are moved is measured near each one.
        chosen = np.inf if chosen is None else chosen
        assert chosen == pytest.approx(again.threshold_, abs=1e-5)


@pytest.mark.parametrize("seed", [None, 0, "generator"])
@pytest.mark.parametrize("rule", ["auto", "thinning", "counting"])
def test_the_certificate_is_the_kept_calibrations_own(seed, rule):
    # Whatever the seed was: random numbers are drawn once, and kept.
    X, y = rows(model=STEP)
    seed = np.random.default_rng(5) if seed == "generator" else seed
    model = fitted(X, y, missingness={0: STEP}, rule=rule, random_state=seed)
    for kept in (model.calibration_, pickle.loads(pickle.dumps(model.calibration_))):
        chosen = kept.select([0.1])[0]
        assert chosen.threshold == model.threshold_
        assert chosen.rule == model.certificate_.rule
        assert chosen.error_bound == model.certificate_.error_bound


@pytest.mark.parametrize("rule", ["thinning", "counting"])
def test_the_coin_is_drawn_by_the_seed_and_decides(rule):
    X, y = rows(model=STEP)
    models = [
        fitted(X, y, missingness={0: STEP}, rule=rule, random_state=seed)
        for seed in (1, 1, 2)
    ]
    coins = [model.calibration_.sample.coin for model in models]
    assert coins[0] == coins[1] != coins[2]
    assert all(0.0 < coin < 1.0 for coin in coins)
    kept = models[0].calibration_
    lucky, unlucky = (
        replace(kept, sample=replace(kept.sample, coin=coin)).select([0.1])[0]
        for coin in (0.0, 1.0)
    )
    assert lucky.threshold < unlucky.threshold
    assert lucky.error_bound == 0.1 > unlucky.error_bound


def down(X):
    return 0.8 * (X[:, 0] < 0)


def powers(estimator, rule, n=300, seeds=4):
    """Of classifiers where low rows go missing, so that a cap on weights pays."""
    phi = mr.FunctionMissingness(down, maximum=0.8)
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X0 = mr.corrupt(rng.normal(size=(2 * n, 3)), phi, rng)
        X1, fresh = (rng.normal([1.4, 0.5, 0], 1, (size, 3)) for size in (n, 2000))
        model = mr.NeymanPearsonClassifier(
            estimator, 0.1, missingness={0: phi}, rule=rule, random_state=seed
        ).fit(np.concatenate([X0, X1]), np.repeat([0, 1], [2 * n, n]))
        found.append((model.predict(fresh) == 1).mean())
    return np.mean(found)


def test_rules_and_caps_are_judged_by_scores_of_rows_not_fitted_on():
    # In-sample, a forest tells the classes apart perfectly: power .33 by such scores.
    forest = RandomForestClassifier(25, random_state=0)
    auto = powers(forest, "auto")
    assert auto > 0.38
    assert auto > powers(forest, "counting") - 0.02


class Counted(LogisticRegression):
    """Says how often one was fitted."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        Counted.fits += 1
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize(("n", "expected"), [(1000, 1), (30, 4)])
@pytest.mark.filterwarnings("ignore")
def test_few_coefficients_need_no_other_fits(n, expected):
    X, y = rows(n, STEP)
    Counted.fits = 0
    mr.NeymanPearsonClassifier(
        Counted(),
        0.3,
        0.2,
        missingness={0: STEP},
        random_state=0,
        on_infeasible="reject_all",
    ).fit(X, y)
    assert Counted.fits == expected


def test_a_rule_may_be_given_as_an_object():
    X, y = rows(model=STEP)
    options = {"missingness": {0: STEP}, "on_infeasible": "reject_all"}
    for rule in (BernsteinRule(), ThinningRule()):
        model = fitted(X, y, rule=rule, **options)
        named = fitted(X, y, rule=rule.name, **options)
        assert model.threshold_ == named.threshold_
        assert model.certificate_.rule == rule.name
        assert isinstance(clone(model).rule, type(rule))


def test_the_rows_calibrated_with_are_known_again():
    X, y = rows()
    model = fitted(X, y, random_state=None)
    check_same_rows(model, X, y)
    for wrong in (X[::-1], X + 1.0):
        with pytest.raises(ValueError, match="not the rows"):
            check_same_rows(model, wrong, y)
    with pytest.raises(ValueError, match="not the rows"):
        check_same_rows(model, X[:300], y[:300])
    # After calibrate all rows of the class are those.
    model.set_params(estimator=LogisticRegression().fit(X, y)).calibrate(X[y == 0])
    check_same_rows(model, X, y)
    assert model.calibration_.sample.n_rows == np.count_nonzero(y == 0)


@pytest.mark.parametrize("maximum", [0.95, [0.95, 0.0, 0.0]])
def test_rows_that_no_one_would_give_to_the_other_class_cost_no_power(maximum):
    # Low scores are lost nearly always: without a cap the power would be 0.05.
    powers = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        phi = mr.FunctionMissingness(
            lambda X: 0.95 * (X < -1) * [1, 0, 0], rowwise=False, maximum=maximum
        )
        X0, X1 = rng.normal(size=(600, 3)), rng.normal([1.5, 0, 0], 1, (600, 3))
        X = np.concatenate([mr.corrupt(X0, phi, rng), X1])
        model = fitted(X, np.repeat([0, 1], 600), missingness={0: phi}, delta=0.05)
        powers.append(model.predict(rng.normal([1.5, 0, 0], 1, (2000, 3))).mean())
    assert np.mean(powers) > 0.4
