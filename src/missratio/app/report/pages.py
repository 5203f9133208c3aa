"""A report as one page that needs nothing but a browser, and as Markdown."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from itertools import zip_longest
from typing import Any

from missratio.app.report.sections import (
    ReportSection,
    Table,
    meta,
    origin,
    sections,
)

MARKUP = re.compile(r"([\\`*_{}\[\]()#+!|~$^=>-])")


def html(data: dict[str, Any]) -> str:
    """The page of a report."""
    return page(data["title"], meta(data), sections(data), origin(data), data)


def page(
    title: str,
    subtitle: str,
    every: Sequence[ReportSection],
    end: Sequence[tuple[str, str]],
    data: dict[str, Any],
) -> str:
    """A page of sections, which needs nothing but a browser.

    Parameters
    ----------
    title, subtitle : str
    every : sequence of ReportSection
    end : sequence of (str, str)
        What stands at the foot, with a title each.
    data : dict
        What the page shows, as JSON within it.
    """
    if find_spec("jinja2") is None or find_spec("vl_convert") is None:
        raise ImportError(
            "The page's figures are drawn by Vega-Lite: pip install "
            "'missratio[report]'. json() and markdown() need no more than missratio."
        )
    import jinja2
    from markupsafe import Markup

    library, script = _library(), _asset("page.js")
    # No request to anywhere, and no script but the page's own; Vega compiles its
    # expressions.
    hashes = " ".join(
        f"'sha256-{b64encode(sha256(code.encode()).digest()).decode()}'"
        for code in (library, script)
    )
    policy = (
        f"default-src 'none'; script-src 'unsafe-eval' {hashes}; "
        "style-src 'unsafe-inline'; img-src data:"
    )
    levels = next((section.levels for section in every if section.levels), [])
    specs = {
        f"figure-{section.id}": section.chart.spec
        for section in _flat(every)
        if section.chart is not None
    }
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(_asset),
    )
    # What is not text of the report goes in as it is.
    context = {
        "title": title,
        "version": version("missratio"),
        "meta": subtitle,
        "origin": end,
        "sections": every,
        "policy": policy,
        "style": Markup(_asset("page.css")),
        "library": Markup(library),
        "script": Markup(script),
        "json": {
            "levels": Markup(script_json(levels)),
            "figures": Markup(script_json(specs)),
            "report": Markup(script_json(data)),
        },
    }
    return environment.get_template("page.html.jinja").render(context)


def _flat(every: Sequence[ReportSection]) -> Iterator[ReportSection]:
    for section in every:
        yield section
        yield from _flat(section.parts)


def script_json(value: Any) -> str:
    """JSON that may stand within a script element, whatever names it holds."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@cache
def _asset(name: str) -> str:
    return files("missratio.app.report").joinpath("assets", name).read_text("utf-8")


BUNDLE = """
import sys, vl_convert
newest = vl_convert.get_vegalite_versions()[-1]
code = vl_convert.javascript_bundle(vl_version=newest)
sys.stdout.buffer.write(code.encode())
"""


@cache
def _library() -> str:
    """Vega, Vega-Lite and Vega-Embed, from the converter's own copy.

    By a process of its own: the converter ends its process where memory is short.
    """
    done = subprocess.run([sys.executable, "-c", BUNDLE], capture_output=True)
    if done.returncode:
        raise OSError(
            "There isn't enough memory to put the page's figures together. Write the "
            "report as Markdown (.md) or JSON (.json), which take little, or raise the "
            "limit on memory."
        )
    code = done.stdout.decode()
    if "</script" in code.lower():
        raise RuntimeError("The figures' library can't stand within a page.")
    return code


def markdown(data: dict[str, Any]) -> str:
    """A report in CommonMark, with tables as GitHub has them."""
    return text(data["title"], meta(data), sections(data), origin(data))


def text(
    title: str,
    subtitle: str,
    every: Sequence[ReportSection],
    end: Sequence[tuple[str, str]],
) -> str:
    """The same as `page` in CommonMark."""
    parts = [f"# {plain_text(title)}", plain_text(subtitle)]
    for section in every:
        parts += _text(section, 2)
    parts += ["---", _list(end)] if end else []
    return "\n\n".join(parts) + "\n"


def _text(section: ReportSection, depth: int) -> list[str]:
    """A section with its parts; small multiples are for the page alone."""
    parts = [plain_text(text) for text in section.text]
    if section.facts:
        facts = [fact[:3] for fact in section.facts]
        parts.append(_table(Table(["", "", ""], facts)))
    if section.items:
        parts.append(_list(section.items, section.commands))
    if section.table is not None:
        parts.append(_table(section.table))
    parts += [plain_text(note) for note in section.notes]
    if section.layout != "many":
        parts += [line for part in section.parts for line in _text(part, depth + 1)]
    return [f"{'#' * depth} {plain_text(section.title)}", *parts] if parts else []


def plain_text(value: Any) -> str:
    """Text that says itself: nothing in it is markup, of Markdown or of HTML."""
    text = MARKUP.sub(r"\\\1", " ".join(str(value).split()))
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _table(table: Table) -> str:
    """A table, its first column left-aligned and the others right-aligned."""
    lines = [
        map(plain_text, table.head),
        [":--", *["--:"] * (len(table.head) - 1)],
        *(map(plain_text, row) for row in table.rows),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _list(items: Sequence[tuple[str, str]], commands: Sequence[str] = ()) -> str:
    lines = []
    for (title, text), command in zip_longest(items, commands):
        head = f"**{plain_text(title)}.** " if title else ""
        lines.append(f"- {head}{plain_text(text)}")
        lines += ["", f"      {command}", ""] if command else []
    return "\n".join(lines).rstrip()
