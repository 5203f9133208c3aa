"""The kernel ratios of the field: KLIEP, uLSIF, RuLSIF and kernel mean matching."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
from sklearn.utils import check_scalar

from missratio._base.callbacks import CallbackSupportMixin, told
from missratio._base.hints import check_real
from missratio._base.seeds import generator
from missratio._base.typing import FloatArray
from missratio.exceptions import FlatRatioWarning, Message
from missratio.ratio._base import check_choice, report_status
from missratio.ratio._bumps import Bumps, NarrowingBumps, gaussian, squaring_grid
from missratio.ratio._complete import CompleteRowsRatio, TwoTables
from missratio.ratio._kernel_likelihood import LogLikelihood
from missratio.ratio._kernel_matching import MeanMatching
from missratio.ratio._kernel_methods import (
    BumpRows,
    Coefficients,
    KernelMethod,
    LeastSquares,
)
from missratio.ratio._reading import MissingnessParameter

KernelName = Literal["ulsif", "rulsif", "kliep", "kmm"]
# Ridge strengths tried, beside the one that curves the loss as much as the rows do.
L2_SPAN = (10.0, 1e-6)
L2_COUNT = {"ulsif": 9, "rulsif": 9, "kmm": 2}
# Bumps whose heights may be negative can be wide: the wider, the closer to a plane,
# which is what many columns need. Bumps that only add up can't.
WIDER = {"ulsif": 4.0, "rulsif": 4.0, "kliep": 1.0, "kmm": 1.0}
WIDTHS = {"ulsif": 10, "rulsif": 10, "kliep": 6, "kmm": 6}
# Rows that are scored at once.
BLOCK_ROWS = 4096


class KernelRatio(CallbackSupportMixin, CompleteRowsRatio):
    """Density ratio r̂ = θ₀ + Σ_k θ_k exp(−‖z − c_k‖²/(2σ²)), by one of four methods.

    Every Ê is a mean over complete rows weighted by 1/P(complete). What is minimised:

    - "ulsif": ½Ê₀[r²] − Ê₁[r] + ½ l2 Σθ² (least squares; Kanamori et al. 2009);
    - "rulsif": the same with Ê₀ replaced by alpha Ê₁ + (1 − alpha) Ê₀, which gives the
      relative ratio p1/(alpha p1 + (1 − alpha) p0), bounded by 1/alpha (Yamada et al.
      2013);
    - "kliep": −Ê₁[log r], with Ê₀[r] = 1 and θ ≥ 0 (Sugiyama et al. 2008);
    - "kmm": ½‖Ê₀[r k] − Ê₁[k]‖² + ½ l2 Σθ² in the kernel's space, with Ê₀[r] = 1,
      θ ≥ 0 and r ≤ max_ratio (kernel mean matching; Huang et al. 2006).

    The width σ and the strength l2 are those with the smallest loss on rows left out:
    exactly one by one for least squares, one by one up to a Newton step for KLIEP, in
    folds for mean matching, which is judged by the squared error. Only candidates count
    that beat a ratio of one by more than chance, and where there are none the ratio is
    one, so that equal samples give a flat ratio. A sum of bumps may fall below zero, or
    grow beyond the rows seen: it is cut off at zero, and at the largest ratio at a row
    that it was fitted to.

    Parameters
    ----------
    method : {"ulsif", "rulsif", "kliep", "kmm"}, default="ulsif"
        "kmm" needs Clarabel, a solver of quadratic programmes (``missratio[kmm]``),
        where the ratio reaches max_ratio.
    missingness : mapping from class to Missingness, "ignore" or None, default=None
        Why values are missing; a class left out is complete. NaN in a class without a
        model is an error. "ignore" drops rows with missing values.
    centers : int or array-like of shape (n_centers, n_columns), default=100
        How many distinct complete rows to draw as centres, half of them from each
        sample and by their weights, or the centres themselves.
    sigma_grid : int, array-like or None, default=None
        Widths to try, in units of the scaled columns, or how many: over the quantiles
        of the distances between rows and centres. None tries 10 for least squares, and
        6 for the others, whose widths span less.
    l2_grid : int, array-like or None, default=None
        Ridge strengths to try, or how many: from 10 to 10⁻⁶ times the one at which the
        penalty curves the loss as much as the rows do. None tries 9 for least squares
        and 2 for mean matching, which θ ≥ 0 holds back already. KLIEP has no penalty.
    alpha : float, default=0.1
        RuLSIF's mixing weight, in [0, 1); 0 is uLSIF.
    max_ratio : float, default=1000.0
        For mean matching: the largest ratio at a centre, more than 1.
    scale : bool, default=True
        Whether to divide columns by their standard deviation within the samples.
    cv : int, default=5
        The number of folds, for mean matching.
    flat_within : float, default=2.0
        Only candidates are taken whose loss lies this many of its standard errors below
        that of one; if there are none, the ratio is one, with a `FlatRatioWarning`. 0
        takes the smallest loss as it is, as a classifier should: a flat ratio tells no
        row from another.
    random_state : int, RandomState, Generator or None, default=None
        For centres and folds. None draws anew at each ``fit``.

    Attributes
    ----------
    sigma_, l2_ : float
        The width and the strength chosen; ``l2_`` is inf for the ratio of one.
    centers_ : ndarray of shape (n_centers, n_columns)
    heights_ : ndarray of shape (n_centers,)
        θ̂.
    intercept_ : float
        θ̂₀.
    largest_ : float
        The largest ratio at a row that it was fitted to.
    cv_results_ : dict of ndarray
        ``param_sigma``, ``param_l2``, ``mean_test_score``, which is by how much the
        loss on rows left out lies below that of a ratio of one, and its
        ``standard_error``, for all candidates.
    classes_ : ndarray of shape (2,)
        The denominator's and the numerator's label.
    converged_ : bool
    n_iter_ : int
    effective_sample_size_ : dict from class to SampleSize
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_columns,)

    Examples
    --------
    A ratio that no plane can be: class 1 sits in the middle of class 0. Rows of class
    0 go missing on the right.

    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> Z1, Z0 = rng.normal(0, 0.5, (1000, 1)), rng.normal(0, 1, (1000, 1))
    >>> phi = mr.StepMissingness(direction=[1.0], threshold=0.5, probability=0.8)
    >>> X = np.concatenate([Z1, mr.corrupt(Z0, phi, random_state=0)])
    >>> y = np.repeat([1, 0], 1000)
    >>> ratio = mr.KernelRatio(missingness={0: phi}, random_state=0).fit(X, y)
    >>> bool(abs(ratio.predict_ratio([[0.0]])[0] - 2) < 0.3)
    True
    """

    sigma_: float
    l2_: float
    centers_: FloatArray
    heights_: FloatArray
    intercept_: float
    largest_: float
    cv_results_: dict[str, FloatArray]
    converged_: bool
    n_iter_: int

    def __init__(
        self,
        method: KernelName = "ulsif",
        missingness: MissingnessParameter = None,
        centers: Any = 100,
        sigma_grid: Any = None,
        l2_grid: Any = None,
        alpha: float = 0.1,
        max_ratio: float = 1000.0,
        scale: bool = True,
        cv: int = 5,
        flat_within: float = 2.0,
        random_state: Any = None,
    ) -> None:
        self.method = method
        self.missingness = missingness
        self.centers = centers
        self.sigma_grid = sigma_grid
        self.l2_grid = l2_grid
        self.alpha = alpha
        self.max_ratio = max_ratio
        self.scale = scale
        self.cv = cv
        self.flat_within = flat_within
        self.random_state = random_state

    def _fit_tables(self, tables: TwoTables) -> None:
        self._check_parameters()
        rng = generator(self.random_state)
        bumps = Bumps.around(tables, self.centers, self.scale, rng)
        widths = self._widths(tables, bumps, rng)
        # Only mean matching leaves out folds; others leave out single rows.
        n_folds = int(self.cv) if self.method == "kmm" else 1
        trial = _Trial.of(tables, bumps, widths, n_folds, rng)
        found_at = told(
            self,
            "width",
            widths[::-1],
            lambda sigma: self._candidates(trial, float(sigma)),
            len(widths),
        )
        candidates = [each for found in found_at for each in found]
        best = _chosen(candidates, float(self.flat_within))
        own, other = trial.at(best.sigma)
        found = self._method(trial, best.sigma).fit(own, other, best.l2, best.near)
        report_status(
            found.status, np.nan, found.n_iter, type(self).__name__, stacklevel=3
        )
        self.sigma_, self.l2_ = best.sigma, best.l2
        self._store(bumps, found)
        self.largest_ = max(
            float(found.ratio(each.bumps).max()) for each in (own, other)
        )
        self.cv_results_ = {
            "param_sigma": np.array([each.sigma for each in candidates]),
            "param_l2": np.array([each.l2 for each in candidates]),
            "mean_test_score": -np.array([each.loss for each in candidates]),
            "standard_error": np.array([each.error for each in candidates]),
        }

    def _widths(
        self, tables: TwoTables, bumps: Bumps, rng: np.random.Generator
    ) -> FloatArray:
        grid = WIDTHS[self.method] if self.sigma_grid is None else self.sigma_grid
        widths = bumps.widths(tables, grid, WIDER[self.method], rng)
        return squaring_grid(widths) if isinstance(grid, Integral) else widths

    def _store(self, bumps: Bumps, found: Coefficients) -> None:
        self._origin, self._unit = bumps.origin, bumps.unit
        self.centers_ = bumps.centers * bumps.unit + bumps.origin
        self.heights_, self.intercept_ = found.theta, found.intercept
        self.converged_, self.n_iter_ = True, found.n_iter

    def _check_parameters(self) -> None:
        check_choice("method", self.method, get_args(KernelName))
        check_real(
            self.alpha, "alpha", min_val=0.0, max_val=1.0, include_boundaries="left"
        )
        check_real(
            self.max_ratio, "max_ratio", min_val=1.0, include_boundaries="neither"
        )
        check_scalar(self.cv, "cv", Integral, min_val=2)
        check_real(self.flat_within, "flat_within", min_val=0.0)

    def _method(self, trial: _Trial, sigma: float) -> KernelMethod:
        """What is minimised at one width."""
        if self.method == "kliep":
            return LogLikelihood()
        if self.method == "kmm":
            return MeanMatching(gaussian(trial.between, sigma), float(self.max_ratio))
        return LeastSquares(float(self.alpha) if self.method == "rulsif" else 0.0)

    def _candidates(self, trial: _Trial, sigma: float) -> Iterator[_Candidate]:
        """All strengths at one width, with the ratio of one first."""
        method = self._method(trial, sigma)
        own, other = trial.at(sigma)
        strengths = np.append(np.inf, self._strengths(method, own, other))
        found = method.losses(own, other, strengths)
        values = zip(found.l2, found.losses, found.errors, strict=True)
        for strength, loss, error in values:
            numbers = float(strength), float(loss), float(error)
            yield _Candidate(sigma, *numbers, found.near)

    def _strengths(
        self, method: KernelMethod, own: BumpRows, other: BumpRows
    ) -> FloatArray:
        if self.method == "kliep":
            return np.zeros(1)
        grid = L2_COUNT[self.method] if self.l2_grid is None else self.l2_grid
        if isinstance(grid, Integral):
            count = check_scalar(grid, "l2_grid", Integral, min_val=1)
            weak_first = np.geomspace(*L2_SPAN[::-1], count)
            return method.unit(own, other) * weak_first[::-1]
        given = np.atleast_1d(np.asarray(grid, dtype=np.float64))
        if given.ndim != 1 or not len(given) or not (given > 0.0).all():
            raise ValueError(
                "l2_grid must be a number of strengths to try, or positive strengths; "
                f"got {self.l2_grid!r}."
            )
        return np.unique(given)[::-1]

    def _ratio(self, rows: FloatArray) -> FloatArray:
        bumps = Bumps(
            self._origin, self._unit, (self.centers_ - self._origin) / self._unit
        )
        found = Coefficients(self.intercept_, self.heights_)
        ratio = np.empty(len(rows))
        for start in range(0, len(rows), BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            ratio[block] = found.ratio(
                gaussian(bumps.squares(rows[block]), self.sigma_)
            )
        return np.minimum(ratio, self.largest_)

    def _complete_log_ratio(self, rows: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.log(self._ratio(rows))

    def _score_tables(self, tables: TwoTables) -> float:
        alpha = float(self.alpha) if self.method == "rulsif" else 0.0
        method = LogLikelihood() if self.method == "kliep" else LeastSquares(alpha)
        own, other = tables.numerator, tables.denominator
        ratios = self._ratio(own.rows), self._ratio(other.rows)
        return -method.loss(ratios[0], own.weights, ratios[1], other.weights)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A width and a strength, with the loss on rows left out and its error.

    And what is near the solution, where it was found on the way.
    """

    sigma: float
    l2: float
    loss: float
    error: float
    near: FloatArray | None


