"""A report as one page that needs nothing but a browser, and as Markdown."""

from __future__ import annotations

import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from itertools import zip_longest
from typing import Any

from missratio.app.report.sections import ReportSection, Table

# Characters that reverse the text around them are said by their numbers.
_TURNS = {n: f"\\u{n:04x}" for n in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
MARKUP = re.compile(r"([\\`*_{}\[\]()#+!|~$^=>-])")


def html(document: ReportSection, data: dict[str, Any]) -> str:
    """A page that needs nothing but a browser.

    Parameters
    ----------
    document : ReportSection
        Its parts are the page's sections, and its items stand at the foot.
    data : dict
        What the page shows, as JSON within it.
    """
    if find_spec("jinja2") is None or find_spec("vl_convert") is None:
        raise ImportError(
            "The page's figures are drawn by Vega-Lite: pip install "
            "'missratio[report]'. json() and markdown() need no more than missratio."
        )
    import jinja2

    library, script = _library(), _asset("page.js")
    # No request to anywhere, and no script but the page's own; Vega compiles its
    # expressions.
    hashes = " ".join(
        f"'sha256-{b64encode(sha256(code.encode()).digest()).decode()}'"
        for code in (library, script)
    )
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(_asset),
    )
    # JSON within a script element, which `tojson` lets no name end.
    environment.policies["json.dumps_kwargs"] = {
        "allow_nan": False, "separators": (",", ":"),
    }  # fmt: skip
    page = environment.get_template("page.html.jinja").render(
        document=document,
        data=data,
        version=version("missratio"),
        policy=f"default-src 'none'; script-src 'unsafe-eval' {hashes}; "
        "style-src 'unsafe-inline'; img-src data:",
        style=_asset("page.css"),
        library=library,
        script=script,
    )
    return page.translate(_TURNS)


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
    done = subprocess.run([sys.executable, "-P", "-c", BUNDLE], capture_output=True)
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


def markdown(document: ReportSection) -> str:
    """The same in CommonMark, with tables as GitHub has them."""
    parts = _text(replace(document, items=()), 1)
    parts += ["---", _list(document.items)] if document.items else []
    return ("\n\n".join(parts) + "\n").translate(_TURNS)


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
        if command:
            lines += ["", *(f"      {line}" for line in command.split("\n")), ""]
    return "\n".join(lines).rstrip()
