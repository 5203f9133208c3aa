"""Parquet files fit as the same rows in memory do, in bounded memory."""

import tracemalloc
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.basis import PolynomialBasis
from missratio.exceptions import UnreadableFileError
from missratio.rows import parquet

N_COLUMNS = 4
NAMES = [f"x{j}" for j in range(N_COLUMNS)]


def labelled(seed=0, n_rows=6000):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n_rows, N_COLUMNS)), rng.integers(0, 2, n_rows)
    X[y == 1] += 0.4 * rng.normal(size=N_COLUMNS)
    return X, y


def write(folder, X, y, n_files=3, **columns):
    folder.mkdir(parents=True, exist_ok=True)
    for i, rows in enumerate(np.array_split(np.arange(len(y)), n_files)):
        table = {
            name: pa.array(X[rows, j], from_pandas=True) for j, name in enumerate(NAMES)
        }
        pq.write_table(
            pa.table({**table, "y": y[rows], **columns}),
            folder / f"{i}.parquet",
            row_group_size=max(1, len(rows) // 3),
        )
    return folder


MODELS = {
    1: mr.LogisticMissingness(np.zeros(N_COLUMNS), np.full(N_COLUMNS, 0.7)),
    0: mr.LogisticMissingness(np.full(N_COLUMNS, -2.0), np.full(N_COLUMNS, 0.3)),
}


@pytest.mark.parametrize(
    "ratio",
    [
        mr.KLIEP(tol=1e-10),
        mr.KLIEP(tol=1e-10, normalize="horvitz-thompson"),
        mr.KLIEP(l1=0.01, tol=1e-10),
        mr.FDivergenceRatio("js", tol=1e-10),
        mr.NaiveBayesRatio(mr.KLIEP(tol=1e-10)),
        mr.KLIEP(basis=PolynomialBasis(), tol=1e-10),
    ],
    ids=repr,
)
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.usefixtures("blockwise")
def test_files_give_the_coefficients_of_the_table_in_memory(ratio, missing, tmp_path):
    X, y = labelled()
    if missing:
        ratio = ratio.set_params(missingness=MODELS)
        for label, model in MODELS.items():
            X[y == label] = mr.corrupt(X[y == label], model, random_state=label)
    else:
        ratio = ratio.set_params(missingness=None)
    source = mr.scan_parquet(write(tmp_path / "t", X, y), target="y")
    expected = ratio.fit(X, y).coef_.copy(), ratio.intercept_
    sizes = ratio.effective_sample_size_
    ratio.fit(source)
    np.testing.assert_allclose(ratio.coef_, expected[0], atol=1e-9)
    np.testing.assert_allclose(ratio.intercept_, expected[1], atol=1e-9)
    for label, size in sizes.items():
        assert ratio.effective_sample_size_[label].rows == size.rows
        np.testing.assert_allclose(ratio.effective_sample_size_[label].kish, size.kish)
    assert list(ratio.feature_names_in_) == NAMES


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(
    "ratio", [mr.KLIEP(tol=1e-10), mr.NaiveBayesRatio(mr.KLIEP(tol=1e-10))], ids=repr
)
def test_rows_of_small_files_are_held_in_their_order(ratio, missing, tmp_path):
    """As above, of a table that is small enough to be copied."""
    X, y = labelled(n_rows=900)
    ratio = ratio.set_params(missingness=MODELS if missing else None)
    for label, model in MODELS.items() if missing else ():
        X[y == label] = mr.corrupt(X[y == label], model, random_state=label)
    expected = ratio.fit(X, y).coef_.copy()
    ratio.fit(mr.scan_parquet(write(tmp_path / "t", X, y), target="y"))
    np.testing.assert_allclose(ratio.coef_, expected, atol=1e-9)


@pytest.mark.usefixtures("blockwise")
def test_whole_rows_may_be_missing(tmp_path):
    X, y = labelled()
    model = mr.StepMissingness(np.ones(N_COLUMNS), 0.5, 0.6)
    X[y == 1] = mr.corrupt(X[y == 1], model, random_state=0)
    ratio = mr.KLIEP(missingness={1: model}, tol=1e-10)
    expected = ratio.fit(X, y).coef_.copy()
    ratio.fit(mr.scan_parquet(write(tmp_path / "t", X, y), target="y"))
    np.testing.assert_allclose(ratio.coef_, expected, atol=1e-9)


def test_a_source_is_read_again_and_again_in_order(tmp_path):
    X, y = labelled(n_rows=100)
    source = mr.scan_parquet(write(tmp_path / "t", X, y), target="y")
    for _ in range(2):
        np.testing.assert_array_equal(np.concatenate([b.rows for b in source]), X)
        np.testing.assert_array_equal(np.concatenate([b.labels for b in source]), y)
    assert source.n_rows == 100
    assert [block.start for block in source] == sorted(b.start for b in source)


def test_folders_named_for_a_column_add_it(tmp_path):
    X, y = labelled(n_rows=200)
    for label in (0, 1):
        folder = tmp_path / "t" / f"y={label}" / "site=north%20east"
        folder.mkdir(parents=True)
        table = pa.table(dict(zip(NAMES, X[y == label].T, strict=True)))
        pq.write_table(table, folder / "part.parquet")
    source = mr.scan_parquet(tmp_path / "t", target="y", columns=NAMES)
    labels = np.concatenate([block.labels for block in source])
    np.testing.assert_array_equal(labels, np.sort(y))
    order = np.argsort(y, kind="stable")
    expected = mr.KLIEP().fit(X[order], y[order]).coef_
    np.testing.assert_allclose(mr.KLIEP().fit(source).coef_, expected, atol=1e-12)


def test_an_empty_file_and_a_class_that_a_file_lacks_are_fine(tmp_path):
    X, y = labelled(n_rows=300)
    order = np.argsort(y, kind="stable")
    folder = write(tmp_path / "t", X[order], y[order])
    pq.write_table(
        pa.table({**{n: pa.array([], pa.float64()) for n in NAMES}, "y": y[:0]}),
        folder / "empty.parquet",
    )
    coef = mr.KLIEP().fit(mr.scan_parquet(folder, target="y")).coef_
    expected = mr.KLIEP().fit(X[order], y[order]).coef_
    np.testing.assert_allclose(coef, expected, atol=1e-12)


def test_text_labels_and_nulls(tmp_path):
    X, y = labelled(n_rows=400)
    words = np.where(y == 1, "well", "sick").astype(object)
    X[y == 1, 0] = np.nan
    source = mr.scan_parquet(write(tmp_path / "t", X, words), target="y")
    with pytest.raises(ValueError, match=r"'well' has NaN in column\(s\) 'x0' in"):
        mr.KLIEP().fit(source)
    fitted = mr.KLIEP().fit(mr.scan_parquet(tmp_path / "t", "y", ["x1", "x2"]))
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
    table = pa.table({"a": kind(values), "y": coded(["u", "v", "u", "v", "u"])})
    pq.write_table(table, tmp_path / "t.parquet")
    ((rows, labels),) = mr.scan_parquet(tmp_path, "y").fold(
        lambda block: [(np.array(block.rows), block.labels)],
        lambda parts: [each for part in parts for each in part],
    )
    assert rows[:, 0].tolist() == [float(value) for value in values]
    assert labels.tolist() == ["u", "v", "u", "v", "u"]


def test_float32_stays_float32(tmp_path):
    X, y = labelled(n_rows=400)
    source = mr.scan_parquet(write(tmp_path / "t", X.astype(np.float32), y), "y")
    assert {block.rows.dtype for block in source} == {np.dtype(np.float32)}


def test_a_column_without_any_value_in_one_file_is_missing_there(tmp_path):
    X, y = labelled(n_rows=600)
    write(tmp_path, X[:300], y[:300], n_files=1)
    X[300:, 1] = np.nan
    table = {**dict(zip(NAMES, X[300:].T, strict=True)), "x1": pa.nulls(300)}
    pq.write_table(pa.table({**table, "y": y[300:]}), tmp_path / "1.parquet")
    ratio = mr.KLIEP(missingness="ignore", tol=1e-10)
    expected = ratio.fit(X, y).coef_.copy()
    found = ratio.fit(mr.scan_parquet(tmp_path, "y")).coef_
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_folders_are_named_for_numbers_words_and_nothing(tmp_path):
    for value in ("1", "2.5", "__HIVE_DEFAULT_PARTITION__"):
        for word in ("1_0", "10"):
            folder = tmp_path / f"dose={value}" / f"y={word}" / "spark.parquet"
            folder.mkdir(parents=True)
            pq.write_table(pa.table({"a": [0.5]}), folder / "part.parquet")
    blocks = list(mr.scan_parquet(tmp_path, "y", ["dose", "a"]))
    doses = np.concatenate([block.rows[:, 0] for block in blocks])
    np.testing.assert_array_equal(doses, [1, 1, 2.5, 2.5, np.nan, np.nan])
    labels = np.concatenate([block.labels for block in blocks])
    assert labels.tolist() == ["10", "1_0"] * 3


@pytest.mark.parametrize(
    "column",
    [
        pa.array([Decimal(0), Decimal(1)], pa.decimal128(5, 2)),
        pa.array([0.0, 1.0], pa.float32()),
    ],
)
def test_labels_that_are_numbers_are_read_as_numbers(tmp_path, column):
    pq.write_table(pa.table({"a": [1.0, 2.0], "y": column}), tmp_path / "t.parquet")
    (block,) = mr.scan_parquet(tmp_path, "y")
    assert block.labels.dtype.kind == "f"
    assert block.labels.tolist() == [0.0, 1.0]


class TestErrors:
    def test_no_file(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="no file or folder"):
            mr.scan_parquet(tmp_path / "none", target="y")
        with pytest.raises(ValueError, match="no file that ends in"):
            mr.scan_parquet(tmp_path, target="y")

    def test_other_columns_and_types_are_named(self, tmp_path):
        X, y = labelled(n_rows=60)
        folder = write(tmp_path / "t", X, y)
        pq.write_table(pa.table({"x0": [1.0], "y": [0]}), folder / "z.parquet")
        with pytest.raises(ValueError, match=r"z.parquet lacks column\(s\) 'x1'"):
            mr.scan_parquet(folder, target="y")
        table = {name: [1.0] for name in NAMES}
        pq.write_table(pa.table({**table, "x2": ["a"], "y": [0]}), folder / "z.parquet")
        with pytest.raises(ValueError, match=r"'x2' of .*z.parquet holds text"):
            mr.scan_parquet(folder, target="y")
        pq.write_table(pa.table({**table, "y": ["0"]}), folder / "z.parquet")
        with pytest.raises(ValueError, match="labels in column 'y' are text in"):
            mr.scan_parquet(folder, target="y")
        with pytest.raises(ValueError, match="no target column 'label'"):
            mr.scan_parquet(folder / "0.parquet", target="label")

    @pytest.mark.parametrize(
        ("columns", "said"),
        [
            ({"y": [0, 1]}, "has no column besides 'y' to fit"),
            (
                {"a": pa.array([], pa.float64()), "y": pa.array([], pa.int64())},
                r"The 1 Parquet file\(s\) have no row",
            ),
            (
                {"a": pa.array([0, 1], pa.date32()), "y": [0, 1]},
                r"'a'.*date32",
            ),
        ],
    )
    def test_files_without_numbers_or_rows_say_so(self, tmp_path, columns, said):
        pq.write_table(pa.table(columns), tmp_path / "t.parquet")
        with pytest.raises(ValueError, match=said):
            mr.scan_parquet(tmp_path, "y")

    def test_an_infinite_value_is_found_by_file_and_row_group(self, tmp_path):
        X, y = labelled(n_rows=900)
        X[850, 2] = np.inf
        source = mr.scan_parquet(write(tmp_path / "t", X, y), target="y")
        where = r"'x2' holds infinity in .*2.parquet, row group 2 \(row 850 of all\)"
        with pytest.raises(ValueError, match=where):
            mr.KLIEP().fit(source)

    def test_a_missing_label_is_found(self, tmp_path):
        X, y = labelled(n_rows=90)
        labels = y.astype(float)
        labels[80] = np.nan
        source = mr.scan_parquet(write(tmp_path / "t", X, labels), target="y")
        with pytest.raises(ValueError, match=r"lacks a label in .*2.parquet"):
            mr.KLIEP().fit(source)

    @pytest.mark.parametrize("n_classes", [1, 3])
    def test_two_classes_are_needed(self, tmp_path, n_classes):
        X, _ = labelled(n_rows=90)
        source = mr.scan_parquet(
            write(tmp_path / "t", X, np.arange(90) % n_classes), target="y"
        )
        with pytest.raises(ValueError, match=f"{n_classes} class"):
            mr.KLIEP().fit(source)

    def test_a_broken_file_is_named(self, tmp_path):
        X, y = labelled(n_rows=90)
        folder = write(tmp_path / "t", X, y)
        (folder / "1.parquet").write_bytes(b"PAR1 nothing PAR1")
        with pytest.raises(OSError, match=r"1.parquet can't be read as a Parquet file"):
            mr.scan_parquet(folder, target="y")

    @pytest.mark.parametrize("passes", [0, 1, 2])
    @pytest.mark.parametrize("change", ["values", "labels", "rows", "columns", "gone"])
    @pytest.mark.usefixtures("blockwise")
    def test_a_file_that_changes_between_passes(
        self, tmp_path, monkeypatch, change, passes
    ):
        X, y = labelled(n_rows=900)
        folder = write(tmp_path / "t", X, y)
        source = mr.scan_parquet(folder, "y")
        path, done = folder / "1.parquet", []

        def alter():
            table = pq.read_table(path)
            if change == "values":
                table = table.set_column(0, "x0", pa.array(np.ones(300)))
            elif change == "labels":
                table = table.set_column(4, "y", pa.array(1 - y[300:600]))
            elif change == "rows":
                table = table.slice(0, 250)
            elif change == "columns":
                table = table.drop_columns(["x2"])
            path.unlink()
            if change != "gone":
                pq.write_table(table, path, row_group_size=100)

        whole = parquet.ParquetSource.fold

        def fold(self, work, merge):
            found = whole(self, work, merge)
            done.append(1)
            if len(done) == passes:
                alter()
            return found

        monkeypatch.setattr(parquet.ParquetSource, "fold", fold)
        if not passes:
            alter()
        said = "can't be read" if change == "gone" else "written again"
        with pytest.raises(UnreadableFileError, match=rf"1\.parquet.*{said}"):
            mr.KLIEP().fit(source)

    def test_a_column_of_texts_is_no_column_of_labels(self, tmp_path):
        texts = [f"{row:05}" * 1000 for row in range(2000)]
        pq.write_table(
            pa.table({"a": np.ones(2000), "y": texts}), tmp_path / "t.parquet"
        )
        source = mr.scan_parquet(tmp_path, "y")
        tracemalloc.start()
        with pytest.raises(ValueError, match="have 2000 values and more"):
            mr.KLIEP().fit(source)
        # As an array of NumPy's texts they would take 40 MB.
        assert tracemalloc.get_traced_memory()[1] < 2e6
        tracemalloc.stop()

    def test_a_page_that_was_damaged_on_the_way(self, tmp_path):
        X, y = labelled(n_rows=900)
        table = pa.table({**dict(zip(NAMES, X.T, strict=True)), "y": y})
        path = tmp_path / "t.parquet"
        pq.write_table(
            table, path, compression="none", use_dictionary=False,
            write_page_checksum=True,
        )  # fmt: skip
        content = bytearray(path.read_bytes())
        content[2000:2008] = bytes(8)
        path.write_bytes(content)
        with pytest.raises(UnreadableFileError, match="row group 0 can't be read"):
            mr.KLIEP().fit(mr.scan_parquet(path, "y"))

    def test_what_is_named_twice(self, tmp_path):
        X, y = labelled(n_rows=60)
        folder = write(tmp_path / "t", X, y)
        with pytest.raises(ValueError, match=r"0\.parquet is named twice"):
            mr.scan_parquet([folder, folder / ".." / "t" / "0.parquet"], "y")
        with pytest.raises(ValueError, match="columns names 'x0' twice"):
            mr.scan_parquet(folder, "y", ["x0", "x1", "x0"])
        with pytest.raises(TypeError, match="columns must be a list"):
            mr.scan_parquet(folder, "y", "x0")
        double = pa.Table.from_arrays([pa.array([1.0])] * 3, names=["a", "a", "y"])
        pq.write_table(double, tmp_path / "double.parquet")
        with pytest.raises(ValueError, match="several columns named 'a'"):
            mr.scan_parquet(tmp_path / "double.parquet", "y")
        with pytest.raises(ValueError, match="There is no path"):
            mr.scan_parquet([], "y")

    @pytest.mark.parametrize("label", ["__HIVE_DEFAULT_PARTITION__", "nan"])
    def test_a_folder_of_rows_without_a_label(self, tmp_path, label):
        for value in (label, "1"):
            (tmp_path / f"y={value}").mkdir()
            path = tmp_path / f"y={value}" / "part.parquet"
            pq.write_table(pa.table({"a": [1.0, 2.0]}), path)
        with pytest.raises(ValueError, match=f"lacks a label in .*y={label}"):
            mr.KLIEP().fit(mr.scan_parquet(tmp_path, "y"))

    def test_what_goes_with_memory_is_refused(self, tmp_path):
        X, y = labelled(n_rows=90)
        source = mr.scan_parquet(write(tmp_path / "t", X, y), target="y")
        with pytest.raises(ValueError, match="sample_weight goes with a table"):
            mr.KLIEP().fit(source, sample_weight=np.ones(90))
        with pytest.raises(ValueError, match="y must be left out"):
            mr.KLIEP().fit(source, y)
        with pytest.raises(ValueError, match="needs all rows in memory"):
            mr.KLIEP(normalize="regression").fit(source)


@pytest.mark.usefixtures("blockwise")
def test_digits_do_not_depend_on_the_number_of_threads(tmp_path):
    from missratio._base.threads import single_threaded

    X, y = labelled()
    source = mr.scan_parquet(write(tmp_path / "t", X, y), target="y")
    coef = mr.KLIEP().fit(source).coef_.copy()
    with single_threaded():
        np.testing.assert_array_equal(mr.KLIEP().fit(source).coef_, coef)


@pytest.mark.parametrize(
    "estimator",
    [
        mr.KLIEPCV(),
        mr.KernelRatio(),
        mr.ClassifierRatio(LogisticRegression()),
        mr.TiltedImputer(),
        mr.MulticlassNeymanPearsonClassifier(LogisticRegression(), {0: 0.1}),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_needs_rows_in_memory_says_so(tmp_path, estimator):
    write(tmp_path, *labelled())
    name = type(estimator).__name__
    with pytest.raises(TypeError, match=rf"{name} needs all rows in memory"):
        estimator.fit(mr.scan_parquet(tmp_path, target="y"), None)
