"""The numbers of an experiment: every run, and the curves made of them."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from missratio._base.typing import FloatArray
from missratio.reproduce._experiment import Conditions, Experiment
from missratio.reproduce._published import MeanCurve, overlap, published_curves


@dataclass(frozen=True)
class Result:
    """What came out of an experiment.

    Parameters
    ----------
    experiment : Experiment
    conditions : Conditions
    values : dict from method to ndarray of shape (n_runs, n_points)
        NaN for what was not run.
    seconds : dict from method to float
        Computing time; methods that are computed together share theirs, under the
        first one's name.
    """

    experiment: Experiment
    conditions: Conditions
    values: dict[str, FloatArray]
    seconds: dict[str, float]

    @classmethod
    def from_parquet(
        cls, experiment: Experiment, path: Path, seconds: dict[str, float]
    ) -> Result:
        """Read the table of every run."""
        from pyarrow import parquet

        table = parquet.read_table(path, page_checksum_verification=True)
        settings = json.loads(table.schema.metadata[b"missratio"])
        columns = table.to_pydict()
        shape = (1 + max(columns["run"]), len(experiment.x))
        found = set(columns["method"])
        values = {m: np.full(shape, np.nan) for m in experiment.curves if m in found}
        for x, method, run, value in zip(*columns.values(), strict=True):
            values[method][run, experiment.x.index(x)] = value
        conditions = Conditions(settings["variant"], settings["seed"])
        return cls(experiment, conditions, values, seconds)

    @property
    def curves(self) -> dict[str, MeanCurve]:
        """Means and intervals of each method."""
        z = self.experiment.z
        return {method: make_curve(own, z) for method, own in self.values.items()}

    @property
    def published(self) -> dict[str, MeanCurve]:
        """The published curves, where they are known."""
        known = published_curves(self.experiment.id, self.experiment.x)
        return {method: known[method] for method in self.values if method in known}

    @property
    def overlaps(self) -> dict[str, tuple[bool | None, ...]]:
        """Whether our intervals and the published ones overlap."""
        ours = self.curves
        return {
            method: overlap(ours[method], theirs)
            for method, theirs in self.published.items()
        }

    def only(self, methods: Sequence[str]) -> Result:
        """The same without other methods."""
        return replace(self, values={m: self.values[m] for m in methods})

    def as_json(self) -> dict[str, Any]:
        """The experiment's entry of the command's JSON output."""
        return {
            "x_name": self.experiment.x_name,
            "x": list(self.experiment.x),
            "y_name": self.experiment.y_name,
            "curves": {
                method: {
                    "mean": list(curve.mean),
                    "lo": list(curve.lo),
                    "hi": list(curve.hi),
                }
                for method, curve in self.curves.items()
            },
        }

    def as_parquet(self) -> bytes:
        """Every run as a row of a Parquet file: x, method, run, value."""
        import pyarrow
        from pyarrow import parquet

        columns: dict[str, list[Any]] = {"x": [], "method": [], "run": [], "value": []}
        for method, values in self.values.items():
            for point, own in zip(self.experiment.x, values.T, strict=True):
                (done,) = np.nonzero(~np.isnan(own))
                columns["x"] += [point] * len(done)
                columns["method"] += [method] * len(done)
                columns["run"] += done.tolist()
                columns["value"] += own[done].tolist()
        settings = {
            "experiment": self.experiment.id,
            "variant": self.conditions.variant,
            "seed": self.conditions.seed,
            "x_name": self.experiment.x_name,
            "y_name": self.experiment.y_name,
            "confidence": self.experiment.confidence,
        }
        table = pyarrow.table(columns).replace_schema_metadata(
            {"missratio": json.dumps(settings)}
        )
        buffer = io.BytesIO()
        parquet.write_table(table, buffer, write_page_checksum=True)
        return buffer.getvalue()


def make_curve(values: FloatArray, z: float) -> MeanCurve:
    """Mean ± z·sd/√runs at each point, over the runs that there are.

    Parameters
    ----------
    values : ndarray of shape (n_runs, n_points)
        NaN for what was not run.
    z : float
    """
    points = [own[~np.isnan(own)] for own in values.T]
    means = [own.mean() if len(own) else np.nan for own in points]
    halves = [
        z * own.std(ddof=1) / np.sqrt(len(own)) if len(own) > 1 else np.nan
        for own in points
    ]
    pairs = list(zip(means, halves, strict=True))
    return MeanCurve(
        _numbers(means),
        _numbers([mean - half for mean, half in pairs]),
        _numbers([mean + half for mean, half in pairs]),
        tuple(len(own) for own in points),
    )


def _numbers(values: Sequence[float]) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(value) else float(value) for value in values)


def count_overlaps(results: Sequence[Result]) -> tuple[int, int]:
    """At how many points intervals overlap, and how many points were compared."""
    verdicts = [
        verdict
        for result in results
        for curve in result.overlaps.values()
        for verdict in curve
        if verdict is not None
    ]
    return sum(verdicts), len(verdicts)