def _chosen(candidates: list[_Candidate], flat_within: float) -> _Candidate:
    """The smallest loss among candidates that beat a ratio of one beyond chance.

    The smallest of all may say nothing: between distant samples a narrow, hardly
    penalised ratio is huge at one row left out, and so is its loss's standard error,
    while others beat one by ten of their errors. Between equal laws none is two errors
    below one in 96% of samples or more, of all methods.
    """
    beyond = [
        each for each in candidates if each.loss < min(-flat_within * each.error, 0.0)
    ]
    if beyond:
        return min(beyond, key=lambda each: each.loss)
    below = [-each.loss / each.error for each in candidates if each.loss < 0.0]
    if below:
        message = Message(
            "The ratio is one everywhere: losses lie at most {errors:.2g} of their "
            "standard errors below that of one, and flat_within asks for {asked:g}. "
            "The samples may come from one law, or be too small to tell.",
            remedies=(
                "set flat_within=0 to take the smallest loss",
                "bring more rows",
            ),
            facts={"errors": max(below), "asked": flat_within},
        )
        warnings.warn(FlatRatioWarning(message), stacklevel=4)
    return next(each for each in candidates if np.isinf(each.l2))


@dataclass(frozen=True, slots=True)
class _Trial:
    """Both samples' bumps, and what their rows weigh; rows of a fold are together."""

    bumps: tuple[NarrowingBumps, NarrowingBumps]
    between: FloatArray
    weights: tuple[FloatArray, FloatArray]
    folds: tuple[tuple[int, ...], tuple[int, ...]]

    @classmethod
    def of(
        cls,
        tables: TwoTables,
        bumps: Bumps,
        widths: FloatArray,
        n_folds: int,
        rng: np.random.Generator,
    ) -> _Trial:
        narrowing, weights, folds = [], [], []
        for table in (tables.numerator, tables.denominator):
            dealt = table.take(rng.permutation(len(table))) if n_folds > 1 else table
            narrowing.append(NarrowingBumps(bumps.squares(dealt.rows), widths))
            weights.append(dealt.weights)
            starts = np.linspace(0, len(dealt), n_folds + 1).astype(int)
            folds.append(tuple(starts.tolist()))
        between = bumps.squares(bumps.centers * bumps.unit + bumps.origin)
        return cls(
            (narrowing[0], narrowing[1]),
            between,
            (weights[0], weights[1]),
            (folds[0], folds[1]),
        )

    def at(self, sigma: float) -> tuple[BumpRows, BumpRows]:
        """The bumps of one width, of the numerator and the denominator."""
        own, other = (
            BumpRows(bumps.at(sigma), weights, folds)
            for bumps, weights, folds in zip(
                self.bumps, self.weights, self.folds, strict=True
            )
        )
        return own, other
