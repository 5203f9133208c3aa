"""Models of φ: steps, functions of the user's, and columns that go missing together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit

from missratio._base.blocks import rows_with_nan
from missratio._base.hints import listed
from missratio._base.reading import as_coded_array
from missratio._base.storable import storable
from missratio._base.typing import FloatArray
from missratio.missingness import contract
from missratio.missingness.contract import Missingness, keep, read_only_parameter


@storable()
@dataclass(frozen=True, eq=False, repr=False)
class StepMissingness(Missingness):
    """φ(x) = probability where direction·x > threshold, and 0 elsewhere.

    Rowwise, the row is missing as a whole. With ``rowwise=False`` entry j is missing
    with φ_j(x) = probability_j where direction_j x_j > threshold_j; scalars hold for
    every feature.

    Parameters
    ----------
    direction : array-like of shape (d,), or a scalar
        The direction along which values are missing; for a rowwise model a scalar means
        d = 1.
    threshold, probability : float, or with ``rowwise=False`` array-like of shape (d,)
        Where the step is and how high it is, 0 ≤ probability < 1.
    rowwise : bool, default=True
        Whether whole rows are missing, rather than single entries.

    Examples
    --------
    >>> from missratio.missingness import StepMissingness
    >>> phi = StepMissingness(direction=[0.0, 1.0], threshold=2.0, probability=0.9)
    >>> phi.missing_probability([[5.0, 1.0], [5.0, 3.0]])
    array([0. , 0.9])
    >>> phi = StepMissingness([1, -1], 0, 0.8, rowwise=False)
    >>> phi.missing_probability([[1.0, 1.0]])
    array([[0.8, 0. ]])
    """

    _by_column: ClassVar[tuple[str, ...]] = ("direction", "threshold", "probability")

    direction: ArrayLike
    threshold: ArrayLike
    probability: ArrayLike
    rowwise: bool = True

    def __post_init__(self) -> None:
        one = self.rowwise
        direction = read_only_parameter(self.direction, "direction", finite=True)
        direction = direction.reshape(-1) if one else direction
        threshold = read_only_parameter(
            self.threshold, "threshold", single=one, finite=True
        )
        probability = read_only_parameter(
            self.probability, "probability", single=one, below_one=True
        )
        keep(self, direction=direction, threshold=threshold, probability=probability)
        object.__setattr__(self, "_maxima", probability)

    @property
    def maximum(self) -> float:
        """The supremum ‖φ‖∞: the largest probability."""
        return float(np.max(self.probability))

    def log_odds(self, X: Any, xp: Any = np) -> Any:
        """The step's log-odds beyond the threshold, and -inf elsewhere."""
        parameters = self.direction, self.threshold, logit(self.probability)
        if xp is not np:
            parameters = tuple(contract.as_array(x, X, xp) for x in parameters)
        direction, threshold, step = parameters
        with np.errstate(over="ignore", invalid="ignore"):
            beyond = (X @ direction if self.rowwise else X * direction) > threshold
        return xp.where(beyond, step, -np.inf)

    def evaluate(self, X: FloatArray) -> FloatArray:
        """The probability beyond the step, and 0 elsewhere."""
        return np.where(np.isneginf(self.log_odds(X)), 0.0, self.probability)


@dataclass(frozen=True, eq=False, repr=False)
class FunctionMissingness(Missingness):
    """φ(x) = function(x), anything callable with values in [0, 1).

    Parameters
    ----------
    function : callable
        From a read-only array of shape (n, d) to shape (n,) for whole rows, or to (n,
        d) per feature. The value at a row must depend on that row only (it may be
        called on blocks of rows), and per feature the value at entry j on that entry
        only. Called on complete rows for a rowwise model; per feature it sees NaN, and
        what it returns there is not used. To pickle the model, use a function that is
        defined in a module.
    rowwise : bool, default=True
        Whether whole rows are missing, rather than single entries.
    maximum : float, or per feature array-like of shape (d,), optional
        The supremum ‖φ‖∞, 0 ≤ maximum < 1, if it is known; a value above it is an
        error. Per feature give one for each column, 0 for those that lose nothing: the
        largest weight of a row is a product over columns. The attribute is the largest.

    Examples
    --------
    >>> import numpy as np
    >>> from missratio.missingness import FunctionMissingness
    >>> phi = FunctionMissingness(lambda X: 0.8 * (X[:, 0] < 0), maximum=0.8)
    >>> phi.missing_probability([[-1.0, 3.0], [1.0, 3.0], [np.nan, np.nan]])
    array([0.8, 0. , nan])
    """

    function: Callable[[FloatArray], ArrayLike]
    rowwise: bool = True
    maximum: Any = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"function must be callable: got {self.function!r}.")
        if self.maximum is None:
            return
        largest = read_only_parameter(self.maximum, "maximum", single=self.rowwise)
        if not ((largest >= 0) & (largest < 1)).all():
            raise ValueError(
                f"maximum must lie in [0, 1): got {self.maximum}. Leave it None where "
                "the supremum is not known or is 1."
            )
        keep(self, _maxima=largest)
        object.__setattr__(self, "maximum", float(largest.max()))

    def evaluate(self, X: FloatArray) -> ArrayLike:
        """What the function says."""
        with np.errstate(invalid="ignore"):
            return self.function(X)


