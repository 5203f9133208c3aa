"""Whether revealed values look as the fitted φ says that missing ones do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from missratio._base.typing import FloatArray
from missratio.learning._evidence import Evidence
from missratio.learning._lookup_tests import form_test, ranks_in_laws


@dataclass(frozen=True)
class GoodnessOfFit:
    """Where the revealed values lie within the law that the model gives missing ones.

    If φ is right, missing values follow the observed ones tilted by the odds φ/(1 − φ).
    The ranks of the revealed ones within that law are then uniform. The test asks
    whether polynomials of the rank would help to tell revealed from observed values.

    Parameters
    ----------
    feature_names : tuple of str
        Features that have values looked up; for a rowwise model "rows", which are
        ranked by their fitted log-odds.
    ranks : tuple of ndarray
        Of the revealed values, in [0, 1] and sorted.
    statistic : ndarray of shape (n_features,)
        Rao's score statistic, χ² with three degrees of freedom; 0 where there is only
        one value, and nothing that could be off.
    p_value : ndarray of shape (n_features,)
        A logistic φ has one below 0.05 in at most about 5% of tables.
    """

    feature_names: tuple[str, ...]
    ranks: tuple[FloatArray, ...]
    statistic: FloatArray
    p_value: FloatArray

    @classmethod
    def of(cls, tested: Sequence[tuple[str, Evidence, FloatArray]]) -> GoodnessOfFit:
        """Test evidences, by name, against fits with uncorrected intercepts."""
        tests = [
            form_test(evidence, theta)[:2] if len(theta) > 1 else (0.0, 1.0)
            for _, evidence, theta in tested
        ]
        # Where revealed rows lie in the law of missing ones; ties in the middle.
        ranks = [
            ranks_in_laws(theta[1:] @ evidence.values, evidence)[
                1, : evidence.n_revealed
            ]
            for _, evidence, theta in tested
        ]
        return cls(
            tuple(name for name, _, _ in tested),
            tuple(np.sort(own) for own in ranks),
            np.array([statistic for statistic, _ in tests]),
            np.array([p_value for _, p_value in tests]),
        )

    def to_frame(self, backend: Any = "pandas") -> Any:
        """The test as a dataframe, a row for each feature.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}

        Returns
        -------
        dataframe
        """
        columns = {
            "feature": list(self.feature_names),
            "revealed": [len(ranks) for ranks in self.ranks],
            "statistic": self.statistic.tolist(),
            "p_value": self.p_value.tolist(),
        }
        return nw.from_dict(columns, backend=backend).to_native()
