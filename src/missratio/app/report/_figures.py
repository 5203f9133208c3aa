"""Every figure of a report page."""

from __future__ import annotations

from collections.abc import Iterator

from missratio.app.report._drawing import Data, Figure
from missratio.app.report._level_figures import roc_figure, scores_figure
from missratio.app.report._missing_figures import (
    columns_figure,
    patterns_figure,
    profile_figure,
)
from missratio.app.report._part_figures import (
    coefficients_figure,
    complete_case_figure,
    importance_figure,
    sensitivity_figure,
    unscored_figure,
    weights_figure,
)


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
    if any(entry["share"] for entry in data["unscored"]):
        yield unscored_figure(data)
    if data["sensitivity"] is not None:
        yield sensitivity_figure(data["sensitivity"])
    if data["missingness"]["any"]:
        yield columns_figure(data)
    if data["missingness"]["patterns"] is not None:
        yield patterns_figure(data)
    for k, entry in enumerate(data["missingness"]["profiles"]):
        yield profile_figure(k, entry, data)
    for k, entry in enumerate(data["weights"]):
        if entry["histogram"] is not None:
            yield weights_figure(k, entry, data)
    if data["complete_case"] is not None:
        yield complete_case_figure(data)
    if data["coefficients"] is not None:
        yield coefficients_figure(data["coefficients"])
    if data["importance"] is not None:
        yield importance_figure(data["importance"])
