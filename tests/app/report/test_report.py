"""A report is its data, and the data survives a trip through a file."""

import json
import sys
import types

import pytest

import missratio as mr


def test_json_and_back(report):
    again = mr.app.report.Report.from_json(report.json())
    assert again.data == report.data
    assert again.markdown() == report.markdown()


def test_data_is_enough_for_every_page(report, html):
    assert mr.app.report.Report(json.loads(report.json())).html() == html


@pytest.mark.parametrize("data", [{}, {"format": 0}, [], None])
def test_other_data_is_refused(data):
    with pytest.raises(ValueError, match=r"format \d"):
        mr.app.report.Report(data)


def test_a_report_shows_its_headline(report):
    assert repr(report).startswith("Report(\"At most 10% of complete '<i>well</i>'")


def test_in_a_notebook_the_page_is_in_a_frame_of_its_own(report, html):
    frame = report._repr_html_()
    assert frame.startswith("<iframe srcdoc=")
    assert "<script" not in frame
    assert 'sandbox="' in frame
    assert len(frame) > len(html)


def test_open_writes_the_page_and_shows_it(report, html, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setitem(sys.modules, "IPython", None)
    report.open()
    assert opened[0].startswith("file://")
    assert opened[0].endswith("report.html")


def test_open_in_a_notebook_displays(report, monkeypatch):
    shown = []
    shell = types.SimpleNamespace(kernel=object())
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell
    display = types.ModuleType("IPython.display")
    display.display = shown.append
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    report.open()
    assert shown == [report]


def test_without_altair_the_page_says_what_to_install(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(ImportError, match=r"missratio\[report\]"):
        report.html()
    assert report.markdown()
    assert report.json()
