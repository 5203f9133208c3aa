"""The engine: how rows are cut, and by how many threads, makes no difference."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from missratio import engine
from missratio.engine import Sample, fold, one_blas_thread, share
from missratio.moments import Parameters, accumulate
from missratio.objective import Term

CENTRE = np.full((1, 8), 0.5)


def blas_threads():
    return [
        each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"
    ]


def sample_of(n_rows=40_000, n_features=8, weighted=True, rows=None, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(1, n_rows, n_features))
    count = n_rows if rows is None else len(rows)
    weights = rng.exponential(size=(1, count)) if weighted else None
    return Sample(features, np.array([float(count)]), weights, rows)


def sums_of(sample, elements=engine.BLOCK_ELEMENTS, second_order=True):
    n_features = sample.features.shape[2]
    at = Parameters(np.full((1, n_features), 0.3), None, np.array([0.1]))
    [sums] = fold(
        sample,
        lambda features, weights: accumulate(
            Term.exponential, features, weights, at, second_order=second_order
        ),
        elements,
    )
    return sums


def assert_close(one, other, rtol=1e-11):
    np.testing.assert_allclose(one.log_scale, other.log_scale, rtol=1e-14)
    np.testing.assert_allclose(one.value, other.value, rtol=rtol)
    for mine, theirs in ((one.slope, other.slope), (one.curvature, other.curvature)):
        atol = rtol * np.abs(theirs).max()
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=atol)


@pytest.mark.parametrize("weighted", [True, False])
def test_the_result_does_not_depend_on_the_number_of_threads(weighted):
    sample = sample_of(weighted=weighted)
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            results.append(sums_of(sample, elements=10_000))
    one, two = results
    assert one.value == two.value
    np.testing.assert_array_equal(one.slope, two.slope)
    np.testing.assert_array_equal(one.curvature, two.curvature)


@pytest.mark.parametrize("elements", [8, 1000, 77_777, 10**9])
def test_the_result_hardly_depends_on_the_size_of_blocks(elements):
    sample = sample_of(n_rows=3000)
    assert_close(sums_of(sample, elements), sums_of(sample, 5000))


def test_a_row_longer_than_a_block_is_still_accumulated():
    sample = sample_of(n_rows=7, n_features=12)
    assert_close(sums_of(sample, 5), sums_of(sample))


def test_an_index_of_rows_means_those_rows():
    chosen = np.random.default_rng(1).permutation(3000)[:1000]
    indexed = sample_of(n_rows=3000, rows=chosen)
    copied = Sample(indexed.features[:, chosen], indexed.total, indexed.weights)
    assert (indexed.n_rows, indexed.size) == (1000, 8000)
    assert_close(sums_of(indexed, 500), sums_of(copied, 500), rtol=1e-12)


@pytest.mark.parametrize("indexed", [True, False])
def test_a_thinned_sample_is_every_so_many_th_row_and_stands_for_all(indexed):
    rows = np.arange(0, 3000, 2) if indexed else None
    sample = sample_of(n_rows=3000, rows=rows)
    thinned = sample.thin(7, CENTRE)
    everything, weights = sample.block(0, sample.n_rows)
    centred = (everything - CENTRE).astype(np.float32)
    np.testing.assert_array_equal(thinned.features, centred[:, ::7])
    np.testing.assert_array_equal(thinned.weights, weights[:, ::7].astype(np.float32))
    assert thinned.rows is None
    assert thinned.centred
    assert thinned.total / sample.total == pytest.approx(thinned.n_rows / sample.n_rows)


@pytest.mark.parametrize("unit", [1e-25, 1e25])
def test_features_whose_squares_need_double_precision_keep_it(unit):
    sample = sample_of(n_rows=100)
    sample.features[..., 3] *= unit
    assert sample.thin(10, unit * CENTRE).features.dtype == np.float64


def test_a_thinned_sample_is_a_copy():
    sample = sample_of(n_rows=100)
    thinned = sample.thin(10, CENTRE)
    thinned.features[:] = 0.0
    assert (sample.features != 0.0).all()


@pytest.mark.parametrize("indexed", [True, False])
def test_drawn_rows_weigh_the_same_times_their_mass_and_stand_for_all(indexed):
    rows = np.arange(0, 40_000, 2) if indexed else None
    sample = sample_of(rows=rows)
    mass = np.random.default_rng(1).exponential(size=sample.n_rows) ** 3
    mass[::3] = 0.0
    drawn = sample.draw(np.array_split(mass, 7), 2000)
    place = drawn.rows // 2 if indexed else drawn.rows
    expected = mass.sum() / 2000 * sample.weights[0, place]
    np.testing.assert_allclose(drawn.weights[0] * mass[place], expected)
    assert drawn.total == sample.total
    # Each row as often as its mass says, rounded up or down.
    times = np.bincount(place, minlength=sample.n_rows)
    assert (np.abs(times - 2000 * mass / mass.sum()) < 1.0).all()


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_all_rows_are_kept_where_no_mass_says_which(value):
    sample = sample_of(n_rows=100)
    assert sample.draw([np.full(60, value), np.zeros(40)], 10) is sample


def test_blocks_of_consecutive_rows_are_views():
    sample = sample_of(n_rows=100)
    features, weights = sample.block(10, 20)
    assert np.shares_memory(features, sample.features)
    assert np.shares_memory(weights, sample.weights)


def test_some_problems_of_a_batch_are_those_problems():
    rng = np.random.default_rng(0)
    sample = Sample(
        rng.normal(size=(5, 10, 2)), np.arange(5.0), rng.random((5, 10)), centred=True
    )
    some = sample.problems(slice(1, 3))
    np.testing.assert_array_equal(some.features, sample.features[1:3])
    np.testing.assert_array_equal(some.weights, sample.weights[1:3])
    assert some.total.tolist() == [1.0, 2.0]
    assert some.centred


@pytest.mark.parametrize("before", [1, 2])
def test_blas_has_its_threads_back_afterwards(before):
    with threadpool_limits(before, user_api="blas"):
        was = blas_threads()
        with one_blas_thread(10**7) as threads:
            assert set(blas_threads()) <= {1}
            assert threads == max(was)
        assert blas_threads() == was


def test_blas_has_its_threads_back_after_an_exception():
    with threadpool_limits(2, user_api="blas"):
        was = blas_threads()

        def fail(features, weights):
            raise FloatingPointError("a block failed")

        with pytest.raises(FloatingPointError, match="a block failed"):
            fold(sample_of(), fail, 10_000)
        assert blas_threads() == was
        with one_blas_thread(10**7) as threads:
            assert threads == max(was)


def test_the_outermost_hold_on_blas_holds():
    with threadpool_limits(2, user_api="blas"):
        was = blas_threads()
        with one_blas_thread(10**7) as outer:
            with one_blas_thread(10**7) as inner:
                assert inner == outer
            assert set(blas_threads()) <= {1}
        assert blas_threads() == was


def test_small_work_leaves_blas_alone():
    with threadpool_limits(2, user_api="blas"):
        was = blas_threads()
        with one_blas_thread(100) as threads:
            assert threads == 1
            assert blas_threads() == was


def test_middling_work_is_not_shared_among_threads():
    with threadpool_limits(2, user_api="blas"), one_blas_thread(10_000) as threads:
        assert threads == 1


def test_overlapping_holds_in_two_threads_give_blas_its_threads_back():
    first_holds, second_holds = threading.Event(), threading.Event()

    def second():
        first_holds.wait(10)
        with one_blas_thread(10**7):
            second_holds.set()
            first_ended.wait(10)

    first_ended = threading.Event()
    with threadpool_limits(2, user_api="blas"):
        was = blas_threads()
        other = threading.Thread(target=second)
        other.start()
        with one_blas_thread(10**7):
            first_holds.set()
            second_holds.wait(10)
        first_ended.set()
        other.join()
        assert blas_threads() == was


@pytest.mark.parametrize("threads", [1, 3])
def test_shared_work_comes_back_in_order(threads):
    assert share(lambda i: i * i, range(20), threads) == [i * i for i in range(20)]


def test_shared_work_ends_with_the_error_of_the_first_item_that_fails():
    def work(i):
        if i % 5 == 3:
            raise ValueError(f"item {i}")
        return i

    for _ in range(50):
        with pytest.raises(ValueError, match="item 3"):
            share(work, range(20), 2)


def test_shared_work_may_share_its_own_work():
    def work(i):
        return sum(share(lambda j: i * j, range(10), 2))

    assert share(work, range(30), 2) == [45 * i for i in range(30)]


def test_all_results_of_a_fit_are_the_same_with_one_thread_and_two():
    from missratio import KLIEP, density_ratio

    rng = np.random.default_rng(0)
    X1, X0 = rng.normal(0.2, 1, (60_000, 6)), rng.normal(size=(60_000, 6))
    fits = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            was = blas_threads()
            fits.append(density_ratio(X1, X0, KLIEP()))
            assert blas_threads() == was
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].log_normalizer_ == fits[1].log_normalizer_
