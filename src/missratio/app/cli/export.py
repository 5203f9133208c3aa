"""``missratio export``: a certified model for other runtimes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from missratio.app.cli import _options as options
from missratio.app.cli._failures import failures, say, say_json
from missratio.app.cli._progress import Progress

OnnxOut = Annotated[
    Path,
    typer.Option("--onnx", metavar="FILE", help="The ONNX file to write."),
]


def export(
    model_file: options.ModelFile,
    onnx: OnnxOut,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Write a linear or tree model, with its threshold, as an ONNX file."""
    with failures(onnx):
        with Progress(quiet) as progress:
            from missratio._files import check_writable
            from missratio.app.export import export_onnx
            from missratio.app.modelfile import load_table_model

            check_writable(onnx, force=force, others=[model_file])
            progress.step(f"Reading {model_file}")
            model = load_table_model(model_file)
            export_onnx(model, onnx, force=force)
        columns = list(model.encoder.encoded_names)
        if as_json:
            say_json({"onnx": str(onnx), "columns": columns})
        elif not quiet:
            say(f"Written: {onnx}")
            say(f"Its input X has {len(columns)} columns: {', '.join(columns)}.")
