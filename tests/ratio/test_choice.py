"""The ratio that predicts rows held out best."""

import numpy as np
import pytest
from sklearn.base import clone

import missratio as mr


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
