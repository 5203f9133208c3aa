"""Tables, by a fuzzer that follows which branches of the readers an input reaches.

    python tests/fuzz/atheris_tables.py -runs=100000 -rss_limit_mb=1000

Needs atheris, which is not among the packages for development: it has no builds for
every system. The first byte chooses the kind of file; the rest is the file.
"""

import sys
import tempfile
from pathlib import Path

import atheris

sys.path.append(str(Path(__file__).parents[1] / "support"))
with atheris.instrument_imports(include=["missratio._files", "missratio.app.tables"]):
    import test_fuzz as seeds

    from missratio._files import open_table
    from missratio.app.tables.labelled import Wanted, read_labelled
    from missratio.exceptions import TableError

KINDS = (".csv", ".tsv", ".csv.gz", ".parquet")
FOLDER = Path(tempfile.mkdtemp())


def one_input(data):
    """Read a table, or refuse it: any other error is a find."""
    if not data:
        return
    path = FOLDER / f"t{KINDS[data[0] % len(KINDS)]}"
    path.unlink(missing_ok=True)
    path.write_bytes(data[1:])
    try:
        read_labelled(open_table(path), Wanted("y"))
    except TableError:
        return


def main():
    corpus = Path(tempfile.mkdtemp())
    tables = [b"\0" + table for table in seeds.CSV]
    tables.append(b"\3" + seeds.table_bytes(".parquet"))
    for place, table in enumerate(tables):
        (corpus / str(place)).write_bytes(table)
    atheris.Setup([*sys.argv, str(corpus)], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
