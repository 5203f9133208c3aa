"""Thresholds from looked-up rows: exact, and without a word about φ."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom, hypergeom

from missratio.threshold import (
    BinomialRule,
    CalibrationSample,
    LookUpRule,
    fewest_look_ups,
    looked_up_sample,
)
from missratio.threshold.look_ups import (
    ExactTest,
    conditional_level,
    hypergeometric_tail,
)


def one_stratum(n_rows, size, drawn, alpha, delta):
    """Made for just the draw that came up."""
    test = ExactTest(n_rows, size, drawn, None, alpha, delta)
    test.level = conditional_level(n_rows, size, [drawn], alpha, delta)
    return test


def threshold(scores, inclusion, alpha=0.1, delta=0.05, strata=None, expected="own"):
    if expected == "own":
        incomplete = np.asarray(inclusion) < 1.0
        drawn = np.asarray(inclusion)[incomplete] > 0.0
        expected = incomplete.mean(), drawn.mean() if len(drawn) else 1.0
    sample = looked_up_sample(scores, inclusion, strata, expected=expected)
    return LookUpRule().select(sample, alpha, delta).threshold


@pytest.mark.parametrize("seed", range(10))
def test_the_tail_is_the_hypergeometric_one(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 80))
    drawn, k = int(rng.integers(0, size + 1)), int(rng.integers(0, 12))
    expected = hypergeom.cdf(k, size, np.arange(size + 1), drawn)
    tail = hypergeometric_tail(size, drawn, k, size)
    assert_allclose(tail, expected, atol=1e-12)
    # Where more than k rows above must be among the drawn ones, it is no rounded zero.
    assert (tail[size - drawn + k + 1 :] == 0.0).all()


def largest_probability_of_passing(test, n_rows, size, drawn, alpha):
    """At an error of α: whatever number of incomplete rows each number above has."""
    total = 0.0
    for n_above in range(n_rows + 1):
        worst = 0.0
        for incomplete in range(min(n_above, size) + 1):
            if n_above - incomplete > n_rows - size:
                continue
            k = np.arange(drawn + 1)
            mass = hypergeom.pmf(k, size, incomplete, drawn)
            complete = n_above - incomplete
            passes = [mass[i] > 0 and test.passes(complete, int(i)) for i in k.tolist()]
            worst = max(worst, float(mass[passes].sum()))
        total += float(binom.pmf(n_above, n_rows, alpha)) * worst
    return total


@pytest.mark.parametrize("seed", range(8))
def test_no_adversary_makes_it_pass_more_often_than_delta(seed):
    rng = np.random.default_rng(seed)
    n_rows, size = int(rng.integers(20, 70)), int(rng.integers(4, 20))
    drawn = int(rng.integers(0, size + 1))
    alpha, delta = float(rng.uniform(0.1, 0.4)), float(rng.uniform(0.05, 0.3))
    test = one_stratum(n_rows, size, drawn, alpha, delta)
    found = largest_probability_of_passing(test, n_rows, size, drawn, alpha)
    assert found <= delta
    # Most of δ is used.
    test = one_stratum(60, 20, 10, 0.2, 0.1)
    assert largest_probability_of_passing(test, 60, 20, 10, 0.2) > 0.08


@pytest.mark.parametrize("seed", range(5))
def test_the_conditional_level_falls_and_its_mean_is_delta_at_most(seed):
    rng = np.random.default_rng(seed)
    n_rows, size = int(rng.integers(100, 400)), int(rng.integers(10, 90))
    drawn, alpha, delta = int(rng.integers(1, size)), 0.1, 0.05
    tests = [
        one_stratum(n_rows, size, drawn, alpha, delta),
        ExactTest(n_rows, size, drawn, None, alpha, delta),
        ExactTest(n_rows, size, drawn, (0.3, 0.4), alpha, delta),
    ]
    for test in tests:
        level = test.level[np.minimum(np.arange(n_rows + 1), len(test.level) - 1)]
        assert (np.diff(level) <= 1e-12).all()
        mean = float(binom.pmf(np.arange(n_rows + 1), n_rows, alpha) @ level)
        assert 0.8 * delta < mean <= delta


@pytest.mark.parametrize("seed", range(5))
def test_more_rows_above_never_help(seed):
    rng = np.random.default_rng(seed)
    n_rows, size = int(rng.integers(60, 300)), int(rng.integers(10, 50))
    test = one_stratum(n_rows, size, int(rng.integers(1, size)), 0.15, 0.1)
    table = np.array(
        [[test.passes(a, k) for k in range(test.drawn + 1)] for a in range(60)]
    )
    assert (np.diff(table.astype(int), axis=0) <= 0).all()
    assert (np.diff(table.astype(int), axis=1) <= 0).all()


@pytest.mark.parametrize("looked_up", ["none incomplete", "all of them"])
@pytest.mark.parametrize(
    ("n_rows", "delta"),
    [(28, 0.05), (29, 0.05), (59, 0.05), (100, 0.05), (237, 0.05), (2000, 0.05),
     (600, 1e-11)],
)  # fmt: skip
def test_with_nothing_unknown_it_is_the_binomial_rule(looked_up, n_rows, delta):
    rng = np.random.default_rng(n_rows)
    scores = rng.normal(size=n_rows)
    inclusion = np.ones(n_rows)
    if looked_up == "all of them":
        # Just below one: a draw that happened to take every row.
        inclusion[: n_rows // 3] = 1.0 - 1e-12
    sample = CalibrationSample.build(scores)
    expected = BinomialRule().select(sample, 0.1, delta)
    assert threshold(scores, inclusion, delta=delta) == expected.threshold


@pytest.mark.parametrize("n_scored", [1, 2, 20, 60])
def test_rows_without_a_score_are_below_every_threshold(n_scored):
    """So few others may all lie above, but for the lowest: that is the threshold."""
    scores = np.where(np.arange(1000) < n_scored, np.arange(1000.0), -np.inf)
    expected = BinomialRule().select(CalibrationSample.build(scores), 0.1, 0.05)
    assert threshold(scores, np.ones(1000)) == expected.threshold == 0.0


def test_incomplete_rows_that_nobody_looked_up_count_as_errors():
    scores = np.arange(200.0)
    few = np.where(np.arange(200) < 3, 0.0, 1.0)
    many = np.where(np.arange(200) < 30, 0.0, 1.0)
    assert threshold(scores, few) is not None
    assert threshold(scores, many) is None
    # With no row observed or scored nothing is certified.
    assert threshold(np.arange(5.0), np.zeros(5), alpha=0.4, delta=0.25) is None
    scores = np.full(100, -np.inf)
    assert threshold(scores, np.ones(100), alpha=0.4, delta=0.25) is None


def test_a_row_not_found_counts_as_an_error():
    rng = np.random.default_rng(0)
    scores, inclusion = rng.normal(size=400), np.ones(400)
    inclusion[:150], inclusion[:60] = 0.0, 0.4
    found = threshold(scores, inclusion)
    scores[:2] = np.nan
    with_two_lost = threshold(scores, inclusion)
    scores[:60] = np.nan
    assert found < with_two_lost < np.inf
    assert threshold(scores, inclusion) is None


def test_scores_of_rows_that_were_not_drawn_make_no_difference():
    rng = np.random.default_rng(1)
    scores, inclusion = rng.normal(size=300), np.ones(300)
    inclusion[:100], inclusion[:40] = 0.0, 0.4
    other = np.where(inclusion == 0.0, np.nan, scores)
    assert threshold(scores, inclusion) == threshold(other, inclusion)


def test_rows_tied_at_the_threshold_are_not_above_it():
    scores = np.repeat([0.0, 1.0, 2.0], [150, 40, 10])
    inclusion = np.ones(200)
    inclusion[::4] = 0.5
    inclusion[::8] = 0.0
    assert threshold(scores, inclusion, alpha=0.2) == 1.0


@pytest.mark.parametrize("n_strata", [2, 3])
def test_several_strata_are_bet_on(n_strata):
    rng = np.random.default_rng(2)
    scores, inclusion = rng.normal(size=3000), np.ones(3000)
    strata = rng.integers(0, n_strata, 3000)
    inclusion[:900] = np.where(rng.uniform(size=900) < 0.5, 0.5, 0.0)
    bets = threshold(scores, inclusion, strata=strata)
    exact = threshold(scores, inclusion)
    assert exact < bets < np.quantile(scores, 0.99)


def test_a_stratum_without_a_draw_is_bet_against():
    scores, inclusion = np.arange(1000.0), np.ones(1000)
    strata = np.zeros(1000, dtype=int)
    inclusion[:300], strata[:300] = 0.0, np.repeat([0, 1, 2], 100)
    inclusion[:50] = inclusion[100:150] = 0.5
    assert threshold(scores, inclusion, strata=strata) is None


def test_weights_are_those_of_the_draw():
    inclusion = np.array([1.0, 1.0, 0.5, 0.0])
    sample = looked_up_sample(np.arange(4.0), inclusion)
    assert sample.ranked.weights.sum() == 4.0
    assert sample.estimated_error(1.5) == 0.5


@pytest.mark.parametrize(
    ("scores", "inclusion", "match"),
    [
        ([np.nan, 2.0], [1.0, 1.0], "complete calibration row"),
        ([0.0, 1.0, 2.0], [0.2, 0.5, 1.0], "different probabilities"),
    ],
)
def test_what_is_refused(scores, inclusion, match):
    with pytest.raises(ValueError, match=match):
        looked_up_sample(scores, inclusion)


@pytest.mark.parametrize("lost", [0, 1, 3])
def test_the_fewest_look_ups_certify_and_one_less_does_not(lost):
    """Where none of those found is above, and the complete ones score lowest."""
    n_rows, size = 300, 100
    scores = np.where(np.arange(n_rows) < lost, np.nan, 0.0)

    def certified(drawn):
        inclusion = np.ones(n_rows)
        inclusion[:size] = 0.0
        inclusion[:drawn] = 0.5
        return threshold(scores, inclusion) is not None

    inclusion = np.where(np.arange(n_rows) < size, 0.0, 1.0)
    inclusion[: lost + 1] = 0.5
    needed = fewest_look_ups(looked_up_sample(scores, inclusion), 0.1, 0.05)
    assert lost + 1 < needed < size
    assert certified(needed)
    assert not certified(needed - 1)


@pytest.mark.parametrize(
    ("n_rows", "inclusion", "strata", "needed"),
    [
        (300, [0.0] * 2, None, 0),
        (20, [0.5] * 5, None, None),
        (300, [0.5] * 100 + [0.25] * 100, np.arange(300) // 100, None),
    ],
    ids=["few are incomplete", "all are too few", "several strata"],
)
def test_no_look_ups_none_that_suffice_and_none_that_are_told(
    n_rows, inclusion, strata, needed
):
    drawn = np.append(inclusion, np.ones(n_rows - len(inclusion)))
    sample = looked_up_sample(np.arange(float(n_rows)), drawn, strata)
    assert fewest_look_ups(sample, 0.1, 0.05) == needed


def worst_policy(level_for, n_rows, alpha, lost):
    """P(pass) at an error of α if the number looked up is the worst for the number M.

    By exact sums; `lost` are the shares that go missing of rows above and below.
    """
    above = np.arange(len(level_for(0, 0)) - 1)[:, None]
    incomplete = above.T
    both = binom.pmf(above, n_rows, alpha) * binom.pmf(incomplete, above, lost[0])
    total = 0.0
    for size in range(n_rows + 1):
        mass = both * binom.pmf(size - incomplete, n_rows - above, lost[1])
        n, b = (part[mass > 1e-12] for part in np.broadcast_arrays(above, incomplete))
        best = 0.0
        for drawn in range(size + 1):
            level = level_for(size, drawn)
            counts = np.arange(drawn + 1)
            most = [_most_complete(level, size, drawn, k) for k in counts.tolist()]
            k_mass = hypergeom.pmf(counts, size, b[:, None], drawn) if size else 1.0
            passed = (k_mass * ((n - b)[:, None] <= most)).sum(axis=1)
            best = max(best, float(mass[mass > 1e-12] @ passed))
        total += best
    return total


def _most_complete(level, size, drawn, k):
    """The largest number of complete rows above at which k looked-up ones pass."""
    tail = hypergeometric_tail(size, drawn, k, len(level) - 1)
    b = np.arange(min(k, len(tail) - 1), len(tail))
    last = len(level) - 1 - np.searchsorted(level[::-1], tail[b], side="left")
    return int(np.where(level[-1] >= tail[b], 10**6, last - b).min())


@pytest.mark.validity
@pytest.mark.parametrize("lost", [(1.0, 0.2), (0.5, 0.1)])
def test_that_more_are_looked_up_the_more_are_missing_costs_no_level(lost):
    n_rows, alpha, delta = 50, 0.2, 0.05
    share = alpha * lost[0] + (1 - alpha) * lost[1]
    for expected in ((share, 0.5), (share, 1.0), None):
        level = ExactTest(n_rows, 25, 12, expected, alpha, delta).level
        found = worst_policy(lambda *_, g=level: g, n_rows, alpha, lost)
        assert found <= delta


@pytest.mark.validity
def test_a_level_made_for_the_draw_that_came_up_would_be_exceeded():
    n_rows, alpha, delta = 50, 0.2, 0.05

    def level_for(size, drawn):
        return one_stratum(n_rows, size, drawn, alpha, delta).level

    found = worst_policy(level_for, n_rows, alpha, (1.0, 0.2))
    assert found > 1.05 * delta


@pytest.mark.parametrize(
    ("expected", "total"), [(None, 21.402062), ((0.3, 0.4), 20.844252)]
)
def test_what_came_up_has_no_part_in_the_level(expected, total):
    first, *others = (
        ExactTest(300, size, drawn, expected, 0.1, 0.05).level
        for size, drawn in ((0, 0), (30, 5), (90, 90))
    )
    assert all(np.array_equal(first, level) for level in others)
    assert first.sum() == pytest.approx(total)
