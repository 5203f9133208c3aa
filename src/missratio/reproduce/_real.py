"""The paper's experiments on data sets, with missingness that is made."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from missratio import datasets
from missratio._base.typing import FloatArray
from missratio.reproduce._experiment import Conditions, Procedure, fits_of
from missratio.reproduce._fits import certified_threshold
from missratio.reproduce._methods import METHODS, RunBatch
from missratio.reproduce._runs import Loss, RealRun, RealTable, SplitSizes, draw_run

DELTA = 0.05
ALPHA = 0.1
LOADERS: dict[str, Callable[..., tuple[FloatArray, FloatArray]]] = {
    "ctg": datasets.load_ctg,
    "fire": datasets.load_fire,
    "weather": datasets.load_weather,
}


@cache
def load_table(name: str, *, corrected: bool) -> RealTable:
    """A data set; kept for the runs that follow."""
    variant = "corrected" if corrected else "published"
    X, y = LOADERS[name](variant=variant, return_X_y=True)
    return RealTable(np.asfortranarray(X), y == 1)


@cache
def _loss(name: str, share: float | None, *, corrected: bool) -> Loss:
    return Loss.of(load_table(name, corrected=corrected), share)


def power(
    scores: tuple[FloatArray, FloatArray], alpha: float, *, strict: bool
) -> float:
    """The share of the test rows beyond the binomial rule's threshold.

    Published: from the threshold on (≥). Corrected: strictly above it, for which alone
    the certificate is proved where scores may be tied.
    """
    calibration, test = scores
    if np.isnan(calibration).any():
        return float("nan")
    cut = certified_threshold(calibration, alpha, DELTA)
    beyond = test > cut if strict else test >= cut
    return float(beyond.mean())


def type_one_error(
    scores: tuple[FloatArray, FloatArray], alpha: float, *, strict: bool
) -> float:
    """The error on fresh class-0 rows: half of those held out calibrate, half test."""
    calibrating, fresh = np.array_split(scores[0], 2)
    return power((calibrating, fresh), alpha, strict=strict)


@dataclass(frozen=True)
class RealData(Procedure):
    """Runs on a data set, by alpha or by the share that is missing.

    Parameters
    ----------
    name : {"ctg", "fire", "weather"}
    varies : {"alpha", "missing"}
        Experiment 1, in which φ has no shift, or experiment 2.
    sizes : SplitSizes
    """

    name: str
    varies: Literal["alpha", "missing"]
    sizes: SplitSizes

    def unavailable(self) -> str | None:
        """Say so where the file is not at hand."""
        entry = next(e for e in datasets.available() if e.name == self.name)
        if entry.path is not None:
            return None
        return (
            f"{entry.file} is not at hand: `missratio data fetch {self.name}` says how "
            "to get it."
        )

    def fingerprint(self, conditions: Conditions) -> str:
        """The checksum of the table as it was read."""
        table = load_table(self.name, corrected=conditions.corrects("data"))
        state = hashlib.sha256(table.X.T.tobytes())
        state.update(table.is_numerator.tobytes())
        return state.hexdigest()

    def draw(
        self, share: float | None, runs: range, conditions: Conditions
    ) -> list[RealRun]:
        """Some runs, for a share that is to be missing or without a shift."""
        corrected = conditions.corrects("data")
        table = load_table(self.name, corrected=corrected)
        loss = _loss(self.name, share, corrected=corrected)
        key = "alpha" if share is None else f"missing {share:g}"
        return [
            draw_run(
                table,
                self.sizes,
                loss,
                conditions.generator(self.name, key, number),
                corrected=corrected,
            )
            for number in runs
        ]

    def measure(
        self,
        points: Sequence[float],
        runs: range,
        methods: Sequence[str],
        conditions: Conditions,
    ) -> dict[str, FloatArray]:
        """Outcomes of some runs; as of `Procedure`."""
        if self.varies == "alpha":
            drawn = self.draw(None, runs, conditions)
            return _outcomes(methods, drawn, points, conditions)
        parts = []
        for share in points:
            drawn = self.draw(share, runs, conditions)
            parts.append(_outcomes(methods, drawn, [ALPHA], conditions))
        return {m: np.concatenate([part[m] for part in parts], axis=1) for m in methods}


def _outcomes(
    methods: Sequence[str],
    runs: Sequence[RealRun],
    alphas: Sequence[float],
    conditions: Conditions,
) -> dict[str, FloatArray]:
    """The outcomes of each method; those of the same fits are fitted once."""
    strict, batch = conditions.corrects("threshold"), RunBatch(runs)
    scores = {
        fit: METHODS[fit](batch, conditions) for fit in set(map(fits_of, methods))
    }
    outcomes = {}
    for method in methods:
        measure = power if method == fits_of(method) else type_one_error
        outcomes[method] = np.array(
            [
                [measure(own, alpha, strict=strict) for alpha in alphas]
                for own in scores[fits_of(method)]
            ]
        )
    return outcomes
