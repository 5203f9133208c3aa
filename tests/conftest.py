"""What the tests share: where the data sets are, and two normal samples."""

import os
from pathlib import Path

# Boosted trees on small tables: threads that wait for each other take longer than one.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import data
import pytest
from hypothesis import settings

# How long an example takes says more about the machine than about the code. Two runs
# of one version try the same examples; `--hypothesis-profile=explore` tries others.
settings.register_profile("missratio", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("missratio")


def pytest_collection_modifyitems(items):
    """Leave out what needs the data sets where there are none."""
    if os.environ.get("MISSRATIO_DATA"):
        return
    absent = pytest.mark.skip(reason="MISSRATIO_DATA is not set")
    for item in items:
        if "data" in item.keywords:
            item.add_marker(absent)


@pytest.fixture
def data_folder():
    return Path(os.environ["MISSRATIO_DATA"])


@pytest.fixture
def two_normals():
    """Rows of N(0, I) as class 0 and of N(shift, I) as class 1, shuffled."""
    return data.two_normals


@pytest.fixture
def blockwise(monkeypatch):
    """Let small tables be read block by block, and few of their rows be drawn."""
    from missratio.rows import labelled, parquet, source

    monkeypatch.setattr(source, "HELD_ELEMENTS", 100)
    monkeypatch.setattr(labelled, "DRAWN_NUMBERS", 6000)
    monkeypatch.setattr(parquet, "BATCH_NUMBERS", 2000)
