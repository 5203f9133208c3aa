"""Data that tests share. ``from data import …`` reaches it from every test file.

Drawn tables:

- `two_normals`: two shuffled classes of normal rows; also a fixture of that name.
- `equicorrelated`: normal rows whose columns all have one correlation.
- `stacked`: samples of classes 0, 1, … as one table with its labels.

What is lost of a table, and looked up again:

- `lossy`: some entries at random.
- `corrupted`: what the models of φ of some classes lose.
- `looked_up`: some of the values that a table lost, NaN elsewhere.
- `look_up`: a table with some of what it lost, and how probable it was to be drawn.
- `answered`: a plan with what was looked up.
- `lost_and_looked_up`: a normal table that lost values by a logistic φ, and both.
- `separated`: a column of which no value that was looked up is below an observed one.

Files: `write_table` writes one of any kind, `read_table` reads its labelled table;
`Harm` writes one if it is unpickled.
"""

import numpy as np

import missratio as mr


def two_normals(n=200, d=2, seed=0, shift=0.3, n1=None):
    """Rows of N(0, I) as class 0 and of N(shift, I) as class 1, shuffled."""
    rng = np.random.default_rng(seed)
    n1 = n if n1 is None else n1
    X, y = stacked(rng.normal(size=(n, d)), rng.normal(shift, 1, (n1, d)))
    order = rng.permutation(n + n1)
    return X[order], y[order]


def equicorrelated(rng, n, d, rho=0.5):
    """Normal rows of which any two columns have the correlation ρ."""
    common = rng.normal(size=(n, 1))
    return np.sqrt(rho) * common + np.sqrt(1 - rho) * rng.normal(size=(n, d))


def stacked(*samples):
    """The rows of classes 0, 1, … one after the other, and their labels."""
    sizes = [len(rows) for rows in samples]
    return np.concatenate(samples), np.repeat(np.arange(len(samples)), sizes)


def lossy(X, share=0.2, seed=0):
    """A copy of X of which a share of the entries is NaN."""
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def corrupted(X, y, models, seed=0):
    """A copy of X in which classes lose values by their models of φ, one after another.

    `models` maps labels to models; `seed` may be a generator.
    """
    X, rng = X.copy(), np.random.default_rng(seed)
    for label, phi in models.items():
        X[y == label] = mr.corrupt(X[y == label], phi, rng)
    return X


def looked_up(X, Z, m, rng, rowwise=False):
    """At most m lost values of each column of X, or m lost rows, as Z has them."""
    revealed = np.full_like(X, np.nan)
    for j in range(1 if rowwise else X.shape[1]):
        columns = slice(None) if rowwise else j
        rows = rng.permutation(np.flatnonzero(np.isnan(X[:, j])))[:m]
        revealed[rows, columns] = Z[rows, columns]
    return revealed


def look_up(Z, lost, count, seed):
    """Z less what it lost, but for a number of entries of each column, drawn at random.

    And the probability of each entry to be there; `seed` may be a generator.
    """
    rng = np.random.default_rng(seed)
    X, inclusion = np.where(lost, np.nan, Z), np.where(lost, 0.0, 1.0)
    for j in np.flatnonzero(lost.any(axis=0)):
        pool = np.flatnonzero(lost[:, j])
        found = rng.choice(pool, min(count, len(pool)), replace=False)
        X[found, j], inclusion[found, j] = Z[found, j], len(found) / len(pool)
    return X, inclusion


def lost_and_looked_up(n=600, d=3, m=40, seed=0, rowwise=False, slopes=1.0):
    """A table that lost values, m of each column (or m rows) looked up, and the whole.

    Log-odds are −0.5 + slopes·z.
    """
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d))
    slopes = np.broadcast_to(slopes, d) if rowwise else slopes
    X = mr.corrupt(Z, mr.LogisticMissingness(-0.5, slopes, rowwise), rng)
    return X, looked_up(X, Z, m, rng, rowwise), Z


def separated():
    """A column that lost its highest values, and four of them that were looked up."""
    X = np.concatenate([np.linspace(-2.0, 1.0, 80), np.full(20, np.nan)])[:, None]
    revealed = np.full_like(X, np.nan)
    revealed[80:84, 0] = [1.5, 1.7, 2.0, 2.4]
    return X, revealed


def answered(plan, full, upto=None):
    """The table of a plan, filled in from the top with what a full table has."""
    frame = plan.to_frame()
    frame["value"] = full[plan.rows, plan.columns].astype(object)
    if upto is not None:
        frame.loc[upto:, "value"] = None
    return frame


def write_table(path, content):
    """A file of text or bytes, of columns (.parquet) or of lines of cells (.xlsx).

    A workbook of several sheets maps their names to lines.
    """
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(content), path)
    elif path.suffix == ".xlsx" and not isinstance(content, bytes):
        import xlsxwriter

        sheets = content if isinstance(content, dict) else {"data": content}
        with xlsxwriter.Workbook(path) as book:
            for name, lines in sheets.items():
                sheet = book.add_worksheet(name)
                for number, line in enumerate(lines):
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


class Harm:
    """What would write a file if it were unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (exec, (f"open({self.path!r}, 'w').close()",))
