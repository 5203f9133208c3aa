"""Which columns are missing together, by class."""

from __future__ import annotations

from typing import Any

import numpy as np

from missratio._base.blocks import any_by_row
from missratio._base.typing import BoolArray
from missratio.app.report._columns import Names
from missratio.app.report._rows import LabelledRows
from missratio.missingness import missingness_patterns

MOST_LISTED = 20
# Little's test takes time and memory with the square of the columns.
MOST_TESTED = 60


def patterns(
    rows: LabelledRows, few: LabelledRows, names: Names
) -> dict[str, Any] | None:
    """Rows by what is missing of them, the most frequent patterns first.

    Parameters
    ----------
    rows : LabelledRows
        Without what was looked up.
    few : LabelledRows
        Fewer of them, to test on.

    Returns
    -------
    dict, or None
        `columns`: those of which a value is missing. `listed`: for each pattern the
        columns missing, and rows of each class. `left_out`: how many patterns are not
        listed. `test`: what Little's test says of each class. None where nothing is
        missing.
    """
    missing = names.missing(rows.X)
    lossy: BoolArray = any_by_row(missing)
    if not lossy.any():
        return None
    found, code = np.unique(missing[lossy], axis=0, return_inverse=True)
    counts = np.stack(
        [
            np.bincount(code[rows.y[lossy] == label], minlength=len(found))
            for label in rows.labels
        ]
    )
    found = np.concatenate([np.zeros((1, found.shape[1]), dtype=bool), found])
    whole = [[np.count_nonzero(~lossy[rows.index(k)])] for k in rows.labels]
    counts = np.concatenate([whole, counts], axis=1)
    order = np.argsort(-counts.sum(axis=0), kind="stable")
    totals = [max(1, len(rows.index(label))) for label in rows.labels]
    listed = [
        {
            "missing": [names.columns[j] for j in np.flatnonzero(found[place])],
            "rows": counts[:, place],
            "share": counts[:, place] / totals,
        }
        for place in order[:MOST_LISTED].tolist()
    ]
    some = np.flatnonzero(missing.any(axis=0))
    return {
        "columns": [names.columns[j] for j in some],
        "listed": listed,
        "n_patterns": len(order),
        "left_out": max(0, len(order) - MOST_LISTED),
        "test": [_tested(few, label) for label in rows.labels],
    }


def _tested(rows: LabelledRows, label: Any) -> str | None:
    """What Little's test says of a class; None where it can't be made."""
    X = rows.rows(label)
    if X.shape[1] > MOST_TESTED or rows.complete[rows.index(label)].all():
        return None
    try:
        return missingness_patterns(X).mcar_test.sentence
    except (TypeError, ValueError, np.linalg.LinAlgError):
        return None
