"""The documentation's pictures, which its build makes with a browser or without."""

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
PNG = b"\x89PNG\r\n"


@pytest.fixture(scope="module")
def pictures():
    return runpy.run_path(DOCS / "pictures.py")


@pytest.mark.usefixtures("html")
def test_the_curve_is_drawn_without_a_browser(pictures, report, tmp_path):
    pictures["draw"](report, tmp_path / "report.png")
    assert (tmp_path / "report.png").read_bytes().startswith(PNG)


@pytest.mark.usefixtures("html", "browser")
def test_a_browser_takes_the_page(pictures, report, tmp_path):
    pictures["photograph"](report, tmp_path / "report.png", pictures["find_browser"]())
    assert (tmp_path / "report.png").read_bytes().startswith(PNG)
