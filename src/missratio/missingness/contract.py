"""The contract of a missingness model, and how a table loses values by one."""

from __future__ import annotations

import copy
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.utils import check_random_state

from missratio._base import reading
from missratio._base.blocks import rows_with_nan
from missratio._base.hints import check_probability
from missratio._base.reading import as_numeric_array, check_no_infinity
from missratio._base.typing import FloatArray, IntArray

_NAN_REMEDY = (
    "The value there is observed, so that its φ must be a number; per feature it may "
    "depend on that entry only."
)


class Missingness(ABC):
    """A model of φ(z) = P(missing | z) for one class, with values in [0, 1).

    A rowwise model loses whole rows. A per-feature model loses single entries, entry j
    with probability φ_j, independently of the others given z; φ_j may depend on entry j
    only, since the others may be missing when it is needed.

    A subclass gives `rowwise` and `maximum`, as properties or as dataclass fields with
    a default, and implements `evaluate`. It must be a function of the row alone: large
    tables are evaluated in blocks of rows.
    """

    _remedy: ClassVar[str] = (
        "What is always missing can't be weighted back: keep the model below 1 "
        "wherever there is data."
    )
    # Parameters of a dataclass that are one for each column, or one for all. What φ is
    # at most in each, where it is known, is kept as `_maxima`.
    _by_column: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def rowwise(self) -> bool:
        """Whether whole rows are missing, rather than single entries."""

    @property
    @abstractmethod
    def maximum(self) -> float | None:
        """The supremum ‖φ‖∞ over all z; None where it is not known."""

    groups: IntArray | None = None
    """Columns with equal numbers go missing together; None where none do."""

    learned: bool = False
    """Whether φ was estimated, so that a guarantee must allow for its error."""

    n_features: int | None = None
    """The number of features that the model is for; None where any will do."""

    feature_names: tuple[str, ...] = ()
    """The columns that the model is for, in their order, where it goes by names."""

    source: str = ""
    """The file that a person wrote it down in; "" where it was given as it is."""

    def weight_bound(self, n_columns: int, odds_factor: float = 1.0) -> float | None:
        """The largest weight 1/(1 − φ) that a complete row can have; None if unknown.

        Parameters
        ----------
        n_columns : int
            Per feature the weight of a row is a product over so many columns.
        odds_factor : float, default=1.0
            By what factor the odds φ/(1 − φ) may be larger than the model says.
        """
        largest = self.column_maxima(n_columns)
        if self.groups is not None:
            largest = largest[once(self.groups)]
        if not (largest < 1.0).all():
            return None
        with np.errstate(over="ignore"):
            bound = np.prod(1.0 + odds_factor * largest / (1.0 - largest))
        return float(bound) if np.isfinite(bound) else None

    def column_maxima(self, n_columns: int) -> FloatArray:
        """The supremum of φ for each column, or of a rowwise model's one φ.

        Parameters
        ----------
        n_columns : int

        Returns
        -------
        ndarray of shape (n_columns,), or (1,) for a rowwise model
            1 where it is not known.
        """
        known = 1.0 if self.maximum is None else self.maximum
        known = vars(self).get("_maxima", known)
        return np.broadcast_to(known, (1 if self.rowwise else n_columns,))

    def bound(
        self, names: Sequence[str] | None, n_columns: int | None = None
    ) -> Missingness:
        """The model for a table with these columns: itself, unless it goes by names.

        Parameters
        ----------
        names : sequence of str, or None
            None where the table doesn't name its columns.
        n_columns : int, optional
            How many columns the table has; refused if the model is for another number.

        Returns
        -------
        Missingness
            Itself, or a model for these columns.
        """
        if n_columns is not None and self.n_features not in (None, n_columns):
            raise ValueError(
                f"{type(self).__name__} is for {self.n_features} feature(s): X has "
                f"{n_columns}. Give the columns that the model was made for."
            )
        places = {name: j for j, name in enumerate(self.feature_names)}
        given = [] if names is None else [*names]
        if any(places.get(name, j) != j for j, name in enumerate(given)):
            raise ValueError(
                f"{type(self).__name__} is for columns {reading.joined([*places])}, in "
                f"this order, and X has {reading.joined(given)}. Give X with the "
                "columns of the model."
            )
        return self

    def some_columns(self, positions: IntArray, n_columns: int) -> Missingness:
        """The model for a table that has only some of the columns.

        Parameters
        ----------
        positions : ndarray of int
            Their places among the columns that the model is for.
        n_columns : int
            All columns that the model is for.

        Returns
        -------
        Missingness
            The model of these columns alone.

        Raises
        ------
        ValueError
            Where φ is not one of single columns, each of its own value.
        """
        if self.rowwise or self.groups is not None:
            raise ValueError(
                "columns= needs φ of single columns, each of its own value: got "
                f"{self!r}. Leave columns out, or give a model with a φ for each "
                "column."
            )
        if self._by_column:
            kept = {
                name: np.broadcast_to(np.ravel(getattr(self, name)), n_columns)
                for name in self._by_column
            }
            some = {name: values[positions] for name, values in kept.items()}
            return cast(Missingness, replace(cast(Any, self), **some))
        from missratio.missingness.models import FunctionMissingness

        maxima = self.column_maxima(n_columns)[positions]
        return FunctionMissingness(
            partial(_some_probabilities, self, positions, n_columns),
            rowwise=False,
            maximum=maxima if (maxima < 1.0).all() else None,
        )

    def probability_band(
        self, X: Any, delta: float | None = 0.05
    ) -> tuple[FloatArray, FloatArray]:
        """Return bounds that hold φ everywhere with probability 1 − δ: φ, if known.

        Unlike `missing_probability` it may be asked where φ rounds to 1.

        Parameters
        ----------
        X : array-like or dataframe of shape (n, d)
            Values, NaN where missing.
        delta : float or None, default=0.05
            Of use for a model that was learned; None takes that at its word as well.

        Returns
        -------
        lower, upper : ndarray of shape (n,) for a rowwise model, else (n, d)
            Bounds of φ for each row or entry.
        """
        if delta is not None:
            check_probability("delta", delta)
        probability = self._probabilities(X, may_be_one=True)
        return probability, probability

    def log_odds(self, X: Any, xp: Any = np) -> Any:
        """The log-odds of φ at an array of the namespace `xp`; None if not known there.

        With them φ is evaluated where a tensor lies, else on the host.
        """
        return None

    @abstractmethod
    def evaluate(self, X: FloatArray) -> ArrayLike:
        """Return φ at the rows of a read-only, non-empty array of shape (n, d).

        A rowwise model is given complete rows and returns shape (n,). A per-feature
        model is given X with its NaN and returns shape (n, d); what it returns at NaN
        is not looked at.
        """

    def missing_probability(self, X: Any) -> FloatArray:
        """Return φ at the rows or entries of X, checked to lie in [0, 1).

        Parameters
        ----------
        X : array-like or dataframe of shape (n, d)
            Values, NaN where missing.

        Returns
        -------
        ndarray of shape (n,) for a rowwise model, (n, d) for a per-feature model
            NaN where the entry, or for a rowwise model any entry of the row, is NaN.

        Raises
        ------
        ValueError
            Where X has the wrong width or an infinite entry, and where φ has the wrong
            shape, is outside [0, 1) or exceeds `maximum`.
        """
        return self._probabilities(X)

    def weights(self, X: Any) -> FloatArray:
        """Return 1{observed}/(1 − φ) at the rows or entries of X.

        Parameters
        ----------
        X : array-like or dataframe of shape (n, d)
            Values, NaN where missing; for a rowwise model a missing row is NaN
            throughout.

        Returns
        -------
        ndarray of shape (n,) for a rowwise model, (n, d) for a per-feature model
            0 where missing.
        """
        table, model = self._bound_table(X)
        check_no_infinity(table, X)
        return model.block_weights(table.astype(np.float64, copy=False), 0, X)

    def block_weights(
        self, block: FloatArray, first_row: int = 0, source: Any = None
    ) -> FloatArray:
        """As `weights`, for float64 rows that are known to have the right width.

        A model that knows its weights better than by the difference 1 − φ, which loses
        digits where φ is close to 1, says so here.

        Parameters
        ----------
        block : ndarray of shape (n, d)
        first_row : int
            The number of the first row, for messages.
        source : array-like or dataframe, optional
            What the rows were read from, for the names of columns in messages.
        """
        if self.rowwise:
            check_no_partial_row(block, first_row)
        probability = self._probabilities(block, first_row, source)
        weights = np.zeros_like(probability)
        np.divide(1.0, 1.0 - probability, out=weights, where=~np.isnan(probability))
        return weights

    def _bound_table(self, X: Any) -> tuple[FloatArray, Missingness]:
        """X as an array of numbers, and the model for its columns."""
        if isinstance(X, np.ndarray):
            table = as_numeric_array(X)
            return table, self.bound(None, table.shape[1])
        coded, texts = reading.as_coded(X)
        table = as_numeric_array(coded)
        model = self.bound(reading.column_names(X), table.shape[1])
        if texts:
            # Texts have codes in no order that is known: φ must not depend on it.
            turned = np.array(table, dtype=np.float64)
            turned[:, texts] = (
                np.fmax.reduce(table[:, texts], initial=1) - turned[:, texts]
            )
            phi, again = (model.probability_band(x, None)[0] for x in (table, turned))
            if not np.array_equal(phi, again, equal_nan=True):
                names = [reading.column_name(X, j) for j in texts]
                raise ValueError(
                    f"φ depends on texts, in column(s) {reading.joined(names)}, and "
                    "which numbers they stand for is not known. Make categories of "
                    "them, as by astype('category'): φ sees 0, 1, … in sorted order."
                )
        return table, model

    def _probabilities(
        self, X: Any, first_row: int = 0, source: Any = None, may_be_one: bool = False
    ) -> FloatArray:
        """φ at the rows of X, checked; NaN where missing."""
        # An array of numbers has no names and no texts to be read.
        if type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype == np.float64:
            table, model = X, self.bound(None, X.shape[1])
        else:
            table, model = self._bound_table(X)
        source = X if source is None else source
        whole, maxima = model.rowwise, model.column_maxima(table.shape[1])
        result = np.full(table.shape[:1] if whole else table.shape, np.nan)
        if not whole:
            check_no_infinity(table, X)
        for rows in reading.row_blocks(table.shape):
            block = table[rows].astype(np.float64, copy=False)
            known = ~(rows_with_nan(block) if whole else np.isnan(block))
            # 1. Evaluate it: a rowwise model sees complete rows only. A user's φ that
            #    writes to its argument must not reach the user's table.
            seen = block.view()
            if whole and not known.all():
                seen = np.compress(known, block, axis=0)
            seen.flags.writeable = False
            if not len(seen):
                continue
            if whole:
                numbers = first_row + rows.start + np.flatnonzero(known)
                check_no_infinity(seen, source, numbers.__getitem__)
            probability = np.asarray(model.evaluate(seen))
            if probability.dtype.kind == "c":
                raise ValueError(f"{type(model).__name__} gives complex numbers.")
            probability = probability.astype(np.float64, copy=False)
            shape = seen.shape[:1] if whole else seen.shape
            if probability.shape != shape:
                raise ValueError(
                    f"A {'rowwise' if whole else 'per-feature'} model must return "
                    f"shape {shape} for X of shape {seen.shape}: "
                    f"{type(model).__name__} gives {probability.shape}. Correct the "
                    f"shape, or set rowwise={not whole} if that is what was meant."
                )
            if whole:
                result[rows][known] = probability
            else:
                result[rows] = np.where(known, probability, np.nan)
            # 2. Check it.
            probability = result[rows]
            below = probability <= 1 if may_be_one else probability < 1
            outside = known & ~((probability >= 0) & below)
            exceeds = known & (probability > maxima * (1 + 1e-12))
            bad = outside if outside.any() else exceeds
            if not bad.any():
                continue
            row, *column = np.argwhere(bad)[0].tolist()
            value = float(probability[(row, *column)])
            names = [f", column {reading.column_name(source, j)}" for j in column]
            given = f"{type(model).__name__} gives {value} at row "
            given += f"{first_row + rows.start + row}{''.join(names)}"
            if outside.any():
                raise ValueError(
                    f"The missing probability must lie in [0, 1): {given}. "
                    f"{_NAN_REMEDY if np.isnan(value) else model._remedy}"
                )
            raise ValueError(
                f"The declared maximum {maxima[column[0] if column else 0]} of the "
                f"missing probability is exceeded: {given}. Declare a larger maximum, "
                "or None if it is not known."
            )
        return result

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copied or unpickled model; its arrays are read-only again."""
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        self.__dict__.update(state)

    def __repr__(self) -> str:
        """Show the model as the call that makes it."""
        model, shown = cast(Any, self), []
        for parameter in fields(model) if is_dataclass(model) else ():
            value = getattr(self, parameter.name)
            text = str(getattr(value, "__qualname__", repr(value)))
            if isinstance(value, np.ndarray):
                text = reprlib.repr(value.tolist())
            shown += [f"{parameter.name}={text}"] if parameter.repr else []
        return f"{type(self).__name__}({', '.join(shown)})"


def _some_probabilities(
    model: Missingness, positions: IntArray, n_columns: int, rows: FloatArray
) -> FloatArray:
    """φ of some columns, of which each sees its own value alone."""
    full = np.zeros((len(rows), n_columns))
    full[:, positions] = rows
    return model.missing_probability(full)[:, positions]


def once(groups: IntArray) -> IntArray:
    """The first column of each group: what goes missing together counts once."""
    return np.sort(np.unique(groups, return_index=True)[1])


def joint_weight(weights: FloatArray, groups: IntArray | None = None) -> FloatArray:
    """What a row's entries weigh together, over the last axis.

    The product over groups of the largest weight in each, or 0 where one is missing:
    of what was drawn together, entries that were not lost weigh one.

    Parameters
    ----------
    weights : ndarray of shape (..., n_columns)
        0 where missing.
    groups : ndarray of int of shape (n_columns,), or None
        Columns with equal numbers are there or missing together.
    """
    if groups is not None:
        parts = [weights[..., groups == group] for group in np.unique(groups)]
        largest = [np.where((p > 0.0).all(axis=-1), p.max(axis=-1), 0.0) for p in parts]
        weights = np.stack(largest, axis=-1)
    with np.errstate(over="ignore", invalid="ignore"):
        product = np.asarray(weights.prod(axis=-1))
    # A missing entry beside huge ones is inf · 0; its row weighs nothing.
    product[np.isnan(product)] = 0.0
    return product


def check_no_partial_row(block: FloatArray, first_row: int) -> None:
    """Refuse rows of which some entries are missing and some are not.

    The block of rows starts at `first_row`.
    """
    rows = np.flatnonzero(rows_with_nan(block))
    missing = np.isnan(np.take(block, rows, axis=0))
    if not missing.all():
        k = int(np.argmin(missing.all(axis=1)))
        raise ValueError(
            f"A rowwise missingness model loses whole rows: row {first_row + rows[k]} "
            f"has {missing[k].sum()} of {missing.shape[1]} entries missing. Use a "
            "per-feature model (rowwise=False), or set the whole row to NaN."
        )


def read_only_parameter(
    value: ArrayLike,
    name: str,
    *,
    single: bool = False,
    finite: bool = False,
    below_one: bool = False,
) -> FloatArray:
    """Copy a parameter, a scalar or one per feature, into a read-only float array."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim > 1 or array.size == 0:
        raise ValueError(
            f"{name} must be a number or a vector of numbers, one per feature: got "
            f"{value!r}."
        )
    if single and array.ndim:
        raise ValueError(
            f"A rowwise model has one {name}: got shape {array.shape}. Set "
            "rowwise=False for one per feature."
        )
    if finite and not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite: got {array.tolist()}.")
    if below_one and not ((array >= 0) & (array < 1)).all():
        raise ValueError(
            f"{name} must lie in [0, 1): got {array.tolist()}. What is always missing "
            "can't be weighted back."
        )
    array.flags.writeable = False
    return array


