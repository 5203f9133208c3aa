"""The command line as tests use it: commands that run here, and their CSV files."""

import csv
import shlex

from threadpoolctl import threadpool_limits
from typer.testing import CliRunner

from missratio.app.cli import app


def run(*words, status=0):
    """Run a command, as printed: a text is split as a shell does, a path is a word."""
    split = []
    for word in words:
        split += shlex.split(word) if isinstance(word, str) else [str(word)]
    split = split[split[:1] == ["missratio"] :]
    # Boosted trees spin where cores are shared with other tests.
    with threadpool_limits(1):
        result = CliRunner().invoke(app, split)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == status, result.output
    return result


def write_csv(path, header, rows):
    """A CSV file, blank where a number is NaN."""
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(header.split(","))
        writer.writerows(["" if cell != cell else cell for cell in row] for row in rows)
    return path


def read_csv(path):
    """The rows of a CSV file, by the names of its columns."""
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def fill_in(path, value_of):
    """Fill in a plan by the value of each of its lines."""
    lines = read_csv(path)
    for line in lines:
        line["value"] = value_of(line)
    write_csv(path, ",".join(lines[0]), [line.values() for line in lines])
    return lines
