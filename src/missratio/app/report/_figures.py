"""Every figure of a report page."""

from __future__ import annotations

from collections.abc import Iterator

from missratio.app.report._drawing import Data, Figure
from missratio.app.report._level_figures import roc_figure, scores_figure
from missratio.app.report._part_figures import (
    coefficients_figure,
    complete_case_figure,
    importance_figure,
    sensitivity_figure,
)
from missratio.app.report._shared_figures import shared_figures


def figures(data: Data) -> Iterator[Figure]:
    """Every figure of a report.

    Parameters
    ----------
    data : dict
        Of the report.
    """
    yield roc_figure(data)
    if data["scores"] is not None:
        yield scores_figure(data)
    if data["sensitivity"] is not None:
        yield sensitivity_figure(data["sensitivity"])
    yield from shared_figures(data)
    if data["complete_case"] is not None:
        yield complete_case_figure(data)
    if data["coefficients"] is not None:
        yield coefficients_figure(data["coefficients"])
    if data["importance"] is not None:
        yield importance_figure(data["importance"])
