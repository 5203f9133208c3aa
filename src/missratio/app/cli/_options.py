"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="A table: .csv, .tsv, .csv.gz, .parquet, .xlsx, .xls, .ods.",
    ),
]
Target = Annotated[str, typer.Option(help="The column of labels.")]
Controlled = Annotated[
    str, typer.Option(help="The label whose error is to be bounded.")
]
Drop = Annotated[
    list[str],
    typer.Option(help="A column to leave out; may be repeated.", show_default=False),
]
Categorical = Annotated[
    list[str],
    typer.Option(
        help="A column of numbers that are categories; may be repeated.",
        show_default=False,
    ),
]
MissingValue = Annotated[
    list[str],
    typer.Option(
        "--missing-value",
        help="What stands for a missing cell, beside a blank, NA, NaN and null; may be "
        "repeated.",
        show_default=False,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(help="Of a CSV file. Default: UTF-8.", show_default=False),
]
Sheet = Annotated[
    str | None,
    typer.Option(help="Of a workbook. Default: the first.", show_default=False),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the output.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Say nothing but what went wrong.")
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object, and nothing else.")
]
NOTHING_WRITTEN = "Interrupted: nothing was written."
