"""Why rows of a table can't be scored."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from missratio._base.blocks import any_by_row
from missratio._base.typing import BoolArray, FloatArray
from missratio.app.tables import Encoder, flat

TOO_RARE = "rows like it go missing too often for a certified score"
TOO_LARGE = "its values are too large for a score"
_LARGE = 1e150


def reasons(
    encoder: Encoder, table: Any, X: FloatArray, unscored: BoolArray
) -> NDArray[Any]:
    """A sentence for each row that can't be scored, None for the others.

    Parameters
    ----------
    encoder : Encoder
    table : PyArrow table or record batch
    X : ndarray of shape (n_rows, encoder.width)
        Its matrix.
    unscored : ndarray of bool of shape (n_rows,)
    """
    found = np.full(len(X), None, dtype=object)
    rows = np.flatnonzero(unscored)
    if not len(rows):
        return found
    parts: list[list[str]] = [[] for _ in rows]
    place = 0
    for column in encoder.columns:
        gaps = np.flatnonzero(np.isnan(X[rows, place])) if column.width else ()
        place += column.width
        if not len(gaps):
            continue
        texts = [None] * len(gaps)
        if column.levels is not None:
            cells = flat(table.column(column.name)).take(rows[gaps])
            texts = encoder.cells.texts(cells).to_pylist()
        for gap, text in zip(gaps, texts, strict=True):
            parts[gap].append(
                f"{column.name!r} is missing"
                if text is None
                else f"{text!r} of {column.name!r} is new"
            )
    # Of the rest the certificate's cap can be the reason, or a score that overflowed.
    large = any_by_row(np.abs(X[rows]) > _LARGE)
    found[rows] = [
        "; ".join(each) or (TOO_LARGE if is_large else TOO_RARE)
        for each, is_large in zip(parts, large.tolist(), strict=True)
    ]
    return found