def as_array(value: ArrayLike, X: Any, xp: Any) -> Any:
    """A parameter as an array of a namespace, of the type of X and where X lies."""
    return xp.asarray(np.array(value), dtype=X.dtype, device=X.device)


def keep(model: Missingness, **parameters: FloatArray) -> None:
    """Set checked parameters, of the same width, of a frozen model."""
    widths = {name: value.size for name, value in parameters.items() if value.ndim}
    if len(set(widths.values())) > 1:
        sizes = ", ".join(f"{name} has {size}" for name, size in widths.items())
        raise ValueError(
            f"Parameters must have one entry per feature, or be scalar: {sizes} "
            "entries."
        )
    # The size that vectors agree on; None if all are scalars.
    width = next(iter(widths.values()), None)
    for name, value in {**parameters, "n_features": width}.items():
        object.__setattr__(model, name, value)


Table = TypeVar("Table")
RandomState = int | np.random.RandomState | np.random.Generator | None


def corrupt(
    X: Table, missingness: Missingness, random_state: RandomState = None
) -> Table:
    """Return a copy of X in which values are missing with the probability of the model.

    Parameters
    ----------
    X : array-like or dataframe of shape (n, d)
        A table of numbers. What is NaN already stays so; a rowwise model needs rows
        that are either complete or missing as a whole.
    missingness : Missingness
        Loses whole rows, or single entries independently given the row.
    random_state : int, RandomState, Generator or None, default=None
        Decides which values are lost; an int gives the same table every time.

    Returns
    -------
    ndarray or dataframe of shape (n, d)
        Floating, NaN where missing. A pandas or polars dataframe gives one of the same
        kind, with its columns and index; anything else an array.

    Examples
    --------
    >>> import numpy as np
    >>> from missratio.missingness import StepMissingness, corrupt
    >>> X = np.arange(4.0).reshape(4, 1)
    >>> corrupt(X, StepMissingness(1, 1, 0.9), random_state=0).ravel()
    array([ 0.,  1., nan, nan])
    """
    if not isinstance(missingness, Missingness):
        raise TypeError(
            f"missingness must be one class's model, such as StepMissingness: got "
            f"{type(missingness).__name__}."
        )
    table = reading.as_coded_array(X)
    lossy = np.array(table, dtype=table.dtype if table.dtype.kind == "f" else float)
    if missingness.rowwise:
        check_no_partial_row(lossy, 0)
    probability = missingness.missing_probability(X)
    draws = _generator(random_state).random(probability.shape)
    if missingness.groups is not None:
        draws = draws[:, missingness.groups]
    # A comparison with NaN, where φ is not known, is False: what is missing stays so.
    lossy[draws < probability] = np.nan
    return cast(Table, reading.with_values(X, lossy))


