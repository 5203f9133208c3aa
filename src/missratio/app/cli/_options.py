"""Options of the commands, each declared once, and how help lays them out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.models import OptionInfo


def read_share(text: Any) -> float:
    """A share, as a number or in percent."""
    words = str(text).strip().replace("\u00a0", " ")
    try:
        if words.endswith("%"):
            return float(words[:-1].strip().replace(",", ".")) / 100.0
        return float(words.replace(",", "."))
    except ValueError:
        raise ValueError(f"{text!r} is not a share: write 0.05 or 5%.") from None


def _level(text: str, option: str) -> float:
    try:
        return read_share(text)
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from None


def read_levels(
    words: list[str], option: str = "--alpha"
) -> tuple[float | None, dict[str, float]]:
    """One level, or those of several classes by their labels, or of groups."""
    named = [word.rpartition("=") for word in words if "=" in word]
    if not named:
        if len(words) > 1:
            raise ValueError(
                f"{option} was given {len(words)} times. Name a class with each, such "
                f"as {option} LABEL={words[0]}."
            )
        return _level(words[0], option), {}
    if len(named) < len(words):
        raise ValueError(
            f"{option} LABEL=SHARE and {option} SHARE don't go together: name a class "
            "with each."
        )
    levels = {label.strip(): _level(share, option) for label, _, share in named}
    if len(levels) < len(named) or "" in levels:
        raise ValueError(
            f"{option} LABEL=SHARE names each class once: got "
            f"{', '.join(label.strip() or repr('') for label, _, _ in named)}."
        )
    return None, levels


EXAMPLE_FILE = Path("missingness.toml")


def hidden(text: str, *names: str, metavar: str | None = None) -> Any:
    """An option whose default says nothing."""
    return typer.Option(*names, help=text, show_default=False, metavar=metavar)


def share(text: Any) -> float:
    """A share, as a number or in percent, for an option."""
    try:
        return read_share(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _share_option(text: str) -> Any:
    return typer.Option(help=text, parser=share, metavar="SHARE")


# Tables
Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="A table: .csv, .tsv, .csv.gz, .parquet, .xlsx, .xls, .ods.",
    ),
]
Target = Annotated[str, typer.Option(help="The column of labels.", metavar="COLUMN")]
Controlled = Annotated[
    str, typer.Option(help="The label whose error is bounded.", metavar="LABEL")
]
FitControlled = Annotated[
    str | None,
    hidden(
        "The label whose error is bounded; left out where --alpha names several.",
        metavar="LABEL",
    ),
]
Versus = Annotated[
    str | None,
    hidden(
        "For a table with more than two labels: the label to keep beside "
        "--controlled, or 'rest' to take all others as one class.",
        metavar="LABEL|rest",
    ),
]
SkipUnlabelled = Annotated[
    bool,
    typer.Option("--skip-unlabelled", help="Leave out rows without a label."),
]
Drop = Annotated[
    list[str],
    hidden("Columns to leave out, separated by commas; may be repeated."),
]
Keep = Annotated[
    list[str],
    hidden("Columns to copy to the output, separated by commas; may be repeated."),
]
Categorical = Annotated[
    list[str],
    hidden(
        "Columns of numbers to treat as categories, separated by commas; may be "
        "repeated."
    ),
]
MissingValue = Annotated[
    list[str],
    hidden(
        "Another text that marks a missing cell, in addition to a blank, NA, NaN and "
        "null; may be repeated.",
        "--missing-value",
    ),
]
Encoding = Annotated[
    str | None, hidden("Character encoding of a CSV file. Default: UTF-8.")
]
Sheet = Annotated[
    str | None, hidden("Sheet of a workbook to read. Default: the first.")
]
HeaderRow = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="The line that holds the column names, if other lines come before it. "
        "Default: the first line that isn't blank.",
        show_default=False,
    ),
]

# Outputs
Force = Annotated[bool, typer.Option("--force", help="Overwrite the output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
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
        help="Escape text in a CSV file that a spreadsheet would run as a formula.",
    ),
]

# Planning look-ups
PerFeature = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Number of values to look up for each class and column. Default: 30 if "
        "there is no --budget.",
        show_default=False,
    ),
]
Budget = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Number of values to look up in all; they are spent where they buy the "
        "most power.",
        show_default=False,
    ),
]
Goal = Annotated[
    str | None,
    hidden(
        "What the budget is for: certificate (rows of the controlled class), ratio "
        "(single values of both classes), or both. Default: both.",
        metavar="certificate|ratio|both",
    ),
]
WholeRows = Annotated[
    bool, typer.Option("--rows", help="Look up whole rows, if these are missing.")
]
Id = Annotated[
    str | None,
    hidden("A column that identifies a row; it is copied to the plan.", "--id"),
]
OnlyControlled = Annotated[
    bool,
    typer.Option("--only-controlled", help="Plan for the controlled class only."),
]
DrawSeed = Annotated[
    int,
    typer.Option(
        min=0,
        help="Random seed for the draw. A larger plan with the same seed extends the "
        "smaller one.",
    ),
]

# Fitting
Alpha = Annotated[
    float,
    _share_option("Bound on the error of the controlled class, such as 0.05 or 5%."),
]
Delta = Annotated[
    float, _share_option("Probability with which the bound may fail, such as 5%.")
]
FitAlpha = Annotated[
    list[str],
    typer.Option(
        help="Bound on the error of the controlled class, such as 0.05 or 5%; or "
        "LABEL=SHARE, repeated, to bound the errors of several classes together.",
        metavar="SHARE|LABEL=SHARE",
    ),
]
Ordered = Annotated[
    str | None,
    hidden(
        "Labels with commas between, the most severe first: --alpha then bounds the "
        "share of each class but the last that is called less severe.",
        metavar="LABELS",
    ),
]
Groups = Annotated[
    str | None,
    hidden(
        "A column that says which group each row is in: the error of --controlled is "
        "bounded in each group, by a threshold of its own. It is not a feature then.",
        metavar="COLUMN",
    ),
]
GroupAlpha = Annotated[
    list[str],
    hidden(
        "Bound on the error in one group; --alpha is that of the others. May be "
        "repeated.",
        "--group-alpha",
        metavar="GROUP=SHARE",
    ),
]
SharedThreshold = Annotated[
    bool,
    typer.Option(
        "--shared-threshold",
        help="One threshold for all rows, which keeps --alpha over all of them and "
        "--group-alpha in the groups named.",
    ),
]
Missingness = Annotated[
    str | None,
    hidden(
        "Why values are missing: 'learn' to learn it from the table, a TOML file that "
        "says so (see --example), or 'ignore'.",
        metavar="learn|FILE|ignore",
    ),
]
Queries = Annotated[
    Path | None,
    hidden("A plan that `missratio query` wrote, filled in.", metavar="PLAN"),
]
Method = Annotated[
    str,
    typer.Option(
        help="auto: compare the others on training rows left out in turn, and take "
        "the one with most power; kliep, js, kliep-cv or naive-bayes: density ratios; "
        "ulsif, rulsif, kernel-kliep or kmm: density ratios by Gaussian kernels; "
        "logistic; trees: boosted trees; imputed-trees: the same, missing values drawn "
        "by why they are missing."
    ),
]
CompareSeconds = Annotated[
    float,
    typer.Option(
        help="How long --method auto may compare methods, in seconds of processor "
        "time; 0 for no comparison."
    ),
]
Deployment = Annotated[
    str,
    typer.Option(
        help="complete: rows to classify will be complete; as-observed: they will lose "
        "values as the rows in DATA did."
    ),
]
CalibrationSize = Annotated[
    float | None,
    hidden(
        "Share of the controlled class's rows that choose the threshold; the rest "
        "train the model. Default: 0.5. With several bounded classes: 0.4 of each, and "
        "0.2 of every class to choose offsets with."
    ),
]
Rule = Annotated[
    str, typer.Option(help="The rule that chooses and certifies the threshold.")
]
OddsFactor = Annotated[
    float,
    typer.Option(
        help="Keep the guarantee even if the odds of being missing are wrong by up to "
        "this factor."
    ),
]
OnInfeasible = Annotated[
    str,
    typer.Option(
        help="If nothing can be certified: raise an error, or reject_all: give every "
        "row the controlled class."
    ),
]
TargetTable = Annotated[
    Path | None,
    hidden(
        "Complete rows of another population, without labels, that the certificate is "
        "to be for: its columns are distributed differently (covariate shift).",
        "--target-table",
        metavar="FILE",
    ),
]
SplitSeed = Annotated[
    int, typer.Option(min=0, help="Random seed for the train/calibration split.")
]
FitStandardErrors = Annotated[
    bool,
    typer.Option(
        "--standard-errors",
        help="Store what `missratio predict` needs for standard errors of scores.",
    ),
]

# Using a model
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A file that `missratio fit` wrote.")
]
StandardErrors = Annotated[
    bool,
    typer.Option(
        "--standard-errors",
        help="Add standard errors of the scores; the model must have been fitted with "
        "--standard-errors.",
    ),
]


# Names of parameters. What isn't named here is listed first, under "Options".
PANELS = {
    "About the promise": (
        "ordered", "groups", "group_alpha", "shared_threshold", "deployment",
        "odds_factor", "on_infeasible", "target_table",
    ),
    "Why values are missing": ("missingness", "queries", "example"),
    "How to learn": (
        "method", "compare_seconds", "calibration_size", "rule",
    ),
    "Which values to look up": (
        "budget", "goal", "per_feature", "rows", "id_column", "only_controlled",
    ),
    "How to read the table": (
        "versus", "skip_unlabelled", "drop", "categorical", "missing_value", "encoding",
        "sheet", "header_row",
    ),
    "Files and output": (
        "keep", "standard_errors", "force", "quiet", "as_json",
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
