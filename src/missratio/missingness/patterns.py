"""What is missing where: patterns of missingness, and Little's test of MCAR."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy.stats import chi2

from missratio._base.reading import as_numeric_array, float_blocks, names_or_numbers
from missratio._base.typing import BoolArray, FloatArray, IntArray

# Little's test takes this many of the most frequent patterns at most.
MOST_PATTERNS = 1000
MAX_STEPS = 200
TOLERANCE = 1e-5
RIDGE = 1e-6
# Standard deviations beyond which values count as being there.
FARTHEST = 2.5
NO_TEST = (
    "No test can rule out that values go missing because of what they are (MNAR): the "
    "table doesn't show what is missing."
)


@dataclass(frozen=True, slots=True)
class LittleTest:
    """Little's (1988) test that values are missing completely at random (MCAR).

    Under MCAR the means of the observed columns are the same in every pattern. The
    statistic Σ n_p (ȳ_p − μ_p)ᵀ Σ_p⁻¹ (ȳ_p − μ_p), with μ and Σ by maximum likelihood
    of a normal law, is then χ² in the limit. Values beyond 2.5 standard deviations are
    moved there, so that a long tail doesn't upset it.

    Parameters
    ----------
    statistic : float
    degrees : int
        Degrees of freedom.
    p_value : float
    effect : float
        √(max(statistic − degrees, 0) / rows): how far a pattern's means lie from those
        of all rows, in standard deviations, root mean square. Unlike the p-value it
        doesn't depend on the number of rows.
    rows : int
        Rows of the patterns that took part.
    """

    statistic: float
    degrees: int
    p_value: float
    effect: float
    rows: int

    @property
    def sentence(self) -> str:
        """What the test says, and what it can't say."""
        if self.degrees == 0:
            return f"One pattern only: nothing to compare. {NO_TEST}"
        found = (
            f"Means differ between patterns by {self.effect:.2f} standard deviations "
            f"(Little's test of missing completely at random: p = {self.p_value:.2g})."
        )
        return f"{found} {NO_TEST}"


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
    sums : ndarray of shape (n_patterns, n_columns)
        Of the standardised columns; 0 where missing.
    products : ndarray of shape (n_kept, n_columns, n_columns)
        Sums of products of standardised columns, of the first patterns.
    """

    feature_names: tuple[str, ...]
    missing: BoolArray
    counts: IntArray
    sums: FloatArray
    products: FloatArray

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return int(self.counts.sum())

    @property
    def shares(self) -> FloatArray:
        """The share of the rows that each pattern has."""
        return np.asarray(self.counts / self.n_rows)

    @property
    def missing_share(self) -> FloatArray:
        """How much of each column is missing."""
        return np.asarray(self.shares @ self.missing)

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

    @cached_property
    def mcar_test(self) -> LittleTest:
        """Little's test, of the most frequent patterns."""
        kept = len(self.products)
        varies = np.einsum("pii->i", self.products) > 0.0
        seen = (~self.missing[:kept] & varies).astype(np.float64)
        counts = self.counts[:kept].astype(np.float64)
        rows = int(counts[seen.any(axis=1)].sum())
        mean, covariance = _normal_law(self, seen, counts)
        statistic = 0.0
        for known, count, total in zip(seen > 0.0, counts, self.sums, strict=False):
            if known.any():
                off = total[known] / count - mean[known]
                solved = np.linalg.solve(covariance[np.ix_(known, known)], off)
                statistic += count * float(off @ solved)
        degrees = int(seen.sum() - (seen.sum(axis=0) > 0.0).sum())
        p_value = float(chi2.sf(statistic, degrees)) if degrees else 1.0
        effect = float(np.sqrt(max(statistic - degrees, 0.0) / max(rows, 1)))
        return LittleTest(float(statistic), degrees, p_value, effect, rows)


def missingness_patterns(X: Any) -> MissingnessPatterns:
    """Count which columns are missing together.

    What is kept grows with the number of patterns, not of rows.

    Parameters
    ----------
    X : array-like or dataframe of shape (n, d)
        NaN where missing.

    Returns
    -------
    MissingnessPatterns

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
    table = as_numeric_array(X)
    width = table.shape[1]
    names = names_or_numbers(X, width)
    # 1. Which rows have the same mask, most frequent first.
    masks = np.concatenate(
        [np.packbits(np.isnan(block), axis=1) for _, block in float_blocks(table, X)]
    )
    words = np.ascontiguousarray(masks).view(f"V{masks.shape[1]}").ravel()
    _, first, codes, counts = np.unique(
        words, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((first, -counts))
    places = np.empty(len(order), dtype=np.intp)
    places[order] = np.arange(len(order))
    codes = places[codes]
    missing = np.isnan(table[first[order]].astype(np.float64, copy=False))
    # 2. Sums of each pattern.
    centre, scale = _scale(table)
    sums = np.zeros((len(order), width))
    kept = min(len(order), MOST_PATTERNS)
    products = np.zeros((kept, width, width))
    by_code = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(counts[order])])
    for pattern in range(len(order)):
        rows = by_code[starts[pattern] : starts[pattern + 1]]
        block = (table[rows].astype(np.float64, copy=False) - centre) / scale
        # Under MCAR any function of a column has equal means; one without long tails
        # has means that are close to normal.
        block = np.clip(block, -FARTHEST, FARTHEST)
        block[:, missing[pattern]] = 0.0
        sums[pattern] = block.sum(axis=0)
        if pattern < kept:
            products[pattern] = block.T @ block
    return MissingnessPatterns(names, missing, counts[order], sums, products)


def _scale(table: Any) -> tuple[FloatArray, FloatArray]:
    """Means and standard deviations of what is observed; 0 and 1 where nothing is."""
    count, total, squares = np.zeros((3, table.shape[1]))
    for _, block in float_blocks(table, table):
        known = ~np.isnan(block)
        count += known.sum(axis=0)
        total += np.where(known, block, 0.0).sum(axis=0)
    centre = total / np.maximum(count, 1.0)
    for _, block in float_blocks(table, table):
        squares += np.nansum((block - centre) ** 2, axis=0)
    scale = np.sqrt(squares / np.maximum(count, 1.0))
    return centre, np.where(scale > 0.0, scale, 1.0)


def _normal_law(
    patterns: MissingnessPatterns, seen: FloatArray, counts: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance by maximum likelihood of a normal law (EM)."""
    width = seen.shape[1]
    mean, covariance = np.zeros(width), np.eye(width)
    sums, products = patterns.sums[: len(seen)], patterns.products
    ridge = RIDGE * np.eye(width)
    for _ in range(MAX_STEPS):
        total, square = np.zeros(width), np.zeros((width, width))
        for own, count, first, second in zip(
            seen > 0.0, counts, sums, products, strict=True
        ):
            # Expected sums of a pattern's rows, given what is observed of them.
            slope = np.zeros((width, width))
            slope[:, own] = np.linalg.solve(
                covariance[np.ix_(own, own)] + ridge[np.ix_(own, own)],
                covariance[own],
            ).T
            constant = mean - slope @ mean
            expected = slope @ first
            cross = np.outer(expected, constant)
            total += expected + count * constant
            square += slope @ second @ slope.T + cross + cross.T
            square += count * (np.outer(constant, constant) + covariance)
            square -= count * slope @ covariance
        new_mean = total / counts.sum()
        new = square / counts.sum() - np.outer(new_mean, new_mean) + ridge
        change = max(np.abs(new - covariance).max(), np.abs(new_mean - mean).max())
        mean, covariance = new_mean, (new + new.T) / 2.0
        if change < TOLERANCE:
            break
    return mean, covariance
