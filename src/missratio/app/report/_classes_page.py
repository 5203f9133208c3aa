"""What a report on several classes shows: a page, and the same as text."""

from __future__ import annotations

from typing import Any

from missratio.app.report._glossary import SEVERAL_GLOSSARY
from missratio.app.report._markdown import (
    closing_parts,
    facts_table,
    md_table,
    opening_part,
    plain_text,
    unscored_part,
)
from missratio.app.report._words import number, percent, share, span

Data = dict[str, Any]
Cells = list[list[str]]

ERROR_HEAD = ["Class", "Promised", "Error", "Interval", "Found", "Rows"]
TRADE_OFF_POINTS = 12


def error_cells(data: Data) -> Cells:
    """What becomes of each class."""
    return [
        [
            f"{entry['label']}",
            "–" if entry["bound"] is None else f"at most {percent(entry['bound'])}",
            share(entry["error"]["estimate"]),
            span(entry["error"]["low"], entry["error"]["high"]),
            share(entry["found"]["estimate"]),
            number(entry["error"]["rows"]),
        ]
        for entry in data["errors"]
    ]


def thousand_head(data: Data) -> list[str]:
    """The head of the table of a thousand rows of each class."""
    return ["In truth", *(f"called {label}" for label in data["confusion"]["labels"])]


def thousand_cells(data: Data) -> Cells:
    """Of a thousand rows of each class, how many are classified as what."""
    found = data["confusion"]
    return [
        [
            f"1,000 of class {label}",
            *("–" if x is None else number(round(1000 * x)) for x in shares),
        ]
        for label, shares in zip(found["labels"], found["shares"], strict=True)
    ]


def trade_off_head(trade: Data) -> list[str]:
    """The head of the table of what two classes leave each other."""
    a, b = trade["labels"]
    return [f"Error of {a}", f"Error of {b}", f"Least α of {a}", f"Least α of {b}"]


def trade_off_cells(trade: Data) -> Cells:
    """Points of the curve of what two classes leave each other."""
    points = list(zip(trade["errors"], trade["certifiable"], strict=True))
    step = max(1, -(-len(points) // TRADE_OFF_POINTS))
    return [
        [*map(share, errors), *map(share, least)] for errors, least in points[::step]
    ]


def several_context(data: Data) -> Data:
    """What the page's template is given, beside what every page has."""
    return {
        "error_head": ERROR_HEAD,
        "error_cells": error_cells(data),
        "thousand_head": thousand_head(data),
        "thousand_cells": thousand_cells(data),
        "trade_offs": [
            {**trade, "head": trade_off_head(trade), "cells": trade_off_cells(trade)}
            for trade in data["trade_offs"]
        ],
        "glossary": SEVERAL_GLOSSARY,
    }


def render_text(data: Data) -> str:
    """The report as text."""
    parts = [
        *opening_part(data),
        *_promises(data),
        "## Every class's errors",
        md_table(ERROR_HEAD, error_cells(data)),
        plain_text(f"Measured on {data['confusion']['source_words']}."),
        "### In a thousand rows",
        md_table(thousand_head(data), thousand_cells(data)),
        *unscored_part(data["unscored"]),
        *_trade_offs(data["trade_offs"]),
        *closing_parts(data),
    ]
    return "\n\n".join(parts) + "\n"


def _promises(data: Data) -> list[str]:
    parts = []
    for promise in data["promises"]:
        parts += [
            f"## {plain_text(promise['title'])}",
            plain_text(promise["sentence"]),
            facts_table(promise["facts"]),
        ]
        if promise["robustness"]:
            parts.append(plain_text(promise["robustness"]))
    return parts


def _trade_offs(trade_offs: list[Data]) -> list[str]:
    if not trade_offs:
        return []
    parts = ["## What bounded classes leave each other"]
    for trade in trade_offs:
        parts += [
            plain_text(trade["sentence"]),
            md_table(trade_off_head(trade), trade_off_cells(trade)),
        ]
    return parts
