"""Make the picture on the page about reports: python docs/report_picture.py.

Needs Chromium, and runs the first example of docs/report.md.
"""

import doctest
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

DOCS = Path(__file__).parent
SIZE = "1100,2400"


def report():
    """The report of the page's first example."""
    text = (DOCS / "report.md").read_text(encoding="utf-8")
    code = re.search(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    names = {}
    for example in doctest.DocTestParser().get_examples(code.group(1)):
        exec(compile(example.source, "report.md", "single"), names)
    return names["report"]


def main():
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_text(report().html(), encoding="utf-8")
        command = [
            chromium, "--headless", "--no-sandbox", "--hide-scrollbars",
            f"--window-size={SIZE}", "--virtual-time-budget=10000",
            f"--screenshot={DOCS / '_static' / 'report.png'}", page.as_uri(),
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    main()
