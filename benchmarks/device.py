"""How a fit runs on a GPU.

    python benchmarks/device.py [ROWS ...]
    python benchmarks/device.py digits [SETTINGS]

For classes of 10⁶, 10⁷ and 10⁸ rows × 64 float32: one pass of the fused kernel beside
the memory's copy bandwidth, `KLIEP().fit(X, y)` from labels to coefficients, checked
against float64 sums, and (up to 10⁷) scikit-learn's LogisticRegression under array-API
dispatch at its default tolerance. Then with weights, NaN and a logistic φ.

digits: fits of tensors against fits of the same arrays, in settings drawn by seed. Rows
of two normal classes, sorted or mixed, float32 or float64, lose values or whole rows by
φ. Differences are those of coefficients for columns of unit variance, and those of log
ratios at 500 rows.

Runs from the repository, installed or not.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"  # scikit-learn's dispatch asks for it
import numpy as np
import sklearn
import torch
from sklearn.linear_model import LogisticRegression

import uninstalled  # noqa: F401  isort: skip
import missratio as mr
from missratio.missingness import Missingness
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


# The same digits as on the host

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
) -> tuple[np.ndarray, Any, dict[int, Missingness]]:
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


def digits(settings: int) -> None:
    warnings.simplefilter("ignore")
    counts = Counter(compared(seed) for seed in range(settings))
    for what, count in counts.most_common():
        print(f"{count:5}  {what}")


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["digits"]:
        digits(int(arguments[1]) if arguments[1:] else 150)
        return
    print(torch.cuda.get_device_name(), torch.__version__, sklearn.__version__)
    print(f"copy {bandwidth():.2f} TB/s")
    for n_rows in [int(float(each)) for each in arguments] or [10**6, 10**7, 10**8]:
        one_size(n_rows)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main(sys.argv[1:])
