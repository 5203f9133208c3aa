"""The basis of Gaussian bumps around centres."""

from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.utils import check_array, check_scalar
from sklearn.utils.validation import check_is_fitted

from missratio._base.blocks import rows_with_nan
from missratio._base.hints import check_choice, check_real, generator
from missratio._base.reading import read_labels
from missratio._base.storable import storable
from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import FloatArray, Names
from missratio.basis.contract import Basis

_BLOCK_ROWS = 1024


@storable(finite=("centers_", "bandwidth_"))
class GaussianBasis(Basis):
    """Gaussian bumps around centres: f_i(z) = exp(−‖z − c_i‖² / (2σ²)).

    As in KLIEP and uLSIF, centres are rows of the numerator class where ``fit`` gets
    labels. A row with a missing value has no feature at all.

    Parameters
    ----------
    centers : int or array-like of shape (k, p), default=100
        How many distinct complete rows to draw as centres (all of them, where there
        are fewer), or the centres themselves.
    bandwidth : float or "median", default="median"
        σ, positive and finite. "median" is the median heuristic: the median of the
        distances, other than zero, between the centres and up to 1000 complete rows.
    random_state : int, Generator, RandomState or None, default=None
        For the draw of centres and of the rows behind the median. None draws anew at
        each ``fit``.

    Attributes
    ----------
    centers_ : ndarray, shape (k, p)
        The centres.
    bandwidth_ : float
        σ.
    required_columns_ : ndarray of bool, shape (k, p)
        All true: a distance needs every column.

    Examples
    --------
    >>> import numpy as np
    >>> from missratio.basis import GaussianBasis
    >>> basis = GaussianBasis(centers=[[0.0, 0.0]], bandwidth=1.0)
    >>> basis.fit_transform([[0.0, 0.0], [0.0, 1.0], [np.nan, 0.0]]).round(3)
    array([[1.   ],
           [0.607],
           [  nan]])
    """

    def __init__(
        self,
        centers: int | ArrayLike = 100,
        bandwidth: float | Literal["median"] = "median",
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> None:
        self.centers = centers
        self.bandwidth = bandwidth
        self.random_state = random_state

    centers_: FloatArray
    bandwidth_: float

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Draw the centres and set the bandwidth.

        Where ``y`` has two labels, centres are drawn from the rows of the one sorted
        last, the numerator; otherwise from all rows.
        """
        validated = self._validated(X, reset=True)
        rng = generator(self.random_state)
        # 1. The centres, as given or drawn.
        if not isinstance(self.centers, Integral):
            given = read_centers(self.centers, validated.shape[1])
            self.centers_ = given.astype(validated.dtype)
        else:
            count = int(check_scalar(self.centers, "centers", Integral, min_val=1))
            rows, whose = validated, ""
            labels = None if y is None else read_labels(y, validated)
            if labels is not None and len(classes := np.unique(labels)) == 2:
                rows, whose = rows[labels == classes[1]], " of the class sorted last"
            n_rows, rows = len(rows), rows[~rows_with_nan(rows)]
            if not len(rows):
                raise ValueError(
                    f"Centres are drawn from complete rows{whose}; got {n_rows} rows"
                    f"{whose} and none is complete. Give the centres as an array, or "
                    "use 'linear' or 'polynomial', which take columns one by one."
                )
            # Rows are drawn without replacement until so many are distinct.
            distinct: dict[tuple[float, ...], FloatArray] = {}
            for row in rows[rng.permutation(len(rows))]:
                distinct.setdefault(tuple(row.tolist()), row)
                if len(distinct) == count:
                    break
            self.centers_ = np.array([*distinct.values()])
        self.required_columns_ = np.ones(self.centers_.shape, dtype=bool)
        # 2. The bandwidth.
        if not isinstance(self.bandwidth, str):
            ends = {"max_val": np.inf, "include_boundaries": "neither"}
            check_real(self.bandwidth, "bandwidth", min_val=0.0, **ends)
            self.bandwidth_ = float(self.bandwidth)
            return self
        check_choice("bandwidth", self.bandwidth, ("median",))
        complete = validated[~rows_with_nan(validated)]
        # Enough rows for a median that is steady to a few per cent.
        size = min(len(complete), 1000)
        sample = complete[rng.choice(len(complete), size=size, replace=False)]
        # Pairwise differences, not the expanded square: equal rows are exactly at zero,
        # and are left out, so that repeated rows can't make the median vanish.
        distances = cdist(sample, self.centers_)
        distances = distances[distances > 0]
        self.bandwidth_ = float(np.median(distances)) if distances.size else 0.0
        if not 0 < self.bandwidth_ < np.inf:
            raise ValueError(
                f"The median distance gives no bandwidth: got {self.bandwidth_} from "
                f"n_samples={len(complete)} complete rows and {len(self.centers_)} "
                "centres. Give bandwidth as a number."
            )
        return self

    def transform(self, X: Any) -> Any:
        """Evaluate every bump at every row: in [0, 1], NaN where a row has a NaN."""
        check_is_fitted(self)
        validated = self._validated(X)
        # Distances are taken in float64 even for float32 rows, and in units of σ.
        centers = self.centers_.astype(np.float64) / self.bandwidth_
        out = np.empty((len(validated), len(centers)), dtype=validated.dtype)

        def fill(start: int) -> None:
            rows = slice(start, start + _BLOCK_ROWS)
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                scaled = validated[rows].astype(np.float64) / self.bandwidth_
                squares = cdist(scaled, centers, "sqeuclidean")
                np.exp(-0.5 * squares, out=out[rows], casting="same_kind")

        with one_blas_thread(out.size) as threads:
            share(fill, range(0, len(validated), _BLOCK_ROWS), threads)
        return out

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Names:
        """Name the features ``gaussian0``, ``gaussian1`` and so on."""
        self._input_names(input_features)
        return np.array([f"gaussian{i}" for i, _ in enumerate(self.centers_)], object)


def read_centers(centers: ArrayLike, n_columns: int) -> FloatArray:
    """Centres that were given, as a table of their own."""
    given: FloatArray = check_array(
        centers, dtype=np.float64, copy=True, input_name="centers"
    )
    if given.shape[1] != n_columns:
        raise ValueError(
            f"centers must have one column for each of the {n_columns} columns of X; "
            f"got {given.shape[1]}."
        )
    return given
