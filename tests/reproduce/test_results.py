"""Means, intervals and the table of every run."""

import io

import numpy as np
import pytest
from pyarrow import parquet

from missratio.reproduce import EXPERIMENTS, Conditions, Result, count_overlaps
from missratio.reproduce._results import make_curve


@pytest.fixture
def result():
    rng = np.random.default_rng(0)
    experiment = EXPERIMENTS["ctg_vary_missing"]
    values = {
        m: rng.random((4, 10)) for m in ("M-KLIEP (known)", "Iterative imputation")
    }
    values["Iterative imputation"][2:] = np.nan
    values["Iterative imputation"][:, 0] = np.nan
    return Result(experiment, Conditions(seed=3), values, {"M-KLIEP (known)": 1.0})


def test_what_is_written_is_read_back(result, tmp_path):
    path = tmp_path / "table.parquet"
    path.write_bytes(result.as_parquet())
    again = Result.from_parquet(result.experiment, path, result.seconds)
    assert again.conditions == result.conditions
    assert again.seconds == result.seconds
    for method, values in result.values.items():
        np.testing.assert_array_equal(again.values[method], values)


def test_intervals_are_mean_and_z_standard_errors():
    values = np.array([[1.0], [2.0], [4.0]])
    curve = make_curve(values, 1.96)
    half = 1.96 * np.std(values, ddof=1) / np.sqrt(3)
    assert curve.mean[0] == pytest.approx(7 / 3)
    assert curve.hi[0] - curve.mean[0] == pytest.approx(half)
    assert curve.runs == (3,)


def test_one_run_has_no_interval_and_none_has_no_mean():
    curve = make_curve(np.array([[1.0, np.nan], [np.nan, np.nan]]), 1.96)
    assert curve.mean == (1.0, None)
    assert curve.lo == curve.hi == (None, None)
    assert curve.runs == (1, 0)


def test_the_table_has_a_row_for_every_run(result):
    file = parquet.ParquetFile(io.BytesIO(result.as_parquet()))
    rows = file.read().to_pylist()
    assert len(rows) == 40 + 18
    first = result.values["M-KLIEP (known)"][1, 3]
    assert {"x": 0.3, "method": "M-KLIEP (known)", "run": 1, "value": first} in rows
    assert b'"seed": 3' in file.schema_arrow.metadata[b"missratio"]


def test_json_has_null_where_there_is_nothing(result):
    entry = result.as_json()
    assert list(entry) == ["x_name", "x", "y_name", "curves"]
    curve = entry["curves"]["Iterative imputation"]
    assert list(curve) == ["mean", "lo", "hi"]
    assert curve["mean"][0] is None
    assert curve["lo"][1] < curve["mean"][1] < curve["hi"][1]


def test_overlaps_are_counted_where_both_have_intervals(result):
    agree, compared = count_overlaps([result])
    assert compared == 10 + 9
    assert 0 <= agree <= compared
