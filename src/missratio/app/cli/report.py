"""``missratio report``: what a model guarantees, as one page."""

from __future__ import annotations

from missratio.app.cli import _options as options
from missratio.app.cli._failures import failures, say
from missratio.app.cli._progress import Progress

FORMATS = (".html", ".md", ".json")


def report(
    model_file: options.ModelFile,
    out: options.PageOut,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a page that shows what a model guarantees, and on what evidence."""
    with failures(out):
        with Progress(quiet) as progress:
            from missratio._files import check_writable, written_whole
            from missratio.app.modelfile import ModelFileError, load_table_model
            from missratio.app.report import Report

            kind = out.suffix.lower()
            if kind not in FORMATS:
                raise ValueError(
                    f"--out must end in one of {', '.join(FORMATS)}: got {out.name!r}."
                )
            check_writable(out, force=force, others=[model_file])
            progress.step(f"Reading {model_file}")
            model = load_table_model(model_file)
            progress.step(f"Writing {out}")
            try:
                page = Report.from_json(str(model.report))
                make = {".html": page.html, ".md": page.markdown, ".json": page.json}
                text = make[kind]()
            # The report is the file's own, and could say anything.
            except (LookupError, TypeError, AttributeError, ValueError) as error:
                raise ModelFileError(
                    f"The report in {model_file} is not one that missratio wrote "
                    f"({type(error).__name__}: {error}). Fit the model again."
                ) from error
            with written_whole(out, force=force) as draft:
                draft.write_text(text, encoding="utf-8")
        if not quiet:
            say(f"Written: {out}")
