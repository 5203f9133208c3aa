"""How a fit runs on a GPU: python benchmarks/device.py [ROWS ...]

For classes of 10⁶, 10⁷ and 10⁸ rows × 64 float32: one pass of the fused kernel beside
the memory's copy bandwidth, `KLIEP().fit(X, y)` from labels to coefficients, checked
against float64 sums, and (up to 10⁷) scikit-learn's LogisticRegression under array-API
dispatch at its default tolerance. Then with weights, NaN and a logistic φ. Runs from
the repository, installed or not.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

os.environ["SCIPY_ARRAY_API"] = "1"  # scikit-learn's dispatch asks for it
import numpy as np
import sklearn
import torch
from sklearn.linear_model import LogisticRegression

import uninstalled  # noqa: F401  isort: skip
import missratio as mr
from missratio.tensor import fused

N_COLUMNS, REPEATS = 64, 5


def best(call: Callable[[], object]) -> float:
    """Milliseconds, the best of some calls after a first."""
    call()
    times = []
    for _ in range(REPEATS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times)


def labelled(n_rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator("cuda").manual_seed(0)
    X = torch.empty((2 * n_rows, N_COLUMNS), device="cuda")
    X.normal_(generator=generator)
    X[n_rows:] += 0.1 * torch.randn(N_COLUMNS, device="cuda", generator=generator)
    y = torch.zeros(2 * n_rows, dtype=torch.int64, device="cuda")
    y[n_rows:] = 1
    return X, y


def gradient(X: torch.Tensor, y: torch.Tensor, coef: np.ndarray) -> float:
    """The norm of KLIEP's gradient, from float64 sums."""
    theta = torch.as_tensor(coef, dtype=torch.float64, device="cuda")
    n_rows = len(X) // 2
    mean = torch.zeros(N_COLUMNS, dtype=torch.float64, device="cuda")
    total, first = 0.0, torch.zeros_like(mean)
    for i in range(0, n_rows, 2**21):
        stop = min(i + 2**21, n_rows)
        mean += X[n_rows + i : n_rows + stop].double().sum(0)
        rows = X[i:stop].double()
        mass = torch.exp(rows @ theta)
        total, first = total + mass.sum(), first + mass @ rows
    return float((first / total - mean / n_rows).norm())


def logistic_gradient(
    X: torch.Tensor, y: torch.Tensor, peer: LogisticRegression
) -> float:
    """The norm of the mean logistic loss's gradient, from float64 sums."""
    coef = torch.as_tensor(peer.coef_, device="cuda").double().ravel()
    intercept = torch.as_tensor(peer.intercept_, device="cuda").double().ravel()
    total = torch.zeros_like(coef)
    for i in range(0, len(X), 2**21):
        rows = X[i : i + 2**21].double()
        residual = torch.sigmoid(rows @ coef + intercept) - y[i : i + 2**21]
        total += residual @ rows
    return float((total / len(X)).norm())


def one_size(n_rows: int) -> None:
    X, y = labelled(n_rows)
    size = X[:n_rows].nbytes
    print(f"\n{n_rows:,} + {n_rows:,} x {N_COLUMNS} float32, {2 * size / 1e9:.1f} GB")
    zeros = torch.zeros(N_COLUMNS, device="cuda")
    both = torch.stack([zeros + 0.05, zeros])
    weights = torch.rand(n_rows, device="cuda")
    for name, own in (("without", None), ("with", weights)):
        took = best(lambda own=own: fused.tilted_sums(X[:n_rows], own, both))
        print(f"  one pass {name} weights {took:8.2f} ms {size / took / 1e9:6.2f} TB/s")
    del weights
    ratio = mr.KLIEP()
    took = best(lambda: ratio.fit(X, y))
    norm = gradient(X, y, ratio.coef_)
    print(f"  KLIEP().fit {took:8.2f} ms, {ratio.n_iter_} steps, gradient {norm:.1e}")
    if n_rows <= 10**7:
        with sklearn.config_context(array_api_dispatch=True):
            peer = LogisticRegression(C=np.inf)
            other = best(lambda: peer.fit(X, y))
        print(f"  LogisticRegression {other:8.2f} ms, ratio {other / took:.2f}")
        print(f"    its own objective's gradient {logistic_gradient(X, y, peer):.1e}")
        alike = mr.KLIEP(tol=1e-4)
        took = best(lambda: alike.fit(X, y))
        norm = gradient(X, y, alike.coef_)
        print(
            f"  KLIEP(tol=1e-4).fit {took:8.2f} ms, {alike.n_iter_} steps, gradient "
            f"{norm:.1e}, ratio {other / took:.2f}"
        )
        order = torch.randperm(len(X), device="cuda")
        shuffled = best(lambda: ratio.fit(X[order], y[order]))
        print(f"  shuffled, the gathering included {shuffled:8.2f} ms")
        model = mr.LogisticMissingness(
            np.full(N_COLUMNS, -3.0), np.full(N_COLUMNS, 0.3)
        )
        lost = torch.rand(n_rows, N_COLUMNS, device="cuda") < torch.sigmoid(
            -3.0 + 0.3 * X[n_rows:]
        )
        X[n_rows:][lost] = torch.nan
        took = best(lambda: mr.KLIEP(missingness={1: model}).fit(X, y))
        print(f"  with a logistic φ of class 1 {took:8.2f} ms")
    scored = best(lambda: ratio.predict_ratio(X[:n_rows]))
    print(f"  predict_ratio of {n_rows:,} rows {scored:8.2f} ms")


def bandwidth() -> float:
    block = torch.empty(2**30, dtype=torch.float32, device="cuda")
    other = torch.empty_like(block)
    return 2 * block.nbytes / best(lambda: other.copy_(block)) / 1e9


def main(arguments: list[str]) -> None:
    print(torch.cuda.get_device_name(), torch.__version__, sklearn.__version__)
    print(f"copy {bandwidth():.2f} TB/s")
    for n_rows in [int(float(each)) for each in arguments] or [10**6, 10**7, 10**8]:
        one_size(n_rows)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main(sys.argv[1:])
