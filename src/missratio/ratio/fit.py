"""Joint fits: from two classes' rows to a problem, its penalties, and its solution."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import narwhals.stable.v2 as nw
import numpy as np

from missratio import exceptions
from missratio import rows as class_rows
from missratio import tensor as device
from missratio._base.blocks import unmasked
from missratio._base.hints import check_choice, listed
from missratio._base.reading import column_names, read_table
from missratio._base.threads import one_blas_thread
from missratio._base.typing import BoolArray, FloatArray
from missratio.basis import LinearBasis
from missratio.exceptions import DataError, Message, Remedy
from missratio.objective import KLIEPObjective, Objective, objective_faults
from missratio.ratio import base, means
from missratio.ratio import problem as posing
from missratio.ratio.base import BaseRatio, MissingnessParameter, Two
from missratio.ratio.problem import PenaltyUnits, RatioProblem, Strength
from missratio.ratio.solve import solve
from missratio.rows import ClassRows, Normalization, RowBlock, WeightSums, only_columns
from missratio.solver import Status

Direction = Literal["auto", "forward", "reverse"]
Pairs = bool | Literal["auto"]
PenaltyWeights = Literal["uniform", "standard-error", "covariance"]
SIGN = {"forward": 1.0, "reverse": -1.0}


def check_penalty(strength: Any, n_features: int, name: str = "l2") -> FloatArray:
    """A penalty's strength for each basis feature."""
    try:
        penalty = np.asarray(strength, dtype=np.float64)
        penalty = np.broadcast_to(penalty, (n_features,)).copy()
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be a number, or one for each of the {n_features} basis "
            f"features; got {strength!r}."
        ) from error
    if not (np.isfinite(penalty) & (penalty >= 0.0)).all():
        raise ValueError(f"{name} must be finite and not negative, got {strength!r}.")
    return penalty


def penalty_units(
    penalty_weights: PenaltyWeights,
    rows: ClassRows,
    required: BoolArray,
    problem: RatioProblem,
) -> PenaltyUnits:
    """What a penalty of strength one is.

    Ones, or the sampling error of the numerator's weighted means of the features.
    """
    if penalty_weights == "uniform":
        return None, None
    sums, covariance = mean_covariance(rows, required)
    variance, size = np.diagonal(covariance), sums.kish
    _, denominator_variance = problem.at_one()
    constant = denominator_variance == 0.0
    spread = np.where(constant, size * variance, denominator_variance)
    spread[spread == 0.0] = 1.0
    # A feature that doesn't vary in the numerator has a standard error of zero, and
    # its penalty would vanish with it. So one row more is reckoned with, a denominator
    # standard deviation away. One that doesn't vary in the denominator could be tilted
    # there by any amount, and stays at zero: 1e8 times its variance leaves nothing of
    # its coefficient.
    trace = spread * np.where(constant, 1e8, 1.0 / size**2)
    standard_error = np.sqrt(variance + trace)
    if penalty_weights == "covariance":
        return standard_error, covariance + np.diag(trace)
    return standard_error, standard_error**2


def mean_covariance(
    rows: ClassRows, required: BoolArray
) -> tuple[WeightSums, FloatArray]:
    """The sums of a class's weights, and the sampling covariance of its means.

    A weighted mean is a sum over rows: of w(f − mean)/Σw under Hájek's normalisation,
    of (wf − mean)/n under Horvitz and Thompson's. The covariance is estimated by the
    sum of the products of these terms, each feature with its own weights. Adjusted
    terms are summed up as they are.
    """
    columns = only_columns(required)
    sums = rows.feature_sums(columns)
    mean, divisor = posing.weighted_means(rows, sums)[0], rows.divisor(sums.mass)

    def work(block: RowBlock) -> FloatArray:
        """The products of what rows add to the errors of the means."""
        counts: Any = block.sample_weight
        counts = 1.0 if counts is None else counts[:, None]
        if rows.adjusted is not None:
            change = counts * (rows.adjusted[block.place] - mean)
            change /= rows.sample_weight_total
        else:
            weights = posing.feature_weights(rows, block, columns)
            values = np.where(counts * weights > 0.0, block.features, mean)
            part = weights * mean if rows.self_normalised else mean
            change = counts * (weights * values - part) / divisor
        return np.asarray(change.T @ change)

    return sums, rows.fold(work, lambda parts: np.sum(parts, axis=0))


CHOICES = {
    "normalize": get_args(Normalization),
    "solver": get_args(base.SolverName),
    "direction": get_args(Direction),
    "pairs": ("auto", True, False),
    "penalty_weights": get_args(PenaltyWeights),
}


