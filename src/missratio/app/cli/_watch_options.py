"""Options of ``missratio watch``, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from missratio.app.cli._options import hidden, share

Labelled = Annotated[
    Path,
    typer.Argument(
        metavar="LABELLED", help="A table of rows that came since, with their labels."
    ),
]
State = Annotated[
    Path | None,
    hidden(
        "The file that keeps the counts so far. Default: MODEL.watch.json.",
        metavar="FILE",
    ),
]
Inclusion = Annotated[
    str | None,
    hidden(
        "Where only some rows get a label: the column with the probability that each "
        "row had of getting one. Rows without a label are passed over.",
        metavar="COLUMN",
    ),
]
LeastInclusion = Annotated[
    float | None,
    typer.Option(
        help="The least probability that the design gives any row; needed by the "
        "first run with --inclusion, and kept in the state.",
        parser=share,
        metavar="SHARE",
        show_default=False,
    ),
]
WatchFigure = Annotated[
    Path | None,
    hidden("Draw the error and the evidence over time.", metavar="PNG"),
]
