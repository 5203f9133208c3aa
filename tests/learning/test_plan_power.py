"""A budget goes where it buys the most certified power."""

import numpy as np
import pytest

import missratio as mr

pd = pytest.importorskip("pandas")


def problem(n=(400, 600), seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], n)
    full = rng.normal(y[:, None] * 1.2, 1.0, (len(y), 3))
    X = np.where(rng.uniform(size=full.shape) < 0.25 * (full > 0), np.nan, full)
    return X, y, full


def test_a_certificate_takes_rows_of_the_controlled_class():
    X, y, _ = problem()
    plan = mr.plan_queries(
        X, y, budget=60, goal="certificate", alpha=0.1, random_state=0
    )
    assert plan.rowwise
    assert set(plan.labels.tolist()) == {0}
    assert 55 <= len(plan) <= 60
    rows = np.unique(plan.rows)
    assert len(plan) == np.isnan(X[rows]).sum()


def test_more_look_ups_promise_more_power():
    X, y, _ = problem()
    plan = mr.plan_queries(
        X, y, budget=80, goal="certificate", alpha=0.1, random_state=0
    )
    power = plan.power
    assert (np.diff(power.rows) > 0).all()
    assert power.power[-1] > power.power[0]
    assert f"{power.rows[0]} rows: power {power.power[0]:.2f}; " in str(power)
    assert list(power.to_frame().columns) == ["values", "rows", "power"]


def test_both_classes_share_a_budget():
    X, y, full = problem()
    plan = mr.plan_queries(X, y, budget=100, goal="both", alpha=0.1, random_state=0)
    assert 94 <= len(plan) <= 100
    assert set(plan.labels.tolist()) == {0, 1}
    spent = (plan.labels == 0).mean()
    assert abs(spent - plan.power.share) < 0.05
    frame = plan.to_frame()
    frame["value"] = full[plan.rows, plan.columns]
    _, inclusion = mr.QueryPlan.read(frame, X, y).fill(X)
    assert inclusion.shape == X.shape
    whole = inclusion.min(axis=1)  # a row is drawn with all that it misses
    for label in (0, 1):
        weights = 1 / whole[(y == label) & (whole > 0)]
        np.testing.assert_allclose(weights.sum(), (y == label).sum())


def test_one_seed_is_one_plan_with_a_goal_too():
    X, y, _ = problem()
    plans = [
        mr.plan_queries(X, y, budget=40, goal="both", alpha=0.2, random_state=3)
        for _ in range(2)
    ]
    np.testing.assert_array_equal(plans[0].rows, plans[1].rows)
    np.testing.assert_array_equal(plans[0].power.power, plans[1].power.power)


def test_a_larger_budget_extends_the_draw_of_each_class():
    X, y, _ = problem()
    small, large = (
        mr.plan_queries(X, y, budget=size, goal="certificate", random_state=1)
        for size in (30, 60)
    )
    assert set(small.rows.tolist()) < set(large.rows.tolist())


def test_a_ratio_takes_values_of_every_class_and_feature():
    X, y, _ = problem()
    plan = mr.plan_queries(X, y, budget=60, goal="ratio", random_state=0)
    assert not plan.rowwise
    counts = [
        ((plan.labels == label) & (plan.columns == column)).sum()
        for label in (0, 1)
        for column in range(3)
    ]
    assert counts == [10] * 6


def test_only_the_other_class_has_holes():
    X, y, full = problem()
    X[y == 0] = full[y == 0]
    plan = mr.plan_queries(X, y, budget=30, goal="both", alpha=0.1, random_state=0)
    assert set(plan.labels.tolist()) == {1}


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"goal": "power"}, "goal must be one of"),
        ({"goal": "both", "controlled_class": 7}, "labels of two classes"),
        ({"goal": "certificate", "budget": None}, "budget must be a whole number"),
    ],
)
def test_what_is_refused(options, match):
    X, y, _ = problem()
    with pytest.raises(ValueError, match=match):
        mr.plan_queries(X, y, **{"budget": 50, "random_state": 0, **options})
