"""Options of the commands, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

EXAMPLE_FILE = Path("missingness.toml")


def _hidden(text: str, *names: str, metavar: str | None = None) -> Any:
    """An option whose default says nothing."""
    return typer.Option(*names, help=text, show_default=False, metavar=metavar)


def _share(text: Any) -> float:
    """A share, as a number or in percent, for an option."""
    try:
        return read_share(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def read_share(text: Any) -> float:
    """A share, as a number or in percent."""
    words = str(text).strip().replace("\u00a0", " ")
    try:
        if words.endswith("%"):
            return float(words[:-1].strip().replace(",", ".")) / 100.0
        return float(words.replace(",", "."))
    except ValueError:
        raise ValueError(f"{text!r} is no share: write 0.05 or 5%.") from None


def read_levels(words: list[str]) -> tuple[float | None, dict[str, float]]:
    """One level, or those of several classes by their labels.

    Parameters
    ----------
    words : list of str
        What was given to --alpha.
    """
    named = [word.rpartition("=") for word in words if "=" in word]
    if not named:
        if len(words) > 1:
            raise ValueError(
                f"--alpha was given {len(words)} times. Name a class with each, such "
                f"as --alpha LABEL={words[0]}."
            )
        return read_share(words[0]), {}
    if len(named) < len(words):
        raise ValueError(
            "--alpha LABEL=SHARE and --alpha SHARE don't go together: name a class "
            "with each."
        )
    levels = {label.strip(): read_share(share) for label, _, share in named}
    if len(levels) < len(named) or "" in levels:
        raise ValueError(
            "--alpha LABEL=SHARE names each class once: got "
            f"{', '.join(label.strip() or repr('') for label, _, _ in named)}."
        )
    return None, levels


def _share_option(text: str) -> Any:
    return typer.Option(help=text, parser=_share, metavar="SHARE")


# Tables
Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="A table: .csv, .tsv, .csv.gz, .parquet, .xlsx, .xls, .ods.",
    ),
]
FitData = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="A table: .csv, .tsv, .csv.gz, .parquet, .xlsx, .xls, .ods; or a folder "
        "of .parquet files.",
    ),
]
Target = Annotated[str, typer.Option(help="The column of labels.")]
Controlled = Annotated[
    str, typer.Option(help="The label whose error is to be bounded.")
]
FitControlled = Annotated[
    str | None,
    _hidden(
        "The label whose error is to be bounded; left out where --alpha names several."
    ),
]
Versus = Annotated[
    str | None,
    _hidden(
        "Where there are more than two labels: the other one, whose rows are kept, or "
        "'rest' for all others as one class.",
        metavar="LABEL|rest",
    ),
]
SkipUnlabelled = Annotated[
    bool,
    typer.Option("--skip-unlabelled", help="Leave rows without a label out."),
]
Drop = Annotated[
    list[str],
    _hidden("Columns to leave out, with commas between; may be repeated."),
]
Keep = Annotated[
    list[str],
    _hidden("Columns to copy to the output, with commas between; may be repeated."),
]
Categorical = Annotated[
    list[str],
    _hidden(
        "Columns of numbers that are categories, with commas between; may be repeated."
    ),
]
MissingValue = Annotated[
    list[str],
    _hidden(
        "What stands for a missing cell, beside a blank, NA, NaN and null; may be "
        "repeated.",
        "--missing-value",
    ),
]
Encoding = Annotated[str | None, _hidden("Of a CSV file. Default: UTF-8.")]
Sheet = Annotated[str | None, _hidden("Of a workbook. Default: the first.")]
HeaderRow = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="The line of the header, where others come before it. Default: the first "
        "that isn't blank.",
        show_default=False,
    ),
]

# Outputs
Force = Annotated[bool, typer.Option("--force", help="Overwrite the output.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Say nothing but what went wrong.")
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object, and nothing else.")
]
PlanOut = Annotated[
    Path, typer.Option(help="The table to fill in: .csv, .xlsx or .parquet.")
]
ModelOut = Annotated[Path, typer.Option(help="The model file, such as model.skops.")]
PredictionsOut = Annotated[
    Path, typer.Option(help="Predictions: .csv, .parquet or .xlsx.")
]
PageOut = Annotated[
    Path, typer.Option(help="The page: .html, or the same as .md or .json.")
]
FolderOut = Annotated[
    Path,
    typer.Option(file_okay=False, help="Folder for tables, figures and the summary."),
]

EscapeFormulas = Annotated[
    bool,
    typer.Option(
        "--escape-formulas/--no-escape-formulas",
        help="Mark texts in a CSV file that a spreadsheet would take for formulas.",
    ),
]

# Signatures
Sign = Annotated[
    Path | None,
    _hidden(
        "Sign the model by a private Ed25519 key (PEM), into a file MODEL.sig.",
        "--sign",
        metavar="KEY",
    ),
]
Verify = Annotated[
    Path | None,
    _hidden(
        "Refuse a model that the owner of this public Ed25519 key (PEM) didn't sign.",
        "--verify",
        metavar="KEY",
    ),
]

# Planning look-ups
PerFeature = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Values to look up for each class and column. Default: 30, where there "
        "is no --budget.",
        show_default=False,
    ),
]
Budget = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Values to look up in all, spent where they buy most.",
        show_default=False,
    ),
]
Goal = Annotated[
    str | None,
    _hidden(
        "What the budget is for: certificate (rows of the controlled class), ratio "
        "(single values of both), or both. Default: both.",
        metavar="certificate|ratio|both",
    ),
]
WholeRows = Annotated[
    bool, typer.Option("--rows", help="Whole rows are missing: look up rows.")
]
Id = Annotated[str | None, _hidden("Your key of a row, copied to the plan.", "--id")]
OnlyControlled = Annotated[
    bool, typer.Option("--only-controlled", help="Ask about that class alone.")
]
DrawSeed = Annotated[
    int,
    typer.Option(min=0, help="Random seed; more look-ups with the same extend a plan."),
]

# Fitting
Alpha = Annotated[
    float,
    _share_option("Bound on the error on the controlled class, such as 0.05 or 5%."),
]
FitAlpha = Annotated[
    list[str],
    typer.Option(
        help="Bound on the error on the controlled class, such as 0.05 or 5%; or "
        "LABEL=SHARE, repeated, to bound the errors of several classes together.",
        metavar="SHARE|LABEL=SHARE",
    ),
]
Ordered = Annotated[
    str | None,
    _hidden(
        "Labels with commas between, the most severe first: --alpha then bounds the "
        "share of each class but the last that is called less severe.",
        metavar="LABELS",
    ),
]
TradeOffOut = Annotated[
    Path | None,
    _hidden(
        "Draw what bounded classes leave each other, also where that is too little.",
        "--trade-off",
        metavar="PNG",
    ),
]
Delta = Annotated[float, _share_option("Probability that the bound may fail.")]
QueryBudget = Annotated[
    str | None,
    _hidden(
        "Where φ was learned: try what other numbers of look-ups a column would buy, "
        "such as 50,100,200.",
        metavar="NUMBERS",
    ),
]
Missingness = Annotated[
    str | None,
    _hidden(
        "Why values are missing: 'learn' it from the table, a TOML file (see "
        "--example), or 'ignore'.",
        metavar="learn|FILE|ignore",
    ),
]
Queries = Annotated[
    Path | None,
    _hidden("A plan of `missratio query`, filled in.", metavar="PLAN"),
]
Method = Annotated[
    str,
    typer.Option(
        help="auto: compare the others on training rows left out in turn, and take "
        "the one with most power; kliep, js, kliep-cv or naive-bayes: density ratios; "
        "logistic; trees: boosted trees; imputed-trees: the same, missing values drawn "
        "by why they are missing."
    ),
]
CompareSeconds = Annotated[
    float,
    typer.Option(
        help="How long --method auto may compare methods, in seconds of the "
        "processor; 0 for no comparison."
    ),
]
Deployment = Annotated[
    str,
    typer.Option(
        help="complete: rows to be classified are complete; as-observed: they "
        "lose values as these did."
    ),
]
CalibrationSize = Annotated[
    float | None,
    _hidden(
        "Share of the controlled class to choose the threshold by. Default: 0.5; with "
        "several bounded classes 0.4 of each, and 0.2 of every class to choose by."
    ),
]
Rule = Annotated[str, typer.Option(help="How the threshold is certified.")]
OddsFactor = Annotated[
    float, typer.Option(help="Allow for odds of missingness wrong by this factor.")
]
OnInfeasible = Annotated[
    str,
    typer.Option(
        help="raise, or reject_all: without a certificate every row gets the "
        "controlled class."
    ),
]
TargetTable = Annotated[
    Path | None,
    _hidden(
        "Complete rows of another population, without labels, that the certificate is "
        "to be for: its columns are distributed otherwise (covariate shift).",
        "--target-table",
        metavar="FILE",
    ),
]
Stream = Annotated[
    bool,
    typer.Option(
        "--stream",
        help="Read a Parquet file, or a folder of them, in passes, a few rows at a "
        "time. Without it, that is done where the file is large against memory.",
    ),
]
Dask = Annotated[
    str | None,
    _hidden(
        "Let the workers of a Dask cluster read the Parquet files and fit.",
        metavar="ADDRESS",
    ),
]
SplitSeed = Annotated[
    int, typer.Option(min=0, help="Random seed for the train/calibration split.")
]
FitStandardErrors = Annotated[
    bool, typer.Option("--standard-errors", help="So that predict can give them.")
]

# Using a model
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A file that `missratio fit` wrote.")
]
StandardErrors = Annotated[
    bool,
    typer.Option(
        "--standard-errors",
        help="Of the scores, if the model was fitted with --standard-errors.",
    ),
]

# Watching a model
Labelled = Annotated[
    Path, typer.Argument(metavar="LABELLED", help="Labelled rows that came since.")
]
State = Annotated[
    Path | None,
    _hidden("What was found so far. Default: MODEL.watch.json.", metavar="FILE"),
]
WatchFigure = Annotated[
    Path | None, _hidden("Draw error and capital over time.", metavar="PNG")
]

# The paper
Ids = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ID]...",
        help="Experiments, such as np_power or ctg_vary_alpha. None: all whose "
        "data is at hand.",
        show_default=False,
    ),
]
Variant = Annotated[
    str, typer.Option(help="As the curves were published, or with defects corrected.")
]
Runs = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Runs of each experiment. Default: as many as the paper made.",
        show_default=False,
    ),
]
Methods = Annotated[
    list[str] | None,
    _hidden(
        "Curves, by name; may be repeated, or several with commas between. Default: "
        "all of the paper's."
    ),
]
Without = Annotated[
    list[str] | None,
    _hidden(
        "Curves to leave out, such as the slow 'Iterative imputation'; as --methods."
    ),
]
Beyond = Annotated[
    bool,
    typer.Option(
        "--beyond",
        help="Add curves past the paper: joint fits, and learners on imputations.",
    ),
]
RunSeed = Annotated[int, typer.Option(min=0, help="Random seed of all draws.")]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, help="Processes. Default: one a core.", show_default=False),
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
