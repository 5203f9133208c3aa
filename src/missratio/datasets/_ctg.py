"""Cardiotocograms, from UCI."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from missratio.datasets._files import DataHome, read_file
from missratio.datasets._table import (
    LoadedDataset,
    Variant,
    check_columns,
    check_labels,
    is_published,
)

FEATURES = ["LB", "AC", "FM", "UC", "ASTV", "MSTV", "ALTV", "MLTV", "Mean", "Variance"]
SHEET, LABEL = "Raw Data", "NSP"

DESCRIPTION = """\
Cardiotocograms
---------------
Summaries of 2126 foetal cardiotocograms, classified by three obstetricians as normal,
suspect or pathologic. Class 1, the numerator: 1655 normal ones. Class 0, whose error is
controlled, so that few that need attention are taken for normal: 471 suspect or
pathologic ones. 10 features; nothing is missing.

The sheet ends with 3 rows that are no cardiotocograms and have no label: two without
features and one with the largest values of some columns. The variant "corrected" drops
them. The variant "published" counts them as class 0, as the curves of Givens, Liu and
Reeve (2023) do: 474 rows, with NaN where the sheet is empty.

From the UCI Machine Learning Repository,
https://archive.ics.uci.edu/dataset/193/cardiotocography. D. Ayres de Campos et al.,
SisPorto 2.0: a program for automated analysis of cardiotocograms, Journal of
Maternal-Fetal Medicine 5:311-318, 2000.
"""


def load_ctg(
    *,
    variant: Variant = "corrected",
    return_X_y: bool = False,
    as_frame: bool = False,
    data_home: DataHome = None,
    verify: bool = True,
) -> Any:
    """Load the cardiotocograms: 10 features of 1655 normal and 471 other ones.

    Parameters
    ----------
    variant : {"corrected", "published"}, default="corrected"
        "published" counts the sheet's 3 footer rows as class 0, with NaN where they are
        empty, as the paper's curves do; "corrected" drops them.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        Whether data and target are a pandas DataFrame and Series.
    data_home, verify
        As of `fetch`.

    Returns
    -------
    Bunch, or (data, target)
        With `data`, `target` (1 for normal, 0 for suspect or pathologic), `frame` (None
        unless ``as_frame``), `feature_names`, `target_names`, `DESCR` and `filename`.
    """
    footer = is_published(variant)
    path, content = read_file("ctg", data_home, verify)
    header, *rows = _sheet(content, path)
    check_columns(header, dict.fromkeys([*FEATURES, LABEL]), path)
    label = header.index(LABEL)
    labelled = [place for place, row in enumerate(rows) if row[label] != ""]
    if not labelled:
        raise ValueError(f"The sheet {SHEET!r} of {path} has no row with a label.")
    check_labels([rows[place][label] for place in labelled], [1.0, 2.0, 3.0], path)
    # A blank row follows the header; what follows the last label is the footer.
    end = len(rows) if footer else labelled[-1] + 1
    kept = rows[labelled[0] : end]
    columns = [header.index(name) for name in FEATURES]
    return LoadedDataset(
        np.array([[_number(row[j]) for j in columns] for row in kept]),
        np.array([int(row[label] == 1.0) for row in kept]),
        list(FEATURES),
        ("suspect or pathologic", "normal"),
        DESCRIPTION,
        path,
    ).returned(return_X_y, as_frame)


def _sheet(content: bytes, path: Path) -> list[list[Any]]:
    from python_calamine import CalamineError, CalamineWorkbook, WorksheetNotFound

    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(content))
        return book.get_sheet_by_name(SHEET).to_python(skip_empty_area=False)
    except (CalamineError, WorksheetNotFound) as error:
        raise ValueError(
            f"{path} must be a workbook with a sheet {SHEET!r}: {error}. Replace it by "
            "a sound copy."
        ) from error


def _number(cell: Any) -> float:
    return float("nan") if cell == "" else float(cell)
