"""The cells of the tables of a report on several classes, as texts."""

from __future__ import annotations

from typing import Any

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
