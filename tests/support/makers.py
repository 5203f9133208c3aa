"""Tables that tests share: drawn, written to files, and read back."""

import numpy as np


def two_normals(n=200, d=2, seed=0, shift=0.3, n1=None):
    """Rows of N(0, I) as class 0 and of N(shift, I) as class 1, shuffled."""
    rng = np.random.default_rng(seed)
    n1 = n if n1 is None else n1
    X = np.concatenate([rng.normal(size=(n, d)), rng.normal(shift, 1, (n1, d))])
    y = np.repeat([0, 1], [n, n1])
    order = rng.permutation(n + n1)
    return X[order], y[order]


def lossy(X, share=0.2, seed=0):
    """A copy of X of which a share of the entries is NaN."""
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def write_table(path, content):
    """A file of text or bytes, of columns (.parquet) or of lines of cells (.xlsx)."""
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(content), path)
    elif path.suffix == ".xlsx" and not isinstance(content, bytes):
        import xlsxwriter

        with xlsxwriter.Workbook(path) as book:
            sheet = book.add_worksheet("data")
            for number, line in enumerate(content):
                sheet.write_row(number, 0, line)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read_table(path, encoding=None, sheet=None, **wanted):
    """A file's labelled table, whose labels are in the column y."""
    from missratio._files import open_table
    from missratio.app.tables.labelled import read_labelled

    source = open_table(path, encoding=encoding, sheet=sheet)
    return read_labelled(source, "y", **wanted)
