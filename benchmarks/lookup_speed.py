"""Processor time of a certificate from look-ups against a weighted one, by turns.

python benchmarks/lookup_speed.py [--repeats 7]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.linear_model import LogisticRegression

from missratio import LogisticMissingness, NeymanPearsonClassifier, corrupt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    rng = np.random.default_rng(0)
    model = LogisticRegression().fit(
        rng.normal(np.repeat([[0.0], [1.5]], 500, axis=0), 1.0, (1000, 4)),
        np.repeat([0, 1], 500),
    )
    phi = LogisticMissingness([-1.0, -700.0, -700.0, -700.0], [1.0, 0.0, 0.0, 0.0])
    for n_rows in (1000, 100_000):
        full = rng.normal(size=(n_rows, 4))
        X = corrupt(full, phi, random_state=0)
        gone = np.isnan(X).any(axis=1)
        drawn = rng.permutation(np.flatnonzero(gone))[: n_rows // 12]
        filled, inclusion = X.copy(), np.where(gone, 0.0, 1.0)
        filled[drawn], inclusion[drawn] = full[drawn], len(drawn) / gone.sum()
        times: dict[str, list[float]] = {"weighted": [], "look-ups": []}
        for _ in range(repeats):
            start = time.process_time()
            weighted = NeymanPearsonClassifier(model, alpha=0.1, missingness={0: phi})
            weighted.calibrate(X)
            times["weighted"].append(time.process_time() - start)
            start = time.process_time()
            looked_up = NeymanPearsonClassifier(model, alpha=0.1)
            looked_up.calibrate(filled, inclusion=inclusion)
            times["look-ups"].append(time.process_time() - start)
        best = {name: 1e3 * min(values) for name, values in times.items()}
        print(
            f"{n_rows:7} rows: weighted {best['weighted']:.1f} ms, look-ups "
            f"{best['look-ups']:.1f} ms, ratio "
            f"{best['look-ups'] / best['weighted']:.2f}"
        )


if __name__ == "__main__":
    main()
