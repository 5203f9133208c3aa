"""What the loaders share: reading a CSV file, and the shape of what they return."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.utils import Bunch

from missratio._base.hints import listed
from missratio._base.typing import FloatArray, IntArray

Variant = Literal["corrected", "published"]
VARIANTS: tuple[Variant, ...] = ("corrected", "published")
NULLS = ["", "NA"]


def is_published(variant: str) -> bool:
    """Whether the published variant is asked for; any other than the two is refused."""
    if variant not in VARIANTS:
        raise ValueError(f"variant must be one of {listed(VARIANTS)}: got {variant!r}.")
    return variant == "published"


def read_csv(content: bytes, path: Path, columns: Mapping[str, Any]) -> Any:
    """Columns of a CSV file as a PyArrow table, nulls where a field is empty or NA.

    Parameters
    ----------
    content : bytes
    path : Path
        Names the file in errors.
    columns : mapping from str to PyArrow type
    """
    import pyarrow
    from pyarrow import csv as arrow_csv

    first_line = content.partition(b"\n")[0].decode("utf-8", errors="replace")
    check_columns(next(csv.reader([first_line.strip("\r\ufeff")]), []), columns, path)
    options = arrow_csv.ConvertOptions(
        include_columns=list(columns),
        column_types=dict(columns),
        null_values=NULLS,
        strings_can_be_null=True,
    )
    try:
        return arrow_csv.read_csv(
            pyarrow.BufferReader(content), convert_options=options
        )
    except pyarrow.ArrowInvalid as error:
        raise ValueError(
            f"{path} can't be read as a CSV table: {error}. Replace it by a sound copy."
        ) from error


def check_columns(found: Sequence[str], needed: Mapping[str, Any], path: Path) -> None:
    """Refuse a table that lacks columns."""
    absent = [name for name in needed if name not in found]
    if absent:
        raise ValueError(
            f"{path} must have the column(s) {listed(absent)}: got {listed(found)}. "
            "Replace it by the publisher's file."
        )


def check_labels(labels: Sequence[Any], known: Sequence[Any], path: Path) -> None:
    """Refuse labels other than those that are known."""
    foreign = sorted({str(label) for label in labels} - {str(label) for label in known})
    if foreign:
        raise ValueError(
            f"Labels in {path} must be among {listed(known)}: got {listed(foreign)}."
        )


@dataclass(frozen=True, slots=True)
class LoadedDataset:
    """A data set as it was read.

    Parameters
    ----------
    data : ndarray of shape (n_rows, n_columns)
    target : ndarray of shape (n_rows,)
        1 for the numerator, 0 for the controlled class.
    feature_names : list of str
    target_names : tuple of str
        Of class 0 and of class 1.
    description : str
    path : Path
    """

    data: FloatArray
    target: IntArray
    feature_names: list[str]
    target_names: tuple[str, str]
    description: str
    path: Path

    def returned(self, return_X_y: bool, as_frame: bool) -> Any:
        """As scikit-learn's loaders return it: a Bunch, or data and target."""
        data, target, frame = self._framed() if as_frame else (*self._arrays(), None)
        if return_X_y:
            return data, target
        return Bunch(
            data=data,
            target=target,
            frame=frame,
            feature_names=self.feature_names,
            target_names=np.array(self.target_names),
            DESCR=self.description,
            filename=str(self.path),
        )

    def _arrays(self) -> tuple[FloatArray, IntArray]:
        return self.data, self.target

    def _framed(self) -> tuple[Any, Any, Any]:
        try:
            import pandas
        except ImportError as error:
            raise ImportError(
                "as_frame=True needs pandas, which is not installed. Install it, or "
                "take the arrays: as_frame=False."
            ) from error
        data = pandas.DataFrame(self.data, columns=self.feature_names)
        target = pandas.Series(self.target, name="target")
        return data, target, pandas.concat([data, target], axis=1)