def check_parameters(estimator: Any) -> None:
    """Refuse parameters of a joint fit that have no meaning."""
    for name, choices in CHOICES.items():
        check_choice(name, getattr(estimator, name), choices)
    regression = estimator.normalize == "regression"
    if regression and not estimator._objective().linear_numerator:
        raise ValueError(
            "normalize='regression' is for objectives in which the numerator enters "
            f"through means, as KLIEP's; got {estimator!r}. Use 'hajek' or "
            "'horvitz-thompson'."
        )
    if not estimator.tol > 0.0 or not estimator.max_iter >= 1:
        raise ValueError(
            f"tol must be above 0 and max_iter at least 1, got {estimator.tol!r} and "
            f"{estimator.max_iter!r}."
        )


def check_joint(estimator: Any) -> None:
    """Refuse what is no joint fit by an objective."""
    if not isinstance(estimator, JointRatio):
        raise TypeError(
            "estimator must be a KLIEP, FDivergenceRatio or ObjectiveRatio, got "
            f"{estimator!r}."
        )


def stack_samples(X1: Any, X0: Any) -> tuple[Any, Any]:
    """Two tables as one labelled table."""
    check_columns(X1, X0)
    frames = [nw.from_native(X, eager_only=True, pass_through=True) for X in (X1, X0)]
    labels = np.repeat([1, 0], [len(X1), len(X0)])
    if all(isinstance(frame, nw.DataFrame) for frame in frames):
        return nw.concat(frames, how="vertical").to_native(), labels
    return np.concatenate([np.asarray(unmasked(X)) for X in (X1, X0)]), labels


def check_columns(X1: Any, X0: Any) -> None:
    """Refuse tables of different columns: other names, another order or number."""
    ours, others = column_names(X1), column_names(X0)
    if ours is not None and others is not None and ours != others:
        raise ValueError(
            f"X1 has the columns {listed(ours, 5)} and X0 has {listed(others, 5)}: "
            "both samples must have the same columns, in the same order."
        )
    shapes = np.shape(X1), np.shape(X0)
    if len(shapes[0]) == len(shapes[1]) == 2 and shapes[0][1] != shapes[1][1]:
        raise ValueError(
            f"X1 has {shapes[0][1]} columns and X0 has {shapes[1][1]}: both samples "
            "must have the same columns."
        )


