"""KLIEP with penalties that are chosen by cross-validation."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from missratio._base.callbacks import CallbackSupportMixin, run_tasks
from missratio._base.storable import storable
from missratio.objective import KLIEPObjective, KullbackLeiblerObjective, Objective
from missratio.ratio import base, fit
from missratio.ratio.base import Two
from missratio.ratio.problem import PenaltyUnits, RatioProblem, Strength, pose
from missratio.ratio.solve import solve
from missratio.rows import ClassRows, Normalization
from missratio.solver import Status


@storable(finite=("coef_", "intercept_", "log_normalizer_", "column_log_normalizer_"))
@dataclass(eq=False, repr=False)
class KLIEPCV(CallbackSupportMixin, fit.JointRatio):
    """KLIEP whose penalties are chosen by weighted cross-validation.

    For every strength on a grid the ratio is fitted to all folds but one and scored
    on that one by Ê[log r̂(Z¹)] − Ê[r̂(Z⁰)] + 1, with the weights for missing values
    included and each basis feature's numerator mean taken over all rows in which it is
    observed. In expectation this is largest at the true ratio, and its mean over
    folds decides. The normaliser of r̂ comes from the rows that were fitted. The log of
    a mean over the few rows of one fold would be too small on average, most of all with
    a weak penalty, and so would favour penalties that are too weak.

    Parameters
    ----------
    basis, missingness, solver, tol, max_iter, direction, pairs
        As for `KLIEP`.
    normalize : {"hajek", "horvitz-thompson", "regression"}, default="regression"
        As for `KLIEP`. The regressions are made once, on all rows.
    l2_grid : int or array-like, default=9
        Ridge strengths, or how many to try: from 10 to 10⁻³ times the one at which the
        penalty curves the objective as much as the denominator's rows do, for the
        median feature.
    l1_grid : int or array-like, default=(0.0,)
        L1 strengths, or how many to try: from the least at which all coefficients are
        zero down to a thousandth of it. With more than one strength of each kind all
        pairs are tried.
    penalty_weights : {"uniform", "standard-error", "covariance"}, default="covariance"
        As for `KLIEP`.
    cv : int, splitter or list of pairs, default=5
        The number of folds, drawn within each class; or any of scikit-learn's
        splitters that needs no groups; or pairs of row numbers to fit and to hold out,
        as ``list(GroupKFold().split(X, y, groups))`` gives them.
    random_state : int, RandomState or None, default=None
        For the folds. None draws anew at each ``fit``.

    Attributes
    ----------
    l1_, l2_ : float
        The strengths chosen.
    cv_results_ : dict of ndarray
        For each pair of strengths: ``param_l1``, ``param_l2``, ``split0_test_score``
        and so on, and ``mean_test_score``. A score is −inf where a fold's fit has no
        finite optimum.
    coef_, log_normalizer_, intercept_, classes_, n_iter_, converged_
        As for `KLIEP`, fitted to all rows under the strengths chosen.
    effective_sample_size_, objective_value_, basis_, standard_error_
        As for `KLIEP`.

    Examples
    --------
    Twenty columns, of which one differs between the classes:

    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> Z1, Z0 = rng.normal(0, 1, (300, 20)), rng.normal(0, 1, (300, 20))
    >>> Z1[:, 0] += 1
    >>> phi = mr.LogisticMissingness(intercept=0.0, coef=np.ones(20))
    >>> X = np.concatenate([mr.corrupt(Z1, phi, random_state=0), Z0])
    >>> y = np.repeat([1, 0], 300)
    >>> sparse = mr.KLIEPCV(
    ...     l1_grid=10, l2_grid=[0.0], missingness={1: phi}, random_state=0
    ... )
    >>> coef = sparse.fit(X, y).coef_
    >>> np.abs(coef).argmax(), int((coef == 0).sum()) >= 10
    (np.int64(0), True)
    """

    basis: Any = "linear"
    _: KW_ONLY
    normalize: Normalization = "regression"
    l2_grid: Any = 9
    l1_grid: Any = (0.0,)
    penalty_weights: fit.PenaltyWeights = "covariance"
    cv: Any = 5
    random_state: int | np.random.RandomState | None = None
    direction: fit.Direction = "auto"

    _needs_memory = True

    def _objective(self) -> Objective:
        return KLIEPObjective()

    def _strength(
        self,
        ratio: fit.LinearRatio,
        problem: RatioProblem,
        units: PenaltyUnits,
        two: Two[ClassRows],
    ) -> Strength:
        """Score all pairs of strengths, and take the best."""
        # 1. All pairs of an L1 and a ridge strength, from strong to weak: as given, or
        #    multiples of what the data say, of the least L1 strength that leaves
        #    nothing but zeros, and of the ridge that curves as much as the rows do.
        l1 = base.read_grid("l1_grid", self.l1_grid)
        l2 = base.read_grid("l2_grid", self.l2_grid)
        gradient, curvature = problem.at_one()
        if isinstance(l1, int):
            unit = 1.0 if units[0] is None else units[0]
            largest = float((np.abs(gradient) / unit).max())
            l1 = np.geomspace(1.0, 1e-3, l1)[::-1] * (largest or 1.0)
        if isinstance(l2, int):
            if units[1] is not None:
                unit = np.diagonal(units[1]) if units[1].ndim == 2 else units[1]
                curvature = curvature / unit
            middle = float(np.median(curvature)) or 1.0
            l2 = np.geomspace(10.0, 1e-3, l2)[::-1] * middle
        grid = np.array([(a, b) for a in l1[::-1] for b in l2[::-1]])
        # 2. Their scores on folds held out.
        folds = base.deal_folds(two, self.cv, check_random_state(self.random_state))
        n_features = int((problem.features >= 0).sum())
        options: dict[str, Any] = {"solver": self.solver, "max_iter": self.max_iter}
        # A fold's fits are compared, not kept: what this leaves is far below what folds
        # differ by.
        options["tol"] = max(self.tol, 1e-3)

        def scores_of(fold: base.Fold) -> list[float]:
            """Held-out scores of all pairs, each fit begun where the last one ended."""
            fitted, held = (base.some_rows(two, chosen) for chosen in fold)
            try:
                part = pose(ratio, self._objective(), fitted)
                judge = pose(ratio, KullbackLeiblerObjective(), held)
            except ValueError as error:
                raise ValueError(
                    f"In one of the {len(folds)} folds. {error} Or lower cv."
                ) from error
            required = ratio.basis_.required_columns_
            units_here = fit.penalty_units(
                self.penalty_weights, fitted.numerator, required, part
            )
            scores, last = [], None
            for pair in grid:
                strength = np.full(n_features, pair[0]), np.full(n_features, pair[1])
                penalised = part.penalised(units_here, strength)
                solution = solve(penalised, start=last, **options)
                if (solution.status == Status.NO_OPTIMUM).any():
                    scores.append(-np.inf)
                    continue
                last = solution.theta
                coef, intercepts = part.gather(last), penalised.intercept(solution)
                with np.errstate(over="ignore"):
                    scores.append(len(intercepts) - judge.value(coef, intercepts))
            return scores

        scores = np.array(run_tasks(self, "fold", folds, scores_of))
        mean = scores.mean(axis=0)
        if not np.isfinite(mean).any():
            raise ValueError(
                f"No pair of strengths gives a finite score in all {len(folds)} folds: "
                "fits have no optimum, or rows held out lie far outside of those "
                "fitted. Use fewer or smoother basis features, or larger strengths."
            )
        chosen: Any = ratio
        chosen.l1_, chosen.l2_ = grid[int(mean.argmax())].tolist()
        # Under the names that scikit-learn's searches give them.
        chosen.cv_results_ = {
            "param_l1": grid[:, 0],
            "param_l2": grid[:, 1],
            **{f"split{i}_test_score": split for i, split in enumerate(scores)},
            "mean_test_score": mean,
        }
        return np.full(n_features, chosen.l1_), np.full(n_features, chosen.l2_)
