"""How the help of a command is laid out: options in panels, by what they are about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_type_hints

from typer.models import OptionInfo

# Names of parameters. What isn't named here is listed first, under "Options".
PANELS = {
    "About the promise": (
        "ordered", "groups", "group_alpha", "shared_threshold", "deployment",
        "odds_factor", "on_infeasible", "target_table", "trade_off",
    ),
    "Why values are missing": ("missingness", "queries", "query_budget", "example"),
    "How to learn": (
        "method", "compare_seconds", "calibration_size", "rule",
    ),
    "Which values to look up": (
        "budget", "goal", "per_feature", "rows", "id_column", "only_controlled",
    ),
    "How to read the table": (
        "versus", "skip_unlabelled", "drop", "categorical", "missing_value", "encoding",
        "sheet", "header_row", "stream", "dask",
    ),
    "Files and output": (
        "keep", "standard_errors", "sign", "verify", "force", "quiet", "as_json",
    ),
    "CSV files for spreadsheets": ("escape",),
}  # fmt: skip
PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names}


def arranged(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose help has panels; flags show no type."""
    for name, hint in get_type_hints(command, include_extras=True).items():
        option: Any = getattr(hint, "__metadata__", (None,))[0]
        if not isinstance(option, OptionInfo):
            continue
        if name in PANEL_OF:
            option.rich_help_panel = PANEL_OF[name]
        if hint.__origin__ is bool:
            option.metavar = ""
    return command
