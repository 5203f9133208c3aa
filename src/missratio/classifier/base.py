"""What every certified classifier does alike: a list of promises, and one fit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.validation import check_is_fitted

from missratio._base import reading
from missratio._base.blocks import take_rows
from missratio._base.callbacks import CallbackSupportMixin
from missratio._base.hints import check_choice, check_number, generator
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.classifier import estimators
from missratio.classifier.columns import read_columns, some_columns
from missratio.classifier.estimators import ClassTable
from missratio.classifier.promise import Promise
from missratio.classifier.reading import (
    known_labels,
    read_units,
    warn_of_unseen_words,
)
from missratio.missingness import Missingness, RowInclusion
from missratio.rows import LabelledSource, as_source, check_missingness, refuse_source
from missratio.tensor import on_host
from missratio.threshold import Rule, check_levels

IN_MEMORY = "Bring some into memory, or bound one error with NeymanPearsonClassifier."
# Rows of one class that are looked at where more make no difference.
MOST_ROWS = 1000


def few(values: Any, most: int = MOST_ROWS) -> Any:
    """Some of many values, evenly spread: rows to look at, where more are enough."""
    places = np.linspace(0, len(values) - 1, min(len(values), most))
    return values[places.astype(np.intp)]


class CertifiedClassifier(
    CallbackSupportMixin, ClassifierMixin, MetaEstimatorMixin, BaseEstimator
):
    """A classifier around an estimator that keeps promises about errors.

    A fit reads a table, splits its rows, fits the estimator to some, and certifies each
    promise by others. A subclass says what is promised, and how scores of rows and
    certified thresholds become labels.
    """

    estimator: Any
    alpha: Any
    delta: float
    missingness: Mapping[Any, Missingness] | Missingness | None
    rule: str | Rule
    deployment: str
    odds_factor: float
    calibration_size: float
    random_state: Any
    # The part of δ that a learned φ may be out of its region with; None for half.
    missingness_delta: float | None = None
    # What to do where nothing can be certified.
    on_infeasible: str = "raise"
    # The columns to use.
    columns: Any = "all"
    classes_: Any
    certificate_: Any
    # The class that a model of missingness by itself is for: the one with blanks.
    _lossy: Any = None
    # Positions of the columns that are used; None for all.
    _positions: IntArray | None = None
    # How tables are read: as the first one was.
    _words: reading.WordColumns = reading.WordColumns("", {})
    training_index_: IntArray
    calibration_index_: IntArray

    @abstractmethod
    def _labels(self, y: Any) -> list[Any]:
        """Note `classes_`, and give the classes in the order of their positions."""

    @abstractmethod
    def _split(self, table: ClassTable, rng: Generator) -> ClassTable:
        """Draw rows to fit on, to choose by and to calibrate on."""

    @abstractmethod
    def _learn(self, table: ClassTable, estimator: Any, rng: Generator) -> None:
        """Fit the estimator, and certify a threshold for each promise.

        Rows that calibrate take no part in what is decided before.
        """

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        inclusion: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Fit the estimator, and calibrate on rows it hasn't seen.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns), or source
            NaN where a value is missing. A source, as `scan_parquet` gives it, has its
            labels with it; the estimator must be a ratio that fits sources, and one
            error alone be bounded.
        y : array-like of shape (n_rows,)
            Labels, those of all bounded classes among them.
        inclusion : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            Where values were looked up, the probability with which each row or entry is
            there: `X, inclusion = revealed.fill(X)`. The certificate then assumes
            nothing about why values are missing. The estimator gets the weights.
        groups : array-like of shape (n_rows,), optional
            The unit of each row, such as a patient of whom there are several rows. A
            unit is fitted on, or calibrates by one row that is drawn at random; its
            other rows are left out. The error is then that of a random row of a random
            unit. An estimator whose `fit` takes `groups` gets them, too.
        **params : dict
            Such as `sample_weight`, for the estimator's fit; calibration has none.

        Returns
        -------
        Self
            The fitted classifier. `NoCertificateError` is raised where there are too
            few rows, or bounds leave each other no room.
        """
        self._check_parameters()
        self._forget()
        if (source := as_source(X, y)) is not None:
            memory = {"inclusion": inclusion, "groups": groups, **params}
            return self._fit_source(source, memory)
        if groups is not None and estimators.takes_groups(self.estimator):
            params = {**params, "groups": groups}
        return self._fit(self._table(X, y, inclusion, params, groups))

    def _fit(self, table: ClassTable, n_held: int | None = None) -> Self:
        """Split rows, fit the estimator to some, and keep each promise by others.

        These are repeated until they are `n_held`, where a forecast is asked for.
        """
        rng = generator(self.random_state)
        table = self._split(table, rng)
        self.training_index_, self.calibration_index_ = table.fitted, table.held
        if n_held is not None:
            table = replace(table, held=np.resize(table.held, n_held))
        if self._words.columns:
            frozen = isinstance(self.estimator, FrozenEstimator)
            X = table.X if frozen else take_rows(table.X, table.fitted)
            self._words = self._words.seen_in(X)
            warn_of_unseen_words(self._words, take_rows(table.X, table.held))
        estimator = self.estimator
        if estimator is None:
            estimator = estimators.default_estimator(table, table.fitted)
        self._learn(table, estimator, rng)
        return self

    def _fit_source(self, source: LabelledSource, memory: dict[str, Any]) -> Self:
        """The same for rows that are read block by block."""
        refuse_source(self, source, IN_MEMORY)
        return self

    def _promise(
        self,
        table: ClassTable,
        alpha: float,
        delta: float,
        held: IntArray,
        position: int = 0,
        **more: Any,
    ) -> Promise:
        """A promise about a class's error, by its rows among some that calibrate."""
        known = np.union1d(table.fitted, table.chosen)
        rows, training = (table.rows_of(position, part) for part in (held, known))
        model, design = table.reasons(position, rows)
        if design is not None and table.drawn is not None:
            design = table.drawn.besides(rows, training)
        return Promise(
            label=table.labels[position],
            alpha=alpha,
            delta=delta,
            rule=self.rule,
            odds_factor=self.odds_factor,
            held=rows,
            training=training,
            model=model,
            design=design,
            **{"wrong": table.labels[1], "on_infeasible": self.on_infeasible, **more},
        )

    def _forget(self) -> None:
        """Rows of an earlier fit are no longer those that this one is about."""
        indices = ("calibration_index_", "training_index_", "_calibrating")
        for name in (*indices, "_sign", "_positions", "_words"):
            self.__dict__.pop(name, None)

    def _table(
        self,
        X: Any,
        y: ArrayLike | None,
        inclusion: ArrayLike | None,
        params: dict[str, Any],
        units: ArrayLike | None = None,
    ) -> ClassTable:
        """Rows and labels, and why values are missing."""
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but "
                "the target y is None."
            )
        X = self._read(X, reset=True)
        y = reading.read_labels(on_host(y), X)
        labels = self._labels(y)
        codes = np.array([labels.index(label) for label in self.classes_.tolist()])
        codes = codes[np.searchsorted(self.classes_, y)]
        if get_config()["enable_metadata_routing"] and self.estimator is not None:
            params = process_routing(self, "fit", **params).estimator.fit
        models, drawn = self._models((X, y)), None
        if inclusion is not None:
            inclusion = np.asarray(inclusion, dtype=np.float64)
            inclusion = inclusion if inclusion.ndim == 1 else self._used(inclusion)
            drawn = self._drawn(inclusion, X, y)
        members = None if units is None else read_units(units, X)
        how = self.deployment, inclusion, drawn, params
        return ClassTable(X, codes, labels, models, *how, members)

    def _drawn(self, inclusion: ArrayLike, X: Any, y: Any) -> RowInclusion:
        """The draw by which rows are there."""
        if self.deployment != "complete":
            raise ValueError(
                "inclusion is for deployment='complete': rows as they are observed are "
                "calibrated as they are. Leave it out, and the answers too."
            )
        return RowInclusion.of(inclusion, estimators.complete_mask(X), X.shape[1], y)

    def _models(
        self, rows: tuple[Any, Any] | None = None, *, every: bool = False
    ) -> Mapping[Any, Missingness] | None:
        """The models by label: the classifier's own, or the estimator's.

        Of the columns that are used, or of every one. A model by itself is for the
        class that has blanks, by the rows and labels of a fit.
        """
        missingness = self._given_missingness()
        if isinstance(missingness, str):
            raise ValueError(
                f"missingness={missingness!r} can't be certified: complete cases don't "
                "stand for complete rows. Give the controlled class's model, or use "
                "deployment='as-observed', and set it in the estimator alone."
            )
        if isinstance(missingness, Missingness):
            if rows is not None:
                blank, among = ~estimators.complete_mask(rows[0]), self.classes_
                (self._lossy,) = check_missingness(
                    missingness, among, rows[1], lambda: blank
                )
            missingness = {self._lossy: missingness}
        check_missingness(missingness, self.classes_)
        if missingness is None:
            return None
        names, width = getattr(self, "feature_names_in_", None), self.n_features_in_
        models = {
            k: phi.bound(names) for k, phi in missingness.items() if phi is not None
        }
        if every or self._positions is None:
            return models
        some = self._positions
        return {k: phi.some_columns(some, width) for k, phi in models.items()}

    def _given_missingness(self) -> Any:
        """The classifier's own parameter, or the estimator's."""
        if self.missingness is not None or self.estimator is None:
            return self.missingness
        given = estimators.missingness_parameters(self.estimator).values()
        models = (Mapping, Missingness)
        return next((value for value in given if isinstance(value, models)), None)

    def _read(self, X: Any, *, reset: bool = False, every: bool = False) -> Any:
        """Rows of an array or dataframe as they are, in the columns that are used."""
        framed = reading.as_frame(X) is not None
        given = X if framed else on_host(X)
        plain = isinstance(given, np.ndarray) and given.dtype in reading.FLOATS
        if not (plain or framed or issparse(given)):
            given = reading.as_array(given)
            plain = given.dtype in reading.FLOATS
        kind = reading.FLOATS if plain else None
        table = reading.read_table(
            self, given, reset=reset, keep_frame=True, dtype=kind
        )
        if isinstance(table, np.ndarray) and table.dtype.kind == "f":
            reading.check_no_infinity(table)
        if reset and not isinstance(self.columns, str):
            self._positions = read_columns(self.columns, self._every_name.tolist())
        if reset and not plain:
            as_levels = self.estimator is None or self._given_missingness() is not None
            self._words = reading.WordColumns.of(table, as_levels=as_levels)
        elif self._words.columns:
            warn_of_unseen_words(self._words, table)
        table = table if plain else self._words.read(table)
        return table if every else self._used(table)

    def _scorable(self, X: Any) -> BoolArray:
        """Rows without a word that the estimator wasn't fitted to."""
        scorable = np.ones(X.shape[0], dtype=bool)
        for words in self._words.unseen(X).values():
            scorable &= np.array([word is None for word in words], dtype=bool)
        return scorable

    @property
    def _every_name(self) -> Any:
        """Names, or positions, of all columns."""
        return getattr(self, "feature_names_in_", np.arange(self.n_features_in_))

    def _used(self, X: Any) -> Any:
        """The columns that are used."""
        return X if self._positions is None else some_columns(X, self._positions)

    def _check_parameters(self) -> None:
        """Refuse what can't be fitted, or isn't among the choices."""
        given = LogisticRegression() if self.estimator is None else self.estimator
        if isinstance(given, type) or not hasattr(given, "fit"):
            what = repr(given)
            if isinstance(given, type):
                what = f"the class {given.__name__}; write {given.__name__}()"
            raise TypeError(
                "estimator must be a density ratio or a classifier, such as KLIEP() or "
                f"LogisticRegression(): got {what}."
            )
        check_choice("deployment", self.deployment, ("complete", "as-observed"))
        check_choice("on_infeasible", self.on_infeasible, ("raise", "reject_all"))
        if isinstance(self.columns, str):
            check_choice("columns", self.columns, ("all", "auto"))
        if not isinstance(self.alpha, Mapping | None):
            check_levels(self.alpha, self.delta)
        part, factor = self.missingness_delta, self.odds_factor
        if part is not None:
            check_number("missingness_delta", part)
            if not 0.0 < part < self.delta:
                raise ValueError(
                    "missingness_delta is a part of delta, so it must lie strictly "
                    f"between 0 and {self.delta}: got {part}."
                )
        check_number("odds_factor", factor)
        if not 1.0 <= factor < np.inf:
            raise ValueError(
                f"odds_factor must be 1 or more, and finite: got {factor}."
            )

    def get_metadata_routing(self) -> MetadataRouter:
        """Fit parameters go to the estimator.

        Returns
        -------
        MetadataRouter
            What is handed on to the estimator.
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        if self.estimator is None:
            return router
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return router.add(estimator=self.estimator, method_mapping=mapping)

    def row_weights(self, X: Any, y: ArrayLike) -> FloatArray | None:
        """Weights with which to measure errors on complete rows.

        Under deployment "complete" a row that has lost a value always gets the
        controlled class, so errors among all rows say nothing about complete rows.
        Errors among the complete ones do, with the weights 1/(1 − φ) of their class.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)

        Returns
        -------
        ndarray of shape (n_rows,), or None
            0 for a row that has lost a value; None where all rows count the same.

        Raises
        ------
        ValueError
            Where rows have lost values and their class has no model.
        """
        check_is_fitted(self, "certificate_")
        X = self._read(X)
        whole = estimators.complete_mask(X)
        if self.deployment == "as-observed" or whole.all():
            return None
        codes = np.searchsorted(self.classes_, known_labels(y, X, self.classes_))
        models, labels = self._models(), self.classes_.tolist()
        table = ClassTable(X, codes, labels, models, self.deployment)
        weights = np.ones(len(codes))
        for position in range(len(labels)):
            index = table.rows_of(position)
            # A class that has lost nothing here was brought complete.
            if not whole[index].all():
                weights[index] = table.weights(position, index)
        return weights

    def __sklearn_tags__(self) -> Any:
        """NaN where the estimator takes it, or there is a model for it; classes."""
        tags = super().__sklearn_tags__()
        allowed = self.deployment == "as-observed"
        if self.estimator is not None:
            allowed = get_tags(self.estimator).input_tags.allow_nan
        tags.input_tags.allow_nan = allowed or self.missingness is not None
        tags.classifier_tags.multi_class = isinstance(self.alpha, Mapping)
        return tags