def _generator(random_state: RandomState) -> Any:
    """A generator as it is, and scikit-learn's of anything else."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return check_random_state(random_state)


def check_missingness(
    missingness: Missingness, X: Any = None, random_state: RandomState = 0
) -> None:
    """Test a model of your own against the contract, as `check_estimator` does.

    Its values lie in [0, 1) and below its maximum and have the right shape; they depend
    on the row alone, and per feature on their own entry; weights, band, log-odds and a
    copy say the same as φ.

    Parameters
    ----------
    missingness : Missingness
    X : array-like or dataframe of shape (n, d), optional
        Complete rows that are typical for the model; by default normal ones.
    random_state : int, RandomState, Generator or None, default=0

    Raises
    ------
    AssertionError
        Where the model says two different things, with where.
    ValueError
        Where φ has the wrong shape, or isn't a probability below its maximum.

    Examples
    --------
    >>> from missratio.missingness import FunctionMissingness, check_missingness
    >>> check_missingness(FunctionMissingness(lambda X: 0.5 * (X[:, 0] > X.mean())))
    Traceback (most recent call last):
    AssertionError: φ of row ...: it must depend on the row alone, not on others that it
    is evaluated with.
    """
    rng = _generator(random_state)
    if X is None:
        X = rng.normal(size=(500, missingness.n_features or 3))
    rows = np.array(as_numeric_array(X), dtype=np.float64)
    if np.isnan(rows).any():
        raise ValueError("check_missingness takes complete rows: got NaN.")
    model = missingness.bound(reading.column_names(X), rows.shape[1])
    phi = model.missing_probability(rows)

    def compare(values: FloatArray, how: str, remedy: str) -> None:
        expected = phi[: len(values)]
        off = np.argwhere(~np.isclose(values, expected, rtol=1e-7, atol=1e-12))
        if len(off):
            place = tuple(off[0])
            raise AssertionError(
                f"φ of row {', column '.join(map(str, place))} is "
                f"{expected[place]:.6g}, and {values[place]:.6g} {how}: {remedy}"
            )

    # 1. The row alone matters, and per feature the entry alone.
    few = rows[:50]
    single = [model.missing_probability(few[[i]]) for i in range(len(few))]
    remedy = "it must depend on the row alone, not on others that it is evaluated with."
    compare(np.concatenate(single), "by itself", remedy)
    if not model.rowwise and model.groups is None:
        alone = np.empty_like(few)
        for j in range(rows.shape[1]):
            lossy = np.where(np.arange(rows.shape[1]) == j, few, np.nan)
            alone[:, j] = model.missing_probability(lossy)[:, j]
        remedy = "per feature it may depend on its own entry only."
        compare(alone, "where the others are NaN", remedy)
    # 2. What follows from φ.
    by_weights = 1.0 - 1.0 / model.weights(rows)
    compare(by_weights, "by its weights", "they must be 1/(1 − φ).")
    band = np.clip(phi, *model.probability_band(rows))
    compare(band, "at an end of its band", "probability_band must hold it.")
    if (log_odds := model.log_odds(rows)) is not None:
        compare(expit(log_odds), "by its log-odds", "correct log_odds.")
    again = copy.deepcopy(model).missing_probability(rows)
    compare(again, "of a copy", "a model must not change with use.")
