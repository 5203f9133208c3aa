"""Parquet files fit as the same rows in memory do, in bounded memory."""

import tracemalloc
from decimal import Decimal
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data import corrupted, two_normals
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio._base.threads import hold_threads
from missratio.basis import PolynomialBasis
from missratio.exceptions import UnreadableFileError
from missratio.rows import parquet

NAMES = ["x0", "x1", "x2", "x3"]
COMPLETE = {1: None, 0: None}
ENTRIES = {
    1: mr.LogisticMissingness(np.zeros(4), np.full(4, 0.7)),
    0: mr.LogisticMissingness(np.full(4, -2.0), np.full(4, 0.3)),
}
ROWS = {1: mr.StepMissingness(np.ones(4), 0.5, 0.6), 0: None}


def labelled(n_rows=6000, lost=COMPLETE):
    X, y = two_normals(n_rows // 2, 4)
    return corrupted(X, y, {k: phi for k, phi in lost.items() if phi}), y


def put(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def write(folder, X, y, n_files=3):
    folder.mkdir(parents=True, exist_ok=True)
    for i, rows in enumerate(np.array_split(np.arange(len(y)), n_files)):
        columns = [pa.array(column, from_pandas=True) for column in X[rows].T]
        table = pa.table({**dict(zip(NAMES, columns, strict=True)), "y": y[rows]})
        length = max(1, len(rows) // 3)
        pq.write_table(table, folder / f"{i}.parquet", row_group_size=length)
    return folder


@pytest.fixture
def folder(tmp_path):
    """Of files with 900 rows."""
    return write(tmp_path / "t", *labelled(n_rows=900))


RATIOS = [
    mr.KLIEP(tol=1e-10),
    mr.KLIEP(tol=1e-10, normalize="horvitz-thompson"),
    mr.KLIEP(l1=0.01, tol=1e-10),
    mr.FDivergenceRatio("js", tol=1e-10),
    mr.NaiveBayesRatio(mr.KLIEP(tol=1e-10)),
    mr.KLIEP(basis=PolynomialBasis(), tol=1e-10),
]


REVERSE = {1: None, 0: ENTRIES[0]}
PAIRS = mr.KLIEP(pairs=True, tol=1e-10)


@pytest.mark.parametrize(
    ("ratio", "lost"),
    [
        *product(RATIOS, [COMPLETE, ENTRIES]),
        (RATIOS[0], ROWS),
        (RATIOS[0], REVERSE),
        (PAIRS, ENTRIES),
    ],
)
@pytest.mark.usefixtures("blockwise")
def test_files_give_the_coefficients_of_the_table_in_memory(ratio, lost, tmp_path):
    X, y = labelled(lost=lost)
    ratio = ratio.set_params(missingness=lost)
    here = clone(ratio).fit(X, y)
    ratio.fit(mr.scan_parquet(write(tmp_path, X, y), target="y"))
    np.testing.assert_allclose(ratio.coef_, here.coef_, atol=1e-9)
    np.testing.assert_allclose(ratio.intercept_, here.intercept_, atol=1e-9)
    for label, size in here.effective_sample_size_.items():
        assert ratio.effective_sample_size_[label].rows == size.rows
        np.testing.assert_allclose(ratio.effective_sample_size_[label].kish, size.kish)
    assert list(ratio.feature_names_in_) == NAMES
    assert getattr(ratio, "direction_", None) == getattr(here, "direction_", None)


@pytest.mark.usefixtures("blockwise")
def test_digits_do_not_depend_on_the_number_of_threads(folder):
    source = mr.scan_parquet(folder, target="y")
    coef = mr.KLIEP().fit(source).coef_.copy()
    with hold_threads(1):
        np.testing.assert_array_equal(mr.KLIEP().fit(source).coef_, coef)


def test_a_source_is_read_again_and_again_in_order(folder):
    X, y = labelled(n_rows=900)
    source = mr.scan_parquet(folder, target="y")
    for _ in range(2):
        np.testing.assert_array_equal(np.concatenate([b.rows for b in source]), X)
        np.testing.assert_array_equal(np.concatenate([b.labels for b in source]), y)
    assert source.n_rows == 900
    assert len(repr(source)) < 100
    assert [block.start for block in source] == sorted(b.start for b in source)


def test_an_empty_file_and_a_class_that_a_file_lacks_are_fine(tmp_path):
    X, y = labelled(n_rows=300)
    order = np.argsort(y, kind="stable")
    write(tmp_path, X[order], y[order])
    empty = {name: pa.array([], pa.float64()) for name in NAMES}
    put(tmp_path / "empty.parquet", **empty, y=y[:0])
    coef = mr.KLIEP().fit(mr.scan_parquet(tmp_path, target="y")).coef_
    expected = mr.KLIEP().fit(X[order], y[order]).coef_
    np.testing.assert_allclose(coef, expected, atol=1e-12)


def test_text_labels_and_nulls(tmp_path):
    X, y = labelled(n_rows=400)
    X[y == 1, 0] = np.nan
    words = np.where(y == 1, "well", "sick").astype(object)
    source = mr.scan_parquet(write(tmp_path, X, words), target="y")
    with pytest.raises(ValueError, match=r"'well' has NaN in column\(s\) 'x0' in"):
        mr.KLIEP().fit(source)
    fitted = mr.KLIEP().fit(mr.scan_parquet(tmp_path, "y", ["x1", "x2"]))
    assert fitted.classes_.tolist() == ["sick", "well"]


def coded(values):
    return pa.array(values).dictionary_encode()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (coded, [3.0, 1.0, 3.0, 2.0, 1.0]),
        (coded, [3, 1, 3, 2, 1]),
        (pa.array, [True, False, True, True, False]),
        (lambda v: pa.array(v, pa.float16()), np.array([0.5, 1, 2, 0, 1], np.float16)),
        (lambda v: pa.array(v, pa.decimal128(5, 2)), [*map(Decimal, "31214")]),
    ],
    ids=["coded floats", "coded integers", "truth values", "half floats", "decimals"],
)
def test_every_kind_of_number_is_read_as_the_number_it_is(tmp_path, kind, values):
    words = ["u", "v", "u", "v", "u"]
    put(tmp_path / "t.parquet", a=kind(values), y=coded(words))
    (block,) = mr.scan_parquet(tmp_path, "y")
    assert block.rows[:, 0].tolist() == [float(value) for value in values]
    assert block.labels.tolist() == words


ONES = {name: [1.0] for name in NAMES}
NO_ROWS = {"a": pa.array([], pa.float64()), "y": pa.array([], pa.int64())}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x0": [1.0], "y": [0]}, r"z.parquet lacks column\(s\) 'x1'"),
        ({**ONES, "x2": ["a"], "y": [0]}, r"'x2' of .*z.parquet holds text"),
        ({**ONES, "y": ["0"]}, "labels in column 'y' are text in"),
        ({**ONES, "x3": pa.array([0], pa.date32()), "y": [0]}, "'x3'.*holds dates"),
    ],
)
def test_a_file_that_differs_from_others_is_refused(folder, columns, message):
    put(folder / "z.parquet", **columns)
    with pytest.raises(ValueError, match=message):
        mr.scan_parquet(folder, target="y")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"y": [0, 1]}, "has no column besides 'y' to fit"),
        (NO_ROWS, "Parquet files that were named have no row"),
        ({"a": pa.array([0, 1], pa.date32()), "y": [0, 1]}, r"'a'.*holds dates"),
        ({"a": [1.0], "z": [0]}, r"lacks column\(s\) 'y'"),
    ],
)
def test_a_file_that_has_nothing_to_fit_is_refused(tmp_path, columns, message):
    put(tmp_path / "t.parquet", **columns)
    with pytest.raises(ValueError, match=message):
        mr.scan_parquet(tmp_path, "y")


