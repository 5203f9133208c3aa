"""Dask collections give the same digits for any number of workers, harmed or not."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest
from data import two_normals

import missratio as mr
from missratio.rows import cluster as cluster_rows

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore")
PHI = {1: mr.LogisticMissingness(np.zeros(3), np.full(3, 0.5))}


@pytest.fixture(scope="module")
def cluster():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def labelled(n_rows=6000):
    return two_normals(n_rows // 2, 3)


def collections(X, y, rows=700):
    return da.from_array(X, chunks=(rows, 2)), da.from_array(y, chunks=rows)


def test_without_a_client_there_is_a_clear_error():
    with pytest.raises(RuntimeError, match=r"there is no client.*distributed.Client"):
        mr.KLIEP().fit(*collections(*labelled(100)))


@pytest.mark.usefixtures("blockwise")
@pytest.mark.parametrize("lossy", [False, True])
@pytest.mark.parametrize(
    "ratio", [mr.KLIEP(tol=1e-10), mr.NaiveBayesRatio(mr.KLIEP(tol=1e-10))], ids=repr
)
def test_a_cluster_gives_the_numbers_of_the_table_in_memory(cluster, ratio, lossy):
    X, y = labelled()
    if lossy:
        X[y == 1] = mr.corrupt(X[y == 1], PHI[1], random_state=0)
    ratio.set_params(missingness=PHI if lossy else None)
    expected = ratio.fit(X, y).coef_.copy()
    ratio.fit(*collections(X, y))
    assert isinstance(ratio.coef_, np.ndarray)
    np.testing.assert_allclose(ratio.coef_, expected, atol=1e-9)


@pytest.mark.parametrize("kind", ["float64", "Float64", "double[pyarrow]"])
def test_dataframes_of_every_kind_and_labels_of_text(cluster, kind):
    X, y = labelled(600)
    X[X > 1.5] = np.nan
    frame = pd.DataFrame(X, columns=list("abc")).astype(kind)
    label = np.where(y == 1, "well", "sick")
    ratio = mr.KLIEP(missingness="ignore")
    expected = ratio.fit(frame, label).coef_.copy()
    both = dd.from_pandas(frame.assign(label=label), npartitions=3)
    ratio.fit(both[list("abc")], both["label"])
    np.testing.assert_allclose(ratio.coef_, expected, atol=1e-8)
    assert ratio.feature_names_in_.tolist() == list("abc")


@pytest.mark.usefixtures("blockwise")
def test_digits_do_not_depend_on_which_worker_holds_what_nor_on_its_death(cluster):
    source = cluster_rows.of_collection(*collections(*labelled()))
    expected = mr.KLIEP().fit(source).coef_.copy()
    held = source.holdings
    holders = cluster.who_has([holding for _, holding in held])
    for worker, holding in held:
        # Parts stay with their workers.
        assert tuple(holders[holding.key]) == (worker,)
    # By value: workers may know another package that is called "tests".
    both = cluster.submit(lambda *held: [*held[1], *held[0]], *(h for _, h in held))
    one = replace(source, holdings=[(held[0][0], both)])
    np.testing.assert_array_equal(mr.KLIEP().fit(one).coef_, expected)
    os.kill(next(iter(cluster.run(os.getpid).values())), signal.SIGKILL)
    np.testing.assert_array_equal(mr.KLIEP().fit(source).coef_, expected)


INFINITE = np.where(np.arange(2000)[:, None] == 1500, np.inf, labelled(2000)[0])
ZEROS = np.zeros((20, 2))
TIMES = np.arange(40).reshape(20, 2)


@pytest.mark.parametrize(
    ("X", "y", "rows", "message"),
    [
        (INFINITE, labelled(2000)[1], (700, 700), r"row 1500 .*\(partition 2\)"),
        (ZEROS, np.tile([0, 1], 10), (10, 5), "partitions"),
        (ZEROS, np.array(["a", None] * 10, object), (10, 10), "Every row needs a"),
        (ZEROS, np.array([0, np.nan] * 10), (10, 10), "In partition .: Every row"),
        (ZEROS, np.tile([[0, 1]], (20, 1)), (10, 10), r"In partition .*shape \(10,"),
        *((TIMES.astype(kind), np.tile([0, 1], 10), (10, 10),
           r"In partition .: (X must be numeric|Complex data)")
          for kind in ("datetime64[s]", "timedelta64[s]", complex)),
    ],
)  # fmt: skip
def test_rows_and_labels_that_cannot_be_fitted_are_refused(
    cluster, X, y, rows, message
):
    X, y = da.from_array(X, chunks=(rows[0], 2)), da.from_array(y, chunks=rows[1])
    with pytest.raises(ValueError, match=message):
        mr.KLIEP().fit(X, y)
    with pytest.raises(TypeError, match="must be a Dask collection"):
        mr.KLIEP().fit(X, np.zeros(20))


def test_a_cluster_that_is_closed_says_so():
    with distributed.LocalCluster(
        n_workers=1, processes=False, dashboard_address=None
    ) as closing:
        client = distributed.Client(closing, set_as_default=False)
        with client.as_current():
            source = cluster_rows.of_collection(*collections(*labelled(200)))
        client.close()
        with pytest.raises(RuntimeError, match="client or the cluster was closed"):
            mr.KLIEP().fit(source)


def test_predictions_map_over_partitions(cluster):
    X, y = labelled(4000)
    table = pd.DataFrame(X, columns=list("abc"))
    frame, ratio = dd.from_pandas(table, npartitions=3), mr.KLIEP().fit(table, y)
    mapped = frame.map_partitions(ratio.predict_ratio, meta=np.empty(0))
    np.testing.assert_allclose(mapped.compute(), ratio.predict_ratio(table))
    classifier = mr.NeymanPearsonClassifier(mr.KLIEP(), alpha=0.2, random_state=0)
    for fitted in (ratio, classifier.fit(table, y)):
        with pytest.raises(TypeError, match="Map over its partitions"):
            fitted.predict(frame)
