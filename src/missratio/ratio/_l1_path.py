"""Which columns a ratio needs: KLIEP along the strengths of its L1 penalty."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_scalar

from missratio._base.threads import one_blas_thread
from missratio._base.typing import FloatArray
from missratio.ratio._base import given
from missratio.ratio._checks import check_parameters
from missratio.ratio._joint import Backend
from missratio.ratio._kliep import KLIEP
from missratio.ratio._kliep_cv import KLIEPCV, Grid


@dataclass(frozen=True)
class L1Path:
    """KLIEP's coefficients for every strength of the L1 penalty.

    Parameters
    ----------
    l1 : ndarray of shape (n_strengths,)
        From the least at which all coefficients are zero, downwards.
    coef : ndarray of shape (n_strengths, n_basis_features)
    score : ndarray of shape (n_strengths,)
        The mean cross-validation score; the larger the better.
    chosen : int
        The place of the strength with the best score.
    feature_names : tuple of str
    """

    l1: FloatArray
    coef: FloatArray
    score: FloatArray
    chosen: int
    feature_names: tuple[str, ...]

    def table(self, backend: Backend = "pandas") -> Any:
        """The features in the order in which they enter, a row for each.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}
            The kind of dataframe.

        Returns
        -------
        dataframe
            Columns: `feature`, `enters_at` (the largest strength at which its
            coefficient isn't zero, NaN for none), `selected` (whether it isn't zero at
            the strength chosen), `coefficient` (there) and `last_coefficient` (at the
            weakest penalty).
        """
        active = self.coef != 0.0
        enters = np.where(active.any(axis=0), self.l1[active.argmax(axis=0)], np.nan)
        order = np.lexsort((-np.abs(self.coef[-1]), -np.nan_to_num(enters, nan=-1.0)))
        columns = {
            "feature": [self.feature_names[j] for j in order],
            "enters_at": enters[order].tolist(),
            "selected": active[self.chosen, order].tolist(),
            "coefficient": self.coef[self.chosen, order].tolist(),
            "last_coefficient": self.coef[-1, order].tolist(),
        }
        return nw.from_dict(columns, backend=backend).to_native()


def l1_path(
    X: Any,
    y: ArrayLike,
    estimator: KLIEP | None = None,
    *,
    n_strengths: int = 30,
    cv: int = 5,
    sample_weight: ArrayLike | None = None,
    inclusion: ArrayLike | None = None,
    random_state: Any = None,
) -> L1Path:
    """Fit KLIEP with a sequence of L1 strengths, and score each by cross-validation.

    Each fit maximises Ê[θᵀf(Z¹)] − log Ê[exp θᵀf(Z⁰)] − l1‖θ‖₁ with weights
    1/(1 − φ), from the least strength at which nothing is selected down to a
    thousandth of it, each begun at the one before. Scores are those of `KLIEPCV`.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_rows, n_columns)
        NaN where a value is missing.
    y : array-like of shape (n_rows,)
        Two labels; the one sorted last is the numerator.
    estimator : KLIEP, optional
        With its basis, missingness, normalisation, ridge and the penalty's units. None
        is ``KLIEP(penalty_weights="standard-error")``, for which the scale of a column
        doesn't matter.
    n_strengths : int, default=30
    cv : int, default=5
        The number of folds.
    sample_weight, inclusion : array-like, optional
        As for ``KLIEP.fit``.
    random_state : int, RandomState or None, default=None
        For the folds.

    Returns
    -------
    L1Path

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 20))
    >>> X[:300, 3] += 1.0
    >>> path = mr.l1_path(X, np.repeat([1, 0], 300), random_state=0)
    >>> path.table()["feature"][0]
    'x3'
    """
    check_scalar(n_strengths, "n_strengths", Integral, min_val=2)
    plain = KLIEP(penalty_weights="standard-error") if estimator is None else estimator
    if type(plain) is not KLIEP:
        raise TypeError(f"estimator must be a KLIEP, got {estimator!r}.")
    read = X, given(y), sample_weight, inclusion
    fitted, strengths, coef = _fits(plain, read, n_strengths)
    search = _search(plain, strengths, cv, random_state).fit(*read)
    scores = search.cv_results_["mean_test_score"]
    names = tuple(str(name) for name in fitted.basis_.get_feature_names_out())
    return L1Path(strengths, coef, scores, int(scores.argmax()), names)


def _search(plain: KLIEP, strengths: FloatArray, cv: int, random_state: Any) -> KLIEPCV:
    """Cross-validation of the strengths, all else as the estimator has it."""
    parameters = plain.get_params(deep=False)
    for name in ("l1", "l2"):
        del parameters[name]
    ridge = [_ridge(plain)]
    grids: dict[str, Any] = {"l1_grid": strengths, "l2_grid": ridge}
    return KLIEPCV(**parameters, **grids, cv=cv, random_state=random_state)


def _fits(
    plain: KLIEP, read: tuple[Any, ...], n_strengths: int
) -> tuple[KLIEP, FloatArray, FloatArray]:
    """An estimator that has read the rows, the strengths, and coefficients for each."""
    inner = clone(plain)
    classes = inner._both_classes(inner._read(*read, reset=True), fit=True)
    check_parameters(inner, inner._objective())
    with one_blas_thread(classes[1].source.size):
        problem = inner._choose_problem(*classes)
        units = inner._units(problem, classes[0])
        # 1. The strengths are multiples of the largest pull on a coefficient.
        grid = Grid.of(n_strengths, [_ridge(plain)], problem, units)
        # 2. Each fit begins at the one before.
        coef, last = [], None
        for i in range(len(grid.l1)):
            strength = grid.strength(i, problem.n_features)
            last = problem.penalised(units, strength).solve(
                solver=plain.solver, tol=plain.tol, max_iter=plain.max_iter, start=last
            )
            coef.append(last.coef)
    return inner, grid.l1, np.array(coef)


def _ridge(plain: KLIEP) -> float:
    if np.ndim(plain.l2):
        raise ValueError("l1_path takes one l2 for all features, got several.")
    return float(plain.l2)
