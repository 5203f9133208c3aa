"""Weather: trimmed, with indicators, and with NaN or the published lower bounds."""

import gzip

import numpy as np
import pytest

from missratio.datasets import load_weather

CONTINUOUS = [
    "MinTemp",
    "MaxTemp",
    "Rainfall",
    "Evaporation",
    "Sunshine",
    "WindGustSpeed",
    "WindSpeed9am",
    "WindSpeed3pm",
    "Humidity9am",
    "Humidity3pm",
    "Pressure9am",
    "Pressure3pm",
    "Cloud9am",
    "Cloud3pm",
    "Temp9am",
    "Temp3pm",
]
FACTORS = ["WindGustDir", "WindDir9am", "WindDir3pm", "RainToday"]
HEADER = ["Date", "Location", *CONTINUOUS, *FACTORS, "RISK_MM", "RainTomorrow"]
DAYS = 9


def days():
    """Nine days, their measurements 0, 1, ..., 8, and all winds from the west."""
    return [
        ["2008-12-01", "Albury", *[i] * 16, "W", "W", "WNW", "No", 0, "No"]
        for i in range(DAYS)
    ]


def write(folder, rows, header=HEADER):
    text = "".join(",".join(map(str, row)) + "\n" for row in [header, *rows])
    (folder / "weatherAUS.csv.gz").write_bytes(gzip.compress(text.encode()))
    return {"data_home": folder, "verify": False}


def test_rain_tomorrow_is_the_controlled_class_and_unknown_days_are_left_out(tmp_path):
    rows = days()
    rows[3][-1], rows[5][-1] = "Yes", "NA"
    table = load_weather(**write(tmp_path, rows))
    np.testing.assert_array_equal(table.target, [1, 1, 1, 0, 1, 1, 1, 1])
    assert table.data.shape == (DAYS - 1, 62)
    assert table.target_names[0] == "rain tomorrow"


def test_measurements_are_trimmed_to_five_quartile_ranges_about_the_median(tmp_path):
    rows = days()
    # Median 4 and quartiles 2 and 6 stay: the range is [−16, 24].
    rows[0][2], rows[8][2] = -100, 100
    data, _ = load_weather(return_X_y=True, **write(tmp_path, rows))
    np.testing.assert_array_equal(data[:, 0], [-16, 1, 2, 3, 4, 5, 6, 7, 24])
    np.testing.assert_array_equal(data[:, 1], range(DAYS))


@pytest.mark.parametrize("variant", ["corrected", "published"])
def test_each_level_but_one_has_an_indicator(tmp_path, variant):
    rows = days()
    rows[1][18], rows[2][19], rows[3][20], rows[4][21] = "NE", "WNW", "W", "Yes"
    table = load_weather(variant=variant, **write(tmp_path, rows))
    assert table.feature_names[:16] == CONTINUOUS
    assert len(set(table.feature_names)) == 62
    on = [
        [table.feature_names[16 + j] for j in np.flatnonzero(row)]
        for row in table.data[:, 16:]
    ]
    assert on == [
        [],
        ["WindGustDir_NE"],
        ["WindDir9am_WNW"],
        ["WindDir3pm_W"],
        ["RainToday_Yes"],
        *[[]] * 4,
    ]
    absent = {"WindGustDir_W", "WindDir9am_W", "WindDir3pm_WNW", "RainToday_No"}
    assert not absent & set(table.feature_names)


def test_what_is_missing_stays_so_or_is_published_as_a_bound_and_zeros(tmp_path):
    rows = days()
    rows[0][3] = rows[1][18] = rows[2][21] = "NA"
    where = write(tmp_path, rows)
    data, _ = load_weather(return_X_y=True, **where)
    missing = np.isnan(data)
    assert missing[0, 1]
    assert missing[1, 16:31].all()
    assert missing[2, 61]
    assert missing.sum() == 17
    published, _ = load_weather(variant="published", return_X_y=True, **where)
    # Of 1, ..., 8 the median is 4.5 and the quartiles are 2.75 and 6.25.
    assert published[0, 1] == 4.5 - 5 * 3.5
    assert not published[1, 16:31].any()
    assert published[2, 61] == 0.0
    np.testing.assert_array_equal(published[~missing], data[~missing])


def test_tomorrows_rain_is_no_feature_and_need_not_be_there(tmp_path):
    plain, _ = load_weather(return_X_y=True, **write(tmp_path, days()))
    place = HEADER.index("RISK_MM")
    rows = [row[:place] + row[place + 1 :] for row in days()]
    header = HEADER[:place] + HEADER[place + 1 :]
    data, _ = load_weather(return_X_y=True, **write(tmp_path, rows, header))
    np.testing.assert_array_equal(data, plain)


def test_a_frame_has_the_names(tmp_path):
    pytest.importorskip("pandas")
    table = load_weather(as_frame=True, **write(tmp_path, days()))
    assert list(table.frame.columns) == [*table.feature_names, "target"]


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (18, "NEE", "among 'W', .*: got 'NEE'"),
        (21, "Maybe", "among 'No', 'Yes': got 'Maybe'"),
        (2, "warm", "can't be read"),
        (-1, "Perhaps", "got 'Perhaps'"),
    ],
)
def test_foreign_values_are_refused(tmp_path, column, value, message):
    rows = days()
    rows[4][column] = value
    with pytest.raises(ValueError, match=message):
        load_weather(**write(tmp_path, rows))


def test_a_table_without_labels_or_columns_is_refused(tmp_path):
    rows = days()
    for row in rows:
        row[-1] = "NA"
    with pytest.raises(ValueError, match="no day with a label"):
        load_weather(**write(tmp_path, rows))
    with pytest.raises(ValueError, match="'MinTemp', 'MaxTemp'"):
        load_weather(**write(tmp_path, [["1"]], ["Date"]))
    with pytest.raises(ValueError, match="SHA-256"):
        load_weather(data_home=tmp_path)


@pytest.mark.data
def test_the_publishers_file_has_the_rows_that_it_should(data_folder):
    table = load_weather(data_home=data_folder)
    assert table.data.shape == (142_193, 62)
    assert np.bincount(table.target).tolist() == [31_877, 110_316]
    share = dict(
        zip(table.feature_names, np.isnan(table.data).mean(axis=0), strict=True)
    )
    found = [
        share[name] for name in ("Sunshine", "Evaporation", "Cloud3pm", "Cloud9am")
    ]
    np.testing.assert_allclose(found, [0.477, 0.428, 0.402, 0.377], atol=5e-4)


@pytest.mark.data
def test_the_published_variant_is_complete_and_elsewhere_the_same(data_folder):
    corrected, target = load_weather(return_X_y=True, data_home=data_folder)
    published, same = load_weather(
        variant="published", return_X_y=True, data_home=data_folder
    )
    missing = np.isnan(corrected)
    assert not np.isnan(published).any()
    np.testing.assert_array_equal(published[~missing], corrected[~missing])
    np.testing.assert_array_equal(target, same)
    # What is missing is at the lower bound, where nothing that was measured lies.
    assert published[missing[:, 4], 4].max() < np.nanmin(corrected[:, 4])
    assert not published[:, 16:][missing[:, 16:]].any()
