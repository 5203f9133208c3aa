"""Plans are uniform draws of missing cells, nested, and independent of each other."""

import numpy as np
import pytest
from data import lossy
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

import missratio as mr


def lossy_table(n=60, d=3, share=0.5, seed=0):
    rng = np.random.default_rng(seed)
    return lossy(rng.normal(size=(n, d)), share, seed + 1), rng.integers(2, size=n)


def cells(plan):
    return list(zip(plan.rows.tolist(), plan.columns.tolist(), strict=True))


def drawn_from(plan, label, column):
    chosen = (plan.labels == label) & (plan.columns == column)
    return plan.rows[chosen].tolist()


def test_every_set_of_missing_cells_is_equally_likely():
    X = np.array([[np.nan], [0.0], [np.nan], [np.nan], [1.0], [np.nan], [np.nan]])
    pairs = {}
    for seed in range(2000):
        plan = mr.plan_queries(X, per_feature=2, random_state=seed)
        pair = frozenset(plan.rows.tolist())
        pairs[pair] = pairs.get(pair, 0) + 1
    assert len(pairs) == 10
    assert chisquare(list(pairs.values())).pvalue > 0.001


def test_draws_of_two_features_are_independent():
    X = np.full((3, 2), np.nan)
    counts = np.zeros((3, 3))
    for seed in range(2000):
        plan = mr.plan_queries(X, per_feature=1, random_state=seed)
        counts[tuple(plan.rows)] += 1
    assert chisquare(counts.ravel()).pvalue > 0.001


@pytest.mark.parametrize(
    "source", [None, np.random.default_rng(1), np.random.RandomState(1)]
)
def test_the_seed_of_a_plan_gives_it_again(source):
    X, y = lossy_table()
    plan = mr.plan_queries(X, y, per_feature=5, random_state=source)
    again = mr.plan_queries(X, y, per_feature=5, random_state=plan.seed)
    assert cells(again) == cells(plan)
    other = mr.plan_queries(X, y, per_feature=5, random_state=plan.seed + 1)
    assert cells(other) != cells(plan)


@given(
    st.integers(6, 120), st.integers(6, 120), st.sampled_from(["per_feature", "budget"])
)
def test_a_larger_plan_begins_with_the_smaller(few, many, by):
    X, y = lossy_table(share=0.4)
    small, large = (
        mr.plan_queries(X, y, **{by: size}, random_state=0)
        for size in sorted((few, many))
    )
    assert by != "budget" or len(small) == min(few, many, np.isnan(X).sum())
    assert cells(large)[: len(small)] == cells(small)


def test_a_budget_is_spread_evenly_and_what_one_feature_lacks_goes_to_the_others():
    X = np.full((40, 3), np.nan)
    X[2:, 0] = 0.0
    plan = mr.plan_queries(X, budget=21, random_state=0)
    np.testing.assert_array_equal(np.bincount(plan.columns), [2, 10, 9])


def test_other_features_change_no_draw():
    pd = pytest.importorskip("pandas")
    X, y = lossy_table(d=4)
    X = pd.DataFrame(X, columns=list("abcd"))
    names = ["c", "a"]
    alone = mr.plan_queries(X[names], y, per_feature=5, random_state=0)
    among = mr.plan_queries(X, y, per_feature=5, random_state=0)
    for label in (0, 1):
        for place, name in enumerate(names):
            column = list(X.columns).index(name)
            assert drawn_from(alone, label, place) == drawn_from(among, label, column)


def test_whole_rows_are_drawn_and_asked_for_in_full():
    X, y = lossy_table(d=4, share=0.0)
    X[::2] = np.nan
    plan = mr.plan_queries(X, y, per_feature=3, rowwise=True, random_state=0)
    rows = plan.rows.reshape(-1, 4)
    assert (rows == rows[:, :1]).all()
    np.testing.assert_array_equal(np.bincount(y[rows[:, 0]]), [3, 3])
    np.testing.assert_array_equal(
        plan.columns.reshape(-1, 4), np.tile(range(4), (6, 1))
    )
    larger = mr.plan_queries(X, y, budget=35, rowwise=True, random_state=0)
    assert len(larger) == 32
    assert cells(larger)[:24] == cells(plan)


@pytest.mark.parametrize("budget", [7, 20, 41])
def test_a_budget_is_not_exceeded_by_rows(budget):
    X, y = lossy_table()
    plan = mr.plan_queries(X, y, budget=budget, rowwise=True, random_state=0)
    assert budget - 2 <= len(plan) <= budget
    for label in (0, 1):
        order = np.unique(plan.order[plan.labels == label])
        np.testing.assert_array_equal(order, np.arange(1, len(order) + 1))


def test_array_pandas_and_polars_give_one_plan():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, y = lossy_table()
    names = ["0", "1", "2"]
    frames = [pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)]
    plan = mr.plan_queries(X, y, per_feature=5, random_state=0)
    for frame, labels in zip(frames, [pd.Series(y), pl.Series(y)], strict=True):
        other = mr.plan_queries(frame, labels, per_feature=5, random_state=0)
        assert cells(other) == cells(plan)
        assert other.fingerprint == plan.fingerprint


def test_the_users_keys_stay_with_their_rows():
    X, y = lossy_table()
    patients = [f"P{place:03}" for place in range(len(X))]
    plan = mr.plan_queries(X, y, per_feature=2, ids=patients, random_state=0)
    assert plan.ids.tolist() == [patients[row] for row in plan.rows]


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_a_frame_has_a_line_for_each_cell_and_blanks_to_fill_in(backend):
    pytest.importorskip(backend)
    nw = pytest.importorskip("narwhals")
    X, y = lossy_table()
    plan = mr.plan_queries(X, y, per_feature=2, random_state=0)
    frame = nw.from_native(plan.to_frame(backend), eager_only=True)
    assert frame.columns == ["draw", "row", "class", "feature", "value", "key"]
    assert frame["row"].to_list() == plan.rows.tolist()
    assert frame.schema["value"] == nw.Float64
    assert frame["key"].n_unique() == len(plan)
    assert repr(plan) == "<QueryPlan: 12 cells of a table of shape (60, 3), seed 0>"


X, Y = lossy_table()


@pytest.mark.parametrize(
    ("X", "y", "options", "message"),
    [
        (X, Y, {}, "by one of per_feature"),
        (X, Y, {"per_feature": 1, "budget": 9}, "by one of per_feature"),
        (
            X,
            Y,
            {"per_feature": 0},
            "per_feature must be a whole number, 1 or .*: got 0",
        ),
        (X, Y, {"per_feature": 2.5}, "per_feature must be a whole number"),
        (X, Y, {"budget": True}, "budget must be a whole number"),
        (X, Y, {"budget": 5}, "one draw for each class and feature .* 6 values: got 5"),
        (X, Y, {"per_feature": 1, "random_state": -1}, "random_state"),
        (X, Y, {"per_feature": 1, "ids": [1, 2]}, "one key for each of 60 rows"),
        (np.zeros((3, 2)), None, {"per_feature": 1}, "nothing to look up"),
        (X[:3], ["a", None, "b"], {"per_feature": 1}, "y has none for row 1"),
        (X, Y[:-1], {"per_feature": 1}, "inconsistent numbers"),
    ],
)
def test_what_makes_no_plan_is_refused(X, y, options, message):
    with pytest.raises(ValueError, match=message):
        mr.plan_queries(X, y, **options)
