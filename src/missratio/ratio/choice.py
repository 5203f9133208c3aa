"""A ratio by whichever estimator predicts rows held out best."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from missratio._base.storable import storable
from missratio._base.threads import THREADED_ELEMENTS
from missratio._base.typing import FloatArray
from missratio.exceptions import NoFiniteOptimumWarning
from missratio.ratio import base
from missratio.ratio.complete import ClassifierRatio, WeightedTable, log_loss
from missratio.ratio.kernel import KernelRatio
from missratio.ratio.kliep import KLIEP, FDivergenceRatio
from missratio.rows import ClassRows

# What a fitted ratio knows of its table, beside what it learned.
READ = ("classes_", "n_features_in_", "feature_names_in_", "basis_", "missingness_")


@storable()
@dataclass(eq=False, repr=False)
class Ratio(base.BaseRatio):
    """Density ratio by the estimator that predicts rows held out best.

    Four are compared: logistic regression (`FDivergenceRatio("js")`) and `KLIEP`, whose
    log ratio is linear in the columns, Gaussian bumps (`KernelRatio("kliep")`) and
    boosted trees (`ClassifierRatio`). The loss is that of P̂(1|z) = r̂/(1 + r̂),
    −½Ê₁[log P̂(1|z)] − ½Ê₀[log P̂(0|z)] over complete rows weighted by 1/P(complete),
    and in expectation it is smallest at the true ratio. All are fitted to the same
    folds, in which both classes are. An estimator that can't be fitted to one of them,
    or has no finite optimum there, is left out. The best is fitted to all rows.

    Parameters
    ----------
    missingness : mapping from class to Missingness, a Missingness, "ignore" or None
        Why values are missing, as for `KLIEP`.
    cv : int, splitter or list of pairs, default=5
        The folds, as for `KLIEPCV`.
    random_state : int, RandomState or None, default=None
        For folds, centres and trees. None draws anew at each ``fit``.

    Attributes
    ----------
    estimator_ : ratio estimator
        The one of the smallest loss, fitted to all rows.
    comparison_ : dict from str to float
        The losses on rows held out, from the smallest to the largest. A ratio of one
        has log 2 ≈ 0.693.
    left_out_ : dict from str to str
        The estimators that couldn't be fitted, and why.
    classes_ : ndarray of shape (2,)
        The denominator's and the numerator's label.
    effective_sample_size_ : dict from class to SampleSize
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_columns,)

    Examples
    --------
    Class 1 sits in the middle of class 0, and no plane is between them.

    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 0.5, (500, 1)), rng.normal(0, 1, (500, 1))])
    >>> ratio = mr.Ratio(random_state=0).fit(X, np.repeat([1, 0], 500))
    >>> {name: round(loss, 2) for name, loss in ratio.comparison_.items()}
    {'kernels': 0.62, 'trees': 0.66, 'KLIEP': 0.69, 'Jensen-Shannon': 0.69}
    >>> type(ratio.estimator_).__name__
    'KernelRatio'
    """

    missingness: base.MissingnessParameter = None
    cv: Any = 5
    random_state: int | np.random.RandomState | None = None

    def _learn(self, two: base.Two[ClassRows]) -> None:
        # What no candidate can take is refused at once.
        two.map(lambda rows: WeightedTable.of(rows.complete()))
        random = check_random_state(self.random_state)
        seed = int(random.randint(2**31 - 1))
        # Without early stopping trees learn small tables by heart.
        trees = HistGradientBoostingClassifier(early_stopping=True, random_state=seed)
        candidates: dict[str, base.BaseRatio] = {
            "Jensen-Shannon": FDivergenceRatio("js"),
            "KLIEP": KLIEP(),
            "kernels": KernelRatio("kliep", random_state=seed),
            "trees": ClassifierRatio(trees),
        }
        folds = base.deal_folds(two, self.cv, random)
        losses, self.left_out_ = {}, {}
        known = {k: v for k, v in vars(self).items() if k in READ}
        # Threads of trees wait for one another on small tables.
        small = sum(rows.source.size for rows in two) < THREADED_ELEMENTS
        with threadpool_limits(1 if small else None, "openmp"):
            for name, candidate in candidates.items():
                candidate.missingness, loss = self.missingness, 0.0
                candidate.__dict__.update(known)
                try:
                    with warnings.catch_warnings(action="ignore"):
                        warnings.simplefilter("error", NoFiniteOptimumWarning)
                        for fitted, held in folds:
                            candidate._learn(base.some_rows(two, fitted))
                            loss += log_loss(candidate, base.some_rows(two, held))
                except (ValueError, NoFiniteOptimumWarning) as error:
                    self.left_out_[name] = str(error)
                else:
                    losses[name] = loss / len(folds)
            if not losses:
                why = next(iter(self.left_out_.values()))
                raise ValueError(f"No ratio can be fitted to all folds. {why}")
            ranked = sorted(losses, key=losses.__getitem__)
            self.comparison_ = {name: losses[name] for name in ranked}
            self.estimator_ = candidates[ranked[0]]
            self.estimator_._learn(two)
        self.effective_sample_size_ = self.estimator_.effective_sample_size_

    def _log_ratio(self, X: Any) -> FloatArray:
        return self.estimator_.predict_log_ratio(X)

    def _score_rows(self, two: base.Two[ClassRows]) -> float:
        return float(np.log(2.0)) - log_loss(self.estimator_, two)
