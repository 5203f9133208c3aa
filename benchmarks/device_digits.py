"""Fits of tensors on a GPU against fits of the same arrays, in settings drawn by seed.

    python benchmarks/device_digits.py [--settings 150]

Rows of two normal classes, sorted or mixed, float32 or float64, lose values or whole
rows by φ. Differences are those of coefficients for columns of unit variance, and those
of log ratios at 500 rows.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from typing import Any

import numpy as np
import uninstalled  # noqa: F401
from data import FloatArray

import missratio as mr
from missratio.missingness import Missingness

WITHIN = {"float64": 3e-7, "float32": 1e-4}
ESTIMATORS = {
    "KLIEP": mr.KLIEP(),
    "KLIEP, l2": mr.KLIEP(l2=0.1),
    "KLIEP, l1": mr.KLIEP(l1=0.02),
    "JS": mr.FDivergenceRatio("js"),
    "KL": mr.FDivergenceRatio("kl"),
    "naive Bayes": mr.NaiveBayesRatio(),
}


def drawn_phi(kind: str, width: int, rng: np.random.Generator) -> Missingness:
    if kind == "entries":
        return mr.LogisticMissingness(
            rng.normal(-2.0, 0.5, width), rng.normal(0, 0.4, width)
        )
    if kind == "rows":
        coef = rng.normal(0, 0.2, width)
        return mr.LogisticMissingness(-1.0, coef, rowwise=True)
    if kind == "step":
        return mr.StepMissingness(np.eye(width)[0], 0.3, 0.6)
    return mr.FunctionMissingness(lambda X: 0.3 + 0.2 * (X[:, 0] > 0), maximum=0.5)


def drawn_table(
    rng: np.random.Generator,
) -> tuple[FloatArray, Any, dict[int, Missingness]]:
    """Rows, labels, and why values are missing."""
    width = int(rng.choice([1, 2, 5, 17, 60, 130]))
    n_rows = max(int(10 ** rng.uniform(2.8, 5.6)), 40 * width)
    y = (rng.uniform(size=n_rows) < rng.uniform(0.2, 0.8)).astype(int)
    y = np.sort(y) if rng.integers(2) else y
    X = rng.normal(size=(n_rows, width)) * rng.uniform(0.5, 3.0, width)
    X[y == 1] += 0.3 * rng.normal(size=width) / np.sqrt(width)
    # With many columns hardly a row would be complete.
    kinds = ["none", "rows"] if width > 17 else ["none", "entries", "rows", "step", "f"]
    phi = {}
    for label, kind in zip((1, 0), rng.choice(kinds, 2), strict=True):
        if kind != "none":
            phi[label] = drawn_phi(kind, width, rng)
            X[y == label] = mr.corrupt(X[y == label], phi[label], label)
    return X, y, phi


def compared(seed: int) -> str:
    """What became of one setting."""
    import torch

    rng = np.random.default_rng(seed)
    X, y, phi = drawn_table(rng)
    dtype, name = rng.choice(list(WITHIN)), rng.choice(list(ESTIMATORS))
    estimator = ESTIMATORS[name].set_params(
        missingness="ignore" if phi and rng.integers(4) == 0 else phi or None
    )
    rows = X.astype(dtype)
    found = []
    for as_array in (np.asarray, lambda each: torch.as_tensor(each, device="cuda")):
        try:
            fitted = estimator.fit(as_array(rows), as_array(y))
            ratio = fitted.predict_log_ratio(as_array(rows[:500]))
            ratio = ratio if isinstance(ratio, np.ndarray) else ratio.cpu().numpy()
            found.append((np.nanstd(X, axis=0) * fitted.coef_, np.nan_to_num(ratio)))
        except ValueError as error:
            found.append(type(error).__name__)
    if all(isinstance(each, str) for each in found):
        return "refused by both"
    if any(isinstance(each, str) for each in found):
        print(f"seed {seed}, {name}: {found}")
        return "refused by one"
    gaps = [float(np.abs(a - b).max()) for a, b in zip(*found, strict=True)]
    if gaps[0] <= WITHIN[dtype] and gaps[1] <= 100 * WITHIN[dtype]:
        return f"{dtype} within {WITHIN[dtype]:g}"
    print(f"seed {seed}, {name}, {dtype}, {X.shape}, φ of {list(phi)}: {gaps}")
    return "different"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", type=int, default=150)
    warnings.simplefilter("ignore")
    counts = Counter(compared(seed) for seed in range(parser.parse_args().settings))
    for what, count in counts.most_common():
        print(f"{count:5}  {what}")


if __name__ == "__main__":
    main()
