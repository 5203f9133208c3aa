"""Options of the commands about the paper: its experiments and data sets."""

from __future__ import annotations

from typing import Annotated

import typer

from missratio.app.cli._options import hidden

Ids = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID",
        help="Experiments, such as np_power or ctg_vary_alpha. Default: all whose "
        "data is available.",
        show_default=False,
    ),
]
Variant = Annotated[
    str,
    typer.Option(
        help="published: as the curves were made; corrected: with their defects mended."
    ),
]
Runs = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Number of runs of each experiment. Default: as many as in the paper.",
        show_default=False,
    ),
]
Methods = Annotated[
    list[str] | None,
    hidden(
        "Names of curves to draw, separated by commas; may be repeated. Default: all "
        "curves of the paper."
    ),
]
Without = Annotated[
    list[str] | None,
    hidden("Names of curves to leave out, such as the slow 'Iterative imputation'."),
]
Beyond = Annotated[
    bool,
    typer.Option(
        "--beyond",
        help="Add curves that are not in the paper: joint fits, and learners on "
        "imputations.",
    ),
]
RunSeed = Annotated[int, typer.Option(min=0, help="Random seed for all draws.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Number of processes. Default: one for each core.",
        show_default=False,
    ),
]
ForceResults = Annotated[
    bool,
    typer.Option(
        "--force", help="Replace results of another seed or variant in the folder."
    ),
]
CurvesAsJson = Annotated[
    bool, typer.Option("--json", help="Print the curves as JSON, and nothing else.")
]
