"""Small tables for the real-data experiments, and runs of them."""

import numpy as np
import pytest

from missratio.reproduce import Conditions
from missratio.reproduce.experiments import SplitSizes, draw_run, load_table
from missratio.reproduce.methods import RealTable

FIRE_FEATURES = [
    "Temperature[C]", "Humidity[%]", "TVOC[ppb]", "eCO2[ppm]", "Raw H2", "Raw Ethanol",
    "Pressure[hPa]", "PM1.0", "PM2.5", "NC0.5", "NC1.0", "NC2.5",
]  # fmt: skip


@pytest.fixture
def table():
    """Two classes of 300 and 500 rows, three columns, some NaN, values that repeat."""
    rng = np.random.default_rng(0)
    is_numerator = np.arange(800) >= 300
    X = rng.normal(size=(800, 3)).round(1) + 0.5 * is_numerator[:, None]
    X[rng.random(X.shape) < 0.02] = np.nan
    return RealTable(np.asfortranarray(X), is_numerator)


@pytest.fixture
def make_run(table):
    def make(variant="published", queries=20, share=None, number=0):
        sizes = SplitSizes(150, 100, queries)
        conditions = Conditions(variant)
        rng = conditions.generator("test", number)
        return draw_run(table, sizes, share, rng, conditions)

    return make


@pytest.fixture
def fire_file(tmp_path, monkeypatch):
    """A made-up file of the documented columns, found as the publisher's would be."""
    rng = np.random.default_rng(1)
    lines = [",".join(["", "UTC", *FIRE_FEATURES, "CNT", "Fire Alarm"])]
    for i in range(600):
        alarm = int(i % 3 > 0)
        values = (rng.gamma(2.0, 1.0, 12) * (1.0 + 0.3 * alarm)).round(2)
        lines.append(",".join(map(str, [i, i, *values.tolist(), i, alarm])))
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "smoke_detection_iot.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("MISSRATIO_DATA", str(folder))
    load_table.cache_clear()
    yield folder
    load_table.cache_clear()
