"""Data sets are read as published or corrected; what isn't such a table is refused."""

import gzip

import numpy as np
import pytest
import xlsxwriter

from missratio.datasets import load_ctg, load_fire, load_weather
from missratio.datasets.loaders import (
    CTG_FEATURES,
    FIRE_FEATURES,
    WEATHER_LEVELS,
    WEATHER_MEASUREMENTS,
)


def arrays(load, **options):
    return load(return_X_y=True, **options)


@pytest.fixture
def ctg(tmp_path):
    """Write a sheet in the manner of the publisher's and say where it is."""

    def write(labels=(2.0, 1.0, 3.0), header=(*CTG_FEATURES, "NSP"), sheet="Raw Data"):
        data = [[*np.arange(10.0) + 10 * i, label] for i, label in enumerate(labels)]
        footer = ["", "", 564.0, 23.0, 87.0, 7.0, 91.0, 50.7, "", "", ""]
        rows = [list(header), [""] * 11, *data, [""] * 11, [""] * 11, footer]
        with xlsxwriter.Workbook(tmp_path / "CTG.xls") as book:
            page = book.add_worksheet(sheet)
            for number, row in enumerate(rows):
                page.write_row(number, 0, row)
        return {"data_home": tmp_path, "verify": False}

    return write


def test_labels_say_the_class_and_the_footer_is_dropped_or_published(ctg):
    where = ctg()
    table = load_ctg(**where)
    assert table.feature_names == CTG_FEATURES
    assert list(table.target_names) == ["suspect or pathologic", "normal"]
    assert table.filename.endswith("CTG.xls")
    assert table.DESCR.startswith("Cardiotocograms\n")
    data, target = arrays(load_ctg, **where)
    np.testing.assert_array_equal(target, [0, 1, 0])
    np.testing.assert_array_equal(data, np.arange(30.0).reshape(3, 10))
    data, target = arrays(load_ctg, variant="published", **where)
    np.testing.assert_array_equal(target, [0, 1, 0, 0, 0, 0])
    assert np.isnan(data[3:5]).all()
    np.testing.assert_array_equal(np.isnan(data[5]), [1, 1, 0, 0, 0, 0, 0, 0, 1, 1])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sheet": "Data"}, "WorksheetNotFound: Raw Data"),
        ({"header": [*CTG_FEATURES, "NPS"]}, "'NSP' is not in list"),
        ({"labels": (1.0, 4.0)}, r"among 1\.0, 2\.0, 3\.0, not '4\.0'"),
        ({"labels": ()}, "no row has a label"),
    ],
)
def test_what_is_not_that_sheet_is_refused(ctg, changed, message):
    with pytest.raises(ValueError, match=message):
        load_ctg(**ctg(**changed))


def test_what_is_no_workbook_is_refused(tmp_path):
    (tmp_path / "CTG.xls").write_bytes(b"damaged")
    with pytest.raises(ValueError, match="SHA-256"):
        load_ctg(data_home=tmp_path)
    with pytest.raises(ValueError, match="publisher's table"):
        load_ctg(data_home=tmp_path, verify=False)


@pytest.mark.parametrize("load", [load_ctg, load_fire, load_weather])
def test_an_unknown_variant_is_refused_with_the_choices(load):
    with pytest.raises(ValueError, match="'corrected', 'published'"):
        load(variant="text")


FIRE_HEADER = ["", "UTC", *FIRE_FEATURES, "CNT", "Fire Alarm"]
# Two rows, low and high: 12 features, the counter and the alarm.
LOW = [20.0, 57.4, 0, 400, 12306, 18520, 939.7, 0.2, 0.3, 1.5, 0.4, 0.6, 0, 0]
HIGH = [21.0, 50.0, 1500, 2000, 13000, 19500, 938.0, 7.0, 9.0, 60.0, 20.0, 8.0, 9, 1]
CAPPED = [21.0, 50.0, 1000, 1000, 13000, 19500, 938.0, 1.0, 1.0, 5.0, 20.0, 5.0]


