"""A report as text says what the page says, and its names are no markup."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from missratio.app.report._markdown import comparison_part, plain_text

markdown_it = pytest.importorskip("markdown_it")


def rendered(text):
    return markdown_it.MarkdownIt("commonmark").enable("table").render(text)


def test_the_certificate_comes_first(report):
    lines = [line for line in report.markdown().splitlines() if line]
    assert lines[0].startswith("# A ")
    assert lines[1].startswith("**At most 10% of complete ")


def test_sections(report):
    sections = [
        line.removeprefix("## ")
        for line in report.markdown().splitlines()
        if line.startswith("## ")
    ]
    assert sections == [
        "This is assumed",
        "This would break it",
        "How wrong may φ be?",
        "Before you rely on it",
        "What to do next",
        "The two errors",
        "Other levels",
        "What if φ is wrong?",
        "What is missing",
        "Weights",
        "If missing values had been ignored",
        "Coefficients",
    ]


def test_names_are_no_markup(report):
    page = rendered(report.markdown())
    assert "<script" not in page
    assert "<b " not in page
    assert "<i>" not in page
    assert "<a " not in page
    assert "<em>" not in page
    assert "&lt;i&gt;well&lt;/i&gt;" in page


def test_compared_classes_are_no_markup():
    comparison = {
        "alpha": None,
        "compared": ["<b>well</b>", "[ill](there)"],
        "controlled_rows": 90,
        "other_rows": 60,
        "folds": 5,
        "seconds": 1.0,
        "budget": 60.0,
        "chosen": "js",
        "candidates": [],
    }
    page = rendered("\n\n".join(comparison_part(comparison)))
    assert "the share of &lt;b&gt;well&lt;/b&gt;, [ill](there) that gets" in page


def test_tables_keep_their_shape(report):
    for line in report.markdown().splitlines():
        if line.startswith("|"):
            assert line.endswith("|")
    page = rendered(report.markdown())
    assert page.count("<table>") == 9
    assert "a | b &amp; &lt;b" in page


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40))
def test_any_text_says_itself(name):
    shown = " ".join(name.split())
    page = rendered(f"x{plain_text(name)}")
    escaped = (
        f"x{shown}".replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace('"', "&quot;")
    )
    assert page == f"<p>{escaped}</p>\n"
