"""Predictions for a Dask collection: partition by partition, where they lie."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar, cast

import numpy as np

Method = TypeVar("Method", bound=Callable[..., Any])


def is_collection(X: Any) -> bool:
    """Whether X is a Dask array or dataframe."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


def by_partition(method: Method) -> Method:
    """A method of rows that maps over the partitions of a Dask collection, lazily.

    For an array it gives a Dask array, for a dataframe a series with its index; for
    rows in memory it is the method itself.
    """

    @wraps(method)
    def call(self: Any, X: Any) -> Any:
        if not is_collection(X):
            return method(self, X)
        labels = method.__name__ == "predict"
        dtype = self.classes_.dtype if labels else np.dtype(np.float64)
        work = partial(method, self)
        if hasattr(X, "columns"):
            if dtype.kind in "US":
                dtype = np.dtype(object)
            return X.map_partitions(_as_series, work, meta=(None, dtype))
        # A block must hold whole rows.
        return X.rechunk({1: -1}).map_blocks(work, dtype=dtype, drop_axis=1)

    return cast(Method, call)


def _as_series(frame: Any, work: Callable[[Any], Any]) -> Any:
    """Predictions for a partition, which may be empty, under its index."""
    import pandas as pd

    return pd.Series(work(frame) if len(frame) else [], index=frame.index)
