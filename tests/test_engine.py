"""The engine: how rows are cut, and by how many threads, makes no difference."""

import threading
import weakref

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from missratio import KLIEP, density_ratio, engine
from missratio._base.threads import one_blas_thread, share
from missratio.engine import RowSample, Sample
from missratio.moments import Parameters
from missratio.objective import Term
from missratio.rows import ClassRows, MemorySource

CENTRE = np.full((1, 8), 0.5)


def blas_threads():
    return [
        each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"
    ]


def drawn(n_rows=40_000, n_features=8, weighted=True, rows=None, in_place=False):
    """A sample held as arrays, or the same read from chosen rows of a table."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(n_rows, n_features))
    index = range(n_rows) if rows is None else rows
    weights = rng.exponential(size=len(index)) if weighted else None
    total = np.array([float(len(index))])
    if not in_place:
        held = None if weights is None else weights[None]
        return Sample(table[None, np.asarray(index)], total, held)
    source = MemorySource(table, table, index)
    return RowSample(
        ClassRows(0, source, "hajek", known=weights, corrects=weighted), total
    )


def sums(sample, elements=engine.BLOCK_ELEMENTS):
    at = Parameters(np.full((1, sample.peek().shape[2]), 0.3), None, np.array([0.1]))
    with pytest.MonkeyPatch.context() as patch:
        # At second order blocks are a quarter as large.
        patch.setattr(engine, "BLOCK_ELEMENTS", 4 * elements)
        return sample.sums(Term.exponential, at, second_order=True)


def assert_close(one, other):
    for name in ("log_scale", "value", "slope", "curvature"):
        mine, theirs = getattr(one, name), getattr(other, name)
        atol = 1e-11 * np.abs(theirs).max()
        np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=atol)


@pytest.mark.parametrize("elements", [5, 1000, 77_777, 10**9])
def test_sums_hardly_depend_on_the_size_of_blocks(elements):
    """Even where a row is longer than a block."""
    sample = drawn(n_rows=3000 if elements > 5 else 7)
    assert_close(sums(sample, elements), sums(sample, 5000))


SHUFFLED = np.random.default_rng(1).permutation(3000)[:1000]


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("rows", [SHUFFLED, np.arange(0, 3000, 2), range(0, 3000, 2)])
def test_rows_in_place_are_those_that_are_held(rows, weighted):
    held = drawn(n_rows=3000, weighted=weighted, rows=rows)
    in_place = drawn(n_rows=3000, weighted=weighted, rows=rows, in_place=True)
    assert (in_place.n_rows, in_place.size) == (held.n_rows, held.size)
    assert_close(sums(in_place, 500), sums(held, 500))
    for sample in (held, in_place):
        thinned = sample.held(7, CENTRE)
        assert thinned.centred
        expected = held.features[:, ::7] - CENTRE
        np.testing.assert_array_equal(thinned.features, expected)
        if weighted:
            np.testing.assert_array_equal(thinned.weights, held.weights[:, ::7])
        share_of_rows = thinned.n_rows / sample.n_rows
        assert thinned.total / sample.total == pytest.approx(share_of_rows)
        thinned.features[:] = 0.0
    assert held.features.all()


@pytest.mark.parametrize(("size", "limit"), [(10**7, 1), (10**7, 2), (100, 2)])
def test_blas_is_held_to_one_thread_by_the_outermost_and_has_its_own_back(size, limit):
    with threadpool_limits(limit, user_api="blas"):
        was = blas_threads()
        with one_blas_thread(size) as outer:
            # Small work leaves BLAS alone.
            assert outer == (max(was) if size > 100 else 1)
            with one_blas_thread(size) as inner:
                assert inner == outer
            assert blas_threads() == ([1] * len(was) if size > 100 else was)
            with one_blas_thread(10_000) as middling:
                assert middling == 1
        assert blas_threads() == was


@pytest.mark.parametrize("last", ["this thread", "the other"])
def test_overlapping_holds_in_two_threads_give_blas_its_threads_back(last):
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

    # OpenBLAS starts with one thread where the environment says so: ask for two.
    with threadpool_limits(2, user_api="blas"):
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


def test_shared_work_comes_back_in_order_and_may_share_its_own():
    def work(i):
        return sum(share(lambda j: i * j, range(10), 2))

    for threads in (1, 2, 3):
        assert share(work, range(30), threads) == [45 * i for i in range(30)]


def test_what_no_helper_took_up_is_not_kept_in_the_queue():
    """A pass over files shares each block's work, too: memory must not grow with it."""
    alive = weakref.WeakSet()

    class Block:
        pass

    def work(_):
        block = Block()
        alive.add(block)
        share(lambda _: id(block), range(2), 2)
        return len(alive)

    # Two threads, each with a block of its own and that of a helper.
    assert max(share(work, range(50), 2)) <= 4


def test_shared_work_ends_with_the_error_of_the_first_item_that_fails():
    def work(i):
        if i % 5 == 3:
            raise ValueError(f"item {i}")

    for _ in range(50):
        with pytest.raises(ValueError, match="item 3"):
            share(work, range(20), 2)


def test_all_results_of_a_fit_are_the_same_with_one_thread_and_two():
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
