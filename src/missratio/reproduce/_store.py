"""Finished tasks to resume from."""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

import missratio
from missratio._base.typing import FloatArray
from missratio._files import write_whole
from missratio.reproduce._experiment import Conditions

FOLDER = ".tasks"


@dataclass(frozen=True, slots=True)
class Task:
    """Some runs of an experiment, computed together.

    Parameters
    ----------
    experiment : str
        Its id.
    points : tuple of float
    runs : range
    methods : tuple of str
    conditions : Conditions
    """

    experiment: str
    points: tuple[float, ...]
    runs: range
    methods: tuple[str, ...]
    conditions: Conditions

    def identity(self, fingerprint: str) -> str:
        """What the numbers depend on, the code and the data among it, as JSON."""
        return json.dumps(
            {
                "experiment": self.experiment,
                "points": self.points,
                "runs": [self.runs.start, self.runs.stop],
                "methods": self.methods,
                "variant": self.conditions.variant,
                "seed": self.conditions.seed,
                "data": fingerprint,
                "code": code_digest(),
                "version": missratio.__version__,
            }
        )

    def digest(self, fingerprint: str) -> str:
        """A name for all that."""
        return hashlib.sha256(self.identity(fingerprint).encode()).hexdigest()[:32]


@cache
def code_digest() -> str:
    """A checksum of the library's sources and the version of NumPy.

    What another version of the code computed is computed again.
    """
    state = hashlib.sha256(f"{missratio.__version__} {np.__version__}".encode())
    root = Path(str(files("missratio")))
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] != "app":
            state.update(path.read_bytes())
    return state.hexdigest()


@dataclass(frozen=True, slots=True)
class Finished:
    """What a task gave.

    Parameters
    ----------
    values : dict from method to ndarray of shape (n_runs, n_points)
    seconds : float
        Of computing.
    """

    values: dict[str, FloatArray]
    seconds: float


@dataclass(frozen=True)
class Store:
    """Finished tasks in a folder, by what they depend on."""

    folder: Path

    def _path(self, task: Task, fingerprint: str) -> Path:
        name = f"{task.experiment}-{task.digest(fingerprint)}.npz"
        return self.folder / FOLDER / name

    def load(self, task: Task, fingerprint: str) -> Finished | None:
        """What was finished before; None where nothing was, or it can't be read.

        A file says itself what it is: that of another task is not believed.
        """
        try:
            content = io.BytesIO(self._path(task, fingerprint).read_bytes())
            with np.load(content, allow_pickle=False) as arrays:
                stacked, seconds = arrays["values"], float(arrays["seconds"])
                identity = str(arrays["identity"])
        # Damage can raise anything, from zlib.error to MemoryError.
        except Exception:
            return None
        shape = len(task.methods), len(task.runs), len(task.points)
        sound = stacked.shape == shape and stacked.dtype == np.float64
        if not sound or identity != task.identity(fingerprint):
            return None
        return Finished(dict(zip(task.methods, stacked, strict=True)), seconds)

    def save(self, task: Task, fingerprint: str, finished: Finished) -> None:
        """Keep what was finished."""
        buffer = io.BytesIO()
        stacked = np.stack([finished.values[method] for method in task.methods])
        np.savez(
            buffer,
            values=stacked,
            seconds=finished.seconds,
            identity=task.identity(fingerprint),
        )
        write_whole(self._path(task, fingerprint), buffer.getvalue())
