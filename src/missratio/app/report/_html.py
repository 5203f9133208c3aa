"""A report as one page that needs nothing but a browser."""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from missratio.app.report._classes_page import several_context
from missratio.app.report._glossary import GLOSSARY
from missratio.app.report._groups_page import groups_context
from missratio.app.report._report import GROUPS, SEVERAL_CLASSES, TWO_CLASSES
from missratio.app.report._summary import (
    complete_case_words,
    error_rows,
    facts,
    level_rows,
    model_words,
    odds_rows,
    pattern_rows,
    pattern_words,
)
from missratio.app.report._tables import (
    histogram_cells,
    profile_cells,
    shared_tables,
    tables,
)
from missratio.app.report._words import number, percent, share

Data = dict[str, Any]


def render(data: Data) -> str:
    """The page."""
    try:
        import altair as alt
        import jinja2
        import vl_convert
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError(
            "The page is made with Altair: pip install 'missratio[report]'. json() and "
            "markdown() need no more than missratio."
        ) from error
    template, context_of = {
        TWO_CLASSES: ("page.html.jinja", _two_context),
        SEVERAL_CLASSES: ("classes.html.jinja", several_context),
        GROUPS: ("groups.html.jinja", groups_context),
    }[data["kind"]]
    from missratio.app.report._figures import figures

    own = context_of(data)
    drawn = {figure.key: figure for figure in figures(data)}
    library = _library(vl_convert, alt.SCHEMA_VERSION)
    style, script = _asset("page.css"), _asset("page.js")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(_asset),
    )
    environment.filters |= {"number": number, "percent": percent, "share": share}
    levels = own.pop("levels_data", [])
    context = {
        **data,
        "missingness": _with_words(data["missingness"]),
        "weights": [
            {**entry, "cells": histogram_cells(entry["histogram"])}
            for entry in data["weights"]
        ],
        "weighted": any(entry["histogram"] for entry in data["weights"]),
        "figures": drawn,
        "sections": _sections(data),
        "phi_drawn": any(p["phi"] for p in data["missingness"]["profiles"]),
        **shared_tables(data),
        **own,
        "policy": _policy(library, script),
        # What is not text of the report goes in as it is.
        "style": Markup(style),
        "library": Markup(library),
        "script": Markup(script),
        "levels_json": Markup(_script_json(levels)),
        "figures_json": Markup(
            _script_json({key: figure.spec for key, figure in drawn.items()})
        ),
        "data_json": Markup(_script_json(data)),
    }
    return environment.get_template(template).render(context)


def _two_context(data: Data) -> Data:
    """What a page about two classes shows."""
    levels = level_rows(data)
    return {
        "facts": facts(data),
        "errors": error_rows(data),
        "levels": levels,
        "levels_data": levels,
        "odds": odds_rows(data) if data["sensitivity"] else [],
        "own": data["curve"]["own"],
        "complete_case_words": complete_case_words(data),
        "glossary": GLOSSARY,
        **tables(data),
    }


def _sections(data: Data) -> list[tuple[str, str]]:
    """The ids and names of the sections that there are."""
    promises = [
        (f"promise-{k}", f"Class {promise['label']}", True)
        for k, promise in enumerate(data.get("promises", ()), start=1)
    ]
    every = [
        ("certificate", "Certificate", True),
        ("cautions", "Before you rely on it", data["cautions"]),
        ("next", "What to do next", data.get("next")),
        *promises,
        ("groups", "What each group gets", data.get("groups")),
        ("errors", "The two errors", data.get("type_i")),
        ("errors", "Every class's errors", data.get("errors")),
        ("levels", "Other levels", data.get("curve")),
        ("sensitivity", "What if φ is wrong?", data.get("sensitivity")),
        ("trade-off", "Room for both", data.get("trade_offs")),
        ("missing", "What is missing", True),
        ("patterns", "Missing together", data["missingness"]["patterns"]),
        ("weights", "Weights", True),
        ("complete-case", "Missing values ignored", data.get("complete_case")),
        ("coefficients", "Coefficients", data.get("coefficients")),
        ("importance", "Which columns matter", data.get("importance")),
        ("comparison", "Methods compared", data["comparison"]),
        ("words", "Words", True),
    ]
    return [(key, name) for key, name, there in every if there]


def _with_words(missingness: Data) -> Data:
    classes = [
        {
            **k,
            "words": model_words(k),
            "failed": [c["sentence"] for c in k["checks"] if c["failed"]],
            "passed": [c["sentence"] for c in k["checks"] if not c["failed"]],
        }
        for k in missingness["classes"]
    ]
    there = missingness["patterns"] is not None
    return {
        **missingness,
        "classes": classes,
        "profiles": [{**p, "cells": profile_cells(p)} for p in missingness["profiles"]],
        "looked_up": any(any(c["looked_up"]) for c in missingness["features"]),
        "pattern_rows": pattern_rows(missingness) if there else [],
        "pattern_words": pattern_words(missingness) if there else [],
    }


def _script_json(value: Any) -> str:
    """JSON that may stand within a script element, whatever names it holds."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _policy(*scripts: str) -> str:
    """No request to anywhere, and no script but the page's own."""
    hashes = [
        f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    ]
    return "; ".join(
        [
            "default-src 'none'",
            # Vega compiles its expressions.
            f"script-src 'unsafe-eval' {' '.join(hashes)}",
            "style-src 'unsafe-inline'",
            "img-src data:",
        ]
    )


@cache
def _asset(name: str) -> str:
    return files("missratio.app.report").joinpath("assets", name).read_text("utf-8")


@cache
def _library(vl_convert: Any, schema: str) -> str:
    """Vega, Vega-Lite and Vega-Embed, from the converter's own copy."""
    version = ".".join(schema.lstrip("v").split(".")[:2])
    known = vl_convert.get_vegalite_versions()
    version = version if version in known else known[-1]
    code = str(vl_convert.javascript_bundle(vl_version=version))
    if "</script" in code.lower():
        raise RuntimeError("The figures' library can't stand within a page.")
    return code
