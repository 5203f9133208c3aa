"""Answers as data: filled in, with the probability that the draw gave them."""

import numpy as np
import pytest
from classifiers import certified
from data import answered

import missratio as mr
from missratio.missingness import RowInclusion

pd = pytest.importorskip("pandas")


def problem(n=200, seed=0, share=0.3):
    rng = np.random.default_rng(seed)
    full = rng.normal(size=(n, 3))
    X = np.where(rng.random((n, 3)) < share * (full > 0), np.nan, full)
    return X, rng.integers(2, size=n), full


def planned(**options):
    """The same, and a plan of what to look up."""
    X, y, full = problem()
    return X, y, full, mr.plan_queries(X, y, **options, random_state=0)


@pytest.mark.parametrize("rowwise", [False, True])
def test_answers_have_the_share_of_what_they_were_drawn_from(rowwise):
    """Of their class and feature, or where rows were drawn of their class."""
    X, y, full, plan = planned(per_feature=5, rowwise=rowwise)
    shuffled = answered(plan, full).sample(frac=1.0, random_state=0)
    revealed = mr.QueryPlan.read(shuffled, X, y)
    filled, inclusion = revealed.fill(X)
    lost, drawn = np.isnan(X), np.zeros(X.shape, dtype=bool)
    drawn[plan.rows, plan.columns] = True
    np.testing.assert_array_equal(filled[drawn], full[drawn])
    np.testing.assert_array_equal(np.isnan(filled), lost & ~drawn)
    assert (inclusion[~lost] == 1.0).all()
    assert (inclusion[np.isnan(filled)] == 0.0).all()
    for label in (0, 1):
        for column in range(3):
            pool = lost.any(axis=1) if rowwise else lost[:, column]
            share = 5 / (pool & (y == label)).sum()
            of_pool = drawn[:, column] & (y == label)
            assert inclusion[of_pool, column] == pytest.approx(share)
    # Weights stand for all rows.
    each = inclusion.min(axis=1, keepdims=True) if rowwise else inclusion
    weights = np.where(each > 0, 1 / np.where(each > 0, each, 1), 0)
    np.testing.assert_allclose(weights.sum(axis=0), len(X))
    with pytest.raises(ValueError, match="another table"):
        revealed.fill(X[:-1])


@pytest.mark.parametrize("rowwise", [False, True])
def test_cells_that_are_lost_since_the_draw_have_no_part_in_it(rowwise):
    """A code for missing may be told after the plan was drawn."""
    X, y, full, plan = planned(per_feature=9, rowwise=rowwise)
    revealed = mr.QueryPlan.read(answered(plan, full), X, y)
    # Rows that were drawn are among those that lose another value.
    coded = np.zeros(len(X), dtype=bool)
    coded[plan.rows[:4]] = coded[np.flatnonzero(~np.isnan(X).any(axis=1))[:6]] = True
    since = coded[:, None] & ~np.isnan(X) & [True, False, False]
    assert since.any(axis=1).sum() > 3
    filled, inclusion = revealed.fill(np.where(since, np.nan, X))
    np.testing.assert_array_equal(np.isnan(inclusion), since)
    assert np.isnan(filled[since]).all()
    lost = since.any(axis=1)
    # Others are as if the rows had not been there, and those stand for themselves.
    drawn = RowInclusion.of(inclusion, ~np.isnan(filled).any(axis=1), 3, y)
    assert (drawn.probability[lost] == 0.0).all()
    for label in (0, 1):
        mine = lost & (y == label)
        assert not np.isin(drawn.strata[~mine], drawn.strata[mine]).any()
    before, shares = revealed.fill(X)
    whole = RowInclusion.of(shares, ~np.isnan(before).any(axis=1), 3, y)
    np.testing.assert_array_equal(
        drawn.probability[~lost] > 0.0, whole.probability[~lost] > 0.0
    )
    if rowwise:
        pool = np.isnan(X).any(axis=1) & ~lost & (y == 0)
        share = drawn.probability[pool]
        assert share.max() == pytest.approx((share > 0.0).sum() / pool.sum())
    # A plan is not read with fewer cells missing.
    with pytest.raises(ValueError, match="another table"):
        revealed.fill(full)


def test_a_certificate_counts_rows_that_nothing_stands_for_as_errors():
    rng, y = np.random.default_rng(0), np.arange(1200) % 2
    full = rng.normal(size=(1200, 2)) + y[:, None]
    X = full.copy()
    X[rng.random(1200) < 0.2, 0] = np.nan
    plan = mr.plan_queries(X, y, per_feature=80, rowwise=True, random_state=0)
    revealed = mr.QueryPlan.read(answered(plan, full), X, y)
    errors = []
    for share in (0.0, 0.05, 0.2):
        coded = np.where(rng.random((1200, 2)) < [0.0, share], np.nan, X)
        filled, inclusion = revealed.fill(coded)
        options = {"alpha": 0.15, "delta": 0.05, "on_infeasible": "reject_all"}
        model = certified(mr.FDivergenceRatio("js"), **options)
        model.fit(filled, y, inclusion=inclusion)
        errors.append((model.predict(full[y == 0]) == 1).mean())
    assert errors[0] > errors[1] > errors[2] == 0.0
    assert not model.certificate_.certified


