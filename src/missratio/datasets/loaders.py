"""Loaders of the paper's data sets: cardiotocograms, smoke detectors and weather."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from importlib.resources import files
from typing import Any, Literal

import numpy as np
from sklearn.utils import Bunch

from missratio._base.hints import check_choice, listed
from missratio._base.typing import FloatArray, IntArray
from missratio.datasets.files import DataHome, read_file

Variant = Literal["corrected", "published"]
VARIANTS: tuple[Variant, ...] = ("corrected", "published")
# A parser returns data, target, the columns' names and those of classes 0 and 1.
Parsed = tuple[FloatArray, IntArray, list[str], tuple[str, str]]


CTG_FEATURES = [
    "LB", "AC", "FM", "UC", "ASTV", "MSTV", "ALTV", "MLTV", "Mean", "Variance"
]  # fmt: skip


def load_ctg(
    *,
    variant: Variant = "corrected",
    return_X_y: bool = False,
    data_home: DataHome = None,
    verify: bool = True,
) -> Any:
    """Load the cardiotocograms: 10 features of 1655 normal and 471 other ones.

    Parameters
    ----------
    variant : {"corrected", "published"}, default="corrected"
        "published" counts the sheet's 3 footer rows as class 0, with NaN where they are
        empty, as the paper's curves do; "corrected" drops them.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.
    data_home, verify
        As of `fetch`.

    Returns
    -------
    Bunch, or (data, target)
        With `data`, `target` (1 for normal, 0 for suspect or pathologic),
        `feature_names`, `target_names`, `DESCR` and `filename`.

    Examples
    --------
    >>> from missratio.datasets import load_ctg
    >>> X, y = load_ctg(return_X_y=True)  # doctest: +SKIP
    """
    return _load("ctg", variant, return_X_y, data_home, verify)


def _ctg(content: bytes, published: bool) -> Parsed:
    from python_calamine import CalamineWorkbook

    book = CalamineWorkbook.from_filelike(io.BytesIO(content))
    sheet = book.get_sheet_by_name("Raw Data")
    header, *rows = sheet.to_python(skip_empty_area=False)
    *features, label = (header.index(name) for name in (*CTG_FEATURES, "NSP"))
    labelled = [place for place, row in enumerate(rows) if row[label] != ""]
    _check_labels([rows[place][label] for place in labelled], [1.0, 2.0, 3.0])
    # A blank row follows the header; what follows the last label is the footer.
    end = len(rows) if published else labelled[-1] + 1
    kept: list[list[Any]] = rows[labelled[0] : end]
    cells = [[row[place] for place in features] for row in kept]
    data = [[np.nan if cell == "" else float(cell) for cell in row] for row in cells]
    is_normal = np.array([int(row[label] == 1.0) for row in kept])
    classes = ("suspect or pathologic", "normal")
    return np.array(data), is_normal, list(CTG_FEATURES), classes


FIRE_FEATURES = [
    "Temperature[C]", "Humidity[%]", "TVOC[ppb]", "eCO2[ppm]", "Raw H2",
    "Raw Ethanol", "Pressure[hPa]", "PM1.0", "PM2.5", "NC0.5", "NC1.0", "NC2.5",
]  # fmt: skip
FIRE_CAPS = {"TVOC[ppb]": 1e3, "eCO2[ppm]": 1e3, "PM1.0": 1.0, "PM2.5": 1.0}
FIRE_CAPS |= {"NC0.5": 5.0, "NC2.5": 5.0}


def load_fire(
    *,
    variant: Variant = "corrected",
    return_X_y: bool = False,
    data_home: DataHome = None,
) -> Any:
    """Load the readings of smoke detectors: 12 capped features, with fire and without.

    The publisher's file was not at hand when this was written; see `DESCR`. No SHA-256
    of it is known, so none is compared.

    Parameters
    ----------
    variant : {"corrected", "published"}, default="corrected"
        "published" overwrites NC2.5 below 5 by the capped PM2.5, as the paper's curves
        do.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.
    data_home
        As of `fetch`.

    Returns
    -------
    Bunch, or (data, target)
        With `data`, `target` (1 for no fire, 0 for fire), `feature_names`,
        `target_names`, `DESCR` and `filename`.

    Examples
    --------
    >>> from missratio.datasets import load_fire
    >>> X, y = load_fire(return_X_y=True)  # doctest: +SKIP
    """
    return _load("fire", variant, return_X_y, data_home, verify=True)


def _fire(content: bytes, published: bool) -> Parsed:
    import pyarrow

    columns = dict.fromkeys(FIRE_FEATURES, pyarrow.float64())
    table = _read_csv(content, columns | {"Fire Alarm": pyarrow.string()})
    labels = table["Fire Alarm"].to_pylist()
    _check_labels(labels, ["0", "1"])
    readings = {
        name: np.minimum(table[name], FIRE_CAPS.get(name, np.inf))
        for name in FIRE_FEATURES
    }
    if published:
        below = readings["NC2.5"] < FIRE_CAPS["NC2.5"]
        readings["NC2.5"] = np.where(below, readings["PM2.5"], readings["NC2.5"])
    data = np.column_stack(list(readings.values()))
    no_fire = np.array([int(label == "0") for label in labels])
    return data, no_fire, list(FIRE_FEATURES), ("fire", "no fire")


WEATHER_MEASUREMENTS = [
    "MinTemp", "MaxTemp", "Rainfall", "Evaporation", "Sunshine", "WindGustSpeed",
    "WindSpeed9am", "WindSpeed3pm", "Humidity9am", "Humidity3pm", "Pressure9am",
    "Pressure3pm", "Cloud9am", "Cloud3pm", "Temp9am", "Temp3pm",
]  # fmt: skip
# The level without an indicator comes first; the others are in the order of names.
_WINDS = [
    "E", "ENE", "ESE", "N", "NE", "NNE", "NNW", "NW", "S", "SE", "SSE", "SSW", "SW"
]  # fmt: skip
WEATHER_LEVELS = {
    "WindGustDir": ["W", *_WINDS, "WNW", "WSW"],
    "WindDir9am": ["W", *_WINDS, "WNW", "WSW"],
    "WindDir3pm": ["WNW", *_WINDS, "W", "WSW"],
    "RainToday": ["No", "Yes"],
}


def load_weather(
    *,
    variant: Variant = "corrected",
    return_X_y: bool = False,
    data_home: DataHome = None,
    verify: bool = True,
) -> Any:
    """Load the weather: 62 features of 142,193 days, and whether it rained on the next.

    Parameters
    ----------
    variant : {"corrected", "published"}, default="corrected"
        "published" sets a missing measurement to the lower bound of its trimmed range
        and the indicators of a missing category to 0, as the paper's curves do;
        "corrected" keeps NaN.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.
    data_home, verify
        As of `fetch`.

    Returns
    -------
    Bunch, or (data, target)
        With `data`, `target` (1 for no rain tomorrow, 0 for rain), `feature_names`,
        `target_names`, `DESCR` and `filename`.

    Examples
    --------
    >>> from missratio.datasets import load_weather
    >>> X, y = load_weather(return_X_y=True)  # doctest: +SKIP
    """
    return _load("weather", variant, return_X_y, data_home, verify)


def _weather(content: bytes, published: bool) -> Parsed:
    import pyarrow
    from pyarrow import compute

    columns = dict.fromkeys(WEATHER_MEASUREMENTS, pyarrow.float64())
    columns |= dict.fromkeys([*WEATHER_LEVELS, "RainTomorrow"], pyarrow.string())
    table = _read_csv(content, columns)
    table = table.filter(table["RainTomorrow"].is_valid())
    labels = np.array(table["RainTomorrow"])
    _check_labels(np.unique(labels).tolist(), ["No", "Yes"])
    blocks, names = [], list(WEATHER_MEASUREMENTS)
    for name in WEATHER_MEASUREMENTS:
        # Measurements are trimmed to median ± 5 IQR.
        values = np.array(table[name])
        first, median, third = np.nanpercentile(values, [25, 50, 75])
        low, high = median - 5.0 * (third - first), median + 5.0 * (third - first)
        values = np.clip(values, low, high)
        blocks.append(np.where(np.isnan(values), low, values) if published else values)
    for name, levels in WEATHER_LEVELS.items():
        # Each level but the first has a column, 1.0 where it is that level.
        code = compute.index_in(table[name], value_set=pyarrow.array(levels))
        _check_labels(table[name].unique().to_pylist(), [*levels, None])
        codes = np.array(code.fill_null(-1))
        indicators = np.eye(len(levels))[codes][:, 1:]
        indicators[codes == -1] = 0.0 if published else np.nan
        blocks.append(indicators)
        names += [f"{name}_{level}" for level in levels[1:]]
    no_rain = (labels == "No").astype(np.intp)
    classes = ("rain tomorrow", "no rain tomorrow")
    return np.column_stack(blocks), no_rain, names, classes


def _read_csv(content: bytes, columns: Mapping[str, Any]) -> Any:
    """Columns of a CSV file as a PyArrow table, nulls where a field is empty or NA."""
    import pyarrow
    from pyarrow import csv as arrow_csv

    options = arrow_csv.ConvertOptions(
        include_columns=list(columns),
        column_types=dict(columns),
        null_values=["", "NA"],
        strings_can_be_null=True,
    )
    return arrow_csv.read_csv(pyarrow.BufferReader(content), convert_options=options)


def _check_labels(labels: Collection[Any], known: Sequence[Any]) -> None:
    if not labels:
        raise ValueError("no row has a label")
    foreign = sorted({str(label) for label in labels} - {str(label) for label in known})
    if foreign:
        raise ValueError(f"labels must be among {listed(known)}, not {listed(foreign)}")


def _load(
    name: Literal["ctg", "fire", "weather"],
    variant: Variant,
    return_X_y: bool,
    data_home: DataHome,
    verify: bool,
) -> Any:
    """As scikit-learn's loaders return it: a Bunch, or data and target."""
    check_choice("variant", variant, VARIANTS)
    path, content = read_file(name, data_home, verify)
    parse = {"ctg": _ctg, "fire": _fire, "weather": _weather}[name]
    try:
        data, target, feature_names, target_names = parse(
            content, variant == "published"
        )
    # Each of the libraries that read files has errors of its own.
    except Exception as error:
        raise ValueError(
            f"{path} can't be read as the publisher's table: {type(error).__name__}: "
            f"{error}. Replace it by a sound copy."
        ) from error
    if return_X_y:
        return data, target
    description = files("missratio.datasets") / "descriptions" / f"{name}.rst"
    return Bunch(
        data=data,
        target=target,
        feature_names=feature_names,
        target_names=np.array(target_names),
        DESCR=description.read_text(encoding="utf-8"),
        filename=str(path),
    )
