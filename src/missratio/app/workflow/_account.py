"""How a table's missing values are accounted for: chosen by what a fit is given."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from missratio._base.blocks import rows_with_nan
from missratio._base.callbacks import has_callbacks
from missratio._base.hints import listed
from missratio._base.typing import FloatArray
from missratio.app.tables import Encoder, LabelledTable
from missratio.exceptions import Message, TableError
from missratio.learning import Revealed, learn_missingness
from missratio.missingness import (
    BlockMissingness,
    LogisticMissingness,
    Missingness,
    StepMissingness,
)

PHI = "φ, the probability of being missing,"


@dataclass(frozen=True, eq=False)
class Account:
    """What is done about the missing values of a table.

    Parameters
    ----------
    way : {"complete", "as observed", "file", "look-ups", "table", "both"}
    sentence : str
        The same in words, with what it assumes.
    X : ndarray of shape (n_rows, n_encoded)
        The table, with the values looked up in it where these are data.
    models : dict from label to Missingness
    inclusion : ndarray of shape (n_rows, n_columns), optional
        With what probability each row is in X as a whole, where rows were looked up.
    revealed : Revealed, optional
        What was looked up.
    warnings : list of Message
    """

    way: str
    sentence: str
    X: FloatArray
    models: dict[Any, Missingness] = field(default_factory=dict)
    inclusion: FloatArray | None = None
    revealed: Revealed | None = None
    warnings: list[Message] = field(default_factory=list)


def complete_account(X: FloatArray) -> Account:
    """Nothing is missing."""
    return Account("complete", "No value is missing.", X)


def observed_account(X: FloatArray) -> Account:
    """Values stay missing, as they will in rows to come."""
    sentence = "Missing values are left as they are: the certificate is for rows that "
    return Account("as observed", f"{sentence}lose values as these did.", X)


def written_account(
    X: FloatArray, models: dict[Any, Missingness], file: Path
) -> Account:
    """φ as a person wrote it down."""
    sentence = f"{PHI} is as {file} says; the certificate assumes that it is right."
    return Account("file", sentence, X, models)


class LearningSteps:
    """A scikit-learn callback that tells how many columns φ was learned of.

    Parameters
    ----------
    step : callable
        Told what is done next, and of how many parts it is.
    tick : callable
        Told that so many parts are done.
    """

    def __init__(
        self,
        step: Callable[[str, int | None], None],
        tick: Callable[[int], None],
    ) -> None:
        self._step, self._tick = step, tick

    def setup(self, estimator: Any, context: Any) -> None:
        """Begin a class."""
        self.begin(context.max_subtasks)

    def begin(self, total: int | None = None) -> None:
        """Begin, of so many parts."""
        self._step("Learning why values are missing", total)

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing is told of a beginning."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Some columns are done."""
        if context.parent is not None:
            self._tick(1)

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing is to be taken down."""


def table_account(
    table: LabelledTable, labels: Sequence[Any], steps: LearningSteps | None = None
) -> Account:
    """φ learned from the table, with nothing looked up."""
    models, told = recorded(lambda: learned_models(table, labels, None, steps))
    sentence = (
        f"{PHI} is learned from the table's other columns; the certificate assumes "
        "that it is logistic in the value itself."
    )
    return Account("table", sentence, table.X, models, warnings=told)


def recorded(
    learn: Callable[[], dict[Any, Missingness]],
) -> tuple[dict[Any, Missingness], list[Message]]:
    """What is learned, and what was warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        models = learn()
    return models, [Message.plain(str(each.message)) for each in caught]


def learned_models(
    table: LabelledTable,
    labels: Sequence[Any],
    revealed: Revealed | None,
    steps: LearningSteps | None = None,
) -> dict[Any, Missingness]:
    """φ of each class that has missing values.

    Parameters
    ----------
    table : LabelledTable
    labels : sequence
    revealed : Revealed, or None
        What was looked up, where φ is to be learned from that too.
    steps : LearningSteps, optional
        Told of the columns.
    """
    callbacks = [steps] if steps is not None and has_callbacks() else None
    if steps is not None and callbacks is None:
        steps.begin()
    models: dict[Any, Missingness] = {}
    for label in labels:
        if not table.missing_counts(label):
            continue
        whole = loses_whole_rows(table, label)
        if whole and revealed is None:
            raise TableError(
                f"Rows of class {label!r} are missing as a whole, so that the table "
                "has nothing to learn from. Look rows up (missratio query --budget)."
            )
        X = table.X[table.y == label]
        answers = None
        if revealed is not None:
            answers = table.encoded_answers(revealed[label])
        try:
            models[label] = learn_missingness(
                _framed(X, table),
                answers,
                rowwise=whole,
                categories=[own.tolist() for own in table.blank_categories.values()],
                callbacks=callbacks,
            )
        except ValueError as error:
            raise TableError(f"Class {label!r}: {error}") from error
    return models


def loses_whole_rows(table: LabelledTable, label: Any) -> bool:
    """Whether rows of a class are missing as a whole, if any of them is."""
    X = table.X[table.y == label]
    lost = np.isnan(X[rows_with_nan(X)])
    return X.shape[1] > 1 and len(lost) > 0 and bool(lost.all())


def _framed(X: Any, table: LabelledTable) -> Any:
    import pyarrow

    names = table.encoder.encoded_names
    return pyarrow.table({name: X[:, j] for j, name in enumerate(names)})


def check_models(
    encoder: Encoder,
    missing: Mapping[Any, Mapping[str, int]],
    models: Mapping[Any, Missingness],
) -> None:
    """Refuse models that leave missing cells unexplained.

    Parameters
    ----------
    encoder : Encoder
    missing : mapping from label to mapping
        Missing cells of each column, of each class.
    models : mapping from label to Missingness
    """
    for label, counts in missing.items():
        model = models.get(label)
        if not counts or (model is not None and model.rowwise):
            continue
        if model is None:
            raise TableError(
                f"Class {label!r} has missing values in {named_counts(counts)}, and "
                "the file says nothing of that class. Add it."
            )
        unsaid = [name for name in counts if _never(model, name, encoder)]
        if unsaid:
            raise TableError(
                f"Class {label!r} has missing values in {listed(unsaid)}, and its "
                "model says that none are. Add the column(s) to it."
            )


def named_counts(counts: Mapping[str, int]) -> str:
    """Columns with how many values they miss."""
    return ", ".join(f"{name!r} ({n})" for name, n in counts.items())


def _never(model: Missingness, name: str, encoder: Encoder) -> bool:
    """Whether a model says that a column has nothing missing."""
    if name in encoder.indicators:
        blocks = model.blocks if isinstance(model, BlockMissingness) else ()
        first = int(encoder.indicators[name][0])
        return all(first not in block.columns for block in blocks)
    place = encoder.names.index(name)
    if isinstance(model, BlockMissingness):
        model = model.base
    if isinstance(model, LogisticMissingness):
        return bool(np.atleast_1d(model.intercept)[place] == -np.inf)
    assert isinstance(model, StepMissingness)
    return bool(np.atleast_1d(model.probability)[place] == 0.0)