def write_fire(folder, rows, header=FIRE_HEADER):
    rows = [[i, 1654733331 + i, *row] for i, row in enumerate(rows)]
    text = "".join(",".join(map(str, row)) + "\n" for row in [header, *rows])
    (folder / "smoke_detection_iot.csv").write_text(text)
    return {"data_home": folder}


def test_high_readings_are_capped_and_fire_is_the_controlled_class(tmp_path):
    where = write_fire(tmp_path, [LOW, HIGH, ["", *LOW[1:11], 4.9, 1, 1]])
    table = load_fire(**where)
    np.testing.assert_array_equal(table.target, [1, 0, 0])
    assert list(table.target_names) == ["fire", "no fire"]
    assert "SHA-256" in table.DESCR
    np.testing.assert_array_equal(table.data[:2], [LOW[:12], CAPPED])
    # A missing reading stays missing; below its cap NC2.5 is published as PM2.5.
    np.testing.assert_array_equal(np.isnan(table.data[2]), np.eye(12)[0])
    published, _ = arrays(load_fire, variant="published", **where)
    np.testing.assert_array_equal(published[:, :11], table.data[:, :11])
    np.testing.assert_array_equal(table.data[:, 11], [0.6, 5.0, 4.9])
    np.testing.assert_array_equal(published[:, 11], [0.3, 5.0, 0.3])


@pytest.mark.parametrize(
    ("rows", "header", "message"),
    [
        ([LOW], [*FIRE_HEADER[:-1], "Alarm"], "'Fire Alarm'.* does not exist"),
        ([["hot", *LOW[1:]]], FIRE_HEADER, "can't be read"),
        ([[*LOW[:-1], 2]], FIRE_HEADER, "among '0', '1', not '2'"),
        ([[*LOW[:-1], ""]], FIRE_HEADER, "not 'None'"),
    ],
)
def test_what_is_no_table_of_readings_is_refused(tmp_path, rows, header, message):
    with pytest.raises(ValueError, match=message):
        load_fire(**write_fire(tmp_path, rows, header))


MEASURED, FACTORS = WEATHER_MEASUREMENTS, list(WEATHER_LEVELS)
WEATHER_HEADER = ["Date", "Location", *MEASURED, *FACTORS, "RISK_MM", "RainTomorrow"]


def days(changes=()):
    """Nine days, their measurements 0, 1, ..., 8, and all winds from the west."""
    rows = [
        ["2008-12-01", "Albury", *[i] * 16, "W", "W", "WNW", "No", 0, "No"]
        for i in range(9)
    ]
    for day, column, value in changes:
        rows[day][column] = value
    return rows


def write_weather(folder, rows, header=WEATHER_HEADER):
    text = "".join(",".join(map(str, row)) + "\n" for row in [header, *rows])
    (folder / "weatherAUS.csv.gz").write_bytes(gzip.compress(text.encode()))
    return {"data_home": folder, "verify": False}


def test_rain_tomorrow_is_the_controlled_class_and_unknown_days_are_left_out(tmp_path):
    rows = days([(3, -1, "Yes"), (5, -1, "NA")])
    table = load_weather(**write_weather(tmp_path, rows))
    np.testing.assert_array_equal(table.target, [1, 1, 1, 0, 1, 1, 1, 1])
    assert table.data.shape == (8, 62)
    assert table.target_names[0] == "rain tomorrow"


def test_measurements_are_trimmed_to_five_quartile_ranges_about_the_median(tmp_path):
    # Median 4 and quartiles 2 and 6 stay: the range is [−16, 24].
    rows = days([(0, 2, -100), (8, 2, 100)])
    data, _ = arrays(load_weather, **write_weather(tmp_path, rows))
    np.testing.assert_array_equal(data[:, 0], [-16, 1, 2, 3, 4, 5, 6, 7, 24])
    np.testing.assert_array_equal(data[:, 1], range(9))


