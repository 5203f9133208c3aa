"""Figures that every page has, where there is something to show."""

from __future__ import annotations

from collections.abc import Iterator

from missratio.app.report._drawing import Data, Figure
from missratio.app.report._missing_figures import (
    columns_figure,
    patterns_figure,
    profile_figure,
)
from missratio.app.report._part_figures import unscored_figure, weights_figure


def shared_figures(data: Data) -> Iterator[Figure]:
    """Rows without a score, what is missing, and weights, where there are any.

    Parameters
    ----------
    data : dict
        Of the report.
    """
    if any(entry["share"] for entry in data["unscored"]):
        yield unscored_figure(data)
    if data["missingness"]["any"]:
        yield columns_figure(data)
    if data["missingness"]["patterns"] is not None:
        yield patterns_figure(data)
    for k, entry in enumerate(data["missingness"]["profiles"]):
        yield profile_figure(k, entry, data)
    for k, entry in enumerate(data["weights"]):
        if entry["histogram"] is not None:
            yield weights_figure(k, entry, data)
