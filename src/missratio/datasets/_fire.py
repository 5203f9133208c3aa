"""Readings of smoke detectors, from Kaggle."""

from __future__ import annotations

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
LABEL = "Fire Alarm"
CAPS = {
    "TVOC[ppb]": 1000.0,
    "eCO2[ppm]": 1000.0,
    "PM1.0": 1.0,
    "PM2.5": 1.0,
    "NC0.5": 5.0,
    "NC2.5": 5.0,
}

DESCRIPTION = """\
Smoke detection
---------------
Readings of an internet-of-things smoke detector, with a fire and without. Class 1, the
numerator: no fire, 17,873 rows of the publisher's file. Class 0, whose error is
controlled, so that few fires are missed: fire, 44,757 rows. 12 features.

TVOC and eCO2 are capped at 1000, PM1.0 and PM2.5 at 1, NC0.5 and NC2.5 at 5. The
variant "published" then overwrites NC2.5 where it was below 5 by the capped PM2.5, as
the curves of Givens, Liu and Reeve (2023) do; "corrected" does not.

No copy of the file was at hand when this was written: the loader follows the columns
that are documented, was tested on made-up tables of those columns only, and has no
SHA-256 to compare the file with.

From Kaggle, https://www.kaggle.com/datasets/deepcontractor/smoke-detection-dataset.
"""


def load_fire(
    *,
    variant: Variant = "corrected",
    return_X_y: bool = False,
    as_frame: bool = False,
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
    as_frame : bool, default=False
        Whether data and target are a pandas DataFrame and Series.
    data_home
        As of `fetch`.

    Returns
    -------
    Bunch, or (data, target)
        With `data`, `target` (1 for no fire, 0 for fire), `frame` (None unless
        ``as_frame``), `feature_names`, `target_names`, `DESCR` and `filename`.
    """
    import pyarrow

    published = is_published(variant)
    path, content = read_file("fire", data_home, verify=True)
    columns = dict.fromkeys(FEATURES, pyarrow.float64())
    table = read_csv(content, path, columns | {LABEL: pyarrow.string()})
    labels = table[LABEL].to_pylist()
    check_labels(labels, ["0", "1"], path)
    readings = {name: np.array(table[name]) for name in FEATURES}
    capped = _capped(readings, published)
    return LoadedDataset(
        np.column_stack([capped[name] for name in FEATURES]),
        np.array([int(label == "0") for label in labels]),
        list(FEATURES),
        ("fire", "no fire"),
        DESCRIPTION,
        path,
    ).returned(return_X_y, as_frame)


def _capped(readings: dict[str, FloatArray], published: bool) -> dict[str, FloatArray]:
    capped = {
        name: np.minimum(values, CAPS.get(name, np.inf))
        for name, values in readings.items()
    }
    if published:
        below = readings["NC2.5"] < CAPS["NC2.5"]
        capped["NC2.5"] = np.where(below, capped["PM2.5"], capped["NC2.5"])
    return capped
