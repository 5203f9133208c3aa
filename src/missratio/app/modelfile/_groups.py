"""A classifier with a promise to each group, and the columns that it is for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missratio._base.typing import BoolArray, FloatArray
from missratio._files.numbers import canonical
from missratio.app.modelfile._frame import TwoClassModel
from missratio.app.tables import as_arrow, flat
from missratio.classifier import GroupedCertificate


@dataclass(frozen=True, eq=False)
class GroupedTableModel(TwoClassModel):
    """A classifier with a promise to each group, as `missratio fit --groups` makes it.

    Parameters
    ----------
    classifier, encoder, target, dropped, method, training, report, comparison
        As for every model of a table; the classifier is a
        GroupedNeymanPearsonClassifier.
    group_column : str
        The column that says which group each row is in; one of `dropped`, as it is not
        a feature.
    rest : tuple of str
        Labels that the other class stands for, where it is all but the controlled one.
    """

    group_column: str = field(kw_only=True)
    rest: tuple[str, ...] = field(kw_only=True, default=())

    @property
    def certificate(self) -> GroupedCertificate:
        """What is guaranteed."""
        certificate: GroupedCertificate = self.classifier.certificate_
        return certificate

    @property
    def fallback(self) -> Any:
        """The label of a row without a score or a threshold: the controlled class."""
        return self.classifier.controlled_class

    @property
    def needs_groups(self) -> bool:
        """Whether a row's label depends on its group."""
        return not self.certificate.shared

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each row of a dataframe, as `missratio predict` gives it.

        Parameters
        ----------
        X : dataframe of pandas, polars or PyArrow
            With the model's columns, in any order, and that of groups. A blank, NA, NaN
            or null is missing. The target and what was left out of the fit may be
            there.

        Returns
        -------
        ndarray of shape (n_rows,)
            The controlled class for a row that can't be scored, or whose group has no
            threshold.
        """
        encoded, members = self.encode(X), None
        if self.needs_groups:
            table = as_arrow(X, [self.group_column])
            cells = self.encoder.with_marks(()).cells
            texts = cells.texts(flat(table.column(self.group_column)))
            members = self.members(texts.to_pylist())
        return self._labels(self.score(encoded, members)[1])

    def members(self, texts: Sequence[Any]) -> NDArray[Any]:
        """The groups that texts stand for; None for those that the model has not.

        Parameters
        ----------
        texts : sequence of str or None
        """
        known = {canonical(group): group for group in self.classifier.groups_}
        found = np.empty(len(texts), dtype=object)
        found[:] = [None if x is None else known.get(canonical(x)) for x in texts]
        return found

    def score(
        self, X: FloatArray, members: NDArray[Any] | None
    ) -> tuple[FloatArray, BoolArray]:
        """Scores of encoded rows, and which of them get the other class.

        Parameters
        ----------
        X : ndarray of shape (n_rows, encoder.width)
        members : ndarray of object of shape (n_rows,), or None
            Their groups; needed where each has a threshold of its own.

        Returns
        -------
        scores : ndarray of shape (n_rows,)
            −∞ for a row that can't be scored.
        above : ndarray of bool of shape (n_rows,)
        """
        scores = self._scores(X)
        return scores, scores > self.limits(len(X), members)

    def limits(self, n_rows: int, members: NDArray[Any] | None) -> FloatArray:
        """The threshold of each row; ∞ where its group has none.

        Parameters
        ----------
        n_rows : int
        members : ndarray of object of shape (n_rows,), or None
        """
        thresholds = self.classifier.thresholds_
        if not self.needs_groups:
            return np.full(n_rows, thresholds[None])
        assert members is not None
        # A group that isn't known is None, which has no threshold.
        return np.array([thresholds.get(group, np.inf) for group in members.tolist()])
