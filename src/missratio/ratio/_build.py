"""From two classes' rows to the problem of a joint fit, or of one for each column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from missratio._base.typing import FloatArray, IntArray
from missratio.basis import Basis
from missratio.engine import HELD_ELEMENTS, AnySample, RowSample
from missratio.objective import Objective
from missratio.ratio._parts import JointProblem, Part
from missratio.ratio._problem import RatioProblem, WeightedMean
from missratio.rows import (
    ClassRows,
    KnownWeights,
    MemorySource,
    Unweighted,
    WeightSums,
    only_columns,
    single_sums,
)
from missratio.tensor import TensorSample, TensorSource
from missratio.weights import effective_sample_size


@dataclass(frozen=True, slots=True)
class CompleteRows:
    """A class's complete rows.

    Parameters
    ----------
    rows : ClassRows
        With all that they weigh as their weights; or, if `in_passing`, all rows of the
        class, which are too many to write their weights down.
    sums : WeightSums
        Of the inverse-probability weights.
    total : ndarray of shape (1,)
        What weighted sums are divided by.
    in_passing : bool
    """

    rows: ClassRows
    sums: WeightSums
    total: FloatArray
    in_passing: bool = False

    @classmethod
    def of(cls, rows: ClassRows) -> CompleteRows:
        """Find them, in one pass over the class's rows."""
        if not isinstance(rows.source, MemorySource):
            sums = rows.complete_sums()
            return cls(rows, sums, rows.divisor(sums.mass), in_passing=True)
        weights = None if _seen_in_passing(rows) else rows.whole_row_weights()
        sums = single_sums(weights, rows)
        return cls(rows.complete_rows(weights), sums, rows.divisor(sums.mass))

    def few(self, n_columns: int) -> str | None:
        """Say so where too few are left of a class that loses single values.

        Too few are as many as there are columns, counted after Kish: fewer can't tell
        the columns apart.
        """
        size = float(self.sums.kish[0]) if self.in_passing else float(self.rows.n_rows)
        if size and isinstance(self.rows.weighing, KnownWeights):
            size = float(effective_sample_size(self.rows.weighing.weights))
        if size > n_columns:
            return None
        return (
            f"Class {self.rows.label!r} has {int(self.sums.count[0])} row(s) in which "
            f"everything is observed, of {self.sums.n_rows}, worth {size:.1f} of equal "
            f"weight; a joint fit of {n_columns} column(s) needs more than {n_columns}."
        )

    def sample(self, centre: FloatArray) -> AnySample | TensorSample:
        """As a sample of one problem."""
        if not self.sums.count[0]:
            raise ValueError(
                f"Class {self.rows.label!r} has no row in which everything is observed "
                f"(of {self.sums.n_rows}), and its joint fit needs complete rows. Use "
                "NaiveBayesRatio, fewer columns, or more rows."
            )
        if isinstance(self.rows.source, TensorSource):
            tensors: AnySample = self.rows.source.sample(self.total)  # type: ignore[assignment]
            return tensors
        sample = RowSample(
            self.rows, None, None, self.total, in_passing=self.in_passing
        )
        return _held(sample, centre)


def _seen_in_passing(rows: ClassRows) -> bool:
    """Whether NaN and infinities show in the scores, so that no pass looks for them.

    That saves a tenth of a fit of complete rows.
    """
    source = rows.source
    return (
        source.size > HELD_ELEMENTS
        and source.weights is None
        and source.features is source.table
        and isinstance(rows.weighing, Unweighted)
        and bool(np.isfinite(rows.peek()).all())
    )


def _held(sample: RowSample, centre: FloatArray) -> AnySample:
    """Small samples as a centred copy, large ones read in place."""
    if sample.size <= HELD_ELEMENTS:
        return sample.held(1, centre, single=False)
    return sample


@dataclass(frozen=True, slots=True)
class WeightedMeans:
    """A class's weighted means, feature by feature.

    Parameters
    ----------
    mean, centre : ndarray of shape (n_features,)
        Weighted sums, divided by the class's divisor and by the sum of the weights.
    mass : ndarray of shape (n_features,) or (1,)
        The mean of the weights.
    """

    mean: FloatArray
    centre: FloatArray
    mass: FloatArray


