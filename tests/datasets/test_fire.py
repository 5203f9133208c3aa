"""Smoke detectors, on made-up tables of the documented columns: no other is at hand."""

import numpy as np
import pytest

from missratio.datasets import load_fire

FEATURES = [
    "Temperature[C]",
    "Humidity[%]",
    "TVOC[ppb]",
    "eCO2[ppm]",
    "Raw H2",
    "Raw Ethanol",
    "Pressure[hPa]",
    "PM1.0",
    "PM2.5",
    "NC0.5",
    "NC1.0",
    "NC2.5",
]
HEADER = ["", "UTC", *FEATURES, "CNT", "Fire Alarm"]


def write(folder, rows, header=HEADER):
    lines = [",".join(header)]
    lines += [
        ",".join(map(str, [i, 1654733331 + i, *row])) for i, row in enumerate(rows)
    ]
    (folder / "smoke_detection_iot.csv").write_text("\n".join(lines) + "\n")


# Two rows, low and high: 12 features, the counter and the alarm.
LOW = [20.0, 57.4, 0, 400, 12306, 18520, 939.7, 0.2, 0.3, 1.5, 0.4, 0.6, 0, 0]
HIGH = [21.0, 50.0, 1500, 2000, 13000, 19500, 938.0, 7.0, 9.0, 60.0, 20.0, 8.0, 9, 1]


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, [LOW, HIGH, [*LOW[:11], 4.9, 1, 1]])
    return tmp_path


def test_fire_is_the_controlled_class(folder):
    table = load_fire(data_home=folder)
    np.testing.assert_array_equal(table.target, [1, 0, 0])
    assert list(table.target_names) == ["fire", "no fire"]
    assert table.feature_names == FEATURES
    assert "no\nSHA-256" in table.DESCR or "no SHA-256" in table.DESCR


def test_high_readings_are_capped_and_others_are_not(folder):
    data, _ = load_fire(data_home=folder, return_X_y=True)
    np.testing.assert_array_equal(data[0], LOW[:12])
    expected = dict(zip(FEATURES, HIGH, strict=False)) | {
        "TVOC[ppb]": 1000,
        "eCO2[ppm]": 1000,
        "PM1.0": 1,
        "PM2.5": 1,
        "NC0.5": 5,
        "NC2.5": 5,
    }
    np.testing.assert_array_equal(data[1], list(expected.values()))


def test_the_published_variant_overwrites_low_nc25_by_pm25(folder):
    corrected, _ = load_fire(data_home=folder, return_X_y=True)
    published, _ = load_fire(variant="published", data_home=folder, return_X_y=True)
    np.testing.assert_array_equal(published[:, :11], corrected[:, :11])
    np.testing.assert_array_equal(corrected[:, 11], [0.6, 5.0, 4.9])
    np.testing.assert_array_equal(published[:, 11], [0.3, 5.0, 0.3])


@pytest.mark.parametrize(
    ("rows", "header", "message"),
    [
        ([LOW], [*HEADER[:-1], "Alarm"], "column.*'Fire Alarm'"),
        ([["hot", *LOW[1:]]], HEADER, "can't be read"),
        ([[*LOW[:-1], 2]], HEADER, "among '0', '1': got '2'"),
        ([[*LOW[:-1], ""]], HEADER, "got 'None'"),
    ],
)
def test_what_is_not_that_table_is_refused(tmp_path, rows, header, message):
    write(tmp_path, rows, header)
    with pytest.raises(ValueError, match=message):
        load_fire(data_home=tmp_path)


def test_a_missing_reading_stays_missing(tmp_path):
    write(tmp_path, [["", *LOW[1:]]])
    data, _ = load_fire(data_home=tmp_path, return_X_y=True)
    np.testing.assert_array_equal(np.isnan(data), np.eye(1, 12, dtype=bool))


def test_an_absent_file_is_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"smoke_detection_iot\.csv"):
        load_fire(data_home=tmp_path)
