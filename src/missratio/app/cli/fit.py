"""``missratio fit``: a table in, a certified model out."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from missratio.app.cli import _options as options
from missratio.app.cli._failures import failures, phrased, say, say_json
from missratio.app.cli._options import read_levels
from missratio.app.cli._progress import Progress

if TYPE_CHECKING:
    from missratio.app.tables import Wanted
    from missratio.app.workflow import (
        Bounds,
        FitOptions,
        FittedTable,
        GroupBounds,
    )


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
    data: options.Data,
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
    deployment: options.Deployment = "complete",
    calibration_size: options.CalibrationSize = None,
    rule: options.Rule = "auto",
    odds_factor: options.OddsFactor = 1.0,
    on_infeasible: options.OnInfeasible = "raise",
    seed: options.SplitSeed = 0,
    standard_errors: options.FitStandardErrors = False,
    target_table: options.TargetTable = None,
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
            _check_asked(asked, data, out, force=force)
            wanted = Wanted(
                target, drop, categorical, missing_value, asked.as_observed,
                skip_unlabelled, groups,
            )  # fmt: skip
            file = {"encoding": encoding, "sheet": sheet, "header_row": header_row}
            done = _fitted(data, wanted, asked, progress, file)
            _save(done, out, progress, force=force)
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
    file: dict[str, Any],
) -> FittedTable:
    """Read a table, and fit it."""
    from missratio._files import open_table
    from missratio.app.tables import read_labelled
    from missratio.app.workflow import Heard, fit_table

    progress.step(f"Reading {data}")
    source = open_table(data, **file)
    wanted = wanted.found_in(source)
    table = read_labelled(source, wanted)
    heard = Heard(progress.step, progress.tick)
    return fit_table(table, source, wanted, asked, heard, _command())


def _command() -> str:
    """What was typed."""
    return shlex.join(["missratio", *sys.argv[1:]])


def _check_asked(asked: FitOptions, data: Path, out: Path, *, force: bool) -> None:
    """Refuse options that don't go together, and what can't be read or written."""
    asked.check()
    from missratio._files import check_writable

    if data.is_dir():
        raise IsADirectoryError(
            f"{data} is a folder: name one file. In Python, scan_parquet reads a "
            "folder of Parquet files."
        )
    check_writable(out, force=force, others=[data, *asked.inputs])


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
    return some, Bounds(levels, order), 0.5 if size is None else size


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

    model, comparison = fitted.model, fitted.model.comparison
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
    return {**facts, "finding": fitted.findings[0]}


def _warnings(fitted: FittedTable) -> list[str]:
    return list(dict.fromkeys(phrased(message) for message in fitted.warnings))


def _show(fitted: FittedTable, out: Path) -> None:
    model = fitted.model
    rows = ", ".join(f"{n} of {label!r}" for label, n in model.training.rows.items())
    said = [
        f"Rows: {rows}. Columns: {len(model.encoder.columns)}.",
        fitted.account.sentence,
        f"Method: {model.method}, {fitted.why}.",
        *fitted.findings,
        str(model.certificate),
    ]
    said += [f"Warning: {warning}" for warning in _warnings(fitted)]
    for line in [*said, f"Written: {out}"]:
        say(line)
