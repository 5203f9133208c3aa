"""A comparison of candidates by rows left out in turn, within a time."""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin

from missratio._base.callbacks import CallbackSupportMixin, told
from missratio._base.typing import FloatArray, IntArray
from missratio.classifier._comparison import CandidatePower
from missratio.classifier._scores import complete_mask
from missratio.missingness import Missingness, RowInclusion

# A candidate that can't be fitted is out of the comparison, and says why.
_FAILURES = (ValueError, TypeError, ImportError, np.linalg.LinAlgError)


class SearchRows(Protocol):
    """Rows that candidates are fitted to, and scored on."""

    @property
    def labels(self) -> IntArray:
        """The class of each row."""

    def fit(self, candidate: Any, index: IntArray) -> Any:
        """A candidate, fitted to some rows."""

    def scores(self, fitted: Any, index: IntArray, deployment: str) -> FloatArray:
        """Scores of some rows."""


class CandidateSearch(CallbackSupportMixin, ClassifierMixin, BaseEstimator, ABC):
    """Takes the best of some candidates, by rows left out in turn.

    Leaves rows out in turn, fits each candidate to the others, and scores those left
    out. What the best scores are is up to the subclass.
    """

    candidates: Mapping[str, Any]
    missingness: Mapping[int, Missingness] | None
    deployment: str
    folds: int
    seconds: float
    most_rows: int
    random_state: Any
    on_candidate: Callable[[str], None] | None

    @abstractmethod
    def _measured(
        self, rows: Any, index: IntArray, scores: FloatArray
    ) -> tuple[float | None, float | None, float, str]:
        """How good scores of rows left out are.

        Returns
        -------
        cost : float
            By which candidates are ranked, the least first.
        note : str
            Why there is no share, or a doubt about it.
        """

    @abstractmethod
    def _indistinct(self, rows: Any, index: IntArray) -> str:
        """Why these rows can't tell candidates apart; empty where they can."""

    def _drawn(
        self, X: Any, labels: IntArray, inclusion: ArrayLike | None
    ) -> tuple[FloatArray | None, RowInclusion | None]:
        """Inclusion probabilities as they were given, and as those of rows."""
        if inclusion is None:
            return None, None
        given = np.asarray(inclusion, dtype=np.float64)
        return given, RowInclusion.of(given, complete_mask(X), X.shape[1], labels)

    def _compare(
        self, rows: SearchRows
    ) -> tuple[list[CandidatePower], str, IntArray, str]:
        """What each candidate reached, the best's name, and the rows compared on.

        Last comes why nothing was compared, where that is so: then the best is the
        first.
        """
        if not self.candidates:
            raise ValueError("There are no candidates to choose from: name some.")
        start = time.process_time()
        # 1. Draw rows of each class, and deal them out to the parts.
        rng = np.random.default_rng(self.random_state)
        fold = np.full(len(rows.labels), -1)
        for label in np.unique(rows.labels).tolist():
            mine = rng.permutation(np.flatnonzero(rows.labels == label))
            mine = mine[: self.most_rows]
            fold[mine] = np.arange(len(mine)) % self.folds
        used = np.flatnonzero(fold >= 0)
        note = self._indistinct(rows, used)
        if note:
            found = [
                CandidatePower(name, note="too few rows to compare")
                for name in self.candidates
            ]
            return found, found[0].name, used, note
        # 2. Try each candidate, as long as there is time; the first in any case.
        first = next(iter(self.candidates))
        costs: dict[str, float] = {}

        def tried(name: str) -> CandidatePower:
            if self.on_candidate is not None:
                self.on_candidate(name)
            left = self.seconds - (time.process_time() - start)
            left = np.inf if name == first else left
            found, costs[name] = self._tried(name, rows, fold, left)
            return found

        found = told(self, "candidate", self.candidates, tried, len(self.candidates))
        # 3. Take the best; of equal ones, or where nothing was measured, the first.
        best = min(costs, key=lambda name: costs[name])
        return list(found), best, used, ""

    def _tried(
        self, name: str, rows: SearchRows, fold: IntArray, left: float
    ) -> tuple[CandidatePower, float]:
        """How good a candidate is on rows that it wasn't fitted on, and its cost."""
        if left <= 0.0:
            note = "there was no time left for it"
            return CandidatePower(name, note=note), np.inf
        start = time.process_time()
        out, scores = [], []
        for k in range(self.folds):
            kept = np.flatnonzero((fold >= 0) & (fold != k))
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    fitted = rows.fit(self.candidates[name], kept)
                    out.append(np.flatnonzero(fold == k))
                    scores.append(rows.scores(fitted, out[-1], self.deployment))
            except _FAILURES as error:
                spent = time.process_time() - start
                note = f"it can't be fitted: {_first_sentence(error)}"
                return CandidatePower(name, seconds=spent, note=note), np.inf
            spent = time.process_time() - start
            needed = spent * self.folds / (k + 1)
            if needed > left and k + 1 < self.folds:
                note = f"it would have taken about {needed:.2g} s"
                return CandidatePower(name, seconds=spent, note=note), np.inf
        share, spread, cost, note = self._measured(
            rows, np.concatenate(out), np.concatenate(scores)
        )
        spent = time.process_time() - start
        return CandidatePower(name, share, spread, spent, note), cost


def _first_sentence(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text.split(". ")[0].rstrip(".")