class LinearRatio(BaseRatio):
    """A ratio whose score is θᵀf(z) + intercept, fitted to one objective.

    All features are one problem, or, where `_apart` says so, those of each column one
    of a batch. Everything else (missingness, basis, penalty, solver) is the same.
    """

    # Where a subclass has no such parameters.
    l1: Any = 0.0
    l2: Any = 0.0
    direction: Direction = "forward"
    pairs_used_: bool = False
    # Whether KLIEP's objective took the place of the one chosen.
    _by_means: bool = False
    direction_: str

    def _oriented(self, two: Two[ClassRows]) -> Two[ClassRows]:
        """The class under the exponent last; means of the other as it is normalised."""
        if self.direction_ == "reverse":
            two = Two(two.denominator, two.numerator)
        required = self.basis_.required_columns_
        return two._replace(numerator=means.adjust(two.numerator, required))

    def _rows_elsewhere(
        self, X: Any, y: Any, **not_taken: Any
    ) -> Two[ClassRows] | None:
        labelled, settings = class_rows.as_source(X, y), self._settings()
        tensor = device.on_device(X)
        host = self._apart or settings._needs_memory or not self._is_linear()
        host = host or type(settings._objective()) is not KLIEPObjective
        if labelled is None and (tensor is None or host):
            # Other bases and objectives, folds, and columns one by one are worked out
            # on the host.
            return None
        if settings._needs_memory:
            remedy = "Choose the penalty on some rows in memory, and fit all of them by"
            class_rows.refuse_source(self, X, f"{remedy} KLIEP(l1=…, l2=…).")
        if settings.normalize == "regression":
            not_taken["normalize='regression'"] = True
        for name, value in not_taken.items():
            if value is not None:
                raise ValueError(
                    f"{name} needs all rows in memory, and these are read block by "
                    "block. Leave it out, or bring the rows into memory."
                )
        how = self._missingness(), settings.normalize
        if labelled is None:
            self.classes_, *two = device.tensor_classes(tensor, y, *how)
            self.missingness_ = class_rows.check_missingness(how[0], self.classes_)
            self.n_features_in_ = int(X.shape[1])
            self.basis_ = LinearBasis.of_columns(self.n_features_in_, None)
            return Two(*two)
        # A first pass over all rows draws some; a basis that isn't linear is fitted to
        # them.
        classes = class_rows.survey(labelled, *how, linear=self._is_linear())
        self.classes_ = np.array(list(classes))
        self.missingness_ = class_rows.check_missingness(how[0], self.classes_)
        self.n_features_in_, names = len(labelled.names), list(labelled.names)
        self.feature_names_in_ = np.array(names, dtype=object)
        sources = Two(*reversed(list(classes.values())))
        if self._is_linear():
            self.basis_ = LinearBasis.of_columns(len(names), self.feature_names_in_)
            return self._weighed(sources)
        drawn = [source.table for source in sources]
        is_numerator = np.repeat([True, False], [len(rows) for rows in drawn])
        framed = partial(nw.from_numpy, schema=names, backend="pyarrow")
        self._fit_basis(framed(np.concatenate(drawn)).to_native(), is_numerator)

        def evaluate(rows: FloatArray) -> FloatArray:
            return self._features(framed(rows).to_native(), rows)

        return self._weighed(sources.map(lambda source: source.with_features(evaluate)))

    def _learn(self, two: Two[ClassRows]) -> None:
        settings, required = self._settings(), self.basis_.required_columns_
        check_parameters(settings)
        with one_blas_thread(min(rows.source.size for rows in two)):
            # 1. The problem, as both classes' rows pose it.
            complete = self._choose_rows(two)
            two = self._oriented(two)
            problem = self._posed(two, complete)
            label, names = two.denominator.label, self.basis_.get_feature_names_out
            # 2. Its penalties.
            weights = settings.penalty_weights
            units = penalty_units(weights, two.numerator, required, problem)
            strength = settings._strength(self, problem, units, two)
            self.standard_error_, self._fitted_strength = units[0], strength
            problem = problem.penalised(units, strength)
            # 3. Features that have no penalty need enough rows, and must vary there.
            penalty = strength[0] + strength[1]
            free = (problem.features >= 0) & (penalty[problem.features] == 0.0)
            n_rows, together = problem.denominator.n_rows, int(free.sum(axis=1).max())
            if together and n_rows <= together:
                raise DataError(
                    Message(
                        "Class {label!r} has {n_rows} observed rows (n_samples = "
                        "{n_rows}) for {n_features} features that are fitted together: "
                        "without a penalty there is no finite optimum.",
                        label=label,
                        remedies=(
                            Remedy.PENALTY,
                            Remedy.FEWER_FEATURES,
                            Remedy.MORE_ROWS,
                        ),
                        facts={"n_rows": n_rows, "n_features": together},
                    )
                )
            constant = free & posing.constant_features(problem.denominator)
            if constant.any():
                places = np.sort(problem.features[constant])
                raise DataError(
                    Message(
                        "Feature(s) [{columns}] are constant over the observed rows of "
                        "class {label!r}: their coefficients are not determined.",
                        label=label,
                        columns=tuple(places.tolist()),
                        names=tuple(str(name) for name in names()[places]),
                        remedies=(Remedy.DROP_COLUMNS, Remedy.PENALTY),
                    )
                )
            # 4. Its solution.
            precision = np.finfo(two.numerator.source.features.dtype).eps
            tol = float(max(settings.tol, 32.0 * precision))
            how: dict[str, Any] = {"solver": settings.solver, "tol": tol}
            solution = solve(problem, max_iter=settings.max_iter, **how)
            sign, theta = SIGN[self.direction_], solution.theta
            intercepts = sign * problem.intercept(solution)
            self.coef_ = sign * problem.gather(theta)
            self._part_intercepts = intercepts
            self.intercept_ = float(intercepts.sum())
            if not np.isfinite(self.coef_).all() or not np.isfinite(intercepts).all():
                raise ValueError(
                    "The features have values so large that their weighted sums "
                    "overflow. Scale the columns, to a standard deviation of about one."
                )
            self.log_normalizer_ = -self.intercept_
            self.n_iter_ = int(solution.n_iter.max())
            converged = solution.status == Status.CONVERGED
            self.converged_ = bool(converged.all())
            if self._apart:
                self.column_log_normalizer_ = -intercepts
                self.column_converged_ = converged
            self.objective_value_ = float(solution.value.sum())
            by_rows = not (self._apart or self.pairs_used_)
            tilts = isinstance(problem.objective, KLIEPObjective) and by_rows
            self.tilt_sample_size_ = problem.tilt_size(theta) if tilts else None
        # 5. Warn of all that it may rest on, or lack.
        assert problem.weight_sums is not None
        linear = problem.objective.linear_numerator
        by_feature = Two(self._apart or linear, self._apart or self.pairs_used_)
        self.effective_sample_size_ = {}
        parts = zip(two, problem.weight_sums, by_feature, strict=True)
        for rows, sums, single in parts:
            needed = only_columns(required) if single else None
            left = class_rows.effective_size(rows, sums)
            self.effective_sample_size_[rows.label] = left
            class_rows.warn_of_weights(rows, sums, needed, names)
        faults = [] if self.converged_ else objective_faults(problem.objective)
        if faults:
            wrong = Message(
                "{objective!r} is written wrongly: {faults}.",
                remedies=("see missratio.objective.check_objective",),
                facts={"objective": problem.objective, "faults": "; ".join(faults)},
            )
            exceptions.warn(exceptions.NotSolvedWarning(wrong))
        elif not self.converged_:
            solved = (solution.status, solution.decrement, solution.n_iter)
            columns = tuple(names()) if self._apart else ()
            base.report_status(type(self).__name__, *solved, columns)
        # Few rows of the class under the exponent decide coefficients that are free:
        # fewer than ten a coefficient, and than a fifth of its rows. For normal classes
        # with 3 columns, each shifted by 1, and 300 rows 22 to 29 are left, and the
        # error was 4 times that of the Jensen-Shannon fit. A penalty holds coefficients
        # back, but where it is weak as well it leaves fewer rows than coefficients.
        most, n_features = self.effective_sample_size_[label].kish, len(self.coef_)
        each = 1.0 if penalty.all() else 10.0
        enough = min(each * (1 + n_features), 0.2 * most)
        size = self.tilt_sample_size_
        if size is None or not self.converged_ or size >= enough:
            return
        message = Message(
            "The coefficients rest on few rows of class {label!r}: weighted by the "
            f"ratio, its rows are worth {size:.0f} (Kish's effective sample size; "
            f"{most:.0f} without the ratio), for {n_features} coefficient(s). Where "
            "classes lie far apart KLIEP is biased and noisy.",
            label=label,
            remedies=(
                "take FDivergenceRatio('js'), which uses the rows of both classes",
                "add a ridge penalty (l2=0.01 is a start)",
                "bring more rows",
            ),
        )
        exceptions.warn(exceptions.SmallSampleWarning(message))

    def _posed(
        self, two: Two[ClassRows], complete: tuple[ClassRows, WeightSums] | None = None
    ) -> RatioProblem:
        """The problem that oriented rows pose, without penalties."""
        settings = self._settings()
        objective = KLIEPObjective() if self._by_means else settings._objective()
        return posing.pose(self, objective, two, complete)

    def _choose_rows(self, two: Two[ClassRows]) -> tuple[ClassRows, WeightSums] | None:
        """Choose the class under the exponent, and give its complete rows.

        It is the numerator where the denominator has fewer complete rows than any of
        its columns has values, and fewer than the numerator, counted after Kish. Pairs
        of columns do without complete rows: as many as there are columns can't tell
        the columns apart, and a few times as many tell less than pairs do.
        """
        settings, required = self._settings(), self.basis_.required_columns_
        columns, n_columns = only_columns(required), required.shape[1]
        self.pairs_used_ = settings.pairs is True and not self._apart
        direction, self._by_means = settings.direction, self.pairs_used_
        by_choice = settings.pairs == "auto" and columns.ndim == 1

        def few(rows: ClassRows, sums: WeightSums) -> bool:
            # Fewer than ten for each column, and than half of all rows, leave a joint
            # fit more noise than pairs do.
            most = min(10.0 * n_columns, 0.5 * rows.source.n_rows)
            return rows.by_entry and float(sums.kish[0]) <= most

        # 1. Whether the objective counts rows of both classes, and few are complete.
        if by_choice and not (self._apart or settings._objective().linear_numerator):
            lossy_rows = [rows for rows in two if rows.by_entry]
            every = ((rows, rows.complete()[1]) for rows in lossy_rows)
            if short := [sums.kish[0] for rows, sums in every if few(rows, sums)]:
                self._by_means, direction = True, "auto"
                for rows in lossy_rows:
                    # What is never observed is refused.
                    rows.feature_sums(columns)
                message = Message(
                    "Complete rows count as few as {size:.0f} would, and the objective "
                    "counts no others: KLIEP's, which takes means over all values, "
                    "took its place.",
                    facts={"size": min(short)},
                    remedies=("set pairs=False to keep it", Remedy.MORE_ROWS),
                )
                exceptions.warn(exceptions.SmallSampleWarning(message))
        self.direction_ = "forward" if direction == "auto" else direction
        if self._apart:
            return None
        # 2. The direction.
        under = two.numerator if self.direction_ == "reverse" else two.denominator
        complete = under.complete()
        lossy = under.by_entry and complete[1].count[0] < under.source.n_rows
        if direction == "auto" and lossy:
            by_feature = under.feature_sums(columns).count
            others = two.numerator.complete()
            gains = complete[1].count[0] < by_feature.min()
            if gains and others[1].kish[0] > complete[1].kish[0]:
                under, complete, self.direction_ = two.numerator, others, "reverse"
        # 3. Whether enough rows are complete.
        sums, size = complete[1], float(complete[1].kish[0])
        if self.pairs_used_ or not under.by_entry:
            return complete
        if by_choice and few(under, sums):
            self.pairs_used_ = True
            done = "The ratio was fitted by pairs of columns, as if it were normal."
            remedies: tuple[str, ...] = ("set pairs=False to use complete rows",)
        elif size <= n_columns:
            done = f"A joint fit needs more than {n_columns}."
            remedies = ("set pairs=True", "use NaiveBayesRatio", "use fewer columns")
        else:
            return complete
        message = Message(
            f"Class {{label!r}} has {int(sums.count[0])} row(s) in which everything is "
            f"observed, of {sums.n_rows}, worth {size:.1f} of equal weight. {done}",
            label=under.label,
            remedies=(*remedies, Remedy.MORE_ROWS),
        )
        if not self.pairs_used_:
            raise DataError(message)
        exceptions.warn(exceptions.SmallSampleWarning(message))
        return complete

    def _log_ratio(self, X: Any) -> FloatArray:
        nan = self._missingness() is not None
        linear, theta = type(self.basis_) is LinearBasis, device.on_host(self.coef_)
        here = self._apart or not linear or isinstance(X, np.ndarray)
        rows = None if here else device.on_device(X)
        if rows is not None:
            scores: FloatArray = device.linear_scores(
                rows, theta, self.intercept_, allow_nan=nan
            )
            return scores
        host = device.on_host(X)
        table = read_table(self, host, reset=False, finite="allow-nan" if nan else True)
        features = table if linear else self._features(host, table)
        return np.asarray(features @ theta + float(self.intercept_))

    def _score_rows(self, two: Two[ClassRows]) -> float:
        problem = self._posed(self._oriented(two))
        coef, sign = device.on_host(self.coef_), SIGN[self.direction_]
        return -problem.value(sign * coef, sign * self._part_intercepts)

    def __getstate__(self) -> dict[str, Any]:
        """What is saved: coefficients on the host, wherever they were learned."""
        state: dict[str, Any] = dict(super().__getstate__())
        if device.is_tensor(state.get("coef_")):
            state["coef_"] = device.on_host(state["coef_"])
        return state


