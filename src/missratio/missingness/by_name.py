"""Values missing with a logistic probability, column by column, by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from missratio._base.hints import did_you_mean, listed
from missratio._base.typing import FloatArray
from missratio.missingness.base import Missingness
from missratio.missingness.logistic import LogisticMissingness


@dataclass(frozen=True, eq=False, repr=False)
class NamedMissingness(Missingness):
    """φ(z) = expit(intercept + coef z) in named columns, and nothing missing in others.

    `LogisticMissingness.from_columns` makes it. It takes its place among the columns of
    the dataframe that it meets, whatever their order.

    Parameters
    ----------
    columns : mapping from str to (intercept, coef)
    """

    columns: Mapping[str, tuple[float, float]]
    rowwise: ClassVar[bool] = False
    maximum: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        checked = {}
        for name, given in self.columns.items():
            if not isinstance(name, str):
                raise TypeError(f"Columns are named by texts: got {name!r}.")
            pair = np.asarray(given, dtype=np.float64)
            if pair.shape != (2,):
                raise ValueError(
                    f"Column {name!r} needs (intercept, coef), two numbers: got "
                    f"{given!r}."
                )
            # Refuses what no column could have.
            LogisticMissingness(*pair)
            checked[name] = (float(pair[0]), float(pair[1]))
        if not checked:
            raise ValueError("No column is named: give one or more.")
        object.__setattr__(self, "columns", checked)

    def bound(self, names: Sequence[str] | None) -> LogisticMissingness:
        """The model for a table that has these columns.

        Parameters
        ----------
        names : sequence of str, or None
            None where the table doesn't name its columns.

        Returns
        -------
        LogisticMissingness
        """
        if names is None:
            raise ValueError(
                f"The missingness model is for the columns {listed(self.columns)}, and "
                "X doesn't name its columns. Give a dataframe, or say which columns an "
                "array has: LogisticMissingness.from_columns(..., names=[...])."
            )
        places = {str(name): place for place, name in enumerate(names)}
        absent = [name for name in self.columns if name not in places]
        if absent:
            hint = did_you_mean(absent[0], places) if len(absent) == 1 else ""
            raise ValueError(
                f"The missingness model is for columns that X doesn't have: "
                f"{listed(absent)}.{hint} It has {listed(list(places)[:12])}."
            )
        intercept, coef = np.full(len(places), -np.inf), np.zeros(len(places))
        for name, (start, slope) in self.columns.items():
            intercept[places[name]], coef[places[name]] = start, slope
        return LogisticMissingness(intercept, coef)

    def check_width(self, n_columns: int) -> None:
        """Refuse a table without names."""
        self.bound(None)

    def _evaluate(self, X: FloatArray) -> ArrayLike:
        return self.bound(None)._evaluate(X)
