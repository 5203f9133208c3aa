"""Neyman-Pearson classification: one error bounded, over all rows or in each group."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from missratio import threshold as rules
from missratio._base import hints
from missratio._base.blocks import take_rows
from missratio._base.callbacks import with_callbacks_of
from missratio._base.reading import read_labels
from missratio._base.storable import storable
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.classifier import columns as affordable
from missratio.classifier import estimators, reading
from missratio.classifier.base import CertifiedClassifier, few
from missratio.classifier.certificate import Certificate, GroupedCertificate
from missratio.classifier.certify import certify, choose_trust, pilot_size, refuse_open
from missratio.classifier.estimators import ClassTable
from missratio.classifier.promise import Calibration, Promise, Trust, Weighted
from missratio.classifier.reading import read_groups, read_units
from missratio.exceptions import Message, NoCertificateError, Remedy
from missratio.imputation import ImputationEnsemble
from missratio.missingness import Missingness
from missratio.ratio import stack_samples, two_classes
from missratio.rows import LabelledSource
from missratio.tensor import in_library_of, on_host

# Parts of the training rows, each scored by an estimator fitted on the others.
FOLDS = 3
# Rows that such an estimator is fitted to at most: it chooses a rule or a cap, and no
# model. Where a part has as many, that part alone is scored. With imputation and trees
# on 10⁵ rows, the other parts were two fifths of a fit's time.
MOST_REFITTED = 10_000
# Rows of either class a coefficient, with which in-sample scores are as good.
FEW_ROWS = 10
MERGE = ("merge the group with another", Remedy.REJECT_ALL)

Certified = list[tuple[Certificate, Calibration]]


class TwoClassClassifier(CertifiedClassifier):
    """One of two classes is controlled, and some of its rows calibrate."""

    controlled_class: Any
    estimator_: Any
    calibration_: Calibration
    # Which of the rows that `calibrate` got calibrate, where some don't.
    _calibrating: IntArray
    # Of the estimator's scores: −1 where it takes the controlled class for its second.
    _sign: float = 1.0

    def _labels(self, y: Any) -> list[Any]:
        """Note both classes; the controlled one, and the other."""
        self.classes_ = two_classes(y)
        labels: list[Any] = self.classes_.tolist()
        controlled = self.controlled_class
        controlled = labels[0] if controlled is None else controlled
        if controlled not in labels:
            raise ValueError(
                f"controlled_class={controlled!r} is not among the classes {labels}. "
                "Say which of them is to be controlled."
                f"{hints.another_type(controlled, labels)}"
            )
        # As y has it: False is 0 as well.
        place = labels.index(controlled)
        return [labels[place], labels[1 - place]]

    @available_if(lambda self: hasattr(getattr(self, "estimator_", 0), "predict_proba"))
    def predict_proba(self, X: Any) -> FloatArray:
        """The estimator's class probabilities, in which the threshold has no part.

        A row may be given a class that is not the likelier one. Classes count as
        frequent as among the rows that the estimator was fitted to, which are fewer of
        the controlled class; those of a ratio count as equally frequent.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, 2)
            In the order of `classes_`; under deployment "complete" NaN for a row with a
            missing value, so that a curve of such rows is of `decision_function`.
        """
        X = self._read(X)
        shares = estimators.probabilities(self.estimator_, X, self.deployment)
        in_order = self.controlled_class in (None, self.classes_[0])
        return shares if in_order == (self._sign > 0.0) else shares[:, ::-1]

    def score_samples(self, X: Any) -> FloatArray:
        """The estimator's scores, the larger the more like the other class.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
            −∞ for a row that can't be scored: one with a word that the estimator wasn't
            fitted to; under deployment "complete" also one with a missing value, or one
            that goes missing with a probability above the certificate's cap.
        """
        check_is_fitted(self, "certificate_")
        X = self._read(X)
        return self._reach.score(X, self._score(X))

    @property
    def _reach(self) -> Trust:
        """With a cap on weights above which rows get the controlled class, or none."""
        every: Any = getattr(self, "calibrations_", None) or [self.calibration_]
        first: Calibration = every[0]
        return first.trust

    def _score(self, X: Any) -> FloatArray:
        return estimators.raw_scores(
            self.estimator_,
            X,
            self.deployment,
            sign=self._sign,
            unscored=-np.inf,
            among=self._scorable(X) if self._words.columns else None,
        )

    def _given(self, X: Any, above: BoolArray) -> Any:
        """The labels that rows get, the other class's above their threshold."""
        every = getattr(self.certificate_, "certificates", (self.certificate_,))
        labels = [every[0].controlled_class, every[0].other_class]
        every_label = np.array(labels, self.classes_.dtype)
        return in_library_of(X, every_label[above.astype(np.intp)])

    @property
    def columns_(self) -> Any:
        """Names, or positions, of the columns that are used."""
        names = self._every_name
        return names if self._positions is None else names[self._positions]

    def _promises(self, table: ClassTable) -> list[Promise]:
        """What is promised to all rows, or to each group."""
        held, columns, kept = table.held, None, 1.0
        levels = {None: self.alpha} if table.groups is None else self._levels(table)
        if self._positions is not None:
            columns = tuple(self.columns_.tolist())
            model = (self._models(every=True) or {}).get(table.labels[0])
            learned = np.array([e is not None for e in getattr(model, "evidence", ())])
            if learned.any():
                kept = float(learned[self._positions].sum() / learned.sum())
        return [
            self._promise(
                table,
                level,
                self.delta / len(levels),
                held if group is None else held[table.groups[held] == group],
                group=group,
                columns=columns,
                kept=kept,
                missingness_delta=self.missingness_delta,
                remedies=MERGE[group is None :],
            )
            for group, level in levels.items()
        ]

    def _split(self, table: ClassTable, rng: Generator) -> ClassTable:
        if not isinstance(self.estimator, FrozenEstimator):
            return table.split({0: {"calibration_size": self.calibration_size}}, rng)
        held = table.rows_of(0)
        if table.units is not None:
            held = reading.one_of_each(table.units, held, rng)
        return replace(table, fitted=table.rows_of(1), held=held)

    def _learn(self, table: ClassTable, estimator: Any, rng: Generator) -> None:
        if any(model.learned for model in (table.models or {}).values()):
            for promise in self._promises(table):
                refuse_open(promise, take_rows(table.X, promise.held))
        handed = with_callbacks_of(self, estimator)
        self.estimator_ = table.fit_one(handed, table.fitted)
        self._certify(table, rng, estimator)

    def _certify(self, table: ClassTable, rng: Generator, refit: Any = None) -> None:
        """Certify a threshold for each promise.

        Training rows may be scored by clones of `refit` that were not fitted to them.
        """
        promises, others = self._promises(table), table.rows_of(1, table.fitted)
        # 1. Scores of all rows that thresholds, rules and caps are chosen by.
        values = self._values(table, refit, promises[0].model is not None)
        # 2. What weights are taken for: of all groups the same.
        others = others[~np.isnan(values[others])]
        strictest = min(promise.alpha for promise in promises)
        every = replace(promises[0], alpha=strictest, held=table.held)
        chosen, _ = choose_trust(every, table, values, others if len(others) else None)
        # 3. A threshold for each promise.
        certified = [
            certify(promise, table, values, self._score, rng, chosen)
            for promise in promises
        ]
        self._keep(certified, table, values)

    @abstractmethod
    def _keep(self, pairs: Certified, table: ClassTable, values: FloatArray) -> None:
        """Note what was certified, and warn where that is worth little."""

    def _values(self, table: ClassTable, refit: Any, weighted: bool) -> FloatArray:
        """Scores of all rows that thresholds, rules and caps are chosen by; else NaN.

        Where the estimator may know the rows that it was fitted on by heart, these are
        scored by others, each fitted to some of them: clones of `refit`, or none. It
        doesn't, where it has few coefficients for so many rows of each class, and they
        can't be, where a part of the rows is too few to fit on. Of very many, some.
        """
        fitted, values = self.estimator_, np.full(len(table.codes), np.nan)
        held, known = table.held, table.fitted
        shown = known if weighted else few(table.rows_of(1, known))
        index = np.concatenate([held, shown])
        if hasattr(fitted, "winner_"):
            # A search has chosen, and its winner alone is fitted again.
            refit, fitted = fitted.winner_, fitted.estimator_
        if isinstance(fitted, ImputationEnsemble):
            fitted = fitted.estimators_[0]
            if refit is not None:
                # One imputation is enough to choose by.
                refit = clone(refit).set_params(imputer__n_imputations=1)
        last = getattr(fitted, "best_estimator_", fitted)
        last = last[-1] if isinstance(last, Pipeline) else last
        coef, units = getattr(last, "coef_", None), table.units
        least = np.bincount(table.codes[known], minlength=2).min()
        if (
            not weighted
            or refit is None
            or (coef is not None and np.size(coef) * FEW_ROWS <= least)
        ):
            values[index] = self._score(take_rows(table.X, index))
            return values
        splitter = StratifiedKFold if units is None else StratifiedGroupKFold
        parts = splitter(FOLDS, shuffle=True, random_state=0)
        members, order = None if units is None else units[known], hints.generator(0)
        n_scored = 1 if len(known) >= FOLDS * MOST_REFITTED else FOLDS
        # What there is to say was said of the fit to all of these rows.
        with warnings.catch_warnings(action="ignore"):
            try:
                pairs = parts.split(known, table.codes[known], members)
                for rest, part in islice(pairs, n_scored):
                    rest = order.permutation(rest)[:MOST_REFITTED]
                    again = table.fit_one(refit, np.sort(known[rest]))
                    values[known[part]] = estimators.raw_scores(
                        again,
                        take_rows(table.X, known[part]),
                        self.deployment,
                        unscored=-np.inf,
                    )
                index = held
            except ValueError:
                pass
        values[index] = self._score(take_rows(table.X, index))
        return values


