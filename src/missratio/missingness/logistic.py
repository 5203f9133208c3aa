"""Values that are missing with a probability logistic in the value itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from missratio._base.hints import did_you_mean, listed
from missratio._base.reading import read_floats
from missratio._base.storable import storable
from missratio._base.typing import FloatArray
from missratio.missingness import contract
from missratio.missingness.contract import Missingness, keep, read_only_parameter
from missratio.missingness.models import Block, BlockMissingness

_MAX_STEPS, _SMALLEST = 200, 1e-300


@storable()
@dataclass(frozen=True, eq=False, repr=False)
class LogisticMissingness(Missingness):
    """φ_j(z) = expit(intercept_j + coef_j z_j), entry by entry.

    With ``rowwise=True`` the row is missing as a whole, φ(x) = expit(intercept +
    coefᵀx).

    Parameters
    ----------
    intercept : array-like of shape (d,), or a scalar
        Log-odds of a missing entry at z = 0; -inf where nothing is missing. A scalar
        for a rowwise model.
    coef : array-like of shape (d,), or a scalar
        Slope of the log-odds. Per feature a scalar holds for every feature; for a
        rowwise model it means d = 1.
    rowwise : bool, default=False
        Whether whole rows are missing, rather than single entries.

    Examples
    --------
    >>> import numpy as np
    >>> from missratio.missingness import LogisticMissingness
    >>> LogisticMissingness(0.0, [1.0, -1.0]).missing_probability([[0.0, 2.0]]).round(3)
    array([[0.5  , 0.119]])
    >>> X = np.array([[-1.0, 0.0], [1.0, 5.0]])
    >>> phi = LogisticMissingness.from_proportion(X, coef=1.0, proportion=0.3)
    >>> phi.missing_probability(X).mean(axis=0).round(9)
    array([0.3, 0.3])
    """

    _remedy: ClassVar[str] = (
        "expit rounds to 1 where intercept + coef·x is above 36.7: what is always "
        "missing can't be weighted back. Check that coef is on the scale of X, or "
        "take a smaller coef or intercept."
    )
    _by_column: ClassVar[tuple[str, ...]] = ("intercept", "coef")

    intercept: ArrayLike
    coef: ArrayLike
    rowwise: bool = False

    def __post_init__(self) -> None:
        one = self.rowwise
        intercept = read_only_parameter(self.intercept, "intercept", single=one)
        coef = read_only_parameter(self.coef, "coef", finite=True)
        if np.isnan(intercept).any() or np.isposinf(intercept).any():
            raise ValueError(
                f"intercept must be finite, or -inf for no missing values: got "
                f"{intercept.tolist()}."
            )
        keep(self, intercept=intercept, coef=coef.reshape(-1) if one else coef)

    @classmethod
    def from_proportion(
        cls, X: Any, coef: ArrayLike, proportion: ArrayLike, rowwise: bool = False
    ) -> Self:
        """Choose intercepts so that the mean of φ over the rows of X is `proportion`.

        Parameters
        ----------
        X : array-like or dataframe of shape (n, d)
            The rows over which the mean is taken; NaN are left out.
        coef : array-like of shape (d,), or a scalar
            Slopes of the model.
        proportion : float, or per feature array-like of shape (d,)
            The mean of φ, 0 ≤ proportion < 1; reached to 1e-10. 0 gives the intercept
            -inf.
        rowwise : bool, default=False
            Whether whole rows are missing, rather than single entries.

        Returns
        -------
        LogisticMissingness
            With `coef` as given and one intercept, or one per feature.
        """
        target = read_only_parameter(
            proportion, "proportion", single=rowwise, below_one=True
        )
        model, table = cls(np.zeros(target.shape), coef, rowwise), read_floats(X)
        predictor = model.bound(None, table.shape[1]).log_odds(table)
        predictor = predictor[:, None] if rowwise else predictor
        if np.isinf(predictor).any():
            raise ValueError("coef·x overflows. Rescale coef to the scale of X.")
        empty = np.isnan(predictor).all(axis=0)
        if empty.any():
            where = "row" if rowwise else f"entry in column {int(np.argmax(empty))}"
            raise ValueError(f"The mean of φ needs an observed {where}: got none.")
        targets = np.broadcast_to(target, predictor.shape[1])
        intercept = np.full(targets.shape, -np.inf)
        for j in np.flatnonzero(targets):
            offset = predictor[~np.isnan(predictor[:, j]), j]
            mass = np.ones(len(offset))
            expected = targets[j] * len(offset)
            intercept[j] = balanced_intercepts(offset[None], mass, expected)[0]
        mean = np.nanmean(expit(predictor + intercept), axis=0)
        missed = ~(np.abs(mean - targets) <= 1e-10)
        if missed.any():
            column = int(np.argmax(missed))
            raise ValueError(
                f"No intercept gives the proportion {targets[column]}: got "
                f"{mean[column]} for feature {column}, where coef·x is too large for "
                "floating point. Rescale coef to the scale of X."
            )
        return cls(intercept[0] if rowwise else intercept, model.coef, rowwise)

    @classmethod
    def from_columns(
        cls,
        columns: Mapping[str, tuple[float, float]],
        names: Sequence[str] | None = None,
    ) -> Missingness:
        """A model of single entries by the names of their columns.

        Parameters
        ----------
        columns : mapping from str to (intercept, coef)
            Log-odds of a missing entry at 0, and their slope. Columns that aren't named
            have nothing missing. Where whether an entry is missing depends on further
            columns, which are always observed, `coef` is a mapping from columns to
            slopes.
        names : sequence of str, optional
            All columns of the table in their order, where that is an array. Without
            them the model is for dataframes: it finds its columns by their names.

        Returns
        -------
        Missingness
            For tables that have these columns.

        Examples
        --------
        >>> import pandas as pd
        >>> from missratio.missingness import LogisticMissingness
        >>> phi = LogisticMissingness.from_columns({"bp": (-13.5, 0.1)})
        >>> X = pd.DataFrame({"age": [40.0, 50.0], "bp": [125.0, 145.0]})
        >>> phi.missing_probability(X).round(2)
        array([[0.  , 0.27],
               [0.  , 0.73]])
        >>> phi = LogisticMissingness.from_columns(
        ...     {"bp": (-15.5, {"bp": 0.1, "age": 0.05})}
        ... )
        >>> phi.missing_probability(X).round(2)
        array([[0.  , 0.27],
               [0.  , 0.82]])
        """
        model = NamedMissingness(columns)
        return model if names is None else model.bound(names)

    @property
    def maximum(self) -> float | None:
        """The supremum ‖φ‖∞ where φ is constant; None where it tends to 1."""
        return float(np.max(expit(self.intercept))) if not np.any(self.coef) else None

    def column_maxima(self, n_columns: int) -> FloatArray:
        """φ where it is constant; 1 elsewhere, as it tends to 1."""
        intercept, coef = np.asarray(self.intercept), np.asarray(self.coef)
        if self.rowwise:
            intercept, coef = intercept.reshape(1), np.abs(coef).max(keepdims=True)
        # Where a model was learned, only what never goes missing is known for certain.
        constant = np.isneginf(intercept) if self.learned else coef == 0.0
        largest = np.where(constant & (coef == 0.0), expit(intercept), 1.0)
        return np.broadcast_to(largest, (1 if self.rowwise else n_columns,))

    def log_odds(self, X: Any, xp: Any = np) -> Any:
        """Intercept + coef·x, of shape (n,) for whole rows and (n, d) for entries."""
        coef, intercept = np.asarray(self.coef), np.asarray(self.intercept)
        if xp is not np:
            coef = contract.as_array(coef, X, xp)
            intercept = contract.as_array(intercept, X, xp)
        with np.errstate(over="ignore", invalid="ignore"):
            log_odds = X @ coef if self.rowwise else X * coef
            log_odds += intercept
        return log_odds

    def evaluate(self, X: FloatArray) -> FloatArray:
        """1 / (1 + exp(−log-odds)), of each row or entry."""
        log_odds = self.log_odds(X)
        return np.asarray(expit(log_odds, out=log_odds))

    def block_weights(
        self, block: FloatArray, first_row: int = 0, source: Any = None
    ) -> FloatArray:
        """1/(1 − φ) = 1 + exp(log-odds): the difference is off by 4.5 % at 36."""
        if self.rowwise:
            contract.check_no_partial_row(block, first_row)
        weights: FloatArray = self.log_odds(block)
        highest = np.fmax.reduce(weights, axis=None, initial=-np.inf)
        # From log-odds of 36.7 on expit is 1.
        if not highest < 36.7:
            return super().block_weights(block, first_row, source)
        np.exp(weights, out=weights)
        weights += 1.0
        # NaN becomes 0; to choose by a mask costs as much as exp does.
        return np.fmax(weights, 0.0, out=weights)


@storable()
@dataclass(frozen=True, eq=False, repr=False)
class NamedMissingness(Missingness):
    """φ = expit(intercept + coef z) in named columns, and nothing missing in others.

    `LogisticMissingness.from_columns` makes it. It takes its place among the columns of
    the dataframe that it meets, whatever their order.

    Parameters
    ----------
    columns : mapping from str to (intercept, coef)
        Where `coef` is a mapping, from columns to slopes.
    """

    columns: Mapping[str, Any]
    rowwise: ClassVar[bool] = False
    maximum: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        checked: dict[str, tuple[float, dict[str, float]]] = {}
        for name, given in self.columns.items():
            if np.size(given) != 2:
                raise ValueError(
                    f"Column {name!r} needs (intercept, coef), two numbers: got "
                    f"{given!r}."
                )
            start, slopes = given
            slopes = slopes if isinstance(slopes, Mapping) else {name: slopes}
            # Refuses what no column could have.
            LogisticMissingness(start, list(slopes.values()) or 0.0, rowwise=True)
            given = {str(column): float(slope) for column, slope in slopes.items()}
            checked[name] = (float(start), {name: 0.0} | given)
        if not checked:
            raise ValueError("No column is named: give one or more.")
        object.__setattr__(self, "columns", checked)

    def bound(
        self, names: Sequence[str] | None, n_columns: int | None = None
    ) -> Missingness:
        """The logistic model for a table that has these columns."""
        if names is None:
            raise ValueError(
                f"The missingness model is for the columns {listed(self.columns)}, and "
                "X doesn't name its columns. Give a dataframe, or say which columns an "
                "array has: LogisticMissingness.from_columns(..., names=[...])."
            )
        places = {str(name): place for place, name in enumerate(names)}
        wanted = [column for _, slopes in self.columns.values() for column in slopes]
        absent = [name for name in dict.fromkeys(wanted) if name not in places]
        if absent:
            hint = did_you_mean(str(absent[0]), places) if len(absent) == 1 else ""
            raise ValueError(
                f"The missingness model is for columns that X doesn't have: "
                f"{listed(absent)}.{hint} It has {listed(list(places)[:12])}."
            )
        intercept, coef = np.full(len(places), -np.inf), np.zeros(len(places))
        blocks = []
        for name, (start, slopes) in self.columns.items():
            if len(slopes) > 1:
                model = LogisticMissingness(start, list(slopes.values()), rowwise=True)
                inputs = tuple(places[column] for column in slopes)
                blocks.append(Block((places[name],), inputs, model))
            else:
                intercept[places[name]], coef[places[name]] = start, slopes[name]
        base = LogisticMissingness(intercept, coef)
        vars(base).update(feature_names=tuple(places))
        return BlockMissingness(base, tuple(blocks), len(names)) if blocks else base

    def evaluate(self, X: FloatArray) -> ArrayLike:
        """φ of the table that has the named columns."""
        return self.bound(None).evaluate(X)


def balanced_intercepts(
    offset: FloatArray, mass: FloatArray, expected: float
) -> FloatArray:
    """The intercepts at which Σ mass·expit(intercept + offset) is what is expected.

    By Newton's steps on the sum's logarithm, or half of the bracket where these leave
    it.

    Parameters
    ----------
    offset : ndarray of shape (n_intercepts, n_values)
    mass : ndarray of shape (n_values,)
    expected : float
    """
    # All at the largest offset, or all at the smallest.
    wanted = logit(expected / mass.sum())
    low, high = wanted - offset.max(axis=1), wanted - offset.min(axis=1)
    first = low
    for _ in range(_MAX_STEPS):
        probability = expit(first[:, None] + offset)
        total = np.maximum(probability @ mass, _SMALLEST)
        slope = total - probability**2 @ mass
        low = np.where(total <= expected, first, low)
        high = np.where(total >= expected, first, high)
        step = np.log(expected / total) * total / np.maximum(slope, _SMALLEST)
        inside = (low <= first + step) & (first + step <= high)
        step = np.where(inside, step, (low + high) / 2.0 - first)
        first = first + step
        if np.abs(step).max() < 1e-6:
            break
    return np.asarray(first)
