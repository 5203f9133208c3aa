"""Daily weather in Australia, from Kaggle and the Bureau of Meteorology."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from missratio._base.typing import FloatArray
from missratio.datasets._files import DataHome, read_file
from missratio.datasets._table import (
    LoadedDataset,
    Variant,
    check_labels,
    is_published,
    read_csv,
)

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
# The level without an indicator is the first; the others are in the order of names.
_OTHERS = ["E", "ENE", "ESE", "N", "NE", "NNE", "NNW", "NW", "S", "SE", "SSE", "SSW"]
LEVELS = {
    "WindGustDir": ["W", *_OTHERS, "SW", "WNW", "WSW"],
    "WindDir9am": ["W", *_OTHERS, "SW", "WNW", "WSW"],
    "WindDir3pm": ["WNW", *_OTHERS, "SW", "W", "WSW"],
    "RainToday": ["No", "Yes"],
}
LABEL = "RainTomorrow"
REACH = 5.0

DESCRIPTION = """\
Rain in Australia
-----------------
Ten years of daily observations at weather stations in Australia. Class 1, the
numerator: 110,316 days with no rain on the day after. Class 0, whose error is
controlled, so that rain is seldom missed: 31,877 days with rain on the day after. Days
for which that is not known are left out. 62 features: 16 measurements, trimmed to their
median plus or minus 5 interquartile ranges, and indicators of the winds' directions (15
each, the level left out being W, W and WNW) and of rain today. Date, place and RISK_MM,
which is tomorrow's rain, are left out.

Much is missing: Sunshine on 47.7 % of the days, Evaporation on 42.8 %, Cloud3pm on 40.2
%, Cloud9am on 37.7 %. The variant "corrected" keeps NaN, in all the indicators of a
direction that is not known too, for the user to impute; not from each class by itself,
which would tell the label. The variant "published" sets a measurement that is missing
to the lower bound of its range, and the indicators of what is missing to 0, as the
curves of Givens, Liu and Reeve (2023) do.

From Kaggle, https://www.kaggle.com/datasets/jsphyg/weather-dataset-rattle-package,
where it came from the Bureau of Meteorology, http://www.bom.gov.au/climate/data. The
SHA-256 is that of an edition with 142,193 rows and RISK_MM; another one is read with
verify=False.
"""


def load_weather(
    *,
    variant: Variant = "corrected",
    return_X_y: bool = False,
    as_frame: bool = False,
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
    as_frame : bool, default=False
        Whether data and target are a pandas DataFrame and Series.
    data_home, verify
        As of `fetch`.

    Returns
    -------
    Bunch, or (data, target)
        With `data`, `target` (1 for no rain tomorrow, 0 for rain), `frame` (None unless
        ``as_frame``), `feature_names`, `target_names`, `DESCR` and `filename`.
    """
    published = is_published(variant)
    path, content = read_file("weather", data_home, verify)
    table = _labelled_days(content, path)
    labels = np.array(table[LABEL])
    check_labels(np.unique(labels).tolist(), ["No", "Yes"], path)
    blocks = [_trimmed(np.array(table[name]), published) for name in CONTINUOUS]
    blocks += [_indicators(table[name], name, path, published) for name in LEVELS]
    indicators = [
        f"{name}_{level}" for name, levels in LEVELS.items() for level in levels[1:]
    ]
    return LoadedDataset(
        np.column_stack(blocks),
        (labels == "No").astype(np.intp),
        [*CONTINUOUS, *indicators],
        ("rain tomorrow", "no rain tomorrow"),
        DESCRIPTION,
        path,
    ).returned(return_X_y, as_frame)


def _labelled_days(content: bytes, path: Path) -> Any:
    import pyarrow

    columns = dict.fromkeys(CONTINUOUS, pyarrow.float64())
    columns |= dict.fromkeys([*LEVELS, LABEL], pyarrow.string())
    table = read_csv(content, path, columns)
    labelled = table.filter(table[LABEL].is_valid())
    if labelled.num_rows == 0:
        raise ValueError(f"{path} has no day with a label in {LABEL!r}.")
    return labelled


def _trimmed(values: FloatArray, published: bool) -> FloatArray:
    """The values within median ± 5 IQR, what is missing as the variant has it."""
    known = values[~np.isnan(values)]
    if not known.size:
        return values
    first, median, third = np.percentile(known, [25, 50, 75])
    low, high = median - REACH * (third - first), median + REACH * (third - first)
    trimmed = np.clip(values, low, high)
    return np.where(np.isnan(trimmed), low, trimmed) if published else trimmed


def _indicators(column: Any, name: str, path: Path, published: bool) -> FloatArray:
    """A column for each level but the first, 1.0 where it is that level."""
    import pyarrow
    from pyarrow import compute

    levels = LEVELS[name]
    code = compute.index_in(column, value_set=pyarrow.array(levels))
    foreign = column.filter(compute.and_(column.is_valid(), code.is_null()))
    check_labels(foreign.unique().to_pylist(), levels, path)
    codes = np.array(code.fill_null(-1))
    found = codes[:, np.newaxis] == np.arange(1, len(levels))
    indicators: FloatArray = found.astype(np.float64)
    if not published:
        indicators[codes == -1] = np.nan
    return indicators
