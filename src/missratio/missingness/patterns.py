"""What is missing where: which columns go missing together, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from missratio._base.reading import names_or_numbers, read_floats
from missratio._base.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class MissingnessPatterns:
    """Which columns are missing together, and in how many rows.

    Parameters
    ----------
    feature_names : tuple of str
    missing : ndarray of bool of shape (n_patterns, n_columns)
        The most frequent pattern comes first.
    counts : ndarray of int of shape (n_patterns,)
        Rows of each.
    """

    feature_names: tuple[str, ...]
    missing: BoolArray
    counts: IntArray

    @property
    def shares(self) -> FloatArray:
        """The share of the rows that each pattern has."""
        return np.asarray(self.counts / self.counts.sum())

    def to_frame(self, backend: Any = "pandas") -> Any:
        """The patterns as a dataframe, a line for each.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}

        Returns
        -------
        dataframe
            `rows`, `share`, `n_missing`, and `missing`: the columns' names.
        """
        names = np.array(self.feature_names, dtype=object)
        columns = {
            "rows": self.counts.tolist(),
            "share": self.shares.tolist(),
            "n_missing": self.missing.sum(axis=1).tolist(),
            "missing": [", ".join(names[lost]) for lost in self.missing],
        }
        return nw.from_dict(columns, backend=backend).to_native()


def missingness_patterns(X: Any) -> MissingnessPatterns:
    """Count which columns are missing together.

    Parameters
    ----------
    X : array-like or dataframe of shape (n, d)
        NaN where missing.

    Returns
    -------
    MissingnessPatterns
        Which columns are missing together, and in how many rows.

    Examples
    --------
    >>> import numpy as np
    >>> from missratio.missingness import missingness_patterns
    >>> X = [[1.0, np.nan], [2.0, 3.0], [np.nan, np.nan], [0.0, np.nan]]
    >>> missingness_patterns(X).to_frame()
       rows  share  n_missing missing
    0     2   0.50          1       1
    1     1   0.25          0
    2     1   0.25          2    0, 1
    """
    missing = np.isnan(read_floats(X, coded=True))
    names = names_or_numbers(X, missing.shape[1])
    # Masks as words of bits, which sort quickly; the most frequent first.
    masks = np.packbits(missing, axis=1)
    words = np.ascontiguousarray(masks).view(f"V{masks.shape[1]}").ravel()
    _, first, counts = np.unique(words, return_index=True, return_counts=True)
    order = np.lexsort((first, -counts))
    return MissingnessPatterns(names, missing[first[order]], counts[order])