def test_means_are_unbiased_whatever_made_values_go_missing():
    X, y, full = problem(n=400, share=0.9)
    means = []
    for seed in range(150):
        plan = mr.plan_queries(X, y, per_feature=5, random_state=seed)
        filled, inclusion = mr.QueryPlan.read(answered(plan, full), X, y).fill(X)
        known = inclusion > 0
        means.append(
            (np.where(known, filled, 0) / np.where(known, inclusion, 1)).mean(0)
        )
    error = np.mean(means, axis=0) - full.mean(axis=0)
    spread = np.std(means, axis=0) / np.sqrt(150)
    assert (np.abs(error) < 4 * spread).all()
    assert (np.abs(np.nanmean(X, axis=0) - full.mean(axis=0)) > 12 * spread).all()


def test_answers_that_stop_half_way_are_a_smaller_draw():
    X, y, full, plan = planned(per_feature=8)
    smaller = mr.plan_queries(X, y, per_feature=3, random_state=0)
    half = mr.QueryPlan.read(answered(plan, full, upto=len(smaller)), X, y).fill(X)
    whole = mr.QueryPlan.read(answered(smaller, full), X, y).fill(X)
    for one, other in zip(half, whole, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("mark", [None, "not found", " Not found "])
def test_a_gap_counts_as_not_found(mark):
    X, y, full, plan = planned(per_feature=8)
    frame = answered(plan, full)
    frame.loc[0, "value"] = mark
    filled, inclusion = mr.QueryPlan.read(frame, X, y).fill(X)
    at = plan.rows[0], plan.columns[0]
    n_missing = np.isnan(X[y == y[at[0]], at[1]]).sum()
    assert np.isnan(filled[at])
    # Those found stand for it as well.
    assert inclusion[at] == 7 / n_missing


def test_a_mark_at_the_end_is_part_of_the_draw():
    X, y, full, plan = planned(per_feature=4, rowwise=True)
    frame = answered(plan, full)
    last = plan.rows[(plan.labels == 0) & (plan.order == 4)][0]
    frame.loc[frame["row"] == last, "value"] = None
    _, blank = mr.QueryPlan.read(frame, X, y).fill(X)
    frame.loc[(frame["row"] == last).idxmax(), "value"] = "not found"
    _, marked = mr.QueryPlan.read(frame, X, y).fill(X)
    lost = np.isnan(X[last])
    assert (blank[last][lost] == 0.0).all()
    assert (marked[last][lost] > 0.0).all()


def test_a_line_taken_out_before_the_last_answer_is_missed():
    X, y, full = problem()
    frame = answered(mr.plan_queries(X, y, per_feature=8, random_state=0), full)
    revealed = mr.QueryPlan.read(frame.drop(index=6), X, y)
    with pytest.raises(
        ValueError, match=r"taken out .* class 0, feature '0' .*: draw 2"
    ):
        revealed.fill(X)
    # At the end it is a smaller draw.
    mr.QueryPlan.read(frame[:-6], X, y).fill(X)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_dataframe_stays_one(kind):
    module = pytest.importorskip(kind)
    X, y, full = problem()
    table = module.DataFrame(dict(zip("abc", X.T, strict=True)))
    plan = mr.plan_queries(table, y, per_feature=4, random_state=0)
    filled, _ = mr.QueryPlan.read(answered(plan, full), table, y).fill(table)
    assert isinstance(filled, module.DataFrame)
    assert list(filled.columns) == list("abc")
    at = plan.rows, plan.columns
    np.testing.assert_array_equal(filled.to_numpy()[at], full[at])


def test_the_written_table_shows_where_a_row_is(tmp_path):
    X, y, _ = problem()
    plan = mr.plan_queries(
        X, y, per_feature=2, lines=np.arange(len(X)) + 2, random_state=0
    )
    plan.write(tmp_path / "plan.csv")
    table = pd.read_csv(tmp_path / "plan.csv")
    # A row goes by one number, that in the user's file.
    assert list(table.columns)[:2] == ["draw", "line"]
    assert "row" not in table
    np.testing.assert_array_equal(table["line"], plan.rows + 2)
    with pytest.raises(ValueError, match="lines must hold one key"):
        mr.plan_queries(X, y, per_feature=2, lines=[1, 2])


@pytest.mark.parametrize("kind", ["str", "category"])
def test_words_are_looked_up_as_words(kind):
    rng = np.random.default_rng(0)
    y, word = rng.integers(2, size=400), rng.choice(["no", "yes"], 400)
    full = pd.DataFrame({"word": word, "number": rng.normal(size=400)})
    full = full.astype({"word": kind})
    X = full.mask(rng.random(full.shape) < 0.3)
    plan = mr.plan_queries(
        X, y, budget=60, goal="certificate", alpha=0.2, random_state=0
    )
    answers = plan.to_frame()
    answers["value"] = [full.loc[i, j] for i, j in answers[["row", "feature"]].values]
    filled, inclusion = mr.QueryPlan.read(answers, X, y).fill(X)
    assert filled["word"].dtype == full["word"].dtype
    pd.testing.assert_frame_equal(filled, full.where(inclusion > 0))
    answers.loc[answers["feature"] == "word", "value"] = "yess"
    with pytest.raises(ValueError, match="its categories, 'no', 'yes': got 'yess'"):
        mr.QueryPlan.read(answers, X, y)
