"""Why a table's values are missing, and that nothing is left unexplained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from missratio._hints import listed
from missratio.app.tables import LabelledTable
from missratio.app.workflow._phi_file import read_missingness
from missratio.exceptions import TableError
from missratio.learning import QueryPlan, learn_missingness
from missratio.missingness import LogisticMissingness, Missingness, StepMissingness


def find_missingness(
    table: LabelledTable, labels: Sequence[Any], file: Path | None, plan: Path | None
) -> dict[Any, Missingness]:
    """Why values are missing, class by class: as written down, or learned.

    Parameters
    ----------
    table : LabelledTable
    labels : sequence
        The two classes.
    file : Path or None
        A file that says why.
    plan : Path or None
        A plan that was filled in, to learn it from.
    """
    if file is not None:
        return read_missingness(file, table.encoder, labels)
    return _learned(table, labels, plan) if plan is not None else {}


def _learned(
    table: LabelledTable, labels: Sequence[Any], plan: Path
) -> dict[Any, Missingness]:
    """Models learned from a plan that was filled in."""
    try:
        revealed = QueryPlan.read(plan, table.numeric_frame(), table.y)
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no plan {plan}.") from None
    except ValueError as error:
        raise TableError(f"{plan} was refused. {error}") from error
    n_indicators = table.encoder.width - table.encoder.n_numeric
    if revealed.rowwise and n_indicators:
        raise TableError(
            "Where whole rows are missing, a plan tells the numbers of a row and not "
            "its categories. Leave the columns of categories out (--drop)."
        )
    models: dict[Any, Missingness] = {}
    for label in labels:
        if not table.missing_counts(label):
            continue
        X = table.X[table.y == label]
        answers = np.pad(
            revealed[label], ((0, 0), (0, n_indicators)), constant_values=np.nan
        )
        try:
            models[label] = learn_missingness(
                _framed(X, table), answers, rowwise=revealed.rowwise
            )
        except ValueError as error:
            raise TableError(f"{plan}, class {label!r}: {error}") from error
    return models


def _framed(X: Any, table: LabelledTable) -> Any:
    import pyarrow

    names = table.encoder.encoded_names
    return pyarrow.table({name: X[:, j] for j, name in enumerate(names)})


def check_explained(
    table: LabelledTable, labels: Sequence[Any], models: Mapping[Any, Missingness]
) -> None:
    """Refuse missing cells that nothing was said about.

    Parameters
    ----------
    table : LabelledTable
    labels : sequence
        The two classes.
    models : mapping from label to Missingness
    """
    categories = set(table.encoder.names[table.encoder.n_numeric :])
    for label in labels:
        counts, model = table.missing_counts(label), models.get(label)
        if not counts or (model is not None and model.rowwise):
            continue
        blank = [name for name in counts if name in categories]
        if blank:
            raise TableError(
                f"Class {label!r} has blanks in {listed(blank)}, of categories, and φ "
                "is a function of numbers. Fill them in; leave the column out (--drop "
                f"{blank[0]}); or take a blank for a category of its own, which holds "
                "for rows that lose values as these did (--deployment as-observed)."
            )
        if model is None:
            cells = ", ".join(f"{name!r} ({n})" for name, n in counts.items())
            raise TableError(
                f"Class {label!r} has missing values in {cells}, and nothing says why. "
                "Look some up (missratio query, then --queries PLAN), write down why "
                "(--missingness FILE; missratio fit --example), or leave them out of "
                "account, which holds for rows that lose values as these did "
                "(--missingness ignore)."
            )
        unsaid = [name for name in counts if _never(model, name, table)]
        if unsaid:
            raise TableError(
                f"Class {label!r} has missing values in {listed(unsaid)}, and its "
                "model says that none are. Add the column(s) to it."
            )


def _never(model: Missingness, name: str, table: LabelledTable) -> bool:
    """Whether a model says that a column has nothing missing."""
    place = table.encoder.names.index(name)
    if isinstance(model, LogisticMissingness):
        return bool(np.atleast_1d(model.intercept)[place] == -np.inf)
    assert isinstance(model, StepMissingness)
    return bool(np.atleast_1d(model.probability)[place] == 0.0)
