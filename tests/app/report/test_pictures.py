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


@pytest.mark.parametrize("name", ["report", "tutorial"])
def test_every_picture_is_shown_and_none_is_kept(pictures, name):
    page = {"report": "in_use.md", "tutorial": "tutorial.md"}[name]
    shown = f"({pictures['FOLDER'].relative_to(DOCS).as_posix()}/{name}.png)"
    assert shown in (DOCS / page).read_text(encoding="utf-8")
    assert not (DOCS / "_static" / f"{name}.png").exists()
