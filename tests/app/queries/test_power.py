"""A budget goes where it buys the most certified power."""

import numpy as np
import pytest
from data import answered, equicorrelated
from scipy.special import expit

import missratio as mr
from missratio.app.queries import plan as plan_module


def problem(n=(400, 600), seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], n)
    full = rng.normal(y[:, None] * 1.2, 1.0, (len(y), 3))
    X = np.where(rng.uniform(size=full.shape) < 0.25 * (full > 0), np.nan, full)
    return X, y, full


@pytest.fixture(scope="module")
def mixed():
    """A plan of rows and single values for both goals."""
    X, y, _ = problem()
    return mr.plan_queries(X, y, budget=100, goal="both", alpha=0.1, random_state=0)


def test_a_certificate_takes_rows_of_the_controlled_class_and_more_buy_more_power():
    X, y, _ = problem()
    options = {"goal": "certificate", "alpha": 0.1, "random_state": 0}
    plan, smaller = (mr.plan_queries(X, y, budget=n, **options) for n in (80, 40))
    assert plan.rowwise.all()
    assert set(plan.labels.tolist()) == {0}
    assert 75 <= len(plan) <= 80
    rows = np.unique(plan.rows)
    assert len(plan) == np.isnan(X[rows]).sum()
    # A smaller budget begins the same draw.
    assert set(smaller.rows.tolist()) < set(plan.rows.tolist())
    power = plan.power
    assert (np.diff(power.rows) > 0).all()
    assert power.power[-1] > power.power[0]
    # In words and as a table, with the range that other losses would make.
    first = f"{power.power[0]:.2f} ({power.lower[0]:.2f} to {power.upper[0]:.2f})"
    assert power.figure(0) == first
    assert str(power).startswith(f"{power.rows[0]} rows: power {first}")
    assert (power.lower < power.upper).any()
    assert "factor of 4.5 with each standard deviation" in power.range_meaning
    assert "eight of ten draws" in power.range_meaning


def test_both_mixes_rows_of_the_controlled_class_with_cells_elsewhere(mixed):
    X, y, _ = problem()
    assert 98 <= len(mixed) <= 100
    np.testing.assert_array_equal(mixed.rowwise, mixed.labels == 0)
    whole = np.unique(mixed.rows[mixed.rowwise])
    assert mixed.n_rows == len(whole)
    assert mixed.rowwise.sum() == np.isnan(X[whole]).sum()
    # Single values by how many are missing.
    counts = np.bincount(mixed.columns[~mixed.rowwise])
    missing = np.isnan(X[y == 1]).sum(axis=0)
    np.testing.assert_allclose(
        counts / counts.sum(), missing / missing.sum(), atol=0.03
    )
    # The planner says what it decided.
    power = mixed.power
    assert abs(mixed.rowwise.mean() - power.share) < 0.03
    assert mixed.content().endswith("single values")
    again = mr.plan_queries(X, y, budget=100, goal="both", alpha=0.1, random_state=0)
    np.testing.assert_array_equal(again.rows, mixed.rows)
    np.testing.assert_array_equal(again.power.power, power.power)


@pytest.mark.parametrize("left", [0, 5])
def test_what_one_part_cannot_use_goes_to_the_other(left):
    """Of one class few rows, or none, are incomplete."""
    X, y, full = problem()
    label = 1 if left else 0
    few = np.flatnonzero(np.isnan(X).any(axis=1) & (y == label))[left:]
    X[few] = full[few]
    plan = mr.plan_queries(X, y, budget=120, goal="both", alpha=0.1, random_state=0)
    assert (plan.labels == label).sum() == np.isnan(X[y == label]).sum()
    assert len(plan) >= 117


