"""The rows that a report is about, and the columns of their table."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from missratio._base.blocks import take_rows
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.app.modelfile import certificates_of
from missratio.classifier import complete_mask
from missratio.missingness import Missingness, RowInclusion
from missratio.weights import complete_row_weight_edges


@dataclass(frozen=True)
class LabelledRows:
    """Rows of all classes, and what a classifier makes of them.

    Parameters
    ----------
    classifier : classifier
        Fitted, of any kind that has a certificate.
    X : array or dataframe of shape (n_rows, n_columns)
    y : ndarray of shape (n_rows,)
    calibration_share : float
        The share of a bounded class's rows that the classifier calibrates with.
    inclusion : ndarray of shape (n_rows,) or (n_rows, n_columns), optional
        Where values were looked up, with what probability each row or entry is in X.
    before : array or dataframe of shape (n_rows, n_columns), optional
        X without the values looked up, where that is another table.
    groups : ndarray of object of shape (n_rows,), optional
        The group of each row, where groups have promises of their own.
    lossy : frozenset
        The labels of classes of which rows had lost values when they were read.
    """

    classifier: Any
    X: Any
    y: Any
    calibration_share: float
    inclusion: FloatArray | None = None
    before: Any = None
    groups: Any = None
    lossy: frozenset[Any] = frozenset()

    @classmethod
    def read(
        cls,
        classifier: Any,
        X: Any,
        y: ArrayLike,
        inclusion: FloatArray | None = None,
        *,
        before: Any = None,
        groups: Any = None,
    ) -> LabelledRows:
        """Check rows against what the classifier was fitted with."""
        if not hasattr(X, "columns"):
            X = np.asarray(X)
        labels = np.asarray(y)
        known = np.isin(labels, classifier.classes_)
        if not known.all():
            unknown = set(labels[~known].tolist())
            raise ValueError(
                f"y has labels {sorted(map(str, unknown))} that the classifier doesn't "
                f"know: it has the classes {classifier.classes_.tolist()}."
            )
        certificate = certificates_of(classifier)[0]
        n_controlled = int((labels == certificate.controlled_class).sum())
        share = certificate.rows / max(n_controlled, 1)
        if groups is not None:
            groups = np.asarray(groups, dtype=object)
        rows = cls(classifier, X, labels, share, inclusion, before, groups)
        return replace(rows, lossy=frozenset(labels[~rows.complete].tolist()))

    @cached_property
    def bounded(self) -> tuple[Any, ...]:
        """The labels of the classes whose errors are bounded."""
        every = certificates_of(self.classifier)
        return tuple(dict.fromkeys(each.controlled_class for each in every))

    @cached_property
    def labels(self) -> tuple[Any, ...]:
        """All labels, those of bounded classes first."""
        every = self.classifier.classes_.tolist()
        return *self.bounded, *(label for label in every if label not in self.bounded)

    @property
    def controlled(self) -> Any:
        """The label of the controlled class."""
        return self.labels[0]

    @property
    def other(self) -> Any:
        """The label of the other class."""
        return self.labels[1]

    def index(self, label: Any) -> IntArray:
        """Where rows of a class are."""
        return np.flatnonzero(self.y == label)

    def rows(self, label: Any) -> Any:
        """The rows of a class."""
        return take_rows(self.X, self.index(label))

    def take(self, index: IntArray) -> LabelledRows:
        """Some of the rows."""
        return replace(
            self,
            X=take_rows(self.X, index),
            y=self.y[index],
            inclusion=None if self.inclusion is None else self.inclusion[index],
            before=None if self.before is None else take_rows(self.before, index),
            groups=None if self.groups is None else self.groups[index],
        )

    def sampled(self, most: int, rng: np.random.Generator) -> LabelledRows:
        """At most so many rows of each class, drawn at random, in their order."""
        chosen = []
        for label in self.labels:
            index = self.index(label)
            if len(index) > most:
                index = rng.choice(index, most, replace=False)
            chosen.append(index)
        return self.take(np.sort(np.concatenate(chosen)))

    def predicted(self, classifier: Any) -> Any:
        """What this classifier, or one like it, calls the rows."""
        if self.groups is None:
            return classifier.predict(self.X)
        return classifier.predict(self.X, self.groups)

    def refitted(self, **parameters: Any) -> Any:
        """The same classifier fitted to these rows; None where that can't be done."""
        seed = self.classifier.random_state
        fixed = seed if isinstance(seed, (int, np.integer)) else 0
        again = clone(self.classifier).set_params(random_state=fixed, **parameters)
        more = {} if self.groups is None else {"groups": self.groups}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return again.fit(self.X, self.y, inclusion=self.inclusion, **more)
            except (ValueError, np.linalg.LinAlgError):
                return None

    @property
    def as_found(self) -> LabelledRows:
        """The rows without what was looked up."""
        if self.before is None:
            return self
        return replace(self, X=self.before, inclusion=None, before=None)

    @cached_property
    def drawn(self) -> RowInclusion | None:
        """The draw by which whole rows are there; None where none was looked up."""
        if self.inclusion is None:
            return None
        return RowInclusion.of(self.inclusion, self.complete, self.X.shape[1], self.y)

    @cached_property
    def complete(self) -> BoolArray:
        """Which rows have no missing value."""
        return complete_mask(self.X)

    def model(self, label: Any) -> Missingness | None:
        """Why rows of a class are missing; None where no model was given."""
        models = self.classifier._resolve_missingness() or {}
        model: Missingness | None = models.get(label)
        return model

    def weights(self, label: Any) -> FloatArray | None:
        """What rows of a class stand for where complete rows are meant.

        None where all count the same: none of them has lost values, or those to be
        classified lose values as they did.
        """
        return self._weights[label]

    def masses(self, label: Any) -> FloatArray:
        """The same, with ones where all rows weigh the same."""
        known = self.weights(label)
        return np.ones(len(self.index(label))) if known is None else known

    @cached_property
    def _weights(self) -> dict[Any, FloatArray | None]:
        return {label: self._class_weights(label) for label in self.labels}

    def _class_weights(self, label: Any) -> FloatArray | None:
        if self.classifier.deployment == "as-observed" or label not in self.lossy:
            return None
        model = self.model(label)
        if model is None and self.drawn is not None:
            return self.drawn.take(self.index(label)).weights
        if model is None:
            return self.complete[self.index(label)].astype(np.float64)
        return complete_row_weight_edges(self.rows(label), model, delta=None)[0]


