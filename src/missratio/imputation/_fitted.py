"""What imputes rows without labels, once an imputer is fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from missratio._base.typing import BoolArray
from missratio.imputation._chain import Chain
from missratio.imputation._classes import columns_missing
from missratio.imputation._conditionals import Conditional
from missratio.imputation._levels import Levels


@dataclass(frozen=True)
class Fitted:
    """What draws the missing values of rows without labels, for each imputation."""

    columns: tuple[Sequence[Levels], ...]
    conditionals: tuple[dict[int, Conditional], ...]

    @classmethod
    def of(cls, chains: Sequence[Chain], rng: np.random.Generator) -> Fitted:
        """The laws of chains, with few enough donors to be kept."""
        conditionals = tuple(
            {j: law.thinned(rng) for j, law in chain.conditionals.items()}
            for chain in chains
        )
        return cls(tuple(chain.columns for chain in chains), conditionals)


def fitted_for(
    fitted: Fitted | None,
    missing: BoolArray,
    names: Sequence[str],
    by_class: bool,
    unlabelled: Any,
) -> Fitted:
    """What imputes rows without labels, or why there is nothing.

    Parameters
    ----------
    fitted : Fitted or None
        None where the fit left nothing to impute such rows with.
    missing : ndarray of bool of shape (n_rows, n_columns)
    names : sequence of str
        Of the columns, for messages.
    by_class : bool
        Whether classes were imputed on their own.
    unlabelled : object
        The class as which such rows are imputed, or None.
    """
    if by_class and unlabelled is None:
        raise ValueError(
            f"X has missing values (NaN) in column(s) {columns_missing(missing, names)}"
            ", and which law they have depends on the class, which is not known here. "
            "Give complete rows, use fit_transform(X, y) for rows with labels, or say "
            "by unlabelled=... as which class such rows are to be imputed."
        )
    known = [] if fitted is None else list(fitted.conditionals[0])
    unknown = missing & ~np.isin(np.arange(missing.shape[1]), known)
    if fitted is None or unknown.any():
        whose = f" of class {unlabelled!r}" if by_class else ""
        raise ValueError(
            f"X has missing values (NaN) in column(s) {columns_missing(unknown, names)}"
            f", where the rows{whose} that were fitted had none: no law was learned "
            "for them. Fit with rows that miss them, or give complete rows."
        )
    return fitted
