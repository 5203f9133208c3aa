"""Ratios by an objective: KLIEP, f-divergences, any objective; and naive Bayes."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeVar, overload

import numpy as np
from sklearn.base import clone

from missratio import objective as objectives
from missratio._base.reading import read_table
from missratio._base.storable import storable
from missratio.basis import LinearBasis
from missratio.objective import Divergence, KLIEPObjective, Objective
from missratio.ratio import fit
from missratio.ratio.base import BaseRatio, MissingnessParameter, Two
from missratio.rows import MemorySource, check_missingness

_Ratio = TypeVar("_Ratio", bound=BaseRatio)


@storable(finite=("coef_", "intercept_", "log_normalizer_", "column_log_normalizer_"))
@dataclass(eq=False, repr=False)
class KLIEP(fit.PenalisedRatio):
    """Density ratio r̂ = exp(θ̂ᵀf)/N̂ by the KL importance estimation procedure.

    Maximises Ê[θᵀf(Z¹)] − log Ê[exp θᵀf(Z⁰)] − ½ Σ l2 θ² − l1‖θ‖₁, where every Ê is a
    mean over observed rows weighted by 1/(1 − φ): the paper's M-KLIEP. Without a
    missingness model it is plain KLIEP, and with ``missingness="ignore"`` the
    complete-case CC-KLIEP, which is biased where values are missing not at random.

    One class enters through means, each over every row in which the columns that its
    feature needs are observed; no independence between features is assumed. Of the
    other, under the exponent, only complete rows count, with the product of their
    entries' weights. Where the denominator loses single values, log p0/p1 is fitted
    and negated, so that it is the one that enters through means (`direction`); where
    both classes do, pairs of columns take the place of complete rows (`pairs`).

    Parameters
    ----------
    basis : {"linear", "polynomial", "gaussian"}, Basis or transformer, default="linear"
        The features f.
    missingness : mapping from class to Missingness, a Missingness, "ignore" or None
        Why values are missing; a class left out is complete. NaN in a class without a
        model is an error. A model by itself is that of the class that has blanks, where
        there is one. "ignore" drops what is missing.
    normalize : {"hajek", "horvitz-thompson", "regression"}, default="hajek"
        Whether weighted sums are divided by the sum of the weights, or, as printed in
        the paper, by the number of rows with the missing ones included. Hájek's
        doesn't change when f is shifted. "regression" is Hájek's, but for single
        values missing in the numerator: there the means are adjusted by what is known
        of the other columns and of the weights, which makes them less noisy.
    l2 : float or array-like of shape (n_basis_features,), default=0.0
        Ridge penalty ½ Σ l2 θ², in the units that `penalty_weights` says.
    l1 : float or array-like of shape (n_basis_features,), default=0.0
        Penalty l1‖θ‖₁, likewise: it leaves coefficients at zero. At the optimum the
        denominator's tilted mean of each feature is within ±l1 of the numerator's
        weighted mean (and of a ridge's pull, where there is one).
    penalty_weights : {"uniform", "standard-error", "covariance"}, default="uniform"
        What penalties are measured in. "uniform": the coefficients as they are.
        "standard-error": l1 in units of se_j, and l2 of se_j², with se_j the standard
        error of the feature's weighted mean over the numerator class. Noisy features
        are then penalised most, and the scale of a column doesn't matter.
        "covariance": the same l1, and the ridge ½ l2 θᵀΣ̂θ with Σ̂ the sampling
        covariance of all these means, so that the penalty is on the variance of the
        estimated mean score. It is the best of the three for a basis with many
        features. `KLIEPCV` chooses the strength.
    solver : {"auto", "newton", "lbfgs"}, default="auto"
        "auto" is Newton's method on small tables and on files, and L-BFGS from 48
        basis features or 250,000 numbers in memory on; with l1 it is a proximal
        Newton method in any case.
    tol : float, default=1e-8
        The Newton decrement √(gᵀH⁻¹g) at which to stop: the gradient's length in units
        of the objective's own curvature; with l1, the shortest subgradient's.
    max_iter : int, default=100
        Steps of the solver at most (for L-BFGS ten times as many).
    direction : {"auto", "forward", "reverse"}, default="auto"
        Which class is under the exponent, and needs complete rows. "forward" is the
        denominator, as published. "reverse" is the numerator: log p0/p1 is fitted, and
        negated. "auto" is "forward", unless the denominator loses single values and
        the numerator has more complete rows, counted after Kish.
    pairs : {"auto", True, False}, default="auto"
        Whether log Ê exp(θᵀf) is taken to be that of a normal law, whose moments come
        from pairs of columns, each over the rows in which both are observed: no row
        has to be complete, and θ̂ is Fisher's discriminant. "auto" does so, with a
        `SmallSampleWarning`, where a class that counts by complete rows loses single
        values and those rows are worth no more than ten for each column, nor more
        than half of all. Features must be of one column each.

    Attributes
    ----------
    coef_ : ndarray of shape (n_basis_features,)
        θ̂.
    log_normalizer_ : float
        log N̂, where N̂ = Ê[exp θ̂ᵀf(Z⁰)], or 1/N̂ = Ê[exp −θ̂ᵀf(Z¹)] if reversed.
    intercept_ : float
        −log N̂.
    classes_ : ndarray of shape (2,)
        The denominator's and the numerator's label.
    n_iter_ : int
    converged_ : bool
        Whether the optimum exists and was reached.
    effective_sample_size_ : dict from class to SampleSize
        Rows, observed rows, Kish's effective size and the paper's n(1 − ‖φ‖∞).
    tilt_sample_size_ : float
        Kish's effective number of rows of the class under the exponent, with weights
        w·exp(θ̂ᵀf), whose means are matched, from some of them where they are many;
        None for pairs. Where it is small, classes
        lie far apart: a `SmallSampleWarning` says so, and ``FDivergenceRatio("js")`` is
        the better fit.
    objective_value_ : float
        The minimised objective at the end: the negative of the above, with the penalty.
    basis_ : Basis
        The fitted basis.
    missingness_ : dict, "ignore" or None
        Why values are missing, by class.
    direction_ : {"forward", "reverse"}
        The direction taken.
    pairs_used_ : bool
        Whether pairs of columns took the place of complete rows.
    standard_error_ : ndarray of shape (n_basis_features,), or None
        Standard error of each feature's weighted mean over the numerator class, the
        unit of the penalties; None for "uniform".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_columns,)

    Examples
    --------
    Class 1 loses four in five of its rows above zero. Complete cases pull its mean
    down, the weights put it back: the true coefficient is 0.5.

    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> Z1, Z0 = rng.normal(0.5, 1, (2000, 1)), rng.normal(0, 1, (2000, 1))
    >>> phi = mr.StepMissingness(direction=[1.0], threshold=0.0, probability=0.8)
    >>> X = np.concatenate([mr.corrupt(Z1, phi, random_state=0), Z0])
    >>> y = np.repeat([1, 0], 2000)
    >>> mr.KLIEP(missingness={1: phi}).fit(X, y).coef_.round(1)
    array([0.5])
    >>> mr.KLIEP(missingness="ignore").fit(X, y).coef_.round(1)
    array([-0.1])
    """

    basis: Any = "linear"
    _: KW_ONLY
    direction: fit.Direction = "auto"

    def _objective(self) -> Objective:
        return KLIEPObjective()


@storable(finite=("coef_", "intercept_", "log_normalizer_", "column_log_normalizer_"))
@dataclass(eq=False, repr=False)
class FDivergenceRatio(fit.PenalisedRatio):
    """Density ratio by an f-divergence, for complete and for missing data.

    Maximises Ê[f'(r(Z¹))] − Ê[f*(f'(r(Z⁰)))], every Ê weighted by 1{observed}/(1 − φ)
    (the paper's appendix on f-divergences), with log r = θᵀf + b. "js" is logistic
    regression that balances the two classes, and "kl" has KLIEP's optimum under Hájek's
    normalisation. "pearson" is not convex: its optimum may be local only, and there is
    none where numerator rows lie outside the convex hull of the denominator's, as 200
    rows a class often do at a shift of half a standard deviation. A `NotSolvedWarning`
    says so, and coefficients then mean nothing: take "js". ``KernelRatio("ulsif")``
    minimises the same for a ratio that is a sum of bumps.
    Under per-feature missingness complete rows count, except for the numerator of "kl",
    which like KLIEP's enters through means alone.

    Parameters
    ----------
    divergence : {"kl", "js", "pearson"} or Divergence, default="js"
        A name, or your own f as a `Divergence`.
    basis, missingness, normalize, pairs, l2, l1, penalty_weights, solver, tol, max_iter
        As for `KLIEP`. The intercept is not penalised.

    Attributes
    ----------
    coef_, log_normalizer_, intercept_, classes_, n_iter_, converged_
        As for `KLIEP`; `log_normalizer_` is minus the intercept.
    effective_sample_size_, objective_value_, basis_
        As for `KLIEP`.

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(0, 1, (500, 2)), rng.normal(1, 1, (500, 2))]
    >>> y = np.repeat([0, 1], 500)
    >>> mr.FDivergenceRatio("js").fit(X, y).coef_.round(1)
    array([1.1, 1. ])
    """

    divergence: str | Divergence = "js"
    basis: Any = "linear"

    def _objective(self) -> Objective:
        return objectives.as_divergence_objective(self.divergence)


@storable(finite=("coef_", "intercept_", "log_normalizer_", "column_log_normalizer_"))
@dataclass(eq=False, repr=False)
class ObjectiveRatio(fit.PenalisedRatio):
    """Density ratio by any objective h(E g1(Z¹), E g0(Z⁰)): the paper's general form.

    Parameters
    ----------
    objective : Objective
        g1, g0 and h, as functions of the score log r = θᵀf + b.
    basis, missingness, normalize, pairs, l2, l1, penalty_weights, solver, tol, max_iter
        As for `KLIEP`. The intercept, where the objective has one, is not penalised.
        ``GridSearchCV`` chooses a strength, or a parameter of the objective
        (``objective__a``), by the objective on rows held out.

    Attributes
    ----------
    coef_, log_normalizer_, intercept_, classes_, n_iter_, converged_
        As for `KLIEP`.
    effective_sample_size_, objective_value_, basis_
        As for `KLIEP`.

    See Also
    --------
    missratio.objective.Objective : How to write one, with an example.
    missratio.objective.check_objective : What is wrong with one.

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> from missratio.objective import KLIEPObjective
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (500, 1)), rng.normal(1, 1, (500, 1))])
    >>> y = np.repeat([0, 1], 500)
    >>> ratio = mr.ObjectiveRatio(KLIEPObjective()).fit(X, y)
    >>> bool(np.allclose(ratio.coef_, mr.KLIEP().fit(X, y).coef_))
    True
    """

    objective: Objective
    basis: Any = "linear"

    def _objective(self) -> Objective:
        if not isinstance(self.objective, Objective):
            raise TypeError(
                "objective must be an instance of missratio.objective.Objective, got "
                f"{self.objective!r}."
            )
        return self.objective


@storable(finite=("coef_", "intercept_", "log_normalizer_", "column_log_normalizer_"))
@dataclass(eq=False, repr=False)
class NaiveBayesRatio(fit.LinearRatio):
    """Density ratio r̂(z) = Π_j r̂_j(z_j), each factor from its own column alone.

    The paper's answer to partial missingness: where columns are independent within each
    class, the ratio is the product of the columns' ratios, and column j is fitted on
    all rows in which it is observed, with weights 1/(1 − φ_j). All columns are solved
    as one batch.

    Parameters
    ----------
    estimator : KLIEP, FDivergenceRatio or ObjectiveRatio, default=None
        How each column is fitted; None stands for ``KLIEP()``. Its basis is evaluated
        column by column.
    missingness : mapping from class to Missingness, "ignore" or None, default=None
        Why values are missing, by row or by entry; None takes the estimator's. "ignore"
        uses the entries that are observed as they are (per-feature complete case).

    Attributes
    ----------
    coef_ : ndarray of shape (n_basis_features,)
        Coefficients, column after column.
    log_normalizer_ : float
        Sum of the columns' log normalisers.
    intercept_ : float
        −log_normalizer_.
    column_log_normalizer_ : ndarray of shape (n_columns,)
    column_converged_ : ndarray of bool of shape (n_columns,)
    converged_ : bool
        Whether all columns converged.
    n_iter_ : int
        The most iterations that a column took.
    effective_sample_size_ : dict from class to SampleSize
        Of the column with the smallest effective size.
    classes_ : ndarray of shape (2,)

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> Z1, Z0 = rng.normal(0.5, 1, (2000, 2)), rng.normal(0, 1, (2000, 2))
    >>> phi = mr.LogisticMissingness(intercept=0.0, coef=[1.0, -1.0])
    >>> X = np.concatenate([mr.corrupt(Z1, phi, random_state=0), Z0])
    >>> y = np.repeat([1, 0], 2000)
    >>> mr.NaiveBayesRatio(missingness={1: phi}).fit(X, y).coef_.round(1)
    array([0.5, 0.5])
    """

    estimator: fit.JointRatio | None = None
    missingness: MissingnessParameter = None

    _apart = True

    def _settings(self) -> fit.JointRatio:
        """How each column is to be fitted."""
        estimator = KLIEP() if self.estimator is None else self.estimator
        fit.check_joint(estimator)
        return estimator

    def _missingness(self) -> MissingnessParameter:
        if self.missingness is not None or self.estimator is None:
            return self.missingness
        inner: MissingnessParameter = getattr(self.estimator, "missingness", None)
        return inner


@overload
def density_ratio(
    X1: Any,
    X0: Any,
    estimator: None = None,
    *,
    missingness: MissingnessParameter = None,
) -> KLIEP: ...


@overload
def density_ratio(
    X1: Any, X0: Any, estimator: _Ratio, *, missingness: MissingnessParameter = None
) -> _Ratio: ...


def density_ratio(
    X1: Any,
    X0: Any,
    estimator: BaseRatio | None = None,
    *,
    missingness: MissingnessParameter = None,
) -> BaseRatio:
    """Estimate p1/p0 from a sample of each.

    Parameters
    ----------
    X1 : array-like or dataframe of shape (n_numerator_rows, n_columns)
        Rows from p1, NaN where a value is missing.
    X0 : array-like or dataframe of shape (n_denominator_rows, n_columns)
        Rows from p0. Large arrays are used where they lie, without a copy.
    estimator : ratio estimator, optional
        How to estimate, such as `KernelRatio`; it is cloned. ``KLIEP()`` by default.
    missingness : mapping from {1, 0} to Missingness, "ignore" or None
        Why values are missing, in the numerator (1) and the denominator (0); None
        leaves the estimator's own.

    Returns
    -------
    estimator
        The fitted clone, with classes 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> X1, X0 = rng.normal(1, 1, (1000, 1)), rng.normal(0, 1, (1000, 1))
    >>> ratio = mr.density_ratio(X1, X0)
    >>> ratio.predict_ratio([[0.5], [2.0]]).round(1)
    array([1. , 4.4])
    """
    estimator = KLIEP() if estimator is None else clone(estimator)
    if missingness is not None:
        estimator.set_params(missingness=missingness)
    if not (isinstance(estimator, fit.JointRatio) and estimator._is_linear()):
        return estimator.fit(*fit.stack_samples(X1, X0))
    fit.check_columns(X1, X0)
    tables = [read_table(estimator, X, reset=True) for X in (X1, X0)]
    estimator.classes_ = np.array([0, 1])
    given = check_missingness(estimator.missingness, estimator.classes_)
    estimator.missingness_ = given
    names = getattr(estimator, "feature_names_in_", None)
    estimator.basis_ = LinearBasis.of_columns(tables[0].shape[1], names)
    two = estimator._weighed(Two(*map(MemorySource.of, tables)))
    estimator._learn(two)
    return estimator
