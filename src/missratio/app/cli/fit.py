"""``missratio query`` and ``missratio fit``: from a table to a certified model."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import typer

from missratio.app.cli._command import CommandOutcome, Progress
from missratio.app.cli._failures import failures, phrased, say
from missratio.app.options import EXAMPLE_FILE, FitOptions, QueryOptions

# Columns that a message names, of those that it is about.
NAMED = 3


def write_example(wanted: bool) -> None:
    """Write an example of a missingness file, and leave."""
    if not wanted:
        return
    with failures(EXAMPLE_FILE):
        from missratio._files import written_whole
        from missratio.app.workflow import EXAMPLE

        with written_whole(EXAMPLE_FILE, force=False) as draft:
            draft.write_text(EXAMPLE, encoding="utf-8")
    say(f"{EXAMPLE_FILE}: an example of a file for --missingness.")
    raise typer.Exit


def fit(options: FitOptions, progress: Progress) -> CommandOutcome:
    """Fit a classifier to a table, with a certificate for one or several errors."""
    from missratio.app.modelfile import plain, save_model
    from missratio.app.workflow import fit_table

    fitted = fit_table(options, progress, shlex.join(["missratio", *sys.argv[1:]]))
    progress.step(f"Writing {options.out}")
    save_model(fitted.model, options.out, force=options.force)
    model, comparison = fitted.model, fitted.model.comparison
    warnings = list(dict.fromkeys(phrased(message) for message in fitted.warnings))
    facts = {
        "model": str(options.out),
        "method": model.method,
        "why": fitted.why,
        "way": fitted.account.way,
        "missingness": fitted.account.sentence,
        "ways": [asdict(way) for way in fitted.account.ways],
        "certificate": plain(model.certificate.to_dict()),
        "rows": plain(model.training.rows),
        "missing": plain(model.training.missing),
        "columns": model.encoder.names,
        "training_sha256": model.training.sha256,
        "comparison": None if comparison is None else plain(asdict(comparison)),
        "warnings": warnings,
        **fitted.measured,
    }
    rows = ", ".join(f"{n} of {label!r}" for label, n in model.training.rows.items())
    ways = fitted.account.ways
    stronger = "If new rows will be complete, there is a promise for such rows, too:"
    lines = [
        fitted.account.sentence,
        f"Rows: {rows}. Columns: {len(model.encoder.columns)}.",
        f"Method: {model.method}, {fitted.why}.",
        *fitted.findings,
        str(model.certificate),
        *(f"Warning: {warning}" for warning in condensed(warnings)),
        f"Written: {options.out}",
        *([stronger, *map(str, ways)] if ways else []),
    ]
    return CommandOutcome(facts, lines)


def condensed(texts: Sequence[str]) -> list[str]:
    """Messages that say the same of several columns as one, with three of them named.

    What differs may be names, in quotation marks or before a colon, and numbers.
    """
    alike: dict[str, list[tuple[str, str]]] = {}
    for text in texts:
        head, _, rest = text.partition(": ")
        # A column's name before a colon is no sentence.
        if not rest or ". " in head or "'" in head:
            head, rest = "", text
        quoted = re.search("'([^']*)'", rest)
        name = head or (quoted[1] if quoted else "")
        key = re.sub(r"'[^']*'|\d[\d.,]*", "#", rest)
        alike.setdefault(key, []).append((name, text))
    said = []
    for (_, first), *others in alike.values():
        names = list(dict.fromkeys(name for name, _ in others))
        if more := len(names):
            listed = ", ".join(map(repr, names[: NAMED - 1]))
            listed += f" and {more - NAMED + 1} more" * (more >= NAMED)
            first += f" The same is true of {listed} (--json has all)."
        said.append(first)
    return said


def query(options: QueryOptions, progress: Progress) -> CommandOutcome:
    """Draw which missing values to look up, as a table to fill in.

    Give it back to `missratio fit` by --queries, with the same DATA, --target and
    --drop. What was looked up is data: whole rows for the certificate, and single
    values for the score.
    """
    from missratio.app.workflow import plan_table

    plan = plan_table(options, progress)
    plan.write(options.out, force=options.force, escape_formulas=options.escape)
    facts: dict[str, Any] = {
        "plan": str(options.out),
        "queries": len(plan),
        "rows": plan.n_rows or None,
        "single": int((~plan.rowwise).sum()),
        "seed": plan.seed,
        "share": None,
        "power": None,
    }
    lines = [
        f"{options.out}: {plan.content()} to look up. Fill in the column 'value' from "
        "the top down, as far as you get; write 'not found' where a value can't be "
        f"had. Then: missratio fit {options.data} --queries {options.out} …"
    ]
    if (power := plan.power) is not None:
        names = ("values", "rows", "power", "lower", "upper")
        columns = [getattr(power, name).tolist() for name in names]
        facts["share"] = power.share
        facts["power"] = [
            dict(zip(names, each, strict=True)) for each in zip(*columns, strict=True)
        ]
        lines += [f"{power.division}."] * bool(power.division)
        lines.append(
            f"Rows of the controlled class, and the power to expect: {power}. "
            f"{power.range_meaning}."
        )
    return CommandOutcome(facts, lines)
