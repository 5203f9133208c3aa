"""What one partition needs is one task; what several need is computed once."""

import numpy as np
import pytest

import missratio as mr
from missratio.rows._fusing import fused

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
pytestmark = pytest.mark.filterwarnings("ignore")
N_PARTS = 6


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def labelled(n_rows=600):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n_rows)
    return rng.normal(size=(n_rows, 2)) + 0.5 * y[:, None], y


def both(number, rows, labels):
    return number, np.asarray(rows).sum(), len(labels)


def values(X, y):
    rows = X.rechunk({1: -1}).to_delayed().ravel()
    return list(zip(rows, y.to_delayed().ravel(), strict=True))


def in_chunks(X, y):
    rows = len(y) // N_PARTS
    return da.from_array(X, chunks=(rows, 1)), da.from_array(y, chunks=rows)


def test_a_partition_is_one_task():
    X, y = labelled()
    pairs = values(*in_chunks(X, y))
    assert len(dict(pairs[0][0].dask)) == 3 * N_PARTS
    found = fused(both, pairs, [(number,) for number in range(N_PARTS)])
    assert [len(dict(each.dask)) for each in found] == [1] * N_PARTS
    parts = zip(np.split(X, N_PARTS), np.split(y, N_PARTS), strict=True)
    for number, (part, (rows, labels)) in enumerate(zip(found, parts, strict=True)):
        assert part.compute(scheduler="sync") == (number, rows.sum(), len(labels))


def test_what_several_partitions_need_is_computed_once():
    calls = []

    def shift():
        calls.append(1)
        return 3.0

    X, y = labelled()
    array, labels = in_chunks(X, y)
    array = array + da.from_delayed(dask.delayed(shift)(), (), dtype=float)
    found = fused(both, values(array, labels), [(i,) for i in range(N_PARTS)])
    sums = [total for _, total, _ in dask.compute(*found, scheduler="sync")]
    np.testing.assert_allclose(sums, [p.sum() + 600 for p in np.split(X, N_PARTS)])
    assert len(calls) == 1


@pytest.mark.parametrize("how", ["persisted", "one persisted", "scaled", "selected"])
def test_collections_of_every_make_give_the_numbers_of_memory(client, how):
    X, y = labelled()
    array, labels = in_chunks(X, y)
    if how == "persisted":
        array, labels = client.persist([array, labels])
    elif how == "one persisted":
        array = client.persist(array)
    elif how == "scaled":
        array = client.persist(array)
        array, X = (array - array.mean(axis=0)) / 2, (X - X.mean(axis=0)) / 2
    else:
        chosen = array[:, 0] > -1
        array, labels = array[chosen], labels[chosen]
        X, y = X[X[:, 0] > -1], y[X[:, 0] > -1]
    expected = mr.KLIEP().fit(X, y).coef_
    found = mr.KLIEP().fit(array, labels).coef_
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("how", ["plain", "persisted", "shuffled"])
def test_dataframes_of_every_make(client, how):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    X, y = labelled()
    frame = dd.from_pandas(
        pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}), npartitions=4
    )
    if how == "persisted":
        frame = client.persist(frame)
    elif how == "shuffled":
        frame = frame.shuffle("y")
    found = mr.KLIEP().fit(frame[["a", "b"]], frame["y"]).coef_
    np.testing.assert_allclose(found, mr.KLIEP().fit(X, y).coef_, atol=1e-8)