def test_paths_and_columns_that_are_none_or_named_twice_are_refused(folder):
    double = pa.Table.from_arrays([pa.array([1.0])] * 3, names=["a", "a", "y"])
    other = folder.parent / "other"
    (other / "empty").mkdir(parents=True)
    pq.write_table(double, other / "double.parquet")
    (other / "broken.parquet").write_bytes(b"PAR1 nothing PAR1")
    again = folder / ".." / folder.name / "0.parquet"
    for paths, columns, error, message in (
        (other / "none", None, FileNotFoundError, "no file or folder"),
        (other / "empty", None, ValueError, "no file that ends in"),
        ([], None, ValueError, "There is no path"),
        ([folder, again], None, ValueError, r"0\.parquet is named twice"),
        (folder, ["x0", "x1", "x0"], ValueError, "columns names 'x0' twice"),
        (folder, "x0", TypeError, "columns must be a list"),
        (other / "double.parquet", None, ValueError, "several columns named 'a'"),
        (other / "broken.parquet", None, OSError, "can't be read as a Parquet file"),
    ):
        with pytest.raises(error, match=message):
            mr.scan_parquet(paths, "y", columns)


@pytest.mark.parametrize(
    ("value", "labels", "message"),
    [
        (np.inf, [0, 1], r"row 850.* of all \(.*2.parquet, row group 2\), column 'x2'"),
        (1.0, [0, 1, np.nan], "lacks a label in .*0.parquet"),
        (1.0, [0], "1 class"),
        (1.0, [0, 1, 2], "3 class"),
    ],
)
def test_rows_that_no_ratio_can_be_fitted_to_are_refused(
    tmp_path, value, labels, message
):
    X, _ = labelled(n_rows=900)
    X[850, 2] = value
    source = mr.scan_parquet(write(tmp_path, X, np.resize(labels, 900)), "y")
    with pytest.raises(ValueError, match=message):
        mr.KLIEP().fit(source)