def test_the_answers_of_a_mixed_plan_are_rows_here_and_entries_there(mixed):
    X, y, full = problem()
    revealed = mr.QueryPlan.read(answered(mixed, full), X, y)
    assert revealed.rowwise.tolist() == [True, False]
    filled, inclusion = revealed.fill(X)
    lost = np.isnan(X)
    rows = inclusion[y == 0].min(axis=1)
    assert (inclusion[y == 0] == np.where(lost[y == 0], rows[:, None], 1.0)).all()
    np.testing.assert_allclose((1 / rows[rows > 0]).sum(), (y == 0).sum())
    entries = inclusion[y == 1]
    worth = np.where(entries > 0, 1 / np.where(entries > 0, entries, 1), 0)
    np.testing.assert_allclose(worth.sum(axis=0), (y == 1).sum())
    classifier = mr.NeymanPearsonClassifier(mr.KLIEP(), alpha=0.1, random_state=0)
    certificate = classifier.fit(filled, y, inclusion=inclusion).certificate_
    assert certificate.rule == "look-ups"
    assert certificate.looked_up > 0


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"goal": "power"}, "goal must be one of"),
        ({"goal": "both", "controlled_class": 7}, "labels of two classes"),
        ({"goal": "certificate", "budget": None}, "budget must be a whole number"),
        ({"goal": "both", "budget": 3}, "one draw for each class and feature"),
    ],
)
def test_what_is_refused(options, match):
    X, y, _ = problem()
    with pytest.raises(ValueError, match=match):
        mr.plan_queries(X, y, **{"budget": 50, "random_state": 0, **options})


def after_looking_up(plan, X, y, full, fresh, seed, alpha=0.1):
    """The power that comes, once the plan's values have been looked up."""
    filled, inclusion = mr.QueryPlan.read(answered(plan, full), X, y).fill(X)
    ratio = mr.FDivergenceRatio("js", l2=1e-3)
    classifier = mr.NeymanPearsonClassifier(
        ratio, alpha, on_infeasible="reject_all", random_state=seed
    )
    return classifier.fit(filled, y, inclusion=inclusion).predict(fresh).mean()


@pytest.mark.parametrize("slope", [1.0, -1.0])
def test_the_range_covers_what_comes_where_values_go_missing_by_what_they_are(
    slope, monkeypatch
):
    # Other budgets have no part in it.
    monkeypatch.setattr(plan_module, "MULTIPLES", (1.0,))
    forecasts, came = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        y = np.repeat([0, 1], 500)
        full = rng.normal(1.2 * y[:, None], 1.0, (1000, 2))
        lost = rng.random(full.shape) < expit(slope * full - 1.0)
        X = np.where(lost & (y == 0)[:, None], np.nan, full)
        plan = mr.plan_queries(
            X, y, budget=80, goal="certificate", alpha=0.1, random_state=seed
        )
        power, place = plan.power, np.flatnonzero(plan.power.values == 80)[0]
        forecasts.append([power.lower[place], power.power[place], power.upper[place]])
        fresh = rng.normal(1.2, 1.0, (20_000, 2))
        came.append(after_looking_up(plan, X, y, full, fresh, seed))
        assert (power.lower <= power.power).all()
        assert (power.power <= power.upper).all()
    lower, middle, upper = np.mean(forecasts, axis=0)
    # Random losses forecast too much where high values are lost, too little else.
    assert slope * (middle - np.mean(came)) > 0.07
    # But for the noise of four draws.
    noise = 2.0 * np.std(came) / np.sqrt(len(came))
    assert lower - noise < np.mean(came) < upper + noise


@pytest.mark.validity
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_on_random_tables_the_range_holds_and_the_suggested_budget_certifies():
    held = certified = 0
    for seed in range(40):
        rng = np.random.default_rng([99, seed])
        d, alpha = int(rng.integers(2, 7)), float(rng.choice([0.05, 0.1, 0.2]))
        y = np.repeat([0, 1], rng.integers([200, 150], [1500, 1200]))
        shift = rng.uniform(0.3, 1.2, d) * rng.choice([1, 1, 1, -1], d)
        full, fresh = (
            equicorrelated(rng, n, d, rng.uniform(0, 0.5)) for n in (len(y), 20_000)
        )
        full, fresh = full + y[:, None] * shift, fresh + shift
        phi = expit(rng.uniform(-3, -1.2, d) + rng.uniform(-2, 2, d) * full)
        X = np.where(rng.random(full.shape) < phi, np.nan, full)
        ask = {"goal": "both", "alpha": alpha, "random_state": seed}
        power = mr.plan_queries(X, y, budget=120, **ask).power
        place = power.enough
        plan = mr.plan_queries(X, y, budget=int(power.values[place]), **ask)
        came = after_looking_up(plan, X, y, full, fresh, seed, alpha)
        held += power.lower[place] - 0.02 <= came <= power.upper[place] + 0.02
        certified += came > 0.0
    assert held >= 34
    assert certified >= 38
