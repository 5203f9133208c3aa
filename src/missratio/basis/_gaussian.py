"""The basis of Gaussian bumps around centres."""

from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.utils import (
    check_array,
    check_scalar,
)
from sklearn.utils.validation import check_is_fitted

from missratio._base.hints import did_you_mean
from missratio._base.reading import read_labels
from missratio._base.seeds import generator
from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import BoolArray, FloatArray, Names
from missratio.basis._base import Basis, complete_rows

# Enough rows for a median that is steady to a few per cent.
_BLOCK_ROWS = 1024
_BANDWIDTH_ROWS = 1000


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

        Parameters
        ----------
        X : array-like or dataframe, shape (n, p)
            Rows, NaN where a value is missing.
        y : array-like, shape (n,), optional
            Labels. Where there are two, centres are drawn from the rows of the one
            sorted last, the numerator; otherwise from all rows.

        Returns
        -------
        Self
            The fitted basis.
        """
        validated = self._validated(X, reset=True)
        rng = generator(self.random_state)
        complete = complete_rows(validated)
        self.centers_ = self._choose_centers(validated, complete, y, rng)
        self.bandwidth_ = self._choose_bandwidth(validated[complete], rng)
        self.required_columns_ = np.ones(self.centers_.shape, dtype=bool)
        return self

    def transform(self, X: Any) -> Any:
        """Evaluate every bump at every row.

        Parameters
        ----------
        X : array-like or dataframe, shape (n, p)
            Rows, NaN where a value is missing.

        Returns
        -------
        ndarray, shape (n, k)
            Values in [0, 1]; NaN throughout a row that has a NaN.
        """
        check_is_fitted(self)
        validated = self._validated(X)
        # Distances are taken in float64 even for float32 rows: the expanded square
        # loses half the digits, and float32 has none to spare.
        bumps = _LogBumps(self.centers_.astype(np.float64), self.bandwidth_)
        out = np.empty((len(validated), len(bumps.centers)), dtype=validated.dtype)
        in_place = out.dtype == np.float64

        def fill(rows: slice) -> None:
            block = validated[rows].astype(np.float64, copy=False)
            logarithm = bumps.at(block, out[rows] if in_place else None)
            with np.errstate(under="ignore"):
                np.exp(logarithm, out=out[rows], casting="same_kind")

        blocks = [
            slice(start, start + _BLOCK_ROWS)
            for start in range(0, len(validated), _BLOCK_ROWS)
        ]
        with one_blas_thread(out.size) as threads:
            share(fill, blocks, threads)
        return out

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Names:
        """Name the features ``gaussian0``, ``gaussian1`` and so on.

        Parameters
        ----------
        input_features : array-like of str, shape (p,), optional
            Checked against the columns of ``fit``, and not used otherwise.

        Returns
        -------
        ndarray of str, shape (k,)
            One name a feature.
        """
        self._input_names(input_features)
        names = [f"gaussian{i}" for i in range(len(self.centers_))]
        return np.array(names, dtype=object)

    def _choose_centers(
        self,
        X: FloatArray,
        complete: BoolArray,
        y: ArrayLike | None,
        rng: np.random.Generator,
    ) -> FloatArray:
        centers: Any = self.centers
        if not isinstance(centers, Integral):
            return _given_centers(centers, X)
        count = check_scalar(centers, "centers", Integral, min_val=1)
        numerator = _numerator_rows(y, X)
        eligible = complete & numerator
        if not eligible.any():
            whose = "" if numerator.all() else " of the class sorted last"
            raise ValueError(
                f"Centres are drawn from the complete rows{whose}; got "
                f"{numerator.sum()} rows{whose} and none is complete. Give the centres "
                f"as an array, or use a basis that takes columns one by one: 'linear' "
                f"or 'polynomial'."
            )
        return _draw_distinct(X[eligible], int(count), rng)

    def _choose_bandwidth(
        self, complete: FloatArray, rng: np.random.Generator
    ) -> float:
        bandwidth: Any = self.bandwidth
        if isinstance(bandwidth, Real):
            value = float(bandwidth)
            if not 0 < value < np.inf:
                raise ValueError(f"bandwidth must be positive and finite; got {value}.")
            return value
        if not isinstance(bandwidth, str) or bandwidth != "median":
            raise ValueError(
                f"bandwidth must be a positive number or 'median'; got {bandwidth!r}."
                f"{did_you_mean(str(bandwidth), ['median'])}"
            )
        return _median_distance(complete, self.centers_, rng)


def _numerator_rows(y: ArrayLike | None, X: FloatArray) -> BoolArray:
    """Say which rows may be centres: of two labels, those of the last."""
    everything = np.ones(len(X), dtype=bool)
    if y is None:
        return everything
    labels = read_labels(y, X)
    classes = np.unique(labels)
    return np.asarray(labels == classes[-1]) if len(classes) == 2 else everything


def _given_centers(centers: Any, X: FloatArray) -> FloatArray:
    given: FloatArray = check_array(
        centers, dtype=X.dtype, copy=True, input_name="centers"
    )
    if given.shape[1] != X.shape[1]:
        raise ValueError(
            f"centers must have one column for each of the {X.shape[1]} columns of X; "
            f"got {given.shape[1]}."
        )
    return given


def _draw_distinct(
    rows: FloatArray, count: int, rng: np.random.Generator
) -> FloatArray:
    """Draw rows without replacement until ``count`` of them are distinct."""
    order = rng.permutation(len(rows))
    drawn = count
    while True:
        candidates = rows[order[:drawn]]
        _, first = np.unique(candidates, axis=0, return_index=True)
        if len(first) >= count or drawn >= len(rows):
            return candidates[np.sort(first)[:count]]
        drawn *= 2


def _median_distance(
    complete: FloatArray, centers: FloatArray, rng: np.random.Generator
) -> float:
    if len(complete) == 0:
        raise ValueError(
            "The median bandwidth needs complete rows; got none. Give bandwidth as a "
            "number."
        )
    size = min(len(complete), _BANDWIDTH_ROWS)
    sample = complete[rng.choice(len(complete), size=size, replace=False)]
    # Pairwise differences, not the expanded square: equal rows are exactly at zero,
    # and are left out, so that repeated rows can't make the median vanish.
    distances = cdist(sample, centers)
    positive = distances[distances > 0]
    median = float(np.median(positive)) if positive.size else 0.0
    if not 0 < median < np.inf:
        raise ValueError(
            f"The median distance gives no bandwidth: got {median} from "
            f"n_samples={len(complete)} complete rows and {len(centers)} centres, "
            f"which must differ and be within range. Give bandwidth as a number."
        )
    return median


class _LogBumps:
    """−‖x − c‖² / (2σ²) by the expanded square, as one matrix product."""

    def __init__(self, centers: FloatArray, bandwidth: float) -> None:
        """Expand the square around the mean of the centres and in units of σ.

        About the origin it would lose its digits for data far from there.
        """
        self.centers, self.bandwidth = centers, bandwidth
        with np.errstate(all="ignore"):
            self.origin = centers.mean(axis=0)
            v = (centers - self.origin) / bandwidth
            half_v = 0.5 * np.einsum("ij,ij->i", v, v)
        self.right = np.column_stack([v, -np.ones(len(v)), -half_v]).T
        self.in_range = bool(np.isfinite(half_v).all())

    def at(self, X: FloatArray, out: FloatArray | None) -> FloatArray:
        """The logarithm of every bump at every row, in `out` where it is given."""
        with np.errstate(all="ignore"):
            # 1. −½‖u − v‖² = u·v − ½‖u‖² − ½‖v‖², where rounding can rise above zero.
            left = np.ones((len(X), X.shape[1] + 2))
            u = left[:, :-2]
            np.subtract(X, self.origin, out=u)
            u /= self.bandwidth
            half_u = left[:, -2]
            np.einsum("ij,ij->i", u, u, out=half_u)
            half_u *= 0.5
            logarithm: FloatArray = np.matmul(left, self.right, out=out)
            np.minimum(logarithm, 0.0, out=logarithm)
            # 2. Where a square overflowed, ∞ − ∞ left NaN in a complete row.
            near = np.isfinite(half_u)
            if not (self.in_range and near.all()):
                lost = complete_rows(X) & ~(near & self.in_range)
                distances = cdist(X[lost], self.centers) / self.bandwidth
                logarithm[lost] = -0.5 * distances**2
        return logarithm