def weighted_means(rows: ClassRows, sums: WeightSums) -> WeightedMeans:
    """ΣWf/ΣW, or ΣWf/n: the means of a class's features, given their sums."""
    # Rounded as the features are, so that both classes are centred alike.
    dtype = rows.source.features.dtype
    if rows.adjusted is not None:
        # Terms of all rows: a fold may do without any in which one is observed.
        mean = np.average(rows.adjusted, axis=0, weights=rows.source.weights)
        centre = mean.astype(dtype).astype(np.float64)
        return WeightedMeans(mean, centre, np.ones(len(mean)))
    totals = sums.sums
    if sums.origin is not None:
        totals = totals + sums.mass * sums.origin.astype(np.float64)
    divisor = rows.divisor(sums.mass)
    centre = (totals / sums.mass).astype(dtype).astype(np.float64)
    return WeightedMeans(totals / divisor, centre, sums.mass / divisor)


def joint_problem(
    objective: Objective,
    numerator: ClassRows,
    denominator: ClassRows,
    basis: Basis,
    complete: CompleteRows | None = None,
) -> JointProblem:
    """One problem in all features, without penalties, on complete denominator rows."""
    sums = numerator.feature_sums(only_columns(basis.required_columns_))
    means = weighted_means(numerator, sums)
    complete = CompleteRows.of(denominator) if complete is None else complete
    centre = means.centre[None]
    sample: AnySample | TensorSample | WeightedMean
    if objective.linear_numerator:
        whole = means.mass if len(means.mass) == 1 else np.ones(1)
        sample = WeightedMean.centred(means.mean[None], whole, centre, objective)
    else:
        own = CompleteRows.of(numerator)
        sample, sums = own.sample(centre), own.sums
    problem = RatioProblem(objective, sample, complete.sample(centre), centre)
    features = np.arange(centre.shape[1])[None]
    return JointProblem((Part(features, problem),), sums, complete.sums)


def separate_problem(
    objective: Objective, numerator: ClassRows, denominator: ClassRows, basis: Basis
) -> JointProblem:
    """One problem for each column: naive Bayes, without penalties.

    Each uses all rows in which its column is observed.
    """
    owner = single_columns(basis)
    sums = [rows.feature_sums(owner) for rows in (numerator, denominator)]
    means = weighted_means(numerator, sums[0])
    mass = np.broadcast_to(means.mass, owner.shape)
    parts = []
    for features in _by_width(owner):
        centre = means.centre[features]
        own: AnySample | WeightedMean
        if objective.linear_numerator:
            share = mass[features[:, 0]]
            own = WeightedMean.centred(means.mean[features], share, centre, objective)
        else:
            own = _column_sample(numerator, sums[0], owner, features, centre)
        other = _column_sample(denominator, sums[1], owner, features, centre)
        parts.append(Part(features, RatioProblem(objective, own, other, centre)))
    return JointProblem(tuple(parts), sums[0], sums[1])


def _column_sample(
    rows: ClassRows,
    sums: WeightSums,
    owner: IntArray,
    features: IntArray,
    centre: FloatArray,
) -> AnySample:
    total = np.broadcast_to(rows.divisor(sums.mass), owner.shape)[features[:, 0]]
    stand_in = rows.some_observed(owner)[features]
    sample = RowSample(rows, features, owner[features[:, 0]], total, stand_in)
    return _held(sample, centre)


def _by_width(owner: IntArray) -> list[IntArray]:
    """Features of columns, an array for the columns that have as many each."""
    own = [np.flatnonzero(owner == column) for column in np.unique(owner)]
    widths = np.array([len(each) for each in own])
    return [
        np.array([each for each in own if len(each) == width])
        for width in np.unique(widths)
    ]


def single_columns(basis: Basis) -> IntArray:
    """The column that each basis feature needs, where it needs no other."""
    required = basis.required_columns_
    several = np.flatnonzero(required.sum(axis=1) != 1)
    if len(several):
        names = [str(name) for name in basis.get_feature_names_out()[several[:10]]]
        raise ValueError(
            "fallback='naive-bayes' needs basis features of one column each, and "
            f"{names} are not. Use a basis without products, or fallback='raise'."
        )
    owner: IntArray = required.argmax(axis=1)
    return owner
