"""A fitted classifier's thresholds at other levels are those of a fit at that level."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.classifier import find_levels

STEP = mr.StepMissingness([1.0, 1.0], 0.0, 0.7)


def rows(n=1000, model=None):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (n, 2)), rng.normal(1, 1, (n, 2))])
    y = np.repeat([0, 1], n)
    if model is not None:
        X[y == 0] = mr.corrupt(X[y == 0], model, random_state=0)
    return X, y


def fitted(X, y, **parameters):
    settings = {"alpha": 0.1, "random_state": 0, **parameters}
    return mr.NeymanPearsonClassifier(mr.KLIEP(), **settings).fit(X, y)


@pytest.mark.parametrize("rule", ["auto", "thinning", "tuned-betting", "betting"])
@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
def test_a_level_is_a_fit_at_that_level(rule, alpha):
    X, y = rows(model=STEP)
    model = {"missingness": {0: STEP}, "rule": rule, "on_infeasible": "reject_all"}
    levels = find_levels(fitted(X, y, **model), X, y)
    chosen = levels.select([alpha])[0].threshold
    again = fitted(X, y, alpha=alpha, **model)
    assert (np.inf if chosen is None else chosen) == again.threshold_


@pytest.mark.parametrize("rule", ["auto", "thinning", "tuned-betting"])
def test_what_a_fit_gives_is_what_is_found_again(rule):
    X, y = rows(model=STEP)
    model = mr.NeymanPearsonClassifier(
        mr.KLIEP(), alpha=0.1, missingness={0: STEP}, rule=rule, random_state=0
    )
    levels = model._fit_levels(X, y)
    alphas = [0.05, 0.1, 0.2, 0.4]
    assert levels.select(alphas) == find_levels(model, X, y).select(alphas)


def test_thresholds_fall_as_the_level_rises():
    X, y = rows(model=STEP)
    levels = find_levels(fitted(X, y, missingness={0: STEP}, rule="thinning"), X, y)
    thresholds = [c.threshold for c in levels.select([0.1, 0.2, 0.3, 0.5])]
    assert thresholds == sorted(thresholds, reverse=True)


def test_a_split_that_was_not_seeded_is_found_all_the_same():
    X, y = rows()
    model = fitted(X, y, random_state=None)
    levels = find_levels(model, X, y)
    assert levels.select([0.1])[0].threshold == model.threshold_
    assert levels.sample.n_rows == len(model.calibration_index_)


def test_after_calibrate_all_rows_of_the_class_are_held():
    X, y = rows()
    estimator = LogisticRegression().fit(*rows())
    model = mr.NeymanPearsonClassifier(estimator, alpha=0.1).fit(X, y)
    model.calibrate(X[y == 0])
    levels = find_levels(model, X, y)
    assert levels.sample.n_rows == np.count_nonzero(y == 0)
    assert levels.select([0.1])[0].threshold == model.threshold_


def test_other_rows_are_refused():
    X, y = rows()
    model = fitted(X, y)
    for wrong in (X[::-1], X + 1.0):
        with pytest.raises(ValueError, match="not the rows"):
            find_levels(model, wrong, y)
    with pytest.raises(ValueError, match="not the rows"):
        find_levels(model, X[:300], y[:300])