@pytest.mark.parametrize("variant", ["corrected", "published"])
def test_each_level_but_one_has_an_indicator(tmp_path, variant):
    rows = days([(1, 18, "NE"), (2, 19, "WNW"), (3, 20, "W"), (4, 21, "Yes")])
    table = load_weather(variant=variant, **write_weather(tmp_path, rows))
    assert table.feature_names[:16] == WEATHER_MEASUREMENTS
    assert len(set(table.feature_names)) == 62
    seen = [np.array(table.feature_names[16:])[row == 1] for row in table.data[:, 16:]]
    ones = ["WindGustDir_NE", "WindDir9am_WNW", "WindDir3pm_W", "RainToday_Yes"]
    assert [row.tolist() for row in seen] == [[], *([one] for one in ones), *[[]] * 4]
    absent = {"WindGustDir_W", "WindDir9am_W", "WindDir3pm_WNW", "RainToday_No"}
    assert not absent & set(table.feature_names)


def test_what_is_missing_stays_so_or_is_published_as_a_bound_and_zeros(tmp_path):
    rows = days([(0, 3, "NA"), (1, 18, "NA"), (2, 21, "NA")])
    where = write_weather(tmp_path, rows)
    data, _ = arrays(load_weather, **where)
    missing = np.isnan(data)
    assert missing[0, 1]
    assert missing[1, 16:31].all()
    assert missing[2, 61]
    assert missing.sum() == 17
    published, _ = arrays(load_weather, variant="published", **where)
    # Of 1, ..., 8 the median is 4.5 and the quartiles are 2.75 and 6.25.
    assert published[0, 1] == 4.5 - 5 * 3.5
    assert not published[1, 16:31].any()
    assert published[2, 61] == 0.0
    np.testing.assert_array_equal(published[~missing], data[~missing])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([(4, 18, "NEE")], "among 'W', .*, not 'NEE'"),
        ([(4, 21, "Maybe")], "among 'No', 'Yes', .* not 'Maybe'"),
        ([(4, 2, "warm")], "can't be read"),
        ([(4, -1, "Perhaps")], "not 'Perhaps'"),
        ([(day, -1, "NA") for day in range(9)], "no row has a label"),
    ],
)
def test_foreign_values_are_refused(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        load_weather(**write_weather(tmp_path, days(changes)))
    with pytest.raises(ValueError, match=r"'MinTemp'.* does not exist"):
        load_weather(**write_weather(tmp_path, [["1"]], ["Date"]))


@pytest.mark.data
@pytest.mark.parametrize(
    ("variant", "rows", "missing"), [("corrected", 471, 0), ("published", 474, 24)]
)
def test_the_publishers_cardiotocograms(data_folder, variant, rows, missing):
    data, target = arrays(load_ctg, variant=variant, data_home=data_folder)
    assert data.shape == (1655 + rows, 10)
    assert np.bincount(target).tolist() == [rows, 1655]
    assert np.isnan(data).sum() == missing


@pytest.mark.data
def test_the_publishers_weather(data_folder):
    table = load_weather(data_home=data_folder)
    assert table.data.shape == (142_193, 62)
    assert np.bincount(table.target).tolist() == [31_877, 110_316]
    missing = np.isnan(table.data)
    places = [4, 3, 13, 12]  # Sunshine, Evaporation, Cloud3pm and Cloud9am
    shares = missing.mean(axis=0)[places]
    np.testing.assert_allclose(shares, [0.477, 0.428, 0.402, 0.377], atol=5e-4)
    published, same = arrays(load_weather, variant="published", data_home=data_folder)
    assert not np.isnan(published).any()
    np.testing.assert_array_equal(published[~missing], table.data[~missing])
    np.testing.assert_array_equal(table.target, same)
    # What is missing is at the lower bound, where nothing that was measured lies.
    assert published[missing[:, 4], 4].max() < np.nanmin(table.data[:, 4])
    assert not published[:, 16:][missing[:, 16:]].any()
