"""``missratio fit``: a table in, a certified model out."""

from __future__ import annotations

import shlex
import sys
from contextlib import nullcontext
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from missratio.app.cli import _options as options
from missratio.app.cli._failures import failures, phrased, say, say_json
from missratio.app.cli._options import read_levels
from missratio.app.cli._progress import Progress, check_drawing

if TYPE_CHECKING:
    from missratio.app.tables import Wanted
    from missratio.app.workflow import (
        Bounds,
        FitOptions,
        FittedTable,
        GroupBounds,
    )

CONNECT_SECONDS = 10


def _write_example(wanted: bool) -> None:
    """Write an example of a missingness file, and leave."""
    if not wanted:
        return
    with failures(options.EXAMPLE_FILE):
        from missratio._files import written_whole
        from missratio.app.workflow import EXAMPLE

        with written_whole(options.EXAMPLE_FILE, force=False) as draft:
            draft.write_text(EXAMPLE, encoding="utf-8")
    say(f"{options.EXAMPLE_FILE}: an example of a file for --missingness.")
    raise typer.Exit


Example = Annotated[
    bool,
    typer.Option(
        "--example",
        callback=_write_example,
        is_eager=True,
        help=f"Write an example for --missingness to {options.EXAMPLE_FILE}, and stop.",
    ),
]


def fit(
    data: options.FitData,
    target: options.Target,
    out: options.ModelOut,
    controlled: options.FitControlled = None,
    alpha: options.FitAlpha = ["5%"],  # noqa: B006
    ordered: options.Ordered = None,
    groups: options.Groups = None,
    group_alpha: options.GroupAlpha = [],  # noqa: B006
    shared_threshold: options.SharedThreshold = False,
    delta: options.Delta = 0.05,
    missingness: options.Missingness = None,
    queries: options.Queries = None,
    method: options.Method = "auto",
    compare_seconds: options.CompareSeconds = 60.0,
    versus: options.Versus = None,
    query_budget: options.QueryBudget = None,
    deployment: options.Deployment = "complete",
    calibration_size: options.CalibrationSize = None,
    rule: options.Rule = "auto",
    odds_factor: options.OddsFactor = 1.0,
    on_infeasible: options.OnInfeasible = "raise",
    seed: options.SplitSeed = 0,
    standard_errors: options.FitStandardErrors = False,
    trade_off: options.TradeOffOut = None,
    target_table: options.TargetTable = None,
    stream: options.Stream = False,
    dask: options.Dask = None,
    sign: options.Sign = None,
    drop: options.Drop = [],  # noqa: B006
    categorical: options.Categorical = [],  # noqa: B006
    missing_value: options.MissingValue = [],  # noqa: B006
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    header_row: options.HeaderRow = None,
    skip_unlabelled: options.SkipUnlabelled = False,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    example: Example = False,
) -> None:
    """Fit a classifier to a table, with a certificate for one or several errors."""
    given = dict(locals())
    with failures(out):
        with Progress(quiet) as progress:
            from missratio.app.tables import Wanted
            from missratio.app.workflow import FitOptions

            level, several, size = _asked(alpha, ordered, calibration_size)
            bounds = _groups(groups, group_alpha, shared_threshold)
            # A parameter that is called as a field of the options is that field.
            shared = {f.name: given[f.name] for f in fields(FitOptions)
                      if f.name in given}  # fmt: skip
            asked = FitOptions(
                **{**shared, "alpha": level, "calibration_size": size,
                   "groups": bounds}, several=several,
            )  # fmt: skip
            _check_asked(asked, data, out, trade_off, force=force, sign_with=sign)
            wanted = Wanted(
                target, drop, categorical, missing_value, asked.as_observed,
                skip_unlabelled, groups,
            )  # fmt: skip
            file = {"encoding": encoding, "sheet": sheet, "header_row": header_row}
            done = _fitted(data, wanted, asked, progress, trade_off, stream, dask, file)
            _save(done, out, progress, force=force, sign_with=sign)
        if as_json:
            say_json(_facts(done, out))
        elif not quiet:
            _show(done, out)


def _save(fitted: FittedTable, out: Path, progress: Progress, **how: Any) -> None:
    from missratio.app.modelfile import save_model

    progress.step(f"Writing {out}")
    save_model(fitted.model, out, **how)


def _fitted(
    data: Path,
    wanted: Wanted,
    asked: FitOptions,
    progress: Progress,
    trade_off: Path | None,
    stream: bool,
    dask: str | None,
    file: dict[str, Any],
) -> FittedTable:
    """Fit a table in memory; or in passes, where that is asked for or it is large."""
    from missratio._files import open_table
    from missratio.app.tables import read_labelled
    from missratio.app.workflow import (
        Heard,
        fit_streamed,
        fit_table,
        is_large,
        read_streamed,
    )

    heard = Heard(progress.step, progress.tick)
    if not (stream or dask is not None or is_large(data)):
        progress.step(f"Reading {data}")
        source = open_table(data, **file)
        wanted = wanted.found_in(source)
        table = read_labelled(source, wanted)
        return fit_table(table, source, wanted, asked, heard, _command(), trade_off)
    _check_passes(data, asked, file)
    passes = read_streamed(data, wanted, asked, heard)
    with nullcontext() if dask is None else _cluster(dask) as client:
        return fit_streamed(passes, wanted, asked, heard, client, _command())


