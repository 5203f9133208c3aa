"""Labels and time of an exported classifier, on a million rows with missing values.

python benchmarks/serving.py
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime
from sklearn.ensemble import HistGradientBoostingClassifier

import missratio as mr

WIDTH, LOST = 5, 0.02


def fitted(estimator, deployment: str):
    """A certified classifier of two normal classes."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 5000)
    X = rng.normal(size=(len(y), WIDTH)) + 0.6 * y[:, None]
    classifier = mr.NeymanPearsonClassifier(
        estimator, alpha=0.1, deployment=deployment, random_state=0
    )
    return classifier.fit(X, y)


def main() -> None:
    """Print, for a linear model and for trees, rows that differ and both times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    n_rows = parser.parse_args().rows
    rng = np.random.default_rng(1)
    X = rng.normal(0.3, 1.0, (n_rows, WIDTH))
    X[rng.random(X.shape) < LOST] = np.nan
    trees = HistGradientBoostingClassifier(max_iter=50, random_state=0)
    print("model   deployment   differ  predict  onnxruntime")
    for name, estimator, deployment in (
        ("KLIEP", mr.KLIEP(), "complete"),
        ("trees", trees, "as-observed"),
    ):
        classifier = fitted(estimator, deployment)
        start = time.process_time()
        expected = classifier.predict(X)
        here = time.process_time() - start
        with tempfile.TemporaryDirectory() as folder:
            path = mr.export_onnx(classifier, Path(folder) / "model.onnx")
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            session = onnxruntime.InferenceSession(path, options)
            start = time.process_time()
            label, _ = session.run(None, {"X": X})
            there = time.process_time() - start
        differ = int((label != expected).sum())
        print(f"{name:7s} {deployment:12s} {differ:6d}  {here:6.2f}s  {there:6.2f}s")


if __name__ == "__main__":
    main()
