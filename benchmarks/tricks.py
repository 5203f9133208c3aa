"""What each trick brings where values are missing: python benchmarks/tricks.py

200,000 + 200,000 × 40 rows, on one thread. Every fit is done with and without a trick,
by turns, nine times; printed is by how many per cent the quickest and the median fit
take longer without it. What changes nothing by construction differs by up to 10%.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from data import gaussian_classes
from threadpoolctl import threadpool_limits

import uninstalled  # noqa: F401  isort: skip
import missratio as mr
from missratio import engine, moments
from missratio.missingness import _evidence
from missratio.ratio import _problem
from missratio.rows import _source
from missratio.solver import _pilot

N_ROWS, N_COLUMNS, REPEATS = 200_000, 40, 9
Patch = tuple[Any, str, Any]


def fits() -> dict[str, Callable[[], Any]]:
    data = gaussian_classes(N_ROWS, N_COLUMNS, shift=0.2)
    entries = mr.LogisticMissingness(np.zeros(N_COLUMNS), np.ones(N_COLUMNS))
    rows = mr.StepMissingness(np.eye(N_COLUMNS)[0], 0.0, 0.5)
    complete = data.rows(0)
    whole = mr.corrupt(data.rows(1), rows, random_state=0)
    lossy = np.concatenate([mr.corrupt(complete, rows, random_state=1), whole])
    single = np.concatenate([complete, mr.corrupt(data.rows(1), entries, 0)])
    tables = {
        "rows": (mr.KLIEP(missingness={1: rows}), np.concatenate([complete, whole])),
        "rows of both": (mr.KLIEP(missingness={0: rows, 1: rows}), lossy),
        "entries": (mr.KLIEP(missingness={1: entries}), single),
        "float32": (mr.KLIEP(missingness={1: entries}), single.astype(np.float32)),
        "naive Bayes": (mr.NaiveBayesRatio(missingness={1: entries}), single),
    }
    return {
        name: lambda ratio=ratio, X=X: ratio.fit(X, data.y)
        for name, (ratio, X) in tables.items()
    }


def _in_double(held: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, stride, centre, **_: held(self, stride, centre, single=False)


def _one_by_one(odds: np.ndarray) -> np.ndarray:
    return np.stack([np.log1p(bet * odds).sum(axis=0) for bet in _evidence._BETS])


WITHOUT: dict[str, list[Patch]] = {
    "pilot": [(_pilot, "_pilot", lambda problem: None)],
    "pilot in single precision": [
        (engine.RowSample, "held", _in_double(engine.RowSample.held))
    ],
    "Hessian of rows drawn": [
        (_pilot, "HESSIAN_SHARE", 1.0),
        (_pilot, "HESSIAN_ROWS", (10**9, 10**9)),
    ],
    "features about zero": [(_problem.RatioProblem, "_about_zero", False)],
    "symmetric products": [(moments, "SYRK_FEATURES", 10**9)],
    "larger blocks": [(_source, "LARGER_BLOCKS", 1)],
    "logarithms of products": [(_evidence, "_growth", _one_by_one)],
}


@contextmanager
def patched(where: Any, name: str, value: Any) -> Iterator[None]:
    kept = vars(where)[name]
    setattr(where, name, value)
    try:
        yield
    finally:
        setattr(where, name, kept)


def seconds(fit: Callable[[], Any], patches: list[Patch]) -> float:
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patched(*patch))
        begin = time.process_time()
        fit()
        return time.process_time() - begin


def main() -> None:
    cases = fits()
    print("without".ljust(28) + "".join(name.rjust(15) for name in cases))
    for name, patches in WITHOUT.items():
        line = name.ljust(28)
        for fit in cases.values():
            fit()
            times = np.array(
                [[seconds(fit, []), seconds(fit, patches)] for _ in range(REPEATS)]
            )
            for summary in (times.min(axis=0), np.median(times, axis=0)):
                line += f"{100 * (summary[1] / summary[0] - 1):+8.0f}"
        print(line, flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
