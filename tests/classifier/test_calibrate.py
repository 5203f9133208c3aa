"""Calibrating an estimator that is fitted already."""

import numpy as np
import pytest
from classifiers import certified
from optional_packages import optional
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from missratio import (
    KLIEP,
    NeymanPearsonClassifier,
    StepMissingness,
    corrupt,
    power,
    sensitivity_curve,
    type_i_error,
)

pd = optional("pandas")

STEP = StepMissingness([1.0, 0.0], 0.0, 0.5)


@pytest.fixture
def table(two_normals):
    return two_normals(500, 2, shift=1.5)


def fresh(label, n=500, seed=1):
    return np.random.default_rng(seed).normal(1.5 * label, 1.0, (n, 2))


@pytest.mark.parametrize("wrap", [lambda e: e, FrozenEstimator])
@pytest.mark.parametrize("estimator", [LogisticRegression(), KLIEP()])
def test_the_estimator_stays_as_it_is(table, wrap, estimator):
    X, y = table
    fitted = wrap(estimator.fit(X, y))
    before = fitted.decision_function(X)
    model = certified(fitted).calibrate(fresh(0))
    assert model.estimator_ is fitted
    np.testing.assert_array_equal(fitted.decision_function(X), before)
    assert type_i_error(y, model.predict(X)) < 0.15
    assert power(y, model.predict(X)) > 0.5
    assert model.certificate_.rows == 500


@pytest.mark.parametrize("controlled", [0, 1])
@pytest.mark.parametrize("labels", [(0, 1), ("ill", "well"), (-1, 1)])
@pytest.mark.parametrize("estimator", [LogisticRegression(), KLIEP()])
def test_any_label_can_be_controlled(table, controlled, labels, estimator):
    X, y = table
    names = np.array(labels)[y]
    label = labels[controlled]
    fitted = estimator.fit(X, names)
    model = certified(fitted, controlled_class=label).calibrate(fresh(controlled))
    predicted = model.predict(X)
    assert set(model.classes_.tolist()) == set(labels)
    assert type_i_error(names, predicted, controlled_class=label) < 0.15
    assert power(names, predicted, controlled_class=label) > 0.5
    decision = model.decision_function(X)
    np.testing.assert_array_equal(predicted, model.classes_[(decision > 0).astype(int)])


@pytest.mark.parametrize("training", [False, True])
def test_missing_rows_are_weighted(table, training):
    X, y = table
    fitted = KLIEP().fit(X, y)
    lost = corrupt(fresh(0, 2000), STEP, 0)
    model = certified(fitted, missingness={0: STEP})
    others = corrupt(fresh(0, 1000, seed=2), STEP, 1)
    model.calibrate(lost.tolist(), others if training else None)
    assert model.certificate_.observed == (~np.isnan(lost[:, 0])).sum()
    if not training:
        assert model.certificate_.rule in ("thinning", "counting")
    assert 0.02 < model.certificate_.estimated_error <= 0.1
    assert type_i_error(np.zeros(2000), model.predict(fresh(0, 2000, 5))) < 0.13


def test_tuned_bets_need_training_rows(table):
    X, y = table
    lost = corrupt(fresh(0, 2000), STEP, 0)
    model = certified(KLIEP().fit(X, y), missingness={0: STEP}, rule="tuned-betting")
    with pytest.raises(ValueError, match="learns its bet from training rows"):
        model.calibrate(lost)
    model.calibrate(lost, corrupt(fresh(0, 1000, 7), STEP, 0))
    assert model.certificate_.rule == "tuned-betting"


def test_a_pipeline_and_a_dataframe_will_do(table):
    X, y = table
    names = ["a", "b"]
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    pipeline.fit(pd.DataFrame(X, columns=names), y)
    model = certified(pipeline).calibrate(pd.DataFrame(fresh(0), columns=names))
    assert model.feature_names_in_.tolist() == names
    assert power(y, model.predict(pd.DataFrame(X, columns=names))) > 0.5


def test_no_rows_are_given_up_for_a_smaller_bound_where_nobody_knows_the_cost():
    # Rows above the threshold all have the largest weight: a cap would give them up.
    rng = np.random.default_rng(0)
    phi = StepMissingness(1.0, 0.0, 0.75)
    X0, X0_training = (corrupt(rng.normal(size=(2000, 1)), phi, rng) for _ in range(2))
    X, y = rng.normal(size=(400, 1)), np.repeat([0, 1], 200)
    X[200:] += 1.0
    clf = NeymanPearsonClassifier(
        KLIEP().fit(X, y), alpha=0.1, missingness={0: phi}, random_state=0
    )
    clf.calibrate(X0, X0_training)
    fresh = rng.normal(size=(20_000, 1))
    assert 0.05 < np.mean(clf.predict(fresh)) <= 0.1


# Rows that no one would give to class 1 are nearly all lost: their weight is 20.
FAR = StepMissingness([-1.0, 0.0], 1.0, 0.95)


def lost(n, seed, phi=FAR):
    return corrupt(fresh(0, n, [7, seed]), phi, seed)


def test_a_fifth_of_the_rows_chooses_a_cap_where_that_pays(table):
    fitted, found = LogisticRegression().fit(*table), []
    for seed in range(5):
        model = certified(fitted, missingness={0: FAR}, random_state=seed)
        model.calibrate(lost(300, seed))
        certificate = model.certificate_
        assert certificate.rows == 240
        assert model.calibration_.trust.cap < 20.0
        assert "that go missing with probability above" in str(certificate)
        found.append((model.predict(fresh(1)) == 1).mean())
    # Without a cap a third of them certify any threshold.
    assert min(found) > 0.5


@pytest.mark.parametrize("n", [300, 1000])
def test_all_rows_calibrate_where_a_cap_cannot_pay(table, n):
    fitted = LogisticRegression().fit(*table)
    model = certified(fitted, missingness={0: STEP}).calibrate(lost(n, 0, STEP))
    assert model.certificate_.rows == n
    assert model.calibration_.trust.cap is None


def test_training_rows_choose_a_cap_where_there_are_any(table):
    fitted = LogisticRegression().fit(*table)
    model = certified(fitted, missingness={0: FAR})
    model.calibrate(lost(300, 0), lost(300, 1))
    assert model.certificate_.rows == 300
    assert model.calibration_.trust.cap < 20.0
    assert (model.predict(fresh(1)) == 1).mean() > 0.5


def test_a_fit_chooses_a_cap_where_phi_has_a_bound(table):
    X = np.concatenate([lost(600, 0), fresh(1)])
    model = certified(LogisticRegression(), missingness={0: FAR})
    model.fit(X, np.repeat([0, 1], [600, 500]))
    assert model.calibration_.trust.cap < 20.0
    assert (model.predict(fresh(1)) == 1).mean() > 0.5


def test_the_rows_that_chose_a_cap_are_known(table):
    fitted, X0 = LogisticRegression().fit(*table), lost(300, 0)
    first, again = (
        certified(fitted, missingness={0: FAR}).calibrate(X0) for _ in range(2)
    )
    assert first.threshold_ == again.threshold_
    X, y = np.concatenate([X0, fresh(1)]), np.repeat([0, 1], [300, 500])
    sensitivity_curve(first, X, y, slopes=[0.0], factors=[1.0])
    with pytest.raises(ValueError, match="not the rows that the classifier's"):
        sensitivity_curve(first, np.roll(X, 1, axis=0), y)
    # Another sample, from which all calibrate.
    assert first.calibrate(X0, lost(300, 1)).certificate_.rows == 300
    sensitivity_curve(first, X, y, slopes=[0.0], factors=[1.0])
