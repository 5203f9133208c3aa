"""The demonstration's results as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from demonstration._experiments import CALIBRATIONS, METHODS, Calibrated, Outcome
from missratio._base.typing import FloatArray


def percent(share: float) -> str:
    """A share in whole per cent."""
    return f"{100 * share:.0f} %"


def half_width(values: FloatArray) -> float:
    """Half of a 95 % interval for the mean."""
    return float(1.96 * values.std(ddof=1) / np.sqrt(len(values)))


def table_lines(outcomes: Sequence[Outcome]) -> Iterable[str]:
    """The outcomes as lines of text, the first method being the reference."""
    yield f"  {'':22}{'coefficients':>14}{'held-out':>16}{'benign cleared at':>21}"
    yield f"  {'':22}{'off by':>14}{'objective':>16}{'10 % of malignant':>21}"
    reference = outcomes[0].coef
    for method, outcome in zip(METHODS, outcomes, strict=True):
        distance = np.linalg.norm(outcome.coef - reference, axis=1)
        cells = [f"{distance.mean():.2f}" if method.lossy else "-"]
        for values, scale, digits in (
            (outcome.objective, 1, 2),
            (outcome.power, 100, 1),
        ):
            mean, half = scale * values.mean(), scale * half_width(values)
            cells.append(f"{mean:.{digits}f} ± {half:.{digits}f}")
        yield f"  {method.name:22}{cells[0]:>14}{cells[1]:>16}{cells[2] + ' %':>21}"


def certificate_lines(outcomes: Sequence[Calibrated]) -> Iterable[str]:
    """How often each way to choose a threshold broke its promise, and the power."""
    yield f"  {'':22}{'malignant':>12}{'thresholds that':>22}{'benign':>17}"
    yield f"  {'':22}{'cleared':>12}{'clear over 10 %':>22}{'cleared':>17}"
    for calibration, outcome in zip(CALIBRATIONS, outcomes, strict=True):
        # Draws for one fit have the fit in common: only repeats are independent.
        power = 100 * outcome.power.mean(axis=1)
        cells = (
            f"{100 * outcome.error.mean():.1f} %",
            f"{outcome.violations} of {outcome.error.size}",
            f"{power.mean():.1f} ± {half_width(power):.1f} %",
        )
        yield f"  {calibration.name:22}{cells[0]:>12}{cells[1]:>22}{cells[2]:>17}"
