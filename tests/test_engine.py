"""The engine: how rows are cut, and by how many threads, makes no difference."""

import threading

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from missratio import engine
from missratio._base.threads import _limit, one_blas_thread, share
from missratio.engine import RowSample, Sample
from missratio.moments import Parameters, accumulate
from missratio.objective import Term
from missratio.rows import PLAIN, ClassRows, MemorySource, Weighing

CENTRE = np.full((1, 8), 0.5)


def blas_threads():
    return [
        each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"
    ]


def sample_of(n_rows=40_000, n_features=8, weighted=True, rows=None, seed=0):
    """A sample held as arrays, or (where rows are chosen) read from a class's rows."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_rows, n_features))
    count = len(np.arange(n_rows)[rows]) if rows is not None else n_rows
    weights = rng.exponential(size=count) if weighted else None
    total = np.array([float(count)])
    if rows is None:
        held = None if weights is None else weights[None]
        return Sample(features[None], total, held)
    weighing = PLAIN if weights is None else Weighing(weights=weights)
    source = MemorySource(features, features, rows)
    return RowSample(ClassRows(0, source, weighing, "hajek"), total)


def held(sample):
    """The arrays of a sample that is read from rows."""
    if isinstance(sample, Sample):
        return sample
    parts = []
    sample.fold(
        lambda *block: parts.append(block), 10**9, merge=lambda parts: parts[-1]
    )
    return Sample(parts[0][0], sample.total, parts[0][1])


def sums_of(sample, elements=engine.BLOCK_ELEMENTS, second_order=True):
    n_features = sample.peek().shape[2]
    at = Parameters(np.full((1, n_features), 0.3), None, np.array([0.1]))
    [sums] = sample.fold(
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


@pytest.mark.parametrize("weighted", [True, False])
def test_chosen_rows_are_those_rows(weighted):
    chosen = np.random.default_rng(1).permutation(3000)[:1000]
    indexed = sample_of(n_rows=3000, rows=chosen, weighted=weighted)
    assert (indexed.n_rows, indexed.size) == (1000, 8000)
    assert_close(sums_of(indexed, 500), sums_of(held(indexed), 500), rtol=1e-12)


@pytest.mark.parametrize("rows", [None, np.arange(0, 3000, 2), slice(0, 3000, 2)])
def test_a_thinned_sample_is_every_so_many_th_row_and_stands_for_all(rows):
    sample = sample_of(n_rows=3000, rows=rows)
    thinned, everything = sample.held(7, CENTRE), held(sample)
    centred = (everything.features - CENTRE).astype(np.float32)
    np.testing.assert_array_equal(thinned.features, centred[:, ::7])
    weights = everything.weights[:, ::7].astype(np.float32)
    np.testing.assert_array_equal(thinned.weights, weights)
    assert thinned.centred
    assert thinned.total / sample.total == pytest.approx(thinned.n_rows / sample.n_rows)


@pytest.mark.parametrize("unit", [1e-25, 1e25])
def test_features_whose_squares_need_double_precision_keep_it(unit):
    sample = sample_of(n_rows=100)
    sample.features[..., 3] *= unit
    assert sample.held(10, unit * CENTRE).features.dtype == np.float64


def test_a_thinned_sample_is_a_copy():
    sample = sample_of(n_rows=100)
    thinned = sample.held(10, CENTRE)
    thinned.features[:] = 0.0
    assert (sample.features != 0.0).all()


def test_blocks_of_consecutive_rows_are_views():
    source = sample_of(n_rows=100, rows=slice(0, 100, 1)).rows.source
    block = source.block(10, 20)
    assert np.shares_memory(block.rows, source.table)
    assert block.features is block.rows


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
            sample_of().fold(fail, 10_000)
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


@pytest.mark.parametrize("within", [True, False], ids=["within a limit", "alone"])
@pytest.mark.parametrize("last", ["this thread", "the other"])
def test_overlapping_holds_in_two_threads_give_blas_its_threads_back(within, last):
    """Whichever of two threads lets go last, BLAS has as many threads as before."""
    this_holds, other_holds = threading.Event(), threading.Event()
    this_ended, other_ended = threading.Event(), threading.Event()

    def other():
        this_holds.wait(10)
        with one_blas_thread(10**7):
            other_holds.set()
            if last == "the other":
                this_ended.wait(10)
        other_ended.set()

    def overlap():
        was = blas_threads()
        thread = threading.Thread(target=other)
        thread.start()
        with one_blas_thread(10**7):
            this_holds.set()
            other_holds.wait(10)
            if last == "this thread":
                other_ended.wait(10)
            assert set(blas_threads()) <= {1}
        this_ended.set()
        thread.join()
        assert blas_threads() == was

    # OpenBLAS starts with one thread where the environment says so: ask for two.
    with threadpool_limits(2, user_api="blas"):
        if within:
            overlap()
    if not within:
        limits = [lib for lib in ThreadpoolController().lib_controllers
                  if lib.user_api == "blas"]  # fmt: skip
        before = [lib.num_threads for lib in limits]
        for lib in limits:
            _limit(lib, 2)
        overlap()
        for lib, threads in zip(limits, before, strict=True):
            _limit(lib, threads)


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