class Column(NamedTuple):
    """One column: its values are None where they aren't numbers."""

    name: str
    values: FloatArray | None
    missing: BoolArray


@dataclass(frozen=True)
class Names:
    """What the features are called, and which columns of a table they come from.

    Parameters
    ----------
    features : tuple of str
    origins : tuple of str
        The original column of each feature: several of one, where it has categories.
    blank : tuple of bool
        Which features say that their column is blank.
    """

    features: tuple[str, ...]
    origins: tuple[str, ...]
    blank: tuple[bool, ...]

    @classmethod
    def of(
        cls,
        features: Sequence[str],
        origins: Sequence[str] | None = None,
        blank: Sequence[bool] | None = None,
    ) -> Names:
        """Names of features that are columns themselves, unless told otherwise."""
        return cls(
            tuple(features),
            tuple(features if origins is None else origins),
            (False,) * len(features) if blank is None else tuple(blank),
        )

    @property
    def columns(self) -> list[str]:
        """The original columns, each once."""
        return list(dict.fromkeys(self.origins))

    def members(self) -> list[list[int]]:
        """The places of the features of each original column."""
        places: dict[str, list[int]] = {name: [] for name in self.columns}
        for j, origin in enumerate(self.origins):
            places[origin].append(j)
        return list(places.values())

    def missing(self, X: Any) -> BoolArray:
        """Which rows lack which original columns, (n, n_columns)."""
        found: list[BoolArray] = []
        place = {name: k for k, name in enumerate(self.columns)}
        for j, column in enumerate(columns_of(X, list(self.features))):
            lost = column.missing
            if self.blank[j] and column.values is not None:
                lost = lost | (column.values == 1.0)
            k = place[self.origins[j]]
            if k == len(found):
                found.append(lost)
            else:
                found[k] = found[k] | lost
        return np.column_stack(found)


def columns_of(X: Any, names: list[str]) -> Iterator[Column]:
    """Each column of a dataframe, or of an array with names."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        for name in frame.columns:
            series = frame.get_column(name)
            missing = series.is_null().to_numpy().astype(bool)
            if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
                yield Column(str(name), None, missing)
                continue
            numbers = series.cast(nw.Float64).fill_null(np.nan).to_numpy()
            values = numbers.astype(np.float64)
            yield Column(str(name), values, missing | np.isnan(values))
        return
    for name, array in zip(names, np.asarray(X).T, strict=False):
        if array.dtype.kind in "fiub":
            values = array.astype(np.float64)
            yield Column(name, values, np.isnan(values))
        else:
            lost = [value is None or value != value for value in array.tolist()]
            yield Column(name, None, np.array(lost, dtype=bool))