@pytest.mark.parametrize("change", ["values", "gone"])
@pytest.mark.parametrize("passes", [0, 1])
@pytest.mark.usefixtures("blockwise")
def test_a_file_that_changes_between_passes(folder, monkeypatch, change, passes):
    source, path, done = mr.scan_parquet(folder, "y"), folder / "1.parquet", []
    whole = parquet.ParquetSource.fold

    def fold(self, work, merge):
        if len(done) == passes:
            table = pq.read_table(path).set_column(0, "x0", pa.array(np.ones(300)))
            path.unlink()
            if change != "gone":
                pq.write_table(table, path, row_group_size=100)
        done.append(1)
        return whole(self, work, merge)

    monkeypatch.setattr(parquet.ParquetSource, "fold", fold)
    said = "can't be read" if change == "gone" else "written again"
    with pytest.raises(UnreadableFileError, match=rf"1\.parquet.*{said}"):
        mr.KLIEP().fit(source)


def test_a_column_of_texts_is_no_column_of_labels(tmp_path):
    texts = [f"{row:05}" * 1000 for row in range(2000)]
    source = mr.scan_parquet(put(tmp_path / "t.parquet", a=np.ones(2000), y=texts), "y")
    tracemalloc.start()
    with pytest.raises(ValueError, match="have 2000 values and more"):
        mr.KLIEP().fit(source)
    # As an array of NumPy's texts they would take 40 MB.
    assert tracemalloc.get_traced_memory()[1] < 2e6
    tracemalloc.stop()


def test_a_label_that_is_a_book_is_refused(tmp_path):
    words = ["a" * 2000, "b"] * 20
    source = mr.scan_parquet(put(tmp_path / "t.parquet", a=np.ones(40), y=words), "y")
    with pytest.raises(ValueError, match="more than 1,000 characters"):
        mr.KLIEP().fit(source)


MULTICLASS = mr.MulticlassNeymanPearsonClassifier(LogisticRegression(), {0: 0.1})


@pytest.mark.parametrize(
    ("estimator", "arguments", "message"),
    [
        (mr.KLIEP(), {"sample_weight": np.ones(900)}, "sample_weight needs all rows"),
        (mr.KLIEP(), {"y": np.ones(900)}, "y must be left out"),
        (mr.KLIEP(normalize="regression"), {}, "normalize='regression' needs all"),
        (mr.KLIEPCV(), {}, "KLIEPCV needs all rows in memory"),
        (mr.KernelRatio(), {}, "KernelRatio needs all rows in memory"),
        (mr.ClassifierRatio(), {}, "ClassifierRatio needs all rows in memory"),
        (mr.TiltedImputer(), {}, "TiltedImputer needs all rows in memory"),
        (MULTICLASS, {"y": None}, "MulticlassNeymanPearsonClassifier needs all"),
    ],
)  # fmt: skip
def test_what_goes_with_memory_is_refused(folder, estimator, arguments, message):
    source = mr.scan_parquet(folder, target="y")
    with pytest.raises((TypeError, ValueError), match=message):
        estimator.fit(source, **arguments)
