"""Dask collections give the same digits for any number of workers, harmed or not."""

import os
import signal

import numpy as np
import pytest

import missratio as mr
from missratio import engine
from missratio.ratio import _build
from missratio.rows import _streamed
from missratio.rows._cluster import hold, of_collection

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
pytestmark = pytest.mark.filterwarnings("ignore")
N_COLUMNS = 3


@pytest.fixture(scope="module")
def cluster():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def blockwise(monkeypatch):
    """Let tables of this size be read block by block, and few rows be drawn."""
    for module in (engine, _build):
        monkeypatch.setattr(module, "HELD_ELEMENTS", 100)
    monkeypatch.setattr(_streamed, "DRAWN_NUMBERS", 6000)


def labelled(n_rows=6000):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n_rows, N_COLUMNS)), rng.integers(0, 2, n_rows)
    X[y == 1] += 0.4 * rng.normal(size=N_COLUMNS)
    return X, y


def collections(X, y, rows=700):
    return da.from_array(X, chunks=(rows, 2)), da.from_array(y, chunks=rows)


def _numbers(held):
    return [number for number, _ in held]


def _part(held, number):
    return dict(held)[number]


def test_without_a_client_there_is_a_clear_error():
    with pytest.raises(RuntimeError, match=r"there is no client.*distributed.Client"):
        mr.KLIEP().fit(*collections(*labelled(100)))


@pytest.mark.usefixtures("blockwise")
def test_a_cluster_gives_the_numbers_of_the_table_in_memory(cluster):
    X, y = labelled()
    model = mr.LogisticMissingness(np.zeros(N_COLUMNS), np.full(N_COLUMNS, 0.5))
    X[y == 1] = mr.corrupt(X[y == 1], model, random_state=0)
    for ratio in (
        mr.KLIEP(missingness={1: model}, tol=1e-10),
        mr.NaiveBayesRatio(mr.KLIEP(tol=1e-10), missingness={1: model}),
    ):
        expected = ratio.fit(X, y).coef_.copy()
        ratio.fit(*collections(X, y))
        assert isinstance(ratio.coef_, np.ndarray)
        np.testing.assert_allclose(ratio.coef_, expected, atol=1e-9)


@pytest.mark.usefixtures("blockwise")
def test_digits_do_not_depend_on_which_worker_holds_what(cluster):
    X, y = labelled()
    source = of_collection(*collections(X, y))
    expected = mr.KLIEP().fit(source).coef_.copy()
    parts = {}
    for holding in source.holdings:
        for number in cluster.submit(_numbers, holding).result():
            parts[number] = cluster.submit(_part, holding, number)
    parts = [parts[number] for number in sorted(parts)]
    one = hold(cluster, parts, source.names, source.n_rows)
    np.testing.assert_array_equal(mr.KLIEP().fit(one).coef_, expected)


def test_dataframes_and_labels_of_text(cluster):
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    X, y = labelled(1000)
    table = pandas.DataFrame(X, columns=list("abc")).assign(
        label=np.where(y == 1, "sick", "well")
    )
    frame = frames.from_pandas(table, npartitions=4)
    fitted = mr.KLIEP().fit(frame[list("abc")], frame["label"])
    expected = mr.KLIEP().fit(X, 1 - y).coef_
    np.testing.assert_allclose(fitted.coef_, expected, atol=1e-9)
    assert fitted.feature_names_in_.tolist() == list("abc")


def test_a_worker_that_is_killed_changes_no_digit(cluster):
    X, y = labelled()
    source = of_collection(*collections(X, y))
    expected = mr.KLIEP().fit(source).coef_.copy()
    os.kill(next(iter(cluster.run(os.getpid).values())), signal.SIGKILL)
    np.testing.assert_array_equal(mr.KLIEP().fit(source).coef_, expected)


def test_bad_rows_are_named_by_partition(cluster):
    X, y = labelled(2000)
    X[1500, 1] = np.inf
    with pytest.raises(ValueError, match="infinity in partition 2"):
        mr.KLIEP().fit(*collections(X, y))
    with pytest.raises(ValueError, match="partitions"):
        mr.KLIEP().fit(collections(X, y)[0], collections(X, y, 500)[1])
    with pytest.raises(TypeError, match="must be a Dask collection"):
        mr.KLIEP().fit(collections(X, y)[0], y)
