"""Predictions for a Dask collection: partition by partition, where they lie."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar, cast

import numpy as np

from missratio.rows._labelled import LabelledSource, is_collection

Method = TypeVar("Method", bound=Callable[..., Any])


def by_partition(method: Method) -> Method:
    """A method of rows that maps over the partitions of a Dask collection, lazily.

    For an array it gives a Dask array, for a dataframe a series with its index; for
    rows in memory it is the method itself.
    """

    @wraps(method)
    def call(self: Any, X: Any) -> Any:
        if isinstance(X, LabelledSource):
            raise TypeError(
                f"{method.__name__} takes tables, not a source of labelled rows. Read "
                "a file at a time, as by pyarrow.parquet.read_table(path), or give a "
                "Dask dataframe."
            )
        if not is_collection(X):
            return method(self, X)
        labels = method.__name__ == "predict"
        dtype = self.classes_.dtype if labels else np.dtype(np.float64)
        work = partial(_of_rows, partial(method, self), dtype)
        if hasattr(X, "columns"):
            import pandas as pd

            return X.map_partitions(
                _as_series, work, meta=pd.Series(np.empty(0, dtype))
            )
        # A block must hold whole rows.
        return X.rechunk({1: -1}).map_blocks(work, dtype=dtype, drop_axis=1)

    return cast(Method, call)


def _of_rows(work: Callable[[Any], Any], dtype: Any, rows: Any) -> Any:
    """Predictions for a partition, which may be empty."""
    return work(rows) if len(rows) else np.empty(0, dtype)


def _as_series(frame: Any, work: Callable[[Any], Any]) -> Any:
    """Predictions for a partition under its index."""
    import pandas as pd

    return pd.Series(work(frame), index=frame.index)
