"""A report on several classes as text."""

from __future__ import annotations

from typing import Any

from missratio.app.report._classes_tables import (
    ERROR_HEAD,
    error_cells,
    thousand_cells,
    thousand_head,
    trade_off_cells,
    trade_off_head,
)
from missratio.app.report._markdown import (
    WEIGHT_HEAD,
    comparison_part,
    md_table,
    missing_part,
    opening_part,
    origin_part,
    plain_text,
    unscored_part,
)
from missratio.app.report._tables import class_weight_cells

Data = dict[str, Any]


def render(data: Data) -> str:
    """The text.

    Parameters
    ----------
    data : dict
        Of the report.
    """
    parts = [
        *opening_part(data),
        *_promises(data),
        "## Every class's errors",
        md_table(ERROR_HEAD, error_cells(data)),
        plain_text(f"Measured on {data['confusion']['source_words']}."),
        "### In a thousand rows",
        md_table([plain_text(x) for x in thousand_head(data)], thousand_cells(data)),
        *unscored_part(data["unscored"]),
        *_trade_offs(data["trade_offs"]),
        *missing_part(data["missingness"]),
        "## Weights",
        md_table(WEIGHT_HEAD, class_weight_cells(data)),
        *comparison_part(data["comparison"]),
        *origin_part(data),
    ]
    return "\n\n".join(parts) + "\n"


def _promises(data: Data) -> list[str]:
    parts = []
    for promise in data["promises"]:
        facts = [[f["name"], f["value"], f["note"]] for f in promise["facts"]]
        parts += [
            f"## {plain_text(promise['title'])}",
            plain_text(promise["sentence"]),
            md_table(["", "", ""], facts),
        ]
        if promise["robustness"]:
            parts.append(plain_text(promise["robustness"]))
    return parts


def _trade_offs(trade_offs: list[Data]) -> list[str]:
    if not trade_offs:
        return []
    parts = ["## What bounded classes leave each other"]
    for trade in trade_offs:
        head = [plain_text(title) for title in trade_off_head(trade)]
        parts += [
            plain_text(trade["sentence"]),
            md_table(head, trade_off_cells(trade)),
        ]
    return parts