@dataclass(eq=False, repr=False, kw_only=True)
class JointRatio(LinearRatio):
    """A ratio of all columns together; a subclass says by which objective."""

    missingness: MissingnessParameter = None
    normalize: Normalization = "hajek"
    pairs: Pairs = "auto"
    penalty_weights: PenaltyWeights = "uniform"
    solver: base.SolverName = "auto"
    tol: float = 1e-8
    max_iter: int = 100

    # Whether rows that are read block by block are refused.
    _needs_memory = False

    @abstractmethod
    def _objective(self) -> Objective:
        """The objective that the user asks for."""

    def _strength(
        self,
        ratio: LinearRatio,
        problem: RatioProblem,
        units: PenaltyUnits,
        two: Two[ClassRows],
    ) -> Strength:
        """The penalties' strength for each basis feature of a ratio."""
        if self.penalty_weights == "covariance" and np.ndim(self.l2) != 0:
            raise ValueError(
                "l2 must be one number where penalty_weights='covariance', got "
                f"{self.l2!r}. An array goes with 'uniform' or 'standard-error'."
            )
        # Each column has penalties of its own, where columns are apart.
        widths = (problem.features >= 0).sum(axis=1).tolist()
        l1 = [check_penalty(self.l1, width, "l1") for width in widths]
        l2 = [check_penalty(self.l2, width, "l2") for width in widths]
        return np.concatenate(l1), np.concatenate(l2)


@dataclass(eq=False, repr=False, kw_only=True)
class PenalisedRatio(JointRatio):
    """A joint ratio whose penalties are given."""

    l2: Any = 0.0
    l1: Any = 0.0
