"""KLIEP, M-KLIEP and CC-KLIEP."""

from __future__ import annotations

from typing import Any

from missratio.objective import KLIEPObjective, Objective
from missratio.ratio._base import SolverName
from missratio.ratio._joint import Fallback, JointRatio
from missratio.ratio._penalty import PenaltyWeights
from missratio.ratio._reading import MissingnessParameter
from missratio.rows import Normalization


class KLIEP(JointRatio):
    """Density ratio r̂ = exp(θ̂ᵀf)/N̂ by the KL importance estimation procedure.

    Maximises Ê[θᵀf(Z¹)] − log Ê[exp θᵀf(Z⁰)] − ½ Σ l2 θ² − l1‖θ‖₁, where every Ê is a
    mean over observed rows weighted by 1/(1 − φ): the paper's M-KLIEP. Without a
    missingness model it is plain KLIEP, and with ``missingness="ignore"`` the
    complete-case CC-KLIEP, which is biased where values are missing not at random.

    Under per-feature missingness in the numerator class each basis feature uses every
    row in which the columns that it needs are observed; no independence between
    features is assumed. In the denominator class only complete rows count, with the
    product of their entries' weights.

    Parameters
    ----------
    basis : {"linear", "polynomial", "gaussian"}, Basis or transformer, default="linear"
        The features f.
    missingness : mapping from class to Missingness, "ignore" or None, default=None
        Why values are missing; a class left out is complete. NaN in a class without a
        model is an error. "ignore" drops what is missing.
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
    fallback : {"raise", "naive-bayes"}, default="raise"
        What to do if the denominator class loses single values and the effective
        sample size (Kish) of its complete rows is no larger than the number of columns.
        "naive-bayes" treats the denominator's columns as independent, each fitted on
        all rows in which it is observed.
    solver : {"auto", "newton", "lbfgs"}, default="auto"
        "auto" is Newton's method up to 500 basis features, L-BFGS above; with
        l1 it is a proximal Newton method in any case.
    tol : float, default=1e-8
        The Newton decrement √(gᵀH⁻¹g) at which to stop: the gradient's length in units
        of the objective's own curvature; with l1, the shortest subgradient's.
    max_iter : int, default=100
        Steps of the solver at most (for L-BFGS ten times as many).

    Attributes
    ----------
    coef_ : ndarray of shape (n_basis_features,)
        θ̂.
    log_normalizer_ : float
        log N̂, where N̂ = Ê[exp θ̂ᵀf(Z⁰)].
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
        Kish's effective number of denominator rows under the weights w·exp(θ̂ᵀf), whose
        means are matched. Where it is small, classes lie far apart: a
        `SmallSampleWarning` says so, and ``FDivergenceRatio("js")`` is the better fit.
    objective_value_ : float
        The minimised objective at the end: the negative of the above, with the penalty.
    basis_ : Basis
        The fitted basis.
    fallback_used_ : bool
        Whether the fallback took the place of the joint fit.
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

    def __init__(
        self,
        basis: Any = "linear",
        missingness: MissingnessParameter = None,
        normalize: Normalization = "hajek",
        l2: Any = 0.0,
        l1: Any = 0.0,
        penalty_weights: PenaltyWeights = "uniform",
        fallback: Fallback = "raise",
        solver: SolverName = "auto",
        tol: float = 1e-8,
        max_iter: int = 100,
    ) -> None:
        self.basis = basis
        self.missingness = missingness
        self.normalize = normalize
        self.l2 = l2
        self.l1 = l1
        self.penalty_weights = penalty_weights
        self.fallback = fallback
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter

    def _objective(self) -> Objective:
        return KLIEPObjective()
