"""Pictures of report pages, made by the documentation's build.

Each is of what its own page shows: the first example of in_use.md, and the commands of
tutorial.md. Chromium takes them; where there is none, the NP-ROC alone is
drawn. `python docs/pictures.py` makes them without the rest, and README's picture, too.
"""

import doctest
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parent
FOLDER = DOCS / "generated" / "pictures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SIZE = (1100, 2400)
# What README shows of it.
SMALL = (1000, 860)


def of_example():
    """The report of the first example of in_use.md."""
    text = (DOCS / "in_use.md").read_text(encoding="utf-8")
    code = next(body for kind, body in BLOCK.findall(text) if kind == "python")
    names = {}
    for example in doctest.DocTestParser().get_examples(code):
        exec(compile(example.source, "in_use.md", "exec"), names)
    return names["report"]


def of_tutorial():
    """The report that the commands of tutorial.md lead to."""
    from missratio import load_model
    from missratio.app.report import Report

    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(DOCS / "tutorial", folder, dirs_exist_ok=True)
        for line in re.findall(r"^\$ (.*)$", text, re.MULTILINE):
            _perform(shlex.split(line), folder)
            if line.startswith("missratio report"):
                model = load_model(Path(folder) / shlex.split(line)[2])
                return Report.from_json(model.report)
    raise ValueError("tutorial.md has no command that writes a report.")


def _perform(words, folder):
    if words[0] == "head":
        return
    module = ["-m", "missratio"] if words[0] == "missratio" else []
    command = [sys.executable, *module, *words[1:]]
    # The page shows a refusal too: a command may fail, and then what follows does.
    subprocess.run(command, cwd=folder, capture_output=True, check=False)


def find_browser():
    """Where there is one; None where there is none."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def photograph(report, picture, browser, size=SIZE):
    """The page's upper part, as a browser shows it."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_text(report.html(), encoding="utf-8")
        command = [
            browser, "--headless", "--no-sandbox", "--disable-gpu",
            "--disable-dev-shm-usage", "--hide-scrollbars",
            f"--user-data-dir={folder}/profile", "--virtual-time-budget=10000",
            f"--window-size={size[0]},{size[1]}", f"--screenshot={picture}",
            page.as_uri(),
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, timeout=120)


def draw(report, picture):
    """The page's NP-ROC, without a browser."""
    import vl_convert

    from missratio.app.report import sections

    figure = sections.levels(report.data).chart
    # The page's colours, of which the first are those by day.
    colours = dict(reversed(re.findall(r"--(\w+):\s*(#\w+)", report.html())))
    text = re.sub(
        r"var\(--(\w+)\)", lambda m: colours[m.group(1)], json.dumps(figure.spec)
    )
    spec = json.loads(text) | {
        "width": SIZE[0] // 2, "height": figure.height, "background": "white",
    }  # fmt: skip
    picture.write_bytes(vl_convert.vegalite_to_png(spec, scale=2))


def make_pictures(app=None):
    """Make all of them; a build's `builder-inited` calls it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    browser = find_browser()
    for name, find in (("report", of_example), ("tutorial", of_tutorial)):
        report, picture = find(), FOLDER / f"{name}.png"
        if browser is None:
            draw(report, picture)
            continue
        try:
            photograph(report, picture, browser)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"{browser} took no picture, the NP-ROC is drawn: {error}")
            draw(report, picture)


if __name__ == "__main__":
    make_pictures()
    if browser := find_browser():
        photograph(of_tutorial(), DOCS / "_static" / "report.png", browser, SMALL)
