"""Dask collections give the same digits for any number of workers, harmed or not."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest

import missratio as mr
from missratio.rows import LabelledBlock
from missratio.rows import cluster as cluster_rows
from missratio.rows.cluster import ClusterSource, held, of_collection

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


def labelled(n_rows=6000):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n_rows, N_COLUMNS)), rng.integers(0, 2, n_rows)
    X[y == 1] += 0.4 * rng.normal(size=N_COLUMNS)
    return X, y


def collections(X, y, rows=700):
    return da.from_array(X, chunks=(rows, 2)), da.from_array(y, chunks=rows)


def _numbers(held):
    return [number for number, _ in held]


def _then_text(block, block_id=None):
    return block.astype(str) if block_id[0] else block


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
    for _, holding in source.holdings:
        for number in cluster.submit(_numbers, holding).result():
            parts[number] = cluster.submit(_part, holding, number)
    parts = [parts[number] for number in sorted(parts)]
    one = replace(source, holdings=held(cluster, parts))
    np.testing.assert_array_equal(mr.KLIEP().fit(one).coef_, expected)


def test_parts_stay_with_their_workers(cluster):
    source = of_collection(*collections(*labelled()))
    mr.KLIEP().fit(source)
    holders = cluster.who_has([holding for _, holding in source.holdings])
    for worker, holding in source.holdings:
        assert tuple(holders[holding.key]) == (worker,)


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


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (np.array(["sick", None] * 10, dtype=object), "Every row needs a label"),
        (np.array([0.0, np.nan] * 10), "In partition .: Every row needs a label"),
        (np.tile([[0, 1]], (20, 1)), r"In partition .*got an array of shape \(10, 2\)"),
    ],
    ids=["text", "numbers", "two columns"],
)
def test_missing_labels_and_columns_of_them_are_refused(cluster, labels, says):
    X = da.from_array(np.zeros((20, 2)), chunks=(10, 2))
    with pytest.raises(ValueError, match=says):
        mr.KLIEP().fit(X, da.from_array(labels, chunks=10))


def test_labels_that_change_their_type_between_partitions(cluster):
    X, y = collections(*labelled(1400))
    y = y.map_blocks(_then_text, dtype=object, meta=np.empty(0, dtype=object))
    for estimator in (mr.KLIEP(), mr.NeymanPearsonClassifier(mr.KLIEP())):
        with pytest.raises(ValueError, match="text in some rows, such as"):
            estimator.fit(X, y)


@pytest.mark.parametrize("kind", ["datetime64[s]", "timedelta64[s]", complex])
def test_values_that_are_no_numbers_are_refused(cluster, kind):
    X = da.from_array(np.arange(40).reshape(20, 2).astype(kind), chunks=(10, 2))
    y = da.from_array(np.tile([0, 1], 10), chunks=10)
    with pytest.raises(
        ValueError, match=r"In partition .: (X must be numeric|Complex data)"
    ):
        mr.KLIEP().fit(X, y)


@pytest.mark.parametrize("kind", ["Float64", "double[pyarrow]"])
def test_columns_of_every_kind_are_read_as_in_memory(cluster, kind):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    X, y = labelled(600)
    X[X > 1.5] = np.nan
    frame = pd.DataFrame(X, columns=list("abc")).astype(kind)
    ratio = mr.KLIEP(missingness="ignore")
    expected = ratio.fit(frame, y).coef_.copy()
    both = dd.from_pandas(frame.assign(y=y), npartitions=3)
    ratio.fit(both[list("abc")], both["y"])
    np.testing.assert_allclose(ratio.coef_, expected, atol=1e-8)


def test_a_cluster_that_is_closed_says_so(tmp_path):
    X, y = labelled(200)
    with distributed.LocalCluster(
        n_workers=1, processes=False, dashboard_address=None
    ) as own:
        client = distributed.Client(own, set_as_default=False)
        with client.as_current():
            source = of_collection(*collections(X, y))
        client.close()
        with pytest.raises(RuntimeError, match="client or the cluster was closed"):
            mr.KLIEP().fit(source)
    with pytest.raises(TypeError, match=r"must be a distributed\.Client, got None"):
        cluster_rows.held(None, [])


def test_empty_partitions_have_predictions_of_the_same_type(cluster):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    X, y = labelled(300)
    frame = pd.DataFrame(X, columns=list("abc"))
    classifier = mr.NeymanPearsonClassifier(
        mr.KLIEP(), alpha=0.2, controlled_class="u", random_state=0
    ).fit(frame, np.array(["u", "v"])[y])
    some = dd.from_pandas(frame, npartitions=3)
    some = some[some["a"] > frame["a"][:200].max()]
    for method in (classifier.predict, classifier.decision_function):
        found = method(some)
        assert found.dtype == found.compute().dtype
        np.testing.assert_array_equal(found.compute(), method(some.compute()))
    ratio, rows = mr.KLIEP().fit(X, y), da.from_array(X, chunks=(100, 3))
    assert ratio.predict_ratio(rows[rows[:, 0] > 1e9]).compute().shape == (0,)


def test_predictions_map_over_partitions(cluster):
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    X, y = labelled(4000)
    table = pandas.DataFrame(X, columns=list("abc"), index=np.arange(4000)[::-1])
    label = np.where(y == 1, "sick", "well")
    classifier = mr.NeymanPearsonClassifier(
        mr.KLIEP(), alpha=0.2, controlled_class="well", random_state=0
    ).fit(table, label)
    frame = frames.from_pandas(table, npartitions=3, sort=False)
    found = classifier.predict(frame)
    assert found.npartitions == 3
    series = found.compute()
    assert (series.index == table.index).all()
    np.testing.assert_array_equal(series, classifier.predict(table))
    ratio = mr.KLIEP().fit(X, y)
    rows = da.from_array(X, chunks=(1500, 2))
    for method in ("predict", "predict_ratio", "predict_log_ratio"):
        lazy = getattr(ratio, method)(rows)
        assert lazy.numblocks == (3,)
        np.testing.assert_array_equal(lazy.compute(), getattr(ratio, method)(X))


@pytest.mark.usefixtures("blockwise")
def test_files_that_workers_read_themselves(cluster, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y = labelled()
    for i in range(3):
        part = slice(2000 * i, 2000 * (i + 1))
        columns = {f"x{j}": X[part, j] for j in range(N_COLUMNS)}
        table = pa.table({**columns, "y": y[part]})
        pq.write_table(table, tmp_path / f"{i}.parquet", row_group_size=500)
    source = mr.scan_parquet(tmp_path, target="y")
    here = mr.KLIEP().fit(source).coef_.copy()
    there = source.on(cluster)
    np.testing.assert_array_equal(mr.KLIEP().fit(there).coef_, here)
    cluster.restart(wait_for_workers=False)
    cluster.wait_for_workers(1, timeout=60)
    np.testing.assert_array_equal(mr.KLIEP().fit(source.on(cluster)).coef_, here)


def test_rows_that_are_lost_for_good_are_a_clear_error(cluster):
    X, y = labelled(2000)
    blocks = [
        LabelledBlock(X[i : i + 500], y[i : i + 500], i, f"partition {i // 500}")
        for i in range(0, 2000, 500)
    ]
    # Scattered values have no recipe.
    parts = cluster.scatter(blocks)
    names = ("a", "b", "c")
    source = ClusterSource(cluster, held(cluster, parts), names, 2000, len(parts))
    assert mr.KLIEP().fit(source).converged_
    cluster.restart(wait_for_workers=False)
    cluster.wait_for_workers(1, timeout=60)
    with pytest.raises(RuntimeError, match=r"can't be computed again.*fit again"):
        mr.KLIEP().fit(source)


@pytest.mark.parametrize("n_workers", [1, 2, 3, 7])
def test_groups_have_the_same_digits_whichever_worker_holds_their_parts(n_workers):
    rng = np.random.default_rng(n_workers)
    values = 10.0 ** rng.uniform(-8, 8, 3 * cluster_rows.GROUP + 5)
    parts = [LabelledBlock(v.reshape(1, 1), np.zeros(1), 0, "") for v in values]
    held = rng.integers(0, n_workers, len(parts))
    found = []
    for worker in range(n_workers):
        own = [(i, part) for i, part in enumerate(parts) if held[i] == worker]
        found += cluster_rows._fold_parts(_first, sum, len(parts), own)
    alone = cluster_rows._fold_parts(_first, sum, len(parts), list(enumerate(parts)))
    assert len(alone) == 4
    assert sum(cluster_rows._by_group(sum, found)) == sum(
        cluster_rows._by_group(sum, alone)
    )


def _first(block):
    return float(block.rows[0, 0])
