"""Ratios for any objective: f-divergences, and the paper's general form."""

from __future__ import annotations

from typing import Any

from missratio.objective import Divergence, Link, Objective, as_divergence_objective
from missratio.ratio._base import SolverName
from missratio.ratio._joint import JointRatio
from missratio.ratio._reading import MissingnessParameter
from missratio.rows import Normalization


class FDivergenceRatio(JointRatio):
    """Density ratio by an f-divergence, for complete and for missing data.

    Maximises Ê[f'(r(Z¹))] − Ê[f*(f'(r(Z⁰)))], every Ê weighted by 1{observed}/(1 − φ)
    (the paper's appendix on f-divergences), with log r = θᵀf + b, or r = θᵀf + b under
    the identity link. With the log link "js" is logistic regression that balances the
    two classes, and "kl" has KLIEP's optimum under Hájek's normalisation; with the
    identity link "pearson" is (u)LSIF. Under per-feature missingness complete rows
    count, except for the numerator of "kl", which like KLIEP's enters through means
    alone.

    Parameters
    ----------
    divergence : {"kl", "js", "pearson"} or Divergence, default="js"
        A name, or your own f as a `Divergence`.
    link : {"log", "identity"}, default="log"
        Whether the model is linear in log r or in r. Under the log link "pearson" is
        not convex: its optimum may be local only, and there may be none if a numerator
        row lies outside the convex hull of the denominator's. Use the identity link and
        a basis of bumps instead.
    basis, missingness, normalize, l2, solver, tol, max_iter
        As for `KLIEP`. The intercept is not penalised.

    Attributes
    ----------
    coef_, log_normalizer_, intercept_, classes_, n_iter_, converged_
        As for `KLIEP`; `log_normalizer_` is minus the intercept under the log link, and
        0 under the identity link.
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

    def __init__(
        self,
        divergence: str | Divergence = "js",
        link: Link = "log",
        basis: Any = "linear",
        missingness: MissingnessParameter = None,
        normalize: Normalization = "hajek",
        l2: Any = 0.0,
        solver: SolverName = "auto",
        tol: float = 1e-8,
        max_iter: int = 100,
    ) -> None:
        self.divergence = divergence
        self.link = link
        self.basis = basis
        self.missingness = missingness
        self.normalize = normalize
        self.l2 = l2
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter

    def _objective(self) -> Objective:
        return as_divergence_objective(self.divergence, self.link)

    def _is_log_linear(self) -> bool:
        return self.link == "log"


class ObjectiveRatio(JointRatio):
    """Density ratio by any objective h(E g1(Z¹), E g0(Z⁰)): the paper's general form.

    Parameters
    ----------
    objective : Objective
        g1, g0 and h, as functions of the score log r = θᵀf + b.
    basis, missingness, normalize, l2, solver, tol, max_iter
        As for `KLIEP`. The intercept, where the objective has one, is not penalised.

    Attributes
    ----------
    coef_, log_normalizer_, intercept_, classes_, n_iter_, converged_
        As for `KLIEP`.
    effective_sample_size_, objective_value_, basis_
        As for `KLIEP`.

    See Also
    --------
    Objective : How to write one, with an example.
    """

    def __init__(
        self,
        objective: Objective,
        basis: Any = "linear",
        missingness: MissingnessParameter = None,
        normalize: Normalization = "hajek",
        l2: Any = 0.0,
        solver: SolverName = "auto",
        tol: float = 1e-8,
        max_iter: int = 100,
    ) -> None:
        self.objective = objective
        self.basis = basis
        self.missingness = missingness
        self.normalize = normalize
        self.l2 = l2
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter

    def _objective(self) -> Objective:
        if not isinstance(self.objective, Objective):
            raise TypeError(
                "objective must be an instance of missratio.Objective, got "
                f"{self.objective!r}."
            )
        return self.objective
