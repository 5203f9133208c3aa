"""What a threshold was chosen from is kept; a fitted estimator is calibrated alone."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from classifiers import certified
from data import corrupted, stacked
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import missratio as mr
from missratio.classifier import check_same_rows

STEP = mr.StepMissingness([1.0, 1.0], 0.0, 0.7)


def rows(n=1000, model=None):
    rng = np.random.default_rng(0)
    X, y = stacked(rng.normal(0, 1, (n, 2)), rng.normal(1, 1, (n, 2)))
    return X if model is None else corrupted(X, y, {0: model}), y


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


def powers(estimator, rule, n=300, seeds=4):
    """Of classifiers where low rows go missing, so that a cap on weights pays."""
    phi = mr.StepMissingness([-1.0, 0.0, 0.0], 0.0, 0.8)
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X0 = mr.corrupt(rng.normal(size=(2 * n, 3)), phi, rng)
        X1, fresh = (rng.normal([1.4, 0.5, 0], 1, (size, 3)) for size in (n, 2000))
        options = {"missingness": {0: phi}, "rule": rule, "random_state": seed}
        model = certified(estimator, delta=0.05, **options).fit(*stacked(X0, X1))
        found.append((model.predict(fresh) == 1).mean())
    return np.mean(found)


def test_rules_and_caps_are_judged_by_scores_of_rows_not_fitted_on():
    # In-sample, a forest tells the classes apart perfectly: power .33 by such scores.
    forest = RandomForestClassifier(25, random_state=0)
    auto = powers(forest, "auto")
    assert auto > 0.38
    assert auto > powers(forest, "counting") - 0.02


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
        X, y = stacked(mr.corrupt(X0, phi, rng), X1)
        model = fitted(X, y, missingness={0: phi})
        powers.append(model.predict(rng.normal([1.5, 0, 0], 1, (2000, 3))).mean())
    assert np.mean(powers) > 0.4


HALF = mr.StepMissingness([1.0, 0.0], 0.0, 0.5)


@pytest.fixture
def table(two_normals):
    return two_normals(500, 2, shift=1.5)


def fresh(label, n=500, seed=1):
    return np.random.default_rng(seed).normal(1.5 * label, 1.0, (n, 2))


@pytest.mark.parametrize("training", [False, True])
def test_missing_rows_are_weighted(table, training):
    X, y = table
    fitted = mr.KLIEP().fit(X, y)
    lost = mr.corrupt(fresh(0, 2000), HALF, 0)
    model = certified(fitted, missingness={0: HALF})
    others = mr.corrupt(fresh(0, 1000, seed=2), HALF, 1)
    model.calibrate(lost.tolist(), X0_training=others if training else None)
    assert model.certificate_.observed == (~np.isnan(lost[:, 0])).sum()
    if not training:
        assert model.certificate_.rule in ("thinning", "counting")
    assert 0.02 < model.certificate_.estimated_error <= 0.1
    assert mr.type_i_error(np.zeros(2000), model.predict(fresh(0, 2000, 5))) < 0.13


# Rows that no one would give to class 1 are nearly all lost: their weight is 20.
FAR = mr.StepMissingness([-1.0, 0.0], 1.0, 0.95)


def lost(n, seed, phi=FAR):
    return mr.corrupt(fresh(0, n, [7, seed]), phi, seed)


@pytest.mark.parametrize("others", [False, True])
def test_rows_that_do_not_calibrate_choose_a_cap_where_that_pays(table, others):
    fitted, powers = LogisticRegression().fit(*table), []
    for seed in range(5):
        model = certified(fitted, missingness={0: FAR}, random_state=seed)
        more = lost(45, 100 + seed) if others else None
        model.calibrate(lost(255 if others else 300, seed), X0_training=more)
        assert model.certificate_.rows == 255
        assert model.calibration_.trust.cap < 20.0
        assert "that go missing with probability above" in str(model.certificate_)
        powers.append((model.predict(fresh(1)) == 1).mean())
    # Without a cap a third of them certify any threshold.
    assert min(powers) > 0.5
    few = certified(fitted, missingness={0: HALF})
    few.calibrate(lost(300, 0, HALF), X0_training=lost(45, 1, HALF) if others else None)
    assert few.certificate_.rows == 300
    assert few.calibration_.trust.cap is None


@pytest.mark.parametrize(("slope", "least"), [(0.5, 0.6), (-2.0, 0.6), (2.0, 0.05)])
def test_a_cap_reaches_as_far_as_the_other_class_does(table, slope, least):
    # A logistic φ has no bound. Without a cap its powers were .36, .07 and .05, and
    # with one no larger than the weights seen .42, .68 and .09.
    fitted, powers = LogisticRegression().fit(*table), []
    phi = mr.LogisticMissingness(-1.0 if slope == 0.5 else 0.0, [slope, 0.0], True)
    for seed in range(8):
        model = certified(
            fitted, missingness={0: phi}, delta=0.05, on_infeasible="reject_all"
        ).calibrate(lost(400, seed, phi))
        assert model.certificate_.rows == 340
        powers.append((model.predict(fresh(1)) == 1).mean())
    assert np.mean(powers) > least


def test_the_rows_that_chose_a_cap_are_known(table):
    fitted, X0 = LogisticRegression().fit(*table), lost(300, 0)
    first, again = (
        certified(fitted, missingness={0: FAR}).calibrate(X0) for _ in range(2)
    )
    assert first.threshold_ == again.threshold_
    X, y = np.concatenate([X0, fresh(1)]), np.repeat([0, 1], [300, 500])
    check_same_rows(first, X, y)
    with pytest.raises(ValueError, match="not the rows that the classifier's"):
        check_same_rows(first, np.roll(X, 1, axis=0), y)
    frozen = certified(FrozenEstimator(fitted), missingness={0: FAR}).fit(X, y)
    assert len(frozen.calibration_index_) == frozen.certificate_.rows == 255
    check_same_rows(frozen, X, y)
    # Another sample, from which all calibrate.
    assert first.calibrate(X0, X0_training=lost(300, 1)).certificate_.rows == 300
    check_same_rows(first, X, y)


@pytest.mark.parametrize("controlled", ["ill", "well"])
def test_a_frozen_estimator_is_calibrated_by_all_rows_of_its_class(table, controlled):
    X, y = table
    names = np.array(["well", "ill"])[y]
    frozen = FrozenEstimator(LogisticRegression().fit(X, names))
    own = np.concatenate([fresh(0), fresh(1)])
    labels = np.repeat(["well", "ill"], 500)
    model = certified(frozen, controlled_class=controlled).fit(own, labels)
    alone = certified(frozen, controlled_class=controlled)
    alone.calibrate(own[labels == controlled], labels[labels == controlled])
    assert model.threshold_ == alone.threshold_
    assert model.certificate_.rows == 500
    assert len(model.training_index_) == 0
    assert mr.type_i_error(names, model.predict(X), controlled_class=controlled) < 0.15
    # φ weighs rows, and asks the frozen estimator for nothing.
    lossy = corrupted(own, labels, {controlled: HALF})
    model = certified(frozen, controlled_class=controlled, alpha=0.2)
    model.set_params(missingness={controlled: HALF}).fit(lossy, labels)
    assert model.certificate_.rows == 500
    with pytest.raises(ValueError, match=r"of the controlled class .* 500 of 1000"):
        alone.calibrate(own, labels)
    with pytest.raises(ValueError, match="knows the classes"):
        certified(frozen).fit(own, np.repeat([0, 1], 500))


def test_of_very_many_rows_one_further_fit_chooses_the_cap():
    fits = []

    class Trees(DecisionTreeClassifier):
        def fit(self, X, y, sample_weight=None):
            fits.append(len(X))
            return super().fit(X, y, sample_weight)

    phi, rng = mr.LogisticMissingness(-1.0, [1.0, 0.0], True), np.random.default_rng(0)
    for n_rows, expected in ((2_000, 4), (30_000, 2)):
        X, y = rows(n_rows, phi)
        fits.clear()
        model = certified(Trees(max_depth=4, random_state=0), missingness={0: phi})
        model.fit(X, y)
        assert len(fits) == expected
        assert (model.predict(rng.normal(0, 1, (20_000, 2))) == 1).mean() < 0.1
        assert (model.predict(rng.normal(1, 1, (20_000, 2))) == 1).mean() > 0.2


@pytest.mark.parametrize("seed", range(8))
def test_rows_are_within_reach_of_a_cap_in_use_as_in_calibration(seed):
    # Yes/no columns: many rows have one weight, but for the order of its product.
    rng = np.random.default_rng(seed)
    phi = mr.LogisticMissingness(
        [rng.uniform(-1.5, -0.3)] * 5, [rng.uniform(-3.0, -0.5)] * 5
    )
    Z0, Z1 = ((rng.normal(size=(n, 5)) > 0.0).astype(float) for n in (300, 600))
    X, y = stacked(mr.corrupt(Z0, phi, rng), np.maximum(Z1, rng.random(Z1.shape) < 0.5))
    model = certified(LogisticRegression(), missingness={0: phi}, alpha=0.15).fit(X, y)
    rows = (rng.normal(size=(500, 5)) > 0.0).astype(float)
    beyond = np.isneginf(model.score_samples(rows))
    calibrating = np.isneginf(model.calibration_sample(rows).values)
    assert np.count_nonzero(calibrating) == np.count_nonzero(beyond)
    alone = [np.isneginf(model.score_samples(row[None]))[0] for row in rows[:50]]
    np.testing.assert_array_equal(alone, beyond[:50])
    single = np.isneginf(model.score_samples(rows.astype(np.float32)))
    np.testing.assert_array_equal(single, beyond)