def _check_passes(data: Path, asked: FitOptions, file: dict[str, Any]) -> None:
    """Refuse what can't be read in passes."""
    from missratio._files import RegularFile, kind_of
    from missratio.exceptions import TableError

    if asked.several is not None or asked.groups is not None:
        what = "several classes" if asked.groups is None else "groups"
        raise TableError(
            f"{data} would be read in passes (it is large, or --stream or --dask was "
            f"given), and bounds on {what} need all rows in memory. Bring fewer rows, "
            "or bound one class (--controlled) without --groups."
        )
    if not data.is_dir():
        RegularFile.at(data)
        if kind_of(data) != "parquet":
            raise TableError(
                f"{data} can't be read in passes: only Parquet files can. Leave out "
                "--stream and --dask, or save it as .parquet."
            )
    for name, value in file.items():
        if value is not None:
            option = f"--{name.replace('_', '-')}"
            raise TableError(f"{option} is not for Parquet files: leave it out.")


def _command() -> str:
    """What was typed."""
    return shlex.join(["missratio", *sys.argv[1:]])


def _cluster(address: str) -> Any:
    """A client of a cluster."""
    try:
        from distributed import Client
    except ImportError as error:
        raise ModuleNotFoundError(
            "--dask needs distributed: pip install 'missratio[dask]'."
        ) from error
    try:
        return Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"There is no Dask cluster at {address!r}: {error}. Start one by `dask "
            "scheduler` and `dask worker`, and give the scheduler's address, such as "
            "tcp://127.0.0.1:8786."
        ) from error


def _check_asked(
    asked: FitOptions, data: Path, out: Path, trade_off: Path | None, **model: Any
) -> None:
    """Refuse options that don't go together, and what can't be written or drawn."""
    from missratio._files import check_writable
    from missratio.app.modelfile import check_outputs

    asked.check()
    others, several = [data, *asked.inputs, trade_off], asked.several
    outputs = check_outputs(out, **model, others=others)
    if trade_off is None:
        return
    if several is None or several.order is not None or len(several.levels) < 2:
        raise ValueError(
            "--trade-off is for two or more bounded classes without an order: give "
            "--alpha LABEL=SHARE for each."
        )
    check_drawing()
    check_writable(trade_off, force=True, others=[data, *asked.inputs, *outputs])


def _asked(
    alpha: list[str], ordered: str | None, size: float | None
) -> tuple[float, Bounds | None, float]:
    """The level of one class, or the bounds of several; the share to calibrate on."""
    from missratio.app.workflow import Bounds

    level, levels = read_levels(alpha)
    if level is not None:
        if ordered is not None:
            raise ValueError(
                "--ordered is for bounds on several classes: give --alpha LABEL=SHARE "
                "for each class but the last."
            )
        return level, None, 0.5 if size is None else size
    order = None
    if ordered is not None:
        order = tuple(word.strip() for word in ordered.split(","))
    # Unused, but within the range that a level has.
    some = next(iter(levels.values()))
    return some, Bounds(levels, order), 0.4 if size is None else size


def _groups(column: str | None, levels: list[str], shared: bool) -> GroupBounds | None:
    """The groups that have a promise of their own."""
    from missratio.app.workflow import GroupBounds

    if column is None:
        if levels or shared:
            option = "--group-alpha" if levels else "--shared-threshold"
            raise ValueError(
                f"{option} is for groups: say which column tells them apart, by "
                "--groups COLUMN."
            )
        return None
    if any("=" not in word for word in levels):
        raise ValueError(
            "--group-alpha takes GROUP=SHARE, such as --group-alpha old=5%: got "
            f"{', '.join(levels)}. --alpha is for all groups."
        )
    named = read_levels(levels, "--group-alpha")[1] if levels else {}
    return GroupBounds(column, named, shared)


def _facts(fitted: FittedTable, out: Path) -> dict[str, Any]:
    from missratio.app.modelfile import plain

    model, comparison, budget = fitted.model, fitted.model.comparison, fitted.budget
    facts = {
        "model": str(out),
        "method": model.method,
        "why": fitted.why,
        "way": fitted.account.way,
        "missingness": fitted.account.sentence,
        "certificate": plain(model.certificate.to_dict()),
        "rows": plain(model.training.rows),
        "missing": plain(model.training.missing),
        "columns": model.encoder.names,
        "training_sha256": model.training.sha256,
        "comparison": None if comparison is None else plain(asdict(comparison)),
        "warnings": _warnings(fitted),
        **fitted.measured,
    }
    if "errors" in fitted.measured:
        return {**facts, "findings": fitted.findings}
    bought = None if budget is None else budget.to_frame("pyarrow").to_pydict()
    return {**facts, "finding": fitted.findings[0], "query_budget": plain(bought)}


def _warnings(fitted: FittedTable) -> list[str]:
    return list(dict.fromkeys(phrased(message) for message in fitted.warnings))


def _show(fitted: FittedTable, out: Path) -> None:
    from missratio.app.workflow import budget_words

    model = fitted.model
    rows = ", ".join(f"{n} of {label!r}" for label, n in model.training.rows.items())
    said = [
        f"Rows: {rows}. Columns: {len(model.encoder.columns)}.",
        fitted.account.sentence,
        f"Method: {model.method}, {fitted.why}.",
        *fitted.findings,
        str(model.certificate),
    ]
    if fitted.budget is not None:
        said.append(budget_words(fitted.budget))
    said += [f"Warning: {warning}" for warning in _warnings(fitted)]
    for line in [*said, f"Written: {out}"]:
        say(line)
