"""Columns that go missing together, as the indicators of one category do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from missratio._base.blocks import rows_with_nan
from missratio._base.reading import as_numeric_array
from missratio._base.typing import FloatArray, IntArray
from missratio.missingness.base import Missingness


@dataclass(frozen=True)
class Block:
    """Columns that are there or missing as a whole, and why.

    Parameters
    ----------
    columns : tuple of int
        Their places in the table.
    inputs : tuple of int
        Those of them that φ is a function of: of the indicators of all levels of a
        category the last one says nothing more.
    model : Missingness
        Rowwise, for the inputs.
    """

    columns: tuple[int, ...]
    inputs: tuple[int, ...]
    model: Missingness


@dataclass(frozen=True, eq=False, repr=False)
class BlockMissingness(Missingness):
    """Single entries go missing, and blocks of columns as if they were one entry.

    A category that was encoded by indicators is one column: its indicators go missing
    together, with one φ over its levels. Given the row, blocks and single entries go
    missing independently. An entry of a block has the weight of the block, and a
    complete row counts this weight once.

    Parameters
    ----------
    base : Missingness
        Per feature, for all columns of the table; what it says of columns in blocks is
        not looked at.
    blocks : tuple of Block
    n_columns : int
        Of the table.

    Examples
    --------
    A category with two indicators, which is lost more often at its second level, beside
    a number that is never lost:

    >>> import numpy as np
    >>> from missratio import LogisticMissingness
    >>> from missratio.missingness import Block, BlockMissingness
    >>> ward = LogisticMissingness(-2.0, [0.0, 1.0], rowwise=True)
    >>> phi = BlockMissingness(
    ...     LogisticMissingness(-np.inf, [0.0, 0.0, 0.0]),
    ...     (Block((1, 2), (1, 2), ward),),
    ...     3,
    ... )
    >>> phi.missing_probability([[5.0, 1.0, 0.0], [5.0, 0.0, 1.0]]).round(2)
    array([[0.  , 0.12, 0.12],
           [0.  , 0.27, 0.27]])
    """

    base: Missingness
    blocks: tuple[Block, ...]
    n_columns: int
    rowwise: ClassVar[bool] = False

    @property
    def maximum(self) -> float | None:
        """The largest of the parts'; None where one is not known."""
        known = [self.base.maximum, *(block.model.maximum for block in self.blocks)]
        largest = [each for each in known if each is not None]
        return max(largest) if len(largest) == len(known) else None

    @property
    def n_features(self) -> int:
        """The number of columns that the model is for."""
        return self.n_columns

    @property
    def learned(self) -> bool:
        """Whether any part was estimated."""
        return self.base.learned or any(block.model.learned for block in self.blocks)

    @property
    def checks(self) -> tuple[Any, ...]:
        """What the data says against the parts, where they were learned."""
        models = [self.base, *(block.model for block in self.blocks)]
        return tuple(c for model in models for c in getattr(model, "checks", ()))

    @property
    def groups(self) -> IntArray:
        """Columns with equal numbers go missing together."""
        groups = np.arange(self.n_columns)
        for block in self.blocks:
            groups[list(block.columns)] = min(block.columns)
        return groups

    def column_maxima(self, n_columns: int) -> FloatArray:
        """The supremum of φ for each column; 1 where it is not known.

        Parameters
        ----------
        n_columns : int
        """
        largest = self.base.column_maxima(n_columns).copy()
        for block in self.blocks:
            largest[list(block.columns)] = block.model.column_maxima(len(block.inputs))
        return largest

    def probability_band(
        self, X: Any, delta: float | None = 0.05
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds that hold φ everywhere with probability 1 − δ, divided by column.

        Parameters
        ----------
        X : array-like or dataframe of shape (n, d)
        delta : float or None, default=0.05

        Returns
        -------
        lower, upper : ndarray of shape (n, d)
        """
        table = as_numeric_array(X)
        self.check_width(table.shape[1])
        # One part for each block, and as many for the rest as it has lossy columns.
        evidence = getattr(self.base, "evidence", ())
        n_base = sum(each is not None for each in evidence)
        each = None if delta is None else delta / max(n_base + len(self.blocks), 1)
        rest = None if each is None else max(each * n_base, each / 2.0)
        lower, upper = (np.array(e) for e in self.base.probability_band(table, rest))
        for block in self.blocks:
            columns = list(block.columns)
            rows = table[:, list(block.inputs)]
            low, high = block.model.probability_band(rows, each)
            lower[:, columns], upper[:, columns] = low[:, None], high[:, None]
        return lower, upper

    def _evaluate(self, X: FloatArray) -> ArrayLike:
        probability = np.array(self.base._evaluate(X), dtype=np.float64)
        for block in self.blocks:
            rows = X[:, list(block.inputs)]
            known = ~rows_with_nan(rows)
            own = np.full(len(X), np.nan)
            if known.any():
                own[known] = block.model._evaluate(rows[known])
            probability[:, list(block.columns)] = own[:, None]
        return probability