@storable()
@dataclass(eq=False, repr=False)
class NeymanPearsonClassifier(TwoClassClassifier):
    """A classifier whose error on one class is at most α with probability 1 − δ.

    It splits the rows of the controlled class in two. On the first part, and on the
    rows of the other class, it fits an estimator: a density ratio or any scikit-learn
    classifier. On the second part, the calibration rows, it chooses a threshold. Rows
    that score above it are classified as the other class (Neyman-Pearson
    classification; the paper's Algorithms 1 and 2). The guarantee holds for any
    estimator, good or bad.

    Parameters
    ----------
    estimator : estimator or None, default=None
        With `decision_function` or `predict_proba`. It is fitted with labels 0, the
        controlled class, and 1, the other. A `FrozenEstimator` is calibrated as it is,
        by all rows of the controlled class. None is a logistic fit on standardised
        columns (the Jensen-Shannon ratio) with a penalty by cross-validation; after
        imputation by φ where that is given for single values, or by means with
        indicators of what is missing where rows are scored as they are observed.
    alpha : float, default=0.05
        Bound on the error on the controlled class.
    delta : float, default=0.05
        Probability that the bound may fail, over the draw of the calibration rows.
    missingness : mapping from class to Missingness, Missingness or None, default=None
        Why values are missing; a model by itself is that of the class that has blanks,
        where there is one. The model of the controlled class weights calibration
        rows; all of them reach a parameter `missingness` of the estimator, or of one
        inside it, that is None. An estimator without such a parameter that takes no
        NaN gets complete rows, with weights as `sample_weight`. None takes the
        estimator's own.
    rule : str or Rule, default="auto"
        "binomial" for complete rows; "paper", "bernstein", "thinning", "counting",
        "betting", "flipped-betting" or "tuned-betting" for rows missing not at random;
        "auto" chooses by φ, the number of rows, and training rows. Or your own
        `missratio.threshold.Rule`.
    deployment : {"complete", "as-observed"}, default="complete"
        Rows to be classified are complete, and one with a missing value gets the
        controlled class; or they lose values as the calibration rows did, and are
        scored as they are by an estimator that takes NaN. The latter needs no φ.
    calibration_size : float or int, default=0.5
        Share or number of the controlled class's rows to calibrate with; of its units,
        where `fit` gets groups.
    controlled_class : object, default=0
        The label whose error is bounded; None for the one sorted first.
    on_infeasible : {"raise", "reject_all"}, default="raise"
        What to do if no threshold can be certified: raise an error, or classify every
        row as the controlled class.
    random_state : int, Generator or None, default=None
        For the split, and for rules that draw.
    missingness_delta : float or None, default=None
        For a learned φ of the controlled class: the part of `delta` for the event that
        φ is outside its band; the rest is for the rule. None is half of it.
    odds_factor : float, default=1.0
        The guarantee holds even if the odds of being missing are wrong by up to this
        factor, either way.
    columns : "all", "auto" or list, default="all"
        Names or positions of the columns to use. A row counts as complete where these
        are observed: where many columns lose values, few rows are complete in all.
        "auto" takes those with which the certificate promises most power, by training
        rows, where the controlled class has a φ and each φ is one of single values;
        else all.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    threshold_ : float
        On the scale of the estimator's scores.
    certificate_ : Certificate
        What is guaranteed, and under which assumptions.
    calibration_ : Calibration
        What the threshold was chosen from: `calibration_.select(alphas)` chooses it at
        other levels.
    columns_ : ndarray
        Names, or positions, of the columns that are used.
    classes_ : ndarray of shape (2,)
    calibration_index_ : ndarray of int
        Rows that the threshold was chosen with. Only after `fit`.
    training_index_ : ndarray of int
        Rows that the estimator was fitted on. Only after `fit`.
    n_features_in_ : int
    feature_names_in_ : ndarray

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (600, 2)), rng.normal(1, 1, (600, 2))])
    >>> y = np.repeat([0, 1], 600)
    >>> clf = mr.NeymanPearsonClassifier(mr.KLIEP(), alpha=0.1, random_state=0)
    >>> clf = clf.fit(X, y)
    >>> clf.certificate_.rule, clf.certificate_.error_bound <= 0.1
    ('binomial', True)
    """

    estimator: Any = None
    alpha: float = 0.05
    delta: float = 0.05
    missingness: Mapping[Any, Missingness] | Missingness | None = None
    rule: str | rules.Rule = "auto"
    deployment: Literal["complete", "as-observed"] = "complete"
    calibration_size: float = 0.5
    controlled_class: Any = 0
    on_infeasible: Literal["raise", "reject_all"] = "raise"
    random_state: Any = None
    missingness_delta: float | None = None
    odds_factor: float = 1.0
    columns: Any = "all"

    def _learn(self, table: ClassTable, estimator: Any, rng: Generator) -> None:
        held = table.held
        if isinstance(estimator, FrozenEstimator):
            self.training_index_ = held[:0]
            self.calibration_index_ = self._calibrate(table, rng)
            return
        # 1. The columns that promise most.
        model, _ = table.reasons(0, held)
        known = [] if model is None else (table.models or {}).values()
        apart = [not phi.rowwise and phi.groups is None for phi in known]
        single = bool(apart) and all(apart)
        if single and isinstance(self.columns, str) and self.columns == "auto":
            (promise,) = self._promises(table)
            # The default takes words by the names of their columns.
            named = self.estimator is None and self._words.columns
            tried = None if named else estimator
            best = affordable.affordable_columns(table, promise, tried)
            self._positions, estimator = best[0], tried
            table = affordable.narrowed_table(table, self._positions)
        if self._positions is not None:
            estimator = affordable.narrowed_estimator(
                estimator, self._positions, self._every_name, table
            )
        # 2. The threshold; where too few rows are complete, ways out are named.
        try:
            super()._learn(table, estimator, rng)
        except ValueError as error:
            complete = table.complete[held]
            foreign = type(error) not in (ValueError, NoCertificateError)
            # With fewer complete rows among those that calibrate, ways out are named.
            if foreign or not (single and complete.mean() <= 0.1):
                raise
            message = getattr(error, "message", None) or Message.plain(str(error))
            ways = self._ways_out(message, table, estimator, complete)
            raise NoCertificateError(ways) from error

    def _ways_out(
        self, message: Message, table: ClassTable, estimator: Any, complete: BoolArray
    ) -> Message:
        """What to do where few rows are complete, with the power to expect of it."""
        (promise,) = self._promises(table)
        n_held, lost, remedies = len(complete), int((~complete).sum()), []
        facts: dict[str, Any] = {"n_held": n_held, "n_complete": n_held - lost}
        if isinstance(self.columns, str) and self.columns == "all":
            # A search would be made again for each number of columns.
            candidates = getattr(estimator, "candidates", {"": estimator})
            estimator = next(iter(candidates.values()))
            positions, facts["power"] = affordable.affordable_columns(
                table, promise, estimator
            )
            facts["asked"] = self.columns_[positions].tolist()
            remedies.append(
                "use fewer columns (columns='auto', or columns={asked}: expected power "
                "{power:.2f})"
            )
        observed = replace(table, deployment="as-observed", models=None, drawn=None)
        simple = estimators.default_estimator(observed, table.fitted)
        power = affordable.affordable_power(observed, promise, simple)
        remedies.append(
            "classify rows as they come, blanks included (deployment='as-observed': "
            f"expected power {power:.2f}, and φ isn't needed)"
        )
        seen = np.zeros(n_held - lost)
        lookups = rules.LookUps(seen.astype(np.intp), np.array([lost]))
        sample = rules.CalibrationSample(seen, None, n_held, 1.0, lookups=lookups)
        needed = rules.fewest_look_ups(sample, self.alpha, self.delta)
        if needed is not None:
            remedies.append(
                f"look up {needed} or more of the {lost} incomplete calibration rows, "
                "drawn at random, and several times that for power (plan_queries, "
                "revealed.fill and inclusion=)"
            )
        return replace(
            message,
            claim="{n_complete} of {n_held} calibration rows are complete. "
            + message.claim,
            remedies=tuple(remedies),
            facts={**message.facts, **facts},
        )

    def of_used_columns(self) -> Self:
        """The same classifier, for tables that have the used columns alone.

        Returns
        -------
        NeymanPearsonClassifier
            Itself, where all columns are used.
        """
        if self._positions is None:
            return self
        alone = copy(self)
        alone.columns, alone._positions = "all", None
        alone.missingness, alone.n_features_in_ = self._models(), len(self._positions)
        if self.estimator is not None:
            alone.estimator = affordable.narrowed_estimator(
                self.estimator, self._positions, self._every_name
            )
        if hasattr(self, "feature_names_in_"):
            alone.feature_names_in_ = self.columns_
        return alone

    def _keep(self, pairs: Certified, table: ClassTable, values: FloatArray) -> None:
        ((self.certificate_, self.calibration_),) = pairs
        self.threshold_ = self.certificate_.threshold
        if not self.certificate_.certified:
            return
        # Does it detect any row of the other class?
        scores, what = values[table.held], ""
        scores = scores[scores > -np.inf]
        others = table.rows_of(1, table.fitted)
        shown = few(others[~np.isnan(values[others])])
        seen = values[shown]
        if len(shown):
            seen = self.calibration_.trust.score(take_rows(table.X, shown), seen)
        if len(scores) and scores.min() == scores.max():
            what = f"all {len(scores)} calibration rows have the same score"
        elif len(seen) and not (seen > self.threshold_).any():
            what = f"none of {len(seen)} rows of the other class scores above it"
        if what:
            warnings.warn(
                f"The threshold {self.threshold_:.6g} is certified, but has no power: "
                f"{what}, so (nearly) every row gets the controlled class. Take an "
                "estimator that tells the classes apart, a larger alpha, or more "
                "calibration rows.",
                reading.NoPowerWarning,
                stacklevel=2,
            )

    def _fit_source(self, source: LabelledSource, memory: dict[str, Any]) -> Self:
        memory |= {} if isinstance(self.columns, str) else {"columns": self.columns}
        if names := [k for k, value in memory.items() if value is not None]:
            raise ValueError(
                f"{sorted(names)} go with a table in memory, and these rows are read "
                "block by block. Leave them out, or bring rows into memory."
            )
        rng = hints.generator(self.random_state)
        rest, labels, incomplete, rows = reading.hold_out(
            source,
            self.controlled_class,
            self.calibration_size,
            int(rng.integers(2**31)),
        )
        labels, sizes = self._labels(np.array(labels)), [len(part) for part in rows]
        codes = np.repeat([0, 0, 1], sizes)
        frame = nw.from_numpy(np.concatenate(rows), source.names, backend="pyarrow")
        X = self._read(frame.to_native(), reset=True)
        models = self._models((X, np.array(labels)[codes])) or {}
        lost = incomplete and self.deployment == "complete"
        if lost and labels[0] not in models:
            raise estimators.unexplained(labels[0])
        held, fitted = np.split(np.arange(len(codes)), sizes[:1])
        table = ClassTable(
            X, codes, labels, models, self.deployment, fitted=fitted, held=held
        )
        self.estimator_ = table.fit_one(with_callbacks_of(self, self.estimator), rest)
        self._certify(table, rng)
        return self

    def calibrate(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        X0_training: Any = None,
        inclusion: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose the threshold for an estimator that is already fitted.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
            Rows of the controlled class that the estimator hasn't seen.
        y : array-like of shape (n_rows,), optional
            Their labels, to be sure: those of another class are refused.
        X0_training : array-like or dataframe, optional
            Other rows of that class, such as those it was fitted on, for rules that
            learn from them, and to choose a cap on weights by. Without them some of X
            do that, a random 15% and at most 200, where φ comes so close to 1 that
            it may pay.
        inclusion : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            Where values of X were looked up, with which probability.
        groups : array-like of shape (n_rows,), optional
            The unit of each row of X. One row of each unit, drawn at random,
            calibrates. The estimator must not have seen a row of these units.

        Returns
        -------
        Self
            The calibrated classifier.
        """
        self._check_parameters()
        try:
            check_is_fitted(self.estimator)
        except (NotFittedError, TypeError) as error:
            raise NotFittedError(
                "calibrate takes an estimator that is fitted already. Fit it first, or "
                "call fit to do both."
            ) from error
        chosen = self._positions
        self._forget()
        labels = self._labels(np.asarray(self.estimator.classes_))
        rows = self._read(X, reset=True, every=True)
        if y is not None:
            of_others = read_labels(on_host(y), rows) != labels[0]
            if of_others.any():
                raise ValueError(
                    f"calibrate takes rows of the controlled class {labels[0]!r} "
                    f"alone: {of_others.sum()} of {len(of_others)} labels are others. "
                    "Leave these rows out, or call fit with a FrozenEstimator."
                )
        if isinstance(self.columns, str) and self.columns == "auto":
            self._positions = chosen
        rows, drawn, self._lossy = self._used(rows), None, labels[0]
        self._words = self._words.seen_in(rows)
        n_rows = rows.shape[0]
        if inclusion is not None:
            drawn = self._drawn(inclusion, rows, np.zeros(n_rows))
        if X0_training is not None and drawn is None:
            others = self._read(X0_training)
            rows, _ = stack_samples(rows, others)
        held, known = np.split(np.arange(rows.shape[0]), [n_rows])
        codes, models = np.zeros(rows.shape[0], np.intp), self._models()
        table = ClassTable(rows, codes, labels, models, self.deployment, drawn=drawn)
        table = replace(table, fitted=known, held=held)
        # Whether losses are explained is a matter of all rows: no seed decides it.
        table.reasons(0, held)
        rng = hints.generator(self.random_state)
        if groups is not None:
            units = read_units(groups, X)
            held = reading.one_of_each(units, held, rng)
            table = replace(table, units=units, held=held)
        held = self._calibrate(table, rng)
        if len(held) < n_rows:
            self._calibrating = held
        return self

    def _calibrate(self, table: ClassTable, rng: Generator) -> IntArray:
        """Certify with the estimator as it is, by the rows that are returned."""
        classes, labels = np.asarray(self.estimator.classes_), table.labels
        if set(classes.tolist()) != set(labels):
            raise ValueError(
                f"The fitted estimator knows the classes {classes.tolist()}, and y has "
                f"{self.classes_.tolist()}. Fit it with the same labels."
            )
        self._sign = 1.0 if classes[0] == labels[0] else -1.0
        self.estimator_ = self.estimator
        # Where it pays, some rows choose a cap, and the rest calibrate.
        (promise,) = self._promises(table)
        if pilots := pilot_size(promise, table.X.shape[1]):
            drawn = rng.permutation(table.held)
            fitted = np.union1d(table.fitted, drawn[:pilots])
            table = replace(table, fitted=fitted, held=np.sort(drawn[pilots:]))
        self._certify(table, rng)
        return table.held

    def calibration_sample(self, X0: Any) -> rules.CalibrationSample:
        """Scored rows of the controlled class, weighted as the certificate does.

        Parameters
        ----------
        X0 : array-like or dataframe of shape (n_rows, n_columns)
            Rows of the controlled class, NaN where a value is missing.

        Returns
        -------
        CalibrationSample
            For `np_roc`, for example.
        """
        check_is_fitted(self, "threshold_")
        X0 = self._read(X0)
        trust = self.calibration_.trust
        band = replace(trust, point=None)
        return Weighted.by(band, X0, self._score(X0)).sample(trust)

    def decision_function(self, X: Any) -> FloatArray:
        """Distance of the score from the threshold, positive for `classes_[1]`.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
            The lowest or highest number there is for a row that can't be scored, or
            where no threshold was certified: such rows get the controlled class.
        """
        scores, limits = self.score_samples(X), np.finfo(np.float64)
        distance = np.full(len(scores), limits.min)
        known = (scores > -np.inf) & (self.threshold_ < np.inf)
        np.subtract(scores, self.threshold_, out=distance, where=known)
        distance = distance.clip(limits.min, limits.max)
        if self.classes_[0] == self.certificate_.controlled_class:
            return distance
        # A score at the threshold itself belongs to the controlled class, here the
        # second: its decision must be above zero.
        return np.where(distance == 0.0, np.finfo(np.float64).tiny, -distance)

    def predict(self, X: Any) -> Any:
        """The other class for rows that score above the threshold.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
            A label for each row.
        """
        return self._given(X, self.score_samples(X) > self.threshold_)


@storable()
@dataclass(eq=False, repr=False)
class GroupedNeymanPearsonClassifier(TwoClassClassifier):
    """A classifier that keeps several promises about one class's error together.

    P(some promise is broken) ≤ δ. Each group's error on the controlled class is at most
    its α, whatever the groups' sizes. Each has a threshold of its own (Mondrian), and
    an equal part of δ.

    Parameters
    ----------
    estimator : estimator or None, default=None
        As for `NeymanPearsonClassifier`.
    alpha : float, default=0.05
        Bound on the error of each group.
    delta : float, default=0.05
        Probability that one or more of the promises may fail.
    group_alpha : mapping from group to float or None, default=None
        Other bounds on the errors of some groups.
    missingness, rule, deployment : as for `NeymanPearsonClassifier`
    calibration_size : float or int, default=0.5
        Share or number of the controlled class's rows to calibrate with.
    controlled_class : object, default=0
    on_infeasible : {"raise", "reject_all"}, default="raise"
        What to do where a group's rows are too few to certify a threshold of its own:
        raise, or give all its rows to the controlled class. The certificate says so.
    random_state : int, Generator or None, default=None
    odds_factor : float, default=1.0
        As for `NeymanPearsonClassifier`.

    Attributes
    ----------
    certificate_ : GroupedCertificate
        `to_frame()` is the table of what each group gets.
    thresholds_ : dict
        By group.
    groups_ : list
        The groups that have a promise.
    calibrations_ : tuple of Calibration
        What each of `certificate_.certificates` was chosen from.
    classes_ : ndarray of shape (2,)
    n_features_in_ : int
    feature_names_in_ : ndarray

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> y, groups = np.repeat([0, 1], 2000), rng.choice(["old", "young"], 4000)
    >>> X = rng.normal(size=(4000, 1)) + 2.0 * y[:, None] + (groups == "old")[:, None]
    >>> clf = mr.GroupedNeymanPearsonClassifier(
    ...     LogisticRegression(), alpha=0.1, random_state=0
    ... ).fit(X, y, groups)
    >>> clf.certificate_.to_frame()[["group", "asked", "certified"]]
       group  asked  certified
    0    old    0.1       True
    1  young    0.1       True
    >>> bool(clf.thresholds_["old"] > clf.thresholds_["young"])
    True
    """

    estimator: Any = None
    alpha: float = 0.05
    delta: float = 0.05
    group_alpha: Mapping[Any, float] | None = None
    missingness: Mapping[Any, Missingness] | Missingness | None = None
    rule: str | rules.Rule = "auto"
    deployment: Literal["complete", "as-observed"] = "complete"
    calibration_size: float = 0.5
    controlled_class: Any = 0
    on_infeasible: Literal["raise", "reject_all"] = "raise"
    random_state: Any = None
    odds_factor: float = 1.0

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: ArrayLike,
        groups: ArrayLike,
        inclusion: ArrayLike | None = None,
    ) -> Self:
        """Fit the estimator, and choose thresholds on rows that it hasn't seen.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
            NaN where a value is missing.
        y, groups : array-like of shape (n_rows,)
            Two labels, the controlled class among them; and the group of each row.
        inclusion : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            Where values were looked up, the probability with which each row or entry is
            there: `X, inclusion = revealed.fill(X)`.

        Returns
        -------
        Self
            The fitted classifier.
        """
        self._check_parameters()
        self._forget()
        table = self._table(X, y, inclusion, {})
        return self._fit(replace(table, groups=read_groups(groups, table.X)))

    def _keep(self, pairs: Certified, table: ClassTable, values: FloatArray) -> None:
        certificates, self.calibrations_ = zip(*pairs, strict=True)
        self.groups_ = list(self._levels(table))
        groups = tuple(self.groups_)
        self.certificate_ = GroupedCertificate(self.delta, certificates, groups)

    def predict(self, X: Any, groups: ArrayLike | None = None) -> Any:
        """The other class for rows that score above their threshold.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
        groups : array-like of shape (n_rows,)
            Rows of a group that has no threshold get the controlled class.

        Returns
        -------
        ndarray of shape (n_rows,)
            A label for each row.
        """
        scores = self.score_samples(X)
        if groups is None:
            raise ValueError(
                "Each group has a threshold of its own: give groups, one for each row."
            )
        members, limits = read_groups(groups, scores).tolist(), self.thresholds_
        reading.warn_of_unknown_groups(members, list(limits))
        known = np.array([limits.get(group, np.inf) for group in members])
        return self._given(X, scores > known)

    def score(
        self, X: Any, y: ArrayLike, groups: Any = None, sample_weight: Any = None
    ) -> float:
        """The share of rows that are given their own label.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
        y, groups : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        float
            The accuracy: `error_scorer` scores what is promised.
        """
        given = on_host(self.predict(X, groups))
        return float(accuracy_score(y, given, sample_weight=sample_weight))

    @property
    def thresholds_(self) -> dict[Any, float]:
        """By group; infinite where none is certified."""
        return dict(self.certificate_.thresholds)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        levels = self.group_alpha
        if levels is not None and not isinstance(levels, Mapping):
            raise TypeError(
                "group_alpha must map groups to the bounds on their errors, such as "
                f"{{'north': 0.05}}: got {levels!r}."
            )
        for level in (levels or {}).values():
            rules.check_levels(level, self.delta)

    def _levels(self, table: ClassTable) -> dict[Any, float]:
        """The bound on the error of each group."""
        groups = sorted(set(table.groups.tolist()), key=str)
        given = dict(self.group_alpha or {})
        for group in given:
            if group not in groups:
                raise ValueError(
                    f"group_alpha names a group {group!r} that no row is in."
                    f"{hints.nearest(group, groups)} There are {hints.listed(groups)}."
                )
        return {group: given.get(group, self.alpha) for group in groups}