@storable()
@dataclass(frozen=True)
class Block:
    """Columns that are there or missing as a whole, and why.

    Parameters
    ----------
    columns : tuple of int
        Their places in the table.
    inputs : tuple of int
        What φ is a function of: those of them that say something, as of the indicators
        of all levels of a category the last one says nothing more; and further columns,
        which must be there wherever these are.
    model : Missingness
        Rowwise, for the inputs.
    levels : tuple of float
        Of a category that is one column of codes, those whose indicators the model is
        for.
    """

    columns: tuple[int, ...]
    inputs: tuple[int, ...]
    model: Missingness
    levels: tuple[float, ...] = ()

    def seen(self, X: FloatArray) -> FloatArray:
        """What the model is a function of, by rows of a table: NaN where it isn't all.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_columns)
        """
        rows = X[:, list(self.inputs)].astype(np.float64)
        # Further columns are there where these are missing.
        rows[rows_with_nan(rows)] = np.nan
        if not self.levels:
            return rows
        return np.where(np.isnan(rows), np.nan, rows == self.levels)


@storable()
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

    def __post_init__(self) -> None:
        groups = np.arange(self.n_columns)
        for block in self.blocks:
            groups[list(block.columns)] = min(block.columns)
        learned = any(model.learned for model in self._models)
        known = {"n_features": self.n_columns, "feature_names": self.base.feature_names}
        vars(self).update(groups=groups, learned=learned, **known)

    @property
    def _models(self) -> list[Missingness]:
        return [self.base, *(block.model for block in self.blocks)]

    @property
    def maximum(self) -> float | None:
        """The largest of the parts'; None where one is not known."""
        maxima = [1.0 if m.maximum is None else m.maximum for m in self._models]
        return max(maxima) if max(maxima) < 1.0 else None

    @property
    def checks(self) -> tuple[Any, ...]:
        """What the data says against the parts, where they were learned."""
        return tuple(c for model in self._models for c in getattr(model, "checks", ()))

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
            Bounds of φ for each row or entry.
        """
        table = as_coded_array(X)
        self.bound(None, table.shape[1])
        # One part for each block, and as many for the rest as it has lossy columns.
        n_base = sum(known is not None for known in getattr(self.base, "evidence", ()))
        part = None if delta is None else delta / max(n_base + len(self.blocks), 1)
        rest = None if part is None else max(part * n_base, part / 2.0)
        lower, upper = map(np.array, self.base.probability_band(table, rest))
        for block in self.blocks:
            columns = list(block.columns)
            low, high = block.model.probability_band(block.seen(table), part)
            lower[:, columns], upper[:, columns] = low[:, None], high[:, None]
        return lower, upper

    def evaluate(self, X: FloatArray) -> ArrayLike:
        """That of each column, or of the block it is in."""
        probability = np.array(self.base.evaluate(X), dtype=np.float64)
        for block in self.blocks:
            rows = block.seen(X)
            known = ~rows_with_nan(rows)
            unexplained = ~known & ~np.isnan(X[:, block.columns[0]])
            if unexplained.any():
                further = sorted(set(block.inputs) - set(block.columns))
                raise ValueError(
                    f"φ of column {block.columns[0]} depends on column(s) "
                    f"{listed(further)} too, which must be observed wherever it is, "
                    f"and {unexplained.sum()} rows miss one. Leave these rows out, or "
                    "model φ without these columns."
                )
            together = np.full(len(X), np.nan)
            if known.any():
                together[known] = block.model.evaluate(rows[known])
            probability[:, list(block.columns)] = together[:, None]
        return probability
