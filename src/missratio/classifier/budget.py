"""What a query budget buys: how narrow a band, and how much certified power."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from missratio._base.typing import BoolArray, FloatArray
from missratio.classifier.neyman_pearson import NeymanPearsonClassifier
from missratio.classifier.reading import read_labelled
from missratio.learning import LearnedMissingness
from missratio.missingness import Missingness
from missratio.weights import complete_row_weights


@dataclass(frozen=True)
class QueryBudget:
    """What to expect of looking up more values.

    Parameters
    ----------
    queries : ndarray of shape (n_budgets,)
        Values of each feature, or whole rows, of the controlled class.
    band_width : ndarray of shape (n_budgets,)
        Mean width of the band of φ over the observed values.
    power : ndarray of shape (n_budgets,)
        Of the classifier, its φ no better known than that.
    certified : ndarray of bool of shape (n_budgets,)
    known : float
        The power if φ were what was estimated, for certain.
    """

    queries: FloatArray
    band_width: FloatArray
    power: FloatArray
    certified: BoolArray
    known: float

    def to_frame(self, backend: Any = "pandas") -> Any:
        """The table, a row for each budget.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}

        Returns
        -------
        dataframe
        """
        columns = {
            "queries": self.queries.tolist(),
            "band_width": self.band_width.tolist(),
            "power": self.power.tolist(),
            "certified": self.certified.tolist(),
        }
        return nw.from_dict(columns, backend=backend).to_native()


def query_budget(
    classifier: NeymanPearsonClassifier,
    X: Any,
    y: ArrayLike,
    budgets: Sequence[float],
) -> QueryBudget:
    """The power that other numbers of look-ups would have given, from a pilot.

    It treats the controlled class's φ̂ as if other numbers of its missing values had
    been looked up, with values like those that were, and calibrates again. The powers
    are estimates for planning; they certify nothing.

    Parameters
    ----------
    classifier : NeymanPearsonClassifier
        Fitted on X and y, with a learned φ for the controlled class.
    X : array-like or dataframe of shape (n_rows, n_columns)
    y : array-like of shape (n_rows,)
    budgets : sequence of float
        Values of each feature, or whole rows, that are looked up in all.

    Returns
    -------
    QueryBudget
    """
    check_is_fitted(classifier, "calibration_index_")
    controlled = classifier._controlled()
    models = classifier._resolve_missingness() or {}
    model = models.get(controlled)
    if not isinstance(model, LearnedMissingness):
        raise ValueError(
            "query_budget needs a classifier whose φ of the controlled class was "
            f"learned: that of class {controlled!r} is {model!r}. Learn it from a few "
            "queries (learn_missingness), and fit with it."
        )
    X, labels = read_labelled(classifier, X, y)
    is_other = labels != controlled
    observed = _safe_indexing(X, np.flatnonzero(~is_other))
    other = _safe_indexing(X, np.flatnonzero(is_other))
    weights = complete_row_weights(other, models.get(classifier._other()))

    def power(phi: Missingness) -> tuple[float, bool]:
        again = copy(classifier).set_params(on_infeasible="reject_all")
        again._recalibrate(X, is_other, {**models, controlled: phi})
        above = again.score_samples(other) > again.threshold_
        share = float(np.average(above, weights=weights))
        return share, bool(again.certificate_.certified)

    delta = classifier.missingness_delta or classifier.delta / 2.0
    learned = [model.at_budget(budget) for budget in budgets]
    bands = [phi.probability_band(observed, delta) for phi in learned]
    powers = [power(phi) for phi in learned]
    return QueryBudget(
        np.asarray(budgets, dtype=np.float64),
        np.array([float(np.nanmean(high - low)) for low, high in bands]),
        np.array([share for share, _ in powers]),
        np.array([certified for _, certified in powers]),
        power(model.as_known())[0],
    )
