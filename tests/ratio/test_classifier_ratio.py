"""Classifiers as ratios, and importance weights."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import missratio as mr

PHI = mr.StepMissingness([1.0], 0.3, 0.8)


def shifted(n1=400, n0=900, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(1, 1, (n1, 1)), rng.normal(0, 1, (n0, 1))


def test_logistic_regression_is_the_jensen_shannon_ratio():
    X1, X0 = shifted()
    plain = LogisticRegression(C=np.inf, tol=1e-10)
    ours = mr.density_ratio(X1, X0, mr.ClassifierRatio(plain))
    known = mr.density_ratio(X1, X0, mr.FDivergenceRatio("js"))
    at = np.linspace(-2, 3, 11)[:, None]
    np.testing.assert_allclose(
        ours.predict_log_ratio(at), known.predict_log_ratio(at), atol=1e-4
    )


def test_the_number_of_rows_of_a_class_does_not_matter():
    X1, X0 = shifted()
    estimator = mr.ClassifierRatio(LogisticRegression(C=np.inf))
    once = mr.density_ratio(X1, X0, estimator)
    thrice = mr.density_ratio(np.repeat(X1, 3, axis=0), X0, estimator)
    assert thrice.predict_log_ratio([[1.0]]) == pytest.approx(
        once.predict_log_ratio([[1.0]]), abs=1e-4
    )


def test_weights_for_missing_rows_reach_a_pipeline():
    Z1, Z0 = shifted(4000, 4000)
    X1 = mr.corrupt(Z1, PHI, random_state=0)
    inner = make_pipeline(StandardScaler(), LogisticRegression(C=np.inf))
    fitted = mr.density_ratio(X1, Z0, mr.ClassifierRatio(inner), missingness={1: PHI})
    slope = np.diff(fitted.predict_log_ratio([[0.0], [1.0]]))
    assert slope == pytest.approx(1.0, abs=0.12)
    ignored = mr.density_ratio(X1, Z0, mr.ClassifierRatio(inner), missingness="ignore")
    assert np.diff(ignored.predict_log_ratio([[0.0], [1.0]])) < 0.7


def test_boosted_trees_are_a_ratio_and_calibration_tames_them():
    rng = np.random.default_rng(1)
    X1, X0 = rng.normal(0.5, 1, (400, 2)), rng.normal(0, 1, (400, 2))
    trees = HistGradientBoostingClassifier(max_iter=40, random_state=0)
    fresh = rng.normal(0.5, 1, (4000, 2)), rng.normal(0, 1, (4000, 2))
    X, y = np.concatenate(fresh), np.repeat([1, 0], 4000)
    plain = mr.density_ratio(X1, X0, mr.ClassifierRatio(trees))
    calibrated = CalibratedClassifierCV(trees, cv=2)
    tamed = mr.density_ratio(X1, X0, mr.ClassifierRatio(calibrated))
    assert tamed.score(X, y) > plain.score(X, y) + 0.02
    assert tamed.score(X, y) > 0.0


def test_classifiers_without_probabilities_or_sample_weights_are_refused():
    X1, X0 = shifted()
    with pytest.raises(TypeError, match="Wrap it in CalibratedClassifierCV"):
        mr.density_ratio(X1, X0, mr.ClassifierRatio(LinearSVC()))
    calibrated = CalibratedClassifierCV(LinearSVC())
    fitted = mr.density_ratio(X1, X0, mr.ClassifierRatio(calibrated))
    assert fitted.predict_ratio([[2.0]]) > 2.0
    with pytest.raises(ValueError, match="sample_weight"):
        mr.density_ratio(X1, X0, mr.ClassifierRatio(KNeighborsClassifier()))


# Importance weights.


@pytest.mark.parametrize(
    "estimator",
    [mr.KLIEP(), mr.NaiveBayesRatio(), mr.KernelRatio("kliep", random_state=0)],
)
def test_importance_weights_make_up_for_missing_rows_of_the_denominator(estimator):
    Z1, Z0 = shifted(6000, 6000)
    X0 = mr.corrupt(Z0, PHI, random_state=3)
    fitted = mr.density_ratio(Z1, X0, estimator, missingness={0: PHI})
    weights = fitted.importance_weights(X0)
    gone = np.isnan(X0[:, 0])
    assert not weights[gone].any()
    assert weights.sum() == pytest.approx(6000)
    mean = np.average(X0[~gone, 0], weights=weights[~gone])
    assert mean == pytest.approx(1.0, abs=0.12)
    clipped = fitted.importance_weights(X0, clip=2.0)
    assert clipped.sum() == pytest.approx(6000)
    assert np.ptp(clipped) < np.ptp(weights)


def test_importance_weights_refuse_what_they_can_not_scale():
    X1, X0 = shifted(50, 50)
    fitted = mr.density_ratio(X1, X0, mr.KLIEP())
    with pytest.raises(ValueError, match="clip"):
        fitted.importance_weights(X0, clip=0.0)
    known = mr.density_ratio(
        X1, mr.corrupt(X0, PHI, random_state=0), missingness={0: PHI}
    )
    with pytest.raises(ValueError, match="sum to"):
        known.importance_weights(np.full((3, 1), np.nan))


# The ratio that predicts rows held out best.


def table(law, seed=0, n_rows=300):
    rng = np.random.default_rng(seed)
    X1, X0 = rng.normal(size=(2, n_rows, 2))
    X1 = X1 + 1.0 if law == "shift" else X1 / 2.0
    return np.concatenate([X1, X0]), np.repeat([1, 0], n_rows)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("law", "chosen"),
    [
        ("shift", ("Jensen-Shannon", "KLIEP")),
        ("spread", ("kernels", "trees")),
    ],
)
def test_planes_for_a_shift_and_bends_for_a_spread(law, chosen, seed):
    X, y = table(law, seed)
    ratio = mr.Ratio(random_state=0).fit(X, y)
    best, *others = ratio.comparison_.values()
    assert next(iter(ratio.comparison_)) in chosen
    assert best == min([best, *others]) < np.log(2.0) - 0.05
    assert len(ratio.comparison_) == 4
    assert not ratio.left_out_
    fresh = table(law, seed + 10, 2000)
    assert ratio.score(*fresh) == pytest.approx(np.log(2.0) - best, abs=0.05)
    # It is the estimator by itself, fitted to all rows.
    alone = clone(ratio.estimator_).fit(X, y)
    np.testing.assert_allclose(ratio.predict_ratio(X), alone.predict_ratio(X))


def test_values_missing_not_at_random_are_weighed_in_the_choice_and_in_the_fit():
    phi = mr.LogisticMissingness(intercept=-1.0, coef=[1.5, 1.5], rowwise=True)
    X, y = table("shift", n_rows=600)
    whole = mr.Ratio(random_state=0).fit(X, y)
    X[y == 0] = mr.corrupt(X[y == 0], phi, random_state=0)
    weighed = mr.Ratio(missingness={0: phi}, random_state=0).fit(X, y)
    alone = mr.Ratio(missingness=phi, random_state=0).fit(X, y)
    assert alone.comparison_ == weighed.comparison_
    assert weighed.estimator_.missingness == {0: phi}
    ignored = mr.Ratio(missingness="ignore", random_state=0).fit(X, y)
    losses = [min(each.comparison_.values()) for each in (whole, weighed, ignored)]
    assert abs(losses[1] - losses[0]) < 0.04 < losses[0] - losses[2]
    rows = table("shift", 1, 2000)[0]
    errors = [
        np.abs(each.predict_log_ratio(rows) - rows.sum(axis=1) + 1.0).mean()
        for each in (weighed, ignored)
    ]
    assert errors[0] < 0.3 < errors[1]
    with pytest.raises(ValueError, match="NaN"):
        mr.Ratio(random_state=0).fit(X, y)


def test_what_cannot_be_fitted_is_left_out_and_says_why():
    X, y = table("shift")
    X[y == 1] += 20.0
    ratio = mr.Ratio(random_state=0).fit(X, y)
    assert set(ratio.left_out_) == {"Jensen-Shannon", "KLIEP"}
    assert "no finite optimum" in ratio.left_out_["KLIEP"]
    X[y == 1] = np.nan
    with pytest.raises(ValueError, match="Class 1 has no"):
        mr.Ratio(missingness="ignore", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="cv"):
        mr.Ratio(cv=1).fit(*table("shift"))


def test_weights_and_designs_reach_every_candidate():
    X, y = table("shift")
    doubled = mr.Ratio(random_state=0).fit(X, y, np.where(X[:, 0] > 0.0, 2.0, 0.5))
    design = mr.Ratio(random_state=0).fit(
        X, y, inclusion=np.where(X[:, 0] > 0.0, 0.25, 1.0)
    )
    assert doubled.comparison_ == pytest.approx(design.comparison_)
