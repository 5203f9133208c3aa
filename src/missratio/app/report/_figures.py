"""Every figure of a report page."""

from __future__ import annotations

from collections.abc import Iterator

from missratio.app.report._classes_figures import (
    confusion_figure,
    groups_figure,
    trade_off_figure,
)
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
from missratio.app.report._report import GROUPS, SEVERAL_CLASSES


def figures(data: Data) -> Iterator[Figure]:
    """Every figure of a report, where there is something to show."""
    if data["kind"] == SEVERAL_CLASSES:
        yield confusion_figure(data)
        for k, trade in enumerate(data["trade_offs"]):
            yield trade_off_figure(k, trade)
    elif data["kind"] == GROUPS:
        yield groups_figure(data)
    else:
        yield from _of_two_classes(data)
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


def _of_two_classes(data: Data) -> Iterator[Figure]:
    yield roc_figure(data)
    if data["scores"] is not None:
        yield scores_figure(data)
    if data["sensitivity"] is not None:
        yield sensitivity_figure(data["sensitivity"])
    if data["complete_case"] is not None:
        yield complete_case_figure(data)
    if data["coefficients"] is not None:
        yield coefficients_figure(data["coefficients"])
    if data["importance"] is not None:
        yield importance_figure(data["importance"])
