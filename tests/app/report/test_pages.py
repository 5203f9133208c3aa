"""Page, text and JSON say the same, and names in them are no markup."""

import json
import re
import sys
from html import escape
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import missratio as mr
from missratio.app.report import LabelledRows, Names, describe, pages, sections
from missratio.app.report.pages import plain_text

CSS = files("missratio.app.report").joinpath("assets", "page.css").read_text("utf-8")


class Page(HTMLParser):
    """Every element with its attributes, and the text outside of scripts."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.text, self._within = [], [], None
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._within = tag

    def handle_data(self, data):
        if self._within not in ("script", "style"):
            self.text.append(data)


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def tags(page, name):
    return [attributes for tag, attributes in page.elements if tag == name]


def test_nothing_is_loaded_from_elsewhere(page, html):
    assert len(html.encode()) < 1_500_000
    for tag, attributes in page.elements:
        for name in ("src", "href", "data", "action", "poster", "srcset"):
            assert attributes.get(name, "#").startswith("#"), (tag, attributes)
    assert not tags(page, "link")
    assert "url(" not in CSS
    assert "@import" not in CSS
    (policy,) = (a["content"] for a in tags(page, "meta") if a.get("http-equiv"))
    assert "default-src 'none'" in policy


def test_ids_are_unique_and_references_lead_somewhere(page):
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        for name in ("aria-labelledby", "aria-describedby", "for"):
            assert attributes.get(name, ids[0]) in ids
        if attributes.get("href", "").startswith("#"):
            assert attributes["href"][1:] in ids


def test_landmarks_and_headings(page):
    order = [tag for tag, _ in page.elements]
    for landmark in ("header", "nav", "main", "footer", "h1"):
        assert order.count(landmark) == 1
    levels = [int(tag[1]) for tag in order if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    for before, after in pairwise(levels):
        assert after <= before + 1
    assert tags(page, "html")[0]["lang"] == "en"
    assert all("aria-labelledby" in a for a in tags(page, "section"))


def test_every_figure_has_words_and_a_height(page):
    charts = [a for a in tags(page, "div") if a.get("class") == "chart"]
    assert len(charts) >= 3
    labels = [a["aria-label"] for _, a in page.elements if "aria-label" in a]
    for chart in charts:
        assert chart["role"] == "img"
        assert labels.count(chart["aria-label"]) == 1
        assert len(chart["aria-label"]) > 20
        assert re.search(r"height: \d+px", chart["style"])


def test_words_are_explained_where_they_stand(page):
    terms = [a for a in tags(page, "a") if a.get("class") == "term"]
    assert {a["href"] for a in terms} >= {"#word-alpha", "#word-power"}
    assert all(len(a["title"]) > 30 for a in terms)


def test_names_are_no_markup(page, html):
    scripts = [a for a in tags(page, "script") if "type" not in a]
    assert len(scripts) == 2
    assert not any("onmouseover" in a for _, a in page.elements)
    assert not any(a.get("href", "").startswith("javascript") for _, a in page.elements)
    assert "<script>window.hurt" not in html
    said = "".join(page.text)
    assert "<script>window.hurt = 1</script>" in said
    assert "'<i>well</i>' rows" in said


def rendered(text):
    markdown_it = pytest.importorskip("markdown_it")
    return markdown_it.MarkdownIt("commonmark").enable("table").render(text)


def test_the_text_has_every_section_of_the_page(report):
    lines = [line for line in report.markdown().splitlines() if line]
    titles = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    parts = sections.document(report.data).parts
    assert titles == [plain_text(part.title) for part in parts]
    assert len(parts) == 8


def test_names_are_no_markup_in_text_and_tables_keep_their_shape(report):
    page = rendered(report.markdown())
    for tag in ("<script", "<b ", "<i>", "<a ", "<em>"):
        assert tag not in page
    assert "&lt;i&gt;well&lt;/i&gt;" in page
    assert "a | b &amp; &lt;b" in page
    assert page.count("<table>") >= 6


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40))
def test_any_text_says_itself(name):
    shown = escape(f"x{' '.join(name.split())}").replace("&#x27;", "'")
    assert rendered(f"x{plain_text(name)}") == f"<p>{shown}</p>\n"


def test_data_is_enough_for_every_page(report, html):
    found = re.search(r'id="data-report">(.*?)</script>', html, re.DOTALL)
    assert json.loads(found.group(1)) == report.data
    again = mr.app.report.Report.from_json(report.json())
    assert again.html() == html
    assert again.markdown() == report.markdown()


@pytest.mark.parametrize("data", [{}, {"format": 0}, [], None])
def test_other_data_is_refused(data):
    with pytest.raises(ValueError, match=r"format \d"):
        mr.app.report.Report(data)


def test_a_notebook_shows_it_in_a_frame_so_that_neither_style_meets_the_other(report):
    assert repr(report).startswith("Report(\"At most 10% of complete '<i>well</i>'")
    frame = report._repr_html_()
    assert frame.startswith("<iframe srcdoc=")
    assert "<script" not in frame
    assert 'sandbox="' in frame


def test_where_memory_is_short_other_formats_are_a_way_out(report, monkeypatch):
    """V8 ends its process there: not this one."""
    monkeypatch.setattr(pages, "BUNDLE", "import os; os.abort()")
    pages._library.cache_clear()
    with pytest.raises(OSError, match=r"Markdown \(.md\) or JSON"):
        report.html()


def described(learned, **origin):
    rows, columns = LabelledRows.read(*learned), [*learned[1].columns]
    names = Names(columns, columns)
    return describe(rows, title=None, names=names, folds=0, origin=origin)


def test_a_report_names_no_folders_and_has_the_date_that_it_is_given(
    learned, monkeypatch
):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    command = "missratio fit '/home/me/my data/t.csv' --out=/tmp/a/m.skops --drop a/b"
    first, second = (described(learned, command=command) for _ in range(2))
    assert first.json() == second.json()
    origin = first.data["origin"]
    assert origin["date"] == "1970-01-01 00:00 UTC"
    assert origin["command"] == "missratio fit t.csv --out=m.skops --drop a/b"
    assert "\u2028" not in first.json()


def test_what_turns_the_direction_of_a_text_is_said_by_its_number(report):
    data = {**report.data, "title": "a\u202eb\u2066c"}
    turned = type(report)(data)
    for text in (turned.html(), turned.markdown()):
        assert not set(text) & set("\u202e\u2066")
        assert "u202e" in text


def test_a_time_that_is_none_is_refused(learned, monkeypatch):
    for epoch in ("nan", "-1", "1e30", "9" * 30):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
        with pytest.raises(ValueError, match="SOURCE_DATE_EPOCH must be whole seconds"):
            described(learned)


def test_without_vega_the_page_says_what_to_install(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(ImportError, match=r"missratio\[report\]"):
        report.html()
    assert report.markdown()
    assert report.json()
