"""What a page about several classes shows."""

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
from missratio.app.report._glossary import SEVERAL_GLOSSARY
from missratio.app.report._summary import compared_rows, compared_words
from missratio.app.report._tables import class_weight_cells

Data = dict[str, Any]


def several_context(data: Data) -> Data:
    """What the page's template is given, beside what every page has.

    Parameters
    ----------
    data : dict
        Of the report.
    """
    from missratio.app.report._classes_figures import figures

    compared = data["comparison"]
    return {
        "drawn": figures(data),
        "sections": _sections(data),
        "error_head": ERROR_HEAD,
        "error_cells": error_cells(data),
        "thousand_head": thousand_head(data),
        "thousand_cells": thousand_cells(data),
        "trade_offs": [
            {**trade, "head": trade_off_head(trade), "cells": trade_off_cells(trade)}
            for trade in data["trade_offs"]
        ],
        "weight_cells": class_weight_cells(data),
        "comparison_cells": compared_rows(compared) if compared else [],
        "comparison_words": compared_words(compared) if compared else "",
        "glossary": SEVERAL_GLOSSARY,
    }


def _sections(data: Data) -> list[tuple[str, str]]:
    """The ids and names of the sections that there are."""
    promises = [
        (f"promise-{k}", f"Class {promise['label']}", True)
        for k, promise in enumerate(data["promises"], start=1)
    ]
    every = [
        ("certificate", "Certificate", True),
        ("cautions", "Before you rely on it", data["cautions"]),
        *promises,
        ("errors", "Every class's errors", True),
        ("trade-off", "Room for both", data["trade_offs"]),
        ("missing", "What is missing", True),
        ("patterns", "Missing together", data["missingness"]["patterns"]),
        ("weights", "Weights", True),
        ("comparison", "Methods compared", data["comparison"]),
        ("words", "Words", True),
    ]
    return [(key, name) for key, name, there in every if there]
